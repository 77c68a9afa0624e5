// SPDX-License-Identifier: MIT OR GPL-2.0
#include "queues.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "journal.h"
#include "mirror.h"
#include "regions.h"

#define TASKS		65536U		/* of a queue that says nothing */
#define BYTES		(64ULL << 20)
#define ATTEMPTS	3U
#define RESULT_MS	600000U
#define TICK_MOST	256U		/* tasks whose time has come, at once */

RGATE_ASSERT(RGATE_QUEUE_NAME_MAX == RGATE_MEMORY_NAME_MAX);

void queues_init(struct queues *qs)
{
	memset(qs, 0, sizeof(*qs));
	list_init(&qs->all);
	list_init(&qs->quotas);
	list_init(&qs->gone);
	list_init(&qs->removed);
	list_init(&qs->due);
	list_init(&qs->mirrors);
	qs->mirror_due = UINT64_MAX;
}

bool queue_name_ok(const char name[RGATE_QUEUE_NAME_ROOM])
{
	const size_t len = strnlen(name, RGATE_QUEUE_NAME_ROOM);

	return len < RGATE_QUEUE_NAME_ROOM && regions_name_ok(name, len);
}

int queue_open_check(const struct queue_open *as)
{
	const uint32_t made = as->flags & ~RGATE_QUEUE_CREATE;
	const struct rgate_queue_place *p = &as->place;

	if (as->flags & ~RGATE_QUEUE_FLAGS || !queue_name_ok(p->name))
		return -EINVAL;
	/* Copies of a user's tasks are with other nodes in his name alone. */
	if (as->flags & RGATE_QUEUE_MIRROR && as->flags & RGATE_QUEUE_SUBMIT)
		return -EINVAL;
	if (!(as->flags & RGATE_QUEUE_CREATE))
		return made || p->bytes || p->tasks || p->attempts || p->run_ms || p->result_ms ?
		       -EINVAL : 0;
	return p->bytes > RGATE_QUEUE_BYTES_MAX || p->tasks > RGATE_QUEUE_TASKS_MAX ||
	       p->attempts > RGATE_QUEUE_ATTEMPTS_MAX || p->run_ms > RGATE_QUEUE_MS_MAX ||
	       p->result_ms > RGATE_QUEUE_MS_MAX ? -EINVAL : 0;
}

/* ---- What an owner has ---- */

static struct quota *quota_get(struct queues *qs, uid_t uid)
{
	struct quota *quota;
	struct link *l;

	for (l = qs->quotas.next; l != &qs->quotas; l = l->next) {
		quota = container_of(l, struct quota, of_home);
		if (quota->uid == uid)
			return quota;
	}
	quota = calloc(1, sizeof(*quota));
	if (!quota)
		return NULL;
	quota->home = qs;
	quota->uid = uid;
	list_add_tail(&qs->quotas, &quota->of_home);
	return quota;
}

static void quota_put(struct quota *quota)
{
	if (quota->queues)
		return;
	list_del(&quota->of_home);
	free(quota);
}

int quota_take(struct quota *quota, uint64_t bytes)
{
	if (quota->bytes + bytes > QUEUES_UID_BYTES || quota->home->bytes + bytes > QUEUES_BYTES)
		return -EDQUOT;
	quota->bytes += bytes;
	quota->home->bytes += bytes;
	return 0;
}

void quota_give(struct quota *quota, uint64_t bytes)
{
	quota->bytes -= bytes;
	quota->home->bytes -= bytes;
}

int queues_reserve(struct queues *qs)
{
	return heap_reserve(&qs->timers, qs->ntasks + 1);
}

/* ---- Queues ---- */

static struct queue *find(const struct queues *qs, uid_t owner, const char *name)
{
	struct queue *q;
	struct link *l;

	for (l = qs->all.next; l != &qs->all; l = l->next) {
		q = container_of(l, struct queue, of_home);
		if (q->owner == owner && !strcmp(q->name, name))
			return q;
	}
	return NULL;
}

static void set_rules(struct queue *q, const struct queue_open *as)
{
	const struct rgate_queue_place *p = &as->place;

	q->owner = as->owner;
	memcpy(q->name, p->name, strlen(p->name) + 1);
	q->rules = (struct queue_rules){
		.bytes = p->bytes ? p->bytes : BYTES, .tasks = p->tasks ? p->tasks : TASKS,
		.attempts = p->attempts ? p->attempts : ATTEMPTS, .run_ms = p->run_ms,
		.result_ms = p->result_ms ? p->result_ms : RESULT_MS,
		.flags = as->flags & QUEUE_MADE_FLAGS,
	};
	/* Who has copies submits them again: they would be twice. */
	if (q->rules.flags & RGATE_QUEUE_MIRROR)
		q->rules.flags |= RGATE_QUEUE_NO_JOURNAL;
}

static struct queue *make(struct queues *qs, const struct queue_open *as, struct quota *quota)
{
	struct queue *q = calloc(1, sizeof(*q));
	unsigned int i;

	if (!q)
		return NULL;
	set_rules(q, as);
	q->home = qs;
	q->quota = quota;
	q->serial = ++qs->serial;
	list_init(&q->of_due);
	list_init(&q->workers);
	list_init(&q->tasks);
	list_init(&q->delayed);
	list_init(&q->buried);
	list_init(&q->done);
	list_init(&q->claims);
	list_init(&q->rooms);
	list_init(&q->idle);
	list_init(&q->follows);
	for (i = 0; i < RGATE_QUEUE_PRIORITIES * RGATE_QUEUE_TYPES; i++)
		list_init(&q->ready[i / RGATE_QUEUE_TYPES][i % RGATE_QUEUE_TYPES]);
	if (q->rules.flags & RGATE_QUEUE_MIRROR && mirror_create(q)) {
		free(q);
		return NULL;
	}
	list_add_tail(&qs->all, &q->of_home);
	quota->queues++;
	qs->n++;
	q->journaled = !(q->rules.flags & RGATE_QUEUE_NO_JOURNAL);
	if (qs->journal && q->journaled)
		journal_queue(qs->journal, q);
	return q;
}

struct queue *queues_by_serial(const struct queues *qs, uint64_t serial)
{
	struct queue *q;
	struct link *l;

	for (l = qs->all.prev; l != &qs->all; l = l->prev) {
		q = container_of(l, struct queue, of_home);
		if (q->serial == serial)
			return q;
	}
	return NULL;
}

/* -ENOSPC: too much of it waits to be written; -ENOMEM */
static int may_record(const struct queues *qs, const struct queue_open *as)
{
	int err;

	if (!qs->journal || as->flags & RGATE_QUEUE_NO_JOURNAL)
		return 0;
	err = journal_may_change(qs->journal, sizeof(as->place));
	return err && err != -ENOMEM ? -ENOSPC : err;
}

static int create(struct queues *qs, uid_t uid, const struct queue_open *as, struct queue **out)
{
	struct quota *quota;
	int err = 0;

	if (!(as->flags & RGATE_QUEUE_CREATE) || uid != as->owner)
		return -ENOENT;
	quota = quota_get(qs, uid);
	if (!quota)
		return -ENOMEM;
	if (quota->queues >= QUEUES_UID)
		err = -EDQUOT;
	else if (qs->n >= QUEUES_MOST)
		err = -ENOSPC;
	else
		err = may_record(qs, as);
	*out = err ? NULL : make(qs, as, quota);
	if (!*out)
		quota_put(quota);
	return err ? err : *out ? 0 : -ENOMEM;
}

int queues_open(struct queues *qs, uid_t uid, const struct queue_open *as, struct queue **out)
{
	struct queue *q = find(qs, as->owner, as->place.name);
	int err = 0;

	if (!q)
		err = create(qs, uid, as, &q);
	else if (uid != q->owner && !(q->rules.flags & (RGATE_QUEUE_SUBMIT | RGATE_QUEUE_WORK)))
		err = -EACCES;
	else if (as->flags & RGATE_QUEUE_EXCLUSIVE)
		err = -EEXIST;
	if (err)
		return err;
	q->handles++;
	*out = q;
	return 0;
}

int queues_restore(struct queues *qs, const struct queue_open *as, uint64_t serial,
		   struct queue **out)
{
	const uint64_t last = qs->serial;
	struct link *l;
	int err;

	err = queues_open(qs, as->owner, as, out);
	if (err)
		return err;
	(*out)->serial = serial;
	qs->serial = serial > last ? serial : last;
	list_del(&(*out)->of_home);
	for (l = qs->all.next; l != &qs->all; l = l->next)
		if (container_of(l, struct queue, of_home)->serial > serial)
			break;
	list_add_tail(l, &(*out)->of_home);
	return 0;
}

static void empty(struct queue *q)
{
	while (!list_empty(&q->tasks))
		queue_drop(q, container_of(q->tasks.next, struct task, of_queue));
}

/* The journal does, at once, with all tasks */
static void forget(struct queue *q)
{
	if (q->home->journal && q->journaled)
		journal_removed(q->home->journal, q);
	q->journaled = false;
}

static void destroy(struct queue *q)
{
	struct quota *quota = q->quota;

	forget(q);
	empty(q);
	mirror_destroy(q->mirror);
	queue_table_free(q);
	queue_ends_free(q);
	list_del(&q->of_home);
	list_del(&q->of_due);
	q->home->n--;
	quota->queues--;
	quota_put(quota);
	free(q);
}

void queues_put(struct queue *q)
{
	if (q->handles || q->n || (!q->removed && q->rules.flags & RGATE_QUEUE_KEEP))
		return;
	/* Nobody needs it but those who have copies, of nothing: they are told. */
	if (q->mirror && q->mirror->handles) {
		if (!q->removed)
			queues_remove(q);
		return;
	}
	destroy(q);
}

/* ---- What is gone, QUEUE_STEPS tasks at a time: the engine is not this queue's alone ---- */

static void drop_some(struct queue *q)
{
	struct queues *qs = q->home;

	for (; qs->steps < QUEUE_STEPS && !list_empty(&q->tasks); qs->steps++)
		queue_drop(q, container_of(q->tasks.next, struct task, of_queue));
}

void queues_remove(struct queue *q)
{
	q->removed = true;
	forget(q);
	list_del(&q->of_home);
	if (q->mirror)
		mirror_quit(q->mirror);
	queue_tell_all(q);
	queue_ends_free(q);
	drop_some(q);
	if (q->n)
		list_add_tail(&q->home->removed, &q->of_home);
	else
		queue_table_free(q);
}

static void give_some(struct queue *q, struct worker *w)
{
	struct queues *qs = q->home;

	qs->steps += queue_worker_give(q, w, QUEUE_STEPS - qs->steps);
}

void queues_worker_gone(struct queue *q, struct worker *w)
{
	list_del(&w->of_queue);
	give_some(q, w);
	if (list_empty(&w->tasks))
		w->over(w);
	else
		list_add_tail(&q->home->gone, &w->of_queue);
}

static struct worker *first_gone(const struct queues *qs)
{
	return container_of(qs->gone.next, struct worker, of_queue);
}

/* Goes on with it; true: there is more */
static bool sweep(struct queues *qs)
{
	struct worker *w;
	struct queue *q;

	qs->steps = 0;
	while (!list_empty(&qs->gone) && qs->steps < QUEUE_STEPS) {
		w = first_gone(qs);
		q = NULL;
		if (!list_empty(&w->tasks)) {
			q = container_of(w->tasks.next, struct task, in)->queue;
			give_some(q, w);
		}
		if (list_empty(&w->tasks)) {
			list_del(&w->of_queue);
			w->over(w);
		}
		if (q)
			queue_settle(q);
	}
	if (!list_empty(&qs->due)) {
		q = container_of(qs->due.next, struct queue, of_due);
		list_del(&q->of_due);
		queue_settle(q);
	}
	while (!list_empty(&qs->removed) && qs->steps < QUEUE_STEPS) {
		q = container_of(qs->removed.next, struct queue, of_home);
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): what is freed has left its list */
		drop_some(q);
		if (q->n)
			break;
		list_del(&q->of_home);
		queue_table_free(q);
		queues_put(q);
	}
	return !list_empty(&qs->gone) || !list_empty(&qs->removed) || !list_empty(&qs->due);
}

void queues_fini(struct queues *qs)
{
	struct worker *w;

	while (!list_empty(&qs->all))
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): what is freed has left its list */
		destroy(container_of(qs->all.next, struct queue, of_home));
	while (!list_empty(&qs->removed))
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): what is freed has left its list */
		destroy(container_of(qs->removed.next, struct queue, of_home));
	while (!list_empty(&qs->gone)) {
		w = first_gone(qs);
		list_del(&w->of_queue);
		w->over(w);
	}
	heap_fini(&qs->timers);
}

uint64_t queues_list(const struct queues *qs, uid_t uid, uint64_t after,
		     struct rgate_queue_info *info)
{
	struct queue *q;
	struct link *l;

	for (l = qs->all.next; l != &qs->all; l = l->next) {
		q = container_of(l, struct queue, of_home);
		if (q->serial <= after)
			continue;
		if (uid != q->owner && !(q->rules.flags & (RGATE_QUEUE_SUBMIT | RGATE_QUEUE_WORK)))
			continue;
		queue_info(q, info);
		return q->serial;
	}
	return 0;
}

bool queues_give_room(struct queues *qs)
{
	struct link *l, *next;
	struct queue *q;

	if (!qs->full)
		return false;
	qs->full = false;
	for (l = qs->all.next; l != &qs->all; l = next) {
		next = l->next;
		q = container_of(l, struct queue, of_home);
		if (!list_empty(&q->rooms))
			queue_settle(q);
	}
	return qs->full;
}

uint64_t queues_tick(struct queues *qs, uint64_t now)
{
	struct heap_node *first;
	struct queue *q;
	struct task *t;
	bool more;
	uint32_t i;

	/* What was begun in the meantime has a later one. */
	if (now > qs->now)
		qs->now = now;
	more = sweep(qs);
	for (i = 0; (first = heap_first(&qs->timers)) && first->at <= now; i++) {
		if (i == TICK_MOST)
			return now;
		t = container_of(first, struct task, timer);
		q = t->queue;
		queue_expire(t);
		queue_settle(q);
	}
	if (more)
		return now;
	return first ? first->at : UINT64_MAX;
}
