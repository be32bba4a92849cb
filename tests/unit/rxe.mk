# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Soft-RoCE: its queue format, the data plane on it, the extension driver.

$(foreach test,rxe_format aiv_rxe,$(eval $(call unit_test,$(test)_test)))

# Linked to the driver's objects: the kernel is exchanged in them.
rxe_driver_libs = -L$(B)/lib -libv_extend $(if $(RPATH),-Wl$(comma)-rpath$(comma)'$(RPATH)')
$(eval $(call unit_test,rxe_driver_test,$(RXE_OBJS) $(LIB_EXTEND),$$(rxe_driver_libs)))
