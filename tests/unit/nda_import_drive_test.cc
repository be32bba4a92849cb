// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Imported queues in use: those of software NICs, described as other libraries describe
// theirs, driven by the device data plane through the imported table.
#include <cerrno>
#include <cstring>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include <nda/aiv/device.h>
#include <nda/aiv/in_die_queue.h>
#include <nda/aiv/soft_core.h>
#include <nda/aiv/udma_queue.h>
#include <nda/aiv/xscale_queue.h>
#include <nda/channel.h>
#include <nda/import.h>
#include <nda/nic.h>
#include <nda/npu.h>

#include "tests/mock/ascend/foreign_queues.h"

namespace nda::test {
namespace {

constexpr uint64_t heap_bytes = 64 << 10;
constexpr uint32_t puts = 100;
constexpr int generous_ms = 60000;

struct Work {
	uint64_t table, src, dst;
	uint32_t pe;
	int opened, put, quiet;
};

template <class Engine>
void put_kernel(const nda_core *core, void *arg)
{
	Work &w = *static_cast<Work *>(arg);
	aiv::Device<aiv::SoftCore, Engine> device;
	w.opened = device.open(aiv::SoftCore(core), w.table, core->index);
	if (w.opened != NDA_OK)
		return;
	for (uint32_t i = 0; i < puts && w.put == NDA_OK; i++)
		w.put = device.put_nbi(w.pe, w.dst + i * 8, w.src + i * 8, 8);
	w.quiet = device.quiet(w.pe);
}

// A PE with its heap, NIC and channel.
struct Pe {
	nda_npu *npu = nullptr;
	nda_nic *nic = nullptr;
	nda_channel *channel = nullptr;
	nda_mr *mr = nullptr;
	uint64_t heap = 0;

	void open(const std::string &model)
	{
		nda_npu_attr attr = {};
		attr.memory_bytes = 64 << 20;
		attr.flags = NDA_NPU_STRICT;
		npu = nda_npu_open("soft", &attr, sizeof(attr));
		nic = nda_nic_open(("soft:" + model).c_str(), nullptr, 0);
		ASSERT_TRUE(npu && nic) << nda_error_detail();
		ASSERT_EQ(nda_npu_alloc(npu, heap_bytes, &heap), 0);
		ASSERT_EQ(nda_npu_memset(npu, heap, 0, heap_bytes), 0);
		mr = nda_mr_register(nic, npu, heap, heap_bytes,
			NDA_ACCESS_LOCAL_WRITE | NDA_ACCESS_REMOTE_WRITE |
				NDA_ACCESS_REMOTE_READ);
		ASSERT_NE(mr, nullptr) << nda_error_detail();
		channel = nda_channel_create(nic, npu, nullptr, 0);
		ASSERT_NE(channel, nullptr) << nda_error_detail();
	}
	void close()
	{
		EXPECT_EQ(nda_channel_destroy(channel), 0);
		EXPECT_EQ(nda_mr_deregister(mr), 0);
		EXPECT_EQ(nda_nic_close(nic), 0);
		EXPECT_EQ(nda_npu_close(npu), 0);
	}
};

class Drive : public testing::Test {
protected:
	void open(const std::string &model)
	{
		uint8_t descs[2][NDA_CHANNEL_DESC_BYTES];
		for (int i = 0; i < 2; i++) {
			ASSERT_NO_FATAL_FAILURE(pes[i].open(model));
			ASSERT_EQ(nda_channel_export(pes[i].channel, descs[i]), 0);
		}
		for (int i = 0; i < 2; i++)
			ASSERT_EQ(nda_channel_connect(pes[i].channel, descs[1 - i]), 0)
				<< nda_error_detail();
		memory.alloc = [this](uint64_t size) {
			uint64_t addr = 0;
			EXPECT_EQ(nda_npu_alloc(pes[0].npu, size, &addr), 0);
			return addr;
		};
		memory.write = [this](uint64_t addr, const void *data, uint64_t size) {
			EXPECT_EQ(nda_npu_write(pes[0].npu, addr, data, size), 0);
		};
	}
	void TearDown() override
	{
		for (Pe &pe : pes)
			pe.close();
	}

	// What the NIC's driver gave, without anything that libnda makes of it.
	ForeignQueueValues values(const nda_queue &q, uint32_t wqe_bytes)
	{
		ForeignQueueValues v;
		v.sq = q.sq_base;
		v.cq = q.cq_base;
		v.wqe_bytes = wqe_bytes;
		v.sq_depth = q.sq_depth;
		v.cqe_bytes = q.cqe_stride;
		v.cq_depth = q.cq_depth;
		v.head_word = zeroed_word();
		v.tail_word = zeroed_word();
		v.cq_head_word = zeroed_word();
		v.cq_tail_word = zeroed_word();
		v.sq_doorbell = q.sq_doorbell;
		v.sq_record = q.sq_record;
		v.cq_record = q.cq_record;
		v.number = q.qpn;
		v.cq_number = q.cqn;
		v.service_level = 4;
		v.mtu_shift = 4;
		v.vendor_word = 7ull << 24 | 4ull << 50;
		v.local_addr = pes[0].heap;
		v.local_bytes = heap_bytes;
		v.remote_addr = pes[1].heap;
		v.remote_bytes = heap_bytes;
		v.local_keys[0] = nda_mr_lkey(pes[0].mr);
		v.remote_keys[1] = nda_mr_rkey(pes[1].mr);
		return v;
	}
	uint64_t zeroed_word() { return memory.place(Bytes(64)); }
	nda_queue described()
	{
		nda_queue q = {};
		EXPECT_EQ(nda_channel_describe(pes[0].channel, 0, 0, 0, &q), 0)
			<< nda_error_detail();
		return q;
	}
	nda_import_peer channel(const ForeignEntity &entity)
	{
		nda_import_peer peer = {};
		peer.source = NDA_IMPORT_CHANNEL;
		peer.address = memory.place(entity.bytes);
		return peer;
	}
	uint32_t word(uint64_t addr)
	{
		uint32_t value = 0;
		EXPECT_EQ(nda_npu_read(pes[0].npu, &value, addr, 4), 0);
		return value;
	}

	// Imports, puts `puts` words from PE 0 to PE 1, looks there, releases.
	template <class Engine>
	void drive(const nda_import_peer &peer, const nda_import_attr &attr = {})
	{
		std::vector<uint64_t> data(puts), seen(puts);
		for (uint32_t i = 0; i < puts; i++)
			data[i] = ++stamp_;
		ASSERT_EQ(nda_npu_write(pes[0].npu, pes[0].heap, data.data(), puts * 8), 0);
		const nda_import_peer peers[2] = {{}, peer};
		nda_import *import =
			nda_channel_import(pes[0].npu, peers, 2, &attr, sizeof(attr));
		ASSERT_NE(import, nullptr) << nda_error_detail();
		Work w = {};
		w.table = nda_import_table(import);
		w.src = pes[0].heap;
		w.dst = pes[0].heap + 4096; // of the peer, by its own counterpart
		w.pe = 1;
		ASSERT_EQ(nda_npu_launch(pes[0].npu, put_kernel<Engine>, &w, 1), 0);
		ASSERT_EQ(nda_npu_wait(pes[0].npu, generous_ms), 0) << nda_error_detail();
		EXPECT_EQ(w.opened, NDA_OK);
		EXPECT_EQ(w.put, NDA_OK);
		EXPECT_EQ(w.quiet, NDA_OK);
		ASSERT_EQ(
			nda_npu_read(pes[1].npu, seen.data(), pes[1].heap + 4096, puts * 8),
			0);
		EXPECT_EQ(seen, data);
		EXPECT_EQ(nda_import_release(import), 0) << nda_error_detail();
	}

	Pe pes[2];
	ForeignMemory memory;

private:
	uint64_t stamp_ = 0x1000;
};

using Hns1825 = aiv::hns1825::Engine;
using Xscale = aiv::xscale::Engine;
using InDie = aiv::in_die::Engine;
using Udma = aiv::udma::Engine;

TEST_F(Drive, A1825sChannelInBothOfItsLayouts)
{
	ASSERT_NO_FATAL_FAILURE(open("hns1825"));
	const ForeignQueueValues v = values(described(), 64);
	for (const Generation g : {Generation::vendor, Generation::split})
		drive<Hns1825>(channel({memory, false, roce_sq(v, g), roce_cq(v, g), v}));
	EXPECT_EQ(word(v.head_word), 2 * puts) << "the second went on after the first";
	EXPECT_EQ(word(v.cq_tail_word), 2 * puts);
}

TEST_F(Drive, AnXscalesChannelInEachLayout)
{
	ASSERT_NO_FATAL_FAILURE(open("xscale"));
	const nda_queue q = described();
	ForeignQueueValues v = values(q, 128);
	v.cq_doorbell = q.xscale.cq_doorbell;
	v.sq_record = v.cq_record = 0;
	for (const Generation g : {Generation::initial, Generation::split})
		drive<Xscale>(channel({memory, false, roce_sq(v, g), roce_cq(v, g), v}));
	EXPECT_EQ(word(v.head_word), 2 * puts);
}

TEST_F(Drive, AnAiQueuePair)
{
	ASSERT_NO_FATAL_FAILURE(open("in_die"));
	const nda_queue q = described();
	ForeignQueueValues v = values(q, 64);
	v.cq_doorbell = q.in_die.cq_doorbell;
	const Bytes info = ai_qp(v);
	nda_import_attr attr = {};
	attr.heap_addr = v.local_addr;
	attr.heap_bytes = heap_bytes;
	const nda_import_peer peer = {NDA_IMPORT_AI_QP, 4,
		reinterpret_cast<uint64_t>(info.data()), v.remote_addr, v.remote_bytes,
		v.local_keys[0], v.remote_keys[1]};
	drive<InDie>(peer, attr);
	drive<InDie>(peer, attr);
	EXPECT_EQ(word(v.head_word), 2 * puts);
}

TEST_F(Drive, AUbChannel)
{
	ASSERT_NO_FATAL_FAILURE(open("udma"));
	nda_queue q = {};
	ASSERT_EQ(nda_channel_describe_segment(pes[0].channel, 0, 0, 0, 0, &q), 0)
		<< nda_error_detail();
	ForeignQueueValues v = values(q, 64);
	uint8_t eid[16], reversed[16];
	ASSERT_EQ(nda_nic_eid(pes[1].nic, eid), 0);
	for (int i = 0; i < 16; i++)
		reversed[i] = eid[15 - i];
	memcpy(v.eid, reversed, sizeof(v.eid));
	v.tp_id = static_cast<uint32_t>(q.udma.words[0]) & 0xffffff;
	uint32_t token_id = 0, token_value = 0;
	ASSERT_EQ(nda_mr_token(pes[0].mr, &token_id, &token_value), 0);
	v.local_keys[0] = token_id;
	ASSERT_EQ(nda_mr_token(pes[1].mr, &token_id, &token_value), 0);
	v.remote_keys[0] = token_id;
	v.remote_keys[1] = token_value;
	drive<Udma>(channel({memory, true, ub_sq(v), ub_cq(v), v}));
	EXPECT_EQ(word(v.head_word), 0u) << "nobody else can go on with it";
}

} // namespace
} // namespace nda::test
