// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef NDA_LIB_ASCEND_NPU_H
#define NDA_LIB_ASCEND_NPU_H

#include <map>
#include <memory>
#include <mutex>

#include "lib/nda/ascend_api.h"
#include "lib/nda/ascend_doorbells.h"
#include "lib/nda/npu.h"

namespace nda {

// An Ascend NPU. Works in the current context of the thread that calls, which must be one
// of this device; makes, sets and resets neither devices nor contexts.
class AscendNpu final : public Npu {
public:
	// id: "0" of "ascend:0".
	static int open(const char *id, const nda_npu_attr &a, std::shared_ptr<Npu> &out);
	~AscendNpu() override;

	int check_caller(const char *what) const override;
	int alloc(uint64_t size, uint64_t &addr) override;
	int alloc_independent(uint64_t size, uint64_t &addr) override;
	int alloc_host(uint64_t size, uint64_t &addr, uint64_t &host) override;
	int free(uint64_t addr) override;
	int write(uint64_t dst, const void *src, uint64_t size) override;
	int read(void *dst, uint64_t src, uint64_t size) override;
	int copy(uint64_t dst, uint64_t src, uint64_t size) override;
	int memset(uint64_t dst, int value, uint64_t size) override;
	int launch(nda_kernel_fn fn, void *arg, uint32_t n_cores) override;
	int launch_function(void *function, const void *args, uint64_t args_bytes,
		uint32_t n_cores) override;
	int wait(int timeout_ms) override;
	bool busy() override;
	bool contains(uint64_t addr, uint64_t size) const override;
	bool may_contain(uint64_t addr, uint64_t size) const override;
	// Addresses of all devices are apart from each other.
	uint64_t memory_space() const override { return 0; }
	bool shares_host_addresses() const override { return false; }
	// The driver reserves them in the host's address space.
	bool unified_addresses() const override { return true; }
	int alloc_doorbell_slot(uint64_t size, uint64_t &addr, uint64_t *&host) override;
	int free_doorbell_slot(uint64_t addr) override;

	// The allocation that holds addr, whoever made it. -EFAULT: there is none on this
	// device; -EOPNOTSUPP: not one of ours, and the runtime cannot tell.
	int address_range(uint64_t addr, uint64_t &base, uint64_t &size) const;

private:
	struct Allocation {
		uint64_t base; // as the runtime gave it
		uint64_t size; // usable, from the address that was given out
		bool segment;  // registered with the UB controller
		uint8_t *host; // of host memory, else nullptr
	};
	using Allocations = std::map<uint64_t, Allocation>;

	AscendNpu(const AscendApi &api, int32_t id, uint32_t logic_id, Doorbells doorbells);
	static int logic_id_of(const AscendApi &api, int32_t id, uint32_t &logic_id);
	int check_range(const char *what, uint64_t addr, uint64_t size) const;
	int check_attributes(uint64_t addr) const;
	uint8_t *host_of(uint64_t addr) const;
	int malloc(uint64_t size, Allocation &out, uint64_t &addr);
	int keep(uint64_t addr, Allocation &allocation);
	int release(uint64_t addr, Allocation &allocation);
	int register_segment(uint64_t addr, Allocation &allocation);
	bool ask_stream(int timeout_ms, int &rc);
	int map_register(const doorbell_map_desc &desc, uint64_t &addr) override;
	int unmap_register(uint64_t addr, const doorbell_map_desc &desc) override;

	const AscendApi api_;
	const int32_t id_;        // as aclrtSetDevice takes it
	const uint32_t logic_id_; // as the driver takes it
	AscendDoorbells doorbells_;
	mutable std::mutex mutex_; // of the allocations
	Allocations allocations_;
	std::mutex launches_; // of what follows
	void *stream_ = nullptr;
	uint64_t launch_ = 0;   // number of the last one, which was
	bool launched_ = false; // and not waited for
	bool ended_ = false;    // as was seen, with
	int end_rc_ = 0;
};

} // namespace nda

#endif
