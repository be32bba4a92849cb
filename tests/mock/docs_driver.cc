// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Opens a device that no kernel knows by the extension driver of docs/extension-driver.md,
// which IBV_EXTEND_DRIVERS names, and creates queues in memory that is counted.
// tests/docs_test.py builds and runs it. Ends with 0, or says what was not as it should be.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "ibv_extend.h"
#include "tests/mock/extend_device.h"

namespace {

int failures;
std::map<uintptr_t, size_t> memory; // given out, by address
int doorbells, fail_after = -1;

void expect(bool good, const char *what)
{
	if (good)
		return;
	failures++;
	fprintf(stderr, "not so: %s\n", what);
}

// The call that is to fail, counted down.
bool fails()
{
	return fail_after >= 0 && fail_after-- == 0;
}

void *alloc(size_t size)
{
	void *ptr = fails() ? nullptr : malloc(size);
	if (ptr)
		memory[reinterpret_cast<uintptr_t>(ptr)] = size;
	return ptr;
}

void release(void *ptr)
{
	expect(memory.erase(reinterpret_cast<uintptr_t>(ptr)) == 1, "memory is freed once");
	free(ptr);
}

void set(void *dst, int value, size_t count)
{
	for (size_t i = 0; i < count; i++)
		static_cast<char *>(dst)[i] = static_cast<char>(value);
}

void *map(doorbell_map_desc *desc)
{
	if (fails())
		return nullptr;
	doorbells++;
	return reinterpret_cast<void *>(desc->hva + 0x1000);
}

int unmap(void *ptr, doorbell_map_desc *desc)
{
	doorbells--;
	expect(reinterpret_cast<uint64_t>(ptr) == desc->hva + 0x1000,
		"a doorbell is unmapped with its descriptor");
	return 0;
}

bool holds(uint64_t addr, uint64_t size)
{
	auto next = memory.upper_bound(addr);
	return next != memory.begin() &&
		addr + size <= std::prev(next)->first + std::prev(next)->second;
}

void expect_queue(const queue_info &queue, const iov_addr_desc &record, uint32_t entries)
{
	uint64_t bytes = uint64_t{queue.qbuf.entry_cnt} * queue.qbuf.entry_size;
	expect(queue.qbuf.entry_cnt == entries, "the ring is as deep as asked for");
	expect(holds(queue.qbuf.base, bytes), "the ring is in memory of the callbacks");
	expect(holds(record.iov_base, record.iov_len), "so is the record");
	expect(record.iov_base >= queue.qbuf.base + bytes, "which is not in the ring");
	expect(queue.db_hw_va.iov_base != 0, "the doorbell is mapped");
}

ibv_extend_ops ops = {alloc, release, set, nullptr, map, unmap};

void create_and_destroy(ibv_context_extend *extend, bool succeeds)
{
	ibv_pd pd = {};
	ibv_cq_init_attr_extend cq_attr = {};
	cq_attr.attr.cqe = 128;
	cq_attr.ops = &ops;
	ibv_cq_extend *cq = ibv_create_cq_extend(extend, &cq_attr);
	ibv_qp_init_attr_extend qp_attr = {};
	qp_attr.pd = &pd;
	qp_attr.attr.qp_type = IBV_QPT_RC;
	qp_attr.attr.cap.max_send_wr = 64;
	qp_attr.attr.cap.max_recv_wr = 1;
	qp_attr.attr.send_cq = qp_attr.attr.recv_cq = cq ? cq->cq : nullptr;
	qp_attr.ops = &ops;
	ibv_qp_extend *qp = cq ? ibv_create_qp_extend(extend, &qp_attr) : nullptr;
	expect((cq && qp) == succeeds, "queues are created, unless a callback fails");
	if (cq)
		expect_queue(cq->cq_info, cq->cq_info.dbr_ci_va, 128);
	if (qp) {
		expect_queue(qp->sq_info, qp->sq_info.dbr_pi_va, 64);
		expect_queue(qp->rq_info, qp->rq_info.dbr_pi_va, 1);
	}
	if (qp)
		expect(ibv_destroy_qp_extend(extend, qp) == 0, "a QP is destroyed");
	if (cq)
		expect(ibv_destroy_cq_extend(extend, cq) == 0, "a CQ is destroyed");
	expect(memory.empty() && doorbells == 0, "nothing is left behind");
}

} // namespace

int main()
{
	extend_mock::Device device("example");
	ibv_context_extend *extend = ibv_open_extend(&device.context);
	if (!extend) {
		perror("ibv_open_extend");
		return 1;
	}
	ibv_device_attr_extend attr = {};
	expect(ibv_query_device_extend(extend, &attr) == 0 &&
			(attr.ext_cap & IBV_EXTEND_DEV_NDA),
		"the device has NDA");
	create_and_destroy(extend, true);
	// Three queues take six calls; each of them may fail.
	for (int i = 0; i < 6; i++) {
		fail_after = i;
		create_and_destroy(extend, false);
		expect(fail_after == -1, "the call that was to fail was made");
	}
	expect(!ibv_create_srq_extend(extend, nullptr) && errno == EINVAL,
		"NULL is refused");
	ibv_srq_init_attr_extend srq_attr = {};
	expect(!ibv_create_srq_extend(extend, &srq_attr) && errno == EOPNOTSUPP,
		"there are no SRQs");
	expect(ibv_close_extend(extend) == 0, "the context is closed");
	return failures != 0;
}
