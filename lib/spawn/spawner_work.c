// SPDX-License-Identifier: MIT OR GPL-2.0
/* What runs, and what came of it. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "spawner_work.h"

/* Groups that were killed are looked at so often, and for so long before the server hears
 * of the end; then less often */
#define SOON_NS		1000000ULL
#define ENDING_NS	200000000ULL
#define LATER_NS	1000000000ULL

struct work *spawner_find(struct spawner *s, uint64_t id)
{
	struct link *const ring = index_at(&s->by_id, id), *l;
	struct work *w;

	for (l = ring->next; l != ring; l = l->next) {
		w = container_of(l, struct work, by_id.link);
		if (w->id == id)
			return w;
	}
	return NULL;
}

void spawner_add(struct spawner *s, struct work *w)
{
	list_add_tail(&s->all, &w->all);
	index_add(&s->by_id, &w->by_id, w->id);
	index_add(&s->by_pid, &w->by_pid, (uint64_t)w->pid);
	s->live++;
	s->busy++;
	s->busy_of[w->node]++;
}

void spawner_idle(struct spawner *s, struct work *w)
{
	s->busy--;
	s->busy_of[w->node]--;
}

static struct work *take_pid(struct spawner *s, pid_t pid)
{
	struct link *const ring = index_at(&s->by_pid, (uint64_t)pid), *l;
	struct work *w;

	for (l = ring->next; l != ring; l = l->next) {
		w = container_of(l, struct work, by_pid.link);
		if (w->pid != pid)
			continue;
		index_del(&s->by_pid, &w->by_pid);
		return w;
	}
	return NULL;
}

void spawner_forget(struct spawner *s, struct work *w)
{
	list_del(&w->all);
	index_del(&s->by_id, &w->by_id);
	index_del(&s->by_pid, &w->by_pid);
	free(w);
}

static bool is_reaped(const struct work *w)
{
	return w->step == WORK_EXITED || w->step == WORK_ENDING;
}

static struct rgate_tree tree_of(const struct work *w)
{
	return (struct rgate_tree){ .leader = w->pid, .reaped = is_reaped(w),
				    .mark = w->child.mark };
}

int spawner_signal_tree(struct spawner *s, const struct work *w, int sig)
{
	const struct rgate_tree tree = tree_of(w);
	int n;

	n = w->group ? rgate_cgroup_signal(&s->cg, w->group, sig) : rgate_tree_signal(&tree, sig);
	/* Who is stopped would not notice. */
	if (sig == SIGTERM || sig == SIGHUP || sig == SIGINT)
		(void)(w->group ? rgate_cgroup_signal(&s->cg, w->group, SIGCONT) :
				    rgate_tree_signal(&tree, SIGCONT));
	return n;
}

/* Does anything live that came of it? Takes the group away if not. */
static bool is_left(struct spawner *s, const struct work *w)
{
	const struct rgate_tree tree = tree_of(w);
	int children;

	if (w->group)
		return rgate_cgroup_end(&s->cg, w->group) == -EBUSY;
	/* Orphans are children of this process; usually there are none. */
	children = rgate_tree_children();
	if (children >= 0 && (unsigned int)children <= s->live + rgate_ahead_count(&s->ahead))
		return false;
	return rgate_tree_signal(&tree, 0) > 0;
}

static void finish(struct spawner *s, struct work *w, bool leftovers)
{
	if (w->tell)
		spawner_finished(s, w->id, leftovers);
	spawner_forget(s, w);
}

/* Again and again: who forks while it is killed gets away once. True: it is gone */
static bool kill_group(struct spawner *s, const struct work *w)
{
	(void)rgate_cgroup_signal(&s->cg, w->group, SIGKILL);
	return rgate_cgroup_remove(&s->cg, w->group) != -EBUSY;
}

void spawner_clear_up(struct spawner *s, struct work *w, bool leave, bool tell)
{
	const struct rgate_tree tree = tree_of(w);

	w->tell = tell;
	if (!is_left(s, w)) {
		finish(s, w, false);
	} else if (leave) {
		if (w->group)
			rgate_cgroup_let_go(&s->cg, w->group);
		finish(s, w, false);
	} else if (!w->group) {
		finish(s, w, rgate_tree_signal(&tree, SIGKILL) > 0);
	} else if (kill_group(s, w)) {
		finish(s, w, true);
	} else {
		/* Nobody else waits for it meanwhile. */
		w->step = WORK_ENDING;
		w->again_ns = rgate_clock_now(CLOCK_MONOTONIC) + SOON_NS;
		w->deadline_ns = w->again_ns + ENDING_NS;
		w->ending_next = s->ending;
		s->ending = w;
	}
}

int spawner_ending(struct spawner *s)
{
	struct work **at = &s->ending, *w;
	uint64_t now, next = UINT64_MAX;

	if (!s->ending)
		return -1;
	now = rgate_clock_now(CLOCK_MONOTONIC);
	while ((w = *at)) {
		if (w->again_ns <= now) {
			if (kill_group(s, w)) {
				*at = w->ending_next;
				finish(s, w, true);
				continue;
			}
			/* It waits in the kernel, who knows how long: that is not its server's
			 * business. The group goes when it can. */
			if (w->deadline_ns <= now && w->tell)
				spawner_finished(s, w->id, true);
			w->tell &= w->deadline_ns > now;
			w->again_ns = now + (w->deadline_ns > now ? SOON_NS : LATER_NS);
		}
		if (w->again_ns < next)
			next = w->again_ns;
		at = &w->ending_next;
	}
	return next == UINT64_MAX ? -1 : next > now ? (int)((next - now) / 1000000) + 1 : 0;
}

static void on_exit_of(struct spawner *s, struct work *w, int status, const struct rusage *usage)
{
	struct rgate_spawner_packet p = {
		.type = RGATE_SPAWNER_EXITED, .id = w->id, .a = status, .usage = *usage,
		.when_ns = rgate_clock_now(CLOCK_REALTIME),
	};

	s->live--;
	/* Its start is told first, and whether it was one. */
	if (w->step == WORK_STARTING)
		(void)spawner_started(s, w, true);
	if (w->step == WORK_FAILED) {
		w->step = WORK_EXITED;
		spawner_clear_up(s, w, false, false);
		return;
	}
	spawner_idle(s, w);
	s->started = false;
	w->step = WORK_EXITED;
	/* Of one that ended well nobody asks. */
	if (status && w->group && rgate_cgroup_oom(&s->cg, w->group))
		p.flags |= RGATE_SPAWN_KILLED_OOM;
	p.b = is_left(s, w);
	spawner_tell(s, &p);
	if (!p.b)
		spawner_forget(s, w);
}

/*
 * It lives, and is stopped: it has said that whoever made it is to trace it (PTRACE_TRACEME), and
 * has got a signal. It gets that as if it had not, and is not traced any more. A stop that is none
 * of a signal's (SIGTRAP, with an event) has none to pass on.
 */
static void untrace(pid_t pid, int status)
{
	const int sig = WSTOPSIG(status);

	if (ptrace(PTRACE_DETACH, pid, NULL, (void *)(long)(sig == SIGTRAP ? 0 : sig)) &&
	    errno != ESRCH)
		(void)kill(pid, SIGKILL);
}

void spawner_reap(struct spawner *s)
{
	struct rusage usage;
	struct work *w;
	int status;
	pid_t pid;

	while ((pid = wait4(-1, &status, WNOHANG, &usage)) > 0) {
		if (WIFSTOPPED(status)) {
			untrace(pid, status);
			continue;
		}
		if (rgate_ahead_reaped(&s->ahead, pid, &s->env))
			continue;
		w = take_pid(s, pid);
		/* Else an orphan of somebody's */
		if (w)
			on_exit_of(s, w, status, &usage);
	}
}

void spawner_signal(struct spawner *s, struct work *w, int sig, int scope)
{
	if (sig < 1 || sig > SIGRTMAX)
		return;
	/* The leader's number may be somebody else's by now. Until then it is nobody else's,
	 * nor is that of its group: this process has not reaped it. */
	if (scope == RGATE_SPAWN_TO_TREE || is_reaped(w))
		(void)spawner_signal_tree(s, w, sig);
	else
		(void)kill(scope == RGATE_SPAWN_TO_GROUP ? -w->pid : w->pid, sig);
}
