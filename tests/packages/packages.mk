# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Tests of the packages in build/deb and build/rpm, in systems of the distribution's packages.

PACKAGE_TESTS := $(addprefix tests/packages/,modules.sh rpm.sh together.sh alone.sh lists.sh)

check-packages: need-packages
	@tests/packages/prepare.sh build/deb build/packages
	@NDA_TEST_BUILD=build tests/run.sh build $(PACKAGE_TESTS)

.PHONY: check-packages
