# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Setting up, installing, packages.

# Sub-makes use all cores unless the caller said how many.
JOBS = $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j$(shell nproc))

deps:
	@packaging/deps

# What is installed here changes what the parts find: so a second make builds.
demo:
	@packaging/deps build
	@$(MAKE) --no-print-directory $(JOBS) all
	@$(MAKE) --no-print-directory demo-run

check:
	@packaging/deps build check $(if $(SAN),san)
	@$(MAKE) --no-print-directory $(JOBS) all tests
	@$(MAKE) --no-print-directory check-run

# What is installed; a package of one part names only its own. Archives stay in build/.
HEADERS = $(patsubst include/%,%,$(sort $(shell find include -name '*.h')))
PCFILES = $(wildcard lib/*/*.pc.in)

# ASCEND_DRIVER=DIR: libibv_extend alone, to where the Ascend driver's package in DIR has its own.
ifdef ASCEND_DRIVER
install: lib
	$(Q)packaging/driver-layout install $(DESTDIR)$(ASCEND_DRIVER) $(LIB_EXTEND) include/ibv_extend.h

uninstall:
	$(Q)packaging/driver-layout uninstall $(DESTDIR)$(ASCEND_DRIVER)
else
install: install-lib install-headers install-providers install-tools install-man

# What the same command with 'install' puts there.
uninstall uninstall-config uninstall-udev uninstall-dkms: stage = build/stage-$@
uninstall uninstall-config uninstall-udev uninstall-dkms:
	@rm -rf $(stage)
	@$(MAKE) --no-print-directory $(@:un%=%) DESTDIR=$(abspath $(stage))
	$(Q)packaging/uninstall $(stage) "$(DESTDIR)"
	@rm -rf $(stage)
endif

# $(call install_shared,NAMES): each name, the links it goes through, and the file at the end.
define install_shared
	@mkdir -p $(DESTDIR)$(LIBDIR)
	$(Q)for name in $(1); do \
		cp -P --preserve=mode $$name $(DESTDIR)$(LIBDIR)/ || exit 1; \
		while [ -L $$name ]; do \
			name=$$(dirname $$name)/$$(readlink $$name); \
			cp -P --preserve=mode $$name $(DESTDIR)$(LIBDIR)/ || exit 1; \
		done; \
	done
endef

FILLED = PREFIX LIBDIR INCLUDEDIR BINDIR NDA_VERSION IBV_EXTEND_VERSION
fill_in = sed $(foreach name,$(FILLED),-e 's|@$(name)@|$($(name))|g')

install-lib: lib
	$(call install_shared,$(filter %.so,$(LIBS)))
	@mkdir -p $(DESTDIR)$(LIBDIR)/pkgconfig
	$(Q)for file in $(PCFILES); do \
		$(fill_in) $$file >$(DESTDIR)$(LIBDIR)/pkgconfig/$$(basename $$file .in) || exit 1; \
	done

install-headers:
	$(Q)for file in $(HEADERS); do \
		install -D -m 644 include/$$file $(DESTDIR)$(INCLUDEDIR)/$$file || exit 1; \
	done

install-providers: providers
	$(call install_shared,$(filter %.so,$(PROVIDERS)))

# Apart: it is for every program of the system, whatever the prefix.
install-config:
	@mkdir -p $(DESTDIR)$(DRIVERCONFDIR)
	$(Q)install -m 644 $(PROVIDER_CONFIGS) $(DESTDIR)$(DRIVERCONFDIR)/

install-tools: tools
	@mkdir -p $(DESTDIR)$(BINDIR)
	$(Q)$(if $(TOOLS),install -m 755 $(TOOLS) $(DESTDIR)$(BINDIR)/)

# A page for several functions has a link for each of its other names.
install-man:
	$(Q)for page in $(wildcard docs/man/*.[1-8]); do \
		to=$(DESTDIR)$(MANDIR)/man$${page##*.}; \
		mkdir -p $$to || exit 1; \
		if [ -L $$page ]; then cp -P $$page $$to/; else install -m 644 $$page $$to/; fi || exit 1; \
	done

# dpkg wants debian/ at the root: a copy of the tree with it in place. The date is the last
# commit's, so that the same tree gives the same packages. debhelper hides the home directory,
# where ccache, if it stands in for the compiler, has its cache.
DEB_DIR := build/deb
DEB_TREE := $(DEB_DIR)/nda-$(NDA_VERSION)
DEB_MAINTAINER = $(or $(DEBFULLNAME),nda maintainers) <$(or $(DEBEMAIL),nda@localhost.invalid)>
PACKAGE_DATE = $(or $(SOURCE_DATE_EPOCH),$(shell git log -1 --format=%ct 2>/dev/null),$(shell stat -c %Y packaging/META))
# The environment to make packages in, which are made by a make of their own.
PACKAGE_ENV = env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL SOURCE_DATE_EPOCH=$(PACKAGE_DATE) \
	CCACHE_DIR=$(or $(CCACHE_DIR),$(HOME)/.cache/ccache) CCACHE_BASEDIR=$(CURDIR)
PACKAGE_JOBS = $(or $(patsubst -j%,%,$(filter -j%,$(MAKEFLAGS))),$(shell nproc))

# Writes the names of the tree's files to the file $(1): git's, or all but what builds leave.
define list_tree
	$(Q){ [ -e .git ] && git ls-files -z >$(1) 2>/dev/null; } || \
		find . \( -path ./.git -o -path ./build -o -path ./output \) -prune -o \
			! -type d -printf '%P\0' >$(1)
endef

deb: need-build need-deb
	@rm -rf $(DEB_DIR)
	@mkdir -p $(DEB_TREE)
	$(call list_tree,$(DEB_DIR)/tree)
	@tar -c --null -T $(DEB_DIR)/tree | tar -x -C $(DEB_TREE)
	@mv $(DEB_TREE)/packaging/debian $(DEB_TREE)/debian
	@for file in control changelog nda-dkms.postinst; do \
		$(fill_in) -e 's|@MAINTAINER@|$(DEB_MAINTAINER)|' \
			-e "s|@DATE@|$$(date -R -u -d @$(PACKAGE_DATE))|" \
			$(DEB_TREE)/debian/$$file.in >$(DEB_TREE)/debian/$$file || exit 1; \
		rm $(DEB_TREE)/debian/$$file.in; \
	done
	$(Q)cd $(DEB_TREE) && $(PACKAGE_ENV) dpkg-buildpackage -us -uc -b -j$(PACKAGE_JOBS) \
		>../build.log 2>&1 || { tail -n 40 ../build.log; exit 1; }
	$(Q)lintian --allow-root --fail-on error,warning $(DEB_DIR)/*.changes
	@ls $(DEB_DIR)/*.deb

# Both specs from one archive of the tree. Where dpkg is, rpm knows no flags of its own, nor what is
# installed: the flags are those of the Debian packages, and so are objects that are newer than
# their sources.
RPM_DIR := build/rpm
ifneq ($(shell command -v dpkg-buildflags),)
RPM_FLAGS = --nodeps --define "optflags $$(flags CXXFLAGS)" \
	--define "build_ldflags $$(flags LDFLAGS)" \
	$(if $(wildcard $(DEB_TREE)/build),--define 'nda_built $(abspath $(DEB_TREE)/build)')
RPM_ENV = CPPFLAGS="$$(flags CPPFLAGS)"
endif

rpm: need-build need-rpm | $(filter deb,$(MAKECMDGOALS))
	@rm -rf $(RPM_DIR)
	@mkdir -p $(RPM_DIR)/SOURCES $(RPM_DIR)/SPECS
	$(call list_tree,$(RPM_DIR)/tree)
	@tar -cz --null -T $(RPM_DIR)/tree --transform 's|^|nda-$(NDA_VERSION)/|S' \
		-f $(RPM_DIR)/SOURCES/nda-$(NDA_VERSION).tar.gz
	@for spec in nda nda-dkms; do \
		$(fill_in) -e 's|@MAINTAINER@|$(DEB_MAINTAINER)|' \
			-e "s|@RPM_DATE@|$$(LC_ALL=C date -u -d @$(PACKAGE_DATE) '+%a %b %d %Y')|" \
			packaging/rpm/$$spec.spec.in >$(RPM_DIR)/SPECS/$$spec.spec || exit 1; \
	done
	$(Q)flags() { \
		DEB_BUILD_MAINT_OPTIONS=hardening=+all \
			DEB_BUILD_PATH=$(abspath $(RPM_DIR)/BUILD/nda-$(NDA_VERSION)) dpkg-buildflags --get $$1; \
	}; \
	for spec in $(RPM_DIR)/SPECS/*.spec; do \
		$(PACKAGE_ENV) $(RPM_ENV) rpmbuild -ba --define '_topdir $(abspath $(RPM_DIR))' \
			--define '_smp_mflags -j$(PACKAGE_JOBS)' $(RPM_FLAGS) $$spec >$$spec.log 2>&1 || \
			{ tail -n 40 $$spec.log; exit 1; }; \
	done
	$(Q)rpmlint -c packaging/rpm/rpmlint.toml $(RPM_DIR)/SPECS/*.spec $(RPM_DIR)/RPMS/*/*.rpm
	@ls $(RPM_DIR)/RPMS/*/*.rpm

.PHONY: demo check deps deb rpm install install-lib install-headers install-providers install-tools install-man install-config \
	uninstall uninstall-config uninstall-udev uninstall-dkms
