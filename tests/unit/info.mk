# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

ifneq ($(HAVE_CLI11),)
# nda-info. Drivers that the tests load register with them, as with the program.

info_inside := $(info_objs) $(LIB_EXTEND_SEARCH)
info_inside_libs = $(info_libs)
$(eval $(call unit_test,info_checks_test,$(call objs,$(addprefix lib/tools/info/,checks.cc check_devices.cc \
	check_machine.cc check_search.cc))))
$(eval $(call unit_test,info_gather_test,$(info_inside),$$(info_inside_libs)))
$(eval $(call unit_test,info_search_test,$(info_inside),$$(info_inside_libs)))
$(B)/tests/info_search_test: | $(EXTEND_DRIVER_FILES)
$(B)/tests/info_gather_test: | $(foreach l,ascend/libascendcl.so ascend/libascend_hal.so \
	ascend-bare/libacl_rt.so ascend-bare/libascend_hal.so ascend-broken-acl/libascendcl.so, \
	$(B)/tests/$(l))
TEST_SCRIPTS += $(if $(filter thread,$(SAN)),,tests/info_cli.sh)
endif
