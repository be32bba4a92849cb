// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <nda/channel.h>
#include <nda/npu.h>

#include "lib/nda/handles.h"

using namespace nda;

NDA_API nda_npu *nda_npu_open(
	const char *name, const nda_npu_attr *attr, size_t attr_size) noexcept
{
	return guard_pointer<nda_npu>([&](nda_npu *&out) {
		std::shared_ptr<Npu> npu;
		const int rc = Npu::open(name, attr, attr_size, npu);
		if (!rc)
			out = new nda_npu(std::move(npu));
		return rc;
	});
}

NDA_API int nda_npu_close(nda_npu *npu) noexcept
{
	return guard([&] {
		auto object = lookup(npu);
		if (!object)
			return -EINVAL;
		if ((*object)->busy())
			return fail(-EBUSY, "%s: close: a kernel runs", (*object)->name());
		delete npu;
		return 0;
	});
}

NDA_API int nda_npu_alloc(nda_npu *npu, uint64_t size_bytes, uint64_t *addr) noexcept
{
	return guard([&] {
		auto object = lookup(npu);
		if (!object)
			return -EINVAL;
		if (!addr)
			return fail(-EINVAL, "npu: alloc: addr is NULL");
		return (*object)->alloc(size_bytes, *addr);
	});
}

NDA_API int nda_npu_free(nda_npu *npu, uint64_t addr) noexcept
{
	return guard([&] {
		auto object = lookup(npu);
		return object ? (*object)->free(addr) : -EINVAL;
	});
}

NDA_API int nda_npu_write(
	nda_npu *npu, uint64_t dst, const void *src, uint64_t size_bytes) noexcept
{
	return guard([&] {
		auto object = lookup(npu);
		return object ? (*object)->write(dst, src, size_bytes) : -EINVAL;
	});
}

NDA_API int nda_npu_read(
	nda_npu *npu, void *dst, uint64_t src, uint64_t size_bytes) noexcept
{
	return guard([&] {
		auto object = lookup(npu);
		return object ? (*object)->read(dst, src, size_bytes) : -EINVAL;
	});
}

NDA_API int nda_npu_memset(
	nda_npu *npu, uint64_t dst, int value, uint64_t size_bytes) noexcept
{
	return guard([&] {
		auto object = lookup(npu);
		return object ? (*object)->memset(dst, value, size_bytes) : -EINVAL;
	});
}

NDA_API const ibv_extend_ops *nda_npu_ops(nda_npu *npu) noexcept
{
	return guard_pointer<const ibv_extend_ops>([&](const ibv_extend_ops *&out) {
		auto object = lookup(npu);
		if (!object)
			return -EINVAL;
		out = (*object)->ops();
		return 0;
	});
}

NDA_API const ibv_extend_ops *nda_npu_ops_of(nda_npu *npu, uint32_t dma_mode) noexcept
{
	return guard_pointer<const ibv_extend_ops>([&](const ibv_extend_ops *&out) {
		auto object = lookup(npu);
		if (!object)
			return -EINVAL;
		if (dma_mode != NDA_DMA_PCIE && dma_mode != NDA_DMA_INDEPENDENT)
			return fail(-EINVAL, "%s: callbacks for dma_mode %u",
				(*object)->name(), dma_mode);
		out = (*object)->ops(dma_mode == NDA_DMA_INDEPENDENT
				? QUEUE_BUF_DMA_MODE_INDEP_UB
				: QUEUE_BUF_DMA_MODE_DEFAULT);
		return 0;
	});
}

NDA_API int nda_npu_launch(
	nda_npu *npu, nda_kernel_fn fn, void *arg, uint32_t n_cores) noexcept
{
	return guard([&] {
		auto object = lookup(npu);
		return object ? (*object)->launch(fn, arg, n_cores) : -EINVAL;
	});
}

NDA_API int nda_npu_launch_function(nda_npu *npu, void *function, const void *args,
	uint64_t args_bytes, uint32_t n_cores) noexcept
{
	return guard([&] {
		auto object = lookup(npu);
		return object
			? (*object)->launch_function(function, args, args_bytes, n_cores)
			: -EINVAL;
	});
}

NDA_API int nda_npu_wait(nda_npu *npu, int timeout_ms) noexcept
{
	return guard([&] {
		auto object = lookup(npu);
		return object ? (*object)->wait(timeout_ms) : -EINVAL;
	});
}

NDA_API const char *nda_error_detail() noexcept
{
	return error_detail();
}

NDA_API const char *nda_version() noexcept
{
	return NDA_VERSION;
}
