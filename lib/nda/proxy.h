// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The doorbell proxy of an NPU: rings doorbells that its cores cannot reach.
#ifndef NDA_LIB_PROXY_H
#define NDA_LIB_PROXY_H

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include <ibv_extend.h>
#include <nda/core.h>
#include <nda/driver.h>

#include "lib/common/poller.h"

namespace nda {

class Npu;

// Each doorbell has a slot, a line of NPU memory that cores write to as they would to the
// register. A thread of the host, and every core that waits, takes what was written and
// rings with it. Values that were written since the last time are one doorbell, the last.
// Ringing may be all that the NIC needs of a processor (Soft-RoCE sends in the thread that
// rings), and cores that wait ring as well: while they do, the thread naps, and a core that
// posts and does not wait is served within a nap.
//
// The value 0 is no doorbell, but where a register counts: there each doorbell is the
// queue's head, of 32 bits, which begins at 0 and may come to be 0 again.
class Proxy final : public Poller {
public:
	// Who wakes the thread when it sleeps. With none it looks ten times a millisecond
	// as long as there is a doorbell.
	enum class Kicks {
		of_cores,
		none
	};
	// nic: what cores of this NPU are called with. mapped: doorbells that cores reach
	// by themselves.
	Proxy(Npu &npu, const nda_core &nic, Kicks kicks,
		const std::atomic<uint32_t> &mapped)
		: Poller(Helped::naps), npu_(npu), nic_(nic), kicks_(kicks), mapped_(mapped)
	{}
	~Proxy() { stop(); }

	// The slot of a register. The same register has the same slot, and is unmapped as
	// often as it was mapped. -EOPNOTSUPP for what is no host address or wider than a
	// slot.
	int map(const doorbell_map_desc &desc, uint64_t &addr);
	// When it returns nobody touches the register any more. -EINVAL.
	int unmap(uint64_t addr, const doorbell_map_desc &desc);
	// The slot of a doorbell without a register; name goes before what fails. When
	// remove() returns it is not rung any more.
	int add(const nda_software_doorbell &doorbell, const std::string &name,
		uint64_t &addr);
	int remove(uint64_t addr);

	// If addr is a slot; error is then the first that ringing gave since it was mapped,
	// added or cleared, or 0.
	bool find(uint64_t addr, int &error);
	// Forgets what was written to addr and not rung yet, and the error, if it is a
	// slot. A count begins at 0 again.
	void clear(uint64_t addr);
	// What is written to addr, if it is the slot of a register, is a head that has been
	// 0 so far.
	void count(uint64_t addr);

	// There was a slot. From then on there is a thread.
	bool in_use();
	// Makes of what a core is called with one whose doorbells reach the proxy as well.
	void attach(nda_core &core);
	// Of all threads.
	uint64_t passes() const { return passes_.load(std::memory_order_relaxed); }

private:
	struct Slot {
		uint64_t addr = 0;
		uint64_t *word = nullptr;      // at addr, for the host
		uint64_t *hva = nullptr;       // the register, or
		int (*ring)(void *) = nullptr; // what takes its place
		void *cookie = nullptr;
		std::string name;
		uint32_t users = 1;
		int error = 0; // the first
		bool counts = false;
		uint32_t head = 0; // the last that was rung, if it counts
	};

	int pass() override;
	bool serve(Slot &slot);
	static bool serve_head(Slot &slot);
	int create(Slot &&slot, uint64_t &addr);
	int release(Slot &slot);
	Slot *slot_at(uint64_t addr);
	void wake_nic() const;

	Npu &npu_;
	const nda_core nic_;
	const Kicks kicks_;
	const std::atomic<uint32_t> &mapped_;
	std::mutex changes_; // one at a time
	std::vector<Slot> slots_;
	std::atomic<uint64_t> passes_{0};
};

} // namespace nda

#endif
