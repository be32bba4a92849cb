/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * golden_test [--vectors FILE|DIRECTORY]: replays recorded cases of the 1825 through the
 * data plane and compares bytes, doorbells, counters and results. Every case runs with four
 * fills of the ring and with the fast and the slow way to post, for a byte that is not
 * written, or one way that differs, must not hide. See tests/data/golden/README.md.
 */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <nda/aiv/device.h>
#include <nda/hw/hns1825.h>
#include <tests/mock/recording_core.h>

namespace {

namespace format = nda::hw::hns1825;
using nda::aiv::Device;
using nda::test::Recorder;
using nda::test::RecordingCore;
using nda::test::Store;
using Json = nlohmann::json;
using Bytes = std::vector<uint8_t>;

const char engine_name[] = "hns_1825";
const std::set<std::string> known_groups = {"post", "post_limit", "post_qp", "post_depth",
	"multi", "poll", "poll_error", "poll_timeout", "quiet", "full"};
/* What the recorded code returns for a wait that ran out. */
const uint64_t recorded_timeout = 0x10000;

/* A number, or one above 2^53 as text. */
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

/* Zeroed memory, aligned to a cache line. */
class Memory {
public:
	explicit Memory(size_t size, uint8_t fill = 0) : storage_(size + 64, fill) {}

	uint8_t *data()
	{
		uintptr_t start = reinterpret_cast<uintptr_t>(storage_.data());
		return storage_.data() + (64 - start % 64) % 64;
	}
	uint64_t addr() { return reinterpret_cast<uint64_t>(data()); }

private:
	std::vector<uint8_t> storage_;
};

struct Variant {
	uint8_t fill;
	bool slow;
};

/* One run of one case. */
class Run {
public:
	Run(const Json &test, Variant variant);

	/* What differs, or nothing. */
	std::vector<std::string> compare();

private:
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
	void expect_values(
		const char *what, const Json &expected, const std::vector<std::string> &);
	void expect_number(const char *what, const Json &expected, uint64_t found);
	void expect_masked(
		const std::string &what, const Json &entry, const uint8_t *found);

	__attribute__((format(printf, 2, 3))) void differs(const char *text, ...)
	{
		char line[1024];
		va_list args;

		va_start(args, text);
		vsnprintf(line, sizeof(line), text, args);
		va_end(args);
		failures_.push_back(line);
	}

	struct Pending {
		Bytes bytes;
		uint64_t looks; /* still to come in vain */
	};

	const Json &in_;
	const Json &out_;
	const Json &test_;
	Variant variant_;
	uint32_t n_pes_;
	uint32_t n_queues_; /* to each PE */
	uint32_t sq_depth_;
	uint32_t ring_; /* of the CQ */
	uint32_t stride_;
	Memory table_;
	Memory sq_;
	Memory cq_;
	Memory words_{192}; /* SQ record, CQ record and doorbell, a line each */
	nda_queue *queue_ = nullptr;
	std::map<uint32_t, Pending> pending_; /* by slot */
	Recorder recorder_;
	Device<RecordingCore> device_;
	bool posted_ = true;
	enum nda_status poll_status_ = NDA_OK;
	std::vector<std::string> failures_;
};

Run::Run(const Json &test, Variant variant)
	: in_(test.at("in")), out_(test.at("out")), test_(test), variant_(variant),
	  n_pes_(number32(in_.at("npes"))), n_queues_(number32(in_.at("qp_num"))),
	  sq_depth_(number32(in_.at("sq").at("depth"))),
	  ring_(number32(in_.at("cq").at("ring"))),
	  stride_(number32(in_.at("cq").at("cqe_size"))),
	  table_(sizeof(nda_table) + size_t{n_pes_} * n_queues_ * NDA_QUEUE_STRIDE),
	  sq_(size_t{sq_depth_} * format::wqe_bytes, variant.fill),
	  cq_(size_t{ring_} * (stride_ ? stride_ : format::default_cqe_stride))
{
	if (stride_ == 0)
		stride_ = format::default_cqe_stride;
	fill_queue();
	fill_completions();
	recorder_.add_memory(table_.addr(), sizeof(nda_table));
	recorder_.add_memory(reinterpret_cast<uint64_t>(queue_), sizeof(nda_queue));
	recorder_.add_memory(sq_.addr(), uint64_t{sq_depth_} * format::wqe_bytes);
	recorder_.add_memory(cq_.addr(), uint64_t{ring_} * stride_);
	recorder_.add_memory(words_.addr(), 192);
	recorder_.before_look = [this](uint64_t addr) { before_look(addr); };

	enum nda_status status = device_.open(
		RecordingCore(&recorder_), table_.addr(), number32(in_.at("qp_idx")));
	if (status != NDA_OK)
		differs("the table does not open: status %d", status);
	else
		drive();
}

/* The table of the case's PE, with one core per recorded queue index. Rows of other queues
 * are out of bounds for the core. */
void Run::fill_queue()
{
	nda_table *table = reinterpret_cast<nda_table *>(table_.data());
	const Json &sq = in_.at("sq");
	uint32_t pe = number32(in_.at("pe"));
	uint32_t row = number32(in_.at("qp_idx")) * n_pes_ + pe;
	format::doorbell_params params;

	table->magic = NDA_TABLE_MAGIC;
	table->version = NDA_TABLE_VERSION;
	table->size_bytes =
		sizeof(nda_table) + uint64_t{n_pes_} * n_queues_ * NDA_QUEUE_STRIDE;
	table->my_pe = number32(in_.at("my_pe"));
	table->n_pes = n_pes_;
	table->n_cores = n_queues_;
	table->format = NDA_FORMAT_HNS1825;
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
	format::key_words(queue_->rkey, queue_->lkey, queue_->key_words);
	queue_->sq_base = sq_.addr();
	queue_->sq_depth = sq_depth_;
	queue_->sq_record = words_.addr();
	queue_->cq_record = words_.addr() + 64;
	queue_->sq_doorbell = words_.addr() + 128;
	queue_->cq_base = cq_.addr();
	queue_->cq_depth = ring_;
	queue_->cqe_stride = stride_;
	queue_->signal_every = 1;
	params.mtu_shift = static_cast<uint8_t>(number(sq.at("mtu_shift")));
	queue_->doorbell_template = format::doorbell_template(queue_->qpn, params);
	queue_->valid = 1;
	queue_->state = nda::aiv::hns1825::derive_state(*queue_, number32(in_.at("head")),
		number32(in_.at("sq_tail")), number32(in_.at("cq_tail")));
}

/* Each slot looks like a success of the wrong lap until its recorded CQE arrives. */
void Run::fill_completions()
{
	uint32_t tail = number32(in_.at("cq_tail"));

	for (uint32_t i = 0; i < ring_; i++) {
		uint32_t index = tail + i;
		format::cqe stale = {};
		uint64_t words[format::cqe_words];

		stale.owner = format::owner_bit(index, ring_) ? 0 : 1;
		stale.op_type = format::op_write;
		stale.wqe_counter = static_cast<uint16_t>(index - ring_);
		format::encode(stale, words);
		memcpy(cq_.data() + size_t{index & (ring_ - 1)} * stride_, words,
			sizeof(words));
	}
	for (const Json &cqe : in_.at("cqes")) {
		Pending pending = {bytes_of(cqe.at("hex").get<std::string>()),
			number(cqe.at("ready_after"))};
		uint32_t slot = number32(cqe.at("slot"));

		if (slot >= ring_ || pending.bytes.size() > stride_)
			throw std::runtime_error("a completion outside its ring");
		pending_[slot] = pending;
	}
}

void Run::before_look(uint64_t addr)
{
	uint64_t offset = addr - cq_.addr();

	if (addr < cq_.addr() || offset >= uint64_t{ring_} * stride_ ||
		offset % stride_ != 0)
		return;
	auto found = pending_.find(static_cast<uint32_t>(offset / stride_));
	if (found == pending_.end() || found->second.looks-- > 0)
		return;
	memcpy(cq_.data() + offset, found->second.bytes.data(), found->second.bytes.size());
	pending_.erase(found);
}

void Run::post(const Json &post)
{
	const std::string op = post.at("op").get<std::string>();
	uint32_t pe = number32(in_.at("pe"));
	uint64_t symmetric = number(post.at("sym_addr"));
	uint64_t local = number(post.at("local_va"));
	uint64_t length = number(post.at("len"));
	enum nda_status status;

	queue_->remote_delta = number(post.at("peer_base")) - number(in_.at("heap_base"));
	if (variant_.slow)
		queue_->state.limit = queue_->state.head;
	if (op == "put")
		status = device_.put_nbi(pe, symmetric, local, length);
	else if (op == "get")
		status = device_.get_nbi(pe, local, symmetric, length);
	else
		throw std::runtime_error("unknown operation " + op);
	if (status != NDA_OK)
		posted_ = false;
}

void Run::drive()
{
	for (const Json &entry : in_.value("posts", Json::array()))
		post(entry);
	if (in_.contains("poll_target"))
		poll_status_ = nda::aiv::hns1825::Queue<RecordingCore>(
			device_.core(), reinterpret_cast<uint64_t>(queue_), 100)
				       .poll_cq(number32(in_.at("poll_target")));
	if (in_.value("quiet", false))
		poll_status_ = device_.quiet(number32(in_.at("pe")));
}

void Run::expect_number(const char *what, const Json &expected, uint64_t found)
{
	if (number(expected) != found)
		differs("%s is 0x%llx, recorded 0x%llx", what,
			static_cast<unsigned long long>(found),
			static_cast<unsigned long long>(number(expected)));
}

void Run::expect_values(
	const char *what, const Json &expected, const std::vector<std::string> &found)
{
	if (expected.get<std::vector<std::string>>() != found)
		differs("%s: written %s, recorded %s", what, Json(found).dump().c_str(),
			expected.dump().c_str());
}

void Run::expect_masked(const std::string &what, const Json &entry, const uint8_t *found)
{
	Bytes expected = bytes_of(entry.at("hex").get<std::string>());
	Bytes mask = bytes_of(entry.at("mask").get<std::string>());
	bool same = expected.size() == format::wqe_bytes && mask.size() == expected.size();

	for (size_t i = 0; same && i < expected.size(); i++)
		same = ((found[i] ^ expected[i]) & mask[i]) == 0;
	if (!same)
		differs("%s is %s, recorded %s", what.c_str(),
			hex_of(found, format::wqe_bytes).c_str(),
			entry.at("hex").get<std::string>().c_str());
}

void Run::compare_wqes()
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
		expect_masked("WQE in slot " + std::to_string(slot), wqe,
			sq_.data() + size_t{slot} * format::wqe_bytes);
	}
}

void Run::compare_next_slot()
{
	const Json &next = out_.at("next_slot");

	if (next.is_null())
		return;
	uint32_t slot = number32(next.at("slot"));
	if (slot >= sq_depth_)
		throw std::runtime_error("a slot outside its ring");
	expect_masked("slot " + std::to_string(slot) + " after the WQEs", next,
		sq_.data() + size_t{slot} * format::wqe_bytes);
}

/* Each WQE's marker, words, first word, then the record, then the doorbell. */
void Run::compare_order()
{
	uint32_t head = number32(in_.at("head"));
	unsigned words = 0;
	bool marked = false, valid = false, recorded = false;

	for (const Store &store : recorder_.stores) {
		uint64_t slot =
			sq_.addr() + uint64_t{head & (sq_depth_ - 1)} * format::wqe_bytes;
		uint64_t next = sq_.addr() +
			uint64_t{(head + 1) & (sq_depth_ - 1)} * format::wqe_bytes;

		if (store.addr == next && store.bytes == 1)
			marked = true;
		else if (store.addr > slot && store.addr < slot + format::wqe_bytes)
			words++;
		else if (store.addr == slot && store.bytes == 8) {
			valid = marked && words == 7 && store.kind == Store::release;
			if (!valid)
				differs("the WQE of index %u is valid before it is "
					"complete",
					head);
		} else if (store.addr == queue_->sq_record) {
			recorded = valid && store.kind == Store::release;
			if (!recorded)
				differs("the record for index %u precedes its WQE", head);
		} else if (store.kind == Store::device) {
			if (!recorded)
				differs("the doorbell for index %u precedes its record",
					head);
			marked = valid = recorded = false;
			words = 0;
			head++;
		} else if (store.addr >= sq_.addr() &&
			store.addr < sq_.addr() + uint64_t{sq_depth_} * format::wqe_bytes) {
			differs("a store into a slot that is not being posted, index %u",
				head);
		}
	}
}

void Run::compare_ret()
{
	const nda_queue_error &error = queue_->state.error;
	uint64_t raw = 0;

	if (poll_status_ == NDA_TIMEOUT)
		raw = recorded_timeout;
	else if (poll_status_ != NDA_OK)
		raw = error.raw_status;
	expect_number("result", out_.at("ret"), raw);
	if (poll_status_ != NDA_OK && poll_status_ != NDA_TIMEOUT &&
		(error.status != poll_status_ ||
			poll_status_ != format::status_of(error.raw_status)))
		differs("status %d is not that of syndrome 0x%x", poll_status_,
			error.raw_status);
}

void Run::compare_field(const std::string &field)
{
	std::vector<std::string> values;
	uint64_t addr = field == "sq_db" ? queue_->sq_doorbell
		: field == "sq_db_sw"    ? queue_->sq_record
		: field == "cq_db_sw"    ? queue_->cq_record
					 : 0;

	for (const Store &store : recorder_.stores)
		if (addr != 0 && store.addr == addr)
			values.push_back(hex_of(&store.value, store.bytes));

	if (field == "wqes")
		compare_wqes();
	else if (field == "next_slot")
		compare_next_slot();
	else if (addr != 0 || field == "cq_db") /* the format has no consumer doorbell */
		expect_values(field.c_str(), out_.at(field), values);
	else if (field == "head")
		expect_number("head", out_.at(field), queue_->state.head);
	else if (field == "sq_tail")
		expect_number("SQ tail", out_.at(field), queue_->state.tail);
	else if (field == "cq_tail")
		expect_number("CQ tail", out_.at(field), queue_->state.cq_ci);
	else if (field == "ret")
		compare_ret();
	else
		throw std::runtime_error("unknown field " + field + " to check");
}

std::vector<std::string> Run::compare()
{
	for (const std::string &violation : recorder_.violations)
		failures_.push_back(violation);
	compare_order();
	for (const Json &field : test_.at("check"))
		compare_field(field.get<std::string>());
	return failures_;
}

struct Totals {
	unsigned passed = 0;
	unsigned failed = 0;
};

bool run_case(const std::string &id, const Json &test)
{
	static const Variant variants[] = {
		{0x00, false}, {0xff, false}, {0xa5, true}, {0x3c, true}};
	std::string problem;

	try {
		std::string group = test.at("group").get<std::string>();
		if (known_groups.count(group) == 0)
			throw std::runtime_error("unknown group " + group);
		for (const Variant &variant : variants) {
			for (const std::string &text : Run(test, variant).compare())
				problem += "\n    " + text;
			if (!problem.empty()) {
				problem += variant.slow ? "\n    (slow way)"
							: "\n    (fast way)";
				break;
			}
		}
	} catch (const std::exception &error) {
		problem = std::string("\n    cannot be run: ") + error.what();
	}
	if (!problem.empty())
		printf("FAILED %s%s\n", id.c_str(), problem.c_str());
	return problem.empty();
}

void run_file(const std::filesystem::path &path, Totals *totals)
{
	try {
		std::ifstream stream(path);
		if (!stream)
			throw std::runtime_error("cannot be opened");

		Json file = Json::parse(stream);
		if (file.at("engine").get<std::string>() != engine_name) {
			printf("%s: engine %s is not the 1825's\n", path.c_str(),
				file.at("engine").get<std::string>().c_str());
			return;
		}
		if (number(file.at("schema")) != 1)
			throw std::runtime_error("schema is not 1");
		for (const Json &test : file.at("cases")) {
			if (run_case(
				    test.value("id", std::string("case without id")), test))
				totals->passed++;
			else
				totals->failed++;
		}
	} catch (const std::exception &error) {
		printf("FAILED %s: %s\n", path.c_str(), error.what());
		totals->failed++;
	}
}

/* The file, or the directory's JSON files by name. */
std::vector<std::filesystem::path> files_of(const std::filesystem::path &path)
{
	std::vector<std::filesystem::path> files;
	std::error_code error;

	if (!std::filesystem::is_directory(path, error))
		return {path};
	for (const auto &entry : std::filesystem::directory_iterator(path, error))
		if (entry.path().extension() == ".json")
			files.push_back(entry.path());
	std::sort(files.begin(), files.end());
	return files;
}

} // namespace

int main(int argc, char **argv)
{
	std::filesystem::path vectors = "tests/data/golden";
	Totals totals;

	if (argc == 3 && strcmp(argv[1], "--vectors") == 0) {
		vectors = argv[2];
	} else if (argc != 1) {
		fprintf(stderr, "usage: golden_test [--vectors FILE|DIRECTORY]\n");
		return 2;
	}
	for (const std::filesystem::path &file : files_of(vectors))
		run_file(file, &totals);
	if (totals.passed + totals.failed == 0)
		printf("%s: no case of engine %s\n", vectors.c_str(), engine_name);
	printf("%u passed, %u failed, 0 skipped\n", totals.passed, totals.failed);
	return totals.failed == 0 && totals.passed > 0 ? 0 : 1;
}
