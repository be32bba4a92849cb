# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Soft-RoCE: its queue format, the data plane on it, the extension driver.

$(eval $(call unit_test,rxe_format_test))
