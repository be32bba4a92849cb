// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The built-in bootstraps, behind struct nda_bootstrap.
#ifndef NDA_LIB_BOOTSTRAP_H
#define NDA_LIB_BOOTSTRAP_H

#include <cstdint>
#include <string>

#include <nda/bootstrap.h>

#include "lib/nda/siphash.h"

namespace nda {

constexpr uint32_t pes_max = 4096;
constexpr uint32_t bootstrap_timeout_ms_default = 60000;
// Of what one collective call gathers, from all PEs together.
constexpr uint64_t gather_bytes_max = 1ull << 30;

// "2, 5 and 3 more": PEs for which missing(pe) is true.
template <class Missing>
std::string list_pes(uint32_t n_pes, Missing missing)
{
	std::string text;
	uint32_t count = 0;
	for (uint32_t pe = 0; pe < n_pes; pe++) {
		if (!missing(pe))
			continue;
		if (++count <= 8)
			text += (count > 1 ? ", " : "") + std::to_string(pe);
	}
	if (count > 8)
		text += " and " + std::to_string(count - 8) + " more";
	return text;
}

// Checks what both parameters of a collective call have in common.
int check_gather(uint32_t n_pes, const void *in, const void *out, size_t size);

int bootstrap_local_create(uint32_t n_pes, uint32_t timeout_ms, nda_bootstrap *&bootstraps);
int bootstrap_local_destroy(nda_bootstrap *bootstraps);

int bootstrap_tcp_create(
	const nda_bootstrap_tcp_attr *attr, size_t attr_size, nda_bootstrap *&bootstrap);
int bootstrap_tcp_destroy(nda_bootstrap *bootstrap);

// The 32 bytes that tell this job's processes from others, derived from its secret so that
// what is handed on does not give the secret away.
void derive_session(const uint8_t secret[secret_bytes], uint8_t session[32]);

} // namespace nda

#endif
