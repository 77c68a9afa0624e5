// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * UCX's ucs_mpool. It has no lock: UCX uses it under that of a worker. Within UCX its
 * calls are inlined from a header that is not installed; others call the library.
 */
#include "pool.h"

#ifndef HAVE_UCS

static void *ucs_open(const struct pool_cfg *cfg, const char **why)
{
	(void)cfg;
	*why = "built without libucs";
	return NULL;
}

const struct pool_ops pool_ucs = {
	.name = "ucs_mpool",
	.pool = true,
	.one_thread = true,
	.open = ucs_open,
};

#else

#include <errno.h>
#include <stdlib.h>
#include <ucs/datastruct/mpool.h>

static ucs_mpool_ops_t ops = {
	.chunk_alloc = ucs_mpool_chunk_mmap,
	.chunk_release = ucs_mpool_chunk_munmap,
};

static void *ucs_open(const struct pool_cfg *cfg, const char **why)
{
	ucs_mpool_t *mp = calloc(1, sizeof(*mp));

	(void)why;
	if (!mp)
		bench_die(ENOMEM, "ucs_mpool");
	if (ucs_mpool_init(mp, 0, cfg->size, 0, 64, cfg->buffers, cfg->buffers, &ops,
			   "bench"))
		bench_die(0, "ucs_mpool_init failed");
	return mp;
}

static __always_inline void *ucs_get(void *thread)
{
	void *buf = ucs_mpool_get(thread);

	if (!buf)
		bench_die(ENOBUFS, "ucs_mpool_get");
	return buf;
}

static __always_inline void ucs_put(void *thread, void *buf)
{
	(void)thread;
	ucs_mpool_put(buf);
}

static void ucs_close(void *pool)
{
	ucs_mpool_cleanup(pool, 1);
	free(pool);
}

POOL_NO_BULK(ucs_get, ucs_put)
POOL_LOOPS(ucs_get, get_each, pool_itself, ucs_put, put_each)

const struct pool_ops pool_ucs = {
	.name = "ucs_mpool",
	.pool = true,
	.one_thread = true,
	.open = ucs_open,
	.enter = pool_enter_any,
	.leave = pool_leave_any,
	POOL_RUNS,
	.close = ucs_close,
};

#endif
