// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The home: who may claim, and what becomes of the claims of who has gone.
 *
 * A node asks over the connection that it has, and claims when it was answered, by the number of
 * its admission, which is in each of its claims. So what has another number than its node has now
 * was claimed over a connection that has ended: over a device nothing that was posted to it reaches
 * the memory any more. On one machine a process may have been stopped within an operation, and
 * go on later: its compare-and-swap then fails, or makes a claim that is found and ended the next
 * time, and its result lies where its node alone writes.
 */
#include <errno.h>

#include "shard.h"

#define LOOK		4096U	/* words that a step looks at in any case */

static struct rgate_shard_seat *seat_of(const struct rgate_shard *s, uint32_t node)
{
	return (struct rgate_shard_seat *)(s->memory + shard_at_seat(node));
}

int rgate_shard_admit(struct rgate_shard *s, struct rgate_peer *peer)
{
	int err = 0;

	if (!s || !peer)
		return -EINVAL;
	if (!s->memory)
		return -EPERM;
	if (peer->node != s->node || peer->to.id == s->self || peer->to.id >= s->l.nodes)
		return -EINVAL;
	pthread_mutex_lock(&s->lock);
	if (s->seat[peer->to.id].peer)
		err = -EEXIST;
	else
		s->seat[peer->to.id].peer = peer;
	pthread_mutex_unlock(&s->lock);
	return err;
}

/* Which connection there is; 0: none */
static uint32_t connection(struct rgate_peer *peer)
{
	struct rgate_peer_info info = { .sz = sizeof(info) };

	if (rgate_peer_info(peer, &info))
		return 0;
	return info.state == RGATE_PEER_UP ? info.epoch : 0;
}

static uint64_t answer_of(const struct shard_seat *seat)
{
	return (seat->ask & ~0xffffULL) | seat->admission;
}

/* True: the node has lost what it had claimed. */
static bool look_at_seat(struct rgate_shard *s, uint32_t node)
{
	struct rgate_shard_seat *there = seat_of(s, node);
	struct shard_seat *seat = &s->seat[node];
	const uint32_t epoch = connection(seat->peer);
	/* Read once; what it says is of use to its node alone. */
	const uint64_t ask = __atomic_load_n(&there->ask, __ATOMIC_ACQUIRE);

	if (seat->ask && (epoch != seat->epoch || ask != seat->ask)) {
		seat->ask = 0;
		__atomic_store_n(&there->answer, 0, __ATOMIC_RELEASE);
		return true;
	}
	/* Whoever has written there instead: its node asks again when its claims are lost. */
	if (seat->ask && __atomic_load_n(&there->answer, __ATOMIC_RELAXED) != answer_of(seat))
		__atomic_store_n(&there->answer, answer_of(seat), __ATOMIC_RELEASE);
	if (seat->ask || !epoch)
		return false;
	/* What was asked over an earlier connection is none; who asks now does so again. */
	if (seat->cleared != epoch) {
		__atomic_store_n(&there->ask, 0, __ATOMIC_RELAXED);
		seat->cleared = epoch;
		return false;
	}
	/* It came over this connection, if that is there still. */
	if (!ask || connection(seat->peer) != epoch)
		return false;
	seat->ask = ask;
	seat->epoch = epoch;
	seat->admission += seat->admission == UINT16_MAX ? 2 : 1;
	/* No claim has this number that is not 65534 admissions old. */
	__atomic_store_n(&there->answer, answer_of(seat), __ATOMIC_RELEASE);
	return false;
}

static bool is_lost(const struct rgate_shard *s, uint64_t word)
{
	const uint32_t node = shard_node(word);

	if (shard_state(word) != RGATE_SHARD_CLAIMED)
		return false;
	return node >= s->l.nodes || !s->seat[node].ask ||
	       s->seat[node].admission != shard_admission(word);
}

/* Makes ready what was lost among @n words from @first on; how many, or -errno */
static int sweep(struct rgate_shard *s, uint32_t first, uint32_t n)
{
	const uint64_t *words = (const uint64_t *)(s->memory + s->l.words) + first;
	uint64_t lost[RGATE_SHARD_MANY], word;
	uint32_t i = 0, attempt, k, j;
	struct shard_ops ops;
	int err, all = 0;
	bool begun;

	while (i < n) {
		ops.n = ops.cas = k = 0;
		for (; i < n && k < RGATE_SHARD_MANY; i++) {
			word = __atomic_load_n(&words[i], __ATOMIC_ACQUIRE);
			if (!is_lost(s, word))
				continue;
			attempt = shard_attempt(word) + (shard_attempt(word) < 255);
			shard_cas(s, &ops, first + i, word,
				  shard_word(RGATE_SHARD_READY, shard_gen(word), attempt));
			lost[k++] = word;
		}
		err = k ? shard_run(s, &ops, 0, &begun) : 0;
		if (err)
			return err;
		/* One that has been completed meanwhile is as good. */
		for (j = 0; j < k; j++)
			all += s->old[j] == lost[j];
	}
	s->count.returned += (unsigned int)all;
	return all;
}

static int step_locked(struct rgate_shard *s)
{
	uint32_t node, n = s->l.tasks < LOOK ? s->l.tasks : LOOK;
	bool lost = false;
	int ret;

	for (node = 0; node < s->l.nodes; node++)
		if (s->seat[node].peer)
			lost |= look_at_seat(s, node);
	if (lost)
		return sweep(s, 0, s->l.tasks);
	ret = sweep(s, s->swept, n);
	s->swept = (s->swept + n) % s->l.tasks;
	return ret;
}

int rgate_shard_step(struct rgate_shard *s)
{
	int ret;

	if (!s)
		return -EINVAL;
	if (!s->memory)
		return -EPERM;
	pthread_mutex_lock(&s->lock);
	ret = step_locked(s);
	pthread_mutex_unlock(&s->lock);
	return ret;
}
