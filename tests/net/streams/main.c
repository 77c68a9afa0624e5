// SPDX-License-Identifier: MIT OR GPL-2.0
#define _GNU_SOURCE
#include "streams.h"

#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void wrong(const char *file, int line, const char *what)
{
	const int error = errno;

	say("%s:%d: %s: %s", file, line, what, strerror(error));
	_exit(1);
}

void say(const char *format, ...)
{
	va_list args;

	/* Of several threads each has its lines. */
	flockfile(stdout);
	va_start(args, format);
	(void)vprintf(format, args);
	va_end(args);
	(void)printf("\n");
	(void)fflush(stdout);
	funlockfile(stdout);
}

const char *error_name(int error)
{
	return error ? strerrorname_np(error) : "0";
}

uint8_t byte_at(uint32_t stream, uint64_t at)
{
	const uint64_t word = (at / 8 + 1) * 0x9e3779b97f4a7c15ULL + stream * 0xbf58476d1ce4e5b9ULL;

	return (uint8_t)((word ^ word >> 29) >> (at % 8 * 8));
}

static struct sockaddr_in at(uint32_t host, uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(port),
				     .sin_addr.s_addr = htonl(host) };
}

int connect_to(uint16_t port, int flags)
{
	const struct sockaddr_in to = at(INADDR_LOOPBACK, port);
	int fd = socket(AF_INET, SOCK_STREAM | flags, 0), err;

	if (fd < 0)
		return -errno;
	if (!connect(fd, (const struct sockaddr *)&to, sizeof(to)) || errno == EINPROGRESS)
		return fd;
	err = -errno;
	close(fd);
	return err;
}

int listen_at(int backlog, uint16_t *port)
{
	struct sockaddr_in in = at(INADDR_ANY, 0);
	socklen_t len = sizeof(in);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	CHECK(fd >= 0 && !bind(fd, (struct sockaddr *)&in, sizeof(in)) && !listen(fd, backlog));
	CHECK(!getsockname(fd, (struct sockaddr *)&in, &len));
	*port = ntohs(in.sin_port);
	return fd;
}

static uint16_t port_of(const char *text)
{
	return (uint16_t)strtoul(text, NULL, 10);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	(void)signal(SIGPIPE, SIG_IGN);
	if (!strcmp(what, "serve") && argc == 2)
		return serve();
	if (!strcmp(what, "ask") && argc == 6)
		return ask(port_of(argv[2]), (uint32_t)strtoul(argv[3], NULL, 10),
			   strtoull(argv[4], NULL, 10), (uint32_t)strtoul(argv[5], NULL, 10));
	if (!strcmp(what, "states") && argc == 3)
		return states(port_of(argv[2]));
	if (!strcmp(what, "waits") && argc >= 4 && argc <= 6)
		return waits(port_of(argv[2]), port_of(argv[3]), (unsigned int)argc - 4);
	if (!strcmp(what, "made") && (argc == 3 || argc == 4)) {
		sigset_t set;

		sigemptyset(&set);
		sigaddset(&set, SIGUSR1);
		CHECK(!sigprocmask(SIG_BLOCK, &set, NULL));
		return made(port_of(argv[2]), argc == 4);
	}
	return 2;
}
