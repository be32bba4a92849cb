// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/tools/perf/histogram.h"

namespace nda::perf {

void Histogram::merge(const Histogram &other)
{
	for (size_t i = 0; i < counts_.size(); i++)
		counts_[i] += other.counts_[i];
	total_ += other.total_;
}

uint64_t Histogram::upper_bound(uint32_t bucket)
{
	if (bucket < 2 * sub_buckets)
		return bucket;
	uint32_t shift = bucket / sub_buckets - 1;
	uint64_t first = uint64_t(bucket - shift * sub_buckets) << shift;
	return first + (uint64_t(1) << shift) - 1;
}

uint64_t Histogram::percentile(uint32_t percent) const
{
	if (total_ == 0)
		return 0;
	uint64_t rank = (total_ * percent + 99) / 100;
	uint64_t seen = 0;
	for (uint32_t i = 0; i < counts_.size(); i++) {
		seen += counts_[i];
		if (seen >= rank && seen != 0)
			return upper_bound(i);
	}
	return upper_bound(uint32_t(counts_.size()) - 1);
}

} // namespace nda::perf
