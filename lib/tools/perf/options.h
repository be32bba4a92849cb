// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What nda-perf was asked to do.
#ifndef NDA_PERF_OPTIONS_H
#define NDA_PERF_OPTIONS_H

#include <cstdint>
#include <string>
#include <vector>

namespace nda::perf {

enum class Op {
	put,
	get,
	copy,
	atomic,
	signal,
	barrier
};

enum class Atomic {
	fetch_add,
	compare_swap,
	add,
	swap,
	set,
	fetch_and,
	fetch_or,
	fetch_xor
};

enum class Barrier {
	barrier_all,
	sync_all
};

// How cores ring.
enum class Doorbell {
	automatic,
	map,
	proxy,
	kernel
};

enum ExitStatus {
	exit_ok = 0,
	exit_failure = 1,
	exit_usage = 2,
	exit_no_device = 3,
};

struct Options {
	Op op = Op::put;

	std::string nic = "soft:hns1825";
	uint32_t pes = 2;
	bool threads = false;
	uint32_t cores = 1;
	uint32_t window = 64;
	uint32_t batch = 1;
	uint32_t signal_every = 1;
	uint32_t depth = 1024;
	std::string npu = "soft";
	uint64_t heap_bytes = 0; // 0: what the sizes need
	bool strict = false;
	bool no_assist = false;
	Doorbell doorbell = Doorbell::automatic;
	std::string inject;
	std::string events; // a file; "": none
	uint32_t timeout_ms = 10000;
	bool json = false;
	bool quiet = false;
	std::string gid; // an address or an index; "": the library's choice
	bool gid_is_index = false;
	uint32_t path_mtu_bytes = 0; // 0: the ports'

	// A job of two machines: this one has the first half of the PEs and listens, or it
	// has the second half and connects; both empty: one machine.
	std::string listen;
	std::string connect;
	uint16_t port = 18720;
	std::string secret_file;

	// put, get, signal, atomic and barrier
	std::vector<uint64_t> sizes = {8, 64, 512, 4096, 32768, 262144, 1048576};
	uint64_t iterations = 0;    // of a core in a measurement; 0: only the time ends it
	uint64_t time_limit_us = 0; // of a measurement; never 0 once parsed
	int64_t warmup = -1;        // -1: what suits the measurement
	bool verify = false;
	bool one_way = false; // only PE 0 posts
	uint32_t queues = 1;  // of each core to each PE

	// atomic
	std::vector<Atomic> atomics = {Atomic::fetch_add, Atomic::compare_swap, Atomic::add,
		Atomic::swap, Atomic::set, Atomic::fetch_and, Atomic::fetch_or,
		Atomic::fetch_xor};
	bool all_atomics = true; // those of them that the NIC has
	uint32_t atomic_bytes = 8;

	// copy
	uint64_t chunk_bytes = 262144;
	std::vector<std::string> files;

	// Given by the parent to the PEs it starts.
	int job_pe = -1;
	int job_fd = -1;

	bool one_machine() const { return listen.empty() && connect.empty(); }
	// PEs that post, from PE 0 on.
	uint32_t posting_pes() const { return one_way ? 1 : pes; }
	// The PEs that are started here.
	uint32_t first_pe() const { return connect.empty() ? 0 : pes / 2; }
	uint32_t local_pes() const { return one_machine() ? pes : pes / 2; }
	// Of what all PEs must have been told alike.
	uint64_t fingerprint() const;
};

// What came of the command line.
struct Parsed {
	bool run = false; // false: print the texts and exit with the status
	int status = exit_ok;
	std::string out;
	std::string err;
	Options options;
};

Parsed parse_options(int argc, const char *const *argv);

const char *op_name(Op op);
const char *atomic_name(Atomic atomic);
const char *barrier_name(Barrier barrier);

// "8", "64K", "1M", "2G": powers of 1024. False: not a size, or beyond 64 bits.
bool parse_size(const std::string &text, uint64_t *bytes);

// Seconds as "2" or "0.25". False: not a number, or beyond 64 bits of microseconds.
bool parse_seconds(const std::string &text, uint64_t *us);

} // namespace nda::perf

#endif
