// SPDX-License-Identifier: MIT OR GPL-2.0
/* The service that Documentation/services.rst explains, as it stands there, and its test */
#include "req_bed.h"

#include <errno.h>
#include <string.h>

/* ---- The service ---- */

#define SUM		(RGATE_REQ_USER + 1)
#define SUM_BYTES	RGATE_REQ_OP(SUM, 0)
#define SUM_MOST	256U

static int sum_bytes(struct rgate_req *r, void *ctx)
{
	const struct rgate_request *q = rgate_req_get(r);
	unsigned char copy[SUM_MOST];
	uint64_t sum = 0;
	uint32_t i;

	if (q->len > SUM_MOST)
		return -EMSGSIZE;
	/* A copy: the client may write its memory while it is looked at. */
	if (q->len)
		memcpy(copy, rgate_req_mem(r), q->len);
	for (i = 0; i < q->len; i++)
		sum += copy[i];
	++*(unsigned int *)ctx;
	rgate_req_set_value(r, sum);
	return 0;
}

static const struct rgate_req_op sum_ops[] = {
	{ .name = "bytes", .uses = RGATE_USES_MEM, .begin = sum_bytes },
};

static const struct rgate_req_service sum_service = {
	.number = SUM, .nops = ARRAY_LEN(sum_ops), .name = "sum", .ops = sum_ops,
};

/* ---- Its test ---- */

static void result(struct rgate_engine *e, struct client *c, uint32_t len, int res, uint64_t value)
{
	struct rgate_completion done;

	client_submit(c, (struct rgate_request){ .op = SUM_BYTES, .off = 10, .len = len });
	bed_run(e);
	assert_true(client_poll(c, &done));
	assert_int_equal(done.result, res);
	assert_int_equal(done.value, value);
}

static void sums(void **state)
{
	struct rgate_engine *e = bed_engine();
	unsigned int times = 0;
	static struct client c;

	(void)state;
	assert_int_equal(rgate_engine_add(e, &sum_service, &times), 0);
	client_new(&c, e, 1);
	memset(c.mem, 1, 300);
	result(e, &c, 0, 0, 0);
	result(e, &c, SUM_MOST, 0, SUM_MOST);
	result(e, &c, SUM_MOST + 1, -EMSGSIZE, 0);
	assert_int_equal(times, 2);
	rgate_seat_remove(c.seat);
	rgate_engine_destroy(e);
	client_close(&c);
}

static const struct CMUnitTest tests[] = { cmocka_unit_test(sums) };

UNIT_MAIN_ALONE(tests)
