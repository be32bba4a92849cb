// SPDX-License-Identifier: GPL-2.0
/* Since 6.8 a signal adds one, always. */
#include <linux/eventfd.h>
void probe(struct eventfd_ctx *ctx);
void probe(struct eventfd_ctx *ctx)
{
	eventfd_signal(ctx);
}
