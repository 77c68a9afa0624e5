// SPDX-License-Identifier: MIT OR GPL-2.0
/* ringgate run: a program as it is, whose TCP and UDP go through the daemon. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ringgate/rgate_cluster.h>
#include <ringgate/rgate_session.h>

#include "agent_run.h"
#include "cmd.h"
#include "exe.h"
#include "forward.h"
#include "helper.h"
#include "home.h"
#include "run_node.h"
#include "util.h"

enum {
	OPT_OWN = 0x100,
	OPT_NO_NETNS,
	OPT_LOOPBACK,
	OPT_STATIC,
	OPT_GROUP,
};

struct run_args {
	const char *socket, *group;
	bool own, no_netns, verbose, has_node, is_static;
	uint32_t loopback, node;
	char **command;
};

static error_t parse_opt(int key, char *arg, struct argp_state *state)
{
	struct run_args *a = state->input;

	switch (key) {
	case 'S':
		a->socket = arg;
		break;
	case 'n':
		a->node = (uint32_t)arg_number(state, "--node", arg, 0, RGATE_NODES_MAX - 1);
		a->has_node = true;
		break;
	case OPT_OWN:
		a->own = true;
		break;
	case OPT_NO_NETNS:
		a->no_netns = true;
		break;
	case OPT_LOOPBACK:
		if (strcmp(arg, "own") && strcmp(arg, "served"))
			argp_error(state, "--loopback: '%s' is neither own nor served", arg);
		a->loopback = strcmp(arg, "own") ? AGENT_LOOPBACK_SERVED : AGENT_LOOPBACK_OWN;
		break;
	case OPT_STATIC:
		a->is_static = true;
		break;
	case OPT_GROUP:
		if (!home_is_group(arg))
			argp_error(state, "--group: '%s' is no name: up to 31 letters, digits and . _ -",
				   arg);
		a->group = arg;
		break;
	case 'v':
		a->verbose = true;
		break;
	case ARGP_KEY_ARG:
		/* The rest is the program's. */
		a->command = &state->argv[state->next - 1];
		state->next = state->argc;
		break;
	case ARGP_KEY_END:
		if (!a->command)
			argp_error(state, "which program? `ringgate run curl URL`");
		if (a->own && a->socket)
			argp_error(state, "--own and --socket: one of both");
		if (a->own && a->has_node)
			argp_error(state, "--own and --node: this machine alone is no node");
		if (a->group && (a->own || a->loopback == AGENT_LOOPBACK_SERVED))
			argp_error(state, "--group and --%s: a group is of programs that have a loopback of their own, at a daemon",
				   a->own ? "own" : "loopback served");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp_option options[] = {
	{ "socket", 'S', "PATH", 0, "The daemon's socket of requests", 0 },
	{ "node", 'n', "N", 0, "Only if they are at that node of the cluster, by number", 0 },
	{ "own", OPT_OWN, NULL, 0, "Sockets of this machine as it is, without the daemon", 0 },
	{ "loopback", OPT_LOOPBACK, "WHOSE", 0, "127.0.0.1 and ::1: 'own', of this program and "
	  "what it starts, and of this user's others where the daemon has agents (default), or "
	  "'served', of who has the sockets", 0 },
	{ "group", OPT_GROUP, "NAME", 0, "Share 127.0.0.1 and ::1 with those programs of this "
	  "user that have that name, too, instead of all that have none", 0 },
	{ "no-netns", OPT_NO_NETNS, NULL, 0, "In this network namespace: other protocols escape",
	  0 },
	{ "static", OPT_STATIC, NULL, 0, "Answer the program's calls instead of loading a library into it: as "
	  "with those that are linked statically, which are found out by themselves", 0 },
	{ "verbose", 'v', NULL, 0, "Say at the end what went", 0 },
	{ 0 }
};

static const struct argp argp = {
	.options = options,
	.parser = parse_opt,
	.args_doc = "[--] PROGRAM [ARGUMENT...]",
	.doc = "Run a program as it is, with all that it starts: its sockets of TCP and UDP are "
	       "those of ringgated's machine, or of the gateway, and it has no other network."
	       "\vExit status: that of the program, 128 and the signal's number if one ended it; 2 "
	       "wrong arguments; 126, 127 it cannot be run; 1 there are no sockets for it, or the "
	       "program's was 0 and not all that it sent went.",
};

static void say_all(struct home *home)
{
	struct agent_info i;

	if (!home_is_open(home))
		return;
	home_info(home, &i);
	say("%llu sockets, %llu connected, %llu accepted, %llu local, %llu bytes sent, %llu received, %llu broke, %llu refused, %llu datagrams, %llu lost",
	    (unsigned long long)i.sockets, (unsigned long long)i.connected,
	    (unsigned long long)i.accepted, (unsigned long long)i.local,
	    (unsigned long long)i.sent, (unsigned long long)i.received,
	    (unsigned long long)i.resets, (unsigned long long)i.refused,
	    (unsigned long long)i.datagrams, (unsigned long long)i.lost);
}

/* -errno: it was told */
static int find_preload(char path[PATH_MAX], const char **preload)
{
	static const struct rgate_helper helper = {
		.name = "libringgate-preload.so", .env = "RGATE_PRELOAD", .beside = true,
	};
	int err;

	*preload = rgate_helper_path(&helper, path);
	if (access(*preload, R_OK)) {
		err = -errno;
		say(RGATE_HELPER_MISSING, *preload, strerror(-err), helper.env);
		return err;
	}
	if (!strpbrk(*preload, ": "))
		return 0;
	say("%s: no ':' and no space may be in that path: RGATE_PRELOAD names a copy elsewhere",
	    *preload);
	return -EINVAL;
}

/* The daemon's agent if it offers one to this user; else one of this process. An exit status */
static int open_home(struct home *home, const struct run_args *a, struct agent_run *run)
{
	const char *path = a->socket ? a->socket : RGATE_SESSION_SOCKET;
	const uint32_t where = a->own ? RGATE_SESSION_PROCESS :
			       a->socket || a->has_node ? RGATE_SESSION_DAEMON :
			       RGATE_SESSION_EITHER;
	const bool may_share = !a->own && a->loopback == AGENT_LOOPBACK_OWN;
	int err = may_share ? home_join(home, path, a->group ? a->group : "") : -ENOENT;

	if (err == -EPERM)
		say("the agent of this user has groups of the system that this process has not: `--loopback served` does without");
	if (err == -ENOENT && a->group) {
		say("--group: no daemon has an agent for this user: `requests agent shared` in ringgated.conf");
		return EXIT_FAIL;
	}
	if (err == -ENOENT)
		err = home_open(home, &RGATE_OPTS(agent_opts, .path = a->socket, .where = where,
						  .loopback = a->loopback,
						  .enough = agent_run_enough, .enough_ctx = run));
	return err ? fail_in("rgate_sockets_open", err, "sockets for %s", a->command[0]) : EXIT_OK;
}

int cmd_run_program(int argc, char **argv)
{
	struct run_args a = { .own = false };
	char path[PATH_MAX];
	struct agent_run run;
	struct home home;
	int err, ret;

	/* What follows the program's name is the program's, with -- or without. */
	if (argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &a))
		exit(EXIT_USAGE);
	run = (struct agent_run){ .command = a.command, .netns = !a.no_netns };
	if (!a.is_static && !exe_is_static(a.command[0]) && find_preload(path, &run.preload))
		return EXIT_FAIL;
	/* Before there is a directory that one of them would leave behind */
	err = forward_begin();
	if (err)
		return fail(err, "signals for %s", a.command[0]);
	agent_run_prepare(&run);
	ret = a.has_node ? run_node_check(a.socket, a.node, a.command[0]) : EXIT_OK;
	if (!ret)
		ret = open_home(&home, &a, &run);
	if (ret) {
		/* It may be for a signal, which has its way then. */
		forward_undo();
		return ret;
	}
	ret = agent_run(&home, &run);
	if (a.verbose)
		say_all(&home);
	home_close(&home);
	return ret;
}
