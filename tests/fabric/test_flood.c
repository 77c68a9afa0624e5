// SPDX-License-Identifier: MIT OR GPL-2.0
/* Processes that ask a node for a connection without end, and in vain. */
#include "ended.h"
#include "siege.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "local.h"

#define FLOODERS	4
#define FLOOD_RATE	10000	/* a second, of all of them */
#define FLOOD_NS	3000000000ULL
#define CALM		15	/* reconnects before it, by which those in it are measured */
#define TIMES		1000	/* reconnects that are looked at, at most */
/*
 * As many times longer half of the reconnects may take in the flood. The flooders want the same
 * CPUs, so a machine's usual time is no bound; one that has to wait for a retry, or behind what
 * the flood has queued, takes several tens of times as long.
 */
#define MULTIPLE	10U
#define CALM_LEAST	10000000U	/* ns */

struct flood {			/* shared with the processes */
	bool go, stop;
	uint64_t sent;
	uint64_t full;		/* no room at the node's socket */
	uint64_t ns;
};

/* One bad hello: by what it says, by its proof, or a good one that somebody has recorded */
static void throw(struct flood *f, const struct sockaddr_un *sa, const struct rgate_hs_hello *good,
		  uint64_t *seed)
{
	const struct local_packet packet = { .type = LOCAL_HELLO };
	struct rgate_hs_hello h = *good;
	struct iovec iov[2] = { { (void *)&packet, sizeof(packet) }, { &h, sizeof(h) } };
	const struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
	const unsigned int how = unit_random(seed) % 4;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (!how)
		h.version = 7;
	else if (how < 3)
		h.noise[unit_random(seed) % sizeof(h.noise)] ^= 1;
	if (fd >= 0 && !connect(fd, (const struct sockaddr *)sa, sizeof(*sa))) {
		if (sendmsg(fd, &msg, MSG_NOSIGNAL) > 0)
			__atomic_add_fetch(&f->sent, 1, __ATOMIC_RELAXED);
	} else {
		__atomic_add_fetch(&f->full, 1, __ATOMIC_RELAXED);
	}
	close(fd);
}

static void flooder(struct flood *f, const struct sockaddr_un *sa,
		    const struct rgate_hs_hello *good, uint64_t seed)
{
	const uint64_t each = FLOODERS * 1000000000ULL / FLOOD_RATE;
	uint64_t thrown = 0, begun;

	while (!__atomic_load_n(&f->go, __ATOMIC_RELAXED))
		nodes_nap();
	begun = unit_now_ns();
	while (!__atomic_load_n(&f->stop, __ATOMIC_RELAXED)) {
		if (unit_now_ns() - begun < thrown * each) {
			nodes_nap();
			continue;
		}
		throw(f, sa, good, &seed);
		thrown++;
	}
	_exit(0);
}

/* Node 1 leaves and comes back, as another incarnation, once */
static uint64_t come_back(struct cluster *c, int timeout_ms)
{
	struct rgate_node *node = cluster_node(c, 1);
	const uint64_t begun = unit_now_ns();
	struct rgate_peer *peer;
	uint64_t took;

	assert_int_equal(rgate_peer_open(&peer, node, 0), 0);
	assert_int_equal(rgate_peer_wait_up(peer, timeout_ms), 0);
	took = unit_now_ns() - begun;
	rgate_peer_close(peer);
	assert_int_equal(node_ended(node), 0);
	return took;
}

static int by_size(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static uint64_t median(uint64_t *took, unsigned int n)
{
	qsort(took, n, sizeof(*took), by_size);
	return took[n / 2];
}

/* While strangers ask without end, node 1 comes back in its usual time and node 2 stays */
static void flooded(void **state)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	struct rgate_cluster_node at = { .sz = sizeof(at) };
	uint64_t begun, refused, calm, busy;
	static uint64_t took[TIMES];
	struct rgate_peer *one, *two, *back;
	const int timeout_ms = 3000 * unit_patience();
	struct rgate_peer_info info = { .sz = sizeof(info) };
	struct rgate_node *node, *third;
	struct rgate_node_stats st;
	struct flood *f;
	unsigned int i, times = 0;
	pid_t pid[FLOODERS];
	struct rgate_hs hs;
	struct cluster c;
	struct who w;

	(void)state;
	cluster_make(&c, 3, (uint32_t)timeout_ms);
	if (!c.local) {
		cluster_free(&c);
		unit_skip("processes of this machine flood its socket");
	}
	f = mmap(NULL, sizeof(*f), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(f != MAP_FAILED);
	assert_int_equal(rgate_cluster_node(c.conf, 0, &at), 0);
	snprintf(sa.sun_path, sizeof(sa.sun_path), "%.100s", at.addr);
	who_is(&w, &c, c.keys[1], 0);
	assert_int_equal(rgate_hs_hello(&hs, 1, 0, &w.keys), 0);
	/* before there are threads; nobody listens yet, which does them no harm */
	for (i = 0; i < FLOODERS; i++) {
		pid[i] = fork();
		assert_true(pid[i] >= 0);
		if (!pid[i])
			flooder(f, &sa, &hs.hello, i + 1);
	}
	node = cluster_node(&c, 0);
	third = cluster_node(&c, 2);
	assert_int_equal(rgate_peer_open(&one, node, 1), 0);
	assert_int_equal(rgate_peer_open(&two, node, 2), 0);
	assert_int_equal(rgate_peer_open(&back, third, 0), 0);
	assert_int_equal(rgate_peer_wait_up(two, timeout_ms), 0);
	for (i = 0; i < CALM; i++)
		took[i] = come_back(&c, timeout_ms);
	calm = median(took, CALM);
	__atomic_store_n(&f->go, true, __ATOMIC_RELAXED);
	wait_for(__atomic_load_n(&f->sent, __ATOMIC_RELAXED) > 100);
	begun = unit_now_ns();
	__atomic_store_n(&f->sent, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&f->full, 0, __ATOMIC_RELAXED);
	st = node_stats(node);
	refused = st.bad_key + st.garbage;
	while (times < TIMES && unit_now_ns() - begun < FLOOD_NS)
		took[times++] = come_back(&c, timeout_ms);
	f->ns = unit_now_ns() - begun;
	st = node_stats(node);
	refused = st.bad_key + st.garbage - refused;
	f->stop = true;
	for (i = 0; i < FLOODERS; i++)
		assert_int_equal(waitpid(pid[i], NULL, 0), pid[i]);
	busy = median(took, times);
	print_message("# of %d bad hellos a second %llu came, %llu found no room, %llu were refused\n",
		      FLOOD_RATE, (unsigned long long)(f->sent * 1000000000ULL / f->ns),
		      (unsigned long long)f->full, (unsigned long long)refused);
	print_message("# node 1 came back %u times: half of them in %llu us, the last in %llu; "
		      "without them half in %llu us\n", times, (unsigned long long)(busy / 1000),
		      (unsigned long long)(took[times - 1] / 1000),
		      (unsigned long long)(calm / 1000));
	/*
	 * It was a flood: tried at a quarter of the rate at least. How many of these are taken is
	 * for the machine, which may have other work.
	 */
	assert_true(refused > 1000);
	assert_true((f->sent + f->full) * unit_patience() * 1000000000ULL / f->ns >=
		    FLOOD_RATE / 4);
	/* What is very short grows most where other work comes between: it counts as 10 ms. */
	calm = calm < CALM_LEAST ? CALM_LEAST : calm;
	assert_true(busy <= MULTIPLE * unit_patience() * calm);
	/* the last of them may go before this is counted */
	assert_true(st.accepted >= times);
	/* who was there before has noticed nothing */
	assert_int_equal(rgate_peer_info(two, &info), 0);
	assert_true(info.state == RGATE_PEER_UP && info.epoch == 1);
	rgate_peer_close(one);
	rgate_peer_close(two);
	rgate_peer_close(back);
	assert_int_equal(node_ended(third), 0);
	assert_int_equal(node_ended(node), 0);
	munmap(f, sizeof(*f));
	cluster_free(&c);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(flooded),
};

UNIT_MAIN(tests)
