# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The software NPU, NICs and fabric. The tests are linked to its objects: they reach what the library
# hides, and the sanitizers see all of it.

soft_bench := $(SOFT_OBJS) $(call objs,tests/mock/soft_bench.cc) $(LIB_EXTEND)
soft_libs = -L$(B)/lib -libv_extend $(if $(RPATH),-Wl$(comma)-rpath$(comma)'$(RPATH)')

$(eval $(call unit_test,soft_transfer_test,$(soft_bench),$$(soft_libs)))
$(eval $(call unit_test,soft_event_log_test,$(soft_bench),$$(soft_libs)))
$(eval $(call unit_test,soft_xscale_test,$(soft_bench),$$(soft_libs)))
$(eval $(call unit_test,soft_in_die_test,$(soft_bench),$$(soft_libs)))
$(eval $(call unit_test,soft_udma_test,$(soft_bench),$$(soft_libs)))
$(eval $(call unit_test,soft_engine_test,$(soft_bench),$$(soft_libs)))
$(eval $(call unit_test,soft_npu_test,$(soft_bench),$$(soft_libs)))
$(eval $(call unit_test,soft_device_test,$(soft_bench),$$(soft_libs) -libverbs))
$(B)/tests/soft_device_test: | $(SOFT)
$(eval $(call unit_test,soft_threads_test,$(soft_bench),$$(soft_libs)))
$(eval $(call unit_test,soft_verbs_test,$(soft_bench),$$(soft_libs)))
$(eval $(call unit_test,soft_fabric_test,$(soft_bench) $(call objs,tests/mock/soft_process.cc),\
	$$(soft_libs)))
$(B)/tests/soft_fabric_test: | $(B)/tests/soft_peer

# The other process.
TEST_HELPERS += $(B)/tests/soft_peer
$(B)/tests/soft_peer: $(call objs,tests/mock/soft_peer.cc) $(soft_bench)
	$(call prog,$@,$(filter %.o,$^),$(soft_libs) -lgtest)
