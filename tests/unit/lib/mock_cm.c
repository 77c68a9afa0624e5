// SPDX-License-Identifier: MIT OR GPL-2.0
#include "unit.h"
#include "mock_cm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define REFUSED_BY_LISTENER	28

struct mock_id {
	struct rdma_cm_id id;
	struct mock_id *next, *peer;
	uint32_t peer_qpn;
	bool listens;
};

struct queued {
	struct rdma_cm_event ev;
	struct queued *next;
	char data[256];
};

struct mock_cm mock_cm;
static struct mock_id *ids;
static struct queued *first;
static struct ibv_context over;

static bool fails(const char *function)
{
	if (!mock_cm.fail || strcmp(mock_cm.fail, function))
		return false;
	errno = mock_cm.fail_errno;
	return true;
}

static void tell(struct rdma_cm_id *id, enum rdma_cm_event_type type, int status,
		 const struct rdma_conn_param *param)
{
	struct queued *q = calloc(1, sizeof(*q)), **at;

	q->ev.id = id;
	q->ev.event = type;
	q->ev.status = status;
	if (param)
		q->ev.param.conn = *param;
	if (param && param->private_data_len)
		memcpy(q->data, param->private_data, param->private_data_len);
	q->ev.param.conn.private_data = q->data;
	for (at = &first; *at; at = &(*at)->next)
		;
	*at = q;
}

void mock_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type type, int status,
		   const void *data, size_t len)
{
	const struct rdma_conn_param param = {
		.private_data = data, .private_data_len = (uint8_t)len,
	};

	tell(id, type, status, &param);
}

struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct rdma_event_channel *channel;

	if (fails("channel"))
		return NULL;
	channel = calloc(1, sizeof(*channel));
	channel->fd = fails("fd") ? -1 : eventfd(0, EFD_CLOEXEC);
	mock_cm.channels++;
	return channel;
}

void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	if (channel->fd >= 0)
		close(channel->fd);
	free(channel);
	mock_cm.channels--;
}

static struct mock_id *add(struct rdma_event_channel *channel, void *context)
{
	struct mock_id *m = calloc(1, sizeof(*m));

	m->id.channel = channel;
	m->id.context = context;
	m->next = ids;
	ids = m;
	mock_cm.ids++;
	return m;
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
		   enum rdma_port_space ps)
{
	if (fails("create_id") || ps != RDMA_PS_TCP)
		return -1;
	*id = &add(channel, context)->id;
	return 0;
}

int rdma_destroy_id(struct rdma_cm_id *id)
{
	struct mock_id **at, *m = (struct mock_id *)id;
	struct queued **q, *gone;

	for (q = &first; *q;) {
		gone = *q;
		if (gone->ev.id != id) {
			q = &gone->next;
			continue;
		}
		*q = gone->next;
		free(gone);
	}
	for (at = &ids; *at != m; at = &(*at)->next)
		;
	*at = m->next;
	if (m->peer)
		m->peer->peer = NULL;
	free(m);
	mock_cm.ids--;
	return 0;
}

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	if (fails("bind"))
		return -1;
	memcpy(&id->route.addr.src_storage, addr, sizeof(struct sockaddr_storage));
	mock_cm.bound = id->route.addr.src_storage;
	return 0;
}

int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	if (fails("listen") || backlog < 1)
		return -1;
	((struct mock_id *)id)->listens = true;
	return 0;
}

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src, struct sockaddr *dst, int ms)
{
	struct ibv_device **list;
	int i;

	if (fails("resolve_addr") || ms <= 0)
		return -1;
	memcpy(&id->route.addr.src_storage, src, sizeof(struct sockaddr_storage));
	memcpy(&id->route.addr.dst_storage, dst, sizeof(struct sockaddr_storage));
	mock_cm.from = id->route.addr.src_storage;
	list = ibv_get_device_list(NULL);
	for (i = 0; mock_cm.device && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), mock_cm.device)) {
			over.device = list[i];
			id->verbs = &over;
		}
	ibv_free_device_list(list);
	tell(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0, NULL);
	return 0;
}

int rdma_resolve_route(struct rdma_cm_id *id, int ms)
{
	if (fails("resolve_route") || ms <= 0)
		return -1;
	tell(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0, NULL);
	return 0;
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	struct mock_id *m = (struct mock_id *)id, *to;

	if (fails("connect"))
		return -1;
	mock_cm.asked = *param;
	for (to = ids; to; to = to->next)
		if (to->listens && to->id.route.addr.src_sin.sin_port ==
				   id->route.addr.dst_sin.sin_port)
			break;
	if (!to) {
		tell(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, NULL);
		return 0;
	}
	m->peer = add(to->id.channel, to->id.context);
	m->peer->peer = m;
	m->peer->peer_qpn = param->qp_num;
	m->peer->id.route.addr.dst_storage = id->route.addr.src_storage;
	tell(&m->peer->id, RDMA_CM_EVENT_CONNECT_REQUEST, 0, param);
	return 0;
}

int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	struct mock_id *m = (struct mock_id *)id;

	if (fails("accept"))
		return -1;
	mock_cm.accepted = *param;
	m->peer->peer_qpn = param->qp_num;
	tell(&m->peer->id, RDMA_CM_EVENT_CONNECT_RESPONSE, 0, param);
	return 0;
}

int rdma_establish(struct rdma_cm_id *id)
{
	if (fails("establish"))
		return -1;
	tell(&((struct mock_id *)id)->peer->id, RDMA_CM_EVENT_ESTABLISHED, 0, NULL);
	return 0;
}

int rdma_reject(struct rdma_cm_id *id, const void *data, uint8_t len)
{
	struct mock_id *m = (struct mock_id *)id;

	if (m->peer)
		mock_cm_event(&m->peer->id, RDMA_CM_EVENT_REJECTED, REFUSED_BY_LISTENER, data, len);
	return 0;
}

int rdma_disconnect(struct rdma_cm_id *id)
{
	struct mock_id *m = (struct mock_id *)id;

	mock_cm.disconnects++;
	if (m->peer)
		tell(&m->peer->id, RDMA_CM_EVENT_DISCONNECTED, 0, NULL);
	return 0;
}

/* What rdma_cm says of the path; the rest is for the caller to fill in. */
int rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
	if (fails(attr->qp_state == IBV_QPS_RTR ? "init_rtr" : "init_rts"))
		return -1;
	*mask = IBV_QP_STATE;
	if (attr->qp_state == IBV_QPS_RTR) {
		*mask |= IBV_QP_DEST_QPN;
		attr->dest_qp_num = ((struct mock_id *)id)->peer_qpn;
	}
	return 0;
}

int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	struct queued **q, *got;

	if (fails("get_event"))
		return -1;
	for (q = &first; *q && (*q)->ev.id->channel != channel; q = &(*q)->next)
		;
	got = *q;
	if (!got) {
		errno = EAGAIN;
		return -1;
	}
	*q = got->next;
	*event = &got->ev;
	mock_cm.events++;
	return 0;
}

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	memset(event, 0xff, sizeof(struct queued));
	free(event);
	mock_cm.events--;
	return 0;
}

void mock_cm_setup(void)
{
	memset(&mock_cm, 0, sizeof(mock_cm));
	mock_cm.device = "mock0";
}

int mock_cm_left(void)
{
	return mock_cm.channels || mock_cm.ids || mock_cm.events || first ? -1 : 0;
}
