// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Facts and problems as text for people, or as one JSON document.
#ifndef NDA_INFO_REPORT_H
#define NDA_INFO_REPORT_H

#include <string>
#include <vector>

#include "lib/tools/info/checks.h"
#include "lib/tools/info/facts.h"

namespace nda::info {

// device: as in check(); what is not about it is left out.
std::string facts_text(const Facts &facts, const std::string &device);
std::string problems_text(const std::vector<Problem> &problems);

// problems: nullptr if nobody asked for them.
std::string json_text(const Facts &facts, const std::string &device,
	const std::vector<Problem> *problems);

} // namespace nda::info

#endif
