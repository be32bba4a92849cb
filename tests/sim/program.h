/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Random programs of operations between PEs, and what they must leave in memory.
 *
 * A program is epochs between barriers. In an epoch each byte has one writer, a core's
 * queue that may write it again behind a fence, or is a word that only commuting atomics
 * change; what is read is not written, but by the reader itself behind a fence. So the
 * outcome does not depend on the order in which PEs go on, and a plain image of the memory
 * tells it.
 *
 * Where the NIC ends requests with an error, a program has no signals that are waited for:
 * the bytes of operations that were posted and not completed may be old or new, an atomic
 * may have taken effect or not, all others are exact.
 */
#ifndef TESTS_SIM_PROGRAM_H
#define TESTS_SIM_PROGRAM_H

#include <stdint.h>
#include <string.h>

#include <array>
#include <random>
#include <string>
#include <vector>

#include <nda/aiv/queue.h>
#include <tests/sim/world.h>

namespace nda::test {

/* What an engine can do. */
struct Abilities {
	bool has_inline = false;
	bool has_pieces = false;
	bool scatters = false;    /* pieces of a get, too */
	bool keeps_writes = true; /* in their order, without a fence */
	bool adds_f32 = false;
	bool swaps_16 = false; /* compare_swap of 16 bytes, at another PE */
	/* Of 4 and 8 bytes; started, or only where they are waited for. */
	bool starts[2][16] = {};
	bool waits[2][16] = {};

	bool can(aiv::verb v, uint32_t size, bool waited) const
	{
		return (waited ? waits : starts)[size == 8][static_cast<unsigned>(v)];
	}
};

template <class Engine>
Abilities abilities_of()
{
	Abilities a;

	a.has_inline = Engine::has_inline;
	a.has_pieces = Engine::has_pieces;
	a.scatters = Engine::has_pieces && Engine::table_format != NDA_FORMAT_XSCALE;
	a.adds_f32 = Engine::supports(aiv::verb::add_f32, 4);
	a.swaps_16 = Engine::supports(aiv::verb::compare_swap, 16);
	a.keeps_writes = Engine::table_format != NDA_FORMAT_UDMA;
	for (unsigned v = 0; v < 16; v++)
		for (uint32_t size : {4u, 8u}) {
			aiv::verb what = static_cast<aiv::verb>(v);
			bool starts = aiv::is_atomic(what) && Engine::supports(what, size);

			a.starts[size == 8][v] = starts;
			a.waits[size == 8][v] = starts ||
				(aiv::is_atomic(what) && Engine::emulates(what, size));
		}
	return a;
}

/* Memory of a PE that programs work on: its heap, and a region outside. */
constexpr uint32_t heap_area_bytes = 8192;
constexpr uint32_t region_area_bytes = 4096;
/* The heap ends with binary32 numbers: integers, so small that no sum rounds. */
constexpr uint32_t n_floats = 16;
constexpr uint32_t floats_at = heap_area_bytes - 4 * n_floats;

enum class act : uint8_t {
	put,
	get,
	put_inline,
	put_pieces,
	get_pieces,
	put_strided,
	get_strided,
	put_region,
	get_region,
	batch,
	signal,
	put_signal,
	await,  /* the signal of another operation, then looks at what came with it */
	atomic, /* with the former value */
	change, /* an atomic without */
	swap16, /* compare_swap of 16 bytes that nobody else uses */
	fence,
	quiet,
	quiet_all,
};

struct Part {
	bool read;
	uint32_t remote; /* offsets in the area */
	uint32_t local;
	uint32_t bytes;
};

struct Op {
	act what;
	bool waited;   /* until it is done */
	uint32_t core; /* of all: pe * n_cores + core of the PE */
	uint32_t queue;
	uint32_t pe; /* peer; of await: the op that it waits for */
	std::vector<Part> parts;
	std::vector<Part> before; /* of a signal: what was put by others before it */
	uint32_t remote_stride, local_stride;
	uint32_t signal; /* offset */
	uint64_t value;
	/* Atomics. */
	aiv::verb verb;
	uint32_t cell;
	uint64_t operand;
	bool compares_start; /* compare_swap: with what the word has at first, or value */

	/* What swap16 stores; it compares with that, too, where not with the start. */
	std::array<uint8_t, 16> swap_bytes() const
	{
		uint64_t halves[2] = {value, value * 0x9e3779b97f4a7c15};
		std::array<uint8_t, 16> bytes;

		memcpy(bytes.data(), halves, sizeof(halves));
		return bytes;
	}
};

struct Cell {
	uint32_t pe;
	uint32_t offset;
	uint32_t size;
	aiv::verb verb;
	bool fetches;
	uint32_t n_ops;
};

struct Epoch {
	std::vector<Op> ops; /* in an order that would be right on one processor */
	std::vector<Cell> cells;
	bool checked; /* memory is looked at behind it */
};

struct Shape {
	uint32_t n_pes, n_cores, n_queues;
	bool fails; /* the NIC ends requests with errors */
};

struct Program {
	Shape shape;
	uint64_t seed;
	uint32_t sq_index, cq_index;
	std::vector<Epoch> epochs;

	std::string text() const;
};

/* The world that the programs of a block of seeds share. */
WorldOptions world_of_block(uint64_t block, const char *nic, bool manual, Shape *shape);

Program make_program(uint64_t seed, const Shape &shape, const Abilities &abilities);

/*
 * A run of a program: the image, and what the cores report. begin() and check() are called
 * while no core is in an epoch.
 */
class Run {
public:
	Run(const Program &program, World *world);

	/* Before the epochs from @epoch to the next checked one; and after these. */
	void begin(size_t epoch);
	void check(size_t epoch);

	/* What went wrong first, "" if nothing did. */
	std::string failure() const { return failure_; }
	bool failed() const { return __atomic_load_n(&has_failed_, __ATOMIC_ACQUIRE); }
	void fail(const std::string &why);

	const Program &program() const { return program_; }
	World &world() const { return *world_; }
	uint64_t area(uint32_t pe, bool region) const
	{
		return region ? world_->region_addr(pe) : world_->heap(pe);
	}

	/* Of each operation of the epochs since begin(); written by its core alone. */
	struct Outcome {
		uint64_t fetched = 0;
		enum nda_status status = NDA_OK;
		bool posted = false; /* at least in part */
		bool completed = false;
		uint32_t end = 0;              /* ring index behind it */
		std::vector<uint8_t> expected; /* behind a signal; of swap16, before it */
		uint64_t compare = 0;
	};
	Outcome &outcome(size_t epoch, size_t op) { return outcomes_[epoch][op]; }

private:
	using Bytes = std::vector<uint8_t>;
	struct Doubt {
		uint32_t pe;
		bool region;
		uint32_t at;
		Bytes values; /* besides that of the image */
	};

	/* What an atomic did, or may have done. */
	struct Step {
		aiv::verb verb;
		uint32_t size;
		uint64_t operand, compare;
		uint64_t former;
		bool knows_former;
		bool required; /* it did */
		bool done = false;
	};
	static bool lead(std::vector<Step> *steps, uint64_t state, uint64_t there);

	Bytes &image(uint32_t pe, bool region)
	{
		return region ? regions_[pe] : heaps_[pe];
	}
	uint64_t word(uint32_t pe, uint32_t offset, uint32_t size) const;
	void set_word(uint32_t pe, uint32_t offset, uint32_t size, uint64_t value);
	void note_starts(size_t epoch);
	void apply(size_t epoch);
	void apply_parts(const Op &op, Outcome *outcome);
	void apply_op(const Op &op, size_t epoch, size_t index);
	void settle_failures(size_t epoch);
	std::vector<Step> steps_of(size_t epoch, uint32_t cell);
	void check_cells(size_t epoch);
	void compare_area(uint32_t pe, bool region, size_t epoch);
	void adopt(uint32_t pe, uint32_t offset, uint32_t bytes);

	const Program &program_;
	World *world_;
	std::vector<Bytes> heaps_, regions_;
	std::vector<std::vector<Outcome>> outcomes_;
	std::vector<std::vector<uint64_t>> starts_; /* of the cells of each epoch */
	std::vector<Doubt> doubts_;
	std::string failure_;
	bool has_failed_ = false;
	bool lock_ = false; /* of failure_ */
};

} // namespace nda::test

#endif
