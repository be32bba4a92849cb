// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Checks and return values of the calls, on contexts that the tests make: nothing
// registered.
#include "ibv_extend.h"

#include "tests/mock/extend_device.h"

#include <cerrno>
#include <gtest/gtest.h>
#include <string>

namespace {

int g_calls;
int g_result;
int g_errno;
const void *g_context;

template <class... Args>
int answer(Args...)
{
	g_calls++;
	errno = g_errno;
	return g_result;
}

template <class Object, class... Args>
Object *give_nothing(Args...)
{
	g_calls++;
	errno = g_errno;
	return nullptr;
}

ibv_qp_extend g_qp;
ibv_cq_extend g_cq;
ibv_srq_extend g_srq;

ibv_qp_extend *give_qp(ibv_context *context, ibv_qp_init_attr_extend *)
{
	g_context = context;
	errno = EAGAIN;
	return &g_qp;
}

ibv_cq_extend *give_cq(ibv_context *, ibv_cq_init_attr_extend *)
{
	return &g_cq;
}

ibv_srq_extend *give_srq(ibv_context *, ibv_srq_init_attr_extend *)
{
	return &g_srq;
}

class Call : public testing::Test {
protected:
	Call()
	{
		g_calls = g_result = g_errno = 0;
		ops_.version = IBV_EXTEND_DRIVER_VERSION_V3;
		ops_.create_qp = give_qp;
		ops_.create_cq = give_cq;
		ops_.create_srq = give_srq;
		ops_.destroy_qp = answer;
		ops_.destroy_cq = answer;
		ops_.destroy_srq = answer;
		ops_.query_device = answer;
		ops_.modify_qp = answer;
		ops_.query_qp = answer;
		ops_.query_qp_supported_hyroce_feature = answer;
		ops_.nego_qp_hyroce_feature = answer;
	}

	// Each int call on the fixture's objects; the create calls have tests of their own.
	int query_device(ibv_context_extend *c)
	{
		return ibv_query_device_extend(c, &device_attr_);
	}
	int destroy_qp(ibv_context_extend *c) { return ibv_destroy_qp_extend(c, &g_qp); }
	int destroy_cq(ibv_context_extend *c) { return ibv_destroy_cq_extend(c, &g_cq); }
	int destroy_srq(ibv_context_extend *c) { return ibv_destroy_srq_extend(c, &g_srq); }
	int modify(ibv_context_extend *c) { return ibv_modify_qp_extend(c, &qp_attr_, 1); }
	int query(ibv_context_extend *c) { return ibv_query_qp_extend(c, &qp_attr_, 1); }
	int supported(ibv_context_extend *c)
	{
		return ibv_query_qp_supported_hyroce_feature(
			c, &verbs_qp_, 1, 2, &feature_);
	}
	int negotiate(ibv_context_extend *c)
	{
		return ibv_nego_qp_hyroce_feature(
			c, &verbs_qp_, &feature_, &feature_, &more_);
	}
	using Method = int (Call::*)(ibv_context_extend *);
	static constexpr Method kAll[] = {&Call::query_device, &Call::destroy_qp,
		&Call::destroy_cq, &Call::destroy_srq, &Call::modify, &Call::query,
		&Call::supported, &Call::negotiate};

	extend_mock::Device device_{"extend_api"};
	ibv_context_extend_ops ops_ = {};
	ibv_context_extend context_ = {&device_.context, &ops_};
	ibv_device_attr_extend device_attr_ = {};
	ibv_qp_attr_extend qp_attr_ = {};
	ibv_qp_init_attr_extend qp_init_ = {};
	ibv_cq_init_attr_extend cq_init_ = {};
	ibv_srq_init_attr_extend srq_init_ = {};
	ibv_qp verbs_qp_ = {};
	ibv_hyroce_feature feature_ = {};
	uint32_t more_ = 0;
};

TEST_F(Call, HandsTheDriversValueOnUnchanged)
{
	for (int value : {0, EINVAL, -EINVAL, -1, 12345})
		for (Method method : kAll) {
			g_result = value;
			EXPECT_EQ(value, (this->*method)(&context_));
		}
	EXPECT_EQ(5 * 8, g_calls);
}

TEST_F(Call, RefusesNullContexts)
{
	ibv_context_extend empty = {nullptr, &ops_};
	for (Method method : kAll) {
		EXPECT_EQ(-EINVAL, (this->*method)(nullptr));
		EXPECT_EQ(-EINVAL, (this->*method)(&empty));
	}
	EXPECT_EQ(0, g_calls);
}

TEST_F(Call, RefusesNullArguments)
{
	EXPECT_EQ(-EINVAL, ibv_query_device_extend(&context_, nullptr));
	EXPECT_EQ(-EINVAL, ibv_destroy_qp_extend(&context_, nullptr));
	EXPECT_EQ(-EINVAL, ibv_destroy_cq_extend(&context_, nullptr));
	EXPECT_EQ(-EINVAL, ibv_destroy_srq_extend(&context_, nullptr));
	EXPECT_EQ(-EINVAL, ibv_modify_qp_extend(&context_, nullptr, 1));
	EXPECT_EQ(-EINVAL, ibv_query_qp_extend(&context_, nullptr, 1));
	EXPECT_EQ(-EINVAL,
		ibv_query_qp_supported_hyroce_feature(&context_, nullptr, 0, 0, &feature_));
	EXPECT_EQ(-EINVAL,
		ibv_query_qp_supported_hyroce_feature(
			&context_, &verbs_qp_, 0, 0, nullptr));
	EXPECT_EQ(-EINVAL,
		ibv_nego_qp_hyroce_feature(
			&context_, nullptr, &feature_, &feature_, &more_));
	EXPECT_EQ(-EINVAL,
		ibv_nego_qp_hyroce_feature(
			&context_, &verbs_qp_, nullptr, &feature_, &more_));
	EXPECT_EQ(-EINVAL,
		ibv_nego_qp_hyroce_feature(
			&context_, &verbs_qp_, &feature_, nullptr, &more_));
	EXPECT_EQ(-EINVAL,
		ibv_nego_qp_hyroce_feature(
			&context_, &verbs_qp_, &feature_, &feature_, nullptr));
	EXPECT_EQ(0, g_calls);
}

TEST_F(Call, WithoutOperationIsNotSupported)
{
	ibv_context_extend without = {&device_.context, nullptr};
	ibv_context_extend_ops none = {};
	none.version = IBV_EXTEND_DRIVER_VERSION_V3;
	ibv_context_extend empty = {&device_.context, &none};
	for (Method method : kAll) {
		EXPECT_EQ(-EOPNOTSUPP, (this->*method)(&without));
		EXPECT_EQ(-EOPNOTSUPP, (this->*method)(&empty));
	}
}

TEST_F(Call, NeedsTheVersionThatBroughtIt)
{
	ops_.version = IBV_EXTEND_DRIVER_VERSION_V1;
	EXPECT_EQ(0, query_device(&context_));
	EXPECT_EQ(-EOPNOTSUPP, modify(&context_));
	EXPECT_EQ(-EOPNOTSUPP, query(&context_));
	ops_.version = IBV_EXTEND_DRIVER_VERSION_V2;
	EXPECT_EQ(0, modify(&context_));
	EXPECT_EQ(0, query(&context_));
	EXPECT_EQ(-EOPNOTSUPP, supported(&context_));
	EXPECT_EQ(-EOPNOTSUPP, negotiate(&context_));
	EXPECT_EQ(3, g_calls);
}

TEST_F(Call, RefusesUnknownMaskBits)
{
	EXPECT_EQ(0, ibv_modify_qp_extend(&context_, &qp_attr_, 0x7f));
	EXPECT_EQ(0, ibv_query_qp_extend(&context_, &qp_attr_, 0x7f));
	for (int mask : {0x80, 0x81, 1 << 30, -1}) {
		EXPECT_EQ(-EOPNOTSUPP, ibv_modify_qp_extend(&context_, &qp_attr_, mask));
		EXPECT_EQ(-EOPNOTSUPP, ibv_query_qp_extend(&context_, &qp_attr_, mask));
	}
	EXPECT_EQ(2, g_calls);
}

TEST_F(Call, ChecksArgumentsBeforeOperations)
{
	ibv_context_extend without = {&device_.context, nullptr};
	EXPECT_EQ(-EINVAL, ibv_modify_qp_extend(&without, nullptr, -1));
	EXPECT_EQ(-EINVAL, ibv_query_device_extend(&without, nullptr));
	EXPECT_EQ(-EINVAL, ibv_destroy_qp_extend(&without, nullptr));
}

TEST_F(Call, QueryDeviceClearsTheCapabilitiesOnly)
{
	device_attr_.ext_cap = 0xffffffff;
	device_attr_.resv[0] = 0xffffffff;
	EXPECT_EQ(0, query_device(&context_));
	EXPECT_EQ(0u, device_attr_.ext_cap);
	EXPECT_EQ(0xffffffffu, device_attr_.resv[0]);
}

TEST_F(Call, CreateGivesTheDriversObjectAndKeepsErrno)
{
	errno = ENXIO;
	EXPECT_EQ(&g_qp, ibv_create_qp_extend(&context_, &qp_init_));
	EXPECT_EQ(ENXIO, errno);
	EXPECT_EQ(&device_.context, g_context);
	EXPECT_EQ(&g_cq, ibv_create_cq_extend(&context_, &cq_init_));
	EXPECT_EQ(&g_srq, ibv_create_srq_extend(&context_, &srq_init_));
}

TEST_F(Call, CreateRefusesNullWithErrno)
{
	ibv_context_extend empty = {nullptr, &ops_};
	for (ibv_context_extend *context :
		{static_cast<ibv_context_extend *>(nullptr), &empty}) {
		errno = 0;
		EXPECT_EQ(nullptr, ibv_create_qp_extend(context, &qp_init_));
		EXPECT_EQ(EINVAL, errno);
		errno = 0;
		EXPECT_EQ(nullptr, ibv_create_cq_extend(context, &cq_init_));
		EXPECT_EQ(EINVAL, errno);
		errno = 0;
		EXPECT_EQ(nullptr, ibv_create_srq_extend(context, &srq_init_));
		EXPECT_EQ(EINVAL, errno);
	}
	errno = 0;
	EXPECT_EQ(nullptr, ibv_create_qp_extend(&context_, nullptr));
	EXPECT_EQ(EINVAL, errno);
}

TEST_F(Call, CreateWithoutOperationSetsErrno)
{
	ops_.create_qp = nullptr;
	errno = 0;
	EXPECT_EQ(nullptr, ibv_create_qp_extend(&context_, &qp_init_));
	EXPECT_EQ(EOPNOTSUPP, errno);
	context_.ops = nullptr;
	errno = 0;
	EXPECT_EQ(nullptr, ibv_create_cq_extend(&context_, &cq_init_));
	EXPECT_EQ(EOPNOTSUPP, errno);
}

TEST_F(Call, CreateThatFailsHasTheDriversErrnoOrEio)
{
	ops_.create_qp = give_nothing;
	ops_.create_cq = give_nothing;
	ops_.create_srq = give_nothing;
	for (auto [set, seen] : {std::pair{ENOSPC, ENOSPC}, std::pair{0, EIO}}) {
		g_errno = set;
		errno = ENXIO;
		EXPECT_EQ(nullptr, ibv_create_qp_extend(&context_, &qp_init_));
		EXPECT_EQ(seen, errno);
		EXPECT_EQ(nullptr, ibv_create_cq_extend(&context_, &cq_init_));
		EXPECT_EQ(seen, errno);
		EXPECT_EQ(nullptr, ibv_create_srq_extend(&context_, &srq_init_));
		EXPECT_EQ(seen, errno);
	}
}

} // namespace
