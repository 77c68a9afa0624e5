// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Tasks claimed one-sidedly by processes that are nodes of their own, all at once, and some of
 * which die or stop with what they have claimed: each result comes once, and is the right one.
 */
#include "ended.h"
#include "nodes.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ringgate/rgate_shard.h>

#define MANY	RGATE_SHARD_MANY
#define SIZE	48U
#define PLACES	256U
#define WORKERS	2U

/* A process that works: node @id of @c */
struct worker {
	struct cluster *c;
	unsigned int id;
	bool holds;		/* what it has claimed first, until it is told to go on */
	pid_t pid;
	int sock;
};

struct works {
	struct rgate_node *node;
	struct rgate_peer *peer;
	struct rgate_shard *shard;
	char in[MANY][SIZE], out[MANY][SIZE];
	struct rgate_shard_claim claims[MANY];
};

static void do_task(char *out, const struct rgate_shard_claim *c)
{
	uint64_t number;

	unit_require(c->len == SIZE);
	memcpy(&number, c->data, 8);
	unit_require(number == c->cookie);
	unit_require(!unit_pattern_check((char *)c->data + 8, number, SIZE - 8));
	unit_pattern(out, number + 1, SIZE);
}

/* Completes the first @n claims; how many counted, or -errno */
static int complete(struct works *w, struct rgate_shard *s, int n)
{
	struct rgate_shard_result r[MANY];
	int i;

	for (i = 0; i < n; i++) {
		do_task(w->out[i], &w->claims[i]);
		r[i] = (struct rgate_shard_result){ .claim = &w->claims[i], .data = w->out[i],
						    .len = SIZE };
	}
	return rgate_shard_complete(s, r, (unsigned int)n);
}

/* One turn; what was claimed is in w->claims until it is completed. */
static int work(struct works *w, struct rgate_shard *s, unsigned int turn)
{
	int n = rgate_shard_claim(s, w->claims, turn % 3 ? turn % MANY + 1 : 1, w->in);

	return n > 0 ? complete(w, s, n) : n;
}

static bool told(int sock, int flags)
{
	char byte;

	return recv(sock, &byte, 1, flags) >= 0;
}

static void hold(struct works *w, int sock)
{
	int n;

	while ((n = rgate_shard_claim(w->shard, w->claims, MANY, w->in)) <= 0)
		usleep(1000);
	unit_require(write(sock, &n, sizeof(n)) == sizeof(n));
	/* Killed here, or stopped, and then it goes on with what was never its again */
	unit_require(told(sock, 0));
	unit_require(complete(w, w->shard, n) <= 0);
}

static int worker_main(int sock, void *arg)
{
	const struct worker *me = arg;
	const struct rgate_shard_opts o = RGATE_OPTS(rgate_shard_opts, .timeout_ms = MS);
	static struct works w;
	struct rgate_desc d;
	unsigned int turn = 0;

	unit_require(recv(sock, &d, sizeof(d), MSG_WAITALL) == sizeof(d));
	w.node = cluster_node(me->c, me->id);
	unit_require(!rgate_peer_open(&w.peer, w.node, 0));
	unit_require(!rgate_peer_wait_up(w.peer, MS));
	unit_require(!rgate_shard_open(&w.shard, w.peer, &d, &o));
	if (me->holds)
		hold(&w, sock);
	while (!told(sock, MSG_DONTWAIT))
		if (work(&w, w.shard, turn++) <= 0)
			usleep(500);
	rgate_shard_close(w.shard);
	rgate_peer_close(w.peer);
	unit_require(!node_ended(w.node));
	return 0;
}

/* Node 0, with the tasks */
struct home {
	struct cluster c;
	struct worker worker[WORKERS];
	struct works w;
	struct rgate_peer *peer[WORKERS];
	struct rgate_desc desc;
	uint64_t tasks, submitted, taken;
	unsigned char *seen;
};

static void home_up(struct home *h, uint64_t tasks, uint32_t timeout_ms, bool holds)
{
	struct rgate_shard_opts o = RGATE_OPTS(rgate_shard_opts, .tasks = PLACES,
					       .timeout_ms = MS);
	unsigned int i;

	memset(h, 0, sizeof(*h));
	h->seen = calloc(tasks, 1);
	assert_non_null(h->seen);
	h->tasks = tasks;
	cluster_make(&h->c, WORKERS + 1, timeout_ms);
	/* before there are threads here */
	for (i = 0; i < WORKERS; i++) {
		h->worker[i] = (struct worker){ .c = &h->c, .id = i + 1, .holds = holds && !i };
		h->worker[i].pid = unit_fork(worker_main, &h->worker[i], &h->worker[i].sock);
	}
	h->w.node = cluster_node(&h->c, 0);
	assert_int_equal(rgate_peer_open(&h->w.peer, h->w.node, 0), 0);
	assert_int_equal(rgate_shard_create(&h->w.shard, h->w.peer, &o), 0);
	assert_int_equal(rgate_shard_desc(h->w.shard, &h->desc), 0);
	for (i = 0; i < WORKERS; i++) {
		assert_int_equal(rgate_peer_open(&h->peer[i], h->w.node, i + 1), 0);
		assert_int_equal(rgate_shard_admit(h->w.shard, h->peer[i]), 0);
		/* With one who is to hold some the other does not begin before. */
		if (!holds || !i)
			assert_int_equal(write(h->worker[i].sock, &h->desc, sizeof(h->desc)),
					 sizeof(h->desc));
	}
}

static void home_down(struct home *h)
{
	unsigned int i;

	for (i = 0; i < WORKERS; i++) {
		if (!h->worker[i].pid)
			continue;
		/* The other child has it, too. */
		assert_int_equal(shutdown(h->worker[i].sock, SHUT_RDWR), 0);
		close(h->worker[i].sock);
		unit_reap(h->worker[i].pid, 0);
	}
	rgate_shard_destroy(h->w.shard);
	for (i = 0; i < WORKERS; i++)
		rgate_peer_close(h->peer[i]);
	rgate_peer_close(h->w.peer);
	assert_int_equal(node_ended(h->w.node), 0);
	cluster_free(&h->c);
	free(h->seen);
}

static void submit_some(struct home *h)
{
	struct rgate_shard_task t[MANY] = { { .len = 0 } };
	char bytes[MANY][SIZE];
	unsigned int n;
	uint64_t number;
	int got;

	for (n = 0; n < MANY && h->submitted + n < h->tasks; n++) {
		number = h->submitted + n;
		memcpy(bytes[n], &number, 8);
		unit_pattern(bytes[n] + 8, number, SIZE - 8);
		t[n] = (struct rgate_shard_task){ .data = bytes[n], .len = SIZE, .cookie = number };
	}
	if (!n)
		return;
	got = rgate_shard_submit(h->w.shard, t, n, NULL);
	assert_true(got >= 0);
	h->submitted += (unsigned int)got;
}

static unsigned int take_some(struct home *h)
{
	struct rgate_shard_taken t[MANY];
	char bytes[MANY][SIZE];
	int n = rgate_shard_take(h->w.shard, t, MANY, bytes), i;

	assert_true(n >= 0);
	for (i = 0; i < n; i++) {
		assert_true(t[i].cookie < h->tasks);
		assert_int_equal(t[i].status, 0);
		assert_int_equal(t[i].len, SIZE);
		assert_int_equal(unit_pattern_check(t[i].data, t[i].cookie + 1, SIZE), 0);
		assert_int_equal(h->seen[t[i].cookie]++, 0);
	}
	h->taken += (unsigned int)n;
	return (unsigned int)n;
}

/* A turn of the home, which works, too, where it is said to */
static void turn_of(struct home *h, bool works)
{
	static unsigned int turn;

	assert_true(rgate_shard_step(h->w.shard) >= 0);
	submit_some(h);
	if (works && turn++ % 4 == 0)
		assert_true(work(&h->w, h->w.shard, turn) >= 0);
	if (!take_some(h))
		usleep(200);
}

static struct rgate_shard_info info_of(struct home *h)
{
	struct rgate_shard_info i = { .sz = sizeof(i) };

	assert_int_equal(rgate_shard_info(h->w.shard, &i), 0);
	return i;
}

static void all_done(struct home *h, bool works)
{
	uint64_t i;

	while (h->taken < h->tasks)
		turn_of(h, works);
	for (i = 0; i < 10; i++)
		assert_int_equal(take_some(h), 0);
	for (i = 0; i < h->tasks; i++)
		assert_int_equal(h->seen[i], 1);
	assert_int_equal(info_of(h).bad, 0);
}

/* Devices that are emulated take their time. */
static uint64_t tasks_of(unsigned int n)
{
	const char *provider = getenv("RGATE_FABRIC_PROVIDER");

	return unit_rounds(provider && strcmp(provider, "local") ? n / 10 : n);
}

/* Three nodes at once, one of them the home */
static void at_once(void **state)
{
	static struct home h;

	(void)state;
	home_up(&h, tasks_of(6000), 0, false);
	all_done(&h, true);
	assert_int_equal(info_of(&h).returned, 0);
	home_down(&h);
}

/* The first worker has claimed some, and works at them; then the other one begins */
static unsigned int until_held(struct home *h)
{
	int n = 0;

	while (recv(h->worker[0].sock, &n, sizeof(n), MSG_DONTWAIT) < 0) {
		assert_int_equal(errno, EAGAIN);
		turn_of(h, false);
	}
	assert_int_equal(write(h->worker[1].sock, &h->desc, sizeof(h->desc)), sizeof(h->desc));
	return (unsigned int)n;
}

static void killed(void **state)
{
	static struct home h;
	unsigned int n;

	(void)state;
	home_up(&h, tasks_of(4000), 0, true);
	n = until_held(&h);
	assert_int_equal(kill(h.worker[0].pid, SIGKILL), 0);
	assert_int_equal(waitpid(h.worker[0].pid, NULL, 0), h.worker[0].pid);
	h.worker[0].pid = 0;
	close(h.worker[0].sock);
	all_done(&h, false);
	assert_int_equal(info_of(&h).returned, n);
	home_down(&h);
}

/* Taken for dead; then it goes on, tries to complete, and works as before */
static void stopped(void **state)
{
	static struct home h;
	unsigned int n;

	(void)state;
	home_up(&h, tasks_of(4000), SILENT_MS, true);
	n = until_held(&h);
	assert_int_equal(kill(h.worker[0].pid, SIGSTOP), 0);
	/* meanwhile there are not many for the other one */
	while (info_of(&h).returned < n) {
		assert_true(rgate_shard_step(h.w.shard) >= 0);
		usleep(1000);
	}
	assert_int_equal(kill(h.worker[0].pid, SIGCONT), 0);
	assert_int_equal(write(h.worker[0].sock, "c", 1), 1);
	all_done(&h, false);
	home_down(&h);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(at_once),
	cmocka_unit_test(killed),
	cmocka_unit_test(stopped),
};

UNIT_MAIN(tests)
