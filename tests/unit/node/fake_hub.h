/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What stands for a node, its hub and its connections, for services that have lines to other
 * nodes: what they say is kept, and who has made these says what arrives, and when.
 */
#ifndef NODE_FAKE_HUB_H
#define NODE_FAKE_HUB_H

#include <stdbool.h>

#include <ringgate/rgate_hub.h>
#include <ringgate/rgate_pool.h>

#define HUB_NODES	3U
#define MSGS		512U

struct msg {
	size_t len;
	unsigned char data[RGATE_HUB_MSG_MAX] __attribute__((aligned(8)));
};

/* The oldest first */
struct msgs {
	unsigned int n;
	struct msg m[MSGS];
};

struct rgate_pool {
	unsigned int lent;		/* memory for messages, and what is written */
};

/* A descriptor of it has its address. */
struct rgate_share {
	const struct rgate_node *node;
	struct rgate_share *next;
	unsigned char *addr;
	size_t len;
	uint32_t key;			/* is no other's */
};

struct rgate_node {
	uint32_t id;
	uint64_t incarnation;
	struct rgate_pool stage;
	bool no_share;			/* there can be no more */
};

#define WRITES	64U

/* That is under way: is placed when it is done, and its memory has to be there until then */
struct write {
	uint64_t ticket;
	uint32_t key;
	unsigned char *to;
	const void *from;
	size_t len;
};

/* One end of a connection */
struct rgate_peer {
	struct rgate_hub *hub;
	struct rgate_peer *far;		/* the other end; NULL: nobody's */
	bool up;
	bool full, send_full;		/* nothing can be posted; nothing be said by the hub */
	unsigned int say_most;		/* messages that can be, and not be taken; 0: any */
	bool held;			/* what was posted has not left */
	uint32_t epoch;			/* of the connection, */
	uint32_t hub_epoch;		/* and of that which the hub has told of */
	uint64_t incarnation;		/* of the node there */
	uint64_t ticket, lost;
	/*
	 * What was written, the oldest first; it is placed when it is looked for, or by
	 * peer_places(), or, with what was said after it, by who takes that.
	 */
	struct write write[WRITES];
	unsigned int nwrites;		/* under way, */
	unsigned int placed, misplaced;	/* times that bytes were, or could not be, */
	unsigned int strayed;		/* of these beside what the test has for it */
	struct msgs asked, said;	/* by posts, and by the hub: without an order among them */
	unsigned int awaits, settles, cuts; /* times */
	bool settled_early;		/* while there was a role, */
	bool settled_late;		/* or when nobody kept the hub */
};

struct rgate_hub {
	struct rgate_node node;
	uint32_t service;		/* that there is, */
	struct rgate_service serves, asks; /* its roles, sz 0: not added */
	void *ctx;
	uint32_t taken;			/* a role that another one has */
	struct rgate_peer *peer[HUB_NODES]; /* NULL: none to that node */
	unsigned int wakes;		/* times */
	unsigned int users;		/* who keeps it */
};

/* No share's: of memory that a test has for who writes there */
#define PEER_KEY	0xfffffff0U

/* What the test has for it to write to */
struct rgate_desc peer_desc(const void *addr, size_t len, uint32_t key);
/* That there are; by any thread */
unsigned int node_shares(const struct rgate_node *node);

/* All is 0 before that, and @peer is down */
void hub_init(struct rgate_hub *hub, uint32_t id, uint32_t service);
void hub_connect(struct rgate_hub *hub, uint32_t node, struct rgate_peer *peer);

/* This end; what was said, or asked, stays */
void peer_comes_up(struct rgate_peer *peer, uint64_t incarnation);
void peer_goes_down(struct rgate_peer *peer);
/* Nothing can be said by the hub; where threads say something */
void peer_say_full(struct rgate_peer *peer, bool full);
/* Or so many messages alone, until one is taken; 0: any */
void peer_say_most(struct rgate_peer *peer, unsigned int n);
/* Both ends: what is under way is lost */
void peer_down(struct rgate_peer *peer);
void peer_lose(struct rgate_peer *peer);
/* All that is under way is placed, even though it is held: in front of what was said behind it */
void peer_places(struct rgate_peer *peer);
/* How often bytes were; by any thread */
unsigned int peer_placed(const struct rgate_peer *peer);
/* The service hears of the connection, or of its end. */
void peer_is_seen(struct rgate_peer *peer);
/* What @node says to the service */
void hub_says(struct rgate_hub *hub, uint32_t node, const void *msg, size_t len);
/* Takes the first one; false: there is none. By any thread */
bool msgs_take(struct msgs *from, struct msg *m);

#endif
