// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef NDA_LIB_NPU_H
#define NDA_LIB_NPU_H

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include <ibv_extend.h>
#include <nda/channel.h>
#include <nda/driver.h>
#include <nda/npu.h>

#include "lib/nda/kernel.h"
#include "lib/nda/kernel_doorbells.h"
#include "lib/nda/proxy.h"

namespace nda {

// The callbacks of ibv_extend have no cookie, so each NPU has functions of its own.
constexpr uint32_t npus_max = 16;
constexpr uint32_t npu_cores_max = 48;
constexpr uint32_t npu_doorbell_flags =
	NDA_NPU_DOORBELL_MAP | NDA_NPU_DOORBELL_PROXY | NDA_NPU_DOORBELL_KERNEL;

// What all kinds of NPU are. Any thread may use it. Functions return 0 or a negative errno,
// with the detail set.
class Npu {
public:
	static constexpr uint64_t magic = 0x31757061646e; // "ndapu1" in memory

	enum class Doorbells {
		any,
		map,
		proxy,
		kernel
	};

	static int open(const char *name, const nda_npu_attr *attr, size_t attr_size,
		std::shared_ptr<Npu> &out);
	virtual ~Npu() = default;
	Npu(const Npu &) = delete;
	Npu &operator=(const Npu &) = delete;

	// "npu soft", "npu ascend:0": what goes before an error's text.
	const char *name() const { return name_.c_str(); }

	// Whether this thread may use it at all; what: for the text.
	virtual int check_caller(const char *) const { return 0; }
	virtual int alloc(uint64_t size, uint64_t &addr) = 0;
	// For queues that a NIC reaches as queue_buf_dma_mode INDEP_UB has it.
	virtual int alloc_independent(uint64_t size, uint64_t &addr)
	{
		return alloc(size, addr);
	}
	virtual int free(uint64_t addr) = 0;
	virtual int write(uint64_t dst, const void *src, uint64_t size) = 0;
	virtual int read(void *dst, uint64_t src, uint64_t size) = 0;
	virtual int copy(uint64_t dst, uint64_t src, uint64_t size) = 0;
	virtual int memset(uint64_t dst, int value, uint64_t size) = 0;
	virtual int launch(nda_kernel_fn fn, void *arg, uint32_t n_cores) = 0;
	virtual int launch_function(void *function, const void *args, uint64_t args_bytes,
		uint32_t n_cores) = 0;
	virtual int wait(int timeout_ms) = 0;
	// A kernel runs. Does not take its end away from a later wait().
	virtual bool busy() = 0;
	virtual bool contains(uint64_t addr, uint64_t size) const = 0;
	// As far as it can tell.
	virtual bool may_contain(uint64_t addr, uint64_t size) const
	{
		return contains(addr, size);
	}
	// Equal for NPUs of one memory: several may be open for one device.
	virtual uint64_t memory_space() const { return reinterpret_cast<uint64_t>(this); }
	// Cores and host use the same addresses for all memory that either has.
	virtual bool shares_host_addresses() const = 0;
	// No address of its memory is that of anything else in the host's address space.
	virtual bool unified_addresses() const { return shares_host_addresses(); }
	// Its memory is ordinary pages of the host.
	virtual bool has_host_pages() const { return shares_host_addresses(); }
	// Host memory that cores reach at addr, and the host at host; freed as any other.
	// -EOPNOTSUPP: it cannot be given any.
	virtual int alloc_host(uint64_t size, uint64_t &addr, uint64_t &host);
	// The kernel's part in it; opened anew, when asked for, until it is there.
	std::shared_ptr<Kernel> kernel();
	// Software NICs can reach its memory.
	virtual bool software() const { return false; }

	ibv_extend_ops *ops(queue_buf_dma_mode mode = QUEUE_BUF_DMA_MODE_DEFAULT) const
	{
		return mode == QUEUE_BUF_DMA_MODE_INDEP_UB ? ops_independent_ : ops_;
	}
	// The memset among the ops returns nothing: whoever has this thread call a driver
	// that uses it asks here whether one failed since forget_driver_failure().
	static void forget_driver_failure();
	static int driver_failure();

	// A line of memory where cores ring, zeroed, and where the host sees it.
	virtual int alloc_doorbell_slot(uint64_t size, uint64_t &addr, uint64_t *&host) = 0;
	virtual int free_doorbell_slot(uint64_t addr) = 0;
	// Every doorbell is proxied, whether it could be mapped or not.
	bool proxies_all() const { return doorbells_ == Doorbells::proxy; }
	// The address where cores ring for a queue that has no register; name goes before
	// what fails. -EOPNOTSUPP where doorbells must be mapped.
	// target: the queue, if the kernel may ring for it.
	int add_doorbell(const nda_software_doorbell &doorbell, const std::string &name,
		uint64_t &addr, const KickTarget *target = nullptr);
	void remove_doorbell(uint64_t addr);
	// Whether it is proxied; error is then the first that ringing it gave, or 0.
	bool doorbell_proxied(uint64_t addr, int &error);
	// How cores ring there, and what came of it so far, 0 or a negative errno.
	nda_doorbell doorbell_way(uint64_t addr, int &error);
	// -ESTALE: the kernel took a page of registers away.
	int check_doorbells() { return watched_registers_.check(); }
	// The PCI function that it is, for the kernel; false: none, or not known, as of
	// every NPU there is today. Of an Ascend NPU it is not asked for: the page that the
	// kernel maps appears with the first touch of the CPU, and the vendor's driver, to
	// which the page would be given, walks page tables and would find none.
	virtual bool pci_function(nda_ioc_bdf &) const { return false; }
	// If it is proxied, what a core wrote there and nobody has rung yet is forgotten,
	// as is the error.
	void clear_doorbell(uint64_t addr);
	// If it is proxied, what is rung there is a count of 32 bits that begins at 0: 0 is
	// a doorbell, too.
	void count_doorbells(uint64_t addr);

protected:
	Npu(std::string name, Doorbells doorbells)
		: name_(std::move(name)), doorbells_(doorbells)
	{}
	static Doorbells doorbells_of(uint32_t flags);
	// nic, kicks: see Proxy.
	using Kicks = Proxy::Kicks;
	void create_proxy(const nda_core &nic, Kicks kicks);
	int take_slot();
	// What derived classes do first when they go: nobody calls them any more.
	void retire();
	Proxy &proxy() { return *proxy_; }

	// Of a register. -EOPNOTSUPP, of mapping, is what the proxy is for.
	virtual int map_register(const doorbell_map_desc &desc, uint64_t &addr) = 0;
	virtual int unmap_register(uint64_t addr, const doorbell_map_desc &desc) = 0;

private:
	template <size_t slot>
	friend struct Trampolines;

	int map_doorbell(const doorbell_map_desc &desc, uint64_t &addr);
	int map_watched(const doorbell_map_desc &desc, uint64_t &addr);
	int watch_doorbell(const KickTarget *target, uint64_t &addr, std::string &why);
	int unmap_doorbell(uint64_t addr, const doorbell_map_desc &desc);

	void *ops_alloc(size_t size, queue_buf_dma_mode mode);
	void ops_free(void *ptr);
	void ops_memset(void *dst, int value, size_t count);
	int ops_memcpy(void *dst, size_t dst_max, const void *src, size_t size,
		uint32_t direction);
	void *ops_db_mmap(const doorbell_map_desc *desc);
	int ops_db_unmap(void *ptr, const doorbell_map_desc *desc);

	const std::string name_;
	const Doorbells doorbells_;
	std::mutex kernel_mutex_;
	std::shared_ptr<Kernel> kernel_;
	std::atomic<uint32_t> mapped_{0}; // doorbells, but for those that are proxied
	WatchedRegisters watched_registers_;
	WatchedWords watched_words_;
	std::unique_ptr<Proxy> proxy_;
	uint32_t slot_ = npus_max;
	ibv_extend_ops *ops_ = nullptr;
	ibv_extend_ops *ops_independent_ = nullptr;
};

// NPU memory that goes with its owner.
class NpuBuffer {
public:
	NpuBuffer() = default;
	NpuBuffer(NpuBuffer &&other) noexcept;
	NpuBuffer &operator=(NpuBuffer &&other) noexcept;
	~NpuBuffer() { reset(); }

	int alloc(const std::shared_ptr<Npu> &npu, uint64_t size);
	int alloc_host(const std::shared_ptr<Npu> &npu, uint64_t size);
	void reset();
	uint64_t addr() const { return addr_; }
	// Of what alloc_host() gave, for the host; 0 of NPU memory.
	uint64_t host() const { return host_; }
	explicit operator bool() const { return npu_ != nullptr; }

private:
	std::shared_ptr<Npu> npu_;
	uint64_t addr_ = 0;
	uint64_t host_ = 0;
};

} // namespace nda

#endif
