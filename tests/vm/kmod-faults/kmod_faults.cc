/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Each thing that can fail within a call fails in turn: the call says so, and nothing is
 * left. */
#include <fstream>

#include <tests/vm/kmod_doorbell_rig.h>
#include <tests/vm/kmod_memory.h>
#include <tests/vm/kmod_peer_rig.h>

namespace {

using namespace nda::test;

const char *const parameter = "/sys/module/nda/parameters/fail_at";

void set_fail_at(int n)
{
	std::ofstream file(parameter);

	file << n << std::flush;
	EXPECT_TRUE(file.good()) << parameter;
}

int fault_parameter(const std::string &name)
{
	std::ifstream file("/sys/module/nda/parameters/" + name);
	int n = -1;

	file >> n;
	return n;
}

int fail_at()
{
	return fault_parameter("fail_at");
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
	SoftMemory memory(soft, 4 * page, NDA_SOFT_BAR);

	each("an export", 1,
		[&](int nda) { return make_export(nda, memory.map.va(), 4 * page).error; });
}

TEST_F(KmodFaults, AttachingAndMappingADmaBuf)
{
	Fd soft = open_soft(), owner = open_nda();
	SoftMemory memory(soft, 4 * page, NDA_SOFT_BAR);
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

class KmodFaultsDoorbell : public KmodFaults {
protected:
	static int take(int nda, uint64_t va, uint32_t flags)
	{
		nda_ioc_db_map arg = doorbell_request(va, flags);

		return call(nda, NDA_IOC_DB_MAP, &arg);
	}

	Fd uverbs_ = open_uverbs();
	Mapping bell_{uverbs_, NDA_TEST_IB_BAR *page, page};
};

TEST_F(KmodFaultsDoorbell, ForDma)
{
	each("a doorbell", 1, [&](int nda) { return take(nda, bell_.va(), 0); });
}

TEST_F(KmodFaultsDoorbell, ForAProxy)
{
	each("a doorbell's proxy", 1,
		[&](int nda) { return take(nda, bell_.va(), NDA_DB_PROXY); });
}

TEST_F(KmodFaultsDoorbell, FromADmaBuf)
{
	Fd soft = open_soft(), owner = open_nda();
	SoftMemory memory(soft, page, NDA_SOFT_BAR);
	Export made = make_export(owner, memory.map.va(), page);
	ASSERT_EQ(made.error, 0);
	ASSERT_EQ(write_sysfs("/sys/module/nda/parameters/doorbell", "any"), 0);

	each("a doorbell from a dma-buf", 1, [&](int nda) {
		nda_ioc_db_map arg = doorbell_request(0, NDA_DB_FROM_DMABUF);

		arg.src_fd = made.fd;
		return call(nda, NDA_IOC_DB_MAP, &arg);
	});
	EXPECT_EQ(write_sysfs("/sys/module/nda/parameters/doorbell", "uverbs"), 0);
}

TEST_F(KmodFaults, RegisteringByPeerMemory)
{
	Fd soft = open_soft();
	SoftMemory memory(soft, 4 * page, NDA_SOFT_BAR);
	Peer peer;

	each("registering by peer memory", 0, [&](int) {
		Reg reg = peer.reg(memory.map.va() + 100, page);

		return reg.error ? reg.error : peer.dereg(reg.handle);
	});
	EXPECT_EQ(peer.state().umems, 0u);
	EXPECT_EQ(peer.state().wrong, 0u);
}

/* The second of two devices that map it: the first one's mapping is undone. */
TEST_F(KmodFaults, RegisteringForTwoDevices)
{
	Fd soft = open_soft();
	SoftMemory memory(soft, 4 * page, NDA_SOFT_BAR);
	Peer peer;

	each("registering for two devices", 0, [&](int) {
		Reg reg = peer.reg(memory.map.va(), 4 * page, NDA_TEST_PEER_TWO);

		return reg.error ? reg.error : peer.dereg(reg.handle);
	});
	EXPECT_EQ(peer.state().umems, 0u);
}

/* With sink_remap=1. */
class KmodFaultsSink : public KmodFaults {};

TEST_F(KmodFaultsSink, TheSinkGoesWithItsMapping)
{
	Fd soft = open_soft(), nda = open_nda();
	SoftMemory memory(soft, 4 * page, NDA_SOFT_BAR);
	Importer importer;
	Export made = make_export(nda, memory.map.va(), 4 * page);
	ASSERT_EQ(made.error, 0);
	ASSERT_EQ(importer.attach(made.fd, NDA_TEST_IGNORE), 0);
	ASSERT_EQ(importer.map(), 0);
	EXPECT_EQ(soft_free(soft, memory.request.handle), 0);
	const int freed = fault_parameter("freed");
	EXPECT_EQ(importer.unmap(), 0);
	EXPECT_EQ(fault_parameter("freed"), freed + 1);
}

TEST_F(KmodFaultsSink, WhatCannotBeLedToTheSinkIsNeverUsedAgain)
{
	if (access("/sys/kernel/debug/dma-api", F_OK) == 0)
		GTEST_SKIP() << "this kernel complains of mappings that are never undone";
	Fd soft = open_soft(), nda = open_nda();
	std::vector<uint8_t> bytes(64, 0xa5);

	for (int n = 1; n <= 4; n++) {
		SoftMemory memory(soft, 4 * page, NDA_SOFT_BAR);
		Importer importer, next;
		Export made = make_export(nda, memory.map.va(), 4 * page);
		ASSERT_EQ(made.error, 0);
		ASSERT_EQ(importer.attach(made.fd, NDA_TEST_IGNORE), 0);
		ASSERT_EQ(importer.map(), 0);

		/* The first of its pages that the sink is to take the place of, and so on.
		 */
		set_fail_at(n);
		EXPECT_EQ(soft_free(soft, memory.request.handle), 0);
		EXPECT_EQ(fail_at(), 0);
		EXPECT_EQ(status_of(nda, made.handle).mappings, 0u);
		/* Those before it lead there. */
		if (n > 1) {
			EXPECT_EQ(importer.write(0, bytes, NDA_TEST_STALE), 0);
		}
		const int freed = fault_parameter("freed");
		EXPECT_EQ(importer.unmap(), 0);
		EXPECT_EQ(fault_parameter("freed"), freed)
			<< "the device still has that page";

		/* Other memory has other addresses. */
		SoftMemory other(soft, 4 * page, NDA_SOFT_BAR);
		Export again = make_export(nda, other.map.va(), 4 * page);
		ASSERT_EQ(next.attach(again.fd), 0);
		ASSERT_EQ(next.map(), 0);
		EXPECT_EQ(next.write(page, bytes), 0);
		EXPECT_EQ(memcmp(const_cast<uint8_t *>(other.map.data()) + page,
				  bytes.data(), bytes.size()),
			0);
		EXPECT_EQ(soft_free(soft, other.request.handle), 0);
	}
}

} // namespace
