// SPDX-License-Identifier: MIT OR GPL-2.0
/* The consumer is killed under traffic: all is cleaned up, rmmod works at once. */
#include <linux/membarrier.h>
#include <sys/syscall.h>

#include "lib/vt.h"

static struct vt_ring shared;

static int consumer(void *arg)
{
	int *ready = arg;
	struct vt_ring r;
	struct vt_nl nl;

	vt_nl_open(&nl);
	vt_ring_open(&r, 256, 512, 0, 0);
	(void)vt_att_simple(&nl, "vb", r.id);
	REQUIRE(write(ready[1], "", 1) == 1);
	while (vt_ring_state(&r) == RGATE_STATE_ACTIVE)
		vt_ring_verify(&r, NULL, 100, 1000);
	return 1;
}

static void killed_then_rmmod(void)
{
	struct vt_traffic t = { .ifname = "va", .len = 200, .cpu = 1 };
	unsigned int i;

	vt_veth("va", "vb", 0);
	for (i = 0; i < 5; i++) {
		int ready[2], r;
		pid_t pid;
		char c;

		REQUIRE(!pipe(ready));
		pid = vt_fork(consumer, ready);
		REQUIRE(read(ready[0], &c, 1) == 1);
		vt_traffic_start(&t);
		vt_usleep(50000 + (unsigned int)(vt_rand() % 150000));
		kill(pid, SIGKILL);
		REQUIRE(waitpid(pid, NULL, 0) == pid);
		/* it has been waited for: its files and mappings are gone */
		r = vt_rmmod();
		if (r)
			FAIL("rmmod after kill -9: %s", strerror(-r));
		vt_traffic_stop(&t);
		close(ready[0]);
		close(ready[1]);
		if (!r)
			REQUIRE(!vt_insmod(""));
	}
}

static int reader(void *arg)
{
	struct vt_ring mine;

	(void)arg;
	vt_ring_attach(&mine, shared.fd);
	close(shared.fd);
	while (vt_ring_state(&mine) == RGATE_STATE_ACTIVE)
		vt_ring_verify(&mine, NULL, 10, 1000);
	return 1;
}

/* One of two consumer processes dies; the other sees its frames again */
static void one_of_two(void)
{
	int tx;
	struct vt_nl nl;
	struct vt_seen seen;
	pid_t pid;
	uint64_t pos;

	vt_veth("va", "vb", 0);
	vt_nl_open(&nl);
	vt_ring_open(&shared, 256, 512, 0, 0);
	vt_att_simple(&nl, "vb", shared.id);
	tx = vt_tx_open("va");
	pid = vt_fork(reader, NULL);
	/* 70 frames: two batches are returned, 6 slots of the third are not */
	vt_tx_burst(tx, 100, 0, 70);
	EXPECT(VT_UNTIL(__atomic_load_n(&shared.credits[1], __ATOMIC_ACQUIRE) == 1,
			5000));
	vt_usleep(50000);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	for (pos = 0; shared.credits[pos / RGATE_BATCH] == 1; pos += RGATE_BATCH)
		;
	EXPECT_EQ(pos, 64);
	shared.pos = pos;
	vt_seen_init(&seen, 256);
	vt_tx_burst(tx, 100, 70, 100);
	EXPECT_EQ(vt_ring_verify(&shared, &seen, 106, 2000), 106);
	EXPECT_EQ(seen.got, 106);
	EXPECT(!seen.map[63] && seen.map[64] && seen.map[169]);
	EXPECT_EQ(vt_ring_stats(&shared).dropped_full, 0);
}

enum { MANY = 100 };

static int hoarder(void *arg)
{
	int *ready = arg;
	struct vt_nl nl;
	unsigned int i;

	vt_nl_open(&nl);
	for (i = 0; i < MANY; i++) {
		struct vt_ring r;

		vt_ring_open(&r, 64, 256, 0, 0);
		(void)vt_att_simple(&nl, "vb", r.id);
	}
	REQUIRE(write(ready[1], "", 1) == 1);
	pause();
	return 1;
}

/* As long as everybody takes to leave what he was reading under RCU; the median of 5 */
static uint64_t grace_period(void)
{
	uint64_t took[5], t;
	unsigned int i, k;

	for (i = 0; i < VT_COUNT(took); i++) {
		t = vt_now();
		REQUIRE(!syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0));
		t = vt_now() - t;
		for (k = i; k && took[k - 1] > t; k--)
			took[k] = took[k - 1];
		took[k] = t;
	}
	return took[2];
}

/* All of a process's rings wait for one grace period, not each for its own. */
static void many_rings(void)
{
	uint64_t grace, t;
	struct vt_nl nl;
	int ready[2];
	pid_t pid;
	char c;

	vt_veth("va", "vb", 0);
	vt_nl_open(&nl);
	grace = grace_period();
	REQUIRE(!pipe(ready));
	pid = vt_fork(hoarder, ready);
	REQUIRE(read(ready[0], &c, 1) == 1);
	EXPECT_EQ(vt_nl_count(&nl, RGATE_CMD_RING_GET), MANY);
	t = vt_now();
	kill(pid, SIGKILL);
	REQUIRE(waitpid(pid, NULL, 0) == pid);
	t = vt_now() - t;
	vt_note("%u rings were closed in %llu us, a grace period takes %llu us", MANY,
		(unsigned long long)t / 1000, (unsigned long long)grace / 1000);
	EXPECT_LE(t, MANY / 4 * grace);
	/* they are gone for others at once */
	EXPECT_EQ(vt_nl_count(&nl, RGATE_CMD_RING_GET), 0);
	EXPECT_EQ(vt_nl_count(&nl, RGATE_CMD_ATT_GET), 0);
}

static const struct vt_case cases[] = {
	{ .name = "kill -9 under traffic, then rmmod", .fn = killed_then_rmmod, .secs = 60 },
	{ .name = "one of two consumers is killed", .fn = one_of_two },
	{ .name = "a process with many rings is killed", .fn = many_rings, .secs = 60 },
};

VT_MAIN(cases)
