// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * ringgate probe, ringgate pool: a program of their own, which takes this one's place. Its
 * argv[0] says who asks, of which version, and for what: the arguments are the user's.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "helper.h"
#include "util.h"

static int become(const char *word, char **argv)
{
	static const struct rgate_helper helper = {
		.name = "ringgate-probe", .env = "RGATE_PROBE", .beside = true,
	};
	char path[PATH_MAX], name[48];
	const char *program = rgate_helper_path(&helper, path);

	snprintf(name, sizeof(name), "ringgate %s %s", RGATE_VERSION, word);
	argv[0] = name;
	(void)execv(program, argv);
	say(RGATE_HELPER_MISSING, program, strerror(errno), helper.env);
	return EXIT_FAIL;
}

int cmd_probe(int argc, char **argv)
{
	(void)argc;
	return become("probe", argv);
}

int cmd_pool(int argc, char **argv)
{
	(void)argc;
	return become("pool", argv);
}
