// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "agent_priv.h"
#include "clock.h"
#include "log.h"
#include "wire.h"

#define ASKERS_MAX	256U
#define SILENT_NS	5000000000ULL	/* that somebody may connect and ask nothing */

static int listen_at(const struct sockaddr_un *un, int type)
{
	int err, fd = socket(AF_UNIX, SOCK_CLOEXEC | SOCK_NONBLOCK | type, 0);

	if (fd < 0)
		return -errno;
	err = bind(fd, (const struct sockaddr *)un, sizeof(*un)) < 0 ? -errno : 0;
	if (err)
		goto close;
	if (!listen(fd, SOMAXCONN))
		return fd;
	err = -errno;
	(void)unlink(un->sun_path);
close:
	close(fd);
	return err;
}

/*
 * Its name goes before there is a program, and the agent keeps what it stood for: so nobody else
 * connects there, and who does so for a program never finds the backlog full, where it would wait.
 */
static int hide_data(struct agent *a)
{
	struct sockaddr_un un;

	agent_data_path(a, &un);
	a->data_at = open(un.sun_path, O_PATH | O_CLOEXEC);
	if (a->data_at < 0) {
		const int err = -errno;

		(void)unlink(un.sun_path);
		return err;
	}
	if (unlink(un.sun_path) < 0)
		return -errno;
	agent_data_path(a, &un);
	if (!access(un.sun_path, F_OK))
		return 0;
	rgate_err("there is no /proc, by which sockets are connected: mount it");
	return -ENOSYS;
}

int data_open(struct agent *a)
{
	struct sockaddr_un un;
	int fd;

	agent_data_path(a, &un);
	fd = listen_at(&un, SOCK_STREAM);
	if (fd < 0)
		return fd;
	a->data_fd = fd;
	return hide_data(a);
}

int control_open(struct agent_member *m)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int err;

	(void)stpcpy(un.sun_path, m->path);
	m->fd = listen_at(&un, SOCK_SEQPACKET);
	if (m->fd < 0)
		return m->fd;
	err = agent_watch(m->agent, m->fd, m->agent->control_off ? 0 : EPOLLIN, &m->source);
	if (err)
		control_close(m);
	return err;
}

void control_close(struct agent_member *m)
{
	if (m->fd < 0)
		return;
	(void)unlink(m->path);
	closer_put(m->agent, m->fd);
	m->fd = -1;
}

static void set_off(struct agent *a, bool off)
{
	struct link *at;

	if (a->control_off == off)
		return;
	a->control_off = off;
	a->control_off_ns = rgate_clock_now(CLOCK_MONOTONIC);
	for (at = a->members.next; at != &a->members; at = at->next) {
		struct agent_member *m = container_of(at, struct agent_member, link);

		if (m->fd >= 0)
			(void)events_change(&a->ev, m->fd, off ? 0 : EPOLLIN,
					    events_word(&m->source));
	}
}

/* The agent's own user alone; the directory says so already */
static bool is_own(int fd)
{
	struct ucred who;
	socklen_t len = sizeof(who);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) && who.uid == geteuid();
}

/* gcc 12's analyzer loses what is in a list. */
#ifndef __clang__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wanalyzer-malloc-leak"
#endif
void control_event(struct agent_member *m)
{
	struct agent *a = m->agent;
	struct asker *k;
	int fd;

	while (a->naskers < ASKERS_MAX && !closer_full(a)) {
		fd = accept4(m->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0 && errno == EAGAIN)
			return;
		/* No descriptor is left: until another question is over, or a while later. */
		if (fd < 0)
			break;
		k = is_own(fd) ? calloc(1, sizeof(*k)) : NULL;
		if (!k) {
			closer_put(a, fd);
			continue;
		}
		*k = (struct asker){ .source.kind = SOURCE_ASK, .agent = a, .member = m,
				     .fd = fd, .since = rgate_clock_now(CLOCK_MONOTONIC) };
		list_add_tail(&a->askers, &k->link);
		a->naskers++;
		if (agent_watch(a, fd, EPOLLIN | EPOLLRDHUP, &k->source))
			asker_free(k);
	}
	set_off(a, true);
}

#ifndef __clang__
#pragma GCC diagnostic pop
#endif

void asker_free(struct asker *k)
{
	struct agent *a = k->agent;

	list_del(&k->link);
	names_forget(k);
	if (k->fd >= 0)
		closer_put(a, k->fd);
	free(k->domain);
	if (k->waits)
		a->nwaiters--;
	else
		a->naskers--;
	free(k);
	set_off(a, false);
}

int asker_wait(struct asker *k, struct link *waiters)
{
	struct agent *a = k->agent;

	if (a->nwaiters >= a->conns_max)
		return -ENOBUFS;
	/* It may take minutes, and so has no place of those that ask. */
	k->waits = true;
	k->member = NULL;
	a->naskers--;
	a->nwaiters++;
	list_del(&k->link);
	list_add_tail(waiters, &k->link);
	set_off(a, false);
	return 0;
}

void asker_answer(struct asker *k, const struct agent_answer *answer, int fd)
{
	/* Who does not take it has gone. */
	if (k->domain)
		domain_answer(k->agent, k->domain, answer);
	else
		(void)rgate_wire_send(k->fd, answer, sizeof(*answer), &fd, fd >= 0,
				      MSG_DONTWAIT);
	asker_free(k);
}

bool asker_answer_closed(struct asker *k, const struct agent_answer *answer, int fd)
{
	const bool put = !closer_put_answer(k->agent, fd, k->fd, answer);

	if (put) {
		k->fd = -1;
		asker_free(k);
	} else {
		asker_answer(k, answer, -1);
	}
	return put;
}

/* Nothing is there of it, or it is late by now. */
static bool is_silent(const struct asker *k, uint64_t now)
{
	int there = 0;

	return now - k->since >= SILENT_NS || ioctl(k->fd, FIONREAD, &there) < 0 || !there;
}

void askers_expire(struct agent *a, uint64_t now)
{
	const uint64_t most = a->control_off ? SILENT_NS / 50 : SILENT_NS;
	struct link *at, *next;

	for (at = a->askers.next; at != &a->askers; at = next) {
		struct asker *k = container_of(at, struct asker, link);

		next = at->next;
		if (now - k->since < most)
			break;
		if (!is_silent(k, now))
			continue;
		a->info.lies++;
		asker_free(k);
	}
	/* Not at once: as long as nothing has changed the event would be there again. */
	if (a->control_off && now - a->control_off_ns >= RETRY_NS)
		set_off(a, false);
}

void asker_event(struct asker *k, uint32_t events)
{
	struct agent *a = k->agent;
	struct agent_ask ask;
	struct iovec v = { .iov_base = &ask, .iov_len = sizeof(ask) };
	int fd = -1;
	ssize_t len;

	if (k->waits) {
		/* A signal, or the program's end; what it waited for goes on. */
		if (events & (EPOLLHUP | EPOLLRDHUP | EPOLLERR | EPOLLIN))
			asker_free(k);
		return;
	}
	len = closer_recv(a, k->fd, &v, 1, &fd);
	if (len == -EAGAIN || len == -EINTR)
		return;
	if (len == (ssize_t)sizeof(ask)) {
		fd = ask_do(k, &ask, fd) ? -1 : fd;
	} else {
		/* Who says nothing has gone. */
		a->info.lies += len != 0 || fd >= 0;
		asker_free(k);
	}
	if (fd >= 0)
		closer_put(a, fd);
}
