/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Where captured frames come from: rings, and what fills them. */
#ifndef INPUT_H
#define INPUT_H

#include <ringgate/ringgate.h>

#include "capture.h"
#include "input_remote.h"

/* A ring and its consumer */
struct input_ring {
	struct rgate_ring *ring;
	struct rgate_consumer c;
	uint32_t room;		/* frame bytes of a slot */
	bool ended;		/* its producer is gone, all is taken */
};

/* A device, or a UDP socket, that fills rings */
struct input_dev {
	char name[80];
	uint32_t ifindex;	/* 0: any, or no device */
	struct rgate_ident att;	/* module: the attachment */
	bool attached;
	int promisc_fd;
	struct rgate_source *src; /* userspace: its thread */
	struct input_remote *remote;
	/* counters as they were last read; those of a source cover the device */
	uint64_t received, filtered, dropped;
};

struct inputs {
	struct rgate_ctl *ctl;
	struct input_ring *rings;
	unsigned int nrings;
	struct input_dev *devs;
	unsigned int ndevs;
	bool quiet;
	int ended;		/* -errno: nothing more will come, which has been said; 0 */
};

/* Makes the rings and begins to fill them. Says what fails; an exit code.
 * inputs_close() is to be called either way. */
int inputs_open(struct inputs *in, const struct capture_opts *o);

/*
 * inputs_next - the ring whose next frame is the oldest, with that frame in hand
 * NULL: nothing is there now. Frames of one ring are in order; between rings the
 * order is as good as what has arrived allows.
 */
struct input_ring *inputs_next(struct inputs *in,
			       const struct rgate_slot **slot);

/* Sleeps until there is something, or @until (CLOCK_MONOTONIC ns), or a signal.
 * 0, or -EPIPE: nothing will come any more; -errno */
int inputs_wait(struct inputs *in, uint64_t until);

/*
 * inputs_update - reads the counters anew
 * @idle: nothing came since the last time
 * Returns how many devices are still there, or -errno: no more frames will come, for a
 * reason that has been said.
 */
int inputs_update(struct inputs *in, bool idle);

/* When to call it again; CLOCK_MONOTONIC ns */
uint64_t inputs_next_update(const struct inputs *in, uint64_t now);

/* When a frame came, by CLOCK_REALTIME; ns */
uint64_t inputs_time(struct inputs *in, const struct rgate_slot *s);

/* The device of a frame, printable; @len bytes */
void inputs_device(struct inputs *in, uint32_t ifindex, char *name, size_t len);

/* No more frames come from here on; what is in the rings can still be taken.
 * Returns 0, or what ended a source early (-errno). */
int inputs_stop(struct inputs *in);

void inputs_close(struct inputs *in);

#endif
