// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Operations of a peer, timed as perftest times its own: one kind, one size, one run, so
 * that scripts/bench can let the two take turns. Two processes; the first is node 1 and
 * measures, the other is node 0.
 *
 *	bench_fabric OPERATION BYTES N [BATCH]
 *
 * write-lat	both write in turn, and poll the last byte (ib_write_lat)
 * imm-lat	both write with a notice in turn, and wait for it (ib_send_lat)
 * send-lat	messages in turn (ib_send_lat)
 * read-lat, add-lat	to completion, one after another (ib_read_lat, ib_atomic_lat)
 * cas-lat	a compare-and-swap that succeeds, to completion
 * claim-lat	the same and a read of BYTES, posted at once
 * claims-lat	BATCH of them, each of a word of its own, posted at once
 * shard-lat	BATCH tasks of BYTES claimed from a shard of node 0 (rgate_shard.h); done_us has
 *		what it takes to complete them
 * write-bw	as many as can be outstanding, BATCH posted at once (ib_write_bw)
 *
 * Environment: RGATE_BENCH_ADDRS=A,B addresses of RDMA devices for nodes 0 and 1;
 * without it processes share memory. One line of JSON on standard output.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ringgate/ringgate.h>

#include "bench.h"

#define PATIENCE	60000	/* ms; an emulated machine can be slow */
#define BYTES_MAX	(4U << 20)
#define WARM		1100U	/* the library asks the clock for each of the first 1024 */

struct task {
	const char *op;
	uint32_t bytes;
	uint32_t n;
	uint32_t batch;
};

struct side {
	struct rgate_cluster *cluster;
	struct rgate_node *node;
	struct rgate_peer *peer;
	const struct rgate_buf *out, *in;
	uint64_t swapped;		/* what the words are */
	struct rgate_peer *self;	/* for a shard, where the other one claims */
	struct rgate_shard *shard;
	struct rgate_remote at;		/* "in" of the other side */
	int sock;
};

static void must(int err, const char *what)
{
	if (err < 0)
		bench_die(0, "%s: %s", what, rgate_strerror("rgate_peer_", err));
}

static struct rgate_cluster *make_cluster(const char *dir)
{
	const char *addrs = getenv("RGATE_BENCH_ADDRS");
	const char *comma = addrs ? strchr(addrs, ',') : NULL;
	struct rgate_cluster *c;
	char text[512];
	size_t len;
	int n;

	if (addrs && !comma)
		bench_die(0, "RGATE_BENCH_ADDRS=A,B");
	if (addrs)
		n = snprintf(text, sizeof(text),
			     "provider verbs\nnode 0 gateway %.*s\nnode 1 compute %s\n",
			     (int)(comma - addrs), addrs, comma + 1);
	else
		n = snprintf(text, sizeof(text),
			     "provider local\nnode 0 gateway %s/0\nnode 1 compute %s/1\n",
			     dir, dir);
	len = bench_public_keys(text, (size_t)n, sizeof(text), 2);
	must(rgate_cluster_parse(&c, "bench", text, len), "rgate_cluster_parse");
	return c;
}

static void meet(struct side *s)
{
	struct rgate_desc d;

	must(rgate_buf_desc(rgate_node_pool(s->node), s->in, 0, 0, &d), "rgate_buf_desc");
	if (write(s->sock, &d, sizeof(d)) != sizeof(d) || read(s->sock, &d, sizeof(d)) != sizeof(d))
		bench_die(errno, "the other process is gone");
	must(rgate_desc_parse(&s->at, &d, sizeof(d)), "rgate_desc_parse");
	must(rgate_peer_wait_up(s->peer, PATIENCE), "rgate_peer_wait_up");
}

static void side_open(struct side *s, const char *dir, uint32_t id)
{
	const struct rgate_alloc_opts zero = RGATE_OPTS(rgate_alloc_opts,
							.flags = RGATE_ALLOC_ZERO);
	const struct rgate_pool_opts pool = RGATE_OPTS(rgate_pool_opts, .region_size = 16 << 20,
						       .access = RGATE_ACCESS_REMOTE);
	const struct rgate_node_opts opts = RGATE_OPTS(rgate_node_opts, .pool = &pool,
						       .key = bench_key(id),
						       /* perftest never sleeps */
						       .spin_us = 1000000);

	s->cluster = make_cluster(dir);
	must(rgate_node_create(&s->node, s->cluster, id, &opts), "rgate_node_create");
	must(rgate_pool_alloc_opts(rgate_node_pool(s->node), BYTES_MAX, &zero, &s->out), "buffer");
	must(rgate_pool_alloc_opts(rgate_node_pool(s->node), BYTES_MAX, &zero, &s->in), "buffer");
	must(rgate_peer_open(&s->peer, s->node, !id), "rgate_peer_open");
	meet(s);
}

static void side_close(struct side *s)
{
	rgate_peer_close(s->peer);
	must(rgate_pool_free(rgate_node_pool(s->node), s->out), "buffer");
	must(rgate_pool_free(rgate_node_pool(s->node), s->in), "buffer");
	rgate_node_destroy(s->node);
	rgate_cluster_destroy(s->cluster);
}

static struct rgate_op operation(const struct side *s, enum rgate_op_kind kind,
				 const struct rgate_sge *sge)
{
	return (struct rgate_op){
		.kind = (uint8_t)kind, .nsge = 1, .sge = sge, .remote = s->at.addr,
		.rkey = s->at.rkey,
	};
}

static void post(struct side *s, const struct rgate_op *op, unsigned int n, uint64_t *ticket)
{
	int err;

	while ((err = rgate_peer_post(s->peer, op, n, ticket)) == -EAGAIN)
		;
	must(err, "rgate_peer_post");
}

static void wait_byte(const struct side *s, uint32_t at, uint8_t value)
{
	const uint8_t *byte = (const uint8_t *)s->in->addr + at;
	unsigned int looks = 0;

	/* No pause between looks, as perftest has none */
	while (__atomic_load_n(byte, __ATOMIC_ACQUIRE) != value) {
		/* It is nobody's wish to wait here for ever. */
		if (!(++looks & 0xfffff)) {
			struct rgate_peer_info info = { .sz = sizeof(info) };

			must(rgate_peer_info(s->peer, &info), "rgate_peer_info");
			if (info.state != RGATE_PEER_UP)
				bench_die(0, "the connection is lost");
		}
	}
}

static void wait_message(struct side *s, bool imm)
{
	struct rgate_msg msg;
	char buf[1024];
	int err;

	while ((err = rgate_peer_recv(s->peer, &msg, buf, sizeof(buf), 0)) == -EAGAIN)
		;
	must(err, "rgate_peer_recv");
	if (msg.has_imm != imm)
		bench_die(0, "not what was sent");
}

/* One way of a ping-pong, number @i */
static void ping(struct side *s, const struct task *t, uint32_t i)
{
	const struct rgate_sge sge = { s->out->addr, t->bytes, s->out->lkey };
	struct rgate_op op = operation(s, RGATE_OP_WRITE, &sge);

	if (*t->op == 'i')
		op.kind = RGATE_OP_WRITE_IMM;
	else if (*t->op == 's')
		op.kind = RGATE_OP_SEND;
	else
		((uint8_t *)s->out->addr)[t->bytes - 1] = (uint8_t)(i + 1);
	post(s, &op, 1, NULL);
}

static void pong(struct side *s, const struct task *t, uint32_t i)
{
	if (*t->op == 'w')
		wait_byte(s, t->bytes - 1, (uint8_t)(i + 1));
	else
		wait_message(s, *t->op == 'i');
}

/* Claims the first @n words there, all of which are what they were left at, and reads @bytes */
static void claim(struct side *s, uint32_t n, uint32_t bytes)
{
	const struct rgate_sge sge = { (char *)s->out->addr + 4096, bytes, s->out->lkey };
	uint64_t *old = s->out->addr;
	struct rgate_op op[RGATE_POST_MAX + 1];
	struct rgate_sge word[RGATE_POST_MAX];
	uint64_t ticket;
	uint32_t i;

	for (i = 0; i < n; i++) {
		word[i] = (struct rgate_sge){ old + i, sizeof(*old), s->out->lkey };
		op[i] = operation(s, RGATE_OP_COMPARE_SWAP, &word[i]);
		op[i].remote += i * sizeof(*old);
		op[i].operand = s->swapped;
		op[i].swap = s->swapped + 1;
	}
	if (bytes) {
		op[n] = operation(s, RGATE_OP_READ, &sge);
		op[n].remote += 4096;
	}
	post(s, op, n + !!bytes, &ticket);
	must(rgate_peer_finish(s->peer, ticket, PATIENCE), "rgate_peer_finish");
	for (i = 0; i < n; i++)
		if (old[i] != s->swapped)
			bench_die(0, "a word was another one's");
	s->swapped++;
}

static void to_completion(struct side *s, const struct task *t)
{
	const struct rgate_sge sge = { s->out->addr, t->bytes, s->out->lkey };

	if (*t->op == 'c')
		claim(s, t->op[5] == 's' ? t->batch : 1, t->op[5] == '-' ? t->bytes : 0);
	else if (*t->op == 'r')
		must(rgate_peer_read(s->peer, &s->at, 0, &sge, PATIENCE), "rgate_peer_read");
	else
		must(rgate_peer_fetch_add(s->peer, &s->at, 0, 1, NULL, PATIENCE), "fetch_add");
}

/* The home's part: tasks for all claims, their results taken, until the other one has ended */
static void serve_shard(struct side *s, const struct task *t)
{
	const struct rgate_shard_opts o = RGATE_OPTS(rgate_shard_opts, .payload_size = t->bytes,
						     .timeout_ms = PATIENCE);
	static char bytes[RGATE_SHARD_MANY * RGATE_SHARD_BYTES_MAX];
	struct rgate_shard_task tasks[RGATE_SHARD_MANY];
	struct rgate_shard_taken taken[RGATE_SHARD_MANY];
	struct rgate_desc d;
	uint32_t i;
	char end;

	must(rgate_peer_open(&s->self, s->node, 0), "rgate_peer_open");
	must(rgate_shard_create(&s->shard, s->self, &o), "rgate_shard_create");
	must(rgate_shard_admit(s->shard, s->peer), "rgate_shard_admit");
	must(rgate_shard_desc(s->shard, &d), "rgate_shard_desc");
	if (write(s->sock, &d, sizeof(d)) != sizeof(d))
		bench_die(errno, "the other process is gone");
	for (i = 0; i < RGATE_SHARD_MANY; i++)
		tasks[i] = (struct rgate_shard_task){ .data = bytes, .len = t->bytes };
	/* All places are full before each batch is claimed, and nothing is done meanwhile. */
	while (read(s->sock, &end, 1) == 1) {
		must(rgate_shard_step(s->shard), "rgate_shard_step");
		while (rgate_shard_take(s->shard, taken, RGATE_SHARD_MANY, bytes) > 0)
			;
		while (rgate_shard_submit(s->shard, tasks, RGATE_SHARD_MANY, NULL) > 0)
			;
		if (write(s->sock, &end, 1) != 1)
			bench_die(errno, "the other process is gone");
	}
	rgate_shard_destroy(s->shard);
	rgate_peer_close(s->self);
}

static void turn(struct side *s)
{
	char go = 'g';

	if (write(s->sock, &go, 1) != 1 || read(s->sock, &go, 1) != 1)
		bench_die(errno, "the other process is gone");
}

static void claim_shard(struct side *s, const struct task *t)
{
	const struct rgate_shard_opts o = RGATE_OPTS(rgate_shard_opts, .timeout_ms = PATIENCE);
	double *us = calloc(t->n, sizeof(*us)), *done = calloc(t->n, sizeof(*done));
	static char bytes[RGATE_SHARD_MANY * RGATE_SHARD_BYTES_MAX];
	struct rgate_shard_result r[RGATE_SHARD_MANY] = { { .len = 0 } };
	struct rgate_shard_claim c[RGATE_SHARD_MANY];
	const double tick = bench_ticks_ns() / 1e3;
	uint64_t begun, claimed;
	struct rgate_desc d;
	uint32_t i, k;
	int n;

	if (!us || !done || read(s->sock, &d, sizeof(d)) != sizeof(d))
		bench_die(errno, "the other process is gone");
	must(rgate_shard_open(&s->shard, s->peer, &d, &o), "rgate_shard_open");
	for (k = 0; k < RGATE_SHARD_MANY; k++)
		r[k].claim = &c[k];
	for (i = 0; i < WARM + t->n; i++) {
		turn(s);
		do {
			begun = bench_ticks();
			n = rgate_shard_claim(s->shard, c, t->batch, bytes);
			claimed = bench_ticks();
			if (n == -EAGAIN)
				turn(s);
		} while (n == -EAGAIN);
		if (n != (int)t->batch) {
			/* the rest of what was looked at; not of this number */
			must(n, "rgate_shard_claim");
			if (n)
				n = rgate_shard_complete(s->shard, r, (unsigned int)n);
			must(n, "rgate_shard_complete");
			i--;
			continue;
		}
		must(rgate_shard_complete(s->shard, r, t->batch), "rgate_shard_complete");
		if (i >= WARM) {
			us[i - WARM] = (double)(claimed - begun) * tick;
			done[i - WARM] = (double)(bench_ticks() - claimed) * tick;
		}
	}
	rgate_shard_close(s->shard);
	printf("{\"op\":\"%s\",\"bytes\":%u,\"n\":%u,\"batch\":%u,", t->op, t->bytes, t->n,
	       t->batch);
	printf("\"median_us\":%.3f,\"p99_us\":%.3f,\"done_us\":%.3f}\n", bench_median(us, t->n),
	       bench_quantile(us, t->n, 0.99), bench_median(done, t->n));
	free(us);
	free(done);
}

static bool is_shard(const struct task *t)
{
	return !strcmp(t->op, "shard-lat");
}

static bool one_sided(const struct task *t)
{
	return strchr("rac", *t->op);
}

/* Microseconds: of a way, or of an operation */
static double *latencies(struct side *s, const struct task *t)
{
	const bool both = !one_sided(t);
	const double tick = bench_ticks_ns() / 1e3;
	double *us = calloc(t->n, sizeof(*us));
	uint64_t last, now;
	uint32_t i;

	if (!us)
		bench_die(ENOMEM, "samples");
	/* One look at the clock for each, as in perftest */
	for (last = 0, i = 0; i < WARM + t->n; i++, last = now) {
		if (both) {
			ping(s, t, i);
			pong(s, t, i);
		} else {
			to_completion(s, t);
		}
		now = bench_ticks();
		if (i >= WARM)
			us[i - WARM] = (double)(now - last) * tick / (both ? 2 : 1);
	}
	return us;
}

static void answer(struct side *s, const struct task *t)
{
	uint32_t i;
	char end;

	if (is_shard(t)) {
		serve_shard(s, t);
		return;
	}
	if (!one_sided(t) && strcmp(t->op, "write-bw"))
		for (i = 0; i < WARM + t->n; i++) {
			pong(s, t, i);
			ping(s, t, i);
		}
	if (read(s->sock, &end, 1) < 0)
		bench_die(errno, "the other process is gone");
}

/* Seconds for all of them */
static double stream(struct side *s, const struct task *t)
{
	const struct rgate_sge sge = { s->out->addr, t->bytes, s->out->lkey };
	struct rgate_op op[RGATE_POST_MAX];
	uint64_t ticket = 0, begun = 0;
	uint32_t i, n;

	for (i = 0; i < t->batch; i++)
		op[i] = operation(s, RGATE_OP_WRITE, &sge);
	post(s, op, t->batch, &ticket);
	must(rgate_peer_finish(s->peer, ticket, PATIENCE), "rgate_peer_finish");
	begun = bench_now_ns();
	for (i = 0; i < t->n; i += n) {
		n = t->n - i < t->batch ? t->n - i : t->batch;
		post(s, op, n, i + n == t->n ? &ticket : NULL);
	}
	must(rgate_peer_finish(s->peer, ticket, PATIENCE), "rgate_peer_finish");
	return (double)(bench_now_ns() - begun) / 1e9;
}

static void measure(struct side *s, const struct task *t)
{
	double *us, took, sum = 0;
	uint32_t i;

	if (is_shard(t)) {
		claim_shard(s, t);
		return;
	}
	if (!strcmp(t->op, "write-bw")) {
		took = stream(s, t);
		printf("{\"op\":\"%s\",\"bytes\":%u,\"n\":%u,\"batch\":%u,\"rate\":%.3f}\n",
		       t->op, t->bytes, t->n, t->batch, t->n / took);
		return;
	}
	us = latencies(s, t);
	for (i = 0; i < t->n; i++)
		sum += us[i];
	printf("{\"op\":\"%s\",\"bytes\":%u,\"n\":%u,\"batch\":%u,", t->op, t->bytes, t->n,
	       t->batch);
	printf("\"mean_us\":%.3f,", sum / t->n);
	printf("\"median_us\":%.3f,\"p99_us\":%.3f}\n", bench_median(us, t->n),
	       bench_quantile(us, t->n, 0.99));
	free(us);
}

static void read_task(struct task *t, int argc, char **argv)
{
	static const char *const ops[] = {
		"write-lat", "imm-lat", "send-lat", "read-lat", "add-lat", "cas-lat", "claim-lat",
		"claims-lat", "shard-lat", "write-bw",
	};
	unsigned int i;

	if (argc < 4 || argc > 5)
		bench_die(0, "usage: bench_fabric OPERATION BYTES N [BATCH]");
	for (i = 0; i < sizeof(ops) / sizeof(ops[0]) && strcmp(argv[1], ops[i]); i++)
		;
	*t = (struct task){
		.op = argv[1], .bytes = (uint32_t)strtoul(argv[2], NULL, 10),
		.n = (uint32_t)strtoul(argv[3], NULL, 10),
		.batch = argc > 4 ? (uint32_t)strtoul(argv[4], NULL, 10) : 1,
	};
	if (i == sizeof(ops) / sizeof(ops[0]) || !t->bytes || t->bytes > BYTES_MAX || !t->n ||
	    !t->batch || t->batch > RGATE_POST_MAX ||
	    (!strcmp(t->op, "send-lat") && t->bytes > 1024) ||
	    (is_shard(t) && (t->batch > RGATE_SHARD_MANY || t->bytes > RGATE_SHARD_BYTES_MAX)) ||
	    (*t->op == 'c' && t->bytes > BYTES_MAX - 4096))
		bench_die(0, "no such operation, or of such a size");
}

/* Nodes leave the files behind by which they lock their sockets. */
static void remove_dir(const char *dir)
{
	char path[64];
	int i;

	for (i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%d.lock", dir, i);
		(void)unlink(path);
	}
	if (rmdir(dir))
		bench_die(errno, "%s", dir);
}

int main(int argc, char **argv)
{
	char dir[] = "/tmp/ringgate-bench-XXXXXX";
	struct side s = { 0 };
	int sv[2], status;
	struct task t;
	pid_t pid;

	read_task(&t, argc, argv);
	if (!mkdtemp(dir) || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv))
		bench_die(errno, "%s", dir);
	pid = fork();
	if (pid < 0)
		bench_die(errno, "fork");
	s.sock = sv[!pid];
	close(sv[!!pid]);
	if (bench_cpus() > 1)
		bench_pin(bench_cpu(!pid));
	side_open(&s, dir, pid ? 1 : 0);
	if (!pid) {
		answer(&s, &t);
		side_close(&s);
		_exit(0);
	}
	measure(&s, &t);
	close(s.sock);
	if (waitpid(pid, &status, 0) != pid || status)
		bench_die(0, "the other process failed");
	side_close(&s);
	remove_dir(dir);
	return 0;
}
