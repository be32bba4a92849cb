#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# dkms_sources.sh TREE: a checksum of what DKMS builds from, in a tree that install-dkms has filled.

set -eu
cd "$1"
find dkms.conf include kmod -type f | LC_ALL=C sort | xargs cat | cksum
