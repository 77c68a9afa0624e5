/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Nodes with the services of locks and barriers, in one process and without threads: the test
 * says when a message arrives, what the clock shows, and which connection or node there is.
 */
#ifndef SYNC_WORLD_H
#define SYNC_WORLD_H

#include "req_bed.h"

#include <ringgate/sync.h>

#include "fake_hub.h"
#include "sync_service.h"
#include "sync_wire.h"

#define NODES		HUB_NODES
#define SLOTS		8U	/* places in a client's memory */
#define COOKIES		4096U
#define MS		1000000ULL
#define LEASE		1000ULL	/* ms */
#define PATIENCE	1125ULL
#define ROOM		2048U	/* in a client's page: for what is told */

struct wnode {
	struct rgate_engine *e;		/* NULL: it does not run */
	struct sync_service *sv;
	struct rgate_hub hub;
	uint64_t incarnation;
	bool paused;			/* neither hears nor looks at the clock */
	uint8_t newer;			/* its build, by so many versions of what it says */
};

struct world {
	uint64_t now;			/* ns */
	unsigned int nodes;
	struct wnode node[NODES];
	struct rgate_peer peer[NODES][NODES]; /* of the first one, to the second one */
	bool with_hub;
	bool may;
};

extern struct world w;

struct wclient {
	struct client c;
	unsigned int node;
	uint64_t of;		/* incarnation of it */
	bool there;
	uint64_t cookie;		/* last one */
	bool done[COOKIES];
	int result[COOKIES];
	uint64_t value[COOKIES];
};

/* @nodes 0: one without a hub. Time passes until locks are given. */
void world_make(unsigned int nodes);
void world_unmake(void);

void node_start(unsigned int i);
void node_stop(unsigned int i);	/* its clients are not closed */
void node_quit(unsigned int i);	/* likewise, and its connections stay until it has ended */
void link_set(unsigned int a, unsigned int b, bool up);
bool link_is_up(unsigned int a, unsigned int b);

/* One message, if there is one: of the calls, or of the outbox */
bool deliver(unsigned int from, unsigned int to, bool call);
/* Of one node: the hub's thread and the engine's are run until they have nothing to do */
void node_turn(unsigned int i);
/* Everything that can happen without time passing does. */
void settle(void);
/* Time passes, in steps of 50 ms, and all that runs does so. */
void pass(uint64_t ms);

void wclient_new(struct wclient *c, unsigned int node, uid_t uid);
/* Is killed */
void wclient_end(struct wclient *c);
struct rgate_sync_place *place_of(const struct wclient *c, unsigned int slot);
/* A request; its cookie. Nothing is run */
uint64_t wsubmit(struct wclient *c, struct rgate_request q);
bool is_done(struct wclient *c, uint64_t cookie);
/* Settles, and it has to be done then */
int result_of(struct wclient *c, uint64_t cookie, uint64_t *value);
int wask(struct wclient *c, struct rgate_request q, uint64_t *value);

/* Of the user @uid, at @home; 0 or -errno */
int open_at(struct wclient *c, unsigned int slot, const char *name, unsigned int home,
	    uint32_t flags, uint32_t members, uid_t owner, uint32_t *handle);
/* The usual one: it has to work */
uint32_t lock_at(struct wclient *c, unsigned int slot, const char *name, unsigned int home);
/* Does the client take the lock for its own? */
bool is_valid(const struct wclient *c, unsigned int slot);

#endif
