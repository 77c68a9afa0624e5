// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ringgate/rgate_cluster.h>

#include "conf.h"
#include "number.h"
#include "requests_policy.h"
#include "util.h"

#define POLICY_MAX	(256U << 10)	/* bytes of the file */
#define WORDS_MAX	64		/* of a line */
#define CORE		(1U << RGATE_REQ_CORE)

static const struct {
	const char *name;
	uint64_t usual, most;
} limits[LIMITS] = {
	[LIMIT_SESSIONS] = { "sessions", 64, 1000000 },
	[LIMIT_REQUESTS] = { "requests", 4096, 1000000000 },
	[LIMIT_HANDLES] = { "handles", 1024, 1000000000 },
	[LIMIT_MEMORY] = { "memory", 64ULL << 20, 1ULL << 40 },
};

enum who {
	WHO_ANY, WHO_USER, WHO_GROUP
};

/* A line of the file */
struct rule {
	struct rule *next;
	enum who who;
	uint32_t id;
	uint32_t services;	/* allow */
	bool urgent;
	uint32_t nodes;		/* node: bits */
	uint64_t most[LIMITS];	/* limit; 0: not in this line */
};

struct request_policy {
	struct rule *rules;	/* in the file's order */
	struct rule **last;
};

static int read_who(const struct rgate_conf *c, const char *who, struct rule *rule)
{
	if (!strcmp(who, "any")) {
		rule->who = WHO_ANY;
		return 0;
	}
	if (!strncmp(who, "user:", 5)) {
		rule->who = WHO_USER;
		return rgate_conf_user(c, who + 5, &rule->id);
	}
	if (!strncmp(who, "group:", 6)) {
		rule->who = WHO_GROUP;
		return rgate_conf_group(c, who + 6, &rule->id);
	}
	return rgate_conf_bad(c, "'%s' is neither user:NAME, group:NAME nor any", who);
}

static int read_service(const struct rgate_conf *c, const char *word, uint32_t *services)
{
	static const char *const names[] = {
		[RGATE_REQ_CORE] = "core", [RGATE_REQ_LOG] = "log", [RGATE_REQ_SPAWN] = "spawn",
		[RGATE_REQ_MEMORY] = "memory", [RGATE_REQ_LOCK] = "lock",
		[RGATE_REQ_BARRIER] = "barrier", [RGATE_REQ_SOCKET] = "socket",
		[RGATE_REQ_QUEUE] = "queue",
	};
	uint64_t number;

	if (!strcmp(word, "all")) {
		*services = UINT32_MAX;
		return 0;
	}
	for (number = 0; number < ARRAY_SIZE(names); number++)
		if (!strcmp(word, names[number]))
			break;
	if (number == ARRAY_SIZE(names) &&
	    number_parse(word, false, 0, RGATE_REQ_SERVICES - 1, &number))
		return rgate_conf_bad(c, "'%s' is no service: core, log, spawn, memory, lock, "
				      "barrier, socket, queue, a number or all", word);
	*services |= 1U << number;
	return 0;
}

/* allow WHO SERVICE... */
static int read_allow(const struct rgate_conf *c, struct rule *rule)
{
	unsigned int i;
	int err = 0;

	if (c->n < 3)
		return rgate_conf_bad(c, "allow WHO SERVICE...");
	rule->services = CORE;
	for (i = 2; i < c->n && !err; i++)
		err = read_service(c, c->word[i], &rule->services);
	return err;
}

static int read_value(const struct rgate_conf *c, struct rule *rule, const char *what,
		      const char *value)
{
	unsigned int i;

	for (i = 0; i < LIMITS; i++) {
		if (strcmp(what, limits[i].name))
			continue;
		if (number_parse(value, i == LIMIT_MEMORY, 1, limits[i].most, &rule->most[i]))
			return rgate_conf_bad(c, "%s is '%s', and must be 1 to %llu", what, value,
				   (unsigned long long)limits[i].most);
		return 0;
	}
	return rgate_conf_bad(c, "there is no limit '%s': sessions, requests, handles or memory",
			      what);
}

/* limit WHO WHAT VALUE ... */
static int read_limit(const struct rgate_conf *c, struct rule *rule)
{
	unsigned int i;
	int err = 0;

	if (c->n < 4 || c->n % 2)
		return rgate_conf_bad(c, "limit WHO WHAT VALUE ...");
	for (i = 2; i < c->n && !err; i += 2)
		err = read_value(c, rule, c->word[i], c->word[i + 1]);
	return err;
}

/* node NODE WHO: groups are of processes here, so of another node's user none is known. */
static int read_node(const struct rgate_conf *c, struct rule *rule)
{
	uint64_t node;
	int err;

	if (c->n != 3)
		return rgate_conf_bad(c, "node NUMBER|any WHO");
	rule->nodes = UINT32_MAX;
	if (strcmp(c->word[1], "any")) {
		if (number_parse(c->word[1], false, 0, RGATE_NODES_MAX - 1, &node))
			return rgate_conf_bad(c, "'%s' is no node: 0 to %u, or any", c->word[1],
				   RGATE_NODES_MAX - 1U);
		rule->nodes = 1U << node;
	}
	err = read_who(c, c->word[2], rule);
	if (err)
		return err;
	return rule->who == WHO_GROUP ? rgate_conf_bad(c, "node: a user or any, no group") : 0;
}

static int read_rule(const struct rgate_conf *c, struct rule *rule)
{
	int err;

	if (!strcmp(c->word[0], "node"))
		return read_node(c, rule);
	if (c->n > 1) {
		err = read_who(c, c->word[1], rule);
		if (err)
			return err;
	}
	if (!strcmp(c->word[0], "allow"))
		return read_allow(c, rule);
	if (!strcmp(c->word[0], "limit"))
		return read_limit(c, rule);
	if (strcmp(c->word[0], "urgent"))
		return rgate_conf_bad(c, "what is '%s'? allow, urgent, limit or node", c->word[0]);
	rule->urgent = true;
	return c->n == 2 ? 0 : rgate_conf_bad(c, "urgent WHO");
}

/* gcc 12's analyzer loses the list's end. */
#ifndef __clang__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wanalyzer-malloc-leak"
#endif
static int read_line(struct rgate_conf *c)
{
	struct request_policy *to = c->ctx;
	struct rule *rule = calloc(1, sizeof(*rule));

	if (!rule)
		return -ENOMEM;
	*to->last = rule;
	to->last = &rule->next;
	return read_rule(c, rule);
}

#ifndef __clang__
#pragma GCC diagnostic pop
#endif

static int read_policy(struct request_policy *policy, const char *path)
{
	struct rgate_conf conf = { .ctx = policy, .name = path, .most = WORDS_MAX };
	char *text;
	size_t len;
	int err;

	err = rgate_conf_load_own(path, POLICY_MAX, &text, &len);
	if (err)
		return err;
	err = rgate_conf_read(&conf, text, len, RGATE_LEX_LINE, read_line);
	free(text);
	return err;
}

int request_policy_load(struct request_policy **out, const char *path)
{
	struct request_policy *policy = calloc(1, sizeof(*policy));
	int err;

	if (!policy)
		return -ENOMEM;
	policy->last = &policy->rules;
	err = path ? read_policy(policy, path) : 0;
	if (err)
		request_policy_free(policy);
	else
		*out = policy;
	return err;
}

void request_policy_free(struct request_policy *policy)
{
	struct rule *rule;

	if (!policy)
		return;
	while ((rule = policy->rules)) {
		policy->rules = rule->next;
		free(rule);
	}
	free(policy);
}

static bool matches(const struct rule *rule, uid_t uid, const gid_t *groups, unsigned int ngroups)
{
	unsigned int i;

	if (rule->who != WHO_GROUP)
		return rule->who == WHO_ANY || rule->id == uid;
	for (i = 0; i < ngroups; i++)
		if (groups[i] == rule->id)
			return true;
	return false;
}

struct request_rights request_policy_rights(const struct request_policy *policy, uid_t uid,
					    const gid_t *groups, unsigned int ngroups)
{
	struct request_rights r = { 0 };
	const struct rule *rule;
	unsigned int i;

	if (!uid || uid == geteuid())
		return (struct request_rights){ .services = UINT32_MAX, .urgent = true };
	for (rule = policy->rules; rule; rule = rule->next) {
		if (!matches(rule, uid, groups, ngroups))
			continue;
		r.services |= rule->services;
		r.urgent |= rule->urgent;
		/* Of several lines that limit the same the first one holds. */
		for (i = 0; i < LIMITS; i++)
			if (!r.most[i])
				r.most[i] = rule->most[i];
	}
	for (i = 0; i < LIMITS; i++)
		if (!r.most[i])
			r.most[i] = limits[i].usual;
	return r;
}

bool request_policy_speaks(const struct request_policy *policy, uint32_t node, uid_t uid)
{
	const struct rule *rule;

	for (rule = policy->rules; rule; rule = rule->next) {
		if (!(rule->nodes & 1U << node))
			continue;
		/* Root has to be meant. */
		if (rule->who == WHO_ANY ? uid != 0 : rule->id == uid)
			return true;
	}
	return false;
}

void request_rights_add(struct request_rights *rights, const struct request_rights *more)
{
	unsigned int i;

	rights->services |= more->services;
	rights->urgent |= more->urgent;
	for (i = 0; i < LIMITS; i++)
		if (!more->most[i] || (rights->most[i] && rights->most[i] < more->most[i]))
			rights->most[i] = more->most[i];
}

void request_rights_limits(const struct request_rights *rights, struct rgate_limits *to)
{
	unsigned int i;

	rgate_limits_init(to);
	for (i = 0; i < RGATE_REQ_SERVICES; i++)
		if (!(rights->services & 1U << i))
			to->ops[i] = 0;
	to->classes = 1U << RGATE_CLASS_NORMAL | 1U << RGATE_CLASS_BULK;
	if (rights->urgent)
		to->classes |= 1U << RGATE_CLASS_URGENT;
	to->sessions = (uint32_t)rights->most[LIMIT_SESSIONS];
	to->requests = (uint32_t)rights->most[LIMIT_REQUESTS];
	to->handles = (uint32_t)rights->most[LIMIT_HANDLES];
	to->memory = rights->most[LIMIT_MEMORY];
}
