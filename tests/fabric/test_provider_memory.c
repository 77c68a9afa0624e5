// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * What every provider has to do (lib/fabric/provider.h) about memory: what is out of
 * bounds, of the wrong key or not allowed is refused without effect; memory outside of the
 * pool is shared, and no more; the own memory is reached through a loop.
 */
#include "ends.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MANY	100

/* What is refused: -EREMOTEIO without effect, and the connection has ended */
static void refuse(struct end e[2], const struct rgate_op *op)
{
	struct rgate_prov_event ev;

	assert_int_equal(end_post(&e[0], op, 5), 0);
	assert_int_equal(end_wait(&e[0]), -EREMOTEIO);
	assert_int_equal(e[0].last.id, 5);
	assert_int_equal(end_post(&e[0], op, 6), -ENOTCONN);
	e[0].prov->destroy(e[0].conn);
	e[0].conn = NULL;
	end_event(&e[1], RGATE_PROV_DOWN, &ev);
	assert_ptr_equal(ev.conn, e[1].conn);
	e[1].prov->destroy(e[1].conn);
	e[1].conn = NULL;
}

/* Nobody holds it as a buffer, so that AddressSanitizer takes this for a mistake. */
static __attribute__((no_sanitize_address)) char last_byte(const struct rgate_pool_region *r)
{
	return ((const volatile char *)r->addr)[r->length - 1];
}

static void bounds(void **state)
{
	static const struct {
		uint8_t kind;
		uint32_t len;
		uint64_t off;	/* from the region's end */
	} wrong[] = {
		{ RGATE_OP_WRITE, 9, -8ULL }, { RGATE_OP_READ, 9, -8ULL },
		{ RGATE_OP_WRITE, 8, 0 }, { RGATE_OP_FETCH_ADD, 8, 0 },
		{ RGATE_OP_WRITE_IMM, 4097, -4096ULL }, { RGATE_OP_COMPARE_SWAP, 8, 1 << 20 },
		{ RGATE_OP_WRITE, 64, 1ULL << 62 }, { RGATE_OP_READ, 16, 0x7ffffffffffffff8 },
	};
	struct rgate_pool_region r = { .sz = sizeof(r) };
	struct end e[2];
	struct cluster c;
	unsigned int i;

	(void)state;
	ends_up(&c, e);
	assert_int_equal(rgate_pool_region(e[1].pool, 0, &r), 0);
	for (i = 0; i < ARRAY_LEN(wrong); i++) {
		struct rgate_sge s = end_sge(&e[0], 0, wrong[i].len);
		struct rgate_op op = end_op(wrong[i].kind, &s, &e[1], 0);

		/* where the region ends, as peers name it */
		op.remote = e[1].at.addr - (uint64_t)((char *)e[1].buf->addr - (char *)r.addr) +
			    r.length + wrong[i].off;
		memset(s.addr, 0xee, s.length);
		refuse(e, &op);
		assert_int_equal(last_byte(&r), 0);
		ends_connect(e, RGATE_ACCESS_REMOTE);
	}
	ends_down(&c, e);
}

static void wrong_rkey(void **state)
{
	struct rgate_sge s;
	struct rgate_op op;
	struct end e[2];
	struct cluster c;
	unsigned int i;

	(void)state;
	ends_up(&c, e);
	s = end_sge(&e[0], 0, 8);
	memset(s.addr, 0xee, 8);
	for (i = 0; i < 4; i++) {
		op = end_op(i == 2 ? RGATE_OP_READ : i == 3 ? RGATE_OP_FETCH_ADD : RGATE_OP_WRITE,
			    &s, &e[1], 0);
		op.rkey = i ? op.rkey ^ (0x10100u << i) : 0;
		refuse(e, &op);
		assert_int_equal(end_word(&e[1], 0), 0);
		ends_connect(e, RGATE_ACCESS_REMOTE);
	}
	ends_down(&c, e);
}

/* Messages flow, memory is out of reach; then it is within, as far as it is allowed */
static void not_allowed(void **state)
{
	static const uint8_t kinds[] = { RGATE_OP_WRITE, RGATE_OP_READ, RGATE_OP_FETCH_ADD };
	struct rgate_sge s;
	struct rgate_op op;
	struct end e[2];
	struct cluster c;
	unsigned int i;

	(void)state;
	ends_open(&c, e, MS);
	s = end_sge(&e[0], 0, 8);
	memset(s.addr, 0xee, 8);
	for (i = 0; i < ARRAY_LEN(kinds); i++) {
		ends_connect(e, 0);
		op = end_op(RGATE_OP_SEND, &s, &e[1], 0);
		assert_int_equal(end_do(&e[0], &op), 0);
		assert_int_equal(end_wait(&e[1]), 0);
		assert_int_equal(e[1].last.len, 8);
		op = end_op(kinds[i], &s, &e[1], 0);
		refuse(e, &op);
		assert_int_equal(end_word(&e[1], 0), 0);
	}
	ends_connect(e, RGATE_ACCESS_REMOTE_READ);
	op = end_op(RGATE_OP_READ, &s, &e[1], 0);
	assert_int_equal(end_do(&e[0], &op), 0);
	op.kind = RGATE_OP_WRITE;
	refuse(e, &op);
	assert_int_equal(end_word(&e[1], 0), 0);
	ends_down(&c, e);
}

/* Memory outside of the pool, with less than all access; and when it is no more */
static void shares(void **state)
{
	struct rgate_prov_share sh;
	struct rgate_sge s;
	struct rgate_op op;
	struct end e[2];
	struct cluster c;
	void *at;
	int fd;

	(void)state;
	ends_up(&c, e);
	fd = nodes_memfd(65536, &at);
	assert_int_equal(e[1].prov->share(e[1].ep, at, 65536, fd, 0, RGATE_ACCESS_REMOTE_READ,
					  &sh), 0);
	strcpy(at, "to be read only");
	s = end_sge(&e[0], 0, 16);
	op = end_op(RGATE_OP_READ, &s, &e[1], 0);
	op.remote = sh.addr;
	op.rkey = sh.rkey;
	assert_int_equal(end_do(&e[0], &op), 0);
	assert_string_equal(e[0].buf->addr, at);
	op.kind = RGATE_OP_WRITE;
	memset(s.addr, 0, 16);
	refuse(e, &op);
	assert_string_equal(at, "to be read only");
	ends_connect(e, RGATE_ACCESS_REMOTE);
	e[1].prov->unshare(e[1].ep, &sh);
	op.kind = RGATE_OP_READ;
	refuse(e, &op);
	munmap(at, 65536);
	close(fd);
	ends_down(&c, e);
}

/* More pieces of memory than anybody keeps an eye on, one after another and again */
static void many_shares(void **state)
{
	struct rgate_prov_share sh[MANY];
	struct rgate_sge s;
	struct rgate_op op;
	struct end e[2];
	struct cluster c;
	unsigned int i;
	uint8_t *at;
	void *mem;
	int fd;

	(void)state;
	ends_up(&c, e);
	fd = nodes_memfd(MANY * 4096, &mem);
	at = mem;
	for (i = 0; i < MANY; i++)
		assert_int_equal(e[1].prov->share(e[1].ep, at + i * 4096, 4096, fd, i * 4096,
						  RGATE_ACCESS_REMOTE, &sh[i]), 0);
	s = end_sge(&e[0], 0, 4096);
	for (i = 0; i < 3 * MANY; i++) {
		unit_pattern(s.addr, i, 4096);
		op = end_op(RGATE_OP_WRITE, &s, &e[1], 0);
		op.remote = sh[i * 7 % MANY].addr;
		op.rkey = sh[i * 7 % MANY].rkey;
		assert_int_equal(end_do(&e[0], &op), 0);
		end_flush(&e[0], &e[1]);
		assert_int_equal(unit_pattern_check(at + i * 7 % MANY * 4096, i, 4096), 0);
	}
	e[0].prov->destroy(e[0].conn);
	e[0].conn = NULL;
	for (i = 0; i < MANY; i++)
		e[1].prov->unshare(e[1].ep, &sh[i]);
	munmap(mem, MANY * 4096);
	close(fd);
	ends_down(&c, e);
}

/* To the own end: operations, messages, and the end of a share */
static void loopback(void **state)
{
	struct rgate_prov_share sh;
	struct rgate_sge s;
	struct rgate_op op;
	struct cluster c;
	struct end e;
	void *at;
	int fd, err;

	(void)state;
	cluster_make(&c, 2, 0);
	end_open(&e, &c, 1, MS);
	assert_int_equal(e.prov->loopback(e.ep, &e, &e.conn), 0);
	end_prepare(&e);
	assert_int_equal(e.prov->allow(e.conn, RGATE_ACCESS_REMOTE), 0);
	s = end_sge(&e, 0, 8);
	op = end_op(RGATE_OP_FETCH_ADD, &s, &e, 64);
	op.operand = 3;
	assert_int_equal(end_do(&e, &op), 0);
	assert_int_equal(end_do(&e, &op), 0);
	assert_int_equal(end_word(&e, 0), 3);
	assert_int_equal(end_word(&e, 64), 6);
	op = end_op(RGATE_OP_SEND, &s, &e, 0);
	assert_int_equal(end_post(&e, &op, 1), 0);
	assert_int_equal(end_wait(&e) | end_wait(&e), 0);
	fd = nodes_memfd(4096, &at);
	assert_int_equal(e.prov->share(e.ep, at, 4096, fd, 0, RGATE_ACCESS_REMOTE, &sh), 0);
	op = end_op(RGATE_OP_WRITE, &s, &e, 0);
	op.remote = sh.addr + 16;
	op.rkey = sh.rkey;
	assert_int_equal(end_do(&e, &op), 0);
	end_flush(&e, &e);
	assert_int_equal(((uint64_t *)at)[2], 3);
	e.prov->unshare(e.ep, &sh);
	munmap(at, 4096);
	close(fd);
	/* One queue pair is both ends: the receiving one may fail first (Soft-RoCE of 7.x). */
	assert_int_equal(end_post(&e, &op, 2), 0);
	do
		err = end_wait(&e);
	while (e.last.kind != RGATE_PROV_SENT);
	assert_true(err == -EREMOTEIO || (!c.local && err == -ECANCELED));
	end_close(&e);
	cluster_free(&c);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(bounds),
	cmocka_unit_test(wrong_rkey),
	cmocka_unit_test(not_allowed),
	cmocka_unit_test(shares),
	cmocka_unit_test(many_shares),
	cmocka_unit_test(loopback),
};

UNIT_MAIN(tests)
