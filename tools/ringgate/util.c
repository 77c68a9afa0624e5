// SPDX-License-Identifier: MIT OR GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <ringgate/rgate.h>

#include "clean.h"
#include "cmd.h"
#include "number.h"
#include "util.h"

volatile sig_atomic_t util_stop;

static const char *prog_name = "ringgate";

void util_set_name(const char *name)
{
	prog_name = name;
}

/*
 * What the library said last of the failure that a command is about to tell in its own
 * words: one line is printed of both. Threads of the library log, too.
 */
static pthread_mutex_t lines = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static char library_said[512];
static bool has_said;

static void to_stderr(const char *line, size_t len)
{
	fwrite(line, 1, len, stderr);
}

static void (*out)(const char *line, size_t len) = to_stderr;

void util_set_out(void (*fn)(const char *line, size_t len))
{
	out = fn;
}

/* The whole line, as it is printed; NULL: no memory */
static char *make_line(const char *why, const char *text, size_t *len)
{
	char *line = NULL;
	FILE *f = open_memstream(&line, len);

	if (!f)
		return NULL;
	fprintf(f, "%s: ", prog_name);
	clean_put(f, text);
	if (why) {
		fputs(": ", f);
		clean_put(f, why);
	}
	fputc('\n', f);
	if (!fclose(f))
		return line;
	free(line);
	return NULL;
}

/* A line at a time, also of several threads; @why: behind it, or NULL */
static void print_line(const char *why, const char *fmt, va_list ap)
{
	char *text, *line;
	size_t len = 0;

	if (vasprintf(&text, fmt, ap) < 0)
		return;
	pthread_mutex_lock(&lines);
	line = make_line(why, text, &len);
	if (line)
		out(line, len);
	*library_said = '\0';
	has_said = true;
	pthread_mutex_unlock(&lines);
	free(line);
	free(text);
}

void say(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	print_line(NULL, fmt, ap);
	va_end(ap);
}

int fail_in(const char *call, int err, const char *fmt, ...)
{
	bool whole;
	const char *why = why_text(call, err, &whole);
	va_list ap;

	pthread_mutex_lock(&lines);
	if (*library_said && !(why && whole))
		why = library_said;
	else if (!why)
		why = strerror(err < 0 ? -err : err);
	va_start(ap, fmt);
	print_line(why, fmt, ap);
	va_end(ap);
	pthread_mutex_unlock(&lines);
	return EXIT_FAIL;
}

void util_log(void *ctx, enum rgate_log_level level, const char *msg)
{
	if (level > *(const enum rgate_log_level *)ctx)
		return;
	/* who wants to see all of it gets it as it comes */
	if (level != RGATE_LOG_ERROR || *(const enum rgate_log_level *)ctx > RGATE_LOG_WARN) {
		say("%s", msg);
		return;
	}
	pthread_mutex_lock(&lines);
	snprintf(library_said, sizeof(library_said), "%s", msg);
	pthread_mutex_unlock(&lines);
}

void util_log_flush(void)
{
	char text[sizeof(library_said)];

	pthread_mutex_lock(&lines);
	memcpy(text, library_said, sizeof(text));
	if (*text && !has_said)
		say("%s", text);
	pthread_mutex_unlock(&lines);
}

uint64_t arg_number(struct argp_state *state, const char *what,
		    const char *text, uint64_t min, uint64_t max)
{
	uint64_t v = min;

	if (number_parse(text, false, min, max, &v))
		argp_error(state, "%s: '%s' is not a number from %llu to %llu", what, text,
			   (unsigned long long)min, (unsigned long long)max);
	return v;
}

int32_t arg_signed(struct argp_state *state, const char *what, const char *text, int32_t min,
		   int32_t max)
{
	int32_t v = min;

	if (number_parse_signed(text, min, max, &v))
		argp_error(state, "%s: '%s' is not a number from %d to %d", what, text, min, max);
	return v;
}

uint64_t arg_size(struct argp_state *state, const char *what, const char *text,
		  uint64_t min, uint64_t max)
{
	uint64_t v = min;

	if (number_parse(text, true, min, max, &v))
		argp_error(state, "%s: '%s' is not a number from %llu to %llu (K, M, G may follow)",
			   what, text, (unsigned long long)min, (unsigned long long)max);
	return v;
}

uint64_t arg_seconds(struct argp_state *state, const char *what,
		     const char *text)
{
	uint64_t ns = 0;

	if (number_parse_seconds(text, &ns))
		argp_error(state, "%s: '%s' is not a number of seconds from 0.001 to 1000000000",
			   what, text);
	return ns;
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
