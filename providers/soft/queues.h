// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// QPs, CQs and SRQs as the extension driver makes them: queues in NPU memory, reached only
// through the caller's callbacks, and the device's side of them, registered with the engine
// of the NPU whose memory it is.
#ifndef NDA_SOFT_QUEUES_H
#define NDA_SOFT_QUEUES_H

#include "providers/soft/engine.h"
#include "providers/soft/extended.h"
#include "providers/soft/nic.h"

#include <atomic>
#include <mutex>

namespace nda::soft {

// Memory that the callbacks gave.
struct QueueMemory {
	const ibv_extend_ops *ops = nullptr;
	void *address = nullptr;
	uint64_t size = 0;

	QueueMemory() = default;
	QueueMemory(const QueueMemory &) = delete;
	QueueMemory &operator=(const QueueMemory &) = delete;
	~QueueMemory();
	// Filled with the byte. -ENOMEM, or the errno the callback left.
	int alloc(const ibv_extend_ops *ops, uint64_t size, int byte, const char *what);
	void fill(int byte) const
	{
		if (address)
			ops->memset_s(address, byte, size);
	}
	uint64_t value() const { return reinterpret_cast<uint64_t>(address); }
};

// Keeps an NPU open; outlives the memory that came from it.
struct NpuUse {
	Npu *npu = nullptr;

	NpuUse() = default;
	NpuUse(const NpuUse &) = delete;
	NpuUse &operator=(const NpuUse &) = delete;
	~NpuUse();
	Npu *operator->() const { return npu; }
};

// Keeps a NIC open, as long as anything that came from it.
struct NicUse {
	Nic *nic = nullptr;

	NicUse() = default;
	NicUse(const NicUse &) = delete;
	NicUse &operator=(const NicUse &) = delete;
	~NicUse()
	{
		if (nic)
			nic->drop();
	}
	void take(Nic &other)
	{
		nic = &other;
		nic->hold();
	}
	Nic *operator->() const { return nic; }
	Nic &operator*() const { return *nic; }
};

// A doorbell register of the NIC's, mapped for cores.
class Register {
public:
	Register() = default;
	Register(const Register &) = delete;
	Register &operator=(const Register &) = delete;
	~Register();
	// mode: enum queue_buf_dma_mode. npu: whose cores ring.
	int map(Nic &nic, const ibv_extend_ops *ops, int mode, Npu &npu, const char *what);
	// Where the device model reads it.
	uint8_t *host() const { return host_; }
	iov_addr_desc range() const
	{
		return {reinterpret_cast<uint64_t>(address_), desc_.size};
	}

private:
	Nic *nic_ = nullptr;
	const ibv_extend_ops *ops_ = nullptr;
	uint32_t slot_ = 0;
	doorbell_map_desc desc_ = {};
	void *address_ = nullptr;
	uint8_t *host_ = nullptr;
};

// The ring and records of an RQ or SRQ.
class ReceiveMemory {
public:
	int init(const ibv_extend_ops *ops, uint32_t entries, const char *what);
	int resolve(const Npu &npu, ReceiveQueue &queue, const char *what) const;
	void describe(queue_info &info) const;
	void reset() const;
	uint64_t address() const { return ring_.value(); }
	uint32_t depth() const { return depth_; }

private:
	uint32_t depth_ = 0;
	QueueMemory ring_;
	QueueMemory records_;
};

// What a C object of the verbs API belongs to.
template <class Verbs, class Owner>
struct Owned : Verbs {
	Owner *owner = nullptr;

	static Owner &of(Verbs *object) { return *static_cast<Owned *>(object)->owner; }
};

class Cq {
public:
	static int create(
		ibv_context *context, ibv_cq_init_attr_extend &attr, ibv_cq_extend *&cq);
	static int destroy(ibv_cq_extend *cq);

private:
	friend class Qp;
	int init(Nic &nic, ibv_cq_init_attr_extend &attr);
	int reset(); // -EBUSY unless one QP alone uses it

	Owned<ibv_cq_extend, Cq> extend_ = {};
	Owned<ibv_cq, Cq> verbs_ = {};
	CompletionQueue queue_;
	NicUse nic_;
	NpuUse npu_;
	QueueMemory ring_;
	QueueMemory record_; // where the format has one, else the register
	Register doorbell_;
	std::atomic<uint32_t> users_{0}; // QPs
};

class Srq {
public:
	static int create(
		ibv_context *context, ibv_srq_init_attr_extend &attr, ibv_srq_extend *&srq);
	static int destroy(ibv_srq_extend *srq);
	~Srq();

private:
	friend class Qp;
	int init(Nic &nic, ibv_srq_init_attr_extend &attr);

	Owned<ibv_srq_extend, Srq> extend_ = {};
	Owned<ibv_srq, Srq> verbs_ = {};
	ReceiveQueue queue_;
	NicUse nic_;
	NpuUse npu_;
	ReceiveMemory memory_;
	Pd *pd_ = nullptr;
	std::atomic<uint32_t> users_{0}; // QPs
};

class Qp {
public:
	static int create(
		ibv_context *context, ibv_qp_init_attr_extend &attr, ibv_qp_extend *&qp);
	static int destroy(ibv_qp_extend *qp);
	static Qp &of(ibv_qp *qp) { return Owned<ibv_qp, Qp>::of(qp); }
	~Qp();

	int modify(const ibv_qp_attr &attr, int mask);
	int query(ibv_qp_attr &attr, int mask, ibv_qp_init_attr &init);
	int seek(uint32_t sq_index, uint32_t cq_index);
	int modify_extended(const ibv_qp_attr_extend &attr, int mask);
	int query_extended(ibv_qp_attr_extend &attr, int mask);
	int offer_feature(uint32_t sl, uint32_t tc, ibv_hyroce_feature &feature);
	int negotiate_feature(const ibv_hyroce_feature &peers, ibv_hyroce_feature &chosen,
		uint32_t &more);
	const ibv_context *context() const { return verbs_.context; }

private:
	int init(ibv_context *context, ibv_qp_init_attr_extend &attr);
	int init_queue(ibv_qp_init_attr_extend &attr);
	int init_receive(ibv_qp_init_attr_extend &attr);
	bool before_rtr();
	void apply_window();
	int check_attributes(const ibv_qp_attr &attr, int mask, ibv_qp_state to);
	ibv_qp_state state();
	int to_reset();
	int to_error();
	int to_rtr(const ibv_qp_attr &attr);
	int close_to_peers(QpLife life);
	void open_to_peer();
	void tell_peer_of_changes(int mask);

	Owned<ibv_qp_extend, Qp> extend_ = {};
	Owned<ibv_qp, Qp> verbs_ = {};
	SendQueue queue_;
	NicUse nic_;
	NpuUse npu_;
	QueueMemory ring_;
	QueueMemory record_; // where the format has one
	Register doorbell_;
	ReceiveMemory receive_memory_; // of a queue of its own
	ReceiveQueue receive_;
	bool attached_ = false;
	Pd *pd_ = nullptr;
	Cq *send_cq_ = nullptr;
	Cq *recv_cq_ = nullptr;
	Srq *srq_ = nullptr;

	std::mutex mutex_; // one modify at a time
	ibv_qp_attr attr_ = {};
	ibv_qp_init_attr init_ = {};
	ExtendedAttributes extended_;
};

} // namespace nda::soft

#endif
