# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# This tree with other releases of Debian: their compilers, rdma-core and libraries.

DISTROS ?= bullseye bookworm trixie sid

check-distros: need-distros
	@tests/distros/distros.sh build $(DISTROS)

.PHONY: check-distros

## check-distros  builds, tests and installs in systems of other releases of Debian; DISTROS=...
