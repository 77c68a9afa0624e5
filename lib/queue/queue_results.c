// SPDX-License-Identifier: MIT OR GPL-2.0
/* Results of several tasks, and the next tasks, by requests that go together */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <ringgate/rgate_queue.h>

#include "queue_client.h"

/* Results by requests that go together: as many as a CLAIM has tasks */
#define ENDS_AT_ONCE	(RGATE_QUEUE_CLAIM_MAX / RGATE_QUEUE_ENDS_MAX)

RGATE_ASSERT(ENDS_AT_ONCE + 1 <= SYNC_CLIENT_MOST);

struct together {
	unsigned int reqs, all;			/* results of all of these */
	unsigned int n[ENDS_AT_ONCE];		/* and of each */
	int err[ENDS_AT_ONCE];			/* what they came to */
	uint64_t bits[ENDS_AT_ONCE];
	struct rgate_request r[ENDS_AT_ONCE + 1]; /* the last one is whatever goes along */
};

/* At @off, as many as a request has; 0: the first one is too long to be there with others */
static unsigned int write_results(struct rgate_queue *q, const struct rgate_queue_result *results,
				  unsigned int n, uint32_t off, uint32_t *len)
{
	struct rgate_queue_end end;
	unsigned int i;

	*len = 0;
	for (i = 0; i < n && i < RGATE_QUEUE_ENDS_MAX; i++) {
		const uint64_t size = sizeof(end) + RGATE_QUEUE_PADDED(results[i].len);
		char *at = q->out + off + *len;

		if (results[i].len > RGATE_QUEUE_DATA_MAX || size > OUT_LEN - off - *len)
			break;
		end = (struct rgate_queue_end){
			.id = results[i].task->id, .claim = results[i].task->claim,
			.len = results[i].len, .size = (uint32_t)size,
		};
		memcpy(at, &end, sizeof(end));
		if (end.len)
			memcpy(at + sizeof(end), results[i].data, end.len);
		*len += end.size;
	}
	return i;
}

/* Of the first ones, e->all */
static void write_together(struct rgate_queue *q, const struct rgate_queue_result *results,
			   unsigned int n, struct together *e)
{
	uint32_t off = 0, len;
	unsigned int some;

	e->all = 0;
	for (e->reqs = 0; e->reqs < ENDS_AT_ONCE && e->all < n; e->reqs++) {
		some = write_results(q, results + e->all, n - e->all, off, &len);
		if (!some)
			break;
		e->r[e->reqs] = (struct rgate_request){
			.op = RGATE_REQ_QUEUE_COMPLETE_MANY, .handle = q->client.handle,
			.off = off, .len = len,
		};
		e->n[e->reqs] = some;
		e->all += some;
		off += len;
	}
}

static bool all_told(int err, uint64_t bits, unsigned int n)
{
	return err >= 0 && (n < 64 ? bits + 1 == 1ULL << n : bits == UINT64_MAX);
}

/* Waits for all of them. False: one of the results was not taken, for now at least */
static bool finish_together(struct rgate_queue *q, struct together *e)
{
	bool told = true;
	unsigned int i;

	for (i = 0; i < e->reqs; i++) {
		e->bits[i] = 0;
		e->err[i] = sync_client_finish(&q->client, e->r[i].cookie, q->client.timeout_ms,
					       &e->bits[i]);
		told &= all_told(e->err[i], e->bits[i], e->n[i]);
	}
	return told;
}

/* Once more, alone: what was written at @off for a request with others. Those before it, whose
 * places it takes, are over. */
static int complete_again(struct rgate_queue *q, const struct rgate_queue_end *end, uint32_t off)
{
	const struct rgate_queue_task task = { .id = end->id, .claim = end->claim };

	memmove(q->out, q->out + off + sizeof(*end), end->len);
	return queue_of_task(q, RGATE_REQ_QUEUE_COMPLETE, &task, 0, end->len);
}

/*
 * What requests told of the results that were written for them. What they did not tell is asked
 * for, one by one: of what was written, as what the results point to may be new tasks by now.
 */
static void read_together(struct rgate_queue *q, const struct together *e,
			  struct rgate_queue_result *results)
{
	struct rgate_queue_end end;
	unsigned int i, j;
	uint32_t off = 0;

	for (i = 0; i < e->reqs; i++)
		for (j = 0; j < e->n[i]; j++, off += end.size, results++) {
			memcpy(&end, q->out + off, sizeof(end));
			results->error = e->err[i] < 0 ? e->err[i] : 0;
			if (e->err[i] >= 0 && !(e->bits[i] >> j & 1))
				results->error = complete_again(q, &end, off);
		}
}

static void none_ended(struct rgate_queue_result *results, unsigned int n, int err)
{
	while (n--)
		results[n].error = err;
}

static int may_end(const struct rgate_queue *q, struct rgate_queue_result *results, unsigned int n)
{
	int err = queue_mine(q);

	if (err)
		none_ended(results, n, err);
	return err;
}

/* Those that go together; how many */
static unsigned int complete_some(struct rgate_queue *q, struct rgate_queue_result *results,
				  unsigned int n)
{
	struct together e;
	int err;

	write_together(q, results, n, &e);
	if (!e.all) {
		results->error = rgate_queue_complete(q, results->task, results->data,
						      results->len);
		return 1;
	}
	err = sync_client_start(&q->client, e.r, e.reqs);
	if (err) {
		none_ended(results, e.all, err);
		return e.all;
	}
	(void)finish_together(q, &e);
	read_together(q, &e, results);
	return e.all;
}

/* All but the last ones, which go along with another request, and are what is left */
static void complete_first(struct rgate_queue *q, struct rgate_queue_result **results,
			   unsigned int *n, struct together *e)
{
	unsigned int some;

	for (write_together(q, *results, *n, e); e->all < *n; write_together(q, *results, *n, e)) {
		some = complete_some(q, *results, *n);
		*results += some;
		*n -= some;
	}
}

int rgate_queue_complete_many(struct rgate_queue *q, struct rgate_queue_result *results,
			      unsigned int n)
{
	unsigned int i;
	int done = 0, err;

	if (!n || n > INT32_MAX)
		return -EINVAL;
	err = may_end(q, results, n);
	if (err)
		return err;
	for (i = 0; i < n; )
		i += complete_some(q, results + i, n - i);
	for (i = 0; i < n; i++)
		done += !results[i].error;
	return done ? done : results[0].error;
}

/* The last ones' requests, with @e->reqs of theirs, and behind them @along */
static int start_along(struct rgate_queue *q, struct together *e, struct rgate_request along,
		       bool later)
{
	int err;

	along.handle = q->client.handle;
	e->r[e->reqs] = along;
	err = sync_client_start(&q->client, e->r, e->reqs + 1);
	if (!err && later)
		sync_later_begin(&q->client, e->r[e->reqs].cookie);
	return err;
}

int queue_complete_along(struct rgate_queue *q, struct rgate_queue_result *results,
			 unsigned int n, struct rgate_request along, bool later, uint64_t *value)
{
	struct together e;
	int ret;

	ret = may_end(q, results, n);
	if (ret)
		return ret;
	complete_first(q, &results, &n, &e);
	ret = start_along(q, &e, along, later);
	if (ret) {
		none_ended(results, n, ret);
		return ret;
	}
	(void)finish_together(q, &e);
	if (later)
		sync_later_settle(&q->client);
	else
		ret = sync_client_finish(&q->client, e.r[e.reqs].cookie, q->client.timeout_ms,
					 value);
	read_together(q, &e, results);
	return ret;
}

/* Is one of them refused for now? */
static bool refused(const struct rgate_queue_result *results, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (results[i].error && results[i].error != -ESTALE && results[i].error != -ENOENT)
			return true;
	return false;
}

static bool was_interrupted(const struct together *e)
{
	unsigned int i;

	for (i = 0; i < e->reqs; i++)
		if (e->err[i] == -EINTR)
			return true;
	return false;
}

/*
 * All requests are under way, the claim is the last one. Where a result is not taken at once the
 * claim is not waited for: who submitted that task may wait for it, and submit no other before.
 */
static int finish_next(struct rgate_queue *q, struct together *e, int timeout_ms,
		       struct rgate_queue_result *results, uint64_t *count, bool *again)
{
	int total;

	*again = !finish_together(q, e);
	total = sync_client_finish(&q->client, e->r[e->reqs].cookie, *again ? 0 : timeout_ms,
				   count);
	read_together(q, e, results);
	*again &= total == -ETIMEDOUT;
	if (*again && was_interrupted(e))
		return -EINTR;
	return *again && refused(results, e->all) ? -EAGAIN : total;
}

/* The last ones by requests that go along with the claim */
int rgate_queue_next(struct rgate_queue *q, struct rgate_queue_result *results, unsigned int n,
		     uint64_t types, unsigned int most, uint32_t flags, int timeout_ms,
		     struct rgate_queue_got *got)
{
	const int patience = flags & RGATE_CLAIM_NOW ? q->client.timeout_ms : timeout_ms;
	uint64_t count = 0;
	struct together e;
	bool again;
	int total;

	if (n > INT32_MAX)
		return -EINVAL;
	if (q->later)
		return -EBUSY;
	total = may_end(q, results, n);
	if (total)
		return total;
	complete_first(q, &results, &n, &e);
	if (!n)
		return rgate_queue_claim(q, types, most, flags, timeout_ms, got);
	e.r[e.reqs] = queue_claim_request(types, most, flags);
	e.r[e.reqs].handle = q->client.handle;
	total = sync_client_start(&q->client, e.r, e.reqs + 1);
	if (total) {
		none_ended(results, n, total);
		return total;
	}
	total = finish_next(q, &e, patience, results, &count, &again);
	if (again && total == -ETIMEDOUT)
		return rgate_queue_claim(q, types, most, flags, timeout_ms, got);
	return queue_read_tasks(q, total, count, most, got);
}
