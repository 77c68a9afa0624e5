/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * A hub with a connection to one other node, which the test is: what is sent to it is kept, and
 * the test says what arrives, and when.
 */
#ifndef NODE_OTHER_H
#define NODE_OTHER_H

#include "fake_hub.h"

#define OTHER	1U		/* the node */
#define SELF	0U

struct other {
	struct rgate_hub hub;
	struct rgate_peer peer;
	bool may;		/* it speaks for users */
};

extern struct other o;
#define PEER	(&o.peer)
#define HUB	(&o.hub)

void other_init(uint32_t service);
/* Another connection; the hub tells of it. */
void other_comes_up(uint64_t incarnation);
/* Likewise, but so far it can only be looked at, until peer_is_seen() */
void other_comes_up_unseen(uint64_t incarnation);
/* What it was asked, and told, stays; what was posted is lost. */
void other_goes_down(void);
/* Takes the first of what was said; where threads say something */
bool other_heard(struct msg *m);

#endif
