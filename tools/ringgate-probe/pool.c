// SPDX-License-Identifier: MIT OR GPL-2.0
/* ringgate pool: many buffers from one memory region: the need, and the proof. */
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "pool.h"
#include "util.h"

static const struct {
	const char *name;
	char full[24];		/* as messages and help call it */
	int (*run)(int argc, char **argv);
} parts[] = {
	{ "plan", "ringgate pool plan", pool_plan },
	{ "verify", "ringgate pool verify", pool_verify },
};

struct pool_args {
	const char *part;
	int index;
};

static error_t parse_opt(int key, char *arg, struct argp_state *state)
{
	struct pool_args *a = state->input;

	switch (key) {
	case ARGP_KEY_ARG:
		/* The rest belongs to the part. */
		a->part = arg;
		a->index = state->next - 1;
		state->next = state->argc;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "what of the pool: plan or verify?");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.parser = parse_opt,
	.args_doc = "plan|verify [ARGUMENT...]",
	.doc = "Buffers carved from one memory region instead of a region for each.\n\n"
	       "  plan      how many regions are needed, against what a device allows\n"
	       "  verify    carve a pool, transfer between two processes, and prove\n"
	       "            what the device refuses\n"
	       "\vRun `ringgate pool plan --help` or `ringgate pool verify --help` for "
	       "their options.",
};

int pool_main(int argc, char **argv)
{
	struct pool_args a = { 0 };
	size_t i;

	if (argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &a) || !a.part)
		return EXIT_USAGE;
	for (i = 0; i < ARRAY_SIZE(parts); i++) {
		static char name[sizeof(parts[i].full)];

		if (strcmp(parts[i].name, a.part))
			continue;
		memcpy(name, parts[i].full, sizeof(name));
		util_set_name(name);
		argv[a.index] = name;
		return parts[i].run(argc - a.index, argv + a.index);
	}
	say("there is no '%s' of the pool: plan or verify", a.part);
	return EXIT_USAGE;
}
