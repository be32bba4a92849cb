# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Names the targets; each part's build.mk says how that part is made.
#   make V=1                       show the commands
#   make SAN=address,undefined     build with sanitizers, in a directory of its own
#   make install DESTDIR= PREFIX=  the usual meaning

include packaging/META

PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
BINDIR ?= $(PREFIX)/bin
MANDIR ?= $(PREFIX)/share/man
# Where libibv_extend looks for the names of drivers, whatever the prefix.
DRIVERCONFDIR ?= /etc/libibverbs_extend.d
# Where programs look for the libraries: right in build/ and under PREFIX. Packages set it empty.
RPATH ?= $$ORIGIN/../lib
SAN ?=
# clang compiles for these sanitizers in half of g++'s time; its thread sanitizer does not see what
# orders the first uses of static objects in the libraries. With -O2 -g all cost thrice the time.
ifneq ($(findstring address,$(SAN)),)
ifeq ($(origin CXX),default)
CXX := clang++
endif
endif
CXXFLAGS ?= $(if $(SAN),-O0 -g1,-O2 -g)
V ?= 0

comma := ,
B := build$(if $(SAN),/san-$(subst $(comma),-,$(SAN)))
Q := $(if $(filter 1,$(V)),,@)
say = $(if $(filter 1,$(V)),@:,@printf '  %-8s%s\n' '$(1)' '$(2)')

override CPPFLAGS += -Iinclude -I. -D_GNU_SOURCE
override CXXFLAGS += -std=c++17 -fPIC -fvisibility=hidden -pthread \
	-Wall -Wextra -Wshadow -Wformat=2 $(if $(WERROR),-Werror)
override LDFLAGS += -pthread
ifneq ($(SAN),)
# Functions that dlsym finds are called by types with names of our own.
override CXXFLAGS += -fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer \
	$(if $(findstring clang,$(CXX)),-fno-sanitize=function)
override LDFLAGS += -fsanitize=$(SAN)
else
override LDFLAGS += -Wl,-z,defs
endif

# What the parts add to: files that a target builds.
LIBS :=
PROVIDERS :=
# Drivers' files for DRIVERCONFDIR.
PROVIDER_CONFIGS :=
TOOLS :=
# Programs and scripts that `make check` runs; programs it only builds.
TESTS :=
TEST_SCRIPTS :=
TEST_HELPERS :=
# Programs that `make fuzz` runs.
FUZZERS :=

# An object per source; all are made alike, so any of them may go into a shared library.
objs = $(patsubst %.cc,$(B)/obj/%.o,$(1))

# $(call shlib,FILE,SONAME,MAP,OBJECTS,LIBRARIES): a shared library with its version script.
# The C++ run-time is linked in and hidden: whoever loads the library must not meet it.
define shlib
	$(call say,LD,$(1))
	@mkdir -p $(dir $(1))
	$(Q)$(CXX) -shared -o $(1) -Wl,-soname,$(2) -Wl,--version-script=$(3) \
		-static-libstdc++ -static-libgcc -Wl,--exclude-libs,ALL \
		$(LDFLAGS) $(4) $(5)
endef

# $(call prog,FILE,OBJECTS,LIBRARIES)
define prog
	$(call say,LD,$(1))
	@mkdir -p $(dir $(1))
	$(Q)$(CXX) -o $(1) $(LDFLAGS) $(2) $(3)
endef

.DEFAULT_GOAL := all
all: lib providers tools kmod

include $(wildcard lib/*/build.mk providers/*/build.mk kmod/build.mk udev/build.mk tests/build.mk \
	packaging/build.mk packaging/*/build.mk)

lib: $(LIBS)
providers: $(PROVIDERS)
tools: $(TOOLS)
tests: $(TESTS) $(TEST_HELPERS)

# A directory's own flags are in CXXFLAGS_dir_ectory.
flags_of = $(CPPFLAGS) $(CXXFLAGS) $(CXXFLAGS_$(subst /,_,$(patsubst %/,%,$(dir $(1)))))

# Tells lint what it need not look for again.
warned = $(B)/lint/$*.warned
$(B)/obj/%.o: %.cc
	$(call say,CXX,$<)
	@mkdir -p $(dir $@ $(warned))
	$(Q)$(CXX) $(call flags_of,$<) -MMD -MP -MT $@ -MT $(warned) -c -o $@ $<
	$(if $(WERROR),@touch $(warned))

-include $(shell [ -d $(B) ] && find $(B)/obj $(B)/lint -name '*.d' 2>/dev/null)

clean:
	rm -rf build output

help:
	@sed -n 's/^## //p' $(MAKEFILE_LIST)

## all         libraries, extension drivers and tools (the default)
## lib         libibv_extend and libnda
## providers   the extension drivers
## tools       nda-perf, nda-info
## tests       builds the tests
## check       installs what is missing (apt or dnf), builds, runs the tests
## demo        installs what is missing, builds, runs the main job on real files
## fuzz        runs each fuzz target for FUZZ_SECONDS (default 20)
## lint        runs the style and static checks
## bench       runs the benchmarks, counts instructions
## deps        installs what building and testing need
## deb         builds the Debian packages, into build/deb/
## rpm         builds the RPM packages, into build/rpm/RPMS/
## check-packages  installs, runs, upgrades and purges them in small systems; as root
## install     installs under DESTDIR and PREFIX; ASCEND_DRIVER=DIR: where that driver has its files
## install-config  names Soft-RoCE's driver in /etc/libibverbs_extend.d, for all programs
## uninstall   removes what install puts there; likewise uninstall-config, -dkms, -udev
## clean       removes build/

.PHONY: all lib providers tools tests kmod check fuzz lint bench demo deps deb install clean help
.DELETE_ON_ERROR:
