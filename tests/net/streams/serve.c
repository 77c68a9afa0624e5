// SPDX-License-Identifier: MIT OR GPL-2.0
#define _GNU_SOURCE
#include "streams.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define ROOM		16384U
#define SOME_MS		300		/* so that who waits for it does wait */
#define MOST		4096

struct stream {
	int fd;
	char how;			/* enum serve_how; 0: it has not said so yet */
	bool begun;
	bool ended;			/* its peer sends no more */
	int64_t reset_ms;		/* 0: never */
	size_t len, sent;
	char buf[ROOM];
};

static struct stream *all[MOST];
static unsigned int live, ended, reset;	/* streams */
static volatile sig_atomic_t over;

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

static void drop(struct stream *s, bool with_reset)
{
	const struct linger now = { .l_onoff = 1 };

	if (with_reset)
		(void)setsockopt(s->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	all[s->fd] = NULL;
	close(s->fd);
	free(s);
	if (!--live)
		say("ended %u reset %u", ended, reset);
}

/* What was said first: how it is to be treated */
static void begin(struct stream *s)
{
	char some[1000];

	s->reset_ms = strchr("rpdf", s->how) ? now_ms() + SOME_MS : 0;
	if (s->how == SERVE_POUR) {
		memset(some, 'p', sizeof(some));
		(void)send(s->fd, some, sizeof(some), MSG_NOSIGNAL);
	} else if (s->how == SERVE_ENDED) {
		(void)shutdown(s->fd, SHUT_WR);
	}
}

/* False: it is gone */
static bool flush(struct stream *s)
{
	ssize_t n;

	while (s->sent < s->len) {
		n = send(s->fd, s->buf + s->sent, s->len - s->sent, MSG_NOSIGNAL);
		if (n < 0 && errno == EAGAIN)
			return true;
		if (n < 0) {
			reset++;
			drop(s, false);
			return false;
		}
		s->sent += (size_t)n;
	}
	if (!s->ended)
		return true;
	ended++;
	drop(s, false);
	return false;
}

/* Of one that waits for its reset: what it is told meanwhile goes nowhere. */
static void tell(struct stream *s, ssize_t n)
{
	s->ended = !n && !s->reset_ms;
	s->sent = 0;
	s->len = n > 0 && s->how == SERVE_ECHO ? (size_t)n : 0;
}

static void pump(struct stream *s)
{
	ssize_t n;

	while (s->how != SERVE_DEAF && s->how != SERVE_STUCK) {
		if (!flush(s) || s->sent < s->len)
			return;
		n = s->how ? recv(s->fd, s->buf, ROOM, 0) : recv(s->fd, &s->how, 1, 0);
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0) {
			reset++;
			drop(s, false);
			return;
		}
		if (n == 1 && !s->begun) {
			s->begun = true;
			begin(s);
		} else {
			tell(s, n);
		}
		if (!n && s->reset_ms)
			return;
	}
}

static void accept_one(int l, int ep)
{
	int fd = accept4(l, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct epoll_event ev = { .events = EPOLLIN | EPOLLOUT | EPOLLET };

	/* One may have gone, or there is no agent any more: then this one is not needed. */
	if (fd < 0) {
		if (errno != EAGAIN && errno != ECONNABORTED && errno != EMFILE) {
			say("accept %s", error_name(errno));
			over = true;
		}
		return;
	}
	CHECK(fd < MOST);
	all[fd] = calloc(1, sizeof(*all[fd]));
	CHECK(all[fd]);
	all[fd]->fd = fd;
	live++;
	ev.data.fd = fd;
	CHECK(!epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev));
}

static void reset_late(void)
{
	const int64_t now = now_ms();
	int i;

	for (i = 0; i < MOST; i++)
		if (all[i] && all[i]->reset_ms && now >= all[i]->reset_ms)
			drop(all[i], true);
}

static void end(int sig)
{
	(void)sig;
	over = true;
}

int serve(void)
{
	const struct sigaction sa = { .sa_handler = end };
	struct epoll_event ev = { .events = EPOLLIN };
	int l, ep = epoll_create1(EPOLL_CLOEXEC), n;
	uint16_t port;

	CHECK(!sigaction(SIGTERM, &sa, NULL));
	l = listen_at(1024, &port);
	CHECK(!fcntl(l, F_SETFL, O_NONBLOCK));
	ev.data.fd = l;
	CHECK(ep >= 0 && !epoll_ctl(ep, EPOLL_CTL_ADD, l, &ev));
	say("at %u", port);
	while (!over) {
		n = epoll_wait(ep, &ev, 1, 50);
		if (n == 1 && ev.data.fd == l)
			accept_one(l, ep);
		else if (n == 1 && all[ev.data.fd])
			pump(all[ev.data.fd]);
		reset_late();
	}
	return 0;
}
