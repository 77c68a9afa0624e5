// SPDX-License-Identifier: MIT OR GPL-2.0
#include "journal_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "log.h"

#define BATCH_MOST	(1U << 20)	/* bytes that are written at once, or one record */
#define PENDING_MOST	(256ULL << 20)	/* bytes that may wait */
#define MOVE_MOST	256U		/* tasks of a tick */
#define AGAIN_NS	10000000ULL	/* a tick, while there are answers that may be taken back */

uint64_t journal_now(const struct journal *j)
{
	return j->wall ? j->wall() : rgate_clock_now(CLOCK_REALTIME);
}

/* The same time, of the queues' clock */
static uint64_t to_wall(const struct journal *j, uint64_t at)
{
	return journal_now(j) + (at - j->home->now);
}

/* ---- Segments ---- */

uint64_t journal_total(const struct segment *s)
{
	return s->size > JOURNAL_LEAST ? s->size : JOURNAL_LEAST;
}

static void grow_segment(struct journal *j, struct segment *s, uint64_t more)
{
	j->total -= journal_total(s);
	s->size += more;
	j->total += journal_total(s);
}

/* ---- Batches, with the lock held ---- */

struct batch *journal_batch_free(struct batch *b)
{
	free(b->buf);
	free(b->held);
	free(b);
	return NULL;
}

/* For @len bytes more. False: there is no memory, and it stays as it is */
static bool grow_batch(struct batch *b, size_t len)
{
	size_t room;
	char *more;

	if (b->len + len <= b->room)
		return true;
	room = b->room * 2 > b->len + len ? b->room * 2 : b->len + len;
	more = realloc(b->buf, room);
	if (!more)
		return false;
	b->buf = more;
	b->room = room;
	return true;
}

/* One with room for @len bytes, which is in no list. NULL: there is no memory */
static struct batch *make_batch(struct journal *j, size_t len)
{
	struct batch *b = j->spare_batch;

	j->spare_batch = NULL;
	if (!b)
		b = calloc(1, sizeof(*b));
	if (!b)
		return NULL;
	b->len = 0;
	return grow_batch(b, len) ? b : journal_batch_free(b);
}

static struct batch *add_batch(struct journal *j, struct batch *b)
{
	b->next = NULL;
	b->len = b->written = b->nheld = 0;
	list_init(&b->dead);
	b->seg = j->head;
	b->at = j->head->size;
	if (j->last)
		j->last->next = b;
	else
		j->first = b;
	j->last = b;
	return b;
}

/* One for @len bytes more. NULL: there is no memory, also none that was kept for that */
static struct batch *batch_for(struct journal *j, size_t len)
{
	struct batch *b = j->last;

	if (b && b->seg == j->head && (!b->len || b->len + len <= BATCH_MOST) &&
	    grow_batch(b, len))
		return b;
	b = make_batch(j, len);
	if (!b && j->reserve && j->reserve->room >= len) {
		b = j->reserve;
		j->reserve = NULL;
	}
	return b ? add_batch(j, b) : NULL;
}

static void wake(struct journal *j)
{
	if (j->sleeps)
		pthread_cond_signal(&j->cond);
}

/* ---- Records ---- */

/* What is sure when a record of that batch is written: journal_record.sure */
static uint32_t sure_of(const struct journal *j, const struct batch *b)
{
	if (j->sync_ms == JOURNAL_SYNC_EACH || j->sync_ms == JOURNAL_SYNC_NEVER)
		return (uint32_t)b->at;
	return (uint32_t)j->head->synced;
}

struct part {
	const void *bytes;
	size_t len;
};

static size_t padded(size_t len)
{
	return (len + 7) & ~(size_t)7;
}

/* False: there is no memory, which journal_may_...() has ruled out for what counts */
static bool append(struct journal *j, enum journal_kind kind, const struct part *parts,
		   unsigned int n)
{
	struct journal_record head = { .kind = kind, .len = sizeof(head) };
	struct batch *b;
	unsigned int i;
	char *at;

	for (i = 0; i < n; i++)
		head.len += (uint32_t)padded(parts[i].len);
	b = batch_for(j, head.len);
	if (!b)
		return false;
	head.at = (uint32_t)(b->at + b->len);
	head.sure = sure_of(j, b);
	at = b->buf + b->len;
	memcpy(at, &head, sizeof(head));
	at += sizeof(head);
	for (i = 0; i < n; i++) {
		const size_t len = padded(parts[i].len);

		if (!len)
			continue;
		memset(at + len - 8, 0, 8);
		memcpy(at, parts[i].bytes, parts[i].len);
		at += len;
	}
	head.crc = journal_record_crc(j->head->salt, b->buf + b->len, head.len);
	memcpy(b->buf + b->len, &head.crc, sizeof(head.crc));
	b->len += head.len;
	j->pending += head.len;
	j->records++;
	grow_segment(j, j->head, head.len);
	return true;
}

static bool append_queue(struct journal *j, const struct queue *q)
{
	struct journal_queue record = {
		.serial = q->serial, .last = q->last, .owner = q->owner, .flags = q->rules.flags,
		.place = {
			.bytes = q->rules.bytes, .tasks = q->rules.tasks,
			.attempts = q->rules.attempts, .run_ms = q->rules.run_ms,
			.result_ms = q->rules.result_ms,
		},
	};

	memcpy(record.place.name, q->name, sizeof(q->name));
	return append(j, JOURNAL_QUEUE, &(struct part){ &record, sizeof(record) }, 1);
}

/* With memory for all that has to be in its beginning: or the one that is there goes on for now */
bool journal_roll(struct journal *j, size_t more)
{
	const size_t each = sizeof(struct journal_record) + sizeof(struct journal_queue);
	struct batch *b = make_batch(j, j->home->n * each + more);
	const struct queue *q;
	struct link *l;

	if (!b)
		return false;
	j->head = j->spare;
	j->spare = NULL;
	list_add_tail(&j->segs, &j->head->of_journal);
	j->total += journal_total(j->head);
	add_batch(j, b);
	for (l = j->home->all.next; l != &j->home->all; l = l->next) {
		q = container_of(l, struct queue, of_home);
		if (q->journaled)
			(void)append_queue(j, q);
	}
	return true;
}

/* And @more bytes behind that */
static void roll_if_full(struct journal *j, size_t more)
{
	if (j->head->size > j->segment / 2 && !j->spare && !j->want_spare) {
		j->want_spare = true;
		wake(j);
	}
	if (j->head->size >= j->segment && j->spare)
		(void)journal_roll(j, more);
}

static bool record(struct journal *j, enum journal_kind kind, const struct part *parts,
		   unsigned int n)
{
	size_t len = sizeof(struct journal_record);
	unsigned int i;
	bool done;

	for (i = 0; i < n; i++)
		len += padded(parts[i].len);
	pthread_mutex_lock(&j->lock);
	roll_if_full(j, len);
	done = append(j, kind, parts, n);
	pthread_mutex_unlock(&j->lock);
	return done;
}

/* What nobody can be refused. */
static void record_end(struct journal *j, enum journal_kind kind, const struct part *parts,
		       unsigned int n)
{
	if (!record(j, kind, parts, n))
		rgate_err("journal %s: for want of memory it has not what became of a task, which may come again",
			  j->name);
}

static struct journal_change change_of(const struct journal *j, const struct task *t)
{
	struct journal_change c = {
		.name = { .queue = t->queue->serial, .id = t->id }, .attempts = t->attempts,
		.end_len = t->end_len, .state = t->state,
	};

	if (t->state == RGATE_TASK_CLAIMED || t->state == RGATE_TASK_RUNNING)
		c.state = RGATE_TASK_READY;
	else if (heap_has(&t->timer))
		c.due = to_wall(j, t->timer.at);
	return c;
}

void journal_queue(struct journal *j, const struct queue *q)
{
	pthread_mutex_lock(&j->lock);
	(void)append_queue(j, q);
	pthread_mutex_unlock(&j->lock);
}

void journal_removed(struct journal *j, const struct queue *q)
{
	const struct journal_name name = { .queue = q->serial };

	record_end(j, JOURNAL_REMOVED, &(struct part){ &name, sizeof(name) }, 1);
}

void journal_leave(struct journal *j, struct task *t)
{
	list_del(&t->of_seg);
	__atomic_sub_fetch(&j->live, t->seg_len, __ATOMIC_RELAXED);
	t->seg = NULL;
}

void journal_task(struct journal *j, struct task *t)
{
	const struct journal_task task = {
		.now = change_of(j, t), .born = to_wall(j, t->born_ns), .uid = t->uid,
		.len = t->len, .most = t->most, .type = t->type, .priority = t->priority,
		.flags = t->flags,
	};
	const struct part parts[] = {
		{ &task, sizeof(task) }, { t->data, t->len }, { t->end, t->end_len },
	};

	if (!record(j, JOURNAL_TASK, parts, 3))
		return;
	if (t->seg)
		journal_leave(j, t);
	t->seg = j->head;
	t->seg_len = (uint32_t)(sizeof(struct journal_record) + sizeof(task) + padded(t->len) +
				padded(t->end_len));
	__atomic_add_fetch(&j->live, t->seg_len, __ATOMIC_RELAXED);
	list_add_tail(&j->head->tasks, &t->of_seg);
}

void journal_change(struct journal *j, const struct task *t)
{
	const struct journal_change c = change_of(j, t);
	const struct part parts[] = { { &c, sizeof(c) }, { t->end, t->end_len } };

	record_end(j, JOURNAL_CHANGE, parts, 2);
}

void journal_gone(struct journal *j, struct task *t)
{
	const struct journal_name name = { .queue = t->queue->serial, .id = t->id };

	record_end(j, JOURNAL_GONE, &(struct part){ &name, sizeof(name) }, 1);
	journal_leave(j, t);
}

/* ---- May it be? ---- */

/* It is kept for that: others may have used what there is by then, or the thread has taken it. */
static bool has_memory(struct journal *j, uint32_t len)
{
	const size_t need = sizeof(struct journal_record) + sizeof(struct journal_task) +
			    padded(len);

	if (!j->reserve)
		j->reserve = calloc(1, sizeof(*j->reserve));
	return j->reserve && grow_batch(j->reserve, need);
}

/* With the lock held */
static bool is_full(const struct journal *j)
{
	return j->pending > PENDING_MOST || j->head->size > JOURNAL_SEGMENT_MOST / 2;
}

bool journal_is_full(struct journal *j)
{
	bool full;

	pthread_mutex_lock(&j->lock);
	roll_if_full(j, 0);
	full = is_full(j) && !j->err && !j->tight;
	pthread_mutex_unlock(&j->lock);
	return full;
}

int journal_may_submit(struct journal *j, uint32_t len)
{
	int err = 0;

	pthread_mutex_lock(&j->lock);
	roll_if_full(j, 0);
	if (j->err)
		err = j->err;
	else if (j->tight && j->head->size >= j->segment)
		err = j->tight;
	else if (is_full(j))
		err = -EAGAIN;
	else if (!has_memory(j, len))
		err = -ENOMEM;
	if (err == -ENOSPC || err == -EIO)
		j->count.refused++;
	pthread_mutex_unlock(&j->lock);
	return err;
}

/* With the lock held */
static bool is_crowded(const struct journal *j)
{
	return j->pending > PENDING_MOST + (PENDING_MOST >> 1) ||
	       j->head->size > JOURNAL_SEGMENT_MOST - 2 * JOURNAL_RECORD_MOST;
}

bool journal_is_crowded(struct journal *j)
{
	bool crowded;

	pthread_mutex_lock(&j->lock);
	roll_if_full(j, 0);
	crowded = is_crowded(j);
	pthread_mutex_unlock(&j->lock);
	return crowded;
}

int journal_may_change(struct journal *j, uint32_t len)
{
	int err = 0;

	pthread_mutex_lock(&j->lock);
	roll_if_full(j, 0);
	if (is_crowded(j))
		err = j->err ? j->err : -EAGAIN;
	else if (!has_memory(j, len))
		err = -ENOMEM;
	pthread_mutex_unlock(&j->lock);
	return err;
}

/* ---- Who waits ---- */

uint64_t journal_mark(const struct journal *j)
{
	return j->records;
}

static bool is_behind(const struct journal *j)
{
	return j->busy || (j->first && (j->first->len || j->first->next));
}

bool journal_is_behind(struct journal *j)
{
	bool behind;

	pthread_mutex_lock(&j->lock);
	behind = is_behind(j);
	pthread_mutex_unlock(&j->lock);
	return behind;
}

/* With the last of what is not written */
static bool put_answer(struct journal *j, const struct journal_answer *a)
{
	struct batch *b = j->last ? j->last : j->busy;
	struct journal_answer *more;
	uint32_t room;

	if (!b)
		return false;
	if (b->nheld == b->held_room) {
		room = b->held_room ? b->held_room * 2 : 64;
		more = realloc(b->held, room * sizeof(*more));
		if (!more)
			return false;
		b->held = more;
		b->held_room = room;
	}
	b->held[b->nheld++] = *a;
	return true;
}

/* ---- Turns ---- */

static void take_back(struct journal *j, const struct journal_answer *a)
{
	struct queue *q = queues_by_serial(j->home, a->queue);
	struct task *t;
	int i;

	for (i = 0; q && i < a->result; i++) {
		t = queue_find(q, a->value + (uint64_t)i);
		if (t)
			queue_drop(q, t);
	}
	if (q)
		queue_settle(q);
}

void journal_hold(struct journal *j, const struct journal_answer *a)
{
	bool held;

	pthread_mutex_lock(&j->lock);
	held = is_behind(j) && put_answer(j, a);
	pthread_mutex_unlock(&j->lock);
	if (held)
		return;
	/* Nothing to wait for, or no memory to wait in */
	if (journal_drain(j)) {
		rgate_req_end(a->r, a->result, a->value);
		return;
	}
	if (a->submit)
		take_back(j, a);
	rgate_req_end(a->r, -EIO, 0);
}

/* What was submitted, and cannot be written, never was. */
static void take_failed(struct journal *j)
{
	struct journal_answer *failed;
	uint32_t n, i;
	int err;

	pthread_mutex_lock(&j->lock);
	failed = j->failed;
	n = j->nfailed;
	j->failed = NULL;
	j->nfailed = 0;
	j->count.refused += n;
	err = j->err ? j->err : -EIO;
	pthread_mutex_unlock(&j->lock);
	for (i = 0; i < n; i++) {
		take_back(j, &failed[i]);
		rgate_req_end(failed[i].r, err, 0);
	}
	free(failed);
}

/* Those of no use, from the oldest one on, are removed behind what is recorded so far. */
void journal_drop_segments(struct journal *j)
{
	struct segment *s;
	struct batch *b;

	for (;;) {
		s = container_of(j->segs.next, struct segment, of_journal);
		if (s == j->head || !list_empty(&s->tasks))
			return;
		pthread_mutex_lock(&j->lock);
		b = batch_for(j, 8);
		if (b) {
			list_del(&s->of_journal);
			list_add_tail(&b->dead, &s->of_journal);
			j->total -= journal_total(s);
			j->count.segments--;
		}
		pthread_mutex_unlock(&j->lock);
		if (!b)
			return;
	}
}

/*
 * Is too much of no use? Of a segment more and the half of what is live nothing is said: moving
 * costs. Four bytes are moved for one that is written, so that it ends.
 */
static bool is_fat(const struct journal *j)
{
	return j->total > j->live + j->live / 2 + 2ULL * j->segment;
}

static bool may_move(struct journal *j)
{
	bool may;

	pthread_mutex_lock(&j->lock);
	may = !j->err && !j->tight && is_fat(j) && j->head->size < 2ULL * j->segment;
	pthread_mutex_unlock(&j->lock);
	return may;
}

static void move_some(struct journal *j)
{
	uint64_t budget = j->total > j->moved_at ? 4 * (j->total - j->moved_at) : 0;
	struct segment *s;
	struct task *t;
	unsigned int i;

	for (i = 0; i < MOVE_MOST && may_move(j); i++) {
		s = container_of(j->segs.next, struct segment, of_journal);
		if (s == j->head || list_empty(&s->tasks))
			break;
		t = container_of(s->tasks.next, struct task, of_seg);
		/* The journal has said that its queue is removed, and it goes with that. */
		if (!t->queue->journaled) {
			journal_leave(j, t);
			continue;
		}
		journal_task(j, t);
		if (t->seg == s || budget < t->seg_len)
			break;
		budget -= t->seg_len;
	}
	j->moved_at = j->total;
}

uint64_t journal_tick(struct journal *j, uint64_t now)
{
	bool failed, waits;

	journal_drop_segments(j);
	move_some(j);
	pthread_mutex_lock(&j->lock);
	failed = j->failed;
	if (j->first)
		wake(j);
	waits = is_behind(j) || failed;
	pthread_mutex_unlock(&j->lock);
	if (failed)
		take_failed(j);
	return waits ? now + AGAIN_NS : UINT64_MAX;
}
