// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * What a node submits, and the results of that. Its places are nobody else's to fill, so a task can
 * be written before its word says that it is there; and nothing that is written in the shard is
 * believed of them: what the node knows itself decides what is taken, and how often.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shard.h"

static uint64_t empty_of(const struct shard_own *o)
{
	return shard_word(RGATE_SHARD_EMPTY, o->gen, 0);
}

static uint64_t ready_of(const struct shard_own *o)
{
	return shard_word(RGATE_SHARD_READY, o->gen, 0);
}

static uint32_t window_at(const struct rgate_shard *s, uint32_t at)
{
	return s->places - at < WINDOW ? s->places - at : WINDOW;
}

/* A process before this one had the places: its tasks are there, and nobody knows of them. */
static void adopt(struct rgate_shard *s, struct shard_own *o, uint64_t word)
{
	o->gen = shard_gen(word);
	o->adopted = true;
	o->state = OWN_BUSY;
	if (!shard_sane(&s->l, word))
		o->state = OWN_DOUBT;
	else if (shard_state(word) == RGATE_SHARD_EMPTY)
		o->state = OWN_FREE;
	s->free += o->state == OWN_FREE;
}

int shard_own_init(struct rgate_shard *s)
{
	const uint32_t below = s->l.submitters & ((1U << s->self) - 1);
	uint32_t at, i, n, epoch = 0;
	int err = 0;

	if (!(s->l.submitters >> s->self & 1))
		return 0;
	s->places = s->l.tasks / (uint32_t)__builtin_popcount(s->l.submitters);
	s->first = s->places * (uint32_t)__builtin_popcount(below);
	s->own = calloc(s->places, sizeof(*s->own));
	if (!s->own)
		return -ENOMEM;
	if (!s->memory)
		err = shard_epoch(s, &epoch);
	for (at = 0; !err && at < s->places; at += n) {
		n = window_at(s, at);
		err = shard_read_words(s, s->first + at, n, epoch);
		for (i = 0; !err && i < n; i++)
			adopt(s, &s->own[at + i], s->words[i]);
	}
	return err;
}

/* The next places that are free, up to @n of them, into @at */
static unsigned int find_free(struct rgate_shard *s, uint32_t *at, unsigned int n)
{
	unsigned int k = 0;
	uint32_t i;

	if (n > s->free)
		n = s->free;
	for (i = 0; i < s->places && k < n; i++) {
		if (s->own[s->next_free].state == OWN_FREE)
			at[k++] = s->next_free;
		s->next_free = (s->next_free + 1) % s->places;
	}
	return k;
}

static void stage_task(struct rgate_shard *s, struct shard_ops *ops, unsigned int place,
		       uint32_t at, const struct rgate_shard_task *task)
{
	unsigned char *to = s->bytes + (size_t)place * s->l.record;
	const struct rgate_shard_record head = {
		.generation = s->own[at].gen, .len = task->len, .cookie = task->cookie,
	};

	memcpy(to, &head, sizeof(head));
	if (task->len)
		memcpy(to + sizeof(head), task->data, task->len);
	shard_move(s, ops, RGATE_OP_WRITE, shard_at_record(s, s->first + at), to,
		   (uint32_t)sizeof(head) + task->len);
}

static int submit_locked(struct rgate_shard *s, const struct rgate_shard_task *tasks,
			 unsigned int n, uint64_t *ids)
{
	uint32_t at[RGATE_SHARD_MANY], epoch;
	struct shard_ops ops = { .n = 0 };
	unsigned int i, k;
	bool begun;
	int err;

	if (!s->own)
		return -EPERM;
	err = shard_epoch(s, &epoch);
	k = err ? 0 : find_free(s, at, n);
	if (!k)
		return err;
	for (i = 0; i < k; i++)
		stage_task(s, &ops, i, at[i], &tasks[i]);
	for (i = 0; i < k; i++)
		shard_cas(s, &ops, s->first + at[i], empty_of(&s->own[at[i]]),
			  ready_of(&s->own[at[i]]));
	err = shard_run(s, &ops, epoch, &begun);
	if (!begun)
		return err;
	for (i = 0; i < k; i++) {
		struct shard_own *o = &s->own[at[i]];

		/* What is there by now is found out when results are looked for. */
		o->state = !err && s->old[i] == empty_of(o) ? OWN_BUSY : OWN_DOUBT;
		o->cookie = tasks[i].cookie;
		o->adopted = false;
		if (ids)
			ids[i] = shard_id(s->first + at[i], o->gen);
	}
	s->free -= k;
	s->count.submitted += k;
	return (int)k;
}

int rgate_shard_submit(struct rgate_shard *s, const struct rgate_shard_task *tasks,
		       unsigned int n, uint64_t *ids)
{
	unsigned int i;
	int ret;

	if (!s || !tasks || n - 1 >= RGATE_SHARD_MANY)
		return -EINVAL;
	for (i = 0; i < n; i++) {
		if ((tasks[i].len && !tasks[i].data) || tasks[i].reserved)
			return -EINVAL;
		if (tasks[i].len > s->l.payload)
			return -EMSGSIZE;
	}
	pthread_mutex_lock(&s->lock);
	ret = submit_locked(s, tasks, n, ids);
	pthread_mutex_unlock(&s->lock);
	return ret;
}

/* One call of rgate_shard_take() */
struct taking {
	struct rgate_shard_taken *out;
	unsigned char *buf;
	unsigned int n, got;
	uint32_t epoch;
	/* what the next post takes: places, their words, and which of them are empty already */
	uint32_t at[RGATE_SHARD_MANY];
	uint64_t word[RGATE_SHARD_MANY];
	bool gone[RGATE_SHARD_MANY];
	unsigned int wanted;
	/* what it sets right: places, what is there, what is to be */
	uint32_t wrong[RGATE_SHARD_MANY];
	uint64_t is[RGATE_SHARD_MANY], to_be[RGATE_SHARD_MANY];
	unsigned int wrongs;
};

static struct rgate_shard_taken *tell(struct rgate_shard *s, struct taking *t, uint32_t at,
				      int32_t status)
{
	struct shard_own *o = &s->own[at];
	struct rgate_shard_taken *out = &t->out[t->got];

	*out = (struct rgate_shard_taken){
		.id = shard_id(s->first + at, o->gen), .cookie = o->adopted ? 0 : o->cookie,
		.data = t->buf + (size_t)t->got * s->l.result, .status = status,
		.flags = o->adopted ? RGATE_SHARD_ADOPTED : 0,
	};
	o->state = OWN_FREE;
	s->free++;
	t->got++;
	return out;
}

static void want(struct taking *t, uint32_t at, uint64_t word, bool gone)
{
	t->at[t->wanted] = at;
	t->word[t->wanted] = word;
	t->gone[t->wanted++] = gone;
}

static void set_right(struct rgate_shard *s, struct taking *t, uint32_t at, uint64_t is,
		      uint64_t to_be)
{
	s->count.bad++;
	if (t->wrongs == RGATE_SHARD_MANY)
		return;
	t->wrong[t->wrongs] = at;
	t->is[t->wrongs] = is;
	t->to_be[t->wrongs++] = to_be;
}

/* What is at place @at, beside what is known of it */
static void judge(struct rgate_shard *s, struct taking *t, uint32_t at, uint64_t word)
{
	struct shard_own *o = &s->own[at];
	const bool sane = shard_sane(&s->l, word) && shard_gen(word) == o->gen;
	const uint32_t state = sane ? shard_state(word) : RGATE_SHARD_EMPTY;

	if (o->state == OWN_DOUBT) {
		if (sane && state == RGATE_SHARD_EMPTY) {
			(void)tell(s, t, at, -ECANCELED);
			return;
		}
		if (!sane) {
			set_right(s, t, at, word, empty_of(o));
			return;
		}
		o->state = OWN_BUSY;
	}
	if (state == RGATE_SHARD_DONE)
		want(t, at, word, false);
	else if (o->state == OWN_TAKING && word == shard_word(RGATE_SHARD_EMPTY, o->gen + 1, 0))
		want(t, at, o->done, true);
	else if (state == RGATE_SHARD_EMPTY)
		set_right(s, t, at, word, ready_of(o));
}

/* The bytes at @from are a copy that nobody changes any more. */
static void deliver(struct rgate_shard *s, struct taking *t, unsigned int i,
		    const unsigned char *from)
{
	struct shard_own *o = &s->own[t->at[i]];
	struct rgate_shard_outcome head;
	struct rgate_shard_taken *out = tell(s, t, t->at[i], -EBADMSG);

	memcpy(&head, from, sizeof(head));
	out->node = shard_node(t->word[i]);
	out->attempt = shard_attempt(t->word[i]);
	if (head.generation == o->gen && head.len <= s->l.result) {
		memcpy(out->data, from + sizeof(head), head.len);
		out->len = head.len;
		out->status = head.status;
	} else {
		s->count.bad++;
	}
	o->gen++;
	s->count.taken++;
}

static int take_wanted(struct rgate_shard *s, struct taking *t)
{
	struct shard_ops ops = { .n = 0 };
	unsigned int i, k = 0;
	bool begun;
	int err;

	for (i = 0; i < t->wanted; i++)
		shard_move(s, &ops, RGATE_OP_READ, shard_at_outcome(s, s->first + t->at[i],
								    shard_node(t->word[i])),
			   s->bytes + (size_t)i * s->l.outcome, s->l.outcome);
	/*
	 * Without a fence it may be done before the reads are: nobody writes there then, as the
	 * place is only for this node to fill again.
	 */
	for (i = 0; i < t->wanted; i++)
		if (!t->gone[i])
			shard_cas(s, &ops, s->first + t->at[i], t->word[i],
				  shard_word(RGATE_SHARD_EMPTY, shard_gen(t->word[i]) + 1, 0));
	err = t->wanted ? shard_run(s, &ops, t->epoch, &begun) : 0;
	for (i = 0; i < t->wanted; i++) {
		struct shard_own *o = &s->own[t->at[i]];

		if (err && begun) {
			o->state = OWN_TAKING;
			o->done = t->word[i];
		} else if (!err && (t->gone[i] || s->old[k++] == t->word[i])) {
			deliver(s, t, i, s->bytes + (size_t)i * s->l.outcome);
		}
	}
	t->wanted = 0;
	return err;
}

static int set_wrongs(struct rgate_shard *s, struct taking *t)
{
	struct shard_ops ops = { .n = 0 };
	unsigned int i;
	bool begun;

	for (i = 0; i < t->wrongs; i++)
		shard_cas(s, &ops, s->first + t->wrong[i], t->is[i], t->to_be[i]);
	t->wrongs = 0;
	return ops.n ? shard_run(s, &ops, t->epoch, &begun) : 0;
}

static bool any_there(const struct rgate_shard *s, uint32_t at, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n && s->own[at + i].state == OWN_FREE; i++)
		;
	return i < n;
}

static int take_window(struct rgate_shard *s, struct taking *t, uint32_t at, uint32_t n)
{
	uint32_t i;
	int err;

	if (!any_there(s, at, n))
		return 0;
	err = shard_read_words(s, s->first + at, n, t->epoch);
	for (i = 0; !err && i < n && t->got + t->wanted < t->n; i++)
		if (s->own[at + i].state != OWN_FREE)
			judge(s, t, at + i, s->words[i]);
	if (!err)
		err = take_wanted(s, t);
	return err ? err : set_wrongs(s, t);
}

static int take_locked(struct rgate_shard *s, struct taking *t)
{
	uint32_t n, looked = 0;
	int err;

	if (!s->own)
		return -EPERM;
	err = shard_epoch(s, &t->epoch);
	while (!err && looked < s->places && t->got < t->n) {
		n = window_at(s, s->next_take);
		err = take_window(s, t, s->next_take, n);
		looked += n;
		/* One that has more than were asked for comes first the next time. */
		if (t->got < t->n)
			s->next_take = (s->next_take + n) % s->places;
	}
	return t->got ? (int)t->got : err;
}

int rgate_shard_take(struct rgate_shard *s, struct rgate_shard_taken *taken, unsigned int n,
		     void *buf)
{
	struct taking t = { .out = taken, .buf = buf, .n = n };
	int ret;

	if (!s || !taken || !buf || n - 1 >= RGATE_SHARD_MANY)
		return -EINVAL;
	pthread_mutex_lock(&s->lock);
	ret = take_locked(s, &t);
	pthread_mutex_unlock(&s->lock);
	return ret;
}
