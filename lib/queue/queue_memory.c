// SPDX-License-Identifier: MIT OR GPL-2.0
/* Tasks and results whose bytes are in exported memory: whoever wants them copies them. */
#include <errno.h>
#include <string.h>

#include <ringgate/memory.h>

#include "clock.h"
#include "queue_client.h"
#include "queues.h"

#define PIECE	(OUT_LEN - RGATE_QUEUE_NAME_ROOM)	/* behind the name, of what is asked */

RGATE_ASSERT(RGATE_MEMORY_NAME_MAX < RGATE_QUEUE_NAME_ROOM);
RGATE_ASSERT(PIECE <= RGATE_MEMORY_LEN_MAX);

int rgate_queue_memory(struct rgate_queue_memory *m, uint32_t node, uint32_t owner,
		       const char *name, uint64_t off, uint64_t len)
{
	struct rgate_queue_memory made = {
		.magic = RGATE_QUEUE_MEMORY_MAGIC, .off = off, .len = len, .node = node,
		.owner = owner,
	};

	if (!name || strlen(name) >= sizeof(made.name))
		return -EINVAL;
	memcpy(made.name, name, strlen(name) + 1);
	return rgate_queue_memory_of(&made, sizeof(made), m);
}

int rgate_queue_memory_of(const void *bytes, size_t len, struct rgate_queue_memory *out)
{
	struct rgate_queue_memory m;

	if (len != sizeof(m))
		return -EINVAL;
	memcpy(&m, bytes, sizeof(m));
	if (m.magic != RGATE_QUEUE_MEMORY_MAGIC || m.off + m.len < m.off || !queue_name_ok(m.name))
		return -EINVAL;
	*out = m;
	return 0;
}

struct fetch {
	struct rgate_queue *q;
	uint64_t until;			/* ns; UINT64_MAX: no limit */
	uint32_t handle;
	void (*each)(void *ctx);
	void *ctx;
};

static int ask(struct fetch *f, struct rgate_request r, uint64_t *value)
{
	const uint64_t now = rgate_clock_now(CLOCK_MONOTONIC);
	int ms = -1;

	if (f->until != UINT64_MAX)
		ms = now < f->until ? (int)((f->until - now + 999999) / 1000000) : 0;
	r.handle = f->handle;
	return sync_client_ask(&f->q->client, r, ms, value);
}

/* How long it is, too: not below @end */
static int open_it(struct fetch *f, const struct rgate_queue_memory *m, uint64_t end)
{
	const size_t len = strlen(m->name);
	uint64_t value;
	int err;

	memcpy(f->q->out, m->name, len);
	err = ask(f, (struct rgate_request){
		.op = RGATE_REQ_MEMORY_OPEN, .len = (uint32_t)len,
		.a0 = m->node == RGATE_QUEUE_MEMORY_HERE ? RGATE_MEMORY_HERE : m->node,
		.a1 = RGATE_MEMORY_OPEN_A1(m->owner, RGATE_MEMORY_READ) }, &value);
	if (err)
		return err;
	f->handle = RGATE_MEMORY_HANDLE(value);
	return end <= RGATE_MEMORY_LENGTH(value) ? 0 : -ERANGE;
}

/* Piece by piece: from the session's memory, which no other node can write */
static int copy(struct fetch *f, uint64_t from, char *buf, size_t len)
{
	int err = 0;

	while (len && !err) {
		const size_t n = len < PIECE ? len : PIECE;

		err = ask(f, (struct rgate_request){
			.op = RGATE_REQ_MEMORY_READ, .a0 = from, .off = RGATE_QUEUE_NAME_ROOM,
			.len = (uint32_t)n }, NULL);
		if (err)
			break;
		memcpy(buf, f->q->out + RGATE_QUEUE_NAME_ROOM, n);
		from += n;
		buf += n;
		len -= n;
		if (f->each)
			f->each(f->ctx);
	}
	return err;
}

int queue_fetch(struct rgate_queue *q, const struct rgate_queue_memory *memory, uint64_t off,
		void *buf, size_t len, int timeout_ms, void (*each)(void *ctx), void *ctx)
{
	struct fetch f = { .q = q, .until = UINT64_MAX, .each = each, .ctx = ctx };
	struct rgate_queue_memory m;
	int err;

	/* What it says may lie in memory that others write. */
	err = rgate_queue_memory_of(memory, sizeof(*memory), &m);
	if (!err)
		err = queue_mine(q);
	if (!err && timeout_ms < -1)
		err = -EINVAL;
	if (!err && (off > m.len || len > m.len - off))
		err = -ERANGE;
	if (err || !len)
		return err;
	if (timeout_ms >= 0)
		f.until = rgate_clock_now(CLOCK_MONOTONIC) + (uint64_t)timeout_ms * 1000000;
	err = open_it(&f, &m, m.off + m.len);
	if (!err)
		err = copy(&f, m.off + off, buf, len);
	if (f.handle)
		(void)sync_client_ask(&q->client, (struct rgate_request){
			.op = RGATE_REQ_MEMORY_RELEASE, .handle = f.handle },
			SYNC_CLIENT_SURE, NULL);
	return err;
}

int rgate_queue_fetch(struct rgate_queue *q, const struct rgate_queue_memory *memory, uint64_t off,
		      void *buf, size_t len, int timeout_ms)
{
	return queue_fetch(q, memory, off, buf, len, timeout_ms, NULL, NULL);
}
