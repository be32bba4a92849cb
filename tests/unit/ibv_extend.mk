# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# libibv_extend: its archive is tested as it is, the library as a copy that looks for configuration
# where a test says (tests/mock/extend_paths.cc).

EXTEND_TEST_LIB := $(B)/tests/extend/$(LIB_EXTEND_SONAME)
extend_test_objs := $(extend_api_objs) $(call objs,tests/mock/extend_paths.cc)
$(EXTEND_TEST_LIB): $(extend_test_objs) $(LIB_EXTEND_SEARCH) $(LIB_EXTEND_MAP)
	$(call shlib,$@,$(LIB_EXTEND_SONAME),$(LIB_EXTEND_MAP),\
		$(extend_test_objs) $(LIB_EXTEND_SEARCH),$(extend_libs))

# Drivers: all but one are not linked to the library, hence no -z defs.
extend_drivers := unlinked rival modify lacking silent nested opener crash nameless
EXTEND_DRIVER_FILES := $(foreach d,$(extend_drivers) linked,$(B)/tests/mock/libextend_$(d).so)
EXTEND_DRIVER_LDFLAGS = $(filter-out -Wl$(comma)-z$(comma)defs,$(LDFLAGS))
$(extend_drivers:%=$(B)/tests/mock/libextend_%.so): $(B)/tests/mock/libextend_%.so: \
		$(B)/obj/tests/mock/extend_%_driver.o
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CXX) -shared -o $@ $(EXTEND_DRIVER_LDFLAGS) $<
$(B)/tests/mock/libextend_linked.so: $(B)/obj/tests/mock/extend_linked_driver.o $(EXTEND_TEST_LIB)
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CXX) -shared -o $@ $(LDFLAGS) $^

# The public header, as C.
$(B)/obj/tests/unit/ibv_extend_header.o: tests/unit/ibv_extend_header.c
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) -std=c11 -pedantic -O2 -g -fPIC -Wall -Wextra -Wshadow \
		$(if $(WERROR),-Werror) -MMD -MP -c -o $@ $<

# Expanded in the recipes: their commas would part arguments before.
extend_link = $(EXTEND_TEST_LIB) -Wl,-rpath,'$$ORIGIN/extend' -ldl
extend_link_real = $(LIB_EXTEND) -Wl,-rpath,'$$ORIGIN/../lib'
$(eval $(call unit_test,ibv_extend_abi_test,$(B)/obj/tests/unit/ibv_extend_header.o \
	$(LIB_EXTEND),$$(extend_link_real)))
$(eval $(call unit_test,ibv_extend_config_test,$(LIB_EXTEND_SEARCH)))
$(eval $(call unit_test,ibv_extend_device_name_test,$(LIB_EXTEND_SEARCH)))
$(eval $(call unit_test,ibv_extend_registry_test,$(EXTEND_TEST_LIB) $(EXTEND_DRIVER_FILES), \
	$$(extend_link)))
$(eval $(call unit_test,ibv_extend_api_test,$(EXTEND_TEST_LIB),$$(extend_link)))
$(eval $(call unit_test,ibv_extend_search_test,$(EXTEND_TEST_LIB) $(LIB_EXTEND_SEARCH) \
	$(EXTEND_DRIVER_FILES),$$(extend_link)))
$(eval $(call unit_test,ibv_extend_local_test,$(EXTEND_TEST_LIB) $(LIB_EXTEND) \
	$(EXTEND_DRIVER_FILES),-ldl))

TEST_HELPERS += $(EXTEND_DRIVER_FILES) $(B)/tests/extend_privileged
$(B)/tests/extend_privileged: $(call objs,tests/mock/extend_privileged.cc) $(LIB_EXTEND_SEARCH)
	$(call prog,$@,$^)
$(B)/tests/ibv_extend_config_test: | $(B)/tests/extend_privileged
TEST_SCRIPTS += tests/dlopen_local.py
