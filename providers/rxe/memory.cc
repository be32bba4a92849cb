// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "providers/rxe/memory.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <fcntl.h>
#include <unistd.h>

#include "providers/rxe/error.h"

namespace nda::rxe {
namespace {

using Sample = std::array<uint8_t, 64>;

// Reads memory that may not be there: where it is not, the kernel says so.
class Probe {
public:
	Probe() { open_ = pipe2(fds_, O_CLOEXEC | O_NONBLOCK) == 0; }
	~Probe()
	{
		if (open_) {
			close(fds_[0]);
			close(fds_[1]);
		}
	}
	Probe(const Probe &) = delete;
	Probe &operator=(const Probe &) = delete;

	bool is_open() const { return open_; }
	bool read_from(const void *addr, Sample &out) const
	{
		const ssize_t size = static_cast<ssize_t>(out.size());
		return write(fds_[1], addr, out.size()) == size &&
			read(fds_[0], out.data(), out.size()) == size;
	}

private:
	int fds_[2] = {-1, -1};
	bool open_ = false;
};

bool is_host_memory(const ibv_extend_ops &ops, void *addr, const Probe &probe)
{
	for (const int value : {0x5a, 0xa5}) {
		Sample seen = {};
		(ops.memset_s)(addr, value, seen.size());
		if (!probe.read_from(addr, seen) ||
			!std::all_of(seen.begin(), seen.end(),
				[value](uint8_t byte) { return byte == value; }))
			return false;
	}
	return true;
}

} // namespace

int require_shared_memory(const ibv_extend_ops *ops, const char *what)
{
	if (!ops || !ops->alloc || !ops->free || !(ops->memset_s))
		return fail(-EINVAL, "%s: ops has no alloc, free or memset_s", what);
	const Probe probe;
	if (!probe.is_open())
		return fail(-errno, "%s: pipe: errno %d", what, errno);
	void *addr = ops->alloc(std::tuple_size<Sample>::value);
	if (!addr)
		return fail(-ENOMEM, "%s: ops->alloc gave no memory", what);
	const bool shared = is_host_memory(*ops, addr, probe);
	ops->free(addr);
	if (!shared)
		return fail(-EOPNOTSUPP,
			"%s: the NPU's memory is not the host's at the same address, and "
			"Soft-RoCE has its queues in host memory",
			what);
	return 0;
}

} // namespace nda::rxe
