// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// How the cores of a test's NPUs ring, so that a suite can run in every way:
// NDA_TEST_DOORBELL=map|proxy; unset: as libnda does it by itself.
#ifndef NDA_TESTS_MOCK_NDA_DOORBELL_H
#define NDA_TESTS_MOCK_NDA_DOORBELL_H

#include <cstdlib>
#include <cstring>

#include <nda/channel.h>
#include <nda/npu.h>

namespace nda::test {

struct DoorbellWay {
	uint32_t npu_flags; // enum nda_npu_flags
	uint32_t dma_mode;  // enum nda_dma_mode
	uint32_t doorbell;  // enum nda_doorbell, what comes of it
};

inline DoorbellWay doorbell_way()
{
	const char *name = getenv("NDA_TEST_DOORBELL");
	if (!name)
		return {0, NDA_DMA_AUTO, NDA_DOORBELL_MAPPED};
	if (!strcmp(name, "map"))
		return {NDA_NPU_DOORBELL_MAP, NDA_DMA_PCIE, NDA_DOORBELL_MAPPED};
	if (!strcmp(name, "proxy"))
		return {NDA_NPU_DOORBELL_PROXY, NDA_DMA_PCIE, NDA_DOORBELL_PROXIED};
	abort();
}

} // namespace nda::test

#endif
