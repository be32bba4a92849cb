# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The queue format of the 1825 and the data plane.

# Has a main of its own; a file for each engine.
TESTS += $(B)/tests/golden_test
$(B)/tests/golden_test: $(call objs,$(wildcard tests/unit/golden_*.cc))
	$(call prog,$@,$^)

# What is wrong with a file of vectors.
$(eval $(call unit_test,vector_files_test,$(call objs,$(filter-out tests/unit/golden_test.cc,$(wildcard tests/unit/golden_*.cc)))))

# The same by AscendCore, for which clang tells device memory from UB: with WQEs that are stored
# and cleaned, by one architecture's intrinsics, and staged and copied, by the other's. They would
# be the same programs in a build with sanitizers.
ASCEND_stored := -DNDA_GOLDEN_ASCEND=0 -DNDA_ASCEND_ARCH=2201
ASCEND_staged := -DNDA_GOLDEN_ASCEND=1 -DNDA_ASCEND_ARCH=3510

define ascend_golden
TESTS += $(B)/tests/golden_ascend_$(1)_test
$(B)/tests/golden_ascend_$(1)_test: $(patsubst tests/unit/%.cc,$(B)/ascend/$(1)/%.o,$(wildcard tests/unit/golden_*.cc))
	$$(call say,LD,$$@)
	@mkdir -p $$(dir $$@)
	$$(Q)clang++ -o $$@ $$^

# The core by itself, and what each of its barriers is for.
TESTS += $(B)/tests/ascend_core_$(1)_test
$(B)/tests/ascend_core_$(1)_test: $(patsubst tests/unit/%.cc,$(B)/ascend/$(1)/%.o,tests/unit/ascend_core_test.cc \
		$(filter-out tests/unit/golden_test.cc,$(wildcard tests/unit/golden_*.cc)))
	$$(call say,LD,$$@)
	@mkdir -p $$(dir $$@)
	$$(Q)clang++ -pthread -o $$@ $$^ $$(GTEST)

$(B)/ascend/$(1)/%.o: tests/unit/%.cc
	$$(call say,CLANG,$$<)
	@mkdir -p $$(dir $$@)
	$$(Q)clang++ $$(CPPFLAGS) -std=c++17 -O1 -g1 -Wall -Wextra -Wshadow $(ASCEND_$(1)) \
		-MMD -MP -c -o $$@ $$<

-include $(wildcard $(B)/ascend/$(1)/*.d)
endef

$(if $(SAN),,$(foreach way,stored staged,$(eval $(call ascend_golden,$(way)))))

# By format, and of the data plane.
$(foreach test,hns1825_format in_die_format udma_format xscale_format aiv_xscale aiv_xscale_fast_slow,$(eval $(call unit_test,$(test)_test)))
$(foreach test,aiv_post aiv_poll aiv_batch aiv_device aiv_fast_slow aiv_cores aiv_counts,$(eval $(call unit_test,$(test)_test)))
$(eval $(call unit_test,aiv_in_die_test))
$(eval $(call unit_test,aiv_udma_test))
sim_objs := $(call objs,tests/sim/sim.cc tests/sim/fiber.cc)
$(eval $(call unit_test,sim_core_test,$(sim_objs)))
$(eval $(call unit_test,aiv_shared_test,$(sim_objs)))
# A file for each engine.
$(eval $(call unit_test,aiv_cached_test,$(call objs,$(wildcard tests/unit/cached_*.cc))))

# The device side with both compilers' freestanding modes.
lint: lint-freestanding
lint-freestanding: need-lint
	$(call say,LINT,freestanding)
	$(Q)tests/freestanding.sh $(B)/lint/aiv_freestanding.o tests/unit/aiv_freestanding.cc g++ clang++
	$(Q)tests/freestanding.sh $(B)/lint/ascend_freestanding.o tests/unit/ascend_freestanding.cc clang++

.PHONY: lint-freestanding
