// SPDX-License-Identifier: MIT OR GPL-2.0
/* ringgate lock: a command that runs while a lock is held, and no longer. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <ringgate/rgate_lock.h>

#include "cmd.h"
#include "held_run.h"
#include "json.h"
#include "sync_args.h"
#include "table.h"
#include "util.h"

struct lock_args {
	struct sync_args sync;
	const char *name;
	char **command;
	uint64_t kill_ns;
	bool shared, list, json;
};

enum { OPT_KILL = 256 };

static const struct argp_option options[] = {
	OPT_SYNC_SOCKET, OPT_SYNC_NODE, OPT_SYNC_USER, OPT_SYNC_ALL, OPT_SYNC_WAIT,
	{ "shared", 's', NULL, 0, "Together with others that want it shared", 0 },
	{ "kill-after", OPT_KILL, "SECONDS", 0, "When it is lost: from SIGTERM to SIGKILL "
	  "(default: 0.2)", 0 },
	{ "list", 'l', NULL, 0, "List the locks there, and who holds them", 0 },
	OPT_JSON,
	{ 0 }
};

static void end_of_args(const struct lock_args *a, struct argp_state *state)
{
	if (a->list) {
		if (a->name || a->shared || a->sync.timed)
			argp_error(state, "--list has no name and waits for nothing");
		return;
	}
	if (!a->name)
		argp_error(state, "which lock?");
	if (!a->command)
		argp_error(state, "which command?");
	if (a->json)
		argp_error(state, "--json is for --list");
}

static error_t parse_opt(int key, char *arg, struct argp_state *state)
{
	struct lock_args *a = state->input;

	switch (key) {
	case 's':
		a->shared = true;
		break;
	case 'l':
		a->list = true;
		break;
	case 'j':
		a->json = true;
		break;
	case OPT_KILL:
		a->kill_ns = arg_seconds(state, "--kill-after", arg);
		break;
	case ARGP_KEY_ARG:
		if (!a->name) {
			a->name = arg;
			break;
		}
		/* The rest is the command's. */
		a->command = &state->argv[state->next - 1];
		state->next = state->argc;
		break;
	case ARGP_KEY_END:
		end_of_args(a, state);
		break;
	default:
		return sync_parse_opt(&a->sync, key, arg, state);
	}
	return 0;
}

static const struct argp argp = {
	.options = options,
	.parser = parse_opt,
	.args_doc = "NAME -- COMMAND [ARGUMENT...]\n--list",
	.doc = "Run a command while this holds the lock of that name, as flock(1) does with files; "
	       "for programs of all nodes of the cluster. If the lock is lost the command is ended."
	       "\vExit status: that of the command, 128 and the signal's number if one ended it; "
	       "124 the lock was not free in time; 2 wrong arguments; 126, 127 the command cannot "
	       "be run; 255 the lock cannot be had, or was lost.",
};

/* ---- Holding it ---- */

static int wait_for_it(struct rgate_lock *lock, const struct lock_args *a)
{
	const uint64_t until = util_now() + a->sync.timeout_ns;
	int err, ms = sync_timeout_ms(&a->sync);

	for (;;) {
		err = rgate_lock_acquire(lock, a->shared ? RGATE_LOCK_SHARED : 0, ms, NULL);
		if ((err != -EINTR && err != -ECONNRESET) || util_stop)
			return err;
		/* The home began anew: who waited has to ask it once more. */
		if (err == -ECONNRESET)
			util_sleep(util_now() + NSEC / 10);
		if (a->sync.timed)
			ms = util_now() < until ? (int)((until - util_now()) / 1000000) : 0;
	}
}

static bool is_valid(const void *lock)
{
	return rgate_lock_valid(lock);
}

static int run_held(struct rgate_lock *lock, const struct lock_args *a)
{
	const struct held_run run = { .command = a->command, .valid = is_valid, .ctx = lock,
				      .kill_ns = a->kill_ns };
	int err, ret;

	err = wait_for_it(lock, a);
	if (err == -ETIMEDOUT) {
		say("%s: not free within %g s: `ringgate lock --list` shows who holds it",
		    a->name, (double)a->sync.timeout_ns / 1e9);
		return SYNC_EXIT_TIME;
	}
	if (err == -EINTR)
		return SYNC_EXIT_LOST;
	if (err) {
		(void)fail_in("rgate_lock_acquire", err, "%s", a->name);
		return SYNC_EXIT_LOST;
	}
	ret = held_run(&run);
	if (ret != HELD_LOST)
		return ret;
	say("%s: the lock is lost, and '%s' was ended: `ringgate cluster status` tells of the node",
	    a->name, a->command[0]);
	return SYNC_EXIT_LOST;
}

static int hold(const struct lock_args *a)
{
	struct rgate_lock *lock;
	int err, ret;

	util_catch_signals();
	err = rgate_lock_open(&lock, a->name, &a->sync.opts);
	if (err == -EINVAL) {
		say("'%s' cannot be a lock's name: letters, digits and . _ - /, %u at most",
		    a->name, RGATE_SYNC_NAME_MAX);
		return EXIT_USAGE;
	}
	if (err) {
		(void)fail_in("rgate_lock_open", err, "%s", a->name);
		return SYNC_EXIT_LOST;
	}
	ret = run_held(lock, a);
	rgate_lock_close(lock);
	return ret;
}

/* ---- What there is ---- */

struct listing {
	struct table table;
	struct json json;
	bool as_json;
};

static void as_json(struct json *j, const struct rgate_lock_info *info)
{
	json_object(j, NULL);
	json_str(j, "name", info->name);
	json_u64(j, "owner", info->owner);
	json_bool(j, "others", info->flags & RGATE_SYNC_OTHERS);
	json_u64(j, "token", info->token);
	json_u64(j, "holders", info->holders);
	json_u64(j, "waiters", info->waiters);
	json_bool(j, "shared", info->shared);
	if (info->holders) {
		json_u64(j, "holder", info->holder_uid);
		if (info->holder_node == RGATE_SYNC_NO_NODE)
			json_str(j, "from", "here");
		else
			json_u64(j, "from", info->holder_node);
	}
	json_object_end(j);
}

static int on_lock(void *ctx, const struct rgate_lock_info *info)
{
	struct listing *l = ctx;

	if (l->as_json) {
		as_json(&l->json, info);
		return 0;
	}
	(void)table_cell(&l->table, "%s", info->name);
	(void)table_cell(&l->table, "%u", info->owner);
	(void)table_cell(&l->table, "%s", !info->holders ? "free" : info->shared ? "shared" :
			 "held");
	if (info->holders)
		(void)table_cell(&l->table, "%u", info->holder_uid);
	else
		(void)table_cell(&l->table, "-");
	if (info->holders && info->holder_node != RGATE_SYNC_NO_NODE)
		(void)table_cell(&l->table, "%u", info->holder_node);
	else
		(void)table_cell(&l->table, info->holders ? "here" : "-");
	(void)table_cell(&l->table, "%u", info->waiters);
	return table_cell(&l->table, "%llu", (unsigned long long)info->token);
}

static int list(const struct lock_args *a)
{
	struct listing l = { .as_json = a->json };
	int err;

	err = table_init(&l.table, "<NAME >OWNER <STATE >HOLDER <NODE >WAITERS >TOKEN");
	if (err)
		return fail(err, "the table");
	json_init(&l.json, stdout, true);
	if (a->json)
		json_array(&l.json, NULL);
	err = rgate_lock_list(&a->sync.opts, on_lock, &l);
	if (a->json) {
		json_array_end(&l.json);
		json_end(&l.json);
	} else if (!err) {
		table_print(&l.table, stdout);
	}
	table_free(&l.table);
	return err ? fail_in("rgate_lock_list", err, "the locks") : EXIT_OK;
}

int cmd_lock(int argc, char **argv)
{
	struct lock_args a = { .kill_ns = NSEC / 5 };

	cmd_parse(&argp, argc, argv, &a);
	return a.list ? list(&a) : hold(&a);
}
