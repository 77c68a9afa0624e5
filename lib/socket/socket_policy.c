// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file.h"
#include "lex.h"
#include "log.h"
#include "socket_policy.h"

#define WORDS_MAX	8	/* of a line */
#define PORT_LOW	1024	/* those below are named, or not meant */
#define MOST_USUAL	1024U	/* sockets of a user */
#define TYPES		(1U << RGATE_SOCKET_STREAM | 1U << RGATE_SOCKET_DGRAM)

/* A line of the file */
struct rule {
	struct rule *next;
	bool anybody;
	uid_t uid;
	uint32_t most;		/* limit; else: */
	enum socket_act act;
	uint32_t types;		/* bits */
	bool any_host;		/* that is plain */
	bool own;		/* addresses of this machine */
	struct socket_host net;
	unsigned int bits;
	uint16_t first, last;	/* ports */
	bool any_port;		/* first to last, or one that the kernel chooses */
};

struct socket_policy {
	struct rule *rules;	/* in the file's order */
	struct rule **end;
	uint32_t most;
};

struct parser {
	struct socket_policy *to;
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
	rgate_err("%s:%u: %s", p->name, p->lex.line, text);
	return -EINVAL;
}

/* gcc 12's analyzer loses the list's end. */
#ifndef __clang__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wanalyzer-malloc-leak"
#endif
/* Digits alone, up to @most; what is behind them, or NULL */
static const char *number(const char *text, uint32_t most, uint32_t *to)
{
	uint64_t v = 0;
	const char *s;

	for (s = text; *s >= '0' && *s <= '9'; s++) {
		v = v * 10 + (uint32_t)(*s - '0');
		if (v > most)
			return NULL;
	}
	*to = (uint32_t)v;
	return s == text ? NULL : s;
}

static int read_who(const struct parser *p, const char *who, struct rule *rule)
{
	struct passwd pw, *found = NULL;
	char buf[4096];
	const char *end;

	rule->anybody = !strcmp(who, "any");
	if (rule->anybody)
		return 0;
	if (strncmp(who, "user:", 5))
		return bad(p, "'%s' is neither user:NAME nor any", who);
	end = number(who + 5, UINT32_MAX - 1, &rule->uid);
	if (end && !*end)
		return 0;
	if (getpwnam_r(who + 5, &pw, buf, sizeof(buf), &found) || !found)
		return bad(p, "there is no user '%s'", who + 5);
	rule->uid = pw.pw_uid;
	return 0;
}

static int read_types(const struct parser *p, const char *word, struct rule *rule)
{
	if (!strcmp(word, "tcp"))
		rule->types = 1U << RGATE_SOCKET_STREAM;
	else if (!strcmp(word, "udp"))
		rule->types = 1U << RGATE_SOCKET_DGRAM;
	else if (!strcmp(word, "any"))
		rule->types = TYPES;
	else
		return bad(p, "'%s' is none of tcp, udp, any", word);
	return 0;
}

static int read_host(const struct parser *p, const char *word, struct rule *rule)
{
	struct socket_host h;
	struct rgate_socket_addr a = { .family = RGATE_SOCKET_INET6 };

	rule->any_host = !strcmp(word, "any");
	rule->own = rule->act == SOCKET_ACT_CONNECT && !strcmp(word, "own");
	if (rule->any_host || rule->own)
		return 0;
	if (socket_host_parse(word, &rule->net, &rule->bits))
		return bad(p, "'%s' is no address, nor ADDRESS/BITS with nothing behind them",
			   word);
	if (!rule->net.v6)
		return 0;
	/* A line that never is anybody's is a mistake. */
	memcpy(a.addr, rule->net.addr, sizeof(a.addr));
	socket_host_of(&a, &h);
	if (!h.v6 && rule->bits >= 96)
		return bad(p, "'%s' stands for an IPv4 address: say that", word);
	return 0;
}

static int read_ports(const struct parser *p, const char *word, struct rule *rule)
{
	uint32_t first, last;
	const char *s;

	rule->any_port = !strcmp(word, "any");
	if (rule->any_port) {
		rule->first = PORT_LOW;
		rule->last = UINT16_MAX;
		return 0;
	}
	s = number(word, UINT16_MAX, &first);
	last = first;
	if (s && *s == '-')
		s = number(s + 1, UINT16_MAX, &last);
	if (!s || *s || !first || last < first)
		return bad(p, "'%s' is no port, FIRST-LAST, or any", word);
	if (first < PORT_LOW && last >= PORT_LOW)
		return bad(p, "'%s': ports below %u need a line of their own", word, PORT_LOW);
	rule->first = (uint16_t)first;
	rule->last = (uint16_t)last;
	return 0;
}

/* allow WHO connect TYPE HOST PORTS, allow WHO listen TYPE [HOST] PORTS */
static int read_allow(const struct parser *p, struct rule *rule)
{
	const bool listens = p->n > 2 && !strcmp(p->word[2], "listen");
	int err;

	if (p->n < 3 || (!listens && strcmp(p->word[2], "connect")))
		return bad(p, "allow WHO connect|listen ...");
	rule->act = listens ? SOCKET_ACT_LISTEN : SOCKET_ACT_CONNECT;
	if (p->n != 6 && !(listens && p->n == 5))
		return bad(p, listens ? "allow WHO listen tcp|udp|any [ADDRESS] PORTS" :
			   "allow WHO connect tcp|udp|any ADDRESS|any|own PORTS");
	err = read_types(p, p->word[3], rule);
	if (!err)
		err = read_host(p, p->n == 6 ? p->word[4] : "any", rule);
	return err ? err : read_ports(p, p->word[p->n - 1], rule);
}

static int read_most(const struct parser *p, const char *word, uint32_t *to)
{
	const char *end = number(word, 10000000, to);

	return end && !*end && *to ? 0 : bad(p, "sockets is '%s', and must be 1 to 10000000", word);
}

static int read_rule(const struct parser *p, struct rule *rule)
{
	int err;

	if (p->n > 1) {
		err = read_who(p, p->word[1], rule);
		if (err)
			return err;
	}
	if (!strcmp(p->word[0], "allow"))
		return read_allow(p, rule);
	if (strcmp(p->word[0], "limit"))
		return bad(p, "what is '%s'? allow, limit or sockets", p->word[0]);
	if (p->n != 4 || strcmp(p->word[2], "sockets"))
		return bad(p, "limit WHO sockets NUMBER");
	return read_most(p, p->word[3], &rule->most);
}

static int read_line(struct parser *p)
{
	const int n = rgate_lex_words(&p->lex, p->word, WORDS_MAX);
	struct rule *rule;

	if (n < 0)
		return bad(p, "more than %d words", WORDS_MAX);
	p->n = (unsigned int)n;
	if (!strcmp(p->word[0], "sockets"))
		return p->n == 2 ? read_most(p, p->word[1], &p->to->most) :
		       bad(p, "sockets NUMBER");
	rule = calloc(1, sizeof(*rule));
	if (!rule)
		return -ENOMEM;
	*p->to->end = rule;
	p->to->end = &rule->next;
	return read_rule(p, rule);
}

#ifndef __clang__
#pragma GCC diagnostic pop
#endif

static int read_lines(struct parser *p)
{
	int err;

	while ((err = rgate_lex_line(&p->lex)) > 0) {
		err = read_line(p);
		if (err)
			return err;
	}
	return err ? bad(p, "%s", p->lex.why) : 0;
}

int socket_policy_parse(struct socket_policy **out, const char *name, char *text, size_t len)
{
	struct socket_policy *policy = calloc(1, sizeof(*policy));
	struct parser p = { .to = policy, .name = name };
	int err;

	if (!policy)
		return -ENOMEM;
	policy->end = &policy->rules;
	rgate_lex_init(&p.lex, text, len, RGATE_LEX_LINE);
	err = read_lines(&p);
	if (err)
		socket_policy_free(policy);
	else
		*out = policy;
	return err;
}

int socket_policy_load(struct socket_policy **policy, const char *path)
{
	char none[1] = "", *text;
	size_t len;
	int err;

	if (!path)
		return socket_policy_parse(policy, "", none, 0);
	err = rgate_file_read_own(path, SOCKET_POLICY_MAX, &text, &len);
	if (err) {
		rgate_err("cannot read %s: %s", path, err == -EPERM ?
			  "others may write it, or it is not root's" : strerror(-err));
		return err;
	}
	err = socket_policy_parse(policy, path, text, len);
	free(text);
	return err;
}

void socket_policy_free(struct socket_policy *policy)
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

static bool is_whose(const struct rule *rule, uid_t uid)
{
	return rule->anybody || rule->uid == uid;
}

static bool has_port(const struct rule *rule, uint16_t port)
{
	return (port >= rule->first && port <= rule->last) || (!port && rule->any_port);
}

/*
 * What is not just somewhere has to be meant: a line with all of the bits that make it such a
 * place, or, for an address of this machine, with all that there are.
 */
static bool has_host(const struct rule *rule, const struct socket_wish *w)
{
	unsigned int special = 0;
	enum socket_place place = socket_host_place(&w->host, &special);

	if (w->act == SOCKET_ACT_LISTEN && place == PLACE_UNSPECIFIED)
		special = 0;
	else if (w->own && place == PLACE_PLAIN)
		special = w->host.v6 ? 128 : 32;
	if (rule->own)
		return w->own && place == PLACE_PLAIN;
	if (rule->any_host)
		return !special;
	return rule->bits >= special && socket_host_within(&w->host, &rule->net, rule->bits);
}

bool socket_policy_may(const struct socket_policy *policy, const struct socket_wish *w)
{
	const struct rule *rule;

	if (!w->uid || w->uid == geteuid())
		return true;
	for (rule = policy->rules; rule; rule = rule->next)
		if (!rule->most && rule->act == w->act && is_whose(rule, w->uid) &&
		    rule->types & 1U << w->type && has_port(rule, w->port) && has_host(rule, w))
			return true;
	return false;
}

uint32_t socket_policy_most(const struct socket_policy *policy, uid_t uid)
{
	const struct rule *rule;

	if (!uid || uid == geteuid())
		return 0;
	/* Of several lines that are his the first one holds. */
	for (rule = policy->rules; rule; rule = rule->next)
		if (rule->most && is_whose(rule, uid))
			return rule->most;
	return MOST_USUAL;
}

uint32_t socket_policy_most_all(const struct socket_policy *policy)
{
	return policy->most;
}
