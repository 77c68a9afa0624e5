// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "errout.h"

static int out = STDERR_FILENO;
static bool is_socket;
static uint64_t dropped, told;

/*
 * Not to wait is a flag of the open file, which others have, too, and take for a failure: a
 * pipe or a terminal is opened anew. A socket cannot be, and needs not: it has a flag a call.
 */
void errout_open(void)
{
	struct stat st;
	int fd;

	if (fstat(STDERR_FILENO, &st))
		return;
	is_socket = S_ISSOCK(st.st_mode);
	if (!S_ISFIFO(st.st_mode) && !S_ISCHR(st.st_mode))
		return;
	fd = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd >= 0)
		out = fd;
}

/* False: there is no room for it, now */
static bool put(const char *text, size_t len)
{
	struct pollfd p = { .fd = out, .events = POLLOUT };
	ssize_t n;

	/* Also of a pipe that could not be opened anew: then another process may be first. */
	if (!poll(&p, 1, 0))
		return false;
	n = is_socket ? send(out, text, len, MSG_DONTWAIT | MSG_NOSIGNAL) : write(out, text, len);
	/* Other errors are for ever, and nobody could be told. */
	return n >= 0 || (errno != EAGAIN && errno != EINTR);
}

void errout_line(const char *line, size_t len)
{
	char note[80];
	uint64_t more = dropped - told;

	if (more) {
		int n = snprintf(note, sizeof(note),
				 "ringgated: %llu lines were left out, as nobody read them\n",
				 (unsigned long long)more);

		if (put(note, (size_t)n))
			told = dropped;
	}
	if (!put(line, len))
		__atomic_store_n(&dropped, dropped + 1, __ATOMIC_RELAXED);
}

uint64_t errout_dropped(void)
{
	return __atomic_load_n(&dropped, __ATOMIC_RELAXED);
}
