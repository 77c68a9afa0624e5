// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Sources: from the socket into the rings.
 *
 * Messages are received straight into the free slots that come next. Where that
 * cannot be, because a slot is not free until the message is there to overwrite
 * it, or because one message needs several slots, they go through scratch memory.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "source.h"

#define BACKOFF_MS 1	/* after errors that may last, as ENOMEM */
#define LOOK_MS 200	/* while the device is away */

static void add(uint64_t *counter, uint64_t n)
{
	__atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED);
}

static unsigned char *scratch_of(struct rgate_source *src, unsigned int i)
{
	return src->scratch + (size_t)i * RGATE_SOURCE_FRAME;
}

/* Message @i goes to @at, after the front, and then to @more. */
static void aim(struct rgate_source *src, unsigned int i, unsigned char *at,
		size_t room, unsigned char *more, size_t more_room)
{
	struct rgate_source_msg *m = &src->msg[i];
	struct msghdr *h = &src->vec[i].msg_hdr;

	m->iov[0].iov_base = at + src->front;
	m->iov[0].iov_len = room - src->front;
	m->iov[1].iov_base = more;
	m->iov[1].iov_len = more_room;
	h->msg_iov = m->iov;
	h->msg_iovlen = more_room ? 2 : 1;
	h->msg_name = m->name;
	h->msg_namelen = sizeof(m->name);
	h->msg_control = src->ctl_len ? m->ctl : NULL;
	h->msg_controllen = src->ctl_len;
	h->msg_flags = 0;
}

/* Returns how many came; -EAGAIN: none there */
static int receive(struct rgate_source *src, unsigned int n)
{
	unsigned int i;
	uint64_t bytes = 0;
	int got;

	got = recvmmsg(src->sock, src->vec, n, MSG_DONTWAIT | MSG_TRUNC, NULL);
	if (got < 0)
		got = -errno;
	add(&src->stats.syscalls, 1);
	if (got <= 0)
		return got ? got : -EAGAIN;
	for (i = 0; i < (unsigned int)got; i++)
		bytes += src->vec[i].msg_len;
	add(&src->stats.received, (uint64_t)got);
	add(&src->stats.bytes, bytes);
	return got;
}

static void spilled_before(struct rgate_source *src, unsigned int ring)
{
	while (ring)
		rgate_producer_spilled(&src->prod[--ring]);
}

/* The last ring that could have taken a frame had no room. */
static void lose(struct rgate_source *src, unsigned int ring)
{
	struct rgate_producer *p = &src->prod[ring];

	rgate_producer_drop(p);
	if (p->policy != RGATE_POLICY_PASS)
		add(&src->stats.ring_drops, 1);
}

static bool spills(const struct rgate_source *src, unsigned int ring)
{
	return src->prod[ring].policy == RGATE_POLICY_SPILL && ring + 1 < src->nrings;
}

/* A whole frame that lies elsewhere, into the first ring from @ring on with room */
static void put(struct rgate_source *src, unsigned int ring, unsigned int i,
		unsigned char *frame)
{
	size_t msg_len = src->vec[i].msg_len, len = src->front + msg_len;
	struct rgate_slot hdr;

	if (len > RGATE_SOURCE_FRAME)
		len = RGATE_SOURCE_FRAME;
	memset(&hdr, 0, sizeof(hdr));
	if (!src->ops->describe(src, &src->vec[i].msg_hdr, msg_len, frame, len, &hdr))
		return;
	for (;; ring++) {
		struct rgate_producer *p = &src->prod[ring];

		rgate_producer_stamp(p);
		if (!rgate_producer_write(p, &hdr, frame, len, hdr.wire_len))
			return;
		if (!spills(src, ring))
			break;
		rgate_producer_spilled(p);
	}
	lose(src, ring);
}

/* Through scratch memory */
static int by_scratch(struct rgate_source *src, unsigned int ring)
{
	unsigned int i;
	int got;

	for (i = 0; i < src->batch; i++)
		aim(src, i, scratch_of(src, i), RGATE_SOURCE_FRAME, NULL, 0);
	got = receive(src, src->batch);
	for (i = 0; got > 0 && i < (unsigned int)got; i++) {
		spilled_before(src, ring);
		put(src, ring, i, scratch_of(src, i));
	}
	return got < 0 ? got : (unsigned int)got == src->batch;
}

/*
 * Message @from is longer than its slot and shall be chained: it and those behind
 * it move out of the slots they were received into, and are written anew.
 */
static void chain_from(struct rgate_source *src, unsigned int ring,
		       unsigned int from, unsigned int got)
{
	struct rgate_producer *p = &src->prod[ring];
	size_t room = rgate_producer_room(p);
	unsigned int i;

	for (i = from; i < got; i++) {
		size_t n = src->front + src->vec[i].msg_len;

		memcpy(scratch_of(src, i), rgate_producer_data(
		       rgate_producer_slot(p, p->head + i - from)),
		       n < room ? n : room);
	}
	for (i = from; i < got; i++) {
		spilled_before(src, ring);
		put(src, ring, i, scratch_of(src, i));
	}
}

static void deliver(struct rgate_source *src, struct rgate_producer *p,
		    unsigned int i)
{
	size_t msg_len = src->vec[i].msg_len, room = rgate_producer_room(p);
	size_t len = src->front + msg_len < room ? src->front + msg_len : room;
	struct rgate_slot *s = rgate_producer_reserve(p), hdr;

	memset(&hdr, 0, sizeof(hdr));
	if (!src->ops->describe(src, &src->vec[i].msg_hdr, msg_len,
				rgate_producer_data(s), len, &hdr))
		hdr.wire_len = 0;
	/* its slot is taken in any case: what is no frame becomes filler */
	if (!hdr.wire_len) {
		rgate_producer_publish_filler(p);
		return;
	}
	rgate_producer_stamp(p);
	rgate_producer_fill(p, s, (uint32_t)len, hdr.wire_len);
	rgate_producer_describe(s, &hdr);
	rgate_producer_publish(p);
}

/* Straight into @n free slots of a ring */
static int by_slots(struct rgate_source *src, unsigned int ring, unsigned int n)
{
	struct rgate_producer *p = &src->prod[ring];
	size_t room = rgate_producer_room(p);
	unsigned int i;
	int got;

	for (i = 0; i < n; i++)
		aim(src, i, rgate_producer_data(rgate_producer_slot(p, p->head + i)),
		    room, scratch_of(src, i) + room,
		    p->chain ? RGATE_SOURCE_FRAME - room : 0);
	got = receive(src, n);
	for (i = 0; got > 0 && i < (unsigned int)got; i++) {
		if (p->chain && src->front + src->vec[i].msg_len > room) {
			rgate_producer_unpin(p);
			chain_from(src, ring, i, (unsigned int)got);
			break;
		}
		spilled_before(src, ring);
		deliver(src, p, i);
	}
	return got < 0 ? got : (unsigned int)got == n;
}

/* Read and lost: no byte is copied. */
static int by_nothing(struct rgate_source *src, unsigned int ring)
{
	unsigned int i;
	int got;

	for (i = 0; i < src->batch; i++) {
		aim(src, i, scratch_of(src, i), src->front, NULL, 0);
		src->vec[i].msg_hdr.msg_controllen = 0;
	}
	got = receive(src, src->batch);
	for (i = 0; got > 0 && i < (unsigned int)got; i++) {
		spilled_before(src, ring);
		lose(src, ring);
	}
	return got < 0 ? got : (unsigned int)got == src->batch;
}

/*
 * One receive, into the first ring with room. 1: there may be more; 0: the socket
 * was emptied; or -errno.
 */
static int step(struct rgate_source *src)
{
	struct rgate_producer *p;
	unsigned int ring, n;
	int ret;

	for (ring = 0;; ring++) {
		p = &src->prod[ring];
		if (p->policy == RGATE_POLICY_OVERWRITE) {
			n = rgate_producer_run(p, src->batch);
			if (!n)
				return by_scratch(src, ring);
			break;
		}
		if (rgate_producer_reserve(p)) {
			n = rgate_producer_run(p, src->batch);
			break;
		}
		if (!spills(src, ring))
			return by_nothing(src, ring);
	}
	rgate_producer_pin(p);
	ret = by_slots(src, ring, n);
	rgate_producer_unpin(p);
	return ret;
}

static void flush_all(struct rgate_source *src)
{
	unsigned int i;

	for (i = 0; i < src->nrings; i++)
		rgate_producer_flush(&src->prod[i]);
}

/* Sleeps until there is something to receive, or to do. */
static int idle(struct rgate_source *src, int timeout_ms)
{
	struct pollfd pfd[2] = {
		{ .fd = src->event, .events = POLLIN },
		{ .fd = src->sock, .events = POLLIN },
	};
	uint64_t told;

	/* backing off: the socket is readable all the time */
	if (poll(pfd, timeout_ms == BACKOFF_MS ? 1 : 2, timeout_ms) < 0 && errno != EINTR)
		return -errno;
	/* stop is looked at by the loop, a resize by the next flush */
	if (pfd[0].revents && read(src->event, &told, sizeof(told)) > 0)
		flush_all(src);
	return 0;
}

/*
 * As step(), with wakeups once there is nothing more. -EAGAIN: an error was survived,
 * which may last; others end the source.
 */
static int receive_some(struct rgate_source *src)
{
	int err, r = step(src);

	if (r > 0)
		return r;
	flush_all(src);
	if (!r || r == -EAGAIN)
		return src->away ? src->ops->look(src) : 0;
	if (r == -EINTR)
		return 1;
	add(&src->stats.errors, 1);
	err = src->ops->survive(src, r);
	return err ? err : -EAGAIN;
}

int rgate_source_loop(struct rgate_source *src)
{
	while (!__atomic_load_n(&src->stop, __ATOMIC_ACQUIRE)) {
		int err, r = receive_some(src);

		if (r > 0)
			continue;
		if (r < 0 && r != -EAGAIN)
			return r;
		err = idle(src, r < 0 ? BACKOFF_MS : src->away ? LOOK_MS : -1);
		if (err)
			return err;
	}
	return 0;
}

int rgate_source_turn(struct rgate_source *src)
{
	int r;

	if (!src->driven)
		return -EOPNOTSUPP;
	if (src->ended)
		return src->err;
	r = receive_some(src);
	if (r >= 0)
		return r;
	if (r == -EAGAIN) {
		(void)poll(NULL, 0, BACKOFF_MS);
		return 0;
	}
	src->ended = true;
	rgate_source_end(src, r);
	return r;
}
