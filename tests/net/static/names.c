// SPDX-License-Identifier: MIT OR GPL-2.0
/* Names, as programs look them up that have a resolver of their own: musl, and Go without cgo. */
#define _GNU_SOURCE
#include "static.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define PATIENCE_MS	20000
#define HEAD		12

/* Whom /etc/resolv.conf names, which nobody can change */
static struct sockaddr_in name_server(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(53) };
	char line[256], at[64];
	FILE *f = fopen("/etc/resolv.conf", "r");
	int n = 0;

	CHECK(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "nameserver %63s", at) == 1)
			n++;
	fclose(f);
	CHECK(n == 1 && inet_pton(AF_INET, at, &to.sin_addr) == 1);
	FAILS(EROFS, open("/etc/resolv.conf", O_WRONLY));
	return to;
}

static size_t make_question(unsigned char *q, const char *name, unsigned char type)
{
	static const unsigned char head[HEAD] = { 'i', 0, 1, 0, 0, 1 };
	size_t at = HEAD;
	const char *dot;

	memcpy(q, head, HEAD);
	q[1] = type;
	for (; *name; name = *dot ? dot + 1 : dot) {
		dot = strchrnul(name, '.');
		q[at++] = (unsigned char)(dot - name);
		memcpy(q + at, name, (size_t)(dot - name));
		at += (size_t)(dot - name);
	}
	memcpy(q + at, "\0\0\1\0\1", 5);
	q[at + 2] = type;
	return at + 5;
}

static void print_addresses(const unsigned char *got, size_t n, size_t at)
{
	char text[INET6_ADDRSTRLEN];
	unsigned int left = got[7];

	for (; left; left--, at += 12 + got[at + 11]) {
		CHECK(at + 12 <= n && at + 12 + got[at + 11] <= n);
		CHECK(inet_ntop(got[at + 3] == 1 ? AF_INET : AF_INET6, got + at + 12, text,
				sizeof(text)));
		puts(text);
	}
}

/* Both kinds at once, of one that is not connected, as musl asks */
static int ask_both(const char *name, const struct sockaddr_in *to)
{
	static const unsigned char types[] = { 1, 28 };
	struct epoll_event ev = { .events = EPOLLIN };
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0), ep = epoll_create1(0), code = 0;
	unsigned char q[512], got[512];
	struct sockaddr_in from;
	socklen_t len;
	unsigned int i;
	ssize_t n;

	CHECK(s >= 0 && !epoll_ctl(ep, EPOLL_CTL_ADD, s, &ev));
	for (i = 0; i < 2; i++) {
		const size_t all = make_question(q, name, types[i]);

		CHECK(sendto(s, q, all, MSG_NOSIGNAL, (const struct sockaddr *)to,
			     sizeof(*to)) == (ssize_t)all);
	}
	for (i = 0; i < 2; i++) {
		CHECK(epoll_wait(ep, &ev, 1, PATIENCE_MS) == 1);
		len = sizeof(from);
		n = recvfrom(s, got, sizeof(got), 0, (struct sockaddr *)&from, &len);
		CHECK(n >= HEAD && got[0] == 'i' && !memcmp(&from, to, 8));
		code |= got[3] & 15;
		if (!(got[3] & 15))
			print_addresses(got, (size_t)n, make_question(q, name, got[1]));
	}
	close(ep);
	close(s);
	return code;
}

/* By read and write of one that is connected, as Go asks */
static int ask_one(const char *name, const struct sockaddr_in *to)
{
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct pollfd p = { .fd = s, .events = POLLIN };
	unsigned char q[512], got[512];
	const size_t all = make_question(q, name, 1);
	ssize_t n;

	CHECK(s >= 0 && !connect(s, (const struct sockaddr *)to, sizeof(*to)));
	CHECK(write(s, q, all) == (ssize_t)all && poll(&p, 1, PATIENCE_MS) == 1);
	n = read(s, got, sizeof(got));
	CHECK(n >= HEAD && !memcmp(q, got, 2));
	close(s);
	return got[3] & 15;
}

/* Its addresses, a line each; or the code of what else it is, by either way */
int look_up(const char *name)
{
	const struct sockaddr_in to = name_server();
	const int code = ask_both(name, &to);

	CHECK(ask_one(name, &to) == code);
	if (code)
		printf("code %d\n", code);
	return 0;
}
