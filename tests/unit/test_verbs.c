// SPDX-License-Identifier: MIT OR GPL-2.0
/* The verbs provider on devices and an rdma_cm of memory: transfers, and the flags of each */
#include "unit.h"
#include "mock_cm.h"
#include "mock_verbs.h"
#include "verbs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <ringgate/rgate_key.h>

#define DEPTH	8

static const struct rgate_prov_ops *const v = &rgate_prov_verbs;
static const struct rgate_cluster_node here = { .addr = "192.0.2.1", .port = 7001 };
static struct rgate_ep *ep;
static struct rgate_conn *conn;
static struct rgate_prov_share share;
static char memory[8192] __attribute__((aligned(4096)));
static int self;

static struct rgate_ep_opts opts_of(const struct rgate_cluster_node *node)
{
	return (struct rgate_ep_opts){ .self = node, .listen = true, .send_depth = DEPTH,
				       .recv_depth = DEPTH, .timeout_ms = 1000 };
}

static void connect_self(void)
{
	assert_int_equal(v->loopback(ep, &self, &conn), 0);
	assert_int_equal(v->allow(conn, RGATE_ACCESS_REMOTE), 0);
}

static int setup(void **state)
{
	const struct rgate_ep_opts o = opts_of(&here);

	mock_setup(state);
	mock_cm_setup();
	rgate_log_set(NULL, NULL);
	memset(memory, 0, sizeof(memory));
	if (v->open(&ep, &o) || v->use_pool(ep, RGATE_PROV_POOL, NULL))
		return -1;
	return v->share(ep, memory, sizeof(memory), -1, 0, RGATE_ACCESS_REMOTE, &share);
}

static int teardown(void **state)
{
	v->unshare(ep, &share);
	v->close(ep);
	return mock_cm_left() || mock_teardown(state) ? -1 : 0;
}

static struct rgate_sge at(size_t offset, uint32_t len)
{
	return (struct rgate_sge){ memory + offset, len, share.lkey };
}

/* Posts one that wants a completion, and returns what that says */
static int carry_out(const struct rgate_op *op)
{
	const struct rgate_prov_work work = { op, 5, true };
	struct rgate_prov_done done[2];

	assert_int_equal(v->post(conn, &work, 1), 0);
	assert_int_equal(v->poll(conn, done, 2), 1);
	assert_int_equal(done[0].kind, RGATE_PROV_SENT);
	assert_int_equal(done[0].id, 5);
	assert_int_equal(done[0].len, 0);
	return done[0].status;
}

static void addresses(void **state)
{
	struct rgate_cluster_node node = { .addr = "192.0.2.7", .port = 7001 };
	struct sockaddr_storage sa;
	char text[64];

	(void)state;
	assert_int_equal(rgate_verbs_sockaddr(&sa, &node, true), 0);
	assert_int_equal(sa.ss_family, AF_INET);
	assert_int_equal(((struct sockaddr_in *)&sa)->sin_port, htons(7001));
	assert_string_equal(inet_ntop(AF_INET, &((struct sockaddr_in *)&sa)->sin_addr, text,
				      sizeof(text)), "192.0.2.7");
	assert_int_equal(rgate_verbs_sockaddr(&sa, &node, false), 0);
	assert_int_equal(((struct sockaddr_in *)&sa)->sin_port, 0);
	strcpy(node.addr, "2001:db8::7");
	assert_int_equal(rgate_verbs_sockaddr(&sa, &node, true), 0);
	assert_int_equal(sa.ss_family, AF_INET6);
	assert_int_equal(((struct sockaddr_in6 *)&sa)->sin6_port, htons(7001));
	assert_string_equal(inet_ntop(AF_INET6, &((struct sockaddr_in6 *)&sa)->sin6_addr, text,
				      sizeof(text)), "2001:db8::7");
	strcpy(node.addr, "node7");
	assert_int_equal(rgate_verbs_sockaddr(&sa, &node, true), -EINVAL);
}

static void opened(void **state)
{
	const struct sockaddr_in *bound = (struct sockaddr_in *)&mock_cm.bound;

	(void)state;
	assert_non_null(v->device(ep));
	assert_true(fcntl(v->fd(ep), F_GETFL) & O_NONBLOCK);
	assert_int_equal(mock_cm.ids, 1);
	assert_int_equal(bound->sin_port, htons(7001));
	assert_int_equal(bound->sin_addr.s_addr, inet_addr("192.0.2.1"));
	assert_int_equal(share.addr, (uintptr_t)memory);
	assert_non_null(share.priv);
	assert_int_equal(mock.mrs, 1);
}

static void not_opened(void **state)
{
	static const struct {
		const char *fail;
		int err;
	} cases[] = {
		{ "channel", ENODEV }, { "fd", EBADF }, { "create_id", EMFILE },
		{ "bind", EADDRNOTAVAIL }, { "listen", EADDRINUSE },
	};
	struct rgate_ep_opts o = opts_of(&here);
	struct rgate_ep *second;
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		mock_cm.fail = cases[i].fail;
		mock_cm.fail_errno = cases[i].err;
		assert_int_equal(v->open(&second, &o), -cases[i].err);
		assert_int_equal(mock_cm.channels, 1);
		assert_int_equal(mock_cm.ids, 1);
		assert_int_equal(mock.contexts, 1);
	}
	mock_cm.fail = "listen";
	o.listen = false;
	assert_int_equal(v->open(&second, &o), 0);
	assert_int_equal(mock_cm.ids, 1);
	v->close(second);
	o.device = "mock7";
	assert_int_equal(v->open(&second, &o), -ENODEV);
}

static void shared(void **state)
{
	struct rgate_prov_share more;

	(void)state;
	mock.fail_mr = 1;
	assert_int_equal(v->share(ep, memory, 64, -1, 0, RGATE_ACCESS_REMOTE, &more), -ENOMEM);
	assert_int_equal(v->share(ep, memory, 64, -1, 0, 0, &more), 0);
	assert_int_equal(more.rkey, rgate_mem_rkey(more.priv));
	assert_int_equal(more.lkey, rgate_mem_lkey(more.priv));
	assert_int_equal(mock.mrs, 2);
	/* one that the device does not let go is not the endpoint's any more */
	mock.windows = true;
	v->unshare(ep, &more);
	mock.windows = false;
	assert_int_equal(mock.mrs, 2);
	assert_int_equal(rgate_device_mr_left(v->device(ep)), 0);
	assert_int_equal(mock.mrs, 1);
}

static void one_sided(void **state)
{
	const struct rgate_sge two[] = { at(0, 4), at(64, 4) };
	const struct rgate_sge word = at(128, 8), back = at(256, 8);
	struct rgate_op op = { .kind = RGATE_OP_WRITE, .nsge = 2, .sge = two,
			       .remote = share.addr + 4096, .rkey = share.rkey };
	uint64_t n;

	(void)state;
	connect_self();
	memcpy(memory, "in t", 4);
	memcpy(memory + 64, "wo!", 4);
	assert_int_equal(carry_out(&op), 0);
	assert_string_equal(memory + 4096, "in two!");
	op = (struct rgate_op){ .kind = RGATE_OP_READ, .nsge = 1, .sge = &back,
				.remote = share.addr + 4096, .rkey = share.rkey };
	assert_int_equal(carry_out(&op), 0);
	assert_string_equal(memory + 256, "in two!");
	op = (struct rgate_op){ .kind = RGATE_OP_FETCH_ADD, .nsge = 1, .sge = &word, .operand = 5,
				.remote = share.addr + 512, .rkey = share.rkey };
	assert_int_equal(carry_out(&op), 0);
	assert_int_equal(carry_out(&op), 0);
	memcpy(&n, memory + 128, 8);
	assert_int_equal(n, 5);
	op.kind = RGATE_OP_COMPARE_SWAP;
	op.operand = 10;
	op.swap = 77;
	assert_int_equal(carry_out(&op), 0);
	memcpy(&n, memory + 512, 8);
	assert_int_equal(n, 77);
	op.rkey++;
	assert_int_equal(carry_out(&op), -EREMOTEIO);
	assert_int_equal(v->post(conn, &(struct rgate_prov_work){ &op, 5, true }, 1), -ENOTCONN);
	v->destroy(conn);
}

static void messages(void **state)
{
	const struct rgate_sge text = at(0, 6);
	struct rgate_op op = { .kind = RGATE_OP_SEND, .nsge = 1, .sge = &text };
	const struct rgate_prov_work quiet = { &op, 6, false };
	struct rgate_prov_done done[4];

	(void)state;
	connect_self();
	assert_int_equal(v->recv(conn, 3, memory + 1024, 64, share.lkey), 0);
	assert_int_equal(v->recv(conn, 4, memory + 2048, 64, share.lkey), 0);
	assert_int_equal(v->recv(conn, 9, memory + 3072, 64, share.lkey + 1), 0);
	strcpy(memory, "hello");
	assert_int_equal(v->post(conn, &quiet, 1), 0);
	assert_false(mock.send_flags & IBV_SEND_SIGNALED);
	op = (struct rgate_op){ .kind = RGATE_OP_WRITE_IMM, .nsge = 1, .sge = &text,
				.imm = 0x01020304, .remote = share.addr + 4096,
				.rkey = share.rkey };
	assert_int_equal(v->post(conn, &quiet, 1), 0);
	/* One at a time, and no more than that */
	assert_int_equal(v->poll(conn, done, 1), 1);
	assert_int_equal(done[0].kind, RGATE_PROV_RECV);
	assert_int_equal(done[0].status, 0);
	assert_int_equal(done[0].id, 3);
	assert_int_equal(done[0].len, 6);
	assert_string_equal(memory + 1024, "hello");
	assert_int_equal(v->poll(conn, done, 4), 1);
	assert_int_equal(done[0].kind, RGATE_PROV_RECV_IMM);
	assert_int_equal(done[0].id, 4);
	assert_int_equal(done[0].imm, 0x01020304);
	assert_string_equal(memory + 4096, "hello");
	assert_int_equal(v->poll(conn, done, 4), 0);
	op.kind = RGATE_OP_SEND;
	assert_int_equal(carry_out(&op), -EREMOTEIO);
	mock.gone = true;
	assert_int_equal(v->poll(conn, done, 4), -EIO);
	mock.gone = false;
	v->destroy(conn);
}

/* What is inlined is copied at once, and needs no key. */
static void inlined(void **state)
{
	const struct {
		uint8_t kind, flags;
		uint32_t len;
		bool copied;
	} cases[] = {
		{ RGATE_OP_WRITE, 0, 128, true },
		{ RGATE_OP_WRITE, 0, 129, false },
		{ RGATE_OP_WRITE, RGATE_OP_FENCE, 8, false },
		{ RGATE_OP_WRITE_IMM, 0, 8, true },
		{ RGATE_OP_SEND, 0, 8, true },
		{ RGATE_OP_READ, 0, 8, false },
		{ RGATE_OP_FETCH_ADD, 0, 8, false },
		{ RGATE_OP_COMPARE_SWAP, 0, 8, false },
	};
	struct rgate_sge sge = at(0, 0);
	struct rgate_op op = { .nsge = 1, .sge = &sge, .remote = share.addr + 4096,
			       .rkey = share.rkey };
	unsigned int i;

	(void)state;
	sge.lkey++;
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		struct rgate_prov_done done[3];
		const struct rgate_prov_work work = { &op, 5, true };

		connect_self();
		assert_int_equal(v->inline_size(conn), 128);
		assert_int_equal(v->recv(conn, 1, memory + 1024, 64, share.lkey), 0);
		op.kind = cases[i].kind;
		op.flags = cases[i].flags;
		sge.length = cases[i].len;
		assert_int_equal(v->post(conn, &work, 1), 0);
		assert_int_equal(!!(mock.send_flags & IBV_SEND_INLINE), cases[i].copied);
		assert_int_equal(!!(mock.send_flags & IBV_SEND_FENCE),
				 !!(cases[i].flags & RGATE_OP_FENCE));
		assert_true(mock.send_flags & IBV_SEND_SIGNALED);
		assert_true(v->poll(conn, done, 3) >= 1);
		if (!cases[i].copied)
			assert_int_equal(done[0].status, -EPERM);
		v->destroy(conn);
	}
}

static void full(void **state)
{
	const struct rgate_sge text = at(0, 4);
	const struct rgate_op op = { .kind = RGATE_OP_WRITE, .nsge = 1, .sge = &text,
				     .remote = share.addr + 4096, .rkey = share.rkey };
	struct rgate_prov_work many[RGATE_POST_MAX + 1];
	struct rgate_prov_done done[RGATE_POST_MAX + 1];
	unsigned int i;

	(void)state;
	connect_self();
	for (i = 0; i < ARRAY_LEN(many); i++)
		many[i] = (struct rgate_prov_work){ &op, i, true };
	assert_int_equal(v->post(conn, many, 0), -EINVAL);
	assert_int_equal(v->post(conn, many, RGATE_POST_MAX + 1), -EINVAL);
	assert_int_equal(v->post(conn, many, RGATE_POST_MAX), -EAGAIN);
	assert_int_equal(v->post(conn, many, DEPTH + 1), -EAGAIN);
	assert_int_equal(v->post(conn, many, DEPTH), 0);
	assert_int_equal(v->post(conn, many, 1), -EAGAIN);
	assert_int_equal(v->poll(conn, done, ARRAY_LEN(done)), DEPTH);
	for (i = 0; i < DEPTH; i++)
		assert_int_equal(done[i].id, i);
	for (i = 0; i < DEPTH; i++)
		assert_int_equal(v->recv(conn, i, memory, 8, share.lkey), 0);
	assert_int_equal(v->recv(conn, i, memory, 8, share.lkey), -ENOBUFS);
	v->destroy(conn);
}

static void woken(void **state)
{
	const struct rgate_sge text = at(0, 4);
	const struct rgate_op op = { .kind = RGATE_OP_WRITE, .nsge = 1, .sge = &text,
				     .remote = share.addr + 4096, .rkey = share.rkey };
	struct pollfd p = { .events = POLLIN };

	(void)state;
	connect_self();
	p.fd = v->conn_fd(conn);
	assert_int_equal(v->arm(conn), 0);
	assert_int_equal(poll(&p, 1, 0), 0);
	assert_int_equal(carry_out(&op), 0);
	assert_int_equal(poll(&p, 1, 0), 1);
	assert_int_equal(v->arm_recv(conn), 0);
	assert_int_equal(poll(&p, 1, 0), 0);
	v->destroy(conn);
}

static void not_looped(void **state)
{
	(void)state;
	mock.fail_qp = 1;
	assert_int_equal(v->loopback(ep, &self, &conn), -ENOMEM);
	mock.fail_modify = 2;		/* the second: to RTR */
	assert_int_equal(v->loopback(ep, &self, &conn), -ENOMEM);
	assert_int_equal(mock.qps, 0);
}

static void looped(void **state)
{
	const struct rgate_sge text = at(0, 4);
	const struct rgate_op op = { .kind = RGATE_OP_WRITE, .nsge = 1, .sge = &text,
				     .remote = share.addr + 4096, .rkey = share.rkey };
	char whence[64];

	(void)state;
	connect_self();
	assert_ptr_equal(v->owner(conn), &self);
	v->whence(conn, whence, sizeof(whence));
	assert_string_equal(whence, "an unknown address");
	mock.fail_modify = 1;
	assert_int_equal(v->allow(conn, 0), -ENOMEM);
	assert_int_equal(carry_out(&op), 0);
	assert_int_equal(v->allow(conn, 0), 0);
	assert_int_equal(carry_out(&op), -EREMOTEIO);
	v->destroy(conn);
	v->destroy(NULL);
	assert_int_equal(mock_cm.disconnects, 0);
}

static struct rgate_node_stats use_of(const struct rgate_node *node)
{
	struct rgate_node_stats s = { .sz = sizeof(s) };

	assert_int_equal(rgate_node_stats(node, &s), 0);
	return s;
}

static struct rgate_cluster *cluster_of_one(uint8_t key[RGATE_KEY_LEN])
{
	/* of RFC 7748, 6.1 */
	static const char text[] = "provider verbs\nprivate-key /none\n"
		"node 0 gateway 192.0.2.1:7002 zero\n"
		"public-key 0 hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=\n"
		"node 1 compute 192.0.2.2:7002 one\n" UNIT_KEY_LINE(1);
	struct rgate_cluster *conf;

	assert_int_equal(rgate_key_from_text(key, "dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LCo="),
			 0);
	assert_int_equal(rgate_cluster_parse(&conf, "test", text, sizeof(text) - 1), 0);
	return conf;
}

/* When its device is lost a node says so, and what there is to be given back: in any order */
static void lost(void **state)
{
	struct rgate_pool_opts pool = RGATE_OPTS(rgate_pool_opts, .region_size = 2 << 20,
						 .access = RGATE_ACCESS_REMOTE);
	uint8_t key[RGATE_KEY_LEN];
	const struct rgate_node_opts o = RGATE_OPTS(rgate_node_opts, .key = key, .pool = &pool,
						    .timeout_ms = 100);
	const unsigned int before = mock.mrs;
	struct rgate_cluster *conf = cluster_of_one(key);
	const uint64_t end = unit_now_ns() + 10000000000ULL;
	const struct rgate_buf *buf;
	struct rgate_share *mine;
	struct rgate_node *node;
	struct rgate_pool *of;
	unsigned int mrs;

	(void)state;
	assert_int_equal(rgate_node_create(&node, conf, 0, &o), 0);
	of = rgate_node_pool(node);
	assert_int_equal(rgate_pool_alloc(of, 100, &buf), 0);
	assert_int_equal(rgate_share_create(&mine, node, memory, 64, -1, 0, 0), 0);
	assert_int_equal(use_of(node).error, 0);
	__atomic_store_n(&mock.gone, true, __ATOMIC_RELAXED);
	while (!use_of(node).error && unit_now_ns() < end)
		usleep(1000);
	assert_int_equal(use_of(node).error, -EIO);
	assert_int_equal(use_of(node).shares, 1);
	assert_int_equal(use_of(node).buffers, 1);
	assert_int_equal(use_of(node).peers, 0);
	mrs = mock.mrs;
	rgate_node_destroy(node);
	rgate_node_destroy(NULL);
	assert_int_equal(mock.mrs, mrs);
	rgate_share_destroy(mine);
	/* what is left is the region that the buffer lies in */
	assert_int_equal(mock.mrs, before + 1);
	memset(buf->addr, 1, 100);
	assert_int_equal(rgate_pool_free(of, buf), 0);
	assert_int_equal(mock.mrs, before);
	mock.gone = false;
	rgate_cluster_destroy(conf);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(addresses, setup, teardown),
	cmocka_unit_test_setup_teardown(opened, setup, teardown),
	cmocka_unit_test_setup_teardown(not_opened, setup, teardown),
	cmocka_unit_test_setup_teardown(shared, setup, teardown),
	cmocka_unit_test_setup_teardown(one_sided, setup, teardown),
	cmocka_unit_test_setup_teardown(messages, setup, teardown),
	cmocka_unit_test_setup_teardown(inlined, setup, teardown),
	cmocka_unit_test_setup_teardown(full, setup, teardown),
	cmocka_unit_test_setup_teardown(woken, setup, teardown),
	cmocka_unit_test_setup_teardown(not_looped, setup, teardown),
	cmocka_unit_test_setup_teardown(looped, setup, teardown),
	cmocka_unit_test_setup_teardown(lost, setup, teardown),
};

UNIT_MAIN(tests)
