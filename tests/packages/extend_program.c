// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <ibv_extend.h>
#include <stdio.h>

int main(void)
{
	puts(ibv_extend_get_version(NULL, NULL, NULL));
	return 0;
}
