// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "providers/soft/inject.h"

#include "lib/common/clock.h"
#include "providers/soft/error.h"

#include <string>
#include <string_view>

namespace nda::soft {
namespace {

constexpr uint32_t max_number = 1000 * 1000 * 1000;
constexpr uint32_t max_window = 64;

struct Known {
	std::string_view name;
	uint32_t Faults::*number;
	uint32_t most;
};

constexpr Known known[] = {
	{"remote-access-error", &Faults::remote_access_every, max_number},
	{"retry-exceeded", &Faults::retry_exceeded_every, max_number},
	{"rnr", &Faults::rnr_every, max_number},
	{"drop", &Faults::drop_every, max_number},
	{"delay-us", &Faults::delay_us, max_number},
	{"reorder", &Faults::reorder, max_window},
	{"seed", &Faults::seed, max_number},
	{"cq-overrun", &Faults::cq_overrun_at, max_number},
	{"link-down", &Faults::link_down_at, max_number},
	{"link-down-us", &Faults::link_down_us, max_number},
};

bool parse_number(std::string_view text, uint32_t most, uint32_t &number)
{
	uint64_t value = 0;
	for (char c : text) {
		if (c < '0' || c > '9')
			return false;
		value = value * 10 + static_cast<uint64_t>(c - '0');
		if (value > most)
			return false;
	}
	number = static_cast<uint32_t>(value);
	return value > 0;
}

int parse_fault(std::string_view token, Faults &faults)
{
	size_t colon = token.find(':');
	std::string_view name = token.substr(0, colon);
	std::string names;
	for (const Known &k : known) {
		names += names.empty() ? "" : ", ";
		names += std::string(k.name) + ":N";
		if (k.name != name)
			continue;
		if (colon != token.npos &&
			parse_number(token.substr(colon + 1), k.most, faults.*k.number))
			return 0;
		return fail(-EINVAL, "fault injection: '%.*s' wants a number from 1 to %u",
			static_cast<int>(token.size()), token.data(), k.most);
	}
	return fail(-EINVAL, "fault injection: '%.*s' is not known (%s)",
		static_cast<int>(token.size()), token.data(), names.c_str());
}

} // namespace

int parse_faults(const char *text, Faults &faults)
{
	Faults parsed;
	std::string_view rest = text ? text : "";
	while (!rest.empty()) {
		size_t comma = rest.find(',');
		int rc = parse_fault(rest.substr(0, comma), parsed);
		if (rc)
			return rc;
		if (comma == rest.npos)
			break;
		rest.remove_prefix(comma + 1);
		if (rest.empty())
			return parse_fault(rest, parsed);
	}
	faults = parsed;
	return 0;
}

Link::Link(const Faults &faults)
	: down_at_(faults.link_down_at),
	  down_at_ns_(
		  faults.link_down_us ? now_ns() + uint64_t{faults.link_down_us} * 1000 : 0)
{}

void Link::count_request()
{
	if (requests_.fetch_add(1) + 1 == down_at_)
		is_down_ = true;
}

bool Link::down()
{
	if (down_at_ns_ && now_ns() >= down_at_ns_)
		is_down_ = true;
	return is_down_;
}

} // namespace nda::soft
