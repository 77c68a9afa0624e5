// SPDX-License-Identifier: MIT OR GPL-2.0
#define _GNU_SOURCE
#include "streams.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

static uint16_t peer;

static struct sockaddr_in at(uint32_t host, uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(port),
				     .sin_addr.s_addr = htonl(host) };
}

static int get(int fd, int level, int name)
{
	int value = 0;
	socklen_t len = sizeof(value);

	CHECK(!getsockopt(fd, level, name, &value, &len) && len == sizeof(value));
	return value;
}

/* With options that are not what they are of themselves */
static int make(int type)
{
	int fd = socket(AF_INET, type, 0);

	CHECK(fd >= 0);
	CHECK(!setsockopt(fd, IPPROTO_IP, IP_TTL, &(int){ 77 }, sizeof(int)));
	if (type == SOCK_DGRAM)
		return fd;
	CHECK(!setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int)));
	CHECK(!setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &(int){ 33 }, sizeof(int)));
	CHECK(!setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &(int){ 44 }, sizeof(int)));
	return fd;
}

static void has_options(int fd, bool stream)
{
	CHECK(get(fd, IPPROTO_IP, IP_TTL) == 77);
	CHECK(!stream || get(fd, IPPROTO_TCP, TCP_NODELAY));
	CHECK(!stream || get(fd, IPPROTO_TCP, TCP_KEEPIDLE) == 44);
}

static uint16_t port_of(int fd)
{
	struct sockaddr_in in;
	socklen_t len = sizeof(in);

	CHECK(!getsockname(fd, (struct sockaddr *)&in, &len));
	return ntohs(in.sin_port);
}

static int bound(int type)
{
	const struct sockaddr_in in = at(INADDR_ANY, 0);
	int fd = make(type);

	CHECK(!bind(fd, (const struct sockaddr *)&in, sizeof(in)));
	CHECK(port_of(fd));
	return fd;
}

/* One byte there and back */
static void echoes(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char how = SERVE_ECHO, c = 0;

	CHECK(send(fd, &how, 1, MSG_NOSIGNAL) == 1 && send(fd, "y", 1, MSG_NOSIGNAL) == 1);
	CHECK(poll(&p, 1, 60000) == 1 && recv(fd, &c, 1, 0) == 1 && c == 'y');
}

static void connects(int fd, bool waits)
{
	const struct sockaddr_in to = at(INADDR_LOOPBACK, peer);
	struct pollfd p = { .fd = fd, .events = POLLOUT };

	if (!waits) {
		CHECK(!fcntl(fd, F_SETFL, O_NONBLOCK));
		CHECK(connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0);
		CHECK(errno == EINPROGRESS);
		CHECK(poll(&p, 1, 60000) == 1 && !get(fd, SOL_SOCKET, SO_ERROR));
		CHECK(!fcntl(fd, F_SETFL, 0));
	} else {
		CHECK(!connect(fd, (const struct sockaddr *)&to, sizeof(to)));
	}
	has_options(fd, true);
	echoes(fd);
}

/* What comes to @l it gets back. */
static void *accepts(void *arg)
{
	const int l = (int)(intptr_t)arg, fd = accept(l, NULL, NULL);
	char c = 0;

	CHECK(fd >= 0);
	CHECK(recv(fd, &c, 1, 0) == 1 && send(fd, &c, 1, MSG_NOSIGNAL) == 1);
	has_options(l, true);
	return NULL;
}

/* Of datagrams, by who echoes them at the peer's port */
static void echoes_datagram(int fd, bool joined)
{
	const struct sockaddr_in to = at(INADDR_LOOPBACK, peer);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char c = 0;
	int tries;

	for (tries = 0; tries < 60 && c != 'd'; tries++) {
		if (joined)
			(void)send(fd, "d", 1, 0);
		else
			(void)sendto(fd, "d", 1, 0, (const struct sockaddr *)&to, sizeof(to));
		if (poll(&p, 1, 1000) == 1)
			CHECK(recv(fd, &c, 1, 0) == 1);
	}
	CHECK(c == 'd');
	has_options(fd, false);
}

static void answers_datagram(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct sockaddr_in from;
	socklen_t len = sizeof(from);
	char c;

	CHECK(poll(&p, 1, 60000) == 1);
	CHECK(recvfrom(fd, &c, 1, 0, (struct sockaddr *)&from, &len) == 1);
	CHECK(sendto(fd, &c, 1, 0, (struct sockaddr *)&from, len) == 1);
}

static void wait_for_word(void)
{
	sigset_t set;
	int sig;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK(!sigwait(&set, &sig));
}

static int listens_at(int fd)
{
	CHECK(!listen(fd, 4));
	return fd;
}

int made(uint16_t port, bool datagrams)
{
	const struct sockaddr_in any = at(INADDR_ANY, 0), to = at(INADDR_LOOPBACK, port);
	int plain = make(SOCK_STREAM), later = make(SOCK_STREAM), unbound = make(SOCK_STREAM);
	int named = bound(SOCK_STREAM), listener = listens_at(bound(SOCK_STREAM)), i;
	int udp = -1, udp_joined = -1, udp_plain = -1;
	const uint16_t ports[] = { port_of(named), port_of(listener) };
	pthread_t thread[3];

	peer = port;
	if (datagrams) {
		udp = bound(SOCK_DGRAM);
		udp_plain = make(SOCK_DGRAM);
		udp_joined = make(SOCK_DGRAM);
		CHECK(!connect(udp_joined, (const struct sockaddr *)&to, sizeof(to)));
	}
	CHECK(!pthread_create(&thread[0], NULL, accepts, (void *)(intptr_t)listener));
	say("made");
	wait_for_word();
	CHECK(!bind(unbound, (const struct sockaddr *)&any, sizeof(any)));
	listens_at(unbound);
	listens_at(named);
	CHECK(port_of(named) == ports[0] && port_of(listener) == ports[1]);
	CHECK(!pthread_create(&thread[1], NULL, accepts, (void *)(intptr_t)named));
	CHECK(!pthread_create(&thread[2], NULL, accepts, (void *)(intptr_t)unbound));
	connects(plain, true);
	connects(later, false);
	if (datagrams) {
		echoes_datagram(udp_plain, false);
		echoes_datagram(udp_joined, true);
	}
	say("ports %u %u %u %u", port_of(unbound), port_of(named), port_of(listener),
	    datagrams ? port_of(udp) : 0);
	for (i = 0; i < 3; i++)
		CHECK(!pthread_join(thread[i], NULL));
	if (datagrams)
		answers_datagram(udp);
	say("over");
	return 0;
}
