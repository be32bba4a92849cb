# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

ifneq ($(HAVE_CLI11),)
$(foreach test,perf_atomic_math perf_file perf_histogram perf_job perf_layout perf_memory perf_options perf_pairs \
	perf_pattern perf_report perf_row perf_secret perf_sha256,$(eval \
	$(call unit_test,$(test)_test,$(perf_host_objs),$(perf_libs))))

# Kernels, over the real software NPU and NIC.
$(eval $(call unit_test,perf_signal_test,$(perf_pe_objs) $(perf_host_objs),$$(nda_outside_libs) $(perf_libs)))
$(B)/tests/perf_signal_test: | $(LIB_NDA) $(SOFT)

TEST_SCRIPTS += tests/perf_jobs.sh tests/perf_cli.sh
endif
