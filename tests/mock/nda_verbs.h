// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// A kernel with RDMA devices, its libibverbs, and an extension driver for "rxe", all of
// which exist in this process alone. Any call can be made to fail, and what was made and
// not released is counted.
#ifndef NDA_TESTS_MOCK_NDA_VERBS_H
#define NDA_TESTS_MOCK_NDA_VERBS_H

#include <cerrno>
#include <cstring>
#include <deque>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

#include <ibv_extend.h>

#include "lib/nda/verbs_nic.h"
#include "tests/mock/extend_device.h"
#include "tests/mock/nda_kernel.h"

namespace nda::test {

inline ibv_gid_entry gid_entry(uint32_t index, const char *address,
	uint32_t type = IBV_GID_TYPE_ROCE_V2, uint32_t port = 1)
{
	ibv_gid_entry e = {};
	e.gid_index = index;
	e.port_num = port;
	e.gid_type = type;
	EXPECT_TRUE(parse_gid(address, e.gid));
	return e;
}

class FakeVerbs {
public:
	FakeVerbs()
	{
		state() = State();
		set_verbs_for_test(&table);
		add("rxe0", "rxe", 7);
	}
	~FakeVerbs()
	{
		set_verbs_for_test(nullptr);
		EXPECT_EQ(state().live, 0) << "left behind";
		state() = State();
	}
	FakeVerbs(const FakeVerbs &) = delete;
	FakeVerbs &operator=(const FakeVerbs &) = delete;

	struct DmabufMr {
		uint64_t addr; // what the dma-buf has at the offset
		uint64_t offset;
		uint64_t size;
		uint64_t iova;
	};
	struct PlainMr {
		uint64_t addr; // of the pages
		uint64_t size;
		uint64_t iova;
	};
	// What the kernel and the driver are like; to be set before they are asked.
	struct State {
		std::vector<RdmaDevice> devices;
		// Of libibverbs: the name that it has for a device may be an old one.
		std::deque<std::unique_ptr<extend_mock::Device>> verbs;
		std::vector<int> indices;
		std::vector<ibv_gid_entry> gids = {
			gid_entry(0, "fe80::1"), gid_entry(1, "10.9.9.1")};
		ibv_port_state port_state = IBV_PORT_ACTIVE;
		ibv_mtu mtu = IBV_MTU_4096;
		uint8_t link_layer = IBV_LINK_LAYER_ETHERNET;
		uint32_t ext_cap = IBV_EXTEND_DEV_NDA;
		int modify_extend_result = 0;   // of the extension driver
		int rtr_result = 0;             // of ibv_modify_qp to RTR
		bool software_doorbell = false; // queues have no register
		const char *release = "6.1.0-37-amd64";
		// Ranges that are not ordinary pages, for which a peer-memory client stands
		// in, or not.
		std::vector<FakeKernel::Range> device_memory;
		bool peer_client = false;
		int dmabuf_error = EOPNOTSUPP; // of registering one, or 0
		bool dmabuf_pins = false;      // it takes only those that it may keep

		// What it was asked.
		std::vector<ibv_qp_attr> modified;
		uint32_t udp_source_port = 0;
		std::vector<DmabufMr> dmabuf_mrs;
		std::vector<PlainMr> plain_mrs;
		int live = 0;
		long calls = 0;
		long fail_at = 0; // the call that fails, 0: none
		std::string failed;
	};
	static State &state()
	{
		static State s;
		return s;
	}

	static void add(const char *name, const char *driver, uint32_t index,
		const char *verbs_name = nullptr)
	{
		RdmaDevice d;
		d.index = index;
		d.name = name;
		d.node_type = IBV_NODE_CA;
		d.n_ports = 1;
		state().devices.push_back(d);
		state().verbs.push_back(std::make_unique<extend_mock::Device>(
			driver, verbs_name ? verbs_name : name));
		state().indices.push_back(int(index));
	}

	// The call of this name, or the n-th that can fail, fails from now on or once.
	static bool due(const char *name)
	{
		State &s = state();
		s.calls++;
		if (s.failed != name && s.calls != s.fail_at)
			return false;
		errno = ENOMEM;
		return true;
	}

private:
	template <class T>
	static T *made(T *object)
	{
		state().live++;
		return object;
	}
	template <class T>
	static int release(T *object)
	{
		state().live--;
		delete object;
		return 0;
	}

	// Addresses that nobody follows here.
	static queue_info ring(uint32_t entries, uint32_t size)
	{
		queue_info q = {};
		q.qbuf.base = 0x10180;
		q.qbuf.entry_cnt = entries;
		q.qbuf.entry_size = size;
		q.dbr_pi_va = {0x10080, 4};
		q.dbr_ci_va = {0x10100, 4};
		return q;
	}

	// Sees to it that the extension driver is registered.
	static inline const bool registered = [] {
		static ibv_context_extend_ops ops = {};
		ops.version = IBV_EXTEND_DRIVER_VERSION_V2;
		ops.create_cq = [](ibv_context *context, ibv_cq_init_attr_extend *init) {
			if (due("create_cq"))
				return static_cast<ibv_cq_extend *>(nullptr);
			auto *cq = new ibv_cq_extend();
			cq->cq = new ibv_cq();
			cq->cq->context = context;
			cq->cq_info = ring(init->attr.cqe, 64);
			return made(cq);
		};
		ops.create_qp = [](ibv_context *context, ibv_qp_init_attr_extend *init) {
			if (due("create_qp"))
				return static_cast<ibv_qp_extend *>(nullptr);
			auto *qp = new ibv_qp_extend();
			qp->qp = new ibv_qp();
			qp->qp->context = context;
			qp->qp->qp_num = 17;
			qp->sq_info = ring(init->attr.cap.max_send_wr, 256);
			static nda_software_doorbell software = {
				NDA_SOFTWARE_DOORBELL_MAGIC, [](void *) { return 0; },
				nullptr};
			if (state().software_doorbell)
				qp->sq_info.resv[0] = reinterpret_cast<uint64_t>(&software);
			else
				qp->sq_info.db_hw_va = {0x50000, 8};
			return made(qp);
		};
		ops.destroy_cq = [](ibv_cq_extend *cq) {
			delete cq->cq;
			return release(cq);
		};
		ops.destroy_qp = [](ibv_qp_extend *qp) {
			delete qp->qp;
			return release(qp);
		};
		ops.query_device = [](ibv_context *, ibv_device_attr_extend *attr) {
			attr->ext_cap = state().ext_cap;
			return due("query_extension") ? -ENOMEM : 0;
		};
		ops.modify_qp = [](ibv_context *, ibv_qp_attr_extend *attr, int mask) {
			if (mask == IBV_QP_ATTR_EXTEND_UDP_SRC_PORT)
				state().udp_source_port = attr->udp_src_port;
			return state().modify_extend_result;
		};
		static verbs_device_extend_ops driver = {};
		driver.name = "rxe";
		driver.alloc_context = [](ibv_context *context) {
			return due("alloc_context")
				? nullptr
				: made(new ibv_context_extend{context, &ops});
		};
		driver.free_context = [](ibv_context_extend *context) { release(context); };
		verbs_register_driver_extend(&driver);
		return true;
	}();

	static int devices(std::vector<RdmaDevice> &out)
	{
		if (due("devices"))
			return -EIO;
		out = state().devices;
		return 0;
	}
	static int port(const RdmaDevice &, uint32_t, RdmaPort &out)
	{
		out.net_device = "eth7";
		return 0;
	}
	static ibv_device **get_device_list(int *count)
	{
		if (due("get_device_list"))
			return nullptr;
		*count = int(state().verbs.size());
		auto **list = new ibv_device *[state().verbs.size() + 1]();
		for (size_t i = 0; i < state().verbs.size(); i++)
			list[i] = &state().verbs[i]->verbs.device;
		return made(list);
	}
	static void free_device_list(ibv_device **list)
	{
		state().live--;
		delete[] list;
	}
	static int get_device_index(ibv_device *device)
	{
		for (size_t i = 0; i < state().verbs.size(); i++)
			if (device == &state().verbs[i]->verbs.device)
				return state().indices[i];
		return -1;
	}
	static ibv_context *open_device(ibv_device *device)
	{
		if (due("open_device"))
			return nullptr;
		auto *context = new ibv_context();
		context->device = device;
		return made(context);
	}
	static int query_device(ibv_context *, ibv_device_attr *attr)
	{
		*attr = {};
		attr->phys_port_cnt = 1;
		attr->max_qp_rd_atom = attr->max_qp_init_rd_atom = 128;
		return due("query_device") ? ENOMEM : 0;
	}
	static int query_port(ibv_context *, uint8_t, ibv_port_attr *attr)
	{
		*attr = {};
		attr->state = state().port_state;
		attr->active_mtu = state().mtu;
		attr->gid_tbl_len = 16;
		attr->link_layer = state().link_layer;
		return due("query_port") ? ENOMEM : 0;
	}
	static ssize_t query_gid_table(ibv_context *, ibv_gid_entry *entries, size_t max)
	{
		if (due("query_gid_table"))
			return -ENOMEM;
		EXPECT_LE(state().gids.size(), max);
		std::copy(state().gids.begin(), state().gids.end(), entries);
		return ssize_t(state().gids.size());
	}
	static int modify_qp(ibv_qp *, ibv_qp_attr *attr, int)
	{
		if (due("modify_qp"))
			return ENOMEM;
		if (attr->qp_state == IBV_QPS_RTR && state().rtr_result)
			return state().rtr_result;
		state().modified.push_back(*attr);
		return 0;
	}
	static ibv_mr *new_mr(uint64_t addr, size_t size)
	{
		auto *mr = new ibv_mr();
		mr->addr = reinterpret_cast<void *>(addr);
		mr->length = size;
		mr->lkey = 0xfedcba98;
		mr->rkey = 0x12345678;
		return made(mr);
	}
	static ibv_mr *reg_mr(ibv_pd *, void *addr, size_t size, uint64_t iova, int)
	{
		const auto at = reinterpret_cast<uint64_t>(addr);
		if (due("reg_mr"))
			return nullptr;
		for (const FakeKernel::Range &r : state().device_memory) {
			if (at + size <= r.va || at >= r.va + r.bytes ||
				state().peer_client)
				continue;
			errno = EFAULT;
			return nullptr;
		}
		state().plain_mrs.push_back({at, size, iova});
		return new_mr(iova, size);
	}
	static ibv_mr *reg_dmabuf_mr(
		ibv_pd *, uint64_t offset, size_t size, uint64_t iova, int fd, int)
	{
		State &s = state();
		if (due("reg_dmabuf_mr"))
			return nullptr;
		const FakeKernel::Range *range = FakeKernel::dmabuf_of(fd);
		const uint64_t page = host_page_bytes();
		errno = s.dmabuf_error;
		if (s.dmabuf_pins && FakeKernel::state().exports.back().flags == 0)
			errno = EOPNOTSUPP;
		else if (!range)
			errno = EBADF;
		else if (offset > range->bytes || size > range->bytes - offset ||
			offset % page != iova % page)
			errno = EINVAL;
		if (errno)
			return nullptr;
		s.dmabuf_mrs.push_back({range->va + offset, offset, size, iova});
		return new_mr(iova, size);
	}

	static int uname(utsname *name)
	{
		snprintf(name->release, sizeof(name->release), "%s", state().release);
		return 0;
	}
	static inline const VerbsApi table = {devices, port, get_device_list,
		free_device_list, get_device_index, open_device, release<ibv_context>,
		[](ibv_context *) {
			return due("alloc_pd") ? nullptr : made(new ibv_pd());
		},
		release<ibv_pd>, query_device, query_port, query_gid_table, modify_qp,
		reg_mr, reg_dmabuf_mr, release<ibv_mr>, uname};
};

} // namespace nda::test

#endif
