// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The service's thread. Owners have turns, and their sockets have turns within; epoll is edge
 * triggered, so that a socket that nobody asks anything of costs nothing.
 */
#include <errno.h>
#include <unistd.h>

#include "clock.h"
#include "socket_priv.h"

#define EVENTS	64

void sock_ready(struct sock *s)
{
	struct owner *o = s->owner;

	if (!list_empty(&s->ready))
		return;
	list_add_tail(&o->ready, &s->ready);
	if (list_empty(&o->turn))
		list_add_tail(&s->sv->turns, &o->turn);
}

/* What others want it to look at */
static void take_looks(struct socket_service *sv)
{
	struct sock *s;

	pthread_mutex_lock(&sv->lock);
	while (!list_empty(&sv->look)) {
		s = container_of(sv->look.next, struct sock, look);
		list_del(&s->look);
		sock_ready(s);
	}
	pthread_mutex_unlock(&sv->lock);
}

static bool is_stopped(struct socket_service *sv)
{
	bool stop;

	pthread_mutex_lock(&sv->lock);
	stop = sv->stop && list_empty(&sv->look);
	pthread_mutex_unlock(&sv->lock);
	return stop && list_empty(&sv->turns);
}

/* Of each owner one socket */
static void turn(struct socket_service *sv)
{
	struct link *end = sv->turns.prev, *l;
	struct owner *o;
	struct sock *s;

	if (list_empty(&sv->turns))
		return;
	do {
		l = sv->turns.next;
		o = container_of(l, struct owner, turn);
		s = container_of(o->ready.next, struct sock, ready);
		list_del(&s->ready);
		list_del(l);
		if (!list_empty(&o->ready))
			list_add_tail(&sv->turns, l);
		/* It may be gone after that, and its owner. */
		if (sock_run(s))
			sock_ready(s);
	} while (l != end && !list_empty(&sv->turns));
}

/* Sockets that wait with their end; in how many ms to look again, -1: there are none */
static int linger(struct socket_service *sv)
{
	const uint64_t now = rgate_clock_now(CLOCK_MONOTONIC);
	uint64_t least = UINT64_MAX;
	struct link *l, *next;
	struct sock *s;

	for (l = sv->lingers.next; l != &sv->lingers; l = next) {
		next = l->next;
		s = container_of(l, struct sock, lingers);
		if (!sock_linger(s, now) && s->closes_by - now < least)
			least = s->closes_by - now;
	}
	return least == UINT64_MAX ? -1 : (int)(least / 1000000) + 1;
}

/* With the lock: may it still do what it was allowed? */
static bool still_may(const struct sock *s)
{
	unsigned int act;

	for (act = 0; act < 2; act++)
		if (s->wished[act] && !socket_policy_may(s->sv->policy, &s->wish[act]))
			return false;
	return true;
}

/* Whose rights are other ones now loses what they do not allow any more. */
static void review(struct socket_service *sv)
{
	struct sock *s;
	struct link *l;
	bool again;

	pthread_mutex_lock(&sv->lock);
	again = sv->review;
	sv->review = false;
	for (l = sv->all.next; again && l != &sv->all; l = l->next) {
		s = container_of(l, struct sock, all);
		if (still_may(s))
			continue;
		s->kill = -EACCES;
		(void)sock_look(s);
	}
	pthread_mutex_unlock(&sv->lock);
}

static void take_events(struct socket_service *sv, int wait)
{
	struct epoll_event ev[EVENTS];
	struct sock *s;
	int i, n;

	n = events_wait(&sv->ev, ev, EVENTS, events_ms(wait));
	for (i = 0; i < n; i++) {
		if (ev[i].data.u64 == EVENTS_WAKE) {
			events_woken(&sv->ev);
			continue;
		}
		s = ev[i].data.ptr;
		if (ev[i].events & ~(uint32_t)EPOLLOUT)
			s->readable = true;
		if (ev[i].events & ~(uint32_t)(EPOLLIN | EPOLLRDHUP))
			s->writable = true;
		sock_ready(s);
	}
}

void *socket_loop(void *service)
{
	struct socket_service *sv = service;
	int wait;

	for (;;) {
		review(sv);
		take_looks(sv);
		turn(sv);
		wait = linger(sv);
		if (is_stopped(sv))
			return NULL;
		if (!list_empty(&sv->turns))
			wait = 0;
		take_events(sv, wait);
	}
}
