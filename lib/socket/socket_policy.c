// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "conf.h"
#include "socket_policy.h"
#include "socket_query.h"

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
	char *name;		/* resolve: that one, .DOMAIN, "": any; NULL: */
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

static int read_who(const struct rgate_conf *c, const char *who, struct rule *rule)
{
	rule->anybody = !strcmp(who, "any");
	if (rule->anybody)
		return 0;
	if (strncmp(who, "user:", 5))
		return rgate_conf_bad(c, "'%s' is neither user:NAME nor any", who);
	return rgate_conf_user(c, who + 5, &rule->uid);
}

static int read_types(const struct rgate_conf *c, const char *word, struct rule *rule)
{
	if (!strcmp(word, "tcp"))
		rule->types = 1U << RGATE_SOCKET_STREAM;
	else if (!strcmp(word, "udp"))
		rule->types = 1U << RGATE_SOCKET_DGRAM;
	else if (!strcmp(word, "any"))
		rule->types = TYPES;
	else
		return rgate_conf_bad(c, "'%s' is none of tcp, udp, any", word);
	return 0;
}

static int read_host(const struct rgate_conf *c, const char *word, struct rule *rule)
{
	struct socket_host h;
	struct rgate_socket_addr a = { .family = RGATE_SOCKET_INET6 };

	rule->any_host = !strcmp(word, "any");
	rule->own = rule->act == SOCKET_ACT_CONNECT && !strcmp(word, "own");
	if (rule->any_host || rule->own)
		return 0;
	if (socket_host_parse(word, &rule->net, &rule->bits))
		return rgate_conf_bad(c, "'%s' is no address, nor ADDRESS/BITS with nothing behind them",
			   word);
	if (!rule->net.v6)
		return 0;
	/* A line that never is anybody's is a mistake. */
	memcpy(a.addr, rule->net.addr, sizeof(a.addr));
	socket_host_of(&a, &h);
	if (!h.v6 && rule->bits >= 96)
		return rgate_conf_bad(c, "'%s' stands for an IPv4 address: say that", word);
	return 0;
}

static int read_ports(const struct rgate_conf *c, const char *word, struct rule *rule)
{
	uint32_t first = 0, last;
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
		return rgate_conf_bad(c, "'%s' is no port, FIRST-LAST, or any", word);
	if (first < PORT_LOW && last >= PORT_LOW)
		return rgate_conf_bad(c, "'%s': ports below %u need a line of their own", word,
				      PORT_LOW);
	rule->first = (uint16_t)first;
	rule->last = (uint16_t)last;
	return 0;
}

/* Without the dot that a full name may end with */
static size_t name_length(const char *name)
{
	const size_t n = strlen(name);

	return n && name[n - 1] == '.' ? n - 1 : n;
}

/* allow WHO resolve NAME */
static int read_name(const struct rgate_conf *c, struct rule *rule)
{
	const char *word = c->n == 4 ? c->word[3] : "";
	const char *rest = *word == '.' ? word + 1 : word;

	if (c->n != 4)
		return rgate_conf_bad(c, "allow WHO resolve NAME|.DOMAIN|any");
	if (!name_length(rest) || !socket_is_name(word, strlen(word)))
		return rgate_conf_bad(c, "'%s' is no name, .DOMAIN, or any", word);
	rule->name = strdup(strcmp(word, "any") ? word : "");
	return rule->name ? 0 : -ENOMEM;
}

/* allow WHO connect TYPE HOST PORTS, allow WHO listen TYPE [HOST] PORTS */
static int read_allow(const struct rgate_conf *c, struct rule *rule)
{
	const bool listens = c->n > 2 && !strcmp(c->word[2], "listen");
	int err;

	if (c->n > 2 && !strcmp(c->word[2], "resolve"))
		return read_name(c, rule);
	if (c->n < 3 || (!listens && strcmp(c->word[2], "connect")))
		return rgate_conf_bad(c, "allow WHO connect|listen|resolve ...");
	rule->act = listens ? SOCKET_ACT_LISTEN : SOCKET_ACT_CONNECT;
	if (c->n != 6 && !(listens && c->n == 5))
		return rgate_conf_bad(c, listens ? "allow WHO listen tcp|udp|any [ADDRESS] PORTS" :
			   "allow WHO connect tcp|udp|any ADDRESS|any|own PORTS");
	err = read_types(c, c->word[3], rule);
	if (!err)
		err = read_host(c, c->n == 6 ? c->word[4] : "any", rule);
	return err ? err : read_ports(c, c->word[c->n - 1], rule);
}

static int read_most(const struct rgate_conf *c, const char *word, uint32_t *to)
{
	const char *end = number(word, 10000000, to);

	if (!end || *end || !*to)
		return rgate_conf_bad(c, "sockets is '%s', and must be 1 to 10000000", word);
	return 0;
}

static int read_rule(const struct rgate_conf *c, struct rule *rule)
{
	int err;

	if (c->n > 1) {
		err = read_who(c, c->word[1], rule);
		if (err)
			return err;
	}
	if (!strcmp(c->word[0], "allow"))
		return read_allow(c, rule);
	if (strcmp(c->word[0], "limit"))
		return rgate_conf_bad(c, "what is '%s'? allow, limit or sockets", c->word[0]);
	if (c->n != 4 || strcmp(c->word[2], "sockets"))
		return rgate_conf_bad(c, "limit WHO sockets NUMBER");
	return read_most(c, c->word[3], &rule->most);
}

static int read_line(struct rgate_conf *c)
{
	struct socket_policy *to = c->ctx;
	struct rule *rule;

	if (!strcmp(c->word[0], "sockets"))
		return c->n == 2 ? read_most(c, c->word[1], &to->most) :
		       rgate_conf_bad(c, "sockets NUMBER");
	rule = calloc(1, sizeof(*rule));
	if (!rule)
		return -ENOMEM;
	*to->end = rule;
	to->end = &rule->next;
	return read_rule(c, rule);
}

#ifndef __clang__
#pragma GCC diagnostic pop
#endif

int socket_policy_parse(struct socket_policy **out, const char *name, char *text, size_t len)
{
	struct socket_policy *policy = calloc(1, sizeof(*policy));
	struct rgate_conf conf = { .ctx = policy, .name = name, .most = WORDS_MAX };
	int err;

	if (!policy)
		return -ENOMEM;
	policy->end = &policy->rules;
	err = rgate_conf_read(&conf, text, len, RGATE_LEX_LINE, read_line);
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
	err = rgate_conf_load_own(path, SOCKET_POLICY_MAX, &text, &len);
	if (err)
		return err;
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
		free(rule->name);
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

/*
 * Who may send datagrams has a port for that which the kernel chooses, as without a bind, and is
 * reached there. An address for it has to be meant: by a line for listening.
 */
static bool is_for(const struct rule *rule, const struct socket_wish *w)
{
	unsigned int special = 0;

	if (rule->act == w->act)
		return has_port(rule, w->port) && has_host(rule, w);
	return w->act == SOCKET_ACT_LISTEN && w->type == RGATE_SOCKET_DGRAM && !w->port &&
	       socket_host_place(&w->host, &special) == PLACE_UNSPECIFIED;
}

bool socket_policy_may(const struct socket_policy *policy, const struct socket_wish *w)
{
	const struct rule *rule;

	if (!w->uid || w->uid == geteuid())
		return true;
	for (rule = policy->rules; rule; rule = rule->next)
		if (!rule->most && !rule->name && is_whose(rule, w->uid) &&
		    rule->types & 1U << w->type && is_for(rule, w))
			return true;
	return false;
}

static bool has_name(const struct rule *rule, const char *name)
{
	const size_t n = name_length(name), own = name_length(rule->name);

	if (!n || !own)
		return true;
	if (*rule->name == '.')
		return n > own && !strncasecmp(name + n - own, rule->name, own);
	return n == own && !strncasecmp(name, rule->name, n);
}

bool socket_policy_resolve(const struct socket_policy *policy, uid_t uid, const char *name)
{
	const struct rule *rule;

	if (!uid || uid == geteuid())
		return true;
	for (rule = policy->rules; rule; rule = rule->next)
		if (rule->name && is_whose(rule, uid) && has_name(rule, name))
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
