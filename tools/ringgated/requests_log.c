// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clean.h"
#include "limit.h"
#include "requests_log.h"
#include "util.h"

#define QUEUE		256	/* lines */
#define USERS		256	/* whose share is known */
#define BURST		100	/* lines of a user at once, */
#define EACH_NS		(NSEC / 20)	/* then one in so long */
#define PREFIX		100	/* bytes in front of a line and behind it */
#define LOOK_MS		100	/* whether to end, while nobody reads the log */
#define END_NS		NSEC	/* for what is queued at the end */

/* A byte becomes up to four. So much is written to a pipe at once, or waits for room. */
_Static_assert(4 * REQUEST_LOG_TEXT + PREFIX <= PIPE_BUF, "a line is written by one write");

struct user {
	uid_t uid;
	uint64_t at;		/* CLOCK_MONOTONIC ns of his last line; 0: none */
	struct limit limit;
};

struct request_log {
	int fd;
	pthread_t thread;
	pthread_mutex_t lock;	/* all below */
	pthread_cond_t more;
	char *line[QUEUE];
	unsigned int first, count;
	bool ending;
	struct request_log_stats stats;
	struct user users[USERS];
};

/* A pipe that nobody reads is looked at again, until the end comes. False: that came first */
static bool write_line(struct request_log *log, const char *line)
{
	struct pollfd p = { .fd = log->fd, .events = POLLOUT };
	bool ending, done = false;

	do {
		if (poll(&p, 1, LOOK_MS) > 0)
			done = write(log->fd, line, strlen(line)) >= 0 ||
			       (errno != EAGAIN && errno != EINTR);
		pthread_mutex_lock(&log->lock);
		ending = log->ending;
		if (done)
			log->stats.written++;
		pthread_mutex_unlock(&log->lock);
	} while (!done && !ending);
	return done;
}

/* The next line, to be freed; NULL: there are none, and no more come */
static char *next_line(struct request_log *log)
{
	char *line = NULL;

	pthread_mutex_lock(&log->lock);
	while (!log->count && !log->ending)
		pthread_cond_wait(&log->more, &log->lock);
	if (log->count) {
		line = log->line[log->first];
		log->first = (log->first + 1) % QUEUE;
		log->count--;
	}
	pthread_mutex_unlock(&log->lock);
	return line;
}

static void *write_lines(void *arg)
{
	struct request_log *log = arg;
	bool on = true;
	char *line;

	while (on && (line = next_line(log))) {
		on = write_line(log, line);
		free(line);
	}
	return NULL;
}

int request_log_open(struct request_log **out, int fd)
{
	struct request_log *log = calloc(1, sizeof(*log));
	int err;

	if (!log)
		return -ENOMEM;
	log->fd = fd;
	pthread_mutex_init(&log->lock, NULL);
	pthread_cond_init(&log->more, NULL);
	err = -pthread_create(&log->thread, NULL, write_lines, log);
	if (err)
		free(log);
	else
		*out = log;
	return err;
}

/* NULs are text here, where they end one elsewhere. */
static void put_text(FILE *f, const char *text, size_t len)
{
	char copy[REQUEST_LOG_TEXT + 1];
	size_t at, n;

	memcpy(copy, text, len);
	copy[len] = '\0';
	for (at = 0; at < len; at += n) {
		n = strlen(copy + at);
		clean_put(f, copy + at);
		if (at + n < len) {
			fputs("\\x00", f);
			n++;
		}
	}
}

static char *make_line(uid_t uid, const char *text, size_t len, unsigned int swallowed)
{
	char *line = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&line, &size);

	if (!f)
		return NULL;
	fprintf(f, "ringgated: uid %u: ", uid);
	put_text(f, text, len);
	if (swallowed)
		fprintf(f, " (%u lines were left out)", swallowed);
	fputc('\n', f);
	if (!fclose(f))
		return line;
	free(line);
	return NULL;
}

/* Of that uid. One that was silent longest gets a full share anew when it comes back. */
static struct user *find_user(struct request_log *log, uid_t uid)
{
	struct user *u, *oldest = log->users;

	for (u = log->users; u < log->users + USERS; u++) {
		if (u->at && u->uid == uid)
			return u;
		if (u->at < oldest->at)
			oldest = u;
	}
	*oldest = (struct user){ .uid = uid };
	return oldest;
}

static int queue(struct request_log *log, uid_t uid, const char *text, size_t len)
{
	struct user *u = find_user(log, uid);
	unsigned int swallowed = 0;
	char *line;

	u->at = util_now();
	if (!limit_pass(&u->limit, BURST, EACH_NS, u->at, &swallowed))
		return -EAGAIN;
	line = log->count < QUEUE ? make_line(uid, text, len, swallowed) : NULL;
	if (!line) {
		u->limit.swallowed = swallowed + 1;
		return log->count < QUEUE ? -ENOMEM : -EAGAIN;
	}
	log->line[(log->first + log->count++) % QUEUE] = line;
	pthread_cond_signal(&log->more);
	return 0;
}

int request_log_line(struct request_log *log, uid_t uid, const char *text, size_t len)
{
	int err;

	if (len && text[len - 1] == '\n')
		len--;
	if (len > REQUEST_LOG_TEXT)
		return -EMSGSIZE;
	pthread_mutex_lock(&log->lock);
	err = queue(log, uid, text, len);
	if (err)
		log->stats.dropped++;
	pthread_mutex_unlock(&log->lock);
	return err;
}

void request_log_stats(struct request_log *log, struct request_log_stats *stats)
{
	pthread_mutex_lock(&log->lock);
	*stats = log->stats;
	pthread_mutex_unlock(&log->lock);
}

void request_log_close(struct request_log *log)
{
	struct timespec end;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += END_NS / NSEC;
	pthread_mutex_lock(&log->lock);
	log->ending = true;
	pthread_cond_signal(&log->more);
	pthread_mutex_unlock(&log->lock);
	/* It may wait in write(2), as others write to the log, too: the process's end ends it. */
	if (pthread_timedjoin_np(log->thread, NULL, &end)) {
		pthread_detach(log->thread);
		return;
	}
	while (log->count) {
		free(log->line[log->first]);
		log->first = (log->first + 1) % QUEUE;
		log->count--;
	}
	free(log);
}
