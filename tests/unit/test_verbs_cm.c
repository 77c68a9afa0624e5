// SPDX-License-Identifier: MIT OR GPL-2.0
/* Connections of the verbs provider, step by step, and each step that fails */
#include "unit.h"
#include "mock_cm.h"
#include "mock_verbs.h"
#include "verbs.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <string.h>

#define DEPTH		8
#define CONSUMER	28	/* refused by the listener, not by the CM */

static const struct rgate_prov_ops *const v = &rgate_prov_verbs;
static const struct rgate_cluster_node one = { .addr = "192.0.2.1", .port = 7001 };
static const struct rgate_cluster_node two = { .addr = "192.0.2.1", .port = 7002 };
static const struct rgate_cluster_node six = { .addr = "fe80::1", .port = 7003 };
static struct rgate_ep *asks, *serves;
static int owner_a, owner_b;

static int open_both(void)
{
	struct rgate_ep_opts o = { .self = &one, .listen = true, .send_depth = DEPTH,
				   .recv_depth = DEPTH, .timeout_ms = 1000 };

	if (v->open(&serves, &o))
		return -1;
	o.self = &two;
	o.listen = false;
	return v->open(&asks, &o);
}

static void close_both(void)
{
	v->close(asks);
	v->close(serves);
}

static int setup(void **state)
{
	mock_setup(state);
	mock_cm_setup();
	rgate_log_set(NULL, NULL);
	return open_both();
}

static int teardown(void **state)
{
	close_both();
	return mock_cm_left() || mock_teardown(state) ? -1 : 0;
}

static struct rgate_prov_event next_of(struct rgate_ep *ep, enum rgate_prov_event_kind kind)
{
	struct rgate_prov_event ev;

	memset(&ev, 0xff, sizeof(ev));
	assert_int_equal(v->event(ep, &ev), 1);
	assert_int_equal(ev.kind, kind);
	if (kind != RGATE_PROV_DOWN)
		assert_int_equal(ev.err, 0);
	if (kind == RGATE_PROV_DOWN || kind == RGATE_PROV_UP)
		assert_int_equal(ev.len, 0);
	return ev;
}

static void nothing_of(struct rgate_ep *ep)
{
	struct rgate_prov_event ev;

	assert_int_equal(v->event(ep, &ev), 0);
}

static struct rgate_conn *begin(void)
{
	struct rgate_conn *conn;

	assert_int_equal(v->connect(asks, &one, "hello", 6, &owner_a, &conn), 0);
	return conn;
}

/* The way of @conn ends here, once */
static void ends_with(struct rgate_ep *ep, struct rgate_conn *conn, int err)
{
	const struct rgate_prov_event ev = next_of(ep, RGATE_PROV_DOWN);

	assert_ptr_equal(ev.conn, conn);
	assert_int_equal(ev.err, err);
	nothing_of(ep);
}

/* The other end of what was begun */
static struct rgate_conn *asked(void)
{
	struct rgate_prov_event ev;

	nothing_of(asks);
	ev = next_of(serves, RGATE_PROV_REQUEST);
	assert_true(ev.len >= 6);
	assert_string_equal(ev.data, "hello");
	return ev.conn;
}

static void whole(void **state)
{
	static const char welcome[RGATE_PROV_WELCOME] = "welcome";
	struct rgate_cluster_node other = one;
	struct rgate_prov_event ev;
	struct rgate_conn *a, *b;
	char whence[64];

	(void)state;
	a = begin();
	assert_ptr_equal(v->owner(a), &owner_a);
	assert_int_equal(((struct sockaddr_in *)&mock_cm.from)->sin_port, 0);
	assert_int_equal(((struct sockaddr_in *)&mock_cm.from)->sin_addr.s_addr,
			 inet_addr("192.0.2.1"));
	b = asked();
	assert_null(v->owner(b));
	assert_true(v->is_from(b, &two));
	strcpy(other.addr, "192.0.2.2");
	assert_false(v->is_from(b, &other));
	assert_false(v->is_from(b, &six));
	strcpy(other.addr, "nowhere");
	assert_false(v->is_from(b, &other));
	v->whence(b, whence, sizeof(whence));
	assert_string_equal(whence, "192.0.2.1");
	/* Nothing is accepted before there are queues, which are made once. */
	assert_int_equal(v->accept(b, "welcome", 8, &owner_b), -EINVAL);
	assert_int_equal(v->prepare(b), 0);
	assert_int_equal(v->prepare(b), 0);
	assert_int_equal(mock.qps, 2);
	assert_int_equal(v->inline_size(b), 128);
	assert_int_equal(v->accept(b, welcome, sizeof(welcome) + 1, &owner_b), -EINVAL);
	assert_int_equal(v->accept(b, welcome, sizeof(welcome), &owner_b), 0);
	assert_ptr_equal(v->owner(b), &owner_b);
	ev = next_of(asks, RGATE_PROV_REPLY);
	assert_ptr_equal(ev.conn, a);
	assert_int_equal(ev.len, sizeof(welcome));
	assert_memory_equal(ev.data, welcome, sizeof(welcome));
	assert_int_equal(v->establish(a), 0);
	ev = next_of(serves, RGATE_PROV_UP);
	assert_ptr_equal(ev.conn, b);
	v->destroy(a);
	ends_with(serves, b, -ECONNRESET);
	v->destroy(b);
	assert_int_equal(mock_cm.disconnects, 2);
}

/* What the two ends told each other of their devices, and queue pairs are made with */
static void parameters(void **state)
{
	const struct ibv_qp_attr *rtr = &mock.modified[IBV_QPS_RTR];
	const struct ibv_qp_attr *rts = &mock.modified[IBV_QPS_RTS];
	struct rgate_conn *a, *b;

	(void)state;
	a = begin();
	b = asked();
	assert_int_equal(mock_cm.asked.responder_resources, 16);
	assert_int_equal(mock_cm.asked.initiator_depth, 16);
	assert_int_equal(mock_cm.asked.private_data_len, 6);
	assert_int_equal(mock_cm.asked.flow_control, 1);
	assert_int_equal(mock_cm.asked.retry_count, RGATE_RC_RETRIES);
	assert_int_equal(mock_cm.asked.rnr_retry_count, RGATE_RC_RETRIES);
	assert_int_equal(v->prepare(b), 0);
	assert_int_equal(v->accept(b, "w", 2, &owner_b), 0);
	assert_int_equal(rtr->min_rnr_timer, RGATE_RC_MIN_RNR);
	assert_int_equal(rtr->max_dest_rd_atomic, 16);
	assert_int_equal(rtr->dest_qp_num, mock_cm.asked.qp_num);
	assert_int_equal(rts->timeout, rgate_rc_ack_timeout(1000));
	assert_int_equal(rts->retry_cnt, RGATE_RC_RETRIES);
	assert_int_equal(rts->rnr_retry, RGATE_RC_RETRIES);
	assert_int_equal(rts->max_rd_atomic, 16);
	next_of(asks, RGATE_PROV_REPLY);
	assert_int_equal(v->establish(a), 0);
	assert_int_equal(rtr->dest_qp_num, mock_cm.accepted.qp_num);
	v->destroy(a);
	v->destroy(b);
}

/* A peer that serves less is asked for no more; one that asks less is reserved no more. */
static void lesser_peer(void **state)
{
	const struct ibv_qp_attr *rtr = &mock.modified[IBV_QPS_RTR];
	const struct ibv_qp_attr *rts = &mock.modified[IBV_QPS_RTS];
	struct rgate_conn *a, *b, *c, *d;

	(void)state;
	a = begin();
	b = asked();
	b->rd_atomic = 3;
	b->peer_rd_atomic = 3;
	assert_int_equal(v->prepare(b), 0);
	assert_int_equal(v->accept(b, "w", 2, &owner_b), 0);
	next_of(asks, RGATE_PROV_REPLY);
	assert_int_equal(v->establish(a), 0);
	assert_int_equal(rtr->max_dest_rd_atomic, 3);
	assert_int_equal(rts->max_rd_atomic, 3);
	next_of(serves, RGATE_PROV_UP);
	c = begin();
	c->rd_atomic = 2;
	d = asked();
	assert_int_equal(v->prepare(d), 0);
	assert_int_equal(v->accept(d, "w", 2, &owner_b), 0);
	assert_int_equal(rtr->max_dest_rd_atomic, 2);
	assert_int_equal(rts->max_rd_atomic, 2);
	v->destroy(c);
	v->destroy(d);
	v->destroy(a);
	v->destroy(b);
}

/* What the own device can is offered, but no more than is of use. */
static void own_device(void **state)
{
	static const struct {
		int can, offered;
	} cases[] = { { 4, 4 }, { 16, 16 }, { 64, 16 } };
	struct rgate_conn *conn;
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		close_both();
		mock.dev[0].max_rd_atomic = cases[i].can;
		assert_int_equal(open_both(), 0);
		conn = begin();
		v->reject(asked(), 0);
		assert_int_equal(mock_cm.asked.responder_resources, cases[i].offered);
		assert_int_equal(mock_cm.asked.initiator_depth, cases[i].offered);
		v->destroy(conn);
	}
}

static void six_too(void **state)
{
	struct rgate_ep_opts o = { .self = &six, .send_depth = DEPTH, .recv_depth = DEPTH };
	struct rgate_cluster_node other = six;
	struct rgate_conn *a, *b;
	struct rgate_ep *ep;
	char whence[64];

	(void)state;
	assert_int_equal(v->open(&ep, &o), 0);
	assert_int_equal(v->connect(ep, &one, "hello", 6, &owner_a, &a), 0);
	nothing_of(ep);
	b = next_of(serves, RGATE_PROV_REQUEST).conn;
	assert_true(v->is_from(b, &six));
	strcpy(other.addr, "fe80::2");
	assert_false(v->is_from(b, &other));
	assert_false(v->is_from(b, &two));
	v->whence(b, whence, sizeof(whence));
	assert_string_equal(whence, "fe80::1");
	v->destroy(a);
	v->destroy(b);
	v->close(ep);
}

static void not_begun(void **state)
{
	struct rgate_cluster_node nowhere = one;
	struct rgate_conn *conn;
	char long_hello[RGATE_PROV_HELLO + 1] = "";

	(void)state;
	assert_int_equal(v->connect(asks, &one, long_hello, sizeof(long_hello), NULL, &conn),
			 -EINVAL);
	strcpy(nowhere.addr, "nowhere");
	assert_int_equal(v->connect(asks, &nowhere, "hello", 6, NULL, &conn), -EINVAL);
	mock_cm.fail_errno = EMFILE;
	mock_cm.fail = "create_id";
	assert_int_equal(v->connect(asks, &one, "hello", 6, NULL, &conn), -EMFILE);
	mock_cm.fail = "resolve_addr";
	assert_int_equal(v->connect(asks, &one, "hello", 6, NULL, &conn), -EMFILE);
	assert_int_equal(mock_cm.ids, 1);
	mock_cm.fail = NULL;
	assert_int_equal(v->connect(asks, &one, long_hello, RGATE_PROV_HELLO, NULL, &conn), 0);
	v->destroy(conn);
}

/* Each step on the way to the peer that fails */
static void on_the_way(void **state)
{
	static const struct {
		const char *fail, *device;
		unsigned int fail_qp;
		int err;
	} cases[] = {
		{ "resolve_route", "mock0", 0, -EBUSY },
		{ NULL, "mock1", 0, -EHOSTUNREACH },
		{ NULL, NULL, 0, -EHOSTUNREACH },
		{ NULL, "mock0", 1, -ENOMEM },
		{ "connect", "mock0", 0, -EBUSY },
	};
	struct rgate_conn *conn;
	unsigned int i;

	(void)state;
	mock.dev[1] = mock.dev[0];
	mock.dev[1].name = "mock1";
	mock_cm.fail_errno = EBUSY;
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		mock_cm.fail = cases[i].fail;
		mock_cm.device = cases[i].device;
		mock.fail_qp = cases[i].fail_qp;
		conn = begin();
		ends_with(asks, conn, cases[i].err);
		v->destroy(conn);
	}
}

static void not_up(void **state)
{
	static const char *const init[] = { "init_rtr", "init_rts" };
	struct rgate_conn *a, *b;
	unsigned int i;

	(void)state;
	a = begin();
	assert_int_equal(v->establish(a), -EINVAL);	/* no queues yet */
	b = asked();
	assert_int_equal(v->prepare(b), 0);
	mock_cm.fail_errno = ENETDOWN;
	for (i = 0; i < ARRAY_LEN(init); i++) {
		mock_cm.fail = init[i];
		assert_int_equal(v->accept(b, "w", 2, &owner_b), -ENETDOWN);
		assert_int_equal(v->establish(a), -ENETDOWN);
		mock_cm.fail = NULL;
		mock.fail_modify = i + 1;
		assert_int_equal(v->accept(b, "w", 2, &owner_b), -ENOMEM);
		mock.fail_modify = i + 1;
		assert_int_equal(v->establish(a), -ENOMEM);
	}
	mock_cm.fail = "accept";
	assert_int_equal(v->accept(b, "w", 2, &owner_b), -ENETDOWN);
	mock_cm.fail = "establish";
	assert_int_equal(v->establish(a), -ENETDOWN);
	v->destroy(a);
	v->destroy(b);
}

static void refused(void **state)
{
	struct rgate_conn *a, *b;
	struct mock before;

	(void)state;
	/* Who is refused by what he asks with has cost nothing: the queues here are his own. */
	a = begin();
	nothing_of(asks);
	before = mock;
	b = asked();
	assert_int_equal(mock.qps, 1);
	assert_int_equal(mock.cqs, before.cqs);
	assert_int_equal(mock.pds, before.pds);
	assert_int_equal(mock.mrs, before.mrs);
	v->reject(b, -EACCES);
	ends_with(asks, a, -EACCES);
	v->destroy(a);
	a = begin();
	b = asked();
	assert_int_equal(v->prepare(b), 0);
	v->reject(b, -EACCES);
	assert_int_equal(mock.qps, 1);
	ends_with(asks, a, -EACCES);
	v->destroy(a);
	a = begin();
	v->reject(asked(), 0);
	ends_with(asks, a, -ECONNREFUSED);
	v->destroy(a);
	assert_int_equal(mock_cm.disconnects, 3);	/* not of who was never there */
}

/* What is no refusal of ours is the usual one. */
static void strange_refusals(void **state)
{
	const struct {
		uint32_t magic;
		int32_t err;
	} ours = { htole32(0x4a524752U), (int32_t)htole32((uint32_t)-EACCES) },
	  other = { htole32(0x4a524753U), ours.err }, more = { ours.magic, ours.err - 1 };
	const struct {
		const void *data;
		size_t len;
		int status, err;
	} cases[] = {
		{ &ours, sizeof(ours), CONSUMER, -EACCES },
		{ &ours, sizeof(ours), CONSUMER + 1, -ECONNREFUSED },
		{ &ours, sizeof(ours) - 1, CONSUMER, -ECONNREFUSED },
		{ &other, sizeof(other), CONSUMER, -ECONNREFUSED },
		{ &more, sizeof(more), CONSUMER, -ECONNREFUSED },
	};
	struct rgate_conn *conn;
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		conn = begin();
		v->reject(asked(), 0);
		ends_with(asks, conn, -ECONNREFUSED);
		conn->down = false;
		mock_cm_event(conn->id, RDMA_CM_EVENT_REJECTED, cases[i].status, cases[i].data,
			      cases[i].len);
		ends_with(asks, conn, cases[i].err);
		v->destroy(conn);
	}
}

static void failures(void **state)
{
	static const struct {
		enum rdma_cm_event_type type;
		int status, err;
	} cases[] = {
		{ RDMA_CM_EVENT_ADDR_ERROR, -ENODEV, -ENODEV },
		{ RDMA_CM_EVENT_ADDR_ERROR, 0, -EHOSTUNREACH },
		{ RDMA_CM_EVENT_ROUTE_ERROR, -ETIMEDOUT, -ETIMEDOUT },
		{ RDMA_CM_EVENT_CONNECT_ERROR, 3, -EHOSTUNREACH },
		{ RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, -ETIMEDOUT },
		{ RDMA_CM_EVENT_DISCONNECTED, 0, -ECONNRESET },
		{ RDMA_CM_EVENT_DEVICE_REMOVAL, 0, -ENODEV },
	};
	struct rgate_conn *conn;
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		conn = begin();
		v->reject(asked(), 0);
		ends_with(asks, conn, -ECONNREFUSED);
		conn->down = false;
		mock_cm_event(conn->id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0, NULL, 0);
		mock_cm_event(conn->id, cases[i].type, cases[i].status, NULL, 0);
		/* Told once */
		mock_cm_event(conn->id, RDMA_CM_EVENT_DISCONNECTED, 0, NULL, 0);
		ends_with(asks, conn, cases[i].err);
		v->destroy(conn);
	}
}

static void broken(void **state)
{
	struct rgate_prov_event ev;

	(void)state;
	mock_cm.fail = "get_event";
	mock_cm.fail_errno = EIO;
	assert_int_equal(v->event(serves, &ev), -EIO);
	mock_cm.fail_errno = EINTR;
	assert_int_equal(v->event(serves, &ev), 0);
	mock_cm.fail = NULL;
	mock_cm_event(serves->listener, RDMA_CM_EVENT_DEVICE_REMOVAL, 0, NULL, 0);
	assert_int_equal(v->event(serves, &ev), -ENODEV);
}

/* A welcome may be longer than there is room for: what fits is taken. */
static void long_data(void **state)
{
	struct rgate_prov_event ev;
	struct rgate_conn *conn;
	char data[255];

	(void)state;
	memset(data, 'w', sizeof(data));
	conn = begin();
	v->reject(asked(), 0);
	ends_with(asks, conn, -ECONNREFUSED);
	mock_cm_event(conn->id, RDMA_CM_EVENT_CONNECT_RESPONSE, 0, data, sizeof(data));
	ev = next_of(asks, RGATE_PROV_REPLY);
	assert_int_equal(ev.len, sizeof(ev.data));
	assert_memory_equal(ev.data, data, sizeof(ev.data));
	v->destroy(conn);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(whole, setup, teardown),
	cmocka_unit_test_setup_teardown(parameters, setup, teardown),
	cmocka_unit_test_setup_teardown(lesser_peer, setup, teardown),
	cmocka_unit_test_setup_teardown(own_device, setup, teardown),
	cmocka_unit_test_setup_teardown(six_too, setup, teardown),
	cmocka_unit_test_setup_teardown(not_begun, setup, teardown),
	cmocka_unit_test_setup_teardown(on_the_way, setup, teardown),
	cmocka_unit_test_setup_teardown(not_up, setup, teardown),
	cmocka_unit_test_setup_teardown(refused, setup, teardown),
	cmocka_unit_test_setup_teardown(strange_refusals, setup, teardown),
	cmocka_unit_test_setup_teardown(failures, setup, teardown),
	cmocka_unit_test_setup_teardown(broken, setup, teardown),
	cmocka_unit_test_setup_teardown(long_data, setup, teardown),
};

UNIT_MAIN_ALONE(tests)
