// SPDX-License-Identifier: MIT OR GPL-2.0
/* Streams: between pipes and staging buffers. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "spawnd.h"

#define CHUNK_MIN	4096U
#define LIFT_MIN	(32U << 10)
#define FEW		32U	/* processes: their pipes are made larger */

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void spawnd_io_close(struct spawnd_stream *s)
{
	/* Closing takes it out of the set: nobody else holds this description. */
	close_fd(&s->fd);
	s->watched = s->ready = false;
	s->armed = 0;
}

/* @theirs: the process's end */
static int open_pipe(struct spawnd_job *job, struct spawnd_stream *s, bool input, int *theirs)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	if (job->sd->running <= FEW)
		(void)fcntl(fds[0], F_SETPIPE_SZ, RGATE_SPAWND_CHUNK);
	s->fd = fds[input];
	*theirs = fds[!input];
	if (!fcntl(s->fd, F_SETFL, O_NONBLOCK))
		return 0;
	close_fd(&s->fd);
	close_fd(theirs);
	return -EIO;
}

static int open_data(const struct spawnd_job *job, int *theirs)
{
	const uint32_t len = job->req.input_len;
	uint32_t at;
	int fd = memfd_create("stdin", MFD_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	/* Whoever reads it begins at its beginning. */
	for (at = 0; at < len; at += (uint32_t)n) {
		n = pwrite(fd, (const char *)job->req.input + at, len - at, at);
		if (n <= 0) {
			close(fd);
			return -EIO;
		}
	}
	*theirs = fd;
	return 0;
}

static int open_output(struct spawnd_job *job, struct spawnd_stream *s, int *theirs)
{
	if (s->mode == RGATE_SPAWN_OUT_NONE) {
		s->ended = true;
		return 0;
	}
	if (s->mode == RGATE_SPAWN_OUT_TAIL) {
		s->tail = malloc(job->req.tail_bytes);
		if (!s->tail)
			return -ENOMEM;
	}
	return open_pipe(job, s, false, theirs);
}

int spawnd_io_open(struct spawnd_job *job, int fds[3], int null)
{
	const struct rgate_spawn_parsed *req = &job->req;
	int err = 0;

	fds[0] = fds[1] = fds[2] = null;
	job->s[1].mode = req->stdout_mode;
	job->s[2].mode = req->stderr_mode;
	if (req->stdin_mode == RGATE_SPAWN_IN_STREAM)
		err = open_pipe(job, &job->s[0], true, &fds[0]);
	else if (req->stdin_mode == RGATE_SPAWN_IN_DATA)
		err = open_data(job, &fds[0]);
	if (!err)
		err = open_output(job, &job->s[1], &fds[1]);
	if (err)
		return err;
	if (req->stderr_mode != RGATE_SPAWN_OUT_STDOUT)
		return open_output(job, &job->s[2], &fds[2]);
	job->s[2].ended = true;
	fds[2] = fds[1];
	return 0;
}

void spawnd_io_undo(struct spawnd_job *job)
{
	int i;

	for (i = 0; i < 3; i++) {
		spawnd_io_close(&job->s[i]);
		free(job->s[i].tail);
		job->s[i].tail = NULL;
		job->s[i].ended = false;
	}
}

void spawnd_io_free(struct spawnd_job *job)
{
	int i;

	spawnd_io_undo(job);
	for (i = 0; i < 3; i++)
		spawnd_unstage(job->client, &job->s[i].chunk);
	spawnd_unstage(job->client, &job->st_buf);
}

/* To be told when it is ready */
void spawnd_io_arm(struct spawnd_stream *s, uint32_t events)
{
	const struct events *ev = &s->job->sd->ev;

	s->ready = false;
	if (s->armed == (events | EPOLLHUP))
		return;
	if (!(s->watched ? events_change : events_add)(ev, s->fd, events | EPOLLONESHOT,
						       events_word(&s->tag))) {
		s->watched = true;
		s->armed = events | EPOLLHUP;
	} else {
		s->ready = true;	/* looked at whenever the job is */
	}
}

uint32_t spawnd_io_room(const struct spawnd_job *job, const struct spawnd_stream *s)
{
	if (!job->attached || job->detaching || job->greet || !s->ring_len)
		return 0;
	return s->ring_len - (uint32_t)(s->produced - s->consumed);
}

void spawnd_io_end(struct spawnd_stream *s)
{
	spawnd_io_close(s);
	s->ended = true;
	s->job->tell = true;
}

/* How much to read: what is there, as far as there is room for it */
static uint32_t chunk_size(const struct spawnd_stream *s)
{
	uint32_t room = spawnd_io_room(s->job, s);
	int there = 0;

	if (ioctl(s->fd, FIONREAD, &there) || there < (int)CHUNK_MIN)
		there = CHUNK_MIN;
	if (room > (uint32_t)there)
		room = (uint32_t)there;
	return room < RGATE_SPAWND_CHUNK ? room : RGATE_SPAWND_CHUNK;
}

int spawnd_io_lift(struct rgate_spawnd *sd)
{
	if (pipe2(sd->lift, O_CLOEXEC | O_NONBLOCK)) {
		sd->lift[0] = sd->lift[1] = -1;
		return -errno;
	}
	/* Else it is lifted in smaller pieces. */
	(void)fcntl(sd->lift[0], F_SETPIPE_SZ, RGATE_SPAWND_CHUNK);
	return 0;
}

/* Of packets without bytes, too, which no read(2) of so many bytes asks for */
static bool is_left(const struct rgate_spawnd *sd)
{
	struct pollfd p = { .fd = sd->lift[0], .events = POLLIN };

	return poll(&p, 1, 0) == 1 && p.revents & POLLIN;
}

/* What is left in it would come to another process's client. Without one they are read. */
static void renew_lift(struct rgate_spawnd *sd)
{
	close_fd(&sd->lift[0]);
	close_fd(&sd->lift[1]);
	(void)spawnd_io_lift(sd);
}

/*
 * What there is of it. A read(2) of a pipe keeps out who writes to it for as long as it copies:
 * of much, the pages change hands first, into a pipe that nobody else has, which is empty
 * before and after. Whose output it is may have written packets (O_DIRECT), of which kernels
 * before 6.15 have empty ones where a write failed: such a one is no end, and many fill the pipe
 * with nothing.
 */
static ssize_t read_pipe(struct rgate_spawnd *sd, int fd, uint8_t *to, size_t len)
{
	ssize_t n, part;
	size_t got;
	int err;

	if (len < LIFT_MIN)
		return read(fd, to, len);
	n = splice(fd, NULL, sd->lift[1], NULL, len, SPLICE_F_NONBLOCK);
	err = n < 0 ? errno : 0;
	/* Somebody may not let us. */
	if (err && err != EAGAIN && err != EINTR)
		return read(fd, to, len);
	for (got = 0; n > 0 && got < (size_t)n; got += (size_t)part) {
		part = read(sd->lift[0], to + got, (size_t)n - got);
		if (part < 0) {
			n = -1;
			err = EIO;
		}
	}
	/* Nothing came: there is none, or no place for it. */
	if (err && is_left(sd))
		renew_lift(sd);
	errno = err;
	return n;
}

static bool chunk_from_pipe(struct spawnd_stream *s)
{
	const uint32_t len = chunk_size(s);
	ssize_t n;

	s->chunk = spawnd_stage(s->job->client, len);
	if (!s->chunk)
		return false;
	n = read_pipe(s->job->sd, s->fd, s->chunk->addr, len);
	if (n > 0) {
		s->chunk_len = (uint32_t)n;
		s->job->sd->stats.bytes_out += (uint64_t)n;
		return true;
	}
	spawnd_unstage(s->job->client, &s->chunk);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		spawnd_io_arm(s, EPOLLIN);
	else
		spawnd_io_end(s);
	return true;
}

/* No room: its end is to be seen even so */
static void look_for_end(struct spawnd_stream *s)
{
	struct pollfd p = { .fd = s->fd };
	int there = 0;

	if (!s->ready) {
		spawnd_io_arm(s, 0);
		return;
	}
	/* In this order: nobody writes any more, and nothing is left. */
	if (poll(&p, 1, 0) != 1)
		spawnd_io_arm(s, 0);
	else if (!ioctl(s->fd, FIONREAD, &there) && !there)
		spawnd_io_end(s);
}

/* False: no memory for it just now */
static bool read_output(struct spawnd_stream *s)
{
	if (s->ended || s->chunk)
		return true;
	if (s->tail)
		return spawnd_tail_advance(s);
	if (!spawnd_io_room(s->job, s)) {
		look_for_end(s);
		return true;
	}
	if (!s->ready) {
		spawnd_io_arm(s, EPOLLIN);
		return true;
	}
	return chunk_from_pipe(s);
}

/* write(2) to a pipe that nobody may be reading: without the signal */
static ssize_t write_pipe(int fd, const void *buf, size_t len)
{
	static const struct timespec now;
	sigset_t pipe, old, pending;
	ssize_t n;
	int err;

	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	sigpending(&pending);
	pthread_sigmask(SIG_BLOCK, &pipe, &old);
	n = write(fd, buf, len);
	err = errno;
	if (n < 0 && err == EPIPE && !sigismember(&pending, SIGPIPE))
		(void)sigtimedwait(&pipe, NULL, &now);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	errno = err;
	return n;
}

static void end_stdin(struct spawnd_stream *s, bool closed)
{
	spawnd_io_close(s);
	if (!s->job->read.under_way)
		spawnd_unstage(s->job->client, &s->chunk);
	s->closed |= closed;
	s->job->tell |= closed;
}

void spawnd_io_event(struct spawnd_stream *s, uint32_t events)
{
	s->armed = 0;
	s->ready = true;
	if (s == &s->job->s[0] && events & EPOLLERR)
		end_stdin(s, true);
}

static void write_stdin(struct spawnd_stream *s)
{
	ssize_t n;

	while (s->chunk && s->chunk_len) {
		n = write_pipe(s->fd, (uint8_t *)s->chunk->addr + s->chunk_at,
			       s->chunk_len - s->chunk_at);
		if (n > 0) {
			s->chunk_at += (uint32_t)n;
			s->job->sd->stats.bytes_in += (uint64_t)n;
			if (s->chunk_at == s->chunk_len) {
				s->chunk_len = 0;
				spawnd_unstage(s->job->client, &s->chunk);
			}
			continue;
		}
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			spawnd_io_arm(s, EPOLLOUT);
		else
			end_stdin(s, true);
		return;
	}
}

/* Takes more of it out of the client's memory. False: later */
static bool fetch_stdin(struct spawnd_job *job, struct spawnd_stream *s)
{
	const uint32_t at = (uint32_t)(s->taken % s->ring_len);
	uint64_t len = s->given - s->taken;

	if (len > s->ring_len - at)
		len = s->ring_len - at;
	if (len > RGATE_SPAWND_READ)
		len = RGATE_SPAWND_READ;
	s->chunk = spawnd_stage(job->client, len);
	if (!s->chunk)
		return false;
	s->chunk_len = 0;
	s->chunk_at = (uint32_t)len;	/* until it is there */
	return spawnd_batch_read_stdin(job, s->ring + at, (uint32_t)len);
}

void spawnd_io_stdin_done(struct spawnd_job *job, int err)
{
	struct spawnd_stream *s = &job->s[0];

	if (err || s->fd < 0) {
		/* Read once more over another connection, or wanted by nobody. */
		spawnd_unstage(job->client, &s->chunk);
		return;
	}
	s->chunk_len = s->chunk_at;
	s->chunk_at = 0;
	s->taken += s->chunk_len;
	/* The client's ring has room again. */
	if (s->taken == s->given || s->taken - s->taken_told >= s->ring_len / 4)
		job->tell = true;
}

static bool advance_stdin(struct spawnd_job *job)
{
	struct spawnd_stream *s = &job->s[0];

	if (s->fd < 0)
		return true;
	if (s->chunk && s->chunk_len && !(s->armed & EPOLLOUT))
		write_stdin(s);
	if (s->fd < 0 || s->chunk || job->read.under_way)
		return true;
	if (s->given != s->taken)
		return job->attached && !job->detaching ? fetch_stdin(job, s) : true;
	if (s->given_all)
		end_stdin(s, false);
	else
		spawnd_io_arm(s, 0);	/* EPOLLERR: the last reader is gone */
	return true;
}

bool spawnd_io_advance(struct spawnd_job *job)
{
	bool fine = true, news;
	int i;

	/* It is told that it runs before what it says. */
	if (job->step >= RGATE_JOB_RUNNING && !job->batch.under_way)
		for (i = 1; i < 3; i++)
			fine &= read_output(&job->s[i]);
	if (job->step == RGATE_JOB_RUNNING)
		fine &= advance_stdin(job);
	if (!job->attached || job->detaching || job->batch.under_way || !job->client->session.up)
		return fine;
	news = job->tell;
	for (i = 1; i < 3; i++)
		news |= spawnd_batch_has(job, &job->s[i]);
	if (news && job->step != RGATE_JOB_READING)
		fine &= spawnd_batch_post(job);
	return fine;
}

bool spawnd_io_ended(const struct spawnd_job *job)
{
	int i;

	for (i = 1; i < 3; i++)
		if (!job->s[i].ended || job->s[i].chunk)
			return false;
	return true;
}
