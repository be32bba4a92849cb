/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The layout of the structures of /dev/nda and /dev/nda_soft and the numbers of their
 * ioctls, which must not depend on the architecture: compiled, never run, for each by
 * uapi_layout_test.sh. Offsets are what the members' sizes add up to without any hole.
 */
#include <stddef.h>

#include <uapi/nda.h>
#include <uapi/nda_soft.h>

#define AT(type, member, offset, bytes)                                                    \
	_Static_assert(offsetof(struct nda_ioc_##type, member) == (offset) &&              \
			sizeof(((struct nda_ioc_##type *)0)->member) == (bytes),           \
		#type "." #member)
#define SIZE(type, bytes) _Static_assert(sizeof(struct nda_ioc_##type) == (bytes), #type)
#define NUMBER(name, number) _Static_assert(NDA_IOC_##name == (number), #name)

AT(bdf, domain, 0, 4);
AT(bdf, bus, 4, 1);
AT(bdf, devfn, 5, 1);
AT(bdf, reserved, 6, 2);
SIZE(bdf, 8);

AT(query, what, 0, 4);
AT(query, index, 4, 4);
AT(query, dev, 8, 8);
AT(query, peer, 16, 8);
AT(query, value, 24, 8);
AT(query, value2, 32, 8);
SIZE(query, 40);

AT(host_pin, va, 0, 8);
AT(host_pin, len, 8, 8);
AT(host_pin, dev, 16, 8);
AT(host_pin, access, 24, 4);
AT(host_pin, flags, 28, 4);
AT(host_pin, handle, 32, 4);
AT(host_pin, reserved, 36, 4);
SIZE(host_pin, 40);

AT(export, va, 0, 8);
AT(export, len, 8, 8);
AT(export, flags, 16, 4);
AT(export, handle, 20, 4);
AT(export, fd, 24, 4);
AT(export, reserved, 28, 4);
AT(export, page_size, 32, 8);
AT(export, offset, 40, 8);
SIZE(export, 48);

AT(db_map, va, 0, 8);
AT(db_map, len, 8, 8);
AT(db_map, npu, 16, 8);
AT(db_map, src_fd, 24, 4);
AT(db_map, flags, 28, 4);
AT(db_map, handle, 32, 4);
AT(db_map, reserved, 36, 4);
AT(db_map, mmap_off, 40, 8);
SIZE(db_map, 48);

AT(destroy, handle, 0, 4);
AT(destroy, flags, 4, 4);
SIZE(destroy, 8);

AT(status, handle, 0, 4);
AT(status, kind, 4, 4);
AT(status, state, 8, 4);
AT(status, reason, 12, 4);
AT(status, attachments, 16, 4);
AT(status, mappings, 20, 4);
SIZE(status, 24);

AT(event, eventfd, 0, 4);
AT(event, flags, 4, 4);
SIZE(event, 8);

/* direction << 30 | size << 16 | type << 8 | number; to the kernel 1, from it 2. */
NUMBER(QUERY, 0xc028eb00u);
NUMBER(HOST_PIN, 0xc028eb01u);
NUMBER(EXPORT, 0xc030eb02u);
NUMBER(DB_MAP, 0xc030eb03u);
NUMBER(DESTROY, 0x4008eb04u);
NUMBER(STATUS, 0xc018eb05u);
NUMBER(EVENT, 0x4008eb06u);

/* ---- /dev/nda_soft ---- */

#define SOFT_AT(type, member, offset, bytes)                                               \
	_Static_assert(offsetof(struct nda_soft_ioc_##type, member) == (offset) &&         \
			sizeof(((struct nda_soft_ioc_##type *)0)->member) == (bytes),      \
		"soft " #type "." #member)
#define SOFT_SIZE(type, bytes)                                                             \
	_Static_assert(sizeof(struct nda_soft_ioc_##type) == (bytes), "soft " #type)
#define SOFT_NUMBER(name, number) _Static_assert(NDA_SOFT_IOC_##name == (number), #name)

SOFT_AT(query, what, 0, 4);
SOFT_AT(query, reserved, 4, 4);
SOFT_AT(query, value, 8, 8);
SOFT_SIZE(query, 16);

SOFT_AT(alloc, size, 0, 8);
SOFT_AT(alloc, kind, 8, 4);
SOFT_AT(alloc, flags, 12, 4);
SOFT_AT(alloc, handle, 16, 4);
SOFT_AT(alloc, reserved, 20, 4);
SOFT_AT(alloc, mmap_off, 24, 8);
SOFT_SIZE(alloc, 32);

SOFT_AT(free, handle, 0, 4);
SOFT_AT(free, flags, 4, 4);
SOFT_SIZE(free, 8);

SOFT_AT(bind, va, 0, 8);
SOFT_AT(bind, device, 8, 4);
SOFT_AT(bind, qpn, 12, 4);
SOFT_AT(bind, flags, 16, 4);
SOFT_AT(bind, handle, 20, 4);
SOFT_SIZE(bind, 24);

SOFT_AT(unbind, handle, 0, 4);
SOFT_AT(unbind, flags, 4, 4);
SOFT_SIZE(unbind, 8);

SOFT_NUMBER(QUERY, 0xc010eb40u);
SOFT_NUMBER(ALLOC, 0xc020eb41u);
SOFT_NUMBER(FREE, 0x4008eb42u);
SOFT_NUMBER(BIND, 0xc018eb43u);
SOFT_NUMBER(UNBIND, 0x4008eb44u);
