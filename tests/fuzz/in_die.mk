# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
$(eval $(call fuzz_target,in_die_fuzz,))
$(B)/fuzz/in_die_fuzz: tests/mock/in_die_rig.h
