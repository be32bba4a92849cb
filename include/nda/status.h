/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The outcome of a device operation, the same for every NIC. Freestanding: C and C++, host
 * and device. What the hardware itself said (status, substatus, WQE index) is latched
 * beside it, see struct nda_queue_error in nda/table.h.
 */
#ifndef NDA_STATUS_H
#define NDA_STATUS_H

enum nda_status {
	NDA_OK = 0,
	/* Reported by a completion. */
	NDA_LOCAL_LENGTH = 1,
	NDA_LOCAL_QP = 2,
	NDA_LOCAL_PROTECTION = 3,
	NDA_FLUSHED = 4,
	NDA_BAD_RESPONSE = 5,
	NDA_LOCAL_ACCESS = 6,
	NDA_REMOTE_INVALID = 7,
	NDA_REMOTE_ACCESS = 8,
	NDA_REMOTE_OPERATION = 9,
	NDA_RETRY_EXCEEDED = 10,
	NDA_RNR_RETRY_EXCEEDED = 11,
	NDA_REMOTE_ABORTED = 12,
	NDA_GENERAL_ERROR = 13, /* an error completion whose code no table knows */
	/* Reported by the data plane itself. */
	NDA_TIMEOUT = 32,       /* the deadline passed before the completion came */
	NDA_RING_FULL = 33,     /* no credit, and waiting was not asked for */
	NDA_INVALID = 34,       /* a bad argument: PE, length, alignment */
	NDA_NOT_SUPPORTED = 35, /* this NIC's format cannot express the operation */
	NDA_QUEUE_LENT = 36,    /* the queue is lent to a compatibility view */
	NDA_BAD_TABLE = 37,     /* the published table's header does not check out */
	NDA_ABORTED = 38,       /* the table's abort word ended a wait */
};

#endif
