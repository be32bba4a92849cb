// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef NDA_LIB_NPU_H
#define NDA_LIB_NPU_H

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include <ibv_extend.h>
#include <nda/driver.h>
#include <nda/npu.h>

#include "lib/nda/proxy.h"
#include "lib/nda/soft.h"

namespace nda {

// The callbacks of ibv_extend have no cookie, so each NPU has functions of its own.
constexpr uint32_t npus_max = 16;
constexpr uint32_t npu_cores_max = 48;

// A software NPU, the only kind so far. Any thread may use it.
class Npu {
public:
	static constexpr uint64_t magic = 0x31757061646e; // "ndapu1" in memory

	static int open(const char *name, const nda_npu_attr *attr, size_t attr_size,
		std::shared_ptr<Npu> &out);
	~Npu();
	Npu(const Npu &) = delete;
	Npu &operator=(const Npu &) = delete;

	int alloc(uint64_t size, uint64_t &addr);
	int free(uint64_t addr);
	int write(uint64_t dst, const void *src, uint64_t size);
	int read(void *dst, uint64_t src, uint64_t size);
	int memset(uint64_t dst, int value, uint64_t size);
	int launch(nda_kernel_fn fn, void *arg, uint32_t n_cores);
	int wait(int timeout_ms);
	// A kernel runs. Does not take its end away from a later wait().
	bool busy();
	bool contains(uint64_t addr, uint64_t size) const;
	ibv_extend_ops *ops() const { return ops_; }
	// The memset among the ops returns nothing: whoever has this thread call a driver
	// that uses it asks here whether one failed since forget_driver_failure().
	static void forget_driver_failure();
	static int driver_failure();
	// An NPU address is that of the host for the same memory.
	bool shares_host_addresses() const { return !strict_; }

	// Every doorbell is proxied, whether it could be mapped or not.
	bool proxies_all() const { return doorbells_ == Doorbells::proxy; }
	// The address where cores ring for a queue that has no register; name goes before
	// what fails. -EOPNOTSUPP where doorbells must be mapped.
	int add_doorbell(const nda_software_doorbell &doorbell, const std::string &name,
		uint64_t &addr);
	void remove_doorbell(uint64_t addr);
	// Whether it is proxied; error is then the first that ringing it gave, or 0.
	bool doorbell_proxied(uint64_t addr, int &error);
	// If it is proxied, what a core wrote there and nobody has rung yet is forgotten,
	// as is the error.
	void clear_doorbell(uint64_t addr);
	// If it is proxied, what is rung there is a count of 32 bits that begins at 0: 0 is
	// a doorbell, too.
	void count_doorbells(uint64_t addr);

private:
	template <size_t slot>
	friend struct Trampolines;
	// A kernel whose doorbells reach the proxy, too.
	struct Launch {
		nda_kernel_fn fn;
		void *arg;
		Proxy *proxy;

		static void run(const nda_core *core, void *launch);
	};

	enum class Doorbells {
		any,
		map,
		proxy
	};

	Npu(const SoftApi &api, nda_soft_npu *npu, bool strict, Doorbells doorbells)
		: api_(api), npu_(npu), strict_(strict), doorbells_(doorbells)
	{}
	int create_proxy();
	int take_slot();
	int map_doorbell(const doorbell_map_desc &desc, uint64_t &addr);
	int unmap_doorbell(uint64_t addr, const doorbell_map_desc &desc);

	void *ops_alloc(size_t size);
	void ops_free(void *ptr);
	void ops_memset(void *dst, int value, size_t count);
	int ops_memcpy(void *dst, size_t dst_max, const void *src, size_t size,
		uint32_t direction);
	void *ops_db_mmap(const doorbell_map_desc *desc);
	int ops_db_unmap(void *ptr, const doorbell_map_desc *desc);

	const SoftApi &api_;
	nda_soft_npu *const npu_;
	const bool strict_;
	const Doorbells doorbells_;
	std::atomic<uint32_t> mapped_{0}; // doorbells, but for those that are proxied
	std::unique_ptr<Proxy> proxy_;
	std::mutex launches_;
	std::unique_ptr<Launch> launch_; // the last
	uint32_t slot_ = npus_max;
	ibv_extend_ops *ops_ = nullptr;
	std::atomic<bool> end_seen_{false}; // by busy()
};

// NPU memory that goes with its owner.
class NpuBuffer {
public:
	NpuBuffer() = default;
	NpuBuffer(NpuBuffer &&other) noexcept;
	NpuBuffer &operator=(NpuBuffer &&other) noexcept;
	~NpuBuffer() { reset(); }

	int alloc(const std::shared_ptr<Npu> &npu, uint64_t size);
	void reset();
	uint64_t addr() const { return addr_; }
	explicit operator bool() const { return npu_ != nullptr; }

private:
	std::shared_ptr<Npu> npu_;
	uint64_t addr_ = 0;
};

} // namespace nda

#endif
