// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The thread that writes what was recorded: all that there is, by one write, and one sync if each
 * is to be safe from a power cut. What comes meanwhile goes together with the next one.
 */
#include "journal_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "log.h"
#include "thread.h"

#define RETRY_MS	100U	/* what could not be written is tried again */
#define SPARE_MS	500U	/* likewise the next segment */
#define TOLD_MOST	64U	/* answers at once, that something failed */
#define MS		1000000ULL

/* What whoever submits is told */
static int told(int err)
{
	return err == -EDQUOT || err == -EFBIG || err == -ENOSPC ? -ENOSPC : -EIO;
}

/* With the lock; 0: as long as it takes */
static void sleep_ms(struct journal *j, uint32_t ms)
{
	const uint64_t until = rgate_clock_now(CLOCK_MONOTONIC) + ms * MS;
	const struct timespec at = {
		.tv_sec = (time_t)(until / 1000000000), .tv_nsec = (long)(until % 1000000000),
	};

	j->sleeps = true;
	if (ms)
		(void)pthread_cond_timedwait(&j->cond, &j->lock, &at);
	else
		(void)pthread_cond_wait(&j->cond, &j->lock);
	j->sleeps = false;
}

/* ---- Writing; without the lock ---- */

static int write_rest(struct batch *b)
{
	ssize_t n;

	while (b->written < b->len) {
		n = pwrite(b->seg->fd, b->buf + b->written, b->len - b->written,
			   (off_t)(b->at + b->written));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ENOSPC;
		b->written += (size_t)n;
	}
	return 0;
}

/*
 * What a sync could not write may count as written then, so that the next one says nothing of it.
 * It is in memory yet, as a rule.
 */
static int write_again(const struct segment *s, uint64_t size)
{
	char buf[4096];
	uint64_t at;
	ssize_t n;

	for (at = s->synced; at < size; at += (uint64_t)n) {
		n = pread(s->fd, buf, size - at < sizeof(buf) ? size - at : sizeof(buf),
			  (off_t)at);
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		n = pwrite(s->fd, buf, (size_t)n, (off_t)at);
		if (n <= 0)
			return n < 0 ? -errno : -ENOSPC;
	}
	return 0;
}

static int sync_segment(struct journal *j, struct segment *s, uint64_t size)
{
	int err = s->again ? write_again(s, size) : 0;

	if (!err && fdatasync(s->fd))
		err = -errno;
	s->again = err;
	if (err)
		return err;
	pthread_mutex_lock(&j->lock);
	s->synced = size;
	j->count.syncs++;
	pthread_mutex_unlock(&j->lock);
	return 0;
}

/* Behind that one nothing is written any more. */
static int finish_segment(struct journal *j, struct segment *s)
{
	int err = sync_segment(j, s, s->size);

	if (err)
		return err;
	/* What was reserved behind it is free again. */
	if (ftruncate(s->fd, (off_t)s->size))
		rgate_dbg("journal %s: %s", j->name, strerror(errno));
	close(s->fd);
	s->fd = -1;
	return 0;
}

static int write_batch(struct journal *j, struct batch *b, struct segment **open)
{
	int err = 0;

	if (*open != b->seg && *open)
		err = finish_segment(j, *open);
	if (err)
		return err;
	*open = b->seg;
	err = write_rest(b);
	if (!err && (j->sync_ms == JOURNAL_SYNC_EACH || !list_empty(&b->dead)) &&
	    b->seg->synced < b->at + b->len)
		err = sync_segment(j, b->seg, b->at + b->len);
	/* After a sync that failed nobody knows what of it is there: it is written once more. */
	if (err)
		b->written = 0;
	return err;
}

/* None of them is open then: also where the last one could not be finished. */
static void remove_dead(struct journal *j, struct batch *b, struct segment **open, bool really)
{
	struct segment *s;
	int err;

	while (!list_empty(&b->dead)) {
		s = container_of(b->dead.next, struct segment, of_journal);
		list_del(&s->of_journal);
		err = really && !j->stays ? journal_segment_remove(j, s) : 0;
		if (err)
			rgate_warn("journal %s: a file cannot be removed: %s: it and later ones stay until the next start",
				   j->name, strerror(-err));
		/* The next start takes one that is missing between for lost. */
		j->stays |= err != 0;
		if (*open == s)
			*open = NULL;
		journal_segment_free(s);
	}
}

/* ---- What comes of it ---- */

static void end_all(const struct journal_answer *held, uint32_t n, int err)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		rgate_req_end(held[i].r, err ? err : held[i].result, err ? 0 : held[i].value);
}

/* SUBMITs are taken back by who has the queues: with the lock held. */
static void sort_failed(struct journal *j, struct batch *b)
{
	struct journal_answer *more;
	uint32_t i, n = 0;

	more = realloc(j->failed, (j->nfailed + b->nheld) * sizeof(*more));
	if (more)
		j->failed = more;
	for (i = 0; i < b->nheld; i++) {
		if (b->held[i].submit && more)
			j->failed[j->nfailed++] = b->held[i];
		else
			b->held[n++] = b->held[i];
	}
	b->nheld = n;
}

/*
 * Some of those that @b has, which it has no more: not who waits for a task, as its result may be
 * nowhere else, and no SUBMIT, which there was no memory to take back. They go on until it is
 * written, or the process ends. With the lock held; how many
 */
static uint32_t take_held(struct journal *j, struct batch *b, struct journal_answer *some)
{
	const bool stops = __atomic_load_n(&j->home->stops, __ATOMIC_RELAXED);
	uint32_t i, n = 0, left = 0;

	for (i = 0; i < b->nheld; i++) {
		if (n < TOLD_MOST && (stops || !(b->held[i].wait || b->held[i].submit)))
			some[n++] = b->held[i];
		else
			b->held[left++] = b->held[i];
	}
	b->nheld = left;
	return n;
}

static void tell_failed(struct journal *j, struct batch *b, int err)
{
	struct journal_answer some[TOLD_MOST];
	uint32_t n;

	pthread_mutex_lock(&j->lock);
	if (b->nheld)
		sort_failed(j, b);
	pthread_mutex_unlock(&j->lock);
	do {
		pthread_mutex_lock(&j->lock);
		n = take_held(j, b, some);
		pthread_mutex_unlock(&j->lock);
		end_all(some, n, err);
	} while (n == TOLD_MOST);
}

/* Who waits for what is behind it is told, too: he would wait for as long as it fails. */
static void fails(struct journal *j, struct batch *b, int err)
{
	pthread_mutex_lock(&j->lock);
	if (!j->err)
		rgate_err("journal %s cannot be written: %s: tasks are refused until it can be",
			  j->name, strerror(-err));
	j->err = told(err);
	j->count.failed++;
	pthread_mutex_unlock(&j->lock);
	tell_failed(j, b, told(err));
	pthread_mutex_lock(&j->lock);
	/* No other thread takes one from there. */
	for (b = j->first; b; b = b->next) {
		pthread_mutex_unlock(&j->lock);
		tell_failed(j, b, told(err));
		pthread_mutex_lock(&j->lock);
	}
	pthread_mutex_unlock(&j->lock);
}

/* @err: it is not, and never will be */
static void is_over(struct journal *j, struct batch *b, struct segment **open, int err)
{
	struct journal_answer *held;
	uint32_t n;

	remove_dead(j, b, open, !err);
	pthread_mutex_lock(&j->lock);
	if (j->err && !err)
		rgate_warn("journal %s is written again", j->name);
	j->err = err ? told(err) : 0;
	j->busy = NULL;
	j->pending -= b->len;
	j->count.batches++;
	held = b->held;
	n = b->nheld;
	b->held = NULL;
	b->nheld = b->held_room = 0;
	pthread_mutex_unlock(&j->lock);
	end_all(held, n, j->err);
	pthread_mutex_lock(&j->lock);
	if (!j->spare_batch && b->room <= 2U << 20) {
		b->held = held;
		b->held_room = held ? n : 0;
		j->spare_batch = b;
		b = NULL;
	} else {
		free(held);
	}
	pthread_cond_broadcast(&j->cond);
	pthread_mutex_unlock(&j->lock);
	if (b)
		journal_batch_free(b);
}

/*
 * Until it is there, or the end: then it is tried once more. Behind what is lost nothing is
 * written, or a file would have a gap, which is taken for something wrong.
 */
static void write_it(struct journal *j, struct batch *b, struct segment **open)
{
	bool stop;
	int err;

	do {
		pthread_mutex_lock(&j->lock);
		stop = j->stop;
		pthread_mutex_unlock(&j->lock);
		err = j->lost ? j->lost : write_batch(j, b, open);
		if (!err)
			break;
		fails(j, b, err);
		pthread_mutex_lock(&j->lock);
		pthread_cond_broadcast(&j->cond);
		if (!j->stop)
			sleep_ms(j, RETRY_MS);
		pthread_mutex_unlock(&j->lock);
	} while (!stop);
	if (err && !j->lost) {
		rgate_err("journal %s: what was not written is lost: %s", j->name, strerror(-err));
		j->lost = err;
	}
	is_over(j, b, open, err);
}

/* ---- The next segment ---- */

static void make_spare(struct journal *j)
{
	const uint64_t number = j->next;
	struct segment *s;
	int err;

	s = journal_segment_new(j, number, &err);
	pthread_mutex_lock(&j->lock);
	if (!s && !j->tight)
		rgate_err("journal %s: there is no room for another file: %s", j->name,
			  strerror(-err));
	j->tight = s ? 0 : told(err);
	j->spare = s;
	j->next += s != NULL;
	j->count.segments += s != NULL;
	j->want_spare = !s;
	pthread_cond_broadcast(&j->cond);
	pthread_mutex_unlock(&j->lock);
}

/* ---- The thread ---- */

struct writer {
	struct segment *open;
	uint64_t spare_at, sync_at;	/* ns; not before */
	uint64_t written;		/* of that one */
	bool unsynced, failed;
};

/* What there is to do first: with the lock. NULL: nothing to be written for now */
static struct batch *next_batch(struct journal *j, struct writer *w)
{
	const uint64_t now = rgate_clock_now(CLOCK_MONOTONIC);
	struct batch *b = j->first;
	uint64_t until = 0;

	if (b) {
		j->first = b->next;
		if (!j->first)
			j->last = NULL;
		b->next = NULL;
		j->busy = b;
		return b;
	}
	if (w->unsynced)
		until = w->sync_at;
	if (j->want_spare && !j->spare && (!until || w->spare_at < until))
		until = w->spare_at;
	if (!j->stop && (!until || until > now))
		sleep_ms(j, until ? (uint32_t)((until - now) / MS + 1) : 0);
	return NULL;
}

static void sync_if_due(struct journal *j, struct writer *w, bool force)
{
	int err;

	if (!w->unsynced || !w->open || (!force && rgate_clock_now(CLOCK_MONOTONIC) < w->sync_at))
		return;
	err = sync_segment(j, w->open, w->written);
	w->unsynced = err && !force;
	w->sync_at = rgate_clock_now(CLOCK_MONOTONIC) + (j->sync_ms + RETRY_MS) * MS;
	if (err && !w->failed)
		rgate_err("journal %s: %s: what was said of it in the last %u ms may be lost by a power cut",
			  j->name, strerror(-err), j->sync_ms);
	w->failed = err;
}

static void after(struct journal *j, struct writer *w, uint64_t written)
{
	w->written = written;
	if (j->sync_ms != JOURNAL_SYNC_EACH && j->sync_ms != JOURNAL_SYNC_NEVER && !w->unsynced) {
		w->unsynced = true;
		w->sync_at = rgate_clock_now(CLOCK_MONOTONIC) + j->sync_ms * MS;
	}
}

static void *run(void *arg)
{
	struct writer w = { .spare_at = 1 };
	struct journal *j = arg;
	struct batch *b;
	bool stop, spare;
	uint64_t end;

	for (;;) {
		pthread_mutex_lock(&j->lock);
		b = next_batch(j, &w);
		stop = j->stop && !b;
		spare = j->want_spare && !j->spare &&
			rgate_clock_now(CLOCK_MONOTONIC) >= w.spare_at;
		pthread_mutex_unlock(&j->lock);
		if (stop)
			break;
		if (b) {
			end = b->at + b->len;
			write_it(j, b, &w.open);
			after(j, &w, end);
		}
		sync_if_due(j, &w, false);
		if (spare) {
			make_spare(j);
			w.spare_at = rgate_clock_now(CLOCK_MONOTONIC) +
				     (j->tight ? SPARE_MS * MS : 0);
		}
	}
	sync_if_due(j, &w, true);
	return NULL;
}

int journal_writer_start(struct journal *j)
{
	return rgate_thread_start(&j->thread, NULL, run, j);
}

void journal_writer_stop(struct journal *j)
{
	pthread_mutex_lock(&j->lock);
	j->stop = true;
	pthread_cond_broadcast(&j->cond);
	pthread_mutex_unlock(&j->lock);
	pthread_join(j->thread, NULL);
	if (!j->lost)
		(void)ftruncate(j->head->fd, (off_t)j->head->size);
}

bool journal_drain(struct journal *j)
{
	bool done;

	pthread_mutex_lock(&j->lock);
	while ((j->first || j->busy || (j->want_spare && !j->tight)) && !j->err) {
		if (j->sleeps)
			pthread_cond_signal(&j->cond);
		pthread_cond_wait(&j->cond, &j->lock);
	}
	done = !j->first && !j->busy;
	pthread_mutex_unlock(&j->lock);
	return done;
}
