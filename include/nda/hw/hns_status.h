/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What an error completion of the Hisilicon RoCE NICs says: one table of numbers for Ascend
 * 910's own NIC, where it is from that NIC's driver, and the 1825, where it is from the
 * RoCE driver of the NIC's family and unverified.
 */
#ifndef NDA_HW_HNS_STATUS_H
#define NDA_HW_HNS_STATUS_H

#include <stdint.h>

#include <nda/hw/defs.h>
#include <nda/status.h>

namespace nda::hw::hns {

enum syndrome : uint8_t {
	syndrome_local_length = 0x01,
	syndrome_local_qp = 0x02,
	syndrome_local_protection = 0x04,
	syndrome_flushed = 0x05,
	syndrome_mw_bind = 0x06,
	syndrome_bad_response = 0x10,
	syndrome_local_access = 0x11,
	syndrome_remote_invalid = 0x12,
	syndrome_remote_access = 0x13,
	syndrome_remote_operation = 0x14,
	syndrome_retry_exceeded = 0x15,
	syndrome_rnr_retry_exceeded = 0x16,
	syndrome_remote_aborted = 0x22,
	syndrome_general = 0x23,
	syndrome_xrc_violation = 0x24,
};

/* The status of an error CQE: never NDA_OK, whatever the number; 0 and unknown ones are
 * NDA_GENERAL_ERROR. A table would be static data: the first eight are the digits of one
 * number. */
NDA_DEV enum nda_status status_of(uint8_t s)
{
	constexpr uint32_t first_eight = NDA_GENERAL_ERROR << 0 | NDA_LOCAL_LENGTH << 4 |
		NDA_LOCAL_QP << 8 | NDA_GENERAL_ERROR << 12 | NDA_LOCAL_PROTECTION << 16 |
		NDA_FLUSHED << 20 | NDA_GENERAL_ERROR << 24 |
		uint32_t{NDA_GENERAL_ERROR} << 28;

	if (s < 8)
		return static_cast<enum nda_status>(first_eight >> (s * 4) & 15);
	if (s >= syndrome_bad_response && s <= syndrome_rnr_retry_exceeded)
		return static_cast<enum nda_status>(
			s - syndrome_bad_response + NDA_BAD_RESPONSE);
	return s == syndrome_remote_aborted ? NDA_REMOTE_ABORTED : NDA_GENERAL_ERROR;
}

/* What a NIC says for @status, which a completion can have; digits again. */
NDA_DEV uint8_t syndrome_of(enum nda_status status)
{
	constexpr uint32_t first_four = syndrome_local_length << 0 |
		syndrome_local_qp << 4 | syndrome_local_protection << 8 |
		syndrome_flushed << 12;

	if (status >= NDA_LOCAL_LENGTH && status <= NDA_FLUSHED)
		return static_cast<uint8_t>(
			first_four >> ((status - NDA_LOCAL_LENGTH) * 4) & 15);
	if (status >= NDA_BAD_RESPONSE && status <= NDA_RNR_RETRY_EXCEEDED)
		return static_cast<uint8_t>(
			status - NDA_BAD_RESPONSE + syndrome_bad_response);
	return status == NDA_REMOTE_ABORTED ? syndrome_remote_aborted : syndrome_general;
}

} // namespace nda::hw::hns

#endif
