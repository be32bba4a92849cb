// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The software 1825 NIC as its users meet it, in one process, stepped by hand.
#include "tests/mock/soft_bench.h"

#include <numeric>

namespace nda::soft_test {
namespace {

namespace hw = nda::hw::hns1825;

nda_soft_npu_attr manual()
{
	nda_soft_npu_attr attr = {};
	attr.manual = 1;
	attr.assist = 1;
	return attr;
}

std::vector<uint8_t> pattern(size_t size, uint8_t seed)
{
	std::vector<uint8_t> bytes(size);
	for (size_t i = 0; i < size; i++)
		bytes[i] = static_cast<uint8_t>(seed + i * 7 + i / 251);
	return bytes;
}

// Two NPUs, two NICs, a region on each and a pair of QPs.
class Pair : public testing::Test {
protected:
	static constexpr uint64_t size = 1u << 20;

	explicit Pair(const char *inject = nullptr) : nic_a(inject)
	{
		a = npu_a.alloc(size);
		b = npu_b.alloc(size);
		mr_a = nic_a.reg(a, size);
		mr_b = nic_b.reg(b, size);
	}
	~Pair() override
	{
		EXPECT_EQ(api().dereg_mr(mr_a), 0);
		EXPECT_EQ(api().dereg_mr(mr_b), 0);
	}
	void connect(TestQueue &x, TestQueue &y, uint8_t timeout = 10, uint8_t retries = 7)
	{
		x.connect(nic_b.gid(), y.qpn(), timeout, retries);
		y.connect(nic_a.gid(), x.qpn(), timeout, retries);
	}
	void expect_error(TestQueue &q, uint8_t syndrome)
	{
		std::optional<Cqe> c = q.wait();
		ASSERT_TRUE(c);
		EXPECT_TRUE(c->error);
		EXPECT_EQ(c->syndrome, syndrome);
		EXPECT_EQ(q.state(), IBV_QPS_ERR);
	}
	void expect_ok(TestQueue &q)
	{
		std::optional<Cqe> c = q.wait();
		ASSERT_TRUE(c);
		EXPECT_FALSE(c->error) << "syndrome " << int{c->syndrome};
	}

	TestNpu npu_a{manual()}, npu_b{manual()};
	TestNic nic_a, nic_b;
	uint64_t a, b;
	ibv_mr *mr_a, *mr_b;
};

TEST_F(Pair, WriteMovesBytesToThePeerAndCompletes)
{
	TestQueue x(npu_a, nic_a), y(npu_b, nic_b);
	connect(x, y);
	npu_a.write(a, pattern(1000, 1));
	x.write(a, mr_a->lkey, b + 64, mr_b->rkey, 1000);
	std::optional<Cqe> c = x.wait();
	ASSERT_TRUE(c);
	EXPECT_FALSE(c->error);
	EXPECT_EQ(c->op, hw::op_write);
	EXPECT_EQ(c->wqe, 0);
	EXPECT_EQ(c->bytes, 1000u);
	EXPECT_EQ(c->qpn, x.qpn());
	EXPECT_EQ(npu_b.read(b + 64, 1000), pattern(1000, 1));
	EXPECT_EQ(npu_b.read(b, 64), std::vector<uint8_t>(64));
	EXPECT_FALSE(x.poll());
	EXPECT_EQ(npu_a.violations() + npu_b.violations(), 0u);
}

TEST_F(Pair, ReadMovesBytesFromThePeer)
{
	TestQueue x(npu_a, nic_a), y(npu_b, nic_b);
	connect(x, y);
	npu_b.write(b, pattern(5000, 9));
	x.read(a, mr_a->lkey, b, mr_b->rkey, 5000);
	std::optional<Cqe> c = x.wait();
	ASSERT_TRUE(c);
	EXPECT_FALSE(c->error);
	EXPECT_EQ(c->op, hw::op_read);
	EXPECT_EQ(npu_a.read(a, 5000), pattern(5000, 9));
}

} // namespace
} // namespace nda::soft_test
