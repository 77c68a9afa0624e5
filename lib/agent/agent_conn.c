// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "agent_priv.h"
#include "client_quiet.h"
#include "clock.h"

#define KNOWN_NS	60000000000ULL	/* names of a closed socket are known so long */
#define LOST_MOST	256U		/* sessions that are looked at for one which is not lost */
#define PORT_FIRST	32768U
#define PORT_LAST	60999U

struct conn *conn_make(struct agent_member *m, enum conn_state state, uint16_t family)
{
	struct conn *c = calloc(1, sizeof(*c));
	struct agent *a = m->agent;

	if (!c)
		return NULL;
	*c = (struct conn){
		.source.kind = SOURCE_CONN, .agent = a, .member = m, .id = ++a->last_id,
		.state = state, .family = family, .end = -1, .prog = -1,
		.local.family = family, .peer.family = family,
	};
	list_init(&c->want);
	list_init(&c->retry);
	list_init(&c->listens);
	list_init(&c->waiters);
	list_add_tail(&a->all, &c->link);
	index_add(&a->by_id, &c->by_id, c->id);
	a->nconns++;
	m->info.sockets++;
	return c;
}

struct conn *conn_find(struct agent *a, uint64_t id)
{
	struct link *const head = index_at(&a->by_id, id), *at;

	for (at = head->next; at != head; at = at->next) {
		struct conn *c = container_of(at, struct conn, by_id.link);

		if (c->id == id)
			return c;
	}
	return NULL;
}

static int open_socket(struct conn *c)
{
	int err = lane_get(c->agent, &c->lane);

	return err ? err : rgate_socket_open(c->lane->set, &c->socket, c->family,
					     c->state == CONN_DATAGRAM ? RGATE_SOCKET_DGRAM :
					     RGATE_SOCKET_STREAM);
}

int conn_open_socket(struct conn *c)
{
	unsigned int tries = LOST_MOST;
	int err;

	/* Its gateway was another one: another session gets sockets of the new one. */
	while ((err = open_socket(c)) == -ECONNRESET && --tries)
		lane_lose(c->lane);
	if (err) {
		c->lane = NULL;
		c->socket = NULL;
		return err;
	}
	c->lane->conns++;
	return 0;
}

static void put_buffers(struct conn *c)
{
	if (c->up_buf)
		lane_put_buffer(c->lane, c->up_buf);
	if (c->down_buf)
		lane_put_buffer(c->lane, c->down_buf);
	c->up_buf = c->down_buf = NULL;
}

static void set_armed(struct conn *c, bool on)
{
	const struct rgate_socket_linger linger = { .on = on };

	/* The program's own seconds would be waited for; the kernel goes on by itself. */
	if (c->armed != on)
		(void)socket_setopt_quiet(c->socket, RGATE_SOCKET_LINGER, &linger, sizeof(linger));
	c->armed = on;
}

void conn_arm(struct conn *c)
{
	set_armed(c, true);
}

/*
 * Somebody may ask for its port, or connect there, as soon as it is closed: what is asked of other
 * sockets, in this session or another one, may be carried out before a close that nobody waits for.
 */
static bool has_port_there(const struct conn *c)
{
	return c->state == CONN_LISTENS ||
	       (c->bound && !c->loop && (c->state == CONN_NEW || c->state == CONN_DATAGRAM));
}

void conn_close_socket(struct conn *c, bool reset)
{
	int err;

	if (!c->socket)
		return;
	if (reset || c->state == CONN_STREAM)
		set_armed(c, reset);
	/* A buffer is to be used again at once. */
	if (c->up_buf || c->down_buf || has_port_there(c))
		err = rgate_socket_close(c->socket);
	else
		err = socket_close_quiet(c->socket);
	/* -EAGAIN: its requests may have ends yet: then the session goes, with all that it has. */
	if (err == -EAGAIN)
		c->agent->failed = true;
	/* Who stands still was waited for no longer, and may fill them when he goes on. */
	if (err == -ETIMEDOUT)
		c->up_buf = c->down_buf = NULL;
	c->socket = NULL;
	list_del(&c->want);
	put_buffers(c);
	c->up_busy = c->down_busy = c->accepting = false;
	c->lane->conns--;
	c->lane = NULL;
}

void conn_close_end(struct conn *c)
{
	if (c->end >= 0)
		closer_put_end(c->agent, c->end, c->held ? 1 : c->filled);
	c->end = -1;
}

void conn_close_prog(struct conn *c)
{
	if (c->prog >= 0)
		closer_put(c->agent, c->prog);
	c->prog = -1;
}

void conn_answer_waiters(struct conn *c, int result)
{
	const struct agent_answer answer = { .result = result };

	while (!list_empty(&c->waiters))
		asker_answer(container_of(c->waiters.next, struct asker, link), &answer, -1);
}

/* NOLINTNEXTLINE(misc-no-recursion): what is parked has nothing parked */
static void release(struct conn *c)
{
	struct sockaddr_un un;

	if (c->parked) {
		conn_free(c->parked);
		c->parked = NULL;
	}
	conn_answer_waiters(c, -ECONNABORTED);
	/* A stream that did not come to its end has none that its peer could take for it. */
	conn_close_socket(c, c->state == CONN_STREAM && !c->up_over);
	conn_close_end(c);
	conn_close_prog(c);
	if (c->named) {
		agent_path(c->agent, c->id, &un);
		(void)unlink(un.sun_path);
		c->named = false;
	}
	renew_forget_options(c);
	free(c->up_left);
	free(c->down_left);
	c->up_left = c->down_left = NULL;
	list_del(&c->retry);
	list_del(&c->listens);
}

/* NOLINTNEXTLINE(misc-no-recursion): see release() */
void conn_free(struct conn *c)
{
	release(c);
	list_del(&c->link);
	index_del(&c->agent->by_id, &c->by_id);
	c->agent->nconns--;
	free(c);
}

void conn_gone(struct conn *c)
{
	const bool local = c->state == CONN_LOCAL;

	release(c);
	if (!local) {
		conn_free(c);
		return;
	}
	/* Who accepted it may ask who it was. */
	c->state = CONN_GONE;
	c->gone_ns = rgate_clock_now(CLOCK_MONOTONIC);
	list_del(&c->link);
	list_add_tail(&c->agent->dead, &c->link);
}

/* A datagram socket can connect to none of another kind; the kernel says which of the two it is. */
bool conn_is_closed(const struct conn *c)
{
	struct sockaddr_un un;

	if (!c->named || c->prog >= 0)
		return false;
	agent_path(c->agent, c->id, &un);
	return connect(c->agent->probe_fd, (struct sockaddr *)&un, sizeof(un)) < 0 &&
	       (errno == ECONNREFUSED || errno == ENOENT);
}

/* Those with an end of the agent's tell it by themselves. */
static bool is_silent(const struct conn *c)
{
	return c->state == CONN_NEW || c->state == CONN_LISTENS || c->state == CONN_FAILED ||
	       c->state == CONN_LOCAL || c->state == CONN_BROKEN;
}

void conns_reap(struct agent *a, const struct conn *but)
{
	const uint64_t now = rgate_clock_now(CLOCK_MONOTONIC);
	struct link *at, *next;

	closer_settle(a);
	for (at = a->all.next; at != &a->all; at = next) {
		struct conn *c = container_of(at, struct conn, link);

		next = at->next;
		if (c == but)
			continue;
		if (c->state == CONN_DATAGRAM) {
			datagram_reap(c);
			continue;
		}
		if (!is_silent(c) || !conn_is_closed(c))
			continue;
		/* The next one may be it. */
		if (c->parked)
			conn_free(c->parked);
		c->parked = NULL;
		next = at->next;
		conn_gone(c);
	}
	while (!list_empty(&a->dead)) {
		struct conn *c = container_of(a->dead.next, struct conn, link);

		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): what is freed has left its list */
		if (now - c->gone_ns < KNOWN_NS && a->nconns < a->conns_max)
			break;
		conn_free(c);
	}
	a->reaped_ns = now;
}

void conns_reap_at(struct agent *a, uint16_t port)
{
	struct link *at, *next;

	for (at = a->listeners.next; at != &a->listeners; at = next) {
		struct conn *c = container_of(at, struct conn, listens);

		next = at->next;
		if (c->local.port == port && conn_is_closed(c))
			conn_gone(c);
	}
}

void conns_finish_at(struct agent *a, uint16_t port)
{
	struct link *at, *next;

	for (at = a->all.next; at != &a->all; at = next) {
		struct conn *c = container_of(at, struct conn, link);

		next = at->next;
		if (c->state == CONN_DATAGRAM && c->local.port == port && conn_is_closed(c))
			datagram_finish(c);
	}
}

static bool has_port(const struct conn *c, enum conn_state as)
{
	if (as == CONN_DATAGRAM)
		return c->state == CONN_DATAGRAM && c->bound && !c->hup;
	return c->state == CONN_LISTENS || (as == CONN_NEW && c->state == CONN_NEW && c->bound);
}

struct conn *conn_at(struct agent *a, const struct rgate_socket_addr *addr, enum conn_state as)
{
	struct conn *any = NULL;
	struct link *at;

	for (at = a->all.next; at != &a->all; at = at->next) {
		struct conn *c = container_of(at, struct conn, link);

		if (!has_port(c, as) || c->local.port != addr->port)
			continue;
		if (agent_same_host(&c->local, addr))
			return c;
		/* :: is of both families, 0.0.0.0 of one. */
		if (agent_is_any(&c->local) &&
		    (c->family == RGATE_SOCKET_INET6 || agent_is_v4(addr)))
			any = c;
	}
	return any;
}

static uint16_t free_port(struct agent *a, uint32_t first, uint32_t last)
{
	uint32_t i, span = last - first + 1;
	struct link *at;

	for (i = 0; i < span; i++) {
		const uint16_t port = (uint16_t)(first + a->last_port++ % span);
		bool used = false;

		for (at = a->all.next; at != &a->all && !used; at = at->next)
			used = container_of(at, struct conn, link)->local.port == port;
		if (!used)
			return port;
	}
	return 0;
}

uint16_t conn_free_port(struct agent *a)
{
	return free_port(a, PORT_FIRST, PORT_LAST);
}

uint16_t conn_inner_port(struct agent *a)
{
	return free_port(a, PORT_LAST + 1, UINT16_MAX);
}

bool conn_has_inner(const struct agent *a, uint16_t port)
{
	const struct link *at;

	for (at = a->all.next; at != &a->all; at = at->next) {
		const struct conn *c = container_of(at, struct conn, link);

		if (c->inner && !c->hup && c->local.port == port)
			return true;
	}
	return false;
}

void conn_retry(struct conn *c)
{
	list_del(&c->retry);
	list_add_tail(&c->agent->retry, &c->retry);
}
