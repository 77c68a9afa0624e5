// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ringgate/rgate_queue.h>

#include "opts.h"
#include "queue_client.h"
#include "queues.h"

#define TIMEOUT_MS	5000
#define LIST_MOST	(16 * QUEUES_MOST)	/* some come and go meanwhile */
#define FLAGS		(RGATE_QUEUE_FLAGS | RGATE_QUEUE_OF | RGATE_QUEUE_AT)

/* ---- A queue ---- */

static bool is_name(const char *name)
{
	return name && strlen(name) <= RGATE_QUEUE_NAME_MAX;
}

/* NULL: the queue is made */
static int read_opts(struct rgate_queue_opts *o, const struct rgate_queue_opts *opts)
{
	int err = rgate_opts_copy(o, sizeof(*o), opts);

	if (err)
		return err;
	if (!opts)
		o->flags = RGATE_QUEUE_CREATE;
	return o->flags & ~FLAGS || o->timeout_ms > INT32_MAX ? -EINVAL : 0;
}

static int timeout_of(const struct rgate_queue_opts *o)
{
	return o->timeout_ms ? (int)o->timeout_ms : TIMEOUT_MS;
}

static int connect_to(struct rgate_queue *q, const struct rgate_queue_opts *o)
{
	const struct rgate_session_opts so = RGATE_OPTS(rgate_session_opts,
		.path = o->path, .where = o->where, .requests = RGATE_REQ_PLACES_MIN,
		.memory = OUT_LEN + IN_LEN);
	int err;

	q->client.timeout_ms = timeout_of(o);
	err = rgate_session_open(&q->client.session, &so);
	/* ENOENT is a queue that is not there. */
	if (err)
		return err == -ENOENT ? -ECONNREFUSED : err;
	q->out = rgate_session_memory(q->client.session, NULL);
	q->in = q->out + OUT_LEN;
	return 0;
}

static int ask_for(struct rgate_queue *q, struct rgate_request r, int timeout_ms, uint64_t *value)
{
	r.handle = q->client.handle;
	return sync_client_ask(&q->client, r, timeout_ms, value);
}

/* What ends by itself */
static int ask(struct rgate_queue *q, struct rgate_request r, uint64_t *value)
{
	return ask_for(q, r, q->client.timeout_ms, value);
}

static uint64_t home_of(const struct rgate_queue_opts *o)
{
	return o->flags & RGATE_QUEUE_AT ? o->home : RGATE_QUEUE_HERE;
}

static int open_it(struct rgate_queue *q, const char *name, const struct rgate_queue_opts *o)
{
	const uint32_t owner = o->flags & RGATE_QUEUE_OF ? o->owner : geteuid();
	struct rgate_queue_place place = {
		.bytes = o->bytes, .tasks = o->tasks, .attempts = o->attempts,
		.run_ms = o->run_ms, .result_ms = o->result_ms,
	};
	const struct rgate_request r = {
		.op = RGATE_REQ_QUEUE_OPEN, .a0 = home_of(o), .len = sizeof(place),
		.a1 = RGATE_QUEUE_OPEN_A1(owner, o->flags & RGATE_QUEUE_FLAGS),
	};
	uint64_t handle = 0;
	int err;

	memcpy(place.name, name, strlen(name) + 1);
	memcpy(q->out, &place, sizeof(place));
	err = ask(q, r, &handle);
	q->client.handle = (uint32_t)handle;
	return err;
}

int rgate_queue_open(struct rgate_queue **out, const char *name,
		     const struct rgate_queue_opts *opts)
{
	struct rgate_queue_opts o;
	struct rgate_queue *q;
	int err;

	err = is_name(name) ? read_opts(&o, opts) : -EINVAL;
	if (err)
		return err;
	q = calloc(1, sizeof(*q));
	if (!q)
		return -ENOMEM;
	err = connect_to(q, &o);
	if (!err)
		err = open_it(q, name, &o);
	if (err)
		rgate_queue_close(q);
	else
		*out = q;
	return err;
}

void rgate_queue_close(struct rgate_queue *q)
{
	if (!q)
		return;
	/* When this returns others may have what it had claimed. */
	if (q->client.handle)
		(void)ask_for(q, (struct rgate_request){ .op = RGATE_REQ_QUEUE_CLOSE },
			      SYNC_CLIENT_SURE, NULL);
	sync_later_close(&q->client);
	rgate_session_close(q->client.session);
	free(q);
}

int rgate_queue_handle(struct rgate_session *session, const char *name,
		       const struct rgate_queue_opts *opts, uint32_t *handle)
{
	struct rgate_queue q = { .client.session = session };
	struct rgate_queue_opts o;
	size_t len = 0;
	int err;

	err = is_name(name) ? read_opts(&o, opts) : -EINVAL;
	if (err)
		return err;
	/* What has been lent, or the session of another process, is not written to. */
	err = rgate_session_wait(session, 0);
	if (err)
		return err < 0 ? err : -EBUSY;
	q.client.timeout_ms = timeout_of(&o);
	q.out = rgate_session_memory(session, &len);
	if (len < sizeof(struct rgate_queue_place))
		return -EINVAL;
	err = open_it(&q, name, &o);
	if (!err)
		*handle = q.client.handle;
	return err;
}

/* ---- Tasks ---- */

/* As many as there is room for: their bytes. -EINVAL, -EMSGSIZE: the first one */
static int write_jobs(struct rgate_queue *q, const struct rgate_queue_job *jobs, unsigned int n)
{
	struct rgate_queue_put put;
	unsigned int i;
	uint32_t off = 0;

	for (i = 0; i < n; i++) {
		if (jobs[i].len > RGATE_QUEUE_DATA_MAX)
			return i ? (int)off : -EMSGSIZE;
		if (off + sizeof(put) + RGATE_QUEUE_PADDED(jobs[i].len) > OUT_LEN)
			break;
		put = (struct rgate_queue_put){
			.len = jobs[i].len, .delay_ms = jobs[i].delay_ms,
			.attempts = jobs[i].attempts, .type = jobs[i].type,
			.priority = jobs[i].priority, .flags = jobs[i].flags,
			.reserved = jobs[i].reserved,
		};
		memcpy(q->out + off, &put, sizeof(put));
		off += (uint32_t)sizeof(put);
		if (put.len)
			memcpy(q->out + off, jobs[i].data, put.len);
		off += (uint32_t)RGATE_QUEUE_PADDED(put.len);
	}
	return (int)off;
}

int rgate_queue_submit(struct rgate_queue *q, const struct rgate_queue_job *jobs, unsigned int n,
		       int timeout_ms, uint64_t *first)
{
	struct rgate_request r = { .op = RGATE_REQ_QUEUE_SUBMIT };
	int len = n ? queue_mine(q) : -EINVAL;

	if (!len)
		len = write_jobs(q, jobs, n);
	if (len < 0)
		return len;
	r.len = (uint32_t)len;
	if (!timeout_ms)
		return ask(q, r, first);
	r.a1 = RGATE_SUBMIT_ROOM;
	return ask_for(q, r, timeout_ms, first);
}

/* What is at @off of @total bytes that were told; where the next one is; 0: it is none */
static uint32_t read_task(const struct rgate_queue *q, uint32_t off, uint32_t total,
			  struct rgate_queue_got *got)
{
	uint64_t need;

	if (total - off < sizeof(got->task))
		return 0;
	memcpy(&got->task, q->in + off, sizeof(got->task));
	need = RGATE_QUEUE_PADDED(got->task.len);
	got->data = q->in + off + sizeof(got->task);
	got->end = (const char *)got->data + need;
	need += sizeof(got->task) + RGATE_QUEUE_PADDED(got->task.end_len);
	return need > total - off ? 0 : off + (uint32_t)need;
}

struct rgate_request queue_claim_request(uint64_t types, unsigned int most, uint32_t flags)
{
	return (struct rgate_request){
		.op = RGATE_REQ_QUEUE_CLAIM, .a0 = types, .a1 = RGATE_CLAIM_A1(most, flags),
		.off = OUT_LEN, .len = RGATE_QUEUE_PART_MAX,
	};
}

int queue_read_tasks(const struct rgate_queue *q, int total, uint64_t n, unsigned int most,
		     struct rgate_queue_got *got)
{
	uint32_t off = 0;
	uint64_t i;

	if (total < 0)
		return total;
	for (i = 0; i < n && i < most; i++) {
		off = read_task(q, off, (uint32_t)total, &got[i]);
		if (!off)
			return -EPROTO;
	}
	return (int)i;
}

int rgate_queue_claim(struct rgate_queue *q, uint64_t types, unsigned int most, uint32_t flags,
		      int timeout_ms, struct rgate_queue_got *got)
{
	uint64_t n = 0;
	int total;

	if (q->later)
		return -EBUSY;
	if (flags & RGATE_CLAIM_NOW)
		timeout_ms = q->client.timeout_ms;
	total = ask_for(q, queue_claim_request(types, most, flags), timeout_ms, &n);
	return queue_read_tasks(q, total, n, most, got);
}

int queue_of_task(struct rgate_queue *q, uint16_t op, const struct rgate_queue_task *task,
		  uint32_t ms, size_t len)
{
	const struct rgate_request r = {
		.op = op, .a0 = task->id, .a1 = RGATE_TASK_A1(task->claim, ms),
		.len = (uint32_t)len,
	};

	return ask(q, r, NULL);
}

int rgate_queue_begin(struct rgate_queue *q, const struct rgate_queue_task *task)
{
	return queue_of_task(q, RGATE_REQ_QUEUE_BEGIN, task, 0, 0);
}

int rgate_queue_touch(struct rgate_queue *q, const struct rgate_queue_task *task)
{
	return queue_of_task(q, RGATE_REQ_QUEUE_TOUCH, task, 0, 0);
}

int rgate_queue_complete(struct rgate_queue *q, const struct rgate_queue_task *task,
			 const void *result, size_t len)
{
	int err = len > RGATE_QUEUE_DATA_MAX ? -EMSGSIZE : queue_mine(q);

	if (err)
		return err;
	if (len)
		memcpy(q->out, result, len);
	return queue_of_task(q, RGATE_REQ_QUEUE_COMPLETE, task, 0, len);
}

int rgate_queue_release(struct rgate_queue *q, const struct rgate_queue_task *task,
			uint32_t delay_ms)
{
	return queue_of_task(q, RGATE_REQ_QUEUE_RELEASE, task, delay_ms, 0);
}

int rgate_queue_bury(struct rgate_queue *q, const struct rgate_queue_task *task,
		     const char *reason)
{
	const size_t len = reason ? strnlen(reason, RGATE_QUEUE_REASON_MAX) : 0;
	int err = queue_mine(q);

	if (err)
		return err;
	if (len)
		memcpy(q->out, reason, len);
	return queue_of_task(q, RGATE_REQ_QUEUE_BURY, task, 0, len);
}

/* ---- Their ends ---- */

int rgate_queue_wait(struct rgate_queue *q, uint64_t id, uint32_t flags, int timeout_ms,
		     void *buf, size_t len, uint32_t *state)
{
	const size_t room = len < RGATE_QUEUE_PART_MAX ? len : RGATE_QUEUE_PART_MAX;
	const struct rgate_request r = {
		.op = RGATE_REQ_QUEUE_WAIT, .a0 = id, .a1 = flags, .len = (uint32_t)room,
		.off = room ? OUT_LEN : 0,
	};
	uint64_t value = 0;
	int n;

	if (q->later)
		return -EBUSY;
	if (!id)
		return -ENOENT;
	n = ask_for(q, r, timeout_ms, &value);
	if (n < 0)
		return n;
	if ((size_t)n > room)
		return -EPROTO;
	if (n)
		memcpy(buf, q->in, (size_t)n);
	if (state)
		*state = (uint32_t)value;
	return n;
}

int rgate_queue_wait_all(struct rgate_queue *q, int timeout_ms, uint64_t *buried)
{
	return ask_for(q, (struct rgate_request){ .op = RGATE_REQ_QUEUE_WAIT }, timeout_ms,
		       buried);
}

int rgate_queue_kick(struct rgate_queue *q, uint64_t most, uint64_t *kicked)
{
	uint64_t n, all = 0;
	int err;

	do {
		err = ask(q, (struct rgate_request){ .op = RGATE_REQ_QUEUE_KICK, .a0 = most - all },
			  &n);
		if (!err && n > most - all)
			err = -EPROTO;
		all += err ? 0 : n;
		/* As for those that are discarded */
	} while (!err && n && all < most && all < RGATE_QUEUE_TASKS_MAX);
	if (kicked)
		*kicked = all;
	return err;
}

int rgate_queue_discard(struct rgate_queue *q, uint32_t states, uint64_t *discarded)
{
	const struct rgate_request r = { .op = RGATE_REQ_QUEUE_DISCARD, .a1 = states };
	uint64_t n, all = 0;
	int err;

	do {
		err = ask(q, r, &n);
		if (!err && n > RGATE_QUEUE_TASKS_MAX)
			err = -EPROTO;
		all += err ? 0 : n;
		/* No queue has more; a home that says so is not believed for ever. */
	} while (!err && n && all < RGATE_QUEUE_TASKS_MAX);
	if (discarded)
		*discarded = all;
	return err;
}

int rgate_queue_remove(struct rgate_queue *q)
{
	return ask(q, (struct rgate_request){ .op = RGATE_REQ_QUEUE_REMOVE }, NULL);
}

/* ---- What there is ---- */

int rgate_queue_peek(struct rgate_queue *q, uint64_t *after, uint32_t states,
		     struct rgate_queue_got *got)
{
	struct rgate_request r = { .op = RGATE_REQ_QUEUE_PEEK, .a1 = states, .off = OUT_LEN,
				   .len = IN_LEN };
	int n;

	if (q->later)
		return -EBUSY;
	do {
		r.a0 = *after;
		n = ask(q, r, after);
		/* Else it would never be the last one. */
		if (n >= 0 && *after && *after <= r.a0)
			return -EPROTO;
	} while (!n && *after);
	if (n <= 0)
		return n;
	if ((uint32_t)n > IN_LEN)
		return -EPROTO;
	return read_task(q, 0, (uint32_t)n, got) ? 1 : -EPROTO;
}

int rgate_queue_info(struct rgate_queue *q, struct rgate_queue_info *info)
{
	const struct rgate_request r = { .op = RGATE_REQ_QUEUE_STATE, .off = OUT_LEN,
					 .len = sizeof(*info) };
	int err;

	if (q->later)
		return -EBUSY;
	err = ask(q, r, NULL);
	if (err)
		return err;
	memcpy(info, q->in, sizeof(*info));
	return queue_name_ok(info->name) ? 0 : -EPROTO;
}

int rgate_queue_list(const struct rgate_queue_opts *opts,
		     int (*each)(void *ctx, const struct rgate_queue_info *info), void *ctx)
{
	struct rgate_request r = { .op = RGATE_REQ_QUEUE_LIST, .off = OUT_LEN,
				   .len = sizeof(struct rgate_queue_info) };
	struct rgate_queue q = { .out = NULL };
	struct rgate_queue_info info;
	struct rgate_queue_opts o;
	uint64_t next = 0;
	unsigned int n = 0;
	int ret;

	ret = read_opts(&o, opts);
	if (!ret)
		ret = connect_to(&q, &o);
	if (ret)
		return ret;
	r.a0 = home_of(&o);
	do {
		r.a1 = next;
		ret = ask(&q, r, &next);
		if (ret != 1)
			break;
		memcpy(&info, q.in, sizeof(info));
		/* Another node's words: names are printed, and it has to come to an end. */
		ret = queue_name_ok(info.name) && next > r.a1 && n++ < LIST_MOST ?
		      each(ctx, &info) : -EPROTO;
	} while (!ret);
	rgate_session_close(q.client.session);
	return ret;
}
