// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/tools/perf/job.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

#include "lib/common/fd.h"

namespace nda::perf {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr size_t max_line = 1 << 20; // a PE that sends more without an end is broken

std::string errno_text(const char *object)
{
	return std::string(object) + ": " + strerror(errno);
}

// The signals that the parent takes through a descriptor while it lives.
class Signals {
public:
	Signals()
	{
		sigset_t set;
		sigemptyset(&set);
		sigaddset(&set, SIGCHLD);
		for (int sig : {SIGINT, SIGTERM, SIGHUP})
			if (!ignored(sig)) // as in a background job, or under nohup
				sigaddset(&set, sig);
		// An ignored SIGCHLD, which is inherited, would reap the PEs unseen.
		signal(SIGCHLD, SIG_DFL);
		sigprocmask(SIG_BLOCK, &set, &old_);
		fd_ = Fd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
	}
	~Signals() { sigprocmask(SIG_SETMASK, &old_, nullptr); }

	int fd() const { return fd_.get(); }
	const sigset_t &old() const { return old_; }

	// Takes what is pending; returns a signal that asks to end, or 0.
	int take()
	{
		signalfd_siginfo info;
		int end = 0;
		while (read(fd_.get(), &info, sizeof(info)) == ssize_t(sizeof(info)))
			if (info.ssi_signo != SIGCHLD)
				end = int(info.ssi_signo);
		return end;
	}

private:
	static bool ignored(int sig)
	{
		struct sigaction action;
		return sigaction(sig, nullptr, &action) == 0 &&
			action.sa_handler == SIG_IGN;
	}

	sigset_t old_;
	Fd fd_;
};

struct Pe {
	pid_t pid = -1; // -1: not started, or gone
	Fd report;
	std::string partial;
};

class Job {
public:
	Job(const JobPlan &plan, const JobCallbacks &callbacks)
		: plan_(plan), callbacks_(callbacks),
		  pes_(plan.local_pes ? plan.local_pes : plan.n_pes)
	{}
	~Job() { end_all(); }

	bool start();
	int run();

private:
	bool listen();
	bool listen_at(const addrinfo &where);
	bool fill_secret();
	bool start_pe(uint32_t index);
	[[noreturn]] void exec(
		char *const *argv, const Ticket &ticket, int ticket_fd, pid_t parent);
	void wait_for_events(Clock::time_point until);
	void read_report(uint32_t index);
	void reap();
	void end_all();
	bool running() const;
	Clock::time_point deadline() const;

	const JobPlan &plan_;
	const JobCallbacks &callbacks_;
	Signals signals_;
	std::vector<Pe> pes_;
	Fd listen_;
	Ticket ticket_{};
	bool failed_ = false;
	Clock::time_point failed_at_;
	Clock::time_point heard_at_;
};

// A socket for PE 0, on loopback unless the plan says where.
bool Job::listen()
{
	addrinfo hints = {};
	hints.ai_family = AF_UNSPEC;
	hints.ai_socktype = SOCK_STREAM;
	hints.ai_flags = AI_NUMERICSERV | AI_PASSIVE;
	addrinfo *found = nullptr;
	const char *address = plan_.address.empty() ? "127.0.0.1" : plan_.address.c_str();
	const int rc =
		getaddrinfo(address, std::to_string(plan_.port).c_str(), &hints, &found);
	if (rc != 0) {
		callbacks_.failure(std::string(address) + ": " + gai_strerror(rc));
		return false;
	}
	const bool listens = listen_at(*found);
	if (!listens)
		callbacks_.failure(errno_text(("listening on " + std::string(address) +
			" port " + std::to_string(plan_.port))
						      .c_str()));
	freeaddrinfo(found);
	return listens;
}

bool Job::listen_at(const addrinfo &where)
{
	listen_ = Fd(socket(where.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
	// A port that was used a moment ago is free.
	const int on = 1;
	sockaddr_storage address = {};
	socklen_t size = sizeof(address);
	auto *any = reinterpret_cast<sockaddr *>(&address);
	if (!listen_ ||
		setsockopt(listen_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
		bind(listen_.get(), where.ai_addr, where.ai_addrlen) != 0 ||
		::listen(listen_.get(), int(plan_.n_pes)) != 0 ||
		getsockname(listen_.get(), any, &size) != 0)
		return false;
	// At the same place in both families.
	ticket_.port = ntohs(reinterpret_cast<sockaddr_in *>(any)->sin_port);
	return true;
}

// The job's own, or one that nobody knows.
bool Job::fill_secret()
{
	if (plan_.secret) {
		memcpy(ticket_.secret, plan_.secret, sizeof(ticket_.secret));
		return true;
	}
	return getrandom(ticket_.secret, sizeof(ticket_.secret), 0) ==
		ssize_t(sizeof(ticket_.secret));
}

bool Job::start()
{
	heard_at_ = Clock::now();
	ticket_.n_pes = plan_.n_pes;
	ticket_.port = plan_.port;
	if (signals_.fd() < 0) {
		callbacks_.failure(errno_text("signalfd"));
		return false;
	}
	if (!fill_secret()) {
		callbacks_.failure(errno_text("getrandom"));
		return false;
	}
	if (plan_.first_pe == 0 && !listen())
		return false;
	for (uint32_t i = 0; i < pes_.size(); i++) {
		if (!start_pe(i)) {
			callbacks_.failure("PE " + std::to_string(plan_.first_pe + i) +
				": starting it: " + strerror(errno));
			return false;
		}
	}
	listen_.reset();
	return true;
}

bool Job::start_pe(uint32_t index)
{
	const uint32_t pe = plan_.first_pe + index;
	int report[2];
	int ticket_pipe[2];
	if (pipe2(report, O_CLOEXEC) != 0)
		return false;
	pes_[index].report = Fd(report[0]);
	Fd report_end(report[1]);
	fcntl(report[0], F_SETFL, O_NONBLOCK);
	if (pipe2(ticket_pipe, O_CLOEXEC) != 0)
		return false;
	Fd ticket_read(ticket_pipe[0]);
	Fd ticket_write(ticket_pipe[1]);
	Ticket ticket = ticket_;
	ticket.report_fd = report[1];
	ticket.listen_fd = pe == 0 ? listen_.get() : -1;
	// Far less than a pipe holds: it can't block.
	if (write(ticket_write.get(), &ticket, sizeof(ticket)) != ssize_t(sizeof(ticket)))
		return false;

	// Everything that allocates is done before fork.
	std::vector<std::string> words = {plan_.program, "--job-pe=" + std::to_string(pe),
		"--job-fd=" + std::to_string(ticket_read.get())};
	words.insert(words.end(), plan_.arguments.begin(), plan_.arguments.end());
	std::vector<char *> argv;
	for (std::string &word : words)
		argv.push_back(word.data());
	argv.push_back(nullptr);

	pid_t parent = getpid();
	pid_t pid = fork();
	if (pid == 0)
		exec(argv.data(), ticket, ticket_read.get(), parent);
	if (pid < 0)
		return false;
	pes_[index].pid = pid;
	return true;
}

void Job::exec(char *const *argv, const Ticket &ticket, int ticket_fd, pid_t parent)
{
	// The parent may have died before the request was made.
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
		_exit(127);
	fcntl(ticket_fd, F_SETFD, 0);
	fcntl(ticket.report_fd, F_SETFD, 0);
	if (ticket.listen_fd >= 0)
		fcntl(ticket.listen_fd, F_SETFD, 0);
	sigprocmask(SIG_SETMASK, &signals_.old(), nullptr);
	execv(argv[0], argv);
	_exit(127);
}

bool Job::running() const
{
	return std::any_of(
		pes_.begin(), pes_.end(), [](const Pe &pe) { return pe.pid > 0; });
}

Clock::time_point Job::deadline() const
{
	Clock::time_point silence = heard_at_ + milliseconds(plan_.silence_ms);
	if (!failed_)
		return silence;
	return std::min(silence, failed_at_ + milliseconds(plan_.grace_ms));
}

int Job::run()
{
	while (running()) {
		wait_for_events(deadline());
		if (int sig = signals_.take()) {
			end_all();
			return sig;
		}
		for (uint32_t i = 0; i < pes_.size(); i++)
			read_report(i);
		reap();
		Clock::time_point now = Clock::now();
		if (!running() || now < deadline())
			continue;
		if (!failed_)
			callbacks_.failure("job: no PE reported anything for " +
				std::to_string(plan_.silence_ms / 1000) + " s");
		end_all();
	}
	return 0;
}

void Job::wait_for_events(Clock::time_point until)
{
	std::vector<pollfd> fds = {{signals_.fd(), POLLIN, 0}};
	for (const Pe &pe : pes_)
		if (pe.report)
			fds.push_back({pe.report.get(), POLLIN, 0});
	auto left = std::chrono::duration_cast<milliseconds>(until - Clock::now()).count();
	poll(fds.data(), fds.size(), int(std::max<int64_t>(left + 1, 0)));
}

// Takes what is there, whole lines to the callback; closes the pipe at its end.
void Job::read_report(uint32_t index)
{
	Pe &pe = pes_[index];
	char buffer[65536];
	ssize_t n = 0;
	while (pe.report && (n = read(pe.report.get(), buffer, sizeof(buffer))) > 0) {
		heard_at_ = Clock::now();
		pe.partial.append(buffer, size_t(n));
		size_t start = 0;
		size_t end;
		while ((end = pe.partial.find('\n', start)) != std::string::npos) {
			callbacks_.line(plan_.first_pe + index,
				pe.partial.substr(start, end - start));
			start = end + 1;
		}
		pe.partial.erase(0, start);
		if (pe.partial.size() > max_line)
			pe.report.reset();
	}
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		pe.report.reset();
}

void Job::reap()
{
	for (uint32_t i = 0; i < pes_.size(); i++) {
		int status;
		if (pes_[i].pid < 0 || waitpid(pes_[i].pid, &status, WNOHANG) <= 0)
			continue;
		pes_[i].pid = -1;
		read_report(i); // what it said last comes before its end
		if (status != 0 && !failed_) {
			failed_ = true;
			failed_at_ = Clock::now();
		}
		callbacks_.end(plan_.first_pe + i, status);
	}
}

void Job::end_all()
{
	for (const Pe &pe : pes_)
		if (pe.pid > 0)
			kill(pe.pid, SIGKILL);
	for (Pe &pe : pes_) {
		if (pe.pid > 0)
			while (waitpid(pe.pid, nullptr, 0) < 0 && errno == EINTR)
				;
		pe.pid = -1;
	}
}

} // namespace

int run_job(const JobPlan &plan, const JobCallbacks &callbacks)
{
	Job job(plan, callbacks);
	if (!job.start())
		return 0;
	return job.run();
}

bool read_ticket(int fd, Ticket *ticket)
{
	Fd owned(fd);
	ssize_t n = read(fd, ticket, sizeof(*ticket));
	if (n >= 0 && n != ssize_t(sizeof(*ticket)))
		errno = EPROTO;
	return n == ssize_t(sizeof(*ticket));
}

} // namespace nda::perf
