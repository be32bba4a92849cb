// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// A kernel with /dev/nda, all of which is in this process: it does what uapi/nda.h says of
// the calls. Any call can be made to fail; what was made and not released is counted.
#ifndef NDA_TESTS_MOCK_NDA_KERNEL_H
#define NDA_TESTS_MOCK_NDA_KERNEL_H

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <gtest/gtest.h>
#include <map>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include <uapi/nda_soft.h>

#include "lib/nda/kernel.h"

namespace nda::test {

class FakeKernel {
public:
	FakeKernel()
	{
		state() = State();
		set_kernel_for_test(&table);
	}
	~FakeKernel()
	{
		set_kernel_for_test(nullptr);
		EXPECT_EQ(state().open_files, 0) << "left open";
		EXPECT_TRUE(state().objects.empty()) << "left behind";
		EXPECT_EQ(state().mappings, 0) << "left mapped";
		EXPECT_TRUE(state().bound.empty()) << "left bound";
		state().reset_event();
		state() = State();
	}
	FakeKernel(const FakeKernel &) = delete;
	FakeKernel &operator=(const FakeKernel &) = delete;

	struct Range {
		uint64_t va;
		uint64_t bytes;
	};
	struct Object {
		uint32_t kind;
		uint32_t state;
		uint32_t reason;
		ino_t dmabuf;   // of an export
		uint64_t va;    // where the dma-buf begins
		uint64_t bytes; // of the dma-buf
		bool is_mapped; // of a doorbell
	};
	// What the kernel is like; to be set before it is asked.
	struct State {
		int open_error = 0;
		uint64_t abi = NDA_ABI_VERSION;
		uint64_t features =
			NDA_FEATURE_HOST_PIN | NDA_FEATURE_EXPORT | NDA_FEATURE_DOORBELL_VA;
		uint64_t why[NDA_PARTS] = {
			NDA_WHY_NOT_LOADED, NDA_WHY_OK, NDA_WHY_OK, NDA_WHY_NO_PINNING};
		size_t max_objects = 4096;
		std::vector<Range> npu_memory;
		std::vector<uint64_t> doorbell_pages;
		std::map<uint32_t, int> refused; // errno by the ioctl's number
		int pinned_error = 0;            // of exports that may be kept
		// Of /dev/nda_soft.
		int soft_open_error = ENOENT;
		uint64_t soft_abi = NDA_SOFT_ABI_VERSION;
		uint64_t kick = 1;
		int bind_error = 0;
		std::map<uint32_t, nda_soft_ioc_bind> bound;

		// What it was asked.
		int open_files = 0;
		int mappings = 0;
		std::map<uint32_t, Object> objects;
		std::map<ino_t, Range> dmabufs; // all that there were
		uint32_t last_handle = 0;
		std::vector<nda_ioc_export> exports;
		long calls = 0;
		long fail_at = 0; // the call that fails, 0: none
		int event = -1;

		void reset_event()
		{
			if (event >= 0)
				close(event);
			event = -1;
		}
	};
	static State &state()
	{
		static State s;
		return s;
	}

	static void revoke(uint32_t handle, uint32_t reason)
	{
		state().objects.at(handle).state = NDA_STATE_REVOKED;
		state().objects.at(handle).reason = reason;
		const uint64_t one = 1;
		if (state().event < 0)
			return;
		EXPECT_EQ(write(state().event, &one, sizeof(one)), 8);
	}

	// The memory that a descriptor is a dma-buf of; nullptr if it is none.
	static const Range *dmabuf_of(int fd)
	{
		struct stat st = {};
		if (fstat(fd, &st) != 0)
			return nullptr;
		const auto found = state().dmabufs.find(st.st_ino);
		return found == state().dmabufs.end() ? nullptr : &found->second;
	}

	static int ioctl(int fd, unsigned long request, void *arg)
	{
		State &s = state();
		const uint32_t nr = _IOC_NR(request);
		if (fd == soft_file)
			return soft_ioctl(request, arg);
		if (fd != file || s.open_files == 0)
			return failed(EBADF);
		if (++s.calls == s.fail_at)
			return failed(ENOMEM);
		if (s.refused.count(nr))
			return failed(s.refused[nr]);
		if (_IOC_TYPE(request) != NDA_IOC_TYPE || nr > NDA_IOC_LAST)
			return failed(ENOTTY);
		const size_t size = _IOC_SIZE(request), known = sizes[nr];
		if (size < known)
			return failed(EINVAL);
		const auto *bytes = static_cast<const uint8_t *>(arg);
		if (std::any_of(bytes + known, bytes + size, [](uint8_t b) { return b; }))
			return failed(E2BIG);
		return run(nr, arg);
	}

private:
	static constexpr int file = 1000000; // no descriptor of this process
	static constexpr int soft_file = 1000001;
	static constexpr size_t sizes[] = {sizeof(nda_ioc_query), sizeof(nda_ioc_host_pin),
		sizeof(nda_ioc_export), sizeof(nda_ioc_db_map), sizeof(nda_ioc_destroy),
		sizeof(nda_ioc_status), sizeof(nda_ioc_event)};

	static int failed(int error)
	{
		errno = error;
		return -1;
	}

	static int run(uint32_t nr, void *arg)
	{
		switch (nr) {
		case _IOC_NR(NDA_IOC_QUERY):
			return query(*static_cast<nda_ioc_query *>(arg));
		case _IOC_NR(NDA_IOC_HOST_PIN):
			return pin(*static_cast<nda_ioc_host_pin *>(arg));
		case _IOC_NR(NDA_IOC_EXPORT):
			return export_memory(*static_cast<nda_ioc_export *>(arg));
		case _IOC_NR(NDA_IOC_DB_MAP):
			return map_doorbell(*static_cast<nda_ioc_db_map *>(arg));
		case _IOC_NR(NDA_IOC_DESTROY):
			return destroy(*static_cast<nda_ioc_destroy *>(arg));
		case _IOC_NR(NDA_IOC_STATUS):
			return status(*static_cast<nda_ioc_status *>(arg));
		default:
			return event(*static_cast<nda_ioc_event *>(arg));
		}
	}

	static int query(nda_ioc_query &arg)
	{
		const State &s = state();
		if (arg.dev.reserved || arg.dev.bus || arg.peer.reserved)
			return failed(EINVAL);
		arg.value2 = 0;
		switch (arg.what) {
		case NDA_QUERY_ABI:
			arg.value = s.abi;
			arg.value2 = NDA_IOC_LAST;
			return 0;
		case NDA_QUERY_FEATURES:
			arg.value = s.features;
			return 0;
		case NDA_QUERY_PART:
			if (arg.index >= NDA_PARTS)
				return failed(ERANGE);
			arg.value2 = s.why[arg.index];
			arg.value = arg.value2 == NDA_WHY_OK;
			return 0;
		default:
			return failed(EINVAL);
		}
	}

	static int make(Object object, uint32_t &handle)
	{
		State &s = state();
		if (s.objects.size() >= s.max_objects)
			return failed(EDQUOT);
		handle = ++s.last_handle;
		object.state = NDA_STATE_LIVE;
		s.objects[handle] = object;
		return 0;
	}

	static int pin(nda_ioc_host_pin &arg)
	{
		const uint32_t all = NDA_ACCESS_READ | NDA_ACCESS_WRITE;
		if (!arg.len || arg.va + arg.len < arg.va || !arg.access ||
			(arg.access & ~all) || arg.flags || arg.reserved ||
			arg.dev.reserved)
			return failed(EINVAL);
		if (!arg.dev.bus)
			return failed(ENODEV);
		return make({NDA_KIND_PIN, 0, 0, 0, arg.va, arg.len, false}, arg.handle);
	}

	static int export_memory(nda_ioc_export &arg)
	{
		State &s = state();
		const uint32_t flags = NDA_EXPORT_READONLY | NDA_EXPORT_ALLOW_PINNED;
		if (!arg.len || arg.va + arg.len < arg.va || (arg.flags & ~flags) ||
			arg.reserved)
			return failed(EINVAL);
		if (!(s.features & NDA_FEATURE_EXPORT) || !is_npu_memory(arg.va, arg.len))
			return failed(EOPNOTSUPP);
		if (s.pinned_error && (arg.flags & NDA_EXPORT_ALLOW_PINNED))
			return failed(s.pinned_error);
		const uint64_t page = host_page_bytes(), begin = arg.va & ~(page - 1);
		const uint64_t end = (arg.va + arg.len + page - 1) & ~(page - 1);
		const int fd = memfd_create("dma-buf", MFD_CLOEXEC);
		struct stat st = {};
		if (fd < 0 || fstat(fd, &st) != 0)
			return -1;
		if (make({NDA_KIND_EXPORT, 0, 0, st.st_ino, begin, end - begin, false},
			    arg.handle)) {
			close(fd);
			return failed(EDQUOT);
		}
		s.dmabufs[st.st_ino] = {begin, end - begin};
		arg.fd = fd;
		arg.page_size = 2 << 20;
		arg.offset = arg.va - begin;
		s.exports.push_back(arg);
		return 0;
	}

	static bool is_npu_memory(uint64_t va, uint64_t bytes)
	{
		for (const Range &r : state().npu_memory)
			if (va >= r.va && bytes <= r.bytes && va - r.va <= r.bytes - bytes)
				return true;
		return false;
	}

	static int map_doorbell(nda_ioc_db_map &arg)
	{
		const State &s = state();
		const uint64_t page = host_page_bytes();
		if (arg.va % page || arg.len != page || arg.flags != NDA_DB_PROXY ||
			arg.src_fd != -1 || arg.reserved || arg.npu.reserved)
			return failed(EINVAL);
		if (!arg.npu.bus)
			return failed(ENODEV);
		if (std::find(s.doorbell_pages.begin(), s.doorbell_pages.end(), arg.va) ==
			s.doorbell_pages.end())
			return failed(EOPNOTSUPP);
		if (make({NDA_KIND_DOORBELL, 0, 0, 0, arg.va, arg.len, false}, arg.handle))
			return -1;
		arg.mmap_off = uint64_t{arg.handle} * page;
		return 0;
	}

	static int destroy(const nda_ioc_destroy &arg)
	{
		State &s = state();
		if (arg.flags)
			return failed(EINVAL);
		const auto found = s.objects.find(arg.handle);
		if (found == s.objects.end())
			return failed(ENOENT);
		if (found->second.is_mapped)
			return failed(EBUSY);
		s.objects.erase(found);
		return 0;
	}

	static int status(nda_ioc_status &arg)
	{
		const auto found = state().objects.find(arg.handle);
		if (found == state().objects.end())
			return failed(ENOENT);
		arg.kind = found->second.kind;
		arg.state = found->second.state;
		arg.reason = found->second.reason;
		arg.attachments = arg.mappings = 1;
		return 0;
	}

	static int event(const nda_ioc_event &arg)
	{
		if (arg.flags || arg.eventfd < -1)
			return failed(EINVAL);
		const int fd = arg.eventfd >= 0 ? dup(arg.eventfd) : -1;
		if (arg.eventfd >= 0 && fd < 0)
			return failed(EBADF);
		state().reset_event();
		state().event = fd;
		return 0;
	}

	static int soft_ioctl(unsigned long request, void *arg)
	{
		State &s = state();
		if (request == NDA_SOFT_IOC_QUERY) {
			auto &query = *static_cast<nda_soft_ioc_query *>(arg);
			query.value =
				query.what == NDA_SOFT_QUERY_ABI ? s.soft_abi : s.kick;
			return 0;
		}
		if (request == NDA_SOFT_IOC_BIND) {
			auto &bind = *static_cast<nda_soft_ioc_bind *>(arg);
			if (s.bind_error)
				return failed(s.bind_error);
			if (bind.va % 64 || bind.flags)
				return failed(EINVAL);
			bind.handle = ++s.last_handle;
			s.bound[bind.handle] = bind;
			return 0;
		}
		EXPECT_EQ(request, NDA_SOFT_IOC_UNBIND);
		const auto &unbind = *static_cast<nda_soft_ioc_unbind *>(arg);
		return s.bound.erase(unbind.handle) ? 0 : failed(ENOENT);
	}

	static int open_file(const char *name)
	{
		if (strcmp(name, "/dev/nda_soft") == 0) {
			if (state().soft_open_error)
				return failed(state().soft_open_error);
			state().open_files++;
			return soft_file;
		}
		EXPECT_STREQ(name, "/dev/nda");
		if (state().open_error)
			return failed(state().open_error);
		state().open_files++;
		return file;
	}

	static int close_file(int fd)
	{
		EXPECT_TRUE(fd == file || fd == soft_file);
		if (--state().open_files == 0)
			state().reset_event();
		return 0;
	}

	// A page of its own: what is written there is no NIC's.
	static void *mmap_file(uint64_t bytes, int fd, uint64_t offset)
	{
		State &s = state();
		const auto found = s.objects.find(uint32_t(offset / host_page_bytes()));
		if (fd != file || found == s.objects.end() || found->second.is_mapped ||
			bytes != host_page_bytes() || ++s.calls == s.fail_at) {
			errno = EINVAL;
			return MAP_FAILED;
		}
		void *page = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (page == MAP_FAILED)
			return page;
		found->second.is_mapped = true;
		pages()[page] = found->first;
		s.mappings++;
		return page;
	}

	static int munmap_file(void *page, uint64_t bytes)
	{
		const auto found = pages().find(page);
		EXPECT_NE(found, pages().end());
		state().objects.at(found->second).is_mapped = false;
		pages().erase(found);
		state().mappings--;
		return munmap(page, bytes);
	}

	static std::map<void *, uint32_t> &pages()
	{
		static std::map<void *, uint32_t> p;
		return p;
	}

	static inline const KernelApi table = {
		open_file, close_file, ioctl, mmap_file, munmap_file};
};

} // namespace nda::test

#endif
