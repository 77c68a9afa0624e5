// SPDX-License-Identifier: MIT OR GPL-2.0
/* Sockets by requests: datagrams, options, many at once, and what others do wrong */
#include "socket_bed.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ringgate/rgate_session.h>

#include "socket_options.h"

#define STREAM	RGATE_SOCKET_STREAM
#define DGRAM	RGATE_SOCKET_DGRAM
#define NOW	RGATE_SOCKET_NOW
#define ALL	RGATE_SOCKET_ALL
#define ADDR	sizeof(struct rgate_socket_addr)
#define A	(&net_a)
#define B	(&net_b)

/* ---- Datagrams ---- */

static void datagrams(void **state)
{
	uint32_t a = net_socket(A, 4, DGRAM), b = net_socket(B, 4, DGRAM);
	struct rgate_socket_addr from;
	uint16_t port, mine;
	uint64_t r;

	(void)state;
	assert_int_equal(net_bind(A, a, 4, 0), 0);
	port = net_port(A, a);
	net_addr(B, 4, port);
	r = POST(A, RECVFROM, .handle = a, .a1 = NET_ADDR, .len = 100);
	memcpy(B->c.mem, "0123456789", 10);
	assert_int_equal(ASK(B, SENDTO, .handle = b, .a1 = NET_ADDR, .len = 10), 10);
	assert_int_equal(net_end(A, r), 10);
	assert_int_equal(net_value, 10);
	assert_memory_equal(A->c.mem, "0123456789", 10);
	mine = net_port(B, b);
	from = net_addr_get(A);
	assert_int_equal(from.port, mine);
	assert_int_equal(from.family, RGATE_SOCKET_INET);
	assert_memory_equal(from.addr, "\x7f\0\0\1", 4);
	/* one that does not fit is cut, and is gone; the value says how long it was */
	net_addr(B, 4, port);
	assert_int_equal(ASK(B, SENDTO, .handle = b, .a1 = NET_ADDR, .len = 10), 10);
	memset(A->c.mem, 'x', 8);
	assert_int_equal(ASK(A, RECV, .handle = a, .a0 = RGATE_SOCKET_PEEK, .len = 2), 2);
	assert_int_equal(ASK(A, RECV, .handle = a, .len = 3), 3);
	assert_int_equal(net_value, 10);
	assert_memory_equal(A->c.mem, "012xx", 5);
	assert_int_equal(ASK(A, RECV, .handle = a, .a0 = NOW, .len = 3), -EAGAIN);
	/* an empty one is one */
	assert_int_equal(ASK(B, SENDTO, .handle = b, .a1 = NET_ADDR), 0);
	assert_int_equal(ASK(A, RECVFROM, .handle = a, .a1 = NET_ADDR, .len = 3), 0);
	assert_int_equal(net_addr_get(A).port, mine);
	assert_int_equal(ASK(A, RECV, .handle = a, .a0 = ALL, .len = 3), -EINVAL);
	/* none is longer than the kernel has them */
	assert_int_equal(ASK(B, SENDTO, .handle = b, .a1 = NET_ADDR, .len = 70000), -EMSGSIZE);
	assert_int_equal(ASK(B, SEND, .handle = b, .len = 1), -EDESTADDRREQ);
}

/* Connected, it takes from its peer alone, and hears that nobody is there. */
static void connected_datagrams(void **state)
{
	uint32_t a = net_socket(A, 4, DGRAM), b = net_socket(B, 4, DGRAM);
	struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	uint16_t port, other;
	int fd = raw_udp(&port), fd2 = raw_udp(&other);
	char got[4];

	(void)state;
	assert_int_equal(net_connect(A, a, 4, port), 0);
	memcpy(A->c.mem, "one", 3);
	assert_int_equal(ASK(A, SEND, .handle = a, .len = 3), 3);
	assert_int_equal(recv(fd, got, sizeof(got), 0), 3);
	to.sin_port = htons(net_port(A, a));
	assert_int_equal(sendto(fd2, "two", 3, 0, (struct sockaddr *)&to, sizeof(to)), 3);
	assert_int_equal(sendto(fd, "six", 3, 0, (struct sockaddr *)&to, sizeof(to)), 3);
	assert_int_equal(ASK(A, RECV, .handle = a, .len = 8), 3);
	assert_memory_equal(A->c.mem, "six", 3);
	close(fd);
	close(fd2);
	assert_int_equal(net_connect(B, b, 4, port), 0);
	assert_int_equal(ASK(B, SEND, .handle = b, .len = 3), 3);
	assert_int_equal(ASK(B, RECV, .handle = b, .len = 8), -ECONNREFUSED);
}

/* ---- Options ---- */

static int option(uint32_t sock, bool set, uint32_t number, uint32_t len)
{
	return set ? ASK(A, SETOPT, .handle = sock, .a0 = number, .off = NET_ADDR, .len = len) :
	       ASK(A, GETOPT, .handle = sock, .a0 = number, .off = NET_ADDR, .len = len);
}

static int of_int(uint32_t sock, uint32_t number)
{
	int32_t v;

	assert_int_equal(option(sock, false, number, sizeof(v)), (int)sizeof(v));
	memcpy(&v, A->c.mem + NET_ADDR, sizeof(v));
	return v;
}

static int set_int(uint32_t sock, uint32_t number, int32_t v)
{
	memcpy(A->c.mem + NET_ADDR, &v, sizeof(v));
	return option(sock, true, number, sizeof(v));
}

/* Every one of the table can be read, and set to what was read; with the kernel's own meaning. */
static void options(void **state)
{
	uint32_t tcp = net_socket(A, 6, STREAM);
	const struct socket_option *o;
	unsigned int i;
	int n;

	(void)state;
	for (i = 0; (o = socket_option_at(i)); i++) {
		assert_ptr_equal(socket_option(o->number), o);
		n = option(tcp, false, o->number, o->size);
		assert_true(n > 0);
		assert_true((uint32_t)n == o->size || o->how & (OPTION_TEXT | OPTION_PART));
		if (!(o->how & OPTION_SET))
			assert_int_equal(option(tcp, true, o->number, o->size), -ENOPROTOOPT);
		else if (o->number != RGATE_SOCKET_TCP_MAXSEG)
			assert_int_equal(option(tcp, true, o->number, (uint32_t)n), 0);
		if (!(o->how & (OPTION_TEXT | OPTION_PART))) {
			assert_int_equal(option(tcp, false, o->number, o->size - 1), -EINVAL);
			assert_int_equal(option(tcp, false, o->number, o->size + 1), -EINVAL);
		}
		assert_int_equal(option(tcp, false, o->number, 0), -EINVAL);
		assert_int_equal(option(tcp, false, o->number, 257), -EINVAL);
	}
	assert_int_equal(of_int(tcp, RGATE_SOCKET_DOMAIN), AF_INET6);
	assert_int_equal(of_int(tcp, RGATE_SOCKET_TYPE), SOCK_STREAM);
	assert_int_equal(of_int(tcp, RGATE_SOCKET_TCP_NODELAY), 0);
	assert_int_equal(set_int(tcp, RGATE_SOCKET_TCP_NODELAY, 1), 0);
	assert_int_equal(of_int(tcp, RGATE_SOCKET_TCP_NODELAY), 1);
	assert_int_equal(set_int(tcp, RGATE_SOCKET_TCP_USER_TIMEOUT, 5000), 0);
	assert_int_equal(of_int(tcp, RGATE_SOCKET_TCP_USER_TIMEOUT), 5000);
	assert_int_equal(set_int(tcp, RGATE_SOCKET_TCP_USER_TIMEOUT, -1), -EINVAL);
	for (i = 0; i < 300; i++)
		if (!socket_option(i))
			assert_int_equal(option(tcp, true, i, 4), -ENOPROTOOPT);
	assert_int_equal(ASK(A, SETOPT, .handle = tcp, .a0 = 1ULL << 32 | RGATE_SOCKET_KEEPALIVE,
			     .off = NET_ADDR, .len = 4), -ENOPROTOOPT);
}

/* Of congestion controls those that are there: none is loaded by a name that a client made up. */
static void congestion(void **state)
{
	uint32_t tcp = net_socket(A, 4, STREAM), udp = net_socket(A, 4, DGRAM);
	char *mem = (char *)A->c.mem + NET_ADDR;
	int n;

	(void)state;
	n = option(tcp, false, RGATE_SOCKET_TCP_CONGESTION, 16);
	assert_true(n > 0);
	assert_int_equal(option(tcp, true, RGATE_SOCKET_TCP_CONGESTION, (uint32_t)n), 0);
	strcpy(mem, "no such");
	assert_int_equal(option(tcp, true, RGATE_SOCKET_TCP_CONGESTION, 7), -ENOENT);
	memset(mem, 0, 16);
	assert_int_equal(option(tcp, true, RGATE_SOCKET_TCP_CONGESTION, 16), -ENOENT);
	assert_int_equal(option(tcp, true, RGATE_SOCKET_TCP_CONGESTION, 17), -EINVAL);
	assert_int_equal(set_int(udp, RGATE_SOCKET_TCP_NODELAY, 1), -ENOPROTOOPT);
	assert_int_equal(set_int(tcp, RGATE_SOCKET_IPV6_V6ONLY, 1), -ENOPROTOOPT);
}

/* ---- Readiness ---- */

static void polls(void **state)
{
	const uint32_t in = RGATE_SOCKET_IN, out = RGATE_SOCKET_OUT;
	uint64_t p, q;
	uint32_t s;
	int fd;

	(void)state;
	s = net_pair(A, &fd);
	assert_int_equal(ASK(A, POLL, .handle = s, .a0 = in | out), 0);
	assert_int_equal(net_value, out);
	assert_int_equal(ASK(A, POLL, .handle = s, .a0 = in, .a1 = NOW), -EAGAIN);
	assert_int_equal(ASK(A, POLL, .handle = s, .a0 = in, .deadline_us = 20000), -ETIMEDOUT);
	p = POST(A, POLL, .handle = s, .a0 = in);
	q = POST(A, POLL, .handle = s, .a0 = RGATE_SOCKET_RDHUP);
	raw_write(fd, "x", 1);
	assert_int_equal(net_end(A, p), 0);
	assert_int_equal(net_value, in);
	assert_int_equal(net_end_in(A, q, 20), -ETIME);
	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	assert_int_equal(net_end(A, q), 0);
	assert_int_equal(net_value, RGATE_SOCKET_RDHUP);
	assert_int_equal(ASK(A, RECV, .handle = s, .a0 = NOW, .len = 2), 1);
	p = POST(A, POLL, .handle = s, .a0 = 0);
	assert_int_equal(net_end_in(A, p, 20), -ETIME);
	assert_int_equal(net_cancel(A, p), 0);
	assert_int_equal(net_end(A, p), -ECANCELED);
	p = POST(A, POLL, .handle = s, .a0 = 0);
	assert_int_equal(ASK(A, SHUTDOWN, .handle = s, .a0 = RGATE_SOCKET_SHUT_SEND), 0);
	assert_int_equal(net_end(A, p), 0);
	assert_int_equal(net_value, RGATE_SOCKET_HANGUP);
	close(fd);
}

/* ---- What a client does wrong ---- */

static void malformed(void **state)
{
	uint32_t s = net_socket(A, 4, STREAM), u = net_socket(A, 4, DGRAM), l;
	struct rgate_socket_addr a = { .family = 3 };
	uint16_t port;
	uint64_t acc;

	(void)state;
	assert_int_equal(ASK(A, OPEN, .a0 = RGATE_SOCKET_A0(1, STREAM)), -EAFNOSUPPORT);
	assert_int_equal(ASK(A, OPEN, .a0 = RGATE_SOCKET_A0(2, 3)), -EINVAL);
	assert_int_equal(ASK(A, OPEN, .a0 = RGATE_SOCKET_A0(2, 0x801)), -EINVAL);
	assert_int_equal(ASK(A, OPEN, .a0 = 1ULL << 40 | RGATE_SOCKET_A0(2, 1)), -EINVAL);
	/* handles: none, another session's, an old one */
	assert_int_equal(ASK(A, SEND, .handle = 0, .len = 1), -EBADF);
	assert_int_equal(ASK(B, SEND, .handle = s, .len = 1), -EBADF);
	assert_int_equal(net_close(B, s), -EBADF);
	l = net_socket(A, 4, STREAM);
	assert_int_equal(net_close(A, l), 0);
	assert_int_equal(net_close(A, l), -EBADF);
	assert_int_equal(ASK(A, RECV, .handle = l, .len = 1), -EBADF);
	/* addresses */
	assert_int_equal(ASK(A, BIND, .handle = s, .len = ADDR - 1), -EINVAL);
	assert_int_equal(ASK(A, BIND, .handle = s), -EINVAL);
	assert_int_equal(ASK(A, BIND, .handle = s, .off = NET_MEM - 31, .len = ADDR), -ERANGE);
	memcpy(A->c.mem + NET_ADDR, &a, sizeof(a));
	assert_int_equal(ASK(A, BIND, .handle = s, .off = NET_ADDR, .len = ADDR), -EAFNOSUPPORT);
	net_addr(A, 4, 0);
	A->c.mem[NET_ADDR + 12] = 1;
	assert_int_equal(ASK(A, BIND, .handle = s, .off = NET_ADDR, .len = ADDR), -EINVAL);
	net_addr(A, 4, 0);
	A->c.mem[NET_ADDR + 20] = 1;
	assert_int_equal(ASK(A, BIND, .handle = s, .off = NET_ADDR, .len = ADDR), -EINVAL);
	assert_int_equal(net_bind(A, s, 6, 0), -EAFNOSUPPORT);
	assert_int_equal(ASK(A, SENDTO, .handle = u, .a1 = NET_MEM - 8, .len = 1), -ERANGE);
	assert_int_equal(ASK(A, SENDTO, .handle = u, .a1 = UINT64_MAX, .len = 1), -ERANGE);
	assert_int_equal(ASK(A, RECVFROM, .handle = u, .a1 = NET_MEM, .len = 1), -ERANGE);
	net_addr(A, 4, 9);
	assert_int_equal(ASK(A, SENDTO, .handle = s, .a1 = NET_ADDR, .len = 1), -EOPNOTSUPP);
	/* flags, numbers */
	assert_int_equal(ASK(A, SEND, .handle = s, .a0 = 2, .len = 1), -EINVAL);
	assert_int_equal(ASK(A, RECV, .handle = s, .a0 = 8, .len = 1), -EINVAL);
	assert_int_equal(ASK(A, RECV, .handle = s, .a0 = 6, .len = 1), -EINVAL);
	assert_int_equal(ASK(A, SHUTDOWN, .handle = s, .a0 = 0), -EINVAL);
	assert_int_equal(ASK(A, SHUTDOWN, .handle = s, .a0 = 4), -EINVAL);
	assert_int_equal(ASK(A, POLL, .handle = s, .a0 = 32), -EINVAL);
	assert_int_equal(ASK(A, POLL, .handle = s, .a1 = 2), -EINVAL);
	assert_int_equal(ASK(A, LISTEN, .handle = s, .a0 = 1ULL << 31), -EINVAL);
	/* calls that do not fit */
	assert_int_equal(ASK(A, LISTEN, .handle = u, .a0 = 1), -EOPNOTSUPP);
	assert_int_equal(ASK(A, ACCEPT, .handle = s), -EINVAL);
	assert_int_equal(ASK(A, ACCEPT, .handle = u), -EOPNOTSUPP);
	assert_int_equal(ASK(A, ACCEPT, .handle = s, .len = 8), -EINVAL);
	assert_int_equal(ASK(A, RECV, .handle = s, .len = 1), -ENOTCONN);
	assert_int_equal(ASK(A, SHUTDOWN, .handle = s, .a0 = 1), -ENOTCONN);
	assert_int_equal(ASK(A, PEER, .handle = s, .off = NET_ADDR, .len = ADDR), -ENOTCONN);
	/* the handle of who has not come yet can be guessed, and is of no use */
	l = net_listen(A, 4, &port);
	acc = POST(A, ACCEPT, .handle = l);
	assert_int_equal(net_end_in(A, acc, 20), -ETIME);
	for (s = 0; s < 16; s++)
		assert_int_not_equal(ASK(A, SEND, .handle = 1U << 16 | s, .a0 = 0), 1);
	assert_int_equal(net_close(A, l), 0);
	assert_int_equal(net_end(A, acc), -ECANCELED);
}

static volatile bool scribbling;

static void *scribble(void *arg)
{
	unsigned char *mem = arg;
	uint64_t seed = 9;

	while (scribbling)
		__atomic_store_n(&mem[unit_random(&seed) % 65536], (unsigned char)seed,
				 __ATOMIC_RELAXED);
	return NULL;
}

/* A client that writes where its requests point to meanwhile harms itself alone. */
static void changed_meanwhile(void **state)
{
	unsigned char *got = malloc(65536);
	unsigned int i;
	uint16_t port;
	uint32_t s, u;
	pthread_t t;
	int fd, n;

	(void)state;
	unit_not_for_tsan("the test races on purpose");
	assert_non_null(got);
	s = net_pair(A, &fd);
	u = net_socket(A, 4, DGRAM);
	assert_int_equal(net_bind(A, u, 4, 0), 0);
	port = net_port(A, u);
	scribbling = true;
	assert_int_equal(pthread_create(&t, NULL, scribble, A->c.mem), 0);
	for (i = 0; i < unit_rounds(200); i++) {
		assert_int_equal(ASK(A, SEND, .handle = s, .len = 65536), 65536);
		assert_int_equal(raw_read(fd, got, 65536), 65536);
		/* options, and addresses that change under its hands */
		n = ASK(A, SETOPT, .handle = s, .a0 = RGATE_SOCKET_LINGER, .off = i, .len = 8);
		assert_true(n == 0 || n == -EINVAL);
		n = ASK(A, SENDTO, .handle = u, .a1 = i, .off = 0, .len = 8);
		assert_true(n == 8 || n < 0);
	}
	scribbling = false;
	pthread_join(t, NULL);
	assert_int_equal(net_port(A, u), port);
	close(fd);
	free(got);
}

/* ---- Many ---- */

/* What is sent through 500 connections arrives in each, and nothing is left of them. */
static void a_thousand(void **state)
{
	enum { N = 500 };
	uint32_t l, near[N], far[N];
	unsigned int i, before;
	uint64_t r[N], acc[N];
	uint16_t port;

	(void)state;
	l = net_listen(A, 4, &port);
	before = net_fds();
	for (i = 0; i < N; i++)
		acc[i] = POST(A, ACCEPT, .handle = l);
	for (i = 0; i < N; i++) {
		near[i] = net_socket(B, 4, STREAM);
		assert_int_equal(net_connect(B, near[i], 4, port), 0);
	}
	for (i = 0; i < N; i++) {
		assert_int_equal(net_end(A, acc[i]), 0);
		far[i] = (uint32_t)net_value;
		r[i] = POST(A, RECV, .handle = far[i], .a0 = ALL, .off = (uint64_t)i * 8, .len = 8);
	}
	for (i = 0; i < N; i++) {
		memcpy(B->c.mem + (uint64_t)i * 8, &(uint64_t){ 1000 + i }, 8);
		assert_int_equal(ASK(B, SEND, .handle = near[i], .off = (uint64_t)i * 8, .len = 8),
				 8);
	}
	for (i = 0; i < N; i++) {
		assert_int_equal(net_end(A, r[i]), 8);
		assert_int_equal(((uint64_t *)A->c.mem)[i], 1000 + i);
	}
	for (i = 0; i < N; i++) {
		assert_int_equal(net_close(A, far[i]), 0);
		assert_int_equal(ASK(B, RECV, .handle = near[i], .len = 1), 0);
		assert_int_equal(net_close(B, near[i]), 0);
	}
	assert_int_equal(net_fds(), before);
}

/* One that sends all the time, and one that asks and answers: the latter has its turns. */
static void fairness(void **state)
{
	enum { BULK = 1U << 20 };
	uint32_t bulk, bulk_far, ping, l;
	uint64_t s, r, t, most = 0;
	unsigned int i, moved = 0;
	uint16_t port;
	char byte = 0;
	int fd;

	(void)state;
	l = net_listen(A, 4, &port);
	bulk = net_socket(A, 4, STREAM);
	assert_int_equal(net_connect(A, bulk, 4, port), 0);
	bulk_far = net_accept(A, l);
	ping = net_pair(B, &fd);
	s = POST(A, SEND, .handle = bulk, .len = BULK);
	r = POST(A, RECV, .handle = bulk_far, .off = BULK, .len = BULK);
	for (i = 0; i < 300; i++) {
		t = unit_now_ns();
		assert_int_equal(ASK(B, SEND, .handle = ping, .len = 1), 1);
		assert_int_equal(raw_read(fd, &byte, 1), 1);
		raw_write(fd, &byte, 1);
		assert_int_equal(ASK(B, RECV, .handle = ping, .len = 1), 1);
		t = unit_now_ns() - t;
		most = t > most ? t : most;
		if (net_end_in(A, s, 0) != -ETIME)
			s = POST(A, SEND, .handle = bulk, .len = BULK);
		if (net_end_in(A, r, 0) != -ETIME) {
			moved++;
			r = POST(A, RECV, .handle = bulk_far, .off = BULK, .len = BULK);
		}
	}
	assert_true(moved > 10);
	assert_true(most < 2000000000ULL);
	close(fd);
}

/* A session that ends with all of its windows full ends at once, and others go on. */
static void session_ends(void **state)
{
	static struct net_client c;
	struct socket_stats st = { .sz = sizeof(st) };
	uint32_t s[8], mine, i;
	char *sink = malloc(NET_MEM);
	int fd[8], other;
	uint64_t t;

	(void)state;
	assert_non_null(sink);
	net_join(&c, 3);
	mine = net_pair(A, &other);
	for (i = 0; i < 8; i++) {
		s[i] = net_pair(&c, &fd[i]);
		(void)POST(&c, SEND, .handle = s[i], .len = NET_MEM);
		(void)POST(&c, SEND, .handle = s[i], .len = NET_MEM);
		(void)POST(&c, RECV, .handle = s[i], .len = 64);
	}
	(void)POST(&c, CONNECT, .handle = net_socket(&c, 4, STREAM),
		   .off = net_addr(&c, 4, 1), .len = ADDR);
	usleep(50000);
	t = unit_now_ns();
	net_part(&c);
	assert_true(unit_now_ns() - t < 5000000000ULL * unit_patience());
	for (i = 0; i < 8; i++) {
		/* what was in the kernel's hands arrives, then comes the end */
		while (raw_read(fd[i], sink, NET_MEM) > 0)
			;
		close(fd[i]);
	}
	raw_write(other, "on", 2);
	assert_int_equal(ASK(A, RECV, .handle = mine, .a0 = ALL, .len = 2), 2);
	for (i = 0; i < 1000; i++) {
		assert_int_equal(socket_service_stats(net_sv, &st), 0);
		if (st.sockets == 1)
			break;
		usleep(1000);
	}
	assert_int_equal(st.sockets, 1);
	close(other);
	free(sink);
}

/* ---- Who looks after it ---- */

static void listed_and_killed(void **state)
{
	struct socket_info in[8];
	uint64_t recv, id;
	uint32_t s, u, l;
	uint16_t port;
	char byte;
	int fd;

	(void)state;
	s = net_pair(A, &fd);
	u = net_socket(B, 6, DGRAM);
	l = net_listen(B, 4, &port);
	assert_int_equal(ASK(A, SEND, .handle = s, .len = 100), 100);
	recv = POST(A, RECV, .handle = s, .len = 8);
	assert_int_equal(net_end_in(A, recv, 20), -ETIME);
	assert_int_equal(socket_service_list(net_sv, 0, in, 8), 3);
	id = in[0].id;
	assert_int_equal(in[0].uid, 1);
	assert_int_equal(in[0].sent, 100);
	assert_int_equal(in[0].under_way, 1);
	assert_int_equal(in[0].state, 1);
	assert_int_equal(in[0].local.family, RGATE_SOCKET_INET);
	assert_int_equal(in[0].peer.family, RGATE_SOCKET_INET);
	assert_int_equal(in[1].uid, 2);
	assert_int_equal(in[1].type, DGRAM);
	assert_int_equal(in[2].state, 10);
	assert_int_equal(in[2].local.port, port);
	assert_int_equal(socket_service_list(net_sv, in[1].id, in, 8), 1);
	assert_int_equal(socket_service_list(net_sv, in[0].id, in, 8), 0);
	assert_int_equal(socket_service_kill(net_sv, 999), -ENOENT);
	assert_int_equal(socket_service_kill(net_sv, id), 0);
	assert_int_equal(net_end(A, recv), -ECONNABORTED);
	assert_int_equal(raw_read(fd, A->c.mem, 100), 100);
	assert_int_equal(read(fd, &byte, 1), -1);
	assert_int_equal(errno, ECONNRESET);
	assert_int_equal(ASK(A, SEND, .handle = s, .len = 1), -ECONNABORTED);
	assert_int_equal(socket_service_kill(net_sv, id), -ENOENT);
	assert_int_equal(net_close(A, s), 0);
	assert_int_equal(net_close(B, u), 0);
	assert_int_equal(net_close(B, l), 0);
	close(fd);
}

/* ---- In a process without a daemon ---- */

static int ask(struct rgate_session *s, struct rgate_request q, uint64_t *value)
{
	struct rgate_completion c;

	assert_int_equal(rgate_session_submit(s, &q), 0);
	assert_int_equal(rgate_session_wait(s, 20000), 1);
	assert_int_equal(rgate_session_poll(s, &c, 1), 1);
	if (value)
		*value = c.value;
	return c.result;
}

/* A child that was forked keeps no connection open, nor does closing leave events behind. */
static void forked(void **state)
{
	const struct rgate_session_opts o = RGATE_OPTS(rgate_session_opts, .memory = 4096,
						       .where = RGATE_SESSION_PROCESS);
	struct rgate_socket_addr a = { .family = RGATE_SOCKET_INET, .addr = { 127, 0, 0, 1 } };
	struct rgate_session *s;
	struct rgate_request q;
	int l, fd, pid, status;
	uint64_t sock;
	char byte;

	(void)state;
	unit_not_for_tsan(UNIT_TSAN_CHILD);
	l = raw_listen(4, &a.port);
	assert_int_equal(rgate_session_open(&s, &o), 0);
	q = (struct rgate_request){ .op = RGATE_REQ_SOCKET_OPEN, .a0 = RGATE_SOCKET_A0(2, STREAM) };
	assert_int_equal(ask(s, q, &sock), 0);
	memcpy(rgate_session_memory(s, NULL), &a, sizeof(a));
	q = (struct rgate_request){ .op = RGATE_REQ_SOCKET_CONNECT, .len = sizeof(a) };
	q.handle = (uint32_t)sock;
	assert_int_equal(ask(s, q, NULL), 0);
	fd = raw_accept(l);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		close(fd);
		for (;;)
			pause();
	}
	q = (struct rgate_request){ .op = RGATE_REQ_SOCKET_CLOSE, .handle = (uint32_t)sock };
	assert_int_equal(ask(s, q, NULL), 0);
	assert_int_equal(read(fd, &byte, 1), 0);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	rgate_session_close(s);
	close(fd);
	close(l);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(datagrams, net_setup, net_teardown),
	cmocka_unit_test_setup_teardown(connected_datagrams, net_setup, net_teardown),
	cmocka_unit_test_setup_teardown(options, net_setup, net_teardown),
	cmocka_unit_test_setup_teardown(congestion, net_setup, net_teardown),
	cmocka_unit_test_setup_teardown(polls, net_setup, net_teardown),
	cmocka_unit_test_setup_teardown(malformed, net_setup, net_teardown),
	cmocka_unit_test_setup_teardown(changed_meanwhile, net_setup, net_teardown),
	cmocka_unit_test_setup_teardown(a_thousand, net_setup, net_teardown),
	cmocka_unit_test_setup_teardown(fairness, net_setup, net_teardown),
	cmocka_unit_test_setup_teardown(session_ends, net_setup, net_teardown),
	cmocka_unit_test_setup_teardown(listed_and_killed, net_setup, net_teardown),
	cmocka_unit_test(forked),
};

UNIT_MAIN(tests)
