// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * What a journal has, into the queues of a home: at the start, one file after the other. Times are
 * those of the wall's clock there, which somebody may have set meanwhile: what is left of one is no
 * more than it can have been.
 */
#include "journal_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"

#define MS	1000000ULL

struct load {
	struct journal *j;
	struct segment *seg;
	const char *name;
	const uint64_t *numbers;
	size_t n, i;			/* files; which one it is */
	uint64_t now;
	uint64_t left_out;		/* bytes; with repair */
};

static int wrong(const struct load *l, uint64_t at, const char *what)
{
	rgate_err("journal %s/%s: %s at byte %" PRIu64 ": start ringgated once with 'repair' behind the journal's directory, which leaves out what cannot be read, or remove the directory",
		  l->j->name, l->name, what, at);
	return -EBADMSG;
}

/* ---- Records ---- */

static uint64_t due_at(const struct load *l, uint64_t due, uint64_t most_ms)
{
	const uint64_t left = due > l->now ? due - l->now : 0;

	return l->j->home->now + (left < most_ms * MS ? left : most_ms * MS);
}

static struct queue_saved saved_of(const struct load *l, const struct queue *q,
				   const struct journal_change *c, const void *end)
{
	return (struct queue_saved){
		.id = c->name.id, .attempts = c->attempts, .state = c->state, .end = end,
		.end_len = c->end_len,
		.due_ns = due_at(l, c->due, c->state == RGATE_TASK_DONE ? q->rules.result_ms :
				 RGATE_QUEUE_MS_MAX),
	};
}

static void leave_segment(struct task *t)
{
	list_del(&t->of_seg);
	t->seg = NULL;
}

static void drop_all(struct queue *q)
{
	struct task *t;

	while (!list_empty(&q->tasks)) {
		t = container_of(q->tasks.next, struct task, of_queue);
		leave_segment(t);
		queue_drop(q, t);
	}
}

static void on_removed(struct queue *q)
{
	drop_all(q);
	/* Not to be kept, so it goes with its handle. */
	q->rules.flags &= ~RGATE_QUEUE_KEEP;
	q->handles--;
	queues_put(q);
}

/* That it was removed could not be read, or written: there never are two of one name. */
static void on_same_name(struct queues *home, const struct journal_queue *r)
{
	struct queue *q;
	struct link *l;

	for (l = home->all.next; l != &home->all; l = l->next) {
		q = container_of(l, struct queue, of_home);
		if (q->owner != r->owner || strcmp(q->name, r->place.name) ||
		    q->serial > r->serial)
			continue;
		on_removed(q);
		return;
	}
}

static int on_queue(struct load *l, const struct journal_queue *r)
{
	struct queue_open as = {
		.owner = r->owner, .flags = r->flags | RGATE_QUEUE_CREATE, .place = r->place,
	};
	struct queue *q;
	int err;

	if (!r->serial || r->serial >= UINT64_MAX / 2 || r->last >= UINT64_MAX / 2 ||
	    r->flags & ~QUEUE_MADE_FLAGS || r->flags & RGATE_QUEUE_NO_JOURNAL ||
	    queue_open_check(&as))
		return -EINVAL;
	q = queues_by_serial(l->j->home, r->serial);
	if (q && (q->owner != r->owner || strcmp(q->name, r->place.name)))
		return -EINVAL;
	if (!q) {
		on_same_name(l->j->home, r);
		as.flags |= RGATE_QUEUE_EXCLUSIVE;
		err = queues_restore(l->j->home, &as, r->serial, &q);
		if (err)
			return err;
	}
	if (r->last > q->last)
		q->last = r->last;
	return 0;
}

static int on_task(struct load *l, struct queue *q, const struct journal_got *got)
{
	const struct journal_task *r = &got->task;
	const struct rgate_queue_put put = {
		.len = r->len, .attempts = r->most, .type = r->type, .priority = r->priority,
		.flags = r->flags,
	};
	struct queue_saved s = saved_of(l, q, &r->now, got->end);
	struct task *t = queue_find(q, s.id);
	int err;

	if (!s.id || s.id >= UINT64_MAX / 2 || queue_put_check(&put) || !r->most)
		return -EINVAL;
	s.data = got->data;
	s.len = r->len;
	s.most = r->most;
	s.uid = r->uid;
	s.type = r->type;
	s.priority = r->priority;
	s.flags = r->flags;
	s.born_ns = r->born < l->now ? l->j->home->now - (l->now - r->born) : l->j->home->now;
	/* The machine may be up for less time than it is old. */
	if (s.born_ns > l->j->home->now)
		s.born_ns = 0;
	if (t) {
		leave_segment(t);
		queue_drop(q, t);
	}
	err = queue_restore(q, &s, &t);
	if (err)
		return err;
	t->seg = l->seg;
	t->seg_len = got->head.len;
	list_add_tail(&l->seg->tasks, &t->of_seg);
	return 0;
}

/* Of tasks that are not there any more, as what they were in is gone, there are changes yet. */
static int on_change(struct load *l, struct queue *q, const struct journal_got *got)
{
	const struct queue_saved s = saved_of(l, q, &got->change, got->end);
	struct task *t = queue_find(q, s.id);

	return t ? queue_restore_change(q, t, &s) : 0;
}

static void on_gone(struct queue *q, uint64_t id)
{
	struct task *t = queue_find(q, id);

	if (!t)
		return;
	leave_segment(t);
	queue_drop(q, t);
}

static int apply(struct load *l, const struct journal_got *got)
{
	struct queue *q;

	if (got->head.kind == JOURNAL_QUEUE)
		return on_queue(l, &got->queue);
	q = queues_by_serial(l->j->home, got->name.queue);
	/* Queues that were removed; of others each file has the record in front */
	if (!q)
		return l->j->repair || got->head.kind != JOURNAL_TASK ? 0 : -ENOENT;
	switch (got->head.kind) {
	case JOURNAL_REMOVED:
		on_removed(q);
		return 0;
	case JOURNAL_TASK:
		return on_task(l, q, got);
	case JOURNAL_CHANGE:
		return on_change(l, q, got);
	default:
		on_gone(q, got->name.id);
		return 0;
	}
}

static int apply_or_say(struct load *l, const struct journal_got *got)
{
	int err = apply(l, got);

	if (!err || err == -ENOMEM)
		return err;
	if (l->j->repair) {
		l->left_out += got->head.len;
		l->seg->bad = true;
		return 0;
	}
	return wrong(l, got->head.at, err == -EDQUOT || err == -EAGAIN || err == -ENOSPC ?
		     "there are more tasks than a home can have" : "what cannot be");
}

/* ---- Files ---- */

/* Nothing was written behind this one: none has more than its head */
static bool is_newest(const struct load *l)
{
	char *mem;
	size_t i, len;
	bool more;

	for (i = l->i + 1; i < l->n; i++) {
		if (journal_dir_read(l->j, l->numbers[i], &mem, &len, NULL))
			return false;
		more = len > sizeof(struct journal_head);
		free(mem);
		if (more)
			return false;
	}
	return true;
}

static int cut(const struct load *l, int fd, size_t at, size_t len)
{
	rgate_warn("journal %s/%s: its last %zu bytes, from %zu on, were not written to their end: they are cut off",
		   l->j->name, l->name, len - at, at);
	if (fd < 0)
		return 0;
	return ftruncate(fd, (off_t)at) || fsync(fd) ? -errno : 0;
}

/* 1: on behind it; 0: that was all; there is no record where @r is. */
static int on_gap(struct load *l, struct journal_reader *r, int fd)
{
	bool sure;
	const size_t next = journal_read_find(r, &sure);

	if (!sure && is_newest(l)) {
		l->seg->size = r->at;
		return cut(l, fd, r->at, r->len);
	}
	if (!l->j->repair)
		return wrong(l, r->at, "no record, or a wrong one,");
	rgate_warn("journal %s/%s: from byte %zu on %zu bytes cannot be read, and are left out",
		   l->j->name, l->name, r->at, (next ? next : r->len) - r->at);
	l->left_out += (next ? next : r->len) - r->at;
	l->seg->bad = true;
	r->at = next;
	return next != 0;
}

static int load_records(struct load *l, struct journal_reader *r, int fd)
{
	struct journal_got got;
	int more, err;

	for (;;) {
		more = journal_read_next(r, &got);
		if (more == -EBADMSG) {
			more = on_gap(l, r, fd);
		} else if (more == 1) {
			err = apply_or_say(l, &got);
			if (err)
				return err;
		}
		if (more <= 0)
			return more;
	}
}

/* It was about to be made: nothing is in it. Its number is the next one's. */
static int never_was(struct load *l)
{
	int err = l->j->look ? 0 : journal_segment_remove(l->j, l->seg);

	list_del(&l->seg->of_journal);
	journal_segment_free(l->seg);
	l->seg = NULL;
	l->n--;
	return err;
}

static int load_mem(struct load *l, const char *mem, size_t len, int fd)
{
	struct journal_reader r;
	int err = journal_read_head(&r, mem, len);

	if (!err && r.number != l->seg->number)
		err = -EBADMSG;
	if (!err)
		return load_records(l, &r, fd);
	if (err == -EPROTONOSUPPORT) {
		rgate_err("journal %s/%s is of another version of ringgated: start that one, and have its tasks done",
			  l->j->name, l->name);
		return err;
	}
	if (len <= sizeof(struct journal_head) && l->i + 1 == l->n)
		return never_was(l);
	if (!l->j->repair)
		return wrong(l, 0, "no head, or a wrong one,");
	rgate_warn("journal %s/%s has no head: it is left out", l->j->name, l->name);
	l->seg->bad = true;
	l->left_out += len;
	return 0;
}

static int load_segment(struct load *l, bool look)
{
	char name[JOURNAL_NAME_ROOM], *mem;
	struct segment *s = calloc(1, sizeof(*s));
	int err, fd = -1;
	size_t len;

	if (!s)
		return -ENOMEM;
	list_init(&s->of_journal);
	list_init(&s->tasks);
	s->fd = -1;
	s->number = l->numbers[l->i];
	list_add_tail(&l->j->segs, &s->of_journal);
	journal_name(s->number, name);
	l->name = name;
	l->seg = s;
	err = journal_dir_read(l->j, s->number, &mem, &len, look ? NULL : &fd);
	if (err)
		return err;
	s->size = len;
	err = load_mem(l, mem, len, fd);
	free(mem);
	/* Who wrote it may have been killed before that: what was moved there is nowhere else. */
	if (!err && fd >= 0 && fdatasync(fd)) {
		err = -errno;
		rgate_err("journal %s/%s: %s", l->j->name, name, strerror(-err));
	}
	if (fd >= 0)
		close(fd);
	return err;
}

static int order(struct journal *j)
{
	struct queue *q;
	struct link *l;
	int err;

	for (l = j->home->all.next; l != &j->home->all; l = l->next) {
		q = container_of(l, struct queue, of_home);
		err = queue_restore_order(q);
		if (err)
			return err;
		j->restored += q->n;
	}
	return 0;
}

/* Nobody has them open. Of those that go the files have to say so: others may get their names. */
void journal_settle(struct journal *j)
{
	struct link *l, *next;
	struct queue *q;

	for (l = j->home->all.next; l != &j->home->all; l = next) {
		next = l->next;
		q = container_of(l, struct queue, of_home);
		q->handles--;
		queues_put(q);
	}
}

int journal_load(struct journal *j)
{
	struct load l = { .j = j, .now = journal_now(j) };
	uint64_t *numbers;
	int err;

	err = journal_dir_list(j, &numbers, &l.n);
	l.numbers = numbers;
	for (l.i = 0; !err && l.i < l.n; l.i++)
		err = load_segment(&l, j->look);
	if (!err && l.n)
		j->next = numbers[l.n - 1] + 1;
	else if (!err && numbers)
		j->next = numbers[0];
	free(numbers);
	if (!err)
		err = order(j);
	if (!err && l.left_out)
		rgate_warn("journal %s: %" PRIu64 " bytes were left out; the files that had them have names that end with .wrong",
			   j->name, l.left_out);
	return err;
}
