/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the golden tests of all engines share: reading a case, memory for a queue, and the
 * run of a case of a RoCE device file, whose schema is one for all RoCE engines. See
 * tests/data/golden/README.md.
 */
#ifndef TESTS_UNIT_GOLDEN_COMMON_H
#define TESTS_UNIT_GOLDEN_COMMON_H

#include <stdarg.h>
#include <stdint.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <nda/aiv/device.h>
#include <nda/table.h>
#ifdef NDA_GOLDEN_ASCEND
#include <tests/mock/ascend_intrinsics.h>
#else
#include <tests/mock/recording_core.h>
#endif

namespace nda::golden {

/* Who runs the cases: NDA_GOLDEN_ASCEND is 0 for an AscendCore that stores its WQEs and
 * cleans them, 1 for one that stages and copies them. */
#ifdef NDA_GOLDEN_ASCEND
typedef test::AscendTestCore<NDA_GOLDEN_ASCEND == 1> Core;
#else
typedef test::RecordingCore Core;
#endif

using Json = nlohmann::json;
using Bytes = std::vector<uint8_t>;

/* A number, or one above 2^53 as text. */
uint64_t number(const Json &value);
uint32_t number32(const Json &value);
Bytes bytes_of(const std::string &hex);
std::string hex_of(const void *data, size_t size);

/* Filled memory of whole cache lines. */
class Memory {
public:
	explicit Memory(size_t size, uint8_t fill = 0)
		: storage_((size + 63) / 64 * 64 + 64, fill)
	{}

	uint8_t *data()
	{
		uintptr_t start = reinterpret_cast<uintptr_t>(storage_.data());
		return storage_.data() + (64 - start % 64) % 64;
	}
	uint64_t addr() { return reinterpret_cast<uint64_t>(data()); }

private:
	std::vector<uint8_t> storage_;
};

/* How a case is run: every case with each, for a byte that is not written, or one way to
 * post that differs, must not hide. */
struct Variant {
	uint8_t fill; /* of the send ring before the case */
	bool slow;    /* the fast way to post is shut */
};

/* Who runs the cases of the files that name it as their engine. */
struct Runner {
	const char *engine;
	std::set<std::string> groups;
	/* What differs, or nothing; throws where the case cannot be run. */
	std::vector<std::string> (*run)(const Json &test, Variant variant);
};

/* One for each engine that a file may name. */
extern const Runner hns1825_runner;
extern const Runner in_die_runner;
extern const Runner in_die_verbs_runner;
extern const Runner udma_runner;
extern const Runner udma_relay_runner;
extern const Runner xscale_runner;

/* Collects what differs in a run. */
class Differences {
protected:
	__attribute__((format(printf, 2, 3))) void differs(const char *text, ...);

	void expect_number(const char *what, const Json &expected, uint64_t found);
	void expect_values(const char *what, const Json &expected,
		const std::vector<std::string> &found);
	/* @entry: hex and mask of as many bytes as are compared. */
	void expect_masked(const std::string &what, const Json &entry, const uint8_t *found,
		size_t bytes);

	std::vector<std::string> failures_;
};

/* What the run of a RoCE file has to know of a format. */
struct RoceFormat {
	uint32_t table_format;       /* enum nda_format */
	uint32_t wqe_bytes;          /* of a slot, all of them written by a post */
	uint32_t default_cqe_stride; /* where the published one is 0 */
	uint64_t
		recorded_timeout; /* what the recorded poll returned for one that ran out */
	bool has_validity;     /* a word with the validity bit, stored last, with release */
	uint32_t valid_offset; /* of that word */
	bool has_marker;       /* one byte of the next slot, stored before it */
	bool has_record;       /* SQ doorbell record, stored between WQE and doorbell */
};

/* One run of one case of a RoCE file; what the format decides is in an engine's class. */
class RoceRun : protected Differences {
public:
	RoceRun(const Json &test, Variant variant, const RoceFormat &format);
	virtual ~RoceRun() = default;
	RoceRun(const RoceRun &) = delete;
	RoceRun &operator=(const RoceRun &) = delete;

	/* Sets the queue up, does what the case says, and tells what differs. */
	std::vector<std::string> run();

protected:
	/* The format's own members of the queue; the others are set. */
	virtual void fill_format(nda_queue *queue) = 0;
	virtual nda_queue_state derive_state(
		const nda_queue &queue, uint32_t head, uint32_t tail, uint32_t ci) = 0;
	/* A success for @index as it looks before it is there: of another lap. */
	virtual void fill_stale_cqe(uint32_t index, uint8_t *slot) = 0;
	/* Where the values of the doorbells and records that `check` may name go; 0: the
	 * format has none. */
	virtual std::map<std::string, uint64_t> doorbells() = 0;
	virtual enum nda_status status_of(uint32_t raw) const = 0;

	/* The engine's handle on the table. */
	virtual enum nda_status open(uint64_t table, uint32_t core_index) = 0;
	virtual enum nda_status put(
		uint32_t pe, uint64_t dst, uint64_t src, uint64_t bytes) = 0;
	virtual enum nda_status get(
		uint32_t pe, uint64_t dst, uint64_t src, uint64_t bytes) = 0;
	virtual enum nda_status quiet(uint32_t pe) = 0;
	virtual enum nda_status poll(uint32_t target) = 0;
	/* An operation that is no put or get; throws where the format has none. */
	virtual enum nda_status post_other(const Json &post);
	/* Puts a recorded address where a WQE has one of the test's own. */
	virtual void make_recorded(uint8_t *wqe);
	/* A member of `check` that not every format has. */
	virtual void compare_other(const std::string &field);

	uint64_t queue_address() const { return reinterpret_cast<uint64_t>(queue_); }

	const Json &in_;
	const Json &out_;
	const Json &test_;
	Variant variant_;
	RoceFormat format_;
	uint32_t n_pes_;
	uint32_t n_queues_; /* to each PE */
	uint32_t sq_depth_;
	uint32_t ring_; /* of the CQ */
	uint32_t stride_;
	Memory table_;
	Memory sq_;
	Memory cq_;
	Memory words_{256}; /* SQ record, CQ record and both doorbells, a line each */
	nda_queue *queue_ = nullptr;
	test::Recorder recorder_;
	/* Of the last wait, and its result where that is none of the queue's status. */
	enum nda_status poll_status_ = NDA_OK;

private:
	struct Pending {
		Bytes bytes;
		uint64_t looks; /* still to come in vain */
	};

	void fill_queue();
	void fill_completions();
	void before_look(uint64_t addr);
	void post(const Json &post);
	void drive();
	void compare_wqes();
	void compare_next_slot();
	void compare_order();
	void compare_ret();
	void compare_field(const std::string &field);

	std::map<uint32_t, Pending> pending_; /* by slot */
	bool posted_ = true;
};

/* The part that depends on the engine's types alone. */
template <class Engine>
class DeviceRun : public RoceRun {
public:
	using RoceRun::RoceRun;

protected:
	enum nda_status open(uint64_t table, uint32_t core_index) override
	{
		return device_.open(Core(&recorder_), table, core_index);
	}
	enum nda_status put(
		uint32_t pe, uint64_t dst, uint64_t src, uint64_t bytes) override
	{
		return device_.put_nbi(pe, dst, src, bytes);
	}
	enum nda_status get(
		uint32_t pe, uint64_t dst, uint64_t src, uint64_t bytes) override
	{
		return device_.get_nbi(pe, dst, src, bytes);
	}
	enum nda_status quiet(uint32_t pe) override { return device_.quiet(pe); }
	enum nda_status poll(uint32_t target) override
	{
		return typename Engine::template queue<Core>(
			device_.core(), queue_address(), aiv::wait_limits{100, 0})
			.poll_cq(target);
	}

	aiv::Device<Core, Engine> device_;
};

} // namespace nda::golden

#endif
