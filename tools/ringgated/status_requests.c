// SPDX-License-Identifier: MIT OR GPL-2.0
/* Sessions of this machine's programs, by user. */
#include "fmt.h"
#include "requests.h"
#include "requests_net.h"
#include "table.h"

#define USERS_MAX	256	/* that are listed */

static void json_user(struct json *j, const struct rgate_user_stats *u)
{
	json_object(j, NULL);
	json_u64(j, "uid", u->uid);
	json_u64(j, "sessions", u->seats);
	json_u64(j, "under_way", u->under_way);
	json_u64(j, "handles", u->handles);
	json_u64(j, "memory", u->memory);
	json_u64(j, "requests", u->accepted);
	json_u64(j, "refused", u->refused);
	json_u64(j, "completions", u->completions);
	json_object_end(j);
}

static void json_engine(struct json *j, const struct rgate_engine_stats *e)
{
	json_u64(j, "sessions", e->seats);
	json_u64(j, "under_way", e->under_way);
	json_u64(j, "handles", e->handles);
	json_u64(j, "memory", e->memory);
	json_u64(j, "requests", e->accepted);
	json_u64(j, "refused", e->refused);
	json_u64(j, "completions", e->completions);
	json_u64(j, "cancelled", e->cancelled);
	json_u64(j, "timed_out", e->timed_out);
	json_u64(j, "wakeups", e->wakeups);
	json_u64(j, "sleeps", e->sleeps);
}

void requests_json(struct daemon *d, struct json *j)
{
	struct rgate_user_stats u = { .sz = sizeof(u) };
	struct requests_stats s;
	unsigned int i;

	if (!d->requests)
		return;
	requests_stats(d->requests, &s);
	json_object(j, "requests");
	json_str(j, "socket", requests_path(&d->conf));
	json_engine(j, &s.engine);
	json_u64(j, "opened", s.opened);
	json_u64(j, "denied", s.denied);
	json_u64(j, "failed", s.failed);
	json_u64(j, "malformed", s.malformed);
	json_u64(j, "silent", s.silent);
	json_u64(j, "removed", s.removed);
	json_u64(j, "log_lines", s.log_lines);
	json_u64(j, "log_dropped", s.log_dropped);
	net_json(d, j);
	json_array(j, "users");
	for (i = 0; i < USERS_MAX && !requests_user(d->requests, i, &u); i++)
		json_user(j, &u);
	json_array_end(j);
	json_object_end(j);
}

static void text_users(struct daemon *d, FILE *f)
{
	struct rgate_user_stats u = { .sz = sizeof(u) };
	char bytes[FMT_LEN];
	struct table t;
	unsigned int i;

	if (table_init(&t, "USER SESSIONS UNDERWAY REQUESTS REFUSED HANDLES MEMORY"))
		return;
	for (i = 0; i < USERS_MAX && !requests_user(d->requests, i, &u); i++) {
		table_cell(&t, "%u", u.uid);
		table_cell(&t, "%llu", (unsigned long long)u.seats);
		table_cell(&t, "%llu", (unsigned long long)u.under_way);
		table_cell(&t, "%llu", (unsigned long long)u.accepted);
		table_cell(&t, "%llu", (unsigned long long)u.refused);
		table_cell(&t, "%llu", (unsigned long long)u.handles);
		table_cell(&t, "%s", fmt_bytes(bytes, u.memory));
	}
	if (i)
		table_print(&t, f);
	table_free(&t);
}

void requests_text(struct daemon *d, FILE *f)
{
	struct requests_stats s;

	if (!d->requests)
		return;
	requests_stats(d->requests, &s);
	fprintf(f, "\nsessions: open %llu, requests %llu, refused %llu; not opened: by the policy %llu, otherwise %llu\n",
		(unsigned long long)s.engine.seats, (unsigned long long)s.engine.accepted,
		(unsigned long long)s.engine.refused, (unsigned long long)s.denied,
		(unsigned long long)s.failed + s.malformed + s.silent);
	text_users(d, f);
}
