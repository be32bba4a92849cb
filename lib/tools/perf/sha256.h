// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef NDA_PERF_SHA256_H
#define NDA_PERF_SHA256_H

#include <cstddef>
#include <memory>
#include <string>

struct evp_md_ctx_st;

namespace nda::perf {

class Sha256 {
public:
	Sha256();
	void update(const void *data, size_t size);
	// Lower-case hexadecimal; "" if libcrypto failed in any call. Once only.
	std::string finish();

private:
	struct Free {
		void operator()(evp_md_ctx_st *ctx) const;
	};
	std::unique_ptr<evp_md_ctx_st, Free> ctx_;
	bool ok_;
};

} // namespace nda::perf

#endif
