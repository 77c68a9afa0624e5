// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The engine against a client that writes anything to every word of its area and its memory,
 * comes and goes. What has to hold: another session is served in each step, the service is
 * given only memory that lies in the session's, no more is under way than there are places for,
 * each step comes to an end, and in the end nothing is left. The other session has requests with
 * many completions, too: never more than it asked for, and exactly one without RGATE_COMP_MORE.
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "area.h"
#include "engine.h"
#include "fuzz.h"

#define STEPS	300
#define PLACES	64U
#define TURNS	100000		/* in which an engine has done what there is */
#define PAGE	4096U
#define LATE	RGATE_REQ_USER
#define HELD	(64 * PLACES)	/* seats that went away have some, too */
#define MANY	8		/* requests with many completions at once */
#define MANY_COOKIE	(1ULL << 63)	/* of these */

struct client {
	struct rgate_seat *seat;
	struct rgate_area area;
	struct rgate_welcome w;
	int kick, wait;
	unsigned char *mem;
	uint64_t sent, taken;
};

static struct rgate_engine *engine;
static struct client bad, good;
static unsigned int gone;		/* seats that are over */
static struct rgate_req *held[HELD];
static unsigned int nheld;
static bool slow;			/* cancel() leaves the end to a later step */
static struct {
	uint32_t most, seen;		/* completions; 0: not under way */
} many[MANY];				/* the good one's */

/* ---- The service ---- */

static int begin(struct rgate_req *r, void *ctx)
{
	const struct rgate_request *q = rgate_req_get(r);
	const unsigned char *p = rgate_req_mem(r);
	volatile unsigned char sum = 0;
	uint32_t i;

	(void)ctx;
	FUZZ_CHECK(q->cls < RGATE_CLASS_COUNT && !(q->flags & ~RGATE_REQ_FLAGS));
	FUZZ_CHECK(!q->a0 && q->off + q->len <= PAGE && q->len <= PAGE);
	FUZZ_CHECK(!q->len == !p);
	for (i = 0; i < q->len; i++)
		sum = (unsigned char)(sum + p[i]);
	FUZZ_CHECK(rgate_req_shots(r) == (q->flags & RGATE_REQ_MULTI ? q->a1 - 1 : 0));
	FUZZ_CHECK(rgate_req_shots(r) < PLACES - RGATE_REQ_BATCH);
	if (q->op == RGATE_REQ_OP(LATE, 0) && q->a1 & 1)
		return q->a1 & 2 ? -EIO : 0;
	FUZZ_CHECK(nheld < HELD);
	held[nheld++] = r;
	return RGATE_REQ_LATER;
}

static void end(unsigned int i, int result)
{
	struct rgate_req *r = held[i];

	held[i] = held[--nheld];
	rgate_req_end(r, result, 7);
}

/* As often as there is room, and once more */
static void more(unsigned int i, unsigned int n)
{
	uint32_t left = rgate_req_shots(held[i]), now;

	while (left && n--) {
		now = rgate_req_more(held[i], (int)(n & 1), n);
		FUZZ_CHECK(now < left);
		left = now;
	}
	if (!left && rgate_req_shots(held[i]))
		FUZZ_CHECK(!rgate_req_more(held[i], 0, 0));
}

static int cancel(struct rgate_req *r, void *ctx)
{
	unsigned int i;

	(void)ctx;
	for (i = 0; held[i] != r; i++)
		FUZZ_CHECK(i + 1 < nheld);
	if (!slow)
		end(i, -ECANCELED);
	return 0;
}

static int handle(struct rgate_req *r, void *ctx)
{
	uint32_t number = rgate_req_get(r)->handle;
	int err;

	(void)ctx;
	if (number)
		return rgate_seat_release(rgate_req_seat(r), LATE, number) ? 0 : -EBADF;
	err = rgate_seat_handle(rgate_req_seat(r), LATE, &engine, &number);
	rgate_req_set_value(r, number);
	return err;
}

static void drop(void *object, void *ctx)
{
	(void)ctx;
	FUZZ_CHECK(object == &engine);
}

static const struct rgate_req_op ops[] = {
	{ .name = "late", .uses = RGATE_USES_MEM | RGATE_USES_A1, .begin = begin,
	  .cancel = cancel },
	{ .name = "handle", .uses = RGATE_USES_HANDLE, .begin = handle },
	{ .name = "many", .uses = RGATE_USES_MEM | RGATE_USES_MULTI, .begin = begin,
	  .cancel = cancel },
};

static const struct rgate_req_service service = {
	.number = LATE, .nops = 3, .name = "late", .ops = ops, .drop = drop,
};

/* ---- Clients ---- */

static void over(void *ctx)
{
	(void)ctx;
	gone++;
}

static void come(struct client *c, uid_t uid)
{
	struct rgate_limits lim;
	struct rgate_seat_opts o = RGATE_OPTS(rgate_seat_opts, .uid = uid, .requests = PLACES,
					      .completions = PLACES, .memory = PAGE,
					      .over = over, .limits = &lim);
	int fds[RGATE_FDS];

	memset(c, 0, sizeof(*c));
	rgate_limits_init(&lim);
	lim.handles = 100;
	lim.requests = uid ? PLACES - 10 : 0;
	FUZZ_CHECK(!rgate_seat_add(engine, &o, &c->seat, &c->w, fds));
	FUZZ_CHECK(!rgate_area_map(&c->area, fds[RGATE_FD_AREA], PLACES, PLACES, PAGE));
	c->mem = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fds[RGATE_FD_MEMORY], 0);
	FUZZ_CHECK(c->mem != MAP_FAILED);
	close(fds[RGATE_FD_AREA]);
	close(fds[RGATE_FD_MEMORY]);
	c->kick = fds[RGATE_FD_KICK];
	c->wait = fds[RGATE_FD_WAIT];
}

static void go(struct client *c)
{
	rgate_seat_remove(c->seat);
	rgate_area_unmap(&c->area);
	munmap(c->mem, PAGE);
	close(c->kick);
	close(c->wait);
}

static void kick(const struct client *c)
{
	const uint64_t one = 1;

	FUZZ_CHECK(write(c->kick, &one, sizeof(one)) == sizeof(one));
}

static void turns(unsigned int n)
{
	while (n && !rgate_engine_turn(engine))
		n--;
	FUZZ_CHECK(n);
}

static void publish(struct client *c, struct rgate_request q)
{
	struct rgate_request *slot = &c->area.requests[c->sent & c->area.req_mask];

	memcpy(slot, &q, offsetof(struct rgate_request, seq));
	__atomic_store_n(&slot->seq, rgate_area_req_lap(&c->area, c->sent++), __ATOMIC_RELEASE);
}

/* One of a request with many: as many as it asked for at most, and none after the last one */
static void one_of_many(const struct rgate_completion *c)
{
	const uint64_t i = c->cookie - MANY_COOKIE;

	FUZZ_CHECK(i < MANY && many[i].most && many[i].seen < many[i].most);
	many[i].seen++;
	FUZZ_CHECK(!(c->flags & ~RGATE_COMP_MORE));
	if (!c->flags)
		many[i].most = many[i].seen = 0;
	else
		FUZZ_CHECK(many[i].seen < many[i].most);
}

/* What there is to take; true: the answer to its NOP was among it */
static bool good_takes(uint64_t nop)
{
	struct rgate_completion *slot;
	bool there = false;
	uint64_t lap;

	for (;;) {
		slot = &good.area.completions[good.taken & good.area.comp_mask];
		lap = rgate_area_comp_lap(&good.area, good.taken);
		if (slot->seq != lap)
			return there;
		if (slot->cookie & MANY_COOKIE) {
			one_of_many(slot);
		} else {
			FUZZ_CHECK(!there && slot->cookie == nop && !slot->result &&
				   !slot->flags && slot->value == ~nop);
			there = true;
		}
		if (++good.taken % RGATE_REQ_BATCH == 0)
			*rgate_area_comp_credit(&good.area, good.taken - 1) = lap;
	}
}

/*
 * The one that behaves gets its answer at once, whatever the other one does; or, where requests
 * with many have taken what was left of its places, when it has taken what was there.
 */
static void good_asks(void)
{
	const uint64_t nop = good.sent;
	const struct rgate_request q = { .op = RGATE_REQ_NOP, .owner = good.w.owner,
					 .cookie = nop, .a0 = ~nop };

	bool there;

	publish(&good, q);
	kick(&good);
	turns(TURNS);
	there = good_takes(nop);
	if (!there) {
		kick(&good);
		turns(TURNS);
		there = good_takes(nop);
	}
	FUZZ_CHECK(there);
}

static void good_asks_for_many(unsigned int i, uint32_t n)
{
	const struct rgate_request q = { .op = RGATE_REQ_OP(LATE, 2), .owner = good.w.owner,
					 .cookie = MANY_COOKIE + i, .a1 = n,
					 .flags = RGATE_REQ_MULTI };

	if (many[i].most)
		return;
	many[i].most = n;
	publish(&good, q);
}

/* ---- The input ---- */

/* A request that is nearly right, so that not all are refused alike */
static struct rgate_request near_right(struct fuzz_in *in)
{
	static const uint16_t op[] = {
		RGATE_REQ_NOP, RGATE_REQ_PROBE, RGATE_REQ_TIME, RGATE_REQ_CANCEL,
		RGATE_REQ_OP(LATE, 0), RGATE_REQ_OP(LATE, 2), RGATE_REQ_OP(LATE, 1), 0xffff,
	};
	const uint8_t how = fuzz_u8(in);
	struct rgate_request q = {
		.op = op[how & 7], .owner = bad.w.owner, .cookie = fuzz_u8(in) & 31,
		.flags = fuzz_u8(in) & 15, .cls = fuzz_u8(in) & 3,
	};

	if (q.op == RGATE_REQ_CANCEL)
		q.a0 = fuzz_u8(in) & 31;
	if (q.op == RGATE_REQ_OP(LATE, 0))
		q.a1 = fuzz_u8(in) & 3;
	if (q.op == RGATE_REQ_OP(LATE, 2))
		q.a1 = fuzz_u8(in) & 63;
	if (how & 8)
		q.deadline_us = fuzz_u16(in);
	if (how & 16) {
		q.off = fuzz_u16(in) & (2 * PAGE - 1);
		q.len = fuzz_u16(in) & (2 * PAGE - 1);
	}
	if (how & 32)
		q.handle = fuzz_u32(in);
	if (how & 64)
		q.off = fuzz_u64(in);
	return q;
}

/* Some word of the area: any value, or a lap that could be right */
static void scribble(struct fuzz_in *in)
{
	uint64_t *words = (void *)bad.area.base;
	size_t at = fuzz_u16(in) % (bad.area.len / sizeof(*words));
	uint8_t how = fuzz_u8(in);

	__atomic_store_n(&words[at], how & 1 ? fuzz_u64(in) : how >> 1, __ATOMIC_RELAXED);
}

static void credit(struct fuzz_in *in)
{
	bad.area.comp_credits[fuzz_u8(in) % (PLACES / RGATE_REQ_BATCH)] = fuzz_u8(in);
}

static void step(struct fuzz_in *in)
{
	unsigned int n;
	uint8_t how;

	switch (fuzz_u8(in) % 10) {
	case 0:
	case 1:
	case 2:
		for (n = fuzz_u8(in) % 8; n; n--)
			publish(&bad, near_right(in));
		break;
	case 3:
		scribble(in);
		break;
	case 4:
		credit(in);
		break;
	case 5:
		if (!nheld)
			break;
		n = fuzz_u8(in) % nheld;
		how = fuzz_u8(in);
		if (how & 2)
			more(n, how >> 2);
		else
			end(n, (int)(how & 1) * -EIO);
		break;
	case 6:
		bad.area.client->want = fuzz_u8(in);
		break;
	case 7:
		slow = fuzz_u8(in) & 1;
		break;
	case 8:
		(void)fuzz_bytes(in, bad.area.base + fuzz_u16(in) % (bad.area.len - 64), 64);
		break;
	default:
		how = fuzz_u8(in);
		if (how & 7) {
			good_asks_for_many(how & 7, 2 + (how >> 3));
			break;
		}
		go(&bad);
		come(&bad, 1);
		break;
	}
	kick(&bad);
	good_asks();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct rgate_engine_opts o = RGATE_OPTS(rgate_engine_opts,
						      .flags = RGATE_ENGINE_LOOP,
						      .spin_us = RGATE_SPIN_NONE);
	struct rgate_engine_stats st = { .sz = sizeof(st) };
	struct fuzz_in in = { data, size };
	unsigned int i;

	nheld = 0;
	slow = false;
	memset(many, 0, sizeof(many));
	FUZZ_CHECK(!rgate_engine_create(&engine, &o));
	FUZZ_CHECK(!rgate_engine_add(engine, &service, NULL));
	come(&good, 0);
	come(&bad, 1);
	for (i = 0; i < STEPS && in.len; i++)
		step(&in);
	FUZZ_CHECK(!rgate_engine_stats(engine, &st));
	FUZZ_CHECK(st.under_way <= PLACES * (1 + st.seats) && st.handles <= 100);
	slow = false;
	go(&bad);
	/* what it did not give back when it was told to */
	turns(TURNS);
	while (nheld)
		end(0, 0);
	turns(TURNS);
	FUZZ_CHECK(!rgate_engine_stats(engine, &st));
	FUZZ_CHECK(st.seats == 1 && !st.under_way && !st.handles && st.users == 1);
	FUZZ_CHECK(!good_takes(UINT64_MAX));
	for (i = 0; i < MANY; i++)
		FUZZ_CHECK(!many[i].most);
	go(&good);
	gone = 0;
	rgate_engine_destroy(engine);
	FUZZ_CHECK(gone == 1);
	return 0;
}
