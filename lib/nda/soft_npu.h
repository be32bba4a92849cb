// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef NDA_LIB_SOFT_NPU_H
#define NDA_LIB_SOFT_NPU_H

#include <mutex>

#include "lib/nda/npu.h"
#include "lib/nda/soft.h"

namespace nda {

// The NPU of libnda_soft.so: shared memory, threads as cores.
class SoftNpu final : public Npu {
public:
	// a: checked, but for what concerns the software alone. of_kernel: its memory is
	// that of /dev/nda_soft.
	static int open(const nda_npu_attr &a, bool of_kernel, std::shared_ptr<Npu> &out);
	~SoftNpu() override;

	int alloc(uint64_t size, uint64_t &addr) override;
	int free(uint64_t addr) override;
	int write(uint64_t dst, const void *src, uint64_t size) override;
	int read(void *dst, uint64_t src, uint64_t size) override;
	int copy(uint64_t dst, uint64_t src, uint64_t size) override;
	int memset(uint64_t dst, int value, uint64_t size) override;
	int launch(nda_kernel_fn fn, void *arg, uint32_t n_cores) override;
	int launch_function(void *, const void *, uint64_t, uint32_t) override;
	int wait(int timeout_ms) override;
	bool busy() override;
	bool contains(uint64_t addr, uint64_t size) const override;
	bool shares_host_addresses() const override { return !strict_; }
	bool software() const override { return true; }
	int alloc_host(uint64_t size, uint64_t &addr, uint64_t &host) override;
	int alloc_doorbell_slot(uint64_t size, uint64_t &addr, uint64_t *&host) override;
	int free_doorbell_slot(uint64_t addr) override { return free(addr); }

private:
	// A kernel whose doorbells reach the proxy, too.
	struct Launch {
		nda_kernel_fn fn;
		void *arg;
		Proxy *proxy;

		static void run(const nda_core *core, void *launch);
	};

	SoftNpu(const SoftApi &api, nda_soft_npu *npu, bool strict, Doorbells doorbells)
		: Npu("npu soft", doorbells), api_(api), npu_(npu), strict_(strict)
	{}
	int init();
	int map_register(const doorbell_map_desc &desc, uint64_t &addr) override;
	int unmap_register(uint64_t addr, const doorbell_map_desc &desc) override;

	const SoftApi &api_;
	nda_soft_npu *const npu_;
	const bool strict_;
	uint64_t address_offset_ = 0;    // to NPU addresses, for the host
	std::mutex launches_;            // of what follows
	std::unique_ptr<Launch> launch_; // the last
	uint64_t launched_ = 0;          // how often
	bool end_seen_ = false;          // by busy(), of the last
};

} // namespace nda

#endif
