// SPDX-License-Identifier: MIT OR GPL-2.0
/* Sockets by requests: one thread, which has several requests of each stream under way. */
#include <errno.h>
#include <ringgate/rgate_socket.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "way.h"

#define AHEAD	4U	/* requests of a stream under way; at a gateway a session has 64 */
#define STREAMS	8U	/* with that many */

struct user {
	struct rgate_sockets *set;
	unsigned char *mem;		/* a piece for calls, then AHEAD for each stream */
	struct rgate_socket_addr peer;
};

struct conn {
	struct user *user;
	struct rgate_socket *s;
};

static void *ringgate_begin(uint32_t conns)
{
	const struct rgate_sockets_opts o = RGATE_OPTS(rgate_sockets_opts, .path = way_at.socket,
		.where = RGATE_SESSION_DAEMON, .requests = STREAMS * AHEAD,
		.memory = (1ULL + (conns > STREAMS ? 0 : conns) * AHEAD) * way_at.piece);
	struct user *u = calloc(1, sizeof(*u));
	int err;

	if (!u)
		bench_die(ENOMEM, "a set");
	err = rgate_socket_addr_parse(way_at.peer, &u->peer);
	if (err)
		bench_die(-err, "%s", way_at.peer);
	err = rgate_sockets_open(&u->set, &o);
	if (err)
		bench_die(-err, "rgate_sockets_open");
	u->mem = rgate_sockets_memory(u->set, NULL);
	return u;
}

static void ringgate_end(void *user)
{
	struct user *u = user;

	rgate_sockets_close(u->set);
	free(u);
}

static void *ringgate_connect(void *user)
{
	struct user *u = user;
	struct conn *c = malloc(sizeof(*c));
	const int on = 1;
	int err;

	if (!c)
		bench_die(ENOMEM, "a connection");
	c->user = u;
	err = rgate_socket_open(u->set, &c->s, u->peer.family, RGATE_SOCKET_STREAM);
	if (err)
		bench_die(-err, "rgate_socket_open");
	err = rgate_socket_connect(c->s, &u->peer);
	if (err)
		bench_die(-err, "rgate_socket_connect to %s", way_at.peer);
	(void)rgate_socket_setopt(c->s, RGATE_SOCKET_TCP_NODELAY, &on, sizeof(on));
	return c;
}

static void ringgate_send(void *conn, const void *bytes, uint32_t len)
{
	const struct conn *c = conn;
	int n;

	memcpy(c->user->mem, bytes, len);
	n = rgate_socket_send(c->s, c->user->mem, len, 0);
	if (n != (int)len)
		bench_die(n < 0 ? -n : EPIPE, "rgate_socket_send");
}

static void ringgate_recv(void *conn, void *bytes, uint32_t len)
{
	const struct conn *c = conn;
	int n = rgate_socket_recv(c->s, c->user->mem, len, RGATE_SOCKET_ALL);

	if (n != (int)len)
		bench_die(n < 0 ? -n : EPIPE, "rgate_socket_recv");
	memcpy(bytes, c->user->mem, len);
}

static void ringgate_finish(void *conn)
{
	const struct conn *c = conn;
	int n = rgate_socket_recv(c->s, c->user->mem, 1, 0);

	if (n)
		bench_die(n < 0 ? -n : EPROTO, "the end of a stream");
}

/* Both are asked for at once, and the receive alone is waited for. */
static void ringgate_trip(void *conn, void *bytes, uint32_t len)
{
	const struct conn *c = conn;
	const struct rgate_socket_io send = RGATE_OPTS(rgate_socket_io,
		.what = RGATE_SOCKET_DO_SEND, .buf = c->user->mem, .len = len);
	struct rgate_socket_end end = { .sz = sizeof(end) };
	int err, n;

	memcpy(c->user->mem, bytes, len);
	err = rgate_socket_begin(c->s, &send);
	if (err)
		bench_die(-err, "rgate_socket_begin");
	n = rgate_socket_recv(c->s, c->user->mem + len, len, RGATE_SOCKET_ALL);
	if (n != (int)len)
		bench_die(n < 0 ? -n : EPIPE, "rgate_socket_recv");
	memcpy(bytes, c->user->mem + len, len);
	if (rgate_sockets_next(c->user->set, &end, -1) != 1 || end.result != (int)len)
		bench_die(EPIPE, "a send");
}

static void ringgate_close(void *conn)
{
	struct conn *c = conn;

	(void)rgate_socket_close(c->s);
	free(c);
}

/* ---- Streams ---- */

struct stream {
	struct conn *conn;
	uint64_t begun, done, asked;	/* bytes; asked: begun, as if each receive were full */
	uint32_t under_way;
	uint32_t len[AHEAD];		/* of each piece */
};

struct job {
	struct user *user;
	struct stream stream[STREAMS];
	uint32_t n, what;
	uint64_t len;
	piece_fn fn;
	void *ctx;
};

static unsigned char *piece_of(const struct job *j, uint32_t stream, uint32_t i)
{
	return j->user->mem + (1 + (size_t)stream * AHEAD + i) * way_at.piece;
}

static void begin(struct job *j, uint32_t stream, uint32_t i)
{
	struct stream *s = &j->stream[stream];
	struct rgate_socket_io io = RGATE_OPTS(rgate_socket_io, .what = j->what,
		.buf = piece_of(j, stream, i), .cookie = (uint64_t)stream << 32 | i);
	int err;

	io.len = j->len - s->asked < way_at.piece ? (uint32_t)(j->len - s->asked) : way_at.piece;
	if (j->what == RGATE_SOCKET_DO_SEND && j->fn)
		j->fn(j->ctx, io.buf, io.len, stream, s->asked);
	err = rgate_socket_begin(s->conn->s, &io);
	if (err)
		bench_die(-err, "rgate_socket_begin");
	s->len[i] = io.len;
	s->asked += io.len;
	s->under_way++;
}

static void ended(struct job *j, const struct rgate_socket_end *end)
{
	const uint32_t stream = (uint32_t)(end->cookie >> 32), i = (uint32_t)end->cookie;
	struct stream *s = &j->stream[stream];

	if (end->result <= 0 || (j->what == RGATE_SOCKET_DO_SEND && end->result != (int)s->len[i]))
		bench_die(end->result < 0 ? -end->result : EPIPE, "a stream");
	if (j->what == RGATE_SOCKET_DO_RECV && j->fn)
		j->fn(j->ctx, piece_of(j, stream, i), (size_t)end->result, stream, s->done);
	s->under_way--;
	s->done += (uint32_t)end->result;
	s->asked -= s->len[i] - (uint32_t)end->result;
	if (s->asked < j->len)
		begin(j, stream, i);
}

static void run(struct user *u, uint32_t what, void **conns, uint32_t n, uint64_t len, piece_fn fn,
		void *ctx)
{
	struct job j = { .user = u, .n = n, .what = what, .len = len, .fn = fn, .ctx = ctx };
	struct rgate_socket_end end = { .sz = sizeof(end) };
	uint64_t left = n * len;
	uint32_t i, k;
	int err;

	if (n > STREAMS)
		bench_die(0, "at most %u streams", STREAMS);
	for (i = 0; i < n; i++) {
		j.stream[i].conn = conns[i];
		for (k = 0; k < AHEAD && j.stream[i].asked < len; k++)
			begin(&j, i, k);
	}
	while (left) {
		err = rgate_sockets_next(u->set, &end, -1);
		if (err != 1)
			bench_die(-err, "rgate_sockets_next");
		ended(&j, &end);
		left -= (uint32_t)end.result;
	}
}

static void ringgate_push(void *user, void **conns, uint32_t n, uint64_t len, piece_fn fn,
			  void *ctx)
{
	run(user, RGATE_SOCKET_DO_SEND, conns, n, len, fn, ctx);
}

static void ringgate_pull(void *user, void **conns, uint32_t n, uint64_t len, piece_fn fn,
			  void *ctx)
{
	run(user, RGATE_SOCKET_DO_RECV, conns, n, len, fn, ctx);
}

const struct way ringgate_way = {
	.name = "ringgate", .begin = ringgate_begin, .end = ringgate_end,
	.connect = ringgate_connect, .send = ringgate_send, .recv = ringgate_recv,
	.finish = ringgate_finish, .trip = ringgate_trip, .close = ringgate_close,
	.push = ringgate_push, .pull = ringgate_pull,
};
