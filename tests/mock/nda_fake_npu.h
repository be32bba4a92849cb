// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// An NPU whose memory is this process's, and which says of itself what a test wants:
// whether that memory is ordinary pages, whether host memory can be mapped to it, which
// doorbells it maps.
#ifndef NDA_TESTS_MOCK_NDA_FAKE_NPU_H
#define NDA_TESTS_MOCK_NDA_FAKE_NPU_H

#include <cstdlib>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <vector>

#include "lib/nda/error.h"
#include "lib/nda/handles.h"
#include "lib/nda/npu.h"

namespace nda::test {

class FakeNpu final : public Npu {
public:
	struct Nature {
		bool has_host_pages = false;
		bool takes_host_memory = true;
		bool unified_addresses = true;
		bool maps_host_io = false;
		Doorbells doorbells = Doorbells::any;
	};
	static constexpr uint64_t alignment = 4096;
	// Host memory is seen by cores that much further up; it is there for nobody.
	static constexpr uint64_t host_shift = uint64_t{1} << 50;

	static nda_npu *create(const Nature &nature, FakeNpu *&object)
	{
		auto npu = std::shared_ptr<FakeNpu>(new FakeNpu(nature));
		npu->create_proxy(silent(), Kicks::none);
		EXPECT_EQ(npu->take_slot(), 0);
		object = npu.get();
		return new nda_npu(std::move(npu));
	}
	~FakeNpu() override
	{
		retire();
		EXPECT_TRUE(memory_.empty()) << "left allocated";
		EXPECT_TRUE(registers.empty()) << "left mapped";
	}

	int alloc(uint64_t size, uint64_t &addr) override
	{
		void *p = aligned_alloc(alignment, round(size));
		addr = uint64_t(p);
		memory_[addr] = {size, addr};
		return p ? 0 : -ENOMEM;
	}
	int alloc_host(uint64_t size, uint64_t &addr, uint64_t &host) override
	{
		if (!nature_.takes_host_memory)
			return Npu::alloc_host(size, addr, host);
		host = uint64_t(aligned_alloc(alignment, round(size)));
		addr = host + host_shift;
		memory_[addr] = {size, host};
		if (on_host_memory)
			on_host_memory(host, size);
		return 0;
	}
	int free(uint64_t addr) override
	{
		const auto found = memory_.find(addr);
		EXPECT_NE(found, memory_.end());
		::free(reinterpret_cast<void *>(found->second.host));
		memory_.erase(found);
		return 0;
	}
	int write(uint64_t dst, const void *src, uint64_t size) override
	{
		memcpy(host_of(dst), src, size);
		return 0;
	}
	int read(void *dst, uint64_t src, uint64_t size) override
	{
		memcpy(dst, host_of(src), size);
		return 0;
	}
	int copy(uint64_t dst, uint64_t src, uint64_t size) override
	{
		memcpy(host_of(dst), host_of(src), size);
		return 0;
	}
	int memset(uint64_t dst, int value, uint64_t size) override
	{
		::memset(host_of(dst), value, size);
		return 0;
	}
	int launch(nda_kernel_fn, void *, uint32_t) override { return -EOPNOTSUPP; }
	int launch_function(void *, const void *, uint64_t, uint32_t) override
	{
		return -EOPNOTSUPP;
	}
	int wait(int) override { return -EINVAL; }
	bool busy() override { return false; }
	bool contains(uint64_t addr, uint64_t size) const override
	{
		const auto next = memory_.upper_bound(addr);
		if (next == memory_.begin())
			return false;
		const auto &[base, m] = *std::prev(next);
		return addr - base < m.size && size <= m.size - (addr - base);
	}
	bool shares_host_addresses() const override { return true; }
	bool unified_addresses() const override { return nature_.unified_addresses; }
	bool has_host_pages() const override { return nature_.has_host_pages; }
	int alloc_doorbell_slot(uint64_t size, uint64_t &addr, uint64_t *&host) override
	{
		const int rc = alloc(size, addr);
		host = reinterpret_cast<uint64_t *>(addr);
		*host = 0;
		return rc;
	}
	int free_doorbell_slot(uint64_t addr) override { return free(addr); }

	bool pci_function(nda_ioc_bdf &function) const override
	{
		function = {0, 0x81, 0, 0};
		return nature_.maps_host_io;
	}
	size_t allocations() const { return memory_.size(); }

	// Host addresses of the registers that are mapped.
	std::vector<uint64_t> registers;
	int map_error = 0;
	// Called with host memory that it was given.
	std::function<void(uint64_t host, uint64_t size)> on_host_memory;

private:
	struct Memory {
		uint64_t size;
		uint64_t host;
	};

	explicit FakeNpu(const Nature &nature)
		: Npu("npu fake", nature.doorbells), nature_(nature)
	{}
	static nda_core silent()
	{
		static const uint32_t never_asleep = 0;
		nda_core core = {};
		core.nic_asleep = &never_asleep;
		core.nic_kick = [](void *) {};
		return core;
	}
	static uint64_t round(uint64_t size) { return (size + alignment - 1) & -alignment; }
	void *host_of(uint64_t addr) const
	{
		const auto &[base, m] = *std::prev(memory_.upper_bound(addr));
		return reinterpret_cast<void *>(m.host + (addr - base));
	}
	int map_register(const doorbell_map_desc &desc, uint64_t &addr) override
	{
		if (map_error)
			return fail(map_error, "npu fake: map a doorbell");
		registers.push_back(desc.hva);
		addr = desc.hva + host_shift;
		return 0;
	}
	int unmap_register(uint64_t addr, const doorbell_map_desc &desc) override
	{
		for (size_t i = 0; i < registers.size(); i++) {
			if (registers[i] != desc.hva || addr != desc.hva + host_shift)
				continue;
			registers.erase(registers.begin() + long(i));
			return 0;
		}
		return fail(-EINVAL, "npu fake: unmap a doorbell that is not mapped");
	}

	const Nature nature_;
	std::map<uint64_t, Memory> memory_;
};

} // namespace nda::test

#endif
