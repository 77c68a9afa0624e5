// SPDX-License-Identifier: MIT OR GPL-2.0
/* ringgate ps, ringgate kill: processes that other nodes run. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cmd.h"
#include "json.h"
#include "number.h"
#include "spawn_node.h"
#include "table.h"
#include "util.h"

struct ps_args {
	struct spawn_opts node;
	bool json;
};

struct ps {
	struct spawn_target *target;
	struct spawn_node *sn;
	struct table table;
	struct json json;
	bool as_json;
	int err;
};

static error_t parse_ps(int key, char *arg, struct argp_state *state)
{
	struct ps_args *a = state->input;

	if (key == 'j') {
		a->json = true;
		return 0;
	}
	if (key == ARGP_KEY_ARG)
		argp_error(state, "'%s' is not expected", arg);
	return spawn_parse_opt(&a->node, key, arg);
}

static const struct argp_option ps_options[] = {
	OPT_SOCKET, OPT_CLUSTER, OPT_AS, OPT_NODE, OPT_ALL, OPT_JSON, { 0 }
};

static const struct argp ps_argp = {
	.options = ps_options,
	.parser = parse_ps,
	.doc = "List processes that another node runs for this user; of root's, for all users of "
	       "this node, and where the policy there calls this node admin, for all nodes.",
};

static const char *state_name(uint32_t state)
{
	static const char *const names[] = { "?", "waiting", "running", "ended", "failed" };

	return state < ARRAY_SIZE(names) ? names[state] : "?";
}

static void as_json(struct ps *ps, const struct rgate_spawn_info *info, const char *from)
{
	char id[SPAWN_ID];

	json_object(&ps->json, NULL);
	json_str(&ps->json, "node", ps->target->to.name);
	json_str(&ps->json, "id", spawn_id_text(info->id, id));
	json_str(&ps->json, "state", state_name(info->state));
	json_str(&ps->json, "from", from);
	if (info->owned)
		json_u64(&ps->json, "owner", info->owner);
	else
		json_str(&ps->json, "owner", NULL);
	json_str(&ps->json, "user", info->user);
	json_i64(&ps->json, "pid", info->pid);
	json_bool(&ps->json, "attached", info->attached);
	json_u64(&ps->json, "started_ns", info->started_ns);
	json_str(&ps->json, "command", info->command);
	json_object_end(&ps->json);
}

static int on_process(void *ctx, const struct rgate_spawn_info *info)
{
	struct ps *ps = ctx;
	char id[SPAWN_ID], from[32], owner[16] = "-", when[32] = "-";
	time_t t = (time_t)(info->started_ns / NSEC);
	struct tm tm;

	spawn_node_name(ps->sn, info->node, from);
	if (ps->as_json) {
		as_json(ps, info, from);
		return 0;
	}
	if (t && localtime_r(&t, &tm))
		strftime(when, sizeof(when), "%F %T", &tm);
	(void)table_cell(&ps->table, "%s", ps->target->to.name);
	(void)table_cell(&ps->table, "%s", spawn_id_text(info->id, id));
	(void)table_cell(&ps->table, "%s", state_name(info->state));
	(void)table_cell(&ps->table, "%s", from);
	if (info->owned)
		snprintf(owner, sizeof(owner), "%u", info->owner);
	(void)table_cell(&ps->table, "%s", owner);
	(void)table_cell(&ps->table, "%s", info->user);
	(void)table_cell(&ps->table, "%d", info->pid);
	(void)table_cell(&ps->table, "%s", when);
	return table_cell(&ps->table, "%s", info->command);
}

static int list_all(struct ps *ps)
{
	int ret = EXIT_OK, err;
	unsigned int i;

	for (i = 0; i < ps->sn->n; i++) {
		ps->target = &ps->sn->target[i];
		if (!spawn_is_there(ps->target)) {
			say("%s: cannot be reached", ps->target->to.name);
			ret = EXIT_FAIL;
			continue;
		}
		err = ps->sn->way->list(ps->target, on_process, ps, SPAWN_TIMEOUT);
		if (err)
			ret = fail_in("rgate_spawn_start", err, "node %s", ps->target->to.name);
	}
	return ret;
}

int cmd_ps(int argc, char **argv)
{
	struct ps_args a = { .json = false };
	struct spawn_node sn;
	struct ps ps = { .sn = &sn };
	int ret;

	cmd_parse(&ps_argp, argc, argv, &a);
	ps.as_json = a.json;
	ret = spawn_node_open(&sn, &a.node);
	if (ret)
		return ret;
	if (table_init(&ps.table, "<NODE <ID <STATE <FROM <OWNER <USER PID <STARTED <COMMAND")) {
		ret = fail(-ENOMEM, "the table");
		goto close;
	}
	json_init(&ps.json, stdout, true);
	if (a.json)
		json_array(&ps.json, NULL);
	ret = list_all(&ps);
	if (a.json) {
		json_array_end(&ps.json);
		json_end(&ps.json);
	} else {
		table_print(&ps.table, stdout);
	}
	table_free(&ps.table);
close:
	spawn_node_close(&sn);
	return ret;
}

#define IDS_MAX	64

struct kill_args {
	struct spawn_opts node;
	int signal;
	uint32_t scope;
	uint64_t ids[IDS_MAX];
	unsigned int n;
};

enum { OPT_LEADER = 256, OPT_GROUP };

static int parse_signal(const char *text)
{
	static const struct {
		const char *name;
		int number;
	} names[] = {
		{ "HUP", SIGHUP }, { "INT", SIGINT }, { "QUIT", SIGQUIT }, { "KILL", SIGKILL },
		{ "TERM", SIGTERM }, { "USR1", SIGUSR1 }, { "USR2", SIGUSR2 },
		{ "STOP", SIGSTOP }, { "CONT", SIGCONT }, { "TSTP", SIGTSTP },
		{ "ALRM", SIGALRM }, { "PIPE", SIGPIPE }, { "ABRT", SIGABRT },
		{ "WINCH", SIGWINCH },
	};
	uint64_t n;
	size_t i;

	if (!number_parse(text, false, 1, (uint64_t)SIGRTMAX, &n))
		return (int)n;
	if (!strncasecmp(text, "SIG", 3))
		text += 3;
	for (i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcasecmp(names[i].name, text))
			return names[i].number;
	return 0;
}

static error_t parse_kill(int key, char *arg, struct argp_state *state)
{
	struct kill_args *a = state->input;

	switch (key) {
	case 's':
		a->signal = parse_signal(arg);
		if (!a->signal)
			argp_error(state, "there is no signal '%s'", arg);
		break;
	case OPT_LEADER:
		a->scope = RGATE_SPAWN_TO_LEADER;
		break;
	case OPT_GROUP:
		a->scope = RGATE_SPAWN_TO_GROUP;
		break;
	case ARGP_KEY_ARG:
		if (a->n == IDS_MAX)
			argp_error(state, "at most %d at once", IDS_MAX);
		if (spawn_id_parse(arg, &a->ids[a->n++]))
			argp_error(state, "'%s' is not an id such as 1a2b3c4d-17", arg);
		break;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "which process? `ringgate ps` lists them");
		break;
	default:
		return spawn_parse_opt(&a->node, key, arg);
	}
	return 0;
}

static const struct argp_option kill_options[] = {
	OPT_SOCKET,
	OPT_CLUSTER,
	OPT_AS,
	OPT_NODE,
	OPT_ALL,
	{ "signal", 's', "SIGNAL", 0, "Name or number (default TERM)", 0 },
	{ "group", OPT_GROUP, NULL, 0, "To its process group, not to all that came of it", 0 },
	{ "leader", OPT_LEADER, NULL, 0, "To the process itself only", 0 },
	{ 0 }
};

static const struct argp kill_argp = {
	.options = kill_options,
	.parser = parse_kill,
	.args_doc = "ID...",
	.doc = "Send a signal to processes that another node runs.",
};

/* With several nodes: to whichever has it */
static int kill_one(struct spawn_node *sn, const struct kill_args *a, uint64_t id)
{
	char text[SPAWN_ID];
	unsigned int i;
	int err = -ENOENT;

	for (i = 0; i < sn->n && err == -ENOENT; i++)
		if (spawn_is_there(&sn->target[i]))
			err = sn->way->kill(&sn->target[i], id, a->signal,
					    (enum rgate_spawn_scope)a->scope, SPAWN_TIMEOUT);
	if (!err)
		return EXIT_OK;
	spawn_id_text(id, text);
	if (err == -ENOENT)
		say("%s: there is no such process of this %s", text, sn->ask ? "user" : "node");
	else if (err == -ESRCH)
		say("%s: it has ended", text);
	else
		fail_in("rgate_spawn_start", err, "%s", text);
	return EXIT_FAIL;
}

int cmd_kill(int argc, char **argv)
{
	struct kill_args a = { .signal = SIGTERM, .scope = RGATE_SPAWN_TO_TREE };
	struct spawn_node sn;
	unsigned int i;
	int ret;

	cmd_parse(&kill_argp, argc, argv, &a);
	ret = spawn_node_open(&sn, &a.node);
	if (ret)
		return ret;
	for (i = 0; i < a.n; i++)
		if (kill_one(&sn, &a, a.ids[i]))
			ret = EXIT_FAIL;
	spawn_node_close(&sn);
	return ret;
}
