// SPDX-License-Identifier: MIT OR GPL-2.0
/* ringgate's pool with its defaults, on the RDMA device where there is one. */
#include "pool.h"

#include <ringgate/ringgate.h>

#define DEFAULT_REGION	((size_t)128 << 20)

struct ringgate {
	struct rgate_pool *pool;
	size_t size;
};

struct rgate_device *pool_device(const char **why)
{
	static struct rgate_device *dev;
	static const char *failed;

	if (!dev && !failed) {
		int err = rgate_device_open(&dev, NULL);

		if (err)
			failed = rgate_strerror("rgate_mem_", err);
	}
	*why = failed;
	return dev;
}

static void *ringgate_open(const struct pool_cfg *cfg, const char **why)
{
	static struct ringgate r;
	struct rgate_pool_opts opts = {
		.sz = sizeof(opts),
		.region_size = cfg->size * cfg->buffers,
		.access = RGATE_ACCESS_REMOTE_READ | RGATE_ACCESS_REMOTE_WRITE,
	};
	const char *no_device;
	int err;

	(void)why;
	if (opts.region_size < DEFAULT_REGION)
		opts.region_size = DEFAULT_REGION;
	err = rgate_pool_create(&r.pool, pool_device(&no_device), &opts);
	if (err)
		bench_die(0, "rgate_pool_create: %s", rgate_strerror("rgate_mem_", err));
	r.size = cfg->size;
	return &r;
}

static void __attribute__((noreturn, cold)) ringgate_die(int err, const char *what)
{
	bench_die(0, "%s: %s", what, rgate_strerror("rgate_mem_", err));
}

static __always_inline void *ringgate_get(void *thread)
{
	const struct ringgate *r = thread;
	const struct rgate_buf *buf;
	int err = rgate_pool_alloc(r->pool, r->size, &buf);

	if (err)
		ringgate_die(err, "rgate_pool_alloc");
	return (void *)buf;
}

static __always_inline void ringgate_get_bulk(void *thread, void **bufs, unsigned int n)
{
	const struct ringgate *r = thread;
	int err = rgate_pool_alloc_batch(r->pool, r->size, NULL,
					 (const struct rgate_buf **)bufs, n);

	if (err)
		ringgate_die(err, "rgate_pool_alloc_batch");
}

static __always_inline void *ringgate_addr(void *buf)
{
	return ((const struct rgate_buf *)buf)->addr;
}

static __always_inline void ringgate_put(void *thread, void *buf)
{
	int err = rgate_pool_free(((const struct ringgate *)thread)->pool, buf);

	if (err)
		ringgate_die(err, "rgate_pool_free");
}

static __always_inline void ringgate_put_bulk(void *thread, void **bufs, unsigned int n)
{
	int err = rgate_pool_free_batch(((const struct ringgate *)thread)->pool,
					(const struct rgate_buf *const *)bufs, n);

	if (err)
		ringgate_die(err, "rgate_pool_free_batch");
}

static void ringgate_close(void *pool)
{
	rgate_pool_destroy(((const struct ringgate *)pool)->pool);
}

POOL_LOOPS(ringgate_get, ringgate_get_bulk, ringgate_addr, ringgate_put, ringgate_put_bulk)

const struct pool_ops pool_ringgate = {
	.name = "ringgate",
	.open = ringgate_open,
	.enter = pool_enter_any,
	.leave = pool_leave_any,
	POOL_RUNS,
	.close = ringgate_close,
};
