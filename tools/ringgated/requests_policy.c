// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ringgate/rgate_cluster.h>

#include "file.h"
#include "lex.h"
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

struct parser {
	struct request_policy *to;
	const char *name;
	struct rgate_lex lex;
	char *word[WORDS_MAX];
	unsigned int n;
};

__attribute__((format(printf, 2, 3)))
static int bad(const struct parser *p, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	say("%s:%u: %s", p->name, p->lex.line, text);
	return -EINVAL;
}

static int read_user(const struct parser *p, const char *name, uint32_t *id)
{
	const struct passwd *pw;
	uint64_t v;

	if (!number_parse(name, false, 0, UINT32_MAX - 1, &v)) {
		*id = (uint32_t)v;
		return 0;
	}
	pw = getpwnam(name);
	if (!pw)
		return bad(p, "there is no user '%s'", name);
	*id = pw->pw_uid;
	return 0;
}

static int read_group(const struct parser *p, const char *name, uint32_t *id)
{
	const struct group *gr;
	uint64_t v;

	if (!number_parse(name, false, 0, UINT32_MAX - 1, &v)) {
		*id = (uint32_t)v;
		return 0;
	}
	gr = getgrnam(name);
	if (!gr)
		return bad(p, "there is no group '%s'", name);
	*id = gr->gr_gid;
	return 0;
}

static int read_who(const struct parser *p, const char *who, struct rule *rule)
{
	if (!strcmp(who, "any")) {
		rule->who = WHO_ANY;
		return 0;
	}
	if (!strncmp(who, "user:", 5)) {
		rule->who = WHO_USER;
		return read_user(p, who + 5, &rule->id);
	}
	if (!strncmp(who, "group:", 6)) {
		rule->who = WHO_GROUP;
		return read_group(p, who + 6, &rule->id);
	}
	return bad(p, "'%s' is neither user:NAME, group:NAME nor any", who);
}

static int read_service(const struct parser *p, const char *word, uint32_t *services)
{
	static const char *const names[] = {
		[RGATE_REQ_CORE] = "core", [RGATE_REQ_LOG] = "log", [RGATE_REQ_SPAWN] = "spawn",
		[RGATE_REQ_MEMORY] = "memory", [RGATE_REQ_LOCK] = "lock",
		[RGATE_REQ_BARRIER] = "barrier", [RGATE_REQ_SOCKET] = "socket",
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
		return bad(p, "'%s' is no service: core, log, spawn, memory, lock, barrier, "
			   "socket, a number or all", word);
	*services |= 1U << number;
	return 0;
}

/* allow WHO SERVICE... */
static int read_allow(const struct parser *p, struct rule *rule)
{
	unsigned int i;
	int err = 0;

	if (p->n < 3)
		return bad(p, "allow WHO SERVICE...");
	rule->services = CORE;
	for (i = 2; i < p->n && !err; i++)
		err = read_service(p, p->word[i], &rule->services);
	return err;
}

static int read_value(const struct parser *p, struct rule *rule, const char *what,
		      const char *value)
{
	unsigned int i;

	for (i = 0; i < LIMITS; i++) {
		if (strcmp(what, limits[i].name))
			continue;
		if (number_parse(value, i == LIMIT_MEMORY, 1, limits[i].most, &rule->most[i]))
			return bad(p, "%s is '%s', and must be 1 to %llu", what, value,
				   (unsigned long long)limits[i].most);
		return 0;
	}
	return bad(p, "there is no limit '%s': sessions, requests, handles or memory", what);
}

/* limit WHO WHAT VALUE ... */
static int read_limit(const struct parser *p, struct rule *rule)
{
	unsigned int i;
	int err = 0;

	if (p->n < 4 || p->n % 2)
		return bad(p, "limit WHO WHAT VALUE ...");
	for (i = 2; i < p->n && !err; i += 2)
		err = read_value(p, rule, p->word[i], p->word[i + 1]);
	return err;
}

/* node NODE WHO: groups are of processes here, so of another node's user none is known. */
static int read_node(const struct parser *p, struct rule *rule)
{
	uint64_t node;
	int err;

	if (p->n != 3)
		return bad(p, "node NUMBER|any WHO");
	rule->nodes = UINT32_MAX;
	if (strcmp(p->word[1], "any")) {
		if (number_parse(p->word[1], false, 0, RGATE_NODES_MAX - 1, &node))
			return bad(p, "'%s' is no node: 0 to %u, or any", p->word[1],
				   RGATE_NODES_MAX - 1U);
		rule->nodes = 1U << node;
	}
	err = read_who(p, p->word[2], rule);
	if (err)
		return err;
	return rule->who == WHO_GROUP ? bad(p, "node: a user or any, no group") : 0;
}

static int read_rule(const struct parser *p, struct rule *rule)
{
	int err;

	if (!strcmp(p->word[0], "node"))
		return read_node(p, rule);
	if (p->n > 1) {
		err = read_who(p, p->word[1], rule);
		if (err)
			return err;
	}
	if (!strcmp(p->word[0], "allow"))
		return read_allow(p, rule);
	if (!strcmp(p->word[0], "limit"))
		return read_limit(p, rule);
	if (strcmp(p->word[0], "urgent"))
		return bad(p, "what is '%s'? allow, urgent, limit or node", p->word[0]);
	rule->urgent = true;
	return p->n == 2 ? 0 : bad(p, "urgent WHO");
}

/* gcc 12's analyzer loses the list's end. */
#ifndef __clang__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wanalyzer-malloc-leak"
#endif
static int read_line(struct parser *p)
{
	const int n = rgate_lex_words(&p->lex, p->word, WORDS_MAX);
	struct rule *rule;

	if (n < 0)
		return bad(p, "more than %d words", WORDS_MAX);
	p->n = (unsigned int)n;
	rule = calloc(1, sizeof(*rule));
	if (!rule)
		return -ENOMEM;
	*p->to->last = rule;
	p->to->last = &rule->next;
	return read_rule(p, rule);
}

#ifndef __clang__
#pragma GCC diagnostic pop
#endif

static int read_lines(struct parser *p, char *text, size_t len)
{
	int err;

	rgate_lex_init(&p->lex, text, len, RGATE_LEX_LINE);
	while ((err = rgate_lex_line(&p->lex)) > 0) {
		err = read_line(p);
		if (err)
			return err;
	}
	return err ? bad(p, "%s", p->lex.why) : 0;
}

static int read_policy(struct request_policy *policy, const char *path)
{
	struct parser p = { .to = policy, .name = path };
	char *text;
	size_t len;
	int err;

	err = rgate_file_read_own(path, POLICY_MAX, &text, &len);
	if (err) {
		say("cannot read %s: %s", path,
		    err == -EPERM ? "others may write it, or it is not root's" : strerror(-err));
		return err;
	}
	err = read_lines(&p, text, len);
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
