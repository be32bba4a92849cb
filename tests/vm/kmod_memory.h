/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* NPU memory of the test driver, its exports, and importers of them. */
#pragma once

#include <sys/syscall.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include <tests/vm/kmod_rig.h>
#include <tests/vm/modules/nda_test_hal.h>
#include <tests/vm/modules/nda_test_importer.h>

namespace nda::test {

constexpr size_t page = 4096;
constexpr size_t huge = 2 << 20;

inline std::string device_path(const char *variable)
{
	return std::string("/sys/bus/pci/devices/") + getenv(variable);
}

/* Writes a word to a file of sysfs: 0, or what errno says. */
inline int put(const std::string &path, const std::string &text)
{
	Fd fd(open(path.c_str(), O_WRONLY | O_CLOEXEC));

	if (fd < 0)
		return errno;
	return write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size())
		? 0
		: errno;
}

inline int remove_module(const char *name)
{
	return syscall(SYS_delete_module, name, O_NONBLOCK) == 0 ? 0 : errno;
}

/* Work of the kernel's may hold it for a moment after its last user is gone. */
inline int remove_idle_module(const char *name)
{
	int error = remove_module(name);

	for (int i = 0; i < 1000 && error == EWOULDBLOCK; i++) {
		usleep(10000);
		error = remove_module(name);
	}
	return error;
}

/* Loads it if it is not there. */
inline int load_module(const std::string &name, const char *options = "")
{
	Fd fd(open(("/build/vm/kmod/" + name + ".ko").c_str(), O_RDONLY | O_CLOEXEC));

	if (fd < 0)
		return errno;
	return syscall(SYS_finit_module, static_cast<int>(fd), options, 0) == 0 ? 0 : errno;
}

/* The NPU's driver, as this process has it. */
class Hal {
public:
	explicit Hal(uint64_t page_size = page, uint32_t flags = 0)
		: fd_(open("/dev/nda_test_hal", O_RDWR | O_CLOEXEC))
	{
		EXPECT_GE(fd_, 0) << strerror(errno);
		set(page_size, flags);
	}
	void set(uint64_t page_size, uint32_t flags, uint32_t get_ms = 0,
		uint32_t free_us = 0)
	{
		nda_test_hal_set arg = {page_size, flags, get_ms, free_us, 0};

		EXPECT_EQ(call(fd_, NDA_TEST_HAL_SET, &arg), 0);
		page_size_ = page_size;
	}
	nda_test_hal_counts counts() const
	{
		nda_test_hal_counts arg = {};

		EXPECT_EQ(call(fd_, NDA_TEST_HAL_COUNTS, &arg), 0);
		return arg;
	}
	int fd() const { return fd_; }
	uint64_t page_size() const { return page_size_; }

private:
	Fd fd_;
	uint64_t page_size_ = page;
};

/* Some of the NPU's memory, which this process sees too. */
class Memory {
public:
	Memory(const Hal &hal, size_t size) : hal_(hal.fd()), size_(size)
	{
		size_t step = hal.page_size();
		void *place = mmap(nullptr, size + step, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		uintptr_t begin =
			(reinterpret_cast<uintptr_t>(place) + step - 1) & ~(step - 1);

		munmap(place, size + step);
		at_ = mmap(reinterpret_cast<void *>(begin), size, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_FIXED, hal_, 0);
		EXPECT_NE(at_, MAP_FAILED) << strerror(errno);
	}
	Memory(const Memory &) = delete;
	Memory &operator=(const Memory &) = delete;
	~Memory() { unmap(); }
	int free(uint64_t at = 0, uint64_t len = 0) const
	{
		nda_test_hal_range arg = {va() + at, len ? len : size_, 0};

		return call(hal_, NDA_TEST_HAL_FREE, &arg);
	}
	void unmap()
	{
		if (at_ != MAP_FAILED)
			munmap(at_, size_);
		at_ = MAP_FAILED;
	}
	uint8_t *data() const { return static_cast<uint8_t *>(at_); }
	uint64_t va() const { return reinterpret_cast<uintptr_t>(at_); }
	size_t size() const { return size_; }
	void fill(uint8_t byte) const { memset(at_, byte, size_); }
	std::vector<uint8_t> bytes() const { return {data(), data() + size_}; }

private:
	int hal_;
	size_t size_;
	void *at_;
};

struct Export {
	int error = 0;
	uint32_t handle = 0;
	Fd fd;
	uint64_t page_size = 0;
	uint64_t offset = 0;
};

inline Export make_export(int nda, uint64_t va, uint64_t len, uint32_t flags = 0)
{
	nda_ioc_export arg = {};
	Export made;

	arg.va = va;
	arg.len = len;
	arg.flags = flags;
	made.error = call(nda, NDA_IOC_EXPORT, &arg);
	if (made.error)
		return made;
	made.handle = arg.handle;
	made.fd = Fd(arg.fd);
	made.page_size = arg.page_size;
	made.offset = arg.offset;
	return made;
}

inline nda_ioc_status status_of(int nda, uint32_t handle)
{
	nda_ioc_status arg = {};

	arg.handle = handle;
	EXPECT_EQ(call(nda, NDA_IOC_STATUS, &arg), 0);
	return arg;
}

inline int destroy(int nda, uint32_t handle)
{
	nda_ioc_destroy arg = {handle, 0};

	return call(nda, NDA_IOC_DESTROY, &arg);
}

class Importer {
public:
	explicit Importer(const char *variable = "vm_edu0")
		: fd_(open((std::string("/dev/nda_test_importer-") + getenv(variable))
				   .c_str(),
			  O_RDWR | O_CLOEXEC))
	{
		EXPECT_GE(fd_, 0) << strerror(errno);
	}
	int attach(int dmabuf, uint32_t flags = 0) const
	{
		nda_test_attach arg = {dmabuf, flags};

		return call(fd_, NDA_TEST_ATTACH, &arg);
	}
	int detach() const { return call(fd_, NDA_TEST_DETACH, unused); }
	int map() const { return call(fd_, NDA_TEST_MAP, unused); }
	int unmap() const { return call(fd_, NDA_TEST_UNMAP, unused); }
	int begin() const { return call(fd_, NDA_TEST_BEGIN, unused); }
	int end() const { return call(fd_, NDA_TEST_END, unused); }
	int write(uint64_t offset, std::vector<uint8_t> bytes, uint32_t flags = 0) const
	{
		return dma(offset, &bytes, NDA_TEST_WRITE | flags);
	}
	int read(uint64_t offset, std::vector<uint8_t> *bytes, uint32_t flags = 0) const
	{
		return dma(offset, bytes, flags);
	}
	nda_test_state state() const
	{
		nda_test_state arg = {};

		EXPECT_EQ(call(fd_, NDA_TEST_STATE, &arg), 0);
		return arg;
	}
	void close() { fd_.reset(); }

private:
	int dma(uint64_t offset, std::vector<uint8_t> *bytes, uint32_t flags) const
	{
		nda_test_dma arg = {};

		arg.offset = offset;
		arg.data = reinterpret_cast<uintptr_t>(bytes->data());
		arg.len = static_cast<uint32_t>(bytes->size());
		arg.flags = flags;
		return call(fd_, NDA_TEST_DMA, &arg);
	}
	static constexpr char *unused = nullptr;
	Fd fd_;
};

inline std::vector<uint8_t> pattern(size_t size, uint8_t seed = 1)
{
	std::vector<uint8_t> bytes(size);

	for (size_t i = 0; i < size; i++)
		bytes[i] = static_cast<uint8_t>(i * 7 + i / 251 + seed);
	return bytes;
}

/* The NPU's whole memory, however it is allocated. */
class Bar {
public:
	Bar()
	{
		Fd fd(open((device_path("vm_hbm") + "/resource2").c_str(),
			O_RDWR | O_CLOEXEC));

		at_ = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		EXPECT_NE(at_, MAP_FAILED) << strerror(errno);
	}
	Bar(const Bar &) = delete;
	Bar &operator=(const Bar &) = delete;
	~Bar() { munmap(at_, size); }
	uint8_t *data() const { return static_cast<uint8_t *>(at_); }

private:
	static constexpr size_t size = 64 << 20;
	void *at_;
};

inline uint64_t where(const Hal &hal, uint64_t va)
{
	nda_test_hal_range arg = {va, 0, 0};

	EXPECT_EQ(call(hal.fd(), NDA_TEST_HAL_WHERE, &arg), 0);
	return arg.offset;
}

} // namespace nda::test
