// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef NDA_SOFT_NPU_H
#define NDA_SOFT_NPU_H

#include "providers/soft/engine.h"
#include "providers/soft/heap.h"
#include "providers/soft/nda_soft.h"
#include "providers/soft/resource.h"

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace nda::soft {

// A software NPU: memory that other processes can map (HBM), a window through which its
// cores reach doorbells, cores, and the NIC engine of the queues in its memory.
//
//   NPU addresses   base           base + memory
//                   [HBM           ][doorbell pages]
//   host addresses  the same plus offset, which is 0 unless the NPU is strict; strict NPU
//                   addresses are reserved, so that touching them faults
//
// All functions may be called from any thread.
class Npu {
public:
	~Npu();
	static int open(const nda_soft_npu_attr &attr, Npu *&npu);
	// The NPU behind a handle, or nullptr with the detail set.
	static Npu *find(const void *handle);
	// -EBUSY while it is used.
	static int close(Npu *npu);

	// The NPU whose memory has address, counted as in use until release(); or nullptr
	// with the detail set.
	static Npu *acquire(uint64_t address);
	void release();

	int alloc(uint64_t size, uint64_t &address);
	int free(uint64_t address);
	int write(uint64_t to, const void *from, uint64_t size);
	int read(void *to, uint64_t from, uint64_t size);
	int copy(uint64_t to, uint64_t from, uint64_t size);
	int fill(uint64_t to, int value, uint64_t size);
	bool contains(uint64_t address, uint64_t size) const;
	// Keeps the allocation that holds the range from being freed.
	int pin(uint64_t address, uint64_t size);
	void unpin(uint64_t address);

	int map_doorbell(const doorbell_map_desc &desc, uint64_t &address);
	int unmap_doorbell(uint64_t address, const doorbell_map_desc &desc);

	int launch(nda_kernel_fn fn, void *arg, uint32_t cores);
	int wait(int timeout_ms);
	void fill_core(nda_core &core);

	Engine &engine() { return *engine_; }
	uint32_t segment() const { return segment_; }
	uint64_t segment_offset(uint64_t address) const { return address - base_; }
	// Where a device model finds what an NPU address names; nullptr if not this NPU's.
	uint8_t *host(uint64_t address, uint64_t size) const;
	// Of an address of this NPU: a mapped doorbell's, not memory's.
	bool in_window(uint64_t address) const { return address - base_ >= memory_; }

private:
	struct DoorbellPage {
		uint32_t nic;
		uint64_t page; // of the NIC's doorbell space
		uint32_t mapped;
	};
	struct Core {
		Npu *npu;
		nda_core core;
		pthread_t thread;
	};
	enum class Gate {
		closed,
		open,
		cancelled
	};

	Npu(uint64_t memory, bool strict, bool assist);
	int map(const nda_soft_npu_attr &attr);
	int check(uint64_t address, uint64_t size, const char *what) const;
	void run(const Core &core);
	void join(std::vector<Core> &cores);

	const uint64_t memory_; // bytes
	const bool strict_;
	const bool assist_;
	uint64_t base_ = 0;
	uint64_t offset_ = 0;
	Fd memory_fd_;
	Mapping real_;
	Mapping reserved_; // strict
	uint32_t segment_ = 0;
	std::unique_ptr<Engine> engine_;
	uint32_t users_ = 0; // under the registry's lock

	mutable std::mutex memory_mutex_;
	Heap heap_;
	std::map<uint64_t, DoorbellPage> doorbells_; // by offset in the window

	std::mutex launch_mutex_;
	std::condition_variable launch_changed_;
	bool launched_ = false;
	Gate gate_ = Gate::closed;
	uint32_t running_ = 0;
	nda_kernel_fn fn_ = nullptr;
	void *arg_ = nullptr;
	std::vector<Core> cores_;
};

} // namespace nda::soft

#endif
