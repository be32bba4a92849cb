// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "tests/mock/soft_process.h"

#include "tests/mock/soft_bench.h"

#include <climits>
#include <cstdio>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace nda::soft_test {
namespace {

std::string helper()
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path));
	std::string self(path, n > 0 ? static_cast<size_t>(n) : 0);
	return self.substr(0, self.rfind('/')) + "/soft_peer";
}

} // namespace

PeerProcess::PeerProcess()
{
	int down[2], up[2];
	EXPECT_EQ(pipe2(down, O_CLOEXEC), 0);
	EXPECT_EQ(pipe2(up, O_CLOEXEC), 0);
	posix_spawn_file_actions_t actions;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, down[0], 0);
	posix_spawn_file_actions_adddup2(&actions, up[1], 1);
	std::string path = helper();
	char *argv[] = {path.data(), nullptr};
	int rc = posix_spawn(&pid_, path.c_str(), &actions, nullptr, argv, environ);
	EXPECT_EQ(rc, 0) << path;
	posix_spawn_file_actions_destroy(&actions);
	close(down[0]);
	close(up[1]);
	to_ = down[1];
	from_ = up[0];
}

PeerProcess::~PeerProcess()
{
	if (pid_ > 0) {
		kill(SIGKILL);
		reap();
	}
	close(to_);
	close(from_);
}

std::string PeerProcess::ask(const std::string &line)
{
	std::string out = line + "\n";
	if (write(to_, out.data(), out.size()) != static_cast<ssize_t>(out.size()))
		return "";
	uint64_t end = now_ns() + uint64_t{deadline_ms} * 1000000u;
	for (;;) {
		size_t newline = pending_.find('\n');
		if (newline != pending_.npos) {
			std::string answer = pending_.substr(0, newline);
			pending_.erase(0, newline + 1);
			return answer;
		}
		struct pollfd wait = {from_, POLLIN, 0};
		uint64_t now = now_ns();
		if (now >= end ||
			poll(&wait, 1, static_cast<int>((end - now) / 1000000u) + 1) <= 0)
			return "";
		char buffer[4096];
		ssize_t n = ::read(from_, buffer, sizeof(buffer));
		if (n <= 0)
			return "";
		pending_.append(buffer, static_cast<size_t>(n));
	}
}

void PeerProcess::kill(int signal)
{
	::kill(pid_, signal);
}

bool PeerProcess::reap()
{
	uint64_t end = now_ns() + uint64_t{deadline_ms} * 1000000u;
	int status;
	while (now_ns() < end) {
		if (waitpid(pid_, &status, WNOHANG) == pid_) {
			pid_ = -1;
			return true;
		}
		poll(nullptr, 0, 1);
	}
	return false;
}

std::vector<std::string> split(const std::string &line)
{
	std::istringstream in(line);
	std::vector<std::string> parts;
	for (std::string part; in >> part;)
		parts.push_back(part);
	return parts;
}

std::string hex(const void *data, size_t count)
{
	std::string out;
	for (size_t i = 0; i < count; i++) {
		char digits[3];
		snprintf(digits, sizeof(digits), "%02x",
			static_cast<const uint8_t *>(data)[i]);
		out += digits;
	}
	return out;
}

} // namespace nda::soft_test
