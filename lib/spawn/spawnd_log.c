// SPDX-License-Identifier: MIT OR GPL-2.0
/* What is told of a request, for people and for those who look for it later. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "spawnd.h"

#define COMMAND	256	/* bytes of a command line */
#define LINE	512

/* Odd bytes as \\xNN, cut where it is long: what is logged has no line ends, and no
 * control sequences. */
void spawnd_log_describe(struct spawnd_job *job)
{
	char text[COMMAND + 8], *at = text;
	/* What is executed, as soon as that is known */
	const char *exe = job->grant && *job->grant->path ? job->grant->path : job->req.exe;
	const unsigned char *p;
	uint32_t i;

	for (i = 0; i < job->req.argc && at < text + COMMAND - 4; i++) {
		p = (const unsigned char *)(i ? job->req.argv[i] : exe);
		if (i)
			*at++ = ' ';
		for (; *p && at < text + COMMAND - 4; p++) {
			if (*p > ' ' && *p < 0x7f && *p != '\\')
				*at++ = (char)*p;
			else
				at += sprintf(at, "\\x%02x", *p);
		}
	}
	snprintf(at, 4, "%s", at < text + COMMAND - 4 ? "" : "...");
	free(job->command);
	job->command = strdup(text);
}

static void name_of(const struct spawnd_job *job, char name[32])
{
	struct rgate_cluster_node n = { .sz = sizeof(n) };
	unsigned int i;

	snprintf(name, 32, "%u", job->client->id);
	for (i = 0; !rgate_cluster_node(job->sd->cluster, i, &n); i++)
		if (n.id == job->client->id)
			snprintf(name, 32, "%s", n.name);
}

void spawnd_log(const struct spawnd_job *job, const char *fmt, ...)
{
	const struct rgate_spawnd_opts *o = &job->sd->o;
	char line[LINE], name[32], owner[32] = "";
	va_list ap;
	int n;

	name_of(job, name);
	if (job->owner != RGATE_SPAWN_NODE)
		snprintf(owner, sizeof(owner), " (its user %u)", job->owner - 1);
	n = snprintf(line, sizeof(line), "spawn %08x-%u: node %s%s as %s: %s: ",
		     (unsigned int)(job->id >> 32), (unsigned int)job->id, name, owner,
		     *job->user ? job->user : "nobody", job->command ? job->command : "?");
	va_start(ap, fmt);
	if (n > 0 && n < (int)sizeof(line))
		(void)vsnprintf(line + n, sizeof(line) - (size_t)n, fmt, ap);
	va_end(ap);
	if (o->log)
		o->log(o->log_ctx, line);
	else
		rgate_info("%s", line);
}
