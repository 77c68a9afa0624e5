// SPDX-License-Identifier: MIT OR GPL-2.0
/* ringgate barrier: ends when so many are there. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ringgate/rgate_barrier.h>
#include <ringgate/rgate_cluster.h>

#include "cmd.h"
#include "json.h"
#include "sync_args.h"
#include "util.h"

struct barrier_args {
	struct sync_args sync;
	const char *name;
	uint32_t members;
	bool json;
};

static const struct argp_option options[] = {
	OPT_SYNC_SOCKET, OPT_SYNC_NODE, OPT_SYNC_USER, OPT_SYNC_ALL, OPT_SYNC_WAIT,
	OPT_JSON, { 0 }
};

static error_t parse_opt(int key, char *arg, struct argp_state *state)
{
	struct barrier_args *a = state->input;

	switch (key) {
	case 'j':
		a->json = true;
		return 0;
	case ARGP_KEY_ARG:
		if (!a->name)
			a->name = arg;
		else if (!a->members)
			a->members = (uint32_t)arg_number(state, "N", arg, 1,
							  RGATE_BARRIER_MEMBERS);
		else
			argp_error(state, "'%s' is not expected", arg);
		return 0;
	case ARGP_KEY_END:
		if (!a->members)
			argp_error(state, "which barrier, and of how many?");
		return 0;
	default:
		return sync_parse_opt(&a->sync, key, arg, state);
	}
}

static const struct argp argp = {
	.options = options,
	.parser = parse_opt,
	.args_doc = "NAME N",
	.doc = "Wait until N of these are at the barrier of that name, at whichever nodes."
	       "\vExit status: 0 all are there; 1 one of them died, or left; 124 not in time; 2 wrong "
	       "arguments; 255 the barrier cannot be reached, or its node is lost.",
};

static void member_text(uint8_t node, char *to, size_t len)
{
	if (node == RGATE_BARRIER_HOME)
		snprintf(to, len, "its home");
	else
		snprintf(to, len, "node %u", node);
}

static void say_broken(const char *name, const struct rgate_barrier_info *b)
{
	char who[256] = "", text[16];
	unsigned int i, came;
	size_t at = 0;

	came = (unsigned int)__builtin_popcountll(b->arrived & ~b->dead);
	for (i = 0; i < b->members && i < RGATE_BARRIER_MEMBERS && at < sizeof(who); i++) {
		if (!(b->dead & 1ULL << i))
			continue;
		member_text(b->node[i], text, sizeof(text));
		at += (size_t)snprintf(who + at, sizeof(who) - at, "%smember %u at %s",
				       at ? ", " : "", i, text);
	}
	say("%s: broken by %s; %u of %u had arrived: begin all of them anew", name,
	    at ? who : "one that has ended", came, b->members);
}

static void print(const struct barrier_args *a, uint64_t generation,
		  const struct rgate_barrier_info *broken)
{
	struct json j;
	unsigned int i;

	json_init(&j, stdout, true);
	json_object(&j, NULL);
	json_str(&j, "name", a->name);
	json_bool(&j, "broken", broken);
	json_u64(&j, "generation", broken ? broken->generation : generation);
	json_u64(&j, "members", a->members);
	json_array(&j, "missing");
	for (i = 0; broken && i < broken->members && i < RGATE_BARRIER_MEMBERS; i++) {
		if (broken->arrived & ~broken->dead & 1ULL << i)
			continue;
		json_object(&j, NULL);
		json_u64(&j, "member", i);
		json_bool(&j, "dead", broken->dead & 1ULL << i);
		if (broken->node[i] < RGATE_NODES_MAX)
			json_u64(&j, "node", broken->node[i]);
		json_object_end(&j);
	}
	json_array_end(&j);
	json_object_end(&j);
	json_end(&j);
}

static int failed(const struct barrier_args *a, int err, const struct rgate_barrier_info *broken)
{
	if (err == -EPIPE && broken->members) {
		if (a->json)
			print(a, 0, broken);
		say_broken(a->name, broken);
		return EXIT_FAIL;
	}
	if (err == -ETIMEDOUT) {
		say("%s: not all %u came within %g s: begin more of them, or wait longer",
		    a->name, a->members, (double)a->sync.timeout_ns / 1e9);
		return SYNC_EXIT_TIME;
	}
	if (err != -EINTR)
		(void)fail_in("rgate_barrier_wait", err, "%s", a->name);
	return SYNC_EXIT_LOST;
}

static int meet(struct rgate_barrier *b, const struct barrier_args *a)
{
	struct rgate_barrier_info broken = { .members = 0 };
	uint64_t generation;
	int err;

	err = rgate_barrier_arrive(b);
	if (!err || err == -EPIPE)
		err = rgate_barrier_wait(b, sync_timeout_ms(&a->sync), &generation, &broken);
	if (err)
		return failed(a, err, &broken);
	if (a->json)
		print(a, generation, NULL);
	return EXIT_OK;
}

int cmd_barrier(int argc, char **argv)
{
	struct barrier_args a = { .members = 0 };
	struct rgate_barrier *b;
	int err, ret;

	cmd_parse(&argp, argc, argv, &a);
	util_catch_signals();
	err = rgate_barrier_open(&b, a.name, a.members, &a.sync.opts);
	if (err == -EPIPE) {
		say("%s: broken: begin all of its members anew", a.name);
		return EXIT_FAIL;
	}
	if (err == -EINVAL) {
		say("'%s' cannot be a barrier's name, or has another number of members", a.name);
		return EXIT_USAGE;
	}
	if (err) {
		(void)fail_in("rgate_barrier_open", err, "%s", a.name);
		return SYNC_EXIT_LOST;
	}
	ret = meet(b, &a);
	rgate_barrier_close(b);
	return ret;
}
