// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Queues as other libraries describe them, byte by byte after the recorded layouts: this
// knows offsets alone, and nothing of the library under test.
#ifndef NDA_TESTS_FOREIGN_QUEUES_H
#define NDA_TESTS_FOREIGN_QUEUES_H

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

namespace nda::test {

// A structure in memory, zeroed.
class Bytes {
public:
	explicit Bytes(size_t size) : bytes_(size) {}
	template <class T>
	Bytes &set(size_t offset, T value)
	{
		if (offset + sizeof(value) > bytes_.size())
			abort();
		memcpy(bytes_.data() + offset, &value, sizeof(value));
		return *this;
	}
	const uint8_t *data() const { return bytes_.data(); }
	size_t size() const { return bytes_.size(); }

private:
	std::vector<uint8_t> bytes_;
};

// Where they are put.
struct ForeignMemory {
	std::function<uint64_t(uint64_t size)> alloc;
	std::function<void(uint64_t addr, const void *data, uint64_t size)> write;

	uint64_t place(const Bytes &bytes) const
	{
		const uint64_t addr = alloc(bytes.size());
		write(addr, bytes.data(), bytes.size());
		return addr;
	}
};

enum class Generation {
	initial,
	split,
	vendor
};

// One channel's queue and what it names.
struct ForeignQueueValues {
	uint64_t sq = 0, cq = 0; // rings
	uint32_t wqe_bytes = 0, sq_depth = 0, cqe_bytes = 0, cq_depth = 0;
	uint64_t head_word = 0, tail_word = 0, cq_head_word = 0, cq_tail_word = 0;
	uint64_t sq_doorbell = 0, sq_record = 0, cq_doorbell = 0, cq_record = 0;
	uint32_t number = 0, cq_number = 0;
	uint8_t service_level = 0;
	uint8_t mtu_shift = 0;    // split
	uint64_t vendor_word = 0; // vendor
	int8_t mode = 0;          // initial
	uint32_t tp_id = 0;       // UB
	uint64_t eid[2] = {};     // UB, as published
	uint64_t local_addr = 0, local_bytes = 0, remote_addr = 0, remote_bytes = 0;
	uint32_t local_keys[2] = {}, remote_keys[2] = {};
};

inline Bytes roce_sq(const ForeignQueueValues &v, Generation g)
{
	Bytes b(128);
	b.set<int32_t>(0, 1).set(8, v.sq).set(16, v.head_word).set(24, v.tail_word);
	b.set(32, v.sq_doorbell);
	if (g == Generation::initial)
		return b.set(40, v.number)
			.set(44, v.wqe_bytes)
			.set(48, v.sq_depth)
			.set(52, v.mode)
			.set(53, v.service_level);
	b.set(40, v.sq_record).set(48, v.number).set(52, v.wqe_bytes).set(56, v.sq_depth);
	b.set(60, v.service_level);
	return g == Generation::split ? b.set(61, v.mtu_shift) : b.set(64, v.vendor_word);
}

inline Bytes roce_cq(const ForeignQueueValues &v, Generation g)
{
	Bytes b(128);
	b.set<int32_t>(0, 1).set(8, v.cq).set(16, v.cq_head_word).set(24, v.cq_tail_word);
	b.set(32, v.cq_doorbell);
	if (g == Generation::initial)
		return b.set(40, v.cq_number)
			.set(44, v.cqe_bytes)
			.set(48, v.cq_depth)
			.set(52, v.mode);
	return b.set(40, v.cq_record)
		.set(48, v.cq_number)
		.set(52, v.cqe_bytes)
		.set(56, v.cq_depth);
}

inline Bytes ub_sq(const ForeignQueueValues &v)
{
	Bytes b(128);
	b.set<int32_t>(0, 0).set(8, v.sq).set(16, v.head_word).set(24, v.tail_word);
	b.set(32, v.sq_doorbell).set(40, v.number).set(44, v.wqe_bytes);
	return b.set(48, v.sq_depth).set(52, v.tp_id).set(56, v.eid[0]).set(64, v.eid[1]);
}

inline Bytes ub_cq(const ForeignQueueValues &v)
{
	Bytes b(128);
	b.set<int32_t>(0, 0).set(8, v.cq).set(16, v.cq_head_word).set(24, v.cq_tail_word);
	b.set(32, v.cq_record).set(40, v.cq_number).set(44, v.cqe_bytes);
	return b.set(48, v.cq_depth);
}

// Two of each side, of which the second is what is not the heap.
inline Bytes buffers(
	bool ub, uint64_t addr, uint64_t size, uint32_t first_key, uint32_t second_key)
{
	Bytes b(128);
	b.set<int32_t>(0, 1).set(8, addr).set(16, size).set<int32_t>(24, ub);
	b.set(28, first_key).set(32, second_key);
	b.set<int32_t>(64, 1).set<uint64_t>(72, 0xbad000).set<uint64_t>(80, 64);
	return b.set<int32_t>(88, ub);
}

struct ForeignEntity {
	Bytes bytes{256};
	uint64_t local_buffers, remote_buffers, sq_context, cq_context;

	ForeignEntity(const ForeignMemory &m, bool ub, const Bytes &sq, const Bytes &cq,
		const ForeignQueueValues &v)
		: local_buffers(m.place(buffers(ub, v.local_addr, v.local_bytes,
			  v.local_keys[0], v.local_keys[1]))),
		  remote_buffers(m.place(buffers(ub, v.remote_addr, v.remote_bytes,
			  v.remote_keys[0], v.remote_keys[1]))),
		  sq_context(m.place(sq)), cq_context(m.place(cq))
	{
		bytes.set<uint32_t>(0, 1)
			.set<uint32_t>(4, 0x0fcf0f0f)
			.set<uint32_t>(8, 256);
		bytes.set<int32_t>(16, 4).set<int32_t>(20, ub ? 4 : 1);
		bytes.set<uint32_t>(32, 2).set<uint32_t>(36, 2);
		bytes.set<uint32_t>(40, 1).set<uint32_t>(44, 1);
		bytes.set(64, local_buffers).set(72, remote_buffers);
		bytes.set(80, sq_context).set(88, cq_context);
	}
};

inline Bytes ai_qp(const ForeignQueueValues &v)
{
	Bytes b(368);
	const size_t sq = 32, scq = 32 + 176;
	b.set(sq, v.number).set(sq + 8, v.sq).set(sq + 16, v.wqe_bytes);
	b.set(sq + 20, v.sq_depth).set(sq + 24, v.head_word).set(sq + 32, v.tail_word);
	b.set(sq + 40, v.sq_record).set(sq + 48, v.sq_doorbell);
	b.set(scq, v.cq_number).set(scq + 8, v.cq).set(scq + 16, v.cqe_bytes);
	b.set(scq + 20, v.cq_depth).set(scq + 24, v.cq_head_word);
	b.set(scq + 32, v.cq_tail_word).set(scq + 40, v.cq_record);
	return b.set(scq + 48, v.cq_doorbell);
}

} // namespace nda::test

#endif
