// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The client of /dev/nda (uapi/nda.h). A kernel without it, or one that lacks a part, is
// never an error by itself: who asks for what is not there is told why, and does without.
#ifndef NDA_LIB_KERNEL_H
#define NDA_LIB_KERNEL_H

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <sys/types.h>
#include <utility>

#include <uapi/nda.h>

#include "lib/common/fd.h"

namespace nda {

class Kernel;

// An object of an open /dev/nda, destroyed with its owner.
class KernelObject {
public:
	KernelObject() = default;
	KernelObject(std::shared_ptr<const Kernel> kernel, uint32_t handle)
		: kernel_(std::move(kernel)), handle_(handle)
	{}
	KernelObject(KernelObject &&other) noexcept;
	KernelObject &operator=(KernelObject &&other) noexcept;
	~KernelObject() { reset(); }

	explicit operator bool() const { return kernel_ != nullptr; }
	uint32_t handle() const { return handle_; }
	const Kernel *kernel() const { return kernel_.get(); }
	void reset();

	// 0 while it is live. What took it away else: -ESTALE, with the detail set. What
	// has no object is live.
	int check() const;
	// importers, DMA mappings and state of it now.
	int status(nda_ioc_status &out) const;

private:
	std::shared_ptr<const Kernel> kernel_;
	uint32_t handle_ = 0;
};

// NPU memory as dma-buf.
struct KernelExport {
	KernelObject object;
	Fd fd;
	uint64_t page_size = 0; // of the NPU, bytes
	uint64_t offset = 0;    // of the memory's first byte in the dma-buf
};

// A page of a NIC's doorbells, mapped once more by the kernel, which holds the NIC's page
// as long as there is this.
class KernelDoorbell {
public:
	KernelDoorbell() = default;
	KernelDoorbell(KernelDoorbell &&other) noexcept { *this = std::move(other); }
	KernelDoorbell &operator=(KernelDoorbell &&other) noexcept;
	~KernelDoorbell() { reset(); }

	uint64_t addr() const { return addr_; }
	const KernelObject &object() const { return object_; }
	void reset();

private:
	friend class Kernel;
	KernelObject object_;
	uint64_t addr_ = 0; // of the mapping
};

// Any thread may use it, of the process that opened it: a child that forks opens its own.
// Functions return 0 or a negative errno, with the detail set.
class Kernel : public std::enable_shared_from_this<Kernel> {
public:
	static constexpr const char *path = "/dev/nda";

	// Never fails; what cannot be used says so.
	static std::shared_ptr<Kernel> open();
	Kernel(const Kernel &) = delete;
	Kernel &operator=(const Kernel &) = delete;
	~Kernel();

	bool usable() const { return fd_ >= 0; }
	// Why it is not: -ENOENT (the module is not loaded), -EACCES, -EPROTONOSUPPORT, ...
	// and in words that name the module.
	int code() const { return code_; }
	const std::string &why() const { return why_; }

	// NDA_FEATURE_* bits; none of one that cannot be used.
	bool has(uint64_t features) const { return (features_ & features) == features; }
	// Of NDA_PART_*, as it is now.
	struct Part {
		bool known;
		bool usable;
		uint64_t reason; // NDA_WHY_*
		std::string why; // if not usable, in words that name the module
	};
	Part part(uint32_t part) const;

	// flags: NDA_EXPORT_*.
	int export_memory(uint64_t va, uint64_t size, uint32_t flags, KernelExport &out);
	// access: NDA_ACCESS_* of uapi/nda.h.
	int pin_host(uint64_t va, uint64_t size, const nda_ioc_bdf &device, uint32_t access,
		KernelObject &out);
	// va: of a page of this process's; npu: a PCI function that is there.
	int map_doorbell(uint64_t va, const nda_ioc_bdf &npu, KernelDoorbell &out);

	// How often objects of this file were revoked since it was opened, at the price of
	// reading a descriptor; false: that cannot be told, as in a child that forked.
	bool revocations(uint64_t &n) const;

	int status(uint32_t handle, nda_ioc_status &out) const;
	int destroy(uint32_t handle) const;

private:
	friend class KernelDoorbell;

	Kernel() = default;
	void connect();
	int call(unsigned long request, void *arg) const;
	int query(uint32_t what, uint32_t index, uint64_t &value, uint64_t &value2) const;
	void listen();
	void refuse(int code, const char *format, ...)
		__attribute__((format(printf, 3, 4)));
	int check_usable(const char *what) const;
	std::string backends() const;

	int fd_ = -1;
	int code_ = 0;
	std::string why_;
	uint64_t features_ = 0;
	Fd event_;
	pid_t listener_ = 0;       // whose event_ is
	mutable std::mutex mutex_; // of what follows
	mutable uint64_t revocations_ = 0;
};

// "0000:3b:00.0"; false if it is none.
bool parse_bdf(const std::string &text, nda_ioc_bdf &out);

// The page that the processor maps.
uint64_t host_page_bytes();

// The system calls that reach the kernel's module; tests play it. As the system's, -1 or
// MAP_FAILED with errno.
struct KernelApi {
	int (*open)(const char *path);
	int (*close)(int fd);
	int (*ioctl)(int fd, unsigned long request, void *arg);
	void *(*mmap)(uint64_t bytes, int fd, uint64_t offset);
	int (*munmap)(void *addr, uint64_t bytes);
};
const KernelApi &kernel_api();
// nullptr restores the real ones.
void set_kernel_for_test(const KernelApi *api);

} // namespace nda

#endif
