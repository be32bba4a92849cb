/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <tests/bench/data_plane_paths.h>

namespace nda::bench {

namespace {

template <class Device>
__attribute__((always_inline)) inline enum nda_status put_batch(
	Device *device, uint32_t pe, uint64_t dst, uint64_t src, uint64_t n)
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

} // namespace

#define NDA_BENCH_BODIES(name, engine)                                                     \
	extern "C" __attribute__((noinline)) enum nda_status bench_put8_##name(            \
		DeviceOf<engine> *device, uint32_t pe, uint64_t dst, uint64_t src,         \
		uint64_t n)                                                                \
	{                                                                                  \
		return device->put_nbi(pe, dst, src, n);                                   \
	}                                                                                  \
	extern "C" __attribute__((noinline)) enum nda_status bench_put8_batch16_##name(    \
		DeviceOf<engine> *device, uint32_t pe, uint64_t dst, uint64_t src,         \
		uint64_t n)                                                                \
	{                                                                                  \
		return put_batch(device, pe, dst, src, n);                                 \
	}                                                                                  \
	extern "C" __attribute__((noinline)) enum nda_status bench_drain_##name(           \
		DeviceOf<engine> *device, uint32_t pe)                                     \
	{                                                                                  \
		return device->quiet(pe);                                                  \
	}                                                                                  \
	extern "C" __attribute__((noinline)) enum nda_status bench_put8_shared_##name(     \
		SharedOf<engine> *device, uint32_t pe, uint64_t dst, uint64_t src,         \
		uint64_t n)                                                                \
	{                                                                                  \
		return device->put_nbi(pe, dst, src, n);                                   \
	}

NDA_BENCH_BODIES(hns1825, aiv::hns1825::Engine)
NDA_BENCH_BODIES(in_die, aiv::in_die::Engine)
NDA_BENCH_BODIES(rxe, aiv::rxe::Engine)
NDA_BENCH_BODIES(udma, aiv::udma::Engine)
NDA_BENCH_BODIES(xscale, aiv::xscale::Engine)

} // namespace nda::bench
