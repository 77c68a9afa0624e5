// SPDX-License-Identifier: MIT OR GPL-2.0
/* Service 1: a line to the log of the process that serves. The example of services.rst */
#include <errno.h>
#include <string.h>

#include "engine_priv.h"
#include "log.h"

#define LINE_MAX_LEN	256U

static int log_write(struct rgate_req *r, void *ctx)
{
	const struct rgate_request *q = rgate_req_get(r);
	char line[LINE_MAX_LEN + 1];
	uint32_t i;

	(void)ctx;
	if (!q->len)
		return -EINVAL;
	if (q->len > LINE_MAX_LEN)
		return -EMSGSIZE;
	/* A copy: the client may write its memory while it is looked at. */
	memcpy(line, rgate_req_mem(r), q->len);
	line[q->len] = '\0';
	/* No line ends, no control sequences in the log */
	for (i = 0; i < q->len; i++)
		if (line[i] < ' ' || line[i] > '~')
			line[i] = '?';
	rgate_info("user %u: %s", (unsigned int)rgate_seat_uid(rgate_req_seat(r)), line);
	return 0;
}

static const struct rgate_req_op ops[] = {
	{ .name = "write", .uses = RGATE_USES_MEM, .begin = log_write },
};

const struct rgate_req_service rgate_service_log = {
	.number = RGATE_REQ_LOG, .nops = sizeof(ops) / sizeof(ops[0]), .name = "log", .ops = ops,
};
