// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Turns in which every PE is paired with every other one, once.
#ifndef NDA_PERF_PAIRS_H
#define NDA_PERF_PAIRS_H

#include <cstdint>

namespace nda::perf {

// How many turns that takes.
constexpr uint32_t pair_turns(uint32_t n_pes)
{
	return n_pes % 2 == 0 ? n_pes - 1 : n_pes;
}

// Whom a PE is paired with; itself: with nobody. As in a tournament of an odd number of
// players, those are paired whose numbers add up to the turn's; where the number is even,
// the last one takes whoever would be alone.
constexpr uint32_t pair_peer(uint32_t n_pes, uint32_t turn, uint32_t pe)
{
	const uint32_t odd = pair_turns(n_pes);
	const uint32_t alone =
		uint32_t(uint64_t(turn) * ((odd + 1) / 2) % odd); // alone * 2 = turn
	if (pe == odd)
		return alone;
	if (pe == alone)
		return n_pes % 2 == 0 ? odd : pe;
	return (turn + odd - pe) % odd;
}

} // namespace nda::perf

#endif
