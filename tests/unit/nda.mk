# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# libnda. Tests of what its version map hides are linked to its objects, those of the C API to
# the library.

nda_inside := $(LIB_NDA_OBJS) $(LIB_EXTEND_SEARCH)
# Expanded in the recipes: its commas would part arguments before.
nda_inside_libs = $(LIB_EXTEND) -Wl,-rpath,'$$ORIGIN/../lib' $(LIB_NDA_LIBS)
# Those that need the software have it linked in: it is not beside them, and the dynamic loader's
# own search sees the sanitizer as the one who asks.
nda_soft_libs = -Wl,--no-as-needed $(SOFT) -Wl,--as-needed $(nda_inside_libs)

$(eval $(call unit_test,nda_siphash_test,$(nda_inside),$$(nda_inside_libs)))
$(eval $(call unit_test,nda_bootstrap_test,$(nda_inside),$$(nda_inside_libs)))
$(eval $(call unit_test,nda_queue_format_test,$(nda_inside),$$(nda_inside_libs)))
$(eval $(call unit_test,nda_publish_test,$(nda_inside),$$(nda_inside_libs)))
$(eval $(call unit_test,nda_failure_test,$(nda_inside) $(SOFT),$$(nda_soft_libs)))
$(eval $(call unit_test,nda_inside_test,$(nda_inside) $(SOFT),$$(nda_soft_libs)))
$(eval $(call unit_test,nda_proxy_test,$(nda_inside) $(SOFT),$$(nda_soft_libs)))
world_objs := $(call objs,tests/sim/sim.cc tests/sim/fiber.cc tests/sim/world.cc)
$(eval $(call unit_test,sim_world_test,$(world_objs) $(nda_inside) $(SOFT),$$(nda_soft_libs)))
$(eval $(call unit_test,device_suite_test,$(world_objs) $(nda_inside) $(SOFT),$$(nda_soft_libs)))
# Every engine twice: optimizing it takes many minutes.
$(B)/obj/tests/unit/device_suite_test.o: override CXXFLAGS += -O0
# Has a main of its own.
TESTS += $(B)/tests/random_programs_test
$(B)/tests/random_programs_test: $(call objs,tests/unit/random_programs_test.cc \
	tests/sim/program.cc tests/sim/last_words.cc) $(world_objs) $(nda_inside) $(SOFT)
	$(call prog,$@,$(filter %.o %.a,$^),$(nda_soft_libs) -lgtest)
$(B)/tests/nda_siphash_test $(B)/tests/nda_bootstrap_test $(B)/tests/nda_publish_test \
$(B)/tests/nda_failure_test $(B)/tests/nda_inside_test $(B)/tests/nda_proxy_test \
$(B)/tests/sim_world_test $(B)/tests/device_suite_test $(B)/tests/nda_queue_format_test \
$(B)/tests/random_programs_test: | $(LIB_EXTEND)

# Over the real software NPU and NIC, which libnda finds beside itself.
nda_outside_libs = $(LIB_NDA) -Wl,-rpath,'$$ORIGIN/../lib'
$(eval $(call unit_test,nda_group_test,,$$(nda_outside_libs)))
$(eval $(call unit_test,nda_shared_test,,$$(nda_outside_libs)))
$(eval $(call unit_test,nda_engines_test,,$$(nda_outside_libs)))
$(eval $(call unit_test,nda_api_test,,$$(nda_outside_libs)))
$(B)/obj/tests/unit/nda_api_test.o: CPPFLAGS += -DNDA_TEST_VERSION='"$(NDA_VERSION)"'
$(eval $(call unit_test,nda_view_test,,$$(nda_outside_libs)))
$(eval $(call unit_test,nda_process_test,,$$(nda_outside_libs)))
$(B)/tests/nda_group_test $(B)/tests/nda_shared_test $(B)/tests/nda_engines_test \
$(B)/tests/nda_api_test $(B)/tests/nda_view_test $(B)/tests/nda_process_test: | $(LIB_NDA) $(SOFT)
# The interface is the same in a build with sanitizers.
TEST_SCRIPTS += $(if $(SAN),,tests/nda_abi.sh) tests/doorbell_ways.sh tests/unit/uapi_layout_test.sh

# Over devices and a kernel that are made up.
nda_netlink_cflags = $(shell pkg-config --cflags libnl-3.0)
$(eval $(call unit_test,nda_gid_test,$(nda_inside),$$(nda_inside_libs)))
$(eval $(call unit_test,nda_channel_config_test,$(nda_inside),$$(nda_inside_libs)))
$(eval $(call unit_test,nda_discovery_test,$(nda_inside),$$(nda_inside_libs)))
$(B)/obj/tests/unit/nda_discovery_test.o: override CPPFLAGS += $(nda_netlink_cflags)
$(eval $(call unit_test,nda_kernel_test,$(nda_inside),$$(nda_inside_libs)))
$(eval $(call unit_test,nda_kernel_doorbell_test,$(nda_inside) $(SOFT),$$(nda_soft_libs)))
$(eval $(call unit_test,nda_memory_test,$(nda_inside) $(SOFT),$$(nda_soft_libs)))
$(eval $(call unit_test,nda_verbs_nic_test,$(nda_inside) $(SOFT),$$(nda_soft_libs)))
$(B)/tests/nda_gid_test $(B)/tests/nda_channel_config_test $(B)/tests/nda_discovery_test \
$(B)/tests/nda_kernel_test $(B)/tests/nda_kernel_doorbell_test $(B)/tests/nda_memory_test $(B)/tests/nda_verbs_nic_test: | $(LIB_EXTEND)

# Over mocks of the Ascend runtime and driver: as they should be, without the functions that
# libnda can do without, and each without one that it cannot.
mock_ascend := $(B)/tests/mock/libmock_ascend.so
$(mock_ascend): $(call objs,tests/mock/ascend/mock_ascend.cc)
	$(call prog,$@,$^,-shared)
# $(call mock_ascend_library,DIRECTORY/NAME,SOURCE,FLAGS)
define mock_ascend_library
mock_ascend_libraries += $(B)/tests/$(1)
$(B)/tests/$(1): tests/mock/ascend/$(2).cc tests/mock/ascend/mock_ascend.h $(mock_ascend)
	$$(call say,CXX,$$@)
	@mkdir -p $$(@D)
	$$(Q)$$(CXX) $$(CPPFLAGS) $$(CXXFLAGS) -g1 $(3) -shared -o $$@ $$< $$(LDFLAGS) \
		-Wl,-soname,$$(@F) $(mock_ascend) -Wl,-rpath,'$$$$ORIGIN/../mock'
endef
$(eval $(call mock_ascend_library,ascend/libascendcl.so,mock_acl,))
$(eval $(call mock_ascend_library,ascend/libascend_hal.so,mock_hal,))
$(eval $(call mock_ascend_library,ascend-runtime/libascendcl.so,mock_acl,))
$(eval $(call mock_ascend_library,ascend-bare/libacl_rt.so,mock_acl,-DNDA_MOCK_BARE))
$(eval $(call mock_ascend_library,ascend-bare/libascend_hal.so,mock_hal,-DNDA_MOCK_BARE))
$(eval $(call mock_ascend_library,ascend-broken-acl/libascendcl.so,mock_acl,-DNDA_MOCK_BROKEN))
$(eval $(call mock_ascend_library,ascend-broken-hal/libascend_hal.so,mock_hal,-DNDA_MOCK_BROKEN))
nda_ascend_libs = $(mock_ascend) -Wl,-rpath,'$$ORIGIN/mock' $(nda_soft_libs)
$(eval $(call unit_test,nda_ascend_test,$(nda_inside) $(SOFT),$$(nda_ascend_libs)))
$(B)/tests/nda_ascend_test: $(mock_ascend) | $(LIB_EXTEND) $(mock_ascend_libraries)
$(eval $(call unit_test,nda_import_test,$(nda_inside) $(SOFT),$$(nda_ascend_libs)))
$(B)/tests/nda_import_test: $(mock_ascend) | $(LIB_EXTEND) $(mock_ascend_libraries)
$(eval $(call unit_test,nda_import_drive_test,,$$(nda_outside_libs)))
$(B)/tests/nda_import_drive_test: | $(LIB_NDA) $(SOFT)
