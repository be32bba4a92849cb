// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What one PE of a job has: its NPU, its NIC, the group, and the way to its parent.
#ifndef NDA_PERF_SESSION_H
#define NDA_PERF_SESSION_H

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nda/group.h>

#include "lib/tools/perf/kernels.h"
#include "lib/tools/perf/layout.h"
#include "lib/tools/perf/options.h"
#include "lib/tools/perf/row.h"

namespace nda::perf {

// Sends a line to where the job's report is made.
using Send = std::function<void(const std::string &line)>;

// How a step of a PE ended.
enum class Outcome {
	ok,
	failed,  // and it has been reported
	stopped, // another PE failed; that PE reports it
};

class Session {
public:
	Session(const Options &options, const nda_bootstrap &bootstrap, const Send &send);
	Session(const Session &) = delete;
	Session &operator=(const Session &) = delete;
	~Session();

	// Opens NIC and NPU and joins the group.
	Outcome open(const MemoryPlan &plan);
	// Leaves the group together with the other PEs.
	Outcome close();

	const Options &options() const { return options_; }
	uint32_t pe() const { return bootstrap_.pe; }
	uint32_t n_pes() const { return bootstrap_.n_pes; }
	uint64_t table() const { return nda_group_table(group_); }
	const Kernels &kernels() const { return *kernels_; }
	// atomic: the operations to measure, which the NIC has.
	const std::vector<Atomic> &atomics() const { return atomics_; }
	// How cores ring for the queues to the next PE, as a row has it.
	std::string doorbell();

	Outcome alloc(uint64_t size, uint64_t *address);
	Outcome read(void *data, uint64_t address, uint64_t size);
	Outcome write(uint64_t address, const void *data, uint64_t size);
	Outcome fill(uint64_t address, int value, uint64_t size);
	Outcome barrier();
	// When all cores of all PEs begin, and a moment before it from which times count;
	// by now_ns().
	Outcome common_start(uint64_t *base_ns, uint64_t *start_ns);
	// out: n_pes times size bytes.
	Outcome allgather(const void *in, void *out, uint64_t size);
	// Outcome of all PEs: each calls it with its own; one that failed makes the others
	// stop.
	Outcome agree(Outcome own);

	// Runs a kernel on as many cores as there are results, and waits for it. A core's
	// failure is reported as one of `what`, a message of `size` bytes to or from
	// `address`; of no message if size is 0.
	struct Launch {
		nda_kernel_fn kernel;
		std::shared_ptr<void> work; // the kernel's argument
		const Results &results;
		uint64_t limit_us; // after which the kernel ends by itself
		const char *what;
		uint64_t size;
		uint64_t address;
	};
	Outcome run(const Launch &launch);

	void row(const Row &row) { send_(encode(row)); }
	void progress(const std::string &text);
	Outcome fail(const std::string &object, const std::string &cause);
	int exit_status() const { return exit_status_; }
	// Things are left behind that only the end of the process can clear away.
	bool broken() const { return broken_; }

private:
	Outcome open_npu(uint64_t heap_bytes);
	Outcome open_nic();
	Outcome check_machine(const MemoryPlan &plan);
	Outcome choose_kernels();
	Outcome choose_atomics();
	Outcome compare_options();
	Outcome open_group(uint64_t heap_bytes);
	Outcome fail_as(const std::string &message, int exit_status);
	// Of a call of libnda that failed: its text names the object.
	Outcome fail_call(int error);
	Outcome fail_message(const Launch &launch, const CoreResult &result);
	struct Queue {
		uint32_t peer;
		uint32_t owner; // core * queues of a core + queue
	};
	// The queue that a core's failure is about, as far as that can be known.
	std::optional<Queue> failed_queue(const CoreResult &result);
	std::string queue_text(const Queue &queue);

	const Options &options_;
	const nda_bootstrap &bootstrap_;
	const Send &send_;
	nda_npu *npu_ = nullptr;
	nda_nic *nic_ = nullptr;
	nda_group *group_ = nullptr;
	uint32_t format_ = 0;            // the NIC's, enum nda_format
	std::optional<Kernels> kernels_; // of that
	std::vector<Atomic> atomics_;
	int exit_status_ = exit_ok;
	bool broken_ = false; // a PE is gone, or a kernel doesn't end
};

} // namespace nda::perf

#endif
