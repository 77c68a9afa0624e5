// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include "agent_priv.h"
#include "client_quiet.h"
#include "clock.h"
#include "opts.h"

#define CONNS		4096U		/* at least, however few descriptors there may be */
#define EVENTS		64
#define REAP_NS		1000000000ULL
#define END_NS		12000000000ULL	/* longer than a connection between nodes may be away */

int agent_watch(struct agent *a, int fd, uint32_t events, struct source *source)
{
	return events_add(&a->ev, fd, events, events_word(source));
}

/* ---- Its life ---- */

static int make_dir(struct agent *a, const char *parent)
{
	int n;

	if (!parent)
		parent = secure_getenv("XDG_RUNTIME_DIR");
	if (!parent || access(parent, W_OK | X_OK))
		parent = "/tmp";
	n = snprintf(a->dir, sizeof(a->dir), "%s/ringgate-XXXXXX", parent);
	if (n >= (int)sizeof(a->dir)) {
		a->dir[0] = '\0';
		return -ENAMETOOLONG;
	}
	if (mkdtemp(a->dir))
		return 0;
	a->dir[0] = '\0';
	return -errno;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

/* Who serves may stand still: then it ends all the same. */
static void end_by(struct agent *a, uint64_t ns)
{
	struct link *at;

	for (at = a->lanes.next; at != &a->lanes; at = at->next)
		sockets_end_by(container_of(at, struct lane, link)->set, ns);
}

void agent_close(struct agent *a)
{
	if (!a)
		return;
	end_by(a, rgate_clock_now(CLOCK_MONOTONIC) + END_NS);
	while (!list_empty(&a->members))
		agent_leave(container_of(a->members.next, struct agent_member, link));
	while (!list_empty(&a->later))
		asker_free(container_of(a->later.next, struct asker, link));
	names_close(a);
	while (!list_empty(&a->lanes))
		lane_close(container_of(a->lanes.next, struct lane, link));
	if (a->dir[0])
		(void)rmdir(a->dir);
	tags_close(a);
	closer_close(a);
	close_fd(a->data_fd);
	close_fd(a->data_at);
	close_fd(a->probe_fd);
	events_close(&a->ev);
	index_fini(&a->by_id);
	free(a);
}

/* Each has an end here, and the socket may have another one. */
static uint32_t most_conns(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) || r.rlim_cur / 2 < CONNS)
		return CONNS;
	return r.rlim_cur / 2 < UINT32_MAX ? (uint32_t)(r.rlim_cur / 2) : UINT32_MAX;
}

static struct agent *make(const struct agent_opts *o)
{
	struct agent *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	if (index_init(&a->by_id)) {
		free(a);
		return NULL;
	}
	a->ev.fd = a->ev.wake_fd = a->data_fd = a->data_at = a->probe_fd = -1;
	a->loopback = o->loopback;
	a->conns_max = o->conns ? o->conns : most_conns();
	a->warn = o->warn;
	a->warn_ctx = o->ctx;
	a->enough = o->enough;
	a->enough_ctx = o->enough_ctx;
	a->piece = STREAM_CHUNK;
	a->small_most = SMALL_LEAST;
	a->sets = RGATE_OPTS(rgate_sockets_opts, .path = o->path, .where = o->where);
	list_init(&a->members);
	list_init(&a->lanes);
	list_init(&a->all);
	list_init(&a->dead);
	list_init(&a->askers);
	list_init(&a->retry);
	list_init(&a->listeners);
	list_init(&a->later);
	return a;
}

/* The first session says who serves: they all are at the same place. */
static int open_first(struct agent *a)
{
	struct lane *lane;
	int err = lane_get(a, &lane);

	/* It is one as for a gateway's; those that come after it know better. */
	if (!err && a->sets.where == RGATE_SESSION_DAEMON)
		a->here = sockets_are_here(lane->set);
	return err;
}

static int first_lane(struct agent *a)
{
	const bool either = a->sets.where == RGATE_SESSION_EITHER;
	int err;

	if (either)
		a->sets.where = RGATE_SESSION_DAEMON;
	err = open_first(a);
	if (!either || (err != -ENOENT && err != -ECONNREFUSED))
		return err;
	a->sets.where = RGATE_SESSION_PROCESS;
	return open_first(a);
}

static int fill(struct agent *a, const char *parent)
{
	int err;

	if (getrandom(&a->number, sizeof(a->number), 0) != sizeof(a->number))
		return -EIO;
	err = events_open_plain(&a->ev);
	if (err)
		return err;
	a->probe_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (a->probe_fd < 0)
		return -errno;
	err = closer_open(a);
	if (!err)
		err = first_lane(a);
	if (!err)
		err = make_dir(a, parent);
	return err ? err : data_open(a);
}

int agent_open(struct agent **out, const struct agent_opts *opts)
{
	struct agent_opts o;
	struct agent *a;
	int err;

	err = rgate_opts_copy(&o, sizeof(o), opts);
	if (err)
		return err;
	if (o.loopback > AGENT_LOOPBACK_SERVED)
		return -EINVAL;
	a = make(&o);
	if (!a)
		return -ENOMEM;
	err = fill(a, o.parent);
	if (err) {
		agent_close(a);
		return err;
	}
	*out = a;
	return 0;
}

const char *agent_dir(const struct agent *a)
{
	return a->dir;
}

/* ---- Its loop ---- */

int agent_fd(const struct agent *a)
{
	return a->ev.fd;
}

int agent_timeout(struct agent *a)
{
	struct link *at;
	int ms = 1000;

	for (at = a->lanes.next; at != &a->lanes; at = at->next) {
		struct lane *l = container_of(at, struct lane, link);

		if (rgate_sockets_arm(l->set))
			return 0;
		if (!list_empty(&l->wants))
			ms = 10;
	}
	if (names_arm(a))
		return 0;
	if (closer_tend(a, rgate_clock_now(CLOCK_MONOTONIC)))
		return ms < 10 ? ms : 10;
	return list_empty(&a->retry) && !a->control_off ? ms : 10;
}

static void on_event(const struct epoll_event *ev)
{
	struct source *source = ev->data.ptr;
	struct conn *c;

	switch (source->kind) {
	case SOURCE_CONTROL:
		control_event(container_of(source, struct agent_member, source));
		break;
	case SOURCE_ASK:
		asker_event(container_of(source, struct asker, source), ev->events);
		break;
	case SOURCE_CONN:
		c = container_of(source, struct conn, source);
		if (c->state == CONN_DATAGRAM)
			datagram_event(c, ev->events);
		else
			flow_event(c, ev->events);
		break;
	case SOURCE_LANE:
		break;	/* all of them are looked at each time */
	}
}

/* Each once; those that have to be tried again are there again then. */
static void retry(struct agent *a, uint64_t now)
{
	struct link list;

	if (list_empty(&a->retry) || now - a->retried_ns < RETRY_NS)
		return;
	a->retried_ns = now;
	list = a->retry;
	list.next->prev = list.prev->next = &list;
	list_init(&a->retry);
	while (!list_empty(&list)) {
		struct conn *c = container_of(list.next, struct conn, retry);

		list_del(&c->retry);
		meet_retry(c);
	}
}

int agent_step(struct agent *a)
{
	struct epoll_event ev;
	uint64_t now;
	struct link *at;
	int i;

	for (at = a->lanes.next; at != &a->lanes; at = at->next)
		if (lane_take(container_of(at, struct lane, link)) < 0)
			a->failed = true;
	if (names_take(a) < 0)
		a->failed = true;
	/* One at a time: what one does may free what another is about. */
	for (i = 0; i < EVENTS && !a->failed && events_wait(&a->ev, &ev, 1, 0) == 1; i++)
		on_event(&ev);
	if (a->failed)
		return -EPIPE;
	now = rgate_clock_now(CLOCK_MONOTONIC);
	askers_expire(a, now);
	retry(a, now);
	(void)closer_tend(a, now);
	if (now - a->reaped_ns >= REAP_NS) {
		conns_reap(a, NULL);
		lanes_reap(a);
		names_reap(a);
	}
	return 0;
}
