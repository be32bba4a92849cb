/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the tests that take doorbells of nda_test_ib.ko's RDMA device share. */
#pragma once

#include <fstream>
#include <string>

#include <rdma/ib_user_verbs.h>

#include <tests/vm/kmod_soft_rig.h>
#include <tests/vm/modules/nda_test_ib.h>

namespace nda::test {

/* The RDMA device's node: there may be others. */
inline std::string uverbs_path()
{
	for (int i = 0; i < 32; i++) {
		std::string node = "uverbs" + std::to_string(i), device;
		std::ifstream file("/sys/class/infiniband_verbs/" + node + "/ibdev");

		if (file >> device && device.rfind("nda_test_ib", 0) == 0)
			return "/dev/infiniband/" + node;
	}
	ADD_FAILURE() << "no RDMA device of nda_test_ib";
	return "";
}

/* The RDMA device's file, with a context: its mappings need one. */
inline Fd open_uverbs()
{
	Fd fd(open(uverbs_path().c_str(), O_RDWR | O_CLOEXEC));
	struct {
		ib_uverbs_cmd_hdr header;
		ib_uverbs_get_context context;
	} request = {};
	ib_uverbs_get_context_resp response = {};

	EXPECT_GE(fd, 0) << strerror(errno);
	request.header.command = IB_USER_VERBS_CMD_GET_CONTEXT;
	request.header.in_words = sizeof(request) / 4;
	request.header.out_words = sizeof(response) / 4;
	request.context.response = reinterpret_cast<uintptr_t>(&response);
	EXPECT_EQ(
		write(fd, &request, sizeof(request)), static_cast<ssize_t>(sizeof(request)))
		<< strerror(errno);
	close(static_cast<int>(response.async_fd));
	return fd;
}

/* The page at @va, for vm_edu0. */
inline nda_ioc_db_map doorbell_request(uint64_t va, uint32_t flags = 0)
{
	nda_ioc_db_map map = {};

	map.va = va;
	map.len = static_cast<uint64_t>(getpagesize());
	map.npu = bdf_of("vm_edu0");
	map.src_fd = -1;
	map.flags = flags;
	return map;
}

} // namespace nda::test
