// SPDX-License-Identifier: MIT OR GPL-2.0
/* The library's sockets: calls that wait, and what is begun, over the engine of this process */
#include "socket_bed.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ringgate/rgate_socket.h>

#include "client_quiet.h"

#define INET	RGATE_SOCKET_INET
#define STREAM	RGATE_SOCKET_STREAM
#define DGRAM	RGATE_SOCKET_DGRAM
#define NOW	RGATE_SOCKET_NOW

static struct rgate_sockets *set;
static unsigned char *mem;
static size_t len;

static int up(void **state)
{
	const struct rgate_sockets_opts o = RGATE_OPTS(rgate_sockets_opts, .requests = 64,
		.where = RGATE_SESSION_PROCESS, .memory = 1U << 16);

	(void)state;
	assert_int_equal(rgate_sockets_open(&set, &o), 0);
	mem = rgate_sockets_memory(set, &len);
	assert_int_equal(len, 1U << 16);
	return 0;
}

static int down(void **state)
{
	(void)state;
	rgate_sockets_close(set);
	set = NULL;
	return 0;
}

static struct rgate_socket_addr loop_at(uint16_t port)
{
	return (struct rgate_socket_addr){ .family = INET, .port = port, .addr = { 127, 0, 0, 1 } };
}

static struct rgate_socket *listener(uint16_t *port)
{
	struct rgate_socket_addr a = loop_at(0);
	struct rgate_socket *s;

	assert_int_equal(rgate_socket_open(set, &s, INET, STREAM), 0);
	assert_int_equal(rgate_socket_bind(s, &a), 0);
	assert_int_equal(rgate_socket_listen(s, 16), 0);
	assert_int_equal(rgate_socket_name(s, &a), 0);
	*port = a.port;
	return s;
}

static struct rgate_socket *connected(uint16_t port)
{
	const struct rgate_socket_addr a = loop_at(port);
	struct rgate_socket *s;

	assert_int_equal(rgate_socket_open(set, &s, INET, STREAM), 0);
	assert_int_equal(rgate_socket_connect(s, &a), 0);
	return s;
}

static int begin(struct rgate_socket *s, struct rgate_socket_io io)
{
	io.sz = sizeof(io);
	return rgate_socket_begin(s, &io);
}

#define BEGIN(s, w, ...) \
	begin(s, (struct rgate_socket_io){ .what = RGATE_SOCKET_DO_##w, ##__VA_ARGS__ })

static struct rgate_socket_end next(int timeout_ms)
{
	struct rgate_socket_end end = { .sz = sizeof(end) };

	assert_int_equal(rgate_sockets_next(set, &end, timeout_ms), 1);
	return end;
}

static void waiting(void **state)
{
	struct rgate_socket_addr peer, mine;
	struct rgate_socket *l, *a, *b;
	int32_t one = 1, got = 0;
	uint16_t port;

	(void)state;
	l = listener(&port);
	a = connected(port);
	assert_int_equal(rgate_socket_accept(l, &b, &peer), 0);
	assert_int_equal(rgate_socket_name(a, &mine), 0);
	assert_int_equal(mine.port, peer.port);
	assert_int_equal(rgate_socket_peer(a, &peer), 0);
	assert_int_equal(peer.port, port);
	memcpy(mem, "hello", 5);
	assert_int_equal(rgate_socket_send(a, mem, 5, 0), 5);
	assert_int_equal(rgate_socket_recv(b, mem + 100, 50, 0), 5);
	assert_memory_equal(mem + 100, "hello", 5);
	assert_int_equal(rgate_socket_recv(b, mem, 50, NOW), -EAGAIN);
	assert_int_equal(rgate_socket_poll(b, RGATE_SOCKET_IN, 0), 0);
	assert_int_equal(rgate_socket_poll(b, RGATE_SOCKET_IN, 20), 0);
	assert_int_equal(rgate_socket_poll(b, RGATE_SOCKET_OUT, -1), RGATE_SOCKET_OUT);
	rgate_socket_timeout(b, 20);
	assert_int_equal(rgate_socket_recv(b, mem, 50, 0), -ETIMEDOUT);
	assert_int_equal(rgate_socket_setopt(a, RGATE_SOCKET_TCP_NODELAY, &one, sizeof(one)), 0);
	assert_int_equal(rgate_socket_getopt(a, RGATE_SOCKET_TCP_NODELAY, &got, sizeof(got)), 4);
	assert_int_equal(got, 1);
	assert_int_equal(rgate_socket_getopt(a, 99, &got, sizeof(got)), -ENOPROTOOPT);
	assert_int_equal(rgate_socket_getopt(a, 1, &got, 0), -EINVAL);
	assert_int_equal(rgate_socket_setopt(a, 1, &got, 300), -EINVAL);
	/* what is not the set's memory */
	assert_int_equal(rgate_socket_send(a, &one, sizeof(one), 0), -EFAULT);
	assert_int_equal(rgate_socket_send(a, mem + len - 1, 2, 0), -EFAULT);
	assert_int_equal(rgate_socket_send(a, mem - 1, 2, 0), -EFAULT);
	assert_int_equal(rgate_socket_send(a, mem, UINT32_MAX, 0), -EFAULT);
	assert_int_equal(rgate_socket_shutdown(a, RGATE_SOCKET_SHUT_SEND), 0);
	assert_int_equal(rgate_socket_recv(b, mem, 50, 0), 0);
	assert_int_equal(rgate_socket_close(b), 0);
	assert_int_equal(rgate_socket_close(a), 0);
	assert_int_equal(rgate_socket_close(l), 0);
	assert_int_equal(rgate_socket_close(NULL), 0);
}

static void datagrams(void **state)
{
	struct rgate_socket_addr a = loop_at(0), from;
	struct rgate_socket *x, *y;
	struct rgate_socket_end e;
	uint32_t full;

	(void)state;
	assert_int_equal(rgate_socket_open(set, &x, INET, DGRAM), 0);
	assert_int_equal(rgate_socket_open(set, &y, INET, DGRAM), 0);
	assert_int_equal(rgate_socket_bind(x, &a), 0);
	assert_int_equal(rgate_socket_name(x, &a), 0);
	memcpy(mem, "datagram", 8);
	assert_int_equal(rgate_socket_sendto(y, mem, 8, 0, &a), 8);
	assert_int_equal(rgate_socket_recvfrom(x, mem + 50, 4, 0, &from, &full), 4);
	assert_int_equal(full, 8);
	assert_int_equal(rgate_socket_name(y, &a), 0);
	assert_int_equal(from.port, a.port);
	assert_int_equal(BEGIN(x, RECV, .buf = mem, .len = 50, .cookie = 7), 0);
	assert_int_equal(rgate_socket_name(x, &a), 0);
	assert_int_equal(BEGIN(y, SEND, .buf = mem + 50, .len = 4, .addr = &a, .cookie = 8), 0);
	e = next(10000);
	assert_true(e.cookie == 7 || e.cookie == 8);
	if (e.cookie == 8)
		e = next(10000);
	assert_int_equal(e.result, 4);
	assert_int_equal(e.value, 4);
	assert_int_equal(e.addr.port, from.port);
	assert_ptr_equal(e.socket, x);
}

/* Connected to nobody it takes from everybody, as before it was; a stream stays what it is. */
static void disconnected(void **state)
{
	const struct rgate_socket_addr none = { .family = 0 };
	struct rgate_socket_addr a = loop_at(0), from;
	struct rgate_socket *x, *y, *z;
	uint16_t port;

	(void)state;
	assert_int_equal(rgate_socket_open(set, &x, INET, DGRAM), 0);
	assert_int_equal(rgate_socket_open(set, &y, INET, DGRAM), 0);
	assert_int_equal(rgate_socket_open(set, &z, INET, DGRAM), 0);
	assert_int_equal(rgate_socket_bind(x, &a), 0);
	assert_int_equal(rgate_socket_name(x, &a), 0);
	assert_int_equal(rgate_socket_bind(y, &(struct rgate_socket_addr){ .family = INET }), 0);
	assert_int_equal(rgate_socket_name(y, &from), 0);
	from = loop_at(from.port);
	assert_int_equal(rgate_socket_connect(x, &from), 0);
	assert_int_equal(rgate_socket_sendto(z, mem, 8, 0, &a), 8);
	assert_int_equal(rgate_socket_recv(x, mem, 50, NOW), -EAGAIN);
	assert_int_equal(rgate_socket_connect(x, &none), 0);
	assert_int_equal(rgate_socket_peer(x, &from), -ENOTCONN);
	/* A port that the kernel chose is gone with it. */
	assert_int_equal(rgate_socket_bind(x, &a), 0);
	assert_int_equal(rgate_socket_send(x, mem, 8, 0), -EDESTADDRREQ);
	assert_int_equal(rgate_socket_sendto(z, mem, 8, 0, &a), 8);
	assert_int_equal(rgate_socket_recv(x, mem, 50, 0), 8);
	assert_int_equal(rgate_socket_bind(y, &none), -EAFNOSUPPORT);
	x = listener(&port);
	y = connected(port);
	assert_int_equal(rgate_socket_connect(y, &none), -EAFNOSUPPORT);
	assert_int_equal(rgate_socket_peer(y, &from), 0);
}

/* What is begun and what is waited for go beside each other; no end is lost. */
static void both(void **state)
{
	struct rgate_socket_end e = { .sz = sizeof(e) };
	struct rgate_socket *l, *a, *b;
	uint16_t port;
	int i;

	(void)state;
	l = listener(&port);
	assert_int_equal(BEGIN(l, ACCEPT, .cookie = 1), 0);
	assert_int_equal(rgate_sockets_next(set, &e, 0), 0);
	assert_int_equal(rgate_sockets_next(set, &e, 20), 0);
	a = connected(port);
	e = next(10000);
	assert_int_equal(e.cookie, 1);
	assert_int_equal(e.what, RGATE_SOCKET_DO_ACCEPT);
	assert_ptr_equal(e.socket, l);
	b = e.accepted;
	assert_non_null(b);
	for (i = 0; i < 10; i++)
		assert_int_equal(BEGIN(b, RECV, .buf = mem + 100 * i, .len = 1,
				       .cookie = 10 + (uint64_t)i), 0);
	memcpy(mem + 5000, "0123456789", 10);
	assert_int_equal(rgate_socket_send(a, mem + 5000, 10, 0), 10);
	assert_int_equal(rgate_socket_poll(a, RGATE_SOCKET_OUT, -1), RGATE_SOCKET_OUT);
	for (i = 0; i < 10; i++) {
		e = next(10000);
		assert_int_equal(e.cookie, 10 + i);
		assert_int_equal(e.result, 1);
		assert_int_equal(mem[100 * i], '0' + i);
	}
	/* the descriptor, for loops of others */
	assert_int_equal(BEGIN(b, RECV, .buf = mem, .len = 9, .cookie = 30), 0);
	assert_int_equal(rgate_sockets_arm(set), 0);
	raw_write(raw_connect(port), "x", 1);
	assert_int_equal(rgate_socket_cancel(b, 31), 0);
	assert_int_equal(rgate_socket_cancel(b, 30), 1);
	e = next(10000);
	assert_int_equal(e.cookie, 30);
	assert_int_equal(e.result, -ECANCELED);
	/* of a socket that is closed nobody hears, also not who was accepted for it meanwhile */
	assert_int_equal(BEGIN(b, RECV, .buf = mem, .len = 9, .cookie = 40), 0);
	assert_int_equal(BEGIN(l, ACCEPT, .cookie = 41), 0);
	assert_int_equal(rgate_socket_close(b), 0);
	assert_int_equal(rgate_socket_close(l), 0);
	assert_int_equal(rgate_socket_recv(a, mem, 9, 0), 0);
	assert_int_equal(rgate_sockets_next(set, &e, 50), 0);
}

/* As much is under way as there are places, and then places come back. */
static void full(void **state)
{
	struct rgate_socket_end end = { .sz = sizeof(end) };
	struct rgate_socket *l, *a;
	uint16_t port;
	int i, n = 0, err;

	(void)state;
	l = listener(&port);
	a = connected(port);
	for (i = 0; i < 1000 && n < 64; i++) {
		err = BEGIN(a, RECV, .buf = mem, .len = 1, .cookie = 5);
		assert_true(!err || err == -EAGAIN);
		n += !err;
		if (err)
			usleep(1000);
	}
	assert_int_equal(n, 64);
	assert_int_equal(BEGIN(a, RECV, .buf = mem, .len = 1), -EAGAIN);
	assert_int_equal(rgate_socket_send(a, mem, 1, 0), -EAGAIN);
	/* It can be closed all the same, and then there is room again. */
	assert_int_equal(rgate_socket_close(a), 0);
	assert_int_equal(rgate_sockets_next(set, &end, 0), 0);
	for (i = 0; i < 3; i++) {
		a = connected(port);
		for (n = 0; n < 63 && !BEGIN(a, RECV, .buf = mem, .len = 1); n++)
			;
		assert_true(n > 16);
		assert_int_equal(rgate_socket_close(a), 0);
	}
	assert_int_equal(rgate_sockets_next(set, &end, 0), 0);
	assert_int_equal(rgate_socket_close(l), 0);
	rgate_sockets_close(set);
	assert_int_equal(up(NULL), 0);
	l = listener(&port);
	a = connected(port);
	for (i = 0; i < 40; i++)
		assert_int_equal(BEGIN(a, RECV, .buf = mem, .len = 1, .cookie = 5), 0);
	n = rgate_socket_cancel(a, 5);
	assert_true(n == -EAGAIN || n == 40);
	for (i = 0; n == 40 && i < 40; i++)
		assert_int_equal(next(10000).result, -ECANCELED);
}

static void malformed(void **state)
{
	struct rgate_sockets_opts o = RGATE_OPTS(rgate_sockets_opts, .memory = UINT64_MAX);
	struct rgate_socket_io io = { .sz = 4 };
	struct rgate_sockets *other;
	struct rgate_socket *s;

	(void)state;
	assert_int_equal(rgate_sockets_open(&other, &o), -EINVAL);
	o = RGATE_OPTS(rgate_sockets_opts, .where = RGATE_SESSION_DAEMON, .path = "/none/such");
	assert_int_equal(rgate_sockets_open(&other, &o), -ENOENT);
	assert_int_equal(rgate_socket_open(set, &s, 1, STREAM), -EAFNOSUPPORT);
	assert_int_equal(rgate_socket_open(set, &s, INET, 3), -EINVAL);
	assert_int_equal(rgate_socket_open(set, &s, 1U << 16 | INET, STREAM), -EINVAL);
	assert_int_equal(rgate_socket_open(set, &s, INET, STREAM), 0);
	assert_int_equal(rgate_socket_begin(s, &io), -EINVAL);
	assert_int_equal(begin(s, (struct rgate_socket_io){ .what = 0 }), -EINVAL);
	assert_int_equal(begin(s, (struct rgate_socket_io){ .what = 7 }), -EINVAL);
	assert_int_equal(BEGIN(s, CONNECT), -EINVAL);
	assert_int_equal(BEGIN(s, SEND, .buf = &io, .len = 1), -EFAULT);
}

static void addresses(void **state)
{
	static const char *const good[] = {
		"10.0.0.1:80", "0.0.0.0:0", "[::1]:65535", "[2001:db8::1]:443",
	};
	static const char *const bad[] = {
		"", ":", ":80", "10.0.0.1", "10.0.0.1:", "10.0.0.1:65536", "10.0.0.1:-1", "::1:80",
		"[::1]", "[::1:80", "::1]:80", "[]:80", "[10.0.0.1]:", "host:80", "10.0.0.1:8 0",
		"10.0.0.0/8:80", "10.0.0.1:99999999999999999999",
	};
	struct rgate_socket_addr a;
	char text[64];
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(good); i++) {
		assert_int_equal(rgate_socket_addr_parse(good[i], &a), 0);
		assert_string_equal(rgate_socket_addr_print(&a, text, sizeof(text)), good[i]);
	}
	for (i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(rgate_socket_addr_parse(bad[i], &a), -EINVAL);
}

static int resolve(uint64_t *value, struct rgate_socket_query q)
{
	q.sz = sizeof(q);
	q.buf = q.buf ? q.buf : mem;
	q.len = q.len ? q.len : 512;
	return rgate_sockets_resolve(set, &q, value);
}

#define RESOLVE(value, n, ...) \
	resolve(value, (struct rgate_socket_query){ .name = n, ##__VA_ARGS__ })

static void names(void **state)
{
	const struct rgate_socket_query q = RGATE_OPTS(rgate_socket_query, .name = "10.1.2.3",
		.service = "80", .type = STREAM, .buf = mem + 512, .len = 64, .cookie = 12);
	char too_long[300], text[64];
	struct rgate_socket_end end;
	struct rgate_socket_addr a;
	uint64_t value = 7;

	(void)state;
	assert_int_equal(RESOLVE(&value, "localhost", .family = INET, .service = "7"), 1);
	assert_int_equal(value, 1);
	memcpy(&a, mem, sizeof(a));
	assert_string_equal(rgate_socket_addr_print(&a, text, sizeof(text)), "127.0.0.1:7");
	assert_int_equal(RESOLVE(&value, "::1", .flags = RGATE_SOCKET_RESOLVE_CANON), 1);
	assert_int_equal(RGATE_SOCKET_CANON(value), 3);
	assert_string_equal((char *)mem + sizeof(a), "::1");
	assert_in_range(RESOLVE(&value, NULL, .service = "80", .type = DGRAM), 1, 2);
	memcpy(&a, mem, sizeof(a));
	assert_int_equal(a.port, 80);
	/* what cannot be */
	memset(too_long, 'a', sizeof(too_long));
	too_long[299] = '\0';
	assert_int_equal(RESOLVE(&value, too_long), -ENAMETOOLONG);
	assert_int_equal(RESOLVE(NULL, "a", .service = too_long), -ENAMETOOLONG);
	assert_int_equal(RESOLVE(NULL, "a b"), -EILSEQ);
	assert_int_equal(RESOLVE(NULL, "a\xc3\xa4"), -EILSEQ);
	assert_int_equal(RESOLVE(NULL, NULL), -EINVAL);
	assert_int_equal(RESOLVE(NULL, ""), -EINVAL);
	assert_int_equal(RESOLVE(NULL, "::1", .len = 31), -EINVAL);
	assert_int_equal(RESOLVE(NULL, "::1", .len = 2), -EINVAL);
	/* with just the room that its name takes */
	assert_int_equal(RESOLVE(NULL, "0000:0000:0000:0000:0000:0000:0000:0001", .len = 39,
				 .flags = RGATE_SOCKET_RESOLVE_NUMERIC), 1);
	assert_int_equal(RESOLVE(NULL, "0000:0000:0000:0000:0000:0000:0000:0001", .len = 38,
				 .flags = RGATE_SOCKET_RESOLVE_NUMERIC), -EINVAL);
	assert_int_equal(RESOLVE(NULL, "::1", .flags = 1U << 30), -EINVAL);
	assert_int_equal(RESOLVE(NULL, "::1", .family = 1U << 16), -EINVAL);
	assert_int_equal(RESOLVE(NULL, "::1", .buf = text), -EFAULT);
	assert_int_equal(RESOLVE(NULL, "::1", .buf = mem + len - 511), -EFAULT);
	assert_int_equal(RESOLVE(NULL, "localhost", .flags = RGATE_SOCKET_RESOLVE_NUMERIC),
			 -ENOENT);
	/* begun */
	assert_int_equal(rgate_sockets_resolve_begin(set, &q), 0);
	end = next(20000);
	assert_null(end.socket);
	assert_int_equal(end.cookie, 12);
	assert_int_equal(end.what, RGATE_SOCKET_DO_RESOLVE);
	assert_int_equal(end.result, 1);
	assert_int_equal(end.value, 1);
	memcpy(&a, mem + 512, sizeof(a));
	assert_string_equal(rgate_socket_addr_print(&a, text, sizeof(text)), "10.1.2.3:80");
	assert_int_equal(rgate_sockets_cancel(set, 12), 0);
	assert_int_equal(rgate_sockets_resolve_begin(set, &q), 0);
	assert_int_equal(rgate_sockets_cancel(set, 13), 0);
	assert_in_range(rgate_sockets_cancel(set, 12), 0, 1);
	end = next(20000);
	assert_true(end.result == 1 || end.result == -ECANCELED);
}

/* ---- Without waiting ---- */

static int outside(struct rgate_socket_addr *at)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t room = sizeof(in);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &room), 0);
	*at = loop_at(ntohs(in.sin_port));
	return fd;
}

static void quietly(void **state)
{
	struct rgate_socket_end end = { .sz = sizeof(end) };
	const int32_t one = 1;
	struct rgate_socket *l, *a, *b;
	int32_t got = 0;
	uint16_t port;
	int i;

	(void)state;
	l = listener(&port);
	a = connected(port);
	assert_int_equal(rgate_socket_accept(l, &b, NULL), 0);
	/* Behind it is what is asked later. */
	assert_int_equal(socket_setopt_quiet(a, RGATE_SOCKET_TCP_NODELAY, &one, sizeof(one)), 0);
	assert_int_equal(rgate_socket_getopt(a, RGATE_SOCKET_TCP_NODELAY, &got, sizeof(got)), 4);
	assert_int_equal(got, 1);
	/* However many */
	for (i = 0; i < 1000; i++) {
		const int32_t odd = i & 1;

		assert_int_equal(socket_setopt_quiet(a, RGATE_SOCKET_TCP_NODELAY, &odd,
						     sizeof(odd)), 0);
	}
	assert_int_equal(sockets_settle(set), 0);
	/* Nobody hears of it, nor of what it ends. */
	assert_int_equal(BEGIN(a, POLL, .events = RGATE_SOCKET_IN), 0);
	assert_int_equal(socket_close_quiet(a), 0);
	assert_int_equal(rgate_socket_recv(b, mem, 50, 0), 0);
	assert_int_equal(sockets_settle(set), 0);
	assert_int_equal(rgate_sockets_next(set, &end, 20), 0);
	assert_int_equal(rgate_socket_close(b), 0);
	/* As many are under way as can be. */
	a = connected(port);
	assert_int_equal(rgate_socket_accept(l, &b, NULL), 0);
	for (i = 0; i < 64; i++)
		while (BEGIN(a, POLL, .events = RGATE_SOCKET_IN) == -EAGAIN)
			usleep(1000);	/* the ring is full for a moment */
	assert_int_equal(socket_setopt_quiet(a, RGATE_SOCKET_TCP_NODELAY, &one, sizeof(one)),
			 -EAGAIN);
	assert_int_equal(socket_close_quiet(a), 0);
	assert_int_equal(rgate_socket_recv(b, mem, 50, 0), 0);
	assert_int_equal(rgate_sockets_next(set, &end, 0), 0);
}

/* The set ends behind what was asked for: else the end that it makes of a socket is a reset. */
static void settled(void **state)
{
	const struct rgate_socket_linger on = { .on = 1 }, off = { .on = 0 };
	struct rgate_socket_addr at;
	const int fd = outside(&at);
	struct rgate_socket *s;
	int peer, i;
	char byte;

	for (i = 0; i < 50; i++) {
		s = connected(at.port);
		peer = accept(fd, NULL, NULL);
		assert_true(peer >= 0);
		assert_int_equal(rgate_socket_setopt(s, RGATE_SOCKET_LINGER, &on, sizeof(on)), 0);
		assert_int_equal(socket_setopt_quiet(s, RGATE_SOCKET_LINGER, &off, sizeof(off)), 0);
		assert_int_equal(socket_close_quiet(s), 0);
		assert_int_equal(sockets_settle(set), 0);
		assert_int_equal(down(state), 0);
		assert_int_equal(read(peer, &byte, 1), 0);
		close(peer);
		assert_int_equal(up(state), 0);
	}
	close(fd);
}

/* In a child that was forked nothing works, and closing takes nothing from the parent. */
static void forked(void **state)
{
	struct rgate_socket *l, *a, *b, *c;
	int pid, status;
	uint16_t port;

	(void)state;
	unit_not_for_tsan(UNIT_TSAN_CHILD);
	l = listener(&port);
	a = connected(port);
	assert_int_equal(rgate_socket_accept(l, &b, NULL), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		unit_require(rgate_socket_open(set, &c, INET, STREAM) == -EOWNERDEAD);
		unit_require(rgate_socket_shutdown(a, 3) == -EOWNERDEAD);
		rgate_sockets_close(set);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	mem[0] = 'x';
	assert_int_equal(rgate_socket_send(a, mem, 1, 0), 1);
	assert_int_equal(rgate_socket_recv(b, mem, 1, 0), 1);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(waiting, up, down),
	cmocka_unit_test_setup_teardown(datagrams, up, down),
	cmocka_unit_test_setup_teardown(disconnected, up, down),
	cmocka_unit_test_setup_teardown(both, up, down),
	cmocka_unit_test_setup_teardown(full, up, down),
	cmocka_unit_test_setup_teardown(malformed, up, down),
	cmocka_unit_test(addresses),
	cmocka_unit_test_setup_teardown(names, up, down),
	cmocka_unit_test_setup_teardown(quietly, up, down),
	cmocka_unit_test_setup_teardown(settled, up, down),
	cmocka_unit_test_setup_teardown(forked, up, down),
};

UNIT_MAIN(tests)
