// SPDX-License-Identifier: MIT OR GPL-2.0
#include <stdio.h>
#include <stdlib.h>

#include <ringgate/rgate.h>

#include "cmd.h"
#include "util.h"

static void print_version(FILE *f, struct argp_state *state)
{
	(void)state;
	fprintf(f, "ringgate %s\n", rgate_version());
}

void cmd_begin(void)
{
	static enum rgate_log_level level = RGATE_LOG_WARN;

	argp_program_version_hook = print_version;
	argp_err_exit_status = EXIT_USAGE;
	if (getenv("RGATE_DEBUG"))
		level = RGATE_LOG_DEBUG;
	rgate_log_set(util_log, &level);
}

void cmd_parse(const struct argp *argp, int argc, char **argv, void *input)
{
	if (argp_parse(argp, argc, argv, 0, NULL, input))
		exit(EXIT_USAGE);
}

int cmd_run(const char *name, int (*run)(int argc, char **argv), int argc, char **argv)
{
	char full[32];
	int ret;

	snprintf(full, sizeof(full), "ringgate %s", name);
	util_set_name(full);
	argv[0] = full;
	ret = run(argc, argv);
	util_log_flush();
	if (util_stdout_dead() && ret == EXIT_OK && !util_stop) {
		say("could not write to standard output");
		ret = EXIT_FAIL;
	}
	return ret;
}
