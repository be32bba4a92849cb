/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <tests/bench/data_plane_paths.h>

namespace nda::bench {

/* batch_size puts with one doorbell. */
template <class D>
static inline enum nda_status put8_batch16(
	D *device, uint32_t pe, uint64_t dst, uint64_t src, uint64_t n)
{
	auto batch = device->batch(pe);

	for (uint32_t i = 0; i < batch_size; i++) {
		enum nda_status status = batch.put_nbi(dst, src, n);

		if (status != NDA_OK)
			return status;
		dst += n;
		src += n;
	}
	return batch.submit();
}

extern "C" __attribute__((noinline)) enum nda_status bench_put8(
	Device *device, uint32_t pe, uint64_t dst, uint64_t src, uint64_t n)
{
	return device->put_nbi(pe, dst, src, n);
}

extern "C" __attribute__((noinline)) enum nda_status bench_put8_rxe(
	RxeDevice *device, uint32_t pe, uint64_t dst, uint64_t src, uint64_t n)
{
	return device->put_nbi(pe, dst, src, n);
}

extern "C" __attribute__((noinline)) enum nda_status bench_put8_batch16(
	Device *device, uint32_t pe, uint64_t dst, uint64_t src, uint64_t n)
{
	return put8_batch16(device, pe, dst, src, n);
}

extern "C" __attribute__((noinline)) enum nda_status bench_drain(
	Device *device, uint32_t pe)
{
	return device->quiet(pe);
}

extern "C" __attribute__((noinline)) enum nda_status bench_put8_xscale(
	XscaleDevice *device, uint32_t pe, uint64_t dst, uint64_t src, uint64_t n)
{
	return device->put_nbi(pe, dst, src, n);
}

extern "C" __attribute__((noinline)) enum nda_status bench_put8_batch16_xscale(
	XscaleDevice *device, uint32_t pe, uint64_t dst, uint64_t src, uint64_t n)
{
	return put8_batch16(device, pe, dst, src, n);
}

extern "C" __attribute__((noinline)) enum nda_status bench_drain_xscale(
	XscaleDevice *device, uint32_t pe)
{
	return device->quiet(pe);
}

} // namespace nda::bench
