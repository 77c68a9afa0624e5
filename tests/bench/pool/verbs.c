// SPDX-License-Identifier: MIT OR GPL-2.0
/* Memory that is there already, registered for each use. */
#include "pool.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <ringgate/ringgate.h>

#define BUFFERS 64U		/* each thread uses them in turn */

struct verbs_thread {
	struct ibv_pd *pd;
	unsigned char *mem;
	size_t size;
	unsigned int next;
};

struct verbs {
	struct ibv_pd *pd;
	size_t size;
};

static void *verbs_open(const struct pool_cfg *cfg, const char **why)
{
	struct rgate_device *dev = pool_device(why);
	struct verbs *v;

	if (!dev)
		return NULL;
	v = calloc(1, sizeof(*v));
	if (!v)
		bench_die(ENOMEM, "verbs");
	v->pd = rgate_device_pd(dev);
	v->size = cfg->size;
	return v;
}

static void *verbs_enter(void *pool, unsigned int thread)
{
	const struct verbs *v = pool;
	struct verbs_thread *t = calloc(1, sizeof(*t));

	(void)thread;
	if (!t)
		bench_die(ENOMEM, "verbs");
	t->pd = v->pd;
	t->size = v->size;
	t->mem = mmap(NULL, BUFFERS * t->size, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (t->mem == MAP_FAILED)
		bench_die(errno, "mmap");
	return t;
}

static void verbs_leave(void *thread)
{
	struct verbs_thread *t = thread;

	munmap(t->mem, BUFFERS * t->size);
	free(t);
}

static void *verbs_get(void *thread)
{
	struct verbs_thread *t = thread;
	struct ibv_mr *mr;

	mr = ibv_reg_mr(t->pd, t->mem + t->size * (t->next++ % BUFFERS), t->size,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
			IBV_ACCESS_REMOTE_WRITE);
	if (!mr)
		bench_die(errno, "ibv_reg_mr");
	return mr;
}

static void *verbs_addr(void *buf)
{
	return ((struct ibv_mr *)buf)->addr;
}

static void verbs_put(void *thread, void *buf)
{
	int err = ibv_dereg_mr(buf);

	(void)thread;
	if (err)
		bench_die(err, "ibv_dereg_mr");
}

POOL_NO_BULK(verbs_get, verbs_put)
POOL_LOOPS(verbs_get, get_each, verbs_addr, verbs_put, put_each)

const struct pool_ops pool_verbs = {
	.name = "ibv_reg_mr",
	.registers = true,
	.open = verbs_open,
	.enter = verbs_enter,
	.leave = verbs_leave,
	POOL_RUNS,
	.close = free,
};
