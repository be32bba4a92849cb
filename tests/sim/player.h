/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Plays a random program's part of one core on its device handles. */
#ifndef TESTS_SIM_PLAYER_H
#define TESTS_SIM_PLAYER_H

#include <stdint.h>
#include <string.h>

#include <atomic>
#include <string>
#include <vector>

#include <nda/aiv/device.h>
#include <tests/sim/program.h>

namespace nda::test {

/* Where cores wait for each other without the device. */
class Gate {
public:
	/* The last of @n runs @last before anybody goes on. */
	template <class Core, class Last>
	void pass(const Core &core, uint32_t n, Last last)
	{
		uint32_t round = round_.load(std::memory_order_acquire);

		if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == n) {
			last();
			arrived_.store(0, std::memory_order_relaxed);
			round_.store(round + 1, std::memory_order_release);
			return;
		}
		while (round_.load(std::memory_order_acquire) == round)
			core.relax();
	}

private:
	std::atomic<uint32_t> arrived_{0};
	std::atomic<uint32_t> round_{0};
};

struct Gates {
	explicit Gates(uint32_t n_pes) : of_pe(n_pes) {}
	Gate all;
	std::vector<Gate> of_pe;
};

template <class Core, class Engine>
class Player {
public:
	Player(Run *run, Gates *gates, const Core &core, uint32_t pe, uint32_t index)
		: run_(*run), gates_(*gates), core_(core), pe_(pe),
		  me_(pe * run->program().shape.n_cores + index), index_(index),
		  devices_(run->program().shape.n_queues)
	{}

	void play()
	{
		const Program &p = run_.program();
		const Shape &s = p.shape;
		bool first = true;

		for (uint32_t q = 0; q < s.n_queues; q++)
			expect(devices_[q].open(core_, run_.world().table(pe_), index_, q),
				"open", 0);
		for (size_t e = 0; e < p.epochs.size(); e++) {
			const Epoch &epoch = p.epochs[e];

			if (first)
				gates_.all.pass(
					core_, s.n_pes * s.n_cores, [&] { run_.begin(e); });
			for (size_t i = 0; i < epoch.ops.size() && !run_.failed(); i++)
				if (epoch.ops[i].core == me_)
					perform(e, i, epoch.ops[i]);
			finish(e, epoch);
			if (!s.fails)
				leave_epoch(e);
			first = epoch.checked;
			if (first)
				gates_.all.pass(core_, s.n_pes * s.n_cores, [&] {
					if (!run_.failed())
						run_.check(e);
				});
		}
	}

private:
	using Device = aiv::Device<Core, Engine>;

	void complain(const std::string &what, size_t epoch)
	{
		run_.fail("epoch " + std::to_string(epoch) + ", PE " + std::to_string(pe_) +
			" core " + std::to_string(index_) + ": " + what);
	}

	void expect(enum nda_status status, const char *what, size_t epoch)
	{
		if (status != NDA_OK && !run_.failed())
			complain(std::string(what) + " gives " + nda_status_string(status),
				epoch);
	}

	static bool injected(enum nda_status status)
	{
		return status == NDA_REMOTE_ACCESS || status == NDA_RETRY_EXCEEDED ||
			status == NDA_RNR_RETRY_EXCEEDED;
	}

	uint32_t load_state(uint32_t queue, uint32_t pe, size_t member)
	{
		return core_.template load<uint32_t>(devices_[queue].queue_address(pe) +
			offsetof(nda_queue, state) + member);
	}

	uint32_t head(const Op &op)
	{
		return load_state(op.queue, op.pe, offsetof(nda_queue_state, head));
	}

	void perform(size_t e, size_t i, const Op &op)
	{
		Run::Outcome &outcome = run_.outcome(e, i);

		if (!run_.program().shape.fails || op.what == act::quiet_all) {
			outcome.status = start(op, &outcome, e);
			if (!run_.program().shape.fails)
				expect(outcome.status, ("op " + std::to_string(i)).c_str(),
					e);
			return;
		}
		uint32_t before = head(op);
		outcome.status = start(op, &outcome, e);
		outcome.end = head(op);
		bool locally = !Engine::reaches_itself && op.pe == pe_;
		outcome.posted = locally || outcome.end != before;
		/* One that is waited for may be several requests. */
		outcome.completed =
			locally || (is_waited_atomic(op) && outcome.status == NDA_OK);
		if (outcome.status != NDA_OK && !injected(outcome.status))
			expect(outcome.status, ("op " + std::to_string(i)).c_str(), e);
	}

	static bool is_waited_atomic(const Op &op)
	{
		return op.what == act::swap16 || (op.what == act::atomic && op.waited);
	}

	enum nda_status start(const Op &op, Run::Outcome *outcome, size_t e)
	{
		Device &d = devices_[op.queue];
		uint64_t base = run_.area(pe_, false);
		const Part none = {};
		const Part &p = op.parts.empty() ? none : op.parts[0];
		uint64_t far = base + p.remote, near = base + p.local;

		switch (op.what) {
		case act::put:
			return op.waited ? d.put(op.pe, far, near, p.bytes)
					 : d.put_nbi(op.pe, far, near, p.bytes);
		case act::get:
			return op.waited ? d.get(op.pe, near, far, p.bytes)
					 : d.get_nbi(op.pe, near, far, p.bytes);
		case act::put_inline:
			return d.put_inline_nbi(op.pe, far, near, p.bytes);
		case act::put_pieces:
		case act::get_pieces: {
			std::vector<nda_piece> pieces;
			for (const Part &each : op.parts)
				pieces.push_back({base + each.local, each.bytes});
			uint32_t n = static_cast<uint32_t>(pieces.size());
			return p.read ? d.get_pieces_nbi(op.pe, far, pieces.data(), n)
				      : d.put_pieces_nbi(op.pe, far, pieces.data(), n);
		}
		case act::put_strided:
			return d.put_strided_nbi(op.pe, far, near, op.remote_stride,
				op.local_stride, p.bytes, op.parts.size());
		case act::get_strided:
			return d.get_strided_nbi(op.pe, near, far, op.local_stride,
				op.remote_stride, p.bytes, op.parts.size());
		case act::put_region:
			return d.put_nbi(op.pe, run_.world().peer_region(op.pe, pe_),
				p.remote, run_.world().own_region(pe_, op.pe), p.local,
				p.bytes);
		case act::get_region:
			return d.get_nbi(op.pe, run_.world().own_region(pe_, op.pe),
				p.local, run_.world().peer_region(op.pe, pe_), p.remote,
				p.bytes);
		case act::batch:
			return post_batch(d, op, base);
		case act::signal:
			return d.signal_nbi(op.pe, base + op.signal, op.value);
		case act::put_signal:
			return d.put_signal_nbi(
				op.pe, far, near, p.bytes, base + op.signal, op.value);
		case act::await:
			return await(d, op, outcome, base, e);
		case act::atomic:
		case act::change:
			return run_.program().epochs[e].cells[op.cell].size == 4
				? atomic<uint32_t>(d, op, outcome, base, e)
				: atomic<uint64_t>(d, op, outcome, base, e);
		case act::swap16:
			return swap16(d, op, far, outcome, e);
		case act::fence:
			return d.fence(op.pe);
		case act::quiet:
			return d.quiet(op.pe);
		case act::quiet_all:
			return d.quiet();
		}
		return NDA_INVALID;
	}

	static enum nda_status post_batch(Device &d, const Op &op, uint64_t base)
	{
		auto batch = d.batch(op.pe);
		enum nda_status status = NDA_OK;

		for (size_t i = 0; i < op.parts.size() && status == NDA_OK; i++) {
			const Part &p = op.parts[i];
			uint64_t far = base + p.remote, near = base + p.local;
			bool submits = op.waited && i + 1 == op.parts.size();

			if (submits)
				status = p.read ? batch.get_submit(near, far, p.bytes)
						: batch.put_submit(far, near, p.bytes);
			else
				status = p.read ? batch.get_nbi(near, far, p.bytes)
						: batch.put_nbi(far, near, p.bytes);
		}
		return status;
	}

	enum nda_status await(
		Device &d, const Op &op, Run::Outcome *outcome, uint64_t base, size_t e)
	{
		const Op &sent = run_.program().epochs[e].ops[op.pe];
		enum nda_status status = d.template wait_until<uint64_t>(
			base + op.signal, aiv::cmp::eq, op.value);

		/* What did not come in time brings nothing with it. */
		if (status != NDA_OK)
			return status;
		if (!came_before(sent, base, outcome->expected))
			complain("the signal of op " + std::to_string(op.pe) +
					" is there and its data is not",
				e);
		return status;
	}

	/* Whether all that a signal comes after is there. */
	static bool came_before(
		const Op &signal, uint64_t base, const std::vector<uint8_t> &expected)
	{
		size_t at = 0;

		for (const auto *parts : {&signal.before, &signal.parts})
			for (const Part &p : *parts) {
				if (p.bytes != 0 &&
					memcmp(reinterpret_cast<void *>(base + p.remote),
						expected.data() + at, p.bytes) != 0)
					return false;
				at += p.bytes;
			}
		return true;
	}

	template <class T>
	enum nda_status atomic(
		Device &d, const Op &op, Run::Outcome *outcome, uint64_t base, size_t e)
	{
		uint64_t dst = base + run_.program().epochs[e].cells[op.cell].offset;
		T operand = static_cast<T>(op.operand);
		T compare = static_cast<T>(outcome->compare);
		T former = 0;
		enum nda_status status;

		if (op.verb == aiv::verb::add_f32)
			return add_f32(d, op, dst);
		if (op.what == act::change)
			return change<T>(d, op, dst, operand);
		if (!op.waited)
			return start_atomic<T>(
				d, op, dst, operand, compare, base + op.parts[0].local);
		switch (op.verb) {
		case aiv::verb::fetch_add:
			status = d.template fetch_add<T>(op.pe, dst, operand, &former);
			break;
		case aiv::verb::compare_swap:
			status = d.template compare_swap<T>(
				op.pe, dst, compare, operand, &former);
			break;
		case aiv::verb::swap:
			status = d.template swap<T>(op.pe, dst, operand, &former);
			break;
		case aiv::verb::fetch_and:
			status = d.template fetch_and<T>(op.pe, dst, operand, &former);
			break;
		case aiv::verb::fetch_or:
			status = d.template fetch_or<T>(op.pe, dst, operand, &former);
			break;
		default:
			status = d.template fetch_xor<T>(op.pe, dst, operand, &former);
		}
		outcome->fetched = former;
		return status;
	}

	enum nda_status swap16(
		Device &d, const Op &op, uint64_t far, Run::Outcome *outcome, size_t e)
	{
		uint64_t swap[2], start[2], former[2] = {};

		memcpy(swap, op.swap_bytes().data(), sizeof(swap));
		memcpy(start, outcome->expected.data(), sizeof(start));
		enum nda_status status = d.compare_swap16(
			op.pe, far, op.compares_start ? start : swap, swap, former);
		if (status == NDA_OK && memcmp(former, start, sizeof(former)) != 0)
			complain("compare_swap of 16 bytes fetches something else than was "
				 "there",
				e);
		return status;
	}

	template <class T>
	static enum nda_status start_atomic(Device &d, const Op &op, uint64_t dst,
		T operand, T compare, uint64_t result)
	{
		switch (op.verb) {
		case aiv::verb::fetch_add:
			return d.template fetch_add_nbi<T>(op.pe, dst, operand, result);
		case aiv::verb::compare_swap:
			return d.template compare_swap_nbi<T>(
				op.pe, dst, compare, operand, result);
		case aiv::verb::swap:
			return d.template swap_nbi<T>(op.pe, dst, operand, result);
		case aiv::verb::fetch_and:
			return d.template fetch_and_nbi<T>(op.pe, dst, operand, result);
		case aiv::verb::fetch_or:
			return d.template fetch_or_nbi<T>(op.pe, dst, operand, result);
		default:
			return d.template fetch_xor_nbi<T>(op.pe, dst, operand, result);
		}
	}

	static enum nda_status add_f32(Device &d, const Op &op, uint64_t dst)
	{
		uint32_t bits = static_cast<uint32_t>(op.operand);
		float value;

		memcpy(&value, &bits, sizeof(value));
		return d.add_f32_nbi(op.pe, dst, value);
	}

	template <class T>
	static enum nda_status change(Device &d, const Op &op, uint64_t dst, T operand)
	{
		switch (op.verb) {
		case aiv::verb::fetch_add:
			return d.template add_nbi<T>(op.pe, dst, operand);
		case aiv::verb::fetch_and:
			return d.template and_nbi<T>(op.pe, dst, operand);
		case aiv::verb::fetch_or:
			return d.template or_nbi<T>(op.pe, dst, operand);
		default:
			return d.template xor_nbi<T>(op.pe, dst, operand);
		}
	}

	/* Waits for everything of this core, and says what is done. */
	void finish(size_t e, const Epoch &epoch)
	{
		const Shape &s = run_.program().shape;

		if (run_.failed())
			return;
		for (uint32_t q = 0; q < s.n_queues; q++)
			for (uint32_t pe = 0; pe < s.n_pes; pe++) {
				enum nda_status status = devices_[q].quiet(pe);

				if (!s.fails || (status != NDA_OK && !injected(status)))
					expect(status, "quiet", e);
				if (s.fails)
					tell_completed(e, epoch, q, pe, status);
			}
		for (size_t i = 0; i < epoch.ops.size(); i++)
			if (epoch.ops[i].core == me_ && epoch.ops[i].what == act::atomic &&
				!epoch.ops[i].waited &&
				(!s.fails || run_.outcome(e, i).completed))
				read_result(e, epoch, i);
	}

	void read_result(size_t e, const Epoch &epoch, size_t i)
	{
		const Op &op = epoch.ops[i];
		Device &d = devices_[op.queue];
		uint64_t result = run_.area(pe_, false) + op.parts[0].local;
		bool locally = !Engine::reaches_itself && op.pe == pe_;
		bool four = epoch.cells[op.cell].size == 4;

		if (locally)
			run_.outcome(e, i).fetched = four
				? core_.template load<uint32_t>(result)
				: core_.template load<uint64_t>(result);
		else
			run_.outcome(e, i).fetched = four
				? d.template read_result<uint32_t>(result)
				: d.template read_result<uint64_t>(result);
	}

	/* Before the first error everything is done, behind it nothing has to be. */
	void tell_completed(size_t e, const Epoch &epoch, uint32_t q, uint32_t pe,
		enum nda_status status)
	{
		uint16_t failed =
			core_.template load<uint16_t>(devices_[q].queue_address(pe) +
				offsetof(nda_queue, state.error.wqe_index));

		for (size_t i = 0; i < epoch.ops.size(); i++) {
			const Op &op = epoch.ops[i];
			Run::Outcome &o = run_.outcome(e, i);

			if (op.core != me_ || op.queue != q || op.pe != pe || !o.posted)
				continue;
			if (o.completed || is_waited_atomic(op))
				continue;
			o.completed = status == NDA_OK ||
				static_cast<int16_t>(failed - o.end) >= 0;
		}
	}

	void leave_epoch(size_t e)
	{
		const Shape &s = run_.program().shape;
		auto nothing = [] {};

		gates_.of_pe[pe_].pass(core_, s.n_cores, nothing);
		if (index_ == 0 && !run_.failed())
			expect(devices_[0].barrier_all(), "barrier", e);
		gates_.of_pe[pe_].pass(core_, s.n_cores, nothing);
	}

	Run &run_;
	Gates &gates_;
	Core core_;
	uint32_t pe_, me_, index_;
	std::vector<Device> devices_;
};

} // namespace nda::test

#endif
