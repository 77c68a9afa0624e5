// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * A client says one thing, its hello, and has until HELLO_NS for that; then it has a session
 * until its end of the socket is closed. Anything else that comes ends it.
 *
 * No client can make the thread wait. Those that have said nothing yet are few: each user has
 * HELLO_USER of them, and when one more comes the oldest of them goes.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hurry.h"
#include "requests_clients.h"
#include "util.h"

#define HELLO_NS	(10 * NSEC)
#define HELLO_USER	16	/* connections of a user that have not said hello, */
#define HELLO_ALL	256	/* and of all users */
#define ANYBODY		((uid_t)-1)	/* which is nobody's number */

/* What every client sends, whatever its version */
#define HELLO_LEAST	offsetof(struct rgate_hello, reserved)

/* What the user of @of may: what it may, and any other of his processes with a session */
static void limits_of(struct requests *rq, const struct request_client *of,
		      struct rgate_limits *limits)
{
	struct request_rights r = of->rights;
	const struct request_client *c;

	for (c = rq->clients; c < rq->clients + rq->nclients; c++)
		if (c->seat && c->uid == of->uid)
			request_rights_add(&r, &c->rights);
	request_rights_limits(&r, limits);
}

/* A process has left, and what only it might: the others go on without. */
static void limit_others(struct requests *rq, uid_t uid)
{
	const struct request_client *c;
	struct rgate_limits limits;

	for (c = rq->clients; c < rq->clients + rq->nclients; c++) {
		if (!c->seat || c->uid != uid)
			continue;
		limits_of(rq, c, &limits);
		(void)rgate_engine_limits(rq->engine, uid, &limits);
		return;
	}
}

void clients_drop(struct requests *rq, struct request_client *c)
{
	const struct request_client was = *c;

	*c = (struct request_client){ .sock = -1 };
	if (was.seat) {
		rgate_seat_remove(was.seat);
		limit_others(rq, was.uid);
	}
	hurry_close(was.sock);
}

/* Who it was that connected, whatever became of the process since */
static int who_is(struct requests *rq, struct request_client *c)
{
	gid_t groups[REQUESTS_GROUPS + 1];
	socklen_t len = sizeof(struct ucred);
	struct ucred cred;
	unsigned int n;

	if (getsockopt(c->sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return -errno;
	len = REQUESTS_GROUPS * sizeof(gid_t);
	/* Of a process with more groups only its own one counts. */
	if (getsockopt(c->sock, SOL_SOCKET, SO_PEERGROUPS, groups, &len) < 0)
		len = 0;
	n = (unsigned int)(len / sizeof(gid_t));
	groups[n] = cred.gid;
	c->uid = cred.uid;
	c->rights = request_policy_rights(rq->policy, cred.uid, groups, n + 1);
	return 0;
}

/* The connection of @uid, or of anybody, that waits longest for a hello; @n: of how many */
static struct request_client *oldest(struct requests *rq, uid_t uid, unsigned int *n)
{
	struct request_client *c, *best = NULL;

	*n = 0;
	for (c = rq->clients; c < rq->clients + rq->nclients; c++) {
		if (c->sock < 0 || !c->until || (uid != ANYBODY && c->uid != uid))
			continue;
		(*n)++;
		if (!best || c->until < best->until)
			best = c;
	}
	return best;
}

static void make_room(struct requests *rq, uid_t uid)
{
	struct request_client *c;
	unsigned int n;

	c = oldest(rq, uid, &n);
	if (n < HELLO_USER) {
		c = oldest(rq, ANYBODY, &n);
		if (n < HELLO_ALL)
			return;
	}
	rq->stats.silent++;
	clients_drop(rq, c);
}

static struct request_client *free_place(struct requests *rq)
{
	unsigned int i;

	for (i = 0; i < rq->nclients; i++)
		if (rq->clients[i].sock < 0)
			return &rq->clients[i];
	return rq->nclients < CLIENTS_MAX ? &rq->clients[rq->nclients++] : NULL;
}

/* The answer of who gets no session; a client that does not take it misses it. */
static void refuse(struct request_client *c, int err)
{
	const struct rgate_welcome w = {
		.magic = RGATE_WELCOME_MAGIC, .version = RGATE_REQ_VERSION,
		.version_min = RGATE_REQ_VERSION, .error = err,
	};

	(void)rgate_wire_send(c->sock, &w, sizeof(w), NULL, 0, MSG_DONTWAIT);
}

int clients_accept(struct requests *rq)
{
	struct request_client n = { .until = util_now() + HELLO_NS }, *c;

	n.sock = accept4(rq->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (n.sock < 0)
		return errno == EAGAIN || errno == EINTR || errno == ECONNABORTED ? 0 : -errno;
	if (who_is(rq, &n))
		goto close_sock;
	make_room(rq, n.uid);
	c = free_place(rq);
	if (!c) {
		rq->stats.failed++;
		refuse(&n, -EMFILE);
		goto close_sock;
	}
	*c = n;
	if (events_add(&rq->ev, c->sock, EPOLLIN, (uint64_t)(c - rq->clients)))
		clients_drop(rq, c);
	return 0;

close_sock:
	hurry_close(n.sock);
	return 0;
}

static void close_fds(const int *fds, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static int give_seat(struct requests *rq, struct request_client *c, const struct rgate_hello *h)
{
	struct rgate_seat_opts o = {
		.sz = sizeof(o), .uid = c->uid, .requests = h->requests,
		.completions = h->completions, .memory = h->memory, .mem_fd = -1,
	};
	struct rgate_welcome w = { 0 };
	struct rgate_limits limits;
	int fds[RGATE_FDS], err;

	limits_of(rq, c, &limits);
	o.limits = &limits;
	err = rgate_seat_add(rq->engine, &o, &c->seat, &w, fds);
	if (err)
		return err;
	w.magic = RGATE_WELCOME_MAGIC;
	w.version = RGATE_REQ_VERSION;
	w.version_min = RGATE_REQ_VERSION;
	c->until = 0;
	err = rgate_wire_send(c->sock, &w, sizeof(w), fds,
			      fds[RGATE_FD_MEMORY] >= 0 ? RGATE_FDS : RGATE_FD_MEMORY,
			      MSG_DONTWAIT);
	close_fds(fds, RGATE_FDS);
	return err;
}

/* 0; or why there is no session */
static int on_hello(struct requests *rq, struct request_client *c, const struct rgate_hello *h)
{
	int err;

	if (h->version_min > RGATE_REQ_VERSION || h->version_max < RGATE_REQ_VERSION)
		return -EPROTONOSUPPORT;
	if (!c->rights.services) {
		rq->stats.denied++;
		return -EACCES;
	}
	err = give_seat(rq, c, h);
	if (err)
		rq->stats.failed++;
	else
		rq->stats.opened++;
	return err;
}

static int receive(struct request_client *c, void *msg, size_t len)
{
	struct hurry hurry;
	int n;

	hurry_begin(&hurry);
	n = rgate_wire_recv(c->sock, msg, len, NULL, NULL, MSG_DONTWAIT);
	hurry_end(&hurry);
	return n;
}

static void read_hello(struct requests *rq, struct request_client *c)
{
	struct rgate_hello h;
	int n, err;

	n = receive(c, &h, sizeof(h));
	if (n == -EAGAIN || n == -EINTR)
		return;
	if (n < (int)HELLO_LEAST || h.magic != RGATE_HELLO_MAGIC) {
		rq->stats.malformed += n != -EPIPE;
		clients_drop(rq, c);
		return;
	}
	err = on_hello(rq, c, &h);
	if (!err)
		return;
	if (!c->seat)
		refuse(c, err);
	clients_drop(rq, c);
}

void clients_read(struct requests *rq, struct request_client *c)
{
	char byte;
	int n;

	if (!c->seat) {
		read_hello(rq, c);
		return;
	}
	n = receive(c, &byte, sizeof(byte));
	if (n == -EAGAIN || n == -EINTR)
		return;
	rq->stats.malformed += n > 0 || n == -EPROTO;
	clients_drop(rq, c);
}

int clients_expire(struct requests *rq)
{
	const uint64_t now = util_now();
	struct request_client *c;
	unsigned int n;

	while ((c = oldest(rq, ANYBODY, &n)) && c->until <= now) {
		rq->stats.silent++;
		clients_drop(rq, c);
	}
	return c ? (int)((c->until - now) / 1000000) + 1 : -1;
}

void clients_review(struct requests *rq)
{
	struct request_client *c;
	struct rgate_limits limits;

	for (c = rq->clients; c < rq->clients + rq->nclients; c++) {
		if (c->sock < 0 || (!who_is(rq, c) && c->rights.services) || !c->seat)
			continue;
		rq->stats.removed++;
		clients_drop(rq, c);
	}
	for (c = rq->clients; c < rq->clients + rq->nclients; c++) {
		if (!c->seat)
			continue;
		limits_of(rq, c, &limits);
		(void)rgate_engine_limits(rq->engine, c->uid, &limits);
	}
}
