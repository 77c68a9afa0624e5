// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pool.h"
#include "pool_debug.h"

static int register_region(struct rgate_pool *pool, struct rgate_region *r)
{
	const struct rgate_mem_opts opts = RGATE_OPTS(rgate_mem_opts, .access = pool->access);
	int err;

	r->rkey = pool->first_key + r->number;
	if (!pool->dev)
		return 0;
	err = rgate_mem_register(&r->mem, pool->dev, r->backing.addr, r->backing.len, &opts);
	if (err)
		return err;
	r->lkey = rgate_mem_lkey(r->mem);
	r->rkey = rgate_mem_rkey(r->mem);
	return 0;
}

static void free_region(struct rgate_region *r)
{
	rgate_mem_deregister(r->mem);
	rgate_backing_free(&r->backing);
	rgate_runs_fini(&r->runs);
	free(r->owner);
	free(r);
}

static int make_region(struct rgate_region **out, struct rgate_pool *pool, uint32_t number)
{
	const size_t grains = pool->region_size >> RGATE_GRAIN_SHIFT;
	const size_t meta = sizeof(struct rgate_region) + grains * sizeof(struct rgate_slab *) +
			    rgate_runs_bytes((uint32_t)grains);
	struct rgate_region *r;
	int err = -ENOMEM;

	if (!rgate_pool_charge(pool, meta))
		return -ENOBUFS;
	r = calloc(1, sizeof(*r));
	if (!r)
		goto uncharge;
	r->number = number;
	r->owner = calloc(grains, sizeof(struct rgate_slab *));
	if (!r->owner)
		goto free;
	err = rgate_runs_init(&r->runs, (uint32_t)grains);
	if (err)
		goto free;
	err = rgate_backing_make(&r->backing, &pool->backing);
	if (err)
		goto free;
	err = register_region(pool, r);
	if (err)
		goto free;
	if (pool->annotate)
		rgate_mark_region(r->backing.addr, r->backing.len, false);
	*out = r;
	return 0;

free:
	free_region(r);
uncharge:
	rgate_pool_uncharge(pool, meta);
	return err;
}

int rgate_region_add(struct rgate_pool *pool)
{
	struct rgate_region *r = NULL;
	int err;

	if (pool->regions == pool->max_regions)
		return -ENOBUFS;
	err = make_region(&r, pool, pool->regions);
	if (err)
		return err;
	pool->region[pool->regions] = r;
	/* Who sees the number sees the region: pairs with the acquires of who walks them. */
	__atomic_store_n(&pool->regions, pool->regions + 1, __ATOMIC_RELEASE);
	return 0;
}

void rgate_region_free_all(struct rgate_pool *pool)
{
	while (pool->regions)
		free_region(pool->region[--pool->regions]);
}

struct rgate_region *rgate_region_of(const struct rgate_pool *pool, const void *addr)
{
	unsigned int n = __atomic_load_n(&pool->regions, __ATOMIC_ACQUIRE), i;

	for (i = 0; i < n; i++) {
		struct rgate_region *r = pool->region[i];

		if ((uintptr_t)addr - (uintptr_t)r->backing.addr < r->backing.len)
			return r;
	}
	return NULL;
}
