// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <cerrno>
#include <nda/npu.h>

#include "lib/nda/guard.h"

namespace {

struct Status {
	int status;
	int error;
	const char *text;
};

constexpr Status statuses[] = {
	{NDA_OK, 0, "ok"},
	{NDA_LOCAL_LENGTH, -EMSGSIZE, "local length error"},
	{NDA_LOCAL_QP, -EIO, "local queue pair operation error"},
	{NDA_LOCAL_PROTECTION, -EFAULT, "local protection error"},
	{NDA_FLUSHED, -ECANCELED, "flushed after an earlier error of the queue"},
	{NDA_BAD_RESPONSE, -EPROTO, "bad response"},
	{NDA_LOCAL_ACCESS, -EACCES, "local access error"},
	{NDA_REMOTE_INVALID, -EINVAL, "remote invalid request"},
	{NDA_REMOTE_ACCESS, -EACCES, "remote access error"},
	{NDA_REMOTE_OPERATION, -EREMOTEIO, "remote operation error"},
	{NDA_RETRY_EXCEEDED, -ECONNRESET, "retry count exceeded: the peer does not answer"},
	{NDA_RNR_RETRY_EXCEEDED, -ENOBUFS, "receiver-not-ready retry count exceeded"},
	{NDA_REMOTE_ABORTED, -ECONNABORTED, "remote aborted"},
	{NDA_GENERAL_ERROR, -EIO, "completion with an unknown error code"},
	{NDA_TIMEOUT, -ETIMEDOUT, "no completion before the deadline"},
	{NDA_RING_FULL, -EAGAIN, "queue full"},
	{NDA_INVALID, -EINVAL, "invalid argument of a device call"},
	{NDA_NOT_SUPPORTED, -EOPNOTSUPP, "not supported by this NIC's queue format"},
	{NDA_QUEUE_LENT, -EBUSY, "the queue is lent to a compatibility view"},
	{NDA_BAD_TABLE, -EBADMSG, "the published table is not valid"},
	{NDA_ABORTED, -ECANCELED, "the host ended the wait"},
};

const Status *find(int status)
{
	for (const Status &s : statuses)
		if (s.status == status)
			return &s;
	return nullptr;
}

} // namespace

NDA_API const char *nda_status_string(int status) noexcept
{
	const Status *s = find(status);
	return s ? s->text : "unknown status";
}

NDA_API int nda_status_to_errno(int status) noexcept
{
	const Status *s = find(status);
	return s ? s->error : -EIO;
}
