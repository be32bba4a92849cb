/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the tests of /dev/nda share. Every test ends with all counters where they began. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <uapi/nda.h>

namespace nda::test {

class Fd {
public:
	explicit Fd(int fd = -1) : fd_(fd) {}
	Fd(Fd &&other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
	Fd(const Fd &) = delete;
	Fd &operator=(const Fd &) = delete;
	Fd &operator=(Fd &&other) noexcept
	{
		std::swap(fd_, other.fd_);
		return *this;
	}
	~Fd() { reset(); }
	operator int() const { return fd_; }
	void reset()
	{
		if (fd_ >= 0)
			close(fd_);
		fd_ = -1;
	}

private:
	int fd_;
};

inline Fd open_nda()
{
	Fd fd(open("/dev/nda", O_RDWR | O_CLOEXEC));
	EXPECT_GE(fd, 0) << strerror(errno);
	return fd;
}

/* 0, or what errno says. */
template <typename T>
int call(int fd, unsigned long request, T *argument)
{
	return ioctl(fd, request, argument) == 0 ? 0 : errno;
}

inline uint64_t count(int fd, uint32_t which)
{
	nda_ioc_query query = {};

	query.what = NDA_QUERY_COUNT;
	query.index = which;
	EXPECT_EQ(call(fd, NDA_IOC_QUERY, &query), 0);
	return query.value;
}

/* DDDD:BB:DD.F, as in the environment's variable of that name. */
inline nda_ioc_bdf bdf_of(const char *variable)
{
	unsigned int domain = 0, bus = 0, device = 0, function = 0;
	const char *text = getenv(variable);
	nda_ioc_bdf bdf = {};

	EXPECT_EQ(
		sscanf(text ? text : "", "%x:%x:%x.%x", &domain, &bus, &device, &function),
		4)
		<< variable;
	bdf.domain = domain;
	bdf.bus = static_cast<uint8_t>(bus);
	bdf.devfn = static_cast<uint8_t>(device << 3 | function);
	return bdf;
}

/* Of the kernel, such as "5.10": only where its own behaviour is another. */
inline bool kernel_is(const std::string &series)
{
	utsname kernel = {};

	EXPECT_EQ(uname(&kernel), 0);
	return std::string(kernel.release).rfind(series + ".", 0) == 0;
}

/* What a child that runs @body answers: 0 to 255. */
inline int in_child(const std::function<int()> &body)
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0)
		_exit(body());
	EXPECT_EQ(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

/* Memory of its own mapping. */
class Pages {
public:
	explicit Pages(size_t size, int protection = PROT_READ | PROT_WRITE)
		: size_(size),
		  at_(mmap(nullptr, size, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))
	{
		EXPECT_NE(at_, MAP_FAILED) << strerror(errno);
	}
	Pages(const Pages &) = delete;
	Pages &operator=(const Pages &) = delete;
	~Pages() { munmap(at_, size_); }
	uint8_t *data() const { return static_cast<uint8_t *>(at_); }
	uint64_t va() const { return reinterpret_cast<uintptr_t>(at_); }
	size_t size() const { return size_; }

private:
	size_t size_;
	void *at_;
};

/* Its members are closed when it looks. */
class KmodTest : public testing::Test {
protected:
	KmodTest() : before_(counts()) {}
	/* Another process's end is not waited for by those that wait for the process. */
	~KmodTest() override
	{
		for (int i = 0; i < 500 && counts() != before_; i++)
			usleep(10000);
		EXPECT_EQ(counts(), before_);
	}

private:
	static std::vector<uint64_t> counts()
	{
		Fd fd = open_nda();
		std::vector<uint64_t> all;

		for (uint32_t which : {NDA_COUNT_FILES, NDA_COUNT_OBJECTS,
			     NDA_COUNT_PINNED_PAGES, NDA_COUNT_TABLES, NDA_COUNT_MAPPINGS})
			all.push_back(count(fd, which));
		return all;
	}
	std::vector<uint64_t> before_;
};

} // namespace nda::test
