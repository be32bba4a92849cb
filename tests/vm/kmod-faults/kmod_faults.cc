/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Each thing that can fail within a call fails in turn: the call says so, and nothing is
 * left. */
#include <fstream>

#include <tests/vm/kmod_rig.h>

namespace {

using namespace nda::test;

const char *const parameter = "/sys/module/nda/parameters/fail_at";

void set_fail_at(int n)
{
	std::ofstream file(parameter);

	file << n << std::flush;
	EXPECT_TRUE(file.good()) << parameter;
}

int fail_at()
{
	std::ifstream file(parameter);
	int n = -1;

	file >> n;
	return n;
}

class KmodFaults : public KmodTest {
protected:
	/* @run gives 0 or an errno, and leaves nothing that closing @nda does not end. */
	static void each(const char *what, const std::function<int(int nda)> &run)
	{
		int n = 1;

		for (bool more = true; more; n++) {
			Fd nda = open_nda();
			uint64_t objects = count(nda, NDA_COUNT_OBJECTS);

			set_fail_at(n);
			int error = run(nda);
			more = fail_at() == 0;
			set_fail_at(0);
			EXPECT_EQ(error != 0, more)
				<< what << " " << n << ": " << strerror(error);
			EXPECT_EQ(count(nda, NDA_COUNT_OBJECTS), objects + (more ? 0 : 1))
				<< what << " " << n;
			ASSERT_LT(n, 100) << what;
		}
		std::cout << what << ": " << n - 2 << " things can fail\n";
		EXPECT_GE(n, 5) << what;
	}
};

TEST_F(KmodFaults, Pin)
{
	Pages memory(4096);

	each("a pin", [&](int nda) {
		nda_ioc_host_pin arg = {};

		arg.va = memory.va() + 100;
		arg.len = 5;
		arg.dev = bdf_of("vm_edu0");
		arg.access = NDA_ACCESS_READ | NDA_ACCESS_WRITE;
		return call(nda, NDA_IOC_HOST_PIN, &arg);
	});
}

} // namespace
