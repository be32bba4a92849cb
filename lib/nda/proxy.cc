// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/nda/proxy.h"

#include <cerrno>
#include <utility>

#include "lib/nda/error.h"
#include "lib/nda/log.h"
#include "lib/nda/npu.h"

namespace nda {
namespace {

constexpr uint64_t slot_bytes = 64;
constexpr uint64_t register_bytes = 8;

template <class T>
T *pointer(uint64_t addr)
{
	return reinterpret_cast<T *>(addr);
}

int check(const doorbell_map_desc &desc)
{
	const auto hva = static_cast<unsigned long long>(desc.hva);
	const auto size = static_cast<unsigned long long>(desc.size);
	if (desc.type == DOORBELL_MAP_MODE_UB_RES)
		return fail(-EOPNOTSUPP,
			"doorbell proxy: a UB resource has no host address to ring at; "
			"only doorbells of type HOST_VA can be proxied");
	if (desc.type != DOORBELL_MAP_MODE_HOST_VA)
		return fail(
			-EINVAL, "doorbell proxy: unknown descriptor type %u", desc.type);
	if (hva == 0 || hva % register_bytes || size < register_bytes)
		return fail(-EINVAL,
			"doorbell proxy: %llu bytes at 0x%llx are no register of 8 bytes",
			size, hva);
	if (size > slot_bytes)
		return fail(-EOPNOTSUPP,
			"doorbell proxy: %llu bytes at 0x%llx: it rings the first 8 bytes, "
			"and cores may write anywhere in more than %llu",
			size, hva, static_cast<unsigned long long>(slot_bytes));
	return 0;
}

} // namespace

// ---- Slots -----------------------------------------------------------------------------

int Proxy::map(const doorbell_map_desc &desc, uint64_t &addr)
{
	const int rc = check(desc);
	if (rc)
		return rc;
	const std::lock_guard<std::mutex> lock(changes_);
	for (Slot &slot : slots_) {
		if (slot.hva != pointer<uint64_t>(desc.hva))
			continue;
		slot.users++;
		addr = slot.addr;
		return 0;
	}
	Slot slot;
	slot.hva = pointer<uint64_t>(desc.hva);
	return create(std::move(slot), addr);
}

int Proxy::unmap(uint64_t addr, const doorbell_map_desc &desc)
{
	const std::lock_guard<std::mutex> lock(changes_);
	Slot *slot = slot_at(addr);
	if (!slot || desc.type != DOORBELL_MAP_MODE_HOST_VA || !slot->hva ||
		slot->hva != pointer<uint64_t>(desc.hva))
		return fail(-EINVAL,
			"doorbell proxy: 0x%llx is not mapped by this descriptor",
			static_cast<unsigned long long>(addr));
	return release(*slot);
}

int Proxy::add(
	const nda_software_doorbell &doorbell, const std::string &name, uint64_t &addr)
{
	const std::lock_guard<std::mutex> lock(changes_);
	Slot slot;
	slot.ring = doorbell.ring;
	slot.cookie = doorbell.cookie;
	slot.name = name;
	return create(std::move(slot), addr);
}

int Proxy::remove(uint64_t addr)
{
	const std::lock_guard<std::mutex> lock(changes_);
	Slot *slot = slot_at(addr);
	if (!slot || !slot->ring)
		return fail(-EINVAL, "doorbell proxy: 0x%llx is no slot of a queue's",
			static_cast<unsigned long long>(addr));
	return release(*slot);
}

bool Proxy::find(uint64_t addr, int &error)
{
	const std::lock_guard<std::mutex> lock(changes_);
	const Hold hold(*this);
	const Slot *slot = slot_at(addr);
	if (slot)
		error = slot->error;
	return slot != nullptr;
}

void Proxy::clear(uint64_t addr)
{
	const std::lock_guard<std::mutex> lock(changes_);
	const Hold hold(*this);
	Slot *slot = slot_at(addr);
	if (!slot)
		return;
	__atomic_store_n(slot->word, 0, __ATOMIC_RELEASE);
	slot->error = 0;
	slot->head = 0;
}

void Proxy::count(uint64_t addr)
{
	const std::lock_guard<std::mutex> lock(changes_);
	const Hold hold(*this);
	Slot *slot = slot_at(addr);
	if (slot && slot->hva)
		slot->counts = true;
}

Proxy::Slot *Proxy::slot_at(uint64_t addr)
{
	for (Slot &slot : slots_)
		if (slot.addr == addr)
			return &slot;
	return nullptr;
}

int Proxy::create(Slot &&slot, uint64_t &addr)
{
	int rc = started() ? 0 : start("nda-proxy");
	if (rc)
		return fail_errno(rc, "doorbell proxy: start its thread");
	if (slots_.size() == slots_.capacity()) {
		std::vector<Slot> larger;
		larger.reserve(2 * slots_.size() + 8);
		const Hold hold(*this);
		for (Slot &old : slots_)
			larger.push_back(std::move(old));
		slots_ = std::move(larger);
	}
	rc = npu_.alloc_doorbell_slot(slot_bytes, slot.addr, slot.word);
	if (rc)
		return fail_in(rc, "doorbell proxy: slot");
	addr = slot.addr;
	const Hold hold(*this);
	slots_.push_back(std::move(slot));
	return 0;
}

int Proxy::release(Slot &slot)
{
	if (--slot.users)
		return 0;
	const uint64_t addr = slot.addr;
	{
		const Hold hold(*this);
		std::swap(slot, slots_.back());
		slots_.pop_back();
	}
	return npu_.free_doorbell_slot(addr);
}

// ---- Ringing ---------------------------------------------------------------------------

int Proxy::pass()
{
	int rung = 0;
	timed_ = kicks_ == Kicks::none && !slots_.empty();
	// Cores ask only whether the proxy sleeps: as long as it does not, neither may the
	// NIC, for the doorbells that cores reach by themselves.
	bool nic_needed = mapped_.load(std::memory_order_relaxed) != 0;
	for (Slot &slot : slots_) {
		if (!serve(slot))
			continue;
		rung++;
		nic_needed |= slot.hva != nullptr; // may be one of the NPU's own NIC
	}
	if (nic_needed)
		wake_nic();
	passes_.fetch_add(1, std::memory_order_relaxed);
	return rung;
}

// Taken before it is rung: what the core writes from here on is another doorbell, though it
// may be an equal one.
bool Proxy::serve(Slot &slot)
{
	if (slot.counts)
		return serve_head(slot);
	if (__atomic_load_n(slot.word, __ATOMIC_RELAXED) == 0)
		return false;
	const uint64_t value = __atomic_exchange_n(slot.word, 0, __ATOMIC_ACQ_REL);
	if (slot.hva) {
		__atomic_store_n(slot.hva, value, __ATOMIC_RELEASE);
		return true;
	}
	const int rc = slot.ring(slot.cookie);
	if (rc && !slot.error) {
		slot.error = rc < 0 ? rc : -rc;
		NDA_LOG(LogLevel::err, "%s: ring its doorbell: %s", slot.name.c_str(),
			errno_text(slot.error));
	}
	return true;
}

// No head follows an equal one: a ring is shorter than the count.
bool Proxy::serve_head(Slot &slot)
{
	const uint32_t head =
		__atomic_load_n(reinterpret_cast<uint32_t *>(slot.word), __ATOMIC_ACQUIRE);
	if (head == slot.head)
		return false;
	slot.head = head;
	__atomic_store_n(reinterpret_cast<uint32_t *>(slot.hva), head, __ATOMIC_RELEASE);
	return true;
}

void Proxy::wake_nic() const
{
	if (__atomic_load_n(nic_.nic_asleep, __ATOMIC_RELAXED))
		nic_.nic_kick(nic_.nic);
}

// ---- Cores -----------------------------------------------------------------------------

bool Proxy::in_use()
{
	const std::lock_guard<std::mutex> lock(changes_);
	return started();
}

void Proxy::attach(nda_core &core)
{
	core.nic_asleep = asleep();
	core.nic_kick = [](void *cookie) {
		auto *proxy = static_cast<Proxy *>(cookie);
		proxy->kick();
		proxy->wake_nic();
	};
	if (core.nic_step)
		core.nic_step = [](void *cookie) {
			auto *proxy = static_cast<Proxy *>(cookie);
			const int rung = proxy->step();
			return rung + proxy->nic_.nic_step(proxy->nic_.nic);
		};
	core.nic = this;
}

} // namespace nda
