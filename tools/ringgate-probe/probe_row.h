/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* One row of the table: a kind of memory, tried in every way. Runs in a child. */
#ifndef PROBE_ROW_H
#define PROBE_ROW_H

#include "probe_types.h"

struct probe_job {
	const struct probe_type *type;
	const struct probe_env *env;
	const char *dir;
	struct probe_row *row;	/* shared with the parent */
};

void probe_row(void *job);

/* What there is on this machine, into @env (shared with the parent) */
struct probe_env_job {
	const char *device;
	const char *dir;
	struct probe_env *env;
};

void probe_env(void *job);

#endif
