// SPDX-License-Identifier: MIT OR GPL-2.0
/* Whose programs there are: each member has a place where its own ask. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent_priv.h"
#include "log.h"
#include "opts.h"

#define WARN_MAX	256

/* gcc 12's analyzer loses what is in a list. */
#ifndef __clang__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wanalyzer-malloc-leak"
#endif
int agent_join(struct agent *a, struct agent_member **out)
{
	struct agent_member *m = calloc(1, sizeof(*m));
	int err;

	if (!m)
		return -ENOMEM;
	m->source.kind = SOURCE_CONTROL;
	m->agent = a;
	(void)snprintf(m->path, sizeof(m->path), "%s/" AGENT_CONTROL "%" PRIu64, a->dir,
		       ++a->last_member);
	err = control_open(m);
	if (err) {
		free(m);
		return err;
	}
	list_add_tail(&a->members, &m->link);
	*out = m;
	return 0;
}

#ifndef __clang__
#pragma GCC diagnostic pop
#endif

const char *agent_member_path(const struct agent_member *m)
{
	return m->path;
}

/* Those that are parked are their listeners', which were there first. */
static void break_conns(struct agent_member *m)
{
	struct agent *a = m->agent;
	struct link *at, *next;

	for (at = a->all.next; at != &a->all; at = next) {
		struct conn *c = container_of(at, struct conn, link);

		next = at->next;
		if (c->member != m)
			continue;
		if (c->parked)
			conn_free(c->parked);
		c->parked = NULL;
		/* Who waits in accept(2) waits no longer. */
		if (c->state == CONN_LISTENS || c->state == CONN_BROKEN)
			meet_break_last(c);
		next = at->next;
		conn_free(c);
	}
	for (at = a->dead.next; at != &a->dead; at = next) {
		struct conn *c = container_of(at, struct conn, link);

		next = at->next;
		if (c->member == m)
			conn_free(c);
	}
}

static void add_info(struct agent_info *to, const struct agent_info *more)
{
	to->sockets += more->sockets;
	to->connected += more->connected;
	to->accepted += more->accepted;
	to->local += more->local;
	to->sent += more->sent;
	to->received += more->received;
	to->resets += more->resets;
	to->datagrams += more->datagrams;
	to->lost += more->lost;
	to->refused += more->refused;
}

void agent_leave(struct agent_member *m)
{
	struct agent *a = m->agent;
	struct link *at, *next;

	/* First: who has been told, and finds it gone, does not wait again. */
	control_close(m);
	break_conns(m);
	for (at = a->askers.next; at != &a->askers; at = next) {
		struct asker *k = container_of(at, struct asker, link);

		next = at->next;
		if (k->member == m)
			asker_free(k);
	}
	list_del(&m->link);
	add_info(&a->info, &m->info);
	free(m);
}

void member_warn(const struct agent_member *m, const char *fmt, ...)
{
	const struct agent *a = m->agent;
	char line[WARN_MAX];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	if (a->warn)
		a->warn(a->warn_ctx, m, line);
	else
		rgate_warn("%s", line);
}

/* What there is now; @m: NULL: of all */
static void count(const struct agent *a, const struct agent_member *m, struct agent_info *all)
{
	const struct link *at;

	all->lies = a->info.lies;
	for (at = a->lanes.next; at != &a->lanes; at = at->next)
		all->sessions++;
	for (at = a->all.next; at != &a->all; at = at->next) {
		const struct conn *c = container_of(at, struct conn, link);

		if (m && c->member != m)
			continue;
		all->now++;
		all->moving += c->state == CONN_STREAM || c->state == CONN_DATAGRAM;
	}
}

int agent_info(const struct agent *a, struct agent_info *info)
{
	struct agent_info all = a->info;
	const struct link *at;

	for (at = a->members.next; at != &a->members; at = at->next)
		add_info(&all, &container_of(at, struct agent_member, link)->info);
	count(a, NULL, &all);
	/* Also those that are closed, and whose names may yet be asked */
	all.now = a->nconns;
	return rgate_info_copy(info, &all, sizeof(all));
}

int agent_member_info(const struct agent_member *m, struct agent_info *info)
{
	struct agent_info all = m->info;

	count(m->agent, m, &all);
	return rgate_info_copy(info, &all, sizeof(all));
}
