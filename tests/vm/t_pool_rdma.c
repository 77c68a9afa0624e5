// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Every RDMA operation on buffers of a pool, between two processes. Each side's region
 * has a shadow, which both see: what every byte of it has to be. At checkpoints the
 * whole region is compared, so that nothing can be written beside a buffer unseen.
 */
#include "lib/vt.h"
#include "lib/vt_rc.h"

#include <sys/socket.h>

#define REGION	(2UL << 20)
#define BUFS	400
#define FEW_BUFS	64
#define REFUSED		20
#define REFUSED_MAX	4000
#define OPS	1500
#define BURST	8
#define ADDS	300
#define ACCESS	RGATE_ACCESS_REMOTE

struct side {
	int sock;
	struct rgate_device *dev;
	struct rgate_pool *pool;
	struct rgate_rc *rc;
	uint8_t *base;		/* of the pool's only region */
	uint8_t *shadow;
	const struct rgate_buf *bufs[BUFS];	/* by address */
	unsigned int n;
	/* of the other side */
	uint64_t peer_base;
	uint8_t *peer_shadow;
	struct rgate_remote peer[BUFS];
	unsigned int peers;
	unsigned long long bytes;
};

enum cmd_what { CMD_RECV, CMD_GOT, CMD_CHECK, CMD_MEET, CMD_LEAVE };

struct cmd {
	uint32_t what;
	uint32_t buf;
	uint32_t off;
	uint32_t len;
	uint32_t imm;
	uint32_t op;
};

static int by_addr(const void *a, const void *b)
{
	const struct rgate_buf *x = *(const struct rgate_buf *const *)a;
	const struct rgate_buf *y = *(const struct rgate_buf *const *)b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static size_t some_size(void)
{
	switch (vt_rand() % 8) {
	case 0:
		return 16384 + vt_rand() % 65536;
	case 1:
	case 2:
		return 1024 + vt_rand() % 8192;
	default:
		return 64 + vt_rand() % 900;
	}
}

/* Buffers until the pool is full or there are enough; every fifth is given back, so
 * that free memory lies among them. How early the first large ones are refused hangs on
 * the sizes that came before: a size whose slab is there goes in long after that, so
 * refusals end it only when there are FEW_BUFS. */
static void carve(struct side *s)
{
	unsigned int i, kept = 0, refused = 0;

	while (s->n < BUFS && refused < (s->n < FEW_BUFS ? REFUSED_MAX : REFUSED)) {
		int err = rgate_pool_alloc(s->pool, some_size(), &s->bufs[s->n]);

		if (err) {
			EXPECT_EQ(err, -ENOBUFS);
			refused++;
		} else {
			s->n++;
		}
	}
	qsort(s->bufs, s->n, sizeof(s->bufs[0]), by_addr);
	for (i = 0; i < s->n; i++) {
		if (i % 5 == 3 && i != s->n - 1)
			EXPECT_EQ(rgate_pool_free(s->pool, s->bufs[i]), 0);
		else
			s->bufs[kept++] = s->bufs[i];
	}
	s->n = kept;
	REQUIRE(s->n >= FEW_BUFS / 2);
}

static void tell(struct side *s)
{
	uint64_t head[2] = { (uintptr_t)s->base, s->n };
	unsigned int i;

	vt_put(s->sock, head, sizeof(head));
	for (i = 0; i < s->n; i++) {
		struct rgate_desc d;

		REQUIRE_EQ(rgate_buf_desc(s->pool, s->bufs[i], 0, 0, &d), 0);
		vt_put(s->sock, &d, sizeof(d));
	}
	vt_get(s->sock, head, sizeof(head));
	s->peer_base = head[0];
	s->peers = (unsigned int)head[1];
	REQUIRE(s->peers <= BUFS);
	for (i = 0; i < s->peers; i++) {
		char raw[32];

		vt_get(s->sock, raw, sizeof(raw));
		REQUIRE_EQ(rgate_desc_parse(&s->peer[i], raw, sizeof(raw)), 0);
		EXPECT_EQ(s->peer[i].access, ACCESS);
	}
}

static void side_up(struct side *s, unsigned int no, unsigned int device, uint32_t flags,
		    uint8_t *shadows, int sock)
{
	struct rgate_pool_opts o = RGATE_OPTS(rgate_pool_opts, .region_size = REGION,
		.access = ACCESS, .flags = flags | RGATE_POOL_NO_HUGE);
	struct rgate_pool_region r = { .sz = sizeof(r) };
	unsigned int i;

	memset(s, 0, sizeof(*s));
	s->sock = sock;
	s->shadow = shadows + no * REGION;
	s->peer_shadow = shadows + !no * REGION;
	s->dev = vt_dev_rdma(device);
	REQUIRE_EQ(rgate_pool_create(&s->pool, s->dev, &o), 0);
	REQUIRE_EQ(rgate_pool_region(s->pool, 0, &r), 0);
	EXPECT_EQ(r.length, REGION);
	s->base = r.addr;
	carve(s);
	for (i = 0; i < s->n; i++)
		vt_pkt_fill(s->bufs[i]->addr, s->bufs[i]->length, vt_rand());
	memcpy(s->shadow, s->base, REGION);
	tell(s);
	s->rc = vt_rc_meet(s->dev, sock, ACCESS);
}

static void side_down(struct side *s)
{
	unsigned int i;

	rgate_rc_destroy(s->rc);
	for (i = 0; i < s->n; i++)
		EXPECT_EQ(rgate_pool_free(s->pool, s->bufs[i]), 0);
	rgate_pool_destroy(s->pool);
	EXPECT_EQ(rgate_device_mr_count(s->dev), 0);
	vt_dev_close(s->dev);
}

static void check(struct side *s)
{
	int bad = rgate_pool_check(s->pool);
	size_t i;

	EXPECT(bad == 0 || bad == -EOPNOTSUPP);
	if (!memcmp(s->base, s->shadow, REGION))
		return;
	for (i = 0; s->base[i] == s->shadow[i]; i++)
		;
	FAIL("byte %#zx of the region is %#x, not %#x", i, s->base[i], s->shadow[i]);
	memcpy(s->shadow, s->base, REGION);
}

/* What came in was announced: kind, length and immediate */
static void got(struct side *s, const struct cmd *c)
{
	struct ibv_wc wc = { 0 };

	REQUIRE_EQ(rgate_rc_poll(s->rc, &wc, VT_MS), 1);
	EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
	EXPECT_EQ(wc.wr_id, c->imm);
	EXPECT_EQ(wc.byte_len, c->len);
	EXPECT_EQ(wc.opcode, c->op == RGATE_RC_WRITE_IMM ? IBV_WC_RECV_RDMA_WITH_IMM :
		  IBV_WC_RECV);
	EXPECT_EQ(!!(wc.wc_flags & IBV_WC_WITH_IMM), c->op != RGATE_RC_SEND);
	if (c->op != RGATE_RC_SEND)
		EXPECT_EQ(be32toh(wc.imm_data), c->imm);
}

static void serve(struct side *s)
{
	char ok = 1;
	struct cmd c;

	for (;;) {
		vt_get(s->sock, &c, sizeof(c));
		if (c.what == CMD_LEAVE)
			return;
		if (c.what == CMD_RECV) {
			const struct rgate_buf *b = s->bufs[c.buf];

			REQUIRE_EQ(rgate_rc_recv(s->rc, c.imm, (char *)b->addr + c.off, c.len,
						 b->lkey), 0);
		} else if (c.what == CMD_GOT) {
			got(s, &c);
		} else if (c.what == CMD_CHECK) {
			check(s);
		} else {
			rgate_rc_destroy(s->rc);
			s->rc = vt_rc_meet(s->dev, s->sock, ACCESS);
			continue;
		}
		vt_put(s->sock, &ok, 1);
	}
}

static void ask(struct side *s, struct cmd c)
{
	char ok;

	vt_put(s->sock, &c, sizeof(c));
	if (c.what == CMD_LEAVE)
		return;
	if (c.what == CMD_MEET) {
		rgate_rc_destroy(s->rc);
		s->rc = vt_rc_meet(s->dev, s->sock, ACCESS);
		return;
	}
	vt_get(s->sock, &ok, 1);
}

/* First and last buffer of a region more often than others */
static unsigned int pick(unsigned int n)
{
	uint64_t r = vt_rand();

	return r % 8 == 0 ? 0 : r % 8 == 1 ? n - 1 : (unsigned int)((r >> 8) % n);
}

struct spot {		/* a piece of a buffer here, a piece of one there */
	unsigned int buf, peer;
	size_t off, peer_off, len;
	uint8_t *here, *shadow, *peer_shadow;
	uint64_t there;
};

static struct spot choose(struct side *s, size_t len, size_t align)
{
	struct spot p = { .buf = pick(s->n), .peer = pick(s->peers) };
	size_t a = s->bufs[p.buf]->length, b = s->peer[p.peer].length;

	p.len = a < b ? a : b;
	if (len)
		p.len = len;
	else if (vt_rand() % 4)		/* else all of the smaller one */
		p.len = 1 + vt_rand() % p.len;
	p.off = vt_rand() % (a - p.len + 1) / align * align;
	p.peer_off = vt_rand() % (b - p.len + 1) / align * align;
	p.here = (uint8_t *)s->bufs[p.buf]->addr + p.off;
	p.shadow = s->shadow + (p.here - s->base);
	p.there = s->peer[p.peer].addr + p.peer_off;
	p.peer_shadow = s->peer_shadow + (p.there - s->peer_base);
	return p;
}

static struct rgate_rc_work work(struct side *s, const struct spot *p, enum rgate_rc_op op)
{
	return (struct rgate_rc_work){
		.op = op, .addr = p->here, .length = (uint32_t)p->len,
		.lkey = s->bufs[p->buf]->lkey, .remote = p->there,
		.rkey = s->peer[p->peer].rkey,
	};
}

static void fresh(const struct spot *p)
{
	vt_pkt_fill(p->here, p->len, vt_rand());
	memcpy(p->shadow, p->here, p->len);
}

static void one_sided(struct side *s, enum rgate_rc_op op)
{
	struct spot p = choose(s, 0, 1);
	struct rgate_rc_work w = work(s, &p, op);

	if (op == RGATE_RC_WRITE)
		fresh(&p);
	REQUIRE_EQ(rgate_rc_do(s->rc, &w, VT_MS), 0);
	if (op == RGATE_RC_WRITE)
		memcpy(p.peer_shadow, p.here, p.len);
	else
		memcpy(p.shadow, p.peer_shadow, p.len);
	s->bytes += p.len;
}

static void two_sided(struct side *s, enum rgate_rc_op op)
{
	struct spot p = choose(s, 0, 1);
	struct rgate_rc_work w = work(s, &p, op);
	struct cmd c = {
		.what = CMD_RECV, .buf = p.peer, .off = (uint32_t)p.peer_off,
		.len = (uint32_t)p.len, .imm = (uint32_t)vt_rand(), .op = op,
	};

	fresh(&p);
	w.imm = c.imm;
	ask(s, c);
	REQUIRE_EQ(rgate_rc_do(s->rc, &w, VT_MS), 0);
	c.what = CMD_GOT;
	ask(s, c);
	memcpy(p.peer_shadow, p.here, p.len);
	s->bytes += p.len;
}

static void atomic(struct side *s, enum rgate_rc_op op)
{
	struct spot p = choose(s, 8, 8);
	struct rgate_rc_work w = work(s, &p, op);
	uint64_t was, will;

	memcpy(&was, p.peer_shadow, 8);
	if (op == RGATE_RC_FETCH_ADD) {
		w.operand = vt_rand();
		will = was + w.operand;
	} else {
		/* one in two has to fail */
		w.operand = vt_rand() % 2 ? was : ~was;
		w.swap = vt_rand();
		will = w.operand == was ? w.swap : was;
	}
	REQUIRE_EQ(rgate_rc_do(s->rc, &w, VT_MS), 0);
	memcpy(p.shadow, &was, 8);
	memcpy(p.peer_shadow, &will, 8);
	if (memcmp(p.here, &was, 8))
		FAIL("an atomic operation returned a value that was not there");
}

/* Several at once; only the last one tells that all are done */
static void burst(struct side *s)
{
	struct rgate_rc_work w[BURST];
	struct spot p[BURST];
	struct ibv_wc wc = { 0 };
	unsigned int i;

	for (i = 0; i < BURST; i++) {
		p[i] = choose(s, 0, 1);
		fresh(&p[i]);
		/* sources that overlap go out as the last of them */
		w[i] = work(s, &p[i], RGATE_RC_WRITE);
		w[i].quiet = i < BURST - 1;
		w[i].id = i;
	}
	REQUIRE_EQ(rgate_rc_post(s->rc, w, BURST), 0);
	REQUIRE_EQ(rgate_rc_poll(s->rc, &wc, VT_MS), 1);
	EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
	EXPECT_EQ(wc.wr_id, BURST - 1);
	for (i = 0; i < BURST; i++) {
		memcpy(p[i].peer_shadow, p[i].here, p[i].len);
		s->bytes += p[i].len;
	}
}

static void act(struct side *s)
{
	unsigned int i;

	for (i = 0; i < OPS; i++) {
		unsigned int r = vt_rand() % 16;

		if (r < 4)
			one_sided(s, RGATE_RC_WRITE);
		else if (r < 8)
			one_sided(s, RGATE_RC_READ);
		else if (r < 10)
			atomic(s, RGATE_RC_FETCH_ADD);
		else if (r < 12)
			atomic(s, RGATE_RC_COMPARE_SWAP);
		else if (r < 13)
			two_sided(s, RGATE_RC_SEND);
		else if (r < 14)
			two_sided(s, RGATE_RC_SEND_IMM);
		else if (r < 15)
			two_sided(s, RGATE_RC_WRITE_IMM);
		else
			burst(s);
		if (i % 500 == 499) {
			check(s);
			ask(s, (struct cmd){ .what = CMD_CHECK });
		}
	}
	vt_note("%d operations, %llu KiB, %u and %u buffers", OPS, s->bytes >> 10, s->n,
		s->peers);
}

/* What lies outside of the region the device refuses, and nothing is changed */
static void outside(struct side *s)
{
	static const enum rgate_rc_op ops[] = {
		RGATE_RC_WRITE, RGATE_RC_READ, RGATE_RC_FETCH_ADD, RGATE_RC_COMPARE_SWAP,
	};
	const uint64_t end = s->peer_base + REGION;
	const uint64_t at[] = { s->peer_base - 64, s->peer_base - 8, end - 4, end, 64 };
	unsigned int i, k;

	for (i = 0; i < VT_COUNT(at) + 1; i++) {
		for (k = 0; k < VT_COUNT(ops); k++) {
			struct spot p = choose(s, 64, 8);
			struct rgate_rc_work w = work(s, &p, ops[k]);
			bool word = k > 1;

			if (word)
				w.length = 8;
			if (i < VT_COUNT(at))
				w.remote = at[i];
			else
				w.rkey ^= 0x100;
			/* an atomic operation on a word that is not aligned is no test */
			if (word && w.remote % 8)
				continue;
			EXPECT_EQ(rgate_rc_do(s->rc, &w, VT_MS), -EREMOTEIO);
			ask(s, (struct cmd){ .what = CMD_MEET });
		}
	}
	check(s);
	ask(s, (struct cmd){ .what = CMD_CHECK });
	/* and the other end is as it was */
	one_sided(s, RGATE_RC_WRITE);
	ask(s, (struct cmd){ .what = CMD_CHECK });
}

struct plan {
	unsigned int devices;
	uint32_t flags;
	uint8_t *shadows;	/* of both sides, then whatever a case wants */
	int sock[2];
};

static pid_t plan_begin(struct plan *plan, struct side *s, int (*other)(void *arg))
{
	pid_t pid;

	vt_rxe_up(plan->devices);
	plan->shadows = mmap(NULL, 2 * REGION + 4096, PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	REQUIRE(plan->shadows != MAP_FAILED);
	REQUIRE(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, plan->sock));
	pid = vt_fork(other, plan);
	close(plan->sock[1]);
	vt_log_catch();
	side_up(s, 0, 0, plan->flags, plan->shadows, plan->sock[0]);
	return pid;
}

static int child(void *arg)
{
	struct plan *plan = arg;
	struct side s;

	close(plan->sock[0]);
	side_up(&s, 1, plan->devices - 1, plan->flags, plan->shadows, plan->sock[1]);
	serve(&s);
	act(&s);
	ask(&s, (struct cmd){ .what = CMD_LEAVE });
	serve(&s);
	side_down(&s);
	return 0;
}

static void run(unsigned int devices, uint32_t flags)
{
	struct plan plan = { .devices = devices, .flags = flags };
	struct side s;
	pid_t pid;

	pid = plan_begin(&plan, &s, child);
	act(&s);
	ask(&s, (struct cmd){ .what = CMD_LEAVE });
	serve(&s);
	outside(&s);
	ask(&s, (struct cmd){ .what = CMD_LEAVE });
	side_down(&s);
	EXPECT_EQ(vt_wait(pid, 20000), 0);
}

static void one_device(void)
{
	run(1, RGATE_POOL_DEBUG);
}

static void two_devices(void)
{
	run(2, RGATE_POOL_DEBUG);
}

static void two_devices_plain(void)
{
	run(2, 0);
}

/* Each value is handed out once, whoever asks, over the wire or on the spot */
static void add_many(struct side *s, struct rgate_rc *rc, struct vt_mem_at word,
		     uint64_t start, uint8_t *seen)
{
	const struct rgate_buf *b = s->bufs[s->n - 1];
	const volatile uint64_t *was = b->addr;
	unsigned int i;

	for (i = 0; i < ADDS; i++) {
		struct vt_mem_at here = { (uintptr_t)b->addr, b->lkey };

		REQUIRE_EQ(vt_rc_add(rc, here, word, 1), 0);
		if (*was - start >= 2 * ADDS || seen[*was - start]++)
			DIE("the counter gave %llu", (unsigned long long)(*was - start));
	}
}

static int adding_child(void *arg)
{
	struct plan *plan = arg;
	struct vt_mem_at word;
	struct side s;
	uint64_t start;

	close(plan->sock[0]);
	side_up(&s, 1, plan->devices - 1, plan->flags, plan->shadows, plan->sock[1]);
	word = (struct vt_mem_at){ s.peer[0].addr, s.peer[0].rkey };
	memcpy(&start, s.peer_shadow + (word.addr - s.peer_base), 8);
	add_many(&s, s.rc, word, start, plan->shadows + 2 * REGION);
	vt_put(s.sock, "d", 1);
	side_down(&s);
	return 0;
}

static void counted_together(void)
{
	struct plan plan = { .devices = 2 };
	const volatile uint64_t *word;
	struct rgate_rc *loop;
	struct side s;
	uint64_t start;
	pid_t pid;
	char c;

	pid = plan_begin(&plan, &s, adding_child);
	word = s.bufs[0]->addr;
	/* not *word: the other side may have begun */
	memcpy(&start, s.shadow + ((uintptr_t)word - (uintptr_t)s.base), 8);
	loop = vt_rc_loop(s.dev, ACCESS);
	add_many(&s, loop, (struct vt_mem_at){ (uintptr_t)word, s.bufs[0]->rkey }, start,
		 plan.shadows + 2 * REGION);
	vt_get(s.sock, &c, 1);
	EXPECT_EQ(*word - start, 2 * ADDS);
	rgate_rc_destroy(loop);
	side_down(&s);
	EXPECT_EQ(vt_wait(pid, 20000), 0);
}

static const struct vt_case cases[] = {
	{ .name = "two processes, one device, red zones", .fn = one_device,
	  .flags = VT_HOSTNS, .secs = 90 },
	{ .name = "two processes, two devices, red zones", .fn = two_devices,
	  .flags = VT_HOSTNS, .secs = 90 },
	{ .name = "two processes, two devices, dense", .fn = two_devices_plain,
	  .flags = VT_HOSTNS, .secs = 90 },
	{ .name = "two processes add to one word", .fn = counted_together,
	  .flags = VT_HOSTNS },
};

VT_RXE_MAIN(cases)
