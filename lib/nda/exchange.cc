// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/nda/exchange.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include "lib/nda/error.h"

namespace nda {

StepReport make_report(int code)
{
	StepReport r = {};
	r.code = code;
	if (code)
		snprintf(r.text, sizeof(r.text), "%s",
			error_detail()[0] ? error_detail() : errno_text(code));
	return r;
}

// A foreign bootstrap has only its code to say.
int Exchange::callback_failed(int rc, const char *name) const
{
	if (error_detail()[0])
		return fail_in(rc < 0 ? rc : -EIO, "group: PE %u", pe());
	return fail(rc < 0 ? rc : -EIO, "group: PE %u: the bootstrap's %s returned %d (%s)",
		pe(), name, rc, errno_text(rc));
}

int Exchange::allgather(const void *in, void *out, size_t size) const
{
	clear_error_detail();
	const int rc = b_.allgather(b_.cookie, in, out, size);
	return rc ? callback_failed(rc, "allgather") : 0;
}

int Exchange::barrier() const
{
	clear_error_detail();
	const int rc = b_.barrier(b_.cookie);
	return rc ? callback_failed(rc, "barrier") : 0;
}

int Exchange::verdict(const void *reports, size_t stride) const
{
	const uint8_t *at = static_cast<const uint8_t *>(reports);
	StepReport first = {};
	uint32_t first_pe = 0, failed = 0;
	for (uint32_t i = 0; i < n_pes(); i++) {
		StepReport r;
		memcpy(&r, at + i * stride, sizeof(r));
		if (r.code == 0 || failed++)
			continue;
		first = r;
		first_pe = i;
	}
	if (!failed)
		return 0;
	first.text[sizeof(first.text) - 1] = '\0';
	char others[48] = "";
	if (failed > 1)
		snprintf(others, sizeof(others), " (and %u more PEs failed)", failed - 1);
	return fail(first.code < 0 ? first.code : -EIO, "group: PE %u: %s%s", first_pe,
		first.text, others);
}

int Exchange::agree(int code) const
{
	const StepReport own = make_report(code);
	std::vector<StepReport> all(n_pes());
	const int rc = allgather(&own, all.data(), sizeof(own));
	return rc ? rc : verdict(all.data(), sizeof(own));
}

} // namespace nda
