// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/tools/perf/pe.h"

#include "lib/tools/perf/atomic.h"
#include "lib/tools/perf/copy.h"
#include "lib/tools/perf/measure.h"

namespace nda::perf {

PeEnd run_pe(const Options &options, const MemoryPlan &plan, const nda_bootstrap &bootstrap,
	const Send &send)
{
	Session session(options, bootstrap, send);
	Outcome outcome = session.open(plan.heap_bytes);
	if (outcome == Outcome::ok)
		outcome = options.op == Op::copy   ? copy(session, plan.part_bytes)
			: options.op == Op::atomic ? atomic(session)
						   : measure(session, plan.part_bytes);
	if (outcome == Outcome::ok)
		session.close();
	// Whoever failed says why on its own machine.
	if (outcome == Outcome::stopped && !options.one_machine())
		session.fail("job", "another PE failed");
	return {session.exit_status(), session.broken()};
}

} // namespace nda::perf
