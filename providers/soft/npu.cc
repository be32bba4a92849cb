// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "providers/soft/npu.h"

#include "lib/common/thread.h"
#include "providers/soft/error.h"
#include "providers/soft/nic.h"
#include "providers/soft/words.h"

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstring>
#include <fcntl.h>

namespace nda::soft {
namespace {

constexpr uint64_t page_bytes = 4096;
constexpr uint64_t default_memory = uint64_t{1} << 30;
constexpr uint64_t max_memory = uint64_t{1} << 44;
// Enough for a page of its own for every 64 QPs of the process, from any number of NICs.
constexpr uint64_t window_bytes = uint64_t{4} << 20;
constexpr uint32_t max_cores = 48;

struct Registry {
	std::mutex mutex;
	std::vector<Npu *> npus;
};

Registry &registry()
{
	static Registry *r = new Registry; // NPUs may be open as the process ends
	return *r;
}

} // namespace

Npu::Npu(uint64_t memory, bool strict, bool assist)
	: memory_(memory), strict_(strict), assist_(assist), heap_(memory)
{}

int Npu::map(const nda_soft_npu_attr &attr)
{
	int rc = 0;
	if (attr.has_memory) {
		memory_fd_ = Fd(fcntl(attr.memory_fd, F_DUPFD_CLOEXEC, 0));
		rc = memory_fd_ ? 0 : -errno;
	} else {
		rc = make_sealed_memory("nda-hbm", memory_, memory_fd_);
	}
	if (rc == 0)
		rc = real_.reserve(memory_ + window_bytes);
	if (rc == 0 && strict_)
		rc = reserved_.reserve(memory_ + window_bytes);
	if (rc)
		return rc;
	if (mmap(real_.data(), memory_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		    memory_fd_.get(),
		    static_cast<off_t>(attr.memory_offset)) == MAP_FAILED ||
		mmap(real_.data() + memory_, window_bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
			0) == MAP_FAILED)
		return -errno;
	// A core dump of it would take long, and peers learn of a death only after it.
	madvise(real_.data(), real_.size(), MADV_DONTDUMP);
	base_ = strict_ ? reserved_.address() : real_.address();
	offset_ = real_.address() - base_;
	return 0;
}

int Npu::open(const nda_soft_npu_attr &attr, Npu *&npu)
{
	uint64_t memory = attr.memory_bytes ? attr.memory_bytes : default_memory;
	if (memory > max_memory)
		return fail(-EINVAL,
			"NPU: %" PRIu64 " bytes of memory are more than %" PRIu64, memory,
			max_memory);
	if (attr.has_memory ? !attr.memory_bytes || attr.memory_bytes % page_bytes ||
				attr.memory_offset % page_bytes
			    : attr.memory_fd || attr.memory_offset)
		return fail(-EINVAL,
			"NPU: memory of the caller's: %" PRIu64 " bytes at offset %" PRIu64
			" of a file",
			attr.memory_bytes, attr.memory_offset);
	if ((attr.clock_ns || attr.pass_requests) && !attr.manual)
		return fail(-EINVAL, "NPU: clock_ns and pass_requests are for manual ones");
	memory = (memory + page_bytes - 1) / page_bytes * page_bytes;
	Fabric &fabric = Fabric::get();
	int rc = fabric.start();
	if (rc)
		return rc;
	std::unique_ptr<Npu> fresh(new Npu(memory, attr.strict, attr.assist));
	rc = fresh->map(attr);
	if (rc)
		return fail(rc, "NPU: %" PRIu64 " bytes of memory: %s", memory, cause(-rc));
	rc = fabric.add_npu(
		fresh->memory_fd_.get(), fresh->real_.data(), memory, fresh->segment_);
	if (rc)
		return rc;
	fresh->engine_ = std::make_unique<Engine>(fabric.engine(fresh->segment_));
	fresh->engine_->pace(attr.clock_ns, attr.clock_cookie, attr.pass_requests);
	if (!attr.manual) {
		rc = fresh->engine_->start();
		if (rc)
			return rc;
	}
	std::lock_guard<std::mutex> lock(registry().mutex);
	registry().npus.push_back(fresh.get());
	npu = fresh.release();
	return 0;
}

Npu::~Npu()
{
	engine_.reset();
	if (segment_)
		Fabric::get().remove_npu(segment_);
}

Npu *Npu::find(const void *handle)
{
	std::lock_guard<std::mutex> lock(registry().mutex);
	for (Npu *npu : registry().npus) {
		if (npu == handle)
			return npu;
	}
	fail(-EINVAL, "NPU: %p is not an open NPU", handle);
	return nullptr;
}

int Npu::close(Npu *npu)
{
	{
		std::lock_guard<std::mutex> lock(registry().mutex);
		if (npu->users_)
			return fail(-EBUSY, "NPU: %u regions and queues use its memory",
				npu->users_);
		{
			std::lock_guard<std::mutex> memory_lock(npu->memory_mutex_);
			if (!npu->doorbells_.empty())
				return fail(-EBUSY, "NPU: doorbells are mapped");
		}
		std::lock_guard<std::mutex> launch_lock(npu->launch_mutex_);
		if (npu->launched_)
			return fail(-EBUSY, "NPU: a launch was not waited for");
		auto &npus = registry().npus;
		npus.erase(std::remove(npus.begin(), npus.end(), npu), npus.end());
	}
	delete npu;
	return 0;
}

Npu *Npu::acquire(uint64_t address)
{
	std::lock_guard<std::mutex> lock(registry().mutex);
	for (Npu *npu : registry().npus) {
		if (npu->contains(address, 1)) {
			npu->users_++;
			return npu;
		}
	}
	fail(-EINVAL, "0x%" PRIx64 " is in no software NPU's memory", address);
	return nullptr;
}

void Npu::release()
{
	std::lock_guard<std::mutex> lock(registry().mutex);
	users_--;
}

// ---- Memory ----------------------------------------------------------------------------

bool Npu::contains(uint64_t address, uint64_t size) const
{
	return address - base_ <= memory_ && size <= memory_ - (address - base_);
}

uint8_t *Npu::host(uint64_t address, uint64_t size) const
{
	uint64_t inside = address - base_;
	uint64_t all = memory_ + window_bytes;
	if (inside > all || size > all - inside)
		return nullptr;
	return reinterpret_cast<uint8_t *>(address + offset_);
}

int Npu::alloc(uint64_t size, uint64_t &address)
{
	uint64_t offset;
	std::lock_guard<std::mutex> lock(memory_mutex_);
	int rc = heap_.alloc(size, offset);
	if (rc)
		return rc;
	address = base_ + offset;
	return 0;
}

int Npu::free(uint64_t address)
{
	if (!contains(address, 0))
		return fail(
			-EINVAL, "NPU memory: 0x%" PRIx64 " is not of this NPU", address);
	std::lock_guard<std::mutex> lock(memory_mutex_);
	return heap_.free(address - base_);
}

int Npu::check(uint64_t address, uint64_t size, const char *what) const
{
	std::lock_guard<std::mutex> lock(memory_mutex_);
	if (contains(address, size) && (size == 0 || heap_.contains(address - base_, size)))
		return 0;
	return fail(-EINVAL,
		"NPU memory: %s of %" PRIu64 " bytes at 0x%" PRIx64
		" is not within one allocation of this NPU",
		what, size, address);
}

int Npu::write(uint64_t to, const void *from, uint64_t size)
{
	int rc = check(to, size, "write");
	if (rc == 0 && size)
		dma_move(host(to, size), from, size);
	return rc;
}

int Npu::read(void *to, uint64_t from, uint64_t size)
{
	int rc = check(from, size, "read");
	if (rc == 0 && size)
		dma_move(to, host(from, size), size);
	return rc;
}

int Npu::copy(uint64_t to, uint64_t from, uint64_t size)
{
	int rc = check(to, size, "copy to");
	if (rc == 0)
		rc = check(from, size, "copy from");
	if (rc == 0 && size)
		dma_move(host(to, size), host(from, size), size);
	return rc;
}

int Npu::fill(uint64_t to, int value, uint64_t size)
{
	int rc = check(to, size, "memset");
	if (rc == 0 && size)
		memset(host(to, size), value, size);
	return rc;
}

int Npu::pin(uint64_t address, uint64_t size)
{
	if (!contains(address, size))
		return fail(-EINVAL,
			"NPU memory: %" PRIu64 " bytes at 0x%" PRIx64
			" are not of this NPU",
			size, address);
	std::lock_guard<std::mutex> lock(memory_mutex_);
	return heap_.pin(address - base_, size);
}

void Npu::unpin(uint64_t address)
{
	std::lock_guard<std::mutex> lock(memory_mutex_);
	heap_.unpin(address - base_);
}

// ---- Doorbells -------------------------------------------------------------------------

int Npu::map_doorbell(const doorbell_map_desc &desc, uint64_t &address)
{
	uint32_t nic;
	uint64_t offset;
	int rc = Nic::find_doorbell(desc, nic, offset);
	if (rc)
		return rc;
	uint64_t page = offset / page_bytes;
	if (desc.size == 0 || desc.size > page_bytes - offset % page_bytes)
		return fail(-EINVAL,
			"doorbell: %" PRIu64 " bytes at offset 0x%" PRIx64
			" are not within one page",
			static_cast<uint64_t>(desc.size), offset);

	std::lock_guard<std::mutex> lock(memory_mutex_);
	// The first hole, unless the page is mapped.
	uint64_t hole = 0;
	for (auto &[at, mapped] : doorbells_) {
		if (mapped.nic == nic && mapped.page == page) {
			mapped.mapped++;
			address = base_ + memory_ + at + offset % page_bytes;
			return 0;
		}
		if (at == hole)
			hole = at + page_bytes;
	}
	if (hole >= window_bytes)
		return fail(-ENOSPC, "doorbell: the NPU's window has no free page");
	doorbells_[hole] = {nic, page, 1};
	address = base_ + memory_ + hole + offset % page_bytes;
	return 0;
}

int Npu::unmap_doorbell(uint64_t address, const doorbell_map_desc &desc)
{
	uint32_t nic;
	uint64_t offset;
	int rc = Nic::find_doorbell(desc, nic, offset);
	if (rc)
		return rc;
	uint64_t at = address - base_ - memory_ - offset % page_bytes;
	std::lock_guard<std::mutex> lock(memory_mutex_);
	auto mapped = doorbells_.find(at);
	if (mapped == doorbells_.end() || mapped->second.nic != nic ||
		mapped->second.page != offset / page_bytes)
		return fail(-EINVAL,
			"doorbell: 0x%" PRIx64 " is not mapped by this descriptor",
			address);
	if (--mapped->second.mapped == 0)
		doorbells_.erase(mapped);
	return 0;
}

// ---- Kernels ---------------------------------------------------------------------------

void Npu::fill_core(nda_core &core)
{
	core = {};
	core.count = 1;
	core.address_offset = offset_;
	core.nic_asleep = engine_->asleep();
	core.nic_kick = [](void *nic) { static_cast<Engine *>(nic)->kick(); };
	if (assist_)
		core.nic_step = [](void *nic) {
			return static_cast<Engine *>(nic)->step();
		};
	core.nic = engine_.get();
}

void Npu::run(const Core &core)
{
	std::unique_lock<std::mutex> lock(launch_mutex_);
	launch_changed_.wait(lock, [this] { return gate_ != Gate::closed; });
	if (gate_ == Gate::cancelled)
		return;
	lock.unlock();
	fn_(&core.core, arg_);
	lock.lock();
	if (--running_ == 0)
		launch_changed_.notify_all();
}

void Npu::join(std::vector<Core> &cores)
{
	for (Core &c : cores)
		pthread_join(c.thread, nullptr);
}

int Npu::launch(nda_kernel_fn fn, void *arg, uint32_t cores)
{
	if (!fn)
		return fail(-EINVAL, "launch: the kernel is NULL");
	if (cores == 0 || cores > max_cores)
		return fail(-EINVAL, "launch: %u cores, not 1 to %u", cores, max_cores);
	std::unique_lock<std::mutex> lock(launch_mutex_);
	if (launched_)
		return fail(-EBUSY, "launch: the one before was not waited for");
	std::vector<Core> fresh(cores);
	launched_ = true;
	gate_ = Gate::closed;
	running_ = cores;
	fn_ = fn;
	arg_ = arg;
	auto body = [](void *p) -> void * {
		Core *c = static_cast<Core *>(p);
		c->npu->run(*c);
		return nullptr;
	};
	for (uint32_t i = 0; i < cores; i++) {
		fresh[i].npu = this;
		fill_core(fresh[i].core);
		fresh[i].core.index = i;
		fresh[i].core.count = cores;
		int rc = start_thread(fresh[i].thread, "nda-core", body, &fresh[i]);
		if (rc == 0)
			continue;
		gate_ = Gate::cancelled;
		lock.unlock();
		launch_changed_.notify_all();
		fresh.resize(i);
		join(fresh);
		lock.lock();
		launched_ = false;
		return fail(rc, "launch: starting core %u: %s", i, cause(-rc));
	}
	cores_ = std::move(fresh);
	gate_ = Gate::open;
	launch_changed_.notify_all();
	return 0;
}

int Npu::wait(int timeout_ms)
{
	std::unique_lock<std::mutex> lock(launch_mutex_);
	if (!launched_)
		return fail(-EINVAL, "wait: nothing was launched");
	auto done = [this] { return running_ == 0; };
	if (timeout_ms < 0)
		launch_changed_.wait(lock, done);
	else if (!launch_changed_.wait_for(
			 lock, std::chrono::milliseconds(timeout_ms), done))
		return fail(-ETIMEDOUT, "wait: %u cores still run after %d ms", running_,
			timeout_ms);
	std::vector<Core> ended = std::move(cores_);
	cores_.clear();
	launched_ = false;
	lock.unlock();
	join(ended);
	return 0;
}

} // namespace nda::soft
