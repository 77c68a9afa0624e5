// SPDX-License-Identifier: MIT OR GPL-2.0
#include "ended.h"
#include "ends.h"

#include <string.h>

void end_open(struct end *e, const struct cluster *c, unsigned int id, uint32_t timeout_ms)
{
	const struct rgate_alloc_opts zero = RGATE_OPTS(rgate_alloc_opts,
							.flags = RGATE_ALLOC_ZERO);
	const struct rgate_pool_opts pool = RGATE_OPTS(rgate_pool_opts, .region_size = 4 << 20,
						       .access = RGATE_ACCESS_REMOTE,
						       .flags = RGATE_POOL_NO_HUGE);
	struct rgate_ep_opts opts = {
		.self = &e->self, .listen = true, .send_depth = ENDS_SEND,
		.recv_depth = ENDS_RECV, .timeout_ms = timeout_ms,
	};
	struct rgate_desc d;

	memset(e, 0, sizeof(*e));
	e->prov = rgate_prov_find(rgate_cluster_provider(c->conf));
	unit_require(e->prov);
	e->self.sz = sizeof(e->self);
	unit_require(!rgate_cluster_node(c->conf, id, &e->self));
	unit_require(!e->prov->open(&e->ep, &opts));
	unit_require(!rgate_pool_create(&e->pool, e->prov->device ? e->prov->device(e->ep) : NULL,
					&pool));
	unit_require(!e->prov->use_pool(e->ep, RGATE_PROV_POOL, e->pool));
	unit_require(!rgate_pool_alloc_opts(e->pool, ENDS_BYTES, &zero, &e->buf));
	unit_require(!rgate_pool_alloc_opts(e->pool, ENDS_RECV * ENDS_SLOT, &zero, &e->slots));
	unit_require(!rgate_buf_desc(e->pool, e->buf, 0, 0, &d));
	unit_require(!rgate_desc_parse(&e->at, &d, sizeof(d)));
}

void end_close(struct end *e)
{
	if (e->other)
		e->other->other = NULL;
	e->prov->destroy(e->conn);
	unit_require(!rgate_pool_free(e->pool, e->buf));
	unit_require(!rgate_pool_free(e->pool, e->slots));
	unit_require(!e->prov->use_pool(e->ep, RGATE_PROV_POOL, NULL));
	unit_require(!pool_ended(e->pool));
	e->prov->close(e->ep);
}

/* An endpoint does its part only as long as somebody asks it for events. */
static void turn(struct end *e)
{
	if (e && e->ep && e->events < ARRAY_LEN(e->event))
		e->events += (unsigned int)(e->prov->event(e->ep, &e->event[e->events]) == 1);
}

bool end_any_event(struct end *e, struct rgate_prov_event *ev)
{
	turn(e);
	turn(e->other);
	if (!e->events)
		return false;
	*ev = e->event[0];
	memmove(e->event, e->event + 1, --e->events * sizeof(*ev));
	return true;
}

void end_event(struct end *e, enum rgate_prov_event_kind kind, struct rgate_prov_event *ev)
{
	wait_for(end_any_event(e, ev));
	assert_int_equal(ev->kind, kind);
}

void end_prepare(struct end *e)
{
	unsigned int i;

	assert_int_equal(e->prov->prepare(e->conn), 0);
	for (i = 0; i < ENDS_RECV; i++)
		assert_int_equal(e->prov->recv(e->conn, i, (char *)e->slots->addr + i * ENDS_SLOT,
					       ENDS_SLOT, e->slots->lkey), 0);
}

void ends_connect(struct end e[2], uint32_t access)
{
	struct rgate_prov_event ev;
	unsigned int i;

	assert_int_equal(e[1].prov->connect(e[1].ep, &e[0].self, "hello", 6, &e[1],
					    &e[1].conn), 0);
	end_event(&e[0], RGATE_PROV_REQUEST, &ev);
	e[0].conn = ev.conn;
	end_prepare(&e[0]);
	assert_int_equal(e[0].prov->accept(ev.conn, "welcome", 8, &e[0]), 0);
	end_event(&e[1], RGATE_PROV_REPLY, &ev);
	assert_ptr_equal(ev.conn, e[1].conn);
	end_prepare(&e[1]);
	assert_int_equal(e[1].prov->establish(e[1].conn), 0);
	end_event(&e[0], RGATE_PROV_UP, &ev);
	assert_ptr_equal(ev.conn, e[0].conn);
	for (i = 0; access && i < 2; i++)
		assert_int_equal(e[i].prov->allow(e[i].conn, access), 0);
}

void ends_open(struct cluster *c, struct end e[2], uint32_t timeout_ms)
{
	unsigned int i;

	cluster_make(c, 2, 0);
	for (i = 0; i < 2; i++) {
		end_open(&e[i], c, i, timeout_ms);
		e[i].other = &e[!i];
	}
}

void ends_up(struct cluster *c, struct end e[2])
{
	ends_open(c, e, MS);
	ends_connect(e, RGATE_ACCESS_REMOTE);
}

void ends_down(struct cluster *c, struct end e[2])
{
	end_close(&e[0]);
	end_close(&e[1]);
	cluster_free(c);
}

struct rgate_sge end_sge(const struct end *e, size_t off, size_t len)
{
	return (struct rgate_sge){ (char *)e->buf->addr + off, (uint32_t)len, e->buf->lkey };
}

struct rgate_op end_op(enum rgate_op_kind kind, const struct rgate_sge *s, const struct end *to,
		       size_t off)
{
	return (struct rgate_op){
		.kind = (uint8_t)kind, .nsge = s && s->length ? 1 : 0, .sge = s,
		.remote = to->at.addr + off, .rkey = to->at.rkey,
	};
}

int end_post(struct end *e, const struct rgate_op *op, uint64_t id)
{
	const struct rgate_prov_work w = { op, id, true };

	return e->prov->post(e->conn, &w, 1);
}

int end_wait(struct end *e)
{
	const uint64_t until = unit_now_ns() + MS * 1000000ULL;
	int n;

	while (!(n = e->prov->poll(e->conn, &e->last, 1)) && unit_now_ns() < until)
		;
	if (n < 0)
		return n;
	assert_int_equal(n, 1);
	return e->last.status;
}

int end_do(struct end *e, const struct rgate_op *op)
{
	static uint64_t id = 1000;
	int ret;

	assert_int_equal(end_post(e, op, ++id), 0);
	ret = end_wait(e);
	assert_int_equal(e->last.kind, RGATE_PROV_SENT);
	assert_int_equal(e->last.id, id);
	return ret;
}

void end_flush(struct end *e, const struct end *to)
{
	const struct rgate_sge s = end_sge(e, ENDS_BYTES - 8, 8);
	const struct rgate_op op = end_op(RGATE_OP_READ, &s, to, ENDS_BYTES - 8);

	assert_int_equal(end_do(e, &op), 0);
}

void end_quiet(struct end *e)
{
	struct rgate_prov_done done;
	unsigned int i;

	for (i = 0; i < 10; i++) {
		assert_int_equal(e->prov->poll(e->conn, &done, 1), 0);
		nodes_nap();
	}
}

uint64_t end_word(const struct end *e, size_t off)
{
	return __atomic_load_n((uint64_t *)((char *)e->buf->addr + off), __ATOMIC_ACQUIRE);
}
