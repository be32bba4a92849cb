// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <nda/bootstrap.h>

#include "lib/nda/bootstrap.h"
#include "lib/nda/guard.h"

using namespace nda;

NDA_API int nda_bootstrap_tcp_create(const nda_bootstrap_tcp_attr *attr, size_t attr_size,
	nda_bootstrap **bootstrap) noexcept
{
	return guard([&] {
		if (!bootstrap)
			return fail(-EINVAL, "bootstrap is NULL");
		return bootstrap_tcp_create(attr, attr_size, *bootstrap);
	});
}

NDA_API int nda_bootstrap_tcp_destroy(nda_bootstrap *bootstrap) noexcept
{
	return guard([&] { return bootstrap_tcp_destroy(bootstrap); });
}

NDA_API int nda_bootstrap_local_create(
	uint32_t n_pes, uint32_t timeout_ms, nda_bootstrap **bootstraps) noexcept
{
	return guard([&] {
		if (!bootstraps)
			return fail(-EINVAL, "bootstraps is NULL");
		return bootstrap_local_create(n_pes, timeout_ms, *bootstraps);
	});
}

NDA_API int nda_bootstrap_local_destroy(nda_bootstrap *bootstraps) noexcept
{
	return guard([&] { return bootstrap_local_destroy(bootstraps); });
}
