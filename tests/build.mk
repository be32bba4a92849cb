# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The tests; each area's programs are in tests/*/AREA.mk.

GTEST := -lgtest -lgtest_main -lgmock

# $(call unit_test,NAME,OBJECTS,LIBRARIES): build/tests/NAME from tests/unit/NAME.cc, run by check.
define unit_test
TESTS += $(B)/tests/$(1)
$(B)/tests/$(1): $(call objs,tests/unit/$(1).cc) $(2)
	$$(call prog,$$@,$$(filter %.o %.a,$$^),$(3) $(GTEST))
endef

include $(wildcard tests/*/*.mk)

# The libraries under test stay where they were built.
check-run: lib providers tools tests
	@tests/run.sh $(B) $(TESTS) $(TEST_SCRIPTS)

.PHONY: check-run
