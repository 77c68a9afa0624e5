// SPDX-License-Identifier: MIT OR GPL-2.0
/* Datagrams; the port is that of an echo server outside, see udp_program.py. */
#define _GNU_SOURCE
#include "static.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_MS	20000

static int udp(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0);
	return fd;
}

static int joined(uint16_t port)
{
	int fd = udp();

	CHECK(!connect_to(fd, port));
	return fd;
}

static bool comes(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

static void send_to(int fd, const void *buf, size_t len, uint16_t port)
{
	struct sockaddr_in to = at(port);

	CHECK(sendto(fd, buf, len, 0, (struct sockaddr *)&to, sizeof(to)) == (ssize_t)len);
}

/* The next one is that, from that port of this machine */
static void check_from(int fd, const void *buf, size_t len, uint16_t port)
{
	static char got[65536];
	struct sockaddr_in from, want = at(port);
	socklen_t from_len = sizeof(from);

	CHECK(comes(fd, PATIENCE_MS));
	CHECK(recvfrom(fd, got, sizeof(got), 0, (struct sockaddr *)&from, &from_len) ==
	      (ssize_t)len);
	CHECK(!memcmp(got, buf, len) && from_len == sizeof(from));
	CHECK(!memcmp(&from, &want, 8));
}

/* ---- Servers and clients ---- */

int udp_echo(void)
{
	static char buf[65536];
	struct sockaddr_in from = { .sin_family = AF_INET };
	socklen_t len;
	int s = udp();
	ssize_t n;

	CHECK(!bind(s, (struct sockaddr *)&from, sizeof(from)));
	printf("at %u\n", port_of(s));
	fflush(stdout);
	for (;;) {
		len = sizeof(from);
		n = recvfrom(s, buf, sizeof(buf), 0, (struct sockaddr *)&from, &len);
		CHECK(n >= 0 && len == sizeof(from));
		CHECK(sendto(s, buf, (size_t)n, 0, (struct sockaddr *)&from, len) == n);
	}
}

/* One after the other, each of which may be lost some times; by read and write, as Go does */
int udp_echoed(uint16_t port, int count, size_t len)
{
	char *out = malloc(len), *back = malloc(65536);
	int s = joined(port), i, tries;
	size_t k;
	ssize_t n;

	CHECK(out && back);
	for (i = 0; i < count; i++) {
		for (k = 0; k < len; k++)
			out[k] = (char)(rand() >> 8);
		for (tries = 0; tries < 40; tries++) {
			CHECK(write(s, out, len) == (ssize_t)len);
			if (!comes(s, 500))
				continue;
			n = read(s, back, 65536);
			if (n == (ssize_t)len && !memcmp(out, back, len))
				break;
		}
		CHECK(tries < 40);
	}
	puts("same");
	return 0;
}

/* What a resolver asks, and its answer: by whom it is asked the server's port says */
int udp_resolve(uint16_t port)
{
	static const char question[] =
		"\0\7\1\0\0\1\0\0\0\0\0\0\7example\3org\0\0\1\0\1";
	unsigned char got[512];
	int s = joined(port);
	ssize_t n;

	CHECK(send(s, question, sizeof(question) - 1, 0) == sizeof(question) - 1);
	CHECK(comes(s, PATIENCE_MS));
	n = recv(s, got, sizeof(got), 0);
	CHECK(n > 16 && !memcmp(got, "\0\7", 2));
	printf("%u.%u.%u.%u\n", got[n - 4], got[n - 3], got[n - 2], got[n - 1]);
	return 0;
}

/* Two processes, on a loopback of their own */
int udp_within(void)
{
	struct sockaddr_in to = at(0);
	char word[8];
	int s = udp(), c, status;
	uint16_t port;
	pid_t pid;

	CHECK(!bind(s, (struct sockaddr *)&to, sizeof(to)));
	port = port_of(s);
	pid = fork();
	if (!pid) {
		c = joined(port);
		CHECK(write(c, "within", 6) == 6 && comes(c, PATIENCE_MS));
		CHECK(read(c, word, 8) == 4 && !memcmp(word, "back", 4));
		send_to(c, "again", 5, port);
		_exit(0);
	}
	to.sin_port = 0;
	CHECK(comes(s, PATIENCE_MS));
	CHECK(recvfrom(s, word, 8, 0, (struct sockaddr *)&to, &(socklen_t){ sizeof(to) }) == 6);
	CHECK(!memcmp(word, "within", 6));
	CHECK(sendto(s, "back", 4, 0, (struct sockaddr *)&to, sizeof(to)) == 4);
	check_from(s, "again", 5, ntohs(to.sin_port));
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	c = joined(1);
	CHECK(write(c, "x", 1) == 1 && comes(c, PATIENCE_MS));
	FAILS(ECONNREFUSED, (int)recvfrom(c, word, 8, 0, (struct sockaddr *)&to,
					  &(socklen_t){ sizeof(to) }));
	puts("same");
	return 0;
}

/* ---- What has to be as without an agent ---- */

static void udp_names(uint16_t port)
{
	struct sockaddr_in in;
	socklen_t len = sizeof(in);
	int s = udp(), value = -1;

	CHECK(!getsockname(s, (struct sockaddr *)&in, &len) && !in.sin_port);
	FAILS(ENOTCONN, getpeername(s, (struct sockaddr *)&in, &len));
	send_to(s, "x", 1, port);
	CHECK(port_of(s));
	check_from(s, "x", 1, port);
	in = at(0);
	FAILS(EINVAL, bind(s, (struct sockaddr *)&in, sizeof(in)));
	len = sizeof(value);
	CHECK(!getsockopt(s, SOL_SOCKET, SO_TYPE, &value, &len) && value == SOCK_DGRAM);
	CHECK(!getsockopt(s, SOL_SOCKET, SO_PROTOCOL, &value, &len) && value == IPPROTO_UDP);
	CHECK(!getsockopt(s, SOL_SOCKET, SO_DOMAIN, &value, &len) && value == AF_INET);
	FAILS(EOPNOTSUPP, listen(s, 1));
	FAILS(EOPNOTSUPP, accept(s, NULL, NULL));
}

static void udp_connected(uint16_t port)
{
	struct sockaddr_in in, want = at(port);
	socklen_t len = sizeof(in);
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	int s = joined(port), other = udp();
	char buf[16];

	CHECK(!getpeername(s, (struct sockaddr *)&in, &len) && !memcmp(&in, &want, 8));
	send_to(other, "stranger's", 10, port_of(s));
	CHECK(write(s, "written", 7) == 7);
	check_from(s, "written", 7, port);
	CHECK(send(s, "sent", 4, 0) == 4 && comes(s, PATIENCE_MS));
	CHECK(recv(s, buf, 16, 0) == 4 && !memcmp(buf, "sent", 4));
	/* Nothing is a datagram, too. */
	CHECK(!send(s, "", 0, 0));
	check_from(s, "", 0, port);
	send_to(s, "to", 2, port);
	check_from(s, "to", 2, port);
	CHECK(!connect(s, &none, sizeof(none)));
	FAILS(ENOTCONN, getpeername(s, (struct sockaddr *)&in, &len));
	send_to(s, "to nobody's", 11, port);
	check_from(s, "to nobody's", 11, port);
	/* A plain read has what was sent, and nothing else, of one that is not connected, too. */
	send_to(s, "plain", 5, port);
	CHECK(comes(s, PATIENCE_MS) && read(s, buf, 16) == 5 && !memcmp(buf, "plain", 5));
}

static void udp_refused(uint16_t port)
{
	struct sockaddr_in from;
	socklen_t len = sizeof(from);
	int s = joined(1), error = -1, i;
	char c;

	(void)port;
	for (i = 0; i < 2; i++) {
		CHECK(write(s, "x", 1) == 1 && comes(s, PATIENCE_MS));
		FAILS(ECONNREFUSED, (int)recvfrom(s, &c, 1, i ? MSG_PEEK : 0,
						  (struct sockaddr *)&from, &len));
	}
	CHECK(write(s, "x", 1) == 1 && comes(s, PATIENCE_MS));
	len = sizeof(error);
	CHECK(!getsockopt(s, SOL_SOCKET, SO_ERROR, &error, &len) && error == ECONNREFUSED);
	CHECK(!getsockopt(s, SOL_SOCKET, SO_ERROR, &error, &len) && !error);
	len = sizeof(from);
	FAILS(EAGAIN, (int)recvfrom(s, &c, 1, MSG_DONTWAIT, (struct sockaddr *)&from, &len));
}

static void udp_cut(uint16_t port)
{
	struct sockaddr_in from;
	struct iovec v[2] = { { .iov_len = 3 }, { .iov_len = 2 } };
	struct msghdr mh = { .msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = v,
			     .msg_iovlen = 2 };
	socklen_t len = sizeof(from);
	char buf[16] = "";
	int s = udp(), there;

	v[0].iov_base = buf;
	v[1].iov_base = buf + 8;
	send_to(s, "0123456789", 10, port);
	CHECK(comes(s, PATIENCE_MS) && !ioctl(s, FIONREAD, &there) && there == 10);
	CHECK(recvfrom(s, buf, 4, MSG_PEEK, (struct sockaddr *)&from, &len) == 4);
	CHECK(recvfrom(s, buf, 4, MSG_PEEK | MSG_TRUNC, (struct sockaddr *)&from, &len) == 10);
	memset(buf, 0, sizeof(buf));
	CHECK(recvmsg(s, &mh, 0) == 5 && mh.msg_flags == MSG_TRUNC);
	CHECK(mh.msg_namelen == sizeof(from) && ntohs(from.sin_port) == port);
	CHECK(!memcmp(buf, "012\0\0\0\0\00034", 10));
	send_to(s, "next", 4, port);
	check_from(s, "next", 4, port);
	FAILS(EAGAIN, (int)recvmsg(s, &mh, MSG_DONTWAIT));
}

static void udp_sizes(uint16_t port)
{
	static const size_t sizes[] = { 0, 1, 31, 32, 33, 1472, 9000, 32768, 65507 };
	static char data[65536];
	struct sockaddr_in to = at(port), nowhere = at(0);
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	int s = udp();
	size_t i;

	for (i = 0; i < sizeof(data); i++)
		data[i] = (char)(i * 31 + i / 255);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		send_to(s, data, sizes[i], port);
		check_from(s, data, sizes[i], port);
	}
	FAILS(EMSGSIZE, (int)sendto(s, data, 65508, 0, (struct sockaddr *)&to, sizeof(to)));
	FAILS(EINVAL, (int)sendto(s, data, 1, 0, (struct sockaddr *)&nowhere, sizeof(to)));
	FAILS(EINVAL, (int)sendto(s, data, 1, 0, (struct sockaddr *)&to, 8));
	FAILS(EAFNOSUPPORT, (int)sendto(s, data, 1, 0, (struct sockaddr *)&six, sizeof(six)));
	FAILS(EOPNOTSUPP, (int)sendto(s, data, 1, MSG_OOB, (struct sockaddr *)&to, sizeof(to)));
}

static void udp_many(uint16_t port)
{
	struct sockaddr_in to = at(port), from[8];
	char out[5] = "01234", in[8][8];
	struct mmsghdr v[8] = { { .msg_len = 0 } };
	struct iovec parts[8];
	struct timespec some = { .tv_sec = 20 };
	int s = udp(), i, n, got = 0;

	for (i = 0; i < 5; i++) {
		parts[i] = (struct iovec){ .iov_base = out, .iov_len = (size_t)i + 1 };
		v[i].msg_hdr = (struct msghdr){ .msg_name = &to, .msg_namelen = sizeof(to),
						.msg_iov = parts + i, .msg_iovlen = 1 };
	}
	CHECK(sendmmsg(s, v, 5, 0) == 5 && v[4].msg_len == 5 && v[0].msg_len == 1);
	while (got < 5) {
		for (i = 0; i < 8; i++) {
			parts[i] = (struct iovec){ .iov_base = in[i], .iov_len = 8 };
			v[i].msg_hdr = (struct msghdr){
				.msg_name = from + i, .msg_namelen = sizeof(to),
				.msg_iov = parts + i, .msg_iovlen = 1,
			};
		}
		n = recvmmsg(s, v, 8, MSG_WAITFORONE, &some);
		CHECK(n > 0);
		for (i = 0; i < n; i++, got++)
			CHECK(v[i].msg_len == (unsigned int)got + 1 && !memcmp(&from[i], &to, 8) &&
			      !memcmp(in[i], out, v[i].msg_len));
	}
	FAILS(EAGAIN, recvmmsg(s, v, 8, MSG_DONTWAIT, NULL));
	some.tv_nsec = 1000000000;
	FAILS(EINVAL, recvmmsg(s, v, 8, MSG_DONTWAIT, &some));
}

/* What a call points to is not there, or is more than there may be. */
static void udp_hostile(uint16_t port)
{
	static struct iovec many[1025];
	struct sockaddr_in to = at(port);
	struct msghdr mh = { .msg_name = &to, .msg_namelen = sizeof(to), .msg_iov = many,
			     .msg_iovlen = 1025 };
	void *const hole = (void *)0x10;
	socklen_t len = sizeof(to);
	int s = udp();

	FAILS(EMSGSIZE, (int)sendmsg(s, &mh, 0));
	FAILS(EMSGSIZE, (int)recvmsg(s, &mh, MSG_DONTWAIT));
	mh.msg_iovlen = 1;
	many[0] = (struct iovec){ .iov_base = hole, .iov_len = 10 };
	FAILS(EFAULT, (int)sendmsg(s, &mh, 0));
	many[0].iov_len = SIZE_MAX;
	FAILS(EINVAL, (int)sendmsg(s, &mh, 0));
	many[0].iov_len = 65508;
	FAILS(EMSGSIZE, (int)sendmsg(s, &mh, 0));
	mh.msg_iov = hole;
	FAILS(EFAULT, (int)sendmsg(s, &mh, 0));
	FAILS(EFAULT, (int)sendmsg(s, hole, 0));
	FAILS(EFAULT, (int)recvmsg(s, hole, 0));
	FAILS(EFAULT, (int)sendto(s, "x", 1, 0, hole, sizeof(to)));
	FAILS(EFAULT, sendmmsg(s, hole, 2, 0));
	FAILS(EBADF, (int)sendto(999, "x", 1, 0, (struct sockaddr *)&to, sizeof(to)));
	/* One that cannot be written is lost. */
	send_to(s, "lost", 4, port);
	CHECK(comes(s, PATIENCE_MS));
	FAILS(EFAULT, (int)recvfrom(s, hole, 4, 0, (struct sockaddr *)&to, &len));
	to = at(port);
	mh = (struct msghdr){ .msg_name = &to, .msg_namelen = sizeof(to), .msg_iov = many,
			      .msg_iovlen = 1024 };
	memset(many, 0, sizeof(many));
	many[1023] = (struct iovec){ .iov_base = "last", .iov_len = 4 };
	CHECK(sendmsg(s, &mh, 0) == 4);
	check_from(s, "last", 4, port);
}

static volatile sig_atomic_t rang;

static void ring(int sig)
{
	(void)sig;
	rang++;
}

static void alarm_in(int flags)
{
	const struct itimerval t = { .it_value.tv_usec = 100000 };
	const struct sigaction sa = { .sa_handler = ring, .sa_flags = flags };

	CHECK(!sigaction(SIGALRM, &sa, NULL) && !setitimer(ITIMER_REAL, &t, NULL));
}

static void udp_waits(uint16_t port)
{
	const struct timeval some = { .tv_usec = 100000 };
	struct sockaddr_in from;
	socklen_t len = sizeof(from);
	int s = udp();
	char buf[8];

	send_to(s, "x", 1, port);
	check_from(s, "x", 1, port);
	alarm_in(0);
	FAILS(EINTR, (int)recvfrom(s, buf, 8, 0, (struct sockaddr *)&from, &len));
	CHECK(rang == 1);
	if (!fork()) {
		usleep(500000);
		send_to(s, "later", 5, port);
		_exit(0);
	}
	alarm_in(SA_RESTART);
	CHECK(recvfrom(s, buf, 8, 0, (struct sockaddr *)&from, &len) == 5 && rang == 2);
	CHECK(!setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &some, sizeof(some)));
	FAILS(EAGAIN, (int)recvfrom(s, buf, 8, 0, (struct sockaddr *)&from, &len));
}

static void udp_polled(uint16_t port)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };
	int s = udp(), d = dup(s), ep = epoll_create1(0);
	char buf[4];

	CHECK(!epoll_ctl(ep, EPOLL_CTL_ADD, s, &ev));
	CHECK(!epoll_wait(ep, &ev, 1, 100));
	send_to(d, "one", 3, port);
	CHECK(epoll_wait(ep, &ev, 1, PATIENCE_MS) == 1 && ev.events == EPOLLIN);
	CHECK(!epoll_wait(ep, &ev, 1, 0));
	CHECK(read(d, buf, 4) == 3 && !memcmp(buf, "one", 3));
	close(s);
	/* As inetd has it: standard input and output */
	CHECK(!connect_to(d, port) && dup2(d, 0) == 0);
	close(d);
	CHECK(write(0, "two", 3) == 3);
	check_from(0, "two", 3, port);
}

/* Waits to be killed */
static void udp_killed(uint16_t port)
{
	struct sockaddr_in from = at(0);
	socklen_t len = sizeof(from);
	int s = udp();
	char c;

	(void)port;
	CHECK(!bind(s, (struct sockaddr *)&from, sizeof(from)));
	printf("waits %d\n", getpid());
	fflush(stdout);
	(void)recvfrom(s, &c, 1, 0, (struct sockaddr *)&from, &len);
}

bool udp_case(const char *name, uint16_t port)
{
	static const struct {
		const char *name;
		void (*run)(uint16_t port);
	} cases[] = {
#define CASE(name)	{ #name, name }
		CASE(udp_names), CASE(udp_connected), CASE(udp_refused), CASE(udp_cut),
		CASE(udp_sizes), CASE(udp_many), CASE(udp_hostile), CASE(udp_waits),
		CASE(udp_polled), CASE(udp_killed),
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (!strcmp(name, cases[i].name)) {
			cases[i].run(port);
			return true;
		}
	}
	return false;
}
