# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The tools. Everything but the files with main() is also linked into their tests. They need CLI11
# to read their arguments; where it is not to be had, they are left out.

HAVE_CLI11 := $(shell printf '\043if __has_include(<CLI/CLI.hpp>)\nyes\n\043endif\n' | \
	$(CXX) $(CPPFLAGS) -x c++ -std=c++17 -E -P - 2>/dev/null | tail -n 1)

CXXFLAGS_lib_tools_perf := -DNDA_VERSION='"$(NDA_VERSION)"'

PERF := $(B)/bin/nda-perf
TOOLS += $(if $(HAVE_CLI11),$(PERF))

# What needs neither libnda nor a kernel.
perf_host_objs := $(call objs,$(addprefix lib/tools/perf/,atomic_math.cc file.cc histogram.cc job.cc layout.cc \
	memory.cc options.cc pattern.cc report.cc row.cc secret.cc sha256.cc))
perf_pe_objs := $(call objs,$(addprefix lib/tools/perf/,atomic.cc atomic_kernels.cc barrier.cc copy.cc \
	kernels.cc measure.cc pe.cc phase.cc session.cc signal.cc signal_kernels.cc))
perf_libs := -lcrypto

# In the build directory the library is found from beside the program; packages set RPATH empty.
$(PERF): $(call objs,lib/tools/perf/nda_perf.cc) $(perf_pe_objs) $(perf_host_objs) $(LIB_NDA)
	$(call prog,$@,$(filter %.o,$^),$(LIB_NDA) -Wl$(comma)-rpath-link$(comma)$(B)/lib \
		$(if $(RPATH),-Wl$(comma)-rpath$(comma)'$(RPATH)') $(perf_libs))

# nda-info looks for libraries as any program does, hence without a run path, and hears drivers
# register in its place.
CXXFLAGS_lib_tools_info := -DNDA_VERSION='"$(NDA_VERSION)"'

INFO := $(B)/bin/nda-info
# One thread: nothing that ThreadSanitizer could find.
TOOLS += $(if $(HAVE_CLI11),$(if $(filter thread,$(SAN)),,$(INFO)))

info_exported := lib/tools/info/exported.list
info_objs := $(call objs,$(filter-out %/nda_info.cc,$(wildcard lib/tools/info/*.cc)) \
	$(addprefix lib/nda/,ascend_api.cc error.cc gid.cc kernel.cc log.cc))
info_libs := -Wl,--dynamic-list=$(info_exported) -libverbs -ldl

$(INFO): $(call objs,lib/tools/info/nda_info.cc) $(info_objs) $(LIB_EXTEND_SEARCH) $(info_exported)
	$(call prog,$@,$(filter %.o %.a,$^),$(info_libs))

ifneq ($(HAVE_CLI11),)
demo-run: all
	@tests/demo.sh $(B)
else
tools: no-tools
no-tools:
	@echo '  tools: left out, CLI11 (CLI/CLI.hpp) is not installed'

demo-run: no-tools
	@echo 'nda-perf, which shows everything, needs it' >&2; exit 1
endif

.PHONY: demo-run no-tools
