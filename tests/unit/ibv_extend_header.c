/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The public header in C: it compiles alone, its layout holds, and its functions link. */
#include "tests/unit/ibv_extend_layout.h"

const char *extend_version_from_c(void);
uint64_t extend_bits_from_c(unsigned resource_id, unsigned offset);

static const struct verbs_device_extend_ops nameless_driver;
PROVIDER_EXTEND_DRIVER(nameless_driver)

const char *extend_version_from_c(void)
{
	return ibv_extend_get_version(NULL, NULL, NULL);
}

/* The third word of a UB doorbell descriptor. */
uint64_t extend_bits_from_c(unsigned resource_id, unsigned offset)
{
	union {
		struct doorbell_map_desc desc;
		uint64_t words[5];
	} view = {.words = {0}};
	view.desc.ub_res.bits.resource_id = resource_id & 0xf;
	view.desc.ub_res.bits.offset = offset;
	return view.words[2];
}
