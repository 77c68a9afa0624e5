// SPDX-License-Identifier: MIT OR GPL-2.0
/* The peer process: what it does on command. */
#define _GNU_SOURCE
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fds.h"
#include "pool.h"
#include "pool_pattern.h"

struct server {
	const struct verify_opts *o;
	struct pool_side side;
	unsigned char *map;	/* the other process's region, without a device */
	size_t map_len;
	int fd;			/* that came with the command, or -1 */
};

static int do_open(struct server *s, struct peer_msg *m)
{
	struct carve *c = &s->side.carve;
	const char *why;
	size_t i;
	int err;

	m->name[sizeof(m->name) - 1] = '\0';
	err = side_open(&s->side, m->name);
	if (err)
		return err;
	err = carve_create(c, s->side.dev, s->o->size, s->o->buffer, s->side.access,
			   m->window, NULL);
	if (!err)
		err = carve_all(c);
	if (err)
		return err;
	m->text[0] = '\0';
	carve_complete(c, m->text);
	for (i = 0; i < c->n && !*m->text; i++) {
		why = carve_misplaced(c, i);
		if (why)
			snprintf(m->text, sizeof(m->text), "buffer %zu %s", i, why);
	}
	carve_write(c, NULL);
	m->count = c->n;
	m->off = (uintptr_t)c->bufs[0]->addr - (uintptr_t)c->region.addr;
	m->piece.len = c->region.length;
	m->value = rgate_device_info(s->side.dev)->mtu;
	return 0;
}

static int do_connect(struct server *s, struct peer_msg *m)
{
	struct rgate_rc_addr other = m->rc;
	int err = side_renew(&s->side, &m->rc);

	return err ?: rgate_rc_connect(s->side.rc, &other);
}

static bool inside(const struct carve *c, const struct piece *p)
{
	return p->index < c->n && p->len && p->len <= c->buffer &&
	       p->off <= c->buffer - p->len;
}

/* A write with immediate takes a receive without memory. */
static int receive(struct server *s, const struct peer_msg *m)
{
	const struct rgate_buf *b = s->side.carve.bufs[m->piece.index];

	switch (m->recv) {
	case RECV_SEND:
	case RECV_SEND_IMM:
		return rgate_rc_recv(s->side.rc, 1, piece_addr(&s->side.carve, &m->piece),
				     (uint32_t)m->piece.len, b->lkey);
	case RECV_WRITE_IMM:
		return rgate_rc_recv(s->side.rc, 1, NULL, 0, 0);
	default:
		return 0;
	}
}

static int do_prepare(struct server *s, struct peer_msg *m)
{
	struct carve *c = &s->side.carve;
	int err;

	if (!inside(c, &m->piece))
		return -ERANGE;
	piece_fill(c, &m->piece, m->window);
	if (m->payload)
		piece_write(c, &m->piece, m->payload);
	if (m->piece.len == sizeof(m->value))
		memcpy(&m->value, piece_addr(c, &m->piece), sizeof(m->value));
	err = rgate_buf_desc(c->pool, c->bufs[m->piece.index], m->piece.off, m->piece.len,
			     &m->desc);
	return err ?: receive(s, m);
}

/* The receive that was posted ended as it should */
static int received(struct server *s, struct peer_msg *m)
{
	bool imm = m->recv != RECV_SEND;
	struct ibv_wc wc;
	int err = rgate_rc_poll(s->side.rc, &wc, (int)(s->o->time_ns / 2 / 1000000));

	if (err <= 0) {
		snprintf(m->text, sizeof(m->text), "nothing was received");
		return err ?: -ETIMEDOUT;
	}
	if (wc.status != IBV_WC_SUCCESS) {
		snprintf(m->text, sizeof(m->text), "receive: %s", ibv_wc_status_str(wc.status));
		return rgate_rc_status(wc.status);
	}
	if (wc.byte_len != m->piece.len || !(wc.wc_flags & IBV_WC_WITH_IMM) == imm ||
	    (imm && be32toh(wc.imm_data) != m->imm)) {
		snprintf(m->text, sizeof(m->text), "received %u bytes, immediate %#x, instead "
			 "of %zu and %#x", wc.byte_len,
			 wc.wc_flags & IBV_WC_WITH_IMM ? be32toh(wc.imm_data) : 0,
			 m->piece.len, imm ? m->imm : 0);
		return -EBADMSG;
	}
	return 0;
}

static int do_check(struct server *s, struct peer_msg *m)
{
	const struct carve *c = &s->side.carve;
	uint64_t value;
	bool good;
	int err = 0;

	if (!inside(c, &m->piece))
		return -ERANGE;
	if (m->recv)
		err = received(s, m);
	if (err)
		return err;
	if (m->how == HOW_UNTOUCHED)
		return piece_untouched(c, &m->piece, m->window, m->text) ? 0 : -EBADMSG;
	if (m->how == HOW_PAYLOAD) {
		good = piece_holds(c, &m->piece, m->payload, m->text);
	} else {
		memcpy(&value, piece_addr(c, &m->piece), sizeof(value));
		good = m->piece.len == sizeof(value) && value == m->value;
		if (!good)
			snprintf(m->text, sizeof(m->text), "%#llx instead of %#llx",
				 (unsigned long long)value, (unsigned long long)m->value);
	}
	return good && piece_zones(c, &m->piece, m->window, m->text) ? 0 : -EBADMSG;
}

static int do_intact(struct server *s, struct peer_msg *m)
{
	m->count = carve_damaged(&s->side.carve, m->text);
	return 0;
}

static int do_extra(struct server *s, struct peer_msg *m)
{
	if (s->side.extra || s->side.extra_mem)
		return -EBUSY;
	return side_extra(&s->side, m->access, m->window, &m->desc);
}

static int do_extra_check(struct server *s, struct peer_msg *m)
{
	if (!s->side.extra || m->value > EXTRA_MR)
		return -EINVAL;
	return side_extra_intact(&s->side, m->payload, m->value, m->text) ? 0 : -EBADMSG;
}

static int do_extra_drop(struct server *s, struct peer_msg *m)
{
	(void)m;
	return side_extra_drop(&s->side);
}

static int do_extra_free(struct server *s, struct peer_msg *m)
{
	(void)m;
	if (s->side.extra_mem)
		return -EBUSY;
	side_extra_free(&s->side);
	return 0;
}

static int do_map(struct server *s, struct peer_msg *m)
{
	if (s->fd < 0 || s->map)
		return -EBADF;
	s->map = mmap(NULL, m->count, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
	if (s->map == MAP_FAILED) {
		s->map = NULL;
		return -errno;
	}
	s->map_len = m->count;
	return 0;
}

/* Where a descriptor without device points to in the mapping. It is checked here, as
 * nobody else does. */
static void *resolve(const struct server *s, const struct peer_msg *m, uint64_t *len)
{
	struct rgate_remote r;

	if (rgate_desc_parse(&r, &m->desc, sizeof(m->desc)) || r.rkey != 1 ||
	    r.addr > s->map_len || r.length > s->map_len - r.addr)
		return NULL;
	*len = r.length;
	return s->map + r.addr;
}

static int do_store(struct server *s, struct peer_msg *m)
{
	uint64_t len;
	void *p = resolve(s, m, &len);

	if (!p)
		return -ERANGE;
	pattern_fill(p, len, m->payload, 0);
	return 0;
}

static int do_load(struct server *s, struct peer_msg *m)
{
	unsigned char want = 0;
	uint64_t len;
	void *p = resolve(s, m, &len);
	size_t at;

	if (!p)
		return -ERANGE;
	at = pattern_differs(p, len, m->payload, 0, &want);
	if (at == len)
		return 0;
	snprintf(m->text, sizeof(m->text), "byte %zu is not %#04x", at, want);
	return -EBADMSG;
}

static int do_add(struct server *s, struct peer_msg *m)
{
	uint64_t len, i;
	uint64_t *p = resolve(s, m, &len);

	if (!p || len != sizeof(*p) || (uintptr_t)p % sizeof(*p))
		return -ERANGE;
	for (i = 0; i < m->count; i++)
		/* only the sum counts: ordered by the message that says it is done */
		__atomic_fetch_add(p, 1, __ATOMIC_RELAXED);
	return 0;
}

static int do_swap(struct server *s, struct peer_msg *m)
{
	uint64_t len, i, old;
	uint64_t *p = resolve(s, m, &len);

	if (!p || len != sizeof(*p) || (uintptr_t)p % sizeof(*p))
		return -ERANGE;
	old = __atomic_load_n(p, __ATOMIC_RELAXED);
	for (i = 0; i < m->count; i++)
		while (!__atomic_compare_exchange_n(p, &old, old + 1, true, __ATOMIC_RELAXED,
						    __ATOMIC_RELAXED))
			;
	return 0;
}

static int do_close(struct server *s, struct peer_msg *m)
{
	if (s->map)
		munmap(s->map, s->map_len);
	s->map = NULL;
	return side_close(&s->side, m->window);
}

static int (*const handlers[PEER_CMDS])(struct server *s, struct peer_msg *m) = {
	[PEER_OPEN] = do_open,
	[PEER_CONNECT] = do_connect,
	[PEER_PREPARE] = do_prepare,
	[PEER_CHECK] = do_check,
	[PEER_INTACT] = do_intact,
	[PEER_EXTRA] = do_extra,
	[PEER_EXTRA_CHECK] = do_extra_check,
	[PEER_EXTRA_DROP] = do_extra_drop,
	[PEER_EXTRA_FREE] = do_extra_free,
	[PEER_MAP] = do_map,
	[PEER_STORE] = do_store,
	[PEER_LOAD] = do_load,
	[PEER_ADD] = do_add,
	[PEER_SWAP] = do_swap,
	[PEER_CLOSE] = do_close,
};

static bool command(int sock, struct peer_msg *m, int *fd)
{
	union rgate_fds_room room;
	struct iovec iov = { m, sizeof(*m) };
	struct msghdr h = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = room.buf, .msg_controllen = CMSG_SPACE(sizeof(*fd)),
	};
	ssize_t n;

	*fd = -1;
	/* Ends with the other process, as that closes the socket. */
	n = recvmsg(sock, &h, MSG_CMSG_CLOEXEC);
	if (n < 0)
		return false;
	(void)rgate_take_fds(&h, fd, 1);
	if (n == sizeof(*m) && m->cmd < PEER_CMDS)
		return true;
	if (*fd >= 0)
		close(*fd);
	return false;
}

void peer_serve(int sock, const struct verify_opts *o)
{
	struct server s = { .o = o };
	struct peer_msg m;

	while (command(sock, &m, &s.fd)) {
		m.text[0] = '\0';
		m.err = handlers[m.cmd](&s, &m);
		if (s.fd >= 0)
			close(s.fd);
		if (send(sock, &m, sizeof(m), MSG_NOSIGNAL) != sizeof(m) ||
		    m.cmd == PEER_CLOSE)
			break;
	}
	close(sock);
}
