// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// How a NIC of the kernel's comes to reach memory: enum nda_mr_way, in order.
#include <cerrno>
#include <cstdio>
#include <string>

#include "lib/nda/error.h"
#include "lib/nda/verbs_nic.h"

namespace nda {
namespace {

unsigned long long hex(uint64_t value)
{
	return value;
}

// What a function of libibverbs that returned NULL left.
int code_of_errno()
{
	const int error = errno;
	return error > 0 ? -error : -EIO;
}

// Kernels, drivers and libibverbs have many words for it.
bool is_unsupported(int code)
{
	return code == -EOPNOTSUPP || code == -EPROTONOSUPPORT || code == -ENOSYS ||
		code == -ENOTTY;
}

// One registration. Each way returns 0 or a negative errno and leaves its step, and words
// for the whole story if it failed.
class Order {
public:
	Order(const char *nic, ibv_pd *pd, Npu &npu, const MemoryRange &range, int access,
		Registration &out)
		: nic_(nic), pd_(pd), npu_(npu), range_(range), access_(access), out_(out)
	{}

	int run(uint32_t asked);

private:
	struct Words {
		uint32_t reason;
		int code;
		std::string text;
	};

	Words host();
	Words pages();
	Words dmabuf();
	Words peer();
	Words plain(uint64_t addr);
	Words no_kernel(const Kernel &kernel) const;
	Words import(Kernel &kernel, uint32_t flags);
	Words other_addresses() const;
	void skip(uint32_t way, uint32_t reason);
	void tell(uint32_t way, const Words &words);

	const char *const nic_;
	ibv_pd *const pd_;
	Npu &npu_;
	const MemoryRange range_;
	const int access_;
	Registration &out_;
	int code_ = 0;
	std::string story_; // of what failed
};

void Order::skip(uint32_t way, uint32_t reason)
{
	out_.info.steps[way - 1] = {reason, 0};
}

int Order::run(uint32_t asked)
{
	using Try = Words (Order::*)();
	constexpr Try tries[] = {&Order::pages, &Order::dmabuf, &Order::peer, &Order::host};
	// Which memory it is says whether this way is one.
	const bool host_memory = range_.host != 0;
	out_.info = {};
	for (uint32_t way = NDA_MR_PAGES; way <= NDA_MR_STEPS; way++) {
		if (out_.mr) {
			skip(way, NDA_MR_NOT_NEEDED);
		} else if (host_memory && way != NDA_MR_HOST) {
			skip(way, NDA_MR_EXCLUDED);
			if (range_.tried)
				out_.info.steps[way - 1] = range_.tried->steps[way - 1];
		} else if (!host_memory && asked != NDA_MR_ANY && asked != way &&
			asked != NDA_MR_HOST) {
			skip(way, NDA_MR_EXCLUDED);
		} else {
			const Try attempt = tries[way - 1];
			const Words words = (this->*attempt)();
			out_.info.steps[way - 1] = {words.reason, words.code};
			if (out_.mr)
				out_.info.way = way;
			else
				tell(way, words);
		}
	}
	if (out_.mr)
		return 0;
	return fail(code_ ? code_ : -EOPNOTSUPP, "nic %s: register 0x%llx, %llu bytes: %s",
		nic_, hex(range_.addr), hex(range_.size), story_.c_str());
}

// The errno of the whole is that of the first way that was there to be tried.
void Order::tell(uint32_t way, const Words &words)
{
	const bool absent = words.reason == NDA_MR_NO_DEVICE ||
		words.reason == NDA_MR_DEVICE_DENIED ||
		words.reason == NDA_MR_DEVICE_FAILED;
	if (!code_ && !absent)
		code_ = words.code;
	if (!words.text.empty())
		story_ += (story_.empty() ? "" : "; ") + std::string(mr_way_text(way)) +
			": " + words.text;
}

Order::Words Order::other_addresses() const
{
	return {NDA_MR_OTHER_ADDRESSES, 0,
		std::string("the host does not know the addresses of ") + npu_.name() +
			(npu_.software() ? " (strict mode)" : "")};
}

// ---- By ibv_reg_mr ---------------------------------------------------------------------

Order::Words Order::plain(uint64_t addr)
{
	errno = 0;
	out_.mr = verbs_api().reg_mr(
		pd_, reinterpret_cast<void *>(addr), range_.size, range_.addr, access_);
	if (out_.mr)
		return {NDA_MR_TAKEN, 0, {}};
	const int code = code_of_errno();
	if (code == -ENOMEM)
		return {NDA_MR_LOCKED_LIMIT, code,
			std::string(errno_text(code)) +
				" (too much for RLIMIT_MEMLOCK, ulimit -l?)"};
	return {NDA_MR_NIC_REFUSED, code, errno_text(code)};
}

Order::Words Order::pages()
{
	if (npu_.has_host_pages())
		return plain(range_.addr);
	return {NDA_MR_NOT_PAGES, 0, std::string("not those of ") + npu_.name()};
}

Order::Words Order::host()
{
	if (range_.host)
		return plain(range_.host);
	return {NDA_MR_HEAPS_ONLY, 0, {}};
}

// Which clients there are nobody can tell: beside ours there may be that of the NPU's
// vendor. So what decides is the call.
Order::Words Order::peer()
{
	if (npu_.has_host_pages())
		return {NDA_MR_IS_PAGES, 0, {}};
	if (!npu_.unified_addresses())
		return other_addresses();
	const Kernel::Part ours = npu_.kernel()->part(NDA_PART_PEERMEM);
	if (ours.reason == NDA_WHY_NO_PEER_API)
		return {NDA_MR_NO_PEER_API, 0, ours.why};
	Words words = plain(range_.addr);
	if (words.code == -EFAULT && !ours.usable)
		return {NDA_MR_NO_PEERMEM, words.code,
			words.text + " (" +
				(ours.known ? ours.why : "no module nda_peermem?") + ")"};
	return words;
}

// ---- By dma-buf ------------------------------------------------------------------------

Order::Words Order::no_kernel(const Kernel &kernel) const
{
	const int code = kernel.code();
	switch (code) {
	case -ENOENT:
	case -ENXIO:
	case -ENODEV:
		return {NDA_MR_NO_DEVICE, code, kernel.why()};
	case -EACCES:
	case -EPERM:
		return {NDA_MR_DEVICE_DENIED, code, kernel.why()};
	default:
		return {NDA_MR_DEVICE_FAILED, code, kernel.why()};
	}
}

// Importers that may keep the memory are refused, unless the export allows them.
Order::Words Order::dmabuf()
{
	if (!npu_.unified_addresses())
		return other_addresses();
	const std::shared_ptr<Kernel> kernel = npu_.kernel();
	if (!kernel->usable())
		return no_kernel(*kernel);
	if (!kernel->has(NDA_FEATURE_EXPORT))
		return {NDA_MR_NO_EXPORT, 0, "/dev/nda makes none on this kernel"};
	Words words = import(*kernel, 0);
	if (words.reason == NDA_MR_NO_DMABUF) {
		Words again = import(*kernel, NDA_EXPORT_ALLOW_PINNED);
		if (out_.mr)
			return again;
		if (again.text != words.text)
			words.text += "; one that it may keep: " + again.text;
	}
	return words;
}

// The NIC holds the dma-buf itself: its descriptor is of no more use.
Order::Words Order::import(Kernel &kernel, uint32_t flags)
{
	KernelExport memory;
	const int rc = kernel.export_memory(range_.addr, range_.size, flags, memory);
	if (rc)
		return {rc == -EOPNOTSUPP          ? NDA_MR_UNKNOWN_MEMORY
				: rc == -ECANCELED ? NDA_MR_FREED
						   : NDA_MR_EXPORT_FAILED,
			rc, error_detail()};
	errno = 0;
	out_.mr = verbs_api().reg_dmabuf_mr(
		pd_, memory.offset, range_.size, range_.addr, memory.fd.get(), access_);
	if (out_.mr) {
		out_.memory = std::move(memory.object);
		return {NDA_MR_TAKEN, 0, {}};
	}
	const int code = code_of_errno();
	if (!is_unsupported(code))
		return {NDA_MR_NIC_REFUSED, code, errno_text(code)};
	return {NDA_MR_NO_DMABUF, code,
		std::string(errno_text(code)) +
			" (libibverbs, the NIC's driver or the kernel takes no dma-bufs, "
			"or "
			"none that may be taken away)"};
}

} // namespace

int VerbsNic::register_memory(
	Npu &npu, const MemoryRange &range, int access, uint32_t way, Registration &out)
{
	return Order(name_.c_str(), pd_, npu, range, access, out).run(way);
}

} // namespace nda
