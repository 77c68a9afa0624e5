/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The hub, a connection and the node at its other end, for who has a line to it: what is sent is
 * kept, and the test says what arrives, and when.
 */
#ifndef NODE_OTHER_H
#define NODE_OTHER_H

#include "unit.h"

#include <ringgate/rgate_hub.h>
#include <ringgate/rgate_pool.h>

#define OTHER	1U		/* the node */
#define SELF	0U
#define MSGS	64U

struct msg {
	size_t len;
	unsigned char data[RGATE_HUB_MSG_MAX] __attribute__((aligned(8)));
};

struct other {
	uint32_t service;		/* that there is, */
	struct rgate_service serves, asks; /* its roles, sz 0: not added */
	void *ctx;
	uint32_t taken;			/* a role that another one has */
	bool up;
	bool unseen;			/* up, and the hub has not looked: it can say nothing yet */
	bool full, send_full;		/* nothing can be posted; nothing be said by the hub */
	bool held;			/* what was posted has not left */
	bool may;
	uint32_t epoch, hub_epoch;
	uint64_t incarnation, ticket, lost;
	struct msg asked[MSGS], said[MSGS];
	unsigned int nasked, nsaid;
	unsigned int awaits, settles;	/* times */
	bool settled_early;		/* while there was a role */
	unsigned int lent;		/* memory for messages */
};

extern struct other o;
extern char other_peer_there, other_hub_there;	/* addresses alone */
#define PEER	((struct rgate_peer *)&other_peer_there)
#define HUB	((struct rgate_hub *)&other_hub_there)

void other_init(uint32_t service);
/* Another connection; the hub tells of it. */
void other_comes_up(uint64_t incarnation);
void other_goes_down(void);
/* Takes the first of what was said; where threads say something */
bool other_heard(struct msg *m);

#endif
