// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdio.h>

int main(void)
{
	printf("%zu bytes in a pointer\n", sizeof(void *));
	return 0;
}
