// SPDX-License-Identifier: MIT OR GPL-2.0
/* ringgate spawn: a process on another node, as if it were here. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "json.h"
#include "spawn_node.h"
#include "spawn_run.h"
#include "util.h"

#define ENV_MAX		256

struct spawn_args {
	struct spawn_opts node;
	struct rgate_spawn_request req;
	const char *env[ENV_MAX + 1];
	const char *unset[ENV_MAX + 1];
	unsigned int nenv, nunset;
	const char *input;
	bool json;
	bool detach;
	const char *attach;
};

enum { OPT_UNSET = 256, OPT_CLEAR, OPT_CWD, OPT_TIMEOUT, OPT_MEMORY, OPT_CPU, OPT_PROCESSES,
	OPT_FILES, OPT_NICE, OPT_KEEP, OPT_LEAVE, OPT_DETACH, OPT_ATTACH, OPT_TAIL };

static const struct argp_option options[] = {
	OPT_SOCKET,
	OPT_CLUSTER,
	OPT_AS,
	OPT_NODE,
	OPT_ALL,
	{ "env", 'e', "NAME=VALUE", 0, "Set in its environment", 0 },
	{ "unset", OPT_UNSET, "NAME", 0, "Take out of it", 0 },
	{ "clear-env", OPT_CLEAR, NULL, 0, "Nothing in it but what --env says", 0 },
	{ "cwd", OPT_CWD, "DIR", 0, "Its directory (default: its user's home)", 0 },
	{ "timeout", OPT_TIMEOUT, "SECONDS", 0, "End it after that time", 0 },
	{ "memory", OPT_MEMORY, "BYTES", 0, "Limit of memory", 0 },
	{ "cpu", OPT_CPU, "SECONDS", 0, "Limit of CPU time", 0 },
	{ "processes", OPT_PROCESSES, "N", 0, "Limit of processes", 0 },
	{ "files", OPT_FILES, "N", 0, "Limit of open files", 0 },
	{ "nice", OPT_NICE, "N", 0, "Niceness", 0 },
	{ "stdin", 'i', "FILE", 0, "Its standard input (default: this one's)", 0 },
	{ "tail", OPT_TAIL, "BYTES", 0, "Only the last bytes of its output, at the end", 0 },
	{ "keep", OPT_KEEP, NULL, 0, "It goes on if this command is killed", 0 },
	{ "leave", OPT_LEAVE, NULL, 0, "What it leaves behind is not killed", 0 },
	{ "detach", OPT_DETACH, NULL, 0, "Print its id, and leave it alone", 0 },
	{ "attach", OPT_ATTACH, "ID", 0, "To one that was left alone", 0 },
	OPT_JSON,
	{ 0 }
};

static void add(struct argp_state *state, const char **list, unsigned int *n, const char *what)
{
	if (*n == ENV_MAX)
		argp_error(state, "more than %d names", ENV_MAX);
	list[(*n)++] = what;
}

static error_t parse_limit(struct spawn_args *a, int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case OPT_TIMEOUT:
		a->req.wall_ms = arg_seconds(state, "--timeout", arg) / 1000000;
		if (!a->req.wall_ms)
			argp_error(state, "--timeout is too short");
		break;
	case OPT_MEMORY:
		a->req.memory = arg_size(state, "--memory", arg, 1, UINT64_MAX);
		break;
	case OPT_CPU:
		a->req.cpu_s = (uint32_t)arg_number(state, "--cpu", arg, 1, UINT32_MAX);
		break;
	case OPT_PROCESSES:
		a->req.processes = (uint32_t)arg_number(state, "--processes", arg, 1, UINT32_MAX);
		break;
	case OPT_FILES:
		a->req.files = (uint32_t)arg_number(state, "--files", arg, 1, UINT32_MAX);
		break;
	case OPT_NICE:
		a->req.nice = arg_signed(state, "--nice", arg, -20, 19);
		break;
	case OPT_TAIL:
		a->req.tail_bytes = (uint32_t)arg_size(state, "--tail", arg, 1,
						       RGATE_SPAWN_TAIL_MAX);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static error_t parse_opt(int key, char *arg, struct argp_state *state)
{
	struct spawn_args *a = state->input;

	switch (key) {
	case 'e':
		if (*arg == '=' || !strchr(arg, '='))
			argp_error(state, "--env: NAME=VALUE is expected, not '%s'", arg);
		add(state, a->env, &a->nenv, arg);
		break;
	case OPT_UNSET:
		add(state, a->unset, &a->nunset, arg);
		break;
	case OPT_CLEAR:
		a->req.env_mode = RGATE_SPAWN_ENV_REPLACE;
		break;
	case OPT_CWD:
		if (*arg != '/')
			argp_error(state, "--cwd must begin with /");
		a->req.cwd = arg;
		break;
	case 'i':
		a->input = arg;
		break;
	case OPT_KEEP:
		a->req.flags |= RGATE_SPAWN_KEEP;
		break;
	case OPT_LEAVE:
		a->req.flags |= RGATE_SPAWN_LEAVE;
		break;
	case OPT_DETACH:
		a->detach = true;
		a->req.flags |= RGATE_SPAWN_KEEP;
		break;
	case OPT_ATTACH:
		a->attach = arg;
		break;
	case 'j':
		a->json = true;
		break;
	case ARGP_KEY_ARG:
		/* The rest is the command's. */
		a->req.argv = (const char *const *)&state->argv[state->next - 1];
		state->next = state->argc;
		break;
	case ARGP_KEY_END:
		if (!a->req.argv && !a->attach)
			argp_error(state, "which command?");
		if (a->attach && (a->req.argv || a->node.all || a->detach))
			argp_error(state, "--attach is for one process that runs already");
		if (a->node.all && (a->detach || a->input))
			argp_error(state, "%s is for one node", a->detach ? "--detach" : "--stdin");
		if (a->input && (a->detach || a->attach))
			argp_error(state, "--stdin is for a process that is not left alone");
		break;
	default:
		if (!spawn_parse_opt(&a->node, key, arg))
			return 0;
		return parse_limit(a, key, arg, state);
	}
	return 0;
}

static const struct argp argp = {
	.options = options,
	.parser = parse_opt,
	.args_doc = "[--] COMMAND [ARGUMENT...]\n--attach ID",
	.doc = "Run a command on another node of the cluster, if its policy allows. Input and "
	       "output are those of this command; so are its exit code and the signals INT, "
	       "TERM and HUP.\v"
	       "Exit status: that of the command, 128 and the signal's number if one ended it, "
	       "124 if its time was over; 2 wrong arguments; 255 it was not run, or is lost.",
};

static void set_modes(struct spawn_args *a)
{
	const uint32_t out = a->req.tail_bytes ? RGATE_SPAWN_OUT_TAIL : RGATE_SPAWN_OUT_STREAM;

	a->req.sz = sizeof(a->req);
	a->req.stdout_mode = a->req.stderr_mode = out;
	a->req.stdin_mode = a->node.all || a->detach ? RGATE_SPAWN_IN_NONE :
						       RGATE_SPAWN_IN_STREAM;
	a->req.env = a->nenv ? a->env : NULL;
	a->req.unset = a->nunset ? a->unset : NULL;
	a->req.ring_bytes = a->node.all ? 1 << 18 : 1 << 20;
}

static int print_id(struct spawn_node *sn, const struct spawn_args *a)
{
	struct rgate_spawn_result r = { .sz = sizeof(r) };
	char id[SPAWN_ID];
	void *job;
	int err;

	err = sn->way->start(&sn->target[0], &a->req, &job);
	if (err) {
		(void)fail_in("rgate_spawn_start", err, "%s", a->req.argv[0]);
		return SPAWN_EXIT_LOST;
	}
	err = spawn_wait_running(sn, job, &r);
	if (err || r.state == RGATE_SPAWN_ERROR) {
		spawn_say_error(sn->target[0].to.name, a->req.argv[0], &r);
		sn->way->close(job);
		return SPAWN_EXIT_LOST;
	}
	err = sn->way->detach(job, SPAWN_TIMEOUT);
	spawn_id_text(r.id, id);
	if (err) {
		(void)fail(err, "its node does not let go of process %s (whether it goes on: "
			   "`ringgate ps`)", id);
		return SPAWN_EXIT_LOST;
	}
	printf("%s\n", id);
	return EXIT_OK;
}

int cmd_spawn(int argc, char **argv)
{
	struct spawn_args a = { .req = { .sz = 0 } };
	struct spawn_run run = { 0 };
	struct spawn_node sn;
	uint64_t id = 0;
	int ret;

	if (argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &a))
		return EXIT_USAGE;
	if (a.attach && spawn_id_parse(a.attach, &id)) {
		say("'%s' is not an id such as 1a2b3c4d-17; see `ringgate ps`", a.attach);
		return EXIT_USAGE;
	}
	set_modes(&a);
	a.node.request = a.attach ? NULL : &a.req;
	ret = spawn_node_open(&sn, &a.node);
	if (ret)
		return ret == EXIT_USAGE ? ret : SPAWN_EXIT_LOST;
	if (a.detach) {
		ret = print_id(&sn, &a);
	} else {
		run.node = &sn;
		run.request = &a.req;
		run.attach = id;
		run.input = a.input;
		run.json = a.json;
		run.all = a.node.all;
		ret = spawn_run(&run);
	}
	spawn_node_close(&sn);
	return ret;
}
