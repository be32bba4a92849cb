// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// A verbs device that no kernel knows: what libibv_extend looks at, and nothing else. No
// function of libibverbs may be called on it.
#ifndef NDA_TESTS_MOCK_EXTEND_DEVICE_H
#define NDA_TESTS_MOCK_EXTEND_DEVICE_H

#include <cstdio>
#include <infiniband/verbs.h>

namespace extend_mock {

struct Device {
	explicit Device(const char *driver_name, const char *device_name = "mock0")
	{
		ops.name = driver_name;
		verbs.ops = &ops;
		snprintf(verbs.device.name, sizeof(verbs.device.name), "%s", device_name);
		context.device = &verbs.device;
	}
	Device(const Device &) = delete;
	Device &operator=(const Device &) = delete;

	struct Ops {
		const char *name;
		void *rest[64];
	};
	// Begins as rdma-core's struct verbs_device.
	struct Verbs {
		ibv_device device;
		const Ops *ops;
	};
	Ops ops = {};
	Verbs verbs = {};
	ibv_context context = {};
};

} // namespace extend_mock

#endif
