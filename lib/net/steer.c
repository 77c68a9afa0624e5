// SPDX-License-Identifier: MIT OR GPL-2.0
/* The table of rules: made from text. */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lex.h"
#include "log.h"
#include "steer.h"

#define LINE_MAX_BYTES	2048
#define SNAPLEN		262144

struct where {			/* a message for whoever wrote the line */
	char *buf;
	size_t len;
};

__attribute__((format(printf, 2, 3)))
static int wrong(const struct where *w, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (w->buf && w->len)
		vsnprintf(w->buf, w->len, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

int rgate_steer_create(struct rgate_steer **out, const struct rgate_cluster *cluster)
{
	struct rgate_steer *steer = calloc(1, sizeof(*steer));

	if (!steer)
		return -ENOMEM;
	steer->rules = calloc(RGATE_RULES_MAX, sizeof(*steer->rules));
	if (!steer->rules) {
		free(steer);
		return -ENOMEM;
	}
	steer->cluster = cluster;
	steer->refs = 1;
	*out = steer;
	return 0;
}

struct rgate_steer *rgate_steer_get(struct rgate_steer *steer)
{
	__atomic_add_fetch(&steer->refs, 1, __ATOMIC_RELAXED);
	return steer;
}

static void free_rule(struct steer_rule *rule)
{
	pcap_freecode(&rule->prog);
	free(rule->line);
}

void rgate_steer_destroy(struct rgate_steer *steer)
{
	unsigned int i;

	if (!steer || __atomic_sub_fetch(&steer->refs, 1, __ATOMIC_ACQ_REL))
		return;
	for (i = 0; i < steer->count; i++)
		free_rule(&steer->rules[i]);
	free(steer->rules);
	free(steer);
}

static int find(const struct rgate_steer *steer, const char *name)
{
	unsigned int i;

	for (i = 0; i < steer->count; i++)
		if (!strcmp(steer->rules[i].name, name))
			return (int)i;
	return -ENOENT;
}

/* With a filter or without: the rule of that name is the last one. */
static bool is_default(const char *name)
{
	return !strcmp(name, RGATE_RULE_DEFAULT);
}

/* Rules before the default one, or all where there is none */
static unsigned int ordinary(const struct rgate_steer *steer)
{
	return steer->count && is_default(steer->rules[steer->count - 1].name) ?
	       steer->count - 1 : steer->count;
}

static uint32_t all_compute(const struct rgate_cluster *cluster)
{
	struct rgate_cluster_node n = { .sz = sizeof(n) };
	uint32_t nodes = 0;
	unsigned int i;

	for (i = 0; !rgate_cluster_node(cluster, i, &n); i++)
		if (n.role == RGATE_ROLE_COMPUTE)
			nodes |= 1U << n.id;
	return nodes;
}

static int parse_nodes(const struct rgate_steer *steer, char *list, uint32_t *nodes,
		       const struct where *w)
{
	struct rgate_cluster_node n = { .sz = sizeof(n) };
	char *save = NULL, *one;

	*nodes = 0;
	if (!strcmp(list, "*"))
		*nodes = all_compute(steer->cluster);
	else
		for (one = strtok_r(list, ",", &save); one; one = strtok_r(NULL, ",", &save)) {
			if (rgate_cluster_find(steer->cluster, one, &n))
				return wrong(w, "no node '%s' in the cluster", one);
			*nodes |= 1U << n.id;
		}
	return *nodes ? 0 : wrong(w, "no node is named");
}

/* False: it is empty, or too long */
static bool copy_name(char *to, size_t size, const char *name)
{
	return *name && snprintf(to, size, "%s", name) < (int)size;
}

static int parse_target(const struct rgate_steer *steer, struct steer_rule *rule, char *word,
			const struct where *w)
{
	char *list = strchr(word, ':'), *ring;

	if (!strcmp(word, "drop")) {
		rule->target = STEER_DROP;
		return 0;
	}
	if (!list)
		return wrong(w, "'%s' is no target: node:N, hash:N,..., all:N,... or drop", word);
	*list++ = '\0';
	if (!strcmp(word, "hash"))
		rule->target = STEER_HASH;
	else if (!strcmp(word, "all"))
		rule->target = STEER_ALL;
	else if (!strcmp(word, "node"))
		rule->target = STEER_NODE;
	else
		return wrong(w, "'%s:' is no target: node:, hash:, all: or drop", word);
	ring = rule->target == STEER_NODE ? strchr(list, '/') : NULL;
	if (ring) {
		*ring++ = '\0';
		if (!copy_name(rule->ring, sizeof(rule->ring), ring))
			return wrong(w, "a ring's name has 1 to %zu bytes",
				     sizeof(rule->ring) - 1);
	}
	if (rule->target == STEER_NODE && (strchr(list, ',') || !strcmp(list, "*")))
		return wrong(w, "node: takes one node; hash: or all: take several");
	return parse_nodes(steer, list, &rule->nodes, w);
}

/* 1: it was an option; 0: it is something else */
static int parse_option(struct steer_rule *rule, const char *word, const struct where *w)
{
	if (!strcmp(word, "full=wait") || !strcmp(word, "full=drop"))
		rule->full_drop = word[5] == 'd';
	else if (!strcmp(word, "down=next") || !strcmp(word, "down=drop"))
		rule->down_drop = word[5] == 'd';
	else if (!strncmp(word, "full=", 5) || !strncmp(word, "down=", 5))
		return wrong(w, "'%s': full= is wait or drop, down= is next or drop", word);
	else
		return 0;
	return 1;
}

static int parse_name(struct steer_rule *rule, const char *name, const struct where *w)
{
	const char *p;

	if (!copy_name(rule->name, sizeof(rule->name), name))
		return wrong(w, "a rule's name has 1 to %zu bytes", sizeof(rule->name) - 1);
	for (p = name; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr("_-.", *p))
			return wrong(w, "'%s': names are of letters, digits, '_', '-', '.'", name);
	return 0;
}

/* To be run here, by bpf_filter(), on frames as they were on the wire */
static int compile(const char *text, struct bpf_program *prog, const struct where *w)
{
	pcap_t *pc = pcap_open_dead(DLT_EN10MB, SNAPLEN);
	int err = 0;

	if (!pc)
		return -ENOMEM;
	if (pcap_compile(pc, prog, text, 1, PCAP_NETMASK_UNKNOWN) < 0)
		err = wrong(w, "%s", pcap_geterr(pc));
	pcap_close(pc);
	return err;
}

static int parse_rule(const struct rgate_steer *steer, struct steer_rule *rule,
		      struct rgate_lex *lex, const struct where *w)
{
	char *name = rgate_lex_word(lex), *target = rgate_lex_word(lex), *word;
	int ret;

	ret = parse_name(rule, name, w);
	if (!ret)
		ret = target ? parse_target(steer, rule, target, w) :
		      wrong(w, "'%s' has no target: node:N, hash:N,..., all:N,... or drop", name);
	if (ret)
		return ret;
	while ((word = rgate_lex_word(lex))) {
		ret = parse_option(rule, word, w);
		if (ret < 0)
			return ret;
		/* What is no option begins the filter. */
		if (!ret)
			return compile(rgate_lex_join(lex, word), &rule->prog, w);
	}
	return 0;
}

/* @rule gets the line without what is around it */
static int parse_one(const struct rgate_steer *steer, struct steer_rule *rule, char *text,
		     const struct where *w)
{
	struct rgate_lex lex;
	int ret;

	rgate_lex_init(&lex, text, strlen(text), SIZE_MAX);
	ret = rgate_lex_line(&lex);
	if (ret < 0)
		return wrong(w, "%s", lex.why);
	if (!ret || strlen(lex.at) >= LINE_MAX_BYTES)
		return wrong(w, "a rule is a line of 1 to %d bytes", LINE_MAX_BYTES - 1);
	rule->line = strdup(lex.at);
	return rule->line ? parse_rule(steer, rule, &lex, w) : -ENOMEM;
}

/* Where it goes: an index, or -errno */
static int place(const struct rgate_steer *steer, const char *name, const char *before,
		 const struct where *w)
{
	const int at = before ? find(steer, before) : (int)ordinary(steer);

	if (find(steer, name) >= 0) {
		(void)wrong(w, "there is a rule '%s' already", name);
		return -EEXIST;
	}
	if (at < 0)
		(void)wrong(w, "no rule '%s'", before);
	else if (before && is_default(name))
		return wrong(w, "the rule '%s' is always the last one", name);
	return at;
}

int rgate_steer_add(struct rgate_steer *steer, const char *line, const char *before,
		    char *errbuf, size_t errlen)
{
	const struct where w = { errbuf, errlen };
	struct steer_rule rule = { 0 };
	char *text;
	int at;

	if (steer->count == RGATE_RULES_MAX) {
		(void)wrong(&w, "there are %d rules already", RGATE_RULES_MAX);
		return -ENOSPC;
	}
	text = strdup(line);
	at = text ? parse_one(steer, &rule, text, &w) : -ENOMEM;
	free(text);
	if (!at)
		at = place(steer, rule.name, before, &w);
	if (at < 0) {
		free_rule(&rule);
		return at;
	}
	memmove(&steer->rules[at + 1], &steer->rules[at],
		(steer->count - (unsigned int)at) * sizeof(rule));
	steer->rules[at] = rule;
	steer->count++;
	return 0;
}

int rgate_steer_remove(struct rgate_steer *steer, const char *name)
{
	int at = find(steer, name);

	if (at < 0)
		return at;
	free_rule(&steer->rules[at]);
	steer->count--;
	memmove(&steer->rules[at], &steer->rules[at + 1],
		(steer->count - (unsigned int)at) * sizeof(*steer->rules));
	return 0;
}

/* The rules behind the first @had, which had @default_too, if it is one of them */
static void forget(struct rgate_steer *steer, unsigned int had, bool default_too)
{
	struct steer_rule last = { 0 };

	if (default_too)
		last = steer->rules[--steer->count];
	while (steer->count > had - default_too)
		free_rule(&steer->rules[--steer->count]);
	if (default_too)
		steer->rules[steer->count++] = last;
}

static int parse_line(struct rgate_steer *steer, const char *name, struct rgate_lex *lex)
{
	const bool behind = ordinary(steer) != steer->count;
	char why[256] = "";
	int err;

	err = rgate_steer_add(steer, rgate_lex_rest(lex), NULL, why, sizeof(why));
	if (err)
		rgate_err("%s:%u: %s", name, lex->line, why);
	else if (behind)
		rgate_warn("%s:%u: this rule comes before '" RGATE_RULE_DEFAULT
			   "', which is always the last one", name, lex->line);
	return err;
}

static int parse_lines(struct rgate_steer *steer, const char *name, struct rgate_lex *lex)
{
	int err;

	while ((err = rgate_lex_line(lex)) > 0) {
		err = parse_line(steer, name, lex);
		if (err)
			return err;
	}
	if (err)
		rgate_err("%s:%u: %s", name, lex->line, lex->why);
	return err;
}

int rgate_steer_parse(struct rgate_steer *steer, const char *name, const char *text, size_t len)
{
	const bool default_too = ordinary(steer) != steer->count;
	const unsigned int had = steer->count;
	char *copy = malloc(len + 1);
	struct rgate_lex lex;
	int err;

	if (!copy)
		return -ENOMEM;
	if (len)
		memcpy(copy, text, len);
	rgate_lex_init(&lex, copy, len, RGATE_LEX_LINE);
	err = parse_lines(steer, name, &lex);
	if (err)
		forget(steer, had, default_too);
	free(copy);
	return err;
}

unsigned int rgate_steer_count(const struct rgate_steer *steer)
{
	return steer->count;
}

const char *rgate_steer_line(const struct rgate_steer *steer, unsigned int i)
{
	return i < steer->count ? steer->rules[i].line : NULL;
}
