// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// nda-perf: the parent starts the PEs, as processes or threads, and prints what they
// report.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>

#include <nda/npu.h>

#include "lib/common/fd.h"
#include "lib/tools/perf/file.h"
#include "lib/tools/perf/job.h"
#include "lib/tools/perf/pe.h"
#include "lib/tools/perf/report.h"
#include "lib/tools/perf/secret.h"

namespace nda::perf {
namespace {

// A PE says something before each step; this is longer than any step takes.
int silence_ms(const Options &o)
{
	uint64_t ms = 2 * o.time_limit_us / 1000 + 3 * uint64_t(o.timeout_ms) + 90000;
	return int(std::min<uint64_t>(ms, INT32_MAX));
}

Report::Style style_of(const Options &o)
{
	return {o.json, !o.quiet && isatty(STDERR_FILENO) == 1};
}

// Writes a whole line to the parent. Without a parent there is nobody to tell, and this
// process is about to be ended.
void send_line(int fd, const std::string &line)
{
	std::string text = line + "\n";
	size_t done = 0;
	while (done < text.size()) {
		ssize_t n = write(fd, text.data() + done, text.size() - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		done += size_t(n);
	}
}

// Where PE 0 is; nullptr: on loopback.
const char *address_of(const Options &o)
{
	if (!o.connect.empty())
		return o.connect.c_str();
	if (o.listen == "::")
		return "::1";
	return o.listen.empty() || o.listen == "0.0.0.0" ? nullptr : o.listen.c_str();
}

// A PE that the parent started as a process.
int pe_process(const Options &o, const MemoryPlan &plan)
{
	Ticket ticket;
	if (!read_ticket(o.job_fd, &ticket) || ticket.n_pes != o.pes) {
		fprintf(stderr, "nda-perf: --job-fd: is for nda-perf's own use\n");
		return exit_usage;
	}
	Fd report(ticket.report_fd);
	Send send = [&](const std::string &line) { send_line(report.get(), line); };
	nda_bootstrap_tcp_attr attr = {};
	attr.pe = uint32_t(o.job_pe);
	attr.n_pes = o.pes;
	attr.address = address_of(o);
	attr.port = ticket.port;
	attr.listen_fd = ticket.listen_fd;
	attr.secret = ticket.secret;
	attr.timeout_ms = 2 * o.timeout_ms + uint32_t(2 * o.time_limit_us / 1000) + 60000;
	nda_bootstrap *bootstrap;
	if (nda_bootstrap_tcp_create(&attr, sizeof(attr), &bootstrap) != 0) {
		Failure f;
		f.pe = attr.pe;
		f.message = "PE " + std::to_string(attr.pe) + ": " + nda_error_detail();
		send(encode(f));
		return exit_failure;
	}
	PeEnd end = run_pe(o, plan, *bootstrap, send);
	if (end.broken)
		_exit(end.exit_status);
	nda_bootstrap_tcp_destroy(bootstrap);
	return end.exit_status;
}

// secret: of a job of two machines, else nullptr.
void process_job(
	const Options &o, const uint8_t *secret, int argc, char **argv, Report &report)
{
	JobPlan plan;
	plan.n_pes = o.pes;
	plan.first_pe = o.first_pe();
	plan.local_pes = o.local_pes();
	plan.secret = secret;
	if (!o.one_machine()) {
		plan.address = o.listen;
		plan.port = o.port;
	}
	plan.program = "/proc/self/exe";
	plan.arguments.assign(argv + 1, argv + argc);
	plan.silence_ms = silence_ms(o);
	JobCallbacks callbacks;
	callbacks.line = [&](uint32_t pe, const std::string &line) {
		report.take(pe, line);
	};
	callbacks.end = [&](uint32_t pe, int status) { report.pe_ended(pe, status); };
	callbacks.failure = [&](const std::string &message) {
		Failure f;
		f.message = message;
		report.failure(f);
	};
	int sig = run_job(plan, callbacks);
	if (sig == 0)
		return;
	// To whoever waits, this process ends as the signal asked.
	report.interrupted();
	signal(sig, SIG_DFL);
	raise(sig);
}

// PEs as threads of this process.
class ThreadJob {
public:
	ThreadJob(const Options &o, const MemoryPlan &plan, Report &report)
		: o_(o), plan_(plan), report_(report)
	{}

	// False: something is left behind, and the process must end without clearing away.
	bool run();

private:
	void pe(const nda_bootstrap &bootstrap);
	bool start(nda_bootstrap *bootstraps);
	bool wait();

	const Options &o_;
	const MemoryPlan &plan_;
	Report &report_;
	std::vector<std::thread> threads_;
	std::mutex mutex_;
	std::condition_variable changed_;
	uint64_t lines_ = 0;
	uint32_t ended_ = 0;
	bool broken_ = false;
};

void ThreadJob::pe(const nda_bootstrap &bootstrap)
{
	Send send = [&](const std::string &line) {
		report_.take(bootstrap.pe, line);
		std::lock_guard<std::mutex> lock(mutex_);
		lines_++;
		changed_.notify_all();
	};
	PeEnd end = run_pe(o_, plan_, bootstrap, send);
	std::lock_guard<std::mutex> lock(mutex_);
	broken_ = broken_ || end.broken;
	ended_++;
	changed_.notify_all();
}

bool ThreadJob::start(nda_bootstrap *bootstraps)
{
	for (uint32_t i = 0; i < o_.pes; i++) {
		try {
			threads_.emplace_back([this, &b = bootstraps[i]] { pe(b); });
		} catch (const std::system_error &e) {
			Failure f;
			f.message = "PE " + std::to_string(i) +
				": starting its thread: " + e.code().message();
			report_.failure(f);
			return false;
		}
	}
	return true;
}

// Until all have ended, or nothing has been heard for too long.
bool ThreadJob::wait()
{
	std::unique_lock<std::mutex> lock(mutex_);
	while (ended_ < o_.pes) {
		const uint64_t heard = lines_ + ended_;
		auto news = [&] { return lines_ + ended_ != heard; };
		if (!changed_.wait_for(
			    lock, std::chrono::milliseconds(silence_ms(o_)), news))
			break;
	}
	if (ended_ == o_.pes)
		return true;
	Failure f;
	f.message = "job: no PE reported anything for " +
		std::to_string(silence_ms(o_) / 1000) + " s";
	report_.failure(f);
	return false;
}

bool ThreadJob::run()
{
	nda_bootstrap *bootstraps;
	uint32_t timeout_ms =
		2 * o_.timeout_ms + uint32_t(2 * o_.time_limit_us / 1000) + 60000;
	if (nda_bootstrap_local_create(o_.pes, timeout_ms, &bootstraps) != 0) {
		Failure f;
		f.message = std::string("bootstrap: ") + nda_error_detail();
		report_.failure(f);
		return true;
	}
	// Those that run wait in vain for one that does not.
	const bool ended = start(bootstraps) && wait();
	for (std::thread &thread : threads_)
		ended ? thread.join() : thread.detach();
	if (!ended || broken_)
		return false;
	nda_bootstrap_local_destroy(bootstraps);
	return true;
}

// A standard stream that is closed must not become a socket or a pipe of the job's. Opened
// the wrong way round, so that using it still fails.
void fill_closed_streams()
{
	for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
		if (fcntl(fd, F_GETFD) < 0)
			(void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

int print_texts(const Parsed &parsed)
{
	fputs(parsed.out.c_str(), stdout);
	fputs(parsed.err.c_str(), stderr);
	if (fflush(stdout) == 0)
		return parsed.status;
	fprintf(stderr, "nda-perf: standard output: %s\n", strerror(errno));
	return exit_failure;
}

int run(int argc, char **argv)
{
	fill_closed_streams();
	Parsed parsed = parse_options(argc, argv);
	if (!parsed.run)
		return print_texts(parsed);
	const Options &o = parsed.options;
	MemoryPlan plan;
	if (std::string wrong = plan_memory(o, &plan); !wrong.empty()) {
		fprintf(stderr,
			"nda-perf: %s\nTry 'nda-perf --help' for more information.\n",
			wrong.c_str());
		return exit_usage;
	}
	if (o.job_pe >= 0)
		return pe_process(o, plan);
	uint8_t secret[secret_bytes];
	if (!o.one_machine()) {
		const std::string wrong =
			read_secret(o.secret_file, !o.listen.empty(), secret);
		if (!wrong.empty()) {
			fprintf(stderr, "nda-perf: --secret-file: %s\n", wrong.c_str());
			return exit_failure;
		}
	}

	Report report(stdout, stderr, style_of(o));
	bool files_good = true;
	for (const std::string &path : o.files) {
		Failure f;
		f.message = check_file(path);
		if (f.message.empty())
			continue;
		f.op = op_name(o.op);
		report.failure(f);
		files_good = false;
	}
	bool clean = true;
	if (files_good && o.threads)
		clean = ThreadJob(o, plan, report).run();
	else if (files_good)
		process_job(o, o.one_machine() ? nullptr : secret, argc, argv, report);
	int status = report.finish();
	if (!clean)
		_exit(status);
	return status;
}

} // namespace
} // namespace nda::perf

int main(int argc, char **argv)
{
	return nda::perf::run(argc, argv);
}
