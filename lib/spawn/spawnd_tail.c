// SPDX-License-Identifier: MIT OR GPL-2.0
/* The last bytes of an output: kept in a circle until it ends, then sent like others. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "spawnd.h"

#define PIECE	(16U << 10)	/* on the stack */
#define TURN	64		/* pieces, before others are read */

/* Byte number n is at n % size. */
static void keep(struct spawnd_stream *s, const uint8_t *from, uint32_t len)
{
	const uint32_t size = s->job->req.tail_bytes;
	uint32_t at, first;

	s->job->sd->stats.bytes_out += len;
	if (len > size) {
		s->tail_total += len - size;
		from += len - size;
		len = size;
	}
	at = (uint32_t)(s->tail_total % size);
	first = len < size - at ? len : size - at;
	memcpy(s->tail + at, from, first);
	memcpy(s->tail, from + first, len - first);
	s->tail_total += len;
}

void spawnd_tail_close(struct spawnd_stream *s)
{
	const uint32_t size = s->job->req.tail_bytes;

	spawnd_io_close(s);
	s->tail_sent = s->tail_total > size ? s->tail_total - size : 0;
	s->job->st.dropped[s - s->job->s - 1] = s->tail_sent;
}

static void take(struct spawnd_stream *s)
{
	uint8_t piece[PIECE];
	ssize_t n;
	int i;

	for (i = 0; i < TURN; i++) {
		n = read(s->fd, piece, sizeof(piece));
		if (n > 0) {
			keep(s, piece, (uint32_t)n);
			continue;
		}
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			spawnd_io_arm(s, EPOLLIN);
		else
			spawnd_tail_close(s);
		return;
	}
	spawnd_job_mark(s->job);
}

/* What was kept goes the way of other output. False: no memory for it just now */
static bool send_kept(struct spawnd_stream *s)
{
	const uint32_t size = s->job->req.tail_bytes, at = (uint32_t)(s->tail_sent % size);
	uint32_t len = spawnd_io_room(s->job, s);

	if (s->tail_sent == s->tail_total) {
		spawnd_io_end(s);
		return true;
	}
	if (!len)
		return true;
	if (len > s->tail_total - s->tail_sent)
		len = (uint32_t)(s->tail_total - s->tail_sent);
	if (len > size - at)
		len = size - at;
	s->chunk = spawnd_stage(s->job->client, len);
	if (!s->chunk)
		return false;
	memcpy(s->chunk->addr, s->tail + at, len);
	s->chunk_len = len;
	s->tail_sent += len;
	return true;
}

bool spawnd_tail_advance(struct spawnd_stream *s)
{
	if (s->fd >= 0 && s->ready)
		take(s);
	else if (s->fd >= 0)
		spawnd_io_arm(s, EPOLLIN);
	/* Its end may just have been seen. */
	return s->fd >= 0 || send_kept(s);
}
