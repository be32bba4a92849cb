# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Times by Google Benchmark, then instructions by callgrind, which have limits. Counted is
# what a user's kernel would run, so these objects are always compiled as packages are.

BENCH_CXXFLAGS := -std=c++17 -O2 -g -fPIC -pthread -Wall -Wextra -Wshadow
BENCH_TIME ?= 0.2

$(B)/bench/obj/%.o: tests/bench/%.cc | need-bench
	$(call say,CXX,$<)
	@mkdir -p $(dir $@)
	$(Q)$(CXX) $(CPPFLAGS) $(BENCH_CXXFLAGS) -MMD -MP -c -o $@ $<

-include $(wildcard $(B)/bench/obj/*.d)

$(B)/bench/instructions: $(B)/bench/obj/instructions.o $(B)/bench/obj/data_plane_paths.o
	$(call prog,$@,$^)

$(B)/bench/data_plane: $(B)/bench/obj/data_plane_bench.o $(B)/bench/obj/data_plane_paths.o
	$(call prog,$@,$^,-lbenchmark)

BENCHES := $(B)/bench/instructions $(B)/bench/data_plane
$(BENCHES): | need-bench

bench: $(BENCHES) $(B)/tests/aiv_counts_test
	@$(B)/bench/data_plane --benchmark_min_time=$(BENCH_TIME)
	@tests/bench/instructions.sh $(B)/bench/instructions $(B)/bench/instructions.json
	@echo 'per operation {stores, copies, lines cleaned, invalidated, barriers, doorbells}:'
	@$(B)/tests/aiv_counts_test --gtest_brief=1
