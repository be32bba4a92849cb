// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Another process with a software NPU, for tests: obeys lines on standard input, answers
// each with one line, "ok ..." or "error CODE TEXT". Ends with its parent.
#include "providers/soft/fabric.h"
#include "tests/mock/soft_bench.h"

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <map>
#include <signal.h>
#include <sstream>
#include <sys/prctl.h>
#include <unistd.h>

namespace nda::soft_test {
namespace {

constexpr uint64_t size = 4u << 20;

uint8_t pattern_at(uint64_t i, unsigned seed)
{
	return static_cast<uint8_t>(seed + i * 7 + i / 251);
}

std::vector<uint8_t> from_hex(const std::string &hex)
{
	std::vector<uint8_t> bytes;
	for (size_t i = 0; i + 1 < hex.size(); i += 2)
		bytes.push_back(
			static_cast<uint8_t>(std::stoul(hex.substr(i, 2), nullptr, 16)));
	return bytes;
}

std::string to_hex(const void *data, size_t count)
{
	std::string hex;
	for (size_t i = 0; i < count; i++) {
		char digits[3];
		snprintf(digits, sizeof(digits), "%02x",
			static_cast<const uint8_t *>(data)[i]);
		hex += digits;
	}
	return hex;
}

std::string result(int rc)
{
	return rc ? "error " + std::to_string(rc) + " " + detail() : "ok";
}

struct State {
	std::unique_ptr<TestNpu> npu, second_npu;
	std::unique_ptr<TestNic> nic;
	std::unique_ptr<TestQueue> queue;
	uint64_t memory = 0;
	ibv_mr *mr = nullptr;
};

std::string open_all(State &s)
{
	nda_soft_npu_attr attr = {};
	attr.memory_bytes = uint64_t{1} << 30;
	attr.assist = 1;
	s.npu = std::make_unique<TestNpu>(attr);
	s.nic = std::make_unique<TestNic>();
	s.memory = s.npu->alloc(size);
	s.mr = s.nic->reg(s.memory, size);
	s.queue = std::make_unique<TestQueue>(*s.npu, *s.nic);
	ibv_gid gid = s.nic->gid();
	std::ostringstream out;
	out << "ok " << to_hex(&gid, sizeof(gid)) << ' ' << s.queue->qpn() << ' '
	    << s.memory << ' ' << s.mr->rkey;
	return out.str();
}

std::string obey(State &s, const std::string &line)
{
	std::istringstream in(line);
	std::string verb, hex;
	in >> verb;
	if (verb == "session") {
		in >> hex;
		return result(api().set_session(from_hex(hex).data()));
	}
	if (verb == "open")
		return open_all(s);
	if (verb == "connect") {
		uint32_t qpn;
		in >> hex >> qpn;
		ibv_gid gid;
		memcpy(&gid, from_hex(hex).data(), sizeof(gid));
		int rc = s.queue->to_init();
		if (rc == 0)
			rc = s.queue->to_rtr(gid, qpn);
		if (rc == 0)
			rc = s.queue->to_rts();
		return result(rc);
	}
	if (verb == "reset") {
		int rc = s.queue->to(IBV_QPS_RESET);
		s.queue->restart();
		return result(rc);
	}
	if (verb == "descriptors") { // COUNT: how many more it may have
		unsigned count;
		in >> count;
		DescriptorLimit::set(count);
		return "ok";
	}
	if (verb == "unlimited") { // descriptors again, as far as may be
		struct rlimit limit;
		getrlimit(RLIMIT_NOFILE, &limit);
		limit.rlim_cur = limit.rlim_max;
		return result(setrlimit(RLIMIT_NOFILE, &limit) ? -errno : 0);
	}
	if (verb == "addresses") { // BYTES: how many more it may map
		uint64_t bytes;
		in >> bytes;
		AddressLimit::set(bytes);
		return "ok";
	}
	if (verb == "fill") { // OFFSET COUNT SEED
		uint64_t offset, count;
		unsigned seed;
		in >> offset >> count >> seed;
		std::vector<uint8_t> bytes(count);
		for (uint64_t i = 0; i < count; i++)
			bytes[i] = pattern_at(i, seed);
		s.npu->write(s.memory + offset, bytes);
		return "ok";
	}
	if (verb == "check") {
		uint64_t offset, count;
		unsigned seed;
		in >> offset >> count >> seed;
		std::vector<uint8_t> bytes = s.npu->read(s.memory + offset, count);
		for (uint64_t i = 0; i < count; i++) {
			if (bytes[i] != pattern_at(i, seed))
				return "error 0 differs at " + std::to_string(i);
		}
		return "ok";
	}
	if (verb == "write" || verb == "read") { // OFFSET ADDRESS RKEY COUNT
		uint64_t offset, address;
		uint32_t rkey, count;
		in >> offset >> address >> rkey >> count;
		if (verb == "write")
			s.queue->write(s.memory + offset, s.mr->lkey, address, rkey, count);
		else
			s.queue->read(s.memory + offset, s.mr->lkey, address, rkey, count);
		std::optional<Cqe> c = s.queue->wait();
		if (!c)
			return "error 0 no completion";
		return c->error ? "error 0 syndrome " + std::to_string(c->syndrome) : "ok";
	}
	if (verb == "touch") { // BYTES: of its memory, to make it long to tear down
		uint64_t count;
		in >> count;
		uint64_t address = s.npu->alloc(count);
		int rc = 0;
		for (uint64_t page = 0; page < count && rc == 0; page += 4096)
			rc = api().npu_memset(s.npu->get(), address + page, 1, 1);
		return result(rc);
	}
	if (verb == "second") { // one more NPU, opened after others have connected
		s.second_npu = std::make_unique<TestNpu>();
		uint64_t address = s.second_npu->alloc(size);
		ibv_mr *mr = s.nic->reg(address, size);
		return "ok " + std::to_string(address) + " " + std::to_string(mr->rkey);
	}
	if (verb == "peek") { // ADDRESS: a word of the second NPU
		uint64_t address;
		in >> address;
		std::vector<uint8_t> bytes = s.second_npu->read(address, 8);
		return "ok " + to_hex(bytes.data(), bytes.size());
	}
	if (verb == "dereg")
		return result(api().dereg_mr(s.mr));
	if (verb == "stick") { // as if its engine had stopped in the middle of a transfer
		auto &fabric = soft::Fabric::get();
		ibv_mr *mr = s.mr;
		fabric.engine(fabric.self()
				      ->control()
				      .mrs[soft::mr_index(mr->rkey)]
				      .segment.load())
			.pass.fetch_add(1);
		return "ok";
	}
	return "error 0 unknown command";
}

int serve()
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	State s;
	char line[4096];
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = 0;
		if (strcmp(line, "quit") == 0) {
			// Without undoing anything: as exit() somewhere in an application.
			_exit(0);
		}
		printf("%s\n", obey(s, line).c_str());
		fflush(stdout);
	}
	_exit(0);
}

} // namespace
} // namespace nda::soft_test

int main()
{
	return nda::soft_test::serve();
}
