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
	@packaging/deps build check
	@$(MAKE) --no-print-directory $(JOBS) all tests
	@$(MAKE) --no-print-directory check-run

install: install-lib install-headers install-providers install-tools

# The files as they are, links as links.
install-lib: lib
	@mkdir -p $(DESTDIR)$(LIBDIR)/pkgconfig
	cp -P --preserve=mode,timestamps $(LIBS) $(DESTDIR)$(LIBDIR)
	for file in $(wildcard lib/*/*.pc.in); do \
		sed -e 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(LIBDIR)|; s|@INCLUDEDIR@|$(INCLUDEDIR)|' \
		    -e 's|@NDA_VERSION@|$(NDA_VERSION)|; s|@IBV_EXTEND_VERSION@|$(IBV_EXTEND_VERSION)|' \
			$$file >$(DESTDIR)$(LIBDIR)/pkgconfig/$$(basename $$file .in) || exit 1; \
	done

install-headers:
	for file in $$(cd include && find . -name '*.h'); do \
		install -D -m 644 include/$$file $(DESTDIR)$(INCLUDEDIR)/$$file || exit 1; \
	done

install-providers: providers
	@mkdir -p $(DESTDIR)$(LIBDIR)
	cp -P --preserve=mode,timestamps $(PROVIDERS) $(DESTDIR)$(LIBDIR)

install-tools: tools
	@mkdir -p $(DESTDIR)$(BINDIR)
	cp -P --preserve=mode,timestamps $(TOOLS) $(DESTDIR)$(BINDIR)

.PHONY: demo check deps install install-lib install-headers install-providers install-tools
