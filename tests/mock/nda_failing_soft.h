// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The real table of the software NPU and NIC, but for the n-th call of what can fail, which
// does; and a count of what was made and not released.
#ifndef NDA_TESTS_MOCK_NDA_FAILING_SOFT_H
#define NDA_TESTS_MOCK_NDA_FAILING_SOFT_H

#include <atomic>
#include <cerrno>
#include <functional>
#include <gtest/gtest.h>
#include <utility>

#include "lib/nda/soft.h"

namespace nda::test {

class FailingSoft {
public:
	FailingSoft()
	{
		const SoftApi *found = nullptr;
		EXPECT_EQ(load_soft(found), 0);
		real_ = found;
		table_ = *found;
		wrap();
		set_soft_for_test(&table_);
		arm(0);
	}
	~FailingSoft() { set_soft_for_test(nullptr); }

	// The n-th call from now on fails; 0: none.
	static void arm(long n)
	{
		calls_ = 0;
		fail_at_ = n;
	}
	// Whether a call has failed since.
	static bool fired() { return fail_at_ && calls_ >= fail_at_; }
	static long live() { return live_; }

private:
	static bool due()
	{
		if (++calls_ != fail_at_)
			return false;
		errno = ENOMEM;
		return true;
	}
	template <class T>
	static T *made(T *object)
	{
		live_ += object != nullptr;
		return object;
	}
	static int made(int rc)
	{
		live_ += rc == 0;
		return rc;
	}
	static int released(int rc)
	{
		EXPECT_EQ(rc, 0) << "a release failed: " << real_->error_detail();
		live_ -= rc == 0;
		return rc;
	}

	static void wrap()
	{
		table_.set_session = [](const uint8_t *s) {
			return due() ? -ENOMEM : real_->set_session(s);
		};
		table_.npu_open = [](const nda_soft_npu_attr *a) {
			return due() ? nullptr : made(real_->npu_open(a));
		};
		table_.npu_close = [](nda_soft_npu *n) {
			return released(real_->npu_close(n));
		};
		table_.npu_alloc = [](nda_soft_npu *n, uint64_t size, uint64_t *addr) {
			return due() ? -ENOMEM : made(real_->npu_alloc(n, size, addr));
		};
		table_.npu_free = [](nda_soft_npu *n, uint64_t addr) {
			return released(real_->npu_free(n, addr));
		};
		table_.npu_write = [](nda_soft_npu *n, uint64_t to, const void *from,
					   uint64_t size) {
			return due() ? -ENOMEM : real_->npu_write(n, to, from, size);
		};
		table_.npu_memset = [](nda_soft_npu *n, uint64_t to, int value,
					    uint64_t size) {
			return due() ? -ENOMEM : real_->npu_memset(n, to, value, size);
		};
		table_.npu_wait = [](nda_soft_npu *n, int timeout_ms) {
			const int rc = real_->npu_wait(n, timeout_ms);
			if (rc == 0 && on_end)
				std::exchange(on_end, nullptr)();
			return rc;
		};
		table_.npu_db_mmap = [](nda_soft_npu *n, const doorbell_map_desc *d) {
			return due() ? nullptr : made(real_->npu_db_mmap(n, d));
		};
		table_.npu_db_unmap = [](nda_soft_npu *n, void *p,
					      const doorbell_map_desc *d) {
			return released(real_->npu_db_unmap(n, p, d));
		};
		table_.nic_open = [](const nda_soft_nic_attr *a) {
			return due() ? nullptr : made(real_->nic_open(a));
		};
		table_.nic_close = [](ibv_context *c) {
			return released(real_->nic_close(c));
		};
		table_.query_device = [](ibv_context *c, ibv_device_attr *a) {
			return due() ? -ENOMEM : real_->query_device(c, a);
		};
		table_.query_port = [](ibv_context *c, uint8_t port, ibv_port_attr *a) {
			return due() ? -ENOMEM : query_port(c, port, a);
		};
		table_.query_gid = [](ibv_context *c, uint8_t port, int index,
					   ibv_gid *gid) {
			return due() ? -ENOMEM : real_->query_gid(c, port, index, gid);
		};
		table_.alloc_pd = [](ibv_context *c) {
			return due() ? nullptr : made(real_->alloc_pd(c));
		};
		table_.dealloc_pd = [](ibv_pd *pd) {
			return released(real_->dealloc_pd(pd));
		};
		table_.reg_mr = [](ibv_pd *pd, uint64_t addr, uint64_t size, int access) {
			ibv_mr *mr = due() ? nullptr
					   : made(real_->reg_mr(pd, addr, size, access));
			if (mr && wide_lkey)
				mr->lkey |= 1u << 30;
			return mr;
		};
		table_.dereg_mr = [](ibv_mr *mr) { return released(real_->dereg_mr(mr)); };
		table_.modify_qp = [](ibv_qp *qp, ibv_qp_attr *a, int mask) {
			if (a->qp_state == IBV_QPS_RTR)
				last_rtr = *a;
			if (due() || a->qp_state == refused_state)
				return -EINVAL;
			return real_->modify_qp(qp, a, mask);
		};
	}

	static int query_port(ibv_context *c, uint8_t port, ibv_port_attr *a)
	{
		const int rc = real_->query_port(c, port, a);
		if (port_down)
			a->state = IBV_PORT_DOWN;
		if (gids >= 0)
			a->gid_tbl_len = gids;
		return rc;
	}

public:
	// What the NIC pretends.
	static inline std::atomic<bool> port_down{false};
	static inline std::atomic<int> gids{-1};
	static inline std::atomic<bool> wide_lkey{false};
	static inline std::atomic<int> refused_state{-1};
	// Called once, when a wait of this thread has seen a kernel's end and has not
	// returned yet.
	static inline thread_local std::function<void()> on_end;
	// What this thread last told the NIC.
	static inline thread_local ibv_qp_attr last_rtr = {};

private:
	static inline const SoftApi *real_ = nullptr;
	static inline SoftApi table_ = {};
	static inline std::atomic<long> calls_{0}, fail_at_{0}, live_{0};
};

} // namespace nda::test

#endif
