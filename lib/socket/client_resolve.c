// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <string.h>

#include "client_priv.h"
#include "opts.h"
#include "socket_query.h"

/* The question goes where its answer comes. */
static int make_request(struct rgate_sockets *set, const struct rgate_socket_query *query,
			struct rgate_socket_query *q, struct rgate_request *r)
{
	size_t name, service;
	uint64_t off;
	int err;

	err = rgate_opts_copy(q, sizeof(*q), query);
	if (!err)
		err = sockets_off(set, q->buf, q->len, &off);
	if (err)
		return err;
	name = q->name ? strnlen(q->name, RGATE_SOCKET_NAME_MAX + 1) : 0;
	service = q->service ? strnlen(q->service, RGATE_SOCKET_SERVICE_MAX + 1) : 0;
	if (name > RGATE_SOCKET_NAME_MAX || service > RGATE_SOCKET_SERVICE_MAX)
		return -ENAMETOOLONG;
	if (q->len < name + service || q->family > UINT16_MAX || q->type > UINT16_MAX)
		return -EINVAL;
	if (name)
		memcpy(q->buf, q->name, name);
	if (service)
		memcpy((char *)q->buf + name, q->service, service);
	*r = (struct rgate_request){
		.op = RGATE_REQ_SOCKET_RESOLVE, .deadline_us = q->deadline_us, .off = off,
		.len = q->len, .a0 = RGATE_SOCKET_RESOLVE_A0(q->family, q->type, q->flags),
		.a1 = RGATE_SOCKET_RESOLVE_A1(name, service),
	};
	return 0;
}

int place_found(const struct place *p)
{
	if (p->result < 0)
		return p->result;
	return (uint32_t)p->result <= p->room ? socket_found_count((uint32_t)p->result, p->value) :
	       -EPROTO;
}

int rgate_sockets_resolve(struct rgate_sockets *set, const struct rgate_socket_query *query,
			  uint64_t *value)
{
	struct rgate_socket_query q;
	struct rgate_request r;
	struct place *p;
	int result;

	result = make_request(set, query, &q, &r);
	if (result)
		return result;
	p = place_get(set);
	if (!p)
		return -EAGAIN;
	p->room = r.len;
	result = place_ask(set, p, &r);
	if (result)
		return result;
	result = place_found(p);
	if (value)
		*value = result < 0 ? 0 : p->value;
	place_put(set, p);
	return result;
}

int rgate_sockets_resolve_begin(struct rgate_sockets *set, const struct rgate_socket_query *query)
{
	struct rgate_socket_query q;
	struct rgate_request r;
	struct place *p;
	int err;

	err = make_request(set, query, &q, &r);
	if (err)
		return err;
	p = place_get(set);
	if (!p)
		return -EAGAIN;
	p->what = RGATE_SOCKET_DO_RESOLVE;
	p->room = r.len;
	p->cookie = q.cookie;
	err = place_submit(set, p, &r);
	if (err)
		place_put(set, p);
	return err;
}
