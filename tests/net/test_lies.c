// SPDX-License-Identifier: MIT OR GPL-2.0
/* Nodes of the cluster that say what is not so: compute nodes to a gateway, and a gateway
 * to compute nodes. Whatever they say, others are served, and nothing is read or written
 * where it should not be. */
#include "ended.h"
#include "plane.h"

#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "net_wire.h"

/* A node whose service for RGATE_SERVICE_NET is the test itself */
struct liar {
	struct rgate_node *node;
	struct rgate_hub *hub;
	struct rgate_peer *peer;	/* the node that is lied to */
	const struct rgate_buf *buf;	/* slots, then mail */
	unsigned int taken, refused, left, ready;	/* atomic */
	int32_t error;			/* of the last TAKEN, atomic */
	struct rgate_remote credit;
};

#define SLOTS	64U
#define SIZE	2048U

static void add(unsigned int *n)
{
	__atomic_add_fetch(n, 1, __ATOMIC_RELEASE);
}

static void heard(void *ctx, uint32_t node, const void *msg, size_t len)
{
	const struct net_hdr *hdr = msg;
	struct liar *l = ctx;

	(void)node;
	if (hdr->type == NET_READY)
		add(&l->ready);
	if (hdr->type == NET_LEFT)
		add(&l->left);
	if (hdr->type != NET_TAKEN || len != sizeof(struct net_taken))
		return;
	if (!hdr->value)
		unit_require(!rgate_desc_parse(&l->credit,
					       &((const struct net_taken *)msg)->credit_at, 32));
	__atomic_store_n(&l->error, (int32_t)le32toh(hdr->value), __ATOMIC_RELAXED);
	add(hdr->value ? &l->refused : &l->taken);
}

static void liar_up(struct plane *p, struct liar *l, unsigned int id, unsigned int to)
{
	const struct rgate_service s = { .sz = sizeof(s), .message = heard };

	memset(l, 0, sizeof(*l));
	l->node = cluster_node(&p->c, id);
	unit_require(!rgate_hub_create(&l->hub, l->node, NULL));
	unit_require(!rgate_hub_add(l->hub, RGATE_SERVICE_NET, &s, l));
	unit_require(!rgate_pool_alloc(rgate_node_pool(l->node), (size_t)(SLOTS + 1) * SIZE,
				       &l->buf));
	memset(l->buf->addr, 0, l->buf->length);
	l->peer = rgate_hub_peer(l->hub, to);
	assert_int_equal(rgate_peer_wait_up(l->peer, MS), 0);
}

static void liar_down(struct liar *l)
{
	rgate_hub_remove(l->hub, RGATE_SERVICE_NET);
	rgate_hub_destroy(l->hub);
	rgate_pool_free(rgate_node_pool(l->node), l->buf);
	unit_require(!node_ended(l->node));
}

static struct net_offer offer(struct liar *l)
{
	struct net_offer o = {
		.hdr = { .service = RGATE_SERVICE_NET, .type = NET_OFFER },
		.slots = htole32(SLOTS), .slot_size = htole32(SIZE), .free = htole64(SLOTS),
		.name = "lie",
	};
	struct rgate_pool *pool = rgate_node_pool(l->node);

	unit_require(!rgate_buf_desc(pool, l->buf, 0, SLOTS * SIZE, &o.slots_at));
	unit_require(!rgate_buf_desc(pool, l->buf, SLOTS * SIZE, SIZE, &o.mail_at));
	return o;
}

static void say(struct liar *l, const void *msg, size_t len)
{
	assert_int_equal(rgate_peer_send(l->peer, msg, len, MS), 0);
}

static void offers(void **state)
{
	static const struct {
		size_t at, len;
		uint64_t value;
	} lies[] = {
#define LIE(field, v) { offsetof(struct net_offer, field), \
			sizeof(((struct net_offer *)NULL)->field), v }
		LIE(slots, 0), LIE(slots, 32), LIE(slots, 65), LIE(slots, 1U << 21),
		LIE(slots, 128), LIE(slots, UINT32_MAX),
		LIE(slot_size, 0), LIE(slot_size, 128), LIE(slot_size, 2000),
		LIE(slot_size, 1U << 17), LIE(slot_size, 4096),
		LIE(head, 1000), LIE(head, UINT64_MAX), LIE(free, SLOTS + 1), LIE(free, UINT64_MAX),
		LIE(hdr.ring, NET_RINGS_MAX), LIE(hdr.ring, 0xffff),
		LIE(slots_at.magic, 1), LIE(slots_at.version, 9), LIE(slots_at.length, 4096),
		LIE(slots_at.access, 1), LIE(slots_at.reserved, 1),
		LIE(mail_at.length, 8), LIE(mail_at.access, 0), LIE(mail_at.addr, UINT64_MAX),
	};
	struct net_offer o;
	struct plane p;
	struct liar l;
	unsigned int i;

	(void)state;
	plane_up(&p, &(struct plane_opts){ .computes = 1 });
	compute_down(&p, 1);
	liar_up(&p, &l, 1, 0);
	for (i = 0; i < ARRAY_LEN(lies); i++) {
		const uint64_t v = htole64(lies[i].value);

		o = offer(&l);
		memcpy((char *)&o + lies[i].at, &v, lies[i].len);
		say(&l, &o, sizeof(o));
		wait_for(__atomic_load_n(&l.refused, __ATOMIC_ACQUIRE) == i + 1);
	}
	o = offer(&l);
	memset(o.name, 'x', sizeof(o.name));
	say(&l, &o, sizeof(o));
	wait_for(__atomic_load_n(&l.refused, __ATOMIC_ACQUIRE) == i + 1);
	assert_int_equal(plane_stats(&p).refused, i + 1);
	assert_int_equal(plane_rings(&p), 0);
	/* pieces of messages, and messages that nobody knows */
	for (i = 0; i < sizeof(o); i++)
		say(&l, &o, i);
	for (i = 0; i < 256; i++) {
		o.hdr.type = (uint8_t)i;
		say(&l, &o, sizeof(o.hdr));
	}
	/* true at last */
	o = offer(&l);
	say(&l, &o, sizeof(o));
	wait_for(plane_rings(&p) == 1);
	plane_send(&p, 1, 0, 100, true);
	wait_for(plane_node(&p, 1).frames == 1);
	liar_down(&l);
	plane_down(&p);
}

/* Room where there is none: the gateway no longer fills that ring, and others it does */
static void credits(void **state)
{
	const uint64_t lies[] = { UINT64_MAX, 2 * SLOTS, SLOTS - 1, 0 };
	const struct rgate_buf *word;
	struct net_offer o;
	struct plane p;
	struct liar l;
	unsigned int i, k;

	(void)state;
	plane_up(&p, &(struct plane_opts){ .computes = 2 });
	plane_rules(&p, "all all:*\n");
	compute_down(&p, 1);
	liar_up(&p, &l, 1, 0);
	unit_require(!rgate_pool_alloc(rgate_node_pool(l.node), 8, &word));
	for (i = 0; i < ARRAY_LEN(lies); i++) {
		struct rgate_sge sge = { word->addr, 8, word->lkey };

		o = offer(&l);
		say(&l, &o, sizeof(o));
		wait_for(plane_rings(&p) == 2);
		wait_for(__atomic_load_n(&l.taken, __ATOMIC_ACQUIRE) == i + 1);
		memcpy(word->addr, &(uint64_t){ htole64(lies[i]) }, 8);
		assert_int_equal(rgate_peer_write(l.peer, &l.credit, 0, &sge, MS), 0);
		for (k = 0; k < 10; k++)
			plane_send(&p, 1, k, 100, true);
		wait_for(plane_rings(&p) == 1);
		assert_int_equal(plane_drain(&p.at[2], 200), 10);
	}
	rgate_pool_free(rgate_node_pool(l.node), word);
	liar_down(&l);
	plane_down(&p);
}

/* Memory that the node never shared: its device refuses, and that connection ends */
static void wrong_memory(void **state)
{
	struct net_offer o;
	struct plane p;
	struct liar l;

	(void)state;
	plane_up(&p, &(struct plane_opts){ .computes = 2 });
	plane_rules(&p, "all all:*\n");
	compute_down(&p, 1);
	liar_up(&p, &l, 1, 0);
	o = offer(&l);
	o.slots_at.rkey = htole32(le32toh(o.slots_at.rkey) ^ 0x5a5a00);
	say(&l, &o, sizeof(o));
	wait_for(plane_rings(&p) == 2);
	plane_send(&p, 1, 0, 100, true);
	assert_int_equal(plane_drain(&p.at[2], 500), 1);
	wait_for(plane_rings(&p) == 1);
	plane_send(&p, 1, 1, 100, true);
	assert_int_equal(plane_drain(&p.at[2], 500), 1);
	wait_for(plane_node(&p, 1).lost + plane_node(&p, 1).dropped_down > 0);
	liar_down(&l);
	plane_down(&p);
}

/* The same ring again and again, withdrawn and offered, while frames come */
static void again(void **state)
{
	struct net_hdr withdraw = { .service = RGATE_SERVICE_NET, .type = NET_WITHDRAW };
	struct net_offer o;
	struct plane p;
	struct liar l;
	unsigned int i;

	(void)state;
	plane_up(&p, &(struct plane_opts){ .computes = 2 });
	plane_rules(&p, "all all:*\n");
	compute_down(&p, 1);
	liar_up(&p, &l, 1, 0);
	for (i = 0; i < 100; i++) {
		o = offer(&l);
		o.hdr.ring = htole16((uint16_t)(i % 3));
		say(&l, &o, sizeof(o));
		withdraw.ring = htole16((uint16_t)(i % 5));
		if (i % 4 == 0)
			say(&l, &withdraw, sizeof(withdraw));
		plane_send(&p, 1, i, 100, true);
	}
	assert_int_equal(plane_drain(&p.at[2], 500), 100);
	liar_down(&l);
	wait_for(plane_rings(&p) == 1);
	plane_down(&p);
}

static void notice(struct liar *l, const struct net_offer *o, uint64_t head, uint32_t imm)
{
	struct net_mail *mail = l->buf->addr;
	const struct rgate_sge sge = { mail, sizeof(*mail), l->buf->lkey };
	struct rgate_remote at;

	mail->head = htole64(head);
	unit_require(!rgate_desc_parse(&at, &o->mail_at, 32));
	assert_int_equal(rgate_peer_write_imm(l->peer, &at, 0, &sge, RGATE_SERVICE_NET <<
					      RGATE_NOTICE_SHIFT | imm, MS), 0);
}

static struct net_offer offered;
static unsigned int offers_seen, withdrawals_seen;

static void victim_heard(void *ctx, uint32_t node, const void *msg, size_t len)
{
	const struct net_hdr *hdr = msg;

	(void)ctx;
	(void)node;
	if (hdr->type == NET_WITHDRAW)
		add(&withdrawals_seen);
	if (hdr->type != NET_OFFER || len != sizeof(offered))
		return;
	memcpy(&offered, msg, sizeof(offered));
	add(&offers_seen);
}

static void ready(struct liar *l, uint64_t instance)
{
	struct net_ready r = {
		.hdr = { .service = RGATE_SERVICE_NET, .type = NET_READY },
		.instance = htole64(instance),
	};

	say(l, &r, sizeof(r));
}

static void gateway_lies(void **state)
{
	const struct rgate_service s = { .sz = sizeof(s), .message = victim_heard };
	struct net_taken t = { .hdr = { .service = RGATE_SERVICE_NET, .type = NET_TAKEN } };
	struct net_ping pong = { .hdr = { .service = RGATE_SERVICE_NET, .type = NET_PONG } };
	const uint64_t heads[] = { SLOTS + 1, UINT64_MAX, 1ULL << 63, 5 };
	struct rgate_peer_info before = { .sz = sizeof(before) }, after = before;
	struct rgate_inlet_ring r;
	struct net_hdr left = { .service = RGATE_SERVICE_NET, .type = NET_LEFT };
	struct plane p = { .n = 1 };
	struct liar l;
	unsigned int i;

	(void)state;
	offers_seen = 0;
	cluster_make(&p.c, 2, 0);
	compute_up(&p, 1);
	compute_ring(&p, 1, SLOTS, SIZE);
	liar_up(&p, &l, 0, 1);
	rgate_hub_remove(l.hub, RGATE_SERVICE_NET);
	unit_require(!rgate_hub_add(l.hub, RGATE_SERVICE_NET, &s, &l));
	ready(&l, 1);
	wait_for(__atomic_load_n(&offers_seen, __ATOMIC_ACQUIRE) == 1);
	/* credit words that are none */
	for (i = 0; i < 3; i++) {
		struct net_offer o = offer(&l);

		t.credit_at = o.slots_at;
		t.credit_at.length = htole64(i == 0 ? 16 : 8);
		if (i == 1)
			t.credit_at.access = RGATE_ACCESS_REMOTE_READ;
		if (i == 2)
			t.credit_at.magic = 0;
		say(&l, &t, sizeof(t));
		wait_for(plane_inlet(&p.at[1]).errors == i + 1);
		assert_false(plane_inlet(&p.at[1]).filled);
	}
	/* refused for no reason, or for one that there is not */
	t.hdr.value = htole32(0x7fffffff);
	say(&l, &t, sizeof(t));
	wait_for(plane_inlet(&p.at[1]).error == -EPROTO);
	/* heads that cannot be, and rings that are not there */
	for (i = 0; i < ARRAY_LEN(heads); i++) {
		notice(&l, &offered, heads[i], i % 2 ? NET_ASK : 0);
		wait_for(plane_inlet(&p.at[1]).errors == 3 + (i < 3 ? i + 1 : 3));
	}
	notice(&l, &offered, 0, 63);
	notice(&l, &offered, 0, NET_RING_MASK);
	/* slots with headers that lie: the consumer's bounds hold */
	for (i = 0; i < 20; i++) {
		struct rgate_slot lie = {
			.seq = 1, .len = UINT32_MAX, .wire_len = 7, .chain_cnt = (uint8_t)(i * 13),
			.chain_idx = 9, .flags = i * 0x111, .l3_off = 0xfff0, .l4_off = 0xfff1,
		};
		struct rgate_sge sge = { (char *)l.buf->addr + 4096, sizeof(lie), l.buf->lkey };
		unsigned char buf[256];
		struct rgate_remote at;

		memcpy(sge.addr, &lie, sizeof(lie));
		unit_require(!rgate_desc_parse(&at, &offered.slots_at, 32));
		assert_int_equal(rgate_peer_write(l.peer, &at, (uint64_t)i * SIZE, &sge, MS), 0);
		assert_int_equal(rgate_peer_flush(l.peer, MS), 0);
		(void)rgate_consumer_copy(&p.at[1].c, NULL, buf, sizeof(buf));
	}
	for (i = 0; i < 64; i++) {
		pong.hdr.value = htole32(i % 5);
		pong.sent = htole64(i % 2 ? UINT64_MAX : 0);
		pong.seen = htole64(i % 3 ? UINT64_MAX : 1);
		pong.answered = htole64(i % 4 ? 0 : UINT64_MAX);
		say(&l, &pong, sizeof(pong));
		say(&l, &pong, i % sizeof(pong));
		say(&l, &left, sizeof(left));
		ready(&l, 1);
	}
	r = plane_inlet(&p.at[1]);
	assert_int_equal(r.sessions, 0);
	/* READY of another instance: offered anew */
	ready(&l, 2);
	wait_for(__atomic_load_n(&offers_seen, __ATOMIC_ACQUIRE) == 2);
	/*
	 * Closing takes its time, as this gateway does not answer, and an end: also of its
	 * connection, over which it would go on to write where the ring's mail was.
	 */
	unit_require(!rgate_peer_info(rgate_hub_peer(p.at[1].hub, 0), &before));
	compute_close_ring(&p, 1);
	unit_require(!rgate_peer_info(rgate_hub_peer(p.at[1].hub, 0), &after));
	assert_true(after.state != RGATE_PEER_UP || after.epoch != before.epoch);
	rgate_hub_remove(l.hub, RGATE_SERVICE_NET);
	rgate_hub_destroy(l.hub);
	rgate_pool_free(rgate_node_pool(l.node), l.buf);
	unit_require(!node_ended(l.node));
	compute_down(&p, 1);
	cluster_free(&p.c);
}

struct clockmaker {
	struct liar l;
	struct net_ping ping;
	unsigned int pings;	/* atomic */
};

static void hear_ping(void *ctx, uint32_t node, const void *msg, size_t len)
{
	const struct net_hdr *hdr = msg;
	struct clockmaker *m = ctx;

	(void)node;
	if (hdr->type != NET_PING || len != sizeof(m->ping))
		return;
	memcpy(&m->ping, msg, len);
	add(&m->pings);
}

/* Answers a ping: what the gateway's clock showed, less the time it was asked at */
static void pong(struct clockmaker *m, int64_t sent, int64_t seen, int64_t answered)
{
	const uint64_t at = le64toh(m->ping.sent);
	struct net_ping p = {
		.hdr = { .service = RGATE_SERVICE_NET, .type = NET_PONG,
			 .value = m->ping.hdr.value },
		.sent = htole64(at + (uint64_t)sent), .seen = htole64(at + (uint64_t)seen),
		.answered = htole64(at + (uint64_t)answered),
	};

	say(&m->l, &p, sizeof(p));
}

/* The offset of a clock that is @off ns ahead; impossible answers before it are not taken. */
static void clock_of(int64_t off)
{
	const struct rgate_service s = { .sz = sizeof(s), .message = hear_ping };
	const int64_t hour = 3600 * 1000000000LL;
	struct plane p = { .n = 1 };
	struct clockmaker m = { 0 };
	uint64_t error;
	int64_t got;

	cluster_make(&p.c, 2, 0);
	compute_up(&p, 1);
	compute_ring(&p, 1, SLOTS, SIZE);
	liar_up(&p, &m.l, 0, 1);
	rgate_hub_remove(m.l.hub, RGATE_SERVICE_NET);
	unit_require(!rgate_hub_add(m.l.hub, RGATE_SERVICE_NET, &s, &m));
	ready(&m.l, 1);
	wait_for(__atomic_load_n(&m.pings, __ATOMIC_ACQUIRE) > 0);
	/* asked in the future; answered before it was seen, by 1 ns; seen for longer than
	 * the question and the answer were under way
	 */
	pong(&m, hour, off, off);
	pong(&m, 0, off, off - 1);
	pong(&m, 0, off, off + hour);
	/* of clocks that there are not */
	m.ping.hdr.value = htole32(RGATE_CLOCK_COUNT);
	pong(&m, 0, off, off);
	m.ping.hdr.value = htole32(UINT32_MAX);
	pong(&m, 0, off, off);
	usleep(100000);
	assert_int_equal(rgate_ring_tstamp_offset(p.at[1].ring, &got, &error), -ENODATA);
	/* the next ones are answered truly */
	__atomic_store_n(&m.pings, 0, __ATOMIC_RELAXED);
	wait_for(__atomic_load_n(&m.pings, __ATOMIC_ACQUIRE) > 0);
	pong(&m, 0, off, off);
	wait_for(!rgate_ring_tstamp_offset(p.at[1].ring, &got, &error));
	assert_true(error > 0 && error < (uint64_t)MS * 1000000);
	assert_true(got >= off - (int64_t)error && got <= off + (int64_t)error);
	compute_close_ring(&p, 1);
	liar_down(&m.l);
	compute_down(&p, 1);
	cluster_free(&p.c);
}

static void clocks(void **state)
{
	(void)state;
	clock_of(5 * 1000000000LL);
	clock_of(-1000000LL);
}

/* @n slots with nothing in them, from the first one on */
static void fill(struct liar *l, unsigned int n)
{
	struct rgate_slot slot = { .seq = 1, .chain_cnt = 1 };
	struct rgate_sge sge = { (char *)l->buf->addr + 4096, sizeof(slot), l->buf->lkey };
	struct rgate_remote at;
	unsigned int i;

	memcpy(sge.addr, &slot, sizeof(slot));
	unit_require(!rgate_desc_parse(&at, &offered.slots_at, 32));
	for (i = 0; i < n; i++)
		assert_int_equal(rgate_peer_write(l->peer, &at, (uint64_t)i * SIZE, &sge, MS), 0);
	notice(l, &offered, n, 0);
}

static void *close_ring(void *plane)
{
	compute_close_ring(plane, 1);
	return NULL;
}

/* Once a ring is withdrawn the gateway's word for it may be another's. */
static void told_too_late(void **state)
{
	const struct rgate_service s = { .sz = sizeof(s), .message = victim_heard };
	struct net_taken t = { .hdr = { .service = RGATE_SERVICE_NET, .type = NET_TAKEN } };
	const struct net_hdr left = { .service = RGATE_SERVICE_NET, .type = NET_LEFT };
	struct plane p = { .n = 1 };
	pthread_t thread;
	unsigned int i;
	uint64_t *word;
	struct liar l;

	(void)state;
	offers_seen = withdrawals_seen = 0;
	cluster_make(&p.c, 2, 0);
	compute_up(&p, 1);
	compute_ring(&p, 1, SLOTS, SIZE);
	liar_up(&p, &l, 0, 1);
	rgate_hub_remove(l.hub, RGATE_SERVICE_NET);
	unit_require(!rgate_hub_add(l.hub, RGATE_SERVICE_NET, &s, &l));
	ready(&l, 1);
	wait_for(__atomic_load_n(&offers_seen, __ATOMIC_ACQUIRE) == 1);
	word = (uint64_t *)l.buf->addr + 1024;
	unit_require(!rgate_buf_desc(rgate_node_pool(l.node), l.buf, 1024 * 8, 8, &t.credit_at));
	say(&l, &t, sizeof(t));
	wait_for(plane_inlet(&p.at[1]).filled);
	fill(&l, SLOTS / 2);
	assert_int_equal(pthread_create(&thread, NULL, close_ring, &p), 0);
	wait_for(__atomic_load_n(&withdrawals_seen, __ATOMIC_ACQUIRE) == 1);
	/* now half of the ring comes free, and is asked for */
	for (i = 0; i < SLOTS / 2; i++) {
		wait_for(rgate_consumer_next(&p.at[1].c));
		rgate_consumer_release(&p.at[1].c);
	}
	notice(&l, &offered, SLOTS / 2, NET_ASK);
	usleep(300000);
	assert_int_equal(__atomic_load_n(word, __ATOMIC_ACQUIRE), 0);
	say(&l, &left, sizeof(left));
	pthread_join(thread, NULL);
	liar_down(&l);
	compute_down(&p, 1);
	cluster_free(&p.c);
}

/* What is withdrawn is not offered to the next instance, which would fill what is gone by then. */
static void offered_too_late(void **state)
{
	const struct rgate_service s = { .sz = sizeof(s), .message = victim_heard };
	struct plane p = { .n = 1 };
	pthread_t thread;
	unsigned int i;
	struct liar l;

	(void)state;
	offers_seen = withdrawals_seen = 0;
	cluster_make(&p.c, 2, 0);
	compute_up(&p, 1);
	liar_up(&p, &l, 0, 1);
	rgate_hub_remove(l.hub, RGATE_SERVICE_NET);
	unit_require(!rgate_hub_add(l.hub, RGATE_SERVICE_NET, &s, &l));
	/* Of the first ring, one offer too many would be here before the second's withdrawal. */
	for (i = 1; i <= 2; i++) {
		compute_ring(&p, 1, SLOTS, SIZE);
		ready(&l, i);
		wait_for(__atomic_load_n(&offers_seen, __ATOMIC_ACQUIRE) >= i);
		assert_int_equal(pthread_create(&thread, NULL, close_ring, &p), 0);
		wait_for(__atomic_load_n(&withdrawals_seen, __ATOMIC_ACQUIRE) == i);
		assert_int_equal(__atomic_load_n(&offers_seen, __ATOMIC_ACQUIRE), i);
		ready(&l, i + 1);
		pthread_join(thread, NULL);
	}
	liar_down(&l);
	compute_down(&p, 1);
	cluster_free(&p.c);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(offers),
	cmocka_unit_test(credits),
	cmocka_unit_test(wrong_memory),
	cmocka_unit_test(again),
	cmocka_unit_test(gateway_lies),
	cmocka_unit_test(clocks),
	cmocka_unit_test(told_too_late),
	cmocka_unit_test(offered_too_late),
};

UNIT_MAIN(tests)
