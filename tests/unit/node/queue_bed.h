/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Queues of this node, a program of it, and another node (gate_bed.h) */
#ifndef NODE_QUEUE_BED_H
#define NODE_QUEUE_BED_H

#include "gate_bed.h"
#include "req_bed.h"

#include <ringgate/queue.h>

#include "queue_service.h"

#define ROOM		1024U		/* where the program has what it is told */
#define SILENT_MS	50U

extern struct client a;			/* the program */
extern struct rgate_completion done[512]; /* of its requests, by cookie; 0: under way */

extern uint64_t keep_bytes;		/* of the next bed: queue_opts has it */

int setup(void **state);
int setup_silent(void **state);		/* nobody waits longer than SILENT_MS for the other node */
int teardown(void **state);

#define BED(name)	cmocka_unit_test_setup_teardown(name, setup, teardown)
#define SILENT(name)	cmocka_unit_test_setup_teardown(name, setup_silent, teardown)

/* Whatever can be done is done. */
void turn(void);

/* The cookie */
uint64_t submit(struct rgate_request q);
bool is_done(uint64_t n);
/* It has to be done. @value: out, or NULL */
int result_of(uint64_t n, uint64_t *value);

#define REQ(op_, ...) \
	((struct rgate_request){ .op = RGATE_REQ_QUEUE_##op_, ##__VA_ARGS__ })
#define ask_here(...)	result_of(submit(REQ(__VA_ARGS__)), NULL)

/* To be submitted at once: its place is in the program's memory */
struct rgate_request open_of(const char *name, uint64_t node, uint32_t flags);
/* A queue of this node, made if it is not there */
uint32_t open_here(const char *name);
void put_here(uint32_t h, uint32_t len);
struct rgate_queue_info info_of(uint32_t h);
/* What is kept of what it has submitted there */
struct queue_kept_stats kept(void);
/* Of the program, of all services */
uint64_t handles(void);

#endif
