# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
$(eval $(call fuzz_target,hns1825_fuzz,))
$(B)/fuzz/hns1825_fuzz: tests/mock/hns1825_rig.h
