/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <tests/unit/golden_common.h>

#include <stdio.h>
#include <string.h>

#include <stdexcept>

namespace nda::golden {

using test::Store;

uint64_t number(const Json &value)
{
	if (value.is_string())
		return std::stoull(value.get<std::string>(), nullptr, 0);
	if (value.is_number_unsigned())
		return value.get<uint64_t>();
	return static_cast<uint64_t>(value.get<int64_t>());
}

uint32_t number32(const Json &value)
{
	return static_cast<uint32_t>(number(value));
}

Bytes bytes_of(const std::string &hex)
{
	Bytes bytes;

	if (hex.size() % 2 != 0)
		throw std::runtime_error("odd number of hexadecimal digits");
	for (size_t i = 0; i < hex.size(); i += 2)
		bytes.push_back(
			static_cast<uint8_t>(std::stoul(hex.substr(i, 2), nullptr, 16)));
	return bytes;
}

std::string hex_of(const void *data, size_t size)
{
	std::string hex;
	char digits[3];

	for (size_t i = 0; i < size; i++) {
		snprintf(digits, sizeof(digits), "%02x",
			static_cast<const uint8_t *>(data)[i]);
		hex += digits;
	}
	return hex;
}

void Differences::differs(const char *text, ...)
{
	char line[1024];
	va_list args;

	va_start(args, text);
	vsnprintf(line, sizeof(line), text, args);
	va_end(args);
	failures_.push_back(line);
}

void Differences::expect_number(const char *what, const Json &expected, uint64_t found)
{
	if (number(expected) != found)
		differs("%s is 0x%llx, recorded 0x%llx", what,
			static_cast<unsigned long long>(found),
			static_cast<unsigned long long>(number(expected)));
}

void Differences::expect_values(
	const char *what, const Json &expected, const std::vector<std::string> &found)
{
	if (expected.get<std::vector<std::string>>() != found)
		differs("%s: written %s, recorded %s", what, Json(found).dump().c_str(),
			expected.dump().c_str());
}

void Differences::expect_masked(
	const std::string &what, const Json &entry, const uint8_t *found, size_t bytes)
{
	Bytes expected = bytes_of(entry.at("hex").get<std::string>());
	Bytes mask = bytes_of(entry.at("mask").get<std::string>());
	bool same = expected.size() == bytes && mask.size() == bytes;

	for (size_t i = 0; same && i < bytes; i++)
		same = ((found[i] ^ expected[i]) & mask[i]) == 0;
	if (!same)
		differs("%s is %s, recorded %s", what.c_str(), hex_of(found, bytes).c_str(),
			entry.at("hex").get<std::string>().c_str());
}

RoceRun::RoceRun(const Json &test, Variant variant, const RoceFormat &format)
	: in_(test.at("in")), out_(test.at("out")), test_(test), variant_(variant),
	  format_(format), n_pes_(number32(in_.at("npes"))),
	  n_queues_(number32(in_.at("qp_num"))),
	  sq_depth_(number32(in_.at("sq").at("depth"))),
	  /* The 1825's files tell the entries of the ring from the published depth. */
	  ring_(number32(
		  in_.at("cq").contains("ring") ? in_["cq"]["ring"] : in_["cq"]["depth"])),
	  stride_(number32(in_.at("cq").at("cqe_size"))),
	  table_(sizeof(nda_table) + size_t{n_pes_} * n_queues_ * NDA_QUEUE_STRIDE),
	  sq_(size_t{sq_depth_} * format.wqe_bytes, variant.fill),
	  cq_(size_t{ring_} * (stride_ ? stride_ : format.default_cqe_stride))
{
	if (stride_ == 0)
		stride_ = format.default_cqe_stride;
}

std::vector<std::string> RoceRun::run()
{
	fill_queue();
	fill_completions();
	recorder_.add_memory(table_.addr(), sizeof(nda_table));
	recorder_.add_memory(queue_address(), sizeof(nda_queue));
	recorder_.add_nic_memory(sq_.addr(), uint64_t{sq_depth_} * format_.wqe_bytes,
		test::Recorder::requests);
	if (format_.has_record)
		recorder_.add_nic_memory(words_.addr(), 64, test::Recorder::record);
	recorder_.add_memory(cq_.addr(), uint64_t{ring_} * stride_);
	recorder_.add_memory(words_.addr(), 256);
	recorder_.before_look = [this](uint64_t addr) { before_look(addr); };
	recorder_.starts_stale = true;

	enum nda_status status = open(table_.addr(), number32(in_.at("qp_idx")));
#ifdef NDA_GOLDEN_ASCEND
	test::ascend.last_word = format_.valid_offset;
#endif
	if (status != NDA_OK)
		differs("the table does not open: status %d", status);
	else
		drive();
	recorder_.end();

	for (const std::string &violation : recorder_.violations)
		failures_.push_back(violation);
	compare_order();
	for (const Json &field : test_.at("check"))
		compare_field(field.get<std::string>());
	return failures_;
}

/* The table of the case's PE, with one core per recorded queue index. Rows of other queues
 * are out of bounds for the core. */
void RoceRun::fill_queue()
{
	nda_table *table = reinterpret_cast<nda_table *>(table_.data());
	const Json &sq = in_.at("sq");
	uint32_t pe = number32(in_.at("pe"));
	uint32_t row = number32(in_.at("qp_idx")) * n_pes_ + pe;

	table->magic = NDA_TABLE_MAGIC;
	table->version = NDA_TABLE_VERSION;
	table->size_bytes =
		sizeof(nda_table) + uint64_t{n_pes_} * n_queues_ * NDA_QUEUE_STRIDE;
	table->my_pe = number32(in_.at("my_pe"));
	table->n_pes = n_pes_;
	table->n_cores = n_queues_;
	table->queues_per_core = 1;
	table->format = format_.table_format;
	table->heap_base = number(in_.at("heap_base"));
	table->queues_offset = sizeof(nda_table);
	table->device_timeout_us = 100;

	if (pe >= n_pes_ || row >= n_pes_ * n_queues_)
		throw std::runtime_error("no such queue");
	queue_ = reinterpret_cast<nda_queue *>(table_.data() + sizeof(nda_table)) + row;
	queue_->qpn = number32(sq.at("wqn"));
	queue_->cqn = number32(in_.at("cq").at("cqn"));
	queue_->rkey = number32(in_.at("rkey"));
	queue_->lkey = number32(in_.at("lkey"));
	queue_->sq_base = sq_.addr();
	queue_->sq_depth = sq_depth_;
	queue_->sq_record = words_.addr();
	queue_->cq_record = words_.addr() + 64;
	queue_->sq_doorbell = words_.addr() + 128;
	queue_->cq_base = cq_.addr();
	queue_->cq_depth = ring_;
	queue_->cqe_stride = stride_;
	queue_->signal_every = 1;
	queue_->valid = 1;
	fill_format(queue_);
	queue_->state = derive_state(*queue_, number32(in_.at("head")),
		number32(in_.at("sq_tail")), number32(in_.at("cq_tail")));
}

/* Each slot looks like a success of the wrong lap until its recorded CQE arrives. */
void RoceRun::fill_completions()
{
	uint32_t tail = number32(in_.at("cq_tail"));

	for (uint32_t i = 0; i < ring_; i++)
		fill_stale_cqe(
			tail + i, cq_.data() + size_t{(tail + i) & (ring_ - 1)} * stride_);
	for (const Json &cqe : in_.at("cqes")) {
		Pending pending = {bytes_of(cqe.at("hex").get<std::string>()),
			number(cqe.at("ready_after"))};
		uint32_t slot = number32(cqe.at("slot"));

		if (slot >= ring_ || pending.bytes.size() > stride_)
			throw std::runtime_error("a completion outside its ring");
		pending_[slot] = pending;
	}
}

void RoceRun::before_look(uint64_t addr)
{
	uint64_t offset = addr - cq_.addr();

	if (addr < cq_.addr() || offset >= uint64_t{ring_} * stride_)
		return;
	auto found = pending_.find(static_cast<uint32_t>(offset / stride_));
	if (found == pending_.end() || found->second.looks-- > 0)
		return;
	memcpy(cq_.data() + offset / stride_ * stride_, found->second.bytes.data(),
		found->second.bytes.size());
	pending_.erase(found);
}

enum nda_status RoceRun::post_other(const Json &post)
{
	throw std::runtime_error("unknown operation " + post.at("op").get<std::string>());
}

void RoceRun::post(const Json &post)
{
	const std::string op = post.at("op").get<std::string>();
	uint32_t pe = number32(in_.at("pe"));
	uint64_t symmetric = number(post.at("sym_addr"));
	enum nda_status status;

	queue_->remote_delta = number(post.at("peer_base")) - number(in_.at("heap_base"));
	if (variant_.slow)
		queue_->state.limit = queue_->state.head;
	recorder_.changed(queue_address(), sizeof(nda_queue));
	if (op == "put")
		status = put(
			pe, symmetric, number(post.at("local_va")), number(post.at("len")));
	else if (op == "get")
		status = get(
			pe, number(post.at("local_va")), symmetric, number(post.at("len")));
	else
		status = post_other(post);
	if (status != NDA_OK)
		posted_ = false;
}

void RoceRun::drive()
{
	for (const Json &entry : in_.value("posts", Json::array()))
		post(entry);
	if (in_.contains("poll_target"))
		poll_status_ = poll(number32(in_.at("poll_target")));
	if (in_.value("quiet", false))
		poll_status_ = quiet(number32(in_.at("pe")));
}

void RoceRun::compare_wqes()
{
	uint32_t posts = queue_->state.head - number32(in_.at("head"));

	if (!posted_)
		differs("a post was refused");
	if (posts != out_.at("wqes").size())
		differs("%u WQEs posted, recorded %zu", posts, out_.at("wqes").size());
	for (const Json &wqe : out_.at("wqes")) {
		uint32_t slot = number32(wqe.at("slot"));

		if (slot >= sq_depth_)
			throw std::runtime_error("a WQE outside its ring");
		const uint8_t *at = sq_.data() + size_t{slot} * format_.wqe_bytes;
		Bytes found(at, at + format_.wqe_bytes);
		make_recorded(found.data());
		expect_masked("WQE in slot " + std::to_string(slot), wqe, found.data(),
			format_.wqe_bytes);
	}
}

void RoceRun::compare_next_slot()
{
	const Json &next = out_.at("next_slot");

	if (next.is_null())
		return;
	uint32_t slot = number32(next.at("slot"));
	if (slot >= sq_depth_)
		throw std::runtime_error("a slot outside its ring");
	expect_masked("slot " + std::to_string(slot) + " after the WQEs", next,
		sq_.data() + size_t{slot} * format_.wqe_bytes, format_.wqe_bytes);
}

/* Each WQE's marker, bytes, the word with its validity, then the record, then the doorbell.
 */
void RoceRun::compare_order()
{
	uint32_t head = number32(in_.at("head"));
	uint64_t sq_bytes = uint64_t{sq_depth_} * format_.wqe_bytes;
	std::set<uint64_t> written; /* bytes of the WQE at head */
	bool marked = !format_.has_marker, valid = false, recorded = false;
	auto complete = [&] { return marked && written.size() == format_.wqe_bytes; };

	for (const Store &store : recorder_.stores) {
		uint64_t slot =
			sq_.addr() + uint64_t{head & (sq_depth_ - 1)} * format_.wqe_bytes;
		uint64_t next = sq_.addr() +
			uint64_t{(head + 1) & (sq_depth_ - 1)} * format_.wqe_bytes;

		if (format_.has_marker && store.addr == next && store.bytes == 1) {
			marked = true;
		} else if (store.addr >= slot && store.addr < slot + format_.wqe_bytes) {
			for (uint32_t i = 0; i < store.bytes; i++)
				written.insert(store.addr + i);
			if (!format_.has_validity ||
				store.addr != slot + format_.valid_offset)
				continue;
			valid = complete() && store.kind == Store::release;
			if (!valid)
				differs("the WQE of index %u is valid before it is "
					"complete",
					head);
		} else if (format_.has_record && store.addr == queue_->sq_record) {
			recorded = (format_.has_validity ? valid : complete()) &&
				store.kind == Store::release;
			if (!recorded)
				differs("the record for index %u precedes its WQE", head);
		} else if (store.addr == queue_->sq_doorbell) {
			bool ready = format_.has_record ? recorded
				: format_.has_validity  ? valid
							: complete();

			if (!ready || store.kind != Store::device)
				differs("the doorbell for index %u precedes its %s", head,
					format_.has_record ? "record" : "WQE");
			marked = !format_.has_marker;
			valid = recorded = false;
			written.clear();
			head++;
		} else if (store.addr >= sq_.addr() && store.addr < sq_.addr() + sq_bytes) {
			differs("a store into a slot that is not being posted, index %u",
				head);
		}
	}
}

void RoceRun::compare_ret()
{
	const nda_queue_error &error = queue_->state.error;
	uint64_t raw = 0;

	if (poll_status_ == NDA_TIMEOUT)
		raw = format_.recorded_timeout;
	else if (poll_status_ != NDA_OK)
		raw = error.raw_status;
	expect_number("result", out_.at("ret"), raw);
	if (poll_status_ != NDA_OK && poll_status_ != NDA_TIMEOUT &&
		(error.status != poll_status_ ||
			poll_status_ != status_of(error.raw_status)))
		differs("status %d is not that of 0x%x", poll_status_, error.raw_status);
}

void RoceRun::make_recorded(uint8_t *) {}

void RoceRun::compare_other(const std::string &field)
{
	throw std::runtime_error("unknown field " + field + " to check");
}

void RoceRun::compare_field(const std::string &field)
{
	std::map<std::string, uint64_t> addresses = doorbells();
	auto doorbell = addresses.find(field);

	if (doorbell != addresses.end()) {
		std::vector<std::string> values;

		for (const Store &store : recorder_.stores)
			if (doorbell->second != 0 && store.addr == doorbell->second)
				values.push_back(hex_of(&store.value, store.bytes));
		expect_values(field.c_str(), out_.at(field), values);
	} else if (field == "wqes") {
		compare_wqes();
	} else if (field == "next_slot") {
		compare_next_slot();
	} else if (field == "head") {
		expect_number("head", out_.at(field), queue_->state.head);
	} else if (field == "sq_tail") {
		expect_number("SQ tail", out_.at(field), queue_->state.tail);
	} else if (field == "cq_tail") {
		expect_number("CQ tail", out_.at(field), queue_->state.cq_ci);
	} else if (field == "ret" &&
		(in_.contains("poll_target") || in_.value("quiet", false))) {
		compare_ret();
	} else {
		compare_other(field);
	}
}

} // namespace nda::golden
