// SPDX-License-Identifier: MIT OR GPL-2.0
#include "queue_bed.h"

#include <string.h>

#include "gate_service.h"

struct client a;
struct rgate_completion done[512];
uint64_t keep_bytes;

static struct rgate_engine *e;
static struct gate_service *gate;
static struct queue_service *sv;
static uint64_t cookie;

static bool rights(void *ctx, uid_t uid, struct rgate_limits *limits)
{
	(void)ctx;
	rgate_limits_init(limits);
	return uid != 14;
}

void turn(void)
{
	bed_run(e);
	(void)o.hub.asks.tick(o.hub.ctx);
	bed_run(e);
}

static int make(uint32_t silence_ms)
{
	const struct gate_opts go = RGATE_OPTS(gate_opts, .role = &gate_queues, .hub = HUB,
					       .may = gate_bed_may, .rights = rights,
					       .silence_ms = silence_ms);
	struct queue_opts qo = { .sz = sizeof(qo) };
	struct gate_opts all = go;

	gate_bed_init(&gate_queues, turn);
	e = bed_engine();
	all.engine = e;
	assert_int_equal(gate_service_create(&gate, &all), 0);
	qo.gate = gate;
	qo.keep_bytes = keep_bytes;
	assert_int_equal(queue_service_create(&sv, &qo), 0);
	assert_int_equal(queue_service_add(sv, e), 0);
	memset(&a, 0, sizeof(a));
	client_new(&a, e, ME);
	other_comes_up(7);
	cookie = 0;
	return 0;
}

int setup(void **state)
{
	(void)state;
	return make(0);
}

int setup_silent(void **state)
{
	(void)state;
	return make(SILENT_MS);
}

int teardown(void **state)
{
	(void)state;
	gate_service_quit(gate);
	rgate_engine_destroy(e);
	queue_service_destroy(sv);
	gate_service_destroy(gate);
	client_close(&a);
	assert_int_equal(o.hub.node.stage.lent, 0);
	return 0;
}

uint64_t submit(struct rgate_request q)
{
	q.cookie = ++cookie;
	memset(&done[q.cookie], 0, sizeof(done[0]));
	client_submit(&a, q);
	turn();
	return q.cookie;
}

bool is_done(uint64_t n)
{
	struct rgate_completion got;

	turn();
	while (client_poll(&a, &got))
		done[got.cookie] = got;
	return done[n].cookie == n;
}

int result_of(uint64_t n, uint64_t *value)
{
	assert_true(is_done(n));
	if (value)
		*value = done[n].value;
	return done[n].result;
}

struct rgate_request open_of(const char *name, uint64_t node, uint32_t flags)
{
	struct rgate_queue_place place = { .attempts = flags & RGATE_QUEUE_CREATE ? 2 : 0 };

	strcpy(place.name, name);
	memcpy(a.mem, &place, sizeof(place));
	return REQ(OPEN, .a0 = node, .a1 = RGATE_QUEUE_OPEN_A1(ME, flags), .len = sizeof(place));
}

uint32_t open_here(const char *name)
{
	uint64_t value;

	assert_int_equal(result_of(submit(open_of(name, RGATE_QUEUE_HERE, RGATE_QUEUE_CREATE)),
				   &value), 0);
	return (uint32_t)value;
}

void put_here(uint32_t h, uint32_t len)
{
	const struct rgate_queue_put put = { .len = len };

	memset(a.mem, 'x', sizeof(put) + RGATE_QUEUE_PADDED(len));
	memcpy(a.mem, &put, sizeof(put));
	assert_int_equal(ask_here(SUBMIT, .handle = h,
				  .len = (uint32_t)(sizeof(put) + RGATE_QUEUE_PADDED(len))), 1);
}

struct rgate_queue_info info_of(uint32_t h)
{
	struct rgate_queue_info info;

	assert_int_equal(ask_here(STATE, .handle = h, .off = ROOM, .len = sizeof(info)), 0);
	memcpy(&info, a.mem + ROOM, sizeof(info));
	return info;
}

struct queue_kept_stats kept(void)
{
	struct queue_kept_stats st = { .sz = sizeof(st) };

	assert_int_equal(queue_service_kept(sv, &st), 0);
	return st;
}

uint64_t handles(void)
{
	struct rgate_engine_stats st = { .sz = sizeof(st) };

	assert_int_equal(rgate_engine_stats(e, &st), 0);
	return st.handles;
}
