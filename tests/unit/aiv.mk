# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The queue format of the 1825 and the data plane.

# Has a main of its own; a file for each engine.
TESTS += $(B)/tests/golden_test
$(B)/tests/golden_test: $(call objs,$(wildcard tests/unit/golden_*.cc))
	$(call prog,$@,$^)

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
	$(Q)tests/freestanding.sh $(B)/lint/aiv_freestanding.o g++ clang++

.PHONY: lint-freestanding
