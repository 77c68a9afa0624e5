// SPDX-License-Identifier: MIT OR GPL-2.0
/* The library's sockets at a service that ends what was asked when the test says, out of step. */
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <ringgate/rgate_socket.h>

#include "client_quiet.h"
#include "session_at.h"

#define NEW_HANDLE	9U		/* of who is accepted */
#define PATIENCE_MS	20000U
#define LATE_US		30000U
#define PLACES		64U		/* of the session */

/* ---- The service ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	struct rgate_req *held, *close;	/* what is under way */
	struct rgate_req *option[PLACES];
	unsigned int options, beside;	/* of these, now, and when one was closed last */
	bool hold_close, no_room;
	bool makes_room;		/* an option ends before who closes hears of none */
	unsigned int closes;		/* so far */
	uint32_t closed;		/* the last one's handle */
	bool ended;			/* what was held is about to */
	bool over;			/* the session's end has come here */
} sv;

static int later(struct rgate_req *r, void *ctx)
{
	(void)ctx;
	pthread_mutex_lock(&lock);
	sv.held = r;
	pthread_mutex_unlock(&lock);
	return RGATE_REQ_LATER;
}

static int make(struct rgate_req *r, void *ctx)
{
	(void)ctx;
	rgate_req_set_value(r, 1);
	return 0;
}

static int close_it(struct rgate_req *r, void *ctx)
{
	struct rgate_req *option = NULL;
	int result = 0;

	(void)ctx;
	pthread_mutex_lock(&lock);
	sv.closes++;
	sv.closed = rgate_req_get(r)->handle;
	sv.beside = sv.options;
	if (sv.no_room) {
		result = -ENOBUFS;
		if (sv.makes_room)
			option = sv.option[--sv.options];
		sv.no_room = !option;
	} else if (sv.hold_close) {
		sv.close = r;
		result = RGATE_REQ_LATER;
	}
	pthread_mutex_unlock(&lock);
	if (option)
		rgate_req_end(option, 0, 0);
	return result;
}

static int set_it(struct rgate_req *r, void *ctx)
{
	(void)ctx;
	pthread_mutex_lock(&lock);
	unit_require(sv.options < PLACES);
	sv.option[sv.options++] = r;
	pthread_mutex_unlock(&lock);
	return RGATE_REQ_LATER;
}

#define OP(n, fn) \
	[RGATE_REQ_SOCKET_##n & ((1U << RGATE_REQ_OP_SHIFT) - 1)] = { \
		.name = #n, .begin = (fn), .uses = RGATE_USES_A0 | RGATE_USES_A1 | \
						   RGATE_USES_MEM | RGATE_USES_HANDLE }

static const struct rgate_req_op ops[] = {
	OP(OPEN, make), OP(ACCEPT, later), OP(RECV, later), OP(CLOSE, close_it),
	OP(SETOPT, set_it),
};

static const struct rgate_req_service service = {
	.number = RGATE_REQ_SOCKET, .nops = ARRAY_LEN(ops), .name = "socket", .ops = ops,
};

static void wait_until(bool (*is_so)(void))
{
	const uint64_t until = unit_now_ns() + PATIENCE_MS * 1000000ULL;
	bool so;

	for (;;) {
		pthread_mutex_lock(&lock);
		so = is_so();
		pthread_mutex_unlock(&lock);
		if (so)
			return;
		unit_require(unit_now_ns() < until);
		usleep(100);
	}
}

static bool is_held(void)
{
	return sv.held;
}

static bool is_closed(void)
{
	return sv.closes;
}

static bool is_over(void)
{
	return sv.over;
}

static bool is_closed_too(void)
{
	return sv.closes == 2;
}

static bool are_all_held(void)
{
	return sv.options == PLACES;
}

static void end_it(struct rgate_req **r, int result, uint64_t value)
{
	struct rgate_req *it;

	pthread_mutex_lock(&lock);
	it = *r;
	*r = NULL;
	pthread_mutex_unlock(&lock);
	if (it)
		rgate_req_end(it, result, value);
}

/* Of the options the last one */
static void end_option(void)
{
	struct rgate_req *it;

	pthread_mutex_lock(&lock);
	it = sv.option[--sv.options];
	pthread_mutex_unlock(&lock);
	rgate_req_end(it, 0, 0);
}

/* ---- The bed ---- */

static struct rgate_engine *e;
static struct rgate_seat *seat;
static struct rgate_sockets *set;
static struct rgate_socket *s;
static char *mem;
static _Thread_local int sleep_error;	/* what waiting comes to; 0: it waits */

int __wrap_rgate_session_open(struct rgate_session **session,
			      const struct rgate_session_opts *opts);
int __real_epoll_pwait2(int epfd, struct epoll_event *ev, int n, const struct timespec *ts,
			const sigset_t *mask);
int __wrap_epoll_pwait2(int epfd, struct epoll_event *ev, int n, const struct timespec *ts,
			const sigset_t *mask);

static void over(void *ctx)
{
	(void)ctx;
	pthread_mutex_lock(&lock);
	sv.over = true;
	pthread_mutex_unlock(&lock);
}

int __wrap_rgate_session_open(struct rgate_session **session,
			      const struct rgate_session_opts *opts)
{
	const struct rgate_seat_opts o = RGATE_OPTS(rgate_seat_opts, .uid = 1,
		.requests = opts->requests, .completions = opts->completions,
		.memory = (opts->memory + 4095) & ~4095ULL, .over = over);

	return rgate_session_at(session, e, &o, &seat);
}

int __wrap_epoll_pwait2(int epfd, struct epoll_event *ev, int n, const struct timespec *ts,
			const sigset_t *mask)
{
	if (!sleep_error)
		return __real_epoll_pwait2(epfd, ev, n, ts, mask);
	errno = sleep_error;
	return -1;
}

/* With a socket, of which @what is under way */
static void begin(uint32_t what)
{
	const struct rgate_socket_io io = RGATE_OPTS(rgate_socket_io, .what = what, .buf = mem,
		.len = what == RGATE_SOCKET_DO_RECV ? 10 : 0, .cookie = 5);

	assert_int_equal(rgate_socket_open(set, &s, RGATE_SOCKET_INET, RGATE_SOCKET_STREAM), 0);
	assert_int_equal(rgate_socket_begin(s, &io), 0);
	wait_until(is_held);
}

static int setup(void **state)
{
	const struct rgate_engine_opts eo = { .sz = sizeof(eo) };
	const struct rgate_sockets_opts o = RGATE_OPTS(rgate_sockets_opts, .requests = PLACES);

	(void)state;
	memset(&sv, 0, sizeof(sv));
	assert_int_equal(rgate_engine_create(&e, &eo), 0);
	assert_int_equal(rgate_engine_add(e, &service, NULL), 0);
	assert_int_equal(rgate_sockets_open(&set, &o), 0);
	mem = rgate_sockets_memory(set, NULL);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	sleep_error = 0;
	end_it(&sv.held, -ECANCELED, 0);
	end_it(&sv.close, 0, 0);
	while (sv.options)
		end_option();
	rgate_sockets_close(set);
	if (seat)
		rgate_seat_remove(seat);
	rgate_engine_destroy(e);
	return 0;
}

static void nobody_is_told(int result)
{
	struct rgate_socket_end end = { .sz = sizeof(end) };

	assert_int_equal(rgate_sockets_next(set, &end, 50), result);
}

/* ---- What happens ---- */

struct late {
	int result;
	uint64_t value;
};

/* Ends what is held a while after the socket was closed */
static void *end_late(void *arg)
{
	const struct late *l = arg;

	wait_until(is_closed);
	usleep(LATE_US);
	pthread_mutex_lock(&lock);
	sv.ended = true;
	pthread_mutex_unlock(&lock);
	end_it(&sv.held, l->result, l->value);
	return NULL;
}

static void close_with(struct late late)
{
	pthread_t thread;
	bool ended;
	int err;

	assert_int_equal(pthread_create(&thread, NULL, end_late, &late), 0);
	err = rgate_socket_close(s);
	/* buffers are the caller's when it returns: not before that */
	pthread_mutex_lock(&lock);
	ended = sv.ended;
	pthread_mutex_unlock(&lock);
	pthread_join(thread, NULL);
	assert_int_equal(err, 0);
	assert_true(ended);
	nobody_is_told(0);
}

/* The socket is closed, and what it had under way ends later. */
static void ends_behind_it(void **state)
{
	(void)state;
	begin(RGATE_SOCKET_DO_RECV);
	close_with((struct late){ .result = -ECANCELED });
	assert_int_equal(sv.closes, 1);
}

/* Somebody was accepted whom nobody will know of: he is not kept. */
static void accepted_by_nobody(void **state)
{
	(void)state;
	begin(RGATE_SOCKET_DO_ACCEPT);
	close_with((struct late){ .value = NEW_HANDLE });
	wait_until(is_closed_too);
	assert_int_equal(sv.closed, NEW_HANDLE);
}

static void refused_to_nobody(void **state)
{
	(void)state;
	begin(RGATE_SOCKET_DO_ACCEPT);
	close_with((struct late){ .result = -EMFILE });
	assert_int_equal(sv.closes, 1);
}

/* What ended before, and was not taken, is closed as well. */
static void accepted_before(void **state)
{
	struct rgate_socket *t;

	(void)state;
	begin(RGATE_SOCKET_DO_ACCEPT);
	end_it(&sv.held, 0, NEW_HANDLE);
	/* a call that waits takes what has ended meanwhile */
	usleep(LATE_US);
	assert_int_equal(rgate_socket_open(set, &t, RGATE_SOCKET_INET, RGATE_SOCKET_STREAM), 0);
	assert_int_equal(rgate_socket_close(s), 0);
	nobody_is_told(0);
	wait_until(is_closed_too);
	assert_int_equal(rgate_socket_close(t), 0);
}

/* The session ends: nobody can say that the socket is closed, nor wait for what it had. */
static void session_over(void **state)
{
	struct rgate_socket *t;

	(void)state;
	begin(RGATE_SOCKET_DO_RECV);
	assert_int_equal(rgate_socket_open(set, &t, RGATE_SOCKET_INET, RGATE_SOCKET_STREAM), 0);
	rgate_seat_remove(seat);
	seat = NULL;
	end_it(&sv.held, -ECANCELED, 0);
	wait_until(is_over);
	assert_int_equal(rgate_socket_recv(t, mem, 10, 0), -EPIPE);
	assert_int_equal(rgate_socket_close(s), -EPIPE);
	assert_int_equal(rgate_socket_close(t), -EPIPE);
	assert_int_equal(sv.closes, 0);
	nobody_is_told(-EPIPE);
}

static unsigned int closes(void)
{
	unsigned int n;

	pthread_mutex_lock(&lock);
	n = sv.closes;
	pthread_mutex_unlock(&lock);
	return n;
}

static void no_room(bool makes_room)
{
	pthread_mutex_lock(&lock);
	sv.no_room = true;
	sv.makes_room = makes_room;
	pthread_mutex_unlock(&lock);
}

static void hold_closes(bool hold)
{
	pthread_mutex_lock(&lock);
	sv.hold_close = hold;
	pthread_mutex_unlock(&lock);
}

/* Nothing can be waited for, just now: it is closed all the same, and its ends find nobody. */
static void cannot_wait(void **state)
{
	struct rgate_socket *t;

	(void)state;
	begin(RGATE_SOCKET_DO_RECV);
	hold_closes(true);
	sleep_error = ENOMEM;
	assert_int_equal(rgate_socket_close(s), -ENOMEM);
	sleep_error = 0;
	wait_until(is_closed);
	hold_closes(false);
	end_it(&sv.held, -ECANCELED, 0);
	end_it(&sv.close, 0, 0);
	nobody_is_told(0);
	assert_int_equal(rgate_socket_open(set, &t, RGATE_SOCKET_INET, RGATE_SOCKET_STREAM), 0);
	assert_int_equal(rgate_socket_close(t), 0);
}

static void set_quietly(struct rgate_socket *t)
{
	const int32_t one = 1;

	assert_int_equal(socket_setopt_quiet(t, RGATE_SOCKET_TCP_NODELAY, &one, sizeof(one)), 0);
}

static void *ends_held(void *arg)
{
	wait_until(is_closed_too);
	end_it(&sv.held, -ECANCELED, 0);
	return arg;
}

/* There is room for one more request when another one has ended. */
static void *makes_room(void *arg)
{
	wait_until(is_closed);
	pthread_mutex_lock(&lock);
	sv.no_room = false;
	pthread_mutex_unlock(&lock);
	end_option();
	return ends_held(arg);
}

/* At @s something is under way, at another one an option that nobody waits for: no room */
static struct rgate_socket *without_room(bool makes_room)
{
	struct rgate_socket *t;

	begin(RGATE_SOCKET_DO_RECV);
	assert_int_equal(rgate_socket_open(set, &t, RGATE_SOCKET_INET, RGATE_SOCKET_STREAM), 0);
	set_quietly(t);
	no_room(makes_room);
	return t;
}

static void close_while(void *(*ends)(void *arg))
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, ends, NULL), 0);
	assert_int_equal(rgate_socket_close(s), 0);
	pthread_join(thread, NULL);
	assert_int_equal(closes(), 2);
}

/* As at a gateway, which has so many tickets: it is closed all the same, and ends what it had. */
static void has_no_room(void **state)
{
	struct rgate_socket *t = without_room(false);

	(void)state;
	close_while(makes_room);
	/* Where nothing is to end that is not waited for, it is told. */
	no_room(false);
	assert_int_equal(rgate_socket_close(t), -ENOBUFS);
	assert_int_equal(closes(), 3);
	nobody_is_told(0);
}

/* What has made room has ended before who closes waits for it: nothing else ends before he asks. */
static void room_meanwhile(void **state)
{
	struct rgate_socket *t = without_room(true);

	(void)state;
	close_while(ends_held);
	assert_int_equal(rgate_socket_close(t), 0);
	nobody_is_told(0);
}

static void *ends_one(void *arg)
{
	(void)arg;
	wait_until(are_all_held);
	usleep(LATE_US);
	end_option();
	return NULL;
}

/* What tells nobody of its end has a place like any other: never more than those are under way. */
static void has_no_place(void **state)
{
	pthread_t thread;
	unsigned int i;

	(void)state;
	assert_int_equal(rgate_socket_open(set, &s, RGATE_SOCKET_INET, RGATE_SOCKET_STREAM), 0);
	for (i = 0; i < PLACES; i++)
		set_quietly(s);
	assert_int_equal(pthread_create(&thread, NULL, ends_one, NULL), 0);
	assert_int_equal(socket_close_quiet(s), 0);
	pthread_join(thread, NULL);
	wait_until(is_closed);
	assert_int_equal(sv.beside, PLACES - 1);
}

#define BED(name)	cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
	BED(ends_behind_it), BED(accepted_by_nobody), BED(refused_to_nobody),
	BED(accepted_before), BED(session_over), BED(cannot_wait),
	BED(has_no_room), BED(room_meanwhile), BED(has_no_place),
};

UNIT_MAIN(tests)
