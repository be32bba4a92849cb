// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/tools/info/child.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/common/fd.h"

namespace nda::info {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char done_line[] = "done";
constexpr size_t max_text = 1 << 20; // more is not listened to
constexpr int look_ms = 20;          // how soon an end is seen that closes no pipe

bool make_pipe(Fd &read_end, Fd &write_end)
{
	int fds[2];
	if (pipe2(fds, O_CLOEXEC))
		return false;
	read_end = Fd(fds[0]);
	write_end = Fd(fds[1]);
	return true;
}

void write_all(int fd, const std::string &text)
{
	size_t done = 0;
	while (done < text.size()) {
		const ssize_t n = write(fd, text.data() + done, text.size() - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return; // the parent is gone, and with it the reason to tell
		done += size_t(n);
	}
}

[[noreturn]] void run(const std::function<void(const Tell &)> &work, int told, int said)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setpgid(0, 0);
	const rlimit no_core = {0, 0};
	setrlimit(RLIMIT_CORE, &no_core);
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 ||
		dup2(said, STDERR_FILENO) < 0)
		_exit(1);
	try {
		work([&](const std::string &line) { write_all(told, line + "\n"); });
	} catch (const std::exception &e) {
		write_all(STDERR_FILENO, e.what());
		_exit(1);
	}
	write_all(told, std::string(done_line) + "\n");
	_exit(0);
}

// What is there now. False at the end of the file.
bool drain(int fd, std::string &text)
{
	char buffer[4096];
	const ssize_t n = read(fd, buffer, sizeof(buffer));
	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	if (text.size() < max_text)
		text.append(buffer, size_t(n));
	return n > 0;
}

// Takes what is left without waiting for whoever else holds the pipe, and may go on
// writing: no more than four pipes of the usual size have room for.
void drain_rest(int fd, std::string &text)
{
	pollfd one = {fd, POLLIN, 0};
	for (int reads = 0; reads < 64; reads++)
		if (poll(&one, 1, 0) <= 0 || !drain(fd, text))
			return;
}

std::string end_text(int status)
{
	if (WIFSIGNALED(status))
		return "was killed by signal " + std::to_string(WTERMSIG(status)) + " (" +
			strsignal(WTERMSIG(status)) + ")";
	return "ended by itself with status " + std::to_string(WEXITSTATUS(status));
}

void split(const std::string &told, ChildResult &result)
{
	size_t begin = 0;
	for (size_t end; (end = told.find('\n', begin)) != std::string::npos;
		begin = end + 1)
		result.lines.push_back(told.substr(begin, end - begin));
	if (!result.lines.empty() && result.lines.back() == done_line) {
		result.lines.pop_back();
		result.done = true;
	}
}

void wait_for(pid_t child, int *status)
{
	while (waitpid(child, status, 0) < 0 && errno == EINTR)
		;
}

} // namespace

ChildResult in_child(const std::function<void(const Tell &)> &work, int limit_ms)
{
	ChildResult result;
	Fd told, told_end, said, said_end;
	if (!make_pipe(told, told_end) || !make_pipe(said, said_end)) {
		result.end = std::string("not started: ") + strerror(errno);
		return result;
	}
	const pid_t child = fork();
	if (child < 0) {
		result.end = std::string("not started: ") + strerror(errno);
		return result;
	}
	if (child == 0)
		run(work, told_end.get(), said_end.get());
	told_end.reset();
	said_end.reset();

	std::string told_text;
	int status = 0;
	const auto deadline = Clock::now() + std::chrono::milliseconds(limit_ms);
	pollfd pipes[2] = {{told.get(), POLLIN, 0}, {said.get(), POLLIN, 0}};
	for (;;) {
		poll(pipes, 2, look_ms);
		if (pipes[0].revents && !drain(told.get(), told_text))
			pipes[0].fd = -1;
		if (pipes[1].revents && !drain(said.get(), result.said))
			pipes[1].fd = -1;
		pipes[0].revents = pipes[1].revents = 0;
		const pid_t ended = waitpid(child, &status, WNOHANG);
		if (ended == child)
			break;
		if (Clock::now() < deadline)
			continue;
		result.timed_out = true;
		kill(child, SIGKILL);
		wait_for(child, &status);
		break;
	}
	// What it started and left behind must not stay.
	kill(-child, SIGKILL);
	drain_rest(told.get(), told_text);
	drain_rest(said.get(), result.said);
	split(told_text, result);
	if (!result.done)
		result.end = result.timed_out
			? "did not end within " + std::to_string(limit_ms / 1000) + " s"
			: end_text(status);
	return result;
}

} // namespace nda::info
