/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* A queue that a program has open: a session of its own, whose memory has two halves */
#ifndef RGATE_QUEUE_QUEUE_CLIENT_H
#define RGATE_QUEUE_QUEUE_CLIENT_H

#include <ringgate/rgate_queue.h>

#include "sync_client.h"

#define OUT_LEN		RGATE_QUEUE_PART_MAX		/* what is asked, */
#define IN_LEN		(RGATE_QUEUE_PART_MAX + 4096U)	/* and what is told, behind that */

struct rgate_queue {
	struct sync_client client;
	char *out, *in;
};

#endif
