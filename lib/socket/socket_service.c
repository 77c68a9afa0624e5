// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "opts.h"
#include "socket_own.h"
#include "socket_priv.h"
#include "thread.h"

/* ---- The object ---- */

static int open_fds(struct socket_service *sv)
{
	int err = events_open(&sv->ev);

	if (err)
		return err;
	/* Only a policy asks what it says. */
	sv->own_fd = sv->policy ? socket_own_open() : -1;
	if (!sv->policy || sv->own_fd >= 0)
		return 0;
	events_close(&sv->ev);
	return sv->own_fd;
}

static void close_fds(struct socket_service *sv)
{
	if (sv->own_fd >= 0)
		close(sv->own_fd);
	events_close(&sv->ev);
}

int socket_service_create(struct socket_service **out, const struct socket_opts *opts)
{
	struct socket_service *sv;
	struct socket_opts o;
	int err;

	err = rgate_opts_copy(&o, sizeof(o), opts);
	if (err)
		return err;
	sv = calloc(1, sizeof(*sv));
	if (!sv)
		return -ENOMEM;
	sv->policy = o.policy;
	sv->most = o.most;
	list_init(&sv->all);
	list_init(&sv->look);
	list_init(&sv->dead);
	list_init(&sv->owners);
	list_init(&sv->turns);
	list_init(&sv->lingers);
	err = resolver_create(&sv->resolver, sv);
	if (err)
		goto free;
	err = open_fds(sv);
	if (err)
		goto destroy;
	pthread_mutex_init(&sv->lock, NULL);
	err = rgate_thread_start(&sv->thread, NULL, socket_loop, sv);
	if (err)
		goto close;
	*out = sv;
	return 0;
close:
	pthread_mutex_destroy(&sv->lock);
	close_fds(sv);
destroy:
	resolver_destroy(sv->resolver);
free:
	free(sv);
	return err;
}

int socket_service_add(struct socket_service *sv, struct rgate_engine *engine)
{
	return rgate_engine_add(engine, &socket_requests, sv);
}

void socket_service_destroy(struct socket_service *sv)
{
	if (!sv)
		return;
	/* The engine has dropped all that there was. */
	pthread_mutex_lock(&sv->lock);
	sv->stop = true;
	pthread_mutex_unlock(&sv->lock);
	service_wake(sv);
	pthread_join(sv->thread, NULL);
	resolver_destroy(sv->resolver);
	pthread_mutex_destroy(&sv->lock);
	close_fds(sv);
	socket_policy_free(sv->policy);
	free(sv);
}

void socket_service_policy(struct socket_service *sv, struct socket_policy *policy)
{
	struct socket_policy *old;

	pthread_mutex_lock(&sv->lock);
	old = sv->policy;
	sv->policy = policy;
	sv->review = true;
	pthread_mutex_unlock(&sv->lock);
	service_wake(sv);
	socket_policy_free(old);
}

/* ---- fork(2) ---- */

void socket_service_fork_prepare(struct socket_service *sv)
{
	resolver_lock(sv->resolver);
	pthread_mutex_lock(&sv->lock);
}

void socket_service_fork_parent(struct socket_service *sv)
{
	pthread_mutex_unlock(&sv->lock);
	resolver_unlock(sv->resolver);
}

/* What the child had open would keep connections open that the parent closes. */
void socket_service_fork_child(struct socket_service *sv)
{
	const struct sock *s;
	struct link *l;

	for (l = sv->all.next; l != &sv->all; l = l->next) {
		s = container_of(l, struct sock, all);
		if (s->fd >= 0)
			close(s->fd);
	}
	close_fds(sv);
}

/* ---- What others see ---- */

int socket_service_stats(struct socket_service *sv, struct socket_stats *stats)
{
	struct socket_stats st = { .sz = sizeof(st) };

#define GET(f)	(st.f = __atomic_load_n(&sv->f, __ATOMIC_RELAXED))
	GET(opened);
	GET(accepted);
	GET(refused);
	GET(killed);
	GET(sent);
	GET(received);
#undef GET
	pthread_mutex_lock(&sv->lock);
	st.sockets = sv->socks;
	pthread_mutex_unlock(&sv->lock);
	return rgate_info_copy(stats, &st, sizeof(st));
}

static uint32_t queued(int fd, unsigned long what)
{
	int n = 0;

	return ioctl(fd, what, &n) < 0 || n < 0 ? 0 : (uint32_t)n;
}

static void get_name(int fd, bool peer, struct rgate_socket_addr *a)
{
	struct socket_name name = { .len = sizeof(name.in6) };

	if (!(peer ? getpeername : getsockname)(fd, &name.sa, &name.len))
		socket_addr_put(a, &name);
}

static void get_info(const struct sock *s, struct socket_info *to)
{
	struct tcp_info tcp = { .tcpi_state = 0 };
	socklen_t len = sizeof(tcp);

	*to = (struct socket_info){
		.id = s->id, .uid = s->owner->uid, .family = s->family, .type = s->type,
		.under_way = s->under_way,
		.sent = __atomic_load_n(&s->sent, __ATOMIC_RELAXED),
		.received = __atomic_load_n(&s->received, __ATOMIC_RELAXED),
	};
	if (s->fd < 0)
		return;
	get_name(s->fd, false, &to->local);
	get_name(s->fd, true, &to->peer);
	if (s->type == RGATE_SOCKET_STREAM &&
	    !getsockopt(s->fd, IPPROTO_TCP, TCP_INFO, &tcp, &len))
		to->state = tcp.tcpi_state;
	if (to->state == TCP_LISTEN)
		return;
	to->unread = queued(s->fd, SIOCINQ);
	to->unsent = queued(s->fd, SIOCOUTQ);
}

#define LIST_ONCE	32U	/* looked at with the lock */

static unsigned int list_some(struct socket_service *sv, uint64_t after, struct socket_info *to,
			      unsigned int most)
{
	const struct sock *s;
	unsigned int n = 0;
	struct link *l;

	pthread_mutex_lock(&sv->lock);
	for (l = sv->all.next; l != &sv->all && n < most; l = l->next) {
		s = container_of(l, struct sock, all);
		if (s->id > after && s->state != SOCK_PENDING && s->state != SOCK_DEAD)
			get_info(s, &to[n++]);
	}
	pthread_mutex_unlock(&sv->lock);
	return n;
}

unsigned int socket_service_list(struct socket_service *sv, uint64_t after,
				 struct socket_info *to, unsigned int n)
{
	unsigned int got = 0, more;

	while (got < n) {
		more = n - got < LIST_ONCE ? n - got : LIST_ONCE;
		more = list_some(sv, got ? to[got - 1].id : after, to + got, more);
		if (!more)
			break;
		got += more;
	}
	return got;
}

int socket_service_kill(struct socket_service *sv, uint64_t id)
{
	bool wake = false;
	int err = -ENOENT;
	struct sock *s;
	struct link *l;

	pthread_mutex_lock(&sv->lock);
	for (l = sv->all.next; l != &sv->all && err; l = l->next) {
		s = container_of(l, struct sock, all);
		if (s->id != id || s->state != SOCK_OPEN || s->kill)
			continue;
		s->kill = -ECONNABORTED;
		wake = sock_look(s);
		err = 0;
	}
	pthread_mutex_unlock(&sv->lock);
	if (wake)
		service_wake(sv);
	return err;
}
