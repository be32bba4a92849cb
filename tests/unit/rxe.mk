# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Soft-RoCE: its queue format, the data plane on it, the extension driver.

$(foreach test,rxe_format aiv_rxe,$(eval $(call unit_test,$(test)_test)))
