// SPDX-License-Identifier: MIT OR GPL-2.0
/* What `ringgate probe` and `ringgate pool` execute (tools/ringgate/cmd_probe.c) */
#include <stdio.h>
#include <string.h>

#include "cmd.h"
#include "helper.h"
#include "pool.h"
#include "probe.h"
#include "util.h"

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} commands[] = {
	{ "probe", probe_main },
	{ "pool", pool_main },
};

int main(int argc, char **argv)
{
	char version[16] = "", name[16] = "", full[32];
	size_t i = 0;

	cmd_begin();
	/* As it is from version to version, for those to understand each other that differ */
	if (argc < 1 || sscanf(argv[0], "ringgate %15s %15s", version, name) != 2) {
		util_set_name("ringgate-probe");
		say("this is a part of ringgate: `ringgate probe` and `ringgate pool` run it");
		return EXIT_USAGE;
	}
	snprintf(full, sizeof(full), "ringgate %s", name);
	util_set_name(full);
	if (strcmp(version, RGATE_VERSION)) {
		say(RGATE_HELPER_VERSION, "ringgate-probe", RGATE_VERSION, "ringgate", version);
		return EXIT_FAIL;
	}
	while (i < ARRAY_SIZE(commands) && strcmp(commands[i].name, name))
		i++;
	if (i < ARRAY_SIZE(commands))
		return cmd_run(name, commands[i].run, argc, argv);
	say("there is no such command; see `ringgate --help`");
	return EXIT_USAGE;
}
