// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The exported functions, but for those of version.cc. Argument checks and errno are made
// here; no lock is held where a driver is called.
#include "lib/ibv_extend/device_name.h"
#include "lib/ibv_extend/log.h"
#include "lib/ibv_extend/registry.h"

#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

namespace nda::extend {
namespace {

using Ops = ibv_context_extend_ops;

// Runs what may need memory; out of it, gives what the caller names.
template <class Result, class Body>
Result guarded(Result no_memory, Body body) noexcept
{
	try {
		return body();
	} catch (const std::bad_alloc &) {
		errno = ENOMEM;
		return no_memory;
	}
}

int refuse(const char *call, int error, const char *why) noexcept
{
	guarded(0, [&] {
		warn(std::string(call) + ": " + why);
		return 0;
	});
	return -error;
}

bool is_usable(const ibv_context_extend *context)
{
	return context && context->context;
}

// open

const Driver *find_driver(const ibv_device *device)
{
	std::string label = device_label(device);
	std::string name = verbs_driver_name(device);
	if (name.empty()) {
		warn("no available ops for open extend context: device " + label +
			" does not tell its verbs driver's name");
		errno = ENODEV;
		return nullptr;
	}
	Registry &registry = Registry::get();
	if (const Driver *driver = registry.find(name))
		return driver;
	Registry::Search search = registry.load_drivers(system_paths());
	if (const Driver *driver = registry.find(name))
		return driver;
	warn("no available ops for open extend context: device " + label +
		", verbs driver " + name + ": no extension driver registered that name" +
		(search == Registry::Search::nested
				? " before a driver being loaded asked for it"
				: "; name its file in IBV_EXTEND_DRIVERS or " +
					system_paths().config_directory));
	errno = search == Registry::Search::nested ? EBUSY : ENODEV;
	return nullptr;
}

// Why a context cannot be used: 0, or an errno, with the reason printed.
int judge(const ibv_context_extend &opened, const ibv_context *asked, const Driver &driver)
{
	std::string label = std::string("driver ") + driver.name;
	if (!opened.ops) {
		complain(label + " opened a context without operations");
		return EPROTONOSUPPORT;
	}
	int version = opened.ops->version;
	if (version == IBV_EXTEND_DRIVER_VERSION_UNUSED) {
		complain(label + " does not set the version of its operations");
		return EPROTONOSUPPORT;
	}
	if (version < IBV_EXTEND_DRIVER_VERSION_V1 ||
		version > IBV_EXTEND_DRIVER_VERSION_MAX) {
		complain(label + " has operations of version " + std::to_string(version) +
			"; this library knows 1 to " +
			std::to_string(IBV_EXTEND_DRIVER_VERSION_MAX));
		return EPROTONOSUPPORT;
	}
	if (!opened.context)
		warn(label + " opened a context without verbs context: it cannot be used");
	else if (opened.context != asked) {
		warn(label + " opened a context of another device");
		return EPROTO;
	}
	return 0;
}

// Releases a context that its opener will not get.
class Release {
public:
	Release(ibv_context_extend *context, const Driver *driver)
		: context_(context), driver_(driver)
	{}
	~Release()
	{
		if (context_ && driver_->free_context)
			driver_->free_context(context_);
	}
	Release(const Release &) = delete;
	Release &operator=(const Release &) = delete;
	ibv_context_extend *keep() { return std::exchange(context_, nullptr); }

private:
	ibv_context_extend *context_;
	const Driver *const driver_;
};

ibv_context_extend *open_context(ibv_context *context)
{
	int before = errno;
	if (!context || !context->device) {
		warn("ibv_open_extend: no context, or a context without device");
		errno = EINVAL;
		return nullptr;
	}
	const Driver *driver = find_driver(context->device);
	if (!driver)
		return nullptr;

	errno = 0;
	ibv_context_extend *opened = driver->alloc_context(context);
	if (!opened) {
		if (!errno)
			errno = EIO;
		warn("ibv_open_extend: device " + device_label(context->device) +
			": driver " + driver->name +
			" gave no context: " + strerror(errno));
		return nullptr;
	}
	int error;
	{
		Release release(opened, driver);
		error = judge(*opened, context, *driver);
		if (!error) {
			Registry::get().context_opened(opened, driver);
			release.keep();
		}
	}
	errno = error ? error : before;
	return error ? nullptr : opened;
}

// the calls to drivers

template <class Object, class Attr>
Object *create(const char *call, ibv_context_extend *context, Attr *attr,
	Object *(*Ops::*op)(ibv_context *, Attr *)) noexcept
{
	if (!is_usable(context) || !attr) {
		errno = -refuse(call, EINVAL, "an argument is NULL");
		return nullptr;
	}
	if (!context->ops || !(context->ops->*op)) {
		errno = -refuse(call, EOPNOTSUPP, "the driver lacks the operation");
		return nullptr;
	}
	int before = errno;
	errno = 0;
	Object *object = (context->ops->*op)(context->context, attr);
	if (object) {
		errno = before;
		return object;
	}
	if (!errno)
		errno = EIO;
	int error = errno;
	guarded(0, [&] {
		warn(std::string(call) + ": device " +
			device_label(context->context->device) +
			": the driver gave nothing: " + strerror(error));
		return 0;
	});
	errno = error;
	return nullptr;
}

template <class Object>
int destroy(const char *call, ibv_context_extend *context, Object *object,
	int (*Ops::*op)(Object *)) noexcept
{
	if (!is_usable(context) || !object)
		return refuse(call, EINVAL, "an argument is NULL");
	if (!context->ops || !(context->ops->*op))
		return refuse(call, EOPNOTSUPP, "the driver lacks the operation");
	return (context->ops->*op)(object);
}

// Of an operation that came with a version. 0 or a negative errno.
int check_version(const char *call, const ibv_context_extend *context, int version) noexcept
{
	if (!context->ops)
		return refuse(call, EOPNOTSUPP, "the driver lacks the operation");
	if (context->ops->version < version)
		return refuse(call, EOPNOTSUPP,
			"the driver's version is older than the operation");
	return 0;
}

int access_qp(const char *call, ibv_context_extend *context, ibv_qp_attr_extend *attr,
	int mask, int (*Ops::*op)(ibv_context *, ibv_qp_attr_extend *, int)) noexcept
{
	if (!is_usable(context) || !attr)
		return refuse(call, EINVAL, "an argument is NULL");
	if (int error = check_version(call, context, IBV_EXTEND_DRIVER_VERSION_V2))
		return error;
	if (mask & ~(IBV_QP_ATTR_EXTEND_MAX - 1))
		return refuse(call, EOPNOTSUPP, "the mask has unknown bits");
	if (!(context->ops->*op))
		return refuse(call, EOPNOTSUPP, "the driver lacks the operation");
	return (context->ops->*op)(context->context, attr, mask);
}

} // namespace
} // namespace nda::extend

using namespace nda::extend;

extern "C" {

void verbs_register_driver_extend(const verbs_device_extend_ops *ops) noexcept
{
	guarded(0, [&] {
		Registry::get().add(ops);
		return 0;
	});
}

ibv_context_extend *ibv_open_extend(ibv_context *context) noexcept
{
	return guarded<ibv_context_extend *>(
		nullptr, [&] { return open_context(context); });
}

int ibv_close_extend(ibv_context_extend *context) noexcept
{
	if (!context)
		return -EINVAL;
	const Driver *driver;
	if (int error = Registry::get().context_closed(context, driver))
		return error;
	if (driver->free_context)
		driver->free_context(context);
	return 0;
}

int ibv_query_device_extend(
	ibv_context_extend *context, ibv_device_attr_extend *attr) noexcept
{
	if (!is_usable(context) || !attr)
		return refuse(__func__, EINVAL, "an argument is NULL");
	if (!context->ops || !context->ops->query_device)
		return refuse(__func__, EOPNOTSUPP, "the driver lacks the operation");
	attr->ext_cap = 0;
	return context->ops->query_device(context->context, attr);
}

ibv_qp_extend *ibv_create_qp_extend(
	ibv_context_extend *context, ibv_qp_init_attr_extend *init_attr) noexcept
{
	return create(__func__, context, init_attr, &Ops::create_qp);
}

ibv_cq_extend *ibv_create_cq_extend(
	ibv_context_extend *context, ibv_cq_init_attr_extend *init_attr) noexcept
{
	return create(__func__, context, init_attr, &Ops::create_cq);
}

ibv_srq_extend *ibv_create_srq_extend(
	ibv_context_extend *context, ibv_srq_init_attr_extend *init_attr) noexcept
{
	return create(__func__, context, init_attr, &Ops::create_srq);
}

int ibv_destroy_qp_extend(ibv_context_extend *context, ibv_qp_extend *qp) noexcept
{
	return destroy(__func__, context, qp, &Ops::destroy_qp);
}

int ibv_destroy_cq_extend(ibv_context_extend *context, ibv_cq_extend *cq) noexcept
{
	return destroy(__func__, context, cq, &Ops::destroy_cq);
}

int ibv_destroy_srq_extend(ibv_context_extend *context, ibv_srq_extend *srq) noexcept
{
	return destroy(__func__, context, srq, &Ops::destroy_srq);
}

int ibv_modify_qp_extend(
	ibv_context_extend *context, ibv_qp_attr_extend *attr, int attr_mask) noexcept
{
	return access_qp(__func__, context, attr, attr_mask, &Ops::modify_qp);
}

int ibv_query_qp_extend(
	ibv_context_extend *context, ibv_qp_attr_extend *attr, int attr_mask) noexcept
{
	return access_qp(__func__, context, attr, attr_mask, &Ops::query_qp);
}

int ibv_query_qp_supported_hyroce_feature(ibv_context_extend *context, ibv_qp *qp,
	uint32_t sl, uint32_t tc, ibv_hyroce_feature *feature) noexcept
{
	if (!is_usable(context) || !qp || !feature)
		return refuse(__func__, EINVAL, "an argument is NULL");
	if (int error = check_version(__func__, context, IBV_EXTEND_DRIVER_VERSION_V3))
		return error;
	if (!context->ops->query_qp_supported_hyroce_feature)
		return refuse(__func__, EOPNOTSUPP, "the driver lacks the operation");
	return context->ops->query_qp_supported_hyroce_feature(
		context->context, qp, sl, tc, feature);
}

int ibv_nego_qp_hyroce_feature(ibv_context_extend *context, ibv_qp *qp,
	const ibv_hyroce_feature *in, ibv_hyroce_feature *out,
	uint32_t *need_more_nego) noexcept
{
	if (!is_usable(context) || !qp || !in || !out || !need_more_nego)
		return refuse(__func__, EINVAL, "an argument is NULL");
	if (int error = check_version(__func__, context, IBV_EXTEND_DRIVER_VERSION_V3))
		return error;
	if (!context->ops->nego_qp_hyroce_feature)
		return refuse(__func__, EOPNOTSUPP, "the driver lacks the operation");
	return context->ops->nego_qp_hyroce_feature(
		context->context, qp, in, out, need_more_nego);
}
}
