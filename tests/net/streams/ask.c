// SPDX-License-Identifier: MIT OR GPL-2.0
#define _GNU_SOURCE
#include "streams.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define PIECE	16384U
/* Of more streams without an end each has little under way, and takes its time. */
#define CROWD		100U
#define LITTLE		1000U
#define PAUSE_US	500

struct stream {
	int fd;				/* -1: it is over */
	uint64_t sent, got;
};

static struct {
	uint32_t up;			/* of which something has come back */
	uint32_t whole, reset, cut, failed, refused;
	uint64_t bytes;
	int error, refusal;		/* the last one of these */
} seen;

static uint64_t total;			/* of each; 0: no end */
static uint32_t first, count;

static void end(struct stream *s, int error)
{
	if (error == ECONNRESET || error == EPIPE)
		seen.reset++;
	else if (error)
		seen.failed++;
	else if (total && s->got == total)
		seen.whole++;
	else
		seen.cut++;
	if (error)
		seen.error = error;
	seen.bytes += s->got;
	close(s->fd);
	s->fd = -1;
}

static void check(const struct stream *s, uint32_t number, const unsigned char *buf, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (buf[i] == byte_at(number, s->got + i))
			continue;
		say("wrong: byte %" PRIu64 " of stream %" PRIu32, s->got + i, number);
		_exit(3);
	}
}

static void come_up(struct stream *s, size_t n)
{
	if (!s->got && n && ++seen.up == count)
		say("up %" PRIu32, seen.up);
}

static void take(struct stream *s, uint32_t number)
{
	unsigned char buf[PIECE];
	ssize_t n;

	while ((n = recv(s->fd, buf, sizeof(buf), 0)) > 0) {
		check(s, number, buf, (size_t)n);
		come_up(s, (size_t)n);
		s->got += (uint64_t)n;
	}
	if (!n || errno != EAGAIN)
		end(s, n ? errno : 0);
}

/* A reset that a send meets is told by it, or by the next receive. */
static void put(struct stream *s, uint32_t number)
{
	unsigned char buf[PIECE];
	uint64_t most;
	size_t i;
	ssize_t n;

	for (;;) {
		most = total ? total - s->sent : count > CROWD ? LITTLE : PIECE;
		most = most < PIECE ? most : PIECE;
		if (!most || (most == LITTLE && !total && s->sent > s->got))
			return;
		for (i = 0; i < most; i++)
			buf[i] = byte_at(number, s->sent + i);
		n = send(s->fd, buf, most, MSG_NOSIGNAL);
		if (n < 0)
			return;
		s->sent += (uint64_t)n;
		if (s->sent == total)
			(void)shutdown(s->fd, SHUT_WR);
	}
}

static bool start(struct stream *s, uint16_t port, int ep, uint32_t i)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLOUT | EPOLLET, .data.u32 = i };
	const char how = SERVE_ECHO;

	s->fd = connect_to(port, SOCK_CLOEXEC);
	if (s->fd < 0) {
		seen.refused++;
		seen.refusal = -s->fd;
		s->fd = -1;
		return false;
	}
	/* It may be broken already, which its first receive tells. */
	(void)send(s->fd, &how, 1, MSG_NOSIGNAL);
	CHECK(!fcntl(s->fd, F_SETFL, O_NONBLOCK));
	CHECK(!epoll_ctl(ep, EPOLL_CTL_ADD, s->fd, &ev));
	return true;
}

int ask(uint16_t port, uint32_t n, uint64_t len, uint32_t from)
{
	struct stream *all = calloc(n, sizeof(*all));
	int ep = epoll_create1(EPOLL_CLOEXEC), again;
	struct epoll_event ev;
	uint32_t i, left = 0;

	CHECK(all && ep >= 0);
	total = len;
	first = from;
	for (i = 0; i < n; i++)
		left += start(&all[i], port, ep, i);
	count = left;
	while (left) {
		if (epoll_wait(ep, &ev, 1, -1) != 1) {
			CHECK(errno == EINTR);
			continue;
		}
		i = ev.data.u32;
		if (all[i].fd < 0)
			continue;
		take(&all[i], first + i);
		if (all[i].fd >= 0)
			put(&all[i], first + i);
		left -= all[i].fd < 0;
		if (!total && count > CROWD)
			usleep(PAUSE_US);
	}
	again = connect_to(port, SOCK_CLOEXEC);
	say("whole %" PRIu32 " reset %" PRIu32 " cut %" PRIu32 " failed %" PRIu32 " %s refused %"
	    PRIu32 " %s bytes %" PRIu64 " then %s", seen.whole, seen.reset, seen.cut, seen.failed,
	    error_name(seen.error), seen.refused, error_name(seen.refusal), seen.bytes,
	    error_name(again < 0 ? -again : 0));
	return 0;
}
