// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The doorbell proxy: registers that are words of the test, rung by cores of the software
// NPU that cannot reach them.
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <list>
#include <string>
#include <sys/mman.h>
#include <thread>

#include <nda/aiv/device.h>
#include <nda/aiv/soft_core.h>
#include <nda/hw/hns1825.h>

#include "lib/nda/channel.h"
#include "lib/nda/error.h"
#include "lib/nda/handles.h"

namespace nda {
namespace {

constexpr uint32_t generous_ms = 60000; // a deadline, never waited for where all goes well

// Until it is so, or for a time that is long enough for anybody.
bool eventually(const std::function<bool()> &so)
{
	const auto end =
		std::chrono::steady_clock::now() + std::chrono::milliseconds(generous_ms);
	while (!so())
		if (std::chrono::steady_clock::now() > end)
			return false;
		else
			std::this_thread::yield();
	return true;
}

struct Word {
	alignas(64) std::atomic<uint64_t> value{0};

	doorbell_map_desc desc() const
	{
		doorbell_map_desc d = {};
		d.type = DOORBELL_MAP_MODE_HOST_VA;
		d.hva = reinterpret_cast<uint64_t>(&value);
		d.size = 64;
		return d;
	}
	bool rung(uint64_t with)
	{
		return eventually([&] { return value.load() == with; });
	}
};

uint64_t address(const void *p)
{
	return reinterpret_cast<uint64_t>(p);
}

void *pointer(uint64_t addr)
{
	return reinterpret_cast<void *>(addr);
}

// One core that rings as it is told, while the test looks on.
class Ringer {
public:
	explicit Ringer(std::shared_ptr<Npu> npu) : npu_(std::move(npu))
	{
		EXPECT_EQ(npu_->launch(run, this, 1), 0) << error_detail();
	}
	~Ringer()
	{
		call([this](const nda_core *) { done_ = true; });
		EXPECT_EQ(npu_->wait(generous_ms), 0) << error_detail();
	}

	void call(std::function<void(const nda_core *)> body)
	{
		body_ = std::move(body);
		const uint32_t turn = turn_.fetch_add(1, std::memory_order_release) + 1;
		EXPECT_TRUE(eventually(
			[&] { return answered_.load(std::memory_order_acquire) == turn; }));
	}
	void ring(uint64_t slot, uint64_t value)
	{
		call([=](const nda_core *core) {
			aiv::SoftCore(core).st_dev<uint64_t>(slot, value);
		});
	}

private:
	static void run(const nda_core *core, void *arg)
	{
		auto *r = static_cast<Ringer *>(arg);
		for (uint32_t seen = 0; !r->done_;) {
			if (r->turn_.load(std::memory_order_acquire) == seen) {
				std::this_thread::yield();
				continue;
			}
			r->body_(core);
			r->answered_.store(++seen, std::memory_order_release);
		}
	}

	const std::shared_ptr<Npu> npu_;
	std::function<void(const nda_core *)> body_;
	std::atomic<uint32_t> turn_{0}, answered_{0};
	bool done_ = false;
};

std::shared_ptr<Npu> open_npu(uint32_t flags = 0)
{
	nda_npu_attr attr = {};
	attr.memory_bytes = 16 << 20;
	attr.flags = flags;
	std::shared_ptr<Npu> npu;
	EXPECT_EQ(Npu::open("soft", &attr, sizeof(attr), npu), 0) << error_detail();
	return npu;
}

uint64_t map(const std::shared_ptr<Npu> &npu, doorbell_map_desc desc)
{
	errno = 0;
	void *mapped = npu->ops()->db_mmap(&desc);
	EXPECT_NE(mapped, nullptr) << error_detail();
	return address(mapped);
}

int unmap(const std::shared_ptr<Npu> &npu, uint64_t slot, doorbell_map_desc desc)
{
	return npu->ops()->db_unmap(pointer(slot), &desc);
}

// The errno that mapping gives.
int map_error(const std::shared_ptr<Npu> &npu, doorbell_map_desc desc)
{
	errno = 0;
	EXPECT_EQ(npu->ops()->db_mmap(&desc), nullptr);
	return errno;
}

bool detail_has(const char *text)
{
	return strstr(error_detail(), text) != nullptr;
}

// ---- Ringing -------------------------------------------------------------------------

class Rung : public testing::TestWithParam<uint32_t> {};

TEST_P(Rung, EqualValuesThatFollowEachOtherAreBothPassedOn)
{
	const auto npu = open_npu(GetParam());
	Word word;
	const uint64_t slot = map(npu, word.desc());
	{
		Ringer core(npu);
		for (int i = 0; i < 100; i++) {
			core.ring(slot, 0x1234567890abcdef);
			ASSERT_TRUE(word.rung(0x1234567890abcdef)) << i;
			word.value = 0; // as a NIC that has taken it
		}
	}
	EXPECT_EQ(unmap(npu, slot, word.desc()), 0);
}

TEST_P(Rung, TheLastValueIsAlwaysPassedOn)
{
	const auto npu = open_npu(GetParam());
	Word word;
	const uint64_t slot = map(npu, word.desc());
	{
		Ringer core(npu);
		for (uint64_t last = 1000; last <= 20000; last += 1000) {
			core.call([&](const nda_core *c) {
				for (uint64_t v = last - 999; v <= last; v++)
					aiv::SoftCore(c).st_dev<uint64_t>(slot, v);
			});
			ASSERT_TRUE(word.rung(last));
		}
	}
	EXPECT_EQ(unmap(npu, slot, word.desc()), 0);
	EXPECT_EQ(word.value, 20000u) << "something older was rung after it";
}

INSTANTIATE_TEST_SUITE_P(Npus, Rung, testing::Values(0, NDA_NPU_STRICT, NDA_NPU_NO_ASSIST),
	[](const auto &p) {
		return p.param == NDA_NPU_STRICT       ? "Strict"
			: p.param == NDA_NPU_NO_ASSIST ? "NoAssist"
						       : "Plain";
	});

TEST(Proxy, IsHelpedByACoreThatWaits)
{
	const auto npu = open_npu();
	Word word;
	const uint64_t slot = map(npu, word.desc());
	{
		Ringer core(npu);
		core.call([&](const nda_core *c) {
			const aiv::SoftCore soft(c);
			soft.st_dev<uint64_t>(slot, 5);
			while (word.value.load() != 5)
				soft.relax();
		});
	}
	EXPECT_EQ(unmap(npu, slot, word.desc()), 0);
}

TEST(Proxy, KeepsSlotsOfOnePageApart)
{
	const auto npu = open_npu();
	Word words[4];
	uint64_t slots[4];
	for (int i = 0; i < 4; i++) {
		slots[i] = map(npu, words[i].desc());
		EXPECT_EQ(slots[i] % 64, 0u);
		EXPECT_TRUE(npu->contains(slots[i], 64));
		for (int k = 0; k < i; k++)
			EXPECT_NE(slots[i], slots[k]);
	}
	{
		Ringer core(npu);
		for (uint64_t i = 0; i < 4; i++)
			core.ring(slots[i], 100 + i);
		for (uint64_t i = 0; i < 4; i++)
			EXPECT_TRUE(words[i].rung(100 + i)) << i;
	}
	for (int i = 0; i < 4; i++)
		EXPECT_EQ(unmap(npu, slots[i], words[i].desc()), 0);
}

// ---- Mapping -------------------------------------------------------------------------

TEST(Proxy, MappedTwiceAndUnmappedOnceStillRings)
{
	const auto npu = open_npu();
	Word word;
	const uint64_t slot = map(npu, word.desc());
	EXPECT_EQ(map(npu, word.desc()), slot);
	EXPECT_EQ(unmap(npu, slot, word.desc()), 0);
	{
		Ringer core(npu);
		core.ring(slot, 7);
		EXPECT_TRUE(word.rung(7));
	}
	EXPECT_EQ(unmap(npu, slot, word.desc()), 0);
	EXPECT_NE(unmap(npu, slot, word.desc()), 0) << "one unmap too many";
}

TEST(Proxy, UnmapsOnlyWhatTheDescriptorMapped)
{
	const auto npu = open_npu();
	Word word, other;
	const uint64_t slot = map(npu, word.desc());
	EXPECT_EQ(unmap(npu, slot, other.desc()), -EINVAL);
	EXPECT_TRUE(detail_has("is not mapped by this descriptor")) << error_detail();
	EXPECT_NE(unmap(npu, slot + 8, word.desc()), 0);
	EXPECT_EQ(unmap(npu, slot, word.desc()), 0);
}

// The register's page is gone as soon as it is unmapped: to touch it would be the end.
TEST(Proxy, DoesNotTouchARegisterThatWasUnmappedWhileItIsRung)
{
	const auto npu = open_npu();
	Word beside;
	// What is mapped first keeps the slots apart that the core goes on ringing.
	uint64_t slots[20];
	void *pages[20];
	doorbell_map_desc descs[20];
	for (int i = 0; i < 20; i++) {
		pages[i] = mmap(nullptr, 4096, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		ASSERT_NE(pages[i], MAP_FAILED);
		descs[i] = beside.desc();
		descs[i].hva = address(pages[i]);
		slots[i] = map(npu, descs[i]);
	}
	const uint64_t kept = map(npu, beside.desc());
	std::atomic<uint64_t> at{0};
	std::atomic<bool> end{false};
	std::atomic<int> rounds{0};
	struct Traffic {
		std::atomic<uint64_t> &at;
		std::atomic<bool> &end;
		std::atomic<int> &rounds;
	} traffic = {at, end, rounds};
	at = slots[0];
	ASSERT_EQ(npu->launch(
			  [](const nda_core *core, void *arg) {
				  auto *t = static_cast<Traffic *>(arg);
				  const aiv::SoftCore soft(core);
				  for (uint64_t v = 1; !t->end; v++) {
					  soft.st_dev<uint64_t>(t->at, v);
					  t->rounds++;
					  soft.relax();
				  }
			  },
			  &traffic, 1),
		0);
	for (int i = 0; i < 20; i++) {
		at = slots[i];
		const int before = rounds;
		ASSERT_TRUE(eventually([&] { return rounds > before + 100; }));
		EXPECT_EQ(unmap(npu, slots[i], descs[i]), 0);
		EXPECT_EQ(munmap(pages[i], 4096), 0);
	}
	at = kept; // a pass over all slots
	EXPECT_TRUE(eventually([&] { return beside.value.load() != 0; }));
	end = true;
	EXPECT_EQ(npu->wait(generous_ms), 0);
	EXPECT_EQ(unmap(npu, kept, beside.desc()), 0);
}

TEST(Proxy, RefusesWhatIsNoRegister)
{
	const auto npu = open_npu(NDA_NPU_DOORBELL_PROXY);
	Word word;
	doorbell_map_desc desc = word.desc();
	desc.hva += 4;
	EXPECT_EQ(map_error(npu, desc), EINVAL);
	desc = word.desc();
	desc.size = 4;
	EXPECT_EQ(map_error(npu, desc), EINVAL);
	desc.hva = 0;
	EXPECT_EQ(map_error(npu, desc), EINVAL);
	EXPECT_TRUE(detail_has("are no register of 8 bytes")) << error_detail();
	desc = word.desc();
	desc.size = 4096;
	EXPECT_EQ(map_error(npu, desc), EOPNOTSUPP);
	EXPECT_TRUE(detail_has("it rings the first 8 bytes")) << error_detail();
	desc = word.desc();
	desc.type = 7;
	EXPECT_EQ(map_error(npu, desc), EINVAL);
	errno = 0;
	EXPECT_EQ(npu->ops()->db_mmap(nullptr), nullptr);
	EXPECT_EQ(errno, EINVAL);
	EXPECT_EQ(npu->ops()->db_unmap(nullptr, nullptr), -EINVAL);
}

TEST(Proxy, ReleasesTheMemoryOfItsSlots)
{
	const auto npu = open_npu();
	uint64_t all = 0;
	for (int i = 0; i < 3; i++) {
		Word words[20];
		uint64_t slots[20];
		for (int k = 0; k < 20; k++)
			slots[k] = map(npu, words[k].desc());
		for (int k = 0; k < 20; k++)
			EXPECT_EQ(unmap(npu, slots[k], words[k].desc()), 0);
	}
	EXPECT_EQ(npu->alloc(16 << 20, all), 0) << error_detail();
}

TEST(Proxy, SaysThatThereIsNoMemoryForASlot)
{
	const auto npu = open_npu();
	uint64_t all = 0;
	ASSERT_EQ(npu->alloc(16 << 20, all), 0);
	Word word;
	EXPECT_EQ(map_error(npu, word.desc()), ENOMEM);
	EXPECT_TRUE(detail_has("doorbell proxy: slot: ")) << error_detail();
	ASSERT_EQ(npu->free(all), 0);
	const uint64_t slot = map(npu, word.desc());
	EXPECT_EQ(unmap(npu, slot, word.desc()), 0);
}

// ---- Which way -----------------------------------------------------------------------

// A channel to itself over the software 1825.
class Ways : public testing::Test {
protected:
	int create(uint32_t flags, uint32_t dma_mode)
	{
		channel.reset();
		if (!nic) {
			EXPECT_EQ(Nic::open("soft:hns1825", nullptr, 0, nic), 0)
				<< error_detail();
		}
		npu = open_npu(flags);
		ChannelConfig config;
		config.dma_mode = dma_mode;
		return Channel::create(nic, npu, config, channel);
	}
	uint32_t doorbell() const { return channel->info().doorbell; }

	std::shared_ptr<Nic> nic;
	std::shared_ptr<Npu> npu;
	std::shared_ptr<Channel> channel;
};

TEST_F(Ways, AreMappedWhereThatIsSupported)
{
	for (const uint32_t mode : {NDA_DMA_AUTO, NDA_DMA_PCIE, NDA_DMA_INDEPENDENT}) {
		for (const uint32_t flags : {0, int(NDA_NPU_DOORBELL_MAP)}) {
			ASSERT_EQ(create(flags, mode), 0) << error_detail();
			EXPECT_EQ(doorbell(), uint32_t(NDA_DOORBELL_MAPPED));
		}
	}
}

TEST_F(Ways, AreProxiedWhereMappingIsDisabled)
{
	for (const uint32_t mode : {NDA_DMA_AUTO, NDA_DMA_PCIE}) {
		ASSERT_EQ(create(NDA_NPU_DOORBELL_PROXY, mode), 0) << error_detail();
		EXPECT_EQ(doorbell(), uint32_t(NDA_DOORBELL_PROXIED));
	}
}

TEST_F(Ways, AreProxiedWhereTheNpuCannotMap)
{
	const auto any = open_npu();
	Word word;
	const uint64_t slot = map(any, word.desc());
	int error = 1;
	EXPECT_TRUE(any->doorbell_proxied(slot, error));
	EXPECT_EQ(error, 0);
	EXPECT_FALSE(any->doorbell_proxied(slot + 64, error));
	EXPECT_EQ(unmap(any, slot, word.desc()), 0);
}

TEST_F(Ways, OfAUbResourceCannotBeTheProxy)
{
	EXPECT_EQ(create(NDA_NPU_DOORBELL_PROXY, NDA_DMA_INDEPENDENT), -EOPNOTSUPP);
	EXPECT_TRUE(detail_has("a UB resource has no host address")) << error_detail();
	EXPECT_TRUE(detail_has("nic soft:hns1825: create a QP")) << error_detail();
}

TEST_F(Ways, ThatMustBeMappedSayWhyTheyCannotBe)
{
	const auto must_map = open_npu(NDA_NPU_DOORBELL_MAP);
	Word word;
	EXPECT_EQ(map_error(must_map, word.desc()), EOPNOTSUPP);
	EXPECT_TRUE(detail_has("opened with NDA_NPU_DOORBELL_MAP")) << error_detail();
	EXPECT_TRUE(detail_has("is of no software NIC")) << error_detail();
	nda_software_doorbell doorbell = {
		NDA_SOFTWARE_DOORBELL_MAGIC, [](void *) { return 0; }, nullptr};
	uint64_t slot = 0;
	EXPECT_EQ(must_map->add_doorbell(doorbell, "QP 9", slot), -EOPNOTSUPP);
	EXPECT_TRUE(detail_has("QP 9 has no doorbell register to map")) << error_detail();
}

TEST_F(Ways, CannotBothBeTheOnlyOne)
{
	nda_npu_attr attr = {};
	attr.flags = NDA_NPU_DOORBELL_MAP | NDA_NPU_DOORBELL_PROXY;
	std::shared_ptr<Npu> none;
	EXPECT_EQ(Npu::open("soft", &attr, sizeof(attr), none), -EINVAL);
	EXPECT_TRUE(detail_has("cannot all be mapped and all be proxied"))
		<< error_detail();
}

// ---- Doorbells that a driver rings ---------------------------------------------------

struct Driver {
	std::atomic<int> rung{0};
	std::atomic<int> rc{0};
	nda_software_doorbell doorbell = {NDA_SOFTWARE_DOORBELL_MAGIC, ring, this};

	static int ring(void *cookie)
	{
		auto *d = static_cast<Driver *>(cookie);
		const int rc = d->rc;
		d->rung++;
		return rc;
	}
};

TEST(SoftwareDoorbell, IsRungOnceForEachValueThatIsTaken)
{
	const auto npu = open_npu();
	Driver driver;
	uint64_t slot = 0;
	ASSERT_EQ(npu->add_doorbell(driver.doorbell, "QP 9", slot), 0) << error_detail();
	EXPECT_TRUE(npu->contains(slot, 64));
	{
		Ringer core(npu);
		for (int i = 1; i <= 100; i++) {
			core.ring(slot, 1);
			ASSERT_TRUE(eventually([&] { return driver.rung >= i; }));
			ASSERT_EQ(driver.rung, i);
		}
	}
	npu->remove_doorbell(slot);
	int error = 0;
	EXPECT_FALSE(npu->doorbell_proxied(slot, error));
}

TEST(SoftwareDoorbell, ThatFailsKeepsItsFirstErrorAndGoesOn)
{
	const auto npu = open_npu();
	Driver driver, beside;
	uint64_t slot = 0, other = 0;
	ASSERT_EQ(npu->add_doorbell(driver.doorbell, "nic x: QP 9", slot), 0);
	ASSERT_EQ(npu->add_doorbell(beside.doorbell, "nic x: QP 10", other), 0);
	{
		Ringer core(npu);
		const int codes[] = {0, -ENODEV, -EIO, 0};
		for (int i = 0; i < 4; i++) {
			driver.rc = codes[i];
			core.ring(slot, 1);
			ASSERT_TRUE(eventually([&] { return driver.rung == i + 1; }));
		}
		core.ring(other, 1);
		ASSERT_TRUE(eventually([&] { return beside.rung == 1; }));
	}
	int error = 0;
	EXPECT_TRUE(npu->doorbell_proxied(slot, error));
	EXPECT_EQ(error, -ENODEV);
	EXPECT_TRUE(npu->doorbell_proxied(other, error));
	EXPECT_EQ(error, 0);
	npu->remove_doorbell(slot);
	npu->remove_doorbell(other);
}

// The level of the log is read once: another process of this program.
TEST(SoftwareDoorbell, ThatFailsIsLoggedOnce)
{
	FILE *out =
		popen("NDA_LOG=err /proc/$PPID/exe "
		      "--gtest_filter='SoftwareDoorbell.ThatFailsKeeps*' 2>&1 >/dev/null",
			"r");
	ASSERT_TRUE(out);
	std::string text;
	char buffer[512];
	size_t n;
	while ((n = fread(buffer, 1, sizeof(buffer), out)) > 0)
		text.append(buffer, n);
	EXPECT_EQ(pclose(out), 0) << text;
	const std::string line = ": err: nic x: QP 9: ring its doorbell: No such device\n";
	const size_t at = text.find(line);
	ASSERT_NE(at, std::string::npos) << text;
	EXPECT_EQ(text.find("ring its doorbell", at + line.size()), std::string::npos)
		<< text;
}

TEST(SoftwareDoorbell, IsNotRungAnyMoreOnceItIsRemoved)
{
	const auto npu = open_npu();
	auto beside = std::make_unique<Driver>();
	uint64_t slot = 0, kept = 0;
	ASSERT_EQ(npu->add_doorbell(beside->doorbell, "QP 1", kept), 0);
	for (int i = 0; i < 20; i++) {
		auto driver = std::make_unique<Driver>();
		ASSERT_EQ(npu->add_doorbell(driver->doorbell, "QP 2", slot), 0);
		Ringer core(npu);
		core.ring(slot, 1);
		core.ring(slot, 2);
		npu->remove_doorbell(slot);
		driver.reset(); // a sanitizer sees who comes too late
		const int before = beside->rung;
		core.ring(kept, 1);
		ASSERT_TRUE(eventually([&] { return beside->rung > before; }));
	}
	npu->remove_doorbell(kept);
}

// Removed while it is in the driver's function, which takes its time.
TEST(SoftwareDoorbell, IsNotRemovedWhileItIsRung)
{
	struct Slow {
		std::atomic<bool> inside{false}, removing{false};
		nda_software_doorbell doorbell = {NDA_SOFTWARE_DOORBELL_MAGIC, ring, this};

		static int ring(void *cookie)
		{
			auto *s = static_cast<Slow *>(cookie);
			s->inside = true;
			while (!s->removing)
				std::this_thread::yield();
			for (int i = 0; i < 1000; i++)
				std::this_thread::yield();
			s->inside = false;
			return 0;
		}
	};
	const auto npu = open_npu(NDA_NPU_NO_ASSIST);
	Slow slow;
	uint64_t slot = 0;
	ASSERT_EQ(npu->add_doorbell(slow.doorbell, "QP 9", slot), 0);
	Ringer core(npu);
	core.ring(slot, 1);
	ASSERT_TRUE(eventually([&] { return slow.inside.load(); }));
	slow.removing = true;
	npu->remove_doorbell(slot);
	EXPECT_FALSE(slow.inside);
}

// The software 1825 as a NIC without a register: its QPs say that they are rung by a
// function, which works out what the register would have been given.
class NoRegister : public testing::Test {
protected:
	NoRegister()
	{
		nic = nda_nic_open("soft:hns1825", nullptr, 0);
		EXPECT_NE(nic, nullptr) << nda_error_detail();
		real_ = nic->object->extend()->ops;
		table_ = *real_;
		table_.create_qp = create_qp;
		nic->object->extend()->ops = &table_;
		unmapped_ = 0;
		bells_.clear();
	}
	~NoRegister() override
	{
		nic->object->extend()->ops = real_;
		EXPECT_EQ(nda_nic_close(nic), 0);
		EXPECT_EQ(nda_npu_close(npu), 0) << nda_error_detail();
	}
	void open_npu(uint32_t flags)
	{
		nda_npu_attr attr = {};
		attr.memory_bytes = 16 << 20;
		attr.flags = flags;
		npu = nda_npu_open("soft", &attr, sizeof(attr));
		ASSERT_NE(npu, nullptr) << nda_error_detail();
		ASSERT_EQ(nda_npu_alloc(npu, 64, &unmapped_), 0);
	}
	static uint64_t rung()
	{
		uint64_t all = 0;
		for (const Bell &bell : bells_)
			all += bell.rung;
		return all;
	}

	nda_nic *nic = nullptr;
	nda_npu *npu = nullptr;

private:
	struct Bell {
		nda_software_doorbell doorbell = {NDA_SOFTWARE_DOORBELL_MAGIC, ring, this};
		uint64_t *hva = nullptr;
		const uint32_t *record = nullptr;
		uint64_t fixed = 0; // of the value: all but the index
		std::atomic<uint64_t> rung{0};

		static int ring(void *cookie)
		{
			auto *bell = static_cast<Bell *>(cookie);
			const uint32_t head = hw::hns1825::sq_record_head(
				__atomic_load_n(bell->record, __ATOMIC_ACQUIRE));
			__atomic_store_n(bell->hva,
				hw::hns1825::doorbell_value(bell->fixed, head),
				__ATOMIC_RELEASE);
			bell->rung++;
			return 0;
		}
	};

	static ibv_qp_extend *create_qp(ibv_context *context, ibv_qp_init_attr_extend *attr)
	{
		static ibv_extend_ops ops;
		Bell &bell = bells_.emplace_back();
		ops = *attr->ops;
		ops.db_mmap = [](doorbell_map_desc *desc) {
			bells_.back().hva = reinterpret_cast<uint64_t *>(desc->hva);
			return pointer(unmapped_);
		};
		ops.db_unmap = [](void *, doorbell_map_desc *) { return 0; };
		attr->ops = &ops;
		ibv_qp_extend *qp = real_->create_qp(context, attr);
		if (!qp)
			return nullptr;
		hw::hns1825::doorbell_params params;
		params.sgid_index = 1;
		bell.fixed = hw::hns1825::doorbell_template(qp->qp->qp_num, params);
		bell.record = static_cast<const uint32_t *>(
			pointer(qp->sq_info.dbr_pi_va.iov_base));
		qp->sq_info.db_hw_va = {0, 0};
		qp->sq_info.resv[0] = address(&bell.doorbell);
		return qp;
	}

	static inline const ibv_context_extend_ops *real_ = nullptr;
	static inline ibv_context_extend_ops table_ = {};
	static inline uint64_t unmapped_ = 0;
	static inline std::list<Bell> bells_;
};

struct Put {
	uint64_t table, target, source;
	int status;
};

TEST_F(NoRegister, GroupPutsThroughTheDriversFunction)
{
	open_npu(0);
	nda_bootstrap *bootstrap = nullptr;
	ASSERT_EQ(nda_bootstrap_local_create(1, generous_ms, &bootstrap), 0);
	nda_group_attr attr = {};
	attr.heap_bytes = 1 << 20;
	attr.channel.dma_mode = NDA_DMA_PCIE;
	nda_group *group = nda_group_create(bootstrap, npu, &nic, 1, &attr, sizeof(attr));
	ASSERT_NE(group, nullptr) << nda_error_detail();
	nda_channel_info info = {};
	EXPECT_EQ(nda_group_queue_query(group, 0, 0, &info, sizeof(info)), 0);
	EXPECT_EQ(info.doorbell, uint32_t(NDA_DOORBELL_PROXIED));
	Put put = {nda_group_table(group), 0, 0, -1};
	ASSERT_EQ(nda_group_heap_alloc(group, 4096, &put.target), 0);
	ASSERT_EQ(nda_group_heap_alloc(group, 4096, &put.source), 0);
	ASSERT_EQ(nda_npu_memset(npu, put.source, 0x5a, 4096), 0);
	ASSERT_EQ(nda_npu_memset(npu, put.target, 0, 4096), 0);
	ASSERT_EQ(nda_npu_launch(
			  npu,
			  [](const nda_core *core, void *arg) {
				  auto *p = static_cast<Put *>(arg);
				  aiv::Device<aiv::SoftCore> device;
				  p->status = device.open(
					  aiv::SoftCore(core), p->table, core->index);
				  for (uint32_t i = 0; i < 8 && p->status == NDA_OK; i++)
					  p->status = device.put(0, p->target + i * 512,
						  p->source + i * 512, 512);
			  },
			  &put, 1),
		0);
	EXPECT_EQ(nda_npu_wait(npu, generous_ms), 0);
	EXPECT_EQ(put.status, NDA_OK) << nda_status_string(put.status);
	uint8_t bytes[4096];
	EXPECT_EQ(nda_npu_read(npu, bytes, put.target, 4096), 0);
	for (const uint8_t byte : bytes)
		ASSERT_EQ(byte, 0x5a);
	EXPECT_EQ(rung(), 8u);
	EXPECT_EQ(nda_group_destroy(group), 0);
	EXPECT_EQ(nda_bootstrap_local_destroy(bootstrap), 0);
}

TEST_F(NoRegister, ChannelIsRefusedWhereDoorbellsMustBeMapped)
{
	open_npu(NDA_NPU_DOORBELL_MAP);
	nda_channel_attr attr = {};
	attr.dma_mode = NDA_DMA_PCIE;
	errno = 0;
	EXPECT_EQ(nda_channel_create(nic, npu, &attr, sizeof(attr)), nullptr);
	EXPECT_EQ(errno, EOPNOTSUPP);
	EXPECT_TRUE(detail_has("has no doorbell register to map")) << error_detail();
}

// ---- Queues that are reset -----------------------------------------------------------

class ResetQueue : public testing::TestWithParam<const char *> {};

// A doorbell that is older must not be rung once the queue is connected again. Nobody tells
// the proxy of it, which sleeps; it may wake by itself in between, but not ten times over.
TEST_P(ResetQueue, HasNoDoorbellLeftInTheProxy)
{
	const auto npu = open_npu(NDA_NPU_DOORBELL_PROXY);
	nda_nic *nic = nda_nic_open(GetParam(), nullptr, 0);
	ASSERT_NE(nic, nullptr) << nda_error_detail();
	{
		ChannelConfig config;
		std::shared_ptr<Channel> channel;
		ASSERT_EQ(read_channel_attr(config, nullptr, 0), 0) << error_detail();
		ASSERT_EQ(Channel::create(nic->object, npu, config, channel), 0)
			<< error_detail();
		uint8_t desc[NDA_CHANNEL_DESC_BYTES];
		channel->export_desc(desc);
		ASSERT_EQ(channel->connect(desc), 0) << error_detail();
		nda_queue queue = {};
		ASSERT_EQ(channel->describe(0, {}, queue), 0) << error_detail();
		int error = 0;
		ASSERT_TRUE(npu->doorbell_proxied(queue.sq_doorbell, error));
		const uint32_t *asleep = nullptr;
		Ringer core(npu);
		core.call([&](const nda_core *c) { asleep = c->nic_asleep; });
		const uint64_t stale = 1;
		uint64_t left = 0;
		for (int i = 0; i < 10 && left != stale; i++) {
			ASSERT_TRUE(eventually([&] {
				return __atomic_load_n(asleep, __ATOMIC_RELAXED) != 0;
			}));
			ASSERT_EQ(npu->write(queue.sq_doorbell, &stale, sizeof(stale)), 0);
			ASSERT_EQ(npu->read(&left, queue.sq_doorbell, sizeof(left)), 0);
		}
		ASSERT_EQ(left, stale);
		EXPECT_EQ(channel->reset(), 0) << error_detail();
		ASSERT_EQ(npu->read(&left, queue.sq_doorbell, sizeof(left)), 0);
		EXPECT_EQ(left, 0u);
	}
	EXPECT_EQ(nda_nic_close(nic), 0);
}

INSTANTIATE_TEST_SUITE_P(Nics, ResetQueue, testing::Values("soft:hns1825", "soft:udma"),
	[](const auto &p) { return std::string(p.param + strlen("soft:")); });

// A head comes to 0 again after 2^32 blocks; a core writes 32 bits.
TEST(Proxy, RingsZeroWhereARegisterCounts)
{
	const auto npu = open_npu();
	Word word;
	const uint64_t slot = map(npu, word.desc());
	npu->count_doorbells(slot);
	{
		Ringer core(npu);
		for (uint32_t head : {1u, UINT32_MAX, 0u, 1u, 0u}) {
			core.call([&](const nda_core *c) {
				aiv::SoftCore(c).st_dev<uint32_t>(slot, head);
			});
			EXPECT_TRUE(word.rung(head));
		}
	}
	EXPECT_EQ(unmap(npu, slot, word.desc()), 0);
}

// ---- Sleeping ------------------------------------------------------------------------

TEST(ProxySleep, EndsWhenACoreRings)
{
	const auto npu = open_npu();
	Word word;
	const uint64_t slot = map(npu, word.desc());
	{
		Ringer core(npu);
		bool kicked = false;
		core.call([&](const nda_core *c) {
			// A sleep may end by itself between the look at it and the ringing.
			for (int i = 0; i < 1000 && !kicked; i++) {
				struct Kick {
					const nda_core *real;
					bool done;
				} kick = {c, false};
				nda_core counted = *c;
				counted.nic = &kick;
				counted.nic_kick = [](void *cookie) {
					auto *k = static_cast<Kick *>(cookie);
					k->done = true;
					k->real->nic_kick(k->real->nic);
				};
				if (!eventually([&] {
					    return __atomic_load_n(c->nic_asleep,
							   __ATOMIC_RELAXED) != 0;
				    }))
					return;
				aiv::SoftCore(&counted).st_dev<uint64_t>(slot, 9);
				kicked = kick.done;
			}
		});
		EXPECT_TRUE(kicked);
		EXPECT_TRUE(word.rung(9));
	}
	EXPECT_EQ(unmap(npu, slot, word.desc()), 0);
}

TEST(ProxySleep, TakesFewPassesWhileNothingIsRung)
{
	const auto npu = open_npu();
	nda_core core = {};
	std::atomic<uint32_t> mapped{0};
	uint32_t awake = 0;
	core.nic_asleep = &awake;
	Proxy proxy(*npu, core, Proxy::Kicks::of_cores, mapped);
	Word word;
	uint64_t slot = 0;
	ASSERT_EQ(proxy.map(word.desc(), slot), 0) << error_detail();
	ASSERT_TRUE(eventually(
		[&] { return __atomic_load_n(proxy.asleep(), __ATOMIC_RELAXED) != 0; }));
	const uint64_t before = proxy.passes();
	const auto begin = std::chrono::steady_clock::now();
	std::this_thread::sleep_for(std::chrono::milliseconds(300)); // what is looked at
	const uint64_t passes = proxy.passes() - before;
	const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(
		std::chrono::steady_clock::now() - begin)
				.count();
	// Awake it makes thousands in each millisecond; asleep, where a kick might be
	// missed, two.
	EXPECT_LE(passes, 2 * (static_cast<uint64_t>(ms) + 1));
	EXPECT_EQ(proxy.unmap(slot, word.desc()), 0);
}

TEST(ProxySleep, WakesTheNicForDoorbellsThatAreMapped)
{
	const auto npu = open_npu();
	static std::atomic<uint32_t> asleep;
	static std::atomic<int> kicks;
	asleep = 1;
	kicks = 0;
	nda_core nic = {};
	nic.nic_asleep = reinterpret_cast<const uint32_t *>(&asleep);
	nic.nic_kick = [](void *) { kicks++, asleep = 0; };
	std::atomic<uint32_t> mapped{0};
	Proxy proxy(*npu, nic, Proxy::Kicks::of_cores, mapped);
	Word word;
	uint64_t slot = 0;
	ASSERT_EQ(proxy.map(word.desc(), slot), 0) << error_detail();
	const auto sleeps = [&] {
		return __atomic_load_n(proxy.asleep(), __ATOMIC_RELAXED) != 0;
	};
	ASSERT_TRUE(eventually(sleeps));
	EXPECT_EQ(kicks, 0) << "nothing is mapped or rung";
	mapped = 1;
	proxy.kick();
	EXPECT_TRUE(eventually([&] { return kicks == 1; }));
	EXPECT_EQ(proxy.unmap(slot, word.desc()), 0);
}

// What a core gets where the NIC has the functions of the test.
class AttachedCore : public testing::Test {
protected:
	AttachedCore()
	{
		nic.nic_asleep = &nic_asleep;
		nic.nic_kick = [](void *cookie) {
			static_cast<AttachedCore *>(cookie)->kicks++;
		};
		nic.nic_step = [](void *cookie) {
			static_cast<AttachedCore *>(cookie)->steps++;
			return 0;
		};
		nic.nic = this;
		proxy = std::make_unique<Proxy>(*npu, nic, Proxy::Kicks::of_cores, mapped);
		EXPECT_EQ(proxy->map(word.desc(), slot), 0) << error_detail();
		core = nic;
		proxy->attach(core);
	}
	~AttachedCore() override { EXPECT_EQ(proxy->unmap(slot, word.desc()), 0); }

	bool sleeps() { return __atomic_load_n(proxy->asleep(), __ATOMIC_RELAXED) != 0; }
	// The proxy's sleep has a limit: it may wake by itself, though hardly ten times
	// just in between.
	bool in_ten_sleeps(const std::function<bool()> &so)
	{
		for (int i = 0; i < 10; i++) {
			if (!eventually([this] { return sleeps(); }))
				return false;
			if (so())
				return true;
		}
		return false;
	}

	const std::shared_ptr<Npu> npu = open_npu();
	nda_core nic = {}, core = {};
	uint32_t nic_asleep = 0;
	std::atomic<int> kicks{0}, steps{0};
	std::atomic<uint32_t> mapped{0};
	Word word;
	uint64_t slot = 0;
	std::unique_ptr<Proxy> proxy;
};

TEST_F(AttachedCore, KicksTheProxyAndTheNic)
{
	EXPECT_EQ(core.nic_asleep, proxy->asleep());
	EXPECT_TRUE(in_ten_sleeps([this] {
		core.nic_kick(core.nic);
		return !sleeps();
	}));
	EXPECT_EQ(kicks, 0) << "it is awake";
	__atomic_store_n(&nic_asleep, 1, __ATOMIC_RELAXED);
	core.nic_kick(core.nic);
	EXPECT_EQ(kicks, 1);
}

TEST_F(AttachedCore, StepsTheProxyAndTheNic)
{
	EXPECT_TRUE(in_ten_sleeps([this] {
		word.value = 0;
		// Nobody is told of it.
		__atomic_store_n(
			static_cast<uint64_t *>(pointer(slot)), 3, __ATOMIC_RELEASE);
		return core.nic_step(core.nic) == 1 && word.value == 3;
	}));
	EXPECT_GE(steps, 1);
}

TEST_F(AttachedCore, WakesTheNicForARegisterNotForADriver)
{
	Driver driver;
	uint64_t other = 0;
	ASSERT_EQ(proxy->add(driver.doorbell, "QP 9", other), 0) << error_detail();
	__atomic_store_n(&nic_asleep, 1, __ATOMIC_RELAXED);
	const auto ring = [this](uint64_t at) {
		__atomic_store_n(static_cast<uint64_t *>(pointer(at)), 1, __ATOMIC_RELEASE);
		proxy->kick();
	};
	ring(other);
	ASSERT_TRUE(eventually([&] { return driver.rung == 1; }));
	ring(other); // the pass of the one before has ended
	ASSERT_TRUE(eventually([&] { return driver.rung == 2; }));
	EXPECT_EQ(kicks, 0);
	ring(slot);
	EXPECT_TRUE(eventually([&] { return kicks == 1; }));
	EXPECT_EQ(proxy->remove(other), 0);
}

TEST_F(AttachedCore, RingsNothingOnceItsSlotIsCleared)
{
	auto *at = static_cast<uint64_t *>(pointer(slot));
	EXPECT_TRUE(in_ten_sleeps([this, at] {
		word.value = 0;
		__atomic_store_n(at, 3, __ATOMIC_RELEASE); // nobody is told of it
		proxy->clear(slot);
		return word.value == 0;
	}));
	EXPECT_EQ(__atomic_load_n(at, __ATOMIC_RELAXED), 0u);
	const uint64_t before = proxy->passes();
	proxy->kick();
	EXPECT_TRUE(eventually([&] { return proxy->passes() > before; }));
	EXPECT_EQ(word.value, 0u);
	proxy->clear(slot + 8); // no slot: nothing happens
}

TEST_F(AttachedCore, ForgetsTheErrorOfASlotThatIsCleared)
{
	Driver driver;
	driver.rc = -EIO;
	uint64_t other = 0;
	ASSERT_EQ(proxy->add(driver.doorbell, "QP 9", other), 0) << error_detail();
	__atomic_store_n(static_cast<uint64_t *>(pointer(other)), 1, __ATOMIC_RELEASE);
	proxy->kick();
	int error = 0;
	ASSERT_TRUE(eventually([&] { return proxy->find(other, error) && error; }));
	EXPECT_EQ(error, -EIO);
	proxy->clear(other);
	EXPECT_TRUE(proxy->find(other, error));
	EXPECT_EQ(error, 0);
	EXPECT_EQ(proxy->remove(other), 0);
}

// A driver that counts which thread rings.
struct Rings {
	const std::thread::id core = std::this_thread::get_id();
	std::atomic<uint64_t> by_core{0}, by_others{0};
	nda_software_doorbell doorbell = {NDA_SOFTWARE_DOORBELL_MAGIC, ring, this};

	static int ring(void *cookie)
	{
		auto *r = static_cast<Rings *>(cookie);
		(std::this_thread::get_id() == r->core ? r->by_core : r->by_others)++;
		return 0;
	}
	uint64_t all() const { return by_core + by_others; }
};

TEST_F(AttachedCore, RingsByItselfWhileTheThreadNaps)
{
	Rings rings;
	uint64_t at = 0;
	ASSERT_EQ(proxy->add(rings.doorbell, "QP 9", at), 0) << error_detail();
	const aiv::SoftCore soft(&core);
	const auto begin = std::chrono::steady_clock::now();
	for (uint64_t i = 1; i <= 20000; i++) {
		soft.st_dev<uint64_t>(at, 1);
		ASSERT_TRUE(eventually([&] {
			soft.relax();
			return rings.all() >= i;
		}));
	}
	const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(
		std::chrono::steady_clock::now() - begin)
				.count();
	// It looks after each nap, of 1 ms, whether a core still helps, and may see to a
	// doorbell or two where that core was kept off its processor.
	EXPECT_LE(rings.by_others, 2 * static_cast<uint64_t>(ms) + 2);
	EXPECT_EQ(proxy->remove(at), 0);
}

TEST_F(AttachedCore, IsServedByTheThreadWhenItWaitsNoMore)
{
	Rings rings;
	uint64_t at = 0;
	ASSERT_EQ(proxy->add(rings.doorbell, "QP 9", at), 0) << error_detail();
	const aiv::SoftCore soft(&core);
	for (uint64_t i = 0; i < 20; i++) {
		soft.relax(); // the thread, if it is awake, naps
		const uint64_t before = rings.all();
		soft.st_dev<uint64_t>(at, 1);
		ASSERT_TRUE(eventually([&] { return rings.all() > before; })) << i;
		ASSERT_EQ(rings.by_core, 0u);
	}
	EXPECT_EQ(proxy->remove(at), 0);
}

TEST_F(AttachedCore, HelpsNobodyWhereThatIsSwitchedOff)
{
	nda_core alone = nic;
	alone.nic_step = nullptr;
	proxy->attach(alone);
	EXPECT_EQ(alone.nic_step, nullptr);
}

} // namespace
} // namespace nda
