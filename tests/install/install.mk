# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

TEST_SCRIPTS += tests/install/build_sh.sh tests/install/driver_layout.sh
