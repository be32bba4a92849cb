# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Rules, units, the group, what is loaded at boot: the system's side of the kernel modules.

UDEVDIR ?= $(PREFIX)/lib/udev
UNITDIR ?= $(PREFIX)/lib/systemd/system
SYSUSERSDIR ?= $(PREFIX)/lib/sysusers.d
MODULESLOADDIR ?= $(PREFIX)/lib/modules-load.d

install-udev:
	@mkdir -p $(addprefix $(DESTDIR),$(UDEVDIR)/rules.d $(UNITDIR) $(SYSUSERSDIR) $(MODULESLOADDIR))
	$(Q)install -m 644 udev/*.rules $(DESTDIR)$(UDEVDIR)/rules.d/
	$(Q)install -m 644 udev/nda-rxe@.service $(DESTDIR)$(UNITDIR)/
	$(Q)$(fill_in) udev/nda-setup@.service.in >$(DESTDIR)$(UNITDIR)/nda-setup@.service
	$(Q)install -m 644 udev/nda.sysusers.conf $(DESTDIR)$(SYSUSERSDIR)/nda.conf
	$(Q)install -m 644 udev/nda.modules.conf $(DESTDIR)$(MODULESLOADDIR)/nda.conf

.PHONY: install-udev

## install-udev  rules, units, the group and what is loaded at boot, under PREFIX/lib
