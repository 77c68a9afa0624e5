/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* A policy as it is kept: made by policy.c, asked by policy_check.c */
#ifndef RGATE_SPAWN_POLICY_RULES_H
#define RGATE_SPAWN_POLICY_RULES_H

#include "policy.h"

struct rgate_policy_rule {
	struct rgate_policy_rule *next;
	uint32_t nodes;			/* bits */
	const char *path;		/* a pattern; NULL: any */
	bool with_args;			/* they have to fit: */
	bool rest;			/* and any more */
	uint32_t nargs;
	const char **args;
	bool with_hash;
	uint8_t sha256[32];
};

struct rgate_spawn_policy {
	char *text;			/* what all strings point into */
	uint32_t max_running;
	uint32_t max_queued;
	const char *search;		/* directories for commands without a path */
	struct rgate_policy_node node[RGATE_NODES_MAX];
	struct rgate_policy_rule *rules;
	struct rgate_policy_rule **last;
};

#endif
