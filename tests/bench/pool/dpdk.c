// SPDX-License-Identifier: MIT OR GPL-2.0
/* DPDK's rte_mempool with a cache per thread, in ordinary pages. */
#include "pool.h"

#ifndef HAVE_DPDK

static void *dpdk_open(const struct pool_cfg *cfg, const char **why)
{
	(void)cfg;
	*why = "built without libdpdk";
	return NULL;
}

const struct pool_ops pool_dpdk = {
	.name = "rte_mempool",
	.pool = true,
	.open = dpdk_open,
};

#else

#include <errno.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_mempool.h>
#include <stdio.h>

/*
 * Once a process: what the largest pool of a run needs, and a third for EAL. It loads
 * the drivers there are; mlx5's asks libibverbs for a kind of fork safety that makes
 * each registration thirty times as dear, which is refused after the first one: so
 * pool_ringgate has to be opened before.
 */
static const char *eal_start(const struct pool_cfg *cfg)
{
	static const char *why;
	static bool known;
	char mib[16], lcores[32];
	char *argv[11] = {
		"bench_pool", "--no-huge", "--no-shconf", "--no-pci", "--no-telemetry",
		"--log-level=error", "-m", mib, "--lcores", lcores, NULL
	};
	size_t most = (size_t)cfg->buffers * (512 << 10);

	if (known)
		return why;
	known = true;
	snprintf(mib, sizeof(mib), "%zu", ((most + most / 3) >> 20) + 64);
	snprintf(lcores, sizeof(lcores), "0@%d", bench_cpu(0));
	if (rte_eal_init(sizeof(argv) / sizeof(argv[0]) - 1, argv) < 0) {
		why = rte_strerror(rte_errno);
	} else {
		/* EAL pinned this thread its own way */
		bench_pin(bench_cpu(0));
	}
	return why;
}

static void *dpdk_open(const struct pool_cfg *cfg, const char **why)
{
	/* the largest that there is; as pools of large buffers are smaller, less there */
	unsigned int cache = cfg->buffers / cfg->threads / 4;
	struct rte_mempool *mp;

	*why = eal_start(cfg);
	if (*why)
		return NULL;
	if (cache > RTE_MEMPOOL_CACHE_MAX_SIZE)
		cache = RTE_MEMPOOL_CACHE_MAX_SIZE;
	mp = rte_mempool_create("bench", cfg->buffers, (unsigned int)cfg->size, cache, 0,
				NULL, NULL, NULL, NULL, SOCKET_ID_ANY, 0);
	if (!mp)
		bench_die(rte_errno, "rte_mempool_create");
	return mp;
}

static void *dpdk_enter(void *pool, unsigned int thread)
{
	(void)thread;
	if (rte_thread_register())
		bench_die(rte_errno, "rte_thread_register");
	return pool;
}

static void dpdk_leave(void *thread)
{
	(void)thread;
	rte_thread_unregister();
}

static __always_inline void *dpdk_get(void *thread)
{
	void *buf;

	if (rte_mempool_get(thread, &buf))
		bench_die(ENOBUFS, "rte_mempool_get");
	return buf;
}

static __always_inline void dpdk_get_bulk(void *thread, void **bufs, unsigned int n)
{
	if (rte_mempool_get_bulk(thread, bufs, n))
		bench_die(ENOBUFS, "rte_mempool_get_bulk");
}

static __always_inline void dpdk_put(void *thread, void *buf)
{
	rte_mempool_put(thread, buf);
}

static __always_inline void dpdk_put_bulk(void *thread, void **bufs, unsigned int n)
{
	rte_mempool_put_bulk(thread, bufs, n);
}

static void dpdk_close(void *pool)
{
	rte_mempool_free(pool);
}

POOL_LOOPS(dpdk_get, dpdk_get_bulk, pool_itself, dpdk_put, dpdk_put_bulk)

const struct pool_ops pool_dpdk = {
	.name = "rte_mempool",
	.pool = true,
	.open = dpdk_open,
	.enter = dpdk_enter,
	.leave = dpdk_leave,
	POOL_RUNS,
	.close = dpdk_close,
};

#endif
