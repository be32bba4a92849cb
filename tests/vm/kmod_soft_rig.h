/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the tests that use /dev/nda_soft share. */
#pragma once

#include <fstream>
#include <setjmp.h>
#include <signal.h>

#include <tests/vm/kmod_rig.h>

#include <uapi/nda_soft.h>

namespace nda::test {

inline Fd open_soft()
{
	Fd fd(open("/dev/nda_soft", O_RDWR | O_CLOEXEC));
	EXPECT_GE(fd, 0) << strerror(errno);
	return fd;
}

inline uint64_t soft_query(int fd, uint32_t what)
{
	nda_soft_ioc_query query = {};

	query.what = what;
	EXPECT_EQ(call(fd, NDA_SOFT_IOC_QUERY, &query), 0);
	return query.value;
}

inline nda_soft_ioc_alloc soft_request(uint64_t size, uint32_t kind)
{
	nda_soft_ioc_alloc alloc = {};

	alloc.size = size;
	alloc.kind = kind;
	return alloc;
}

inline int soft_free(int fd, uint32_t handle)
{
	nda_soft_ioc_free arg = {handle, 0};

	return call(fd, NDA_SOFT_IOC_FREE, &arg);
}

/* A shared mapping, unmapped when it goes. */
class Mapping {
public:
	Mapping(int fd, uint64_t offset, size_t size,
		int protection = PROT_READ | PROT_WRITE)
		: size_(size), at_(mmap(nullptr, size, protection, MAP_SHARED, fd,
				       static_cast<off_t>(offset)))
	{}
	Mapping(const Mapping &) = delete;
	Mapping &operator=(const Mapping &) = delete;
	~Mapping() { unmap(); }
	void unmap()
	{
		if (at_ != MAP_FAILED)
			munmap(at_, size_);
		at_ = MAP_FAILED;
	}
	bool good() const { return at_ != MAP_FAILED; }
	volatile uint8_t *data() const { return static_cast<volatile uint8_t *>(at_); }
	uint64_t va() const { return reinterpret_cast<uintptr_t>(at_); }

private:
	size_t size_;
	void *at_;
};

/* Memory of the soft NPU, with its mapping. */
struct SoftMemory {
	SoftMemory(int fd, uint64_t size, uint32_t kind = NDA_SOFT_RAM)
		: request(soft_request(size, kind)),
		  error(call(fd, NDA_SOFT_IOC_ALLOC, &request)),
		  map(fd, request.mmap_off, size)
	{
		EXPECT_EQ(error, 0);
		EXPECT_TRUE(map.good()) << strerror(errno);
	}
	nda_soft_ioc_alloc request;
	int error;
	Mapping map;
};

inline sigjmp_buf after_bus_error;
inline void on_bus_error(int)
{
	siglongjmp(after_bus_error, 1);
}

/* Whether reading there ends in SIGBUS. */
inline bool bus_error(const volatile uint8_t *at)
{
	struct sigaction action = {}, before = {};
	volatile bool hit = true;

	action.sa_handler = on_bus_error;
	sigaction(SIGBUS, &action, &before);
	if (sigsetjmp(after_bus_error, 1) == 0) {
		static_cast<void>(*at);
		hit = false;
	}
	sigaction(SIGBUS, &before, nullptr);
	return hit;
}

/* Writes @text to a file of sysfs; 0, or errno. */
inline int write_sysfs(const std::string &path, const std::string &text)
{
	Fd fd(open(path.c_str(), O_WRONLY));

	if (fd < 0)
		return errno;
	return write(fd, text.data(), text.size()) < 0 ? errno : 0;
}

/* Names @driver as the one for the device of that variable; bind: a device's own file. */
inline int override_driver(const char *variable, const std::string &driver)
{
	return write_sysfs(std::string("/sys/bus/pci/devices/") + getenv(variable) +
			"/driver_override",
		driver + "\n");
}

inline int bind_driver(const char *variable, const std::string &driver, const char *action)
{
	return write_sysfs(
		"/sys/bus/pci/drivers/" + driver + "/" + action, getenv(variable));
}

/* That no memory and no doorbell is left behind. */
class SoftTest : public KmodTest {
protected:
	~SoftTest() override
	{
		Fd fd = open_soft();

		for (int i = 0; i < 500 && soft_query(fd, NDA_SOFT_QUERY_BYTES); i++)
			usleep(10000);
		EXPECT_EQ(soft_query(fd, NDA_SOFT_QUERY_BYTES), 0u);
		EXPECT_EQ(soft_query(fd, NDA_SOFT_QUERY_BINDINGS), 0u);
	}
};

} // namespace nda::test
