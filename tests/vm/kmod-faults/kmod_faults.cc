/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Each thing that can fail within a call fails in turn: the call says so, and nothing is
 * left. */
#include <fstream>

#include <tests/vm/kmod_memory.h>
#include <tests/vm/kmod_soft_rig.h>

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
	/* @run gives 0 or an errno. Where it succeeds, closing @nda ends @objects objects.
	 */
	static void each(const char *what, unsigned int objects,
		const std::function<int(int nda)> &run)
	{
		int n = 1;

		for (bool more = true; more; n++) {
			Fd nda = open_nda();
			uint64_t before = count(nda, NDA_COUNT_OBJECTS);

			set_fail_at(n);
			int error = run(nda);
			more = fail_at() == 0;
			set_fail_at(0);
			EXPECT_EQ(error != 0, more)
				<< what << " " << n << ": " << strerror(error);
			EXPECT_EQ(count(nda, NDA_COUNT_OBJECTS),
				before + (more ? 0 : objects))
				<< what << " " << n;
			ASSERT_LT(n, 100) << what;
		}
		std::cout << what << ": " << n - 2 << " things can fail\n";
		EXPECT_GE(n, 4) << what;
	}
};

TEST_F(KmodFaults, Pin)
{
	Pages memory(page);

	each("a pin", 1, [&](int nda) {
		nda_ioc_host_pin arg = {};

		arg.va = memory.va() + 100;
		arg.len = 5;
		arg.dev = bdf_of("vm_edu0");
		arg.access = NDA_ACCESS_READ | NDA_ACCESS_WRITE;
		return call(nda, NDA_IOC_HOST_PIN, &arg);
	});
}

TEST_F(KmodFaults, Export)
{
	Fd soft = open_soft();
	SoftMemory memory(soft, 4 * page);

	each("an export", 1,
		[&](int nda) { return make_export(nda, memory.map.va(), 4 * page).error; });
}

TEST_F(KmodFaults, AttachingAndMappingADmaBuf)
{
	Fd soft = open_soft(), owner = open_nda();
	SoftMemory memory(soft, 4 * page);
	Export made = make_export(owner, memory.map.va(), 4 * page);
	ASSERT_EQ(made.error, 0);

	each("attaching and mapping", 0, [&](int) {
		Importer importer;
		int error = importer.attach(made.fd);

		return error ? error : importer.map();
	});
	EXPECT_EQ(status_of(owner, made.handle).attachments, 0u);
	EXPECT_EQ(status_of(owner, made.handle).mappings, 0u);
}

} // namespace
