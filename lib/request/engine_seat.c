// SPDX-License-Identifier: MIT OR GPL-2.0
/* Seats and users: come, go, have turns. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "clock.h"
#include "engine_priv.h"
#include "opts.h"

/* ---- Turns ---- */

void seat_hot(struct rgate_seat *s)
{
	struct user *u = s->user;

	if (s->hot || s->leaving)
		return;
	if (s->parked)
		__atomic_store_n(&s->area.server->need, 0, __ATOMIC_RELAXED);
	s->parked = false;
	s->blocked = false;
	s->hot = true;
	s->quiet = 0;
	list_del(&s->turn);
	list_add_tail(&u->hot, &s->turn);
	u->nhot++;
	if (list_empty(&u->active))
		list_add_tail(&s->engine->active, &u->active);
}

void seat_cool(struct rgate_seat *s)
{
	list_del(&s->turn);
	if (!s->hot)
		return;
	s->hot = false;
	/* A user whose turn it is now leaves the list after it. */
	s->user->nhot--;
}

/* Wakes the client's side that takes completions */
void seat_wake(struct rgate_seat *s)
{
	const uint64_t one = 1;

	count(&s->engine->stats.wakeups, 1);
	(void)!write(s->wake_fd, &one, sizeof(one));
}

void seat_kicked(struct rgate_seat *s)
{
	if (!s->parked)
		return;
	if (s->quiet)
		rgate_spin_learn(&s->spin, rgate_clock_now(CLOCK_MONOTONIC) - s->quiet);
	seat_hot(s);
}

/* ---- Users ---- */

static struct user *user_get(struct rgate_engine *e, uid_t uid)
{
	struct link *l;
	struct user *u;

	for (l = e->users.next; l != &e->users; l = l->next) {
		u = container_of(l, struct user, of_engine);
		if (u->uid == uid)
			return u;
	}
	u = calloc(1, sizeof(*u));
	if (!u)
		return NULL;
	u->uid = uid;
	rgate_limits_init(&u->limits);
	list_init(&u->active);
	list_init(&u->hot);
	list_init(&u->blocked);
	list_add_tail(&e->users, &u->of_engine);
	return u;
}

static void user_put(struct user *u)
{
	if (u->sessions)
		return;
	list_del(&u->of_engine);
	free(u);
}

/* What the seat takes of its user's: a session, and memory */
static int user_charge(struct rgate_engine *e, struct rgate_seat *s, uid_t uid)
{
	const uint64_t bytes = s->mem_len + s->area.len;
	const struct rgate_limits *lim = &s->limits;
	struct user *u;
	int err = 0;

	pthread_mutex_lock(&e->lock);
	u = user_get(e, uid);
	if (!u) {
		err = -ENOMEM;
	} else if ((lim->sessions && u->sessions >= lim->sessions) ||
		   (lim->memory && (bytes > lim->memory || u->memory > lim->memory - bytes))) {
		err = -EDQUOT;
		user_put(u);
	} else {
		u->sessions++;
		u->memory += bytes;
		s->user = u;
		s->owner = ++e->next_owner;
		e->nseats++;
	}
	pthread_mutex_unlock(&e->lock);
	return err;
}

static void user_discharge(struct rgate_engine *e, struct rgate_seat *s)
{
	struct user *u = s->user;

	pthread_mutex_lock(&e->lock);
	u->sessions--;
	u->memory -= s->mem_len + s->area.len;
	user_put(u);
	e->nseats--;
	pthread_mutex_unlock(&e->lock);
}

/* ---- A new seat ---- */

static int check_opts(const struct rgate_seat_opts *o)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	if (!rgate_area_places_ok(o->requests) || !rgate_area_places_ok(o->completions) ||
	    o->memory % page || o->memory > INT64_MAX || (o->mem_addr && !o->memory))
		return -EINVAL;
	return 0;
}

/* The session's memory: the caller's, or a memfd's that is made here */
static int take_memory(struct rgate_seat *s, const struct rgate_seat_opts *o, int *fd)
{
	void *p;
	int f, err;

	*fd = -1;
	if (!o->memory)
		return 0;
	if (o->mem_addr) {
		s->mem = o->mem_addr;
		*fd = o->mem_fd;
		return 0;
	}
	f = rgate_area_memfd("ringgate-memory", o->memory);
	if (f < 0)
		return f;
	p = mmap(NULL, o->memory, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0);
	if (p == MAP_FAILED) {
		err = -errno;
		close(f);
		return err;
	}
	s->mem = p;
	s->own_mem = true;
	*fd = f;
	return 0;
}

static void drop_memory(struct rgate_seat *s, int fd)
{
	if (!s->own_mem)
		return;
	munmap(s->mem, s->mem_len);
	if (fd >= 0)
		close(fd);
}

/*
 * The client's descriptor to wait by is an epoll of its own, which has an eventfd that only
 * the engine holds: of one that both had the client could fill the counter, and so stop the
 * engine. By its edge, so that taking the event is all there is to do.
 */
static int make_wait(struct rgate_seat *s, int *wait)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };
	int err;

	s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->wake_fd < 0)
		return -errno;
	*wait = epoll_create1(EPOLL_CLOEXEC);
	if (*wait < 0) {
		err = -errno;
		goto close_wake;
	}
	if (epoll_ctl(*wait, EPOLL_CTL_ADD, s->wake_fd, &ev) < 0) {
		err = -errno;
		goto close_wait;
	}
	return 0;
close_wait:
	close(*wait);
close_wake:
	close(s->wake_fd);
	return err;
}

/* The engine never reads the client's eventfd, which could make it wait: edges are enough. */
static int make_kick(struct rgate_engine *e, struct rgate_seat *s, int *kick)
{
	int err;

	s->kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->kick_fd < 0)
		return -errno;
	*kick = fcntl(s->kick_fd, F_DUPFD_CLOEXEC, 0);
	if (*kick < 0) {
		err = -errno;
		goto close_own;
	}
	err = events_add(&e->ev, s->kick_fd, EPOLLIN | EPOLLET, events_word(s));
	if (!err)
		return 0;
	close(*kick);
close_own:
	close(s->kick_fd);
	return err;
}

static uint64_t allowed(const struct rgate_engine *e, const struct rgate_limits *lim)
{
	uint64_t services = 0;
	uint32_t i;

	for (i = 0; i < RGATE_REQ_SERVICES; i++)
		if (e->service[i].ops & lim->ops[i])
			services |= 1ULL << i;
	return services;
}

static struct rgate_seat *new_seat(struct rgate_engine *e, const struct rgate_seat_opts *o)
{
	struct rgate_seat *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->engine = e;
	s->now.seat = s;
	list_init(&s->of_engine);
	list_init(&s->turn);
	list_init(&s->reqs);
	list_init(&s->to_add);
	list_init(&s->to_remove);
	s->mem_len = o->memory;
	s->area.len = rgate_area_len(o->requests, o->completions);
	s->over = o->over;
	s->ctx = o->ctx;
	s->modest = o->modest;
	rgate_spin_init(&s->spin, e->spin_us);
	if (o->limits)
		s->limits = *o->limits;
	else
		rgate_limits_init(&s->limits);
	return s;
}

static void command(struct rgate_engine *e, struct link *list, struct link *l)
{
	pthread_mutex_lock(&e->lock);
	list_add_tail(list, l);
	__atomic_store_n(&e->commands, 1, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&e->lock);
	engine_wake(e);
}

int rgate_seat_add(struct rgate_engine *e, const struct rgate_seat_opts *opts,
		   struct rgate_seat **seat, struct rgate_welcome *w, int fds[RGATE_FDS])
{
	struct rgate_seat_opts o;
	struct rgate_seat *s;
	int err;

	err = rgate_opts_copy(&o, sizeof(o), opts);
	if (!err)
		err = check_opts(&o);
	if (err)
		return err;
	s = new_seat(e, &o);
	if (!s)
		return -ENOMEM;
	err = user_charge(e, s, o.uid);
	if (err)
		goto free;
	err = take_memory(s, &o, &fds[RGATE_FD_MEMORY]);
	if (err)
		goto discharge;
	err = rgate_area_create(&s->area, o.requests, o.completions, o.memory, s->owner,
				&fds[RGATE_FD_AREA]);
	if (err)
		goto drop_memory;
	err = make_wait(s, &fds[RGATE_FD_WAIT]);
	if (err)
		goto unmap;
	err = make_kick(e, s, &fds[RGATE_FD_KICK]);
	if (err)
		goto close_wait;
	*w = (struct rgate_welcome){
		.magic = RGATE_WELCOME_MAGIC, .version = RGATE_REQ_VERSION,
		.version_min = RGATE_REQ_VERSION, .owner = s->owner, .area_len = s->area.len,
		.requests = o.requests, .completions = o.completions, .memory = o.memory,
		.memory_off = o.mem_addr ? o.mem_off : 0, .max_requests = s->limits.requests,
		.max_handles = s->limits.handles, .services = allowed(e, &s->limits),
	};
	*seat = s;
	/* Its limits are later ones than those that were set so far. */
	pthread_mutex_lock(&e->lock);
	if (!s->modest)
		s->user->changed = false;
	pthread_mutex_unlock(&e->lock);
	command(e, &e->add, &s->to_add);
	return 0;
close_wait:
	close(fds[RGATE_FD_WAIT]);
	close(s->wake_fd);
unmap:
	close(fds[RGATE_FD_AREA]);
	rgate_area_unmap(&s->area);
drop_memory:
	drop_memory(s, fds[RGATE_FD_MEMORY]);
discharge:
	user_discharge(e, s);
free:
	free(s);
	return err;
}

void rgate_seat_remove(struct rgate_seat *s)
{
	command(s->engine, &s->engine->remove, &s->to_remove);
}

uid_t rgate_seat_uid(const struct rgate_seat *s)
{
	return s->user->uid;
}

void *rgate_seat_memory(const struct rgate_seat *s, uint64_t off, uint64_t len)
{
	if (!len || off > s->mem_len || len > s->mem_len - off)
		return NULL;
	return (char *)s->mem + off;
}

/* ---- In the engine's thread ---- */

void seat_unblock_all(struct user *u)
{
	while (!list_empty(&u->blocked))
		seat_hot(container_of(u->blocked.next, struct rgate_seat, turn));
}

static void user_limits(struct user *u)
{
	if (!u->changed)
		return;
	u->changed = false;
	u->limits = u->later;
	seat_unblock_all(u);
}

static void seat_link(struct rgate_seat *s)
{
	list_add_tail(&s->engine->seats, &s->of_engine);
	if (!s->modest || !s->user->limited) {
		s->user->limits = s->limits;
		s->user->limited = true;
		seat_unblock_all(s->user);
	}
	seat_hot(s);
}

static void seat_leave(struct rgate_seat *s)
{
	struct rgate_req *r;
	struct link *l, *next;

	if (s->leaving)
		return;
	seat_cool(s);
	if (!s->user->nhot)
		list_del(&s->user->active);
	s->leaving = true;
	seat_pass_on(s);
	/* A cancelled request goes from the list by itself, or later; no other one does. */
	for (l = s->reqs.next; l != &s->reqs; l = next) {
		next = l->next;
		r = container_of(l, struct rgate_req, of_seat);
		if (r->state != REQ_READY)
			req_cancel(r, -ECANCELED);
	}
	s->engine->dying = true;
}

static struct link *first(struct link *list)
{
	struct link *l = list->next;

	list_del(l);
	return l;
}

void seat_commands(struct rgate_engine *e)
{
	struct link gone, *l;

	list_init(&gone);
	pthread_mutex_lock(&e->lock);
	__atomic_store_n(&e->commands, 0, __ATOMIC_RELAXED);
	/* A seat that is removed was added before; and limits that were set are later ones. */
	while (!list_empty(&e->add))
		seat_link(container_of(first(&e->add), struct rgate_seat, to_add));
	for (l = e->users.next; l != &e->users; l = l->next)
		user_limits(container_of(l, struct user, of_engine));
	while (!list_empty(&e->remove))
		list_add_tail(&gone, first(&e->remove));
	pthread_mutex_unlock(&e->lock);
	while (!list_empty(&gone))
		seat_leave(container_of(first(&gone), struct rgate_seat, to_remove));
}

void seat_remove_all(struct rgate_engine *e)
{
	struct link *l;

	for (l = e->seats.next; l != &e->seats; l = l->next)
		seat_leave(container_of(l, struct rgate_seat, of_engine));
}

static void close_seat(struct rgate_seat *s)
{
	/* Who still has it mapped, as children of the client, learns that it is over. */
	__atomic_store_n(&s->area.server->state, RGATE_REQ_CLOSED, __ATOMIC_RELEASE);
	handles_drop(s);
	events_remove(&s->engine->ev, s->kick_fd);
	close(s->kick_fd);
	close(s->wake_fd);
	rgate_area_unmap(&s->area);
	drop_memory(s, -1);
}

/* What nothing is under way for any more. After the turn's events, which name seats */
void seat_bury(struct rgate_engine *e)
{
	struct link *l, *next;
	struct rgate_seat *s;

	e->dying = false;
	for (l = e->seats.next; l != &e->seats; l = next) {
		next = l->next;
		s = container_of(l, struct rgate_seat, of_engine);
		if (!s->leaving || s->under_way)
			continue;
		list_del(&s->of_engine);
		seat_unblock_all(s->user);
		close_seat(s);
		if (s->over)
			s->over(s->ctx);
		/* Who did not know yet that it is over may have asked for that. */
		pthread_mutex_lock(&e->lock);
		list_del(&s->to_remove);
		pthread_mutex_unlock(&e->lock);
		user_discharge(e, s);
		free(s);
	}
}
