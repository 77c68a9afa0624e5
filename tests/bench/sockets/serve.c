// SPDX-License-Identifier: MIT OR GPL-2.0
/* Who is at the other end: one thread, which sleeps where nothing is to be done. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench.h"
#include "way.h"

#define ROOM	(256U << 10)

struct guest {
	int fd;
	struct hello hello;
	uint32_t heard;			/* bytes of it */
	struct report report;		/* what came */
	uint64_t given;
};

static unsigned char room[ROOM];
static int epoll;

static void watch(struct guest *g, int op)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = g };

	if (g->hello.wish == WISH_GIVE && g->given < g->hello.len)
		ev.events |= EPOLLOUT;
	if (epoll_ctl(epoll, op, g->fd, &ev) < 0)
		bench_die(errno, "epoll_ctl");
}

static void leave(struct guest *g)
{
	close(g->fd);
	free(g);
}

/* What it sends is little, and there is room for it: less than that is the end. */
static void say(struct guest *g, const void *bytes, size_t len)
{
	if (send(g->fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)len)
		(void)shutdown(g->fd, SHUT_RDWR);
}

static void give(struct guest *g)
{
	uint64_t left = g->hello.len - g->given;
	ssize_t n;

	/* Who only asks for some looks at none of it. */
	n = send(g->fd, room, left < ROOM ? left : ROOM, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n > 0)
		g->given += (uint64_t)n;
	else if (errno != EAGAIN)
		(void)shutdown(g->fd, SHUT_RDWR);
	/* Who ends it first has its address for a minute yet: the one that connects needs many. */
	if (g->given == g->hello.len)
		(void)shutdown(g->fd, SHUT_WR);
	watch(g, EPOLL_CTL_MOD);
}

static void take(struct guest *g, size_t len)
{
	if (g->hello.wish == WISH_CHECK)
		g->report.hash = hash_of(g->report.hash, room, len);
	g->report.len += len;
	if (g->report.len == g->hello.len)
		say(g, &g->report, sizeof(g->report));
}

static bool hear(struct guest *g)
{
	ssize_t n = recv(g->fd, (char *)&g->hello + g->heard, sizeof(g->hello) - g->heard,
			 MSG_DONTWAIT);

	if (n <= 0)
		return n < 0 && errno == EAGAIN;
	g->heard += (uint32_t)n;
	if (g->heard == sizeof(g->hello) && g->hello.wish == WISH_GIVE)
		give(g);
	return true;
}

static bool look(struct guest *g, uint32_t events)
{
	ssize_t n;

	if (g->heard < sizeof(g->hello))
		return hear(g);
	if (events & EPOLLOUT)
		give(g);
	if (!(events & ~(uint32_t)EPOLLOUT))
		return true;
	n = recv(g->fd, room, ROOM, MSG_DONTWAIT);
	if (n <= 0)
		return n < 0 && errno == EAGAIN;
	if (g->hello.wish == WISH_ECHO)
		say(g, room, (size_t)n);
	else
		take(g, (size_t)n);
	return true;
}

static void welcome(int listener)
{
	const int on = 1;
	struct guest *g;
	int fd;

	while ((fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
		g = calloc(1, sizeof(*g));
		if (!g)
			bench_die(ENOMEM, "a guest");
		g->fd = fd;
		g->report.hash = HASH_BEGIN;
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		watch(g, EPOLL_CTL_ADD);
	}
	if (errno != EAGAIN && errno != ECONNABORTED)
		bench_die(errno, "accept");
}

static int listen_at(const char *at)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	const char *colon = strrchr(at, ':');
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const int on = 1;
	char host[64];

	snprintf(host, sizeof(host), "%.*s", colon ? (int)(colon - at) : 0, at);
	if (!colon || inet_pton(AF_INET, host, &a.sin_addr) != 1)
		bench_die(0, "%s is no IPv4 address and port", at);
	a.sin_port = htons((uint16_t)atoi(colon + 1));
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, 4096) < 0)
		bench_die(errno, "listen at %s", at);
	return fd;
}

void serve(const char *at)
{
	const int listener = listen_at(at);
	struct epoll_event ev[64] = { { .events = EPOLLIN } };
	int i, n;

	epoll = epoll_create1(EPOLL_CLOEXEC);
	if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, listener, ev) < 0)
		bench_die(errno, "epoll");
	for (;;) {
		n = epoll_wait(epoll, ev, 64, -1);
		for (i = 0; i < n; i++) {
			if (!ev[i].data.ptr)
				welcome(listener);
			else if (!look(ev[i].data.ptr, ev[i].events))
				leave(ev[i].data.ptr);
		}
	}
}
