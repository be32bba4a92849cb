// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Counts of times, in fixed memory however long a run is. Values below 256 have a bucket
// each; above, each power of two is cut into 128 buckets, so that a percentile is at most
// 1/128 above the exact one.
#ifndef NDA_PERF_HISTOGRAM_H
#define NDA_PERF_HISTOGRAM_H

#include <array>
#include <cstddef>
#include <cstdint>

namespace nda::perf {

// Plain data: PEs exchange it as bytes.
class Histogram {
public:
	static constexpr uint32_t sub_buckets = 128;
	static constexpr uint32_t max_bits = 40; // 18 minutes in ns; longer counts as that

	void add(uint64_t value)
	{
		counts_[bucket(value)]++;
		total_++;
	}
	void merge(const Histogram &other);
	uint64_t total() const { return total_; }

	// The smallest value that at least `percent` of the values don't exceed (nearest
	// rank), as its bucket's upper bound; 0 without values.
	uint64_t percentile(uint32_t percent) const;

private:
	static uint32_t bucket(uint64_t value)
	{
		if (value < 2 * sub_buckets)
			return uint32_t(value);
		if (value >> max_bits)
			value = (uint64_t(1) << max_bits) - 1;
		uint32_t shift = 56 - uint32_t(__builtin_clzll(value));
		return shift * sub_buckets + uint32_t(value >> shift);
	}
	static uint64_t upper_bound(uint32_t bucket);

	std::array<uint64_t, (max_bits - 6) * sub_buckets> counts_{};
	uint64_t total_ = 0;
};

} // namespace nda::perf

#endif
