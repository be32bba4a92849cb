// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// A thread that serves doorbells: words that others set without telling anybody. It looks
// at them as long as there is work, and sleeps when there is none; who rings then sees its
// flag and kicks it. Who waits for the outcome may help with step().
#ifndef NDA_COMMON_POLLER_H
#define NDA_COMMON_POLLER_H

#include "lib/common/clock.h"
#include "lib/common/thread.h"

#include <atomic>
#include <climits>
#include <cstdint>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <mutex>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace nda {

class Poller {
public:
	// Whom work is left to while there are helpers: with naps the thread stays away
	// from it, and from the processor that it would take from them, but looks every
	// nap_ns whether they still help.
	enum class Helped {
		works,
		naps
	};
	// shared: where asleep() is to be, for other processes that wake the thread by a
	// futex on it; nullptr: inside.
	explicit Poller(
		Helped helped = Helped::works, std::atomic<uint32_t> *shared = nullptr)
		: naps_(helped == Helped::naps), asleep_(shared ? *shared : own_asleep_),
		  futex_scope_(shared ? 0 : FUTEX_PRIVATE_FLAG)
	{}
	Poller(const Poller &) = delete;
	Poller &operator=(const Poller &) = delete;

	// Without a thread of its own, step() is all that runs it. 0 or a negative errno.
	int start(const char *name);
	// Derived classes call it first when they go.
	void stop();
	bool started() const { return has_thread_; }

	// One pass, by a helper. Number of steps forward; 0 too if another thread is in it.
	int step();

	// Wakes the thread, if it sleeps.
	void kick();
	// Not 0 while a kick is wanted. To be read after the doorbell was rung; the order
	// of the two in the ringing thread is seen to by the sleeper.
	const uint32_t *asleep() const
	{
		return reinterpret_cast<const uint32_t *>(&asleep_);
	}

	// Keeps all threads out of pass() while what it looks at is changed.
	class Hold {
	public:
		explicit Hold(Poller &poller);
		Hold(const Hold &) = delete;
		Hold &operator=(const Hold &) = delete;
		~Hold() { poller_.mutex_.unlock(); }

	private:
		Poller &poller_;
	};

protected:
	~Poller() = default;

	// Looks at everything once, held. Number of steps forward. It must not block.
	virtual int pass() = 0;

	// Set by pass(): something is waited for that rings no doorbell.
	bool timed_ = false;

private:
	// An idle thread spins, yields, then sleeps.
	static constexpr uint64_t spin_ns = 20 * 1000;
	static constexpr uint64_t yield_ns = 70 * 1000; // since the last work
	// A kick ends the sleep. The limit is for cores that do not kick.
	static constexpr uint64_t sleep_limit_ns = 100 * ns_per_ms;
	// The same where a kick may be missed.
	static constexpr uint64_t sleep_limit_unsure_ns = 1 * ns_per_ms;
	// While something is waited for that rings no doorbell.
	static constexpr uint64_t sleep_limit_timed_ns = 100 * 1000;

	static constexpr uint64_t nap_ns = 1 * ns_per_ms;
	static constexpr int busy = -1; // another thread is in pass()

	static bool barrier_on_all_cores();
	int try_pass();
	bool left_to_helper();
	void run();
	void nap() const;
	bool sleep();

	std::mutex mutex_;
	std::atomic<int> holders_{0}; // waiting for mutex_
	const bool naps_;
	std::atomic<bool> helper_{false}; // there was one
	pthread_t thread_ = {};
	bool has_thread_ = false;
	std::atomic<bool> stop_{false};
	std::atomic<uint32_t> own_asleep_{0};
	std::atomic<uint32_t> &asleep_;
	static_assert(sizeof(own_asleep_) == sizeof(uint32_t));
	const int futex_scope_;
};

inline Poller::Hold::Hold(Poller &poller) : poller_(poller)
{
	// Otherwise a busy thread would take its lock again before anyone else.
	poller.holders_.fetch_add(1, std::memory_order_relaxed);
	poller.mutex_.lock();
	poller.holders_.fetch_sub(1, std::memory_order_relaxed);
}

inline int Poller::start(const char *name)
{
	auto body = [](void *self) -> void * {
		static_cast<Poller *>(self)->run();
		return nullptr;
	};
	int rc = start_thread(thread_, name, body, this);
	has_thread_ = rc == 0;
	return rc;
}

inline void Poller::stop()
{
	if (!has_thread_)
		return;
	stop_.store(true, std::memory_order_seq_cst);
	kick();
	pthread_join(thread_, nullptr);
	has_thread_ = false;
}

inline int Poller::try_pass()
{
	if (holders_.load(std::memory_order_relaxed)) {
		sched_yield();
		return 0;
	}
	std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
	return lock ? pass() : busy;
}

inline int Poller::step()
{
	if (naps_ && !helper_.load(std::memory_order_relaxed))
		helper_.store(true, std::memory_order_relaxed);
	const int work = try_pass();
	return work == busy ? 0 : work;
}

// As long as there is one in each nap.
inline bool Poller::left_to_helper()
{
	return naps_ && helper_.exchange(false, std::memory_order_relaxed);
}

inline void Poller::kick()
{
	if (asleep_.exchange(0, std::memory_order_seq_cst))
		syscall(SYS_futex, &asleep_, FUTEX_WAKE | futex_scope_, INT_MAX, nullptr,
			nullptr, 0);
}

inline void Poller::run()
{
	uint64_t last_work = now_ns();
	while (!stop_.load(std::memory_order_relaxed)) {
		const int work = left_to_helper() ? busy : try_pass();
		if (work == busy && naps_)
			nap();
		if (work > 0 || (work == busy && naps_)) {
			last_work = now_ns();
			continue;
		}
		uint64_t idle = now_ns() - last_work;
		if (idle < spin_ns) {
			relax();
		} else if (idle < yield_ns) {
			sched_yield();
		} else if (sleep()) {
			// Woken: a doorbell is likely to be followed by others.
			last_work = now_ns();
		}
	}
}

// Not as long as it would be noticed if the helpers went and left work behind.
inline void Poller::nap() const
{
	const struct timespec t = {0, static_cast<long>(nap_ns)};
	nanosleep(&t, nullptr);
}

// After this every core of the process has either seen a store that came before, or its own
// earlier stores are visible here: what a core's plain "doorbell, then look at the flag"
// needs on the other side. It costs the core nothing.
inline bool Poller::barrier_on_all_cores()
{
	static const bool registered =
		syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) ==
		0;
	return registered &&
		syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

// True if woken by a kick, or if there was work after all.
inline bool Poller::sleep()
{
	asleep_.store(1, std::memory_order_seq_cst);
	bool sure = barrier_on_all_cores();
	bool timed;
	int work;
	{
		// Not just tried: a core that is in a pass now may have passed by a
		// doorbell before it was rung.
		Hold hold(*this);
		work = pass();
		timed = timed_;
	}
	if (work > 0 || stop_.load(std::memory_order_seq_cst)) {
		asleep_.store(0, std::memory_order_relaxed);
		return true;
	}
	uint64_t limit = timed ? sleep_limit_timed_ns
		: sure         ? sleep_limit_ns
			       : sleep_limit_unsure_ns;
	struct timespec t = {0, static_cast<long>(limit)};
	// Another process does not clear the word.
	bool woken = syscall(SYS_futex, &asleep_, FUTEX_WAIT | futex_scope_, 1, &t, nullptr,
			     0) == 0;
	bool kicked = asleep_.exchange(0, std::memory_order_relaxed) == 0;
	return woken || kicked;
}

} // namespace nda

#endif
