# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The kernel modules: a copy of their sources per kernel, since Kbuild works where they are.

# The running kernel's headers, or else the newest that are installed.
KVER ?= $(firstword $(foreach v,$(shell uname -r) $(shell ls -r /lib/modules 2>/dev/null),\
	$(if $(wildcard /lib/modules/$(v)/build/Makefile),$(v))))
KDIR ?= /lib/modules/$(KVER)/build
KMOD := build/kmod/$(KVER)
KMOD_SOURCES := kmod/Kbuild kmod/Makefile $(wildcard kmod/*.[ch] kmod/compat/* kmod/compat/probes/*.c \
	kmod/compat/include/*/*.h) \
	$(wildcard include/uapi/*.h)

ifeq ($(KVER),)
kmod:
	@echo '  kmod: left out, no kernel headers are installed'
else
kmod: $(KMOD)/Module.symvers
endif

$(KMOD)/Module.symvers: $(KMOD_SOURCES)
	$(call say,KBUILD,$(KMOD))
	@mkdir -p $(KMOD)/include
	@cp -a kmod/. $(KMOD)
	@cp -a include/uapi $(KMOD)/include
	$(Q)$(MAKE) -s -C $(KDIR) M=$(abspath $(KMOD)) NDA_VERSION=$(NDA_VERSION) \
		$(KMOD_FLAGS) modules >$(KMOD)/log 2>&1 || { cat $(KMOD)/log; exit 1; }
	@touch $@

## kmod        the kernel modules, for the headers of KVER or in KDIR
