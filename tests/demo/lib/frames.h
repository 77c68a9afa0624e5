/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What a consumer makes of frames, by kind. None of this makes a system call. */
#ifndef DEMO_FRAMES_H
#define DEMO_FRAMES_H

#include <ringgate/ringgate.h>

#include "result.h"
#include "tcp_stream.h"

struct frames {
	struct result *res;
	struct demo_sum sum;
	unsigned char *buf;	/* a chained frame, or one with its tag put back */
	struct tcp_stream stream;	/* TCP */
	uint32_t next;		/* datagram expected */
	bool fin;		/* frames: one that ends a TCP connection was there */
};

void frames_init(struct frames *f, struct result *res);
/* The frame in hand of @c */
void frames_take(struct frames *f, const struct rgate_consumer *c,
		 const struct rgate_slot *s);
bool frames_complete(const struct frames *f);
/* Fills in the hash */
void frames_finish(struct frames *f);

enum result_class frames_class(const unsigned char *frame, size_t len);

#endif
