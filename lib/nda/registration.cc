// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/nda/registration.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "lib/nda/error.h"

namespace nda {
namespace {

constexpr const char *environment = "NDA_MR_WAY";

struct Way {
	nda_mr_way way;
	const char *name;
	const char *text;
};
constexpr Way ways[] = {{NDA_MR_PAGES, "pages", "ordinary pages"},
	{NDA_MR_DMABUF, "dmabuf", "a dma-buf"}, {NDA_MR_PEER, "peer", "peer memory"},
	{NDA_MR_HOST, "host", "host memory mapped to the NPU"}};

} // namespace

int mr_way_of_environment(uint32_t &way)
{
	const char *asked = secure_getenv(environment);
	if (!asked || !*asked) {
		way = NDA_MR_ANY;
		return 0;
	}
	for (const Way &w : ways) {
		if (strcmp(asked, w.name) != 0)
			continue;
		way = w.way;
		return 0;
	}
	return fail(
		-EINVAL, "%s=%s: it is pages, dmabuf, peer or host", environment, asked);
}

const char *mr_way_text(uint32_t way)
{
	for (const Way &w : ways)
		if (w.way == way)
			return w.text;
	return way == NDA_MR_SOFT ? "the software fabric" : "no way";
}

nda_mr_info &mr_tried()
{
	static thread_local nda_mr_info tried;
	return tried;
}

} // namespace nda
