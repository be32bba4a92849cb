/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The recorded cases of the XSCALE NIC. Two things in them are disputed and are set as they
 * were recorded, by parameters of the queue: the CQ doorbell's state (recorded FIRED), and
 * that fetch_add and compare_swap of 8 bytes use the plain forms, with operands big-endian.
 * An atomic's result goes to memory of the test instead of the recorded scratch.
 */
#include <string.h>

#include <stdexcept>

#include <nda/aiv/xscale_queue.h>
#include <nda/hw/xscale.h>
#include <tests/unit/golden_common.h>

namespace nda::golden {

namespace {

namespace format = hw::xscale;

/* Where an atomic's WQE has the address of its result. */
constexpr uint32_t result_at = 40;

class XscaleRun : public DeviceRun<aiv::xscale::Engine> {
public:
	XscaleRun(const Json &test, Variant variant)
		: DeviceRun(test, variant, roce_format())
	{}

private:
	static RoceFormat roce_format()
	{
		RoceFormat f = {};

		f.table_format = NDA_FORMAT_XSCALE;
		f.wqe_bytes = format::wqe_bytes;
		f.default_cqe_stride = format::default_cqe_stride;
		f.recorded_timeout = 0x10000;
		f.has_validity = true;
		f.valid_offset = 8;
		return f;
	}

	void fill_format(nda_queue *queue) override
	{
		queue->doorbell_template = format::doorbell_template(queue->qpn);
		queue->xscale.cq_doorbell = words_.addr() + 192;
		queue->xscale.cq_doorbell_template =
			format::cq_doorbell_template(queue->cqn, format::cq_fired);
		queue->xscale.fence_mode = 1;
		queue->scratch_local = scratch_.addr();
		set_lkey(number32(in_.at("lkey")));
		recorder_.add_nic_memory(
			scratch_.addr(), NDA_SCRATCH_BYTES, test::Recorder::requests);
	}

	void set_lkey(uint32_t lkey)
	{
		queue_->lkey = lkey;
		queue_->key_words[0] = format::segment_word(0, queue_->rkey);
		queue_->key_words[1] = format::segment_word(0, lkey);
	}

	nda_queue_state derive_state(
		const nda_queue &queue, uint32_t head, uint32_t tail, uint32_t ci) override
	{
		return aiv::xscale::derive_state(queue, head, tail, ci);
	}

	void fill_stale_cqe(uint32_t index, uint8_t *slot) override
	{
		format::cqe stale = {};
		uint64_t words[format::cqe_words];

		stale.owner = format::owner_bit(index, ring_) ? 0 : 1;
		stale.qp_id = static_cast<uint16_t>(queue_->qpn & 0x7fff);
		stale.wqe_id = format::wqe_id_of(index - ring_);
		format::encode(stale, words);
		memcpy(slot, words, sizeof(words));
	}

	std::map<std::string, uint64_t> doorbells() override
	{
		return {{"sq_db", queue_->sq_doorbell},
			{"cq_db", queue_->xscale.cq_doorbell}, {"sq_db_sw", 0},
			{"cq_db_sw", 0}};
	}

	enum nda_status status_of(uint32_t raw) const override
	{
		return format::status_of(static_cast<uint8_t>(raw));
	}

	enum nda_status post_other(const Json &post) override
	{
		if (post.at("op").get<std::string>().rfind("atomic_", 0) != 0)
			return DeviceRun::post_other(post);
		set_lkey(number32(in_.at("sq").at("amo_lkey")));
		atomic_ = true;
		return number32(post.at("elem_bytes")) == 4 ? post_atomic<uint32_t>(post)
							    : post_atomic<uint64_t>(post);
	}

	template <class T>
	enum nda_status post_atomic(const Json &post)
	{
		const std::string op = post.at("op").get<std::string>();
		uint32_t pe = number32(in_.at("pe"));
		uint64_t dst = number(post.at("sym_addr"));
		T value = static_cast<T>(number(post.at("value"))), former = 0;
		enum nda_status status;

		queue_->xscale.atomics = 0;
		/* What the NIC leaves; the write that follows is its DMA. */
		if (in_.contains("amo_mem")) {
			Bytes left = bytes_of(in_.at("amo_mem").get<std::string>());

			if (!left.empty())
				memcpy(scratch_.data() + NDA_SCRATCH_RESULT, left.data(),
					left.size());
		}
		if (op == "atomic_add" || op == "atomic_inc")
			return device_.add_nbi<T>(pe, dst, value);
		if (op == "atomic_set")
			return device_.set_nbi<T>(pe, dst, value);
		if (op == "atomic_and")
			return device_.and_nbi<T>(pe, dst, value);
		if (op == "atomic_or")
			return device_.or_nbi<T>(pe, dst, value);
		if (op == "atomic_xor")
			return device_.xor_nbi<T>(pe, dst, value);
		if (op == "atomic_fetch") {
			status = device_.fetch<T>(pe, dst, &former);
		} else if (op == "atomic_swap") {
			status = device_.swap<T>(pe, dst, value, &former);
		} else if (op == "atomic_fetch_and") {
			status = device_.fetch_and<T>(pe, dst, value, &former);
		} else if (op == "atomic_fetch_or") {
			status = device_.fetch_or<T>(pe, dst, value, &former);
		} else if (op == "atomic_fetch_xor") {
			status = device_.fetch_xor<T>(pe, dst, value, &former);
		} else {
			queue_->xscale.atomics = NDA_XSCALE_PLAIN_ATOMICS;
			if (op == "atomic_fetch_add" || op == "atomic_fetch_inc")
				status = device_.fetch_add<T>(pe, dst, value, &former);
			else if (op == "atomic_compare_swap")
				status = device_.compare_swap<T>(pe, dst,
					static_cast<T>(number(post.at("compare"))), value,
					&former);
			else
				throw std::runtime_error("unknown operation " + op);
		}
		former_ = former;
		return status;
	}

	void make_recorded(uint8_t *wqe) override
	{
		uint64_t own, recorded = number(in_.at("sq").at("amo_addr"));

		memcpy(&own, wqe + result_at, sizeof(own));
		if (own >= scratch_.addr() && own < scratch_.addr() + NDA_SCRATCH_BYTES)
			memcpy(wqe + result_at, &recorded, sizeof(recorded));
	}

	void compare_other(const std::string &field) override
	{
		if (field != "ret" || !atomic_)
			return DeviceRun::compare_other(field);
		expect_number("former value", out_.at("ret"), former_);
	}

	Memory scratch_{NDA_SCRATCH_BYTES};
	bool atomic_ = false;
	uint64_t former_ = 0;
};

std::vector<std::string> run(const Json &test, Variant variant)
{
	return XscaleRun(test, variant).run();
}

} // namespace

const Runner xscale_runner = {"xscale",
	{"post", "post_limit", "post_qp", "multi", "poll", "poll_error", "quiet", "full",
		"atomic_async", "atomic_fetch"},
	run};

} // namespace nda::golden
