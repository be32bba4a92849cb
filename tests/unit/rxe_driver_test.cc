// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The extension driver of Soft-RoCE, by the calls of libibv_extend, over a kernel that is
// played.
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <pthread.h>
#include <sys/mman.h>
#include <thread>

#include <gtest/gtest.h>

#include <ibv_extend.h>
#include <nda/driver.h>

#include "tests/mock/extend_device.h"
#include "tests/mock/rxe_kernel.h"

namespace {

// NPU memory that is the host's, and how much of it is out.
std::atomic<int> allocated{0};

void *host_alloc(size_t size)
{
	allocated++;
	return calloc(1, size);
}
void host_free(void *ptr)
{
	allocated--;
	free(ptr);
}
void host_memset(void *dst, int value, size_t count)
{
	memset(dst, value, count);
}

struct Bench {
	rxe_mock::Kernel kernel;
	extend_mock::Device device{"rxe", "rxe0"};
	ibv_context_extend *extend;
	ibv_pd pd = {};
	ibv_extend_ops ops = {};

	Bench()
	{
		device.context.cmd_fd = rxe_mock::Kernel::fd;
		extend = ibv_open_extend(&device.context);
		pd.context = &device.context;
		pd.handle = 5;
		ops.alloc = host_alloc;
		ops.free = host_free;
		(ops.memset_s) = host_memset;
		allocated = 0;
	}
	~Bench()
	{
		EXPECT_EQ(ibv_close_extend(extend), 0);
		EXPECT_TRUE(kernel.clean()) << kernel.objects.size() << " objects, "
					    << kernel.mappings.size() << " mappings left";
		EXPECT_EQ(allocated, 0) << "NPU memory left";
	}

	ibv_cq_init_attr_extend cq_attr(uint32_t cqe = 100)
	{
		ibv_cq_init_attr_extend attr = {};
		attr.attr.cqe = cqe;
		attr.ops = &ops;
		return attr;
	}
	ibv_cq_extend *cq(uint32_t cqe = 100)
	{
		ibv_cq_init_attr_extend attr = cq_attr(cqe);
		return ibv_create_cq_extend(extend, &attr);
	}
	ibv_qp_init_attr_extend qp_attr(ibv_cq *cq)
	{
		ibv_qp_init_attr_extend attr = {};
		attr.pd = &pd;
		attr.attr.send_cq = cq;
		attr.attr.recv_cq = cq;
		attr.attr.cap.max_send_wr = 100;
		attr.attr.cap.max_recv_wr = 1;
		attr.attr.cap.max_send_sge = 1;
		attr.attr.cap.max_recv_sge = 1;
		attr.attr.qp_type = IBV_QPT_RC;
		attr.ops = &ops;
		return attr;
	}
	ibv_srq_init_attr_extend srq_attr()
	{
		ibv_srq_init_attr_extend attr = {};
		attr.pd = &pd;
		attr.attr.attr.max_wr = 30;
		attr.attr.attr.max_sge = 2;
		attr.ops = &ops;
		return attr;
	}
	// A CQ that somebody else made.
	ibv_cq foreign_cq()
	{
		ibv_cq cq = {};
		cq.context = &device.context;
		cq.handle = 3;
		return cq;
	}
};

bool mapped_at(const rxe_mock::Kernel &kernel, uint64_t addr)
{
	return kernel.mappings.count(reinterpret_cast<void *>(addr)) == 1;
}

TEST(RxeDriver, IsFoundByItsNameAndSaysWhatItCan)
{
	Bench b;
	ASSERT_NE(b.extend, nullptr);
	EXPECT_EQ(b.extend->ops->version, IBV_EXTEND_DRIVER_VERSION_V2);
	ibv_device_attr_extend attr = {};
	EXPECT_EQ(ibv_query_device_extend(b.extend, &attr), 0);
	EXPECT_EQ(attr.ext_cap, uint32_t{IBV_EXTEND_DEV_NDR | IBV_EXTEND_DEV_NDA});
}

TEST(RxeDriver, ACqIsTheKernelsRingAndItsIndices)
{
	Bench b;
	int cookie = 0;
	ibv_cq_init_attr_extend attr = b.cq_attr(100);
	attr.attr.cq_context = &cookie;
	attr.attr.comp_vector = 3;
	ibv_cq_extend *cq = ibv_create_cq_extend(b.extend, &attr);
	ASSERT_NE(cq, nullptr);
	EXPECT_EQ(b.kernel.cq->cqe, 100u);
	EXPECT_EQ(b.kernel.cq->comp_vector, 3u);
	EXPECT_EQ(b.kernel.cq->comp_channel, -1);
	EXPECT_EQ(b.kernel.cq->user_handle, reinterpret_cast<uint64_t>(cq->cq));
	EXPECT_EQ(cq->cq->context, &b.device.context);
	EXPECT_EQ(cq->cq->cq_context, &cookie);
	EXPECT_EQ(cq->cq->channel, nullptr);
	EXPECT_EQ(cq->cq->cqe, 127);
	EXPECT_EQ(b.kernel.objects.count(cq->cq->handle), 1u);

	const queue_info &q = cq->cq_info;
	const uint64_t ring = q.qbuf.base - 384;
	EXPECT_TRUE(mapped_at(b.kernel, ring));
	EXPECT_EQ(q.qbuf.entry_cnt, 128u);
	EXPECT_EQ(q.qbuf.entry_size, 128u);
	EXPECT_EQ(q.dbr_pi_va.iov_base, ring + 128);
	EXPECT_EQ(q.dbr_pi_va.iov_len, 4u);
	EXPECT_EQ(q.dbr_ci_va.iov_base, ring + 256);
	EXPECT_EQ(q.db_hw_va.iov_base, 0u);
	EXPECT_EQ(ibv_destroy_cq_extend(b.extend, cq), 0);
}

TEST(RxeDriver, AQpIsTheKernelsRingsAndASoftwareDoorbell)
{
	Bench b;
	int cookie = 0;
	ibv_cq send = b.foreign_cq(), recv = b.foreign_cq();
	recv.handle = 4;
	ibv_qp_init_attr_extend attr = b.qp_attr(&send);
	attr.attr.recv_cq = &recv;
	attr.attr.qp_context = &cookie;
	attr.attr.cap.max_inline_data = 40;
	ibv_qp_extend *qp = ibv_create_qp_extend(b.extend, &attr);
	ASSERT_NE(qp, nullptr);
	EXPECT_EQ(b.kernel.qp->pd_handle, 5u);
	EXPECT_EQ(b.kernel.qp->send_cq_handle, 3u);
	EXPECT_EQ(b.kernel.qp->recv_cq_handle, 4u);
	EXPECT_EQ(b.kernel.qp->max_send_wr, 100u);
	EXPECT_EQ(b.kernel.qp->max_inline_data, 40u);
	EXPECT_EQ(b.kernel.qp->qp_type, IBV_QPT_RC);
	EXPECT_EQ(b.kernel.qp->is_srq, 0);
	EXPECT_EQ(b.kernel.qp->user_handle, reinterpret_cast<uint64_t>(qp->qp));
	EXPECT_EQ(attr.attr.cap.max_send_wr, 127u);
	EXPECT_EQ(attr.attr.cap.max_inline_data, 40u);

	const uint64_t ring = qp->sq_info.qbuf.base - 384;
	EXPECT_TRUE(mapped_at(b.kernel, ring));
	EXPECT_EQ(qp->sq_info.qbuf.entry_cnt, 128u);
	EXPECT_EQ(qp->sq_info.qbuf.entry_size, 256u);
	EXPECT_EQ(qp->sq_info.dbr_pi_va.iov_base, ring + 128);
	EXPECT_EQ(qp->sq_info.dbr_ci_va.iov_base, ring + 256);
	EXPECT_EQ(qp->sq_info.db_hw_va.iov_base, 0u);
	EXPECT_TRUE(mapped_at(b.kernel, qp->rq_info.qbuf.base - 384));
	EXPECT_EQ(qp->rq_info.qbuf.entry_cnt, 2u);
	EXPECT_EQ(qp->rq_info.qbuf.entry_size, 64u);
	EXPECT_EQ(ibv_destroy_qp_extend(b.extend, qp), 0);
}

TEST(RxeDriver, RingingTellsTheKernelOfTheQp)
{
	Bench b;
	ibv_cq cq = b.foreign_cq();
	ibv_qp_init_attr_extend attr = b.qp_attr(&cq);
	ibv_qp_extend *qp = ibv_create_qp_extend(b.extend, &attr);
	ASSERT_NE(qp, nullptr);
	const auto *bell =
		reinterpret_cast<const nda_software_doorbell *>(qp->sq_info.resv[0]);
	ASSERT_NE(bell, nullptr);
	EXPECT_EQ(bell->magic, NDA_SOFTWARE_DOORBELL_MAGIC);
	EXPECT_EQ(bell->ring(bell->cookie), 0);
	EXPECT_EQ(b.kernel.kicked, std::vector<uint32_t>{qp->qp->handle});
	b.kernel.kick_errno = EINVAL;
	EXPECT_EQ(bell->ring(bell->cookie), -EINVAL);
	EXPECT_EQ(ibv_destroy_qp_extend(b.extend, qp), 0);
}

// ibv_modify_qp, ibv_query_qp and asynchronous events need this, and what reads on, as
// ibv_qp_to_qp_ex does, has to find nothing.
TEST(RxeDriver, ThePublicPartOfAQpIsComplete)
{
	Bench b;
	int cookie = 0;
	ibv_cq cq = b.foreign_cq();
	ibv_qp_init_attr_extend attr = b.qp_attr(&cq);
	attr.attr.qp_context = &cookie;
	ibv_qp_extend *extend = ibv_create_qp_extend(b.extend, &attr);
	ASSERT_NE(extend, nullptr);
	ibv_qp *qp = extend->qp;
	EXPECT_EQ(qp->context, &b.device.context);
	EXPECT_EQ(qp->qp_context, &cookie);
	EXPECT_EQ(qp->pd, &b.pd);
	EXPECT_EQ(qp->send_cq, &cq);
	EXPECT_EQ(qp->recv_cq, &cq);
	EXPECT_EQ(qp->srq, nullptr);
	EXPECT_EQ(b.kernel.objects.count(qp->handle), 1u);
	EXPECT_EQ(qp->qp_num, 17u);
	EXPECT_EQ(qp->state, IBV_QPS_RESET);
	EXPECT_EQ(qp->qp_type, IBV_QPT_RC);
	EXPECT_EQ(qp->events_completed, 0u);
	EXPECT_EQ(pthread_mutex_trylock(&qp->mutex), 0);
	EXPECT_EQ(pthread_mutex_unlock(&qp->mutex), 0);
	const uint8_t zero[sizeof(ibv_qp_ex) - sizeof(ibv_qp) + 64] = {};
	EXPECT_EQ(memcmp(reinterpret_cast<uint8_t *>(qp) + sizeof(*qp), zero, sizeof(zero)),
		0);
	EXPECT_EQ(ibv_destroy_qp_extend(b.extend, extend), 0);
}

TEST(RxeDriver, AnSrqIsTheKernelsRingAndAQpOverItHasNoRq)
{
	Bench b;
	ibv_srq_init_attr_extend srq_attr = b.srq_attr();
	ibv_srq_extend *srq = ibv_create_srq_extend(b.extend, &srq_attr);
	ASSERT_NE(srq, nullptr);
	EXPECT_EQ(b.kernel.srq->max_wr, 30u);
	EXPECT_EQ(b.kernel.srq->max_sge, 2u);
	EXPECT_EQ(b.kernel.srq->user_handle, reinterpret_cast<uint64_t>(srq->srq));
	EXPECT_EQ(srq->srq->pd, &b.pd);
	EXPECT_TRUE(mapped_at(b.kernel, srq->srq_info.qbuf.base - 384));
	EXPECT_EQ(srq->srq_info.qbuf.entry_cnt, 32u);
	EXPECT_EQ(srq->srq_info.qbuf.entry_size, 128u);

	ibv_cq cq = b.foreign_cq();
	ibv_qp_init_attr_extend qp_attr = b.qp_attr(&cq);
	qp_attr.attr.srq = srq->srq;
	ibv_qp_extend *qp = ibv_create_qp_extend(b.extend, &qp_attr);
	ASSERT_NE(qp, nullptr);
	EXPECT_EQ(b.kernel.qp->is_srq, 1);
	EXPECT_EQ(b.kernel.qp->srq_handle, srq->srq->handle);
	EXPECT_EQ(qp->rq_info.qbuf.base, 0u);
	EXPECT_EQ(b.kernel.mappings.size(), 2u);
	EXPECT_EQ(ibv_destroy_qp_extend(b.extend, qp), 0);
	EXPECT_EQ(ibv_destroy_srq_extend(b.extend, srq), 0);
}

// ---- Failures

// create() with its k-th step failing, for each k until it works. Nothing may be left.
void fail_each_step(Bench &b, int steps, const std::function<void *()> &create,
	const std::function<int(void *)> &destroy)
{
	for (int k = 0; k < steps; k++) {
		b.kernel.fail_at = k;
		b.kernel.fail_errno = 30 + k;
		b.kernel.calls_made = 0;
		errno = 0;
		EXPECT_EQ(create(), nullptr) << "step " << k;
		EXPECT_EQ(errno, 30 + k);
		EXPECT_TRUE(b.kernel.clean()) << "step " << k;
		EXPECT_EQ(allocated, 0) << "step " << k;
	}
	b.kernel.fail_at = steps;
	b.kernel.calls_made = 0;
	void *object = create();
	ASSERT_NE(object, nullptr);
	EXPECT_EQ(b.kernel.calls_made, steps) << "not all steps were made to fail";
	EXPECT_EQ(destroy(object), 0);
}

TEST(RxeDriverFailure, OfAnyStepOfACqLeavesNothing)
{
	Bench b;
	fail_each_step(
		b, 2, [&] { return b.cq(); },
		[&](void *cq) {
			return ibv_destroy_cq_extend(
				b.extend, static_cast<ibv_cq_extend *>(cq));
		});
}

TEST(RxeDriverFailure, OfAnyStepOfAQpLeavesNothing)
{
	Bench b;
	ibv_cq cq = b.foreign_cq();
	fail_each_step(
		b, 3,
		[&] {
			ibv_qp_init_attr_extend attr = b.qp_attr(&cq);
			return ibv_create_qp_extend(b.extend, &attr);
		},
		[&](void *qp) {
			return ibv_destroy_qp_extend(
				b.extend, static_cast<ibv_qp_extend *>(qp));
		});
}

TEST(RxeDriverFailure, OfAnyStepOfAnSrqLeavesNothing)
{
	Bench b;
	fail_each_step(
		b, 2,
		[&] {
			ibv_srq_init_attr_extend attr = b.srq_attr();
			return ibv_create_srq_extend(b.extend, &attr);
		},
		[&](void *srq) {
			return ibv_destroy_srq_extend(
				b.extend, static_cast<ibv_srq_extend *>(srq));
		});
}

TEST(RxeDriverFailure, ARingThatCannotBeIsRefused)
{
	using Spoil = void (*)(rxe_queue_buf *, mminfo *);
	const Spoil spoils[] = {
		[](rxe_queue_buf *h, mminfo *) { h->log2_elem_size = 5; },
		[](rxe_queue_buf *h, mminfo *) { h->log2_elem_size = 8; },
		[](rxe_queue_buf *h, mminfo *) { h->log2_elem_size = 200; },
		[](rxe_queue_buf *h, mminfo *) { h->index_mask = 126; },
		[](rxe_queue_buf *h, mminfo *) { h->index_mask = 255; },
		[](rxe_queue_buf *h, mminfo *) { h->index_mask = UINT32_MAX; },
		[](rxe_queue_buf *, mminfo *where) { where->size = 0; },
		[](rxe_queue_buf *, mminfo *where) { where->size = 383; },
	};
	for (const Spoil spoil : spoils) {
		Bench b;
		b.kernel.spoil = spoil;
		errno = 0;
		EXPECT_EQ(b.cq(), nullptr);
		EXPECT_EQ(errno, EPROTO) << &spoil - spoils;
	}
}

// ---- Arguments

int cq_errno(const std::function<void(Bench &, ibv_cq_init_attr_extend &)> &change)
{
	Bench b;
	ibv_cq_init_attr_extend attr = b.cq_attr();
	change(b, attr);
	errno = 0;
	EXPECT_EQ(ibv_create_cq_extend(b.extend, &attr), nullptr);
	EXPECT_EQ(b.kernel.calls_made, 0);
	return errno;
}

TEST(RxeDriverArguments, OfACqThatAreWrongOrNotSupported)
{
	using Attr = ibv_cq_init_attr_extend;
	ibv_comp_channel channel = {};
	EXPECT_EQ(cq_errno([](Bench &, Attr &a) { a.attr.cqe = 0; }), EINVAL);
	EXPECT_EQ(cq_errno([](Bench &, Attr &a) { a.attr.cqe = UINT32_MAX; }), EINVAL);
	EXPECT_EQ(cq_errno([](Bench &, Attr &a) { a.ops = nullptr; }), EINVAL);
	EXPECT_EQ(cq_errno([](Bench &b, Attr &) { b.ops.alloc = nullptr; }), EINVAL);
	EXPECT_EQ(cq_errno([](Bench &b, Attr &) { b.ops.free = nullptr; }), EINVAL);
	EXPECT_EQ(cq_errno([](Bench &b, Attr &) { (b.ops.memset_s) = nullptr; }), EINVAL);
	EXPECT_EQ(cq_errno([](Bench &, Attr &a) { a.cq_cap_flag = 1; }), EOPNOTSUPP);
	EXPECT_EQ(
		cq_errno([&](Bench &, Attr &a) { a.attr.channel = &channel; }), EOPNOTSUPP);
	EXPECT_EQ(cq_errno([](Bench &, Attr &a) {
		a.attr.wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
	}),
		EOPNOTSUPP);
	EXPECT_EQ(cq_errno([](Bench &, Attr &a) {
		a.attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
	}),
		EOPNOTSUPP);
	EXPECT_EQ(cq_errno([](Bench &, Attr &a) { a.type = QUEUE_BUF_DMA_MODE_INDEP_UB; }),
		EOPNOTSUPP);
}

int qp_errno(const std::function<void(Bench &, ibv_qp_init_attr_extend &)> &change)
{
	Bench b;
	ibv_cq cq = b.foreign_cq();
	ibv_qp_init_attr_extend attr = b.qp_attr(&cq);
	change(b, attr);
	errno = 0;
	EXPECT_EQ(ibv_create_qp_extend(b.extend, &attr), nullptr);
	EXPECT_EQ(b.kernel.calls_made, 0);
	return errno;
}

TEST(RxeDriverArguments, OfAQpThatAreWrongOrNotSupported)
{
	using Attr = ibv_qp_init_attr_extend;
	ibv_context other = {};
	ibv_pd foreign_pd = {};
	ibv_cq foreign_cq = {};
	ibv_srq foreign_srq = {};
	foreign_pd.context = foreign_cq.context = foreign_srq.context = &other;
	EXPECT_EQ(qp_errno([](Bench &, Attr &a) { a.pd = nullptr; }), EINVAL);
	EXPECT_EQ(qp_errno([&](Bench &, Attr &a) { a.pd = &foreign_pd; }), EINVAL);
	EXPECT_EQ(qp_errno([](Bench &, Attr &a) { a.attr.send_cq = nullptr; }), EINVAL);
	EXPECT_EQ(qp_errno([](Bench &, Attr &a) { a.attr.recv_cq = nullptr; }), EINVAL);
	EXPECT_EQ(
		qp_errno([&](Bench &, Attr &a) { a.attr.recv_cq = &foreign_cq; }), EINVAL);
	EXPECT_EQ(qp_errno([&](Bench &, Attr &a) { a.attr.srq = &foreign_srq; }), EINVAL);
	EXPECT_EQ(qp_errno([](Bench &, Attr &a) { a.attr.cap.max_send_wr = 0; }), EINVAL);
	EXPECT_EQ(qp_errno([](Bench &, Attr &a) { a.attr.cap.max_send_sge = 0; }), EINVAL);
	EXPECT_EQ(qp_errno([](Bench &, Attr &a) { a.ops = nullptr; }), EINVAL);
	EXPECT_EQ(qp_errno([](Bench &, Attr &a) { a.attr.qp_type = IBV_QPT_UD; }),
		EOPNOTSUPP);
	EXPECT_EQ(qp_errno([](Bench &, Attr &a) { a.qp_cap_flag = QP_ENABLE_DIRECT_WQE; }),
		EOPNOTSUPP);
	EXPECT_EQ(qp_errno([](Bench &, Attr &a) { a.type = QUEUE_BUF_DMA_MODE_INDEP_UB; }),
		EOPNOTSUPP);
}

TEST(RxeDriverArguments, OfAnSrqThatAreWrongOrNotSupported)
{
	const auto srq_errno =
		[](const std::function<void(ibv_srq_init_attr_extend &)> &change) {
			Bench b;
			ibv_srq_init_attr_extend attr = b.srq_attr();
			change(attr);
			errno = 0;
			EXPECT_EQ(ibv_create_srq_extend(b.extend, &attr), nullptr);
			EXPECT_EQ(b.kernel.calls_made, 0);
			return errno;
		};
	using Attr = ibv_srq_init_attr_extend;
	EXPECT_EQ(srq_errno([](Attr &a) { a.pd = nullptr; }), EINVAL);
	EXPECT_EQ(srq_errno([](Attr &a) { a.attr.attr.max_wr = 0; }), EINVAL);
	EXPECT_EQ(srq_errno([](Attr &a) { a.attr.attr.max_sge = 0; }), EINVAL);
	EXPECT_EQ(srq_errno([](Attr &a) { a.srq_cap_flag = 1; }), EOPNOTSUPP);
	EXPECT_EQ(srq_errno([](Attr &a) { a.type = QUEUE_BUF_DMA_MODE_INDEP_UB; }),
		EOPNOTSUPP);
}

TEST(RxeDriverArguments, WhatTheKernelRefusesIsHandedOn)
{
	Bench b;
	b.kernel.fail_at = 0;
	b.kernel.fail_errno = EINVAL;
	errno = 0;
	EXPECT_EQ(b.cq(INT32_MAX), nullptr);
	EXPECT_EQ(errno, EINVAL);
}

// ---- NPUs

// Memory that no host access reaches.
void *far_memory = nullptr;
void *far_alloc(size_t size)
{
	allocated++;
	far_memory = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return far_memory;
}
void far_free(void *ptr)
{
	allocated--;
	EXPECT_EQ(ptr, far_memory);
	munmap(ptr, 4096);
}
void far_memset(void *, int, size_t) {}

TEST(RxeDriverNpu, WhoseMemoryTheHostCannotReachIsRefused)
{
	EXPECT_EQ(cq_errno([](Bench &b, ibv_cq_init_attr_extend &) {
		b.ops.alloc = far_alloc;
		b.ops.free = far_free;
		(b.ops.memset_s) = far_memset;
	}),
		EOPNOTSUPP);
}

TEST(RxeDriverNpu, WhoseAddressesAreOtherMemoryOnTheHostIsRefused)
{
	EXPECT_EQ(qp_errno([](Bench &b, ibv_qp_init_attr_extend &) {
		(b.ops.memset_s) = far_memset;
	}),
		EOPNOTSUPP);
}

TEST(RxeDriverNpu, WithoutMemoryIsRefused)
{
	EXPECT_EQ(cq_errno([](Bench &b, ibv_cq_init_attr_extend &) {
		b.ops.alloc = [](size_t) -> void * { return nullptr; };
	}),
		ENOMEM);
}

// ---- Destroying

TEST(RxeDriverDestroy, ThatTheKernelRefusesLeavesTheObjectWhole)
{
	Bench b;
	ibv_cq_extend *cq = b.cq();
	ASSERT_NE(cq, nullptr);
	b.kernel.destroy_errno = EBUSY;
	EXPECT_EQ(ibv_destroy_cq_extend(b.extend, cq), -EBUSY);
	EXPECT_TRUE(mapped_at(b.kernel, cq->cq_info.qbuf.base - 384));
	b.kernel.destroy_errno = 0;
	EXPECT_EQ(ibv_destroy_cq_extend(b.extend, cq), 0);
}

TEST(RxeDriverDestroy, OfADeviceThatIsGoneSucceeds)
{
	Bench b;
	ibv_cq_extend *cq = b.cq();
	ASSERT_NE(cq, nullptr);
	b.kernel.destroy_errno = EIO;
	EXPECT_EQ(ibv_destroy_cq_extend(b.extend, cq), 0);
}

// As ibv_ack_async_event does it.
TEST(RxeDriverDestroy, WaitsUntilItsEventsAreAcknowledged)
{
	Bench b;
	ibv_cq cq = b.foreign_cq();
	ibv_qp_init_attr_extend attr = b.qp_attr(&cq);
	ibv_qp_extend *extend = ibv_create_qp_extend(b.extend, &attr);
	ASSERT_NE(extend, nullptr);
	ibv_qp *qp = extend->qp;
	b.kernel.events = 2;
	std::atomic<bool> acknowledged{false};
	// Held until destroying waits for it, or has gone on too early.
	ASSERT_EQ(pthread_mutex_lock(&qp->mutex), 0);
	std::thread destroyer([&] {
		EXPECT_EQ(ibv_destroy_qp_extend(b.extend, extend), 0);
		EXPECT_TRUE(acknowledged);
	});
	qp->events_completed++;
	pthread_cond_signal(&qp->cond);
	pthread_mutex_unlock(&qp->mutex);
	ASSERT_EQ(pthread_mutex_lock(&qp->mutex), 0);
	acknowledged = true;
	qp->events_completed++;
	pthread_cond_signal(&qp->cond);
	pthread_mutex_unlock(&qp->mutex);
	destroyer.join();
}

// ---- What Soft-RoCE does not have

TEST(RxeDriverQp, HasNoExtendedAttributes)
{
	Bench b;
	ibv_cq cq = b.foreign_cq();
	ibv_qp_init_attr_extend attr = b.qp_attr(&cq);
	ibv_qp_extend *qp = ibv_create_qp_extend(b.extend, &attr);
	ASSERT_NE(qp, nullptr);
	ibv_qp_attr_extend change = {};
	change.qp = qp->qp;
	change.udp_src_port = 0xc001;
	for (int bit = 0; 1 << bit < IBV_QP_ATTR_EXTEND_MAX; bit++) {
		EXPECT_EQ(ibv_modify_qp_extend(b.extend, &change, 1 << bit), -EOPNOTSUPP);
		EXPECT_EQ(ibv_query_qp_extend(b.extend, &change, 1 << bit), -EOPNOTSUPP);
	}
	ibv_hyroce_feature feature = {};
	EXPECT_EQ(ibv_query_qp_supported_hyroce_feature(b.extend, qp->qp, 0, 0, &feature),
		-EOPNOTSUPP);
	EXPECT_EQ(ibv_destroy_qp_extend(b.extend, qp), 0);
}

} // namespace
