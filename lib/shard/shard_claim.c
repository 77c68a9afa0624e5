// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Claims. What may be in one post: a read behind an atomic, and an atomic behind a write, need no
 * fence. Nothing of an earlier post is under way when the next one is posted.
 */
#include <errno.h>
#include <string.h>

#include "shard.h"

static void drop_claims(struct rgate_shard *s)
{
	if (s->held)
		memset(s->mine, 0, s->l.tasks * sizeof(*s->mine));
	s->held = 0;
	s->seated = false;
}

/*
 * Is this node let in, over the connection that there is? Else it asks, and looks whether it was
 * answered: a read behind a write brings what is there after it.
 */
static int be_seated(struct rgate_shard *s)
{
	const uint64_t seat = shard_at_seat(s->self);
	struct shard_ops ops = { .n = 0 };
	uint32_t epoch;
	bool begun;
	int err;

	if (s->memory || s->seated)
		return 0;
	err = shard_epoch(s, &epoch);
	if (err)
		return err;
	if (epoch != s->epoch)
		drop_claims(s);
	s->epoch = epoch;
	/* Another number for each connection, so that no answer is for an earlier one */
	s->words[0] = s->ask + ((uint64_t)epoch << 16);
	if (!s->words[0])
		s->words[0] = 1 << 16;
	shard_move(s, &ops, RGATE_OP_WRITE, seat + offsetof(struct rgate_shard_seat, ask),
		   s->words, 8);
	shard_move(s, &ops, RGATE_OP_READ, seat + offsetof(struct rgate_shard_seat, answer),
		   s->words + 1, 8);
	err = shard_run(s, &ops, epoch, &begun);
	if (err)
		return err;
	if (s->words[0] != (s->words[1] & ~0xffffULL) || !(s->words[1] & 0xffff))
		return -EAGAIN;
	s->admission = (uint16_t)s->words[1];
	s->seated = true;
	return 0;
}

/* The next window of words: which of them are ready. 0 or -errno */
static int look_on(struct rgate_shard *s)
{
	const uint32_t n = s->l.tasks < WINDOW ? s->l.tasks : WINDOW;
	const uint32_t first = s->window++ % (s->l.tasks / n) * n;
	uint32_t i, at;
	int err;

	err = shard_read_words(s, first, n, s->epoch);
	if (err)
		return err;
	/* Not all begin with the same one. */
	s->random ^= s->random << 13;
	s->random ^= s->random >> 7;
	s->random ^= s->random << 17;
	for (i = 0; i < n; i++) {
		at = (uint32_t)(s->random + i) % n;
		if (shard_state(s->words[at]) == RGATE_SHARD_READY &&
		    shard_sane(&s->l, s->words[at]))
			s->hint[s->hints++] = (struct shard_hint){ first + at, s->words[at] };
	}
	return 0;
}

static uint64_t claimed_by_me(const struct rgate_shard *s, uint64_t word)
{
	return shard_word_of(RGATE_SHARD_CLAIMED, shard_gen(word), shard_attempt(word), s->self,
			     s->admission);
}

static uint64_t done_of(uint64_t claimed)
{
	return claimed - RGATE_SHARD_CLAIMED + RGATE_SHARD_DONE;
}

static void *stage_outcome(struct rgate_shard *s, struct shard_ops *ops, unsigned int place,
			   uint64_t word, uint32_t index, uint32_t len, int32_t status)
{
	unsigned char *at = s->bytes + (size_t)place * s->l.outcome;
	const struct rgate_shard_outcome head = {
		.generation = shard_gen(word), .len = len, .status = status,
	};

	memcpy(at, &head, sizeof(head));
	shard_move(s, ops, RGATE_OP_WRITE, shard_at_outcome(s, index, s->self), at,
		   (uint32_t)sizeof(head) + len);
	return at + sizeof(head);
}

/* What was won, and is no task: its submitter is told so. */
static void refuse(struct rgate_shard *s, const struct shard_hint *bad, unsigned int n)
{
	struct shard_ops ops = { .n = 0 };
	unsigned int i;
	bool begun;

	for (i = 0; i < n; i++)
		(void)stage_outcome(s, &ops, i, bad[i].word, bad[i].index, 0, -EBADMSG);
	for (i = 0; i < n; i++)
		shard_cas(s, &ops, bad[i].index, bad[i].word, done_of(bad[i].word));
	s->count.bad += n;
	/* If this fails the connection has, and they go back. */
	if (n && shard_run(s, &ops, s->epoch, &begun))
		drop_claims(s);
}

/* @h was won, and @record is what was read behind it: a copy that nobody changes any more */
static bool accept(struct rgate_shard *s, const struct shard_hint *h, const unsigned char *record,
		   struct rgate_shard_claim *claim, void *data)
{
	const uint64_t word = claimed_by_me(s, h->word);
	struct rgate_shard_record head;

	memcpy(&head, record, sizeof(head));
	if (head.generation != shard_gen(word) || head.len > s->l.payload)
		return false;
	memcpy(data, record + sizeof(head), head.len);
	*claim = (struct rgate_shard_claim){
		.id = shard_id(h->index, shard_gen(word)), .word = word, .cookie = head.cookie,
		.data = data, .len = head.len, .attempt = shard_attempt(word),
	};
	/* One that was there had been ended by somebody: it is stale from now on. */
	s->held += !s->mine[h->index];
	s->mine[h->index] = word;
	return true;
}

/* Tries @n hints at once; how many were won, or -errno */
static int try(struct rgate_shard *s, const struct shard_hint *h, unsigned int n,
	       struct rgate_shard_claim *claims, unsigned char *buf)
{
	struct shard_hint bad[RGATE_SHARD_MANY];
	unsigned int i, won = 0, wrong = 0;
	struct shard_ops ops = { .n = 0 };
	bool begun;
	int err;

	for (i = 0; i < n; i++)
		shard_cas(s, &ops, h[i].index, h[i].word, claimed_by_me(s, h[i].word));
	for (i = 0; i < n; i++)
		shard_move(s, &ops, RGATE_OP_READ, shard_at_record(s, h[i].index),
			   s->bytes + (size_t)i * s->l.record, s->l.record);
	err = shard_run(s, &ops, s->memory ? 0 : s->epoch, &begun);
	if (err) {
		/* What was won goes back with the connection, as all that was claimed over it. */
		if (begun || err == -ENOTCONN)
			drop_claims(s);
		return err;
	}
	for (i = 0; i < n; i++) {
		if (s->old[i] != h[i].word)
			s->count.missed++;
		else if (accept(s, &h[i], s->bytes + (size_t)i * s->l.record, &claims[won],
				buf + (size_t)won * s->l.payload))
			won++;
		else
			bad[wrong++] = (struct shard_hint){ h[i].index,
							    claimed_by_me(s, h[i].word) };
	}
	refuse(s, bad, wrong);
	s->count.claimed += won;
	return (int)won;
}

static int claim_locked(struct rgate_shard *s, struct rgate_shard_claim *claims, unsigned int n,
			unsigned char *buf)
{
	/* All of it once, and what was looked at before the call once more */
	unsigned int looks = s->l.tasks / WINDOW + 2, m;
	int ret = be_seated(s);

	while (!ret && (s->hints || looks)) {
		if (!s->hints) {
			looks--;
			ret = look_on(s);
			continue;
		}
		m = n < s->hints ? n : s->hints;
		s->hints -= m;
		ret = try(s, &s->hint[s->hints], m, claims, buf);
		/* Others are here: what else was seen is theirs by now. */
		if (!ret)
			s->hints = 0;
	}
	if (ret == -ENOTCONN)
		drop_claims(s);
	return ret;
}

int rgate_shard_claim(struct rgate_shard *s, struct rgate_shard_claim *claims, unsigned int n,
		      void *buf)
{
	int ret;

	if (!s || !claims || !buf || n - 1 >= RGATE_SHARD_MANY)
		return -EINVAL;
	pthread_mutex_lock(&s->lock);
	ret = claim_locked(s, claims, n, buf);
	pthread_mutex_unlock(&s->lock);
	return ret;
}

static bool is_mine(const struct rgate_shard *s, const struct rgate_shard_claim *c)
{
	const uint32_t index = c->id & 0xffff;

	return index < s->l.tasks && c->word && s->mine[index] == c->word;
}

static void give_up(struct rgate_shard *s, const struct rgate_shard_claim *c)
{
	/* It may have been named twice. */
	s->held -= s->mine[c->id & 0xffff] != 0;
	s->mine[c->id & 0xffff] = 0;
}

/* A post that ends claims; where nothing was begun for want of room they are there still. */
static int end_claims(struct rgate_shard *s, struct shard_ops *ops)
{
	bool begun;
	const int err = shard_run(s, ops, s->memory ? 0 : s->epoch, &begun);

	if (err && (begun || err == -ENOTCONN))
		drop_claims(s);
	return err;
}

static int complete_locked(struct rgate_shard *s, struct rgate_shard_result *r, unsigned int n)
{
	struct shard_ops ops = { .n = 0 };
	struct rgate_shard_result *ours[RGATE_SHARD_MANY];
	unsigned int i, k = 0, done = 0;
	void *at;
	int err;

	for (i = 0; i < n; i++) {
		r[i].err = -ESTALE;
		if (!is_mine(s, r[i].claim)) {
			s->count.stale++;
			continue;
		}
		at = stage_outcome(s, &ops, k, r[i].claim->word, r[i].claim->id & 0xffff, r[i].len,
				   r[i].status);
		if (r[i].len)
			memcpy(at, r[i].data, r[i].len);
		ours[k++] = &r[i];
	}
	for (i = 0; i < k; i++)
		shard_cas(s, &ops, ours[i]->claim->id & 0xffff, ours[i]->claim->word,
			  done_of(ours[i]->claim->word));
	if (!k)
		return 0;
	err = end_claims(s, &ops);
	for (i = 0; i < k; i++) {
		if (!err)
			give_up(s, ours[i]->claim);
		ours[i]->err = err ? err : s->old[i] == ours[i]->claim->word ? 0 : -ESTALE;
		done += !ours[i]->err;
		s->count.stale += ours[i]->err == -ESTALE;
	}
	s->count.completed += done;
	/* Somebody has ended a claim that was this node's: is it still let in? */
	s->seated &= err || done == k;
	return err ? err : (int)done;
}

int rgate_shard_complete(struct rgate_shard *s, struct rgate_shard_result *r, unsigned int n)
{
	unsigned int i;
	int ret;

	if (!s || !r || n - 1 >= RGATE_SHARD_MANY)
		return -EINVAL;
	for (i = 0; i < n; i++) {
		if (!r[i].claim || (r[i].len && !r[i].data) || r[i].reserved)
			return -EINVAL;
		if (r[i].len > s->l.result)
			return -EMSGSIZE;
	}
	pthread_mutex_lock(&s->lock);
	ret = complete_locked(s, r, n);
	pthread_mutex_unlock(&s->lock);
	return ret;
}

static int release_locked(struct rgate_shard *s, const struct rgate_shard_claim *c, unsigned int n)
{
	const struct rgate_shard_claim *ours[RGATE_SHARD_MANY];
	struct shard_ops ops = { .n = 0 };
	unsigned int i, k = 0, done = 0;
	int err;

	for (i = 0; i < n; i++) {
		if (!is_mine(s, &c[i])) {
			s->count.stale++;
			continue;
		}
		shard_cas(s, &ops, c[i].id & 0xffff, c[i].word,
			  shard_word(RGATE_SHARD_READY, shard_gen(c[i].word),
				     shard_attempt(c[i].word)));
		ours[k++] = &c[i];
	}
	if (!k)
		return 0;
	err = end_claims(s, &ops);
	if (err)
		return err;
	for (i = 0; i < k; i++) {
		give_up(s, ours[i]);
		done += s->old[i] == ours[i]->word;
		s->count.stale += s->old[i] != ours[i]->word;
	}
	s->count.released += done;
	return (int)done;
}

int rgate_shard_release(struct rgate_shard *s, const struct rgate_shard_claim *claims,
			unsigned int n)
{
	int ret;

	if (!s || !claims || n - 1 >= RGATE_SHARD_MANY)
		return -EINVAL;
	pthread_mutex_lock(&s->lock);
	ret = release_locked(s, claims, n);
	pthread_mutex_unlock(&s->lock);
	return ret;
}
