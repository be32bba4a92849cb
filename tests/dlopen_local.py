#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Loads libibv_extend as Python does by default, RTLD_LOCAL, and through it a driver that is not
linked to it. The driver must register all the same.

The build directory is taken from NDA_TEST_BUILD (default: build).
"""

import ctypes
import errno
import os
import sys

DEVICE_SIZE = 664  # struct ibv_device, behind which a verbs device keeps its driver's operations
DEVICE_NAME_OFFSET = 24
CONTEXT_SIZE = 328  # struct ibv_context, which begins with the device
DRIVER_NAME = b"extend_unlinked"
DRIVER_CAPABILITY = 1  # what this driver, and no other, answers

passed = failed = skipped = 0


def check(what, good, detail=""):
    global passed, failed
    if good:
        passed += 1
        print("ok      ", what)
    else:
        failed += 1
        print("FAILED  ", what, detail)


def finish():
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    sys.exit(1 if failed else 0)


class Device:
    """A synthetic ibv_context: device, the pointer to the operations, their first member."""

    def __init__(self, driver_name):
        self.name = ctypes.create_string_buffer(driver_name)
        self.ops = (ctypes.c_void_p * 64)(ctypes.addressof(self.name))
        self.device = (ctypes.c_uint8 * (DEVICE_SIZE + 8))()
        label = b"mock0"
        ctypes.memmove(ctypes.addressof(self.device) + DEVICE_NAME_OFFSET, label, len(label))
        ctypes.c_void_p.from_buffer(self.device, DEVICE_SIZE).value = ctypes.addressof(self.ops)
        self.context = (ctypes.c_uint8 * CONTEXT_SIZE)()
        ctypes.c_void_p.from_buffer(self.context).value = ctypes.addressof(self.device)


def load(path, what):
    library = ctypes.CDLL(path, mode=os.RTLD_LOCAL | os.RTLD_NOW, use_errno=True)
    print("loaded  ", what, path)
    library.ibv_open_extend.restype = ctypes.c_void_p
    library.ibv_open_extend.argtypes = [ctypes.c_void_p]
    library.ibv_close_extend.argtypes = [ctypes.c_void_p]
    library.ibv_query_device_extend.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    library.ibv_extend_get_version.restype = ctypes.c_char_p
    library.ibv_extend_get_version.argtypes = [ctypes.c_void_p] * 3
    return library


def is_global(name):
    return hasattr(ctypes.CDLL(None), name)


def main():
    global skipped
    build = os.path.abspath(os.environ.get("NDA_TEST_BUILD", "build"))
    library_path = os.path.join(build, "lib", "libibv_extend.so.4")
    driver_path = os.path.join(build, "tests", "mock", "libextend_unlinked.so")
    if any(part.startswith("san-") for part in build.split(os.sep)):
        skipped += 1
        print("skipped : a sanitizer's library cannot be loaded into python3")
        finish()
    for path in (library_path, driver_path):
        if not os.path.exists(path):
            check("built: " + path, False, "(run make tests)")
            finish()

    os.environ["IBV_EXTEND_DRIVERS"] = driver_path
    library = load(library_path, "RTLD_LOCAL")
    check("version 4.2.0", library.ibv_extend_get_version(None, None, None) == b"4.2.0")
    check("its symbols are not global", not is_global("verbs_register_driver_extend"))
    try:
        ctypes.CDLL(driver_path, mode=os.RTLD_LOCAL | os.RTLD_NOW)
        check("the driver cannot be loaded without help", False, "(is it linked?)")
    except OSError as error:
        check("the driver cannot be loaded without help",
              "verbs_register_driver_extend" in str(error), str(error))

    unknown = Device(b"extend_unknown")
    ctypes.set_errno(0)
    opened = library.ibv_open_extend(unknown.context)
    check("a device without driver gives ENODEV",
          not opened and ctypes.get_errno() == errno.ENODEV, ctypes.get_errno())

    device = Device(DRIVER_NAME)
    context = library.ibv_open_extend(device.context)
    check("the driver registered and opened the device", bool(context), ctypes.get_errno())
    if context:
        attr = (ctypes.c_uint32 * 33)()
        result = library.ibv_query_device_extend(context, attr)
        check("the driver answers", (result, attr[0]) == (0, DRIVER_CAPABILITY),
              (result, attr[0]))
        check("close", library.ibv_close_extend(context) == 0)
        check("a second close is refused", library.ibv_close_extend(context) == -errno.ENOENT)
    check("the library's symbols are global now", is_global("verbs_register_driver_extend"))
    finish()


main()
