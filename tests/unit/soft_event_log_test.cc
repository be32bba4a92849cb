// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The software NIC's event log, read back with a JSON parser of another project.
#include "tests/mock/soft_bench.h"

#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace nda::soft_test {
namespace {

namespace hw = nda::hw::hns1825;
using nlohmann::json;

class EventLog : public testing::Test {
protected:
	EventLog()
	{
		char name[] = "/tmp/nda-events-XXXXXX";
		EXPECT_NE(mkdtemp(name), nullptr);
		directory = name;
		path = directory + "/log";
	}
	~EventLog() override
	{
		unlink(path.c_str());
		rmdir(directory.c_str());
	}
	std::vector<json> lines() const
	{
		std::ifstream file(path);
		EXPECT_TRUE(file) << path;
		std::vector<json> all;
		for (std::string line; std::getline(file, line);)
			all.push_back(json::parse(line));
		return all;
	}
	// The errno of an open that must fail.
	int open_error(const std::string &events) const
	{
		nda_soft_nic_attr attr = {"hns1825", nullptr, 0, 0, events.c_str()};
		errno = 0;
		EXPECT_EQ(api().nic_open(&attr), nullptr);
		EXPECT_NE(detail().find("'" + events + "'"), std::string::npos) << detail();
		return errno;
	}
	static nda_soft_npu_attr manual()
	{
		nda_soft_npu_attr attr = {};
		attr.manual = 1;
		return attr;
	}

	std::string directory, path;
};

std::string hex(uint64_t address)
{
	char text[32];
	snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(address));
	return text;
}

TEST_F(EventLog, TellsOfEveryRequestAndCompletion)
{
	TestNpu npu(manual());
	TestNic nic(nullptr, 0, path.c_str());
	uint64_t a = npu.alloc(4096);
	ibv_mr *mr = nic.reg(a, 4096);
	uint64_t before = now_ns();
	{
		TestQueue x(npu, nic), y(npu, nic);
		x.connect(nic.gid(), y.qpn());
		y.connect(nic.gid(), x.qpn());
		x.write(a, mr->lkey, a + 1024, mr->rkey, 100, false);
		x.read(a + 512, mr->lkey, a + 2048, mr->rkey + 1, 8);
		ASSERT_TRUE(x.wait());

		std::vector<json> all = lines();
		ASSERT_EQ(all.size(), 3u);
		for (const json &line : all) {
			EXPECT_GE(line.at("time_ns").get<uint64_t>(), before);
			EXPECT_LE(line.at("time_ns").get<uint64_t>(), now_ns());
			EXPECT_EQ(line.at("pid"), getpid());
			EXPECT_EQ(line.at("nic"), nic.context()->device->name);
			EXPECT_EQ(line.at("qpn"), x.qpn());
		}
		EXPECT_EQ(all[0].at("event"), "wqe");
		EXPECT_EQ(all[0].at("index"), 0);
		EXPECT_EQ(all[0].at("units"), 1);
		EXPECT_EQ(all[0].at("op"), "write");
		EXPECT_EQ(all[0].at("length"), 100);
		EXPECT_EQ(all[0].at("signalled"), false);
		EXPECT_EQ(all[0].at("fence"), false);
		EXPECT_EQ(all[0].at("inline"), false);
		EXPECT_EQ(all[0].at("remote"), hex(a + 1024));
		EXPECT_EQ(all[0].at("rkey"), mr->rkey);
		EXPECT_EQ(all[0].at("local"),
			json::array({{{"address", hex(a)}, {"length", 100},
				{"lkey", mr->lkey}}}));
		EXPECT_EQ(all[1].at("op"), "read");
		EXPECT_EQ(all[1].at("index"), 1);
		EXPECT_EQ(all[1].at("signalled"), true);
		EXPECT_EQ(all[2].at("event"), "cqe");
		EXPECT_EQ(all[2].at("index"), 1);
		EXPECT_EQ(all[2].at("status"), NDA_REMOTE_ACCESS);
		EXPECT_EQ(all[2].at("cq_index"), 0);
		EXPECT_EQ(all[2].at("cqn"), x.cq()->resv[0]);
	}
	EXPECT_EQ(api().dereg_mr(mr), 0);
}

TEST_F(EventLog, TellsOfBreaches)
{
	TestNpu npu(manual());
	TestNic nic(nullptr, 0, path.c_str());
	TestQueue x(npu, nic), y(npu, nic);
	x.connect(nic.gid(), y.qpn());
	hw::wqe wqe = x.wqe(hw::op_write, 0, 0, 0, 0, 8);
	wqe.opcode = 0x1f;
	x.put_wqe(wqe);
	x.ring();
	ASSERT_TRUE(x.wait());
	std::vector<json> all = lines();
	ASSERT_EQ(all.size(), 2u);
	EXPECT_EQ(all[0].at("event"), "breach");
	EXPECT_EQ(all[0].at("what"), "WQE with an unknown opcode");
	EXPECT_FALSE(all[0].contains("cqn"));
	EXPECT_EQ(all[1].at("event"), "cqe");
	EXPECT_EQ(all[1].at("status"), NDA_LOCAL_QP);
}

TEST_F(EventLog, TellsInWhichCompletionQueueABreachIs)
{
	TestNpu npu(manual());
	TestNic nic(nullptr, 0, path.c_str());
	TestQueue x(npu, nic), y(npu, nic);
	x.connect(nic.gid(), y.qpn());
	*npu.host<uint32_t>(x.cq()->cq_info.dbr_ci_va.iov_base) = hw::cq_record(1);
	x.write(0, 0, 0, 0, 8);
	ASSERT_TRUE(x.wait());
	for (const json &line : lines()) {
		if (line.at("event") != "breach")
			continue;
		EXPECT_EQ(line.at("what"),
			"consumer index that went back, or beyond what was completed");
		EXPECT_EQ(line.at("cqn"), x.cq()->resv[0]);
		return;
	}
	FAIL() << "no breach";
}

TEST_F(EventLog, IsAppendedToByAllThatNameIt)
{
	{
		std::ofstream earlier(path);
		earlier << "{\"event\": \"mine\"}\n";
	}
	TestNpu npu(manual());
	TestNic one(nullptr, 0, path.c_str()), other(nullptr, 0, path.c_str());
	uint64_t a = npu.alloc(64);
	ibv_mr *mr = one.reg(a, 64), *other_mr = other.reg(a, 64);
	{
		TestQueue x(npu, one), y(npu, other);
		x.connect(other.gid(), y.qpn());
		y.connect(one.gid(), x.qpn());
		x.write(a, mr->lkey, a, other_mr->rkey, 8);
		ASSERT_TRUE(x.wait());
		y.write(a, other_mr->lkey, a, mr->rkey, 8);
		ASSERT_TRUE(y.wait());
	}
	EXPECT_EQ(api().dereg_mr(mr), 0);
	EXPECT_EQ(api().dereg_mr(other_mr), 0);
	std::vector<json> all = lines();
	ASSERT_EQ(all.size(), 5u);
	EXPECT_EQ(all[0].at("event"), "mine");
	EXPECT_EQ(all[1].at("nic"), one.context()->device->name);
	EXPECT_EQ(all[3].at("nic"), other.context()->device->name);
}

TEST_F(EventLog, PathThatIsNoneIsRefused)
{
	EXPECT_EQ(open_error(""), ENOENT);
	EXPECT_EQ(open_error(directory), EISDIR);
	EXPECT_EQ(open_error(directory + "/no/log"), ENOENT);
	EXPECT_EQ(open_error("/dev/null/log"), ENOTDIR);
	EXPECT_EQ(open_error("/dev/null"), EINVAL);
	EXPECT_EQ(open_error(directory + "/" + std::string(300, 'x')), ENAMETOOLONG);
	ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
	EXPECT_EQ(open_error(path), ENXIO) << "a FIFO that nobody reads";
	int reader = open(path.c_str(), O_RDONLY | O_NONBLOCK);
	EXPECT_EQ(open_error(path), EINVAL);
	close(reader);
}

TEST_F(EventLog, FileThatMayNotBeWrittenIsRefused)
{
	std::ofstream(path).close();
	ASSERT_EQ(chmod(path.c_str(), 0), 0);
	// The superuser may write anywhere.
	bool root = geteuid() == 0;
	if (root) {
		ASSERT_EQ(seteuid(65534), 0);
	}
	EXPECT_EQ(open_error(path), EACCES);
	if (root) {
		ASSERT_EQ(seteuid(0), 0);
	}
}

TEST_F(EventLog, WriteThatFailsIsToldOfWhenTheNicCloses)
{
	nda_soft_nic_attr attr = {"hns1825", nullptr, 0, 0, path.c_str()};
	ibv_context *context = api().nic_open(&attr);
	ASSERT_TRUE(context);
	{
		TestNpu npu(manual());
		TestNic nic(context);
		TestQueue x(npu, nic), y(npu, nic);
		x.connect(nic.gid(), y.qpn());
		struct rlimit old, small;
		ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
		small = {100, old.rlim_max}; // bytes that a file may have
		auto handler = signal(SIGXFSZ, SIG_IGN);
		ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
		x.write(0, 0, 0, 0, 8);
		std::optional<Cqe> c = x.wait();
		ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
		signal(SIGXFSZ, handler);
		ASSERT_TRUE(c) << "requests do not mind";
		EXPECT_EQ(c->syndrome, hw::syndrome_local_protection);
	}
	EXPECT_NE(api().nic_close(context), 0);
	EXPECT_NE(detail().find(path), std::string::npos) << detail();
	EXPECT_NE(detail().find("not complete"), std::string::npos) << detail();
	EXPECT_EQ(api().nic_close(context), -EINVAL) << "it is closed";
}

} // namespace
} // namespace nda::soft_test
