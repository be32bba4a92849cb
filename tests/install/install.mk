# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

# What is installed is the same in a build with sanitizers.
TEST_SCRIPTS += $(if $(SAN),,$(addprefix tests/install/,build_sh.sh driver_layout.sh \
	$(if $(HAVE_CLI11),install.sh)))

check-system:
	@packaging/deps system
	@TEST_TIMEOUT=3600 tests/run.sh $(B) tests/install/udev.sh tests/install/dkms.sh

.PHONY: check-system

## check-system  what DKMS, udev and systemd do with what is installed for them; as root
