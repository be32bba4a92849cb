// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What the mocks of libascendcl.so and libascend_hal.so share with each other and with the
// tests: devices, contexts, memory, registrations, what was called, and what is to fail.
//
// Device memory has two addresses. The device's, which is all that the library under test
// learns, faults when the host touches it; the mocks copy by the other.
#ifndef NDA_TESTS_MOCK_ASCEND_H
#define NDA_TESTS_MOCK_ASCEND_H

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#define NDA_MOCK __attribute__((visibility("default")))

namespace nda::test {

class NDA_MOCK MockAscend {
public:
	static MockAscend &get();

	// As it is before anything was done, with one device, user id 0, that the calling
	// thread has a current context of.
	void reset();

	// ---- What the application has done
	// -----------------------------------------------

	// Of the calling thread; device -1: none.
	void set_current_device(int32_t device);
	int32_t current_device() const;

	int32_t version[3] = {1, 17, 0};
	int32_t logic_ids[4] = {0, 1, 2, 3}; // by user id
	int64_t connect_type = 0;            // PCIE, HCCS, UB
	uint32_t aiv_reaches_host = 1;
	uint32_t memory_type = 0x10;  // of drvMemGetAttribute
	uint32_t misalign = 0;        // of what aclrtMalloc gives, a multiple of 64
	bool maps_to_nothing = false; // mapping succeeds, with address 0
	std::string recent_error;

	// ---- Failures
	// --------------------------------------------------------------------

	// The n-th call from now on of that function, or of any where name is empty, fails;
	// 0: none. error 0: what the function's library has for "internal".
	void fail_call(long n, const char *name = "", int error = 0);
	bool fired() const;

	// ---- What was done
	// ---------------------------------------------------------------

	// Allocations, registrations, mappings, segments and streams that exist.
	size_t live() const;
	std::string live_text() const;
	// "aclrtMalloc(4096, 0x1000)", in order.
	std::vector<std::string> calls() const;
	size_t count(const char *name) const;
	// What the library under test must not do; empty where it keeps the rules.
	std::vector<std::string> violations() const;

	// ---- The device
	// ------------------------------------------------------------------

	// Where all of its memory lies.
	static constexpr uint64_t memory_bytes = 256 << 20;
	uint64_t memory() const { return device_window_; }
	// Memory of somebody else, of that device.
	uint64_t alloc(uint64_t size, int32_t device = 0);
	void free(uint64_t addr);
	void write(uint64_t addr, const void *data, uint64_t size);
	void read(uint64_t addr, void *data, uint64_t size);
	// A core's store, to device memory or to what was mapped for it.
	void store(uint64_t addr, uint64_t value);
	// How long the next kernel runs, in waits; below 0: it ends with that error,
	// negated.
	int kernel_waits = 0;
	std::vector<uint8_t> kernel_args; // of the last launch
	// Called once, when a wait has seen a kernel's end and has not returned yet.
	std::function<void()> on_end;

	// ---- For the mocks
	// ---------------------------------------------------------------

	struct Allocation {
		uint64_t size;
		int32_t device;
		bool foreign;
	};
	struct Registration {
		uint64_t size;
		uint32_t flag;
		uint32_t device;
		uint64_t npu_addr;
	};
	struct Resource {
		uint64_t guid_low, guid_high;
		uint32_t page;
		uint64_t npu_addr;
	};

	// Records a call; not 0: it is to fail with that.
	int enter(const char *name, int internal_error, const char *format, ...)
		__attribute__((format(printf, 4, 5)));
	// As enter, for functions that need a current context: 107002 without one.
	bool has_context(const char *name);
	void violate(const std::string &what);
	uint8_t *host(uint64_t addr, uint64_t size);
	bool in_window(uint64_t addr) const;
	uint64_t take(uint64_t size, int32_t device, bool foreign);

	mutable std::recursive_mutex mutex;
	std::map<uint64_t, Allocation> allocations;
	std::map<uint64_t, Registration> registrations; // by host address
	std::map<uint32_t, Resource> resources;         // by resource id
	std::map<uint64_t, uint64_t> segments;
	std::map<void *, int> streams;
	uint64_t next_npu_addr = 0;

private:
	MockAscend();

	uint8_t *host_window_ = nullptr;
	uint64_t device_window_ = 0;
	std::vector<std::string> calls_, violations_;
	std::string fail_name_;
	long fail_at_ = 0, seen_ = 0;
	int fail_error_ = 0;
	bool fired_ = false;
};

} // namespace nda::test

#endif
