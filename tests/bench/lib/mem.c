// SPDX-License-Identifier: MIT OR GPL-2.0
#include "mem.h"

unsigned char mem_pool[MEM_POOL][MEM_LEN_MAX] __attribute__((aligned(64)));

void mem_pool_init(void)
{
	uint64_t x = 88172645463325252ULL;
	unsigned int i, j;

	for (i = 0; i < MEM_POOL; i++) {
		for (j = 0; j < MEM_LEN_MAX; j++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			mem_pool[i][j] = (unsigned char)(x >> 32);
		}
	}
}
