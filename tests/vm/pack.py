#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""pack.py [--build DIR] [--has FILE] OUT SOURCE[=GUEST]...: packs an initramfs.

Each source, a file or a directory with all in it, goes to GUEST, by default to its own path; what
is below DIR goes below /build. The libraries that programs need come along, unless FILE (written
beside an earlier archive, as OUT.list) names them. The kernel unpacks archives one after the
other, so that several may be joined.
"""

import argparse
import os
import stat
import subprocess
import sys

# The guest has a merged /usr, as the distribution has.
MERGED = ("bin", "sbin", "lib", "lib64")


class Archive:
    """cpio in the "newc" format, as the kernel's initramfs documentation describes it."""

    def __init__(self, build, present):
        self.build = build
        self.names = set(present)
        self.added = []
        self.data = bytearray()

    def guest_path(self, host):
        host = os.path.normpath(os.path.abspath(host))
        if self.build and (host + "/").startswith(self.build + "/"):
            return "build" + host[len(self.build) :]
        name = host.lstrip("/")
        return "usr/" + name if name.split("/")[0] in MERGED else name

    def entry(self, name, mode, body=b""):
        name = name.strip("/")
        if not name or name in self.names:
            return False
        parent = os.path.dirname(name)
        if parent:
            self.entry(parent, stat.S_IFDIR | 0o755)
        self.names.add(name)
        self.added.append(name)
        self.write(name, mode, body)
        return True

    def write(self, name, mode, body=b""):
        # ino, mode, uid, gid, nlink, mtime, size, devmajor, devminor, rdevmajor, rdevminor,
        # length of the name, check
        ino = 0 if stat.S_ISDIR(mode) else len(self.added)
        fields = (ino, mode, 0, 0, 1, 0, len(body), 0, 0, 0, 0, len(name) + 1, 0)
        self.data += b"070701" + b"".join(b"%08X" % field for field in fields)
        self.data += name.encode() + b"\0"
        self.pad(4)
        self.data += body
        self.pad(4)

    def pad(self, unit):
        self.data += bytes(-len(self.data) % unit)

    def add(self, host, name):
        """A link that is named itself stands for its target; inside a directory it stays."""
        if not os.path.isdir(host):
            self.add_file(host, name)
            return
        self.entry(name, stat.S_IFDIR | 0o755)
        for child in sorted(os.listdir(host)):
            path = os.path.join(host, child)
            if os.path.islink(path):
                link = os.readlink(path).encode()
                self.entry(name + "/" + child, stat.S_IFLNK | 0o777, link)
            else:
                self.add(path, name + "/" + child)

    def add_file(self, host, name):
        with open(host, "rb") as file:
            body = file.read()
        mode = 0o755 if os.access(host, os.X_OK) else 0o644
        if self.entry(name, stat.S_IFREG | mode, body) and body.startswith(b"\x7fELF"):
            for library in needed(host, self.build):
                self.add_file(library, self.guest_path(library))

    def save(self, path):
        self.write("TRAILER!!!", 0)
        self.pad(512)
        with open(path, "wb") as file:
            file.write(self.data)
        with open(path + ".list", "w") as file:
            file.writelines(name + "\n" for name in sorted(self.names))


def needed(program, build):
    """What the dynamic loader maps for it, the loader itself included."""
    if program.endswith(".ko"):
        return []
    environment = dict(os.environ, LC_ALL="C")
    if build:
        # Drivers find libraries that whoever loads them has loaded.
        environment["LD_LIBRARY_PATH"] = build + "/lib"
    run = subprocess.run(["ldd", program], capture_output=True, text=True, env=environment)
    if "not a dynamic executable" in run.stderr or "statically linked" in run.stdout:
        return []
    if run.returncode != 0:
        raise ValueError(f"{program}: ldd: {run.stderr.strip()}")
    libraries = []
    for line in run.stdout.splitlines():
        words = line.split()
        if "not found" in line:
            raise ValueError(f"{program}: needs {words[0]}, which is not found")
        path = words[2] if "=>" in words else words[0]
        if path.startswith("/"):
            libraries.append(path)
    return libraries


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=os.path.abspath)
    parser.add_argument("--has")
    parser.add_argument("out")
    parser.add_argument("sources", nargs="*")
    args = parser.parse_args()
    present = []
    if args.has:
        with open(args.has) as file:
            present = file.read().split("\n")
    archive = Archive(args.build, present)
    try:
        for source in args.sources:
            host, _, guest = source.partition("=")
            archive.add(host, guest.strip("/") if guest else archive.guest_path(host))
        archive.save(args.out)
    except (OSError, ValueError) as error:
        sys.exit(f"pack.py: {error}")


if __name__ == "__main__":
    main()
