# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# libnda_rxe.so: the extension driver of Soft-RoCE, the kernel's rdma_rxe.

RXE := $(B)/lib/libnda_rxe.so
RXE_MAP := providers/rxe/libnda_rxe.map
RXE_OBJS := $(call objs,$(addprefix providers/rxe/,command.cc cq.cc driver.cc error.cc memory.cc \
	object.cc qp.cc ring.cc srq.cc))
PROVIDERS += $(RXE)
PROVIDER_CONFIGS += providers/rxe/nda_rxe.driver

$(RXE): $(RXE_OBJS) $(RXE_MAP) $(LIB_EXTEND)
	$(call shlib,$@,libnda_rxe.so,$(RXE_MAP),$(RXE_OBJS),-L$(B)/lib -libv_extend)
