// SPDX-License-Identifier: MIT OR GPL-2.0
/* Service 1: a line to the log of the process that serves. The example of services.rst */
#include <errno.h>
#include <string.h>

#include "engine_priv.h"
#include "log.h"

/* No line ends, no control sequences in the log */
static void to_library(uid_t uid, char *line, uint32_t len)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		if (line[i] < ' ' || line[i] > '~')
			line[i] = '?';
	line[len] = '\0';
	rgate_info("user %u: %s", (unsigned int)uid, line);
}

static int log_write(struct rgate_req *r, void *ctx)
{
	const uid_t uid = rgate_seat_uid(rgate_req_seat(r));
	const struct rgate_request *q = rgate_req_get(r);
	const struct rgate_engine *e = ctx;
	char line[RGATE_ENGINE_LINE + 1];

	if (!q->len)
		return -EINVAL;
	if (q->len > RGATE_ENGINE_LINE)
		return -EMSGSIZE;
	/* A copy: the client may write its memory while it is looked at. */
	memcpy(line, rgate_req_mem(r), q->len);
	if (e->log)
		return e->log(e->log_ctx, uid, line, q->len);
	to_library(uid, line, q->len);
	return 0;
}

static const struct rgate_req_op ops[] = {
	{ .name = "write", .uses = RGATE_USES_MEM, .begin = log_write },
};

const struct rgate_req_service rgate_service_log = {
	.number = RGATE_REQ_LOG, .nops = sizeof(ops) / sizeof(ops[0]), .name = "log", .ops = ops,
};
