// SPDX-License-Identifier: MIT OR GPL-2.0
#define _GNU_SOURCE
#include "static.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PIECE	65536
#define ANY_LEN	112	/* of the room that Go has for an address */

/* ---- Blocking ---- */

static void request(int fd, const char *path)
{
	char text[256];
	int len = snprintf(text, sizeof(text), "GET %s HTTP/1.0\r\n\r\n", path);

	put(fd, text, (size_t)len);
}

/* What is behind the empty line goes to standard output. */
static void take_body(char *all, size_t len)
{
	char *body = memmem(all, len, "\r\n\r\n", 4);

	CHECK(body);
	put(1, body + 4, len - (size_t)(body + 4 - all));
}

int fetch(uint16_t port, const char *path)
{
	const size_t most = 16 << 20;
	struct sockaddr_in to = at(port);
	char *all = malloc(most);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	CHECK(all && fd >= 0);
	CHECK(!connect(fd, (struct sockaddr *)&to, sizeof(to)));
	request(fd, path);
	take_body(all, get(fd, all, most));
	close(fd);
	free(all);
	return 0;
}

static void *echo(void *arg)
{
	const int fd = (int)(intptr_t)arg;
	char *buf = malloc(PIECE);
	ssize_t n;

	while ((n = read(fd, buf, PIECE)) > 0)
		put(fd, buf, (size_t)n);
	CHECK(!n);
	close(fd);
	free(buf);
	return NULL;
}

static int serve(bool fork_it)
{
	struct sockaddr_in peer;
	socklen_t len;
	uint16_t port;
	pthread_t thread;
	int fd, l = listener(0, 64, &port);

	printf("at %u\n", port);
	fflush(stdout);
	signal(SIGCHLD, SIG_IGN);
	for (;;) {
		len = sizeof(peer);
		fd = accept(l, (struct sockaddr *)&peer, &len);
		CHECK(fd >= 0 && len == sizeof(peer) && peer.sin_family == AF_INET);
		if (!fork_it) {
			CHECK(!pthread_create(&thread, NULL, echo, (void *)(intptr_t)fd));
			pthread_detach(thread);
		} else if (!fork()) {
			close(l);
			echo((void *)(intptr_t)fd);
			_exit(0);
		} else {
			close(fd);
		}
	}
}

int serve_threads(void)
{
	return serve(false);
}

int serve_forks(void)
{
	return serve(true);
}

/* ---- As Go does: no library's calls, and none that waits but for epoll ---- */

static void set(int fd, int level, int option, int value)
{
	CHECK(!syscall(SYS_setsockopt, fd, level, option, &value, sizeof(value)));
}

/* MPTCP first, as newer ones do */
static int make(int family)
{
	const int type = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;

	FAILS(EPROTONOSUPPORT, syscall(SYS_socket, family, type, 262));
	return (int)syscall(SYS_socket, family, type, IPPROTO_TCP);
}

static void watch(int ep, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
				  .data.fd = fd };

	CHECK(!syscall(SYS_epoll_ctl, ep, EPOLL_CTL_ADD, fd, &ev));
}

static uint32_t wait_one(int ep, int *fd)
{
	struct epoll_event ev;
	long n;

	do {
		n = syscall(SYS_epoll_pwait, ep, &ev, 1, -1, NULL, 8);
	} while (n < 0 && errno == EINTR);
	CHECK(n == 1);
	*fd = ev.data.fd;
	return ev.events;
}

static void keep_alive(int fd)
{
	set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	set(fd, IPPROTO_TCP, TCP_KEEPINTVL, 15);
	set(fd, IPPROTO_TCP, TCP_KEEPIDLE, 15);
}

static void connect_events(int ep, int fd, uint16_t port)
{
	struct sockaddr_in to = at(port);
	unsigned char any[ANY_LEN];
	socklen_t len = sizeof(any);
	int error = -1, got;
	socklen_t error_len = sizeof(error);

	FAILS(EINPROGRESS, syscall(SYS_connect, fd, &to, sizeof(to)));
	watch(ep, fd);
	do {
		wait_one(ep, &got);
		CHECK(!syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_ERROR, &error, &error_len));
		CHECK(!error);
	} while (syscall(SYS_getpeername, fd, any, &len) < 0);
	CHECK(len == sizeof(to) && !memcmp(any, &to, 8));
	keep_alive(fd);
}

int fetch_events(uint16_t port, const char *path)
{
	const size_t most = 16 << 20;
	char *all = malloc(most);
	int ep = (int)syscall(SYS_epoll_create1, EPOLL_CLOEXEC), fd = make(AF_INET), got;
	size_t done = 0;
	long n = 1;

	CHECK(all && ep >= 0 && fd >= 0);
	set(fd, SOL_SOCKET, SO_BROADCAST, 1);
	connect_events(ep, fd, port);
	request(fd, path);
	while (n) {
		n = syscall(SYS_read, fd, all + done, most - done);
		if (n < 0) {
			CHECK(errno == EAGAIN);
			wait_one(ep, &got);
		} else {
			done += (size_t)n;
		}
	}
	take_body(all, done);
	close(fd);
	free(all);
	return 0;
}

struct stream {
	char *buf;
	size_t len, sent;
	bool ended;
};

/* True: it is over */
static bool pump(int fd, struct stream *s)
{
	long n;

	for (;;) {
		if (s->sent == s->len && s->ended)
			return true;
		if (s->sent == s->len) {
			n = syscall(SYS_read, fd, s->buf, PIECE);
			s->ended = !n;
			s->len = n > 0 ? (size_t)n : 0;
			s->sent = 0;
		} else {
			n = syscall(SYS_write, fd, s->buf + s->sent, s->len - s->sent);
			s->sent += n > 0 ? (size_t)n : 0;
		}
		if (n < 0) {
			CHECK(errno == EAGAIN);
			return false;
		}
	}
}

static void accept_all(int ep, int l, struct stream *streams)
{
	unsigned char any[ANY_LEN];
	socklen_t len;
	long fd;

	for (;;) {
		len = sizeof(any);
		fd = syscall(SYS_accept4, l, any, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0) {
			CHECK(errno == EAGAIN);
			return;
		}
		CHECK(fd < 1024 && len == sizeof(struct sockaddr_in6));
		keep_alive((int)fd);
		streams[fd] = (struct stream){ .buf = malloc(PIECE) };
		watch(ep, (int)fd);
	}
}

int serve_events(void)
{
	static struct stream streams[1024];
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
	socklen_t len = sizeof(in6);
	int ep = (int)syscall(SYS_epoll_create1, EPOLL_CLOEXEC), l = make(AF_INET6), fd;

	CHECK(ep >= 0 && l >= 0);
	set(l, IPPROTO_IPV6, IPV6_V6ONLY, 0);
	set(l, SOL_SOCKET, SO_BROADCAST, 1);
	set(l, SOL_SOCKET, SO_REUSEADDR, 1);
	CHECK(!syscall(SYS_bind, l, &in6, sizeof(in6)));
	CHECK(!syscall(SYS_listen, l, 4096));
	CHECK(!syscall(SYS_getsockname, l, &in6, &len));
	watch(ep, l);
	printf("at %u\n", ntohs(in6.sin6_port));
	fflush(stdout);
	for (;;) {
		(void)wait_one(ep, &fd);
		if (fd == l) {
			accept_all(ep, l, streams);
		} else if (pump(fd, &streams[fd])) {
			free(streams[fd].buf);
			close(fd);
		}
	}
}

/* ---- Both ends ---- */

static void *many_ask(void *arg)
{
	struct sockaddr_in to = at((uint16_t)(uintptr_t)arg);
	char c = 'x';
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	CHECK(fd >= 0 && !connect(fd, (struct sockaddr *)&to, sizeof(to)));
	put(fd, &c, 1);
	CHECK(get(fd, &c, 1) == 1 && c == 'y');
	close(fd);
	return NULL;
}

/* A backlog of one, and ten who wait for room in it */
int both(void)
{
	struct sockaddr_in peer, own;
	socklen_t len;
	pthread_t thread[10];
	uint16_t port;
	char c;
	int i, fd, l = listener(0, 1, &port);

	for (i = 0; i < 10; i++)
		CHECK(!pthread_create(&thread[i], NULL, many_ask, (void *)(uintptr_t)port));
	usleep(200000);
	for (i = 0; i < 10; i++) {
		len = sizeof(peer);
		fd = accept(l, (struct sockaddr *)&peer, &len);
		CHECK(fd >= 0 && len == sizeof(peer) && peer.sin_port);
		CHECK(port_of(fd) == port);
		CHECK(!getpeername(fd, (struct sockaddr *)&own, &len));
		CHECK(!memcmp(&own, &peer, sizeof(own)));
		CHECK(get(fd, &c, 1) == 1 && c == 'x');
		put(fd, "y", 1);
		close(fd);
	}
	for (i = 0; i < 10; i++)
		CHECK(!pthread_join(thread[i], NULL));
	close(l);
	peer = at(port);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	FAILS(ECONNREFUSED, connect(fd, (struct sockaddr *)&peer, sizeof(peer)));
	puts("same");
	return 0;
}
