// SPDX-License-Identifier: MIT OR GPL-2.0
/* ringgate net: sockets that programs have by requests to the daemon. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "daemon.h"
#include "fmt.h"
#include "json.h"
#include "number.h"
#include "table.h"
#include "util.h"

#define IDS_MAX	64
#define WORD	64

struct net_args {
	const char *socket;
	const char *verb;
	bool json;
	uint64_t ids[IDS_MAX];
	unsigned int n;
};

/* A line of the daemon's answer */
struct row {
	unsigned long long id, received, sent;
	unsigned int unread, unsent, under_way, uid;
	char protocol[8], state[16], local[WORD], peer[WORD];
};

struct list {
	struct table table;
	struct json json;
	bool as_json;
};

static void row_json(struct json *j, const struct row *r)
{
	json_object(j, NULL);
	json_u64(j, "id", r->id);
	json_str(j, "protocol", r->protocol);
	json_str(j, "state", r->state);
	json_str(j, "local", strcmp(r->local, "*") ? r->local : NULL);
	json_str(j, "peer", strcmp(r->peer, "*") ? r->peer : NULL);
	json_u64(j, "unread", r->unread);
	json_u64(j, "unsent", r->unsent);
	json_u64(j, "received", r->received);
	json_u64(j, "sent", r->sent);
	json_u64(j, "under_way", r->under_way);
	json_u64(j, "uid", r->uid);
	json_object_end(j);
}

static void row_text(struct table *t, const struct row *r)
{
	char bytes[FMT_LEN];

	(void)table_cell(t, "%llu", r->id);
	(void)table_cell(t, "%s", r->protocol);
	(void)table_cell(t, "%s", r->state);
	(void)table_cell(t, "%u", r->unread);
	(void)table_cell(t, "%u", r->unsent);
	(void)table_cell(t, "%s", r->local);
	(void)table_cell(t, "%s", r->peer);
	(void)table_cell(t, "%s", fmt_si(bytes, (double)r->received));
	(void)table_cell(t, "%s", fmt_si(bytes, (double)r->sent));
	(void)table_cell(t, "%u", r->under_way);
	(void)table_cell(t, "%u", r->uid);
}

/* How many lines; the last one's id in @after. -1: not understood */
static int take_rows(struct list *l, const char *text, uint64_t *after)
{
	struct row r;
	int n;

	for (n = 0; *text; n++) {
		if (sscanf(text, "%llu %7s %15s %63s %63s %u %u %llu %llu %u %u", &r.id,
			   r.protocol, r.state, r.local, r.peer, &r.unread, &r.unsent,
			   &r.received, &r.sent, &r.under_way, &r.uid) != 11 || r.id <= *after)
			return -1;
		if (l->as_json)
			row_json(&l->json, &r);
		else
			row_text(&l->table, &r);
		*after = r.id;
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
	return n;
}

/* An answer has room for some hundred: asked until there are no more */
static int take_all(struct list *l, const char *socket)
{
	uint64_t after = 0;
	char ask[64], *text;
	int n, ret;

	do {
		snprintf(ask, sizeof(ask), "net list %llu", (unsigned long long)after);
		ret = daemon_ask(socket, ask, &text);
		if (ret != EXIT_OK)
			return ret;
		n = take_rows(l, text, &after);
		free(text);
	} while (n > 0);
	if (!n)
		return EXIT_OK;
	say("ringgated answers what is not understood");
	return EXIT_FAIL;
}

static int do_list(const struct net_args *a)
{
	struct list l = { .as_json = a->json };
	int ret;

	if (table_init(&l.table, "ID <PROTO <STATE UNREAD UNSENT <LOCAL <PEER RECEIVED SENT "
		       "UNDERWAY UID")) {
		say("no memory");
		return EXIT_FAIL;
	}
	json_init(&l.json, stdout, true);
	if (a->json)
		json_array(&l.json, NULL);
	ret = take_all(&l, a->socket);
	if (a->json) {
		json_array_end(&l.json);
		json_end(&l.json);
	} else if (ret == EXIT_OK) {
		table_print(&l.table, stdout);
	}
	table_free(&l.table);
	return ret;
}

static int do_kill(const struct net_args *a)
{
	int ret = EXIT_OK, one;
	char ask[64], *text;
	unsigned int i;

	for (i = 0; i < a->n; i++) {
		snprintf(ask, sizeof(ask), "net kill %llu", (unsigned long long)a->ids[i]);
		one = daemon_ask(a->socket, ask, &text);
		free(text);
		ret = one ? one : ret;
	}
	return ret;
}

static void parse_arg(struct net_args *a, char *arg, struct argp_state *state)
{
	if (!a->verb) {
		a->verb = arg;
		if (strcmp(arg, "list") && strcmp(arg, "kill"))
			argp_error(state, "'%s' is neither list nor kill", arg);
		return;
	}
	if (strcmp(a->verb, "kill"))
		argp_error(state, "'%s' is not expected", arg);
	if (a->n == IDS_MAX)
		argp_error(state, "at most %d at once", IDS_MAX);
	if (number_parse(arg, false, 1, UINT64_MAX, &a->ids[a->n++]))
		argp_error(state, "'%s' is no number of a socket: `ringgate net list` has them",
			   arg);
}

static error_t parse_opt(int key, char *arg, struct argp_state *state)
{
	struct net_args *a = state->input;

	switch (key) {
	case 'j':
		a->json = true;
		break;
	case 's':
		a->socket = arg;
		break;
	case ARGP_KEY_ARG:
		parse_arg(a, arg, state);
		break;
	case ARGP_KEY_END:
		if (a->verb && !strcmp(a->verb, "kill") && !a->n)
			argp_error(state, "which socket? `ringgate net list` has their numbers");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp_option options[] = {
	OPT_JSON,
	{ "socket", 's', "PATH", 0, "The daemon's socket", 0 },
	{ 0 }
};

static const struct argp argp = {
	.options = options,
	.parser = parse_opt,
	.args_doc = "[list]\nkill ID...",
	.doc = "Sockets that programs of this machine have by requests to ringgated.\n\n"
	       "list: all of them.\n"
	       "kill: resets connections, ends listeners; root's.",
};

int cmd_net(int argc, char **argv)
{
	struct net_args a = { .json = false };

	cmd_parse(&argp, argc, argv, &a);
	return a.verb && !strcmp(a.verb, "kill") ? do_kill(&a) : do_list(&a);
}
