// SPDX-License-Identifier: MIT OR GPL-2.0
/* The loops alone: the same buffer again and again. */
#include "pool.h"

static char buffer[64];

static void *none_open(const struct pool_cfg *cfg, const char **why)
{
	(void)cfg;
	(void)why;
	return buffer;
}

static __always_inline void *none_get(void *thread)
{
	__asm__ volatile("" : "+r"(thread) : : "memory");
	return thread;
}

static __always_inline void none_put(void *thread, void *buf)
{
	(void)thread;
	__asm__ volatile("" : : "r"(buf) : "memory");
}

static void none_close(void *pool)
{
	(void)pool;
}

POOL_NO_BULK(none_get, none_put)
POOL_LOOPS(none_get, get_each, pool_itself, none_put, put_each)

const struct pool_ops pool_none = {
	.name = "loop",
	.open = none_open,
	.enter = pool_enter_any,
	.leave = pool_leave_any,
	POOL_RUNS,
	.close = none_close,
};
