/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Sessions of benchmarks that make requests themselves */
#ifndef BENCH_SESSION_H
#define BENCH_SESSION_H

#include <string.h>

#include <ringgate/rgate_session.h>

#include "bench.h"

/* With that name at the beginning of its memory; exits with a message if there is none */
static inline struct rgate_session *bench_session(const char *path, const char *name)
{
	const struct rgate_session_opts o = RGATE_OPTS(rgate_session_opts, .path = path,
		.where = RGATE_SESSION_DAEMON, .memory = 4096);
	struct rgate_session *s;
	int err = rgate_session_open(&s, &o);

	if (err)
		bench_die(-err, "%s", path);
	memcpy(rgate_session_memory(s, NULL), name, strlen(name));
	return s;
}

#endif
