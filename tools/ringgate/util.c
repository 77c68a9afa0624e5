// SPDX-License-Identifier: MIT OR GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <ringgate/rgate.h>

#include "cmd.h"
#include "util.h"

volatile sig_atomic_t util_stop;

static const char *prog_name = "ringgate";

void util_set_name(const char *name)
{
	prog_name = name;
}

void say(const char *fmt, ...)
{
	va_list ap;

	/* A line at a time, also of several threads */
	flockfile(stderr);
	fprintf(stderr, "%s: ", prog_name);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	funlockfile(stderr);
}

int fail(int err, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "%s: ", prog_name);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, ": %s (%s)\n", rgate_strerror(err),
		strerrorname_np(err < 0 ? -err : err) ?: "unknown");
	return EXIT_FAIL;
}

int fail_no_module(void)
{
	say("the ringgate module is not loaded; run `ringgate load` as root, or "
	    "`ringgate doctor` to see what is missing");
	return EXIT_NO_MODULE;
}

bool is_no_module(int err)
{
	return err == -ENOENT || err == -ENXIO;
}

static uint64_t number(struct argp_state *state, const char *what,
		       const char *text, uint64_t min, uint64_t max,
		       bool suffix)
{
	unsigned long long v;
	unsigned int shift = 0;
	char *end;

	errno = 0;
	v = strtoull(text, &end, 0);
	if (end == text || strchr(text, '-') || errno == ERANGE)
		goto bad;
	if (suffix && (*end == 'K' || *end == 'k'))
		shift = 10;
	else if (suffix && *end == 'M')
		shift = 20;
	else if (suffix && *end == 'G')
		shift = 30;
	if (shift)
		end++;
	if (*end || v > UINT64_MAX >> shift)
		goto bad;
	v <<= shift;
	if (v >= min && v <= max)
		return v;
bad:
	argp_error(state, "%s: '%s' is not a number from %llu to %llu", what,
		   text, (unsigned long long)min, (unsigned long long)max);
	return min;
}

uint64_t arg_number(struct argp_state *state, const char *what,
		    const char *text, uint64_t min, uint64_t max)
{
	return number(state, what, text, min, max, false);
}

uint64_t arg_size(struct argp_state *state, const char *what, const char *text,
		  uint64_t min, uint64_t max)
{
	return number(state, what, text, min, max, true);
}

uint64_t arg_seconds(struct argp_state *state, const char *what,
		     const char *text)
{
	char *end;
	double v;

	errno = 0;
	v = strtod(text, &end);
	if (end == text || *end || errno || !(v >= 0.001) || v > 1e9)
		argp_error(state, "%s: '%s' is not a number of seconds, 0.001 "
			   "or more", what, text);
	return (uint64_t)(v * 1e9);
}

static const int stop_signals[] = { SIGINT, SIGTERM, SIGHUP };

/*
 * A signal that comes again a second later ends the process: the first was not
 * enough. At once it says nothing new: timeout(1) sends each one twice, to the
 * process and to its group.
 */
static void on_signal(int sig)
{
	static volatile uint64_t first;
	int err = errno;

	if (!util_stop) {
		util_stop = sig;
		first = util_now();
	} else if (util_now() - first > NSEC) {
		signal(sig, SIG_DFL);
		raise(sig);
	}
	errno = err;
}

void util_catch_signals(void)
{
	struct sigaction sa = {
		.sa_handler = on_signal,	/* no SA_RESTART */
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(stop_signals); i++)
		sigaction(stop_signals[i], &sa, NULL);
	signal(SIGPIPE, SIG_IGN);
}

uint64_t util_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NSEC + ts.tv_nsec;
}

void util_block_signals(sigset_t *old)
{
	sigset_t block;
	size_t i;

	sigemptyset(&block);
	for (i = 0; i < ARRAY_SIZE(stop_signals); i++)
		sigaddset(&block, stop_signals[i]);
	sigprocmask(SIG_BLOCK, &block, old);
}

void util_sleep(uint64_t until_ns)
{
	struct timespec ts;
	sigset_t old;
	uint64_t now = util_now();

	if (now >= until_ns)
		return;
	util_block_signals(&old);
	ts.tv_sec = (until_ns - now) / NSEC;
	ts.tv_nsec = (until_ns - now) % NSEC;
	if (!util_stop)
		ppoll(NULL, 0, &ts, &old);
	sigprocmask(SIG_SETMASK, &old, NULL);
}

bool util_stdout_dead(void)
{
	if (!fflush(stdout) && !ferror(stdout))
		return false;
	/* A reader that has seen enough is no failure: stop as for a signal. */
	if (errno == EPIPE && !util_stop)
		util_stop = SIGPIPE;
	return true;
}

int util_read_line(const char *path, char *buf, size_t len)
{
	FILE *f = fopen(path, "re");
	int err = 0;

	if (!f)
		return -errno;
	if (!fgets(buf, len, f))
		err = ferror(f) ? -EIO : -ENODATA;
	fclose(f);
	if (!err)
		buf[strcspn(buf, "\n")] = '\0';
	return err;
}
