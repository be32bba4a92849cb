/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A 32-bit program: the calls of /dev/nda have one layout, so that it needs no other code.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <uapi/nda.h>

_Static_assert(sizeof(void *) == 4, "this is for a 32-bit process");

static char memory[8192];

static int fail(const char *what)
{
	printf("FAIL: %s: errno %d\n", what, errno);
	return 1;
}

int main(int argc, char **argv)
{
	struct nda_ioc_query query = {.what = NDA_QUERY_ABI};
	struct nda_ioc_host_pin pin = {.len = 5000, .access = NDA_ACCESS_READ};
	struct nda_ioc_status status = {};
	struct nda_ioc_destroy destroy = {};
	unsigned int domain, bus, device, function;
	int fd = open("/dev/nda", O_RDWR);

	if (argc != 2 ||
		sscanf(argv[1], "%x:%x:%x.%x", &domain, &bus, &device, &function) != 4)
		return fail("usage: caller32 BDF");
	if (fd < 0)
		return fail("open");
	if (ioctl(fd, NDA_IOC_QUERY, &query) != 0 || query.value != NDA_ABI_VERSION)
		return fail("QUERY");
	pin.va = (unsigned long)memory;
	pin.dev.domain = domain;
	pin.dev.bus = bus;
	pin.dev.devfn = device << 3 | function;
	if (ioctl(fd, NDA_IOC_HOST_PIN, &pin) != 0 || pin.handle == 0)
		return fail("HOST_PIN");
	status.handle = destroy.handle = pin.handle;
	if (ioctl(fd, NDA_IOC_STATUS, &status) != 0 || status.kind != NDA_KIND_PIN ||
		status.state != NDA_STATE_LIVE || status.mappings != 1)
		return fail("STATUS");
	if (ioctl(fd, NDA_IOC_DESTROY, &destroy) != 0)
		return fail("DESTROY");
	pin.va = 0xffffffffu - 100;
	if (ioctl(fd, NDA_IOC_HOST_PIN, &pin) != -1 || errno != EFAULT)
		return fail("HOST_PIN beyond the address space");
	return 0;
}
