// SPDX-License-Identifier: MIT OR GPL-2.0
/* Names, looked up by who serves: a session of its own, made by the first question for one */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "agent_priv.h"
#include "client_quiet.h"
#include "clock.h"

#define QUERIES		32U		/* at once */
#define LATER_MOST	256U		/* that wait for a place */
#define ROOM		4096U		/* of one, in the session's memory */
#define LONGEST_US	30000000U
#define LATER_NS	(LONGEST_US * 1000ULL)
#define ALL_FREE	UINT32_MAX

/* One that is under way */
struct query {
	struct asker *asker;		/* NULL: he has gone */
};

struct names {
	struct source source;
	struct rgate_sockets *set;
	unsigned char *mem;
	uint32_t free_mask;		/* bit N: the Nth query is none */
	bool lost;			/* another session is needed */
	bool used;			/* since names_reap() looked */
	struct link askers;
	struct query query[QUERIES];
};

RGATE_ASSERT(ROOM >= AGENT_ANSWER_MAX);

static int names_open(struct agent *a)
{
	struct rgate_sockets_opts o = a->sets;
	struct names *n = calloc(1, sizeof(*n));
	int err;

	if (!n)
		return -ENOMEM;
	n->source.kind = SOURCE_LANE;
	n->free_mask = ALL_FREE;
	list_init(&n->askers);
	o.requests = QUERIES;
	o.memory = (uint64_t)QUERIES * ROOM;
	err = sockets_open_asking(&n->set, &o, a->enough, a->enough_ctx);
	if (err)
		goto free;
	n->mem = rgate_sockets_memory(n->set, NULL);
	err = agent_watch(a, rgate_sockets_fd(n->set), EPOLLIN | EPOLLET, &n->source);
	if (err)
		goto close;
	a->names = n;
	return 0;
close:
	rgate_sockets_close(n->set);
free:
	free(n);
	return err;
}

void names_close(struct agent *a)
{
	struct names *n = a->names;

	if (!n)
		return;
	while (!list_empty(&n->askers))
		asker_free(container_of(n->askers.next, struct asker, link));
	rgate_sockets_close(n->set);
	free(n);
	a->names = NULL;
}

static void forget_later(struct asker *k)
{
	free(k->later);
	k->later = NULL;
	k->agent->nlater--;
}

/* Nobody waits for it any more; its place is free at its end, which comes soon then. */
void names_forget(struct asker *k)
{
	struct names *n = k->agent->names;

	if (k->later)
		forget_later(k);
	if (!k->query)
		return;
	k->query->asker = NULL;
	(void)rgate_sockets_cancel(n->set, (uint64_t)(k->query - n->query));
	k->query = NULL;
}

static int begin(struct agent *a, const struct agent_ask *ask, uint32_t at)
{
	char name[RGATE_SOCKET_NAME_MAX + 1] = "";

	memcpy(name, ask->value, ask->len);
	if (strlen(name) != ask->len)
		return -EILSEQ;
	return rgate_sockets_resolve_begin(a->names->set, &RGATE_OPTS(rgate_socket_query,
		.name = name, .family = ask->a, .type = RGATE_SOCKET_STREAM, .flags = ask->b,
		.buf = a->names->mem + (size_t)at * ROOM, .len = ROOM, .deadline_us = LONGEST_US,
		.cookie = at));
}

static void refuse(struct asker *k, int result)
{
	const struct agent_answer answer = { .result = result };

	asker_answer(k, &answer, -1);
}

/* A session with a place: a lost one is followed by another one when nothing is under way there. */
static int names_place(struct agent *a, uint32_t *at)
{
	int err;

	if (a->names && a->names->lost && a->names->free_mask == ALL_FREE)
		names_close(a);
	err = a->names ? 0 : names_open(a);
	if (err)
		return err;
	if (!a->names->free_mask || a->names->lost)
		return -EAGAIN;
	*at = (uint32_t)__builtin_ctz(a->names->free_mask);
	return 0;
}

/* He waits, and is answered whatever becomes of it. */
static void look_up(struct asker *k, const struct agent_ask *ask, uint32_t at)
{
	struct names *n = k->agent->names;
	int err = begin(k->agent, ask, at);

	if (err) {
		refuse(k, err);
		return;
	}
	n->used = true;
	n->free_mask &= ~(1U << at);
	n->query[at].asker = k;
	k->query = &n->query[at];
}

static int wait_for_place(struct asker *k, const struct agent_ask *ask)
{
	struct agent *a = k->agent;
	struct agent_ask *later;
	int err;

	if (a->nlater == LATER_MOST)
		return -EAGAIN;
	later = malloc(sizeof(*later));
	if (!later)
		return -ENOMEM;
	err = asker_wait(k, &a->later);
	if (err) {
		free(later);
		return err;
	}
	*later = *ask;
	k->later = later;
	a->nlater++;
	return 1;
}

int names_ask(struct asker *k, const struct agent_ask *ask)
{
	struct agent *a = k->agent;
	uint32_t at;
	int err;

	if (!ask->len || ask->len > RGATE_SOCKET_NAME_MAX)
		return ask->len ? -ENAMETOOLONG : -EINVAL;
	/* Who came before has the next place. */
	err = list_empty(&a->later) ? names_place(a, &at) : -EAGAIN;
	if (err == -EAGAIN)
		return wait_for_place(k, ask);
	if (!err)
		err = asker_wait(k, &a->names->askers);
	if (err)
		return err;
	look_up(k, ask, at);
	return 1;
}

/* Whoever waits for a place gets those that there are. */
static void go_on(struct agent *a)
{
	struct agent_ask ask;
	struct asker *k;
	uint32_t at;
	int err;

	while (!list_empty(&a->later)) {
		err = names_place(a, &at);
		if (err == -EAGAIN)
			return;
		k = container_of(a->later.next, struct asker, link);
		if (err) {
			refuse(k, err);
			continue;
		}
		/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): who waits there has one */
		ask = *k->later;
		forget_later(k);
		list_del(&k->link);
		list_add_tail(&a->names->askers, &k->link);
		look_up(k, &ask, at);
	}
}

/* Who has waited as long as an answer may take hears that it takes too long. */
static void expire_later(struct agent *a, uint64_t now)
{
	struct asker *k;

	while (!list_empty(&a->later)) {
		k = container_of(a->later.next, struct asker, link);
		if (now - k->since < LATER_NS)
			return;
		refuse(k, -EAGAIN);
	}
}

/* Whatever who serves says of it: no more than there is room for */
static void fill(struct agent_answer *answer, const struct rgate_socket_end *end,
		 const unsigned char *mem)
{
	uint32_t found = (uint32_t)end->result, canon = RGATE_SOCKET_CANON(end->value);

	found = found < RGATE_SOCKET_FOUND_MAX ? found : RGATE_SOCKET_FOUND_MAX;
	canon = canon <= RGATE_SOCKET_NAME_MAX ? canon : 0;
	answer->found = found;
	answer->len = found * (uint32_t)sizeof(struct rgate_socket_addr) + canon;
	memcpy(answer->value, mem, answer->len);
}

static void ended(struct names *n, const struct rgate_socket_end *end)
{
	const uint32_t at = (uint32_t)end->cookie;
	struct asker *k = n->query[at].asker;
	struct agent_answer answer = { .result = end->result < 0 ? end->result : 0 };

	if (end->result >= 0)
		fill(&answer, end, n->mem + (size_t)at * ROOM);
	/* Its gateway was another one. */
	n->lost |= end->result == -ECONNRESET;
	n->free_mask |= 1U << at;
	n->query[at].asker = NULL;
	if (!k)
		return;
	k->query = NULL;
	asker_answer(k, &answer, -1);
}

int names_take(struct agent *a)
{
	struct rgate_socket_end end = { .sz = sizeof(end) };
	int ret = 0;

	while (a->names && (ret = rgate_sockets_next(a->names->set, &end, 0)) == 1) {
		ended(a->names, &end);
		go_on(a);
	}
	return ret;
}

void names_reap(struct agent *a)
{
	struct names *n = a->names;

	expire_later(a, rgate_clock_now(CLOCK_MONOTONIC));
	if (n && !n->used && n->free_mask == ALL_FREE)
		names_close(a);
	else if (n)
		n->used = false;
}

bool names_arm(struct agent *a)
{
	return a->names && rgate_sockets_arm(a->names->set);
}
