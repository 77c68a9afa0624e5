// SPDX-License-Identifier: MIT OR GPL-2.0
/* Sockets of the kernel, or what a program takes for them: a thread a stream, which waits. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench.h"
#include "way.h"

struct conn {
	int fd;
};

static struct sockaddr_in peer;

static void *plain_begin(uint32_t conns)
{
	char host[64];
	const char *colon = strrchr(way_at.peer, ':');

	(void)conns;
	snprintf(host, sizeof(host), "%.*s", colon ? (int)(colon - way_at.peer) : 0, way_at.peer);
	peer.sin_family = AF_INET;
	if (!colon || inet_pton(AF_INET, host, &peer.sin_addr) != 1)
		bench_die(0, "%s is no IPv4 address and port", way_at.peer);
	peer.sin_port = htons((uint16_t)atoi(colon + 1));
	return &peer;
}

static void plain_end(void *user)
{
	(void)user;
}

static void *plain_connect(void *user)
{
	struct conn *c = malloc(sizeof(*c));
	const int on = 1;

	if (!c)
		bench_die(ENOMEM, "a connection");
	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (c->fd < 0)
		bench_die(errno, "socket");
	if (connect(c->fd, user, sizeof(peer)) < 0)
		bench_die(errno, "connect to %s", way_at.peer);
	(void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return c;
}

static void plain_send(void *conn, const void *bytes, uint32_t len)
{
	const struct conn *c = conn;
	const char *at = bytes;
	ssize_t n;

	for (; len; at += n, len -= (uint32_t)n) {
		n = send(c->fd, at, len, MSG_NOSIGNAL);
		if (n < 0)
			bench_die(errno, "send");
	}
}

static void plain_recv(void *conn, void *bytes, uint32_t len)
{
	const struct conn *c = conn;
	char *at = bytes;
	ssize_t n;

	for (; len; at += n, len -= (uint32_t)n) {
		n = recv(c->fd, at, len, 0);
		if (n <= 0)
			bench_die(n ? errno : EPIPE, "recv");
	}
}

static void plain_finish(void *conn)
{
	const struct conn *c = conn;
	char byte;
	ssize_t n = recv(c->fd, &byte, 1, 0);

	if (n)
		bench_die(n < 0 ? errno : EPROTO, "the end of a stream");
}

static void plain_trip(void *conn, void *bytes, uint32_t len)
{
	plain_send(conn, bytes, len);
	plain_recv(conn, bytes, len);
}

static void plain_close(void *conn)
{
	struct conn *c = conn;

	close(c->fd);
	free(c);
}

/* ---- Streams ---- */

struct stream {
	pthread_t thread;
	void *conn;
	uint64_t len;
	uint32_t number;
	piece_fn fn;
	void *ctx;
};

static void *push_one(void *stream)
{
	const struct stream *s = stream;
	unsigned char *bytes = calloc(1, way_at.piece);
	uint64_t off;
	uint32_t n;

	if (!bytes)
		bench_die(ENOMEM, "a buffer");
	for (off = 0; off < s->len; off += n) {
		n = s->len - off < way_at.piece ? (uint32_t)(s->len - off) : way_at.piece;
		if (s->fn)
			s->fn(s->ctx, bytes, n, s->number, off);
		plain_send(s->conn, bytes, n);
	}
	free(bytes);
	return NULL;
}

static void *pull_one(void *stream)
{
	const struct stream *s = stream;
	const struct conn *c = s->conn;
	unsigned char *bytes = malloc(way_at.piece);
	uint64_t off;
	ssize_t n;

	if (!bytes)
		bench_die(ENOMEM, "a buffer");
	for (off = 0; off < s->len; off += (uint64_t)n) {
		n = recv(c->fd, bytes, s->len - off < way_at.piece ? s->len - off : way_at.piece,
			 0);
		if (n <= 0)
			bench_die(n ? errno : EPIPE, "recv");
		if (s->fn)
			s->fn(s->ctx, bytes, (size_t)n, s->number, off);
	}
	free(bytes);
	return NULL;
}

static void streams(void *(*one)(void *), void **conns, uint32_t n, uint64_t len, piece_fn fn,
		    void *ctx)
{
	struct stream *s = calloc(n, sizeof(*s));
	uint32_t i;
	int err;

	if (!s)
		bench_die(ENOMEM, "streams");
	for (i = 0; i < n; i++) {
		s[i] = (struct stream){ .conn = conns[i], .len = len, .number = i, .fn = fn,
					.ctx = ctx };
		err = pthread_create(&s[i].thread, NULL, one, &s[i]);
		if (err)
			bench_die(err, "a thread");
	}
	for (i = 0; i < n; i++)
		pthread_join(s[i].thread, NULL);
	free(s);
}

static void plain_push(void *user, void **conns, uint32_t n, uint64_t len, piece_fn fn, void *ctx)
{
	(void)user;
	streams(push_one, conns, n, len, fn, ctx);
}

static void plain_pull(void *user, void **conns, uint32_t n, uint64_t len, piece_fn fn, void *ctx)
{
	(void)user;
	streams(pull_one, conns, n, len, fn, ctx);
}

const struct way plain_way = {
	.name = "plain", .begin = plain_begin, .end = plain_end, .connect = plain_connect,
	.send = plain_send, .recv = plain_recv, .finish = plain_finish,
	.trip = plain_trip, .close = plain_close, .push = plain_push,
	.pull = plain_pull,
};
