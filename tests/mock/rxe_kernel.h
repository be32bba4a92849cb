// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The kernel's side of a verbs command descriptor, as far as the driver of Soft-RoCE uses
// it: answers commands, hands out rings, keeps count of what was not given back, and fails
// the call that it is told to.
#ifndef NDA_TESTS_MOCK_RXE_KERNEL_H
#define NDA_TESTS_MOCK_RXE_KERNEL_H

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <sys/mman.h>
#include <vector>

#include <rdma/ib_user_verbs.h>

#include "providers/rxe/command.h"
#include "providers/rxe/uapi.h"

namespace rxe_mock {

// Bytes, for the headers end these structs with a flexible array.
template <class T>
struct Command {
	alignas(8) uint8_t bytes[sizeof(T)] = {};
	const T *operator->() const { return reinterpret_cast<const T *>(bytes); }
	void operator=(const void *from) { memcpy(bytes, from, sizeof(bytes)); }
};

class Kernel {
public:
	static constexpr int fd = 77;
	// The kernel's own completions are larger than those it shows: slots of 128.
	static constexpr uint32_t kernel_cqe_bytes = 72;

	Kernel()
	{
		current = this;
		before_ = nda::rxe::kernel;
		nda::rxe::kernel = &calls;
	}
	~Kernel()
	{
		nda::rxe::kernel = before_;
		current = nullptr;
	}
	Kernel(const Kernel &) = delete;
	Kernel &operator=(const Kernel &) = delete;

	// The fail_at-th call that makes something fails with this errno.
	int fail_at = -1;
	int fail_errno = ENOMEM;
	int calls_made = 0;
	// What destroying answers: an errno, and the asynchronous events there were.
	int destroy_errno = 0;
	uint32_t events = 0;
	int kick_errno = 0;
	// What the rings that are handed out look like, in place of what they should.
	void (*spoil)(rxe_queue_buf *header, mminfo *where) = nullptr;

	std::map<uint32_t, uint32_t> objects; // handle: command that made it
	std::map<void *, size_t> mappings;
	std::vector<uint32_t> kicked;
	// The last of each.
	Command<ib_uverbs_create_cq> cq;
	Command<ib_uverbs_create_qp> qp;
	Command<ib_uverbs_create_srq> srq;

	bool clean() const { return objects.empty() && mappings.empty(); }

private:
	struct Shape {
		uint32_t size;
		uint32_t log2_slot;
		uint32_t slots;
	};

	static uint32_t power_of_two_from(uint32_t n)
	{
		uint32_t p = 1;
		while (p < n)
			p *= 2;
		return p;
	}

	// A ring as rdma_rxe makes it for n entries of so many bytes.
	mminfo make_ring(uint32_t n, uint32_t bytes)
	{
		const uint32_t slot = power_of_two_from(std::max(bytes, 64u));
		Shape shape = {0, 0, power_of_two_from(n + 1)};
		while (1u << shape.log2_slot < slot)
			shape.log2_slot++;
		shape.size = 384 + shape.slots * slot;
		mminfo where = {};
		where.offset = next_offset_;
		where.size = shape.size;
		if (spoil) {
			rxe_queue_buf unused = {};
			spoil(&unused, &where);
		}
		rings_[where.offset] = shape;
		next_offset_ += 1 << 24;
		return where;
	}

	bool fails()
	{
		if (calls_made++ != fail_at)
			return false;
		errno = fail_errno;
		return true;
	}

	uint32_t add(uint32_t command)
	{
		objects[++last_handle_] = command;
		return last_handle_;
	}

	template <class T>
	static T read(const void *from)
	{
		T t;
		memcpy(&t, from, sizeof(t));
		return t;
	}

	template <class First, class Second>
	static void answer(uint64_t to, const First &first, const Second &second)
	{
		memcpy(reinterpret_cast<void *>(to), &first, sizeof(first));
		memcpy(reinterpret_cast<uint8_t *>(to) + sizeof(first), &second,
			sizeof(second));
	}

	// Words of a request without the header, and of the answer.
	static bool sized(const ib_uverbs_cmd_hdr &h, size_t in, size_t out)
	{
		return h.in_words * 4u == in + sizeof(h) && h.out_words * 4u == out;
	}

	int create(const ib_uverbs_cmd_hdr &h, const void *body)
	{
		if (fails())
			return errno;
		if (h.command == IB_USER_VERBS_CMD_CREATE_CQ) {
			if (!sized(h, 32, 24))
				return EINVAL;
			cq = body;
			ib_uverbs_create_cq_resp r = {};
			r.cq_handle = add(h.command);
			r.cqe = power_of_two_from(cq->cqe + 1) - 1;
			answer(cq->response, r,
				rxe_create_cq_resp{make_ring(cq->cqe, kernel_cqe_bytes)});
		} else if (h.command == IB_USER_VERBS_CMD_CREATE_QP) {
			if (!sized(h, 56, 64))
				return EINVAL;
			qp = body;
			answer_qp(h);
		} else {
			if (!sized(h, 32, 40))
				return EINVAL;
			srq = body;
			const uint32_t resp[4] = {
				add(h.command), srq->max_wr, srq->max_sge, 9};
			rxe_create_srq_resp rxe = {};
			rxe.mi = make_ring(srq->max_wr, 40 + 16 * srq->max_sge);
			answer(srq->response, resp, rxe);
		}
		return 0;
	}

	void answer_qp(const ib_uverbs_cmd_hdr &h)
	{
		const uint32_t data = std::max(qp->max_send_sge * 16, qp->max_inline_data);
		uint32_t resp[8] = {add(h.command), 17,
			power_of_two_from(qp->max_send_wr + 1) - 1,
			power_of_two_from(qp->max_recv_wr + 1) - 1, data / 16,
			qp->max_recv_sge, data, 0};
		rxe_create_qp_resp rxe = {};
		if (!qp->is_srq)
			rxe.rq_mi = make_ring(qp->max_recv_wr, 40 + 16 * qp->max_recv_sge);
		rxe.sq_mi = make_ring(qp->max_send_wr, 208 + data);
		answer(qp->response, resp, rxe);
	}

	// Destroying: response 8 bytes, handle, reserved; the answer's last word counts the
	// asynchronous events.
	int destroy(const ib_uverbs_cmd_hdr &h, const void *body, uint32_t maker)
	{
		const ib_uverbs_destroy_qp command = read<ib_uverbs_destroy_qp>(body);
		const auto found = objects.find(command.qp_handle);
		if (!sized(h, 16, maker == IB_USER_VERBS_CMD_CREATE_CQ ? 8 : 4) ||
			found == objects.end() || found->second != maker)
			return EINVAL;
		if (destroy_errno && destroy_errno != EIO)
			return destroy_errno;
		objects.erase(found);
		if (destroy_errno)
			return destroy_errno;
		memcpy(reinterpret_cast<uint8_t *>(command.response) + h.out_words * 4 - 4,
			&events, 4);
		return 0;
	}

	int post_send(const ib_uverbs_cmd_hdr &h, const void *body)
	{
		const ib_uverbs_post_send command = read<ib_uverbs_post_send>(body);
		if (!sized(h, 24, 4) || command.wr_count != 0 || command.sge_count != 0 ||
			command.wqe_size < sizeof(ib_uverbs_send_wr) ||
			!objects.count(command.qp_handle))
			return EINVAL;
		kicked.push_back(command.qp_handle);
		return kick_errno;
	}

	static ssize_t write(int to, const void *data, size_t bytes)
	{
		const ib_uverbs_cmd_hdr h = read<ib_uverbs_cmd_hdr>(data);
		const void *body = static_cast<const uint8_t *>(data) + sizeof(h);
		Kernel &k = *current;
		int error = EINVAL;
		if (to != fd || h.in_words * 4u != bytes)
			error = EBADF;
		else if (h.command == IB_USER_VERBS_CMD_CREATE_CQ ||
			h.command == IB_USER_VERBS_CMD_CREATE_QP ||
			h.command == IB_USER_VERBS_CMD_CREATE_SRQ)
			error = k.create(h, body);
		else if (h.command == IB_USER_VERBS_CMD_DESTROY_CQ)
			error = k.destroy(h, body, IB_USER_VERBS_CMD_CREATE_CQ);
		else if (h.command == IB_USER_VERBS_CMD_DESTROY_QP)
			error = k.destroy(h, body, IB_USER_VERBS_CMD_CREATE_QP);
		else if (h.command == IB_USER_VERBS_CMD_DESTROY_SRQ)
			error = k.destroy(h, body, IB_USER_VERBS_CMD_CREATE_SRQ);
		else if (h.command == IB_USER_VERBS_CMD_POST_SEND)
			error = k.post_send(h, body);
		errno = error;
		return error ? -1 : static_cast<ssize_t>(bytes);
	}

	static void *mmap(void *, size_t bytes, int prot, int flags, int to, off_t offset)
	{
		Kernel &k = *current;
		if (k.fails())
			return MAP_FAILED;
		const auto found = k.rings_.find(static_cast<uint64_t>(offset));
		if (to != fd || found == k.rings_.end() || bytes > found->second.size ||
			prot != (PROT_READ | PROT_WRITE) || flags != MAP_SHARED) {
			errno = EINVAL;
			return MAP_FAILED;
		}
		void *at = ::mmap(nullptr, bytes, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (at == MAP_FAILED)
			return at;
		auto *header = static_cast<rxe_queue_buf *>(at);
		header->log2_elem_size = found->second.log2_slot;
		header->index_mask = found->second.slots - 1;
		mminfo unused = {};
		if (k.spoil)
			k.spoil(header, &unused);
		k.mappings[at] = bytes;
		return at;
	}

	static int munmap(void *at, size_t bytes)
	{
		const auto found = current->mappings.find(at);
		if (found == current->mappings.end() || found->second != bytes) {
			errno = EINVAL;
			return -1;
		}
		current->mappings.erase(found);
		return ::munmap(at, bytes);
	}

	static constexpr nda::rxe::Kernel calls = {write, mmap, munmap};
	static inline Kernel *current = nullptr;

	const nda::rxe::Kernel *before_;
	std::map<uint64_t, Shape> rings_;
	uint32_t last_handle_ = 100;
	uint64_t next_offset_ = 1 << 24;
};

} // namespace rxe_mock

#endif
