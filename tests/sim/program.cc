/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <stdio.h>
#include <string.h>

#include <algorithm>

#include <tests/sim/program.h>

namespace nda::test {

using aiv::verb;

namespace {

uint32_t area_bytes(bool region)
{
	return region ? region_area_bytes : heap_area_bytes;
}

bool in_region(act what)
{
	return what == act::put_region || what == act::get_region;
}

const char *name_of(act what)
{
	static const char *const names[] = {"put", "get", "put_inline", "put_pieces",
		"get_pieces", "put_strided", "get_strided", "put_region", "get_region",
		"batch", "signal", "put_signal", "await", "atomic", "change", "swap16",
		"fence", "quiet", "quiet_all"};

	return names[static_cast<unsigned>(what)];
}

float float_of(uint64_t bits)
{
	uint32_t low = static_cast<uint32_t>(bits);
	float value;

	memcpy(&value, &low, sizeof(value));
	return value;
}

uint32_t bits_of(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

uint64_t combine(verb v, uint64_t former, uint64_t operand, uint64_t compare, uint32_t size)
{
	uint64_t result = operand;

	if (v == verb::fetch_add)
		result = former + operand;
	else if (v == verb::fetch_and)
		result = former & operand;
	else if (v == verb::fetch_or)
		result = former | operand;
	else if (v == verb::fetch_xor)
		result = former ^ operand;
	else if (v == verb::compare_swap)
		result = former == compare ? operand : former;
	else if (v == verb::add_f32)
		result = bits_of(float_of(former) + float_of(operand));
	return size == 4 ? static_cast<uint32_t>(result) : result;
}

/* ---- Making programs ---- */

class Maker {
public:
	Maker(uint64_t seed, const Shape &shape, const Abilities &abilities)
		: random_(seed * 0x9e3779b97f4a7c15 + 1), can_(abilities)
	{
		p_.shape = shape;
		p_.seed = seed;
		for (int region = 0; region < 2; region++)
			claims_[region].assign(shape.n_pes,
				std::vector<uint16_t>(area_bytes(region != 0)));
	}

	Program make()
	{
		choose_indices();
		for (uint32_t n = 1 + below(4); n > 0; n--)
			make_epoch();
		p_.epochs.back().checked = true;
		return std::move(p_);
	}

private:
	/* What the epoch does with a byte. From first_handle on: written by that one. */
	static constexpr uint16_t untouched = 0, read = 1, taken = 2, first_handle = 3;

	uint32_t below(uint32_t n) { return static_cast<uint32_t>(random_() % n); }
	bool one_in(uint32_t n) { return below(n) == 0; }

	/* At 0, or shortly before a width of an index ends. */
	void choose_indices()
	{
		static constexpr uint64_t ends[] = {0, uint64_t{1} << 8, uint64_t{1} << 16,
			uint64_t{1} << 23, uint64_t{1} << 24, uint64_t{1} << 31,
			uint64_t{1} << 32};
		uint64_t end = ends[below(7)];

		p_.sq_index = static_cast<uint32_t>(end == 0 ? 0 : end - below(150));
		p_.cq_index = one_in(2)
			? p_.sq_index
			: static_cast<uint32_t>(ends[1 + below(6)] - below(150));
	}

	uint32_t length()
	{
		switch (below(8)) {
		case 0:
			return below(4);
		case 1:
			return 200 + below(1200);
		case 2:
			return 8 * (1 + below(12));
		default:
			return 1 + below(200);
		}
	}

	uint32_t handle() const { return core_ * p_.shape.n_queues + queue_; }
	uint32_t my_pe() const { return core_ / p_.shape.n_cores; }
	uint16_t *claim(uint32_t pe, bool region, uint32_t at)
	{
		return &claims_[region][pe][at];
	}

	/* A range whose bytes @fits holds for; false if none was found. */
	template <class Fits>
	bool find(uint32_t pe, bool region, uint32_t bytes, uint32_t align, uint32_t *at,
		Fits fits)
	{
		uint32_t starts = area_bytes(region) - std::max(bytes, 1u) + 1;

		if (bytes > area_bytes(region))
			return false;
		for (int tries = 0; tries < 6; tries++) {
			*at = below(starts) / align * align;
			uint16_t *c = claim(pe, region, *at);
			if (std::all_of(c, c + bytes, fits))
				return true;
		}
		return false;
	}

	void set(uint32_t pe, bool region, uint32_t at, uint32_t bytes, uint16_t to)
	{
		std::fill_n(claim(pe, region, at), bytes, to);
	}

	/* A range of the own memory to send. */
	bool find_source(bool region, uint32_t bytes, uint32_t *at)
	{
		bool found = find(my_pe(), region, bytes, 1, at,
			[](uint16_t c) { return c == untouched || c == read; });

		if (found)
			set(my_pe(), region, *at, bytes, read);
		return found;
	}

	/* A range that nobody else uses in this epoch. */
	bool find_own(
		uint32_t pe, bool region, uint32_t bytes, uint32_t align, uint32_t *at)
	{
		bool found = find(pe, region, bytes, align, at,
			[](uint16_t c) { return c == untouched; });

		if (found)
			set(pe, region, *at, bytes, taken);
		return found;
	}

	/* A range of the peer's memory to write, or to write again. */
	bool find_target(Op *op, bool region, uint32_t bytes, uint32_t *at, bool again)
	{
		uint16_t mine = static_cast<uint16_t>(first_handle + handle());
		bool found = find(op->pe, region, bytes, 1, at,
			[&](uint16_t c) { return c == untouched || (again && c == mine); });

		if (!found)
			return false;
		uint16_t *c = claim(op->pe, region, *at);
		if (std::any_of(c, c + bytes, [&](uint16_t v) { return v == mine; }) &&
			(!can_.keeps_writes || one_in(2) || read_back_))
			add_fence(op->pe);
		set(op->pe, region, *at, bytes, mine);
		return true;
	}

	/* A range of the peer's memory to read: that nobody writes, or that was written by
	 * the same queue before. */
	bool find_remote_source(Op *op, bool region, uint32_t bytes, uint32_t *at)
	{
		if (find(op->pe, region, bytes, 1, at,
			    [](uint16_t c) { return c == untouched || c == read; })) {
			set(op->pe, region, *at, bytes, read);
			return true;
		}
		uint16_t mine = static_cast<uint16_t>(first_handle + handle());
		if (p_.shape.fails || !find(op->pe, region, bytes, 1, at, [&](uint16_t c) {
			    return c == mine;
		    }))
			return false;
		add_fence(op->pe);
		read_back_ = true; /* what is written next must wait for it */
		return true;
	}

	void add_fence(uint32_t pe)
	{
		Op op = fresh(act::fence);

		op.pe = pe;
		epoch_->ops.push_back(op);
	}

	Op fresh(act what)
	{
		Op op = {};

		op.what = what;
		op.core = core_;
		op.queue = queue_;
		op.pe = peer_;
		return op;
	}

	void make_epoch()
	{
		const Shape &s = p_.shape;

		p_.epochs.emplace_back();
		epoch_ = &p_.epochs.back();
		read_back_ = false;
		for (auto &areas : claims_)
			for (auto &area : areas)
				std::fill(area.begin(), area.end(), untouched);
		for (uint32_t pe = 0; pe < s.n_pes; pe++)
			set(pe, false, floats_at, 4 * n_floats, taken);
		next_float_ = 0;
		epoch_->checked = s.fails || one_in(2);
		for (uint32_t n = 1 + below(5 * s.n_pes); n > 0; n--) {
			core_ = below(s.n_pes * s.n_cores);
			queue_ = below(s.n_queues);
			peer_ = one_in(6) ? my_pe() : below(s.n_pes);
			add_operation();
		}
	}

	void add_operation()
	{
		switch (below(16)) {
		case 0:
		case 1:
		case 2:
			return add_one(
				one_in(8) && can_.has_inline ? act::put_inline : act::put);
		case 3:
		case 4:
			return add_one(act::get);
		case 5:
			return add_one(one_in(2) ? act::put_region : act::get_region);
		case 6:
			return add_strided();
		case 7:
		case 8:
			return add_batch();
		case 9:
			return can_.has_pieces ? add_pieces() : add_one(act::put);
		case 10:
		case 11:
			return add_signal();
		case 12:
			return can_.swaps_16 && one_in(4) ? add_swap16() : add_atomic();
		case 13:
			return add_atomic();
		case 14:
			return one_in(3) ? add_fence(peer_) : add_write_after_read();
		default:
			epoch_->ops.push_back(
				fresh(one_in(2) ? act::quiet : act::quiet_all));
		}
	}

	bool add_part(Op *op, bool region, bool reads, uint32_t bytes, bool again)
	{
		Part part = {reads, 0, 0, bytes};
		bool found = reads ? find_own(my_pe(), region, bytes, 1, &part.local) &&
				find_remote_source(op, region, bytes, &part.remote)
				   : find_source(region, bytes, &part.local) &&
				find_target(op, region, bytes, &part.remote, again);

		if (found)
			op->parts.push_back(part);
		return found;
	}

	void add_one(act what)
	{
		Op op = fresh(what);
		bool reads = what == act::get || what == act::get_region;
		uint32_t bytes = what == act::put_inline ? below(17) : length();

		op.waited = one_in(4);
		if (add_part(&op, in_region(what), reads, bytes,
			    !p_.shape.fails || one_in(2)))
			epoch_->ops.push_back(op);
	}

	void add_pieces()
	{
		bool reads = one_in(2) && can_.scatters;
		Op op = fresh(reads ? act::get_pieces : act::put_pieces);
		uint32_t one = 1 + below(60), other = 1 + below(60);
		Part first = {reads, 0, 0, one}, second = {reads, 0, 0, other};
		bool found = reads ? find_own(my_pe(), false, one, 1, &first.local) &&
				find_own(my_pe(), false, other, 1, &second.local) &&
				find_remote_source(&op, false, one + other, &first.remote)
				   : find_source(false, one, &first.local) &&
				find_source(false, other, &second.local) &&
				find_target(&op, false, one + other, &first.remote, true);

		if (!found)
			return;
		second.remote = first.remote + one;
		op.parts = {first, second};
		epoch_->ops.push_back(op);
	}

	void add_strided()
	{
		bool reads = one_in(2);
		Op op = fresh(reads ? act::get_strided : act::put_strided);
		/* Now and then more than any ring holds. */
		uint32_t n = one_in(12) ? 270 + below(60)
			: one_in(6)     ? 60 + below(30)
					: 1 + below(10);
		uint32_t bytes = 1 + below(n > 100 ? 2 : n > 20 ? 4 : 20);

		op.remote_stride = bytes + below(4);
		op.local_stride = bytes + below(4);
		/* The gaps are claimed as well. */
		uint32_t far = op.remote_stride * n, near = op.local_stride * n;
		uint32_t remote = 0, local = 0;
		bool found = reads ? find_own(my_pe(), false, near, 1, &local) &&
				find(op.pe, false, far, 1, &remote,
					[](uint16_t c) {
						return c == untouched || c == read;
					})
				   : find_source(false, near, &local) &&
				find_own(op.pe, false, far, 1, &remote);
		if (!found)
			return;
		if (reads)
			set(op.pe, false, remote, far, read);
		for (uint32_t i = 0; i < n; i++)
			op.parts.push_back({reads, remote + i * op.remote_stride,
				local + i * op.local_stride, bytes});
		epoch_->ops.push_back(op);
	}

	void add_batch()
	{
		Op op = fresh(act::batch);

		/* Deeper than the ring, now and then. */
		for (uint32_t n = one_in(8) ? 70 : 1 + below(8); n > 0; n--) {
			size_t ops = epoch_->ops.size();
			uint32_t bytes = n > 8 ? 1 + below(8) : length();

			add_part(&op, false, one_in(3), bytes, false);
			/* A batch has the queue: no fence within. */
			if (epoch_->ops.size() != ops && !op.parts.empty()) {
				epoch_->ops.resize(ops);
				op.parts.pop_back();
			}
		}
		op.waited = one_in(2); /* the last by submit */
		if (!op.parts.empty())
			epoch_->ops.push_back(op);
	}

	/* What is read, then written by the same queue. */
	void add_write_after_read()
	{
		Op first = fresh(act::get), then = fresh(act::put);
		uint32_t bytes = length();
		Part out = {true, 0, 0, bytes}, in = {false, 0, 0, bytes};

		if (!find_own(my_pe(), false, bytes, 1, &out.local) ||
			!find_source(false, bytes, &in.local) ||
			!find_own(peer_, false, bytes, 1, &out.remote))
			return;
		in.remote = out.remote;
		first.parts = {out};
		then.parts = {in};
		epoch_->ops.push_back(first);
		add_fence(peer_);
		epoch_->ops.push_back(then);
	}

	/* More than a queue has words for. */
	void add_many_signals()
	{
		Op op = fresh(act::signal);

		for (int n = 0; n < 20; n++) {
			if (!find_own(peer_, false, 8, 8, &op.signal))
				return;
			op.value = random_();
			epoch_->ops.push_back(op);
		}
	}

	/* Some puts that the signal comes after. */
	void add_puts_before(Op *signal)
	{
		for (uint32_t n = below(4); n > 0; n--) {
			Op op = fresh(act::put);
			Part part = {false, 0, 0, length()};

			if (!find_source(false, part.bytes, &part.local) ||
				!find_own(op.pe, false, part.bytes, 1, &part.remote))
				return;
			op.parts = {part};
			signal->before.push_back(part);
			epoch_->ops.push_back(op);
		}
	}

	void add_signal()
	{
		if (one_in(12))
			return add_many_signals();
		Op op = fresh(one_in(2) ? act::signal : act::put_signal);
		Part part = {false, 0, 0, 0};

		add_puts_before(&op);

		if (op.what == act::put_signal) {
			part.bytes = length();
			if (!find_source(false, part.bytes, &part.local) ||
				!find_own(op.pe, false, part.bytes, 1, &part.remote))
				return;
			op.parts = {part};
		}
		if (!find_own(op.pe, false, 8, 8, &op.signal))
			return;
		op.value = random_();
		epoch_->ops.push_back(op);
		if (p_.shape.fails || one_in(4))
			return;
		Op await = fresh(act::await);
		await.core = op.pe * p_.shape.n_cores + below(p_.shape.n_cores);
		await.pe = static_cast<uint32_t>(epoch_->ops.size() - 1);
		await.signal = op.signal;
		await.value = op.value;
		epoch_->ops.push_back(await);
	}

	void add_atomic()
	{
		static constexpr verb verbs[] = {verb::fetch_add, verb::compare_swap,
			verb::swap, verb::fetch_and, verb::fetch_or, verb::fetch_xor};

		if (epoch_->cells.empty() || one_in(3)) {
			Cell cell = {peer_, 0, one_in(2) ? 4u : 8u, verbs[below(6)],
				!one_in(3), 0};

			/* Two that fetch nothing would leave which one was last. */
			if (cell.verb == verb::compare_swap || cell.verb == verb::swap)
				cell.fetches = true;
			if (can_.adds_f32 && one_in(6)) {
				if (next_float_ == n_floats)
					return;
				cell.verb = verb::add_f32;
				cell.fetches = false;
				cell.size = 4;
				cell.offset = floats_at + 4 * next_float_++;
			} else if (!can_.can(cell.verb, cell.size, cell.fetches) ||
				!find_own(cell.pe, false, cell.size, cell.size,
					&cell.offset)) {
				return;
			}
			epoch_->cells.push_back(cell);
		}
		uint32_t index = below(static_cast<uint32_t>(epoch_->cells.size()));
		Cell &cell = epoch_->cells[index];
		Op op = fresh(cell.fetches ? act::atomic : act::change);

		/* Where some may have failed, their orders are tried one by one. */
		if (cell.n_ops == (p_.shape.fails ? 6u : 24u))
			return;
		op.pe = cell.pe;
		op.cell = index;
		op.verb = cell.verb;
		op.operand = operand(cell);
		op.compares_start = one_in(2);
		op.value = random_();
		op.waited = op.what == act::atomic &&
			(one_in(2) || !can_.can(cell.verb, cell.size, false));
		/* Where the former value goes. */
		if (op.what == act::atomic && !op.waited) {
			Part result = {true, 0, 0, 8};

			if (!find_own(my_pe(), false, 8, 8, &result.local))
				return;
			op.parts = {result};
		}
		cell.n_ops++;
		epoch_->ops.push_back(op);
		epoch_->checked = true;
	}

	void add_swap16()
	{
		Op op = fresh(act::swap16);

		/* A core has none of its own. */
		if (op.pe == my_pe())
			op.pe = (op.pe + 1) % p_.shape.n_pes;
		Part part = {false, 0, 0, 16};
		if (!find_own(op.pe, false, 16, 16, &part.remote))
			return;
		op.parts = {part};
		op.waited = true;
		op.value = random_();
		op.compares_start = !one_in(3);
		epoch_->ops.push_back(op);
	}

	/* Such that no two orders leave the same former values. */
	uint64_t operand(const Cell &cell)
	{
		switch (cell.verb) {
		case verb::fetch_add:
			return 1 + below(1 << 24);
		case verb::add_f32:
			return bits_of(
				static_cast<float>(static_cast<int>(below(2001)) - 1000));
		case verb::fetch_and:
			return ~(uint64_t{1} << cell.n_ops);
		case verb::fetch_or:
		case verb::fetch_xor:
			return uint64_t{1} << cell.n_ops;
		default:
			return random_();
		}
	}

	std::mt19937_64 random_;
	const Abilities &can_;
	Program p_;
	Epoch *epoch_ = nullptr;
	std::vector<std::vector<uint16_t>> claims_[2];
	bool read_back_ = false;
	uint32_t next_float_ = 0;
	uint32_t core_ = 0, queue_ = 0, peer_ = 0;
};

} // namespace

Program make_program(uint64_t seed, const Shape &shape, const Abilities &abilities)
{
	return Maker(seed, shape, abilities).make();
}

WorldOptions world_of_block(uint64_t block, const char *nic, bool manual, Shape *shape)
{
	static const char *const errors[] = {"remote-access-error:23", "retry-exceeded:31",
		"rnr:17", "remote-access-error:40,reorder:4,seed:3", "rnr:7,reorder:16"};
	static const char *const others[] = {"", "", "", "delay-us:2", "reorder:4",
		"reorder:16,seed:7", "delay-us:1,reorder:8"};
	std::mt19937_64 random(block * 0x9e3779b97f4a7c15 + 7);
	auto below = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
	WorldOptions o;

	o.nic = nic;
	o.manual = manual;
	o.n_pes = 2 + below(manual ? 7 : 3);
	o.n_cores = o.n_pes <= 4 ? 1 + below(2) : 1;
	o.queues_per_core = 1 + below(o.n_pes <= 4 ? 3 : 2);
	static constexpr uint32_t every[] = {1, 1, 2, 5, 32};
	o.signal_every = every[below(5)];
	o.heap_bytes = heap_area_bytes;
	o.region_bytes = region_area_bytes;
	o.mtu_bytes = 256;
	shape->fails = below(4) == 0;
	o.inject = shape->fails ? errors[below(5)] : others[below(7)];
	if (!manual)
		o.timeout_us = 20000000; /* is never waited for */
	shape->n_pes = o.n_pes;
	shape->n_cores = o.n_cores;
	shape->n_queues = o.queues_per_core;
	return o;
}

std::string Program::text() const
{
	std::string text;
	char line[256];

	snprintf(line, sizeof(line),
		"program %llu: %u PEs, %u cores each, %u queues each, indices from %#x, CQ "
		"%#x\n",
		static_cast<unsigned long long>(seed), shape.n_pes, shape.n_cores,
		shape.n_queues, sq_index, cq_index);
	text += line;
	for (size_t e = 0; e < epochs.size(); e++) {
		snprintf(line, sizeof(line), "epoch %zu%s\n", e,
			epochs[e].checked ? ", checked" : "");
		text += line;
		for (size_t i = 0; i < epochs[e].ops.size(); i++) {
			const Op &op = epochs[e].ops[i];

			snprintf(line, sizeof(line),
				"  %3zu PE %u core %u queue %u: %s%s %s %u", i,
				op.core / shape.n_cores, op.core % shape.n_cores, op.queue,
				name_of(op.what), op.waited ? " and wait" : "",
				op.what == act::await ? "for op" : "PE", op.pe);
			text += line;
			if (op.what == act::atomic || op.what == act::change) {
				const Cell &c = epochs[e].cells[op.cell];

				snprintf(line, sizeof(line),
					", verb %d of %u bytes at %#x, operand %#llx",
					static_cast<int>(op.verb), c.size, c.offset,
					static_cast<unsigned long long>(op.operand));
				text += line;
			}
			if (op.what == act::signal || op.what == act::put_signal ||
				op.what == act::await) {
				snprintf(line, sizeof(line), ", signal %#x = %#llx",
					op.signal,
					static_cast<unsigned long long>(op.value));
				text += line;
			}
			for (size_t k = 0; k < op.parts.size() && k < 12; k++) {
				const Part &p = op.parts[k];

				snprintf(line, sizeof(line), "%s %s %#x, local %#x, %u;",
					k % 4 == 0 && k != 0 ? "\n       " : "",
					p.read ? "from" : "to", p.remote, p.local, p.bytes);
				text += line;
			}
			if (op.parts.size() > 12) {
				snprintf(line, sizeof(line), " ... %zu parts",
					op.parts.size());
				text += line;
			}
			text += "\n";
		}
	}
	return text;
}

/* ---- Running them ---- */

Run::Run(const Program &program, World *world) : program_(program), world_(world)
{
	std::mt19937_64 random(program.seed + 99);

	for (uint32_t pe = 0; pe < program.shape.n_pes; pe++)
		for (bool region : {false, true}) {
			Bytes bytes(area_bytes(region));

			for (size_t i = 0; i < bytes.size(); i += 8) {
				uint64_t value = random();

				memcpy(&bytes[i], &value, 8);
			}
			for (uint32_t i = 0; i < n_floats && !region; i++) {
				float value = static_cast<float>(random() % 1000);

				memcpy(&bytes[floats_at + 4 * i], &value, 4);
			}
			memcpy(reinterpret_cast<void *>(area(pe, region)), bytes.data(),
				bytes.size());
			(region ? regions_ : heaps_).push_back(std::move(bytes));
		}
	outcomes_.resize(program.epochs.size());
	starts_.resize(program.epochs.size());
	for (size_t e = 0; e < program.epochs.size(); e++)
		outcomes_[e].resize(program.epochs[e].ops.size());
}

void Run::fail(const std::string &why)
{
	while (__atomic_test_and_set(&lock_, __ATOMIC_ACQUIRE)) {}
	if (failure_.empty())
		failure_ = why;
	__atomic_store_n(&has_failed_, true, __ATOMIC_RELEASE);
	__atomic_clear(&lock_, __ATOMIC_RELEASE);
}

uint64_t Run::word(uint32_t pe, uint32_t offset, uint32_t size) const
{
	uint64_t value = 0;

	memcpy(&value, &heaps_[pe][offset], size);
	return value;
}

void Run::set_word(uint32_t pe, uint32_t offset, uint32_t size, uint64_t value)
{
	memcpy(&heaps_[pe][offset], &value, size);
}

void Run::begin(size_t epoch)
{
	/* What fails is known only afterwards. */
	if (program_.shape.fails)
		return note_starts(epoch);
	do
		apply(epoch);
	while (!program_.epochs[epoch++].checked);
}

/* What is compared with, and fetched from where nobody else writes. */
void Run::note_starts(size_t epoch)
{
	const Epoch &e = program_.epochs[epoch];

	starts_[epoch].clear();
	for (const Cell &cell : e.cells)
		starts_[epoch].push_back(word(cell.pe, cell.offset, cell.size));
	for (size_t i = 0; i < e.ops.size(); i++) {
		const Op &op = e.ops[i];
		Outcome &outcome = outcomes_[epoch][i];

		if (op.what == act::atomic || op.what == act::change) {
			outcome.compare =
				op.compares_start ? starts_[epoch][op.cell] : op.value;
		} else if (op.what == act::swap16) {
			const uint8_t *at = &heaps_[op.pe][op.parts[0].remote];

			outcome.expected.assign(at, at + 16);
		}
	}
}

void Run::apply(size_t epoch)
{
	const Epoch &e = program_.epochs[epoch];

	note_starts(epoch);
	for (size_t i = 0; i < e.ops.size(); i++)
		apply_op(e.ops[i], epoch, i);
}

void Run::apply_op(const Op &op, size_t epoch, size_t index)
{
	Outcome &outcome = outcomes_[epoch][index];
	const Epoch &e = program_.epochs[epoch];

	if (op.what == act::atomic || op.what == act::change) {
		const Cell &cell = e.cells[op.cell];

		if (cell.verb != verb::swap && cell.verb != verb::compare_swap)
			set_word(cell.pe, cell.offset, cell.size,
				combine(cell.verb, word(cell.pe, cell.offset, cell.size),
					op.operand, 0, cell.size));
		return;
	}
	if (op.what == act::await) {
		const Op &sent = e.ops[op.pe];

		outcome.expected.clear();
		for (const auto *parts : {&sent.before, &sent.parts})
			for (const Part &p : *parts)
				outcome.expected.insert(outcome.expected.end(),
					heaps_[sent.pe].begin() + p.remote,
					heaps_[sent.pe].begin() + p.remote + p.bytes);
		return;
	}
	if (op.what == act::swap16) {
		if (op.compares_start)
			memcpy(&heaps_[op.pe][op.parts[0].remote], op.swap_bytes().data(),
				16);
		return;
	}
	apply_parts(op, &outcome);
	if (op.what == act::signal || op.what == act::put_signal)
		set_word(op.pe, op.signal, 8, op.value);
}

void Run::apply_parts(const Op &op, Outcome *)
{
	bool region = in_region(op.what);
	uint32_t me = op.core / program_.shape.n_cores;

	for (const Part &p : op.parts) {
		Bytes &far = image(op.pe, region), &near = image(me, region);

		if (p.read)
			memmove(&near[p.local], &far[p.remote], p.bytes);
		else
			memmove(&far[p.remote], &near[p.local], p.bytes);
	}
}

/* What was not posted has left no trace; what was posted and is not known to be done may
 * have, byte by byte. */
void Run::settle_failures(size_t epoch)
{
	const Epoch &e = program_.epochs[epoch];

	doubts_.clear();
	for (size_t i = 0; i < e.ops.size(); i++) {
		const Op &op = e.ops[i];
		const Outcome &o = outcomes_[epoch][i];
		uint32_t me = op.core / program_.shape.n_cores;

		/* Atomics are looked at by word, with all of their kind. */
		if (!o.posted || op.what == act::atomic || op.what == act::change)
			continue;
		if (o.completed) {
			apply_op(op, epoch, i);
			continue;
		}
		auto doubt = [&](uint32_t pe, bool region, uint32_t at,
				     const uint8_t *bytes, uint32_t n) {
			for (uint32_t k = 0; k < n; k++)
				doubts_.push_back({pe, region, at + k, {bytes[k]}});
		};
		bool region = in_region(op.what);
		if (op.what == act::swap16) {
			if (op.compares_start)
				doubt(op.pe, false, op.parts[0].remote,
					op.swap_bytes().data(), 16);
			continue;
		}
		for (const Part &p : op.parts)
			if (p.read)
				doubt(me, region, p.local, &image(op.pe, region)[p.remote],
					p.bytes);
			else
				doubt(op.pe, region, p.remote, &image(me, region)[p.local],
					p.bytes);
		if (op.what == act::signal || op.what == act::put_signal)
			doubt(op.pe, false, op.signal,
				reinterpret_cast<const uint8_t *>(&op.value), 8);
	}
	for (const Doubt &d : doubts_) {
		uint8_t there =
			reinterpret_cast<const uint8_t *>(area(d.pe, d.region))[d.at];

		for (uint8_t value : d.values)
			if (value == there)
				image(d.pe, d.region)[d.at] = there;
	}
}

void Run::adopt(uint32_t pe, uint32_t offset, uint32_t bytes)
{
	memcpy(&heaps_[pe][offset], reinterpret_cast<void *>(area(pe, false) + offset),
		bytes);
}

std::vector<Run::Step> Run::steps_of(size_t epoch, uint32_t cell)
{
	const Epoch &e = program_.epochs[epoch];
	std::vector<Step> steps;

	for (size_t i = 0; i < e.ops.size(); i++) {
		const Op &op = e.ops[i];
		const Outcome &o = outcomes_[epoch][i];
		bool fails = program_.shape.fails;

		if ((op.what != act::atomic && op.what != act::change) || op.cell != cell ||
			(fails && !o.posted))
			continue;
		bool required = !fails || o.completed;
		steps.push_back({op.verb, e.cells[cell].size, op.operand, o.compare,
			o.fetched, required && op.what == act::atomic, required});
	}
	return steps;
}

/* Whether an order of the steps, of those not required some or none, leads from @state to
 * what is there. None comes back to where it was, so what changes nothing goes first. */
bool Run::lead(std::vector<Step> *steps, uint64_t state, uint64_t there)
{
	bool all = true;

	for (bool changes : {false, true})
		for (Step &s : *steps) {
			uint64_t next =
				combine(s.verb, state, s.operand, s.compare, s.size);

			all = all && (s.done || !s.required);
			if (s.done || (next != state) != changes ||
				(s.knows_former && s.former != state))
				continue;
			s.done = true;
			if (lead(steps, next, there))
				return true;
			s.done = false;
			if (!changes && s.knows_former)
				return false;
		}
	return all && state == there;
}

/* The former values must be those of some order of the operations. */
void Run::check_cells(size_t epoch)
{
	const Epoch &e = program_.epochs[epoch];

	for (uint32_t c = 0; c < e.cells.size(); c++) {
		const Cell &cell = e.cells[c];
		uint64_t start = starts_[epoch][c];
		std::vector<Step> steps = steps_of(epoch, c);

		/* Their order does not show, and the image has them all. */
		if (!cell.fetches && !program_.shape.fails)
			continue;
		uint64_t there = 0;
		memcpy(&there, reinterpret_cast<void *>(area(cell.pe, false) + cell.offset),
			cell.size);
		if (!lead(&steps, start, there)) {
			char why[256];

			snprintf(why, sizeof(why),
				"epoch %zu: cell %u at PE %u, %#x: no order of its %zu "
				"operations leads from %#llx with what they fetched to "
				"%#llx",
				epoch, c, cell.pe, cell.offset, steps.size(),
				static_cast<unsigned long long>(start),
				static_cast<unsigned long long>(there));
			fail(why);
		}
		adopt(cell.pe, cell.offset, cell.size);
	}
	for (const Op &op : e.ops)
		if (op.what == act::atomic && !op.parts.empty())
			adopt(op.core / program_.shape.n_cores, op.parts[0].local, 8);
}

void Run::compare_area(uint32_t pe, bool region, size_t epoch)
{
	const Bytes &want = image(pe, region);
	const uint8_t *there = reinterpret_cast<const uint8_t *>(area(pe, region));
	char why[200];

	if (memcmp(there, want.data(), want.size()) == 0)
		return;
	size_t at = 0, last = want.size() - 1;
	while (there[at] == want[at])
		at++;
	while (there[last] == want[last])
		last--;
	snprintf(why, sizeof(why),
		"after epoch %zu: %s of PE %u differs from %#zx to %#zx: first %#x, not "
		"%#x",
		epoch, region ? "region" : "heap", pe, at, last, there[at], want[at]);
	fail(why);
}

void Run::check(size_t epoch)
{
	if (program_.shape.fails)
		settle_failures(epoch);
	check_cells(epoch);
	for (uint32_t pe = 0; pe < program_.shape.n_pes; pe++)
		for (bool region : {false, true})
			compare_area(pe, region, epoch);
}

} // namespace nda::test
