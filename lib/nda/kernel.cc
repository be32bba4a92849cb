// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/nda/kernel.h"

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

#include "lib/nda/error.h"
#include "lib/nda/log.h"

namespace nda {
namespace {

int call_open(const char *path)
{
	return open(path, O_RDWR | O_CLOEXEC);
}

int call_ioctl(int fd, unsigned long request, void *arg)
{
	return ioctl(fd, request, arg);
}

void *call_mmap(uint64_t bytes, int fd, uint64_t offset)
{
	return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		static_cast<off_t>(offset));
}

int call_munmap(void *addr, uint64_t bytes)
{
	return munmap(addr, bytes);
}

constexpr KernelApi real_api = {call_open, close, call_ioctl, call_mmap, call_munmap};
std::atomic<const KernelApi *> current_api{&real_api};

const KernelApi &api()
{
	return *current_api.load(std::memory_order_acquire);
}

unsigned long long hex(uint64_t value)
{
	return value;
}

const char *part_module(uint32_t part)
{
	switch (part) {
	case NDA_PART_ASCEND:
		return "nda_ascend";
	case NDA_PART_SOFT:
		return "nda_soft";
	default:
		return "nda_peermem";
	}
}

std::string why_text(uint32_t part, uint64_t why)
{
	const std::string module = part_module(part);
	switch (why) {
	case NDA_WHY_NOT_LOADED:
		return "module " + module + " is not loaded";
	case NDA_WHY_NO_DRIVER:
		return module +
			": the NPU's driver is not loaded, or lacks functions that it "
			"needs";
	case NDA_WHY_NO_PEER_API:
		return module + ": the kernel's RDMA core has no interface for peer memory";
	case NDA_WHY_NO_PINNING:
		return module + ": the NPU's driver cannot keep memory from being freed";
	case NDA_WHY_MISMATCH:
		return module + ": the NPU's driver has another version of its interface";
	default:
		return module + ": cannot be used, for reason " + std::to_string(why);
	}
}

const char *reason_text(uint32_t reason)
{
	switch (reason) {
	case NDA_REASON_FREED:
		return "its owner freed the memory";
	case NDA_REASON_UNPLUG:
		return "the device that it belongs to, or its driver, is gone";
	case NDA_REASON_MM_EXIT:
		return "the process that owned it ended";
	case NDA_REASON_UNMAPPED:
		return "the NIC's doorbells were unmapped";
	default:
		return "the kernel took it away";
	}
}

} // namespace

// ---- Opening ---------------------------------------------------------------------------

std::shared_ptr<Kernel> Kernel::open()
{
	std::shared_ptr<Kernel> kernel(new Kernel);
	kernel->connect();
	if (!kernel->usable())
		NDA_LOG(LogLevel::info, "%s; what it is for is done without",
			kernel->why_.c_str());
	return kernel;
}

// A probe that fails is no failure of the call in which it is made.
void Kernel::refuse(int code, const char *format, ...)
{
	char text[256];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (fd_ >= 0)
		api().close(fd_);
	fd_ = -1;
	features_ = 0;
	code_ = code;
	why_ = text;
}

void Kernel::connect()
{
	fd_ = api().open(path);
	if (fd_ < 0) {
		const int code = errno ? -errno : -EIO;
		const bool absent = code == -ENOENT || code == -ENXIO || code == -ENODEV;
		return refuse(code, "%s: %s%s", path, errno_text(code),
			absent ? " (module nda is not loaded)" : "");
	}
	nda_ioc_query query = {};
	query.what = NDA_QUERY_ABI;
	int rc = call(NDA_IOC_QUERY, &query);
	if (rc)
		return refuse(rc, "%s: query its version: %s", path, errno_text(rc));
	const auto version = static_cast<uint32_t>(query.value);
	if (version >> 16 != NDA_ABI_MAJOR)
		return refuse(-EPROTONOSUPPORT,
			"%s: module nda has version %u.%u of the interface, this library "
			"%u.%u",
			path, version >> 16, version & 0xffff, NDA_ABI_MAJOR,
			NDA_ABI_MINOR);
	query = {};
	query.what = NDA_QUERY_FEATURES;
	rc = call(NDA_IOC_QUERY, &query);
	if (rc)
		return refuse(rc, "%s: query its features: %s", path, errno_text(rc));
	features_ = query.value;
	listen();
}

// Without it nobody hears of what is revoked until it asks.
void Kernel::listen()
{
	Fd event(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	nda_ioc_event arg = {event.get(), 0};
	const int rc = event ? call(NDA_IOC_EVENT, &arg) : -errno;
	if (rc)
		NDA_LOG(LogLevel::warn, "%s: ask for events: %s", path, errno_text(rc));
	else
		event_ = std::move(event);
	listener_ = getpid();
}

Kernel::~Kernel()
{
	if (fd_ >= 0)
		api().close(fd_);
}

// ---- Questions -------------------------------------------------------------------------

int Kernel::call(unsigned long request, void *arg) const
{
	int rc = 0;
	do
		rc = api().ioctl(fd_, request, arg);
	while (rc < 0 && errno == EINTR);
	if (rc >= 0)
		return 0;
	return errno > 0 ? -errno : -EIO;
}

int Kernel::check_usable(const char *what) const
{
	return usable() ? 0 : fail(code_, "%s: %s", what, why_.c_str());
}

int Kernel::query(uint32_t what, uint32_t index, uint64_t &value, uint64_t &value2) const
{
	int rc = check_usable("query");
	if (rc)
		return rc;
	nda_ioc_query query = {};
	query.what = what;
	query.index = index;
	rc = call(NDA_IOC_QUERY, &query);
	if (rc)
		return fail_errno(rc, "%s: query %u, %u", path, what, index);
	value = query.value;
	value2 = query.value2;
	return 0;
}

Kernel::Part Kernel::part(uint32_t part) const
{
	if (!usable())
		return {false, false, NDA_WHY_OK, why_};
	nda_ioc_query query = {};
	query.what = NDA_QUERY_PART;
	query.index = part;
	const int rc = call(NDA_IOC_QUERY, &query);
	if (rc)
		return {false, false, NDA_WHY_OK,
			std::string(path) + ": query part " + std::to_string(part) + ": " +
				errno_text(rc)};
	if (query.value)
		return {true, true, NDA_WHY_OK, {}};
	return {true, false, query.value2, why_text(part, query.value2)};
}

// Of the backends, those that are not there.
std::string Kernel::backends() const
{
	std::string text;
	for (const uint32_t one : {NDA_PART_ASCEND, NDA_PART_SOFT}) {
		const Part p = part(one);
		if (!p.usable)
			text += (text.empty() ? "" : "; ") + p.why;
	}
	return text;
}

// ---- Objects ---------------------------------------------------------------------------

int Kernel::export_memory(uint64_t va, uint64_t size, uint32_t flags, KernelExport &out)
{
	int rc = check_usable("export as dma-buf");
	if (rc)
		return rc;
	nda_ioc_export arg = {};
	arg.va = va;
	arg.len = size;
	arg.flags = flags;
	arg.fd = -1;
	rc = call(NDA_IOC_EXPORT, &arg);
	if (!rc) {
		out.object = KernelObject(shared_from_this(), arg.handle);
		out.fd = Fd(arg.fd);
		out.page_size = arg.page_size;
		out.offset = arg.offset;
		return 0;
	}
	std::string why = errno_text(rc);
	if (rc == -EOPNOTSUPP) {
		const std::string missing = backends();
		why = "it is no memory of an NPU that the kernel knows, or of a kind that "
		      "cannot be exported";
		if (!missing.empty())
			why += " (" + missing + ")";
	} else if (rc == -ECANCELED) {
		why = "it was freed meanwhile";
	} else if (rc == -EDQUOT) {
		why = "too many objects of this process";
	} else if (rc == -EPERM) {
		why = flags & NDA_EXPORT_ALLOW_PINNED
			? "importers that cannot let go are not allowed here; module nda "
			  "takes them with sink_remap=1, or unsafe_pinned=1 and "
			  "CAP_SYS_ADMIN"
			: "/dev/nda was opened by another process (before a fork?)";
	}
	return fail(rc, "%s: export 0x%llx, %llu bytes, as dma-buf: %s", path, hex(va),
		hex(size), why.c_str());
}

int Kernel::pin_host(uint64_t va, uint64_t size, const nda_ioc_bdf &device, uint32_t access,
	KernelObject &out)
{
	int rc = check_usable("pin host memory");
	if (rc)
		return rc;
	nda_ioc_host_pin arg = {};
	arg.va = va;
	arg.len = size;
	arg.dev = device;
	arg.access = access;
	rc = call(NDA_IOC_HOST_PIN, &arg);
	if (!rc) {
		out = KernelObject(shared_from_this(), arg.handle);
		return 0;
	}
	const char *why = errno_text(rc);
	switch (rc) {
	case -ENOMEM:
		why = "no memory, or too much for RLIMIT_MEMLOCK (ulimit -l)";
		break;
	case -EOPNOTSUPP:
		why = "it is a driver's mapping, as host memory of the Ascend runtime is; "
		      "take "
		      "memory of mmap() or malloc()";
		break;
	case -ENODEV:
		why = "there is no such device, or no driver has it";
		break;
	case -EDQUOT:
		why = "too many objects of this process";
		break;
	}
	return fail(rc, "%s: pin 0x%llx, %llu bytes, for PCI device %04x:%02x:%02x.%x: %s",
		path, hex(va), hex(size), device.domain, device.bus, device.devfn >> 3,
		device.devfn & 7, why);
}

int Kernel::map_doorbell(uint64_t va, const nda_ioc_bdf &npu, KernelDoorbell &out)
{
	int rc = check_usable("map a doorbell");
	if (rc)
		return rc;
	nda_ioc_db_map arg = {};
	arg.va = va;
	arg.len = host_page_bytes();
	arg.npu = npu;
	arg.src_fd = -1;
	arg.flags = NDA_DB_PROXY;
	rc = call(NDA_IOC_DB_MAP, &arg);
	if (rc)
		return fail_errno(rc, "%s: doorbell page 0x%llx%s", path, hex(va),
			rc == -EOPNOTSUPP
				? " (no page of an RDMA device's BAR, or doorbell=off)"
				: rc == -EPERM
				? " (no mapping of ib_uverbs, or of another process)"
				: "");
	KernelObject object(shared_from_this(), arg.handle);
	void *mapped = api().mmap(arg.len, fd_, arg.mmap_off);
	if (mapped == MAP_FAILED)
		return fail_errno(errno > 0 ? -errno : -EIO,
			"%s: map the doorbell page 0x%llx again", path, hex(va));
	out.reset();
	out.object_ = std::move(object);
	out.addr_ = reinterpret_cast<uint64_t>(mapped);
	return 0;
}

int Kernel::status(uint32_t handle, nda_ioc_status &out) const
{
	int rc = check_usable("status");
	if (rc)
		return rc;
	nda_ioc_status arg = {};
	arg.handle = handle;
	rc = call(NDA_IOC_STATUS, &arg);
	if (rc)
		return fail_errno(rc, "%s: status of object %u", path, handle);
	out = arg;
	return 0;
}

int Kernel::destroy(uint32_t handle) const
{
	nda_ioc_destroy arg = {handle, 0};
	const int rc = call(NDA_IOC_DESTROY, &arg);
	return rc ? fail_errno(rc, "%s: destroy object %u", path, handle) : 0;
}

bool Kernel::revocations(uint64_t &n) const
{
	uint64_t more = 0;
	// What a child reads its parent would miss.
	if (!event_ || getpid() != listener_)
		return false;
	const std::lock_guard<std::mutex> lock(mutex_);
	if (read(event_.get(), &more, sizeof(more)) == sizeof(more))
		revocations_ += more;
	n = revocations_;
	return true;
}

// ---- Owners ----------------------------------------------------------------------------

KernelObject::KernelObject(KernelObject &&other) noexcept
	: kernel_(std::move(other.kernel_)), handle_(std::exchange(other.handle_, 0))
{}

KernelObject &KernelObject::operator=(KernelObject &&other) noexcept
{
	if (this != &other) {
		reset();
		kernel_ = std::move(other.kernel_);
		handle_ = std::exchange(other.handle_, 0);
	}
	return *this;
}

void KernelObject::reset()
{
	if (kernel_ && kernel_->destroy(handle_))
		NDA_LOG(LogLevel::err, "%s", error_detail());
	kernel_.reset();
	handle_ = 0;
}

int KernelObject::status(nda_ioc_status &out) const
{
	return kernel_ ? kernel_->status(handle_, out)
		       : fail(-ENOENT, "the kernel has no object for it");
}

int KernelObject::check() const
{
	nda_ioc_status status = {};
	uint64_t revoked = 0;
	if (!kernel_ || (kernel_->revocations(revoked) && revoked == 0))
		return 0;
	const int rc = kernel_->status(handle_, status);
	if (rc)
		return rc;
	if (status.state == NDA_STATE_LIVE)
		return 0;
	return fail(-ESTALE, "revoked: %s", reason_text(status.reason));
}

KernelDoorbell &KernelDoorbell::operator=(KernelDoorbell &&other) noexcept
{
	if (this != &other) {
		reset();
		object_ = std::move(other.object_);
		addr_ = std::exchange(other.addr_, 0);
	}
	return *this;
}

// The kernel keeps the object as long as it is mapped.
void KernelDoorbell::reset()
{
	if (addr_ && api().munmap(reinterpret_cast<void *>(addr_), host_page_bytes()))
		NDA_LOG(LogLevel::err, "unmap a doorbell page: %s", errno_text(errno));
	addr_ = 0;
	object_.reset();
}

// ---- Others ----------------------------------------------------------------------------

bool parse_bdf(const std::string &text, nda_ioc_bdf &out)
{
	unsigned domain = 0, bus = 0, device = 0, function = 0;
	int end = 0;
	if (sscanf(text.c_str(), "%8x:%2x:%2x.%1x%n", &domain, &bus, &device, &function,
		    &end) != 4 ||
		static_cast<size_t>(end) != text.size() || device > 31 || function > 7)
		return false;
	out = {};
	out.domain = domain;
	out.bus = static_cast<uint8_t>(bus);
	out.devfn = static_cast<uint8_t>(device << 3 | function);
	return true;
}

uint64_t host_page_bytes()
{
	return static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

const KernelApi &kernel_api()
{
	return api();
}

void set_kernel_for_test(const KernelApi *replacement)
{
	current_api.store(replacement ? replacement : &real_api, std::memory_order_release);
}

} // namespace nda
