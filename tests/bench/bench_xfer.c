// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * RDMA between two queue pairs of one device, from and to buffers of a pool (one
 * memory region) and buffers of a memory region each. The two take turns, and each
 * pair of turns gives one ratio; what arrived is compared after each turn.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <ringgate/ringgate.h>

#include "bench.h"
#include "rc.h"

#define BUFFERS		64U	/* at each end, used in turn */
#define STEP		17U	/* to the next one: not in order of addresses */
#define WINDOW		16U	/* operations under way */
#define SIGNALLED	4U	/* every so many operations complete with a notice */
#define PATIENCE	60000	/* ms; an emulated machine can be slow */
#define ACCESS		(RGATE_ACCESS_REMOTE_READ | RGATE_ACCESS_REMOTE_WRITE)

struct buf {
	unsigned char *addr;
	uint32_t lkey, rkey;
	const struct rgate_buf *of_pool;
	struct rgate_mem *whole;
};

/* One kind of buffers, at both ends */
struct side {
	const char *name;
	struct rgate_pool *pool;	/* NULL: a region for each buffer */
	struct buf from[BUFFERS], to[BUFFERS];
};

struct link {
	struct rgate_device *dev;
	struct rgate_rc *near, *far;
};

struct cell {
	enum rgate_rc_op op;
	const char *name;
	uint32_t size;
	uint64_t n;			/* operations of a turn */
	double pool, whole;		/* medians, bytes a second */
	double ratio, q1, q3;		/* pool over whole */
	double of_medians;
};

static void __attribute__((noreturn)) fail(int err, const char *what)
{
	bench_die(0, "%s: %s", what, rgate_strerror("rgate_mem_", err));
}

static struct rgate_rc *link_end(struct rgate_device *dev)
{
	struct rgate_rc_opts opts = {
		.sz = sizeof(opts),
		.send_wr = 2 * WINDOW,
		.recv_wr = 2 * WINDOW,
		.access = ACCESS,
		.timeout_ms = PATIENCE,
	};
	struct rgate_rc *rc;
	int err = rgate_rc_create(&rc, dev, &opts);

	if (err)
		fail(err, "rgate_rc_create");
	return rc;
}

static void link_open(struct link *l)
{
	struct rgate_rc_addr near, far;
	int err = rgate_device_open(&l->dev, NULL);

	if (err)
		fail(err, "rgate_device_open");
	l->near = link_end(l->dev);
	l->far = link_end(l->dev);
	rgate_rc_addr(l->near, &near);
	rgate_rc_addr(l->far, &far);
	err = rgate_rc_connect(l->near, &far);
	if (!err)
		err = rgate_rc_connect(l->far, &near);
	if (err)
		fail(err, "rgate_rc_connect");
}

static void link_close(struct link *l)
{
	rgate_rc_destroy(l->near);
	rgate_rc_destroy(l->far);
	rgate_device_close(l->dev);
}

static void buf_open(struct side *s, struct link *l, struct buf *b, uint32_t size)
{
	struct rgate_mem_opts opts = { .sz = sizeof(opts), .access = ACCESS };
	int err;

	if (s->pool) {
		err = rgate_pool_alloc(s->pool, size, &b->of_pool);
		if (err)
			fail(err, "rgate_pool_alloc");
		b->addr = b->of_pool->addr;
		b->lkey = b->of_pool->lkey;
		b->rkey = b->of_pool->rkey;
		return;
	}
	b->addr = aligned_alloc(4096, size < 4096 ? 4096 : size);
	if (!b->addr)
		bench_die(ENOMEM, "buffer");
	memset(b->addr, 1, size);
	err = rgate_mem_register(&b->whole, l->dev, b->addr, size, &opts);
	if (err)
		fail(err, "rgate_mem_register");
	b->lkey = rgate_mem_lkey(b->whole);
	b->rkey = rgate_mem_rkey(b->whole);
}

static void buf_close(struct side *s, struct buf *b)
{
	int err = s->pool ? rgate_pool_free(s->pool, b->of_pool) : 0;

	if (err)
		fail(err, "buffer");
	if (!s->pool) {
		rgate_mem_deregister(b->whole);
		free(b->addr);
	}
}

static void side_open(struct side *s, struct link *l, uint32_t size)
{
	unsigned int i;

	for (i = 0; i < BUFFERS; i++) {
		buf_open(s, l, &s->from[i], size);
		buf_open(s, l, &s->to[i], size);
	}
}

static void side_close(struct side *s)
{
	unsigned int i;

	for (i = 0; i < BUFFERS; i++) {
		buf_close(s, &s->from[i]);
		buf_close(s, &s->to[i]);
	}
}

static struct buf *nth(struct buf *bufs, uint64_t i)
{
	return &bufs[i * STEP % BUFFERS];
}

static void fill(struct side *s, uint32_t size)
{
	unsigned int i;
	uint32_t k;

	for (i = 0; i < BUFFERS; i++) {
		memset(s->from[i].addr, (int)(i + 1), size);
		/* no two pages are the same */
		for (k = 0; k < size; k += 64)
			memcpy(s->from[i].addr + k, &k, sizeof(k));
		memset(s->to[i].addr, 0, size);
	}
}

static void compare(const struct side *s, const struct cell *c)
{
	unsigned int i, same = 0;

	for (i = 0; i < BUFFERS; i++)
		same += !memcmp(s->from[i].addr, s->to[i].addr, c->size);
	/* a turn uses each at least once */
	if (same != BUFFERS)
		bench_die(0, "%s, %s of %u bytes: %u of %u buffers arrived", s->name,
			  c->name, c->size, same, BUFFERS);
}

/* A read fetches from "from", the others bring there: the same bytes move */
static void post(struct link *l, struct side *s, const struct cell *c, uint64_t first)
{
	struct rgate_rc_work work[SIGNALLED];
	unsigned int i;
	int err;

	for (i = 0; i < SIGNALLED; i++) {
		const struct buf *from = nth(s->from, first + i);
		const struct buf *to = nth(s->to, first + i);
		const struct buf *here = c->op == RGATE_RC_READ ? to : from;
		const struct buf *there = c->op == RGATE_RC_READ ? from : to;

		work[i] = (struct rgate_rc_work){
			.op = c->op,
			.quiet = i + 1 < SIGNALLED,
			.id = first + i,
			.addr = here->addr,
			.length = c->size,
			.lkey = here->lkey,
			.remote = (uintptr_t)there->addr,
			.rkey = there->rkey,
		};
	}
	err = rgate_rc_post(l->near, work, SIGNALLED);
	if (err)
		fail(err, "rgate_rc_post");
}

static void post_recv(struct link *l, struct side *s, const struct cell *c, uint64_t first,
		      unsigned int n)
{
	unsigned int i;
	int err;

	for (i = 0; i < n; i++) {
		const struct buf *to = nth(s->to, first + i);

		err = rgate_rc_recv(l->far, first + i, to->addr, c->size, to->lkey);
		if (err)
			fail(err, "rgate_rc_recv");
	}
}

static void completed(struct rgate_rc *rc)
{
	struct ibv_wc wc;
	int got = rgate_rc_poll(rc, &wc, PATIENCE);

	if (got < 0)
		fail(got, "rgate_rc_poll");
	if (!got)
		bench_die(0, "nothing completes");
	if (wc.status != IBV_WC_SUCCESS)
		bench_die(0, "completion: %s", ibv_wc_status_str(wc.status));
}

/* Bytes a second */
static double turn(struct link *l, struct side *s, const struct cell *c)
{
	bool two_sided = c->op == RGATE_RC_SEND;
	uint64_t posted = 0, done = 0, began;
	unsigned int i;

	fill(s, c->size);
	if (two_sided)
		post_recv(l, s, c, 0, WINDOW);
	began = bench_now_ns();
	while (done < c->n) {
		while (posted < c->n && posted - done < WINDOW) {
			post(l, s, c, posted);
			posted += SIGNALLED;
		}
		completed(l->near);
		for (i = 0; two_sided && i < SIGNALLED; i++)
			completed(l->far);
		if (two_sided && done + WINDOW < c->n)
			post_recv(l, s, c, done + WINDOW, SIGNALLED);
		done += SIGNALLED;
	}
	began = bench_now_ns() - began;
	compare(s, c);
	return (double)c->n * c->size * 1e9 / (double)began;
}

/* Operations that take about @ms */
static void turn_count(struct link *l, struct side *s, struct cell *c, unsigned int ms)
{
	double rate;

	c->n = BUFFERS;
	turn(l, s, c);
	rate = turn(l, s, c) / c->size;
	c->n = (uint64_t)(rate * ms / 1000.0) / WINDOW * WINDOW;
	if (c->n < BUFFERS)
		c->n = BUFFERS;
}

static void measure(struct link *l, struct side *pool, struct side *whole, struct cell *c,
		    const struct bench_opts *o)
{
	double p[BENCH_ROUNDS_MAX], w[BENCH_ROUNDS_MAX], ratio[BENCH_ROUNDS_MAX];
	unsigned int i;

	turn_count(l, whole, c, o->ms);
	for (i = 0; i < o->rounds; i++) {
		if (i & 1)
			p[i] = turn(l, pool, c);
		w[i] = turn(l, whole, c);
		if (!(i & 1))
			p[i] = turn(l, pool, c);
		ratio[i] = p[i] / w[i];
	}
	c->pool = bench_median(p, o->rounds);
	c->whole = bench_median(w, o->rounds);
	c->of_medians = c->pool / c->whole;
	c->ratio = bench_median(ratio, o->rounds);
	c->q1 = bench_quantile(ratio, o->rounds, 0.25);
	c->q3 = bench_quantile(ratio, o->rounds, 0.75);
}

static void cell_print(const struct cell *c, FILE *json)
{
	static bool more;

	printf("%6s %7u %8llu %12.2f %12.2f  %.4f  %.4f (%.4f to %.4f)\n", c->name, c->size,
	       (unsigned long long)c->n, c->whole / 1e6, c->pool / 1e6, c->of_medians,
	       c->ratio, c->q1, c->q3);
	fflush(stdout);
	if (!json)
		return;
	fprintf(json, "%s{\"op\":\"%s\",\"bytes\":%u,\"n\":%llu,\"whole\":%.0f,\"pool\":%.0f,"
		"\"of_medians\":%.4f,\"ratio\":%.4f,\"ratio_q1\":%.4f,\"ratio_q3\":%.4f}",
		more ? "," : "", c->name, c->size, (unsigned long long)c->n, c->whole,
		c->pool, c->of_medians, c->ratio, c->q1, c->q3);
	more = true;
}

static void run_size(struct link *l, uint32_t size, const struct bench_opts *o)
{
	static struct side pool = { .name = "pool" }, whole = { .name = "whole" };
	static const struct {
		enum rgate_rc_op op;
		const char *name;
	} ops[] = {
		{ RGATE_RC_WRITE, "write" }, { RGATE_RC_SEND, "send" },
		{ RGATE_RC_READ, "read" },
	};
	struct rgate_pool_opts opts = { .sz = sizeof(opts), .access = ACCESS };
	unsigned int i;
	int err;

	err = rgate_pool_create(&pool.pool, l->dev, &opts);
	if (err)
		fail(err, "rgate_pool_create");
	side_open(&pool, l, size);
	side_open(&whole, l, size);
	for (i = 0; i < 3; i++) {
		struct cell c = { .op = ops[i].op, .name = ops[i].name, .size = size };

		measure(l, &pool, &whole, &c, o);
		cell_print(&c, o->json);
	}
	side_close(&whole);
	side_close(&pool);
	rgate_pool_destroy(pool.pool);
}

static void run(const struct bench_opts *o)
{
	static const uint32_t sizes[] = { 64, 4096, 65536, 524288 };
	double load = bench_load();
	struct link l;
	unsigned int i;

	link_open(&l);
	printf("RDMA through %s: %u CPUs, load %.2f, medians of %u rounds of about %u ms a turn\n\n"
	       "    op   bytes  a turn   whole, MB/s   pool, MB/s  ratio  of turns (quartiles)\n",
	       rgate_device_info(l.dev)->name, bench_cpus(), load, o->rounds, o->ms);
	bench_json_begin(o, load);
	for (i = 0; i < 4; i++)
		run_size(&l, sizes[i], o);
	if (o->json)
		fprintf(o->json, "],\"device\":\"%s\"", rgate_device_info(l.dev)->name);
	link_close(&l);
}

int main(int argc, char **argv)
{
	struct bench_opts o = { .rounds = 41, .ms = 50, .cpus = 1 };

	bench_start(argc, argv, 0, &o);
	run(&o);
	bench_finish(&o);
	return 0;
}
