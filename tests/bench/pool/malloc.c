// SPDX-License-Identifier: MIT OR GPL-2.0
/* malloc() of the C library, as it comes. */
#include "pool.h"

#include <errno.h>
#include <stdlib.h>

static void *malloc_open(const struct pool_cfg *cfg, const char **why)
{
	size_t *size = malloc(sizeof(*size));

	(void)why;
	if (!size)
		bench_die(ENOMEM, "malloc");
	*size = cfg->size;
	return size;
}

static __always_inline void *malloc_get(void *thread)
{
	void *buf = malloc(*(const size_t *)thread);

	if (!buf)
		bench_die(ENOMEM, "malloc");
	return buf;
}

static __always_inline void malloc_put(void *thread, void *buf)
{
	(void)thread;
	free(buf);
}

POOL_NO_BULK(malloc_get, malloc_put)
POOL_LOOPS(malloc_get, get_each, pool_itself, malloc_put, put_each)

const struct pool_ops pool_malloc = {
	.name = "malloc",
	.open = malloc_open,
	.enter = pool_enter_any,
	.leave = pool_leave_any,
	POOL_RUNS,
	.close = free,
};
