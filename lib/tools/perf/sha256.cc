// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/tools/perf/sha256.h"

#include <openssl/evp.h>

namespace nda::perf {

void Sha256::Free::operator()(evp_md_ctx_st *ctx) const
{
	EVP_MD_CTX_free(ctx);
}

Sha256::Sha256()
	: ctx_(EVP_MD_CTX_new()),
	  ok_(ctx_ && EVP_DigestInit_ex(ctx_.get(), EVP_sha256(), nullptr) == 1)
{}

void Sha256::update(const void *data, size_t size)
{
	ok_ = ok_ && EVP_DigestUpdate(ctx_.get(), data, size) == 1;
}

std::string Sha256::finish()
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned size = 0;
	ok_ = ok_ && EVP_DigestFinal_ex(ctx_.get(), digest, &size) == 1;
	std::string text;
	if (!ok_)
		return text;
	static const char hex[] = "0123456789abcdef";
	for (unsigned i = 0; i < size; i++) {
		text += hex[digest[i] >> 4];
		text += hex[digest[i] & 15];
	}
	return text;
}

} // namespace nda::perf
