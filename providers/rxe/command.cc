// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "providers/rxe/command.h"

#include <cerrno>
#include <sys/mman.h>
#include <unistd.h>

namespace nda::rxe {
namespace {

constexpr Kernel libc_kernel = {write, mmap, munmap};

template <class Command>
struct Request {
	ib_uverbs_cmd_hdr header;
	Command command;
};

template <class Command, class Answer>
int issue(int fd, uint32_t number, const Command &command, Answer &answer)
{
	Request<Command> request = {};
	request.header.command = number;
	request.header.in_words = sizeof(request) / 4;
	request.header.out_words = sizeof(answer) / 4;
	request.command = command;
	request.command.response = reinterpret_cast<uint64_t>(&answer);
	const ssize_t n = kernel->write(fd, &request, sizeof(request));
	if (n < 0)
		return -errno;
	return static_cast<size_t>(n) == sizeof(request) ? 0 : -EIO;
}

int unless_gone(int rc)
{
	return rc == -EIO || rc == -ENODEV ? 0 : rc;
}

} // namespace

const Kernel *kernel = &libc_kernel;

int create_cq(int fd, uint64_t handle, uint32_t cqe, uint32_t vector, CqAnswer &answer)
{
	ib_uverbs_create_cq command = {};
	command.user_handle = handle;
	command.cqe = cqe;
	command.comp_vector = vector;
	command.comp_channel = -1;
	answer = {};
	return issue(fd, IB_USER_VERBS_CMD_CREATE_CQ, command, answer);
}

int create_qp(int fd, uint64_t handle, uint32_t pd, const ibv_qp_init_attr &attr,
	QpAnswer &answer)
{
	ib_uverbs_create_qp command = {};
	command.user_handle = handle;
	command.pd_handle = pd;
	command.send_cq_handle = attr.send_cq->handle;
	command.recv_cq_handle = attr.recv_cq->handle;
	command.srq_handle = attr.srq ? attr.srq->handle : 0;
	command.max_send_wr = attr.cap.max_send_wr;
	command.max_recv_wr = attr.cap.max_recv_wr;
	command.max_send_sge = attr.cap.max_send_sge;
	command.max_recv_sge = attr.cap.max_recv_sge;
	command.max_inline_data = attr.cap.max_inline_data;
	command.sq_sig_all = attr.sq_sig_all != 0;
	command.qp_type = static_cast<uint8_t>(attr.qp_type);
	command.is_srq = attr.srq != nullptr;
	answer = {};
	return issue(fd, IB_USER_VERBS_CMD_CREATE_QP, command, answer);
}

int create_srq(
	int fd, uint64_t handle, uint32_t pd, const ibv_srq_attr &attr, SrqAnswer &answer)
{
	ib_uverbs_create_srq command = {};
	command.user_handle = handle;
	command.pd_handle = pd;
	command.max_wr = attr.max_wr;
	command.max_sge = attr.max_sge;
	command.srq_limit = attr.srq_limit;
	answer = {};
	return issue(fd, IB_USER_VERBS_CMD_CREATE_SRQ, command, answer);
}

int destroy_cq(int fd, uint32_t handle, uint32_t &events)
{
	ib_uverbs_destroy_cq command = {};
	ib_uverbs_destroy_cq_resp answer = {};
	command.cq_handle = handle;
	const int rc =
		unless_gone(issue(fd, IB_USER_VERBS_CMD_DESTROY_CQ, command, answer));
	events = answer.async_events_reported;
	return rc;
}

int destroy_qp(int fd, uint32_t handle, uint32_t &events)
{
	ib_uverbs_destroy_qp command = {};
	ib_uverbs_destroy_qp_resp answer = {};
	command.qp_handle = handle;
	const int rc =
		unless_gone(issue(fd, IB_USER_VERBS_CMD_DESTROY_QP, command, answer));
	events = answer.events_reported;
	return rc;
}

int destroy_srq(int fd, uint32_t handle, uint32_t &events)
{
	ib_uverbs_destroy_srq command = {};
	ib_uverbs_destroy_srq_resp answer = {};
	command.srq_handle = handle;
	const int rc =
		unless_gone(issue(fd, IB_USER_VERBS_CMD_DESTROY_SRQ, command, answer));
	events = answer.events_reported;
	return rc;
}

int kick_send_queue(int fd, uint32_t qp)
{
	ib_uverbs_post_send command = {};
	ib_uverbs_post_send_resp answer = {};
	command.qp_handle = qp;
	command.wqe_size = sizeof(ib_uverbs_send_wr);
	return issue(fd, IB_USER_VERBS_CMD_POST_SEND, command, answer);
}

} // namespace nda::rxe
