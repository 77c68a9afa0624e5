// SPDX-License-Identifier: MIT OR GPL-2.0
#include "client.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

volatile sig_atomic_t told;

static uint64_t random_state;

uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

uint64_t some(uint64_t n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (random_state >> 11) % n;
}

void nap_ms(uint64_t ms)
{
	const struct timespec t = { .tv_sec = (time_t)(ms / 1000),
				    .tv_nsec = (long)(ms % 1000) * 1000000 };

	nanosleep(&t, NULL);
}

void note(char what, const char *fmt, ...)
{
	char line[16384];
	va_list ap;
	int n, more;

	n = snprintf(line, sizeof(line), "%llu %c ", (unsigned long long)now_ns(), what);
	va_start(ap, fmt);
	more = vsnprintf(line + n, sizeof(line) - (size_t)n - 1, fmt, ap);
	va_end(ap);
	n += more;
	if (more < 0 || (size_t)n >= sizeof(line) - 1)
		abort();
	line[n++] = '\n';
	/* By one call: a line is whole, or it is not there. */
	if (write(STDOUT_FILENO, line, (size_t)n) != n)
		_exit(3);
}

int again(int err)
{
	if (err && !told)
		nap_ms(20 + some(80));
	return err && !told;
}

static void on_term(int sig)
{
	(void)sig;
	told = 1;
}

static const struct role {
	const char *name;
	int (*run)(const struct client *c);
} roles[] = {
	{ "submit", submitter }, { "work", worker }, { "lock", locker }, { "barrier", member },
	{ "scribble", scribbler }, { "lie", liar },
};

int main(int argc, char **argv)
{
	/* Not restarted: it ends a call that waits. */
	const struct sigaction act = { .sa_handler = on_term };
	struct client c;
	size_t i;

	if (argc != 7) {
		fprintf(stderr, "usage: client ROLE SOCKET HOME NAME NUMBER SEED\n");
		return 2;
	}
	c = (struct client){ .path = argv[2], .home = (uint32_t)atoi(argv[3]), .name = argv[4],
			     .number = strtoull(argv[5], NULL, 0) };
	random_state = strtoull(argv[6], NULL, 0) * 2654435761U + 88172645463325252ULL;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigaction(SIGTERM, &act, NULL);
	for (i = 0; i < sizeof(roles) / sizeof(roles[0]); i++)
		if (!strcmp(argv[1], roles[i].name))
			return roles[i].run(&c);
	return 2;
}
