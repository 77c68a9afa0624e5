// SPDX-License-Identifier: MIT OR GPL-2.0
/* Descriptors run out: proper errors, nothing left behind, no node that stands still. */
#include "ended.h"
#include "nodes.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* From now on there are @n more; returns what it was */
static struct rlimit leave(unsigned int n)
{
	struct rlimit was, lim;
	int fd = dup(STDERR_FILENO);

	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	lim = was;
	lim.rlim_cur = (rlim_t)fd + n;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &lim), 0);
	return was;
}

static int try_node(struct cluster *c)
{
	struct rgate_pool_opts pool = RGATE_OPTS(rgate_pool_opts, .region_size = 8 << 20,
						 .access = RGATE_ACCESS_REMOTE,
						 .flags = RGATE_POOL_NO_HUGE);
	struct rgate_node_opts opts = c->opts;
	struct rgate_node *node;
	int err;

	opts.pool = &pool;
	err = rgate_node_create(&node, c->conf, 0, &opts);
	return err ? err : node_ended(node);
}

static void node_refused(void **state)
{
	unsigned int n, before, failed = 0;
	struct cluster c;
	struct rlimit was;
	int err = -1;

	(void)state;
	if (unit_slow())
		unit_skip("valgrind has descriptors of its own");
	cluster_make(&c, 2, 0);
	assert_int_equal(try_node(&c), 0);	/* what libraries keep open is open now */
	before = open_files();
	for (n = 0; err; n++) {
		was = leave(n);
		err = try_node(&c);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
		assert_int_equal(open_files(), before);
		assert_true(err <= 0);
		if (err && c.local)
			assert_int_equal(err, -EMFILE);
		failed += err != 0;
		assert_true(n < 64);
	}
	assert_true(failed >= 3);
	cluster_free(&c);
}

/* Node 1, once it is told to begin */
static int connects(int sock, void *arg)
{
	struct rgate_node *node;
	struct rgate_peer *peer;
	char go;

	unit_require(read(sock, &go, 1) == 1);
	node = cluster_node(arg, 1);
	unit_require(!rgate_peer_open(&peer, node, 0));
	unit_require(write(sock, "c", 1) == 1);
	unit_require(!rgate_peer_wait_up(peer, MS));
	unit_require(read(sock, &go, 1) == 1);
	rgate_peer_close(peer);
	unit_require(!node_ended(node));
	return 0;
}

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts), 0);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static uint64_t accepted(const struct rgate_node *node)
{
	struct rgate_node_stats stats = { .sz = sizeof(stats) };

	assert_int_equal(rgate_node_stats(node, &stats), 0);
	return stats.accepted;
}

/* What half a second of work takes, in which the node has to answer */
static uint64_t work(struct rgate_node *node, void *at, size_t len, int fd)
{
	const uint64_t began = cpu_ns();
	struct rgate_share *share;
	int i, err;

	for (i = 0; i < 50; i++) {
		err = rgate_share_create(&share, node, at, len, fd, 0, RGATE_ACCESS_REMOTE_READ);
		/* the memory of another process may need a descriptor itself */
		assert_true(!err || err == -EMFILE);
		if (!err)
			rgate_share_destroy(share);
		usleep(10000);
	}
	return cpu_ns() - began;
}

/*
 * Somebody connects while there is no descriptor to take him by: the node does its
 * other work meanwhile, without turning in circles, and takes him later.
 */
static void none_left(void **state)
{
	const size_t len = 4096;
	struct rgate_node *node;
	struct rgate_peer *peer;
	struct cluster c;
	struct rlimit was;
	int fd, sock, status;
	uint64_t busy, idle;
	void *at;
	pid_t pid;
	char go;

	(void)state;
	unit_not_for_tsan(UNIT_TSAN_CHILD);
	if (unit_slow())
		unit_skip("valgrind has descriptors of its own");
	cluster_make(&c, 2, 0);
	fd = nodes_memfd(len, &at);
	pid = unit_fork(connects, &c, &sock);
	node = cluster_node(&c, 0);
	assert_int_equal(rgate_peer_open(&peer, node, 1), 0);
	idle = work(node, at, len, fd);
	was = leave(0);
	assert_int_equal(write(sock, "b", 1), 1);
	assert_int_equal(read(sock, &go, 1), 1);
	busy = work(node, at, len, fd);
	print_message("# %llu ms of CPU, %llu without\n", (unsigned long long)busy / 1000000,
		      (unsigned long long)idle / 1000000);
	assert_true(busy < 2 * idle + unit_patience() * 250000000ULL);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_int_equal(rgate_peer_wait_up(peer, MS), 0);
	wait_for(accepted(node) >= 1);	/* counted a moment later */
	assert_int_equal(write(sock, "e", 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(sock);
	rgate_peer_close(peer);
	assert_int_equal(node_ended(node), 0);
	munmap(at, len);
	close(fd);
	cluster_free(&c);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(node_refused),
	cmocka_unit_test(none_left),
};

UNIT_MAIN(tests)
