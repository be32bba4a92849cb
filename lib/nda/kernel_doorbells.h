// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Doorbells that go through the kernel's modules: pages of registers that /dev/nda watches
// over, and words of memory that /dev/nda_soft watches for Soft-RoCE.
#ifndef NDA_LIB_KERNEL_DOORBELLS_H
#define NDA_LIB_KERNEL_DOORBELLS_H

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include <ibv_extend.h>

#include "lib/nda/kernel.h"

namespace nda {

// Any thread may use these. Functions return 0 or a negative errno, with the detail set.

// Registers that an NPU reaches by a second mapping, the kernel's: it holds the page as
// long as that is there, and takes the mapping away when the NIC goes.
class WatchedRegisters {
public:
	// Counts one more user of the register's page, even if it fails: then users go
	// without until the last has left. Else desc comes to name the second mapping.
	int enter(const std::shared_ptr<Kernel> &kernel, const nda_ioc_bdf &npu,
		doorbell_map_desc &desc);
	// desc comes to name what it was entered as.
	void find(doorbell_map_desc &desc);
	void leave(const doorbell_map_desc &desc);
	// -ESTALE: the kernel took a page away.
	int check();

private:
	struct Page {
		uint64_t addr;
		KernelDoorbell mapping; // none: the kernel refused it
		uint32_t users;
	};
	Page *page_of(const doorbell_map_desc &desc);

	std::mutex mutex_;
	std::list<Page> pages_;
};

// The queue of a Soft-RoCE device.
struct KickTarget {
	uint32_t device; // the kernel's index
	uint32_t qpn;
};

// Words that the kernel watches: when one changes, the device looks at the word's queue.
class WatchedWords {
public:
	static constexpr const char *path = "/dev/nda_soft";

	WatchedWords() = default;
	WatchedWords(const WatchedWords &) = delete;
	WatchedWords &operator=(const WatchedWords &) = delete;
	~WatchedWords();

	// addr: the NPU's; word: where the host has it, aligned to 64 bytes. why: if it
	// fails, which sets no detail: going without is no failure.
	int add(uint64_t addr, uint64_t *word, const KickTarget &target, std::string &why);
	// When it returns the kernel looks at the word no more.
	int remove(uint64_t addr);
	// nullptr if it is none.
	uint64_t *find(uint64_t addr);

private:
	struct Word {
		uint64_t *word;
		uint32_t handle;
	};
	int open(std::string &why);
	int check_kernel(int fd, std::string &why) const;

	std::mutex mutex_;
	int fd_ = -1;
	std::map<uint64_t, Word> words_;
};

} // namespace nda

#endif
