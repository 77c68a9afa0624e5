/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What became of clients' requests to queues, each by its number. The words below are for a test
 * that has clients c[], their handles h[], and submit(i, request), which calls req_asks_submit().
 */
#ifndef REQ_ASKS_H
#define REQ_ASKS_H

#include "req_bed.h"

#define ASKS_MAX	16384U

/* None was asked so far, of that engine */
void req_asks_begin(struct rgate_engine *e);
/* A number for a request, from 1 on */
uint64_t req_asks_next(void);
/* Its number, which is its cookie */
uint64_t req_asks_submit(struct client *c, struct rgate_request q);
/* Has it ended, when the engine has nothing left to do? */
bool req_asks_done(struct client *c, uint64_t n);
/* It has: its result; @value may be NULL */
int req_asks_result(struct client *c, uint64_t n, uint64_t *value);
/* Of the last one that was submitted */
uint64_t req_asks_last_value(void);

#define is_done(i, n)			req_asks_done(&c[i], n)
#define result_of(i, n, value)		req_asks_result(&c[i], n, value)
#define req(i, op_, ...) \
	((struct rgate_request){ .op = RGATE_REQ_QUEUE_##op_, .handle = h[i], ##__VA_ARGS__ })
#define later(i, op_, ...)		submit(i, req(i, op_, ##__VA_ARGS__))
#define ask_value(i, value, op_, ...) \
	result_of(i, submit(i, req(i, op_, ##__VA_ARGS__)), value)
#define ask(i, op_, ...)		ask_value(i, NULL, op_, ##__VA_ARGS__)

#endif
