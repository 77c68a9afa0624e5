// SPDX-License-Identifier: MIT OR GPL-2.0
/* poll, epoll and the need-wakeup word. */
#include "lib/vt.h"

#include <sys/epoll.h>

static struct vt_nl nl;
static struct vt_ring ring;
static int tx;

static void setup(void)
{
	vt_veth("va", "vb", 0);
	vt_nl_open(&nl);
	vt_ring_open(&ring, 1024, 256, 0, 0);
	vt_att_simple(&nl, "vb", ring.id);
	tx = vt_tx_open("va");
}

static short revents(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	if (poll(&p, 1, ms) < 0)
		DIE("poll: %s", strerror(errno));
	return p.revents;
}

static void wait_head(uint64_t n)
{
	if (!VT_UNTIL(vt_ring_head(&ring) >= n, 3000))
		DIE("head is %llu, not %llu", (unsigned long long)vt_ring_head(&ring),
		    (unsigned long long)n);
}

static void only_when_armed(void)
{
	setup();
	/* frames there, nobody asked: not readable */
	vt_tx_burst(tx, 100, 0, 10);
	wait_head(10);
	EXPECT_EQ(revents(ring.fd, 0), 0);
	EXPECT_EQ(vt_ring_stats(&ring).wakeups, 0);
	/* asked for something that is there: readable at once */
	ring.cons->waiter[ring.geo.handle].want = 1;
	EXPECT_EQ(revents(ring.fd, 0), POLLIN);
	ring.cons->waiter[ring.geo.handle].want = 10;
	EXPECT_EQ(revents(ring.fd, 0), POLLIN);
	ring.cons->waiter[ring.geo.handle].want = 11;
	EXPECT_EQ(revents(ring.fd, 0), 0);
	EXPECT_EQ(revents(ring.fd, 50), 0);
	/* the eleventh comes */
	vt_tx_burst(tx, 100, 10, 1);
	EXPECT_EQ(revents(ring.fd, 3000), POLLIN);
	ring.cons->waiter[ring.geo.handle].want = 0;
	EXPECT_EQ(revents(ring.fd, 0), 0);
}

static void none_while_awake(void)
{
	setup();
	EXPECT_EQ(vt_tx_burst(tx, 100, 0, 500), 500);
	EXPECT_EQ(vt_ring_verify(&ring, NULL, 500, 100), 500);
	/* verify sleeps at most once a frame; here a consumer that never does */
	{
		uint64_t before = vt_ring_stats(&ring).wakeups;
		unsigned int got = 0, i;

		for (i = 0; i < 20; i++) {
			vt_tx_burst(tx, 100, 0, 50);
			wait_head(550 + i * 50);
			got += vt_ring_drain(&ring);
		}
		EXPECT_EQ(got, 1000);
		EXPECT_EQ(vt_ring_stats(&ring).wakeups, before);
	}
}

/* One wakeup a sleep, however many frames come */
static void *burst_later(void *arg)
{
	(void)arg;
	vt_usleep(100000);
	vt_tx_burst(tx, 100, 0, 200);
	return NULL;
}

static void one_wakeup_a_sleep(void)
{
	struct pollfd p;
	unsigned int i;
	pthread_t th;

	setup();
	for (i = 0; i < 5; i++) {
		EXPECT(!vt_ring_arm(&ring));
		REQUIRE(!pthread_create(&th, NULL, burst_later, NULL));
		p = (struct pollfd){ .fd = ring.fd, .events = POLLIN };
		EXPECT_EQ(poll(&p, 1, 3000), 1);
		EXPECT_EQ(p.revents, POLLIN);
		pthread_join(th, NULL);
		wait_head((i + 1) * 200);
		vt_ring_disarm(&ring);
		EXPECT_EQ(vt_ring_drain(&ring), 200);
		EXPECT_EQ(vt_ring_stats(&ring).wakeups, i + 1);
	}
}

/* Sleeping for a position further on: not woken by those before it */
static void far_position(void)
{
	setup();
	ring.cons->waiter[0].want = 101;
	vt_tx_burst(tx, 100, 0, 100);
	wait_head(100);
	EXPECT_EQ(revents(ring.fd, 50), 0);
	EXPECT_EQ(vt_ring_stats(&ring).wakeups, 0);
	vt_tx_burst(tx, 100, 100, 1);
	EXPECT_EQ(revents(ring.fd, 3000), POLLIN);
}

static void timeouts(void)
{
	uint64_t t0;

	setup();
	EXPECT(!vt_ring_arm(&ring));
	t0 = vt_now();
	EXPECT_EQ(revents(ring.fd, 200), 0);
	EXPECT_GE(vt_now() - t0, 190000000);
	EXPECT_EQ(revents(ring.fd, 0), 0);
}

/* A producer that sends when told: each frame must wake a sleeper */
struct pingpong {
	int go;
	uint64_t sent;
};

static void *ponger(void *arg)
{
	struct pingpong *p = arg;
	uint8_t f[64];

	vt_pin(1);
	vt_pkt_udp(f, sizeof(f), 0, 0);
	for (;;) {
		int go = __atomic_load_n(&p->go, __ATOMIC_ACQUIRE);
		unsigned int spin;

		if (go < 0)
			return NULL;
		if (!go) {
			sched_yield();
			continue;
		}
		/* meet the sleeper at any point of his falling asleep */
		for (spin = (unsigned int)(vt_rand() % 3000); spin; spin--)
			__asm__ volatile("" ::: "memory");
		__atomic_store_n(&p->go, 0, __ATOMIC_RELEASE);
		if (vt_tx_send(tx, f, sizeof(f)))
			return (void *)1;
		p->sent++;
	}
}

static void rounds(int how, unsigned int n)
{
	struct pingpong pp = { 0 };
	struct epoll_event ev = { .events = EPOLLIN | (how == 2 ? EPOLLET : 0) };
	int ep = epoll_create1(EPOLL_CLOEXEC);
	unsigned int i, lost = 0;
	pthread_t th;
	void *ret;

	setup();
	vt_pin(0);
	REQUIRE(!epoll_ctl(ep, EPOLL_CTL_ADD, ring.fd, &ev));
	REQUIRE(!pthread_create(&th, NULL, ponger, &pp));
	for (i = 0; i < n; i++) {
		__atomic_store_n(&pp.go, 1, __ATOMIC_RELEASE);
		while (!vt_ring_next(&ring)) {
			struct pollfd p = { .fd = ring.fd, .events = POLLIN };
			int r;

			if (vt_ring_arm(&ring))
				continue;
			if (how == 0)
				r = poll(&p, 1, 5000);
			else
				r = epoll_wait(ep, &ev, 1, 5000);
			if (r != 1) {
				lost++;
				FAIL("round %u: no wakeup, head %llu, pos %llu", i,
				     (unsigned long long)vt_ring_head(&ring),
				     (unsigned long long)ring.pos);
				break;
			}
			vt_ring_disarm(&ring);
		}
		if (lost)
			break;
		vt_ring_done(&ring);
	}
	__atomic_store_n(&pp.go, -1, __ATOMIC_RELEASE);
	pthread_join(th, &ret);
	EXPECT(!ret);
	vt_note("%u rounds, %llu wakeups", i,
		(unsigned long long)vt_ring_stats(&ring).wakeups);
	EXPECT(vt_ring_stats(&ring).wakeups <= n);
}

static void poll_rounds(void)
{
	rounds(0, 3000);
}

static void epoll_rounds(void)
{
	rounds(1, 3000);
}

static void edge_rounds(void)
{
	rounds(2, 3000);
}

/* Handles asleep at different positions are woken each for itself */
static void several_handles(void)
{
	struct vt_ring h[8];
	unsigned int i, k;

	setup();
	for (i = 0; i < 8; i++) {
		vt_ring_attach(&h[i], ring.fd);
		h[i].cons->waiter[h[i].geo.handle].want = (i + 1) * 10;
	}
	for (i = 0; i < 8; i++) {
		vt_tx_burst(tx, 100, 0, 9);
		wait_head(i * 10 + 9);
		EXPECT_EQ(revents(h[i].fd, 0), 0);
		vt_tx_burst(tx, 100, 0, 1);
		EXPECT_EQ(revents(h[i].fd, 3000), POLLIN);
		for (k = 0; k < 8; k++)
			EXPECT_EQ(!!revents(h[k].fd, 0), k <= i);
	}
	EXPECT_EQ(revents(ring.fd, 0), 0);
}

static int sleeper(void *arg)
{
	struct vt_ring *r = arg, mine;
	unsigned int i;

	/* a process of its own, its own handle; looks at frames without returning them */
	vt_ring_attach(&mine, r->fd);
	for (i = 0; i < 50; i++) {
		struct pollfd p = { .fd = mine.fd, .events = POLLIN };

		mine.cons->waiter[mine.geo.handle].want = i * 10 + 10;
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (vt_ring_head(&mine) >= i * 10 + 10)
			continue;
		if (poll(&p, 1, 10000) != 1)
			return 1;
	}
	return 0;
}

static void several_processes(void)
{
	pid_t pid[4];
	unsigned int i;

	setup();
	for (i = 0; i < 4; i++)
		pid[i] = vt_fork(sleeper, &ring);
	vt_usleep(200000);
	for (i = 0; i < 500; i++) {
		vt_tx_burst(tx, 100, i, 1);
		if (i % 25 == 0)
			vt_usleep(2000);
	}
	for (i = 0; i < 4; i++)
		EXPECT_EQ(vt_wait(pid[i], 15000), 0);
}

/* The wait word is the user's: nonsense in it costs nobody else anything */
static void wild_wait_words(void)
{
	static const uint64_t wild[] = {
		~0ULL, 1ULL << 63, (1ULL << 63) - 1, 0x8000000000000001ULL, 1ULL << 32,
	};
	struct vt_ring h;
	size_t i;

	setup();
	vt_ring_attach(&h, ring.fd);
	for (i = 0; i < VT_COUNT(wild); i++) {
		unsigned int k;

		/* the words of all handles, also of those that do not exist */
		for (k = 0; k < RGATE_HANDLES_MAX; k++)
			if (k != ring.geo.handle)
				ring.cons->waiter[k].want = wild[i] + k;
		EXPECT_EQ(vt_tx_burst(tx, 100, 0, 50), 50);
		EXPECT_EQ(vt_ring_verify(&ring, NULL, 50, 1000), 50);
		(void)revents(h.fd, 0);
	}
	vt_ring_close(&h);
	EXPECT_EQ(vt_tx_burst(tx, 100, 0, 50), 50);
	EXPECT_EQ(vt_ring_verify(&ring, NULL, 50, 1000), 50);
}

/* A resize wakes who sleeps on the old memory */
static void *resize_later(void *arg)
{
	(void)arg;
	vt_usleep(150000);
	return (void *)(long)vt_ring_resize(ring.fd, 256, 512, NULL);
}

static void resize_wakes(void)
{
	pthread_t th;
	void *ret;

	setup();
	EXPECT(!vt_ring_arm(&ring));
	REQUIRE(!pthread_create(&th, NULL, resize_later, NULL));
	EXPECT_EQ(revents(ring.fd, 5000), POLLIN);
	pthread_join(th, &ret);
	EXPECT(!ret);
	EXPECT_EQ(vt_ring_state(&ring), RGATE_STATE_RETIRED);
	/* readable until it is mapped anew */
	EXPECT_EQ(revents(ring.fd, 0), POLLIN);
	{
		struct rgate_query q;

		REQUIRE(!vt_ring_query(ring.fd, &q));
		ring.geo = q.geo;
		vt_ring_map(&ring);
	}
	EXPECT_EQ(revents(ring.fd, 0), 0);
}

static const struct vt_case cases[] = {
	{ .name = "readable only when armed", .fn = only_when_armed },
	{ .name = "no wakeup while the consumer is awake", .fn = none_while_awake },
	{ .name = "one wakeup a sleep", .fn = one_wakeup_a_sleep },
	{ .name = "asleep for a position further on", .fn = far_position },
	{ .name = "timeouts", .fn = timeouts },
	{ .name = "no wakeup lost: poll", .fn = poll_rounds, .secs = 60 },
	{ .name = "no wakeup lost: epoll", .fn = epoll_rounds, .secs = 60 },
	{ .name = "no wakeup lost: edge-triggered epoll", .fn = edge_rounds, .secs = 60 },
	{ .name = "handles asleep at different positions", .fn = several_handles },
	{ .name = "processes asleep on one ring", .fn = several_processes },
	{ .name = "nonsense in wait words", .fn = wild_wait_words },
	{ .name = "a resize wakes", .fn = resize_wakes },
};

VT_MAIN(cases)
