// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// open_extend DEVICE: opens an extension context over a verbs device of that name. Prints
// 'opened, ext_cap N' and exits 0; or 'NULL, errno NAME' and exits 2.

#include "ibv_extend.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace {

ibv_context *open_device(const char *name)
{
	int n = 0;
	ibv_device **list = ibv_get_device_list(&n);
	ibv_context *context = nullptr;
	for (int i = 0; i < n; i++) {
		if (strcmp(ibv_get_device_name(list[i]), name) == 0)
			context = ibv_open_device(list[i]);
	}
	if (list)
		ibv_free_device_list(list);
	return context;
}

int open_extend(ibv_context *context)
{
	errno = 0;
	ibv_context_extend *extend = ibv_open_extend(context);
	if (!extend) {
		printf("NULL, errno %s\n", strerrorname_np(errno));
		return 2;
	}
	ibv_device_attr_extend attr = {};
	const int query = ibv_query_device_extend(extend, &attr);
	const bool same = extend->context == context;
	const int close = ibv_close_extend(extend);
	if (query != 0 || close != 0 || !same) {
		printf("query %d, close %d, context %s\n", query, close,
			same ? "the same" : "another");
		return 1;
	}
	printf("opened, ext_cap %u\n", attr.ext_cap);
	return 0;
}

} // namespace

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: open_extend DEVICE\n");
		return 1;
	}
	ibv_context *context = open_device(argv[1]);
	if (!context) {
		fprintf(stderr, "open_extend: no verbs device %s opens\n", argv[1]);
		return 1;
	}
	const int status = open_extend(context);
	return ibv_close_device(context) == 0 ? status : 1;
}
