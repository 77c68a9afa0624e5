// SPDX-License-Identifier: MIT OR GPL-2.0
#include "static.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void wrong(const char *file, int line, const char *what)
{
	printf("%s:%d: %s: %s\n", file, line, what, strerror(errno));
	fflush(stdout);
	_exit(1);
}

void is_error(const char *file, int line, int error)
{
	if (errno != error)
		wrong(file, line, strerror(error));
}

struct sockaddr_in at(uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(port),
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

uint16_t port_of(int fd)
{
	struct sockaddr_in in;
	socklen_t len = sizeof(in);

	CHECK(!getsockname(fd, (struct sockaddr *)&in, &len));
	CHECK(len == sizeof(in) && in.sin_family == AF_INET && in.sin_port);
	return ntohs(in.sin_port);
}

int listener(int flags, int backlog, uint16_t *port)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM | flags, 0);

	CHECK(fd >= 0);
	CHECK(!bind(fd, (struct sockaddr *)&in, sizeof(in)));
	CHECK(!listen(fd, backlog));
	*port = port_of(fd);
	return fd;
}

void put(int fd, const void *buf, size_t len)
{
	const char *from = buf;
	ssize_t n;

	for (; len; len -= (size_t)n, from += n) {
		n = write(fd, from, len);
		CHECK(n > 0);
	}
}

size_t get(int fd, void *buf, size_t len)
{
	size_t done = 0;
	ssize_t n;

	while (done < len && (n = read(fd, (char *)buf + done, len - done)) != 0) {
		CHECK(n > 0);
		done += (size_t)n;
	}
	return done;
}

int ask(uint16_t port, const char *word)
{
	struct sockaddr_in to = at(port);
	char text[17];
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	CHECK(fd >= 0);
	CHECK(!connect(fd, (struct sockaddr *)&to, sizeof(to)));
	(void)snprintf(text, sizeof(text), "%-16s", word);
	put(fd, text, 16);
	return fd;
}

int called_back(uint16_t port, uint16_t to, char how)
{
	int fd = ask(port, "callback");
	unsigned char word[3] = { (unsigned char)(to >> 8), (unsigned char)to, (unsigned char)how };

	put(fd, word, sizeof(word));
	return fd;
}

int new_socket(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	CHECK(fd >= 0);
	return fd;
}

int connect_to(int fd, uint16_t port)
{
	struct sockaddr_in to = at(port);

	return connect(fd, (struct sockaddr *)&to, sizeof(to));
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	const uint16_t port = argc > 2 && strcmp(what, "case") ? (uint16_t)atoi(argv[2]) : 0;

	if (!strcmp(what, "fetch") && argc == 4)
		return fetch(port, argv[3]);
	if (!strcmp(what, "fetch-events") && argc == 4)
		return fetch_events(port, argv[3]);
	if (!strcmp(what, "threads"))
		return serve_threads();
	if (!strcmp(what, "forks"))
		return serve_forks();
	if (!strcmp(what, "events"))
		return serve_events();
	if (!strcmp(what, "both"))
		return both();
	if (!strcmp(what, "udp-echo"))
		return udp_echo();
	if (!strcmp(what, "udp-echoed") && argc == 5)
		return udp_echoed(port, atoi(argv[3]), (size_t)atoi(argv[4]));
	if (!strcmp(what, "udp-resolve"))
		return udp_resolve(port);
	if (!strcmp(what, "look-up") && argc == 3)
		return look_up(argv[2]);
	if (!strcmp(what, "udp-within"))
		return udp_within();
	if (!strcmp(what, "case") && argc == 4)
		return run_case(argv[2], (uint16_t)atoi(argv[3]));
	return 2;
}
