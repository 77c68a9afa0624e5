/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Sending frames through a ring of the module: inline, one system call for as many
 * frames as are there.
 *
 *	struct rgate_ring_opts o = {
 *		.sz = sizeof(o), .flags = RGATE_RING_TRANSMIT | RGATE_RING_RW_SLOTS,
 *	};
 *	struct rgate_attach_opts a = { .sz = sizeof(a), .kind = RGATE_KIND_TRANSMIT };
 *
 *	rgate_ring_open(&ring, &o);
 *	rgate_ring_attach(ring, "eth0", &a, NULL);
 *	rgate_sender_init(&s, ring);
 *	for (;;) {
 *		struct rgate_tx_slot *slot = rgate_sender_reserve(&s);
 *		if (slot) {
 *			memcpy(rgate_sender_data(slot), frame, n);
 *			rgate_sender_publish(&s, slot, n, 0);
 *		}
 *		if (!slot || nothing_more_at_hand)
 *			if (rgate_sender_kick(&s, 0) == -EAGAIN)
 *				rgate_sender_wait(&s, -1);
 *	}
 *
 * Attached with a thread (rgate_attach_opts.thread), rgate_sender_flush() takes the place
 * of rgate_sender_kick(): no system call while the thread looks for frames.
 *
 * A sender belongs to one thread, and a ring has one sender at a time. Frames leave in
 * the order in which they were published, and not before somebody kicks.
 */
#ifndef RINGGATE_RGATE_SENDER_H
#define RINGGATE_RGATE_SENDER_H

#include <ringgate/rgate_ring.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Fields are private; they are here for the inline functions only. Not to be
 * copied while in use. */
struct rgate_sender {
	uint64_t pos;		/* next position to fill */
	uint64_t limit;		/* end of the free part of the batch in hand */
	uint64_t lap;		/* of the batch in hand */
	unsigned char *slots;
	uint64_t mask;
	uint32_t lap_shift;
	uint32_t size_shift;
	const uint64_t *credits;
	int fd;
	uint32_t reserved1;
	const uint32_t *need_wakeup;
	uint64_t reserved[5];	/* room to grow */
};

/*
 * rgate_sender_init - fill a ring from where it was left
 * @s: caller's; needs no clean-up, ends with its ring
 * @ring: of the module, with RGATE_RING_TRANSMIT
 * What a sender before published and nobody has taken yet is sent before what this one
 * publishes. -EOPNOTSUPP: not such a ring.
 */
RGATE_API int rgate_sender_init(struct rgate_sender *s, struct rgate_ring *ring);

/*
 * rgate_sender_kick - the module takes what is published, and sends it
 * @budget: at most so many slots; 0: as many as there are
 * Slots that were taken are free again, a batch of RGATE_BATCH at a time, when this
 * returns. Any thread may call it.
 * Returns slots taken, 0: none is published. -EAGAIN: as many frames are under way as may
 * be, see rgate_sender_wait(); -ENOTCONN: the ring is attached to no device; -ENETDOWN: the
 * device is down; -ENOBUFS: no memory just now; -EINTR.
 */
RGATE_API int rgate_sender_kick(const struct rgate_sender *s, uint32_t budget);

/*
 * rgate_sender_flush - what is published is sent: by a thread that looks for it, or by this
 * call
 * A full fence, and a look at a word of the module's; a system call only where that says
 * that nobody looks. Returns as rgate_sender_kick() does; 0 also where the thread sends: when
 * rgate_sender_reserve() gives the slots again, it has.
 */
static inline int rgate_sender_flush(const struct rgate_sender *s)
{
	/* Published before, and then the look: the thread says that it sleeps, then looks. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!__atomic_load_n(s->need_wakeup, __ATOMIC_RELAXED))
		return 0;
	return rgate_sender_kick(s, 0);
}

/*
 * rgate_sender_wait - until frames under way are few enough again
 * @timeout_ms: -1: without end
 * Returns 1, 0 after that time, or -errno (-EINTR). Any thread may call it.
 */
RGATE_API int rgate_sender_wait(const struct rgate_sender *s, int timeout_ms);

/* Slow path of rgate_sender_reserve(): every RGATE_BATCH slots, and when full */
RGATE_API bool rgate_sender_refill(struct rgate_sender *s);

static inline void *rgate_sender_data(struct rgate_tx_slot *slot)
{
	return (unsigned char *)slot + RGATE_SLOT_HDR;
}

/* rgate_sender_room - frame bytes a slot holds */
static inline uint32_t rgate_sender_room(const struct rgate_sender *s)
{
	return (1U << s->size_shift) - RGATE_SLOT_HDR;
}

/*
 * rgate_sender_reserve - the next free slot, or NULL: all are published and not taken
 * Asking again before publishing gives the same slot. Credits are looked at once a
 * batch, with acquire: the module has read what stood there.
 */
static inline struct rgate_tx_slot *rgate_sender_reserve(struct rgate_sender *s)
{
	if (__builtin_expect(s->pos == s->limit, 0) && !rgate_sender_refill(s))
		return NULL;
	return (struct rgate_tx_slot *)(s->slots + ((s->pos & s->mask) << s->size_shift));
}

/*
 * rgate_sender_publish - the slot reserved and filled may be taken
 * @len: bytes of the frame, at most rgate_sender_room()
 * @flags: RGATE_SLOT_TX_FLAGS; what they announce was stored in @slot
 * All that was written to the slot comes before the seq that is stored here with
 * release. A frame that cannot be is skipped and counted by the module.
 */
static inline void rgate_sender_publish(struct rgate_sender *s, struct rgate_tx_slot *slot,
					uint32_t len, uint32_t flags)
{
	slot->len = len;
	slot->flags = flags;
	__atomic_store_n(&slot->seq, s->lap, __ATOMIC_RELEASE);
	s->pos++;
}

#ifdef __cplusplus
}
#endif
#endif
