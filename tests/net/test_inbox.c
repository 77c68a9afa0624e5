// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * What a gateway packs, laid into a ring: by chunks that are made here, well and badly. The
 * gateway's half is tried by test_plane (packed.sh).
 */
#include "unit.h"
#include "inlet.h"
#include "producer.h"
#include "ring_memfd.h"

#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define INBOX	NET_INBOX_MIN
#define SLOTS	64U
#define ROOM	(256U - RGATE_SLOT_HDR)
#define HEAD	(RGATE_SLOT_HDR - 8U)

struct bed {
	struct inlet_ring r;
	struct rgate_buf buf;
	struct rgate_consumer c;
	uint64_t pos, head;	/* of the next chunk, and of its first slot */
	struct rgate_stats stats;
};

static void bed_up(struct bed *b)
{
	struct rgate_ring_opts o = RGATE_OPTS(rgate_ring_opts, .slots = SLOTS, .slot_size = 256,
					      .flags = RGATE_RING_CHAIN, .name = "r");

	memset(b, 0, sizeof(*b));
	assert_int_equal(rgate_ring_open_filled(&b->r.ring, &o, false), 0);
	assert_int_equal(rgate_producer_init(&b->r.p, b->r.ring), 0);
	assert_int_equal(rgate_consumer_init(&b->c, b->r.ring, NULL), 0);
	b->buf.addr = aligned_alloc(64, INBOX);
	unit_require(b->buf.addr);
	memset(b->buf.addr, 0, INBOX);
	b->r.inbox = &b->buf;
	b->r.inbox_size = INBOX;
}

static void bed_down(struct bed *b)
{
	rgate_producer_fini(&b->r.p);
	rgate_ring_close(b->r.ring);
	free(b->buf.addr);
}

static struct net_chunk *place(const struct bed *b)
{
	return (void *)((unsigned char *)b->buf.addr +
			(net_chunk_at(b->pos, INBOX) & (INBOX - 1)));
}

/* A slot with @len bytes of frame @i, at @to; what it takes there */
static uint32_t put_slot(unsigned char *to, uint64_t i, uint32_t len)
{
	struct rgate_slot s = { .len = len, .wire_len = len, .chain_cnt = 1, .hash = (uint32_t)i };

	memcpy(to, (unsigned char *)&s + 8, HEAD);
	memset(to + HEAD, 0, net_packed(len, ROOM));
	unit_pattern(to + HEAD, i, len < ROOM ? len : ROOM);
	return HEAD + net_packed(len, ROOM);
}

/* A chunk of @n slots with frames of @len bytes and more; not sent yet */
static struct net_chunk *make(struct bed *b, unsigned int n, uint32_t len, uint32_t flags)
{
	struct net_chunk *c = place(b);
	unsigned char *at = (unsigned char *)(c + 1);
	unsigned int i;

	memset(c, 0, sizeof(*c));
	for (i = 0; i < n; i++)
		at += put_slot(at, b->head + i, len + i % 3);
	c->mark = htole64(net_chunk_at(b->pos, INBOX) + 1);
	c->flags = htole32(flags);
	c->slots = htole32(n);
	c->bytes = htole32((uint32_t)(at - (unsigned char *)(c + 1)));
	b->stats.delivered += n;
	c->mail.head = htole64(b->head + n);
	c->mail.stats[0] = htole64(b->stats.delivered);
	return c;
}

static void advance(struct bed *b, const struct net_chunk *c)
{
	b->pos = net_chunk_end(net_chunk_at(b->pos, INBOX), le32toh(c->bytes));
	b->head += le32toh(c->slots);
}

static void take(struct bed *b, unsigned int n, uint32_t len)
{
	const struct rgate_slot *s;
	static uint64_t i;

	if (!b->c.done)
		i = 0;
	for (; n--; i++) {
		s = rgate_consumer_next(&b->c);
		assert_non_null(s);
		assert_in_range(s->len, len, len + 2);
		assert_int_equal(s->hash, (uint32_t)i);
		assert_int_equal(unit_pattern_check(rgate_slot_data(s), i, s->len), 0);
		rgate_consumer_release(&b->c);
	}
	assert_null(rgate_consumer_next(&b->c));
}

/* Chunks with and without notices, round the inbox and the ring many times */
static void laid(void **state)
{
	unsigned int round, n[3], i;
	struct rgate_stats st;
	struct bed b;

	(void)state;
	bed_up(&b);
	for (round = 0; round < 2000; round++) {
		const uint32_t len = round % 190;

		for (i = 0; i < 3; i++) {
			n[i] = (round + i) % 9 * (i != 1);
			advance(&b, make(&b, n[i], len, i == 2 ? NET_CHUNK_NOTICE : 0));
		}
		assert_int_equal(inlet_pack_take(&b.r), 0);
		assert_int_equal(b.r.p.head, b.head);
		take(&b, n[0] + n[1] + n[2], len);
		b.r.read_told = b.r.read;
	}
	rgate_ring_stats(b.r.ring, &st);
	assert_int_equal(st.delivered, b.head);
	/* a notice for which there is no chunk */
	assert_int_equal(inlet_pack_take(&b.r), -EPROTO);
	bed_down(&b);
}

static void *watch(void *arg)
{
	const struct bed *b = arg;
	const struct rgate_slot *first = rgate_producer_slot(&b->r.p, 0);
	uint64_t lap, torn = 0;
	unsigned int i;

	do {
		lap = __atomic_load_n(&first->seq, __ATOMIC_ACQUIRE);
		for (i = 1; i < RGATE_BATCH; i++)
			torn += __atomic_load_n(&rgate_producer_slot(&b->r.p, i)->seq,
						__ATOMIC_ACQUIRE) < lap;
	} while (lap < unit_rounds(20000));
	return (void *)(uintptr_t)torn;
}

/* Who sees the first slot of a chunk sees all of it, and so of each chain in it */
static void order(void **state)
{
	unsigned int round;
	pthread_t thread;
	struct bed b;
	void *torn;

	(void)state;
	bed_up(&b);
	unit_require(!pthread_create(&thread, NULL, watch, &b));
	for (round = 0; round < 2 * unit_rounds(20000); round++) {
		advance(&b, make(&b, RGATE_BATCH, 8, NET_CHUNK_NOTICE));
		assert_int_equal(inlet_pack_take(&b.r), 0);
		assert_non_null(rgate_consumer_next(&b.c));
		rgate_consumer_release_n(&b.c, RGATE_BATCH);
		b.r.read_told = b.r.read;
	}
	pthread_join(thread, &torn);
	assert_null(torn);
	bed_down(&b);
}

enum fault {
	NO_MARK, OLD_MARK, MANY_SLOTS, LONG, ODD, HEAD_BACK, HEAD_ON, NO_HEADER, CUT, MORE, FULL,
	NO_NOTICE, FAULTS
};

static void spoil(struct bed *b, struct net_chunk *c, enum fault what)
{
	const uint32_t bytes = le32toh(c->bytes);

	switch (what) {
	case NO_MARK:
		c->mark = 0;
		break;
	case OLD_MARK:
		c->mark = htole64(le64toh(c->mark) - INBOX);
		break;
	case MANY_SLOTS:
		c->slots = htole32(RGATE_BATCH + 1);
		break;
	case LONG:
		c->bytes = htole32(INBOX);
		break;
	case ODD:
		c->bytes = htole32(bytes + 1);
		break;
	case HEAD_BACK:
		c->mail.head = htole64(b->head);
		break;
	case HEAD_ON:
		c->mail.head = htole64(b->head + 9);
		break;
	case NO_HEADER:
		c->bytes = htole32(HEAD - 8);
		break;
	case CUT:
		c->bytes = htole32(bytes - 8);
		break;
	case MORE:
		c->bytes = htole32(bytes + 8);
		break;
	case NO_NOTICE:
		c->flags = 0;
		break;
	default:
		break;
	}
}

/* Each is told, and the ring has nothing of it but what came before */
static void refused(void **state)
{
	struct net_chunk *c;
	struct bed b;
	unsigned int i;

	(void)state;
	for (i = 0; i < FAULTS; i++) {
		bed_up(&b);
		advance(&b, make(&b, 4, 100, NET_CHUNK_NOTICE));
		assert_int_equal(inlet_pack_take(&b.r), 0);
		if (i == FULL) {
			advance(&b, make(&b, 32, 0, NET_CHUNK_NOTICE));
			assert_int_equal(inlet_pack_take(&b.r), 0);
			c = make(&b, 29, 0, NET_CHUNK_NOTICE);
		} else {
			c = make(&b, 8, 100, NET_CHUNK_NOTICE);
		}
		spoil(&b, c, i);
		assert_int_equal(inlet_pack_take(&b.r), -EPROTO);
		/* the one without a notice is whole, what should follow it is missing */
		assert_int_equal(b.r.p.head, i == FULL ? 36 : i == NO_NOTICE ? 12 : 4);
		bed_down(&b);
	}
}

/* Whatever lies there: the ring's own words stay right, and it ends */
static void garbage(void **state)
{
	const unsigned int n = unit_rounds(200000);
	uint64_t seed = 11, taken = 0;
	struct net_chunk *c;
	struct bed b;
	unsigned int i, k;

	(void)state;
	bed_up(&b);
	for (i = 0; i < n; i++) {
		unsigned char *at = b.buf.addr;

		b.pos = b.r.read;
		b.head = b.r.p.head;
		b.stats = b.r.p.stats;
		c = make(&b, (unsigned int)(unit_random(&seed) % 9), 64, NET_CHUNK_NOTICE);
		for (k = (unsigned int)(unit_random(&seed) % 6); k; k--) {
			const uint64_t r = unit_random(&seed);

			if (r & 1)
				((unsigned char *)c)[r / 2 % 64] = (unsigned char)(r >> 40);
			else
				at[r / 2 % INBOX] = (unsigned char)(r >> 40);
		}
		taken += !inlet_pack_take(&b.r);
		b.r.read_told = b.r.read;
		assert_in_range(b.r.p.head - b.head, 0, SLOTS);
		assert_true(b.r.p.head <= rgate_producer_free(&b.r.p));
		while (rgate_consumer_next(&b.c))
			rgate_consumer_release(&b.c);
	}
	/* much of it is as it should be, and much is not */
	assert_in_range(taken, n / 10, n - n / 10);
	bed_down(&b);
}

static int post_err;
static unsigned int posts;
static struct rgate_op posted;
static uint64_t words[2];		/* as they were posted */

int __wrap_rgate_peer_post(struct rgate_peer *peer, const struct rgate_op *ops, unsigned int n,
			   uint64_t *ticket);

int __wrap_rgate_peer_post(struct rgate_peer *peer, const struct rgate_op *ops, unsigned int n,
			   uint64_t *ticket)
{
	(void)peer;
	(void)ticket;
	assert_int_equal(n, 1);
	if (post_err)
		return post_err;
	posts++;
	posted = *ops;
	memcpy(words, ops->sge->addr, sizeof(words));
	return 0;
}

/*
 * A wire that answers nothing takes nothing. The gateway has filled the inbox meanwhile, and has no
 * place for another notice: what it waits for is told without one, once it can be told.
 */
static void told_late(void **state)
{
	uint64_t place[2 * NET_RINGS_MAX] = { 0 };
	const struct rgate_buf at = { .addr = place };
	struct rgate_inlet in = { .words = &at };
	struct net_chunk *c;
	unsigned int n = 0;
	struct bed b;

	(void)state;
	bed_up(&b);
	b.r.taken = true;
	b.r.credit.length = 16;
	b.r.told = rgate_producer_free(&b.r.p);
	posts = 0;
	post_err = -EAGAIN;
	assert_int_equal(inlet_ring_tick(&in, &b.r), -1);
	do {
		c = make(&b, 8, 180, NET_CHUNK_NOTICE);
		advance(&b, c);
		inlet_ring_notice(&in, &b.r, false);
		take(&b, 8, 180);
		n += 8;
	} while (b.r.read - b.r.read_told < net_chunk_max(INBOX));
	assert_int_equal(b.r.read, b.pos);
	assert_int_equal(b.r.read_told, 0);
	assert_int_equal(posts, 0);
	assert_true(inlet_ring_tick(&in, &b.r) > 0);
	assert_true(inlet_ring_tick(&in, &b.r) > 0);
	post_err = 0;
	assert_int_equal(inlet_ring_tick(&in, &b.r), -1);
	assert_int_equal(posts, 1);
	assert_int_equal(posted.kind, RGATE_OP_WRITE);
	assert_int_equal(le64toh(words[0]), rgate_producer_free(&b.r.p));
	assert_int_equal(le64toh(words[1]), b.r.read);
	/* That is that. */
	assert_int_equal(inlet_ring_tick(&in, &b.r), -1);
	assert_int_equal(posts, 1);
	/* Who has asked for slots is told of the inbox, and then of slots. */
	take(&b, 0, 0);
	b.r.asked = b.r.late = true;
	assert_true(inlet_ring_tick(&in, &b.r) > 0);
	assert_int_equal(posts, 2);
	assert_int_equal(posted.kind, RGATE_OP_WRITE_IMM);
	assert_true(inlet_ring_tick(&in, &b.r) > 0);
	assert_int_equal(posts, 2);
	assert_int_equal(n, b.head);
	bed_down(&b);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(told_late),
	cmocka_unit_test(laid),
	cmocka_unit_test(order),
	cmocka_unit_test(refused),
	cmocka_unit_test(garbage),
};

UNIT_MAIN(tests)
