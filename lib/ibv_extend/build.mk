# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# libibv_extend, and the archive of its search for drivers, which libnda shares.

extend_numbers := $(subst ., ,$(IBV_EXTEND_VERSION))
CXXFLAGS_lib_ibv_extend := -DNDA_EXTEND_VERSION='"$(IBV_EXTEND_VERSION)"' \
	-DNDA_EXTEND_MAJOR=$(word 1,$(extend_numbers)) \
	-DNDA_EXTEND_MINOR=$(word 2,$(extend_numbers)) \
	-DNDA_EXTEND_PATCH=$(word 3,$(extend_numbers))

# What users of libibv_extend link to.
LIB_EXTEND := $(B)/lib/libibv_extend.so
LIB_EXTEND_SONAME := libibv_extend.so.$(IBV_EXTEND_ABI)
LIB_EXTEND_FILE := $(B)/lib/libibv_extend.so.$(IBV_EXTEND_VERSION)
LIB_EXTEND_MAP := lib/ibv_extend/libibv_extend.map
LIB_EXTEND_SEARCH := $(B)/lib/libndaextend.a
LIBS += $(LIB_EXTEND) $(LIB_EXTEND_SEARCH)

extend_search_objs := $(call objs,$(addprefix lib/ibv_extend/,config.cc device_name.cc loader.cc \
	paths.cc))
extend_api_objs := $(call objs,$(addprefix lib/ibv_extend/,api.cc log.cc registry.cc version.cc))

$(LIB_EXTEND_SEARCH): $(extend_search_objs)
	$(call say,AR,$@)
	@mkdir -p $(@D)
	@rm -f $@
	$(Q)$(AR) rcs $@ $^

# Nothing of libibverbs is called here, but drivers that are not linked to it have always found it
# through this library.
extend_libs := -Wl,--no-as-needed -libverbs -Wl,--as-needed -ldl

$(LIB_EXTEND_FILE): $(extend_api_objs) $(LIB_EXTEND_SEARCH) $(LIB_EXTEND_MAP)
	$(call shlib,$@,$(LIB_EXTEND_SONAME),$(LIB_EXTEND_MAP),\
		$(extend_api_objs) $(LIB_EXTEND_SEARCH),$(extend_libs))

$(B)/lib/$(LIB_EXTEND_SONAME): $(LIB_EXTEND_FILE)
	@ln -sf $(<F) $@

$(LIB_EXTEND): $(B)/lib/$(LIB_EXTEND_SONAME)
	@ln -sf $(<F) $@
