// SPDX-License-Identifier: MIT OR GPL-2.0
#include "socket_bed.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"

#define PATIENCE_MS	20000U

struct rgate_engine *net_eng;
struct socket_service *net_sv;
struct net_client net_a, net_b;
uint64_t net_value;
static unsigned int fds_before;

unsigned int net_fds(void)
{
	return unit_entries("/proc/self/fd");
}

static struct socket_policy *read_policy(const char *text)
{
	struct socket_policy *policy = NULL;
	char copy[4096];

	if (!text)
		return NULL;
	snprintf(copy, sizeof(copy), "%s", text);
	assert_int_equal(socket_policy_parse(&policy, "test", copy, strlen(copy)), 0);
	return policy;
}

void net_up(const char *policy, uint32_t most)
{
	const struct rgate_engine_opts eo = RGATE_OPTS(rgate_engine_opts);
	struct socket_opts o = RGATE_OPTS(socket_opts, .most = most);

	fds_before = net_fds();
	o.policy = read_policy(policy);
	assert_int_equal(rgate_engine_create(&net_eng, &eo), 0);
	assert_int_equal(socket_service_create(&net_sv, &o), 0);
	assert_int_equal(socket_service_add(net_sv, net_eng), 0);
	net_join(&net_a, 1);
	net_join(&net_b, 2);
}

void net_new_policy(const char *text)
{
	socket_service_policy(net_sv, read_policy(text));
}

/* The thread frees what the engine has dropped a moment later. */
static uint64_t sockets_left(void)
{
	const uint64_t until = unit_now_ns() + PATIENCE_MS * 1000000ULL;
	struct socket_stats st = { .sz = sizeof(st) };

	do {
		assert_int_equal(socket_service_stats(net_sv, &st), 0);
		if (!st.sockets)
			return 0;
		usleep(1000);
	} while (unit_now_ns() < until);
	return st.sockets;
}

void net_down(void)
{
	rgate_engine_destroy(net_eng);
	assert_int_equal(sockets_left(), 0);
	socket_service_destroy(net_sv);
	net_sv = NULL;
	client_close(&net_a.c);
	client_close(&net_b.c);
	assert_int_equal(net_fds(), fds_before);
}

void net_join(struct net_client *c, uid_t uid)
{
	const struct rgate_seat_opts o = RGATE_OPTS(rgate_seat_opts, .uid = uid,
		.requests = NET_PLACES, .completions = NET_PLACES, .memory = NET_MEM);

	memset(c, 0, sizeof(*c));
	assert_int_equal(client_open(&c->c, net_eng, &o), 0);
}

void net_part(struct net_client *c)
{
	unsigned int i;

	rgate_seat_remove(c->c.seat);
	for (i = 0; i < PATIENCE_MS && !__atomic_load_n(&c->c.over, __ATOMIC_ACQUIRE); i++)
		usleep(1000);
	assert_int_equal(__atomic_load_n(&c->c.over, __ATOMIC_ACQUIRE), 1);
	client_close(&c->c);
}

static void take(struct net_client *c)
{
	struct rgate_completion done;
	struct net_done *d;

	while (client_poll(&c->c, &done)) {
		d = &c->done[done.cookie % ARRAY_LEN(c->done)];
		assert_false(d->there);
		*d = (struct net_done){ true, done.result, done.value };
	}
}

uint64_t net_post(struct net_client *c, struct rgate_request q)
{
	q.cookie = ++c->last;
	c->done[q.cookie % ARRAY_LEN(c->done)].there = false;
	client_submit(&c->c, q);
	return q.cookie;
}

int net_end_in(struct net_client *c, uint64_t cookie, unsigned int ms)
{
	const uint64_t until = unit_now_ns() + ms * 1000000ULL;
	const struct net_done *d = &c->done[cookie % ARRAY_LEN(c->done)];

	for (;;) {
		take(c);
		if (d->there)
			break;
		if (unit_now_ns() > until)
			return -ETIME;
		usleep(20);
	}
	net_value = d->value;
	return d->result;
}

int net_end(struct net_client *c, uint64_t cookie)
{
	int result = net_end_in(c, cookie, PATIENCE_MS * unit_patience());

	assert_int_not_equal(result, -ETIME);
	return result;
}

int net_ask(struct net_client *c, struct rgate_request q)
{
	return net_end(c, net_post(c, q));
}

int net_cancel(struct net_client *c, uint64_t cookie)
{
	return net_ask(c, (struct rgate_request){ .op = RGATE_REQ_CANCEL, .a0 = cookie });
}

/* ---- Sockets of the service ---- */

static uint32_t family_of(int family)
{
	return family == 6 ? RGATE_SOCKET_INET6 : RGATE_SOCKET_INET;
}

uint32_t net_socket(struct net_client *c, int family, uint32_t type)
{
	assert_int_equal(ASK(c, OPEN, .a0 = RGATE_SOCKET_A0(family_of(family), type)), 0);
	assert_int_not_equal(net_value, 0);
	return (uint32_t)net_value;
}

void net_addr_put(struct net_client *c, const char *host, uint16_t port)
{
	struct rgate_socket_addr a = { .port = port };
	const bool v6 = strchr(host, ':');

	a.family = v6 ? RGATE_SOCKET_INET6 : RGATE_SOCKET_INET;
	assert_int_equal(inet_pton(v6 ? AF_INET6 : AF_INET, host, a.addr), 1);
	memcpy(c->c.mem + NET_ADDR, &a, sizeof(a));
}

uint32_t net_addr(struct net_client *c, int family, uint16_t port)
{
	net_addr_put(c, family == 6 ? "::1" : "127.0.0.1", port);
	return NET_ADDR;
}

struct rgate_socket_addr net_addr_get(const struct net_client *c)
{
	struct rgate_socket_addr a;

	memcpy(&a, c->c.mem + NET_ADDR, sizeof(a));
	return a;
}

int net_bind(struct net_client *c, uint32_t sock, int family, uint16_t port)
{
	return ASK(c, BIND, .handle = sock, .off = net_addr(c, family, port),
		   .len = sizeof(struct rgate_socket_addr));
}

int net_connect(struct net_client *c, uint32_t sock, int family, uint16_t port)
{
	return ASK(c, CONNECT, .handle = sock, .off = net_addr(c, family, port),
		   .len = sizeof(struct rgate_socket_addr));
}

uint16_t net_port(struct net_client *c, uint32_t sock)
{
	assert_int_equal(ASK(c, NAME, .handle = sock, .off = NET_ADDR,
			     .len = sizeof(struct rgate_socket_addr)), 0);
	return net_addr_get(c).port;
}

uint32_t net_listen(struct net_client *c, int family, uint16_t *port)
{
	uint32_t sock = net_socket(c, family, RGATE_SOCKET_STREAM);

	assert_int_equal(net_bind(c, sock, family, 0), 0);
	assert_int_equal(ASK(c, LISTEN, .handle = sock, .a0 = 128), 0);
	*port = net_port(c, sock);
	assert_int_not_equal(*port, 0);
	return sock;
}

uint32_t net_accept(struct net_client *c, uint32_t sock)
{
	assert_int_equal(ASK(c, ACCEPT, .handle = sock), 0);
	return (uint32_t)net_value;
}

int net_close(struct net_client *c, uint32_t sock)
{
	return ASK(c, CLOSE, .handle = sock);
}

uint32_t net_pair(struct net_client *c, int *fd)
{
	uint32_t sock = net_socket(c, 4, RGATE_SOCKET_STREAM);
	uint16_t port;
	int l = raw_listen(8, &port);

	assert_int_equal(net_connect(c, sock, 4, port), 0);
	*fd = raw_accept(l);
	close(l);
	return sock;
}

/* ---- The kernel's ---- */

static int raw(int type, uint16_t *port)
{
	struct sockaddr_in in = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t len = sizeof(in);
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &len), 0);
	*port = ntohs(in.sin_port);
	return fd;
}

int raw_listen(int backlog, uint16_t *port)
{
	int fd = raw(SOCK_STREAM, port);

	assert_int_equal(listen(fd, backlog), 0);
	return fd;
}

int raw_udp(uint16_t *port)
{
	return raw(SOCK_DGRAM, port);
}

int raw_accept(int fd)
{
	int s = accept(fd, NULL, NULL);

	assert_true(s >= 0);
	return s;
}

int raw_connect(uint16_t port)
{
	struct sockaddr_in in = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons(port),
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	return fd;
}

void raw_write(int fd, const void *data, size_t len)
{
	const char *p = data;
	ssize_t n;

	for (; len; p += n, len -= (size_t)n) {
		n = send(fd, p, len, MSG_NOSIGNAL);
		assert_true(n > 0);
	}
}

size_t raw_read(int fd, void *data, size_t len)
{
	size_t got = 0;
	ssize_t n;

	while (got < len) {
		n = recv(fd, (char *)data + got, len - got, 0);
		if (n <= 0)
			break;
		got += (size_t)n;
	}
	return got;
}

int net_setup(void **state)
{
	(void)state;
	net_up(NULL, 0);
	return 0;
}

int net_teardown(void **state)
{
	(void)state;
	net_down();
	return 0;
}
