// SPDX-License-Identifier: MIT OR GPL-2.0
#include "config.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ringgate/rgate_daemon.h>
#include <ringgate/rgate_gateway.h>

#include "address.h"
#include "file.h"
#include "journal.h"
#include "lex.h"
#include "number.h"
#include "util.h"

#define CONFIG_MAX	(1U << 20)	/* bytes of the file */
#define POOL_LEAST	(2ULL << 20)
#define POOL_USUAL	(64ULL << 20)

static int bad(const char *where, const char *what, const char *word)
{
	say("%s: %s: '%s'", where, what, word);
	return -EINVAL;
}

/* gcc 12's analyzer loses what the table of pointers in on_pair() leads to. */
#ifndef __clang__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wanalyzer-malloc-leak"
#endif
static int set(char **to, const char *value)
{
	char *copy = strdup(value);

	if (!copy)
		return -ENOMEM;
	free(*to);
	*to = copy;
	return 0;
}

#ifndef __clang__
#pragma GCC diagnostic pop
#endif

/* @to gets one more line */
static int append(char **to, const char *line)
{
	const size_t len = *to ? strlen(*to) : 0, more = strlen(line) + 2;
	char *text = realloc(*to, len + more);

	if (!text)
		return -ENOMEM;
	snprintf(text + len, more, "%s\n", line);
	*to = text;
	return 0;
}

/* @most at most, with K, M, G where @suffix */
static int number(const char *where, const char *text, bool suffix, uint64_t most, uint64_t *to)
{
	const int err = number_parse(text, suffix, 0, most, to);

	if (err == -ERANGE)
		return bad(where, "this is too large", text);
	return err ? bad(where, "this is no number", text) : 0;
}

static int source_kind(const char *where, const char *word, struct source_conf *s)
{
	static const char *const kinds[] = { "module", "packet", "udp" };
	unsigned int i;

	for (i = 0; i < 3; i++)
		if (!strcmp(word, kinds[i])) {
			s->kind = (enum source_kind)i;
			return 0;
		}
	return bad(where, "a source is of kind module, packet or udp", word);
}

static int source_at(const char *where, const struct source_conf *s)
{
	struct sockaddr_storage addr;
	const char *why;
	socklen_t len;

	if (s->kind == SOURCE_UDP)
		return address_parse(s->at, &addr, &len, &why) ? bad(where, why, s->at) : 0;
	return strlen(s->at) < IFNAMSIZ ? 0 : bad(where, "this is too long for a device", s->at);
}

static int source_policy(const char *where, const char *word, uint32_t *policy)
{
	if (!strcmp(word, "drop"))
		*policy = RGATE_POLICY_DROP;
	else if (!strcmp(word, "pass"))
		*policy = RGATE_POLICY_PASS;
	else
		return bad(where, "the policy of a gateway's ring is drop or pass", word);
	return 0;
}

static int source_action(const char *where, const char *word, bool *steal)
{
	*steal = !strcmp(word, "steal");
	if (!*steal && strcmp(word, "mirror"))
		return bad(where, "the action of a source is mirror or steal", word);
	return 0;
}

/* What a gateway takes from its own network stack, its own sessions too, is said. */
static int source_steal(const char *where, const struct source_conf *s)
{
	if (s->steal && s->kind != SOURCE_MODULE)
		return bad(where, "only a source of kind module steals, not that of", s->at);
	if (s->steal && !s->filter && !s->all)
		return bad(where, "a source that steals needs 'all' or a filter", s->at);
	if (s->all && !s->steal)
		return bad(where, "'all' is for a source that steals", s->at);
	return s->all && s->filter ?
	       bad(where, "'all' and a filter exclude each other", s->at) : 0;
}

/* Words "slots N slot_size N policy P action A all filter TEXT", each of them or none */
static int source_options(const char *where, struct rgate_lex *lex, struct source_conf *s)
{
	char *key, *value;
	uint64_t v;
	int err;

	while ((key = rgate_lex_word(lex))) {
		if (!strcmp(key, "filter")) {
			value = rgate_lex_word(lex);
			return value && *value ? set(&s->filter, rgate_lex_join(lex, value)) :
			       bad(where, "a filter is missing behind", key);
		}
		if (!strcmp(key, "all")) {
			s->all = true;
			continue;
		}
		value = rgate_lex_word(lex);
		if (!value)
			return bad(where, "a value is missing behind", key);
		if (!strcmp(key, "policy")) {
			err = source_policy(where, value, &s->policy);
		} else if (!strcmp(key, "action")) {
			err = source_action(where, value, &s->steal);
		} else if (!strcmp(key, "slots") || !strcmp(key, "slot_size")) {
			err = number(where, value, false, RGATE_SLOTS_MAX, &v);
			if (!err)
				*(key[4] == 's' ? &s->slots : &s->slot_size) = (uint32_t)v;
		} else {
			return bad(where, "a source has slots, slot_size, policy, action, all "
				   "and filter, not", key);
		}
		if (err)
			return err;
	}
	return 0;
}

static int on_source(struct config *c, const char *where, const char *kind, struct rgate_lex *lex)
{
	struct source_conf *s = &c->sources[c->nsources];
	const char *at = rgate_lex_word(lex);
	int err;

	if (c->nsources == SOURCES_MAX)
		return bad(where, "there are too many sources", kind);
	memset(s, 0, sizeof(*s));
	if (!at || strlen(at) >= sizeof(s->at))
		return bad(where, "a source is: KIND DEVICE or udp ADDRESS:PORT", kind);
	err = source_kind(where, kind, s);
	if (err)
		return err;
	memcpy(s->at, at, strlen(at) + 1);
	err = source_at(where, s);
	if (err)
		return err;
	err = source_options(where, lex, s);
	if (!err)
		err = source_steal(where, s);
	if (err) {
		free(s->filter);
		return err;
	}
	c->nsources++;
	return 0;
}

static int on_spawn(struct config *c, const char *where, const char *what, struct rgate_lex *lex)
{
	const char *value = rgate_lex_word(lex);

	if (value && *value && !strcmp(what, "policy"))
		return set(&c->spawn_policy, value);
	if (value && *value && !strcmp(what, "cgroup"))
		return set(&c->spawn_cgroup, strcmp(value, "none") ? value : "");
	return bad(where, "spawn is: policy FILE, or cgroup DIR or none", what);
}

static int on_requests(struct config *c, const char *where, const char *what,
		       struct rgate_lex *lex)
{
	const char *value = rgate_lex_word(lex);

	if (value && *value && !strcmp(what, "socket"))
		return set(&c->requests_socket, value);
	if (value && *value && !strcmp(what, "group"))
		return set(&c->requests_group, value);
	if (value && *value && !strcmp(what, "policy"))
		return set(&c->requests_policy, value);
	if (value && *value && !strcmp(what, "sockets"))
		return set(&c->requests_sockets, value);
	if (value && !strcmp(what, "sockets-at") &&
	    (!strcmp(value, "here") || !strcmp(value, "gateway"))) {
		c->sockets_there = !strcmp(value, "gateway");
		return 0;
	}
	if (value && !strcmp(what, "agent") &&
	    (!strcmp(value, "shared") || !strcmp(value, "own"))) {
		c->agents = !strcmp(value, "shared");
		return 0;
	}
	return bad(where,
		   "requests is: socket PATH or none, group GROUP, policy FILE, sockets FILE, sockets-at here or gateway, or agent shared or own",
		   what);
}

/* When what was written is on the disk */
static int journal_sync(struct config *c, const char *where, const char *word)
{
	uint64_t ms;
	int err;

	if (!strcmp(word, "each")) {
		c->journal_sync_ms = JOURNAL_SYNC_EACH;
	} else if (!strcmp(word, "never")) {
		c->journal_sync_ms = JOURNAL_SYNC_NEVER;
	} else {
		err = number(where, word, false, 3600000, &ms);
		if (err || !ms)
			return err ? err : bad(where, "fsync is each, never or some ms, not", word);
		c->journal_sync_ms = (uint32_t)ms;
	}
	return 0;
}

#define JOURNAL_IS "a journal is: DIR, fsync each, never or MS, segment BYTES, repair; "

static int on_journal(struct config *c, const char *where, const char *dir, struct rgate_lex *lex)
{
	char *key, *value;
	uint64_t v;
	int err;

	c->journal_sync_ms = JOURNAL_SYNC_EACH;
	c->journal_segment = 0;
	c->journal_repair = false;
	while ((key = rgate_lex_word(lex))) {
		if (!strcmp(key, "repair")) {
			c->journal_repair = true;
			continue;
		}
		value = rgate_lex_word(lex);
		if (!value)
			return bad(where, JOURNAL_IS "a value is missing behind", key);
		if (!strcmp(key, "fsync")) {
			err = journal_sync(c, where, value);
		} else if (!strcmp(key, "segment")) {
			err = number(where, value, true, JOURNAL_SEGMENT_MOST_SET, &v);
			if (!err && v < JOURNAL_SEGMENT_LEAST_SET)
				err = bad(where, "a segment has 64K to 16M, not", value);
			c->journal_segment = (uint32_t)v;
		} else {
			return bad(where, JOURNAL_IS "not", key);
		}
		if (err)
			return err;
	}
	return set(&c->journal, dir);
}

/* Keys with one value, which is text */
static char **text_of(struct config *c, const char *key)
{
	const struct {
		const char *key;
		char **to;
	} texts[] = {
		{ "cluster", &c->cluster }, { "node", &c->node }, { "socket", &c->socket },
		{ "steer", &c->steer }, { "user", &c->user }, { "group", &c->group },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(texts); i++)
		if (!strcmp(key, texts[i].key))
			return texts[i].to;
	return NULL;
}

static int on_pack(struct config *c, const char *where, const char *value)
{
	static const char *const words[RGATE_PACK_COUNT] = {
		[RGATE_PACK_AUTO] = "auto", [RGATE_PACK_NEVER] = "never",
		[RGATE_PACK_ALWAYS] = "always",
	};
	uint32_t i;

	for (i = 0; i < RGATE_PACK_COUNT; i++)
		if (!strcmp(value, words[i])) {
			c->pack = i;
			return 0;
		}
	return bad(where, "pack is auto, never or always, not", value);
}

static int on_pair(struct config *c, const char *where, const char *key, const char *value,
		   struct rgate_lex *lex)
{
	char **text = text_of(c, key);
	uint64_t v = 0;
	int err;

	if (text)
		return set(text, value);
	if (!strcmp(key, "source"))
		return on_source(c, where, value, lex);
	if (!strcmp(key, "spawn"))
		return on_spawn(c, where, value, lex);
	if (!strcmp(key, "requests"))
		return on_requests(c, where, value, lex);
	if (!strcmp(key, "journal"))
		return on_journal(c, where, value, lex);
	if (!strcmp(key, "pool")) {
		err = number(where, value, true, 1ULL << 40, &c->pool);
		return err || c->pool >= POOL_LEAST ? err :
		       bad(where, "a pool has 2M or more, not", value);
	}
	if (!strcmp(key, "ring-memory")) {
		err = number(where, value, true, 1ULL << 40, &c->ring_memory);
		return err || c->ring_memory ? err :
		       bad(where, "rings need some memory, not", value);
	}
	if (!strcmp(key, "spin")) {
		err = number(where, value, false, 1000000, &v);
		c->spin_us = (uint32_t)v;
		return err;
	}
	if (!strcmp(key, "pack"))
		return on_pack(c, where, value);
	return bad(where, "there is no such key", key);
}

/* The line that @lex is at: a key, a value, and for some more words */
static int on_line(struct config *c, const char *where, struct rgate_lex *lex)
{
	const char *key = rgate_lex_word(lex), *value;
	int err;

	if (!strcmp(key, "cluster-line") && *lex->at)
		return append(&c->cluster_text, rgate_lex_rest(lex));
	value = rgate_lex_word(lex);
	if (!value || !value[strspn(value, " \t")])
		return bad(where, "a value is missing behind", key);
	err = on_pair(c, where, key, value, lex);
	if (!err && *lex->at)
		err = bad(where, "this is too much; what has blanks stands in quotes", lex->at);
	return err;
}

int config_line(struct config *c, const char *where, const char *line)
{
	char *text = strdup(line);
	struct rgate_lex lex;
	int err;

	if (!text)
		return -ENOMEM;
	rgate_lex_init(&lex, text, strlen(text), RGATE_LEX_LINE);
	err = rgate_lex_line(&lex);
	if (err < 0)
		err = bad(where, lex.why, line);
	else if (err)
		err = on_line(c, where, &lex);
	free(text);
	return err;
}

static int on_text(struct config *c, const char *path, char *text, size_t len)
{
	struct rgate_lex lex;
	char where[512];
	int err;

	rgate_lex_init(&lex, text, len, RGATE_LEX_LINE);
	while ((err = rgate_lex_line(&lex))) {
		snprintf(where, sizeof(where), "%s:%u", path, lex.line);
		if (err < 0)
			say("%s: %s", where, lex.why);
		else
			err = on_line(c, where, &lex);
		if (err)
			return err;
	}
	return 0;
}

int config_load(struct config *c, const char *path, bool must_exist)
{
	char *text;
	size_t len;
	int err;

	memset(c, 0, sizeof(*c));
	c->pool = POOL_USUAL;
	err = set(&c->socket, RGATE_DAEMON_SOCKET);
	if (err)
		return err;
	err = rgate_file_read(path, CONFIG_MAX, &text, &len);
	if (err == -ENOENT && !must_exist)
		return 0;
	if (err) {
		say("%s: %s", path, strerror(-err));
		return err;
	}
	err = on_text(c, path, text, len);
	free(text);
	return err;
}

void config_free(struct config *c)
{
	unsigned int i;

	free(c->cluster);
	free(c->cluster_text);
	free(c->node);
	free(c->socket);
	free(c->steer);
	free(c->user);
	free(c->group);
	free(c->spawn_policy);
	free(c->spawn_cgroup);
	free(c->requests_socket);
	free(c->requests_group);
	free(c->requests_policy);
	free(c->requests_sockets);
	free(c->journal);
	for (i = 0; i < c->nsources; i++)
		free(c->sources[i].filter);
	memset(c, 0, sizeof(*c));
}
