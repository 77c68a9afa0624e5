// SPDX-License-Identifier: MIT OR GPL-2.0
/* rgate_session_*: in this process, with a daemon of the test's own, and with one that lies. */
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "area.h"
#include "engine.h"
#include "sleepy.h"

#define PATIENCE_MS	(10000 * (int)unit_patience())

/* ---- A daemon: who connects gets a seat, until the connection ends ---- */

#define PEERS	16

struct answer {		/* what it says instead of the truth */
	bool instead;
	struct rgate_welcome w;
	size_t len;
	unsigned int nfds;	/* of its memory file */
};

static struct {
	struct rgate_engine *engine;
	pthread_t thread;
	int listener, stop[2];
	char path[64];
	pthread_mutex_t lock;		/* of answer; a socket orders nothing for ThreadSanitizer */
	struct answer answer;
	struct rgate_hello heard;	/* the last one */
	uint32_t seats;			/* atomic */
} server = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void greet(int sock, struct rgate_seat **seat)
{
	struct rgate_seat_opts o = RGATE_OPTS(rgate_seat_opts, .uid = getuid());
	struct rgate_welcome w;
	int fds[RGATE_FDS], none[RGATE_FDS];
	unsigned int n;

	unit_require(rgate_wire_recv(sock, &server.heard, sizeof(server.heard), none, &n, 0) ==
		     sizeof(server.heard));
	o.requests = server.heard.requests;
	o.completions = server.heard.completions;
	o.memory = server.heard.memory;
	unit_require(!rgate_seat_add(server.engine, &o, seat, &w, fds));
	unit_require(!rgate_wire_send(sock, &w, sizeof(w), fds, w.memory ? 4 : 3, 0));
	for (n = 0; n < (w.memory ? 4 : 3); n++)
		close(fds[n]);
}

static struct answer answer(void)
{
	struct answer a;

	pthread_mutex_lock(&server.lock);
	a = server.answer;
	pthread_mutex_unlock(&server.lock);
	return a;
}

static void set_answer(const struct answer *a)
{
	pthread_mutex_lock(&server.lock);
	server.answer = *a;
	pthread_mutex_unlock(&server.lock);
}

static void lie(int sock, const struct answer *a)
{
	struct rgate_hello hello;
	int fds[RGATE_FDS], none[RGATE_FDS];
	unsigned int n;

	unit_require(rgate_wire_recv(sock, &hello, sizeof(hello), none, &n, 0) > 0);
	for (n = 0; n < a->nfds; n++)
		fds[n] = rgate_area_memfd("test", 4096);
	rgate_wire_send(sock, &a->w, a->len, fds, n, 0);
	while (n)
		close(fds[--n]);
}

static void *serve(void *arg)
{
	struct { int sock; struct rgate_seat *seat; } peer[PEERS];
	struct epoll_event ev = { .events = EPOLLIN };
	int ep = epoll_create1(0), n, sock;
	struct answer a;

	(void)arg;
	for (n = 0; n < PEERS; n++)
		peer[n].sock = -1;
	ev.data.u32 = PEERS;
	epoll_ctl(ep, EPOLL_CTL_ADD, server.listener, &ev);
	ev.data.u32 = PEERS + 1;
	epoll_ctl(ep, EPOLL_CTL_ADD, server.stop[0], &ev);
	for (;;) {
		if (epoll_wait(ep, &ev, 1, -1) < 1)
			continue;
		if (ev.data.u32 == PEERS + 1)
			break;
		if (ev.data.u32 < PEERS) {
			close(peer[ev.data.u32].sock);
			peer[ev.data.u32].sock = -1;
			rgate_seat_remove(peer[ev.data.u32].seat);
			__atomic_sub_fetch(&server.seats, 1, __ATOMIC_RELEASE);
			continue;
		}
		sock = accept(server.listener, NULL, NULL);
		a = answer();
		if (a.instead) {
			lie(sock, &a);
			close(sock);
			continue;
		}
		for (n = 0; peer[n].sock >= 0; n++)
			unit_require(n + 1 < PEERS);
		peer[n].sock = sock;
		__atomic_add_fetch(&server.seats, 1, __ATOMIC_RELEASE);
		greet(sock, &peer[n].seat);
		ev = (struct epoll_event){ .events = EPOLLRDHUP, .data.u32 = (uint32_t)n };
		epoll_ctl(ep, EPOLL_CTL_ADD, sock, &ev);
	}
	for (n = 0; n < PEERS; n++)
		if (peer[n].sock >= 0)
			close(peer[n].sock);
	close(ep);
	return NULL;
}

static void start_daemon(void)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	char dir[] = "/tmp/ringgate-test-XXXXXX";

	assert_non_null(mkdtemp(dir));
	snprintf(server.path, sizeof(server.path), "%s/s", dir);
	strcpy(sun.sun_path, server.path);
	server.listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(server.listener, (struct sockaddr *)&sun, sizeof(sun)), 0);
	assert_int_equal(listen(server.listener, 8), 0);
	assert_int_equal(pipe(server.stop), 0);
	assert_int_equal(rgate_engine_create(&server.engine, NULL), 0);
	assert_int_equal(rgate_engine_add(server.engine, &sleepy_service, NULL), 0);
	server.seats = 0;
	set_answer(&(const struct answer){ .instead = false });
	assert_int_equal(pthread_create(&server.thread, NULL, serve, NULL), 0);
}

/* As if it was killed */
static void stop_daemon(void)
{
	if (!server.engine)
		return;
	assert_int_equal(write(server.stop[1], "x", 1), 1);
	pthread_join(server.thread, NULL);
	rgate_engine_destroy(server.engine);
	server.engine = NULL;
	close(server.listener);
	close(server.stop[0]);
	close(server.stop[1]);
	unlink(server.path);
	*strrchr(server.path, '/') = '\0';
	rmdir(server.path);
}

static int setup(void **state)
{
	(void)state;
	sleepy_start();
	start_daemon();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	stop_daemon();
	sleepy_stop();
	return 0;
}

/* ---- Helpers of the tests ---- */

static struct rgate_session *opened(const struct rgate_session_opts *o)
{
	struct rgate_session *s;

	assert_int_equal(rgate_session_open(&s, o), 0);
	return s;
}

static struct rgate_session_opts in_process(void)
{
	return RGATE_OPTS(rgate_session_opts, .where = RGATE_SESSION_PROCESS,
			  .spin_us = RGATE_SPIN_NONE);
}

static struct rgate_session_opts by_daemon(void)
{
	return RGATE_OPTS(rgate_session_opts, .where = RGATE_SESSION_DAEMON, .path = server.path,
			  .spin_us = RGATE_SPIN_NONE);
}

static struct rgate_completion next(struct rgate_session *s)
{
	struct rgate_completion c = { 0 };
	int n;

	while ((n = rgate_session_poll(s, &c, 1)) == 0)
		assert_int_equal(rgate_session_wait(s, PATIENCE_MS), 1);
	assert_int_equal(n, 1);
	return c;
}

static struct rgate_session_info info_of(const struct rgate_session *s)
{
	struct rgate_session_info info = { .sz = sizeof(info) };

	assert_int_equal(rgate_session_info(s, &info), 0);
	return info;
}

static void submit(struct rgate_session *s, const struct rgate_request *q)
{
	int err;

	/* until the engine has taken what is there */
	while ((err = rgate_session_submit(s, q)) == -EAGAIN)
		sched_yield();
	assert_int_equal(err, 0);
}

/* ---- Tests ---- */

/* Batches of any size, several laps, each request answered once, in any order */
static void stream(struct rgate_session *s, uint16_t op, uint64_t total)
{
	struct rgate_request q[40];
	struct rgate_completion done[16];
	uint64_t sent = 0, got = 0, rnd = 5, i;
	unsigned char *seen = calloc(total, 1);
	int n;

	assert_non_null(seen);
	while (got < total) {
		unsigned int want = 1 + (unsigned int)(unit_random(&rnd) % ARRAY_LEN(q));

		for (i = 0; i < want; i++)
			q[i] = (struct rgate_request){ .op = op, .cookie = sent + i,
						       .a0 = (sent + i) * 3 };
		if (sent + want > total)
			want = (unsigned int)(total - sent);
		n = want ? rgate_session_submit_many(s, q, want) : 0;
		if (n != -EAGAIN) {
			assert_in_range(n, 0, want);
			sent += (unsigned int)n;
		}
		n = rgate_session_poll(s, done, ARRAY_LEN(done));
		assert_true(n >= 0);
		if (!n && got < sent)
			assert_int_equal(rgate_session_wait(s, PATIENCE_MS), 1);
		for (i = 0; i < (unsigned int)n; i++) {
			assert_int_equal(done[i].result, 0);
			assert_true(done[i].cookie < total && !seen[done[i].cookie]++);
			assert_int_equal(done[i].value, done[i].cookie * 3);
		}
		got += (unsigned int)n;
	}
	assert_int_equal(rgate_session_poll(s, done, 1), 0);
	free(seen);
}

static void nops(void **state)
{
	struct rgate_session_opts o = in_process();
	struct rgate_session *s, *t;

	(void)state;
	s = opened(&o);
	o.requests = 64;
	o.completions = 128;
	t = opened(&o);
	assert_int_equal(info_of(s).requests, RGATE_REQ_PLACES_DEFAULT);
	assert_int_equal(info_of(t).completions, 128);
	assert_int_equal(info_of(t).where, RGATE_SESSION_PROCESS);
	assert_int_equal(info_of(t).version, RGATE_REQ_VERSION);
	stream(s, RGATE_REQ_NOP, unit_rounds(20000));
	stream(t, RGATE_REQ_NOP, unit_rounds(20000));
	assert_int_equal(info_of(t).completed, unit_rounds(20000));
	assert_int_equal(info_of(t).submitted, unit_rounds(20000));
	rgate_session_close(s);
	stream(t, RGATE_REQ_NOP, 100);
	rgate_session_close(t);
	rgate_session_close(NULL);
}

static void daemons(void **state)
{
	struct rgate_session_opts o = by_daemon();
	struct rgate_session *s;
	size_t len;

	(void)state;
	o.requests = 100;
	o.memory = 5;
	s = opened(&o);
	assert_int_equal(server.heard.requests, 128);
	assert_int_equal(server.heard.completions, 128);
	assert_int_equal(info_of(s).where, RGATE_SESSION_DAEMON);
	assert_non_null(rgate_session_memory(s, &len));
	assert_int_equal(len, getpagesize());
	stream(s, RGATE_REQ_NOP, unit_rounds(10000));
	stream(s, SLEEPY_ECHO, unit_rounds(10000));
	rgate_session_close(s);
}

static void either(void **state)
{
	struct rgate_session_opts o = by_daemon();
	struct rgate_session *s;

	(void)state;
	o.where = RGATE_SESSION_EITHER;
	s = opened(&o);
	assert_int_equal(info_of(s).where, RGATE_SESSION_DAEMON);
	rgate_session_close(s);
	o.path = "/nowhere/at/all";
	s = opened(&o);
	assert_int_equal(info_of(s).where, RGATE_SESSION_PROCESS);
	rgate_session_close(s);
	o.where = RGATE_SESSION_DAEMON;
	assert_int_equal(rgate_session_open(&s, &o), -ENOENT);
}

static void options(void **state)
{
	struct rgate_session_opts o = in_process();
	struct rgate_session *s;
	char path[200];

	(void)state;
	o.where = 3;
	assert_int_equal(rgate_session_open(&s, &o), -EINVAL);
	o = in_process();
	o.requests = RGATE_REQ_PLACES_MAX + 1;
	assert_int_equal(rgate_session_open(&s, &o), -EINVAL);
	o = in_process();
	o.completions = RGATE_REQ_PLACES_MAX + 1;
	assert_int_equal(rgate_session_open(&s, &o), -EINVAL);
	o = in_process();
	o.reserved = 1;
	assert_int_equal(rgate_session_open(&s, &o), -EINVAL);
	o = in_process();
	o.memory = UINT64_MAX;
	assert_int_equal(rgate_session_open(&s, &o), -EINVAL);
	o = in_process();
	o.spin_us = RGATE_SPIN_MOST + 1;
	assert_int_equal(rgate_session_open(&s, &o), -EINVAL);
	o = in_process();
	o.sz = 1;
	assert_int_equal(rgate_session_open(&s, &o), -EINVAL);
	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	o = by_daemon();
	o.path = path;
	assert_int_equal(rgate_session_open(&s, &o), -ENAMETOOLONG);
	o = in_process();
	s = opened(&o);
	assert_int_equal(rgate_session_submit_many(s, NULL, 0), -EINVAL);
	rgate_session_close(s);
}

/* What a request names is what the client wrote, and the other way round. */
static void said_to(void *ctx, enum rgate_log_level level, const char *msg)
{
	(void)level;
	snprintf(ctx, 64, "%s", msg);
}

static void memory(void **state)
{
	const struct rgate_request q = { .op = RGATE_REQ_LOG_WRITE, .off = 100, .len = 5 };
	struct rgate_session_opts o = in_process();
	struct rgate_session *s;
	char line[64] = "", all[64];
	unsigned char *p;
	size_t len;

	(void)state;
	o.memory = 4097;
	rgate_log_set(said_to, line);
	s = opened(&o);
	p = rgate_session_memory(s, &len);
	assert_true(len >= 4097 && len % (size_t)getpagesize() == 0);
	memcpy(p + 100, "hello", 5);
	submit(s, &q);
	assert_int_equal(next(s).result, 0);
	rgate_session_close(s);
	rgate_log_set(NULL, NULL);
	snprintf(all, sizeof(all), "user %u: hello", geteuid());
	assert_string_equal(line, all);
}

static void cancel(void **state)
{
	struct rgate_request q = { .op = SLEEPY_HOLD, .cookie = 1 };
	struct rgate_session_opts o = by_daemon();
	struct rgate_session *s = opened(&o);
	struct rgate_completion c[2];

	(void)state;
	submit(s, &q);
	assert_int_equal(rgate_session_cancel(s, 1, 2), 0);
	c[0] = next(s);
	c[1] = next(s);
	/* in either order */
	assert_int_equal(c[0].cookie + c[1].cookie, 3);
	assert_int_equal(c[c[0].cookie == 1 ? 0 : 1].result, -ECANCELED);
	assert_int_equal(c[c[0].cookie == 1 ? 1 : 0].result, 0);
	q.deadline_us = 1000;
	submit(s, &q);
	assert_int_equal(next(s).result, -ETIMEDOUT);
	rgate_session_close(s);
}

/* By the descriptor, armed for each sleep */
static void by_epoll(void **state)
{
	const struct rgate_request q = { .op = SLEEPY_ECHO };
	struct rgate_session_opts o = by_daemon();
	struct rgate_session *s = opened(&o);
	struct epoll_event ev = { .events = EPOLLIN };
	struct rgate_completion c;
	int ep = epoll_create1(0), armed;
	unsigned int i;

	(void)state;
	assert_int_equal(epoll_ctl(ep, EPOLL_CTL_ADD, rgate_session_fd(s), &ev), 0);
	assert_int_equal(rgate_session_wait(s, 0), 0);
	assert_int_equal(rgate_session_wait(s, 1), 0);
	for (i = 0; i < unit_rounds(500); i++) {
		submit(s, &q);
		armed = rgate_session_arm(s);
		assert_in_range(armed, 0, 1);
		if (!armed)
			assert_int_equal(epoll_wait(ep, &ev, 1, PATIENCE_MS), 1);
		assert_int_equal(rgate_session_poll(s, &c, 1), 1);
	}
	/* nothing is under way: an edge of before is gone with the next arm */
	assert_int_equal(rgate_session_arm(s), 0);
	assert_int_equal(epoll_wait(ep, &ev, 1, 0), 0);
	rgate_session_disarm(s);
	close(ep);
	rgate_session_close(s);
}

static pthread_t sleeper;
static uint32_t awake;		/* atomic */

static void on_signal(int sig)
{
	(void)sig;
}

static void *interrupt(void *arg)
{
	const struct rgate_session *s = arg;

	while (!__atomic_load_n(&awake, __ATOMIC_ACQUIRE)) {
		if (info_of(s).sleeps)
			pthread_kill(sleeper, SIGUSR1);
		usleep(1000);
	}
	return NULL;
}

/* What is there is there, whatever the timeout; and a signal ends the wait. */
static void waits_end(void **state)
{
	const struct sigaction act = { .sa_handler = on_signal };
	const struct rgate_request q = { .op = RGATE_REQ_NOP };
	struct rgate_session_opts o = by_daemon();
	struct rgate_session *s = opened(&o);
	struct sigaction was;
	pthread_t t;

	(void)state;
	assert_int_equal(sigaction(SIGUSR1, &act, &was), 0);
	sleeper = pthread_self();
	__atomic_store_n(&awake, 0, __ATOMIC_RELAXED);
	assert_int_equal(pthread_create(&t, NULL, interrupt, s), 0);
	assert_int_equal(rgate_session_wait(s, PATIENCE_MS), -EINTR);
	__atomic_store_n(&awake, 1, __ATOMIC_RELEASE);
	pthread_join(t, NULL);
	sigaction(SIGUSR1, &was, NULL);
	submit(s, &q);
	assert_int_equal(rgate_session_wait(s, PATIENCE_MS), 1);
	assert_int_equal(rgate_session_wait(s, 0), 1);
	assert_int_equal(rgate_session_wait(s, -1), 1);
	(void)next(s);
	assert_int_equal(rgate_session_wait(s, 0), 0);
	rgate_session_close(s);
}

/* What one thread submits another takes. */
static void *taker(void *arg)
{
	struct rgate_completion c[8];
	uint64_t got = 0, total = unit_rounds(20000);
	int n;

	while (got < total) {
		n = rgate_session_poll(arg, c, ARRAY_LEN(c));
		unit_require(n >= 0);
		if (!n)
			unit_require(rgate_session_wait(arg, PATIENCE_MS) == 1);
		got += (unsigned int)n;
	}
	return NULL;
}

static void two_threads(void **state)
{
	const struct rgate_request q = { .op = SLEEPY_ECHO };
	struct rgate_session_opts o = by_daemon();
	struct rgate_session *s = opened(&o);
	uint64_t i, total = unit_rounds(20000);
	pthread_t t;

	(void)state;
	assert_int_equal(pthread_create(&t, NULL, taker, s), 0);
	for (i = 0; i < total; i++)
		submit(s, &q);
	pthread_join(t, NULL);
	rgate_session_close(s);
}

/* The daemon's engine has nothing of its clients any more. */
static bool daemon_empty(void)
{
	struct rgate_engine_stats st = { .sz = sizeof(st) };

	assert_int_equal(rgate_engine_stats(server.engine, &st), 0);
	return !st.seats && !__atomic_load_n(&server.seats, __ATOMIC_ACQUIRE);
}

/* Closed while requests are with the service's threads */
static void close_early(void **state)
{
	struct rgate_request q = { .op = SLEEPY_ECHO };
	struct rgate_session_opts o = by_daemon();
	unsigned int i, k;

	(void)state;
	for (k = 0; k < unit_rounds(100); k++) {
		struct rgate_session *s = opened(&o);

		for (i = 0; i < 100; i++) {
			q.op = i % 3 ? SLEEPY_ECHO : SLEEPY_HOLD;
			q.cookie = i;
			submit(s, &q);
		}
		rgate_session_close(s);
	}
	for (i = 0; i < 1000U * unit_patience() && !daemon_empty(); i++)
		usleep(10000);
	assert_true(daemon_empty());
}

/* The daemon goes away: who waits is told, and what was done is still to be had. */
static void *waits(void *arg)
{
	return (void *)(intptr_t)rgate_session_wait(arg, PATIENCE_MS);
}

static void daemon_gone(void **state)
{
	const struct rgate_request q = { .op = SLEEPY_HOLD };
	struct rgate_session_opts o = by_daemon();
	struct rgate_session *s = opened(&o), *busy = opened(&o), *full = opened(&o);
	struct rgate_completion c;
	struct epoll_event ev;
	unsigned int i;
	pthread_t t;
	void *err;
	int n = 0;

	(void)state;
	submit(s, &q);
	submit(full, &(const struct rgate_request){ .op = RGATE_REQ_NOP, .cookie = 5 });
	assert_int_equal(rgate_session_wait(full, PATIENCE_MS), 1);
	assert_int_equal(pthread_create(&t, NULL, waits, s), 0);
	stop_daemon();
	pthread_join(t, &err);
	assert_int_equal((intptr_t)err, -EPIPE);
	assert_int_equal(rgate_session_poll(s, &c, 1), -EPIPE);
	assert_int_equal(rgate_session_submit(s, &q), -EPIPE);
	assert_int_equal(rgate_session_arm(s), -EPIPE);
	/* also who only polls */
	for (i = 0; i < 100000 && !n; i++)
		n = rgate_session_poll(busy, &c, 1);
	assert_int_equal(n, -EPIPE);
	assert_int_equal(epoll_wait(rgate_session_fd(busy), &ev, 1, 0), 1);
	/* and who has something to take takes it */
	assert_int_equal(rgate_session_wait(full, 0), 1);
	assert_int_equal(next(full).cookie, 5);
	assert_int_equal(rgate_session_wait(full, 0), -EPIPE);
	rgate_session_close(s);
	rgate_session_close(busy);
	rgate_session_close(full);
}

static void liars(void **state)
{
	const struct rgate_welcome good = {
		.magic = RGATE_WELCOME_MAGIC, .version = RGATE_REQ_VERSION,
		.version_min = RGATE_REQ_VERSION, .area_len = 12288, .requests = 64,
		.completions = 64,
	};
	const struct { struct rgate_welcome w; size_t len; unsigned int nfds; int err; } lies[] = {
		{ good, 40, 3, -EPROTO },
		{ good, sizeof(good), 2, -EPROTO },
		{ good, sizeof(good), 4, -EPROTO },
		{ good, sizeof(good), 3, -EPROTO },	/* no such files */
		{ { .magic = 1 }, sizeof(good), 3, -EPROTO },
		{ { .magic = RGATE_WELCOME_MAGIC, .error = 5 }, sizeof(good), 0, -EPROTO },
		{ { .magic = RGATE_WELCOME_MAGIC, .error = INT32_MIN }, sizeof(good), 0, -EPROTO },
		{ { .magic = RGATE_WELCOME_MAGIC, .error = -EACCES }, sizeof(good), 0, -EACCES },
		{ { .magic = RGATE_WELCOME_MAGIC, .error = -EDQUOT }, sizeof(good), 2, -EDQUOT },
		{ { .magic = RGATE_WELCOME_MAGIC, .error = -EPROTONOSUPPORT, .version = 9,
		    .version_min = 8 }, sizeof(good), 0, -EPROTONOSUPPORT },
		{ { .magic = RGATE_WELCOME_MAGIC, .version = 2 }, sizeof(good), 3,
		  -EPROTONOSUPPORT },
	};
	struct rgate_session_opts o = by_daemon();
	struct rgate_session *s;
	unsigned int fds, i;

	(void)state;
	set_answer(&(const struct answer){ .instead = true, .len = 1 });
	/* answered, so the daemon has all of its own descriptors */
	assert_int_equal(rgate_session_open(&s, &o), -EPROTO);
	fds = unit_entries("/proc/self/fd");
	for (i = 0; i < ARRAY_LEN(lies); i++) {
		set_answer(&(const struct answer){ true, lies[i].w, lies[i].len, lies[i].nfds });
		assert_int_equal(rgate_session_open(&s, &o), lies[i].err);
	}
	/* the daemon closes its end by and by */
	for (i = 0; i < 1000U * unit_patience() && unit_entries("/proc/self/fd") > fds; i++)
		usleep(10000);
	assert_true(unit_entries("/proc/self/fd") <= fds);
}

/* One that says nothing */
static void no_answer(void **state)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	struct rgate_session_opts o;
	struct rgate_session *s;
	int sock;

	(void)state;
	stop_daemon();
	snprintf(sun.sun_path, sizeof(sun.sun_path), "%.80s.mute", server.path);
	sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(sock, (struct sockaddr *)&sun, sizeof(sun)), 0);
	assert_int_equal(listen(sock, 8), 0);
	o = RGATE_OPTS(rgate_session_opts, .where = RGATE_SESSION_DAEMON, .path = sun.sun_path,
		       .timeout_ms = 20);
	assert_int_equal(rgate_session_open(&s, &o), -ETIMEDOUT);
	close(sock);
	assert_int_equal(rgate_session_open(&s, &o), -ECONNREFUSED);
	unlink(sun.sun_path);
}

/* A child has no session; the parent's goes on. */
static int in_child(int sock, void *arg)
{
	struct rgate_session *const *both = arg, *s = both[0], *d = both[1];
	const struct rgate_request q = { .op = RGATE_REQ_NOP };
	struct rgate_session_opts o = in_process();
	struct rgate_completion c;

	(void)sock;
	unit_require(rgate_session_submit(s, &q) == -EOWNERDEAD);
	unit_require(rgate_session_poll(s, &c, 1) == -EOWNERDEAD);
	unit_require(rgate_session_wait(s, -1) == -EOWNERDEAD);
	unit_require(rgate_session_arm(d) == -EOWNERDEAD);
	unit_require(rgate_session_cancel(d, 1, 2) == -EOWNERDEAD);
	rgate_session_disarm(d);
	rgate_session_close(s);
	rgate_session_close(d);
	/* one of its own */
	if (!unit_tsan()) {
		unit_require(!rgate_session_open(&s, &o));
		unit_require(!rgate_session_submit(s, &q));
		unit_require(rgate_session_wait(s, PATIENCE_MS) == 1);
		rgate_session_close(s);
	}
	return 0;
}

static void forked(void **state)
{
	struct rgate_session_opts o = in_process(), d = by_daemon();
	struct rgate_session *both[2];
	int sock;

	(void)state;
	o.memory = d.memory = 4096;
	both[0] = opened(&o);
	both[1] = opened(&d);
	unit_reap(unit_fork(in_child, both, &sock), 0);
	close(sock);
	stream(both[0], RGATE_REQ_NOP, 1000);
	stream(both[1], RGATE_REQ_NOP, 1000);
	rgate_session_close(both[0]);
	rgate_session_close(both[1]);
}

/* Nothing stays behind: descriptors, mappings, threads. */
static void clean(void **state)
{
	struct rgate_session_opts o = in_process(), by = by_daemon();
	unsigned int fds, threads, i;
	struct rgate_session *s;

	(void)state;
	o.memory = 4096;
	/* The daemon has all of its own descriptors, and of this session it keeps nothing. */
	rgate_session_close(opened(&by));
	for (i = 0; i < 1000U * unit_patience() && !daemon_empty(); i++)
		usleep(10000);
	assert_true(daemon_empty());
	rgate_session_close(opened(&o));
	fds = unit_entries("/proc/self/fd");
	threads = unit_entries("/proc/self/task");
	for (i = 0; i < 20; i++) {
		s = opened(&o);
		submit(s, &(const struct rgate_request){ .op = RGATE_REQ_NOP });
		rgate_session_close(s);
	}
	assert_true(unit_entries("/proc/self/fd") <= fds);
	assert_int_equal(unit_mappings("ringgate-requests"), 0);
	assert_int_equal(unit_mappings("ringgate-memory"), 0);
	/* a thread that was joined may be listed for a moment */
	for (i = 0; i < 1000U * unit_patience() &&
	     unit_entries("/proc/self/task") > threads; i++)
		usleep(10000);
	assert_true(unit_entries("/proc/self/task") <= threads);
}

/* On loan: the rings are the borrower's, and what they are is told */
static void lent(void **state)
{
	struct rgate_session_loan loan = { .sz = sizeof(size_t) - 1 };
	const struct rgate_request q = { .op = RGATE_REQ_NOP, .cookie = 1 };
	struct rgate_session_opts o = by_daemon();
	struct rgate_completion c;
	struct rgate_session *s;
	size_t len;

	(void)state;
	o.memory = 4096;
	s = opened(&o);
	assert_int_equal(rgate_session_lend(s, &loan), -EINVAL);
	assert_int_equal(rgate_session_submit(s, &q), 0);
	assert_int_equal(next(s).result, 0);
	loan.sz = sizeof(loan);
	assert_int_equal(rgate_session_lend(s, &loan), 0);
	assert_ptr_equal(loan.memory, rgate_session_memory(s, &len));
	assert_int_equal(loan.memory_len, len);
	assert_int_equal(loan.submitted, 1);
	assert_int_equal(loan.completed, 1);
	assert_int_equal(loan.room, loan.places);
	assert_int_equal(loan.requests[0].seq, 1);
	assert_int_equal(loan.completions[0].cookie, 1);
	assert_true(loan.gone_fd >= 0);
	assert_int_equal(rgate_session_lend(s, &loan), -EBUSY);
	assert_int_equal(rgate_session_submit(s, &q), -EBUSY);
	assert_int_equal(rgate_session_cancel(s, 1, 2), -EBUSY);
	assert_int_equal(rgate_session_poll(s, &c, 1), -EBUSY);
	assert_int_equal(rgate_session_wait(s, 0), -EBUSY);
	assert_int_equal(rgate_session_arm(s), -EBUSY);
	rgate_session_disarm(s);
	rgate_session_close(s);
	s = opened(&o);
	stop_daemon();
	assert_int_equal(rgate_session_lend(s, &loan), -EPIPE);
	rgate_session_close(s);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(nops), TEST(daemons), TEST(either), TEST(options), TEST(memory),
		TEST(cancel), TEST(by_epoll), TEST(waits_end), TEST(two_threads), TEST(close_early),
		TEST(daemon_gone), TEST(liars), TEST(no_answer), TEST(forked), TEST(clean),
		TEST(lent),
	};

	return unit_run(__FILE__, tests, ARRAY_LEN(tests));
}
