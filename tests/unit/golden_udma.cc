/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The recorded cases of UDMA, direct and with relays. */
#include <string.h>

#include <stdexcept>

#include <nda/aiv/udma_queue.h>
#include <nda/aiv/udma_relay.h>
#include <nda/hw/udma.h>
#include <tests/unit/golden_common.h>

namespace nda::golden {

namespace {

namespace format = hw::udma;
using test::Store;

/* 16 bytes as they lie in memory, from a number of up to 128 bits as text. */
struct Wide {
	uint64_t half[2] = {0, 0};

	explicit Wide(const Json &value)
	{
		if (!value.is_string()) {
			half[0] = number(value);
			return;
		}
		std::string digits = value.get<std::string>().substr(2);
		if (digits.size() > 16)
			half[1] = std::stoull(
				digits.substr(0, digits.size() - 16), nullptr, 16);
		half[0] = std::stoull(
			digits.substr(digits.size() > 16 ? digits.size() - 16 : 0), nullptr,
			16);
	}
};

/* One run of one case. */
class UdmaRun : private Differences {
public:
	UdmaRun(const Json &test, Variant variant, bool relays);

	std::vector<std::string> run();

private:
	struct Pending {
		Bytes bytes;
		uint64_t looks; /* still to come in vain */
	};

	void fill_table();
	void fill_queue();
	void fill_completions();
	void before_look(uint64_t addr);
	enum nda_status open();
	void drive();
	enum nda_status post(const Json &post);
	template <class T>
	enum nda_status atomic(const std::string &op, const Json &post);
	enum nda_status atomic16(const Json &post);
	void compare_wqes();
	void compare_order();
	void compare_ret();
	void compare_doorbell(const std::string &field, uint64_t addr);
	void compare_field(const std::string &field);
	uint64_t queue_address() const { return reinterpret_cast<uint64_t>(queue_); }
	uint8_t *block(uint32_t index) { return sq_.data() + (index & (depth_ - 1)) * 64; }

	const Json &in_;
	const Json &out_;
	const Json &test_;
	Variant variant_;
	bool relays_;
	uint32_t n_pes_;
	uint32_t pe_;
	uint32_t depth_;
	uint32_t cq_depth_;
	Memory table_;
	Memory sq_;
	Memory cq_;
	Memory words_{128};
	Memory scratch_{NDA_SCRATCH_BYTES};
	/* Of the scratch, what the posted operation uses. */
	uint64_t amo_ = 0;
	Wide result_{Json(0)};
	nda_queue *queue_ = nullptr;
	std::map<uint32_t, Pending> pending_; /* by slot */
	test::Recorder recorder_;
	aiv::Device<Core, aiv::udma::Engine> device_;
	bool posted_ = true;  /* all that the case posts */
	bool refused_ = true; /* ... none */
	enum nda_status poll_status_ = NDA_OK;
};

UdmaRun::UdmaRun(const Json &test, Variant variant, bool relays)
	: in_(test.at("in")), out_(test.at("out")), test_(test), variant_(variant),
	  relays_(relays), n_pes_(number32(in_.at("npes"))), pe_(number32(in_.at("pe"))),
	  depth_(number32(in_.at("wq").at("depth_bb"))),
	  cq_depth_(number32(in_.at("cq").at("depth"))),
	  table_(sizeof(nda_table) +
		  size_t{n_pes_} * (relays ? n_pes_ : 1) * NDA_QUEUE_STRIDE),
	  sq_(size_t{depth_} * format::bb_bytes, variant.fill),
	  cq_(size_t{cq_depth_} * number32(in_.at("cq").at("cqe_size")))
{}

void UdmaRun::fill_table()
{
	nda_table *table = reinterpret_cast<nda_table *>(table_.data());
	uint32_t rows = n_pes_ * (relays_ ? n_pes_ : 1);
	/* Recorded rows are by PE, then by relay. */
	uint32_t slot = number32(in_.at("table_slot"));
	uint32_t row = relays_ ? slot % n_pes_ * n_pes_ + slot / n_pes_ : slot;

	table->magic = NDA_TABLE_MAGIC;
	table->version = NDA_TABLE_VERSION;
	table->size_bytes = sizeof(nda_table) + uint64_t{rows} * NDA_QUEUE_STRIDE;
	table->my_pe = number32(in_.at("my_pe"));
	table->n_pes = n_pes_;
	table->n_cores = 1;
	table->queues_per_core = rows / n_pes_;
	table->format = NDA_FORMAT_UDMA;
	table->heap_base = number(in_.at("heap_base"));
	table->queues_offset = sizeof(nda_table);
	table->device_timeout_us = 100;
	if (pe_ >= n_pes_ || row >= rows)
		throw std::runtime_error("no such queue");
	queue_ = reinterpret_cast<nda_queue *>(table_.data() + sizeof(nda_table)) + row;
}

void UdmaRun::fill_queue()
{
	const Json &wq = in_.at("wq");
	const Json &mem = in_.at("mem");
	Bytes eid = bytes_of(mem.at("eid").get<std::string>());
	uint64_t eid_words[2];

	if (eid.size() != sizeof(eid_words))
		throw std::runtime_error("no EID");
	memcpy(eid_words, eid.data(), sizeof(eid_words));
	aiv::udma::describe_peer(queue_, number32(mem.at("tpn")), eid_words,
		number32(mem.at("tid")), number32(mem.at("rmt_token_value")),
		number(mem.at("token_value_valid")) != 0, 0,
		static_cast<uint8_t>(number(mem.at("rmt_jetty_type"))),
		static_cast<uint8_t>(number(mem.at("target_hint"))));
	queue_->qpn = number32(wq.at("wqn"));
	queue_->cqn = number32(in_.at("cq").at("cqn"));
	queue_->sq_base = sq_.addr();
	queue_->sq_depth = depth_;
	queue_->sq_doorbell = words_.addr();
	queue_->cq_record = words_.addr() + 64;
	queue_->cq_base = cq_.addr();
	queue_->cq_depth = cq_depth_;
	queue_->cqe_stride = number32(in_.at("cq").at("cqe_size"));
	queue_->signal_every = 1;
	queue_->scratch_local = scratch_.addr();
	queue_->scratch_remote = 0x1000;
	queue_->valid = 1;
	/* As recorded, not as nda chooses: see the files' "disputed". */
	queue_->udma.ci_mask = format::ci_mask_24;
	queue_->udma.owner = 1;

	/* The recorded tail counts completions. */
	uint32_t head = number32(wq.at("head"));
	uint32_t to_come = number32(wq.at("wqe_cnt")) - number32(wq.at("tail"));
	uint32_t tail = to_come == 0 ? head : number32(wq.at("tail"));
	queue_->state = aiv::udma::derive_state(
		*queue_, head, tail, number32(in_.at("cq").at("tail")));
	queue_->state.udma.cqes = number32(wq.at("wqe_cnt")) - head;
	if (!aiv::udma::queue_usable(*queue_))
		throw std::runtime_error("a queue that cannot be used");
}

/* Each slot looks like a success of the wrong lap until its recorded completion arrives. */
void UdmaRun::fill_completions()
{
	uint32_t stride = queue_->cqe_stride;
	uint32_t tail = queue_->state.cq_ci;

	for (uint32_t i = 0; i < cq_depth_; i++) {
		format::cqe stale = {};
		uint64_t words[format::cqe_words];

		stale.is_jetty = 1;
		stale.owner = format::owner_bit(tail + i, cq_depth_) ? 0 : 1;
		stale.entry_index = static_cast<uint16_t>(tail + i - cq_depth_);
		format::encode(stale, words);
		memcpy(cq_.data() + size_t{(tail + i) & (cq_depth_ - 1)} * stride, words,
			sizeof(words));
	}
	for (const Json &cqe : in_.at("cqes")) {
		Pending pending = {bytes_of(cqe.at("hex").get<std::string>()),
			number(cqe.at("ready_after"))};
		uint32_t slot = number32(cqe.at("slot"));

		if (slot >= cq_depth_ || pending.bytes.size() > stride)
			throw std::runtime_error("a completion outside its ring");
		pending_[slot] = pending;
	}
}

/* Looks at the CQ bring completions; what an atomic leaves comes before them. */
void UdmaRun::before_look(uint64_t addr)
{
	uint64_t offset = addr - cq_.addr();
	uint32_t stride = queue_->cqe_stride;

	if (addr < cq_.addr() || offset >= uint64_t{cq_depth_} * stride)
		return;
	auto found = pending_.find(static_cast<uint32_t>(offset / stride));
	if (found == pending_.end() || found->second.looks-- > 0)
		return;
	if (in_.contains("amo_mem")) {
		Bytes amo = bytes_of(in_["amo_mem"].get<std::string>());
		if (!amo.empty())
			memcpy(scratch_.data() + NDA_SCRATCH_RESULT, amo.data(),
				amo.size());
	}
	memcpy(cq_.data() + offset / stride * stride, found->second.bytes.data(),
		found->second.bytes.size());
	pending_.erase(found);
}

enum nda_status UdmaRun::open()
{
	Core core(&recorder_);
	int64_t relay = in_.value("relay_pe", int64_t{-1});

	if (!relays_)
		return device_.open(core, table_.addr(), 0);
	if (relay < 0)
		return device_.open(core, table_.addr(), 0, number32(in_.at("my_pe")));
	return aiv::udma::open_relay(
		&device_, core, table_.addr(), 0, static_cast<uint32_t>(relay));
}

template <class T>
enum nda_status UdmaRun::atomic(const std::string &op, const Json &post)
{
	uint64_t dst = number(post.at("sym_addr"));
	T value = static_cast<T>(number(post.at("value")));
	T former = 0;
	enum nda_status status;

	amo_ = scratch_.addr() + NDA_SCRATCH_RESULT;
	if (op == "atomic_add" || op == "atomic_inc") {
		amo_ = scratch_.addr() + NDA_SCRATCH_DISCARD;
		return device_.add_nbi<T>(pe_, dst, value);
	}
	if (op == "atomic_fetch")
		status = device_.fetch<T>(pe_, dst, &former);
	else if (op == "atomic_fetch_add" || op == "atomic_fetch_inc")
		status = device_.fetch_add<T>(pe_, dst, value, &former);
	else if (op == "atomic_compare_swap")
		status = device_.compare_swap<T>(pe_, dst,
			static_cast<T>(number(post.at("compare"))), value, &former);
	else if (op == "atomic_set" || op == "atomic_swap")
		status = device_.swap<T>(pe_, dst, value, &former);
	else if (op == "atomic_and" || op == "atomic_fetch_and")
		status = device_.fetch_and<T>(pe_, dst, value, &former);
	else if (op == "atomic_or" || op == "atomic_fetch_or")
		status = device_.fetch_or<T>(pe_, dst, value, &former);
	else if (op == "atomic_xor" || op == "atomic_fetch_xor")
		status = device_.fetch_xor<T>(pe_, dst, value, &former);
	else
		throw std::runtime_error("unknown operation " + op);
	result_.half[0] = former;
	return status;
}

enum nda_status UdmaRun::atomic16(const Json &post)
{
	if (post.at("op") != "atomic_compare_swap")
		throw std::runtime_error("unknown operation of 16 bytes");
	amo_ = scratch_.addr() + NDA_SCRATCH_RESULT;
	return device_.compare_swap16(pe_, number(post.at("sym_addr")),
		Wide(post.at("compare")).half, Wide(post.at("value")).half, result_.half);
}

enum nda_status UdmaRun::post(const Json &post)
{
	std::string op = post.at("op").get<std::string>();
	uint64_t symmetric = number(post.at("sym_addr"));

	queue_->remote_delta = number(post.at("peer_base")) - number(in_.at("heap_base"));
	if (variant_.slow)
		queue_->state.limit = queue_->state.head;
	recorder_.changed(queue_address(), sizeof(nda_queue));
	if (op.rfind("relay_", 0) == 0)
		op = op.substr(6);
	if (op == "put")
		return device_.put_nbi(pe_, symmetric, number(post.at("local_va")),
			number(post.at("len")));
	if (op == "get")
		return device_.get_nbi(pe_, number(post.at("local_va")), symmetric,
			number(post.at("len")));
	if (op == "put_signal")
		return device_.put_signal_nbi(pe_, symmetric, number(post.at("local_va")),
			number(post.at("len")), number(post.at("sig_sym_addr")),
			number(post.at("signal")));
	if (post.value("type", std::string()) == "float") {
		uint32_t bits = number32(post.at("value"));
		float value;

		memcpy(&value, &bits, sizeof(value));
		amo_ = scratch_.addr() + NDA_SCRATCH_WORDS;
		return device_.add_f32_nbi(pe_, symmetric, value);
	}
	switch (number(post.at("elem_bytes"))) {
	case 4:
		return atomic<uint32_t>(op, post);
	case 8:
		return atomic<uint64_t>(op, post);
	case 16:
		return atomic16(post);
	}
	throw std::runtime_error("an element of another size");
}

void UdmaRun::drive()
{
	for (const Json &entry : in_.value("posts", Json::array()))
		if (post(entry) != NDA_OK)
			posted_ = false;
		else
			refused_ = false;
	if (in_.contains("poll_target"))
		poll_status_ =
			aiv::udma::Queue<Core>(device_.core(), queue_address(), {100, 0})
				.poll_cq(number32(in_.at("poll_target")));
	if (in_.value("quiet", false))
		poll_status_ = device_.quiet(pe_);
}

std::vector<std::string> UdmaRun::run()
{
	fill_table();
	fill_queue();
	fill_completions();
	recorder_.add_memory(table_.addr(), sizeof(nda_table));
	recorder_.add_memory(queue_address(), sizeof(nda_queue));
	recorder_.add_nic_memory(
		sq_.addr(), uint64_t{depth_} * format::bb_bytes, test::Recorder::requests);
	recorder_.add_memory(cq_.addr(), uint64_t{cq_depth_} * queue_->cqe_stride);
	recorder_.add_memory(words_.addr(), 128);
	recorder_.add_nic_memory(
		scratch_.addr(), NDA_SCRATCH_BYTES, test::Recorder::requests);
	recorder_.before_look = [this](uint64_t addr) { before_look(addr); };
	recorder_.starts_stale = true;

	/* A relay that there is not is refused, and operations with it. */
	enum nda_status expected =
		test_.at("group") == "relay_invalid" ? NDA_INVALID : NDA_OK;
	enum nda_status status = open();
	if (status != expected)
		differs("to open the table gives status %d", status);
	drive();
	if (expected != NDA_OK && !refused_)
		differs("an operation over no relay is not refused");
	recorder_.end();

	for (const std::string &violation : recorder_.violations)
		failures_.push_back(violation);
	compare_order();
	for (const Json &field : test_.at("check"))
		compare_field(field.get<std::string>());
	return failures_;
}

/* Every byte: where the recording has an undefined bit, 0 is to be written. */
void UdmaRun::compare_wqes()
{
	uint32_t blocks = 0;

	if (!posted_)
		differs("a post was refused");
	for (const Json &wqe : out_.at("wqes")) {
		uint32_t slot = number32(wqe.at("slot"));
		uint32_t n = number32(wqe.at("bbs"));
		Bytes found, expected = bytes_of(wqe.at("hex").get<std::string>());

		/* The address of the recording's scratch. */
		if (amo_ != 0 && expected.size() >= 64)
			memcpy(expected.data() + 56, &amo_, sizeof(amo_));
		for (uint32_t i = 0; i < n; i++)
			found.insert(found.end(), block(slot + i), block(slot + i) + 64);
		/* Recorded with room for a whole second block. */
		expected.resize(found.size());
		if (found != expected)
			differs("request in block %u is %s, recorded %s", slot,
				hex_of(found.data(), found.size()).c_str(),
				hex_of(expected.data(), expected.size()).c_str());
		blocks += n;
	}
	if (queue_->state.head - number32(in_.at("wq").at("head")) != blocks)
		differs("%u blocks posted, recorded %u",
			queue_->state.head - number32(in_.at("wq").at("head")), blocks);
}

/* Before each doorbell all bytes of the blocks that it tells of, the first word last, and
 * nothing else in the ring. */
void UdmaRun::compare_order()
{
	uint32_t head = number32(in_.at("wq").at("head"));
	std::set<uint64_t> written;
	uint64_t last = 0;
	bool released = false;

	for (const Store &store : recorder_.stores) {
		if (store.addr >= sq_.addr() && store.addr < sq_.addr() + depth_ * 64) {
			for (uint32_t i = 0; i < store.bytes; i++)
				written.insert(store.addr + i);
			last = store.addr;
			released = store.kind == Store::release;
		} else if (store.addr == queue_->sq_doorbell) {
			uint32_t now = static_cast<uint32_t>(store.value);
			std::set<uint64_t> told;

			for (uint32_t i = 0; i < (now - head) * 64; i++)
				told.insert(
					reinterpret_cast<uint64_t>(block(head + i / 64)) +
					i % 64);
			if (store.kind != Store::device || store.bytes != 4)
				differs("the doorbell is no device store of 4 bytes");
			if (now - head > format::max_bbs || told != written)
				differs("the blocks %u to %u are not what was written",
					head, now - 1);
			if (!released || last != reinterpret_cast<uint64_t>(block(head)))
				differs("the request in block %u has its first word too "
					"early",
					head);
			written.clear();
			released = false;
			head = now;
		}
	}
	if (!written.empty())
		differs("a request without a doorbell");
}

void UdmaRun::compare_ret()
{
	const nda_queue_error &error = queue_->state.error;

	if (!in_.contains("poll_target") && !in_.value("quiet", false)) {
		Wide expected(out_.at("ret"));
		if (memcmp(expected.half, result_.half, sizeof(expected.half)) != 0)
			differs("fetched 0x%llx, recorded %s",
				static_cast<unsigned long long>(result_.half[0]),
				out_.at("ret").dump().c_str());
		return;
	}
	uint64_t raw = 0;
	if (poll_status_ != NDA_OK) {
		raw = uint64_t{error.raw_status} << 8 | error.raw_vendor;
		if (error.status != poll_status_ ||
			poll_status_ !=
				format::status_of(error.raw_status, error.raw_vendor))
			differs("status %d is not that of 0x%llx", poll_status_,
				static_cast<unsigned long long>(raw));
	}
	expect_number("result", out_.at("ret"), raw);
}

void UdmaRun::compare_doorbell(const std::string &field, uint64_t addr)
{
	std::vector<std::string> values;

	for (const Store &store : recorder_.stores)
		if (store.addr == addr)
			values.push_back(hex_of(&store.value, store.bytes));
	expect_values(field.c_str(), out_.at(field), values);
}

void UdmaRun::compare_field(const std::string &field)
{
	const nda_queue_state &s = queue_->state;

	if (field == "wqes")
		compare_wqes();
	else if (field == "sq_db")
		compare_doorbell(field, queue_->sq_doorbell);
	else if (field == "cq_db")
		compare_doorbell(field, queue_->cq_record);
	else if (field == "head")
		expect_number("head", out_.at(field), s.head);
	else if (field == "tail" || field == "cq_tail")
		expect_number(field.c_str(), out_.at(field), s.cq_ci);
	else if (field == "wqe_cnt")
		expect_number("completions asked for", out_.at(field),
			uint32_t{s.head + s.udma.cqes});
	else if (field == "ret")
		compare_ret();
	else if (field == "amo_mem")
		expect_number("operand", Json("0x" + out_.at(field).get<std::string>()),
			__builtin_bswap64(*reinterpret_cast<uint64_t *>(
				scratch_.data() + NDA_SCRATCH_WORDS)));
	else
		throw std::runtime_error("unknown field " + field + " to check");
}

std::vector<std::string> run_direct(const Json &test, Variant variant)
{
	return UdmaRun(test, variant, false).run();
}

std::vector<std::string> run_relay(const Json &test, Variant variant)
{
	return UdmaRun(test, variant, true).run();
}

} // namespace

const Runner udma_runner = {"udma",
	{"post", "post_limit", "ring_end", "multi", "poll", "poll_error", "poll_timeout",
		"quiet", "full", "atomic_async", "atomic_fetch", "atomic_rmw"},
	run_direct};
const Runner udma_relay_runner = {
	"udma_relay", {"post", "quiet", "relay_invalid"}, run_relay};

} // namespace nda::golden
