// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "socket_priv.h"

static struct owner *find_owner(struct socket_service *sv, uid_t uid)
{
	struct owner *o;
	struct link *l;

	for (l = sv->owners.next; l != &sv->owners; l = l->next) {
		o = container_of(l, struct owner, of_service);
		if (o->uid == uid)
			return o;
	}
	o = calloc(1, sizeof(*o));
	if (!o)
		return NULL;
	o->uid = uid;
	list_init(&o->turn);
	list_init(&o->ready);
	list_add_tail(&sv->owners, &o->of_service);
	return o;
}

static void leave_owner(struct owner *o)
{
	if (--o->socks)
		return;
	list_del(&o->of_service);
	free(o);
}

static int check_caps(const struct socket_service *sv, uid_t uid, const struct owner *o)
{
	uint32_t all = sv->policy ? socket_policy_most_all(sv->policy) : 0, most;

	if (!all)
		all = sv->most;
	if (all && sv->socks >= all)
		return -ENFILE;
	most = sv->policy ? socket_policy_most(sv->policy, uid) : 0;
	return most && o->socks >= most ? -EDQUOT : 0;
}

static void init(struct sock *s)
{
	list_init(&s->all);
	list_init(&s->look);
	list_init(&s->incoming);
	list_init(&s->ready);
	list_init(&s->out);
	list_init(&s->in);
	list_init(&s->polls);
	list_init(&s->lingers);
	s->fd = -1;
	s->readable = s->writable = true;
}

/* gcc 12's analyzer loses the list of owners. */
#ifndef __clang__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wanalyzer-malloc-leak"
#endif
int sock_new(struct socket_service *sv, uid_t uid, uint32_t family, uint32_t type,
	     struct sock **out)
{
	struct owner *o = find_owner(sv, uid);
	struct sock *s;
	int err;

	if (!o)
		return -ENOMEM;
	o->socks++;
	err = check_caps(sv, uid, &(struct owner){ .socks = o->socks - 1 });
	s = err ? NULL : calloc(1, sizeof(*s));
	if (!s) {
		leave_owner(o);
		return err ? err : -ENOMEM;
	}
	init(s);
	s->sv = sv;
	s->owner = o;
	s->family = family;
	s->type = type;
	s->id = ++sv->last_id;
	list_add_tail(&sv->all, &s->all);
	sv->socks++;
	*out = s;
	return 0;
}

#ifndef __clang__
#pragma GCC diagnostic pop
#endif

int sock_watch(struct sock *s, int fd)
{
	return events_add(&s->sv->ev, fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
			  events_word(s));
}

void sock_shut(struct sock *s)
{
	struct socket_service *sv = s->sv;

	/* Who lists sockets, or forks, has to do with descriptors, with the lock. */
	pthread_mutex_lock(&sv->lock);
	if (s->fd >= 0) {
		/* If another process has it, closing it is not the end of its events. */
		events_remove(&sv->ev, s->fd);
		close(s->fd);
	}
	s->fd = -1;
	pthread_mutex_unlock(&sv->lock);
}

void sock_free(struct sock *s)
{
	struct socket_service *sv = s->sv;

	sock_shut(s);
	list_del(&s->ready);
	list_del(&s->lingers);
	pthread_mutex_lock(&sv->lock);
	list_del(&s->all);
	list_del(&s->look);
	sv->socks--;
	if (list_empty(&s->owner->ready))
		list_del(&s->owner->turn);
	leave_owner(s->owner);
	pthread_mutex_unlock(&sv->lock);
	free(s);
}

bool sock_look(struct sock *s)
{
	/* Who was first has woken it, and it takes them all. */
	const bool first = list_empty(&s->sv->look);

	if (!list_empty(&s->look))
		return false;
	list_add_tail(&s->sv->look, &s->look);
	return first;
}

void sock_drop(struct sock *s)
{
	struct socket_service *sv = s->sv;
	bool wake;

	pthread_mutex_lock(&sv->lock);
	if (s->state == SOCK_DEAD)
		list_del(&s->look);
	s->state = SOCK_CLOSING;
	s->dropped = true;
	wake = sock_look(s);
	pthread_mutex_unlock(&sv->lock);
	if (wake)
		service_wake(sv);
}

void service_wake(struct socket_service *sv)
{
	events_wake(&sv->ev);
}
