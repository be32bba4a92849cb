// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Commands of the kernel's public verbs interface (rdma/ib_user_verbs.h), written to the
// command descriptor of a verbs context. What rdma_rxe appends to the answers is in
// rdma/rdma_user_rxe.h.
#ifndef NDA_RXE_COMMAND_H
#define NDA_RXE_COMMAND_H

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>
#include <sys/types.h>

#include "providers/rxe/uapi.h"

namespace nda::rxe {

// The system calls that reach the kernel's driver; tests play it.
struct Kernel {
	ssize_t (*write)(int fd, const void *data, size_t bytes);
	void *(*mmap)(void *addr, size_t bytes, int prot, int flags, int fd, off_t offset);
	int (*munmap)(void *addr, size_t bytes);
};
extern const Kernel *kernel;

// An answer and what rdma_rxe appends to it. Bytes, for some headers end the first struct
// with a flexible array.
template <class Verbs, class Rxe>
class Answer {
public:
	Verbs verbs() const
	{
		Verbs v;
		memcpy(&v, bytes_, sizeof(v));
		return v;
	}
	Rxe rxe() const
	{
		Rxe r;
		memcpy(&r, bytes_ + sizeof(Verbs), sizeof(r));
		return r;
	}

private:
	alignas(8) uint8_t bytes_[sizeof(Verbs) + sizeof(Rxe)] = {};
};
using CqAnswer = Answer<ib_uverbs_create_cq_resp, rxe_create_cq_resp>;
using QpAnswer = Answer<ib_uverbs_create_qp_resp, rxe_create_qp_resp>;
using SrqAnswer = Answer<ib_uverbs_create_srq_resp, rxe_create_srq_resp>;
static_assert(sizeof(CqAnswer) == 24 && sizeof(QpAnswer) == 64 && sizeof(SrqAnswer) == 40,
	"the kernel appends without a gap");

// 0 or a negative errno. handle: comes back in asynchronous events, the verbs object's
// address.
int create_cq(int fd, uint64_t handle, uint32_t cqe, uint32_t vector, CqAnswer &answer);
int create_qp(int fd, uint64_t handle, uint32_t pd, const ibv_qp_init_attr &attr,
	QpAnswer &answer);
int create_srq(
	int fd, uint64_t handle, uint32_t pd, const ibv_srq_attr &attr, SrqAnswer &answer);

// events: asynchronous events of the object that were reported; each is acknowledged before
// it may be freed. A device that is gone has taken its objects along: 0, and no events.
int destroy_cq(int fd, uint32_t handle, uint32_t &events);
int destroy_qp(int fd, uint32_t handle, uint32_t &events);
int destroy_srq(int fd, uint32_t handle, uint32_t &events);

// Tells the kernel that the send queue holds WQEs: posts none in its own way.
int kick_send_queue(int fd, uint32_t qp);

} // namespace nda::rxe

#endif
