// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef NDA_SOFT_NIC_H
#define NDA_SOFT_NIC_H

#include "providers/soft/event_log.h"
#include "providers/soft/inject.h"
#include "providers/soft/nda_soft.h"
#include "providers/soft/queue_format.h"
#include "providers/soft/resource.h"

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

namespace nda::soft {

class Npu;

// A port's GIDs: the two halves of each as 64-bit words in memory order.
struct Gid {
	uint64_t half[2];
};
constexpr int gid_count = 2; // 0 link-local, 1 RoCEv2: what upper layers prefer
// The process that a GID of a software NIC belongs to.
uint64_t gid_process(const Gid &gid);

struct Pd : ibv_pd {
	std::atomic<uint32_t> users{0};
	uint32_t id = 0;
};

struct Mr : ibv_mr {
	Npu *npu = nullptr;
};

// A software NIC: what libibverbs would see as an opened device. Its ibv_device and
// ibv_context exist for the extension driver to be found by and for the inline functions of
// verbs.h; every call into libibverbs itself ends in a message and abort().
class Nic {
public:
	static int open(const nda_soft_nic_attr &attr, Nic *&nic);
	// The NIC of a context, or nullptr with the detail set.
	static Nic *find(const ibv_context *context);
	// -EBUSY while it has objects; another code where it is closed all the same.
	static int close(const ibv_context *context);
	// Which NIC, and where in its doorbell space.
	static int find_doorbell(
		const doorbell_map_desc &desc, uint32_t &nic, uint64_t &offset);

	ibv_context *context() { return &verbs_.context; }
	void query_device(ibv_device_attr &attr) const;
	int query_port(uint8_t port, ibv_port_attr &attr);
	int query_gid(uint8_t port, int index, Gid &gid) const;
	uint32_t mtu_bytes() const { return mtu_bytes_; }

	int alloc_pd(ibv_pd *&pd);
	static int dealloc_pd(ibv_pd *pd);
	static int reg_mr(
		ibv_pd *pd, uint64_t address, uint64_t size, int access, ibv_mr *&mr);
	static int dereg_mr(ibv_mr *mr);

	// A doorbell register; also described in the form that type asks for.
	int take_doorbell(uint32_t type, doorbell_map_desc &desc, uint32_t &slot);
	void give_doorbell(uint32_t slot);
	// Tells a CQ's driver from another's; of 16 bits, as the narrowest field has them.
	// One comes again after 65535 others: nothing is found by it.
	uint32_t next_cqn() { return 1 + cqns_.fetch_add(1) % UINT16_MAX; }

	const QueueFormat &format() const { return *format_; }
	const Faults &faults() const { return faults_; }
	Link *link() { return faults_.link_goes_down() ? &link_ : nullptr; }
	EventLog *log() const { return log_.get(); } // or nullptr
	// Objects of any kind that keep the NIC open.
	void hold() { objects_.fetch_add(1); }
	void drop() { objects_.fetch_sub(1); }

	// Any thread may report, an engine included.
	void report(const ibv_async_event &event);
	// Those of a QP, CQ or SRQ.
	void forget_events(const void *object);
	int next_event(ibv_async_event &event);

private:
	// The start of a private structure of libibverbs, of which drivers are told by
	// name.
	struct DriverOps {
		const char *name;
		void *rest[63];
	};
	struct Device {
		ibv_device device;
		const DriverOps *ops;
		uint8_t rest[1024 - sizeof(ibv_device) - sizeof(void *)];
	};

	static const DriverOps driver_ops_;

	Nic(const Faults &faults, const QueueFormat &format, uint32_t mtu_bytes);
	void make_verbs();

	void look_at_link();

	const Faults faults_;
	Link link_;
	const QueueFormat *const format_;
	const uint32_t mtu_bytes_;
	std::unique_ptr<EventLog> log_;
	uint32_t number_ = 0; // not reused in this process
	// Registers. Where an NPU's window maps a page of them, the window's memory is used
	// instead, one mapping being all that thread sanitizer can follow.
	Mapping doorbells_;
	Device device_ = {};
	verbs_context verbs_ = {};
	std::atomic<uint32_t> objects_{0};
	std::atomic<uint32_t> cqns_{0};

	std::mutex mutex_;
	std::vector<bool> doorbell_used_;
	std::deque<ibv_async_event> events_;
};

} // namespace nda::soft

#endif
