/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The recorded cases of the 1825. */
#include <string.h>

#include <nda/aiv/hns1825_engine.h>
#include <nda/hw/hns1825.h>
#include <tests/unit/golden_common.h>

namespace nda::golden {

namespace {

namespace format = hw::hns1825;

class Hns1825Run : public DeviceRun<aiv::hns1825::Engine> {
public:
	Hns1825Run(const Json &test, Variant variant)
		: DeviceRun(test, variant, roce_format())
	{}

private:
	static RoceFormat roce_format()
	{
		RoceFormat f = {};

		f.table_format = NDA_FORMAT_HNS1825;
		f.wqe_bytes = format::wqe_bytes;
		f.default_cqe_stride = format::default_cqe_stride;
		f.recorded_timeout = 0x10000;
		f.has_validity = true;
		f.has_marker = true;
		f.has_record = true;
		return f;
	}

	void fill_format(nda_queue *queue) override
	{
		format::doorbell_params params;

		params.mtu_shift =
			static_cast<uint8_t>(number(in_.at("sq").at("mtu_shift")));
		queue->doorbell_template = format::doorbell_template(queue->qpn, params);
		format::key_words(queue->rkey, queue->lkey, queue->key_words);
	}

	nda_queue_state derive_state(
		const nda_queue &queue, uint32_t head, uint32_t tail, uint32_t ci) override
	{
		return aiv::hns1825::derive_state(queue, head, tail, ci);
	}

	void fill_stale_cqe(uint32_t index, uint8_t *slot) override
	{
		format::cqe stale = {};
		uint64_t words[format::cqe_words];

		stale.owner = format::owner_bit(index, ring_) ? 0 : 1;
		stale.op_type = format::op_write;
		stale.wqe_counter = static_cast<uint16_t>(index - ring_);
		format::encode(stale, words);
		memcpy(slot, words, sizeof(words));
	}

	/* The format has no consumer doorbell. */
	std::map<std::string, uint64_t> doorbells() override
	{
		return {{"sq_db", queue_->sq_doorbell}, {"sq_db_sw", queue_->sq_record},
			{"cq_db", 0}, {"cq_db_sw", queue_->cq_record}};
	}

	enum nda_status status_of(uint32_t raw) const override
	{
		return format::status_of(static_cast<uint8_t>(raw));
	}
};

std::vector<std::string> run(const Json &test, Variant variant)
{
	return Hns1825Run(test, variant).run();
}

} // namespace

const Runner hns1825_runner = {"hns_1825",
	{"post", "post_limit", "post_qp", "post_depth", "multi", "poll", "poll_error",
		"poll_timeout", "quiet", "full"},
	run};

} // namespace nda::golden
