// SPDX-License-Identifier: MIT OR GPL-2.0
/* What a client believes of a node that answers late, wrongly, or more than it was asked. */
#include "serve.h"

#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <ringgate/spawn.h>

static struct duo d;		/* node 1 asks; node 0 is the test */
static struct rgate_spawn *sp;

static int up(void **state)
{
	(void)state;
	duo_up(&d, 0);
	assert_int_equal(rgate_spawn_open(&sp, d.node[1], d.peer[1], NULL), 0);
	return 0;
}

static int down(void **state)
{
	(void)state;
	rgate_spawn_close(sp);
	duo_down(&d);
	return 0;
}

/* A question as it comes to the node */
static struct rgate_spawn_ask heard(uint8_t type)
{
	struct rgate_spawn_ask m;
	struct rgate_msg msg;

	assert_int_equal(rgate_peer_recv(d.peer[0], &msg, &m, sizeof(m), MS), 0);
	assert_int_equal(msg.len, sizeof(m));
	assert_int_equal(m.h.type, type);
	assert_int_equal(m.h.version, RGATE_SPAWN_VERSION);
	return m;
}

static void say(const void *m, size_t len)
{
	assert_int_equal(rgate_peer_send(d.peer[0], m, len, MS), 0);
}

static struct rgate_spawn_answer answer(const struct rgate_spawn_ask *q, uint8_t type, int error)
{
	return (struct rgate_spawn_answer){
		.h = { .service = htole32(RGATE_SPAWN_ASKER), .version = RGATE_SPAWN_VERSION,
		       .type = type, .cookie = q->h.cookie },
		.error = htole32((uint32_t)error),
	};
}

struct killer {
	pthread_t thread;
	uint64_t id;
	int ret;
};

static void *kill_it(void *arg)
{
	struct killer *k = arg;

	k->ret = rgate_spawn_kill(sp, k->id, SIGTERM, RGATE_SPAWN_TO_TREE, (int)MS);
	return NULL;
}

static void ask_to_kill(struct killer *k, uint64_t id)
{
	*k = (struct killer){ .id = id, .ret = 1 };
	assert_int_equal(pthread_create(&k->thread, NULL, kill_it, k), 0);
}

static int told(struct killer *k)
{
	pthread_join(k->thread, NULL);
	return k->ret;
}

static void asked(void **state)
{
	static const int odd[] = { -1, 4096, INT32_MIN };
	struct rgate_spawn_answer a;
	struct rgate_spawn_ask q;
	struct killer k;
	unsigned int i;

	(void)state;
	assert_int_equal(rgate_spawn_kill(sp, 1, 0, RGATE_SPAWN_TO_GROUP, 0), -EINVAL);
	assert_int_equal(rgate_spawn_kill(sp, 1, -1, RGATE_SPAWN_TO_GROUP, 0), -EINVAL);
	assert_int_equal(rgate_spawn_kill(sp, 1, SIGRTMAX + 1, RGATE_SPAWN_TO_GROUP, 0), -EINVAL);
	ask_to_kill(&k, 77);
	q = heard(RGATE_SPAWN_KILL);
	assert_int_equal(le64toh(q.h.id), 77);
	assert_int_equal(le32toh(q.signal), SIGTERM);
	assert_int_equal(le32toh(q.scope), RGATE_SPAWN_TO_TREE);
	a = answer(&q, RGATE_SPAWN_DONE, ESRCH);
	say(&a, sizeof(a));
	assert_int_equal(told(&k), -ESRCH);
	ask_to_kill(&k, 78);
	q = heard(RGATE_SPAWN_KILL);
	a = answer(&q, RGATE_SPAWN_DONE, 0);
	say(&a, sizeof(a));
	assert_int_equal(told(&k), 0);
	/* what is no errno */
	for (i = 0; i < ARRAY_LEN(odd); i++) {
		ask_to_kill(&k, 79);
		q = heard(RGATE_SPAWN_KILL);
		a = answer(&q, RGATE_SPAWN_DONE, odd[i]);
		say(&a, sizeof(a));
		assert_int_equal(told(&k), -EIO);
	}
}

/* The answer to a question that was given up is not that to the next one. */
static void late(void **state)
{
	struct rgate_spawn_answer a;
	struct rgate_spawn_ask first, q;
	struct killer k;
	int i;

	(void)state;
	assert_int_equal(rgate_spawn_kill(sp, 1, SIGTERM, RGATE_SPAWN_TO_GROUP, 50), -ETIMEDOUT);
	first = heard(RGATE_SPAWN_KILL);
	for (i = 0; i < 2; i++) {
		ask_to_kill(&k, 2);
		q = heard(RGATE_SPAWN_KILL);
		assert_true(q.h.cookie != first.h.cookie);
		a = answer(&first, RGATE_SPAWN_DONE, EPERM);
		say(&a, sizeof(a));
		a = answer(&q, RGATE_SPAWN_DONE, ESRCH);
		say(&a, sizeof(a));
		assert_int_equal(told(&k), -ESRCH);
	}
}

/* Nothing that is no answer is taken for one. */
static void lies(void **state)
{
	struct rgate_spawn_answer a, lie;
	struct rgate_spawn_ask q;
	struct killer k;
	unsigned int i;

	(void)state;
	ask_to_kill(&k, 3);
	q = heard(RGATE_SPAWN_KILL);
	lie = answer(&q, RGATE_SPAWN_DONE, EPERM);
	lie.h.cookie = htole64(le64toh(q.h.cookie) + 1);	/* asked by nobody yet */
	say(&lie, sizeof(lie));
	lie = answer(&q, RGATE_SPAWN_DONE, EPERM);
	lie.h.version++;
	say(&lie, sizeof(lie));
	lie = answer(&q, RGATE_SPAWN_DONE, EPERM);
	lie.h.service = htole32(RGATE_SPAWN_ASKER + 1);
	say(&lie, sizeof(lie));
	lie.h.service = htole32(RGATE_SPAWN_SERVICE);		/* for its other role */
	say(&lie, sizeof(lie));
	lie = answer(&q, RGATE_SPAWN_KILL, EPERM);	/* what clients say */
	say(&lie, sizeof(lie));
	lie = answer(&q, RGATE_SPAWN_DONE, EPERM);
	for (i = 1; i < sizeof(lie); i += 7)
		say(&lie, i);
	/* of jobs that there are not */
	lie = answer(&q, RGATE_SPAWN_GONE, EPERM);
	say(&lie, sizeof(lie));
	lie.h.type = RGATE_SPAWN_UPDATE;
	say(&lie, sizeof(lie.h));
	a = answer(&q, RGATE_SPAWN_DONE, ESRCH);
	say(&a, sizeof(a));
	assert_int_equal(told(&k), -ESRCH);
}

struct lister {
	pthread_t thread;
	unsigned int n, most;
	uint64_t sum;
	struct rgate_spawn_info last;
	int ret;
};

static int count(void *ctx, const struct rgate_spawn_info *info)
{
	struct lister *l = ctx;

	l->n++;
	l->sum += info->id;
	l->last = *info;
	return l->n == l->most ? 5 : 0;
}

static void *list_all(void *arg)
{
	struct lister *l = arg;

	l->ret = rgate_spawn_list(sp, count, l, (int)MS);
	return NULL;
}

static void ask_for_list(struct lister *l, unsigned int most)
{
	*l = (struct lister){ .most = most, .ret = 1 };
	assert_int_equal(pthread_create(&l->thread, NULL, list_all, l), 0);
}

/* Answers with ids from @from, of which there are @total from there */
static uint64_t show(uint64_t from, uint32_t n, uint32_t count_, uint32_t total)
{
	const struct rgate_spawn_ask q = heard(RGATE_SPAWN_LIST);
	struct rgate_spawn_answer a = answer(&q, RGATE_SPAWN_LISTED, 0);
	struct rgate_spawn_entry e = {
		.state = htole32(2), .node = htole32(1), .pid = htole32(4711), .attached = 1,
		.started_ns = htole64(99), .user = "me", .command = "true",
	};
	struct rgate_sge sge = duo_sge(&d, 0, 0, sizeof(e));
	struct rgate_remote at;
	uint32_t i;

	assert_int_equal(rgate_desc_parse(&at, &q.memory, sizeof(q.memory)), 0);
	for (i = 0; i < n; i++) {
		e.id = htole64(from + i);
		memcpy(sge.addr, &e, sizeof(e));
		assert_int_equal(rgate_peer_write(d.peer[0], &at, i * sizeof(e), &sge, MS), 0);
	}
	a.count = htole32(count_);
	a.total = htole32(total);
	say(&a, sizeof(a));
	return le64toh(q.h.id);
}

static int listed(struct lister *l)
{
	pthread_join(l->thread, NULL);
	return l->ret;
}

static void lists(void **state)
{
	struct lister l;

	(void)state;
	/* none; one; more than come at once */
	ask_for_list(&l, 0);
	assert_int_equal(show(0, 0, 0, 0), 0);
	assert_int_equal(listed(&l), 0);
	assert_int_equal(l.n, 0);
	ask_for_list(&l, 0);
	assert_int_equal(show(10, 2, 2, 3), 0);
	assert_int_equal(show(20, 1, 1, 1), 11);
	assert_int_equal(listed(&l), 0);
	assert_true(l.n == 3 && l.sum == 10 + 11 + 20);
	assert_true(l.last.id == 20 && l.last.state == 2 && l.last.node == 1 &&
		    l.last.pid == 4711 && l.last.attached && l.last.started_ns == 99);
	assert_string_equal(l.last.user, "me");
	assert_string_equal(l.last.command, "true");
	/* more than there is room for */
	ask_for_list(&l, 0);
	assert_int_equal(show(1, 64, UINT32_MAX, UINT32_MAX), 0);
	assert_int_equal(show(1, 0, 0, UINT32_MAX), 64);
	assert_int_equal(listed(&l), 0);
	assert_true(l.n == 64 && l.sum == 64 * 65 / 2);
	/* who wants no more is told no more, and what it says is returned */
	ask_for_list(&l, 2);
	assert_int_equal(show(1, 3, 3, 9), 0);
	assert_int_equal(listed(&l), 5);
	assert_int_equal(l.n, 2);
}

/* The status of a job, as the node writes it, and word of it */
static void update(const struct rgate_spawn_start *q, uint64_t taken, uint32_t signals)
{
	const struct rgate_spawn_status st = {
		.state = htole64(RGATE_SPAWN_RUNNING), .id = htole64(5), .pid = htole32(4711),
		.taken = htole64(taken), .signals = htole32(signals),
	};
	const struct rgate_spawn_msg m = {
		.service = htole32(RGATE_SPAWN_ASKER), .version = RGATE_SPAWN_VERSION,
		.type = RGATE_SPAWN_UPDATE, .cookie = q->h.cookie, .id = st.id,
	};
	struct rgate_sge sge = duo_sge(&d, 0, 0, sizeof(st));
	struct rgate_spawn_job *job;
	struct rgate_remote at;

	assert_int_equal(rgate_desc_parse(&at, &q->memory, sizeof(q->memory)), 0);
	memcpy(sge.addr, &st, sizeof(st));
	assert_int_equal(rgate_peer_write(d.peer[0], &at, 0, &sge, MS), 0);
	say(&m, sizeof(m));
	assert_int_equal(rgate_spawn_next(sp, &job, (int)MS), 0);
}

/* A node that takes back what it has taken of stdin makes no room by that, but an end. */
static void untaken(void **state)
{
	static const char *const argv[] = { "cat", NULL };
	const struct rgate_spawn_request req = RGATE_OPTS(rgate_spawn_request, .argv = argv,
		.stdin_mode = RGATE_SPAWN_IN_STREAM, .ring_bytes = RGATE_SPAWN_RING_MIN);
	static const char some[RGATE_SPAWN_RING_MIN + 1];
	const ssize_t ring = RGATE_SPAWN_RING_MIN;
	struct rgate_spawn_result r = { .sz = sizeof(r) };
	struct rgate_spawn_start q;
	struct rgate_spawn_job *job;
	struct rgate_msg msg;

	(void)state;
	assert_int_equal(rgate_spawn_start(sp, &req, &job), 0);
	assert_int_equal(rgate_peer_recv(d.peer[0], &msg, &q, sizeof(q), MS), 0);
	assert_int_equal(q.h.type, RGATE_SPAWN_START);
	update(&q, 0, 0);
	assert_int_equal(rgate_spawn_job_write(job, some, sizeof(some), 0), ring);
	assert_int_equal(rgate_spawn_job_write(job, some, sizeof(some), 0), -EAGAIN);
	update(&q, (uint64_t)ring, 0);
	assert_int_equal(rgate_spawn_job_write(job, some, sizeof(some), 0), ring);
	update(&q, 0, 0);
	assert_int_equal(rgate_spawn_job_write(job, some, sizeof(some), 0), -EPIPE);
	assert_int_equal(rgate_spawn_job_wait(job, &r, 0), 0);
	assert_int_equal(r.error, -EPROTO);
	rgate_spawn_job_close(job);
}

/* The first signal that is sent. One message of a job is under way at a time: the next goes when
 * that is over. */
static struct rgate_spawn_control signalled(void)
{
	struct rgate_spawn_control c;
	struct rgate_msg msg;

	wait_for((rgate_spawn_process(sp),
		  !rgate_peer_recv(d.peer[0], &msg, &c, sizeof(c), 0) &&
		  c.h.type == RGATE_SPAWN_CONTROL && c.signals));
	return c;
}

/* A node that took signals that were never sent, or gives back what it took, makes no sense. */
static void signals(void **state)
{
	static const char *const argv[] = { "cat", NULL };
	const struct rgate_spawn_request req = RGATE_OPTS(rgate_spawn_request, .argv = argv);
	static const uint32_t lie[] = { 0x80000000U, 0, 3 };
	struct rgate_spawn_result r = { .sz = sizeof(r) };
	struct rgate_spawn_control c;
	struct rgate_spawn_start q;
	struct rgate_spawn_job *job;
	struct rgate_msg msg;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(lie); i++) {
		assert_int_equal(rgate_spawn_start(sp, &req, &job), 0);
		do
			assert_int_equal(rgate_peer_recv(d.peer[0], &msg, &q, sizeof(q), MS), 0);
		while (q.h.type != RGATE_SPAWN_START);
		assert_int_equal(rgate_spawn_job_kill(job, SIGUSR1, RGATE_SPAWN_TO_TREE), 0);
		assert_int_equal(rgate_spawn_job_kill(job, SIGUSR2, RGATE_SPAWN_TO_TREE), 0);
		update(&q, 0, 0);
		c = signalled();
		assert_int_equal(le32toh(c.signals), 1);
		assert_int_equal(le32toh(c.signal), SIGUSR1);
		update(&q, 0, 1);
		assert_int_equal(rgate_spawn_job_wait(job, &r, 0), -ETIMEDOUT);
		update(&q, 0, lie[i]);
		assert_int_equal(rgate_spawn_job_wait(job, &r, 0), 0);
		assert_int_equal(r.error, -EPROTO);
		rgate_spawn_job_close(job);
	}
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, up, down)

static const struct CMUnitTest tests[] = {
	TEST(asked),
	TEST(late),
	TEST(lies),
	TEST(lists),
	TEST(signals),
	TEST(untaken),
};

UNIT_MAIN(tests)
