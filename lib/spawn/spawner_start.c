// SPDX-License-Identifier: MIT OR GPL-2.0
/* From an order to a process. Who may run what is decided here, by the spawner's own policy. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "container.h"
#include "spawner_work.h"

#define MS	1000000ULL

/* What the server wrote, in memory that it does not reach. NULL: out of memory, or nonsense */
static uint8_t *take_record(struct spawner *s, struct rgate_order *o, struct rgate_request *r,
			    uint32_t *len)
{
	uint8_t *record = NULL;

	r->id = __atomic_load_n(&o->id, __ATOMIC_RELAXED);
	r->mark = __atomic_load_n(&o->mark, __ATOMIC_RELAXED);
	r->node = __atomic_load_n(&o->node, __ATOMIC_RELAXED);
	*len = __atomic_load_n(&o->record_len, __ATOMIC_RELAXED);
	if (r->id >= SPAWNER_IDS && !spawner_find(s, r->id) && r->node < RGATE_NODES_MAX &&
	    *len && *len <= sizeof(o->record))
		record = malloc(*len);
	if (record)
		memcpy(record, o->record, *len);
	__atomic_store_n(&o->taken, 1, __ATOMIC_RELEASE);
	return record;
}

static int no(struct rgate_child *child, int err, const char *why)
{
	snprintf(child->why, sizeof(child->why), "%s", why);
	return err;
}

/* By the policy as it is now. What is executed the process itself finds out. */
static int decide(struct spawner *s, struct rgate_request *r, struct rgate_child *child)
{
	int err;

	r->policy = s->policy;
	r->who = rgate_policy_node(s->policy, r->node);
	err = rgate_policy_limits(s->policy, r->node, &r->req, child->why);
	if (err)
		return err;
	if (s->busy >= rgate_policy_max_running(s->policy) ||
	    (r->who->max_running && s->busy_of[r->node] >= r->who->max_running))
		return no(child, -EAGAIN, "as many run as the policy lets run");
	return 0;
}

/* Limits that are of each process, not of all of them together */
static bool lacks_group(const struct spawner *s, const struct rgate_request *r)
{
	return s->cg.fd < 0 || (r->req.memory && !s->cg.memory) ||
	       (r->req.processes && !s->cg.pids);
}

static void watch(struct spawner *s, struct work *w)
{
	/* Processes that are being made have copies of the descriptor: closed here, it is watched
	 * until theirs are, too. Level-triggered, that would be an event at each look until then.
	 * If it cannot be, it is looked at with those whose time is over. */
	(void)events_add(&s->ev, w->child.result_fd, EPOLLIN | EPOLLET, w->id);
	w->prev = s->starting_last;
	w->next = NULL;
	*s->starting_last = w;
	s->starting_last = &w->next;
}

static void unwatch(struct spawner *s, struct work *w)
{
	*w->prev = w->next;
	if (w->next)
		w->next->prev = w->prev;
	else
		s->starting_last = w->prev;
}

static void start(struct spawner *s, struct work *w, struct rgate_request *r, const int fds[3])
{
	struct rgate_child *child = &w->child;
	bool lacks;

	child->stage = RGATE_SPAWN_AT_REQUEST;
	child->err = decide(s, r, child);
	/* Of the limits that the policy has set, too */
	lacks = lacks_group(s, r);
	if (!child->err && lacks && r->who->need_cgroup)
		child->err = no(child, -EOPNOTSUPP, "its limits need control groups");
	if (child->err)
		return;
	w->id = r->id;
	w->node = r->node;
	w->wall_ms = r->req.wall_ms;
	w->flags = lacks ? RGATE_SPAWN_NO_CGROUP : 0;
	w->deadline_ns = rgate_clock_now(CLOCK_MONOTONIC) + s->birth.start_ms * MS;
	rgate_child_start(child, r, fds, &s->env);
	w->pid = child->pid;
	w->group = child->err ? 0 : child->group;
}

/* The server hears what became of it. */
static void tell_start(struct spawner *s, const struct work *w)
{
	struct rgate_spawner_packet p = {
		.type = RGATE_SPAWNER_STARTED, .id = w->id, .when_ns = w->begun_ns,
		.a = w->child.err ? w->child.err : (int32_t)w->pid, .b = (int32_t)w->child.stage,
		.flags = w->flags, .wall_ms = w->wall_ms,
	};

	memcpy(p.why, w->child.why, sizeof(p.why));
	spawner_tell(s, &p);
}

void spawner_order(struct spawner *s, uint32_t slot, const int fds[3])
{
	struct rgate_request r = { .id = 0 };
	struct work none = { .child = { .err = -ENOMEM, .stage = RGATE_SPAWN_AT_SETUP } };
	struct work *w = calloc(1, sizeof(*w));
	const char *why = "";
	uint8_t *record;
	uint32_t len;

	record = take_record(s, &s->shared->orders[slot], &r, &len);
	none.id = r.id;
	none.begun_ns = rgate_clock_now(CLOCK_REALTIME);
	/* Descriptors are lost where there can be no more of them. */
	if (record && !fds)
		none.child.err = -EMFILE;
	if (!w || !record || !fds) {
		tell_start(s, &none);
		goto free_both;
	}
	*w = none;
	w->child.stage = RGATE_SPAWN_AT_REQUEST;
	r.record = record;
	r.record_len = len;
	w->child.err = rgate_spawn_decode(record, len, &r.req, &why);
	if (w->child.err)
		(void)no(&w->child, 0, why);
	else
		start(s, w, &r, fds);
	rgate_spawn_parsed_free(&r.req);
	free(record);
	if (!w->child.err) {
		spawner_add(s, w);
		watch(s, w);
		return;
	}
	tell_start(s, w);
	free(w);
	return;

free_both:
	free(record);
	free(w);
}

bool spawner_started(struct spawner *s, struct work *w, bool ended)
{
	if (w->step != WORK_STARTING)
		return true;
	if (!rgate_child_result(&w->child, ended))
		return false;
	unwatch(s, w);
	w->step = w->child.err ? WORK_FAILED : WORK_RUNNING;
	if (w->child.err)
		spawner_idle(s, w);
	s->started = !w->child.err;
	tell_start(s, w);
	return true;
}

/* It was stopped, or waits for a file system that somebody holds up. */
static void give_up(struct spawner *s, struct work *w)
{
	if (w->child.pidfd >= 0)
		(void)syscall(SYS_pidfd_send_signal, w->child.pidfd, SIGKILL, NULL, 0);
	(void)spawner_signal_tree(s, w, SIGKILL);
	rgate_child_let_go(&w->child);
	w->child.err = -ETIMEDOUT;
	w->child.stage = RGATE_SPAWN_AT_SETUP;
	(void)no(&w->child, 0, "it took too long to set itself up");
	unwatch(s, w);
	w->step = WORK_FAILED;
	spawner_idle(s, w);
	tell_start(s, w);
}

/* The last one's deadline says when it began. What one user lets hang holds nobody up. */
bool spawner_hurries(const struct spawner *s)
{
	const struct work *last;

	if (!s->starting)
		return false;
	last = container_of(s->starting_last, struct work, next);
	return rgate_clock_now(CLOCK_MONOTONIC) + s->birth.start_ms * MS <
	       last->deadline_ns + SPAWNER_HURRY_MS * MS;
}

int spawner_overdue(struct spawner *s)
{
	uint64_t now;
	struct work *w;

	if (!s->starting)
		return -1;
	now = rgate_clock_now(CLOCK_MONOTONIC);
	while ((w = s->starting) && w->deadline_ns <= now)
		if (!spawner_started(s, w, false))
			give_up(s, w);
	return w ? (int)((w->deadline_ns - now) / MS) + 1 : -1;
}
