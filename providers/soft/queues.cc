// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "providers/soft/queues.h"

#include "providers/soft/error.h"
#include "providers/soft/npu.h"
#include "providers/soft/words.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>
#include <memory>

namespace nda::soft {
namespace {

constexpr uint32_t record_bytes = 64;
constexpr int connect_timeout_ms = 5000;
constexpr uint32_t verbs_max_inline = 64; // what HCOMM asks for, whatever the NIC
constexpr int access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
	IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

uint32_t round_up_to_power(uint32_t value, uint32_t least)
{
	uint32_t power = least;
	while (power < value)
		power *= 2;
	return power;
}

// A C enum as it came from outside, which may be a value that the type does not have.
template <class Enum>
int raw(const Enum &value)
{
	int number;
	static_assert(sizeof(number) == sizeof(value));
	memcpy(&number, &value, sizeof(number));
	return number;
}

int check_ops(const ibv_extend_ops *ops, int type, const char *object)
{
	if (!ops || !ops->alloc || !ops->free || !ops->memset_s || !ops->db_mmap ||
		!ops->db_unmap)
		return fail(-EINVAL, "%s: a callback of ops is missing", object);
	if (type != QUEUE_BUF_DMA_MODE_DEFAULT && type != QUEUE_BUF_DMA_MODE_INDEP_UB)
		return fail(-EINVAL, "%s: unknown DMA mode %d", object, type);
	return 0;
}

const char *state_name(ibv_qp_state state)
{
	static const char *const names[] = {
		"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
	return state <= IBV_QPS_ERR ? names[state] : "?";
}

} // namespace

// ---- Memory ----------------------------------------------------------------------------

QueueMemory::~QueueMemory()
{
	if (address)
		ops->free(address);
}

int QueueMemory::alloc(
	const ibv_extend_ops *from, uint64_t bytes, int byte, const char *what)
{
	errno = 0;
	address = from->alloc(bytes);
	if (!address)
		return fail(errno ? -errno : -ENOMEM,
			"%s: the alloc callback gave no memory for %" PRIu64 " bytes", what,
			bytes);
	ops = from;
	size = bytes;
	fill(byte);
	return 0;
}

NpuUse::~NpuUse()
{
	if (npu)
		npu->release();
}

int Register::map(Nic &nic, const ibv_extend_ops *ops, int mode, Npu &npu, const char *what)
{
	uint32_t type = mode == QUEUE_BUF_DMA_MODE_INDEP_UB ? DOORBELL_MAP_MODE_UB_RES
							    : DOORBELL_MAP_MODE_HOST_VA;
	int rc = nic.take_doorbell(type, desc_, slot_);
	if (rc)
		return rc;
	nic_ = &nic;
	ops_ = ops;
	errno = 0;
	address_ = ops->db_mmap(&desc_);
	if (!address_)
		return fail(errno ? -errno : -EIO, "%s: the db_mmap callback failed", what);
	const auto address = reinterpret_cast<uint64_t>(address_);
	host_ = npu.host(address, desc_.size);
	if (!host_)
		return fail(-EINVAL,
			"%s: the db_mmap callback gave an address of another NPU", what);
	if (npu.in_window(address))
		return 0;
	// Cores write elsewhere, and the host passes it on to the register.
	if (type != DOORBELL_MAP_MODE_HOST_VA)
		return fail(-EINVAL,
			"%s: the db_mmap callback gave an address in NPU memory for a "
			"doorbell that the host cannot ring",
			what);
	host_ = reinterpret_cast<uint8_t *>(desc_.hva);
	return 0;
}

Register::~Register()
{
	if (address_)
		ops_->db_unmap(address_, &desc_);
	if (nic_)
		nic_->give_doorbell(slot_);
}

constexpr uint32_t max_receives = 32768; // of a ring: its index is told by 16 bits

int ReceiveMemory::init(const ibv_extend_ops *ops, uint32_t entries, const char *what)
{
	depth_ = round_up_to_power(entries, 1);
	int rc = ring_.alloc(ops, uint64_t{depth_} * receive_stride, 0, what);
	return rc ? rc : records_.alloc(ops, 2 * record_bytes, 0, what);
}

int ReceiveMemory::resolve(const Npu &npu, ReceiveQueue &queue, const char *what) const
{
	uint8_t *records = npu.host(records_.value(), records_.size);
	if (!npu.contains(ring_.value(), ring_.size) ||
		!npu.contains(records_.value(), records_.size) || !records)
		return fail(-EINVAL, "%s: the callbacks gave memory of more than one NPU",
			what);
	queue.depth = depth_;
	queue.producer = records;
	queue.consumer = records + record_bytes;
	return 0;
}

void ReceiveMemory::describe(queue_info &info) const
{
	info.qbuf.base = ring_.value();
	info.qbuf.entry_cnt = depth_;
	info.qbuf.entry_size = receive_stride;
	info.dbr_pi_va = {records_.value(), record_bytes};
	info.dbr_ci_va = {records_.value() + record_bytes, record_bytes};
}

void ReceiveMemory::reset() const
{
	ring_.fill(0);
	records_.fill(0);
}

// ---- CQ --------------------------------------------------------------------------------

int Cq::create(ibv_context *context, ibv_cq_init_attr_extend &attr, ibv_cq_extend *&cq)
{
	Nic *nic = Nic::find(context);
	if (!nic)
		return -EINVAL;
	int rc = check_ops(attr.ops, raw(attr.type), "CQ");
	if (rc)
		return rc;
	if (attr.cq_cap_flag || attr.attr.comp_mask || attr.attr.wc_flags)
		return fail(-EOPNOTSUPP,
			"CQ: flags 0x%x, comp_mask 0x%x, wc_flags 0x%" PRIx64
			" are not supported",
			attr.cq_cap_flag, attr.attr.comp_mask,
			static_cast<uint64_t>(attr.attr.wc_flags));
	if (attr.attr.channel)
		return fail(-EOPNOTSUPP, "CQ: a completion channel is not supported");
	if (attr.attr.comp_vector)
		return fail(-EINVAL, "CQ: completion vector %u, the only one is 0",
			attr.attr.comp_vector);
	uint32_t max_depth = nic->format().layout().max_depth;
	if (attr.attr.cqe == 0 || attr.attr.cqe > max_depth)
		return fail(
			-EINVAL, "CQ: %u entries, not 1 to %u", attr.attr.cqe, max_depth);
	auto fresh = std::make_unique<Cq>();
	rc = fresh->init(*nic, attr);
	if (rc)
		return rc;
	cq = &fresh.release()->extend_;
	return 0;
}

int Cq::init(Nic &nic, ibv_cq_init_attr_extend &attr)
{
	nic_.take(nic);
	const QueueFormat &format = nic.format();
	const QueueLayout &layout = format.layout();
	// The depth that is published must mean the ring to every reader, see cq_ring().
	uint32_t asked = std::max(attr.attr.cqe, layout.min_depth);
	uint32_t published =
		format.cq_ring(asked) ? asked : round_up_to_power(asked, layout.min_depth);
	uint32_t depth = format.cq_ring(published);
	queue_.depth = depth;
	queue_.stride = layout.cqe_stride;
	queue_.cqn = nic.next_cqn();
	int rc = ring_.alloc(
		attr.ops, uint64_t{depth} * queue_.stride, layout.cqe_fill, "CQ");
	if (rc == 0 && layout.consumer_record)
		rc = record_.alloc(attr.ops, record_bytes, 0, "CQ record");
	if (rc)
		return rc;
	npu_.npu = Npu::acquire(ring_.value());
	if (!npu_.npu)
		return -EINVAL;
	queue_.ring = npu_->host(ring_.value(), ring_.size);
	if (!queue_.ring)
		return fail(-EINVAL, "CQ: the callbacks gave memory of more than one NPU");
	if (layout.consumer_record) {
		queue_.record = npu_->host(record_.value(), record_.size);
		if (!queue_.record)
			return fail(-EINVAL,
				"CQ: the callbacks gave memory of more than one NPU");
	} else {
		rc = doorbell_.map(nic, attr.ops, raw(attr.type), *npu_.npu, "CQ");
		if (rc)
			return rc;
		queue_.doorbell = doorbell_.host();
		format.silence(queue_);
	}

	verbs_.owner = this;
	extend_.owner = this;
	verbs_.context = nic.context();
	verbs_.cq_context = attr.attr.cq_context;
	verbs_.handle = queue_.cqn;
	verbs_.cqe = static_cast<int>(published);
	pthread_mutex_init(&verbs_.mutex, nullptr);
	pthread_cond_init(&verbs_.cond, nullptr);
	extend_.cq = &verbs_;
	extend_.cq_info.qbuf.base = ring_.value();
	extend_.cq_info.qbuf.entry_cnt = published;
	extend_.cq_info.qbuf.entry_size = queue_.stride;
	if (layout.consumer_record)
		extend_.cq_info.dbr_ci_va = {record_.value(), record_bytes};
	else
		extend_.cq_info.db_hw_va = doorbell_.range();
	extend_.resv[0] = queue_.cqn;
	return 0;
}

int Cq::destroy(ibv_cq_extend *extend)
{
	Cq *cq = &Owned<ibv_cq_extend, Cq>::of(extend);
	if (cq->users_.load())
		return fail(-EBUSY, "CQ: QPs use it");
	cq->nic_->forget_events(&cq->verbs_);
	delete cq;
	return 0;
}

// ---- SRQ -------------------------------------------------------------------------------

int Srq::create(ibv_context *context, ibv_srq_init_attr_extend &attr, ibv_srq_extend *&srq)
{
	Nic *nic = Nic::find(context);
	if (!nic)
		return -EINVAL;
	int rc = check_ops(attr.ops, raw(attr.type), "SRQ");
	if (rc)
		return rc;
	if (!attr.pd || attr.pd->context != context)
		return fail(-EINVAL, "SRQ: the protection domain is not of this NIC");
	if (attr.srq_cap_flag || attr.comp_mask || attr.attr.attr.srq_limit)
		return fail(-EOPNOTSUPP,
			"SRQ: flags 0x%x, comp_mask 0x%x, srq_limit %u are not supported",
			attr.srq_cap_flag, attr.comp_mask, attr.attr.attr.srq_limit);
	if (attr.attr.attr.max_wr == 0 || attr.attr.attr.max_wr > max_receives ||
		attr.attr.attr.max_sge > 1)
		return fail(-EINVAL, "SRQ: %u receives of %u entries, not 1 to %u of 1",
			attr.attr.attr.max_wr, attr.attr.attr.max_sge, max_receives);
	auto fresh = std::make_unique<Srq>();
	rc = fresh->init(*nic, attr);
	if (rc)
		return rc;
	srq = &fresh.release()->extend_;
	return 0;
}

int Srq::init(Nic &nic, ibv_srq_init_attr_extend &attr)
{
	nic_.take(nic);
	int rc = memory_.init(attr.ops, attr.attr.attr.max_wr, "SRQ");
	if (rc)
		return rc;
	npu_.npu = Npu::acquire(memory_.address());
	if (!npu_.npu)
		return -EINVAL;
	rc = memory_.resolve(*npu_.npu, queue_, "SRQ");
	if (rc)
		return rc;
	attr.attr.attr.max_wr = memory_.depth();
	attr.attr.attr.max_sge = 1;
	pd_ = static_cast<Pd *>(attr.pd);
	pd_->users.fetch_add(1);
	verbs_.owner = this;
	extend_.owner = this;
	verbs_.context = nic.context();
	verbs_.srq_context = attr.attr.srq_context;
	verbs_.pd = attr.pd;
	pthread_mutex_init(&verbs_.mutex, nullptr);
	pthread_cond_init(&verbs_.cond, nullptr);
	extend_.srq = &verbs_;
	memory_.describe(extend_.srq_info);
	return 0;
}

Srq::~Srq()
{
	if (pd_)
		pd_->users.fetch_sub(1);
}

int Srq::destroy(ibv_srq_extend *extend)
{
	Srq *srq = &Owned<ibv_srq_extend, Srq>::of(extend);
	if (srq->users_.load())
		return fail(-EBUSY, "SRQ: QPs use it");
	delete srq;
	return 0;
}

// ---- QP: making and ending -------------------------------------------------------------

int Qp::create(ibv_context *context, ibv_qp_init_attr_extend &attr, ibv_qp_extend *&qp)
{
	auto fresh = std::make_unique<Qp>();
	int rc = fresh->init(context, attr);
	if (rc)
		return rc;
	qp = &fresh.release()->extend_;
	return 0;
}

namespace {

int check_capacity(const QueueLayout &layout, const ibv_qp_cap &cap)
{
	uint32_t max_depth = layout.max_depth / layout.units_per_request;
	// Nothing is ever posted by verbs, so that what is asked for need not be had.
	uint32_t max_inline = std::max(layout.max_inline, verbs_max_inline);
	if (cap.max_send_wr == 0 || cap.max_send_wr > max_depth ||
		cap.max_recv_wr > max_depth)
		return fail(-EINVAL, "QP: %u send and %u receive requests, not 1 to %u",
			cap.max_send_wr, cap.max_recv_wr, max_depth);
	if (cap.max_send_sge > layout.max_pieces || cap.max_recv_sge > 1 ||
		cap.max_inline_data > max_inline)
		return fail(-EINVAL,
			"QP: %u and %u gather entries, %u inline bytes: more than %u, 1, "
			"%u",
			cap.max_send_sge, cap.max_recv_sge, cap.max_inline_data,
			layout.max_pieces, max_inline);
	return 0;
}

} // namespace

int Qp::init(ibv_context *context, ibv_qp_init_attr_extend &attr)
{
	Nic *nic = Nic::find(context);
	if (!nic)
		return -EINVAL;
	ibv_qp_cap &cap = attr.attr.cap;
	int rc = check_ops(attr.ops, raw(attr.type), "QP");
	if (rc)
		return rc;
	if (attr.qp_cap_flag)
		return fail(-EOPNOTSUPP, "QP: %s is not supported",
			attr.qp_cap_flag == QP_ENABLE_DIRECT_WQE ? "direct WQE"
								 : "a capability flag");
	if (raw(attr.attr.qp_type) != IBV_QPT_RC)
		return fail(-EOPNOTSUPP, "QP: type %d is not supported, RC is",
			raw(attr.attr.qp_type));
	if (attr.attr.srq && attr.attr.srq->context != context)
		return fail(-EINVAL, "QP: the shared receive queue is not of this NIC");
	if (!attr.pd || attr.pd->context != context)
		return fail(-EINVAL, "QP: the protection domain is not of this NIC");
	if (!attr.attr.send_cq || attr.attr.send_cq->context != context ||
		!attr.attr.recv_cq || attr.attr.recv_cq->context != context)
		return fail(-EINVAL, "QP: a completion queue is not of this NIC");
	rc = check_capacity(nic->format().layout(), cap);
	if (rc)
		return rc;

	nic_.take(*nic);
	pd_ = static_cast<Pd *>(attr.pd);
	pd_->users.fetch_add(1);
	send_cq_ = &Owned<ibv_cq, Cq>::of(attr.attr.send_cq);
	send_cq_->users_.fetch_add(1);
	recv_cq_ = &Owned<ibv_cq, Cq>::of(attr.attr.recv_cq);
	if (recv_cq_ != send_cq_)
		recv_cq_->users_.fetch_add(1);
	if (attr.attr.srq) {
		srq_ = &Owned<ibv_srq, Srq>::of(attr.attr.srq);
		srq_->users_.fetch_add(1);
	}
	rc = init_queue(attr);
	if (rc)
		return rc;

	const QueueLayout &layout = nic->format().layout();
	cap.max_send_wr = queue_.depth / layout.units_per_request;
	cap.max_recv_wr = receive_memory_.depth(); // 0 where there is no queue
	cap.max_send_sge = layout.max_pieces;
	cap.max_recv_sge = receive_memory_.depth() ? 1 : 0;
	cap.max_inline_data = layout.max_inline;
	init_ = attr.attr;
	verbs_.owner = this;
	extend_.owner = this;
	verbs_.context = context;
	verbs_.qp_context = attr.attr.qp_context;
	verbs_.pd = attr.pd;
	verbs_.send_cq = attr.attr.send_cq;
	verbs_.recv_cq = attr.attr.recv_cq;
	verbs_.srq = attr.attr.srq;
	verbs_.qp_num = queue_.qpn;
	verbs_.handle = queue_.qpn;
	verbs_.state = IBV_QPS_RESET;
	verbs_.qp_type = IBV_QPT_RC;
	pthread_mutex_init(&verbs_.mutex, nullptr);
	pthread_cond_init(&verbs_.cond, nullptr);

	extend_.qp = &verbs_;
	extend_.sq_info.qbuf.base = ring_.value();
	extend_.sq_info.qbuf.entry_cnt = queue_.depth;
	extend_.sq_info.qbuf.entry_size = layout.send_stride;
	// No consumer record: where the NIC is, completions say.
	if (layout.producer_record)
		extend_.sq_info.dbr_pi_va = {record_.value(), record_bytes};
	extend_.sq_info.db_hw_va = doorbell_.range();
	extend_.vendor_priv_info.vendor1.db_cos = layout.doorbell_cos;
	return 0;
}

int Qp::init_queue(ibv_qp_init_attr_extend &attr)
{
	SendQueue &q = queue_;
	const QueueLayout &layout = nic_->format().layout();
	q.depth = round_up_to_power(
		attr.attr.cap.max_send_wr * layout.units_per_request, layout.min_depth);
	int rc = ring_.alloc(
		attr.ops, uint64_t{q.depth} * layout.send_stride, layout.send_fill, "QP");
	if (rc == 0 && layout.producer_record)
		rc = record_.alloc(attr.ops, record_bytes, 0, "QP record");
	if (rc)
		return rc;
	npu_.npu = Npu::acquire(ring_.value());
	if (!npu_.npu)
		return -EINVAL;
	q.ring = npu_->host(ring_.value(), ring_.size);
	if (layout.producer_record)
		q.record = npu_->host(record_.value(), record_.size);
	if (!q.ring || (layout.producer_record && !q.record) ||
		send_cq_->npu_.npu != npu_.npu)
		return fail(
			-EINVAL, "QP: its queues are in the memory of more than one NPU");
	rc = init_receive(attr);
	if (rc)
		return rc;
	rc = doorbell_.map(*nic_, attr.ops, raw(attr.type), *npu_.npu, "QP");
	if (rc)
		return rc;
	q.doorbell = doorbell_.host();
	rc = Fabric::get().add_qp(q.qpn);
	if (rc)
		return rc;
	q.format = &nic_->format();
	q.faults = &nic_->faults();
	q.log = nic_->log();
	q.link = nic_->link();
	q.cq = &send_cq_->queue_;
	q.pd = pd_->id;
	q.signal_all = attr.attr.sq_sig_all;
	q.cookie = this;
	q.on_event = [](void *cookie, ibv_event_type type, const CompletionQueue *failed) {
		Qp *qp = static_cast<Qp *>(cookie);
		ibv_async_event event = {};
		event.event_type = type;
		if (type == IBV_EVENT_CQ_ERR)
			event.element.cq = failed == &qp->send_cq_->queue_
				? &qp->send_cq_->verbs_
				: &qp->recv_cq_->verbs_;
		else if (type == IBV_EVENT_PORT_ERR)
			event.element.port_num = 1;
		else
			event.element.qp = &qp->verbs_;
		qp->nic_->report(event);
	};
	q.random = q.faults->seed;
	apply_window();
	Engine::Hold hold(npu_->engine());
	q.format->silence(q);
	npu_->engine().attach(q);
	attached_ = true;
	return 0;
}

// Where the format has receive queues, or one is shared.
int Qp::init_receive(ibv_qp_init_attr_extend &attr)
{
	SendQueue &q = queue_;
	if (srq_) {
		if (srq_->npu_.npu != npu_.npu)
			return fail(-EINVAL,
				"QP: its SRQ is in the memory of another NPU than its "
				"queues");
		q.receive = &srq_->queue_;
	} else if (nic_->format().layout().receives && attr.attr.cap.max_recv_wr) {
		int rc = receive_memory_.init(
			attr.ops, attr.attr.cap.max_recv_wr, "QP receive queue");
		if (rc == 0)
			rc = receive_memory_.resolve(
				*npu_.npu, receive_, "QP receive queue");
		if (rc)
			return rc;
		receive_memory_.describe(extend_.rq_info);
		q.receive = &receive_;
	}
	if (!nic_->format().layout().receives)
		q.receive = nullptr; // no request ever consumes one
	if (q.receive && recv_cq_->npu_.npu != npu_.npu)
		return fail(-EINVAL,
			"QP: its receive CQ is in the memory of another NPU than its "
			"queues");
	q.receive_cq = &recv_cq_->queue_;
	return 0;
}

// While held, or before the engine knows the queue.
void Qp::apply_window()
{
	queue_.window_size = std::max<size_t>(queue_.faults->reorder, extended_.window());
	queue_.window.reserve(queue_.window_size);
}

// Undoes as much as was done.
Qp::~Qp()
{
	if (attached_) {
		Engine::Hold hold(npu_->engine());
		npu_->engine().detach(queue_);
	}
	if (queue_.qpn)
		Fabric::get().remove_qp(queue_.qpn);
	if (srq_)
		srq_->users_.fetch_sub(1);
	if (recv_cq_ && recv_cq_ != send_cq_)
		recv_cq_->users_.fetch_sub(1);
	if (send_cq_)
		send_cq_->users_.fetch_sub(1);
	if (pd_)
		pd_->users.fetch_sub(1);
	if (nic_.nic)
		nic_->forget_events(&verbs_);
}

int Qp::destroy(ibv_qp_extend *extend)
{
	Qp *qp = &Owned<ibv_qp_extend, Qp>::of(extend);
	int rc = qp->close_to_peers(QpLife::closed);
	if (rc)
		return rc;
	delete qp;
	return 0;
}

// ---- QP: states ------------------------------------------------------------------------

// The device may have gone to the error state on its own.
ibv_qp_state Qp::state()
{
	Engine::Hold hold(npu_->engine());
	if (queue_.state == SendState::error)
		verbs_.state = IBV_QPS_ERR;
	return verbs_.state;
}

// After this no engine of any process writes or reads on behalf of this QP's peer.
int Qp::close_to_peers(QpLife life)
{
	Fabric::get().qp(queue_.qpn).life.store(life, std::memory_order_seq_cst);
	return Fabric::get().quiesce();
}

namespace {

// The RNR timer's codes: 0.01 ms times 1, 2, 3, 4, 6, 8, 12, ...; code 0 is the longest.
uint64_t rnr_ns(uint8_t code)
{
	constexpr uint64_t unit = 10 * 1000;
	if (code == 0)
		return 65536 * unit;
	if (code == 1)
		return unit;
	return code % 2 ? (uint64_t{3} << ((code - 3) / 2)) * unit
			: (uint64_t{1} << (code / 2)) * unit;
}

} // namespace

// What may change while the entry is open.
void Qp::tell_peer_of_changes(int mask)
{
	SharedQp &entry = Fabric::get().qp(queue_.qpn);
	if (mask & IBV_QP_ACCESS_FLAGS)
		entry.access.store(attr_.qp_access_flags, std::memory_order_relaxed);
	if (mask & IBV_QP_MIN_RNR_TIMER)
		entry.rnr_ns.store(rnr_ns(attr_.min_rnr_timer), std::memory_order_relaxed);
}

// While the entry is closed: nobody reads the rest of it.
void Qp::open_to_peer()
{
	SharedQp &entry = Fabric::get().qp(queue_.qpn);
	entry.peer_qpn.store(queue_.peer_qpn, std::memory_order_relaxed);
	for (int i = 0; i < 2; i++) {
		entry.gid[i].store(queue_.gid[i], std::memory_order_relaxed);
		entry.peer_gid[i].store(queue_.peer_gid[i], std::memory_order_relaxed);
	}
	entry.pd.store(queue_.pd, std::memory_order_relaxed);
	tell_peer_of_changes(IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER);
	entry.reads.store(attr_.max_dest_rd_atomic, std::memory_order_relaxed);
	entry.receives.store(queue_.receive != nullptr, std::memory_order_relaxed);
	entry.engine.store(segment_slot(npu_->segment()), std::memory_order_relaxed);
	// What the peer offered to an earlier QP of this number is not for this one.
	uint64_t offered = 0;
	if (queue_.peer_qpn < qp_count)
		offered = queue_.peer->control().qps[queue_.peer_qpn].offered.load();
	entry.taken.store(offered, std::memory_order_relaxed);
	entry.life.store(QpLife::receiving, std::memory_order_seq_cst);
}

namespace {

// Which attributes a transition of an RC QP must and may have, as the verbs API has it.
struct Transition {
	ibv_qp_state from, to;
	int required, optional;
};

constexpr Transition transitions[] = {
	{IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
		0},
	{IBV_QPS_INIT, IBV_QPS_INIT, 0,
		IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
	{IBV_QPS_INIT, IBV_QPS_RTR,
		IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
		IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS},
	{IBV_QPS_RTR, IBV_QPS_RTS,
		IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC,
		IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
	{IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
};

struct AttributeName {
	int bit;
	const char *name;
};

constexpr AttributeName attribute_names[] = {
	{IBV_QP_ACCESS_FLAGS, "ACCESS_FLAGS"},
	{IBV_QP_PKEY_INDEX, "PKEY_INDEX"},
	{IBV_QP_PORT, "PORT"},
	{IBV_QP_AV, "AV"},
	{IBV_QP_PATH_MTU, "PATH_MTU"},
	{IBV_QP_TIMEOUT, "TIMEOUT"},
	{IBV_QP_RETRY_CNT, "RETRY_CNT"},
	{IBV_QP_RNR_RETRY, "RNR_RETRY"},
	{IBV_QP_RQ_PSN, "RQ_PSN"},
	{IBV_QP_MAX_QP_RD_ATOMIC, "MAX_QP_RD_ATOMIC"},
	{IBV_QP_MIN_RNR_TIMER, "MIN_RNR_TIMER"},
	{IBV_QP_SQ_PSN, "SQ_PSN"},
	{IBV_QP_MAX_DEST_RD_ATOMIC, "MAX_DEST_RD_ATOMIC"},
	{IBV_QP_DEST_QPN, "DEST_QPN"},
};

const char *attribute_name(int mask)
{
	for (const AttributeName &a : attribute_names) {
		if (mask & a.bit)
			return a.name;
	}
	return "an attribute of another transport";
}

uint32_t mtu_bytes(int code)
{
	return 128u << code;
}

} // namespace

int Qp::check_attributes(const ibv_qp_attr &attr, int mask, ibv_qp_state to)
{
	ibv_qp_state from = verbs_.state;
	uint32_t qpn = queue_.qpn;
	mask &= ~(IBV_QP_STATE | IBV_QP_CUR_STATE);
	const Transition *found = nullptr;
	if (to == IBV_QPS_ERR || to == IBV_QPS_RESET) {
		static constexpr Transition any = {IBV_QPS_RESET, IBV_QPS_RESET, 0, 0};
		found = &any;
	}
	for (const Transition &t : transitions) {
		if (t.from == from && t.to == to)
			found = &t;
	}
	if (!found)
		return fail(-EINVAL, "QP %u: cannot go from %s to %s", qpn,
			state_name(from), state_name(to));
	if (~mask & found->required)
		return fail(-EINVAL, "QP %u: %s to %s needs %s", qpn, state_name(from),
			state_name(to), attribute_name(~mask & found->required));
	if (mask & ~(found->required | found->optional))
		return fail(-EINVAL, "QP %u: %s to %s does not take %s", qpn,
			state_name(from), state_name(to),
			attribute_name(mask & ~(found->required | found->optional)));

	if ((mask & IBV_QP_PORT) && attr.port_num != 1)
		return fail(
			-EINVAL, "QP %u: port %u, the only one is 1", qpn, attr.port_num);
	if ((mask & IBV_QP_PKEY_INDEX) && attr.pkey_index)
		return fail(-EINVAL, "QP %u: P_Key index %u, the only one is 0", qpn,
			attr.pkey_index);
	if ((mask & IBV_QP_ACCESS_FLAGS) &&
		(attr.qp_access_flags & ~static_cast<unsigned>(access_flags)))
		return fail(-EINVAL, "QP %u: unknown access flags 0x%x", qpn,
			attr.qp_access_flags);
	int mtu = raw(attr.path_mtu);
	if ((mask & IBV_QP_PATH_MTU) &&
		(mtu < IBV_MTU_256 || mtu > IBV_MTU_4096 ||
			mtu_bytes(mtu) > nic_->mtu_bytes()))
		return fail(-EINVAL, "QP %u: path MTU code %d, the port's MTU is %u bytes",
			qpn, mtu, nic_->mtu_bytes());
	uint32_t qpn_bits = nic_->format().layout().qpn_bits;
	if ((mask & IBV_QP_DEST_QPN) && attr.dest_qp_num >> qpn_bits)
		return fail(-EINVAL,
			"QP %u: destination QP 0x%x has more than the format's %u bits",
			qpn, attr.dest_qp_num, qpn_bits);
	if ((mask & IBV_QP_MIN_RNR_TIMER) && attr.min_rnr_timer > 31)
		return fail(-EINVAL, "QP %u: RNR timer %u is more than 31", qpn,
			attr.min_rnr_timer);
	if ((mask & IBV_QP_TIMEOUT) && attr.timeout > 31)
		return fail(
			-EINVAL, "QP %u: timeout %u is more than 31", qpn, attr.timeout);
	if (((mask & IBV_QP_RETRY_CNT) && attr.retry_cnt > 7) ||
		((mask & IBV_QP_RNR_RETRY) && attr.rnr_retry > 7))
		return fail(-EINVAL, "QP %u: a retry count is more than 7", qpn);
	if (mask & IBV_QP_AV) {
		const ibv_ah_attr &ah = attr.ah_attr;
		if (!ah.is_global || ah.port_num != 1 || ah.grh.sgid_index >= gid_count)
			return fail(-EINVAL,
				"QP %u: address: is_global %u, port %u, sgid_index %u; "
				"RoCE needs "
				"1, 1, less than %d",
				qpn, ah.is_global, ah.port_num, ah.grh.sgid_index,
				gid_count);
	}
	return 0;
}

int Qp::modify(const ibv_qp_attr &attr, int mask)
{
	std::lock_guard<std::mutex> lock(mutex_);
	ibv_qp_state from = state();
	int asked = mask & IBV_QP_STATE ? raw(attr.qp_state) : from;
	if (asked < IBV_QPS_RESET || asked > IBV_QPS_ERR)
		return fail(-EINVAL, "QP %u: %d is no state", queue_.qpn, asked);
	ibv_qp_state to = static_cast<ibv_qp_state>(asked);
	if ((mask & IBV_QP_CUR_STATE) && raw(attr.cur_qp_state) != from)
		return fail(-EINVAL, "QP %u: is in %s, not in state %d", queue_.qpn,
			state_name(from), raw(attr.cur_qp_state));
	int rc = check_attributes(attr, mask, to);
	if (rc)
		return rc;
	// Set at once what does not depend on the step that may fail.
	switch (to) {
	case IBV_QPS_RESET:
		rc = to_reset();
		break;
	case IBV_QPS_ERR:
		rc = to_error();
		break;
	case IBV_QPS_RTR:
		rc = to_rtr(attr);
		break;
	default:
		break;
	}
	if (rc)
		return rc;
	if (mask & IBV_QP_ACCESS_FLAGS)
		attr_.qp_access_flags = attr.qp_access_flags;
	if (mask & IBV_QP_PORT)
		attr_.port_num = attr.port_num;
	if (mask & IBV_QP_AV)
		attr_.ah_attr = attr.ah_attr;
	if (mask & IBV_QP_PATH_MTU)
		attr_.path_mtu = attr.path_mtu;
	if (mask & IBV_QP_DEST_QPN)
		attr_.dest_qp_num = attr.dest_qp_num;
	if (mask & IBV_QP_RQ_PSN)
		attr_.rq_psn = attr.rq_psn;
	if (mask & IBV_QP_SQ_PSN)
		attr_.sq_psn = attr.sq_psn;
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
		attr_.max_dest_rd_atomic = attr.max_dest_rd_atomic;
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
		attr_.max_rd_atomic = attr.max_rd_atomic;
	if (mask & IBV_QP_MIN_RNR_TIMER)
		attr_.min_rnr_timer = attr.min_rnr_timer;
	if (mask & IBV_QP_TIMEOUT)
		attr_.timeout = attr.timeout;
	if (mask & IBV_QP_RETRY_CNT)
		attr_.retry_cnt = attr.retry_cnt;
	if (mask & IBV_QP_RNR_RETRY)
		attr_.rnr_retry = attr.rnr_retry;

	Engine::Hold hold(npu_->engine());
	if (queue_.state == SendState::error && to != IBV_QPS_ERR)
		return fail(-EIO, "QP %u: went into the error state meanwhile", queue_.qpn);
	if (to == IBV_QPS_RTR)
		open_to_peer();
	else if (to == IBV_QPS_RTS)
		tell_peer_of_changes(mask);
	if (to == IBV_QPS_INIT || to == IBV_QPS_RTR)
		queue_.state = SendState::waiting;
	if (from == IBV_QPS_RTR && to == IBV_QPS_RTS) {
		queue_.give_up_ns = attr_.timeout ? (attr_.retry_cnt + uint64_t{1}) *
				(uint64_t{4096} << attr_.timeout)
						  : 0;
		queue_.rnr_retries = attr_.rnr_retry;
		queue_.state = SendState::ready;
	}
	verbs_.state = to;
	return 0;
}

int Qp::to_error()
{
	int rc = close_to_peers(QpLife::error);
	Engine::Hold hold(npu_->engine());
	queue_.fail_all();
	return rc;
}

int Qp::to_reset()
{
	int rc = close_to_peers(QpLife::closed);
	if (rc)
		return rc;
	{
		Engine::Hold hold(npu_->engine());
		queue_.reset();
		// What was rung before is void; what comes from here on is a breach.
		nic_->format().silence(queue_);
	}
	// The engine leaves the queue alone now, but for a doorbell.
	ring_.fill(nic_->format().layout().send_fill);
	record_.fill(0);
	receive_memory_.reset();
	send_cq_->reset();
	if (recv_cq_ != send_cq_ && queue_.receive)
		recv_cq_->reset();
	attr_ = {};
	extended_ = {};
	Engine::Hold hold(npu_->engine());
	receive_.ci = 0;
	apply_window();
	queue_.reset();
	nic_->format().silence(queue_);
	return 0;
}

// So that no completion of an earlier life is taken for one of the next. What other QPs
// have in it stays.
int Cq::reset()
{
	if (users_.load() > 1)
		return -EBUSY;
	const QueueFormat &format = nic_->format();
	ring_.fill(format.layout().cqe_fill);
	record_.fill(0);
	Engine::Hold hold(npu_->engine());
	queue_.pi = queue_.ci = 0;
	queue_.breached = queue_.overrun = false;
	if (queue_.doorbell)
		format.silence(queue_);
	return 0;
}

int Qp::to_rtr(const ibv_qp_attr &attr)
{
	const ibv_ah_attr &ah = attr.ah_attr;
	Gid own, peer_gid;
	int rc = nic_->query_gid(1, ah.grh.sgid_index, own);
	if (rc)
		return rc;
	memcpy(&peer_gid, &ah.grh.dgid, sizeof(peer_gid));
	std::shared_ptr<Peer> peer;
	rc = Fabric::get().connect(gid_process(peer_gid), connect_timeout_ms, peer);
	if (rc)
		return rc;
	Engine::Hold hold(npu_->engine());
	queue_.peer = std::move(peer);
	queue_.peer_qpn = attr.dest_qp_num;
	queue_.sgid_index = ah.grh.sgid_index;
	queue_.mtu_bytes = mtu_bytes(raw(attr.path_mtu));
	memcpy(queue_.gid, &own, sizeof(own));
	memcpy(queue_.peer_gid, &peer_gid, sizeof(peer_gid));
	return 0;
}

int Qp::query(ibv_qp_attr &attr, int, ibv_qp_init_attr &init)
{
	std::lock_guard<std::mutex> lock(mutex_);
	attr = attr_;
	attr.qp_state = state();
	attr.cur_qp_state = attr.qp_state;
	attr.path_mig_state = IBV_MIG_MIGRATED;
	attr.cap = init_.cap;
	init = init_;
	return 0;
}

// ---- QP: what ibv_extend adds ----------------------------------------------------------

bool Qp::before_rtr()
{
	ibv_qp_state now = state();
	return now == IBV_QPS_RESET || now == IBV_QPS_INIT;
}

int Qp::modify_extended(const ibv_qp_attr_extend &attr, int mask)
{
	std::lock_guard<std::mutex> lock(mutex_);
	int rc = extended_.set(queue_.qpn, attr, mask, before_rtr());
	if (rc)
		return rc;
	Engine::Hold hold(npu_->engine());
	apply_window();
	return 0;
}

int Qp::query_extended(ibv_qp_attr_extend &attr, int mask)
{
	std::lock_guard<std::mutex> lock(mutex_);
	extended_.get(attr, mask);
	return 0;
}

int Qp::offer_feature(uint32_t sl, uint32_t tc, ibv_hyroce_feature &feature)
{
	std::lock_guard<std::mutex> lock(mutex_);
	if (sl > 7 || tc > 255)
		return fail(-EINVAL,
			"QP %u: service level %u is more than 7, or traffic class %u more "
			"than 255",
			queue_.qpn, sl, tc);
	if (!before_rtr())
		return fail(-EINVAL, "QP %u: is in %s, the feature is fixed", queue_.qpn,
			state_name(state()));
	extended_.offer(feature);
	return 0;
}

int Qp::negotiate_feature(
	const ibv_hyroce_feature &peers, ibv_hyroce_feature &chosen, uint32_t &more)
{
	std::lock_guard<std::mutex> lock(mutex_);
	if (!before_rtr())
		return fail(-EINVAL, "QP %u: is in %s, the feature is fixed", queue_.qpn,
			state_name(state()));
	return extended_.negotiate(queue_.qpn, peers, chosen, more);
}

int Qp::seek(uint32_t sq_index, uint32_t cq_index)
{
	std::lock_guard<std::mutex> lock(mutex_);
	ibv_qp_state now = state();
	if (now != IBV_QPS_RESET && now != IBV_QPS_INIT)
		return fail(-EBUSY, "QP %u: is in %s", queue_.qpn, state_name(now));
	Engine::Hold hold(npu_->engine());
	CompletionQueue &cq = send_cq_->queue_;
	if (cq.pi)
		return fail(-EBUSY, "QP %u: its CQ was used", queue_.qpn);
	queue_.start_at(sq_index);
	queue_.format->silence(queue_);
	// Its ring is as the last lap has left it.
	Request earlier;
	const Completion done = {sq_index - 1, earlier.work, NDA_OK, 0};
	for (cq.pi = cq_index - std::min(cq_index, cq.depth); cq.pi != cq_index; cq.pi++)
		queue_.format->complete(queue_, done);
	cq.ci = cq_index;
	return 0;
}

} // namespace nda::soft
