// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The table of nda_soft.h: arguments are checked here, everything else is elsewhere.
#include "providers/soft/error.h"
#include "providers/soft/jetty.h"
#include "providers/soft/nic.h"
#include "providers/soft/npu.h"
#include "providers/soft/queues.h"

#include <cstring>

namespace nda::soft {
namespace {

int null_argument(const char *name)
{
	return fail(-EINVAL, "%s is NULL", name);
}

// Runs body(npu) with the NPU behind a handle.
template <class Body>
int with_npu(nda_soft_npu *handle, Body &&body)
{
	return guard([&] {
		Npu *npu = Npu::find(handle);
		return npu ? body(*npu) : -EINVAL;
	});
}

template <class Body>
int with_nic(ibv_context *context, Body &&body)
{
	return guard([&] {
		Nic *nic = Nic::find(context);
		return nic ? body(*nic) : -EINVAL;
	});
}

// ---- Session and NPU -------------------------------------------------------------------

int set_session(const uint8_t session[NDA_SOFT_SESSION_BYTES])
{
	return guard([&] {
		return session ? Fabric::get().set_session(session)
			       : null_argument("session");
	});
}

nda_soft_npu *npu_open(const nda_soft_npu_attr *attr)
{
	return guard_pointer<nda_soft_npu>([&](nda_soft_npu *&handle) {
		Npu *npu = nullptr;
		int rc = attr ? Npu::open(*attr, npu) : null_argument("attr");
		if (rc == 0)
			handle = reinterpret_cast<nda_soft_npu *>(npu);
		return rc;
	});
}

int npu_close(nda_soft_npu *handle)
{
	return with_npu(handle, [](Npu &npu) { return Npu::close(&npu); });
}

int npu_alloc(nda_soft_npu *handle, uint64_t size, uint64_t *address)
{
	if (!address)
		return null_argument("addr");
	return with_npu(handle, [&](Npu &npu) { return npu.alloc(size, *address); });
}

int npu_free(nda_soft_npu *handle, uint64_t address)
{
	return with_npu(handle, [&](Npu &npu) { return npu.free(address); });
}

int npu_write(nda_soft_npu *handle, uint64_t to, const void *from, uint64_t size)
{
	if (!from && size)
		return null_argument("src");
	return with_npu(handle, [&](Npu &npu) { return npu.write(to, from, size); });
}

int npu_read(nda_soft_npu *handle, void *to, uint64_t from, uint64_t size)
{
	if (!to && size)
		return null_argument("dst");
	return with_npu(handle, [&](Npu &npu) { return npu.read(to, from, size); });
}

int npu_copy(nda_soft_npu *handle, uint64_t to, uint64_t from, uint64_t size)
{
	return with_npu(handle, [&](Npu &npu) { return npu.copy(to, from, size); });
}

int npu_memset(nda_soft_npu *handle, uint64_t to, int value, uint64_t size)
{
	return with_npu(handle, [&](Npu &npu) { return npu.fill(to, value, size); });
}

int npu_contains(nda_soft_npu *handle, uint64_t address, uint64_t size)
{
	return with_npu(
		handle, [&](Npu &npu) { return npu.contains(address, size) ? 1 : 0; });
}

void *npu_db_mmap(nda_soft_npu *handle, const doorbell_map_desc *desc)
{
	return guard_pointer<void>([&](void *&mapped) {
		Npu *npu = Npu::find(handle);
		if (!npu)
			return -EINVAL;
		if (!desc)
			return null_argument("desc");
		uint64_t address = 0;
		int rc = npu->map_doorbell(*desc, address);
		if (rc == 0)
			mapped = reinterpret_cast<void *>(address);
		return rc;
	});
}

int npu_db_unmap(nda_soft_npu *handle, void *mapped, const doorbell_map_desc *desc)
{
	if (!desc)
		return null_argument("desc");
	return with_npu(handle, [&](Npu &npu) {
		return npu.unmap_doorbell(reinterpret_cast<uint64_t>(mapped), *desc);
	});
}

int npu_launch(nda_soft_npu *handle, nda_kernel_fn fn, void *arg, uint32_t n_cores)
{
	return with_npu(handle, [&](Npu &npu) { return npu.launch(fn, arg, n_cores); });
}

int npu_wait(nda_soft_npu *handle, int timeout_ms)
{
	return with_npu(handle, [&](Npu &npu) { return npu.wait(timeout_ms); });
}

int npu_core(nda_soft_npu *handle, nda_core *core)
{
	if (!core)
		return null_argument("core");
	return with_npu(handle, [&](Npu &npu) {
		npu.fill_core(*core);
		return 0;
	});
}

int npu_step(nda_soft_npu *handle)
{
	return with_npu(handle, [&](Npu &npu) { return npu.engine().step(); });
}

int npu_violations(nda_soft_npu *handle, uint64_t *count)
{
	if (!count)
		return null_argument("count");
	return with_npu(handle, [&](Npu &npu) {
		*count = npu.engine().violations();
		return 0;
	});
}

// ---- NIC -------------------------------------------------------------------------------

ibv_context *nic_open(const nda_soft_nic_attr *attr)
{
	return guard_pointer<ibv_context>([&](ibv_context *&context) {
		Nic *nic = nullptr;
		int rc = attr ? Nic::open(*attr, nic) : null_argument("attr");
		if (nic)
			context = nic->context();
		return rc;
	});
}

int nic_close(ibv_context *context)
{
	return guard([&] { return Nic::close(context); });
}

int query_device(ibv_context *context, ibv_device_attr *attr)
{
	if (!attr)
		return null_argument("attr");
	return with_nic(context, [&](Nic &nic) {
		nic.query_device(*attr);
		return 0;
	});
}

int query_port(ibv_context *context, uint8_t port, ibv_port_attr *attr)
{
	if (!attr)
		return null_argument("attr");
	return with_nic(context, [&](Nic &nic) { return nic.query_port(port, *attr); });
}

int query_gid(ibv_context *context, uint8_t port, int index, ibv_gid *gid)
{
	if (!gid)
		return null_argument("gid");
	return with_nic(context, [&](Nic &nic) {
		Gid own;
		int rc = nic.query_gid(port, index, own);
		if (rc == 0)
			memcpy(gid, &own, sizeof(*gid));
		return rc;
	});
}

ibv_pd *alloc_pd(ibv_context *context)
{
	return guard_pointer<ibv_pd>([&](ibv_pd *&pd) {
		Nic *nic = Nic::find(context);
		return nic ? nic->alloc_pd(pd) : -EINVAL;
	});
}

int dealloc_pd(ibv_pd *pd)
{
	return guard([&] { return pd ? Nic::dealloc_pd(pd) : null_argument("pd"); });
}

ibv_mr *reg_mr(ibv_pd *pd, uint64_t address, uint64_t size, int access)
{
	return guard_pointer<ibv_mr>([&](ibv_mr *&mr) {
		return pd ? Nic::reg_mr(pd, address, size, access, mr)
			  : null_argument("pd");
	});
}

int dereg_mr(ibv_mr *mr)
{
	return guard([&] { return mr ? Nic::dereg_mr(mr) : null_argument("mr"); });
}

int modify_qp(ibv_qp *qp, ibv_qp_attr *attr, int mask)
{
	return guard([&] {
		if (!qp || !attr)
			return null_argument(qp ? "attr" : "qp");
		return Qp::of(qp).modify(*attr, mask);
	});
}

int query_qp(ibv_qp *qp, ibv_qp_attr *attr, int mask, ibv_qp_init_attr *init)
{
	return guard([&] {
		if (!qp || !attr || !init)
			return null_argument(!qp ? "qp" : !attr ? "attr" : "init_attr");
		return Qp::of(qp).query(*attr, mask, *init);
	});
}

int qp_seek(ibv_qp *qp, uint32_t sq_index, uint32_t cq_index)
{
	return guard([&] {
		return qp ? Qp::of(qp).seek(sq_index, cq_index) : null_argument("qp");
	});
}

// ---- Jetties ---------------------------------------------------------------------------

int query_eid(ibv_context *context, uint8_t eid[16])
{
	if (!eid)
		return null_argument("eid");
	return with_nic(context, [&](Nic &nic) {
		Gid own;
		int rc = nic.query_gid(1, 1, own);
		if (rc == 0)
			memcpy(eid, &own, sizeof(own));
		return rc;
	});
}

nda_soft_jetty *jetty_create(const nda_soft_jetty_attr *attr)
{
	return guard_pointer<nda_soft_jetty>([&](nda_soft_jetty *&handle) {
		Jetty *jetty = nullptr;
		int rc = attr ? Jetty::create(*attr, jetty) : null_argument("attr");
		if (rc == 0)
			handle = reinterpret_cast<nda_soft_jetty *>(jetty);
		return rc;
	});
}

// Runs body(jetty) with the jetty behind a handle.
template <class Body>
int with_jetty(nda_soft_jetty *handle, Body &&body)
{
	return guard([&] {
		return handle ? body(*reinterpret_cast<Jetty *>(handle))
			      : null_argument("jetty");
	});
}

int jetty_query(nda_soft_jetty *handle, nda_soft_jetty_info *info)
{
	if (!info)
		return null_argument("info");
	return with_jetty(handle, [&](Jetty &jetty) {
		jetty.query(*info);
		return 0;
	});
}

int jetty_connect(nda_soft_jetty *handle, const nda_soft_jetty_peer *peer, uint32_t *tp_id)
{
	if (!peer || !tp_id)
		return null_argument(peer ? "tp_id" : "peer");
	return with_jetty(
		handle, [&](Jetty &jetty) { return jetty.connect(*peer, *tp_id); });
}

int jetty_seek(nda_soft_jetty *handle, uint32_t sq_index, uint32_t cq_index)
{
	return with_jetty(
		handle, [&](Jetty &jetty) { return jetty.seek(sq_index, cq_index); });
}

int jetty_reset(nda_soft_jetty *handle)
{
	return with_jetty(handle, [](Jetty &jetty) { return jetty.reset(); });
}

int jetty_destroy(nda_soft_jetty *handle)
{
	return with_jetty(handle, [](Jetty &jetty) { return Jetty::destroy(&jetty); });
}

int get_async_event(ibv_context *context, ibv_async_event *event)
{
	if (!event)
		return null_argument("event");
	return with_nic(context, [&](Nic &nic) { return nic.next_event(*event); });
}

constexpr struct nda_soft_api make_api()
{
	struct nda_soft_api api = {};
	api.version = NDA_SOFT_API_VERSION;
	api.size = sizeof(api);
	api.error_detail = error_detail;
	api.set_session = set_session;
	api.npu_open = npu_open;
	api.npu_close = npu_close;
	api.npu_alloc = npu_alloc;
	api.npu_free = npu_free;
	api.npu_write = npu_write;
	api.npu_read = npu_read;
	api.npu_copy = npu_copy;
	api.npu_memset = npu_memset;
	api.npu_contains = npu_contains;
	api.npu_db_mmap = npu_db_mmap;
	api.npu_db_unmap = npu_db_unmap;
	api.npu_launch = npu_launch;
	api.npu_wait = npu_wait;
	api.npu_core = npu_core;
	api.npu_step = npu_step;
	api.npu_violations = npu_violations;
	api.nic_open = nic_open;
	api.nic_close = nic_close;
	api.query_device = query_device;
	api.query_port = query_port;
	api.query_gid = query_gid;
	api.alloc_pd = alloc_pd;
	api.dealloc_pd = dealloc_pd;
	api.reg_mr = reg_mr;
	api.dereg_mr = dereg_mr;
	api.modify_qp = modify_qp;
	api.query_qp = query_qp;
	api.qp_seek = qp_seek;
	api.query_eid = query_eid;
	api.jetty_create = jetty_create;
	api.jetty_query = jetty_query;
	api.jetty_connect = jetty_connect;
	api.jetty_reset = jetty_reset;
	api.jetty_seek = jetty_seek;
	api.jetty_destroy = jetty_destroy;
	api.get_async_event = get_async_event;
	return api;
}

} // namespace
} // namespace nda::soft

const struct nda_soft_api nda_soft_api = nda::soft::make_api();
