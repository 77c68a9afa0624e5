// SPDX-License-Identifier: MIT OR GPL-2.0
/* It is opened and closed, and what it tells of itself */
#include "journal_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "log.h"
#include "opts.h"
#include "thread.h"

int journal_stats(struct journal *j, struct journal_stats *stats)
{
	if (stats->sz != sizeof(*stats))
		return -EINVAL;
	pthread_mutex_lock(&j->lock);
	*stats = j->count;
	stats->sz = sizeof(*stats);
	stats->error = j->err ? j->err : j->tight;
	stats->bytes = j->total;
	stats->live = __atomic_load_n(&j->live, __ATOMIC_RELAXED);
	stats->records = j->records;
	stats->restored = j->restored;
	pthread_mutex_unlock(&j->lock);
	return 0;
}

static void free_journal(struct journal *j)
{
	struct segment *s;
	struct batch *b;

	while ((b = j->first)) {
		j->first = b->next;
		while (!list_empty(&b->dead)) {
			s = container_of(b->dead.next, struct segment, of_journal);
			list_del(&s->of_journal);
			journal_segment_free(s);
		}
		journal_batch_free(b);
	}
	if (j->spare_batch)
		journal_batch_free(j->spare_batch);
	if (j->reserve)
		journal_batch_free(j->reserve);
	while (!list_empty(&j->segs)) {
		s = container_of(j->segs.next, struct segment, of_journal);
		list_del(&s->of_journal);
		journal_segment_free(s);
	}
	if (j->spare)
		journal_segment_free(j->spare);
	free(j->failed);
	if (j->dir >= 0)
		close(j->dir);
	pthread_cond_destroy(&j->cond);
	pthread_mutex_destroy(&j->lock);
	free(j);
}

static int alloc_journal(struct journal **out, struct queues *home, const struct journal_opts *opts)
{
	struct journal_opts o;
	struct journal *j;
	int err;

	err = rgate_opts_copy(&o, sizeof(o), opts);
	if (err)
		return err;
	if (!o.segment)
		o.segment = JOURNAL_SEGMENT;
	if (!o.dir || o.segment < JOURNAL_SEGMENT_LEAST_SET ||
	    o.segment > JOURNAL_SEGMENT_MOST_SET)
		return -EINVAL;
	j = calloc(1, sizeof(*j));
	if (!j)
		return -ENOMEM;
	j->home = home;
	j->dir = -1;
	j->sync_ms = o.sync_ms;
	j->segment = o.segment;
	j->uid = o.uid;
	j->repair = o.repair;
	j->wall = o.wall;
	j->next = 1;
	snprintf(j->name, sizeof(j->name), "%s", o.dir);
	list_init(&j->segs);
	pthread_mutex_init(&j->lock, NULL);
	rgate_cond_init(&j->cond);
	*out = j;
	return 0;
}

/* What is there counts as the journal's: a new segment begins, with all queues */
static int begin(struct journal *j)
{
	struct link *l, *t;
	int err;

	for (l = j->segs.next; l != &j->segs; l = l->next) {
		struct segment *s = container_of(l, struct segment, of_journal);

		j->count.segments++;
		j->total += journal_total(s);
		for (t = s->tasks.next; t != &s->tasks; t = t->next)
			j->live += container_of(t, struct task, of_seg)->seg_len;
	}
	j->spare = journal_segment_new(j, j->next++, &err);
	if (!j->spare) {
		rgate_err("journal %s: there is no room for another file: %s", j->name,
			  strerror(-err));
		return err;
	}
	j->count.segments++;
	if (!journal_roll(j, 0))
		return -ENOMEM;
	j->moved_at = j->total;
	return journal_writer_start(j);
}

static bool has_room(struct journal *j, const struct task *t)
{
	const uint32_t len = t->len + t->end_len;

	if (!journal_may_submit(j, len))
		return true;
	journal_drain(j);
	return !journal_may_submit(j, len);
}

/* What was read past something wrong is written anew, all of it, as far as can be. */
static void write_anew(struct journal *j)
{
	struct segment *s, *last = NULL;

	for (;;) {
		s = container_of(j->segs.next, struct segment, of_journal);
		/* Without memory it stays, until a turn can drop it. */
		if (s == j->head || s == last)
			return;
		last = s;
		while (!list_empty(&s->tasks)) {
			struct task *t = container_of(s->tasks.next, struct task, of_seg);

			if (has_room(j, t))
				journal_task(j, t);
			if (t->seg == s) {
				rgate_warn("journal %s: there is no room to write what was read anew",
					   j->name);
				return;
			}
		}
		journal_drop_segments(j);
	}
}

int journal_open(struct journal **journal, struct queues *home, const struct journal_opts *opts)
{
	struct journal *j;
	int err;

	err = alloc_journal(&j, home, opts);
	if (err)
		return err;
	err = journal_dir_open(j, opts->dir, true);
	if (!err)
		err = journal_load(j);
	if (!err)
		err = begin(j);
	if (err) {
		free_journal(j);
		return err;
	}
	home->journal = j;
	journal_settle(j);
	if (j->repair) {
		write_anew(j);
		/* Else the wrong files are put aside when something is recorded, if ever. */
		(void)journal_tick(j, home->now);
	}
	if (j->restored)
		rgate_warn("journal %s: %llu tasks are there again", j->name,
			   (unsigned long long)j->restored);
	*journal = j;
	return 0;
}

int journal_check(const struct journal_opts *opts)
{
	struct queues home;
	struct journal *j;
	int err;

	queues_init(&home);
	err = alloc_journal(&j, &home, opts);
	if (err)
		return err;
	j->look = true;
	err = journal_dir_open(j, opts->dir, false);
	if (!err)
		err = journal_load(j);
	else if (err == -ENOENT || err == -EBUSY)
		err = 0;
	free_journal(j);
	home.journal = NULL;
	queues_fini(&home);
	return err;
}

void journal_close(struct journal *j)
{
	if (!j)
		return;
	journal_writer_stop(j);
	j->home->journal = NULL;
	free_journal(j);
}
