# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
$(eval $(call fuzz_target,udma_fuzz,))
$(B)/fuzz/udma_fuzz: tests/mock/udma_rig.h
