# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The modules' sources for DKMS, in the only place where it looks, and modprobe's configuration.

DKMS_TREE := /usr/src/nda-$(NDA_VERSION)
DKMS_SOURCES = $(sort $(shell find kmod include/uapi -type f ! -name build.mk ! -name '.*')) COPYING.GPL2
MODPROBEDIR ?= $(PREFIX)/lib/modprobe.d

install-dkms: tree = $(DESTDIR)$(DKMS_TREE)
install-dkms:
	$(Q)for file in $(DKMS_SOURCES); do \
		install -D -m 644 $$file $(tree)/$$file || exit 1; \
	done
	$(Q)$(fill_in) packaging/dkms/dkms.conf.in >$(tree)/dkms.conf
	$(Q)install -m 755 packaging/dkms/refresh $(tree)/refresh
	@mkdir -p $(DESTDIR)$(MODPROBEDIR)
	$(Q)$(fill_in) packaging/dkms/nda-dkms.conf.in >$(DESTDIR)$(MODPROBEDIR)/nda-dkms.conf

.PHONY: install-dkms

## install-dkms  the kernel modules' sources for DKMS, in /usr/src
