# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

info_test_objs := $(info_objs) $(LIB_EXTEND_SEARCH)
$(eval $(call unit_test,info_checks_test,$(call objs,lib/tools/info/checks.cc)))
