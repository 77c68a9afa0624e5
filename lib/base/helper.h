/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Programs that belong to ringgate and are executed by it, not by users: `make install` puts
 * them into LIBEXECDIR/ringgate, where no PATH leads.
 */
#ifndef RGATE_BASE_HELPER_H
#define RGATE_BASE_HELPER_H

#include <limits.h>
#include <stdbool.h>

struct rgate_helper {
	const char *name;	/* of the file */
	const char *env;	/* of the variable that names another one */
	bool beside;		/* it may lie where the running program does, as in a build tree */
};

/*
 * rgate_helper_path - what to execute
 * @path: out, where it is none of the environment's
 *
 * A process that has more rights than who started it asks neither the environment nor its own
 * directory, and nobody asks a directory in which others can put files beside this program
 * that cannot replace it (sticky). Return: the path, @path or the variable's; whether it is
 * there shows when it is executed.
 */
const char *rgate_helper_path(const struct rgate_helper *h, char path[PATH_MAX]);

/* One line of what could not be executed: path, why, h->env */
#define RGATE_HELPER_MISSING	"%s: %s: it comes with `make install`; %s names another"

/* ... and of one that is not of this version: its path or name and version, what asks, its own */
#define RGATE_HELPER_VERSION	"%s is of version \"%s\", and %s of \"%s\": `make install` brings both"

#endif
