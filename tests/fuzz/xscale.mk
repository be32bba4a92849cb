# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
$(eval $(call fuzz_target,xscale_fuzz,))
$(B)/fuzz/xscale_fuzz: tests/mock/xscale_rig.h
