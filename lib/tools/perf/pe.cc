// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/tools/perf/pe.h"

#include "lib/tools/perf/atomic.h"
#include "lib/tools/perf/barrier.h"
#include "lib/tools/perf/copy.h"
#include "lib/tools/perf/measure.h"
#include "lib/tools/perf/signal.h"

namespace nda::perf {

namespace {

Outcome run(Session &session, const MemoryPlan &plan)
{
	switch (session.options().op) {
	case Op::copy:
		return copy(session, plan.part_bytes);
	case Op::atomic:
		return atomic(session);
	case Op::barrier:
		return barrier(session);
	case Op::signal:
		return signal(session, plan.part_bytes);
	case Op::put:
	case Op::get:
		break;
	}
	return measure(session, plan.part_bytes);
}

} // namespace

PeEnd run_pe(const Options &options, const MemoryPlan &plan, const nda_bootstrap &bootstrap,
	const Send &send)
{
	Session session(options, bootstrap, send);
	Outcome outcome = session.open(plan);
	if (outcome == Outcome::ok)
		outcome = run(session, plan);
	if (outcome == Outcome::ok)
		session.close();
	// Whoever failed says why on its own machine.
	if (outcome == Outcome::stopped && !options.one_machine())
		session.fail("job", "another PE failed");
	return {session.exit_status(), session.broken()};
}

} // namespace nda::perf
