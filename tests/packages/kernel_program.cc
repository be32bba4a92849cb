// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// A kernel as applications write them, from the installed headers alone.
#include <nda/aiv/device.h>
#include <nda/aiv/soft_core.h>
#include <nda/aiv/udma_queue.h>
#include <nda/core.h>
#include <uapi/nda.h>

struct Job {
	uint64_t table, from, to;
};

extern "C" void copy_to_next(const nda_core *core, void *arg)
{
	const Job *job = static_cast<const Job *>(arg);
	nda::aiv::Device<nda::aiv::SoftCore> device;
	if (device.open(nda::aiv::SoftCore(core), job->table, core->index) != NDA_OK)
		return;
	if (device.put_nbi(0, job->to, job->from, 64) == NDA_OK)
		device.quiet(0);
}

int main()
{
	return 0;
}
