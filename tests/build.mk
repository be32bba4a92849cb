# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The tests; each area's programs are in tests/*/AREA.mk.

GTEST := -lgtest -lgtest_main -lgmock
# Lines for traces are enough, and take a third less time to compile than -g.
CXXFLAGS_tests_unit := -g1
CXXFLAGS_tests_mock := -g1
# Optimizing takes as long as the rest of compiling, and what is tested is in objects, which are
# compiled as they are shipped, nda-perf's device side among them. Tests that do much are an exception.
$(call objs,$(wildcard tests/unit/*.cc)): override CXXFLAGS += -O0
$(call objs,$(wildcard $(addprefix tests/unit/,aiv_cached_*.cc aiv_shared_*.cc cached_*.cc \
	device_suite_*.cc random_*.cc))): override CXXFLAGS += $(if $(SAN),,-O1)

# $(call unit_test,NAME,OBJECTS,LIBRARIES): build/tests/NAME from tests/unit/NAME.cc, run by check.
define unit_test
TESTS += $(B)/tests/$(1)
$(B)/tests/$(1): $(call objs,tests/unit/$(1).cc) $(2)
	$$(call prog,$$@,$$(filter %.o %.a,$$^),$(3) $(GTEST))
endef

# $(call fuzz_target,NAME,SOURCES): build/fuzz/NAME from tests/fuzz/NAME.cc and sources of the
# library, all compiled by clang for libFuzzer. A corpus to start from: tests/data/fuzz/NAME/.
FUZZ_SECONDS ?= 20
define fuzz_target
FUZZERS += $(B)/fuzz/$(1)
$(B)/fuzz/$(1): tests/fuzz/$(1).cc $(2) $(wildcard include/*.h include/*/*.h include/*/*/*.h lib/*/*.h)
	$$(call say,FUZZCXX,$$@)
	@mkdir -p $$(dir $$@)
	$$(Q)clang++ $$(CPPFLAGS) -std=c++17 -pthread -O1 -g -Wall -Wextra -o $$@ \
		-fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
		$$(filter %.cc,$$^)
endef

include $(wildcard tests/*/*.mk)

# Programs of one thread, in which ThreadSanitizer has nothing to find: a build with it leaves
# them out.
ONE_THREAD := golden vector_files hns1825_format in_die_format udma_format xscale_format \
	rxe_format aiv_batch aiv_cached aiv_counts aiv_device aiv_fast_slow aiv_poll aiv_post aiv_udma \
	aiv_xscale aiv_xscale_fast_slow ibv_extend_abi ibv_extend_config ibv_extend_device_name \
	info_checks info_gather info_search nda_channel_config nda_gid nda_publish nda_queue_format \
	nda_siphash perf_atomic_math perf_histogram perf_layout perf_memory perf_options perf_pairs \
	perf_pattern perf_report perf_row perf_sha256
ifeq ($(SAN),thread)
TESTS := $(filter-out $(ONE_THREAD:%=$(B)/tests/%_test),$(TESTS))
endif

# Manual pages, documents, and the examples in them.
TEST_SCRIPTS += tests/docs_test.py

# The libraries under test stay where they were built.
# CHECK: the programs to run, by name; all of them, and the scripts, which take longest,
# by default.
check-run: lib providers tools $(if $(CHECK),$(CHECK:%=$(B)/tests/%),tests)
	@tests/run.sh $(B) $(if $(CHECK),$(CHECK:%=$(B)/tests/%),$(TEST_SCRIPTS) $(TESTS))

# Each target for FUZZ_SECONDS, from its corpus; what it finds on the way stays in build/.
fuzz: $(FUZZERS)
	@tests/fuzz.sh $(FUZZ_SECONDS) $(FUZZERS)

$(FUZZERS): | need-fuzz
bench: need-bench
need-%:
	@packaging/deps --need $*

# Sources are checked once until they, or what they include, change: by g++ with warnings as
# errors, unless a build with WERROR=1 was that, then by clang-tidy, whose clang also analyses
# thread safety.
LINT_SOURCES := $(sort $(shell find lib providers -name '*.cc'))
lint: need-lint
	@status=0; LINT_CPPFLAGS='$(CPPFLAGS)' tests/lint.sh || status=1; \
	$(MAKE) --no-print-directory $(JOBS) -k lint-sources || status=1; exit $$status

lint-sources: $(LINT_SOURCES:%.cc=$(B)/lint/%.ok)
	@echo '  LINT    sources: clean'

$(LINT_SOURCES:%.cc=$(B)/lint/%.warned): $(B)/lint/%.warned: %.cc
	$(call say,WARN,$<)
	@mkdir -p $(dir $@)
	$(Q)$(CXX) $(call flags_of,$<) -Werror -fsyntax-only -MMD -MP -MF $(@:.warned=.d) -MT $@ $<
	@touch $@

$(B)/lint/%.ok: %.cc $(B)/lint/%.warned .clang-tidy
	$(call say,TIDY,$<)
	$(Q)clang-tidy --quiet $< -- $(call flags_of,$<) -Wthread-safety 2>$@.log || \
		{ grep -v 'warnings generated' $@.log; exit 1; }
	@touch $@

.PHONY: check-run fuzz lint lint-sources
