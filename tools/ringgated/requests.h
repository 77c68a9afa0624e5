/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Requests of any process of this machine: who connects to the socket gets a session with
 * the engine, if the policy allows its user one.
 */
#ifndef REQUESTS_H
#define REQUESTS_H

#include "engine.h"
#include "module.h"

struct journal_opts;

struct requests_stats {
	struct rgate_engine_stats engine;
	uint64_t opened;	/* sessions */
	uint64_t denied;	/* by the policy */
	uint64_t failed;	/* over a limit, or out of something */
	uint64_t malformed;	/* that spoke otherwise than clients do */
	uint64_t silent;	/* that said nothing in time, or did not leave room for others */
	uint64_t removed;	/* sessions that a policy read later does not allow */
	uint64_t log_lines;
	uint64_t log_dropped;
};

/* requests_services.c: the journal that is to be had; false: none */
bool requests_journal(const struct config *c, struct journal_opts *o);

/* The socket's path, or NULL: there is none */
const char *requests_path(const struct config *c);

/* status_requests.c */
void requests_json(struct daemon *d, struct json *j);
void requests_text(struct daemon *d, FILE *f);

/* Any thread */
void requests_stats(struct requests *rq, struct requests_stats *stats);
/* Of user @i, of those that have sessions; -ENOENT: there are not so many */
int requests_user(struct requests *rq, unsigned int i, struct rgate_user_stats *stats);

#endif
