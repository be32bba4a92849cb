// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/nda/ascend_api.h"

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <string>
#include <vector>

#include "lib/nda/error.h"
#include "lib/nda/log.h"

namespace nda {
namespace {

// ---- Libraries -------------------------------------------------------------------------

// The runtime has a new name beside its old one, which newer packages may lack.
const std::vector<const char *> runtime_names = {"libascendcl.so", "libacl_rt.so"};
const std::vector<const char *> driver_names = {"libascend_hal.so"};

// Where packages install by default, which is unverified for some versions.
const std::vector<const char *> runtime_places = {
	"/usr/local/Ascend/cann/lib64/", "/usr/local/Ascend/ascend-toolkit/latest/lib64/"};
const std::vector<const char *> driver_places = {
	"/usr/local/Ascend/driver/lib64/driver/", "/usr/local/Ascend/driver/lib64/"};

std::vector<std::string> directories_of(const char *variable, const char *below)
{
	const char *value = secure_getenv(variable);
	std::vector<std::string> found;
	std::string rest = value ? value : "";
	while (!rest.empty()) {
		const size_t end = rest.find(':');
		const std::string one = rest.substr(0, end);
		if (!one.empty())
			found.push_back(one + below);
		rest = end == std::string::npos ? "" : rest.substr(end + 1);
	}
	return found;
}

// RTLD_NOW: a lazily bound symbol that is missing would end the process.
void *try_open(const std::string &file, int flags, std::string &reasons)
{
	void *handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | flags);
	if (!handle && !(flags & RTLD_NOLOAD))
		reasons += (reasons.empty() ? "" : "; ") + std::string(dlerror());
	return handle;
}

// The explicit path comes first; then what the process has, since contexts live in it.
void *open_library(const std::vector<const char *> &names,
	const std::vector<const char *> &places, std::string &reasons)
{
	for (const std::string &directory : directories_of("NDA_ASCEND_PATH", "/"))
		for (const char *name : names)
			if (void *handle = try_open(directory + name, 0, reasons))
				return handle;
	for (const char *name : names)
		if (void *handle = try_open(name, RTLD_NOLOAD, reasons))
			return handle;
	for (const char *name : names)
		if (void *handle = try_open(name, 0, reasons))
			return handle;
	std::vector<std::string> usual = directories_of("ASCEND_HOME_PATH", "/lib64/");
	usual.insert(usual.end(), places.begin(), places.end());
	for (const std::string &directory : usual)
		for (const char *name : names)
			if (void *handle = try_open(directory + name, 0, reasons))
				return handle;
	return nullptr;
}

// A library that is closed again unless everything was found.
class Library {
public:
	Library() = default;
	Library(const Library &) = delete;
	Library &operator=(const Library &) = delete;
	~Library()
	{
		if (handle_)
			dlclose(handle_);
	}

	int open(const char *what, const std::vector<const char *> &names,
		const std::vector<const char *> &places)
	{
		std::string reasons;
		name_ = names[0];
		handle_ = open_library(names, places, reasons);
		return handle_ ? 0 : fail(-ENODEV, "%s: %s", what, reasons.c_str());
	}
	template <class Function>
	void optional(Function *&function, const char *symbol)
	{
		function = reinterpret_cast<Function *>(dlsym(handle_, symbol));
	}
	template <class Function>
	int required(Function *&function, const char *symbol)
	{
		optional(function, symbol);
		return function ? 0
				: fail(-EPROTONOSUPPORT, "%s: it has no function %s", name_,
					  symbol);
	}
	void keep() { handle_ = nullptr; }

private:
	const char *name_ = "";
	void *handle_ = nullptr;
};

int bind_runtime(Library &lib, AscendApi &api)
{
	int rc = lib.open("Ascend runtime", runtime_names, runtime_places);
	if (!rc)
		rc = lib.required(api.get_current_context, "aclrtGetCurrentContext");
	if (!rc)
		rc = lib.required(api.get_device, "aclrtGetDevice");
	if (!rc)
		rc = lib.required(api.malloc, "aclrtMalloc");
	if (!rc)
		rc = lib.required(api.free, "aclrtFree");
	if (!rc)
		rc = lib.required(api.memcpy, "aclrtMemcpy");
	if (!rc)
		rc = lib.required(api.memset, "aclrtMemset");
	if (rc)
		return rc;
	lib.optional(api.get_version, "aclrtGetVersion");
	lib.optional(api.get_logic_id, "aclrtGetLogicDevIdByUserDevId");
	lib.optional(api.get_address_range, "aclrtMemGetAddressRange");
	lib.optional(api.get_pointer_attributes, "aclrtPointerGetAttributes");
	lib.optional(api.get_recent_error, "aclGetRecentErrMsg");
	lib.optional(api.create_stream, "aclrtCreateStream");
	lib.optional(api.destroy_stream, "aclrtDestroyStream");
	lib.optional(api.synchronize_stream, "aclrtSynchronizeStream");
	lib.optional(api.synchronize_stream_timeout, "aclrtSynchronizeStreamWithTimeout");
	lib.optional(api.launch_kernel, "aclrtLaunchKernelWithHostArgs");
	return 0;
}

int bind_driver(Library &lib, AscendApi &api)
{
	int rc = lib.open("Ascend driver", driver_names, driver_places);
	if (!rc)
		rc = lib.required(api.host_register, "halHostRegister");
	if (!rc)
		rc = lib.required(api.host_unregister, "halHostUnregisterEx");
	if (!rc)
		rc = lib.required(api.get_device_info, "halGetDeviceInfo");
	if (rc)
		return rc;
	lib.optional(api.host_capabilities, "halHostRegisterCapabilities");
	lib.optional(api.map_resource, "halResAddrMapV2");
	lib.optional(api.unmap_resource, "halResAddrUnmapV2");
	lib.optional(api.register_segment, "halMemRegUbSegment");
	lib.optional(api.unregister_segment, "halMemUnRegUbSegment");
	lib.optional(api.get_memory_attribute, "drvMemGetAttribute");
	return 0;
}

// The major version whose prototypes are known. A runtime that cannot tell is taken as is.
int check_version(const AscendApi &api)
{
	int32_t major = 0, minor = 0, patch = 0;
	if (!api.get_version)
		return 0;
	const int error = api.get_version(&major, &minor, &patch);
	if (error)
		return fail_acl(api, error, "Ascend runtime: its version");
	if (major == 1)
		return 0;
	return fail(-EPROTONOSUPPORT,
		"Ascend runtime: it is of version %d.%d.%d, known is 1.x", major, minor,
		patch);
}

// ---- Errors ----------------------------------------------------------------------------

struct Known {
	int error;
	int code;
	const char *text;
};

constexpr Known acl_errors[] = {
	{100000, -EINVAL, "invalid parameter"},
	{100001, -ENXIO, "the runtime is not initialised"},
	{100039, -EOPNOTSUPP, "a stub library, not the runtime"},
	{107000, -EINVAL, "invalid parameter"},
	{107001, -ENODEV, "no such device"},
	{acl::error_no_context, -ENXIO, "no current context"},
	{107003, -EINVAL, "stream of another context"},
	{107008, -EINVAL, "not aligned"},
	{107016, -EINVAL, "wrong type of memory"},
	{107017, -EINVAL, "invalid handle"},
	{107019, -ETIMEDOUT, "time-out"},
	{107020, -ETIMEDOUT, "time-out"},
	{207000, -EOPNOTSUPP, "not supported"},
	{207001, -ENOMEM, "out of memory"},
	{207004, -ENODEV, "no device"},
	{207005, -ENOSPC, "out of resources"},
	{207006, -EPERM, "no permission"},
	{207018, -ENOMEM, "out of device memory"},
	{207020, -ETIMEDOUT, "time-out of the driver"},
	{507014, -EIO, "a core ran into its time-out"},
	{507015, -EIO, "exception of a core"},
	{507016, -EIO, "trap of a core"},
	{507034, -EIO, "a vector core ran into its time-out"},
	{507035, -EIO, "exception of a vector core"},
	{507036, -EIO, "trap of a vector core"},
	{507046, -ETIMEDOUT, "time-out of a stream"},
	{507053, -EIO, "device memory error"},
	{507054, -EIO, "uncorrectable error of HBM"},
};

constexpr Known hal_errors[] = {
	{1, -ENODEV, "no device"},
	{2, -ENODEV, "invalid device"},
	{3, -EINVAL, "invalid value"},
	{4, -EINVAL, "invalid handle"},
	{6, -ENOMEM, "out of memory"},
	{8, -EINVAL, "invalid parameter"},
	{9, -ENXIO, "not initialised"},
	{11, -ENOENT, "it does not exist"},
	{12, -EEXIST, "it is registered already"},
	{13, -EBUSY, "busy"},
	{14, -ENOSPC, "out of resources"},
	{16, -ETIMEDOUT, "time-out"},
	{37, -ENOSPC, "over a limit"},
	{40, -ENOMEM, "out of memory"},
	{44, -ESRCH, "no process on the device"},
	{46, -EPERM, "not permitted"},
	{51, -EAGAIN, "try again"},
	{79, -EFAULT, "bad address"},
	{87, -EBUSY, "occupied"},
	{88, -EACCES, "no permission"},
	{hal::error_not_support, -EOPNOTSUPP, "not supported"},
};

template <size_t n>
Known find(const Known (&table)[n], int error)
{
	for (const Known &known : table)
		if (known.error == error)
			return known;
	return {error, -EIO, "see the library's documentation"};
}

} // namespace

int load_ascend(AscendApi &api)
{
	AscendApi found = {};
	Library runtime, driver;
	int rc = bind_runtime(runtime, found);
	if (!rc)
		rc = check_version(found);
	if (!rc)
		rc = bind_driver(driver, found);
	if (rc)
		return rc;
	runtime.keep();
	driver.keep();
	api = found;
	return 0;
}

int fail_acl(const AscendApi &api, int error, const char *format, ...)
{
	char message[256];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);
	const Known known = find(acl_errors, error);
	const char *more = api.get_recent_error ? api.get_recent_error() : nullptr;
	const bool has_more = more && *more;
	return fail(known.code, "%s: ACL error %d, %s%s%s", message, error, known.text,
		has_more ? ": " : "", has_more ? more : "");
}

int fail_hal(int error, const char *format, ...)
{
	char message[256];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);
	const Known known = find(hal_errors, error);
	return fail(known.code, "%s: HAL error %d, %s", message, error, known.text);
}

} // namespace nda
