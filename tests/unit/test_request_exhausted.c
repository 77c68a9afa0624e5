// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * What engines, seats and sessions ask the system for is refused, each call in turn: the error
 * comes through, nothing is left behind, also not of the user's limits, and the next try works.
 */
#include "req_bed.h"
#include "refuse.h"

#include <stdio.h>
#include <sys/un.h>

#include <ringgate/memory.h>

#include "memory_service.h"

static __thread bool mine;	/* calls of this thread fail */

static bool refuse_mine(void)
{
	return mine;
}

/* ---- What is made: each returns 0 or -errno, and undoes what it did ---- */

static struct rgate_engine *kept;	/* lives as long as the program; one seat at once */
static char path[64];

static int make_engine(void)
{
	struct rgate_engine *e;
	int err = rgate_engine_create(&e, NULL);

	if (!err)
		rgate_engine_destroy(e);
	return err;
}

static int make_seat(void)
{
	const uint64_t page = (uint64_t)getpagesize();
	struct rgate_seat_opts o = RGATE_OPTS(rgate_seat_opts, .uid = 1, .requests = 64,
					      .completions = 64, .memory = page);
	struct rgate_limits lim;
	struct rgate_welcome w;
	struct rgate_seat *seat;
	int err, fds[RGATE_FDS];
	unsigned int i;

	/* enough for one */
	rgate_limits_init(&lim);
	lim.sessions = 1;
	lim.memory = page + rgate_area_len(64, 64);
	o.limits = &lim;
	err = rgate_seat_add(kept, &o, &seat, &w, fds);
	if (err)
		return err;
	for (i = 0; i < RGATE_FDS; i++)
		close(fds[i]);
	mine = false;
	rgate_seat_remove(seat);
	bed_run(kept);
	return 0;
}

static int make_session(uint32_t where)
{
	const struct rgate_session_opts o = RGATE_OPTS(rgate_session_opts, .where = where,
						       .path = path, .memory = 5);
	struct rgate_session *s;
	int err = rgate_session_open(&s, &o);

	if (!err)
		rgate_session_close(s);
	return err;
}

static int make_in_process(void)
{
	return make_session(RGATE_SESSION_PROCESS);
}

static int make_by_daemon(void)
{
	return make_session(RGATE_SESSION_DAEMON);
}

static struct rgate_engine *daemons;

/* Who connects gets a seat, until it goes; one at once. The listener is shut down at last. */
static void *serve(void *arg)
{
	const int listener = *(int *)arg;
	int sock, fds[RGATE_FDS];

	while ((sock = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		struct rgate_seat_opts o = RGATE_OPTS(rgate_seat_opts, .uid = 1);
		struct rgate_hello hello;
		struct rgate_welcome w;
		struct rgate_seat *seat;
		unsigned int n;

		if (rgate_wire_recv(sock, &hello, sizeof(hello), fds, &n, 0) == sizeof(hello)) {
			o.requests = hello.requests;
			o.completions = hello.completions;
			o.memory = hello.memory;
			unit_require(!rgate_seat_add(daemons, &o, &seat, &w, fds));
			unit_require(!rgate_wire_send(sock, &w, sizeof(w), fds, RGATE_FDS, 0));
			for (n = 0; n < RGATE_FDS; n++)
				close(fds[n]);
			(void)!read(sock, &hello, 1);	/* its end */
			rgate_seat_remove(seat);
		}
		close(sock);
	}
	return NULL;
}

static const struct {
	const char *name;
	int (*make)(void);
	unsigned int least;	/* so many calls can fail */
} makers[] = {
	{ "engine", make_engine, 6 },
	{ "seat", make_seat, 8 },
	{ "in this process", make_in_process, 16 },
	{ "by a daemon", make_by_daemon, 5 },
};

/* Others than this thread open and close, too: what they have is gone in a while. */
static bool settles(unsigned int (*count)(const char *), const char *what, unsigned int n)
{
	const uint64_t end = unit_now_ns() + 20000000000ULL * unit_patience();

	while (count(what) > n && unit_now_ns() < end)
		usleep(1000);
	return count(what) <= n;
}

static void each_call(unsigned int i)
{
	unsigned int fds, threads, n, failed = 0;
	int err;

	fds = unit_entries("/proc/self/fd");
	threads = unit_entries("/proc/self/task");
	for (n = 1;; n++) {
		refuse(n);
		mine = true;
		err = makers[i].make();
		mine = false;
		if (!refusal->injected)
			break;
		if (err != -refusal->injected)
			fail_msg("%s: %d of %s came out as %d", makers[i].name, refusal->injected,
				 refusal->where, err);
		failed++;
		assert_true(settles(unit_entries, "/proc/self/fd", fds));
		assert_true(settles(unit_entries, "/proc/self/task", threads));
		assert_true(settles(unit_mappings, "memfd:ringgate", 0));
	}
	assert_int_equal(err, 0);
	print_message("# %s: %u of %u calls\n", makers[i].name, failed, n - 1);
	assert_true(failed >= makers[i].least);
}

static void making(void **state)
{
	unsigned int i;

	(void)state;
	kept = bed_engine();
	for (i = 0; i < 3; i++)
		each_call(i);
	rgate_engine_destroy(kept);
}

static void asking(void **state)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	pthread_t server;
	int listener;

	(void)state;
	snprintf(path, sizeof(path), "/tmp/ringgate-test-%d", (int)getpid());
	strcpy(sun.sun_path, path);
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&sun, sizeof(sun)), 0);
	assert_int_equal(listen(listener, 8), 0);
	assert_int_equal(rgate_engine_create(&daemons, NULL), 0);
	assert_int_equal(pthread_create(&server, NULL, serve, &listener), 0);
	each_call(3);
	shutdown(listener, SHUT_RDWR);
	pthread_join(server, NULL);
	rgate_engine_destroy(daemons);
	close(listener);
	unlink(path);
}

/* ---- What runs ---- */

#define WAITING		70	/* more than the tables of cookies and deadlines have at first */
#define OPENED		10	/* likewise of handles */

/*
 * Requests of all kinds while one call of the engine's fails. Each ends once: with what it
 * should, or, one of them and what is linked to it, with -ENOMEM and -ECANCELED.
 */
static unsigned int run_once(struct rgate_engine *e, unsigned int nth)
{
	const struct rgate_seat_opts o = RGATE_OPTS(rgate_seat_opts, .uid = 1, .requests = 128,
						    .completions = 128);
	struct rgate_engine_stats st = { .sz = sizeof(st) };
	int ended[WAITING + OPENED + 2];
	struct rgate_completion done;
	unsigned int i, failed = 0, opened = 0;
	struct client c;

	assert_int_equal(client_open(&c, e, &o), 0);
	bed_run(e);
	for (i = 0; i < ARRAY_LEN(ended); i++) {
		struct rgate_request q = { .op = RGATE_REQ_NOP, .cookie = i };

		if (i < WAITING) {
			q.op = LATE_WAIT;
			q.deadline_us = 4000000000U;
			/* one has room for others besides */
			if (!i)
				q = (struct rgate_request){ .op = LATE_MANY, .a1 = 8,
							    .flags = RGATE_REQ_MULTI };
		} else if (i < WAITING + OPENED) {
			q.op = LATE_OPEN;
		} else if (i == WAITING + OPENED) {
			q.flags = RGATE_REQ_LINK;
		}
		client_submit(&c, q);
	}
	for (i = 0; i < ARRAY_LEN(ended); i++)
		ended[i] = 1;
	refuse(nth);
	mine = true;
	bed_run(e);
	mine = false;
	while (late.n)
		late_end(rgate_req_get(late.held[0])->cookie, 0, 0);
	bed_run(e);
	while (client_poll(&c, &done)) {
		assert_true(done.cookie < ARRAY_LEN(ended));
		assert_int_equal(ended[done.cookie], 1);
		ended[done.cookie] = done.result;
		bed_run(e);
	}
	for (i = 0; i < ARRAY_LEN(ended); i++) {
		assert_in_range(-ended[i], 0, ECANCELED);
		failed += ended[i] == -ENOMEM;
		opened += i >= WAITING && i < WAITING + OPENED && !ended[i];
	}
	i = ARRAY_LEN(ended) - 2;
	assert_int_equal(ended[i + 1], ended[i] == -ENOMEM ? -ECANCELED : 0);
	assert_int_equal(rgate_engine_stats(e, &st), 0);
	assert_int_equal(st.under_way, 0);
	assert_int_equal(st.handles, opened);
	late.dropped = 0;
	rgate_seat_remove(c.seat);
	bed_run(e);
	assert_int_equal(late.dropped, opened);
	client_close(&c);
	return failed;
}

static void running(void **state)
{
	unsigned int n, failed, total = 0;
	struct rgate_engine *e;

	(void)state;
	for (n = 1;; n++) {
		e = bed_engine();
		failed = run_once(e, n);
		rgate_engine_destroy(e);
		if (!refusal->injected)
			break;
		total += failed;
	}
	print_message("# %u requests failed at %u calls\n", total, n - 1);
	assert_int_equal(failed, 0);
	assert_true(total >= 4);
}

/* A request of the memory service; what each call of the engine's thread that fails makes of it */
static int export_once(struct rgate_engine *e, unsigned int nth)
{
	const uint32_t page = (uint32_t)getpagesize();
	const struct rgate_seat_opts o = RGATE_OPTS(rgate_seat_opts, .uid = 1, .requests = 64,
						    .completions = 64, .memory = 2 * page);
	struct rgate_completion done;
	struct client c;

	assert_int_equal(client_open(&c, e, &o), 0);
	bed_run(e);
	c.mem[0] = 'a';
	client_submit(&c, (struct rgate_request){
		.op = RGATE_REQ_MEMORY_EXPORT, .off = page, .len = page,
		.a1 = RGATE_MEMORY_EXPORT_A1(RGATE_MEMORY_RIGHTS, 1) });
	refuse(nth);
	mine = true;
	bed_run(e);
	mine = false;
	assert_true(client_poll(&c, &done));
	rgate_seat_remove(c.seat);
	bed_run(e);
	client_close(&c);
	return done.result;
}

static void exporting(void **state)
{
	struct memory_service *sv;
	struct rgate_engine *e;
	unsigned int n;
	int err;

	(void)state;
	for (n = 1;; n++) {
		e = bed_engine();
		assert_int_equal(memory_service_create(&sv, NULL), 0);
		assert_int_equal(memory_service_add(sv, e), 0);
		err = export_once(e, n);
		assert_int_equal(err, -refusal->injected);
		/* and the name is free again */
		assert_int_equal(export_once(e, 0), 0);
		rgate_engine_destroy(e);
		memory_service_destroy(sv);
		if (!err)
			break;
	}
	print_message("# memory: %u calls\n", n - 1);
	assert_true(n > 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(making),
		cmocka_unit_test(asking),
		cmocka_unit_test(running),
		cmocka_unit_test(exporting),
	};

	refuse_setup();
	return unit_run(__FILE__, tests, ARRAY_LEN(tests));
}
