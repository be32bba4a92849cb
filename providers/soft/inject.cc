// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "providers/soft/inject.h"

#include "providers/soft/error.h"

#include <string_view>

namespace nda::soft {
namespace {

constexpr uint32_t max_number = 1000 * 1000 * 1000;

bool parse_number(std::string_view text, uint32_t &number)
{
	uint64_t value = 0;
	for (char c : text) {
		if (c < '0' || c > '9')
			return false;
		value = value * 10 + static_cast<uint64_t>(c - '0');
		if (value > max_number)
			return false;
	}
	number = static_cast<uint32_t>(value);
	return value > 0;
}

int parse_fault(std::string_view token, Faults &faults)
{
	static const struct {
		std::string_view name;
		uint32_t Faults::*number;
	} known[] = {
		{"remote-access-error", &Faults::remote_access_every},
		{"retry-exceeded", &Faults::retry_exceeded_every},
		{"drop", &Faults::drop_every},
		{"delay-us", &Faults::delay_us},
	};
	size_t colon = token.find(':');
	std::string_view name = token.substr(0, colon);
	for (const auto &k : known) {
		if (k.name != name)
			continue;
		if (colon != token.npos &&
			parse_number(token.substr(colon + 1), faults.*k.number))
			return 0;
		return fail(-EINVAL, "fault injection: '%.*s' wants a number from 1 to %u",
			static_cast<int>(token.size()), token.data(), max_number);
	}
	return fail(-EINVAL,
		"fault injection: '%.*s' is not known (remote-access-error:N, "
		"retry-exceeded:N, "
		"drop:N, delay-us:N)",
		static_cast<int>(token.size()), token.data());
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

} // namespace nda::soft
