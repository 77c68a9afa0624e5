// SPDX-License-Identifier: MIT OR GPL-2.0
/* Reliable connected queue pairs: operations, refusals, accounting of the queues. */
#include "unit.h"
#include "mock_verbs.h"
#include "rc.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

static struct rgate_device *dev;
static struct rgate_mem *mem;
static struct rgate_rc *a, *b;
static char memory[65536] __attribute__((aligned(4096)));

static void connect_pair(uint32_t depth)
{
	const struct rgate_rc_opts o = RGATE_OPTS(rgate_rc_opts, .send_wr = depth,
						  .recv_wr = depth, .inline_data = 64,
						  .access = RGATE_ACCESS_REMOTE);
	struct rgate_rc_addr aa, ba;

	assert_int_equal(rgate_rc_create(&a, dev, &o), 0);
	assert_int_equal(rgate_rc_create(&b, dev, &o), 0);
	rgate_rc_addr(a, &aa);
	rgate_rc_addr(b, &ba);
	assert_int_equal(rgate_rc_connect(a, &ba), 0);
	assert_int_equal(rgate_rc_connect(b, &aa), 0);
}

static void disconnect(void)
{
	rgate_rc_destroy(a);
	rgate_rc_destroy(b);
}

static int setup(void **state)
{
	const struct rgate_mem_opts o = RGATE_OPTS(rgate_mem_opts, .access = RGATE_ACCESS_REMOTE);

	mock_setup(state);
	rgate_log_set(NULL, NULL);
	memset(memory, 0, sizeof(memory));
	return rgate_device_open(&dev, NULL) ||
	       rgate_mem_register(&mem, dev, memory, sizeof(memory), &o);
}

static int teardown(void **state)
{
	rgate_mem_deregister(mem);
	rgate_device_close(dev);
	return mock_teardown(state);
}

/* What the own device serves at once is what the other end is told, but no more than of use. */
static void own_depth(void **state)
{
	static const struct {
		int can, told;
	} cases[] = { { 4, 4 }, { 16, 16 }, { 64, 16 } };
	const struct ibv_qp_attr *rtr = &mock.modified[IBV_QPS_RTR];
	const struct ibv_qp_attr *rts = &mock.modified[IBV_QPS_RTS];
	struct rgate_device *other;
	struct rgate_rc_addr at;
	struct rgate_rc *rc;
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		mock.dev[0].max_rd_atomic = cases[i].can;
		assert_int_equal(rgate_device_open(&other, NULL), 0);
		assert_int_equal(rgate_rc_create(&rc, other, NULL), 0);
		rgate_rc_addr(rc, &at);
		assert_int_equal(at.rd_atomic, cases[i].told);
		/* to itself, as one that serves three */
		at.rd_atomic = 3;
		assert_int_equal(rgate_rc_connect(rc, &at), 0);
		assert_int_equal(rtr->max_dest_rd_atomic, cases[i].told);
		assert_int_equal(rts->max_rd_atomic, 3);
		rgate_rc_destroy(rc);
		rgate_device_close(other);
	}
}

static struct rgate_rc_work work(enum rgate_rc_op op, size_t local, size_t remote, uint32_t len)
{
	return (struct rgate_rc_work){
		.op = op, .addr = memory + local, .length = len, .lkey = rgate_mem_lkey(mem),
		.remote = (uintptr_t)memory + remote, .rkey = rgate_mem_rkey(mem),
	};
}

static void one_sided(void **state)
{
	struct rgate_rc_work w;
	uint64_t v;

	(void)state;
	connect_pair(0);
	strcpy(memory, "across");
	w = work(RGATE_RC_WRITE, 0, 4096, 7);
	assert_int_equal(rgate_rc_do(a, &w, 100), 0);
	assert_int_equal(mock.send_flags, IBV_SEND_SIGNALED);
	assert_string_equal(memory + 4096, "across");
	w = work(RGATE_RC_READ, 8192, 4096, 7);
	assert_int_equal(rgate_rc_do(b, &w, 100), 0);
	assert_string_equal(memory + 8192, "across");
	memset(memory + 128, 0, 8);
	w = work(RGATE_RC_FETCH_ADD, 64, 128, 8);
	w.operand = 5;
	assert_int_equal(rgate_rc_do(a, &w, 100), 0);
	assert_int_equal(rgate_rc_do(a, &w, 100), 0);
	memcpy(&v, memory + 64, 8);
	assert_int_equal(v, 5);
	w = work(RGATE_RC_COMPARE_SWAP, 64, 128, 8);
	w.operand = 10;
	w.swap = 77;
	assert_int_equal(rgate_rc_do(a, &w, 100), 0);
	memcpy(&v, memory + 128, 8);
	assert_int_equal(v, 77);
	/* one that does not match changes nothing */
	assert_int_equal(rgate_rc_do(a, &w, 100), 0);
	memcpy(&v, memory + 128, 8);
	assert_int_equal(v, 77);
	disconnect();
}

static void messages(void **state)
{
	struct rgate_rc_work w;
	struct ibv_wc wc;

	(void)state;
	connect_pair(0);
	strcpy(memory, "hello");
	assert_int_equal(rgate_rc_recv(b, 3, memory + 1024, 64, rgate_mem_lkey(mem)), 0);
	assert_int_equal(rgate_rc_recv(b, 4, NULL, 0, 0), 0);
	w = work(RGATE_RC_SEND, 0, 0, 6);
	w.inlined = true;
	w.lkey = 0;
	assert_int_equal(rgate_rc_do(a, &w, 100), 0);
	assert_int_equal(rgate_rc_poll(b, &wc, 100), 1);
	assert_int_equal(wc.wr_id, 3);
	assert_int_equal(wc.byte_len, 6);
	assert_string_equal(memory + 1024, "hello");
	w = work(RGATE_RC_WRITE_IMM, 0, 2048, 6);
	w.imm = 0x01020304;
	assert_int_equal(rgate_rc_do(a, &w, 100), 0);
	assert_int_equal(rgate_rc_poll(b, &wc, 100), 1);
	assert_int_equal(wc.wr_id, 4);
	assert_int_equal(be32toh(wc.imm_data), 0x01020304);
	assert_string_equal(memory + 2048, "hello");
	assert_int_equal(rgate_rc_poll(b, &wc, 0), 0);
	/* nobody receives */
	w = work(RGATE_RC_SEND, 0, 0, 6);
	assert_int_equal(rgate_rc_do(a, &w, 100), -ETIMEDOUT);
	disconnect();
}

static void one_refusal(size_t local, size_t remote, uint32_t len, uint32_t rkey_off, int want)
{
	struct rgate_rc_work w = work(RGATE_RC_WRITE, local, remote, len);
	struct ibv_wc wc;

	connect_pair(0);
	w.rkey += rkey_off;
	assert_int_equal(rgate_rc_do(a, &w, 100), want);
	/* the connection is done with */
	assert_int_equal(rgate_rc_post(a, &w, 1), -ENOTCONN);
	assert_int_equal(rgate_rc_recv(a, 0, NULL, 0, 0), -ENOTCONN);
	assert_int_equal(rgate_rc_poll(a, &wc, 0), 0);
	disconnect();
}

static void refused(void **state)
{
	struct rgate_rc_work w;

	(void)state;
	one_refusal(0, sizeof(memory) - 63, 64, 0, -EREMOTEIO);
	one_refusal(0, (size_t)-1, 64, 0, -EREMOTEIO);
	one_refusal(0, 64, 64, 1, -EREMOTEIO);
	one_refusal(sizeof(memory) - 63, 0, 64, 0, -EPERM);
	/* wrong before it reaches the device */
	connect_pair(0);
	w = work(RGATE_RC_FETCH_ADD, 0, 128, 4);
	assert_int_equal(rgate_rc_post(a, &w, 1), -EINVAL);
	w = work(RGATE_RC_FETCH_ADD, 0, 129, 8);
	assert_int_equal(rgate_rc_post(a, &w, 1), -EINVAL);
	w = work(RGATE_RC_WRITE, 0, 128, 1000);
	w.inlined = true;
	assert_int_equal(rgate_rc_post(a, &w, 1), -EINVAL);
	w = work((enum rgate_rc_op)99, 0, 128, 8);
	assert_int_equal(rgate_rc_post(a, &w, 1), -EINVAL);
	w = work(RGATE_RC_WRITE, 0, 128, 8);
	assert_int_equal(rgate_rc_do(a, &w, 100), 0);
	disconnect();
}

/* Quiet operations are known to be done by the next one that tells */
static void queue_accounting(void **state)
{
	struct rgate_rc_work w[8];
	struct ibv_wc wc;
	unsigned int i, round, told = 0;

	(void)state;
	connect_pair(8);
	for (round = 0; round < 1000; round++) {
		for (i = 0; i < 8; i++) {
			w[i] = work(RGATE_RC_WRITE, 0, 128 + 64 * i, 8);
			w[i].quiet = i != 3 && i != 7;
			w[i].id = i;
		}
		assert_int_equal(rgate_rc_post(a, w, 8), 0);
		assert_int_equal(rgate_rc_post(a, w, 1), -ENOBUFS);
		assert_int_equal(rgate_rc_poll(a, &wc, 100), 1);
		assert_int_equal(wc.wr_id, 3);
		/* four places are free, and no fifth */
		assert_int_equal(rgate_rc_post(a, w, 5), -ENOBUFS);
		assert_int_equal(rgate_rc_post(a, w, 4), 0);
		while (rgate_rc_poll(a, &wc, 0) == 1)
			told++;
	}
	assert_int_equal(told, 2000);
	for (i = 0; i < 8; i++)
		assert_int_equal(rgate_rc_recv(b, i, NULL, 0, 0), 0);
	assert_int_equal(rgate_rc_recv(b, i, NULL, 0, 0), -ENOBUFS);
	disconnect();
}

/* Many at once, of which the last one tells */
static void long_chain(void **state)
{
	struct rgate_rc_work w[RGATE_RC_POST + 1];
	struct ibv_wc wc;
	unsigned int i;

	(void)state;
	connect_pair(128);
	for (i = 0; i < RGATE_RC_POST; i++) {
		memory[i] = (char)(i + 1);
		w[i] = work(RGATE_RC_WRITE, i, 4096 + i, 1);
		w[i].quiet = i < RGATE_RC_POST - 1;
	}
	w[i] = w[0];
	assert_int_equal(rgate_rc_post(a, w, RGATE_RC_POST + 1), -EINVAL);
	assert_int_equal(rgate_rc_post(a, w, RGATE_RC_POST), 0);
	assert_int_equal(rgate_rc_poll(a, &wc, 100), 1);
	assert_memory_equal(memory, memory + 4096, RGATE_RC_POST);
	disconnect();
}

static void no_answer(void **state)
{
	struct rgate_rc_work w = work(RGATE_RC_WRITE, 0, 128, 8);
	uint64_t t0 = unit_now_ns();

	(void)state;
	connect_pair(0);
	mock.silent = true;
	assert_int_equal(rgate_rc_do(a, &w, 50), -ETIMEDOUT);
	assert_true(unit_now_ns() - t0 >= 50000000);
	/* a late completion would be taken for another's */
	assert_int_equal(rgate_rc_do(a, &w, 50), -ENOTCONN);
	disconnect();
}

static void creation_fails(void **state)
{
	struct rgate_rc_opts o = RGATE_OPTS(rgate_rc_opts);
	struct rgate_rc_addr addr, bad;
	struct rgate_rc *rc;

	(void)state;
	mock.fail_cq = 1;
	assert_int_equal(rgate_rc_create(&rc, dev, &o), -ENOMEM);
	mock.fail_qp = 1;
	assert_int_equal(rgate_rc_create(&rc, dev, &o), -ENOMEM);
	mock.fail_modify = 1;
	assert_int_equal(rgate_rc_create(&rc, dev, &o), -ENOMEM);
	o.send_wr = 100000;
	assert_int_equal(rgate_rc_create(&rc, dev, &o), -EINVAL);
	o.send_wr = 0;
	o.sge = RGATE_RC_SGE + 1;
	assert_int_equal(rgate_rc_create(&rc, dev, &o), -EINVAL);
	o.sge = 0;
	o.recv_wr = rgate_device_info(dev)->max_qp_wr + 1;
	assert_int_equal(rgate_rc_create(&rc, dev, &o), -EINVAL);
	assert_int_equal(mock.qps + mock.cqs, 0);
	/* as many as there can be of both */
	o.recv_wr = o.send_wr = rgate_device_info(dev)->max_qp_wr;
	assert_int_equal(rgate_rc_create(&rc, dev, &o), 0);
	rgate_rc_destroy(rc);
	o.send_wr = o.recv_wr = 0;
	assert_int_equal(rgate_rc_create(&rc, dev, &o), 0);
	rgate_rc_addr(rc, &addr);
	bad = addr;
	bad.mtu = 9;
	assert_int_equal(rgate_rc_connect(rc, &bad), -EPROTO);
	bad = addr;
	bad.reserved[3] = 1;
	assert_int_equal(rgate_rc_connect(rc, &bad), -EPROTO);
	bad = addr;
	bad.qpn = 0xffffffff;
	assert_int_equal(rgate_rc_connect(rc, &bad), -EPROTO);
	bad.qpn = htole32(0x1000000);
	assert_int_equal(rgate_rc_connect(rc, &bad), -EPROTO);
	bad = addr;
	bad.psn = htole32(0x1000000);
	assert_int_equal(rgate_rc_connect(rc, &bad), -EPROTO);
	bad = addr;
	bad.mtu = 0;
	assert_int_equal(rgate_rc_connect(rc, &bad), -EPROTO);
	bad.mtu = IBV_MTU_4096 + 1;
	assert_int_equal(rgate_rc_connect(rc, &bad), -EPROTO);
	mock.fail_modify = 1;
	mock.fail_errno = EINVAL;
	assert_int_equal(rgate_rc_connect(rc, &addr), -ENETUNREACH);
	mock.fail_modify = 2;
	mock.fail_errno = ETIMEDOUT;
	assert_int_equal(rgate_rc_connect(rc, &addr), -ETIMEDOUT);
	/* with itself */
	assert_int_equal(rgate_rc_connect(rc, &addr), 0);
	rgate_rc_destroy(rc);
	rgate_rc_destroy(NULL);
}

/* One operation over several pieces, which are written or filled one after another */
static void pieces(void **state)
{
	struct rgate_rc_opts o = RGATE_OPTS(rgate_rc_opts, .sge = 3, .inline_data = 64,
					    .access = RGATE_ACCESS_REMOTE);
	const uint32_t key = rgate_mem_lkey(mem);
	struct ibv_sge sge[4] = {
		{ (uintptr_t)memory, 3, key }, { (uintptr_t)memory + 100, 2, key },
		{ (uintptr_t)memory + 200, 4, key }, { (uintptr_t)memory, 1, key },
	};
	struct rgate_rc_work w = work(RGATE_RC_WRITE, 0, 4096, 0);
	struct rgate_rc_addr addr;
	struct rgate_rc *rc;

	(void)state;
	assert_int_equal(rgate_rc_create(&rc, dev, &o), 0);
	rgate_rc_addr(rc, &addr);
	assert_int_equal(rgate_rc_connect(rc, &addr), 0);
	memcpy(memory, "abc", 3);
	memcpy(memory + 100, "de", 2);
	memcpy(memory + 200, "fgh", 4);
	w.sge = sge;
	w.nsge = 3;
	assert_int_equal(rgate_rc_do(rc, &w, 100), 0);
	assert_string_equal(memory + 4096, "abcdefgh");
	w.inlined = true;
	w.remote += 100;
	assert_int_equal(rgate_rc_do(rc, &w, 100), 0);
	assert_string_equal(memory + 4196, "abcdefgh");
	w.inlined = false;
	memcpy(memory + 4096, "123456789", 9);
	w.remote -= 100;
	w.op = RGATE_RC_READ;
	assert_int_equal(rgate_rc_do(rc, &w, 100), 0);
	assert_memory_equal(memory, "123", 3);
	assert_memory_equal(memory + 100, "45", 2);
	assert_memory_equal(memory + 200, "6789", 4);
	w.op = RGATE_RC_WRITE;
	w.nsge = 4;
	assert_int_equal(rgate_rc_do(rc, &w, 100), -EINVAL);
	w.nsge = 3;
	w.inlined = true;
	sge[0].length = 60;
	assert_int_equal(rgate_rc_do(rc, &w, 100), -EINVAL);
	rgate_rc_destroy(rc);
	o.sge = RGATE_RC_SGE + 1;
	assert_int_equal(rgate_rc_create(&rc, dev, &o), -EINVAL);
}

static void events(void **state)
{
	struct rgate_rc_work w[3] = { work(RGATE_RC_WRITE, 0, 4096, 8) };
	const struct rgate_rc_opts o = RGATE_OPTS(rgate_rc_opts, .events = true, .send_wr = 200,
						  .access = RGATE_ACCESS_REMOTE);
	struct pollfd p = { .events = POLLIN };
	struct rgate_rc_addr addr;
	struct ibv_wc wc[8];
	struct rgate_rc *rc;
	int i;

	(void)state;
	assert_int_equal(rgate_rc_create(&rc, dev, &o), 0);
	rgate_rc_addr(rc, &addr);
	assert_int_equal(rgate_rc_connect(rc, &addr), 0);
	p.fd = rgate_rc_fd(rc);
	w[1] = w[2] = w[0];
	for (i = 0; i < 150; i++) {
		assert_int_equal(rgate_rc_arm(rc), 0);
		assert_int_equal(poll(&p, 1, 0), 0);
		assert_int_equal(rgate_rc_post(rc, w, 3), 0);
		assert_int_equal(poll(&p, 1, 0), 1);
		assert_int_equal(rgate_rc_poll_n(rc, wc, 2), 2);
		assert_int_equal(rgate_rc_poll_n(rc, wc, 8), 1);
		assert_int_equal(rgate_rc_poll_n(rc, wc, 8), 0);
	}
	rgate_rc_destroy(rc);
	assert_int_equal(rgate_rc_create(&rc, dev, NULL), 0);
	assert_int_equal(rgate_rc_fd(rc), -EINVAL);
	assert_int_equal(rgate_rc_arm(rc), -EINVAL);
	rgate_rc_destroy(rc);
}

static void device_gone(void **state)
{
	struct rgate_rc_work w = work(RGATE_RC_WRITE, 0, 128, 8);

	(void)state;
	connect_pair(0);
	mock.gone = true;
	assert_int_equal(rgate_rc_do(a, &w, 100), -EIO);
	mock.gone = false;
	disconnect();
}

/* Of a chain that the device took a part of nobody is told that nothing of it has begun. */
static void taken_in_part(void **state)
{
	struct rgate_rc_work w[3] = { work(RGATE_RC_WRITE, 0, 4096, 8) };
	struct ibv_wc wc;

	(void)state;
	connect_pair(0);
	w[1] = w[2] = w[0];
	strcpy(memory, "begun");
	mock.takes = 2;
	assert_int_equal(rgate_rc_post(a, w, 3), -EIO);
	assert_string_equal(memory + 4096, "begun");
	/* and the connection is done with */
	assert_int_equal(rgate_rc_post(a, w, 1), -ENOTCONN);
	while (rgate_rc_poll(a, &wc, 0) == 1)
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
	disconnect();
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(one_sided, setup, teardown),
	cmocka_unit_test_setup_teardown(messages, setup, teardown),
	cmocka_unit_test_setup_teardown(own_depth, mock_setup, mock_teardown),
	cmocka_unit_test_setup_teardown(refused, setup, teardown),
	cmocka_unit_test_setup_teardown(queue_accounting, setup, teardown),
	cmocka_unit_test_setup_teardown(long_chain, setup, teardown),
	cmocka_unit_test_setup_teardown(taken_in_part, setup, teardown),
	cmocka_unit_test_setup_teardown(no_answer, setup, teardown),
	cmocka_unit_test_setup_teardown(pieces, setup, teardown),
	cmocka_unit_test_setup_teardown(events, setup, teardown),
	cmocka_unit_test_setup_teardown(creation_fails, setup, teardown),
	cmocka_unit_test_setup_teardown(device_gone, setup, teardown),
};

UNIT_MAIN_ALONE(tests)
