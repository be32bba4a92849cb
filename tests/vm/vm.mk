# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Tests in virtual machines. What they need besides libraries, drivers and tools is built here.

VM := $(B)/vm
VM_FILES := $(B)/tests/vm/open_extend $(B)/tests/vm/rxe_driver $(B)/tests/vm/rxe_group \
	$(B)/tests/mock/libextend_rxe.so \
	$(B)/tests/mock/libextend_unlinked.so \
	$(B)/tests/vm/compat32
# The tests to run, all of them by default.
VM_TESTS ?=
TEST_SCRIPTS += tests/vm/judge_test.py

$(B)/tests/vm/open_extend: $(call objs,tests/vm/ibv-extend/open_extend.cc) $(LIB_EXTEND)
	$(call prog,$@,$^,-Wl$(comma)-rpath$(comma)'$$ORIGIN/../../lib' -libverbs)

$(B)/tests/vm/rxe_driver: $(call objs,tests/vm/rxe-driver/rxe_driver.cc) $(LIB_EXTEND)
	$(call prog,$@,$^,-Wl$(comma)-rpath$(comma)'$$ORIGIN/../../lib' -libverbs -lgtest)

$(B)/tests/vm/rxe_group: $(call objs,tests/vm/rxe-group/rxe_group.cc) $(LIB_NDA)
	$(call prog,$@,$(filter %.o,$^),$(LIB_NDA) -Wl$(comma)-rpath$(comma)'$$ORIGIN/../../lib' -lgtest)

$(B)/tests/mock/libextend_rxe.so: $(B)/obj/tests/mock/extend_rxe_driver.o
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CXX) -shared -o $@ $(EXTEND_DRIVER_LDFLAGS) $<

$(B)/tests/vm/compat32: tests/vm/compat32/compat32.c
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -m32 -static -O2 -Wall -Wextra -Werror -o $@ $<

# Programs of the modules' tests: tests/vm/kmod-NAME/kmod_NAME.cc.
VM_KMOD_PROGRAMS := $(patsubst %.cc,$(B)/tests/vm/%,$(notdir $(wildcard tests/vm/kmod-*/kmod_*.cc)))
VM_FILES += $(VM_KMOD_PROGRAMS)
.SECONDEXPANSION:
$(VM_KMOD_PROGRAMS): $$(call objs,$$(wildcard tests/vm/kmod-*/$$(@F).cc))
	$(call prog,$@,$^,-lgtest -lgtest_main $(VM_KMOD_LIBS))
# Its write() stands in for the C library's in libibverbs too.
$(B)/tests/vm/kmod_kick: VM_KMOD_LIBS := -libverbs -rdynamic

VM_FILES += $(B)/tests/vm/kmod_bench
$(B)/tests/vm/kmod_bench: $(call objs,tests/vm/bench-kmod/kmod_bench.cc)
	$(call prog,$@,$^,-libverbs -lgtest)

VM_FILES += $(B)/tests/vm/kmod_caller32
$(B)/tests/vm/kmod_caller32: tests/vm/kmod-abi/caller32.c include/uapi/nda.h
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -m32 -static -O2 -Wall -Wextra -Werror -Iinclude -o $@ $<

# Looked at each time; the file changes only when the machine's inputs have.
$(VM)/base/version: FORCE
	@tests/vm/base.sh $(VM)

# The modules, and those of tests, for the machine's kernel.
VM_FILES += $(VM)/base/kmod/built
$(VM)/base/kmod/built: $(KMOD_SOURCES) $(wildcard tests/vm/modules/* tests/vm/faults/*) \
		tests/vm/modules.sh $(VM)/base/version
	@tests/vm/modules.sh $(VM) $$(basename $$(readlink $(VM)/base))
	@touch $@

# udev with the rules, units and modprobe's configuration as they are installed. The real grep, since
# busybox's is in its place in the machine. A checksum of what DKMS would build today.
VM_FILES += $(VM)/udev/systemd-udevd
$(VM)/udev/systemd-udevd: $(wildcard udev/*) $$(wildcard packaging/dkms/*) $$(DKMS_SOURCES)
	@rm -rf $(@D)
	$(Q)$(MAKE) -s install-udev install-dkms DESTDIR=$(abspath $(@D))/installed PREFIX=/usr
	$(Q)tests/install/dkms_sources.sh $(@D)/installed$(DKMS_TREE) >$(@D)/sources
	@rm -r $(@D)/installed/usr/src
	@mkdir -p $(@D)/installed/usr/bin
	$(Q)cp "$$(command -v udevadm)" "$$(command -v grep)" $(@D)/installed/usr/bin
	@ln -s installed/usr/bin/udevadm $@

check-vm:
	@packaging/deps build vm
	@$(MAKE) --no-print-directory $(JOBS) all vm-files
	@tests/vm/run.py $(B) $(VM_TESTS)

# The kernels to check the modules with.
KERNELS ?= 5.10 6.1 6.12 7.2
check-kernels:
	@packaging/deps build vm kernels
	@$(MAKE) --no-print-directory $(JOBS) vm-programs
	@tests/vm/kernels.sh $(B) $(KERNELS)

check-vm-debug:
	@packaging/deps build vm debug
	@$(MAKE) --no-print-directory $(JOBS) vm-programs
	@tests/vm/base.sh $(VM) debug
	@tests/vm/modules.sh $(VM) debug
	@tests/vm/run.py --kernel debug --suite kmod --suite rxe --suite debug $(B) $(VM_TESTS)

# Prints what the benchmark said; it fails only where a program did.
bench-vm:
	@$(MAKE) --no-print-directory check-vm VM_TESTS='bench-rxe bench-kmod'
	@sed -n 's/^bench: *//p' $(VM)/log/bench-rxe/console $(VM)/log/bench-kmod.*/console

vm-files: $(VM_FILES)
	@:

# All that tests need but modules.
vm-programs: lib providers tools $(filter-out $(VM)/base/kmod/built,$(VM_FILES))
	@:

FORCE:

.PHONY: check-vm check-kernels check-vm-debug bench-vm vm-files vm-programs FORCE

## check-vm    installs what is missing, builds, runs the tests in virtual machines; VM_TESTS=...
## check-kernels  builds the modules, and runs their tests, with each of KERNELS
## check-vm-debug  runs the tests of modules and of Soft-RoCE with a debug kernel
## bench-vm    compares nda-perf with ib_write_bw on one device in a virtual machine
