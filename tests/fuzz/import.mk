# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
$(eval $(call fuzz_target,import_fuzz,lib/nda/import_layout.cc lib/nda/error.cc lib/nda/log.cc))
