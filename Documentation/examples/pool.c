// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Buffers of many sizes from one memory region, and what a peer needs to reach one.
 *
 *	pool [RDMA-DEVICE | none]
 *
 * Without an argument the best device is taken; with "none" the pool has no device,
 * as on a single machine.
 */
#include <inttypes.h>
#include <ringgate/ringgate.h>
#include <stdio.h>
#include <string.h>

static void on_log(void *ctx, enum rgate_log_level level, const char *msg)
{
	(void)ctx;
	if (level <= RGATE_LOG_WARN)
		fprintf(stderr, "%s\n", msg);
}

static int fill(struct rgate_pool *pool)
{
	static const size_t sizes[] = { 64, 1500, 4096, 65536, 1 << 20 };
	const struct rgate_buf *buf;
	struct rgate_desc desc;
	size_t i;
	int err;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		err = rgate_pool_alloc(pool, sizes[i], &buf);
		if (err)
			return err;
		memset(buf->addr, 0x55, buf->length);
		/* For a verbs call: { (uintptr_t)buf->addr, buf->length, buf->lkey } */
		err = rgate_buf_desc(pool, buf, 0, 0, &desc);
		printf("%7zu bytes at %p, lkey %#x, rkey %#x\n", buf->length, buf->addr,
		       buf->lkey, buf->rkey);
		rgate_pool_free(pool, buf);	/* by any thread */
		if (err)
			return err;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct rgate_device_opts dopts = RGATE_OPTS(rgate_device_opts,
						    .name = argc > 1 ? argv[1] : NULL);
	struct rgate_pool_opts opts = RGATE_OPTS(rgate_pool_opts,
						 .region_size = 16 << 20,
						 .max_size = 64 << 20,
						 .access = RGATE_ACCESS_REMOTE);
	struct rgate_pool_stats st = { .sz = sizeof(st) };
	struct rgate_device *dev = NULL;
	struct rgate_pool *pool = NULL;
	int err = 0;

	rgate_log_set(on_log, NULL);
	if (argc < 2 || strcmp(argv[1], "none"))
		err = rgate_device_open(&dev, &dopts);
	if (!err)
		err = rgate_pool_create(&pool, dev, &opts);
	if (!err)
		err = fill(pool);
	if (!err)
		err = rgate_pool_stats(pool, &st);
	if (!err)
		printf("%" PRIu64 " region(s), %" PRIu64 " bytes, %" PRIu64 " allocations\n",
		       st.regions, st.region_bytes, st.allocs);
	if (err)
		fprintf(stderr, "pool: %s\n", rgate_strerror("rgate_pool_", err));
	rgate_pool_destroy(pool);
	rgate_device_close(dev);
	return err ? 1 : 0;
}
