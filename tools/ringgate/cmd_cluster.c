// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * ringgate cluster: what the daemon of this node knows, and how far the others are; keys and
 * the cluster file (cluster.h).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ringgate/rgate_daemon.h>

#include "cluster.h"
#include "cmd.h"
#include "daemon.h"
#include "fmt.h"
#include "json.h"
#include "table.h"
#include "util.h"

#define ROWS_MAX	128
#define NAME_LEN	40

/* They come first, and have options of their own. */
static const struct {
	const char *name;
	char full[28];		/* as messages and help call it */
	int (*run)(int argc, char **argv);
} parts[] = {
	{ "show", "ringgate cluster show", cluster_show },
	{ "keygen", "ringgate cluster keygen", cluster_keygen },
	{ "pubkey", "ringgate cluster pubkey", cluster_pubkey },
};

struct cluster_args {
	const char *socket;
	const char *verb;
	const char *node;
	bool json;
	uint64_t interval_ns;
	uint64_t count;		/* 0: until interrupted */
};

/* As rgate_daemon_call() chooses it */
static const char *socket_of(const char *socket)
{
	if (!socket)
		socket = getenv("RGATE_SOCKET");
	return socket ? socket : RGATE_DAEMON_SOCKET;
}

int daemon_ask(const char *socket, const char *request, char **text)
{
	int err;

	*text = malloc(RGATE_DAEMON_ANSWER);
	if (!*text) {
		(void)fail(-ENOMEM, "cannot ask the daemon");
		return EXIT_FAIL;
	}
	err = rgate_daemon_call(socket, request, *text, RGATE_DAEMON_ANSWER);
	if (!err)
		return EXIT_OK;
	if (**text)
		say("%s", *text);
	else if (err == -ENOENT || err == -ECONNREFUSED)
		say("no ringgated answers at %s: is it running? (systemctl status ringgated)",
		    socket_of(socket));
	else if (err == -EACCES)
		say("no permission to talk to ringgated: be root, or of its group");
	else
		say("ringgated does not answer: %s", strerror(-err));
	free(*text);
	*text = NULL;
	return EXIT_FAIL;
}

static int do_status(const struct cluster_args *a)
{
	char *text;
	int ret = daemon_ask(a->socket, a->json ? "status json" : "status", &text);

	if (ret == EXIT_OK)
		fputs(text, stdout);
	if (ret == EXIT_OK && !a->json && isatty(STDOUT_FILENO))
		puts("\nunseen: not here since this daemon began; away: was here as a client, without a daemon\n"
		     "other columns: man ringgate-cluster");
	free(text);
	return ret;
}

struct row {
	char name[NAME_LEN];
	char state[16];
	unsigned long long v[4];	/* frames, bytes, lost, dropped */
};

static unsigned int parse_rows(const char *text, struct row *rows)
{
	unsigned int n = 0;

	while (n < ROWS_MAX && sscanf(text, "%39s %15s %llu %llu %llu %llu", rows[n].name,
				      rows[n].state, &rows[n].v[0], &rows[n].v[1],
				      &rows[n].v[2], &rows[n].v[3]) == 6) {
		n++;
		text = strchr(text, '\n');
		if (!text)
			break;
		text++;
	}
	return n;
}

static const struct row *before(const struct row *rows, unsigned int n, const char *name)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (!strcmp(rows[i].name, name))
			return &rows[i];
	return NULL;
}

static double rate(const struct row *r, const struct row *was, unsigned int i, double s)
{
	return was && r->v[i] >= was->v[i] && s > 0 ? (double)(r->v[i] - was->v[i]) / s : 0;
}

static void top_json(const struct row *rows, unsigned int n, const struct row *was,
		     unsigned int nwas, double s)
{
	struct json j;
	unsigned int i;

	json_init(&j, stdout, false);
	json_array(&j, NULL);
	for (i = 0; i < n; i++) {
		const struct row *w = before(was, nwas, rows[i].name);

		json_object(&j, NULL);
		json_str(&j, "name", rows[i].name);
		json_str(&j, "state", rows[i].state);
		json_double(&j, "frames_per_s", rate(&rows[i], w, 0, s));
		json_double(&j, "bytes_per_s", rate(&rows[i], w, 1, s));
		json_u64(&j, "frames", rows[i].v[0]);
		json_u64(&j, "lost", rows[i].v[2]);
		json_u64(&j, "dropped", rows[i].v[3]);
		json_object_end(&j);
	}
	json_array_end(&j);
	json_end(&j);
}

static void top_text(const struct row *rows, unsigned int n, const struct row *was,
		     unsigned int nwas, double s)
{
	char a[FMT_LEN], b[FMT_LEN];
	struct table t;
	unsigned int i;

	if (table_init(&t, "<NAME <STATE FRAMES/S BYTES/S FRAMES LOST DROPPED"))
		return;
	for (i = 0; i < n; i++) {
		const struct row *w = before(was, nwas, rows[i].name);

		table_cell(&t, "%s", rows[i].name);
		table_cell(&t, "%s", rows[i].state);
		table_cell(&t, "%s", fmt_si(a, rate(&rows[i], w, 0, s)));
		table_cell(&t, "%s", fmt_si(b, rate(&rows[i], w, 1, s)));
		table_cell(&t, "%llu", rows[i].v[0]);
		table_cell(&t, "%llu", rows[i].v[2]);
		table_cell(&t, "%llu", rows[i].v[3]);
	}
	if (isatty(STDOUT_FILENO))
		fputs("\033[H\033[J", stdout);
	table_print(&t, stdout);
	fputc('\n', stdout);
	table_free(&t);
}

static int do_top(const struct cluster_args *a)
{
	static struct row rows[2][ROWS_MAX];
	unsigned int n[2] = { 0 }, now = 0;
	uint64_t t[2] = { 0 }, round;
	char *text;
	int ret;

	util_catch_signals();
	for (round = 0; !util_stop && (!a->count || round <= a->count); round++) {
		ret = daemon_ask(a->socket, "counters", &text);
		if (ret != EXIT_OK)
			return ret;
		t[now] = util_now();
		n[now] = parse_rows(text, rows[now]);
		free(text);
		if (round)
			(a->json ? top_json : top_text)(rows[now], n[now], rows[!now], n[!now],
				(double)(t[now] - t[!now]) / (double)NSEC);
		if (util_stdout_dead())
			break;
		if (round < a->count || !a->count)
			util_sleep(t[now] + a->interval_ns);
		now = !now;
	}
	return EXIT_OK;
}

static int ping_once(const struct cluster_args *a, char *name, unsigned long long *ns)
{
	char request[128], *text;
	int ret;

	snprintf(request, sizeof(request), "ping %s", a->node);
	ret = daemon_ask(a->socket, request, &text);
	if (ret == EXIT_OK && sscanf(text, "%39s %llu", name, ns) != 2) {
		say("ringgated answers what is not understood");
		ret = EXIT_FAIL;
	}
	free(text);
	return ret;
}

static void ping_json(const char *name, unsigned long long ns)
{
	struct json j;

	json_init(&j, stdout, false);
	json_object(&j, NULL);
	json_str(&j, "node", name);
	json_u64(&j, "ns", ns);
	json_object_end(&j);
	json_end(&j);
}

static int do_ping(const struct cluster_args *a)
{
	const uint64_t most = a->count ? a->count : 5;
	unsigned long long ns, least = 0, sum = 0;
	char name[NAME_LEN];
	uint64_t i;
	int ret;

	util_catch_signals();
	for (i = 0; i < most && !util_stop; i++) {
		ret = ping_once(a, name, &ns);
		if (ret != EXIT_OK)
			return ret;
		sum += ns;
		least = !i || ns < least ? ns : least;
		if (a->json)
			ping_json(name, ns);
		else
			printf("%s: read of its memory in %.1f us\n", name, (double)ns / 1000);
		if (util_stdout_dead())
			break;
		if (i + 1 < most)
			util_sleep(util_now() + a->interval_ns);
	}
	if (i && !a->json)
		printf("%llu reads, least %.1f us, mean %.1f us\n", (unsigned long long)i,
		       (double)least / 1000, (double)sum / (double)i / 1000);
	return EXIT_OK;
}

static error_t parse_opt(int key, char *arg, struct argp_state *state)
{
	struct cluster_args *a = state->input;

	switch (key) {
	case 'j':
		a->json = true;
		break;
	case 's':
		a->socket = arg;
		break;
	case 'i':
		a->interval_ns = arg_seconds(state, "--interval", arg);
		break;
	case 'c':
		a->count = arg_number(state, "--count", arg, 1, 1000000000);
		break;
	case ARGP_KEY_ARG:
		if (!a->verb)
			a->verb = arg;
		else if (!a->node && !strcmp(a->verb, "ping"))
			a->node = arg;
		else
			argp_error(state, "'%s' is too much", arg);
		break;
	case ARGP_KEY_END:
		if (!a->verb)
			argp_error(state, "status, top, ping, show, keygen or pubkey?");
		else if (!strcmp(a->verb, "ping") && !a->node)
			argp_error(state, "ping which node?");
		if (a->node && (strlen(a->node) > 100 || strchr(a->node, ' ')))
			argp_error(state, "'%s' is no node", a->node);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp_option options[] = {
	OPT_JSON,
	{ "socket", 's', "PATH", 0, "The daemon's socket", 0 },
	{ "interval", 'i', "SECONDS", 0, "top, ping: between two (default 1)", 0 },
	{ "count", 'c', "N", 0, "top: end after N; ping: so many (default 5)", 0 },
	{ 0 }
};

static const struct argp argp = {
	.options = options,
	.parser = parse_opt,
	.args_doc = "status\ntop\nping NODE\nshow\nkeygen [FILE]\npubkey",
	.doc = "What the node of this machine knows of its cluster, from ringgated.\n\n"
	       "status: peers, rings, and at the gateway what went where.\n"
	       "top: frames and bytes a second, live.\n"
	       "ping: how long a read of another node's memory takes.\n\n"
	       "And without a daemon:\n\n"
	       "show: the nodes of the cluster file, and whether the keys here are right.\n"
	       "keygen: makes a private key.\n"
	       "pubkey: the public key of one.\n"
	       "\vRun `ringgate cluster show --help`, `ringgate cluster keygen --help` for their "
	       "options.",
};

int cmd_cluster(int argc, char **argv)
{
	struct cluster_args a = { .interval_ns = NSEC };
	unsigned int i;

	for (i = 0; argc > 1 && i < ARRAY_SIZE(parts); i++) {
		static char name[sizeof(parts[0].full)];

		if (strcmp(parts[i].name, argv[1]))
			continue;
		memcpy(name, parts[i].full, sizeof(name));
		util_set_name(name);
		argv[1] = name;
		return parts[i].run(argc - 1, argv + 1);
	}
	cmd_parse(&argp, argc, argv, &a);
	if (!strcmp(a.verb, "status"))
		return do_status(&a);
	if (!strcmp(a.verb, "top"))
		return do_top(&a);
	if (!strcmp(a.verb, "ping"))
		return do_ping(&a);
	for (i = 0; i < ARRAY_SIZE(parts); i++)
		if (!strcmp(a.verb, parts[i].name)) {
			say("options come behind '%s'", a.verb);
			return EXIT_USAGE;
		}
	say("'%s' is none of status, top, ping, show, keygen, pubkey", a.verb);
	return EXIT_USAGE;
}
