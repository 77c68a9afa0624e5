// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The engine against a client that writes anything to every word of its area and its memory,
 * comes and goes. What has to hold: another session is served in each step, the service is
 * given only memory that lies in the session's, no more is under way than there are places for,
 * each step comes to an end, and in the end nothing is left.
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
	if (q->a1 & 1)
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
};

static const struct rgate_req_service service = {
	.number = LATE, .nops = 2, .name = "late", .ops = ops, .drop = drop,
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

/* The one that behaves gets its answer at once, whatever the other one does. */
static void good_asks(void)
{
	struct rgate_completion *slot = &good.area.completions[good.taken & good.area.comp_mask];
	const struct rgate_request q = { .op = RGATE_REQ_NOP, .owner = good.w.owner,
					 .cookie = good.taken, .a0 = ~good.taken };
	uint64_t lap = rgate_area_comp_lap(&good.area, good.taken);

	publish(&good, q);
	kick(&good);
	turns(TURNS);
	FUZZ_CHECK(slot->seq == lap && slot->cookie == good.taken && !slot->result &&
		   slot->value == ~good.taken);
	if (++good.taken % RGATE_REQ_BATCH == 0)
		*rgate_area_comp_credit(&good.area, good.taken - 1) = lap;
}

/* ---- The input ---- */

/* A request that is nearly right, so that not all are refused alike */
static struct rgate_request near_right(struct fuzz_in *in)
{
	static const uint16_t op[] = {
		RGATE_REQ_NOP, RGATE_REQ_PROBE, RGATE_REQ_TIME, RGATE_REQ_CANCEL,
		RGATE_REQ_OP(LATE, 0), RGATE_REQ_OP(LATE, 0), RGATE_REQ_OP(LATE, 1), 0xffff,
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
		if (nheld)
			end(fuzz_u8(in) % nheld, (int)(fuzz_u8(in) & 1) * -EIO);
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
		if (fuzz_u8(in) & 7)
			break;
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
	go(&good);
	gone = 0;
	rgate_engine_destroy(engine);
	FUZZ_CHECK(gone == 1);
	return 0;
}
