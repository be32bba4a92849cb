# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

# What users of libnda link to, and its objects, for tests of what the map hides.
LIB_NDA := $(B)/lib/libnda.so
LIB_NDA_SONAME := libnda.so.$(NDA_ABI)
LIB_NDA_FILE := $(B)/lib/libnda.so.$(NDA_VERSION)
LIB_NDA_OBJS := $(call objs,$(wildcard lib/nda/*.cc))
LIBS += $(LIB_NDA)

CXXFLAGS_lib_nda = -DNDA_VERSION='"$(NDA_VERSION)"' $(shell pkg-config --cflags libnl-3.0)
LIB_NDA_LIBS := -lnl-3 -ludev -libverbs -ldl

# libibv_extend lies beside it; packages set RPATH empty and need no run path.
$(LIB_NDA_FILE): $(LIB_NDA_OBJS) lib/nda/libnda.map $(LIB_EXTEND) $(LIB_EXTEND_SEARCH)
	$(call shlib,$@,$(LIB_NDA_SONAME),lib/nda/libnda.map,\
		$(LIB_NDA_OBJS) $(LIB_EXTEND_SEARCH),\
		$(LIB_EXTEND) $(if $(RPATH),-Wl$(comma)-rpath$(comma)'$$ORIGIN') $(LIB_NDA_LIBS))

$(B)/lib/$(LIB_NDA_SONAME): $(LIB_NDA_FILE)
	@ln -sf $(<F) $@

$(LIB_NDA): $(B)/lib/$(LIB_NDA_SONAME)
	@ln -sf $(<F) $@
