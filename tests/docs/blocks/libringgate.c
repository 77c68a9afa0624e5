// SPDX-License-Identifier: MIT OR GPL-2.0
/* The example of libringgate(3) as it stands there (BLOCK_1), for one frame */
#include <ringgate/ringgate.h>
#include <stdio.h>
#include <stdlib.h>

static void use(const void *data, uint32_t len)
{
	const unsigned char *at = data;

	printf("%u bytes, ethertype %02x%02x\n", len, at[12], at[13]);
	exit(0);
}

int main(void)
{
#include BLOCK_1
	return 1;
}
