/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* A transmit ring that is bound to a device: the end of a replay that sends. */
#ifndef REPLAY_OUT_H
#define REPLAY_OUT_H

#include <net/if.h>
#include <ringgate/ringgate.h>

struct replay_out {
	char dev[IF_NAMESIZE];
	uint32_t room;		/* bytes of a frame that a slot holds */
	struct rgate_ring *ring;
	struct rgate_sender s;
	uint32_t pending;	/* published, and not taken yet */
};

/*
 * replay_out_open - a ring whose slots hold what @dev sends, and the right to send it
 * Says what is wrong; an exit code. replay_out_close() is to be called either way.
 */
int replay_out_open(struct replay_out *o, const char *dev);

/*
 * replay_out_put - one frame into the ring; it leaves with the next flush, or before
 * @len: at most o->room
 * 0, or as replay_out_flush()
 */
int replay_out_put(struct replay_out *o, const void *frame, uint32_t len);

/*
 * replay_out_flush - until the module has taken all that is in the ring
 * Waits while the device's queue is full. 0; -EINTR: util_stop; -ENETDOWN: the device is down;
 * -ENOTCONN: it is gone; -ENOBUFS: there was no memory for a frame for seconds
 */
int replay_out_flush(struct replay_out *o);

/* What became of the frames: as those of the ring, without a system call */
void replay_out_stats(const struct replay_out *o, struct rgate_stats *stats);

/* What was flushed leaves all the same. */
void replay_out_close(struct replay_out *o);

#endif
