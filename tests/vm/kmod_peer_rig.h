/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Registers memory by nda_test_peer.ko, which stands in for the RDMA core. */
#pragma once

#include <tests/vm/kmod_memory.h>
#include <tests/vm/modules/nda_test_peer.h>

namespace nda::test {

struct Reg {
	int error;
	uint32_t handle;
	uint32_t client;
	uint32_t pieces;
};

inline uint32_t devfn_of(const char *variable)
{
	return bdf_of(variable).devfn;
}
constexpr uint32_t no_device = 255;

/* The RDMA core, as an open file has it. */
class Peer {
public:
	Peer() : fd_(open("/dev/nda_test_peer", O_RDWR | O_CLOEXEC))
	{
		EXPECT_GE(fd_, 0) << strerror(errno);
	}
	Reg reg(uint64_t va, uint64_t len, uint32_t flags = 0,
		uint32_t devfn = devfn_of("vm_edu0")) const
	{
		nda_test_peer_reg arg = {};
		int error;

		arg.va = va;
		arg.len = len;
		arg.flags = flags;
		arg.devfn = devfn;
		error = call(fd_, NDA_TEST_PEER_REG, &arg);
		return {error, arg.handle, arg.client, arg.pieces};
	}
	int dereg(uint32_t handle, uint32_t flags = 0) const
	{
		nda_test_peer_dereg arg = {handle, flags};

		return call(fd_, NDA_TEST_PEER_DEREG, &arg);
	}
	int write(uint32_t handle, uint64_t offset, std::vector<uint8_t> bytes) const
	{
		return dma(handle, offset, &bytes, NDA_TEST_PEER_WRITE);
	}
	int read(uint32_t handle, uint64_t offset, std::vector<uint8_t> *bytes) const
	{
		return dma(handle, offset, bytes, 0);
	}
	nda_test_peer_state state() const
	{
		nda_test_peer_state arg = {};

		EXPECT_EQ(call(fd_, NDA_TEST_PEER_STATE, &arg), 0);
		return arg;
	}
	void go() const { EXPECT_EQ(ioctl(fd_, NDA_TEST_PEER_GO), 0); }
	void wait_held() const
	{
		while (state().held == 0)
			usleep(1000);
	}
	void wait_told(uint32_t calls) const
	{
		while (state().told < calls)
			usleep(1000);
	}
	void close() { fd_.reset(); }

private:
	int dma(uint32_t handle, uint64_t offset, std::vector<uint8_t> *bytes,
		uint32_t flags) const
	{
		nda_test_peer_dma arg = {};

		arg.handle = handle;
		arg.offset = offset;
		arg.data = reinterpret_cast<uintptr_t>(bytes->data());
		arg.len = static_cast<uint32_t>(bytes->size());
		arg.flags = flags;
		return call(fd_, NDA_TEST_PEER_DMA, &arg);
	}
	Fd fd_;
};

} // namespace nda::test
