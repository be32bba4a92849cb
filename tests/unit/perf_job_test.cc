// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The PEs of these jobs are shells.
#include "lib/tools/perf/job.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <fstream>
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/common/fd.h"

namespace {

using namespace nda::perf;
using testing::ElementsAre;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

// A shell script that gets the PE as $pe, its ticket as descriptor $ticket, and sees
// standard output as its report. The report's descriptor is in the ticket: 4 bytes at 44.
const char prelude[] = R"(
for word; do case $word in --job-pe=*) pe=${word#*=};; --job-fd=*) ticket=${word#*=};; esac; done
dd bs=48 count=1 </proc/self/fd/$ticket 2>/dev/null | od -An -tu4 -w4 -v >"$0.ticket.$pe"
report=$(sed -n 12p "$0.ticket.$pe" | tr -d ' ')
exec 1>/proc/self/fd/$report
)";

class PerfJob : public testing::Test {
protected:
	PerfJob()
	{
		char name[] = "/tmp/perf_job.XXXXXX";
		dir_ = mkdtemp(name);
		plan_.n_pes = 3;
		callbacks_.line = [this](uint32_t pe, const std::string &line) {
			lines_[pe].push_back(line);
		};
		callbacks_.end = [this](uint32_t pe, int status) { ends_[pe] = status; };
		callbacks_.failure = [this](const std::string &m) {
			failures_.push_back(m);
		};
	}
	~PerfJob() override
	{
		std::string command = "rm -rf " + dir_;
		EXPECT_EQ(system(command.c_str()), 0);
	}

	int run(const std::string &script)
	{
		plan_.program = dir_ + "/pe";
		std::ofstream file(plan_.program);
		file << "#!/bin/sh" << prelude << script << "\n";
		file.close();
		EXPECT_EQ(chmod(plan_.program.c_str(), 0700), 0);
		started_ = Clock::now();
		int sig = run_job(plan_, callbacks_);
		seconds_ = std::chrono::duration<double>(Clock::now() - started_).count();
		return sig;
	}
	std::string slurp(const std::string &name)
	{
		std::ifstream file(dir_ + "/" + name);
		return {std::istreambuf_iterator<char>(file), {}};
	}

	std::string dir_;
	JobPlan plan_;
	JobCallbacks callbacks_;
	std::map<uint32_t, std::vector<std::string>> lines_;
	std::map<uint32_t, int> ends_;
	std::vector<std::string> failures_;
	Clock::time_point started_;
	double seconds_ = 0;
};

TEST_F(PerfJob, Run_DeliversEveryPesLinesAndEnd)
{
	plan_.arguments = {"put", "--json"};
	EXPECT_EQ(run("echo hello $pe $4; echo; echo $3"), 0);
	for (uint32_t pe = 0; pe < 3; pe++) {
		EXPECT_THAT(lines_[pe],
			ElementsAre("hello " + std::to_string(pe) + " --json", "", "put"));
		EXPECT_EQ(ends_.at(pe), 0);
	}
	EXPECT_TRUE(failures_.empty());
}

TEST_F(PerfJob, Run_GivesAllPesOneSecretThatDiffersFromJobToJob)
{
	EXPECT_EQ(run("exit 0"), 0);
	auto secret = [&](int pe) {
		std::string words = slurp("pe.ticket." + std::to_string(pe));
		size_t end = 0;
		for (int i = 0; i < 8; i++)
			end = words.find('\n', end) + 1;
		return words.substr(0, end);
	};
	std::string first = secret(0);
	EXPECT_FALSE(first.empty());
	EXPECT_EQ(secret(1), first);
	EXPECT_EQ(secret(2), first);
	EXPECT_EQ(run("exit 0"), 0);
	EXPECT_NE(secret(0), first);
}

TEST_F(PerfJob, Run_LeavesOnlyTicketAndReportOpenAndTheSocketToPe0)
{
	// By way of a file: a pipe of the shell's own would be counted, too.
	EXPECT_EQ(run("ls -l /proc/$$/fd >$0.fds.$pe; grep -c socket: $0.fds.$pe; "
		      "grep -c pipe: $0.fds.$pe"),
		0);
	// The shell's own standard streams may be pipes or sockets of the test's runner.
	int sockets_of_0 = std::stoi(lines_[0].at(0));
	EXPECT_EQ(std::stoi(lines_[1].at(0)), sockets_of_0 - 1);
	EXPECT_EQ(std::stoi(lines_[2].at(0)), sockets_of_0 - 1);
	EXPECT_EQ(lines_[0].at(1), lines_[2].at(1));
}

TEST_F(PerfJob, Run_TakesManyLinesAndLongOnes)
{
	EXPECT_EQ(run("seq 1 20000; head -c 200000 /dev/zero | tr '\\0' x; echo"), 0);
	for (uint32_t pe = 0; pe < 3; pe++) {
		ASSERT_EQ(lines_[pe].size(), 20001u);
		EXPECT_EQ(lines_[pe][19999], "20000");
		EXPECT_EQ(lines_[pe][20000].size(), 200000u);
	}
}

TEST_F(PerfJob, Run_EndsTheOthersSoonAfterOneDied)
{
	plan_.grace_ms = 200;
	EXPECT_EQ(
		run("if [ $pe = 1 ]; then echo last words; kill -9 $$; fi; exec sleep 60"),
		0);
	EXPECT_LT(seconds_, 20);
	ASSERT_EQ(ends_.size(), 1u); // those ended by the parent have nothing to explain
	EXPECT_TRUE(WIFSIGNALED(ends_[1]));
	EXPECT_EQ(WTERMSIG(ends_[1]), SIGKILL);
	EXPECT_THAT(lines_[1], ElementsAre("last words"));
}

TEST_F(PerfJob, Run_LetsTheOthersSayWhatTheySaw)
{
	plan_.grace_ms = 60000;
	EXPECT_EQ(run("if [ $pe = 1 ]; then exit 4; fi; sleep 0.3; echo peer gone; exit 1"),
		0);
	EXPECT_EQ(WEXITSTATUS(ends_.at(1)), 4);
	EXPECT_EQ(WEXITSTATUS(ends_.at(0)), 1);
	EXPECT_THAT(lines_[0], ElementsAre("peer gone"));
	EXPECT_THAT(lines_[2], ElementsAre("peer gone"));
}

TEST_F(PerfJob, Run_EndsAJobThatSaysNothing)
{
	plan_.silence_ms = 300;
	EXPECT_EQ(run("exec sleep 60"), 0);
	EXPECT_LT(seconds_, 20);
	ASSERT_EQ(failures_.size(), 1u);
	EXPECT_THAT(failures_[0], HasSubstr("no PE reported anything"));
}

TEST_F(PerfJob, Run_ReportsAProgramThatCannotBeStarted)
{
	plan_.program = "/no/such/program";
	EXPECT_EQ(run_job(plan_, callbacks_), 0);
	ASSERT_FALSE(ends_.empty());
	EXPECT_EQ(WEXITSTATUS(ends_.begin()->second), 127);
}

// A job in a process of its own, so that signals can be sent to it.
class PerfJobSignals : public PerfJob {
protected:
	void expect_end_by(int sig)
	{
		int ends[2];
		ASSERT_EQ(pipe(ends), 0);
		nda::Fd read_end(ends[0]);
		pid_t parent = fork();
		if (parent == 0) {
			callbacks_.line = [&](uint32_t, const std::string &line) {
				std::string text = line + "\n";
				if (write(ends[1], text.data(), text.size()) < 0)
					_exit(1);
			};
			_exit(run("echo $$; exec sleep 60") == SIGTERM ? 42 : 1);
		}
		close(ends[1]);
		FILE *file = fdopen(dup(read_end.get()), "r");
		std::set<int> pids;
		int pid;
		while (pids.size() < 3 && fscanf(file, "%d", &pid) == 1)
			pids.insert(pid);
		ASSERT_EQ(pids.size(), 3u);
		ASSERT_EQ(kill(parent, sig), 0);
		int status;
		ASSERT_EQ(waitpid(parent, &status, 0), parent);
		EXPECT_EQ(status, sig == SIGTERM ? 42 << 8 : sig);
		// All write ends are gone: whoever held one has ended, or is about to.
		EXPECT_EQ(fscanf(file, "%d", &pid), EOF);
		fclose(file);
		for (int child : pids) {
			Clock::time_point limit = Clock::now() + std::chrono::seconds(20);
			while (alive(child) && Clock::now() < limit)
				usleep(1000);
			EXPECT_FALSE(alive(child)) << child;
		}
	}

	// A zombie that its new parent has yet to reap is dead, too.
	static bool alive(int pid)
	{
		std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
		std::string text{std::istreambuf_iterator<char>(stat), {}};
		size_t at = text.rfind(") ");
		return at != std::string::npos && text[at + 2] != 'Z' &&
			text[at + 2] != 'X';
	}
};

TEST_F(PerfJobSignals, Run_EndsThePesWhenAskedToEnd)
{
	expect_end_by(SIGTERM);
}

TEST_F(PerfJobSignals, Pes_DieWithTheirParent)
{
	expect_end_by(SIGKILL);
}

TEST(PerfTicket, Read_RefusesWhatIsNoTicket)
{
	Ticket ticket;
	errno = 0;
	EXPECT_FALSE(read_ticket(-1, &ticket));
	EXPECT_EQ(errno, EBADF);
	int ends[2];
	ASSERT_EQ(pipe(ends), 0);
	ASSERT_EQ(write(ends[1], "abc", 3), 3);
	close(ends[1]);
	EXPECT_FALSE(read_ticket(ends[0], &ticket));
	EXPECT_EQ(errno, EPROTO);
	EXPECT_EQ(close(ends[0]), -1); // read_ticket did it
}

} // namespace
