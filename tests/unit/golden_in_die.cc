/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The recorded cases of Ascend 910's RoCE NIC: those of its device data plane, and those of
 * the Linux driver of its family, which has more operations. */
#include <string.h>

#include <stdexcept>

#include <nda/aiv/in_die_queue.h>
#include <nda/hw/in_die.h>
#include <tests/unit/golden_common.h>

namespace nda::golden {

namespace {

namespace format = hw::in_die;
namespace engine = aiv::in_die;
using test::Store;

void put_cqe(const format::cqe &cqe, uint8_t *slot)
{
	uint64_t words[format::cqe_words];

	format::encode(cqe, words);
	memcpy(slot, words, sizeof(words));
}

/* ---- The device data plane ---- */

class InDieRun : public DeviceRun<engine::Engine> {
public:
	InDieRun(const Json &test, Variant variant)
		: DeviceRun(test, variant, roce_format())
	{}

private:
	static RoceFormat roce_format()
	{
		RoceFormat f = {};

		f.table_format = NDA_FORMAT_IN_DIE;
		f.wqe_bytes = format::wqe_bytes;
		f.default_cqe_stride = format::cqe_bytes;
		f.recorded_timeout = 0x10000;
		f.has_validity = true;
		return f;
	}

	void fill_format(nda_queue *queue) override
	{
		format::cq_doorbell_params params;

		/* As recorded; see "disputed" in the file. */
		params.notify = 1;
		params.cmd_sn = 0;
		queue->sq_record = 0;
		queue->doorbell_template = format::doorbell_template(
			queue->qpn, static_cast<uint8_t>(number(in_.at("sq").at("sl"))));
		format::key_words(queue->rkey, queue->lkey, queue->key_words);
		if (number(in_.at("cq").at("db_mode")) == 0) {
			queue->in_die.cq_doorbell = words_.addr() + 192;
			queue->in_die.cq_template =
				format::cq_doorbell_template(queue->cqn, params);
			queue->cq_record = 0;
		}
	}

	nda_queue_state derive_state(
		const nda_queue &queue, uint32_t head, uint32_t tail, uint32_t ci) override
	{
		return engine::derive_state(queue, head, tail, ci);
	}

	void fill_stale_cqe(uint32_t index, uint8_t *slot) override
	{
		format::cqe stale = {};

		stale.opcode = format::op_write;
		stale.owner = format::owner_bit(index, ring_) ? 0 : 1;
		stale.wqe_index = static_cast<uint16_t>(index - ring_);
		put_cqe(stale, slot);
	}

	std::map<std::string, uint64_t> doorbells() override
	{
		return {{"sq_db", queue_->sq_doorbell}, {"sq_db_sw", 0},
			{"cq_db",
				queue_->in_die.cq_doorbell != 0 ? queue_->in_die.cq_doorbell
								: queue_->cq_record},
			{"cq_db_sw", 0}};
	}

	enum nda_status status_of(uint32_t raw) const override
	{
		return format::status_of(static_cast<uint8_t>(raw));
	}
};

/* ---- The Linux driver ---- */

/* A case of a flat file: by the encoder alone, and by the engine where it has the
 * operation.
 */
class VerbsRun : private Differences {
public:
	VerbsRun(const Json &test, Variant variant)
		: in_(test.at("in")), out_(test.at("out")), variant_(variant),
		  depth_(number32(in_.at("depth")))
	{

		queue_.sq_depth = queue_.cq_depth = depth_;
		queue_.sq_doorbell = words_.addr() + 128;
		queue_.signal_every = 1;
		queue_.valid = 1;
		recorder_.add_memory(reinterpret_cast<uint64_t>(&queue_), sizeof(queue_));
		recorder_.add_memory(words_.addr(), 256);
	}

	std::vector<std::string> run(const std::string &group)
	{
		if (group == "poll") {
			poll();
		} else {
			encode();
			if (!flag("solicited") &&
				in_.at("op").get<std::string>().compare(0, 4, "send") != 0)
				post();
		}
		for (const std::string &violation : recorder_.violations)
			failures_.push_back(violation);
		return failures_;
	}

private:
	bool flag(const char *name) const { return number(in_.at(name)) != 0; }

	uint8_t opcode() const
	{
		static const std::map<std::string, uint8_t> opcodes = {
			{"write", format::op_write},
			{"write_imm", format::op_write_immediate},
			{"send", format::op_send}, {"send_imm", format::op_send_immediate},
			{"read", format::op_read}, {"cas8", format::op_compare_swap},
			{"fa8", format::op_fetch_add}};

		return opcodes.at(in_.at("op").get<std::string>());
	}

	Bytes payload() const
	{
		return in_.at("inline").is_null()
			? Bytes()
			: bytes_of(in_.at("inline").get<std::string>());
	}

	void expect_wqe(const char *who, const void *found)
	{
		Json entry = {{"hex", out_.at("hex")}, {"mask", out_.at("mask")}};
		Bytes mask = bytes_of(out_.at("mask").get<std::string>());
		const uint8_t *bytes = static_cast<const uint8_t *>(found);

		expect_masked(
			std::string("WQE of ") + who, entry, bytes, format::wqe_bytes);
		/* What the driver leaves to chance is 0. */
		for (size_t i = 0; i < mask.size(); i++)
			if ((bytes[i] & ~mask[i]) != 0)
				differs("byte %zu of %s is 0x%02x", i, who, bytes[i]);
	}

	void expect_doorbell(const char *what, uint64_t value)
	{
		if (out_.at("sq_db").get<std::string>() != hex_of(&value, sizeof(value)))
			differs("%s is %s, recorded %s", what,
				hex_of(&value, sizeof(value)).c_str(),
				out_.at("sq_db").get<std::string>().c_str());
	}

	/* By nda/hw alone. */
	void encode()
	{
		uint32_t head = number32(in_.at("head"));
		Bytes bytes = payload();
		format::request r = {};
		uint64_t words[format::wqe_words];

		r.opcode = opcode();
		r.signalled = flag("signaled");
		r.fence = flag("fence");
		r.solicited = flag("solicited");
		r.inline_data = !in_.at("inline").is_null();
		r.length = number32(in_.at("len"));
		r.immediate = format::has_immediate(r.opcode) ? number32(in_.at("imm")) : 0;
		r.rkey = number32(in_.at("rkey"));
		r.remote_va = number(in_.at("remote_va"));
		if (r.inline_data) {
			if (!bytes.empty())
				memcpy(r.data, bytes.data(), bytes.size());
		} else {
			r.sges = 1;
			r.data[0] = format::sge_word(r.length, number32(in_.at("lkey")));
			r.data[1] = number(in_.at("local_va"));
		}
		if (format::is_atomic(r.opcode)) {
			r.data[2] = number(in_.at("swap_or_add"));
			r.data[3] = number(in_.at("compare"));
		}
		format::encode(format::request_wqe(r, head, depth_), words);
		expect_wqe("the encoder", words);
		if (format::check(words, head, depth_) != format::wqe_fault::none)
			differs("the reader objects to the WQE");
		expect_number("slot", out_.at("slot"), head & (depth_ - 1));
		expect_doorbell("the encoder's doorbell",
			format::doorbell_value(
				format::doorbell_template(number32(in_.at("qpn")),
					static_cast<uint8_t>(number(in_.at("sl")))),
				head + 1));
	}

	aiv::operation operation(Memory *local) const
	{
		static const std::map<uint8_t, aiv::verb> verbs = {
			{format::op_write, aiv::verb::write},
			{format::op_write_immediate, aiv::verb::write_immediate},
			{format::op_read, aiv::verb::read},
			{format::op_compare_swap, aiv::verb::compare_swap},
			{format::op_fetch_add, aiv::verb::fetch_add}};
		Bytes bytes = payload();
		aiv::operation op = {};

		op.op = verbs.at(opcode());
		op.size = 8;
		op.fence = flag("fence");
		op.inline_data = !in_.at("inline").is_null();
		op.rkey = number32(in_.at("rkey"));
		op.lkey = number32(in_.at("lkey"));
		op.remote_va = number(in_.at("remote_va"));
		op.local_va = op.inline_data ? local->addr() : number(in_.at("local_va"));
		op.length = number(in_.at("len"));
		op.immediate = number32(in_.at("imm"));
		op.operand = number(in_.at("swap_or_add"));
		op.compare = number(in_.at("compare"));
		if (!bytes.empty())
			memcpy(local->data(), bytes.data(), bytes.size());
		return op;
	}

	/* Posts it the usual way where that may do it, else completely. */
	bool post_operation(const Core &core, const aiv::operation &op)
	{
		uint64_t q = reinterpret_cast<uint64_t>(&queue_);
		bool usual = !variant_.slow && !op.fence && !op.inline_data;

		if (usual && op.op == aiv::verb::write &&
			engine::Engine::post_to_region<aiv::verb::write>(core, q,
				op.remote_va, op.rkey, op.local_va, op.lkey, op.length))
			return true;
		if (usual && op.op == aiv::verb::read &&
			engine::Engine::post_to_region<aiv::verb::read>(core, q,
				op.remote_va, op.rkey, op.local_va, op.lkey, op.length))
			return true;
		return engine::Queue<Core>(core, q, {100, 0}).post(op, false) == NDA_OK;
	}

	void post()
	{
		uint32_t head = number32(in_.at("head"));
		bool has_record = flag("sq_record_db");
		Memory ring(size_t{depth_} * format::wqe_bytes, variant_.fill);
		Memory local(format::max_inline);
		Core core(&recorder_);

		recorder_.add_nic_memory(ring.addr(), uint64_t{depth_} * format::wqe_bytes,
			test::Recorder::requests);
		if (has_record)
			recorder_.add_nic_memory(words_.addr(), 64, test::Recorder::record);
		recorder_.add_memory(local.addr(), format::max_inline);
		queue_.sq_base = ring.addr();
		queue_.sq_record = has_record ? words_.addr() : 0;
		queue_.signal_every = flag("signaled") ? 1 : depth_ / 2;
		queue_.doorbell_template =
			format::doorbell_template(number32(in_.at("qpn")),
				static_cast<uint8_t>(number(in_.at("sl"))));
		queue_.state = engine::derive_state(queue_, head, head, head);

		if (!post_operation(core, operation(&local)))
			differs("the post was refused");
		recorder_.end();
		expect_wqe("the engine",
			ring.data() +
				size_t{number32(out_.at("slot")) & (depth_ - 1)} *
					format::wqe_bytes);
		expect_number("head", out_.at("head"), queue_.state.head);
		compare_rings(has_record);
		compare_order(
			ring.addr() + uint64_t{head & (depth_ - 1)} * format::wqe_bytes);
	}

	/* All of the WQE, the word with its validity last, then the record, then the
	 * doorbell. */
	void compare_order(uint64_t slot)
	{
		std::set<uint64_t> written;
		std::string order;

		for (const Store &store : recorder_.stores) {
			if (store.addr >= slot && store.addr < slot + format::wqe_bytes) {
				for (uint32_t i = 0; i < store.bytes; i++)
					written.insert(store.addr + i);
				if (store.addr == slot)
					order += written.size() == format::wqe_bytes &&
							store.kind == Store::release
						? "valid "
						: "early ";
			} else if (store.addr == queue_.sq_record) {
				order += "record ";
			} else if (store.addr == queue_.sq_doorbell) {
				order += "doorbell ";
			}
		}
		std::string expected = queue_.sq_record != 0 ? "valid record doorbell "
							     : "valid doorbell ";
		if (order != expected)
			differs("the order is %s", order.c_str());
	}

	/* One record, if there is one, then one doorbell. */
	void compare_rings(bool has_record)
	{
		std::vector<std::string> records, doorbells;

		for (const Store &store : recorder_.stores) {
			if (store.addr == words_.addr())
				records.push_back(hex_of(&store.value, store.bytes));
			if (store.addr == queue_.sq_doorbell && store.kind == Store::device)
				doorbells.push_back(hex_of(&store.value, store.bytes));
		}
		expect_values("sq_db", Json::array({out_.at("sq_db")}), doorbells);
		expect_values("sq_db_record",
			has_record ? Json::array({out_.at("sq_db_record")}) : Json::array(),
			records);
	}

	void poll()
	{
		uint32_t ci = number32(in_.at("ci"));
		uint32_t completions = number32(in_.at("completions"));
		uint32_t stride = number32(in_.at("cqe_size"));
		bool by_register = in_.at("cq_db").get<std::string>() == "register";
		Memory cq(size_t{depth_} * stride);
		uint64_t q = reinterpret_cast<uint64_t>(&queue_);
		Core core(&recorder_);

		for (uint32_t i = 0; i < depth_; i++) {
			uint32_t index = ci + i;
			format::cqe cqe = {};

			cqe.opcode = format::op_write;
			cqe.wqe_index = static_cast<uint16_t>(index);
			cqe.owner = format::owner_bit(index, depth_) == (i < completions);
			put_cqe(cqe, cq.data() + size_t{index & (depth_ - 1)} * stride);
		}
		recorder_.add_memory(cq.addr(), uint64_t{depth_} * stride);
		queue_.cq_base = cq.addr();
		queue_.cqe_stride = stride;
		queue_.cqn = number32(in_.at("cqn"));
		queue_.cq_record = words_.addr() + 64;
		if (by_register) {
			queue_.in_die.cq_doorbell = words_.addr() + 192;
			queue_.in_die.cq_template =
				format::cq_doorbell_template(queue_.cqn, {});
		}
		/* One more is outstanding, which is not to be taken for done. */
		queue_.state = engine::derive_state(queue_, ci + completions + 1, ci, ci);

		enum nda_status status = engine::Queue<Core>(core, q, {100, 0})
						 .poll_cq(ci + completions + 1);
		if (status != NDA_TIMEOUT)
			differs("status %d after the last completion", status);
		recorder_.end();
		compare_poll(ci, by_register);
	}

	void compare_poll(uint32_t ci, bool by_register)
	{
		std::vector<std::string> values;

		for (const Store &store : recorder_.stores)
			if (store.addr ==
				(by_register ? queue_.in_die.cq_doorbell
					     : queue_.cq_record))
				values.push_back(hex_of(&store.value, store.bytes));
		expect_values("cq_db", Json::array({out_.at("cq_db")}), values);
		expect_number("consumer index", out_.at("ci"), queue_.state.cq_ci);
		expect_number("reaped", out_.at("reaped"), queue_.state.cq_ci - ci);
		expect_number("tail", out_.at("ci"), queue_.state.tail);
	}

	const Json &in_;
	const Json &out_;
	Variant variant_;
	uint32_t depth_;
	Memory words_{256}; /* SQ record, CQ record and both doorbells, a line each */
	alignas(64) nda_queue queue_ = {};
	test::Recorder recorder_;
};

std::vector<std::string> run(const Json &test, Variant variant)
{
	return InDieRun(test, variant).run();
}

std::vector<std::string> run_verbs(const Json &test, Variant variant)
{
	return VerbsRun(test, variant).run(test.at("group").get<std::string>());
}

} // namespace

const Runner in_die_runner = {"in_die",
	{"post", "post_limit", "post_qp", "post_depth", "multi", "poll", "poll_error",
		"poll_timeout", "quiet", "full"},
	run};

const Runner in_die_verbs_runner = {"in_die_verbs", {"post", "poll"}, run_verbs};

} // namespace nda::golden
