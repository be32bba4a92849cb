// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "providers/soft/nic.h"

#include "providers/soft/error.h"
#include "providers/soft/fabric.h"
#include "providers/soft/hns1825_model.h"
#include "providers/soft/in_die_model.h"
#include "providers/soft/npu.h"
#include "providers/soft/udma_model.h"
#include "providers/soft/xscale_model.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <endian.h>
#include <memory>
#include <string>

namespace nda::soft {
namespace {

constexpr uint64_t doorbell_stride = 64;
constexpr uint32_t max_queues = 16384; // of a NIC
constexpr uint64_t doorbell_bytes = max_queues * doorbell_stride;
constexpr size_t max_events = 1024; // that nobody has asked for yet
constexpr uint32_t default_mtu = 4096;

struct Registry {
	std::mutex mutex;
	std::vector<Nic *> nics;
	uint32_t next_number = 1;
};

Registry &registry()
{
	static Registry *r = new Registry; // NICs may be open as the process ends
	return *r;
}

template <class Format>
const QueueFormat &format()
{
	static const Format f;
	return f;
}

struct Model {
	const char *name;
	const QueueFormat &(*format)();
};

constexpr Model models[] = {
	{"hns1825", format<Hns1825Format>},
	{"in_die", format<InDieFormat>},
	{"xscale", format<XscaleFormat>},
	{"udma", format<UdmaFormat>},
};

int find_format(const char *name, const QueueFormat *&found)
{
	std::string known;
	for (const Model &m : models) {
		if (name && strcmp(name, m.name) == 0) {
			found = &m.format();
			return 0;
		}
		known += known.empty() ? "" : ", ";
		known += m.name;
	}
	return fail(
		-ENODEV, "NIC: no model '%s' (%s)", name ? name : "(null)", known.c_str());
}

ibv_mtu mtu_code(uint32_t bytes)
{
	return static_cast<ibv_mtu>(IBV_MTU_256 + __builtin_ctz(bytes / 256));
}

// ---- Where libibverbs must not go ------------------------------------------------------

[[noreturn]] void misuse()
{
	fputs("nda_soft: a function of libibverbs was called on an object of a software "
	      "NIC, "
	      "which is none of its own; use libnda's instead\n",
		stderr);
	abort();
}

// libibverbs finds its functions for a context here.
using Functions = std::array<void (*)(), 4096 / sizeof(void (*)())>;

Functions *misuse_page()
{
	static Functions page = [] {
		Functions filled;
		filled.fill(misuse);
		return filled;
	}();
	return &page;
}

int poll_cq(ibv_cq *, int, ibv_wc *)
{
	return -EOPNOTSUPP;
}
int req_notify_cq(ibv_cq *, int)
{
	return EOPNOTSUPP;
}
int post_send(ibv_qp *, ibv_send_wr *, ibv_send_wr **)
{
	return EOPNOTSUPP;
}
int post_recv(ibv_qp *, ibv_recv_wr *, ibv_recv_wr **)
{
	return EOPNOTSUPP;
}
int post_srq_recv(ibv_srq *, ibv_recv_wr *, ibv_recv_wr **)
{
	return EOPNOTSUPP;
}

// Called by inline functions of verbs.h: positive errno values.
int verbs_query_port(ibv_context *context, uint8_t port, ibv_port_attr *attr, size_t size)
{
	Nic *nic = Nic::find(context);
	ibv_port_attr full;
	if (!nic || nic->query_port(port, full))
		return EINVAL;
	memset(attr, 0, size);
	memcpy(attr, &full, std::min(size, sizeof(full)));
	return 0;
}

int verbs_query_device_ex(ibv_context *context, const ibv_query_device_ex_input *input,
	ibv_device_attr_ex *attr, size_t size)
{
	Nic *nic = Nic::find(context);
	if (!nic || (input && input->comp_mask) || size < sizeof(attr->orig_attr))
		return EINVAL;
	memset(attr, 0, size);
	nic->query_device(attr->orig_attr);
	return 0;
}

} // namespace

uint64_t gid_process(const Gid &gid)
{
	return be64toh(gid.half[1]);
}

// ---- Opening ---------------------------------------------------------------------------

const Nic::DriverOps Nic::driver_ops_ = {"nda_soft", {}};

Nic::Nic(const Faults &faults, const QueueFormat &format, uint32_t mtu_bytes)
	: faults_(faults), link_(faults), format_(&format), mtu_bytes_(mtu_bytes),
	  doorbell_used_(max_queues)
{}

void Nic::make_verbs()
{
	device_.device.node_type = IBV_NODE_CA;
	device_.device.transport_type = IBV_TRANSPORT_IB;
	snprintf(device_.device.name, sizeof(device_.device.name), "nda_soft%u", number_);
	device_.ops = &driver_ops_;

	verbs_.query_port = verbs_query_port;
	verbs_.query_device_ex = verbs_query_device_ex;
	verbs_.priv = reinterpret_cast<verbs_ex_private *>(misuse_page());
	verbs_.sz = sizeof(verbs_);
	ibv_context &c = verbs_.context;
	c.device = &device_.device;
	c.ops.poll_cq = poll_cq;
	c.ops.req_notify_cq = req_notify_cq;
	c.ops.post_send = post_send;
	c.ops.post_recv = post_recv;
	c.ops.post_srq_recv = post_srq_recv;
	c.cmd_fd = -1;
	c.async_fd = -1;
	c.num_comp_vectors = 1;
	pthread_mutex_init(&c.mutex, nullptr);
	c.abi_compat = __VERBS_ABI_IS_EXTENDED;
}

int Nic::open(const nda_soft_nic_attr &attr, Nic *&nic)
{
	const QueueFormat *format = nullptr;
	int rc = find_format(attr.model, format);
	if (rc)
		return rc;
	uint32_t mtu = attr.mtu_bytes ? attr.mtu_bytes : default_mtu;
	if (mtu < 256 || mtu > 4096 || (mtu & (mtu - 1)))
		return fail(
			-EINVAL, "NIC: MTU %u is not 256, 512, 1024, 2048 or 4096", mtu);
	if (attr.reserved)
		return fail(-EINVAL, "NIC: reserved attribute is not 0");
	Faults faults;
	std::unique_ptr<EventLog> log;
	rc = parse_faults(attr.inject, faults);
	if (rc == 0 && attr.events)
		rc = EventLog::open(attr.events, log);
	if (rc == 0)
		rc = Fabric::get().start();
	if (rc)
		return rc;
	std::unique_ptr<Nic> fresh(new Nic(faults, *format, mtu));
	rc = fresh->doorbells_.map(doorbell_bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
	if (rc)
		return fail(rc, "NIC: doorbells: %s", cause(-rc));
	std::lock_guard<std::mutex> lock(registry().mutex);
	if (registry().next_number > UINT16_MAX)
		return fail(-ENOSPC, "NIC: this process has opened %u NICs", UINT16_MAX);
	registry().nics.push_back(fresh.get());
	fresh->number_ = registry().next_number++;
	fresh->make_verbs();
	if (log)
		log->set_nic(fresh->device_.device.name);
	fresh->log_ = std::move(log);
	nic = fresh.release();
	return 0;
}

Nic *Nic::find(const ibv_context *context)
{
	std::lock_guard<std::mutex> lock(registry().mutex);
	for (Nic *nic : registry().nics) {
		if (&nic->verbs_.context == context)
			return nic;
	}
	fail(-EINVAL, "NIC: %p is not the context of an open software NIC",
		static_cast<const void *>(context));
	return nullptr;
}

int Nic::close(const ibv_context *context)
{
	Nic *nic = find(context);
	if (!nic)
		return -EINVAL;
	{
		std::lock_guard<std::mutex> lock(registry().mutex);
		uint32_t objects = nic->objects_.load();
		if (objects)
			return fail(-EBUSY,
				"NIC %s: %u protection domains and extended objects exist",
				nic->device_.device.name, objects);
		auto &nics = registry().nics;
		nics.erase(std::remove(nics.begin(), nics.end(), nic), nics.end());
	}
	int rc = nic->log_ ? nic->log_->result() : 0;
	delete nic;
	return rc;
}

// ---- Identity --------------------------------------------------------------------------

void Nic::query_device(ibv_device_attr &attr) const
{
	attr = {};
	snprintf(attr.fw_ver, sizeof(attr.fw_ver), "soft");
	attr.node_guid = htobe64(Fabric::get().process() + number_);
	attr.sys_image_guid = htobe64(Fabric::get().process());
	attr.max_mr_size = UINT64_MAX;
	attr.page_size_cap = 4096;
	attr.max_qp = max_queues;
	const QueueLayout &layout = format_->layout();
	attr.max_qp_wr = static_cast<int>(layout.max_depth / layout.units_per_request);
	attr.max_sge = static_cast<int>(layout.max_pieces);
	attr.max_sge_rd = static_cast<int>(layout.max_pieces);
	attr.max_cq = max_queues;
	attr.max_cqe = static_cast<int>(layout.max_depth);
	attr.max_mr = mr_count - 1;
	attr.max_pd = INT16_MAX;
	attr.max_qp_rd_atom = 128;
	attr.max_qp_init_rd_atom = 128;
	attr.max_res_rd_atom = 128;
	// By the CPU's own instructions, so that cores and other NICs are in it.
	attr.atomic_cap = layout.atomics ? IBV_ATOMIC_GLOB : IBV_ATOMIC_NONE;
	attr.max_pkeys = 1;
	attr.phys_port_cnt = 1;
}

int Nic::query_port(uint8_t port, ibv_port_attr &attr)
{
	if (port != 1)
		return fail(-EINVAL, "NIC %s: port %u, the only one is 1",
			device_.device.name, port);
	attr = {};
	look_at_link();
	attr.state = link_.down() ? IBV_PORT_DOWN : IBV_PORT_ACTIVE;
	attr.max_mtu = IBV_MTU_4096;
	attr.active_mtu = mtu_code(mtu_bytes_);
	attr.gid_tbl_len = gid_count;
	attr.max_msg_sz = format_->layout().max_message;
	attr.pkey_tbl_len = 1;
	attr.active_width = 2;                  // 4 lanes
	attr.active_speed = 32;                 // 25 Gb/s each
	attr.phys_state = link_.down() ? 3 : 5; // disabled, link up
	attr.link_layer = IBV_LINK_LAYER_ETHERNET;
	return 0;
}

int Nic::query_gid(uint8_t port, int index, Gid &gid) const
{
	if (port != 1 || index < 0 || index >= gid_count)
		return fail(-EINVAL, "NIC %s: no GID %d at port %u", device_.device.name,
			index, port);
	// fe80::NIC:PROCESS, and the same under a unique local prefix, fd6e:6461:736f ("nda
	// so").
	uint64_t prefix = index == 0 ? uint64_t{0xfe80} << 48 : 0xfd6e6461736f0000;
	gid.half[0] = htobe64(prefix | number_);
	gid.half[1] = htobe64(Fabric::get().process());
	return 0;
}

// ---- Protection domains and regions ----------------------------------------------------

int Nic::alloc_pd(ibv_pd *&pd)
{
	static std::atomic<uint32_t> next{
		1}; // unique in the process, so never another NIC's
	auto *fresh = new Pd;
	fresh->context = context();
	fresh->id = next.fetch_add(1);
	fresh->handle = fresh->id;
	hold();
	pd = fresh;
	return 0;
}

int Nic::dealloc_pd(ibv_pd *pd)
{
	Nic *nic = find(pd->context);
	if (!nic)
		return -EINVAL;
	Pd *own = static_cast<Pd *>(pd);
	if (own->users.load())
		return fail(-EBUSY, "PD %u: %u regions and QPs use it", own->id,
			own->users.load());
	delete own;
	nic->drop();
	return 0;
}

int Nic::reg_mr(ibv_pd *pd, uint64_t address, uint64_t size, int access, ibv_mr *&mr)
{
	constexpr int known = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
		IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	Nic *nic = find(pd->context);
	if (!nic)
		return -EINVAL;
	access &= ~IBV_ACCESS_OPTIONAL_RANGE;
	if (access & ~known)
		return fail(
			-EOPNOTSUPP, "region: access flags 0x%x are not supported", access);
	if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) &&
		!(access & IBV_ACCESS_LOCAL_WRITE))
		return fail(
			-EINVAL, "region: remote write or atomic access needs local write");
	if (size == 0)
		return fail(-EINVAL, "region: a size of 0 bytes");
	auto fresh = std::make_unique<Mr>();
	Pd *own = static_cast<Pd *>(pd);
	Npu *npu = Npu::acquire(address);
	if (!npu)
		return -EINVAL;
	int rc = npu->pin(address, size);
	if (rc) {
		npu->release();
		return rc;
	}
	MrFields fields = {address, npu->segment_offset(address), size,
		static_cast<uint32_t>(access), own->id, npu->segment()};
	uint32_t key;
	rc = Fabric::get().add_mr(fields, key);
	if (rc) {
		npu->unpin(address);
		npu->release();
		return rc;
	}
	fresh->context = pd->context;
	fresh->pd = pd;
	fresh->addr = reinterpret_cast<void *>(address);
	fresh->length = size;
	fresh->handle = key;
	fresh->lkey = nic->format().layout().jetties ? udma_token_id(key) : key;
	fresh->rkey = key;
	fresh->npu = npu;
	own->users.fetch_add(1);
	mr = fresh.release();
	return 0;
}

int Nic::dereg_mr(ibv_mr *mr)
{
	if (!find(mr->context))
		return -EINVAL;
	Mr *own = static_cast<Mr *>(mr);
	int rc = Fabric::get().remove_mr(own->handle);
	if (rc)
		return rc;
	own->npu->unpin(reinterpret_cast<uint64_t>(own->addr));
	own->npu->release();
	static_cast<Pd *>(own->pd)->users.fetch_sub(1);
	delete own;
	return 0;
}

// ---- Doorbells -------------------------------------------------------------------------

int Nic::take_doorbell(uint32_t type, doorbell_map_desc &desc, uint32_t &slot)
{
	std::lock_guard<std::mutex> lock(mutex_);
	auto hole = std::find(doorbell_used_.begin(), doorbell_used_.end(), false);
	if (hole == doorbell_used_.end())
		return fail(-ENOSPC, "NIC %s: all %u doorbells are in use",
			device_.device.name, max_queues);
	*hole = true;
	slot = static_cast<uint32_t>(hole - doorbell_used_.begin());
	desc = {};
	desc.type = type;
	desc.size = doorbell_stride;
	if (type == DOORBELL_MAP_MODE_HOST_VA) {
		desc.hva = doorbells_.address() + slot * doorbell_stride;
	} else {
		desc.ub_res.guid_l = number_;
		desc.ub_res.guid_h = Fabric::get().process();
		desc.ub_res.bits.offset = slot * doorbell_stride;
	}
	return 0;
}

void Nic::give_doorbell(uint32_t slot)
{
	std::lock_guard<std::mutex> lock(mutex_);
	doorbell_used_[slot] = false;
}

int Nic::find_doorbell(const doorbell_map_desc &desc, uint32_t &nic, uint64_t &offset)
{
	std::lock_guard<std::mutex> lock(registry().mutex);
	for (Nic *n : registry().nics) {
		uint64_t at;
		if (desc.type == DOORBELL_MAP_MODE_HOST_VA)
			at = desc.hva - n->doorbells_.address();
		else if (desc.type == DOORBELL_MAP_MODE_UB_RES &&
			desc.ub_res.guid_l == n->number_ &&
			desc.ub_res.guid_h == Fabric::get().process())
			at = desc.ub_res.bits.offset;
		else
			continue;
		if (at >= doorbell_bytes)
			continue;
		nic = n->number_;
		offset = at;
		return 0;
	}
	if (desc.type == DOORBELL_MAP_MODE_HOST_VA)
		return fail(-EOPNOTSUPP,
			"doorbell: 0x%" PRIx64
			" is of no software NIC, and cores of a software NPU reach no "
			"other",
			static_cast<uint64_t>(desc.hva));
	if (desc.type == DOORBELL_MAP_MODE_UB_RES)
		return fail(-EINVAL,
			"doorbell: no software NIC has GUID %016" PRIx64 "%016" PRIx64
			" and offset 0x%x",
			static_cast<uint64_t>(desc.ub_res.guid_h),
			static_cast<uint64_t>(desc.ub_res.guid_l),
			static_cast<unsigned>(desc.ub_res.bits.offset));
	return fail(-EINVAL, "doorbell: unknown descriptor type %u", desc.type);
}

// ---- Events ----------------------------------------------------------------------------

void Nic::report(const ibv_async_event &event)
{
	std::lock_guard<std::mutex> lock(mutex_);
	if (events_.size() < max_events)
		events_.push_back(event);
}

void Nic::look_at_link()
{
	if (!link_.take_event())
		return;
	ibv_async_event event = {};
	event.element.port_num = 1;
	event.event_type = IBV_EVENT_PORT_ERR;
	report(event);
}

void Nic::forget_events(const void *object)
{
	std::lock_guard<std::mutex> lock(mutex_);
	events_.erase(std::remove_if(events_.begin(), events_.end(),
			      [object](const ibv_async_event &e) {
				      return e.element.qp == object;
			      }),
		events_.end());
}

int Nic::next_event(ibv_async_event &event)
{
	look_at_link();
	std::lock_guard<std::mutex> lock(mutex_);
	if (events_.empty())
		return fail(-EAGAIN, "NIC %s: no event is pending", device_.device.name);
	event = events_.front();
	events_.pop_front();
	return 0;
}

} // namespace nda::soft
