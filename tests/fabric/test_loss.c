// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Peers that go in the middle of something: each operation has an end, and it is said
 * what is known of it. And connections that come and go: nothing is left of them.
 */
#include "ended.h"
#include "nodes.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static struct rgate_failure failure_of(struct rgate_peer *peer)
{
	struct rgate_failure f = { .sz = sizeof(f) };

	assert_int_equal(rgate_peer_failure(peer, &f), 0);
	return f;
}

/* Node 1 lends its memory until it is told to end */
static int lender(int sock, void *arg)
{
	const struct rgate_alloc_opts zero = RGATE_OPTS(rgate_alloc_opts,
							.flags = RGATE_ALLOC_ZERO);
	struct rgate_node *node = cluster_node(arg, 1);
	const struct rgate_buf *buf;
	struct rgate_peer *peer;
	struct rgate_desc d;
	char end;

	unit_require(!rgate_pool_alloc_opts(rgate_node_pool(node), DUO_BYTES, &zero, &buf));
	unit_require(!rgate_buf_desc(rgate_node_pool(node), buf, 0, 0, &d));
	unit_require(!rgate_peer_open(&peer, node, 0));
	unit_require(!rgate_peer_wait_up(peer, MS));
	unit_require(write(sock, &d, sizeof(d)) == sizeof(d));
	(void)!read(sock, &end, 1);
	rgate_peer_close(peer);
	unit_require(!rgate_pool_free(rgate_node_pool(node), buf));
	unit_require(!node_ended(node));
	return 0;
}

struct couple {			/* node 0 here, node 1 in a child */
	struct cluster c;
	struct rgate_node *node;
	struct rgate_peer *peer;
	const struct rgate_buf *buf;
	struct rgate_remote at;		/* of the child */
	int sock;
	pid_t pid;
};

static void meet(struct couple *p)
{
	struct rgate_desc d;

	p->pid = unit_fork(lender, &p->c, &p->sock);
	assert_int_equal(read(p->sock, &d, sizeof(d)), sizeof(d));
	assert_int_equal(rgate_desc_parse(&p->at, &d, sizeof(d)), 0);
	assert_int_equal(rgate_peer_wait_up(p->peer, MS), 0);
}

static void couple_up(struct couple *p)
{
	unit_not_for_tsan(UNIT_TSAN_CHILD);
	cluster_make(&p->c, 2, SILENT_MS);
	p->node = cluster_node(&p->c, 0);
	assert_int_equal(rgate_pool_alloc(rgate_node_pool(p->node), DUO_BYTES, &p->buf), 0);
	assert_int_equal(rgate_peer_open(&p->peer, p->node, 1), 0);
	meet(p);
}

static void couple_down(struct couple *p)
{
	close(p->sock);
	unit_reap(p->pid, 0);
	rgate_peer_close(p->peer);
	assert_int_equal(rgate_pool_free(rgate_node_pool(p->node), p->buf), 0);
	assert_int_equal(node_ended(p->node), 0);
	cluster_free(&p->c);
}

#define BATCH	16
#define TICKETS	8

/* Eight tickets are kept at a time; @n more were given */
struct stream {
	uint64_t ticket[TICKETS];
	unsigned int n;
	struct rgate_sge sge[2];
	struct rgate_op op[BATCH];
};

static void stream_init(struct stream *s, const struct couple *p)
{
	unsigned int i;

	memset(s, 0, sizeof(*s));
	s->sge[0] = (struct rgate_sge){ p->buf->addr, 4096, p->buf->lkey };
	s->sge[1] = (struct rgate_sge){ (char *)p->buf->addr + 8192, 8, p->buf->lkey };
	for (i = 0; i < BATCH; i++)
		s->op[i] = (struct rgate_op){
			.kind = i % 4 == 1 ? RGATE_OP_FETCH_ADD : i % 4 == 3 ? RGATE_OP_READ :
				RGATE_OP_WRITE,
			.nsge = 1, .sge = &s->sge[i % 4 == 1], .operand = 1,
			.remote = p->at.addr + 8192 * (i % 4), .rkey = p->at.rkey,
		};
}

/* Posts batches for as long as it can, until @ms are over: 0, or what ended it */
static int stream_on(struct stream *s, struct rgate_peer *peer, unsigned int ms)
{
	const uint64_t until = unit_now_ns() + ms * 1000000ULL;
	int err = 0;

	while (!err && unit_now_ns() < until) {
		err = rgate_peer_post(peer, s->op, BATCH, &s->ticket[s->n % TICKETS]);
		if (!err)
			s->n++;
		else if (err == -EAGAIN)
			err = 0;
	}
	return err;
}

/* Every ticket has an end: done up to one of them, then errors */
static void check_ends(const struct stream *s, struct rgate_peer *peer)
{
	const unsigned int kept = s->n < TICKETS ? s->n : TICKETS;
	bool lost = false;
	unsigned int i;
	int ret;

	for (i = 0; i < kept; i++) {
		ret = rgate_peer_finish(peer, s->ticket[(s->n - kept + i) % TICKETS],
					5 * SILENT_MS);
		assert_true(ret != -ETIMEDOUT || failure_of(peer).error == -ETIMEDOUT);
		assert_false(lost && !ret);
		lost = ret < 0;
	}
}

static void killed_in_a_batch(void **state)
{
	struct rgate_failure f;
	struct stream s;
	struct couple p;
	uint64_t began;
	unsigned int i;
	int err;

	(void)state;
	couple_up(&p);
	for (i = 0; i < 5; i++) {
		stream_init(&s, &p);
		assert_int_equal(stream_on(&s, p.peer, 20), 0);
		kill(p.pid, SIGKILL);
		began = unit_now_ns();
		err = stream_on(&s, p.peer, 10 * SILENT_MS);
		assert_int_equal(err, -ENOTCONN);
		check_ends(&s, p.peer);
		assert_true(unit_now_ns() - began < 10 * SILENT_MS * 1000000ULL);
		f = failure_of(p.peer);
		assert_int_equal(f.epoch, i + 1);
		assert_true(f.error < 0);
		/* lost: all of what was posted and did not complete; none if none was */
		assert_true(f.lost ? f.kind < RGATE_OP_KINDS : f.kind == RGATE_OP_KINDS);
		assert_true(!f.lost || f.outcome == RGATE_OUTCOME_UNKNOWN);
		assert_int_equal(waitpid(p.pid, NULL, 0), p.pid);
		close(p.sock);
		wait_for(peer_state(p.peer) != RGATE_PEER_UP);
		meet(&p);
	}
	couple_down(&p);
}

static void on_alarm(int sig)
{
	(void)sig;
}

/* A signal every @us microseconds, which interrupts what waits; 0: no more */
static void alarms(long us)
{
	const struct itimerval t = { .it_interval.tv_usec = us, .it_value.tv_usec = us };
	struct sigaction sa = { .sa_handler = on_alarm };

	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &t, NULL);
}

/* It neither reads nor answers, but its sockets and its memory are there */
static void stopped_in_a_batch(void **state)
{
	struct stream s;
	struct couple p;
	uint64_t began, old;
	int err = 0;

	(void)state;
	couple_up(&p);
	kill(p.pid, SIGSTOP);
	began = unit_now_ns();
	alarms(20000);
	/* nothing was reached before: it may have to be asked where its memory is */
	while (!err && unit_now_ns() - began < 10 * SILENT_MS * 1000000ULL)
		err = rgate_peer_fetch_add(p.peer, &p.at, 0, 1, &old, 10 * SILENT_MS);
	alarms(0);
	/* no sooner for the signals */
	assert_true(unit_now_ns() - began > SILENT_MS * 500000ULL);
	assert_true(err == -ETIMEDOUT || err == -ENOTCONN);
	assert_true(unit_now_ns() - began < 10 * SILENT_MS * 1000000ULL);
	kill(p.pid, SIGCONT);
	assert_int_equal(rgate_peer_wait_up(p.peer, MS), 0);
	stream_init(&s, &p);
	err = stream_on(&s, p.peer, 20);
	kill(p.pid, SIGSTOP);
	if (!err)
		err = stream_on(&s, p.peer, 10 * SILENT_MS);
	assert_int_equal(err, -ENOTCONN);
	check_ends(&s, p.peer);
	kill(p.pid, SIGCONT);
	assert_int_equal(rgate_peer_wait_up(p.peer, MS), 0);
	couple_down(&p);
}

/* It never takes its messages, and is alive: credits run out, and nothing is lost */
static void never_reads(void **state)
{
	struct couple p;
	unsigned int n;
	struct rgate_peer_info info = { .sz = sizeof(info) };
	uint64_t began;
	int err;

	(void)state;
	couple_up(&p);
	for (n = 0, err = 0; !err && n < 1000; n++)
		err = rgate_peer_send(p.peer, &n, sizeof(n), 300);
	assert_int_equal(err, -EAGAIN);
	assert_in_range(n, 64, 129);
	began = unit_now_ns();
	wait_for(!rgate_peer_info(p.peer, &info) &&
		 info.heard_ns > began + 2 * SILENT_MS * 1000000ULL);
	assert_int_equal(peer_state(p.peer), RGATE_PEER_UP);
	assert_int_equal(failure_of(p.peer).epoch, 0);
	assert_int_equal(rgate_peer_send(p.peer, &n, sizeof(n), 1), -EAGAIN);
	couple_down(&p);
}

/* An atomic that was refused has not been done */
static void refused_atomic(void **state)
{
	struct rgate_remote wrong;
	struct rgate_failure f;
	struct duo d;
	uint64_t old;

	(void)state;
	duo_up(&d, 0);
	wrong = d.at[1];
	wrong.rkey ^= 0x3c0300;
	assert_int_equal(rgate_peer_fetch_add(d.peer[0], &wrong, 0, 1, &old, MS), -EREMOTEIO);
	f = failure_of(d.peer[0]);
	assert_int_equal(f.kind, RGATE_OP_FETCH_ADD);
	assert_int_equal(f.outcome, RGATE_OUTCOME_NOT_DONE);
	assert_int_equal(f.lost, 1);
	assert_int_equal(*(uint64_t *)d.buf[1]->addr, 0);
	duo_down(&d);
}

static void shell(const char *variable)
{
	assert_int_equal(system(getenv(variable)), 0);
}

/* The wire is cut while an atomic is on its way: it was done once, or not at all */
static void cut(void **state)
{
	struct rgate_failure f;
	uint64_t old, n = 0, began;
	unsigned int round;
	struct duo d;
	int err;

	(void)state;
	if (!getenv("RGATE_FABRIC_CUT") || !getenv("RGATE_FABRIC_MEND"))
		unit_skip("no RGATE_FABRIC_CUT and RGATE_FABRIC_MEND, commands that cut the wire");
	duo_up(&d, SILENT_MS);
	for (round = 0; round < 3; round++) {
		do
			err = rgate_peer_fetch_add(d.peer[0], &d.at[1], 0, 1, &old, 20 * SILENT_MS);
		while (!err && ++n % 20);
		assert_int_equal(err, 0);
		shell("RGATE_FABRIC_CUT");
		began = unit_now_ns();
		err = rgate_peer_fetch_add(d.peer[0], &d.at[1], 0, 1, &old, 20 * SILENT_MS);
		/* no answer; or the peer, which heard nothing either, was first to end it */
		assert_true(err == -ETIMEDOUT || err == -ECONNRESET || err == -ENOTCONN);
		assert_true(unit_now_ns() - began < 15 * SILENT_MS * 1000000ULL);
		f = failure_of(d.peer[0]);
		assert_int_equal(f.epoch, round + 1);
		if (err != -ENOTCONN) {
			assert_int_equal(f.kind, RGATE_OP_FETCH_ADD);
			assert_int_equal(f.outcome, RGATE_OUTCOME_UNKNOWN);
		}
		shell("RGATE_FABRIC_MEND");
		assert_int_equal(rgate_peer_wait_up(d.peer[0], 2 * MS), 0);
		assert_int_equal(rgate_peer_wait_up(d.peer[1], 2 * MS), 0);
		assert_int_equal(rgate_peer_fetch_add(d.peer[0], &d.at[1], 0, 0, &old, MS), 0);
		assert_true(old == n || old == n + 1);
		n = old;
		while (n % 20) {
			assert_int_equal(rgate_peer_fetch_add(d.peer[0], &d.at[1], 0, 1, &old,
							      MS), 0);
			n++;
		}
	}
	duo_down(&d);
}

#define TRIES	60	/* fewer than may be outstanding */

/* A wire that does not answer gets nothing more, and all that it got when it does again */
static void held(void **state)
{
	struct rgate_peer_info info = { .sz = sizeof(info) };
	struct rgate_sge s;
	struct rgate_op op;
	unsigned int i;
	struct duo d;
	int err = 0;

	(void)state;
	if (!getenv("RGATE_FABRIC_CUT") || !getenv("RGATE_FABRIC_MEND"))
		unit_skip("no RGATE_FABRIC_CUT and RGATE_FABRIC_MEND, commands that cut the wire");
	duo_up(&d, 0);
	s = duo_sge(&d, 0, 0, 8);
	op = (struct rgate_op){ .kind = RGATE_OP_WRITE, .nsge = 1, .sge = &s,
				.remote = d.at[1].addr, .rkey = d.at[1].rkey };
	shell("RGATE_FABRIC_CUT");
	for (i = 0; i < TRIES && !err; i++) {
		*(uint64_t *)s.addr = i + 1;
		err = rgate_peer_post(d.peer[0], &op, 1, NULL);
		usleep(100000);
	}
	shell("RGATE_FABRIC_MEND");
	assert_int_equal(err, -EAGAIN);
	wait_for(!rgate_peer_post(d.peer[0], &op, 1, NULL));
	assert_int_equal(rgate_peer_flush(d.peer[0], MS), 0);
	assert_int_equal(__atomic_load_n((uint64_t *)d.buf[1]->addr, __ATOMIC_ACQUIRE), i);
	assert_int_equal(rgate_peer_info(d.peer[0], &info), 0);
	assert_int_equal(info.epoch, 1);
	duo_down(&d);
}

struct count {
	unsigned int files;
	unsigned long objects;
	uint32_t regions;
	size_t heap;
};

static struct count take_count(const struct cluster *c, struct rgate_node *node[2])
{
	return (struct count){
		.files = open_files(), .objects = rdma_objects(c, NULL),
		.heap = mallinfo2().uordblks,
		.regions = c->local ? 0 : rgate_device_mr_count(rgate_node_device(node[0])),
	};
}

static void again(struct rgate_node *node[2], unsigned int i)
{
	struct rgate_peer *peer[2];

	assert_int_equal(rgate_peer_open(&peer[0], node[0], 1), 0);
	assert_int_equal(rgate_peer_open(&peer[1], node[1], 0), 0);
	assert_int_equal(rgate_peer_wait_up(peer[1], MS), 0);
	assert_int_equal(rgate_peer_wait_up(peer[0], MS), 0);
	if (i % 8 == 0) {
		assert_int_equal(rgate_peer_send(peer[0], "hi", 2, MS), 0);
		assert_int_equal(rgate_peer_flush(peer[1], MS), 0);
	}
	rgate_peer_close(peer[i % 2]);
	rgate_peer_close(peer[!(i % 2)]);
}

/* A thousand connections: nothing is left of them */
static void thousand(void **state)
{
	struct rgate_pool_stats ps = { .sz = sizeof(ps) };
	unsigned int rounds = unit_rounds(1000), settled, i;
	struct rgate_node *node[2];
	struct count before = { 0 };
	struct cluster c;

	(void)state;
	alarm(280 * unit_patience());	/* emulated, a round takes a tenth of a second */
	cluster_make(&c, 2, 0);
	/* a device's library takes a hundred connections to have all the memory that it wants */
	if (!c.local && rounds < 300)
		rounds = 300;
	settled = c.local ? rounds / 10 : 100;
	node[0] = cluster_node(&c, 0);
	node[1] = cluster_node(&c, 1);
	for (i = 0; i < rounds; i++) {
		again(node, i);
		if (i == settled) {
			usleep(500000);
			before = take_count(&c, node);
		}
	}
	wait_for(take_count(&c, node).files <= before.files);
	wait_for(take_count(&c, node).objects <= before.objects);
	assert_true(take_count(&c, node).regions <= before.regions);
	assert_true(take_count(&c, node).heap <= before.heap + 16384);
	for (i = 0; i < 2; i++) {
		assert_int_equal(rgate_pool_stats(rgate_node_pool(node[i]), &ps), 0);
		assert_int_equal(ps.used_buffers, 0);
		assert_int_equal(node_ended(node[i]), 0);
	}
	cluster_free(&c);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(killed_in_a_batch),
	cmocka_unit_test(stopped_in_a_batch),
	cmocka_unit_test(never_reads),
	cmocka_unit_test(refused_atomic),
	cmocka_unit_test(cut),
	cmocka_unit_test(held),
	cmocka_unit_test(thousand),
};

UNIT_MAIN(tests)
