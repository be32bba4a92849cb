// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/ibv_extend/device_name.h"

#include "tests/mock/extend_device.h"

#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace {

using namespace nda::extend;
using extend_mock::Device;

// Two pages, the second of which cannot be read.
class Edge {
public:
	Edge() : page_(static_cast<size_t>(sysconf(_SC_PAGESIZE)))
	{
		start_ = static_cast<char *>(mmap(nullptr, 2 * page_,
			PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
		mprotect(start_ + page_, page_, PROT_NONE);
	}
	~Edge() { munmap(start_, 2 * page_); }
	Edge(const Edge &) = delete;
	Edge &operator=(const Edge &) = delete;
	char *end() { return start_ + page_; }

private:
	size_t page_;
	char *start_;
};

std::string name_of(const char *name)
{
	Device device(name);
	return verbs_driver_name(&device.verbs.device);
}

TEST(DeviceName, IsReadBehindTheDevice)
{
	EXPECT_EQ("mlx5", name_of("mlx5"));
	EXPECT_EQ("nda_soft.x-1", name_of("nda_soft.x-1"));
}

TEST(DeviceName, OfWhatIsNotANameIsEmpty)
{
	EXPECT_EQ("", name_of(""));
	EXPECT_EQ("", name_of("with blank"));
	EXPECT_EQ("", name_of("\x7f\x45LF"));
	EXPECT_EQ("", name_of("no/slash"));
}

TEST(DeviceName, HasUpTo63Characters)
{
	std::string name(63, 'x');
	EXPECT_EQ(name, name_of(name.c_str()));
	EXPECT_EQ("", name_of((name + "x").c_str()));
}

TEST(DeviceName, MayEndAtTheEndOfMemory)
{
	Edge edge;
	char *name = edge.end() - 5;
	memcpy(name, "mlx5", 5);
	EXPECT_EQ("mlx5", name_of(name));
}

TEST(DeviceName, WithoutEndBeforeUnmappedMemoryIsEmpty)
{
	Edge edge;
	char *name = edge.end() - 4;
	memcpy(name, "mlx5", 4);
	EXPECT_EQ("", name_of(name));
}

TEST(DeviceName, MayCrossAPage)
{
	size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
	std::string buffer(3 * page, '\0');
	uintptr_t start = reinterpret_cast<uintptr_t>(buffer.data());
	size_t to_boundary = page - start % page;
	strcpy(&buffer[to_boundary + page - 2], "mlx5");
	EXPECT_EQ("mlx5", name_of(&buffer[to_boundary + page - 2]));
}

TEST(DeviceName, OfUnreadablePointersIsEmpty)
{
	Device device("mlx5");
	for (uintptr_t address :
		{uintptr_t{0}, uintptr_t{8}, uintptr_t{1} << 46, ~uintptr_t{7}}) {
		device.ops.name = reinterpret_cast<const char *>(address);
		EXPECT_EQ("", verbs_driver_name(&device.verbs.device)) << address;
		device.verbs.ops = reinterpret_cast<const Device::Ops *>(address);
		EXPECT_EQ("", verbs_driver_name(&device.verbs.device)) << address;
		device.verbs.ops = &device.ops;
		EXPECT_EQ("",
			verbs_driver_name(reinterpret_cast<const ibv_device *>(address)))
			<< address;
	}
}

TEST(DeviceName, OfMisalignedPointersIsEmpty)
{
	Device device("mlx5");
	const char *misaligned = reinterpret_cast<const char *>(&device.ops) + 1;
	device.verbs.ops = reinterpret_cast<const Device::Ops *>(misaligned);
	EXPECT_EQ("", verbs_driver_name(&device.verbs.device));
}

TEST(DeviceName, OfADeviceAtTheEndOfMemoryIsEmpty)
{
	Edge edge;
	EXPECT_EQ("", verbs_driver_name(reinterpret_cast<ibv_device *>(edge.end() - 664)));
}

TEST(DeviceLabel, IsTheDevicesNameOrAQuestionMark)
{
	Device device("mlx5", "mlx5_3");
	EXPECT_EQ("mlx5_3", device_label(&device.verbs.device));
	memset(device.verbs.device.name, 'x', sizeof(device.verbs.device.name));
	EXPECT_EQ("?", device_label(&device.verbs.device));
	EXPECT_EQ("?", device_label(reinterpret_cast<const ibv_device *>(8)));
}

// Both ways of reading must agree, since which one is used depends on the machine.
TEST(ReadMemory, WorksByPipeAsByCall)
{
	const char text[] = "0123456789";
	char copy[sizeof(text)] = "";
	EXPECT_TRUE(read_memory_by_pipe(text, copy, sizeof(text)));
	EXPECT_STREQ(text, copy);
	Edge edge;
	EXPECT_FALSE(read_memory_by_pipe(edge.end(), copy, 1));
	EXPECT_FALSE(read_memory_by_pipe(edge.end() - 4, copy, 8));
	EXPECT_FALSE(read_memory_by_pipe(nullptr, copy, 8));

	bool permitted = false;
	memset(copy, 0, sizeof(copy));
	bool done = read_memory_by_call(text, copy, sizeof(text), permitted);
	if (!permitted)
		GTEST_SKIP() << "process_vm_readv is not permitted here";
	EXPECT_TRUE(done);
	EXPECT_STREQ(text, copy);
	EXPECT_FALSE(read_memory_by_call(edge.end(), copy, 1, permitted));
	EXPECT_TRUE(permitted);
	EXPECT_FALSE(read_memory_by_call(edge.end() - 4, copy, 8, permitted));
}

} // namespace
