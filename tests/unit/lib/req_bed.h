/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* A client of the engine that writes its area by itself, and a service that answers when told */
#ifndef REQ_BED_H
#define REQ_BED_H

#include "unit.h"

#include "area.h"
#include "engine.h"

#define LATE		RGATE_REQ_USER		/* the number of the service */
#define LATE_WAIT	RGATE_REQ_OP(LATE, 0)	/* until the test ends it */
#define LATE_SURE	RGATE_REQ_OP(LATE, 1)	/* likewise, and cannot be cancelled */
#define LATE_MEM	RGATE_REQ_OP(LATE, 2)	/* likewise, with memory */
#define LATE_OPEN	RGATE_REQ_OP(LATE, 3)	/* a handle */
#define LATE_CLOSE	RGATE_REQ_OP(LATE, 4)
#define LATE_MANY	RGATE_REQ_OP(LATE, 5)	/* as LATE_WAIT, with as many as it may have */

struct client {
	struct rgate_seat *seat;
	struct rgate_area area;
	struct rgate_welcome w;
	int kick, wait;
	unsigned char *mem;
	uint64_t submitted, completed;
	unsigned int over;		/* times that the engine said so */
};

/* What the service has begun and not ended, in that order */
struct late {
	struct rgate_req *held[256];
	unsigned int n;
	void (*begins)(void);	/* called before one is; may be NULL */
	unsigned int asked;	/* cancel() calls */
	bool slow;		/* cancel() leaves it to the test to end the request */
	bool refuses;		/* cancel() says that it is too late */
	unsigned int over;	/* calls of LATE_MANY's */
	unsigned int dropped;	/* handles */
};

extern struct late late;
extern const struct rgate_req_service late_service;

/* An engine that the test turns by itself, with the late service */
struct rgate_engine *bed_engine(void);
/* Turns until there is nothing left to do; its wish */
int64_t bed_run(struct rgate_engine *e);

/* -errno of rgate_seat_add(); else the client is there */
int client_open(struct client *c, struct rgate_engine *e, const struct rgate_seat_opts *o);
/* A usual one of user @uid with 64 places and a page of memory */
void client_new(struct client *c, struct rgate_engine *e, uid_t uid);
/* Unmaps; the seat has to be removed before or after */
void client_close(struct client *c);

void client_submit(struct client *c, struct rgate_request q);	/* owner is filled in */
void client_kick(struct client *c);
bool client_poll(struct client *c, struct rgate_completion *out);	/* gives credits */

/* Ends the request with @cookie that the service holds */
void late_end(uint64_t cookie, int result, uint64_t value);
bool late_has(uint64_t cookie);
/* One that is not its last; as rgate_req_more() */
uint32_t late_more(uint64_t cookie, int result, uint64_t value);

#endif
