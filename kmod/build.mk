# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The kernel modules.

kmod:
	@echo '  kmod: there is no kernel module yet'
