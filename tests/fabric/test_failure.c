// SPDX-License-Identifier: MIT OR GPL-2.0
/* Connections that fail, and are made anew: errors that say what is known, no hang. */
#include "ended.h"
#include "ends.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct rgate_failure failure_of(struct rgate_peer *peer)
{
	struct rgate_failure f = { .sz = sizeof(f) };

	assert_int_equal(rgate_peer_failure(peer, &f), 0);
	return f;
}

static struct rgate_peer_info info_of(struct rgate_peer *peer)
{
	struct rgate_peer_info i = { .sz = sizeof(i) };

	assert_int_equal(rgate_peer_info(peer, &i), 0);
	return i;
}

static unsigned int told;	/* atomic: lines that say it */

static void hear_of_loss(void *ctx, enum rgate_log_level level, const char *text)
{
	if (level == RGATE_LOG_WARN && strstr(text, ctx))
		__atomic_add_fetch(&told, 1, __ATOMIC_RELAXED);
}

/* What the peer's device refuses costs the connection, which comes again */
static void refused(void **state)
{
	struct rgate_op op[4];
	struct rgate_failure f;
	struct rgate_sge s;
	uint64_t before, bad, after, old;
	struct duo d;
	int err;

	(void)state;
	told = 0;
	rgate_log_set(hear_of_loss, "node 1 lost: Remote I/O error; write was refused, and did nothing");
	duo_up(&d, 0);
	assert_int_equal(failure_of(d.peer[0]).epoch, 0);
	s = duo_sge(&d, 0, 0, 64);
	memset(d.buf[0]->addr, 0x55, 64);
	op[0] = (struct rgate_op){ .kind = RGATE_OP_WRITE, .nsge = 1, .sge = &s,
				   .remote = d.at[1].addr, .rkey = d.at[1].rkey };
	assert_int_equal(rgate_peer_post(d.peer[0], op, 1, &before), 0);
	op[1] = op[0];
	op[1].rkey ^= 0x5a5a00;
	assert_int_equal(rgate_peer_post(d.peer[0], &op[1], 1, &bad), 0);
	/* It may already be known that the connection failed. */
	err = rgate_peer_post(d.peer[0], op, 1, &after);
	assert_true(!err || err == -ENOTCONN);
	assert_int_equal(rgate_peer_finish(d.peer[0], before, MS), 0);
	assert_int_equal(rgate_peer_finish(d.peer[0], bad, MS), -EREMOTEIO);
	if (!err)
		assert_int_equal(rgate_peer_finish(d.peer[0], after, MS), -ECANCELED);
	f = failure_of(d.peer[0]);
	assert_int_equal(f.epoch, 1);
	assert_int_equal(f.error, -EREMOTEIO);
	assert_int_equal(f.kind, RGATE_OP_WRITE);
	assert_int_equal(f.outcome, RGATE_OUTCOME_NOT_DONE);
	assert_int_equal(f.ticket, bad);
	assert_int_equal(f.lost, err ? 1 : 2);
	wait_for(__atomic_load_n(&told, __ATOMIC_RELAXED) == 1);
	assert_int_equal(rgate_peer_wait_up(d.peer[0], MS), 0);
	wait_for(info_of(d.peer[0]).epoch == 2);
	assert_int_equal(rgate_peer_wait_up(d.peer[0], MS), 0);
	assert_int_equal(rgate_peer_wait_up(d.peer[1], MS), 0);
	/* old tickets keep their outcome, memory its content */
	assert_int_equal(rgate_peer_done(d.peer[0], before), 1);
	assert_int_equal(rgate_peer_done(d.peer[0], bad), -EREMOTEIO);
	assert_int_equal(rgate_peer_done(d.peer[0], bad + 1), -ECANCELED);
	assert_int_equal(rgate_peer_done(d.peer[0], bad + (5ULL << 48)), -ESTALE);
	wait_for(!rgate_peer_fetch_add(d.peer[0], &d.at[1], 64, 3, &old, MS));
	assert_int_equal(old, 0);
	assert_int_equal(*((uint8_t *)d.buf[1]->addr + 63), 0x55);
	duo_down(&d);
	rgate_log_set(NULL, NULL);
}

/* Node 1: lends its memory, and lets others work */
static int other_end(int sock, void *arg)
{
	struct cluster *c = arg;
	struct rgate_node *node = cluster_node(c, 1);
	const struct rgate_alloc_opts zero = RGATE_OPTS(rgate_alloc_opts,
							.flags = RGATE_ALLOC_ZERO);
	const struct rgate_buf *buf;
	struct rgate_peer *peer;
	struct rgate_desc d;
	char go;

	unit_require(!rgate_pool_alloc_opts(rgate_node_pool(node), DUO_BYTES, &zero, &buf));
	unit_require(!rgate_buf_desc(rgate_node_pool(node), buf, 0, 0, &d));
	unit_require(!rgate_peer_open(&peer, node, 0));
	unit_require(!rgate_peer_wait_up(peer, MS));
	unit_require(write(sock, &d, sizeof(d)) == sizeof(d));
	if (read(sock, &go, 1) == 1 && go == 's')
		unit_require(!rgate_peer_send(peer, "last words", 11, MS));
	if (read(sock, &go, 1) == 1)
		pause();
	rgate_peer_close(peer);
	unit_require(!rgate_pool_free(rgate_node_pool(node), buf));
	unit_require(!node_ended(node));
	return 0;
}

static pid_t start(struct cluster *c, struct rgate_peer *peer, int *sock,
		   struct rgate_remote *at)
{
	struct rgate_desc d;
	pid_t pid = unit_fork(other_end, c, sock);

	assert_int_equal(read(*sock, &d, sizeof(d)), sizeof(d));
	assert_int_equal(rgate_desc_parse(at, &d, sizeof(d)), 0);
	assert_int_equal(rgate_peer_wait_up(peer, MS), 0);
	return pid;
}

struct solo {			/* node 0 here, node 1 in a child */
	struct cluster c;
	struct rgate_node *node;
	struct rgate_peer *peer;
	const struct rgate_buf *buf;
};

static void solo_up(struct solo *s)
{
	cluster_make(&s->c, 2, SILENT_MS);
	s->node = cluster_node(&s->c, 0);
	assert_int_equal(rgate_pool_alloc(rgate_node_pool(s->node), 4096, &s->buf), 0);
	assert_int_equal(rgate_peer_open(&s->peer, s->node, 1), 0);
}

static void solo_down(struct solo *s)
{
	rgate_peer_close(s->peer);
	assert_int_equal(rgate_pool_free(rgate_node_pool(s->node), s->buf), 0);
	assert_int_equal(node_ended(s->node), 0);
	cluster_free(&s->c);
}

static void killed(void **state)
{
	struct rgate_remote at;
	uint64_t incarnation = 0, began;
	struct rgate_sge sge;
	struct rgate_msg msg;
	char words[16];
	struct solo s;
	int i, err, sock;
	pid_t pid;

	(void)state;
	unit_not_for_tsan(UNIT_TSAN_CHILD);
	solo_up(&s);
	sge = (struct rgate_sge){ s.buf->addr, 4096, s.buf->lkey };
	for (i = 0; i < 3; i++) {
		pid = start(&s.c, s.peer, &sock, &at);
		assert_true(info_of(s.peer).incarnation != incarnation);
		incarnation = info_of(s.peer).incarnation;
		assert_int_equal(rgate_peer_write(s.peer, &at, 0, &sge, MS), 0);
		assert_int_equal(write(sock, "s.", 2), 2);
		wait_for(rgate_peer_recv(s.peer, &msg, NULL, 0, 0) == -EMSGSIZE);
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		/* until it is known, and then until there is no connection */
		began = unit_now_ns();
		do
			err = rgate_peer_write(s.peer, &at, 0, &sge, 5 * SILENT_MS);
		while (!err && unit_now_ns() - began < MS * 1000000ULL);
		assert_true(err);
		assert_true(unit_now_ns() - began < MS * 1000000ULL);
		wait_for(peer_state(s.peer) != RGATE_PEER_UP);
		/* what it said before it died is not lost */
		assert_int_equal(rgate_peer_recv(s.peer, &msg, words, sizeof(words), 0), 0);
		assert_string_equal(words, "last words");
		assert_int_equal(rgate_peer_recv(s.peer, &msg, words, sizeof(words), 0),
				 -ENOTCONN);
		assert_int_equal(rgate_peer_write(s.peer, &at, 0, &sge, 10), -ENOTCONN);
		close(sock);
	}
	solo_down(&s);
}

/* It is there, but shows no sign of life */
static void stopped(void **state)
{
	struct rgate_remote at;
	struct solo s;
	uint64_t began;
	pid_t pid;
	int sock;

	(void)state;
	unit_not_for_tsan(UNIT_TSAN_CHILD);
	solo_up(&s);
	pid = start(&s.c, s.peer, &sock, &at);
	/* nothing is said, and the peer is heard of all the same */
	began = unit_now_ns();
	wait_for(info_of(s.peer).heard_ns > began + 2 * SILENT_MS * 1000000ULL);
	assert_true(info_of(s.peer).heard_ns <= unit_now_ns());
	assert_int_equal(info_of(s.peer).epoch, 1);
	assert_int_equal(peer_state(s.peer), RGATE_PEER_UP);
	kill(pid, SIGSTOP);
	began = unit_now_ns();
	wait_for(peer_state(s.peer) != RGATE_PEER_UP);
	assert_true(unit_now_ns() - began > SILENT_MS * 500000ULL);
	assert_int_equal(info_of(s.peer).error, -ETIMEDOUT);
	kill(pid, SIGCONT);
	wait_for(peer_state(s.peer) == RGATE_PEER_UP);
	assert_int_equal(info_of(s.peer).epoch, 2);
	assert_int_equal(write(sock, "..", 1), 1);
	close(sock);
	unit_reap(pid, 0);
	solo_down(&s);
}

/* Who posts at once does not wait for a peer to say where its memory is: here there is none. */
static void at_once(void **state)
{
	const char *provider = getenv("RGATE_FABRIC_PROVIDER");
	struct rgate_remote at;
	struct rgate_sge sge;
	struct rgate_op op = { .kind = RGATE_OP_WRITE, .flags = RGATE_OP_AT_ONCE, .nsge = 1,
			       .sge = &sge };
	uint64_t ticket;
	struct solo s;
	pid_t pid;
	int sock, i, err = -EAGAIN, status, ended;

	(void)state;
	unit_not_for_tsan(UNIT_TSAN_CHILD);
	if (provider && strcmp(provider, "local"))
		unit_skip("of the local provider");
	solo_up(&s);
	sge = (struct rgate_sge){ s.buf->addr, 8, s.buf->lkey };
	pid = start(&s.c, s.peer, &sock, &at);
	op.remote = at.addr;
	kill(pid, SIGSTOP);
	/* It may answer until then. */
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	/* Two regions, of which one is asked for at a time */
	for (i = 0; i < 100 && err == -EAGAIN; i++) {
		op.rkey = at.rkey + 77 + (uint32_t)i % 2;
		err = rgate_peer_post(s.peer, &op, 1, &ticket);
	}
	/*
	 * On a busy machine it may be silent for so long that it is given up, or have given up this
	 * node before it stopped: what is posted then is not begun, or cancelled. It is never late.
	 */
	if (err && peer_state(s.peer) == RGATE_PEER_UP)
		assert_int_equal(err, -EAGAIN);
	kill(pid, SIGCONT);
	/* The peer answers, for the first one, and for the second one. */
	if (err == -EAGAIN) {
		wait_for((err = rgate_peer_post(s.peer, &op, 1, &ticket)) != -EAGAIN);
		assert_int_equal(err, 0);
		assert_int_equal(rgate_peer_finish(s.peer, ticket, MS), -EREMOTEIO);
	} else if (!err) {
		ended = rgate_peer_finish(s.peer, ticket, MS);
		/* Where operations come late the peer is asked after the post, which is taken. */
		if (getenv("RGATE_LOCAL_LATE"))
			assert_int_not_equal(ended, 0);
		else
			assert_true(ended == -ECANCELED || ended == -ECONNRESET);
	}
	assert_int_equal(rgate_peer_wait_up(s.peer, MS), 0);
	assert_int_equal(write(sock, "..", 1), 1);
	close(sock);
	unit_reap(pid, 0);
	solo_down(&s);
}

struct busy {
	struct rgate_peer *peer;
	struct rgate_op op[RGATE_POST_MAX];
	uint64_t until;
};

static void *keep_busy(void *arg)
{
	struct busy *b = arg;
	int err = 0;

	while ((!err || err == -EAGAIN) && unit_now_ns() < b->until)
		err = rgate_peer_post(b->peer, b->op, RGATE_POST_MAX, NULL);
	unit_require(!err || err == -EAGAIN);
	return NULL;
}

static void shell(const char *variable)
{
	if (getenv(variable))
		assert_int_equal(system(getenv(variable)), 0);
}

/*
 * Callers who hold the lock all the time are no reason to take a node for dead; nor are
 * bytes for longer than the timeout that are in line before its heartbeats.
 */
static void busy(void **state)
{
	pthread_t thread[2];
	struct rgate_sge s;
	struct busy b;
	unsigned int i;
	struct duo d;

	(void)state;
	duo_up(&d, SILENT_MS);
	shell("RGATE_FABRIC_SLOW");
	s = duo_sge(&d, 0, 0, DUO_BYTES);
	b.peer = d.peer[0];
	b.until = unit_now_ns() + unit_rounds_or(6, 3) * SILENT_MS / 2 * 1000000ULL;
	for (i = 0; i < RGATE_POST_MAX; i++)
		b.op[i] = (struct rgate_op){ .kind = RGATE_OP_WRITE, .nsge = 1, .sge = &s,
					     .remote = d.at[1].addr, .rkey = d.at[1].rkey };
	for (i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, keep_busy, &b), 0);
	for (i = 0; i < 2; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	for (i = 0; i < 2; i++) {
		assert_int_equal(peer_state(d.peer[i]), RGATE_PEER_UP);
		assert_int_equal(info_of(d.peer[i]).epoch, 1);
	}
	shell("RGATE_FABRIC_MEND");
	duo_down(&d);
}

static void not_there(void **state)
{
	struct rgate_node_opts o;
	struct rgate_node *node, *other;
	struct rgate_peer *peer, *again;
	struct cluster c;

	(void)state;
	cluster_make(&c, 2, 0);
	c.opts.key = c.keys[1];
	o = c.opts;
	assert_int_equal(rgate_node_create(&node, c.conf, 5, &o), -ENOENT);
	o.msg_depth = 3;
	assert_int_equal(rgate_node_create(&node, c.conf, 1, &o), -EINVAL);
	o = c.opts;
	o.spin_us = 1000001;
	assert_int_equal(rgate_node_create(&node, c.conf, 1, &o), -EINVAL);
	o = c.opts;
	o.flags = RGATE_NODE_NO_LISTEN << 1;
	assert_int_equal(rgate_node_create(&node, c.conf, 1, &o), -EINVAL);
	o.flags = 1U << 31 | RGATE_NODE_NO_LISTEN;
	assert_int_equal(rgate_node_create(&node, c.conf, 1, &o), -EINVAL);
	o = c.opts;
	o.key = NULL;
	assert_int_equal(rgate_node_create(&node, c.conf, 1, &o), -ENOENT);
	node = cluster_node(&c, 1);
	assert_int_equal(rgate_node_create(&other, c.conf, 1, &c.opts), -EADDRINUSE);
	assert_int_equal(rgate_peer_open(&peer, node, 7), -ENOENT);
	assert_int_equal(rgate_peer_open(&peer, node, 0), 0);
	assert_int_equal(rgate_peer_open(&again, node, 0), -EBUSY);
	assert_int_equal(rgate_peer_wait_up(peer, 300), -ETIMEDOUT);
	assert_true(info_of(peer).error);
	/* there, but not for us */
	other = cluster_node(&c, 0);
	assert_int_equal(rgate_peer_wait_up(peer, 300), -ETIMEDOUT);
	assert_int_equal(rgate_peer_open(&again, other, 1), 0);
	assert_int_equal(rgate_peer_wait_up(peer, MS), 0);
	rgate_peer_close(again);
	wait_for(peer_state(peer) != RGATE_PEER_UP);
	rgate_peer_close(peer);
	rgate_peer_close(NULL);
	assert_int_equal(node_ended(other), 0);
	assert_int_equal(node_ended(node), 0);
	rgate_node_destroy(NULL);
	cluster_free(&c);
}

/* Who is not let in tries again, after twice as long each time; a quarter less by chance */
static void backs_off(void **state)
{
	uint64_t before = 0, now, least = 15000000;
	struct rgate_prov_event ev;
	struct rgate_node *node;
	struct rgate_peer *peer;
	struct cluster c;
	struct end e;
	unsigned int i;

	(void)state;
	cluster_make(&c, 2, 0);
	end_open(&e, &c, 0, MS);
	node = cluster_node(&c, 1);
	assert_int_equal(rgate_peer_open(&peer, node, 0), 0);
	for (i = 0; i < 8; i++) {
		end_event(&e, RGATE_PROV_REQUEST, &ev);
		now = unit_now_ns();
		if (before) {
			assert_true(now - before >= least);
			least *= 2;
		}
		before = now;
		e.prov->reject(ev.conn, 0);
	}
	wait_for(info_of(peer).error == -ECONNREFUSED);
	rgate_peer_close(peer);
	assert_int_equal(node_ended(node), 0);
	end_close(&e);
	cluster_free(&c);
}

/* Every node with every other, all in this process */
static void eight(void **state)
{
	struct rgate_peer *peer[8][8];
	struct rgate_node *node[8];
	struct rgate_msg msg;
	struct cluster c;
	unsigned int i, k;
	char in[8];

	(void)state;
	cluster_make(&c, 8, 0);
	for (i = 0; i < 8; i++)
		node[i] = cluster_node(&c, i);
	for (i = 0; i < 8; i++)
		for (k = 0; k < 8; k++)
			assert_int_equal(rgate_peer_open(&peer[i][k], node[i], k), 0);
	for (i = 0; i < 8; i++) {
		for (k = 0; k < 8; k++) {
			char out[2] = { (char)('0' + i), (char)('0' + k) };

			assert_int_equal(rgate_peer_wait_up(peer[i][k], MS), 0);
			assert_int_equal(rgate_peer_send(peer[i][k], out, 2, MS), 0);
		}
	}
	for (i = 0; i < 8; i++) {
		for (k = 0; k < 8; k++) {
			assert_int_equal(rgate_peer_recv(peer[i][k], &msg, in, 8, MS), 0);
			assert_true(msg.len == 2 && in[0] == (char)('0' + k) &&
				    in[1] == (char)('0' + i));
		}
	}
	for (i = 0; i < 8; i++)
		for (k = 0; k < 8; k++)
			rgate_peer_close(peer[i][k]);
	for (i = 0; i < 8; i++)
		assert_int_equal(node_ended(node[i]), 0);
	cluster_free(&c);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(refused),
	cmocka_unit_test(killed),
	cmocka_unit_test(stopped),
	cmocka_unit_test(at_once),
	cmocka_unit_test(busy),
	cmocka_unit_test(not_there),
	cmocka_unit_test(backs_off),
	cmocka_unit_test(eight),
};

UNIT_MAIN(tests)
