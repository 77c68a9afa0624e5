// SPDX-License-Identifier: MIT OR GPL-2.0
/* What the sessions of this process share: its engine, and what happens after fork(2). */
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "session_priv.h"

uint64_t rgate_session_forks;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct link sessions = { &sessions, &sessions };
static struct rgate_engine *engine;	/* of this process; NULL: nobody needs one */
static void *services;			/* of that engine */
static unsigned int seats;

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
	rgate_process_services_fork(services, RGATE_FORK_PREPARE);
}

static void in_parent(void)
{
	rgate_process_services_fork(services, RGATE_FORK_PARENT);
	pthread_mutex_unlock(&lock);
}

/*
 * The child has neither the engine's thread nor the areas. It lets go of the daemon at once:
 * else the daemon would take the session for alive as long as the child lives.
 */
static void in_child(void)
{
	struct rgate_session *s;
	struct link *l;

	for (l = sessions.next; l != &sessions; l = l->next) {
		s = container_of(l, struct rgate_session, of_process);
		if (s->sock >= 0)
			close(s->sock);
		s->sock = -1;
	}
	__atomic_store_n(&rgate_session_forks, rgate_session_forks + 1, __ATOMIC_RELAXED);
	rgate_process_services_fork(services, RGATE_FORK_CHILD);
	engine = NULL;
	services = NULL;
	seats = 0;
	pthread_mutex_init(&lock, NULL);
}

static void at_fork(void)
{
	pthread_atfork(before_fork, in_parent, in_child);
}

void rgate_session_enlist(struct rgate_session *s)
{
	pthread_once(&once, at_fork);
	pthread_mutex_lock(&lock);
	s->fork = rgate_session_forks;
	list_add_tail(&sessions, &s->of_process);
	pthread_mutex_unlock(&lock);
}

void rgate_session_delist(struct rgate_session *s)
{
	pthread_mutex_lock(&lock);
	list_del(&s->of_process);
	pthread_mutex_unlock(&lock);
}

static int start_engine(uint32_t spin_us)
{
	const struct rgate_engine_opts o = RGATE_OPTS(rgate_engine_opts, .spin_us = spin_us);
	int err;

	err = rgate_engine_create(&engine, &o);
	if (err)
		return err;
	err = rgate_process_services(engine, &services);
	if (err) {
		rgate_engine_destroy(engine);
		engine = NULL;
	}
	return err;
}

/* Not with the lock: its last requests have to end. */
static void stop_engine(struct rgate_engine *e, void *sv)
{
	rgate_engine_destroy(e);
	rgate_process_services_free(sv);
}

int rgate_process_seat(const struct rgate_seat_opts *opts, uint32_t spin_us,
		       struct rgate_seat **seat, struct rgate_welcome *w, int fds[RGATE_FDS])
{
	struct rgate_engine *unused = NULL;
	void *with = NULL;
	int err = 0;

	pthread_mutex_lock(&lock);
	if (!engine)
		err = start_engine(spin_us);
	if (!err)
		err = rgate_seat_add(engine, opts, seat, w, fds);
	if (!err)
		seats++;
	if (err && !seats) {
		unused = engine;
		with = services;
		engine = NULL;
		services = NULL;
	}
	pthread_mutex_unlock(&lock);
	stop_engine(unused, with);
	return err;
}

void rgate_process_unseat(struct rgate_seat *seat)
{
	struct rgate_engine *unused = NULL;
	void *with = NULL;

	pthread_mutex_lock(&lock);
	rgate_seat_remove(seat);
	if (!--seats) {
		unused = engine;
		with = services;
		engine = NULL;
		services = NULL;
	}
	pthread_mutex_unlock(&lock);
	stop_engine(unused, with);
}
