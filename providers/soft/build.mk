# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# libnda_soft.so: the software NPU and NICs, an extension driver. It must stay loaded: its threads
# run until the process ends.

SOFT := $(B)/lib/libnda_soft.so
SOFT_MAP := providers/soft/libnda_soft.map
SOFT_OBJS := $(call objs,$(addprefix providers/soft/,api.cc driver.cc engine.cc error.cc event_log.cc \
	extended.cc fabric.cc heap.cc hns1825_model.cc in_die_model.cc inject.cc jetty.cc nic.cc npu.cc \
	peer.cc queue_format.cc queues.cc transfer.cc udma_model.cc wire.cc xscale_model.cc))
PROVIDERS += $(SOFT)

$(SOFT): $(SOFT_OBJS) $(SOFT_MAP) $(LIB_EXTEND)
	$(call shlib,$@,libnda_soft.so,$(SOFT_MAP),$(SOFT_OBJS),-z nodelete \
		-L$(B)/lib -libv_extend)
