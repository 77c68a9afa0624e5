// SPDX-License-Identifier: MIT OR GPL-2.0
/* The line of a link: credits and heartbeats told to the peer, and what is heard of it */
#include <errno.h>
#include <stddef.h>

#include "link.h"

/* @seq: as of rgate_link_post() */
static int write_word(struct rgate_link *link, uint64_t *from, size_t offset, uint64_t *seq)
{
	struct rgate_sge sge = { from, 8, link->mem->lkey };
	struct rgate_op op = {
		.kind = RGATE_OP_WRITE, .nsge = 1, .sge = &sge,
		.remote = link->peer_line.addr + offset, .rkey = link->peer_line.rkey,
	};

	return rgate_link_post(link, &op, 1, true, seq);
}

int rgate_link_tell_credit(struct rgate_link *link)
{
	int err;

	if (link->reposted == link->told)
		return 0;
	/* Read by the device when it sends: a later value is as good. */
	__atomic_store_n(&link->line->my_credit, link->reposted, __ATOMIC_RELEASE);
	err = write_word(link, &link->line->my_credit, offsetof(struct rgate_line, credit), NULL);
	if (!err)
		link->told = link->reposted;
	return err == -EAGAIN ? 0 : err;
}

static void hear(struct rgate_link *link, uint64_t now)
{
	link->heard_ns = now;
	link->late = false;
}

/* What there is of the peer: beats, messages, the answer to ask() */
static void listen(struct rgate_link *link, uint64_t now)
{
	const uint64_t beat = __atomic_load_n(&link->line->beat, __ATOMIC_RELAXED);
	uint64_t pulse;

	if (beat != link->beat_seen || link->arrived != link->arrived_seen) {
		link->beat_seen = beat;
		link->arrived_seen = link->arrived;
		hear(link, now);
	}
	if (!link->pulse_seq || link->done < link->pulse_seq)
		return;
	link->pulse_seq = 0;
	link->late = false;
	pulse = __atomic_load_n(&link->line->peer_pulse, __ATOMIC_RELAXED);
	if (pulse != link->pulse_seen && pulse != link->beat_seen)
		hear(link, now);
	link->pulse_seen = pulse;
}

static int ask(struct rgate_link *link)
{
	struct rgate_sge sge = { &link->line->peer_pulse, 8, link->mem->lkey };
	const struct rgate_op op = {
		.kind = RGATE_OP_READ, .nsge = 1, .sge = &sge, .rkey = link->peer_line.rkey,
		.remote = link->peer_line.addr + offsetof(struct rgate_line, pulse),
	};
	int err;

	if (!link->late) {
		link->late = true;
		link->done_seen = link->done;
		link->done_ns = 0;
	}
	if (link->pulse_seq)
		return 0;
	err = rgate_link_post(link, &op, 1, true, &link->pulse_seq);
	return err == -EAGAIN ? 0 : err;
}

/* The question waits behind own operations, and these are being answered */
static bool in_line(struct rgate_link *link, uint64_t now, uint64_t timeout_ns)
{
	if (!link->late)
		return false;
	if (link->done != link->done_seen) {
		link->done_seen = link->done;
		link->done_ns = now;
	}
	return link->done_ns && now <= link->done_ns + timeout_ns;
}

static int send_beat(struct rgate_link *link)
{
	struct rgate_line *line = link->line;
	int err;

	line->my_beat++;
	__atomic_store_n(&line->pulse, line->my_beat, __ATOMIC_RELAXED);
	/* One that waits says as much as two, and places for these are few. */
	if (link->beat_seq > link->done)
		return 0;
	err = write_word(link, &line->my_beat, offsetof(struct rgate_line, beat), &link->beat_seq);
	return err == -EAGAIN ? 0 : err;
}

/*
 * While a wire answers nothing it gets nothing more: Soft-RoCE of 6.9 and later (rxe_comp.c)
 * begins to wait for an answer anew with each post, so that what was lost is never sent again
 * as long as somebody posts. A completion ends this.
 */
static void hold(struct rgate_link *link, uint64_t now, uint64_t interval_ns)
{
	if (link->done != link->moved || link->beat_seq <= link->done) {
		link->moved = link->done;
		link->moved_ns = now;
	}
	link->held = now > link->moved_ns + 2 * interval_ns;
}

int rgate_link_beat(struct rgate_link *link, uint64_t now, uint64_t interval_ns,
		    uint64_t timeout_ns)
{
	int err = 0;

	listen(link, now);
	hold(link, now, interval_ns);
	if (now > link->heard_ns + timeout_ns && !in_line(link, now, timeout_ns))
		return -ETIMEDOUT;
	if (now > link->heard_ns + timeout_ns / 2)
		err = ask(link);
	if (!err && now - link->beat_ns >= interval_ns) {
		err = send_beat(link);
		link->beat_ns = now;
	}
	return err ? err : rgate_link_tell_credit(link);
}
