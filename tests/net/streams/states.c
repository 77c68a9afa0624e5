// SPDX-License-Identifier: MIT OR GPL-2.0
#define _GNU_SOURCE
#include "streams.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static uint16_t peer;

/* A stream to the peer, of which it is told what to do */
static int stream(char how)
{
	int fd = connect_to(peer, SOCK_CLOEXEC);

	CHECK(fd >= 0);
	CHECK(send(fd, &how, 1, MSG_NOSIGNAL) == 1);
	return fd;
}

/* What a receive ends with: an end is 0 */
static int receive(int fd)
{
	char c;
	ssize_t n = recv(fd, &c, 1, 0);

	CHECK(n <= 0);
	return n ? errno : 0;
}

/* Until it ends */
static int send_all(int fd)
{
	static char buf[65536];
	ssize_t n;

	do {
		n = send(fd, buf, sizeof(buf), MSG_NOSIGNAL);
	} while (n > 0);
	CHECK(n < 0);
	return errno;
}

static int error_of(int fd)
{
	int error = 0;
	socklen_t len = sizeof(error);

	CHECK(!getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len));
	return error;
}

/* ---- A reset by the peer, with nothing unread but where it says so ---- */

static void in_receive(void)
{
	CHECK(receive(stream(SERVE_RESET)) == ECONNRESET);
}

static void in_poll(void)
{
	struct pollfd p = { .fd = stream(SERVE_RESET), .events = POLLIN };

	CHECK(poll(&p, 1, -1) == 1 && p.revents & POLLERR && p.revents & POLLHUP);
	CHECK(error_of(p.fd) == ECONNRESET);
}

static void in_epoll(void)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLRDHUP | EPOLLET };
	int ep = epoll_create1(EPOLL_CLOEXEC), fd = stream(SERVE_RESET);

	CHECK(ep >= 0 && !epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev));
	do {
		CHECK(epoll_wait(ep, &ev, 1, -1) == 1);
	} while (!(ev.events & EPOLLERR));
	CHECK(receive(fd) == ECONNRESET);
}

/* Its window is full, and so are all buffers before it */
static void in_send(void)
{
	const int error = send_all(stream(SERVE_DEAF));

	CHECK(error == ECONNRESET || error == EPIPE);
}

static void behind_bytes(void)
{
	int fd = stream(SERVE_POUR), n;
	char some[1000];

	n = (int)recv(fd, some, sizeof(some), MSG_WAITALL);
	CHECK(n == (int)sizeof(some) && some[0] == 'p' && some[999] == 'p');
	CHECK(receive(fd) == ECONNRESET);
}

/* This one has ended its stream, and waits for the other one's end: no clean one */
static void half_closed(void)
{
	int fd = stream(SERVE_RESET);

	CHECK(!shutdown(fd, SHUT_WR));
	CHECK(receive(fd) == ECONNRESET);
}

/* The other one has: its end is one; what is sent then meets the reset */
static void half_ended(void)
{
	int fd = stream(SERVE_ENDED), error;

	CHECK(receive(fd) == 0);
	error = send_all(fd);
	CHECK(error == ECONNRESET || error == EPIPE);
}

static void in_splice(void)
{
	int fd = stream(SERVE_RESET), p[2];

	CHECK(!pipe2(p, O_CLOEXEC));
	CHECK(splice(fd, NULL, p[1], NULL, 100, 0) < 0 && errno == ECONNRESET);
}

static void by_copy(void)
{
	int fd = stream(SERVE_RESET), copy = dup(fd);

	close(fd);
	CHECK(receive(copy) == ECONNRESET);
}

int states(uint16_t port)
{
	static void (*const all[])(void) = {
		in_receive, in_poll, in_epoll, in_send, behind_bytes, half_closed, half_ended,
		in_splice, by_copy,
	};
	size_t i;

	peer = port;
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		all[i]();
	say("states");
	return 0;
}

/* ---- Calls that wait until something ends them ---- */

static uint16_t full;

static int wait_receive(void)
{
	return receive(stream(SERVE_STUCK));
}

static int wait_send(void)
{
	return send_all(stream(SERVE_STUCK));
}

static int wait_poll(void)
{
	struct pollfd p = { .fd = stream(SERVE_STUCK), .events = POLLIN };

	CHECK(poll(&p, 1, -1) == 1);
	return error_of(p.fd);
}

static int wait_half(void)
{
	int fd = stream(SERVE_STUCK);

	CHECK(!shutdown(fd, SHUT_WR));
	return receive(fd);
}

static int wait_connect(void)
{
	int fd = connect_to(full, SOCK_CLOEXEC);

	return fd < 0 ? -fd : 0;
}

static int wait_connected(void)
{
	struct pollfd p = { .fd = connect_to(full, SOCK_CLOEXEC | SOCK_NONBLOCK),
			    .events = POLLOUT };

	CHECK(p.fd >= 0 && poll(&p, 1, -1) == 1);
	return error_of(p.fd);
}

static int wait_accept(void)
{
	uint16_t port;
	int l = listen_at(4, &port);

	say("accepts at %u", port);
	return accept(l, NULL, NULL) < 0 ? errno : 0;
}

static int wait_datagram(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	return fd < 0 ? errno : receive(fd);
}

static const struct {
	const char *name;
	int (*call)(void);
} waiting[] = {
	{ "recv", wait_receive }, { "send", wait_send }, { "poll", wait_poll },
	{ "half", wait_half }, { "connect", wait_connect }, { "connected", wait_connected },
	{ "accept", wait_accept }, { "datagram", wait_datagram },
};

#define WAITING	(sizeof(waiting) / sizeof(waiting[0]))

static void *wait_one(void *arg)
{
	const size_t i = (size_t)(uintptr_t)arg;
	const int error = waiting[i].call();

	say("%s %s", waiting[i].name, error_name(error));
	return NULL;
}

int waits(uint16_t port, uint16_t nobody, unsigned int more)
{
	const size_t n = WAITING - 2 + more;
	pthread_t thread[WAITING];
	size_t i;

	peer = port;
	full = nobody;
	for (i = 0; i < n; i++)
		CHECK(!pthread_create(&thread[i], NULL, wait_one, (void *)(uintptr_t)i));
	/* Until they wait, as far as can be known */
	sleep(1);
	say("waits");
	for (i = 0; i < n; i++)
		CHECK(!pthread_join(thread[i], NULL));
	say("over");
	return 0;
}
