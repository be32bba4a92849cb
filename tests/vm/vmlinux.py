#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""vmlinux.py BZIMAGE OUT: unpacks the kernel that a bzImage carries.

QEMU starts an unpacked kernel at once (PVH) where a compressed one first spends seconds of
emulated time on unpacking itself. The image's header says where the payload lies (the x86 boot
protocol, 2.08 and later: setup_sects at 0x1f1, magic at 0x202, version at 0x206, payload offset
and length at 0x248); the last four bytes of the payload are the unpacked size.
"""

import gzip
import lzma
import struct
import subprocess
import sys


def zstd(data):
    return subprocess.run(["zstd", "-dcq"], input=data, stdout=subprocess.PIPE, check=True).stdout


UNPACK = {
    b"\xfd7zXZ\x00": lzma.decompress,
    b"\x1f\x8b\x08": gzip.decompress,
    b"\x28\xb5\x2f\xfd": zstd,
}


def payload(image):
    if image[0x202:0x206] != b"HdrS":
        raise ValueError("no bzImage: the boot header's magic is missing")
    (version,) = struct.unpack_from("<H", image, 0x206)
    if version < 0x208:
        raise ValueError(f"boot protocol {version:#x} is older than 2.08")
    offset, length = struct.unpack_from("<II", image, 0x248)
    begin = (image[0x1F1] + 1) * 512 + offset
    if length <= 4 or begin + length > len(image):
        raise ValueError("the payload lies outside the image")
    return image[begin : begin + length]


def unpack(image):
    packed = payload(image)
    (size,) = struct.unpack("<I", packed[-4:])
    for magic, function in UNPACK.items():
        if packed.startswith(magic):
            kernel = function(packed[:-4])
            break
    else:
        raise ValueError(f"unknown compression, begins with {packed[:6].hex()}")
    if len(kernel) != size or not kernel.startswith(b"\x7fELF"):
        raise ValueError("what was unpacked is not the kernel")
    return kernel


def main():
    source, target = sys.argv[1:]
    with open(source, "rb") as file:
        image = file.read()
    try:
        kernel = unpack(image)
    except (ValueError, lzma.LZMAError, OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"vmlinux.py: {source}: {error}")
    with open(target, "wb") as file:
        file.write(kernel)


if __name__ == "__main__":
    main()
