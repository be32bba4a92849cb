// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/nda/soft.h"

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <dlfcn.h>
#include <string>

#include "lib/nda/error.h"
#include "lib/nda/log.h"

namespace nda {
namespace {

constexpr char soft_file[] = "libnda_soft.so";

std::atomic<const SoftApi *> test_api;

// "/usr/lib/" for "/usr/lib/libnda.so.1"; empty if unknown.
std::string own_directory()
{
	static const char here = 0;
	Dl_info info = {};
	if (!dladdr(&here, &info) || !info.dli_fname)
		return {};
	const std::string path = info.dli_fname;
	const size_t slash = path.rfind('/');
	return slash == std::string::npos ? std::string() : path.substr(0, slash + 1);
}

} // namespace

// RTLD_NOW: it may not be linked to libibv_extend, and a lazily bound symbol that is
// missing would end the process. dlopen counts and returns the same handle again, so no
// lock is needed, and none is held while constructors run.
void *load_beside(const char *file, std::string &reasons)
{
	const std::string directory = own_directory();
	if (!directory.empty()) {
		void *handle = dlopen((directory + file).c_str(), RTLD_NOW | RTLD_LOCAL);
		if (handle)
			return handle;
		reasons = dlerror();
	}
	void *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		reasons += (reasons.empty() ? "" : "; ") + std::string(dlerror());
	return handle;
}

int load_soft(const SoftApi *&api)
{
	static std::atomic<const SoftApi *> loaded;
	const SoftApi *found = test_api.load(std::memory_order_acquire);
	if (!found)
		found = loaded.load(std::memory_order_acquire);
	if (found) {
		api = found;
		return 0;
	}
	std::string reasons;
	void *handle = load_beside(soft_file, reasons);
	if (!handle)
		return fail(-ENODEV, "soft: %s", reasons.c_str());
	found = static_cast<const SoftApi *>(dlsym(handle, NDA_SOFT_API_SYMBOL));
	if (!found || found->version != NDA_SOFT_API_VERSION ||
		found->size != sizeof(*found)) {
		const int rc = fail(-EPROTONOSUPPORT,
			"soft: %s is of another version: it has %s %u of %u bytes, wanted "
			"is %u of %zu",
			soft_file, NDA_SOFT_API_SYMBOL, found ? found->version : 0,
			found ? found->size : 0, NDA_SOFT_API_VERSION, sizeof(*found));
		dlclose(handle);
		return rc;
	}
	NDA_LOG(LogLevel::info, "soft: loaded %s", soft_file);
	loaded.store(found, std::memory_order_release);
	api = found;
	return 0;
}

int fail_soft(const SoftApi &api, int code, const char *format, ...)
{
	char message[256];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);
	if (code >= 0)
		code = -EIO;
	const char *why = api.error_detail ? api.error_detail() : nullptr;
	return fail(code, "%s: %s", message, why && *why ? why : errno_text(code));
}

void set_soft_for_test(const SoftApi *api)
{
	test_api.store(api, std::memory_order_release);
}

} // namespace nda
