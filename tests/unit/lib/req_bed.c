// SPDX-License-Identifier: MIT OR GPL-2.0
#include "req_bed.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct late late;

static int hold(struct rgate_req *r, void *ctx)
{
	(void)ctx;
	if (late.begins)
		late.begins();
	unit_require(late.n < ARRAY_LEN(late.held));
	late.held[late.n++] = r;
	return RGATE_REQ_LATER;
}

static unsigned int place_of(uint64_t cookie)
{
	unsigned int i;

	for (i = 0; i < late.n; i++)
		if (rgate_req_get(late.held[i])->cookie == cookie)
			break;
	return i;
}

static struct rgate_req *let_go(unsigned int i)
{
	struct rgate_req *r = late.held[i];

	memmove(&late.held[i], &late.held[i + 1], (--late.n - i) * sizeof(late.held[0]));
	return r;
}

void late_end(uint64_t cookie, int result, uint64_t value)
{
	unsigned int i = place_of(cookie);

	unit_require(i < late.n);
	rgate_req_end(let_go(i), result, value);
}

uint32_t late_more(uint64_t cookie, int result, uint64_t value)
{
	unsigned int i = place_of(cookie);

	unit_require(i < late.n);
	return rgate_req_more(late.held[i], result, value);
}

bool late_has(uint64_t cookie)
{
	return place_of(cookie) < late.n;
}

static int cancel(struct rgate_req *r, void *ctx)
{
	(void)ctx;
	late.asked++;
	if (late.refuses)
		return -EALREADY;
	if (!late.slow)
		late_end(rgate_req_get(r)->cookie, 77, 77);
	return 0;
}

static void over(struct rgate_req *r, void *ctx)
{
	(void)ctx;
	unit_require(!late_has(rgate_req_get(r)->cookie));
	late.over++;
}

static int open_handle(struct rgate_req *r, void *ctx)
{
	uint32_t handle;
	int err = rgate_seat_handle(rgate_req_seat(r), LATE, &late, &handle);

	(void)ctx;
	rgate_req_set_value(r, handle);
	return err;
}

static int close_handle(struct rgate_req *r, void *ctx)
{
	(void)ctx;
	if (!rgate_req_object(r))
		return -EBADF;
	return rgate_seat_release(rgate_req_seat(r), LATE, rgate_req_get(r)->handle) == &late ?
	       0 : -EIO;
}

static void drop(void *object, void *ctx)
{
	(void)ctx;
	unit_require(object == &late);
	late.dropped++;
}

static const struct rgate_req_op ops[] = {
	{ .name = "wait", .begin = hold, .cancel = cancel },
	{ .name = "sure", .begin = hold },
	{ .name = "mem", .uses = RGATE_USES_MEM | RGATE_USES_A1, .begin = hold, .cancel = cancel },
	{ .name = "open", .begin = open_handle },
	{ .name = "close", .uses = RGATE_USES_HANDLE, .begin = close_handle },
	{ .name = "many", .uses = RGATE_USES_MULTI, .begin = hold, .cancel = cancel,
	  .over = over },
};

const struct rgate_req_service late_service = {
	.number = LATE, .nops = ARRAY_LEN(ops), .name = "late", .ops = ops, .drop = drop,
};

struct rgate_engine *bed_engine(void)
{
	const struct rgate_engine_opts o = RGATE_OPTS(rgate_engine_opts,
						      .flags = RGATE_ENGINE_LOOP,
						      .spin_us = RGATE_SPIN_NONE, .node = 6);
	struct rgate_engine *e;

	late = (struct late){ .n = 0 };
	assert_int_equal(rgate_engine_create(&e, &o), 0);
	assert_int_equal(rgate_engine_add(e, &late_service, NULL), 0);
	return e;
}

int64_t bed_run(struct rgate_engine *e)
{
	unsigned int turns = 0;
	int64_t ns;

	while ((ns = rgate_engine_turn(e)) == 0)
		assert_true(++turns < 1000000);
	return ns;
}

static void count_over(void *ctx)
{
	__atomic_add_fetch(&((struct client *)ctx)->over, 1, __ATOMIC_RELEASE);
}

int client_open(struct client *c, struct rgate_engine *e, const struct rgate_seat_opts *opts)
{
	struct rgate_seat_opts o = *opts;
	int err, fds[RGATE_FDS];

	memset(c, 0, sizeof(*c));
	o.over = count_over;
	o.ctx = c;
	err = rgate_seat_add(e, &o, &c->seat, &c->w, fds);
	if (err)
		return err;
	c->kick = fds[RGATE_FD_KICK];
	c->wait = fds[RGATE_FD_WAIT];
	assert_int_equal(rgate_area_map(&c->area, fds[RGATE_FD_AREA], o.requests, o.completions,
					o.memory), 0);
	close(fds[RGATE_FD_AREA]);
	if (o.memory) {
		c->mem = mmap(NULL, o.memory, PROT_READ | PROT_WRITE, MAP_SHARED,
			      fds[RGATE_FD_MEMORY], (off_t)c->w.memory_off);
		assert_ptr_not_equal(c->mem, MAP_FAILED);
		if (!o.mem_addr)
			close(fds[RGATE_FD_MEMORY]);
	}
	return 0;
}

void client_new(struct client *c, struct rgate_engine *e, uid_t uid)
{
	const struct rgate_seat_opts o = RGATE_OPTS(rgate_seat_opts, .uid = uid, .requests = 64,
						    .completions = 64,
						    .memory = (uint64_t)getpagesize());

	assert_int_equal(client_open(c, e, &o), 0);
}

void client_close(struct client *c)
{
	if (c->mem)
		munmap(c->mem, c->w.memory);
	rgate_area_unmap(&c->area);
	close(c->kick);
	close(c->wait);
}

void client_kick(struct client *c)
{
	const uint64_t one = 1;

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&c->area.server->need, __ATOMIC_RELAXED))
		assert_int_equal(write(c->kick, &one, sizeof(one)), sizeof(one));
}

void client_submit(struct client *c, struct rgate_request q)
{
	struct rgate_request *slot = &c->area.requests[c->submitted & c->area.req_mask];
	uint64_t before = c->submitted - c->area.req_mask - 1;

	if (c->submitted > c->area.req_mask)
		assert_int_equal(__atomic_load_n(rgate_area_req_credit(&c->area, before),
						 __ATOMIC_ACQUIRE),
				 rgate_area_req_lap(&c->area, before));
	q.owner = q.owner ? q.owner : c->w.owner;
	memcpy(slot, &q, offsetof(struct rgate_request, seq));
	__atomic_store_n(&slot->seq, rgate_area_req_lap(&c->area, c->submitted),
			 __ATOMIC_RELEASE);
	c->submitted++;
	client_kick(c);
}

bool client_poll(struct client *c, struct rgate_completion *out)
{
	struct rgate_completion *slot = &c->area.completions[c->completed & c->area.comp_mask];
	uint64_t lap = rgate_area_comp_lap(&c->area, c->completed);

	if (__atomic_load_n(&slot->seq, __ATOMIC_ACQUIRE) != lap)
		return false;
	*out = *slot;
	if (++c->completed % RGATE_REQ_BATCH == 0) {
		__atomic_store_n(rgate_area_comp_credit(&c->area, c->completed - 1), lap,
				 __ATOMIC_RELEASE);
		client_kick(c);
	}
	return true;
}
