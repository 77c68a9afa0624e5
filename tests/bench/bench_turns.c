// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Both ends of a connection in one thread, where each takes its turn: what an operation
 * costs with nobody waiting for anybody. Beside the same verbs without a library: what
 * perftest does in its loops, each call of it and nothing else. In a machine that counts
 * instructions the figures repeat.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <ringgate/ringgate.h>

#include "bench.h"
#include "rc.h"

#define PATIENCE	60000	/* ms */
#define DEPTH		128U	/* of perftest's tx_depth, and the library's default */
#define MODERATE	100U	/* perftest: every so many writes of a stream complete */
#define BYTES_MAX	65536U
#define SLOT		2048U
#define ACCESS		RGATE_ACCESS_REMOTE

enum what { WRITE, IMM, SEND, READ, ADD, STREAM };

struct cell {
	enum what what;
	const char *name;
	uint32_t bytes;
	uint32_t batch;
	uint32_t n;
};

struct figures {			/* ns an operation */
	double bare, lib, ratio, q1, q3;
};

/* Two queue pairs connected to each other */
struct bare {
	struct rgate_device *dev;
	struct rgate_pool *pool;
	struct rgate_rc *rc[2];
	struct ibv_qp *qp[2];
	const struct rgate_buf *out[2], *in[2];
	uint32_t inlined;
};

struct lib {
	struct rgate_cluster *cluster;
	struct rgate_node *node[2];
	struct rgate_peer *peer[2];
	const struct rgate_buf *out[2], *in[2];
	struct rgate_remote at[2];	/* "in" of that side */
};

static void must(int err, const char *what)
{
	if (err < 0)
		bench_die(0, "%s: %s", what, rgate_strerror("rgate_mem_", err));
}

/*
 * Without the library
 */

static void post_recv(struct bare *b, unsigned int i)
{
	struct ibv_sge sge = { (uintptr_t)b->in[i]->addr, SLOT, b->in[i]->lkey };
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };

	must(-ibv_post_recv(b->qp[i], &wr, &bad), "ibv_post_recv");
}

static void bare_open(struct bare *b)
{
	const struct rgate_rc_opts opts = RGATE_OPTS(rgate_rc_opts, .send_wr = DEPTH,
		.recv_wr = DEPTH, .inline_data = 256, .access = ACCESS, .timeout_ms = PATIENCE);
	const struct rgate_pool_opts pool = RGATE_OPTS(rgate_pool_opts, .region_size = 4 << 20,
						       .access = ACCESS);
	const struct rgate_alloc_opts zero = RGATE_OPTS(rgate_alloc_opts,
							.flags = RGATE_ALLOC_ZERO);
	struct rgate_rc_addr addr[2];
	unsigned int i;

	must(rgate_device_open(&b->dev, NULL), "rgate_device_open");
	must(rgate_pool_create(&b->pool, b->dev, &pool), "rgate_pool_create");
	for (i = 0; i < 2; i++) {
		must(rgate_rc_create(&b->rc[i], b->dev, &opts), "rgate_rc_create");
		rgate_rc_addr(b->rc[i], &addr[i]);
		b->qp[i] = rgate_rc_qp(b->rc[i]);
		must(rgate_pool_alloc_opts(b->pool, BYTES_MAX, &zero, &b->out[i]), "buffer");
		must(rgate_pool_alloc_opts(b->pool, BYTES_MAX, &zero, &b->in[i]), "buffer");
	}
	for (i = 0; i < 2; i++)
		must(rgate_rc_connect(b->rc[i], &addr[!i]), "rgate_rc_connect");
	b->inlined = rgate_rc_inline(b->rc[0]);
}

static void bare_close(struct bare *b)
{
	unsigned int i;

	for (i = 0; i < 2; i++) {
		rgate_rc_destroy(b->rc[i]);
		must(rgate_pool_free(b->pool, b->out[i]), "buffer");
		must(rgate_pool_free(b->pool, b->in[i]), "buffer");
	}
	rgate_pool_destroy(b->pool);
	rgate_device_close(b->dev);
}

/* The next completion at end @i */
static void taken(struct bare *b, unsigned int i)
{
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(b->qp[i]->send_cq, 1, &wc)))
		;
	if (n < 0 || wc.status != IBV_WC_SUCCESS)
		bench_die(0, "completion: %s", n < 0 ? "none" : ibv_wc_status_str(wc.status));
}

static void bare_post(struct bare *b, unsigned int i, const struct cell *c, bool signal)
{
	static const enum ibv_wr_opcode opcodes[] = {
		[WRITE] = IBV_WR_RDMA_WRITE, [IMM] = IBV_WR_RDMA_WRITE_WITH_IMM,
		[SEND] = IBV_WR_SEND, [READ] = IBV_WR_RDMA_READ,
		[ADD] = IBV_WR_ATOMIC_FETCH_AND_ADD, [STREAM] = IBV_WR_RDMA_WRITE,
	};
	struct ibv_sge sge = { (uintptr_t)b->out[i]->addr, c->bytes, b->out[i]->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = opcodes[c->what],
		.send_flags = (signal ? IBV_SEND_SIGNALED : 0) |
			      (c->what < READ && c->bytes <= b->inlined ? IBV_SEND_INLINE : 0),
	};

	if (c->what == ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)b->in[!i]->addr;
		wr.wr.atomic.rkey = b->in[!i]->rkey;
		wr.wr.atomic.compare_add = 1;
	} else if (c->what != SEND) {
		wr.wr.rdma.remote_addr = (uintptr_t)b->in[!i]->addr;
		wr.wr.rdma.rkey = b->in[!i]->rkey;
	}
	must(-ibv_post_send(b->qp[i], &wr, &bad), "ibv_post_send");
}

static void wait_byte(const struct rgate_buf *in, uint32_t at, uint8_t value)
{
	while (__atomic_load_n((uint8_t *)in->addr + at, __ATOMIC_ACQUIRE) != value)
		;
}

static void bare_way(struct bare *b, unsigned int from, const struct cell *c, uint32_t no)
{
	if (c->what == WRITE)
		((uint8_t *)b->out[from]->addr)[c->bytes - 1] = (uint8_t)no;
	bare_post(b, from, c, true);
	if (c->what == WRITE) {
		wait_byte(b->in[!from], c->bytes - 1, (uint8_t)no);
	} else if (c->what != READ && c->what != ADD) {
		taken(b, !from);
		post_recv(b, !from);
	}
	taken(b, from);
}

static double bare_turn(struct bare *b, const struct cell *c)
{
	uint64_t begun, under = 0;
	uint32_t i;

	if (c->what == IMM || c->what == SEND) {
		post_recv(b, 0);
		post_recv(b, 1);
	}
	begun = bench_now_ns();
	for (i = 0; i < c->n; i++) {
		if (c->what != STREAM) {
			bare_way(b, c->what < READ ? i & 1 : 0, c, i + 1);
			continue;
		}
		if (under == DEPTH) {
			taken(b, 0);
			under -= MODERATE;
		}
		bare_post(b, 0, c, i % MODERATE == MODERATE - 1);
		under++;
	}
	if (c->what == STREAM) {
		for (; under >= MODERATE; under -= MODERATE)
			taken(b, 0);
	}
	return (double)(bench_now_ns() - begun) / c->n;
}

/*
 * With the library
 */

static void lib_open(struct lib *l, const struct rgate_device_info *dev)
{
	const struct rgate_alloc_opts zero = RGATE_OPTS(rgate_alloc_opts,
							.flags = RGATE_ALLOC_ZERO);
	const struct rgate_pool_opts pool = RGATE_OPTS(rgate_pool_opts, .region_size = 4 << 20,
						       .access = ACCESS);
	struct rgate_node_opts opts = RGATE_OPTS(rgate_node_opts, .pool = &pool,
						 .timeout_ms = PATIENCE);
	char text[512], addr[INET_ADDRSTRLEN];
	struct rgate_desc d;
	unsigned int i;
	int n;

	/* an IPv4 address in its GID */
	inet_ntop(AF_INET, dev->gid + 12, addr, sizeof(addr));
	n = snprintf(text, sizeof(text), "provider verbs\nnode 0 gateway %s:7471\n"
		     "node 1 compute %s:7472\n", addr, addr);
	must(rgate_cluster_parse(&l->cluster, "bench", text,
				 bench_public_keys(text, (size_t)n, sizeof(text), 2)),
	     "rgate_cluster_parse");
	for (i = 0; i < 2; i++) {
		opts.key = bench_key(i);
		must(rgate_node_create(&l->node[i], l->cluster, i, &opts), "rgate_node_create");
		must(rgate_pool_alloc_opts(rgate_node_pool(l->node[i]), BYTES_MAX, &zero,
					   &l->out[i]), "buffer");
		must(rgate_pool_alloc_opts(rgate_node_pool(l->node[i]), BYTES_MAX, &zero,
					   &l->in[i]), "buffer");
		must(rgate_buf_desc(rgate_node_pool(l->node[i]), l->in[i], 0, 0, &d), "buffer");
		must(rgate_desc_parse(&l->at[i], &d, sizeof(d)), "rgate_desc_parse");
		must(rgate_peer_open(&l->peer[i], l->node[i], !i), "rgate_peer_open");
	}
	for (i = 0; i < 2; i++)
		must(rgate_peer_wait_up(l->peer[i], PATIENCE), "rgate_peer_wait_up");
}

static void lib_close(struct lib *l)
{
	unsigned int i;

	for (i = 0; i < 2; i++) {
		rgate_peer_close(l->peer[i]);
		must(rgate_pool_free(rgate_node_pool(l->node[i]), l->out[i]), "buffer");
		must(rgate_pool_free(rgate_node_pool(l->node[i]), l->in[i]), "buffer");
	}
	for (i = 0; i < 2; i++)
		rgate_node_destroy(l->node[i]);
	rgate_cluster_destroy(l->cluster);
}

static void lib_way(struct lib *l, unsigned int from, const struct cell *c, uint32_t no)
{
	static const uint8_t kinds[] = {
		[WRITE] = RGATE_OP_WRITE, [IMM] = RGATE_OP_WRITE_IMM, [SEND] = RGATE_OP_SEND,
	};
	const struct rgate_sge sge = { l->out[from]->addr, c->bytes, l->out[from]->lkey };
	const struct rgate_op op = {
		.kind = kinds[c->what], .nsge = 1, .sge = &sge, .remote = l->at[!from].addr,
		.rkey = l->at[!from].rkey,
	};
	struct rgate_msg msg;
	int err;

	if (c->what == WRITE)
		((uint8_t *)l->out[from]->addr)[c->bytes - 1] = (uint8_t)no;
	must(rgate_peer_post(l->peer[from], &op, 1, NULL), "rgate_peer_post");
	if (c->what == WRITE) {
		wait_byte(l->in[!from], c->bytes - 1, (uint8_t)no);
		return;
	}
	do
		err = rgate_peer_recv(l->peer[!from], &msg, l->in[!from]->addr, SLOT, 0);
	while (err == -EAGAIN);
	must(err, "rgate_peer_recv");
}

static void lib_stream(struct lib *l, const struct cell *c)
{
	const struct rgate_sge sge = { l->out[0]->addr, c->bytes, l->out[0]->lkey };
	struct rgate_op op[RGATE_POST_MAX];
	uint64_t ticket = 0;
	uint32_t i, n;
	int err;

	for (i = 0; i < c->batch; i++)
		op[i] = (struct rgate_op){
			.kind = RGATE_OP_WRITE, .nsge = 1, .sge = &sge,
			.remote = l->at[1].addr, .rkey = l->at[1].rkey,
		};
	for (i = 0; i < c->n; i += n) {
		n = c->n - i < c->batch ? c->n - i : c->batch;
		while ((err = rgate_peer_post(l->peer[0], op, n, i + n == c->n ? &ticket : NULL)) ==
		       -EAGAIN)
			;
		must(err, "rgate_peer_post");
	}
	must(rgate_peer_finish(l->peer[0], ticket, PATIENCE), "rgate_peer_finish");
}

static double lib_turn(struct lib *l, const struct cell *c)
{
	const struct rgate_sge sge = { l->out[0]->addr, c->bytes, l->out[0]->lkey };
	const uint64_t begun = bench_now_ns();
	uint32_t i;

	if (c->what == STREAM)
		lib_stream(l, c);
	else
		for (i = 0; i < c->n; i++) {
			if (c->what == READ)
				must(rgate_peer_read(l->peer[0], &l->at[1], 0, &sge, PATIENCE),
				     "rgate_peer_read");
			else if (c->what == ADD)
				must(rgate_peer_fetch_add(l->peer[0], &l->at[1], 0, 1, NULL,
							  PATIENCE), "rgate_peer_fetch_add");
			else
				lib_way(l, i & 1, c, i + 1);
		}
	return (double)(bench_now_ns() - begun) / c->n;
}

/* A pair of ends for a turn: what a stream left under way is of no other turn's cost */
static struct figures measure(struct lib *l, const struct cell *c, const struct bench_opts *o)
{
	double lib[BENCH_ROUNDS_MAX], bare[BENCH_ROUNDS_MAX], ratio[BENCH_ROUNDS_MAX];
	struct bare b = { 0 };
	unsigned int i;

	for (i = 0; i < o->rounds; i++) {
		bare_open(&b);
		if (i & 1)
			lib[i] = lib_turn(l, c);
		bare[i] = bare_turn(&b, c);
		if (!(i & 1))
			lib[i] = lib_turn(l, c);
		ratio[i] = lib[i] / bare[i];
		bare_close(&b);
	}
	return (struct figures){
		.lib = bench_median(lib, o->rounds),
		.bare = bench_median(bare, o->rounds),
		.ratio = bench_median(ratio, o->rounds),
		.q1 = bench_quantile(ratio, o->rounds, 0.25),
		.q3 = bench_quantile(ratio, o->rounds, 0.75),
	};
}

static void cell_print(const struct cell *c, const struct figures *f, FILE *json)
{
	static bool more;

	printf("%8s %7u %6u %12.0f %12.0f  %.4f (%.4f to %.4f)\n", c->name, c->bytes, c->batch,
	       f->bare, f->lib, f->ratio, f->q1, f->q3);
	fflush(stdout);
	if (!json)
		return;
	fprintf(json, "%s{\"op\":\"%s\",\"bytes\":%u,\"batch\":%u,\"n\":%u,\"bare\":%.1f,"
		"\"ringgate\":%.1f,\"ratio\":%.4f,\"ratio_q1\":%.4f,\"ratio_q3\":%.4f}",
		more ? "," : "", c->name, c->bytes, c->batch, c->n, f->bare, f->lib, f->ratio,
		f->q1, f->q3);
	more = true;
}

static void run(const struct bench_opts *o)
{
	static const struct cell cells[] = {
		{ WRITE, "write", 8, 1, 400 }, { WRITE, "write", 256, 1, 400 },
		{ WRITE, "write", 4096, 1, 400 }, { IMM, "imm", 8, 1, 400 },
		{ IMM, "imm", 4096, 1, 400 }, { SEND, "send", 64, 1, 400 },
		{ SEND, "send", 1024, 1, 400 }, { READ, "read", 8, 1, 400 },
		{ READ, "read", 4096, 1, 400 }, { ADD, "add", 8, 1, 400 },
		{ STREAM, "stream", 8, 1, 1000 }, { STREAM, "stream", 8, 16, 1000 },
		{ STREAM, "stream", 4096, 1, 1000 }, { STREAM, "stream", 4096, 16, 1000 },
		{ STREAM, "stream", 65536, 1, 200 }, { STREAM, "stream", 65536, 16, 200 },
	};
	const double load = bench_load();
	struct rgate_device *dev;
	struct lib l = { 0 };
	unsigned int i;

	must(rgate_device_open(&dev, NULL), "rgate_device_open");
	lib_open(&l, rgate_device_info(dev));
	rgate_device_close(dev);
	printf("ns an operation, of %u rounds\n\n      op   bytes  batch   bare verbs     ringgate  ratio (quartiles)\n",
	       o->rounds);
	bench_json_begin(o, load);
	for (i = 0; i < sizeof(cells) / sizeof(cells[0]); i++) {
		const struct figures f = measure(&l, &cells[i], o);

		cell_print(&cells[i], &f, o->json);
	}
	if (o->json)
		fprintf(o->json, "]");
	lib_close(&l);
}

int main(int argc, char **argv)
{
	struct bench_opts o = { .rounds = 5, .ms = 50, .cpus = 1 };

	bench_start(argc, argv, 0, &o);
	run(&o);
	bench_finish(&o);
	return 0;
}
