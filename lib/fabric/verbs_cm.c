// SPDX-License-Identifier: MIT OR GPL-2.0
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "verbs.h"

#define RESOLVE_MS	2000
#define RD_ATOMIC	16		/* reads and atomics under way, where the device can */
#define REJECT_MAGIC	0x4a524752U	/* "RGRJ": our refusal, not the CM's */
#define REASON_CONSUMER	28		/* IBTA, table 112: refused by the listener */

struct reject {
	uint32_t magic;
	int32_t err;
};

static struct rgate_conn *conn_new(struct rgate_ep *ep, struct rdma_cm_id *id, void *owner)
{
	const uint32_t most = rgate_device_info(ep->dev)->max_rd_atomic;
	struct rgate_conn *conn = calloc(1, sizeof(*conn));

	if (!conn)
		return NULL;
	conn->ep = ep;
	conn->id = id;
	conn->owner = owner;
	conn->rd_atomic = (uint8_t)(most < RD_ATOMIC ? most : RD_ATOMIC);
	conn->peer_rd_atomic = conn->rd_atomic;
	if (id)
		id->context = conn;
	return conn;
}

int rgate_verbs_prepare(struct rgate_conn *conn)
{
	const struct rgate_ep_opts *o = &conn->ep->opts;
	struct rgate_rc_opts opts = RGATE_OPTS(rgate_rc_opts, .send_wr = o->send_depth,
		.recv_wr = o->recv_depth, .sge = RGATE_VERBS_SGE,
		.inline_data = rgate_device_info(conn->ep->dev)->max_inline,
		.timeout_ms = o->timeout_ms, .events = true);
	int err;

	if (conn->rc)
		return 0;
	err = rgate_rc_create(&conn->rc, conn->ep->dev, &opts);
	if (!err)
		conn->inline_size = rgate_rc_inline(conn->rc);
	return err;
}

int rgate_verbs_loopback(struct rgate_ep *ep, void *owner, struct rgate_conn **out)
{
	struct rgate_conn *conn = conn_new(ep, NULL, owner);
	struct rgate_rc_addr addr;
	int err;

	if (!conn)
		return -ENOMEM;
	err = rgate_verbs_prepare(conn);
	if (err)
		goto free_conn;
	rgate_rc_addr(conn->rc, &addr);
	err = rgate_rc_connect(conn->rc, &addr);
	if (err)
		goto destroy_rc;
	*out = conn;
	return 0;

destroy_rc:
	rgate_rc_destroy(conn->rc);
free_conn:
	free(conn);
	return err;
}

int rgate_verbs_connect(struct rgate_ep *ep, const struct rgate_cluster_node *to,
			const void *hello, size_t len, void *owner, struct rgate_conn **out)
{
	struct sockaddr_storage from, dest;
	struct rgate_conn *conn;
	struct rdma_cm_id *id;
	int err;

	if (len > RGATE_PROV_HELLO)
		return -EINVAL;
	err = rgate_verbs_sockaddr(&from, &ep->self, false);
	if (!err)
		err = rgate_verbs_sockaddr(&dest, to, true);
	if (err)
		return err;
	if (rdma_create_id(ep->channel, &id, NULL, RDMA_PS_TCP))
		return -errno;
	conn = conn_new(ep, id, owner);
	if (!conn) {
		err = -ENOMEM;
		goto destroy_id;
	}
	conn->hello_len = (uint8_t)len;
	memcpy(conn->hello, hello, len);
	if (rdma_resolve_addr(id, (struct sockaddr *)&from, (struct sockaddr *)&dest,
			      RESOLVE_MS)) {
		err = -errno;
		goto free_conn;
	}
	*out = conn;
	return 0;

free_conn:
	free(conn);
destroy_id:
	rdma_destroy_id(id);
	return err;
}

/* Brings the queue pair to a state by what rdma_cm says of the path */
static int modify(struct rgate_conn *conn, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	int mask = 0, err;

	if (rdma_init_qp_attr(conn->id, &attr, &mask))
		return -errno;
	if (state == IBV_QPS_RTR) {
		/* rdma_cm leaves 0, which stands for 655 ms. */
		attr.min_rnr_timer = RGATE_RC_MIN_RNR;
		attr.max_dest_rd_atomic = conn->rd_atomic;
	} else {
		attr.timeout = rgate_rc_ack_timeout(conn->ep->opts.timeout_ms);
		attr.retry_cnt = RGATE_RC_RETRIES;
		attr.rnr_retry = RGATE_RC_RETRIES;
		attr.max_rd_atomic = conn->peer_rd_atomic;
	}
	err = ibv_modify_qp(rgate_rc_qp(conn->rc), &attr, mask);
	return err > 0 ? -err : err;
}

static int bring_up(struct rgate_conn *conn)
{
	int err = modify(conn, IBV_QPS_RTR);

	return err ? err : modify(conn, IBV_QPS_RTS);
}

static struct rdma_conn_param params(const struct rgate_conn *conn, const void *data, size_t len)
{
	return (struct rdma_conn_param){
		.private_data = data, .private_data_len = (uint8_t)len,
		.responder_resources = conn->rd_atomic,
		.initiator_depth = conn->rd_atomic,
		.flow_control = 1,
		.retry_count = RGATE_RC_RETRIES, .rnr_retry_count = RGATE_RC_RETRIES,
		.qp_num = rgate_rc_qp(conn->rc)->qp_num,
	};
}

static void take_depth(struct rgate_conn *conn, const struct rdma_conn_param *peer)
{
	if (peer->responder_resources < conn->peer_rd_atomic)
		conn->peer_rd_atomic = peer->responder_resources;
	if (peer->initiator_depth < conn->rd_atomic)
		conn->rd_atomic = peer->initiator_depth;
}

int rgate_verbs_accept(struct rgate_conn *conn, const void *welcome, size_t len, void *owner)
{
	struct rdma_conn_param param;
	int err;

	if (!conn->rc || len > RGATE_PROV_WELCOME)
		return -EINVAL;
	err = bring_up(conn);
	if (err)
		return err;
	conn->owner = owner;
	param = params(conn, welcome, len);
	return rdma_accept(conn->id, &param) ? -errno : 0;
}

int rgate_verbs_establish(struct rgate_conn *conn)
{
	int err;

	if (!conn->rc)
		return -EINVAL;
	err = bring_up(conn);
	if (err)
		return err;
	return rdma_establish(conn->id) ? -errno : 0;
}

int rgate_verbs_allow(struct rgate_conn *conn, uint32_t access)
{
	struct ibv_qp_attr attr = { .qp_access_flags = rgate_rc_qp_access(access) };
	int err = ibv_modify_qp(rgate_rc_qp(conn->rc), &attr, IBV_QP_ACCESS_FLAGS);

	return err > 0 ? -err : err;
}

bool rgate_verbs_is_from(const struct rgate_conn *conn, const struct rgate_cluster_node *node)
{
	const struct sockaddr *at = rdma_get_peer_addr(conn->id);
	struct sockaddr_storage want;

	if (rgate_verbs_sockaddr(&want, node, false) || at->sa_family != want.ss_family)
		return false;
	if (at->sa_family == AF_INET)
		return ((const struct sockaddr_in *)(const void *)at)->sin_addr.s_addr ==
		       ((const struct sockaddr_in *)&want)->sin_addr.s_addr;
	return at->sa_family == AF_INET6 &&
	       !memcmp(&((const struct sockaddr_in6 *)(const void *)at)->sin6_addr,
		       &((const struct sockaddr_in6 *)&want)->sin6_addr, sizeof(struct in6_addr));
}

void *rgate_verbs_owner(const struct rgate_conn *conn)
{
	return conn->owner;
}

void rgate_verbs_destroy(struct rgate_conn *conn)
{
	if (!conn)
		return;
	if (conn->id)
		(void)rdma_disconnect(conn->id);
	rgate_rc_destroy(conn->rc);
	if (conn->id)
		rdma_destroy_id(conn->id);
	free(conn);
}

void rgate_verbs_reject(struct rgate_conn *conn, int err)
{
	const struct reject why = {
		.magic = htole32(REJECT_MAGIC), .err = (int32_t)htole32((uint32_t)err),
	};

	(void)rdma_reject(conn->id, &why, sizeof(why));
	rgate_rc_destroy(conn->rc);
	rdma_destroy_id(conn->id);
	free(conn);
}

static int rejected(const struct rdma_cm_event *ev)
{
	struct reject why;

	if (ev->status != REASON_CONSUMER || ev->param.conn.private_data_len < sizeof(why))
		return -ECONNREFUSED;
	memcpy(&why, ev->param.conn.private_data, sizeof(why));
	if (le32toh(why.magic) == REJECT_MAGIC && (int32_t)le32toh((uint32_t)why.err) == -EACCES)
		return -EACCES;
	return -ECONNREFUSED;
}

static int down(struct rgate_conn *conn, struct rgate_prov_event *out, int err)
{
	/* One is enough: a disconnect is told more than once. */
	if (conn->down)
		return 0;
	conn->down = true;
	out->kind = RGATE_PROV_DOWN;
	out->conn = conn;
	out->err = err;
	return 1;
}

static void take_data(struct rgate_prov_event *out, const struct rdma_conn_param *param)
{
	out->len = param->private_data_len < sizeof(out->data) ? param->private_data_len :
		   sizeof(out->data);
	if (out->len)
		memcpy(out->data, param->private_data, out->len);
}

/* rdma_cm chose the device by the route: memory is registered with another one? */
static bool same_device(const struct rgate_conn *conn)
{
	const char *name = rgate_device_info(conn->ep->dev)->name;

	if (conn->id->verbs && !strcmp(ibv_get_device_name(conn->id->verbs->device), name))
		return true;
	rgate_err("the way to the peer leads over %s, not %s: see `ip route get`",
		  conn->id->verbs ? ibv_get_device_name(conn->id->verbs->device) : "no device",
		  name);
	return false;
}

static int request(struct rgate_ep *ep, const struct rdma_cm_event *ev,
		   struct rgate_prov_event *out)
{
	struct rgate_conn *conn = conn_new(ep, ev->id, NULL);

	/* In both cases rdma_cm destroys the id when it is refused. */
	if (!conn)
		return -ENOMEM;
	take_depth(conn, &ev->param.conn);
	out->kind = RGATE_PROV_REQUEST;
	out->conn = conn;
	take_data(out, &ev->param.conn);
	return 1;
}

static int ask(struct rgate_conn *conn)
{
	struct rdma_conn_param param;
	int err;

	if (!same_device(conn))
		return -EHOSTUNREACH;
	err = rgate_verbs_prepare(conn);
	if (err)
		return err;
	param = params(conn, conn->hello, conn->hello_len);
	return rdma_connect(conn->id, &param) ? -errno : 0;
}

/* 1: @out is an event for the caller; 0: it was not */
static int handle(struct rgate_ep *ep, const struct rdma_cm_event *ev,
		  struct rgate_prov_event *out, bool *drop)
{
	struct rgate_conn *conn = ev->id->context;
	int err;

	switch (ev->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		err = request(ep, ev, out);
		*drop = err < 0;
		return err < 0 ? 0 : err;
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		err = rdma_resolve_route(ev->id, RESOLVE_MS) ? -errno : 0;
		return err ? down(conn, out, err) : 0;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		err = ask(conn);
		return err ? down(conn, out, err) : 0;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		take_depth(conn, &ev->param.conn);
		out->kind = RGATE_PROV_REPLY;
		out->conn = conn;
		take_data(out, &ev->param.conn);
		return 1;
	case RDMA_CM_EVENT_ESTABLISHED:
		out->kind = RGATE_PROV_UP;
		out->conn = conn;
		return 1;
	case RDMA_CM_EVENT_REJECTED:
		return down(conn, out, rejected(ev));
	case RDMA_CM_EVENT_DISCONNECTED:
		return down(conn, out, -ECONNRESET);
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
		return down(conn, out, ev->status < 0 ? ev->status : -EHOSTUNREACH);
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		return conn ? down(conn, out, -ENODEV) : -ENODEV;
	default:
		return 0;	/* a timer that ended, an address that moved */
	}
}

int rgate_verbs_event(struct rgate_ep *ep, struct rgate_prov_event *out)
{
	struct rdma_cm_event *ev;
	struct rdma_cm_id *id;
	bool drop;
	int ret;

	for (;;) {
		if (rdma_get_cm_event(ep->channel, &ev))
			return errno == EAGAIN || errno == EINTR ? 0 : -errno;
		memset(out, 0, offsetof(struct rgate_prov_event, data));
		drop = false;
		id = ev->id;
		ret = handle(ep, ev, out, &drop);
		rdma_ack_cm_event(ev);
		if (drop) {
			(void)rdma_reject(id, NULL, 0);
			rdma_destroy_id(id);
		}
		if (ret)
			return ret;
	}
}
