// SPDX-License-Identifier: MIT OR GPL-2.0
/* libringgate on the module: open, attach, consume, wait, resize, hand on. */
#include "lib/vt.h"

#include <sys/socket.h>
#include <ringgate/ringgate.h>	/* libringgate */

static struct rgate_ring *ring;
static struct rgate_ctl *ctl;
static int tx;

static void setup(const struct rgate_ring_opts *opts)
{
	int err;

	vt_veth("va", "vb", 0);
	tx = vt_tx_open("va");
	err = rgate_ring_open(&ring, opts);
	if (err)
		DIE("rgate_ring_open: %s", rgate_strerror("rgate_ring_open", err));
	err = rgate_ctl_open(&ctl);
	if (err)
		DIE("rgate_ctl_open: %s", rgate_strerror("rgate_ctl_open", err));
}

/* @n frames by rgate_consumer_next(); how many were right and new */
static unsigned int take(struct rgate_consumer *c, struct vt_seen *seen, unsigned int n)
{
	unsigned int got = 0;

	while (got < n) {
		const struct rgate_slot *s = rgate_consumer_next(c);
		uint64_t seq;

		if (!s) {
			if (rgate_consumer_wait(c, 2000) != 1)
				break;
			continue;
		}
		if (!vt_pkt_check(rgate_slot_data(s), s->len, &seq))
			FAIL("a frame is not as sent");
		else if (seen)
			vt_seen_add(seen, seq);
		rgate_consumer_release(c);
		got++;
	}
	return got;
}

static void attach_and_consume(void)
{
	struct rgate_ring_opts o = RGATE_OPTS(rgate_ring_opts, .slots = 256,
					      .slot_size = 512, .name = "lib");
	struct rgate_attach_opts ao = RGATE_OPTS(rgate_attach_opts,
		.filter = "udp and dst port 4711");
	struct rgate_att_info ai;
	struct rgate_ring_info ri;
	struct rgate_consumer c;
	struct rgate_stats st;
	struct rgate_ident att = { 0 }, id;
	int stack;

	setup(&o);
	rgate_ring_ident(ring, &id);
	EXPECT_EQ(rgate_ctl_attach(ctl, "vb", &id, 1, &ao, &att), 0);
	REQUIRE(!rgate_consumer_init(&c, ring, NULL));
	stack = vt_stack_open("vb");
	vt_tx_burst(tx, 300, 0, 200);
	EXPECT_EQ(take(&c, NULL, 200), 200);
	EXPECT(!rgate_consumer_next(&c));
	EXPECT_EQ(vt_stack_drain(stack, 1000), 200);	/* not told to steal */
	EXPECT_EQ(rgate_consumer_wait(&c, 100), 0);
	REQUIRE(!rgate_ring_stats(ring, &st));
	EXPECT_EQ(st.delivered, 200);
	REQUIRE(!rgate_ctl_att(ctl, att.id, &ai));
	EXPECT_EQ(ai.delivered, 200);
	EXPECT_EQ(ai.seen, 200);
	EXPECT_EQ(ai.action, RGATE_ACTION_MIRROR);
	EXPECT(ai.filter_len > 0);
	EXPECT(!strcmp(ai.ifname, "vb"));
	EXPECT_EQ(ai.nrings, 1);
	EXPECT_EQ(ai.cookie, att.cookie);
	EXPECT_EQ(ai.rings[0].id, id.id);
	EXPECT_EQ(ai.rings[0].cookie, id.cookie);
	REQUIRE(!rgate_ctl_ring(ctl, id.id, &ri));
	EXPECT_EQ(ri.cookie, id.cookie);
	EXPECT(!strcmp(ri.name, "lib"));
	EXPECT_EQ(ri.stats.delivered, 200);
	EXPECT_EQ(rgate_ctl_detach(ctl, &att), 0);
	EXPECT_EQ(rgate_ctl_detach(ctl, &att), -ENOENT);
	EXPECT_EQ(rgate_ctl_attach(ctl, "nosuch", &id, 1, NULL, NULL), -ENODEV);
	rgate_ctl_close(ctl);
	rgate_ring_close(ring);
}

struct worker {
	struct rgate_ring *ring;
	struct vt_seen seen;
	uint32_t take;
	uint32_t index;
	int stop;
};

static void *work(void *arg)
{
	struct worker *w = arg;
	struct rgate_consumer_opts o = RGATE_OPTS(rgate_consumer_opts,
		.take = w->take, .index = w->index, .count = 2);
	struct rgate_consumer c;

	REQUIRE(!rgate_consumer_init(&c, w->ring, &o));
	while (!__atomic_load_n(&w->stop, __ATOMIC_RELAXED)) {
		const struct rgate_slot *s = rgate_consumer_next(&c);
		uint64_t seq;

		if (!s) {
			(void)rgate_consumer_wait(&c, 50);
			continue;
		}
		if (!vt_pkt_check(rgate_slot_data(s), s->len, &seq))
			FAIL("a frame is not as sent");
		else
			vt_seen_add(&w->seen, seq);
		rgate_consumer_release(&c);
	}
	return NULL;
}

static void two_threads(uint32_t how)
{
	struct rgate_ring_opts o = RGATE_OPTS(rgate_ring_opts, .slots = 1024,
					      .slot_size = 512);
	struct worker w[2] = { 0 };
	struct rgate_stats st;
	unsigned int i, k;
	pthread_t th[2];
	uint64_t both = 0;

	setup(&o);
	REQUIRE(!rgate_ring_attach(ring, "vb", NULL, NULL));
	w[0].ring = ring;
	REQUIRE(!rgate_ring_dup(&w[1].ring, ring));
	for (i = 0; i < 2; i++) {
		w[i].take = how;
		w[i].index = i;
		vt_seen_init(&w[i].seen, 4096);
		REQUIRE(!pthread_create(&th[i], NULL, work, &w[i]));
	}
	vt_usleep(100000);
	/* Whole batches, so that nothing waits for the end of one. And all of them before the next
	 * ones: a thread off its CPU keeps a batch, behind which the ring would fill up. */
	for (k = 0; k < 4096; k += 64) {
		vt_tx_burst(tx, 200, k, 64);
		VT_UNTIL(__atomic_load_n(&w[0].seen.got, __ATOMIC_RELAXED) +
			 __atomic_load_n(&w[1].seen.got, __ATOMIC_RELAXED) >= k + 64, 20000);
	}
	for (i = 0; i < 2; i++) {
		__atomic_store_n(&w[i].stop, 1, __ATOMIC_RELAXED);
		pthread_join(th[i], NULL);
	}
	for (k = 0; k < 4096; k++)
		both += w[0].seen.map[k] && w[1].seen.map[k];
	REQUIRE(!rgate_ring_stats(ring, &st));
	EXPECT_EQ(st.dropped_full, 0);
	EXPECT_EQ(w[0].seen.got + w[1].seen.got, 4096);
	EXPECT_EQ(both, 0);
	EXPECT_GE(w[0].seen.got, how == RGATE_TAKE_STRIDE ? 2048 : 32);
	EXPECT_GE(w[1].seen.got, how == RGATE_TAKE_STRIDE ? 2048 : 32);
	rgate_ring_close(w[1].ring);
	rgate_ring_close(ring);
}

static void shared(void)
{
	two_threads(RGATE_TAKE_SHARED);
}

static void stride(void)
{
	two_threads(RGATE_TAKE_STRIDE);
}

static int sock[2];

static int other_process(void *arg)
{
	struct rgate_consumer c;
	struct rgate_ring *mine;

	(void)arg;
	REQUIRE(!rgate_ring_recv(&mine, sock[1]));
	REQUIRE(!rgate_consumer_init(&c, mine, NULL));
	REQUIRE(write(sock[1], "g", 1) == 1);
	EXPECT_EQ(take(&c, NULL, 500), 500);
	rgate_ring_close(mine);
	return 0;
}

static void handed_on(void)
{
	struct rgate_ring_opts o = RGATE_OPTS(rgate_ring_opts, .slots = 1024,
					      .slot_size = 512);
	pid_t pid;
	char c;

	setup(&o);
	REQUIRE(!rgate_ring_attach(ring, "vb", NULL, NULL));
	REQUIRE(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sock));
	pid = vt_fork(other_process, NULL);
	REQUIRE(!rgate_ring_send(ring, sock[0]));
	REQUIRE(read(sock[0], &c, 1) == 1);
	vt_tx_burst(tx, 200, 0, 500);
	EXPECT_EQ(vt_wait(pid, 10000), 0);
	rgate_ring_close(ring);
}

static void resized_by_another(void)
{
	struct rgate_ring_opts o = RGATE_OPTS(rgate_ring_opts, .slots = 256,
					      .slot_size = 512);
	struct rgate_consumer c;
	struct rgate_ring *h;
	struct vt_seen seen;
	unsigned int i;

	setup(&o);
	REQUIRE(!rgate_ring_attach(ring, "vb", NULL, NULL));
	REQUIRE(!rgate_ring_dup(&h, ring));
	REQUIRE(!rgate_consumer_init(&c, ring, NULL));
	vt_seen_init(&seen, 2000);
	/* wait() follows: the frames of both memories, each once */
	for (i = 0; i < 20; i++) {
		vt_tx_burst(tx, 200, i * 100, 50);
		EXPECT_EQ(rgate_ring_resize(h, 128U << (i & 3), 512), 0);
		vt_tx_burst(tx, 200, i * 100 + 50, 50);
		EXPECT_EQ(take(&c, &seen, 100), 100);
	}
	EXPECT_EQ(seen.got, 2000);
	rgate_ring_close(h);
	rgate_ring_close(ring);
}

static void chains_and_copies(void)
{
	struct rgate_ring_opts o = RGATE_OPTS(rgate_ring_opts, .slots = 256,
		.slot_size = 256, .flags = RGATE_RING_CHAIN);
	static uint8_t buf[4096];
	struct rgate_consumer c;
	struct rgate_slot hdr;
	unsigned int i;

	setup(&o);
	REQUIRE(!rgate_ring_attach(ring, "vb", NULL, NULL));
	REQUIRE(!rgate_consumer_init(&c, ring, NULL));
	for (i = 0; i < 100; i++) {
		size_t len = VT_PKT_MIN + vt_rand() % 1400;
		uint64_t seq;
		long n;

		EXPECT_EQ(vt_tx_burst(tx, len, i, 1), 1);
		while ((n = rgate_consumer_copy(&c, &hdr, buf, sizeof(buf))) == -EAGAIN)
			if (rgate_consumer_wait(&c, 2000) != 1)
				break;
		EXPECT_EQ(n, len);
		EXPECT_EQ(hdr.wire_len, len);
		EXPECT(n == (long)len && vt_pkt_check(buf, len, &seq) && seq == i);
	}
	EXPECT_EQ(rgate_consumer_copy(&c, &hdr, buf, sizeof(buf)), -EAGAIN);
	rgate_ring_close(ring);
}

static uint64_t head_of(const struct rgate_view *v)
{
	return __atomic_load_n(&v->prod->head, __ATOMIC_ACQUIRE);
}

static void overwritten(void)
{
	struct rgate_ring_opts o = RGATE_OPTS(rgate_ring_opts, .slots = 128,
		.slot_size = 1024, .policy = RGATE_POLICY_OVERWRITE);
	struct vt_traffic t = { .ifname = "va", .len = 600, .cpu = 1 };
	uint64_t start = vt_now(), n = 0, last = 0, seq, ms;
	struct rgate_consumer c;
	struct rgate_view v;
	uint8_t buf[1024];

	setup(&o);
	REQUIRE(!rgate_ring_attach(ring, "vb", NULL, NULL));
	REQUIRE(!rgate_consumer_init(&c, ring, NULL));
	rgate_ring_view(ring, &v);
	vt_pin(0);
	vt_traffic_start(&t);
	/* for a while, and on a slow machine until there was something to see */
	while ((ms = (vt_now() - start) / 1000000) < 2000 ||
	       ((n < 100 || !rgate_consumer_lost(&c)) && ms < 20000 * vt_slow())) {
		long len = rgate_consumer_copy(&c, NULL, buf, sizeof(buf));

		if (len == -EAGAIN)
			continue;
		if (len != 600 || !vt_pkt_check(buf, 600, &seq)) {
			FAIL("a copy is wrong: %ld bytes", len);
			break;
		}
		EXPECT(!n || seq > last);
		last = seq;
		n++;
		if (!(vt_rand() & 31))
			vt_usleep(500);
		/* once until the whole ring is new, however slow the sender */
		if (n == 50) {
			uint64_t head = head_of(&v);

			EXPECT(VT_UNTIL(head_of(&v) > head + 2 * 128, 5000));
		}
	}
	vt_traffic_stop(&t);
	vt_note("%llu copies, %llu slots lost", (unsigned long long)n,
		(unsigned long long)rgate_consumer_lost(&c));
	EXPECT_GE(n, 100);
	EXPECT_GE(rgate_consumer_lost(&c), 1);
	rgate_ring_close(ring);
}

static void events(void)
{
	struct rgate_ring_opts o = RGATE_OPTS(rgate_ring_opts, .slots = 64,
					      .slot_size = 256);
	struct rgate_event_info ev;
	struct rgate_ident att;
	uint32_t id;

	setup(&o);
	REQUIRE(!rgate_ctl_subscribe(ctl));
	id = rgate_ring_id(ring);
	REQUIRE(!rgate_ring_attach(ring, "vb", NULL, &att));
	vt_tx_burst(tx, 100, 0, 100);
	EXPECT_EQ(rgate_ctl_event(ctl, &ev, 3000), 1);
	EXPECT_EQ(ev.type, RGATE_EVENT_RING_FULL);
	EXPECT_EQ(ev.ring_id, id);
	vt_must("ip link del vb");
	EXPECT_EQ(rgate_ctl_event(ctl, &ev, 3000), 1);
	EXPECT_EQ(ev.type, RGATE_EVENT_DEVICE_GONE);
	EXPECT_EQ(ev.att_id, att.id);
	rgate_ring_close(ring);
	EXPECT_EQ(rgate_ctl_event(ctl, &ev, 3000), 1);
	EXPECT_EQ(ev.type, RGATE_EVENT_RING_GONE);
	EXPECT_EQ(rgate_ctl_event(ctl, &ev, 50), 0);
	rgate_ctl_close(ctl);
}

/* A sender fills several laps; another goes on where the first stopped */
static void sender(void)
{
	struct rgate_ring_opts o = {
		.sz = sizeof(o), .slots = 64, .slot_size = 256,
		.flags = RGATE_RING_TRANSMIT | RGATE_RING_RW_SLOTS,
	};
	struct rgate_attach_opts a = { .sz = sizeof(a), .kind = RGATE_KIND_TRANSMIT };
	struct rgate_tx_slot *slot;
	struct rgate_consumer c;
	struct rgate_ring *r, *rx;
	struct rgate_sender s;
	unsigned int i, sent = 0;
	int fd;

	vt_veth("va", "vb", 0);
	REQUIRE(!rgate_ring_open(&r, &o));
	EXPECT_EQ(rgate_consumer_init(&c, r, NULL), -EOPNOTSUPP);
	EXPECT_EQ(rgate_ring_resize(r, 128, 256), -EOPNOTSUPP);
	EXPECT_EQ(rgate_ring_open_memfd(&rx, &o), -EOPNOTSUPP);
	o.flags = RGATE_RING_RW_SLOTS;
	REQUIRE(!rgate_ring_open(&rx, &o));
	EXPECT_EQ(rgate_sender_init(&s, rx), -EOPNOTSUPP);
	rgate_ring_close(rx);
	REQUIRE(!rgate_sender_init(&s, r));
	EXPECT_EQ(rgate_sender_room(&s), 192);
	EXPECT_EQ(rgate_sender_kick(&s, 0), -ENOTCONN);
	REQUIRE(!rgate_ring_attach(r, "va", &a, NULL));
	fd = vt_stack_open("vb");
	for (i = 0; i < 300; i++) {
		slot = rgate_sender_reserve(&s);
		if (!slot) {
			EXPECT_EQ(rgate_sender_kick(&s, 0), 64);
			slot = rgate_sender_reserve(&s);
			REQUIRE(slot);
		}
		EXPECT(rgate_sender_reserve(&s) == slot);
		vt_pkt_udp(rgate_sender_data(slot), 150, i, 0);
		rgate_sender_publish(&s, slot, 150, 0);
	}
	/* 44 are published and not taken; whoever comes next leaves them be */
	REQUIRE(!rgate_sender_init(&s, r));
	while ((slot = rgate_sender_reserve(&s))) {
		vt_pkt_udp(rgate_sender_data(slot), 150, i++, 0);
		rgate_sender_publish(&s, slot, 150, 0);
		sent++;
	}
	EXPECT_EQ(sent, 20);
	EXPECT_EQ(rgate_sender_kick(&s, 10), 10);
	EXPECT_EQ(rgate_sender_kick(&s, 0), 54);
	EXPECT_EQ(rgate_sender_kick(&s, 0), 0);
	EXPECT_EQ(rgate_sender_wait(&s, 1000), 1);
	for (sent = 0; sent < i; ) {
		unsigned int n = vt_stack_drain(fd, 2000);

		if (!n)
			break;
		sent += n;
	}
	EXPECT_EQ(sent, 320);
	rgate_ring_close(r);
}

/* The same call for a ring with a thread, and for one without */
static void sender_flush(void)
{
	struct rgate_ring_opts o = {
		.sz = sizeof(o), .slots = 64, .slot_size = 256,
		.flags = RGATE_RING_TRANSMIT | RGATE_RING_RW_SLOTS,
	};
	struct rgate_attach_opts a = { .sz = sizeof(a), .kind = RGATE_KIND_TRANSMIT };
	struct rgate_att_info info;
	struct rgate_tx_slot *slot;
	struct rgate_ident att;
	struct rgate_stats st;
	struct rgate_ctl *ctl;
	struct rgate_ring *r;
	struct rgate_sender s;
	unsigned int i, by_call = 0;
	int n;

	vt_veth("va", "vb", 0);
	REQUIRE(!rgate_ring_open(&r, &o));
	REQUIRE(!rgate_sender_init(&s, r));
	EXPECT_EQ(rgate_sender_flush(&s), -ENOTCONN);
	REQUIRE(!rgate_ring_attach(r, "va", &a, &att));
	slot = rgate_sender_reserve(&s);
	vt_pkt_udp(rgate_sender_data(slot), 150, 0, 0);
	rgate_sender_publish(&s, slot, 150, 0);
	EXPECT_EQ(rgate_sender_flush(&s), 1);
	EXPECT_EQ(rgate_ring_detach(r, &att), 0);
	a.thread = 101;
	EXPECT_EQ(rgate_ring_attach(r, "va", &a, &att), -ERANGE);
	a.thread = 80;
	REQUIRE(!rgate_ring_attach(r, "va", &a, &att));
	REQUIRE(!rgate_ctl_open(&ctl));
	REQUIRE(!rgate_ctl_att(ctl, att.id, &info));
	EXPECT_EQ(info.thread, 80);
	rgate_ctl_close(ctl);
	for (i = 0; i < 2000; i++) {
		REQUIRE(VT_UNTIL(slot = rgate_sender_reserve(&s), 3000));
		vt_pkt_udp(rgate_sender_data(slot), 150, i, 0);
		rgate_sender_publish(&s, slot, 150, 0);
		n = rgate_sender_flush(&s);
		EXPECT_GE(n, 0);
		by_call += n > 0 ? (unsigned int)n : 0;
	}
	EXPECT(VT_UNTIL((rgate_ring_stats(r, &st), st.delivered == 2001), 3000));
	vt_note("%u of 2000 frames were sent by a call", by_call);
	rgate_ring_close(r);
}

static void dmabuf(void)
{
	struct rgate_ring_opts o = RGATE_OPTS(rgate_ring_opts, .slots = 256,
					      .slot_size = 512);
	struct rgate_view v;
	uint8_t *p;
	int fd;

	setup(&o);
	REQUIRE(!rgate_ring_attach(ring, "vb", NULL, NULL));
	vt_tx_burst(tx, 300, 0, 100);
	rgate_ring_view(ring, &v);
	EXPECT(VT_UNTIL(v.prod->head == 100, 3000));
	fd = rgate_ring_dmabuf(ring, RGATE_AREA_SLOTS);
	REQUIRE(fd >= 0);
	p = mmap(NULL, 256 * 512, PROT_READ, MAP_SHARED, fd, 0);
	REQUIRE(p != MAP_FAILED);
	EXPECT(!memcmp(p, v.slots, 256 * 512));
	close(fd);
	/* it is of the memory that is mapped, or there is none */
	REQUIRE(!rgate_ring_resize(ring, 64, 1024));
	EXPECT_EQ(rgate_ring_dmabuf(ring, RGATE_AREA_SLOTS), -ESTALE);
	EXPECT(!memcmp(p, v.slots, 256 * 512));
	EXPECT_EQ(rgate_ring_remap(ring), 1);
	fd = rgate_ring_dmabuf(ring, RGATE_AREA_SLOTS);
	EXPECT_EQ(lseek(fd, 0, SEEK_END), 64 * 1024);
	close(fd);
	munmap(p, 256 * 512);
	rgate_ring_close(ring);
}

static const struct vt_case cases[] = {
	{ .name = "attach, consume, counters", .fn = attach_and_consume },
	{ .name = "two threads, shared claim", .fn = shared },
	{ .name = "two threads, alternate batches", .fn = stride },
	{ .name = "another process by rgate_ring_send", .fn = handed_on },
	{ .name = "wait follows a resize", .fn = resized_by_another },
	{ .name = "chains, copied", .fn = chains_and_copies },
	{ .name = "copies from an overwriting ring", .fn = overwritten },
	{ .name = "events", .fn = events },
	{ .name = "an area as a dma-buf", .fn = dmabuf },
	{ .name = "a sender, and one after it", .fn = sender },
	{ .name = "a sender, with and without a thread", .fn = sender_flush },
};

VT_MAIN(cases)
