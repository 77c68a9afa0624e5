// SPDX-License-Identifier: MIT OR GPL-2.0
#include "req_asks.h"

#include <string.h>

static struct rgate_engine *engine;
static struct rgate_completion done[ASKS_MAX];
static uint64_t last;

void req_asks_begin(struct rgate_engine *e)
{
	engine = e;
	last = 0;
}

uint64_t req_asks_next(void)
{
	assert_true(last + 1 < ASKS_MAX);
	memset(&done[++last], 0, sizeof(done[0]));
	return last;
}

uint64_t req_asks_submit(struct client *c, struct rgate_request q)
{
	q.cookie = req_asks_next();
	client_submit(c, q);
	return q.cookie;
}

bool req_asks_done(struct client *c, uint64_t n)
{
	struct rgate_completion got;

	bed_run(engine);
	while (client_poll(c, &got)) {
		assert_in_range(got.cookie, 1, last);
		done[got.cookie] = got;
	}
	return done[n].cookie == n;
}

int req_asks_result(struct client *c, uint64_t n, uint64_t *value)
{
	assert_true(req_asks_done(c, n));
	if (value)
		*value = done[n].value;
	return done[n].result;
}

uint64_t req_asks_last_value(void)
{
	return done[last].value;
}
