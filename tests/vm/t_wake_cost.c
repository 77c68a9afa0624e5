// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * What a consumer without privileges can make of wakeups: as many waiters as it
 * likes, and a wait word that changes with each frame. A frame must not pay for all
 * of them. Judged by how often they are woken, not by the time that takes.
 */
#include "lib/vt.h"

#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#define FRAMES	3000U
#define USER	12345

/* What the consumer's process and the one that attaches its ring say to each other */
static int talk[2];
static int tx;

static int watch(int ep, int fd, uint32_t events)
{
	struct epoll_event ev = { .events = events };

	return epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

/* @n epoll sets, each of them waits for @fd */
static void watchers(unsigned int n, int fd)
{
	while (n--) {
		int ep = epoll_create1(EPOLL_CLOEXEC);

		REQUIRE(ep >= 0);
		REQUIRE(!watch(ep, fd, EPOLLIN | EPOLLET));
	}
}

/* As any user: a ring, which the other process attaches */
static void become(struct vt_ring *ring)
{
	struct rlimit files = { .rlim_cur = 4096, .rlim_max = 4096 };
	char ok;

	REQUIRE(!setrlimit(RLIMIT_NOFILE, &files));
	REQUIRE(!setgid(USER) && !setuid(USER));
	vt_ring_open(ring, 64, 256, 0, RGATE_POLICY_OVERWRITE);
	REQUIRE(write(talk[1], &ring->id, sizeof(ring->id)) == sizeof(ring->id));
	REQUIRE(read(talk[1], &ok, 1) == 1);
}

/* Handles of a fresh ring are numbered as they were made */
static void arm(struct vt_ring *ring, unsigned int handle, uint64_t want)
{
	__atomic_store_n(&ring->cons->waiter[handle].want, want, __ATOMIC_SEQ_CST);
}

/* FRAMES frames, another reached position in all wait words with each */
static void flip(struct vt_ring *ring, unsigned int handles)
{
	uint64_t begin, took, woken;
	unsigned int i, k;

	EXPECT_EQ(vt_tx_burst(tx, 100, 0, 4), 4);
	REQUIRE(VT_UNTIL(vt_ring_head(ring) == 4, 3000));
	woken = vt_ring_stats(ring).wakeups;
	begin = vt_now();
	for (i = 0; i < FRAMES; i++) {
		for (k = 0; k < handles; k++)
			arm(ring, k, 1 + i % 4);
		REQUIRE(vt_tx_burst(tx, 100, i, 1) == 1);
	}
	REQUIRE(VT_UNTIL(vt_ring_head(ring) == 4 + FRAMES, 10000));
	took = vt_now() - begin;
	for (k = 0; k < handles; k++)
		arm(ring, k, 0);
	woken = vt_ring_stats(ring).wakeups - woken;
	vt_note("%u frames, %llu wakeups of all, %llu ns a frame", FRAMES,
		(unsigned long long)woken, (unsigned long long)(took / FRAMES));
	EXPECT_LE(woken * 4, FRAMES);
}

static int one_later(void *arg)
{
	(void)arg;
	vt_usleep(20000);
	return vt_tx_burst(tx, 100, 0, 1) != 1;
}

/* One more waiter, and honest: it is woken, each time */
static void honest(struct vt_ring *ring)
{
	unsigned int i;

	for (i = 0; i < 10; i++) {
		struct pollfd p = { .fd = ring->fd, .events = POLLIN };
		uint64_t head = vt_ring_head(ring);
		pid_t pid;

		arm(ring, ring->geo.handle, head + 1);
		pid = vt_fork(one_later, NULL);
		EXPECT_EQ(poll(&p, 1, 10000 * (int)vt_slow()), 1);
		EXPECT_EQ(p.revents, POLLIN);
		EXPECT_EQ(vt_ring_head(ring), head + 1);
		EXPECT_EQ(vt_wait(pid, 10000), 0);
	}
}

static int thousand_sets(void *arg)
{
	struct vt_ring ring;

	(void)arg;
	become(&ring);
	watchers(1000, ring.fd);
	flip(&ring, 1);
	honest(&ring);
	return 0;
}

/* One waits, for whom many wait: the file's own queue does not tell */
static int set_of_sets(void *arg)
{
	struct vt_ring ring;
	int ep;

	(void)arg;
	become(&ring);
	ep = epoll_create1(EPOLL_CLOEXEC);
	REQUIRE(ep >= 0 && !watch(ep, ring.fd, EPOLLIN | EPOLLET));
	watchers(400, ep);
	flip(&ring, 1);
	honest(&ring);
	return 0;
}

/* All handles of a ring, a hundred sets each */
static int many_handles(void *arg)
{
	struct vt_ring ring, more[7];
	unsigned int i;

	(void)arg;
	become(&ring);
	watchers(100, ring.fd);
	for (i = 0; i < VT_COUNT(more); i++) {
		vt_ring_attach(&more[i], ring.fd);
		watchers(100, more[i].fd);
	}
	flip(&ring, 8);
	honest(&ring);
	return 0;
}

static void by(int (*consumer)(void *arg))
{
	struct vt_nl nl;
	uint32_t ring;
	pid_t pid;

	REQUIRE(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, talk));
	vt_veth("va", "vb", 0);
	vt_nl_open(&nl);
	tx = vt_tx_open("va");
	pid = vt_fork(consumer, NULL);
	REQUIRE(read(talk[0], &ring, sizeof(ring)) == sizeof(ring));
	vt_att_simple(&nl, "vb", ring);
	REQUIRE(write(talk[0], "", 1) == 1);
	EXPECT_EQ(vt_wait(pid, 90000), 0);
}

static void sets(void)
{
	by(thousand_sets);
}

static void nested(void)
{
	by(set_of_sets);
}

static void handles(void)
{
	by(many_handles);
}

static const struct vt_case cases[] = {
	{ .name = "a thousand epoll sets wait for one handle", .fn = sets, .secs = 120 },
	{ .name = "one set, for which hundreds wait", .fn = nested, .secs = 120 },
	{ .name = "eight handles, a hundred sets each", .fn = handles, .secs = 120 },
};

VT_MAIN(cases)
