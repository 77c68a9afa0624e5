// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * A name server (RFC 1035) at AGENT_DOMAIN, for programs that read /etc/resolv.conf and ask by
 * themselves. It has no answers of its own: a question for addresses is one of names_ask(), and
 * what comes of it is an answer of 512 bytes at most, with as many addresses as there is room for,
 * so that nobody has to ask again by TCP.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent_priv.h"
#include "clock.h"

#define MOST		512U		/* bytes, as long as nothing else was agreed on */
#define LABEL_MOST	63U
#define TYPE_A		1U
#define TYPE_AAAA	28U
#define CLASS_IN	1U
#define FLAG_RESPONSE	0x8000U
#define FLAG_DESIRED	0x0100U		/* recursion is, */
#define FLAG_AVAILABLE	0x0080U		/* and there is */
#define FLAG_OPCODE	0x7800U
#define NAME_BEFORE	0xc000U		/* a name that is there already, at that place */

enum rcode {
	CODE_OK = 0,
	CODE_FORMAT = 1,
	CODE_FAILED = 2,
	CODE_NO_NAME = 3,
	CODE_NOT_HERE = 4,
	CODE_REFUSED = 5,
};

/* All are big-endian. */
struct header {
	uint16_t id, flags, questions, answers, authorities, more;
};

struct record {
	uint16_t name, type, class, ttl[2], len;
};

/* A question, as it came: the answer begins like it */
struct domain {
	uint64_t id;			/* of its socket */
	uint16_t type;
	uint32_t len;			/* header and question */
	unsigned char said[sizeof(struct header) + RGATE_SOCKET_NAME_MAX + 2 + 4];
};

static const struct rgate_socket_addr server = {
	.family = RGATE_SOCKET_INET, .port = AGENT_DOMAIN_PORT, .addr = AGENT_DOMAIN,
};

bool domain_is(const struct rgate_socket_addr *to)
{
	return to->port == server.port && agent_same_host(to, &server);
}

/* ---- Its answer ---- */

static void put_header(struct domain *d, enum rcode code, uint16_t answers)
{
	struct header h;

	memcpy(&h, d->said, sizeof(h));
	h.flags = htons((uint16_t)(FLAG_RESPONSE | FLAG_AVAILABLE | code |
				   (ntohs(h.flags) & (FLAG_OPCODE | FLAG_DESIRED))));
	h.questions = htons(d->len > sizeof(h));
	h.answers = htons(answers);
	h.authorities = h.more = 0;
	memcpy(d->said, &h, sizeof(h));
}

static void give(struct agent *a, const struct domain *d, const unsigned char *buf, uint32_t len)
{
	struct conn *c = conn_find(a, d->id);
	struct rgate_socket_addr from = server;

	if (!c || c->state != CONN_DATAGRAM)
		return;
	agent_set_family(&from, c->family);
	datagram_give(c, &from, buf, len);
}

static void give_code(struct agent *a, struct domain *d, enum rcode code)
{
	put_header(d, code, 0);
	give(a, d, d->said, d->len);
}

static enum rcode code_of(int result)
{
	switch (result) {
	case 0:
	case -ENODATA:
	case -EADDRNOTAVAIL:
		return CODE_OK;
	case -ENOENT:
	case -EILSEQ:
	case -ENAMETOOLONG:
		return CODE_NO_NAME;
	case -EACCES:
		return CODE_REFUSED;
	default:
		return CODE_FAILED;
	}
}

/* Of addresses that are none of that type there is nothing to tell. Bytes, or 0 */
static uint32_t put_record(const struct domain *d, const struct rgate_socket_addr *addr,
			   unsigned char *to)
{
	const uint16_t family = d->type == TYPE_A ? RGATE_SOCKET_INET : RGATE_SOCKET_INET6;
	const uint16_t len = d->type == TYPE_A ? 4 : 16;
	/* How long it holds nobody has said: it is not to be kept. */
	const struct record r = {
		.name = htons(NAME_BEFORE | sizeof(struct header)), .type = htons(d->type),
		.class = htons(CLASS_IN), .len = htons(len),
	};

	if (addr->family != family)
		return 0;
	memcpy(to, &r, sizeof(r));
	memcpy(to + sizeof(r), addr->addr, len);
	return (uint32_t)sizeof(r) + len;
}

void domain_answer(struct agent *a, struct domain *d, const struct agent_answer *answer)
{
	unsigned char buf[MOST];
	struct rgate_socket_addr addr;
	uint32_t len = d->len, i;
	uint16_t n = 0;

	if (answer->result) {
		give_code(a, d, code_of(answer->result));
		return;
	}
	for (i = 0; i < answer->found && len + sizeof(struct record) + 16 <= MOST; i++) {
		memcpy(&addr, answer->value + i * sizeof(addr), sizeof(addr));
		const uint32_t more = put_record(d, &addr, buf + len);

		len += more;
		n += more > 0;
	}
	put_header(d, CODE_OK, n);
	memcpy(buf, d->said, d->len);
	give(a, d, buf, len);
}

/* ---- A question ---- */

/* The name at the begin of @p, as text; bytes that it has there, 0: it is none */
static uint32_t get_name(const unsigned char *p, uint32_t len, struct agent_ask *ask)
{
	uint32_t at = 0, n;

	ask->len = 0;
	while (at < len && p[at]) {
		n = p[at++];
		if (n > LABEL_MOST || n > len - at || at + n > RGATE_SOCKET_NAME_MAX)
			return 0;
		if (ask->len)
			ask->value[ask->len++] = '.';
		memcpy(ask->value + ask->len, p + at, n);
		ask->len += n;
		at += n;
	}
	return at < len ? at + 1 : 0;
}

/* CODE_OK: it is to be looked up */
static enum rcode read_it(struct domain *d, const unsigned char *buf, uint32_t len,
			  struct agent_ask *ask)
{
	uint32_t n;
	struct header h;
	uint16_t is[2];

	memcpy(&h, buf, sizeof(h));
	if (ntohs(h.flags) & FLAG_OPCODE)
		return CODE_NOT_HERE;
	n = get_name(buf + sizeof(h), len - (uint32_t)sizeof(h), ask);
	if (h.questions != htons(1) || !n || len - sizeof(h) - n < sizeof(is))
		return CODE_FORMAT;
	memcpy(is, buf + sizeof(h) + n, sizeof(is));
	d->len = (uint32_t)(sizeof(h) + n + sizeof(is));
	memcpy(d->said, buf, d->len);
	d->type = ntohs(is[0]);
	/* What text cannot say is no host's name. */
	if (memchr(ask->value, '\0', ask->len))
		return CODE_NO_NAME;
	if (is[1] != htons(CLASS_IN) || (d->type != TYPE_A && d->type != TYPE_AAAA))
		return CODE_NOT_HERE;
	return ask->len ? CODE_OK : CODE_FAILED;
}

/* Of both families: that there is none of one of them is not that there is no such name. */
static void look_up(struct agent *a, struct domain *d, const struct agent_ask *ask)
{
	struct asker *k = calloc(1, sizeof(*k));
	struct agent_answer answer = { .result = -ENOMEM };

	if (!k) {
		domain_answer(a, d, &answer);
		free(d);
		return;
	}
	*k = (struct asker){ .agent = a, .fd = -1, .domain = d,
			     .since = rgate_clock_now(CLOCK_MONOTONIC) };
	list_add_tail(&a->askers, &k->link);
	a->naskers++;
	answer.result = names_ask(k, ask);
	if (answer.result != 1)
		asker_answer(k, &answer, -1);
}

void domain_ask(const struct conn *c, const unsigned char *buf, uint32_t len)
{
	struct agent_ask ask = { .version = AGENT_VERSION, .what = AGENT_RESOLVE };
	struct domain *d;
	enum rcode code;

	/* What is no question has no answer. */
	if (len < sizeof(struct header) || buf[2] & (FLAG_RESPONSE >> 8))
		return;
	d = calloc(1, sizeof(*d));
	if (!d)
		return;
	d->id = c->id;
	d->len = sizeof(struct header);
	memcpy(d->said, buf, d->len);
	code = read_it(d, buf, len, &ask);
	if (code == CODE_OK) {
		look_up(c->agent, d, &ask);
		return;
	}
	give_code(c->agent, d, code);
	free(d);
}
