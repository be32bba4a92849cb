#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The kernel ABI has one layout on every architecture: compiles uapi_layout.c for each.

passed=0 failed=0
# The kernel's own headers are where this distribution's compiler has them.
multiarch=$(cc -print-multiarch 2>/dev/null)
for target in x86_64 i386 aarch64; do
	if clang --target=$target-linux-gnu -Iinclude -ffreestanding -fsyntax-only -Wall -Wextra \
		-Wpadded -Werror ${multiarch:+"-I/usr/include/$multiarch"} tests/unit/uapi_layout.c; then
		passed=$((passed + 1))
	else
		echo "FAILED: uapi/nda.h, uapi/nda_soft.h on $target"
		failed=$((failed + 1))
	fi
done
echo "$passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
