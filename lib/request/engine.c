// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "clock.h"
#include "engine_priv.h"
#include "opts.h"
#include "thread.h"

#define EVENTS		64
#define LOOK_TURNS	16	/* a busy engine looks for kicks once in so many turns */

/*
 * A user's turn: so many requests, of which large ones count more, that begin with one of that
 * class rank, then so many with these, and so on; what is left goes to the better ones again. A
 * seat takes VISIT at once where the user has several, of which these numbers are multiples: all
 * visits are alike.
 */
static const struct {
	unsigned int rank, until;
} share[] = { { 0, 32 }, { 1, 56 }, { 2, 64 }, { 0, 64 }, { 1, 64 } };

#define VISIT		8U

void rgate_limits_init(struct rgate_limits *limits)
{
	memset(limits, 0, sizeof(*limits));
	memset(limits->ops, 0xff, sizeof(limits->ops));
}

/*
 * What was brought before is seen by the look that the engine has after it has set `asleep`,
 * or `asleep` is seen here: each side has a full fence between its store and its load.
 */
void engine_wake(struct rgate_engine *e)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&e->asleep, __ATOMIC_RELAXED))
		events_wake(&e->ev);
}

static void take_events(struct rgate_engine *e, const struct epoll_event *ev, int n)
{
	int i;

	for (i = 0; i < n; i++) {
		if (ev[i].data.u64 != EVENTS_WAKE)
			seat_kicked(ev[i].data.ptr);
		else
			events_woken(&e->ev);
	}
}

static void poll_events(struct rgate_engine *e)
{
	struct epoll_event ev[EVENTS];

	take_events(e, ev, events_wait(&e->ev, ev, EVENTS, 0));
}

/* A seat with nothing to do is polled as long as it has learned to be worth it. */
static void quiet(struct rgate_seat *s, enum taken why)
{
	if (!s->quiet)
		s->quiet = s->engine->now;
	if (s->engine->now - s->quiet >= s->spin.ns)
		seat_park(s, why);
}

/* The next of the user's hot seats; how much of the share it has used */
static unsigned int visit(struct user *u, unsigned int rank, unsigned int most, bool *more)
{
	struct rgate_seat *s = container_of(u->hot.next, struct rgate_seat, turn);
	enum taken why;
	unsigned int n;

	list_del(&s->turn);
	list_add_tail(&u->hot, &s->turn);
	n = seat_take(s, rank, u->nhot > 1 && most > VISIT ? VISIT : most, &why);
	if (why == TAKE_MORE)
		*more = true;
	else if (why != TAKE_BLOCKED)
		quiet(s, why);
	return n;
}

static void user_turn(struct user *u)
{
	unsigned int i, n, used = 0, in_vain;
	bool more = true;

	for (i = 0; i < sizeof(share) / sizeof(share[0]) && more; i++) {
		more = false;
		/* Until the share is used up, or all seats in a row had nothing for it */
		for (in_vain = 0; used < share[i].until && in_vain < u->nhot;) {
			n = visit(u, share[i].rank, share[i].until - used, &more);
			used += n;
			in_vain = n ? 0 : in_vain + 1;
		}
		more |= used >= share[i].until;
	}
}

static void users_turn(struct rgate_engine *e)
{
	struct link *end = e->active.prev, *l;
	struct user *u;

	if (list_empty(&e->active))
		return;
	do {
		l = e->active.next;
		u = container_of(l, struct user, active);
		list_del(l);
		list_add_tail(&e->active, l);
		user_turn(u);
		if (!u->nhot)
			list_del(&u->active);
	} while (l != end && !list_empty(&e->active));
}

/*
 * Who has been answered may ask again at once: it is polled as long as that has been worth it. Its
 * time is that since the answer then, not since the request, which may have waited for hours.
 */
static void answered(struct rgate_seat *s)
{
	s->quiet = s->parked ? s->engine->now : 0;
	if (s->parked && s->spin.ns)
		seat_hot(s);
}

/* Wakes whose completions came, once for all of a turn */
static void flush(struct rgate_engine *e)
{
	struct rgate_seat *s;
	uint64_t want;

	if (!e->dirty)
		return;
	/* Against rgate_session_arm(): completion, fence, want here; want, fence, look there. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	while (e->dirty) {
		s = e->dirty;
		e->dirty = s->dirty_next;
		s->dirty = false;
		answered(s);
		want = __atomic_load_n(&s->area.client->want, __ATOMIC_RELAXED);
		if (!want || want == s->woken || want > s->posted)
			continue;
		s->woken = want;
		seat_wake(s);
	}
}

/* Is there something that came while the engine was about to sleep? */
static bool brought(struct rgate_engine *e)
{
	return __atomic_load_n(&e->ended, __ATOMIC_RELAXED) ||
	       __atomic_load_n(&e->commands, __ATOMIC_RELAXED) ||
	       __atomic_load_n(&e->stop, __ATOMIC_RELAXED);
}

static int64_t until(struct rgate_engine *e)
{
	const uint64_t at = timer_next(e);

	if (at == UINT64_MAX)
		return -1;
	e->now = rgate_clock_now(CLOCK_MONOTONIC);
	return at > e->now ? (int64_t)(at - e->now) : 0;
}

static int64_t serve(struct rgate_engine *e)
{
	bool more, buried;

	e->now = rgate_clock_now(CLOCK_MONOTONIC);
	if (__atomic_load_n(&e->commands, __ATOMIC_ACQUIRE))
		seat_commands(e);
	if (__atomic_load_n(&e->ended, __ATOMIC_RELAXED))
		req_reap(e);
	timer_expire(e);
	users_turn(e);
	more = req_run_ready(e);
	timer_tick(e);
	flush(e);
	/* The last seat's burial is what rgate_engine_destroy() waits for: no sleep after it. */
	buried = e->dying;
	if (buried)
		seat_bury(e);
	if (more || buried || !list_empty(&e->active))
		return 0;
	__atomic_store_n(&e->asleep, 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (brought(e)) {
		__atomic_store_n(&e->asleep, 0, __ATOMIC_RELAXED);
		return 0;
	}
	count(&e->stats.sleeps, 1);
	return until(e);
}

int64_t rgate_engine_turn(struct rgate_engine *e)
{
	e->thread = pthread_self();
	__atomic_store_n(&e->asleep, 0, __ATOMIC_RELAXED);
	poll_events(e);
	return serve(e);
}

static void sleep_for(struct rgate_engine *e, int64_t ns)
{
	struct epoll_event ev[EVENTS];
	int n = events_wait(&e->ev, ev, EVENTS, ns);

	__atomic_store_n(&e->asleep, 0, __ATOMIC_RELAXED);
	take_events(e, ev, n);
}

static bool no_seats(struct rgate_engine *e)
{
	bool none;

	pthread_mutex_lock(&e->lock);
	none = !e->nseats;
	pthread_mutex_unlock(&e->lock);
	return none;
}

/* Until rgate_engine_destroy() wants no more, and the last seat is gone */
static void *run(void *arg)
{
	struct rgate_engine *e = arg;
	bool stopping = false;
	int64_t ns;

	for (;;) {
		if (!stopping && __atomic_load_n(&e->stop, __ATOMIC_ACQUIRE)) {
			stopping = true;
			__atomic_store_n(&e->stop, 0, __ATOMIC_RELAXED);
			seat_commands(e);
			seat_remove_all(e);
		}
		if (stopping && no_seats(e))
			return NULL;
		ns = serve(e);
		if (ns)
			sleep_for(e, ns);
		else if (++e->turns % LOOK_TURNS == 0)
			poll_events(e);
	}
}

static void init(struct rgate_engine *e, const struct rgate_engine_opts *o)
{
	e->flags = o->flags;
	e->spin_us = o->spin_us;
	e->node = o->node;
	e->log = o->log;
	e->log_ctx = o->log_ctx;
	e->stats.sz = sizeof(e->stats);
	list_init(&e->active);
	list_init(&e->seats);
	list_init(&e->users);
	list_init(&e->add);
	list_init(&e->remove);
	e->ready_last = &e->ready_first;
	e->tick_at = UINT64_MAX;
	/* Clients choose cookies, not where they are kept. */
	if (getrandom(e->secret, sizeof(e->secret), GRND_NONBLOCK) != sizeof(e->secret)) {
		e->secret[0] = rgate_clock_now(CLOCK_MONOTONIC) ^ (uintptr_t)e;
		e->secret[1] = e->secret[0] * 0x9e3779b97f4a7c15;
	}
	e->next_owner = (uint32_t)(e->secret[1] >> 32);
	e->secret[1] |= 1;
}

static void fini(struct rgate_engine *e)
{
	req_free_all(e);
	events_close(&e->ev);
	pthread_mutex_destroy(&e->end_lock);
	pthread_mutex_destroy(&e->lock);
	free(e);
}

int rgate_engine_create(struct rgate_engine **engine, const struct rgate_engine_opts *opts)
{
	struct rgate_engine_opts o;
	struct rgate_spin check;
	struct rgate_engine *e;
	int err;

	err = rgate_opts_copy(&o, sizeof(o), opts);
	if (!err && (o.flags & ~(uint32_t)RGATE_ENGINE_LOOP || rgate_spin_init(&check, o.spin_us)))
		err = -EINVAL;
	if (err)
		return err;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	init(e, &o);
	err = req_init(e);
	if (err)
		goto free;
	err = events_open(&e->ev);
	if (err)
		goto free_reqs;
	pthread_mutex_init(&e->lock, NULL);
	rgate_mutex_init_brief(&e->end_lock);
	rgate_engine_add(e, &rgate_service_core, e);
	rgate_engine_add(e, &rgate_service_log, e);
	err = e->flags & RGATE_ENGINE_LOOP ? 0 : rgate_thread_start(&e->thread, NULL, run, e);
	if (err) {
		fini(e);
		return err;
	}
	if (!(e->flags & RGATE_ENGINE_LOOP))
		pthread_setname_np(e->thread, "rgate-engine");
	*engine = e;
	return 0;
free_reqs:
	req_free_all(e);
free:
	free(e);
	return err;
}

void rgate_engine_destroy(struct rgate_engine *e)
{
	if (!e)
		return;
	__atomic_store_n(&e->stop, 1, __ATOMIC_RELEASE);
	engine_wake(e);
	if (e->flags & RGATE_ENGINE_LOOP) {
		e->thread = pthread_self();
		run(e);
	} else {
		pthread_join(e->thread, NULL);
	}
	fini(e);
}

static bool service_ok(const struct rgate_req_service *s)
{
	return s->number < RGATE_REQ_SERVICES && s->nops && s->nops <= RGATE_REQ_OPS && s->name;
}

static void add_op(struct service *to, uint32_t i)
{
	const struct rgate_req_op *op = &to->s->ops[i];

	if (!op->begin)
		return;
	to->ops |= 1ULL << i;
	if (op->uses & RGATE_USES_MULTI)
		to->multi |= 1ULL << i;
}

int rgate_engine_add(struct rgate_engine *e, const struct rgate_req_service *s, void *ctx)
{
	struct service *to;
	uint32_t i;
	int err = 0;

	if (!service_ok(s))
		return -EINVAL;
	to = &e->service[s->number];
	/* The lock orders this before what the thread does with the first seat. */
	pthread_mutex_lock(&e->lock);
	if (e->nseats) {
		err = -EBUSY;
	} else if (to->s) {
		err = -EEXIST;
	} else {
		to->s = s;
		to->ctx = ctx;
		if (s->tick)
			__atomic_or_fetch(&e->ticks, 1U << s->number, __ATOMIC_RELEASE);
		for (i = 0; i < s->nops; i++)
			add_op(to, i);
	}
	pthread_mutex_unlock(&e->lock);
	return err;
}

int rgate_engine_fd(const struct rgate_engine *e)
{
	return e->ev.fd;
}

int rgate_engine_stats(struct rgate_engine *e, struct rgate_engine_stats *out)
{
	struct rgate_engine_stats st = { .sz = sizeof(st) };
	struct link *l;

#define GET(f)	(st.f = __atomic_load_n(&e->stats.f, __ATOMIC_RELAXED))
	GET(under_way);
	GET(handles);
	GET(accepted);
	GET(refused);
	GET(completions);
	GET(cancelled);
	GET(timed_out);
	GET(wakeups);
	GET(sleeps);
#undef GET
	pthread_mutex_lock(&e->lock);
	st.seats = e->nseats;
	for (l = e->users.next; l != &e->users; l = l->next) {
		st.users++;
		st.memory += container_of(l, struct user, of_engine)->memory;
	}
	pthread_mutex_unlock(&e->lock);
	return rgate_info_copy(out, &st, sizeof(st));
}

static struct user *find_user(struct rgate_engine *e, uid_t uid)
{
	struct link *l;

	for (l = e->users.next; l != &e->users; l = l->next)
		if (container_of(l, struct user, of_engine)->uid == uid)
			return container_of(l, struct user, of_engine);
	return NULL;
}

int rgate_engine_user(struct rgate_engine *e, unsigned int i, struct rgate_user_stats *out)
{
	struct rgate_user_stats st = { .sz = sizeof(st) };
	struct link *l;
	struct user *u;

	pthread_mutex_lock(&e->lock);
	for (l = e->users.next; l != &e->users && i; i--)
		l = l->next;
	if (l == &e->users) {
		pthread_mutex_unlock(&e->lock);
		return -ENOENT;
	}
	u = container_of(l, struct user, of_engine);
	st.uid = u->uid;
	st.seats = u->sessions;
	st.memory = u->memory;
#define GET(f)	(st.f = __atomic_load_n(&u->f, __ATOMIC_RELAXED))
	GET(under_way);
	GET(handles);
	GET(accepted);
	GET(refused);
	GET(completions);
#undef GET
	pthread_mutex_unlock(&e->lock);
	return rgate_info_copy(out, &st, sizeof(st));
}

int rgate_engine_limits(struct rgate_engine *e, uid_t uid, const struct rgate_limits *limits)
{
	struct user *u;

	pthread_mutex_lock(&e->lock);
	u = find_user(e, uid);
	if (u) {
		u->later = *limits;
		u->changed = true;
		__atomic_store_n(&e->commands, 1, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&e->lock);
	if (!u)
		return -ENOENT;
	engine_wake(e);
	return 0;
}
