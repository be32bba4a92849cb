// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/nda/kernel_doorbells.h"

#include <cerrno>
#include <utility>

#include <uapi/nda_soft.h>

#include "lib/nda/error.h"
#include "lib/nda/log.h"

namespace nda {
namespace {

unsigned long long hex(uint64_t value)
{
	return value;
}

uint64_t page_begin(uint64_t addr)
{
	return addr & ~(host_page_bytes() - 1);
}

bool in_one_page(const doorbell_map_desc &desc)
{
	return desc.type == DOORBELL_MAP_MODE_HOST_VA && desc.size &&
		desc.size <= host_page_bytes() - (desc.hva - page_begin(desc.hva));
}

} // namespace

// ---- Registers -------------------------------------------------------------------------

// What is not in one page of the host's is none of these.
WatchedRegisters::Page *WatchedRegisters::page_of(const doorbell_map_desc &desc)
{
	if (!in_one_page(desc))
		return nullptr;
	for (Page &page : pages_)
		if (page.addr == page_begin(desc.hva))
			return &page;
	return nullptr;
}

int WatchedRegisters::enter(const std::shared_ptr<Kernel> &kernel, const nda_ioc_bdf &npu,
	doorbell_map_desc &desc)
{
	if (!in_one_page(desc))
		return fail(-EOPNOTSUPP,
			"a doorbell of %llu bytes at 0x%llx is not in one page of the "
			"host's",
			hex(desc.size), hex(desc.hva));
	const std::lock_guard<std::mutex> lock(mutex_);
	int rc = 0;
	Page *page = page_of(desc);
	if (!page) {
		std::list<Page> fresh(1);
		page = &fresh.front();
		page->addr = page_begin(desc.hva);
		rc = kernel->map_doorbell(page->addr, npu, page->mapping);
		pages_.splice(pages_.end(), fresh);
	} else if (!page->mapping.addr()) {
		rc = fail(-EOPNOTSUPP, "%s: it refused doorbell page 0x%llx before",
			Kernel::path, hex(page->addr));
	}
	page->users++;
	if (!rc)
		desc.hva = page->mapping.addr() + (desc.hva - page->addr);
	return rc;
}

void WatchedRegisters::find(doorbell_map_desc &desc)
{
	const std::lock_guard<std::mutex> lock(mutex_);
	const Page *page = page_of(desc);
	if (page && page->mapping.addr())
		desc.hva = page->mapping.addr() + (desc.hva - page->addr);
}

void WatchedRegisters::leave(const doorbell_map_desc &desc)
{
	const std::lock_guard<std::mutex> lock(mutex_);
	Page *page = page_of(desc);
	if (page && --page->users == 0)
		pages_.remove_if([&](const Page &p) { return &p == page; });
}

int WatchedRegisters::check()
{
	const std::lock_guard<std::mutex> lock(mutex_);
	for (const Page &page : pages_)
		if (const int rc = page.mapping.object().check())
			return fail_in(rc, "a page of doorbells");
	return 0;
}

// ---- Words -----------------------------------------------------------------------------

WatchedWords::~WatchedWords()
{
	if (fd_ >= 0)
		kernel_api().close(fd_);
}

int WatchedWords::check_kernel(int fd, std::string &why) const
{
	nda_soft_ioc_query abi = {}, kick = {};
	abi.what = NDA_SOFT_QUERY_ABI;
	kick.what = NDA_SOFT_QUERY_KICK;
	if (kernel_api().ioctl(fd, NDA_SOFT_IOC_QUERY, &abi) < 0 ||
		kernel_api().ioctl(fd, NDA_SOFT_IOC_QUERY, &kick) < 0) {
		const int code = errno ? -errno : -EIO;
		why = std::string(path) + ": query: " + errno_text(code);
		return code;
	}
	if (abi.value >> 16 != NDA_SOFT_ABI_MAJOR) {
		why = std::string(path) + ": module nda_soft has version " +
			std::to_string(abi.value >> 16) +
			" of the interface, this library " +
			std::to_string(NDA_SOFT_ABI_MAJOR);
		return -EPROTONOSUPPORT;
	}
	if (kick.value)
		return 0;
	why = std::string(path) + ": this kernel cannot ring for Soft-RoCE";
	return -EOPNOTSUPP;
}

// A module may be loaded at any time.
int WatchedWords::open(std::string &why)
{
	if (fd_ >= 0)
		return 0;
	const int fd = kernel_api().open(path);
	if (fd < 0) {
		const int code = errno ? -errno : -EIO;
		why = std::string(path) + ": " + errno_text(code) +
			(code == -ENOENT ? " (module nda_soft is not loaded)" : "");
		return code;
	}
	const int rc = check_kernel(fd, why);
	if (rc)
		kernel_api().close(fd);
	else
		fd_ = fd;
	return rc;
}

int WatchedWords::add(
	uint64_t addr, uint64_t *word, const KickTarget &target, std::string &why)
{
	const std::lock_guard<std::mutex> lock(mutex_);
	int rc = open(why);
	if (rc)
		return rc;
	// Room first: what the kernel has bound must not be forgotten.
	const auto place = words_.emplace(addr, Word{word, 0}).first;
	nda_soft_ioc_bind arg = {};
	arg.va = reinterpret_cast<uint64_t>(word);
	arg.device = target.device;
	arg.qpn = target.qpn;
	if (kernel_api().ioctl(fd_, NDA_SOFT_IOC_BIND, &arg) == 0) {
		place->second.handle = arg.handle;
		return 0;
	}
	rc = errno ? -errno : -EIO;
	words_.erase(place);
	why = std::string(path) + ": ring for QP " + std::to_string(target.qpn) +
		" of RDMA device " + std::to_string(target.device) + ": " + errno_text(rc);
	return rc;
}

int WatchedWords::remove(uint64_t addr)
{
	const std::lock_guard<std::mutex> lock(mutex_);
	const auto found = words_.find(addr);
	if (found == words_.end())
		return fail(
			-EINVAL, "%s: 0x%llx is no word that is watched", path, hex(addr));
	nda_soft_ioc_unbind arg = {};
	arg.handle = found->second.handle;
	if (kernel_api().ioctl(fd_, NDA_SOFT_IOC_UNBIND, &arg) < 0)
		return fail_errno(-errno, "%s: watch a word no more", path);
	words_.erase(found);
	return 0;
}

uint64_t *WatchedWords::find(uint64_t addr)
{
	const std::lock_guard<std::mutex> lock(mutex_);
	const auto found = words_.find(addr);
	return found == words_.end() ? nullptr : found->second.word;
}

} // namespace nda
