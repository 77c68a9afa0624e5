// SPDX-License-Identifier: MIT OR GPL-2.0
/* A session in use. The hot path makes no system call unless the other side sleeps. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "clock.h"
#include "opts.h"
#include "session_priv.h"

#define MISSES	4096U	/* polls for nothing after which the daemon is looked after */
#define LOOKS	16U	/* polls between two readings of the clock */

/* Of another process, or lent? Then its rings are not this caller's. */
static int not_mine(const struct rgate_session *s)
{
	if (rgate_session_forked(s))
		return -EOWNERDEAD;
	return s->lent ? -EBUSY : 0;
}

static void kick(const struct rgate_session *s)
{
	const uint64_t one = 1;

	(void)!write(s->kick_fd, &one, sizeof(one));
}

/* Does the engine sleep, and wait for @bit? After what it would be woken for was stored */
static bool needed(const struct rgate_session *s, uint32_t bit)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return __atomic_load_n(&s->area.server->need, __ATOMIC_RELAXED) & bit;
}

/* ---- Submitting ---- */

/* Places up to @want more, as far as there are */
static uint64_t room(struct rgate_session *s, uint64_t want)
{
	const uint64_t places = s->area.req_mask + 1;
	uint64_t pos;

	while (s->room - s->submitted < want) {
		pos = s->room - places;
		if (__atomic_load_n(rgate_area_req_credit(&s->area, pos), __ATOMIC_ACQUIRE) !=
		    rgate_area_req_lap(&s->area, pos))
			break;
		s->room += RGATE_REQ_BATCH;
	}
	return s->room - s->submitted < want ? s->room - s->submitted : want;
}

static void publish(struct rgate_session *s, uint64_t pos, const struct rgate_request *req)
{
	struct rgate_request *slot = &s->area.requests[pos & s->area.req_mask];

	memcpy(slot, req, offsetof(struct rgate_request, seq));
	slot->owner = s->owner;
	__atomic_store_n(&slot->seq, rgate_area_req_lap(&s->area, pos), __ATOMIC_RELEASE);
}

int rgate_session_submit_many(struct rgate_session *s, const struct rgate_request *reqs,
			      unsigned int n)
{
	unsigned int i;
	int err = not_mine(s);

	if (err)
		return err;
	if (!n || n > INT32_MAX)
		return -EINVAL;
	if (__atomic_load_n(&s->over, __ATOMIC_RELAXED))
		return -EPIPE;
	n = (unsigned int)room(s, n);
	if (!n)
		return -EAGAIN;
	/* The first one last: the engine looks there, and leaves the other slots alone so far. */
	for (i = 1; i < n; i++)
		publish(s, s->submitted + i, &reqs[i]);
	publish(s, s->submitted, &reqs[0]);
	__atomic_store_n(&s->submitted, s->submitted + n, __ATOMIC_RELAXED);
	if (needed(s, RGATE_REQ_NEED_REQUEST)) {
		kick(s);
		rgate_spin_count(&s->kicks);
	}
	return (int)n;
}

int rgate_session_submit(struct rgate_session *s, const struct rgate_request *req)
{
	int n = rgate_session_submit_many(s, req, 1);

	return n < 0 ? n : 0;
}

int rgate_session_cancel(struct rgate_session *s, uint64_t target, uint64_t cookie)
{
	const struct rgate_request req = { .op = RGATE_REQ_CANCEL, .a0 = target,
					   .cookie = cookie };

	return rgate_session_submit(s, &req);
}

/* ---- Completions ---- */

static bool there(const struct rgate_session *s)
{
	const struct rgate_completion *c =
		&s->area.completions[s->completed & s->area.comp_mask];

	return __atomic_load_n(&c->seq, __ATOMIC_ACQUIRE) ==
	       rgate_area_comp_lap(&s->area, s->completed);
}

bool rgate_session_gone(struct rgate_session *s)
{
	struct pollfd p = { .fd = s->sock, .events = POLLRDHUP };

	if (s->sock >= 0 && poll(&p, 1, 0) == 1)
		__atomic_store_n(&s->over, 1, __ATOMIC_RELAXED);
	return __atomic_load_n(&s->over, __ATOMIC_RELAXED);
}

static bool closed(struct rgate_session *s)
{
	if (__atomic_load_n(&s->area.server->state, __ATOMIC_ACQUIRE) != RGATE_REQ_OPEN)
		__atomic_store_n(&s->over, 1, __ATOMIC_RELAXED);
	return __atomic_load_n(&s->over, __ATOMIC_RELAXED);
}

/* There was nothing: will there be? What was published before the end is still taken. */
static int nothing(struct rgate_session *s)
{
	bool over = closed(s);

	if (!over && ++s->misses >= MISSES) {
		s->misses = 0;
		over = rgate_session_gone(s);
	}
	return over && !there(s) ? -EPIPE : 0;
}

static void credit(struct rgate_session *s, uint64_t pos)
{
	__atomic_store_n(rgate_area_comp_credit(&s->area, pos),
			 rgate_area_comp_lap(&s->area, pos), __ATOMIC_RELEASE);
	if (needed(s, RGATE_REQ_NEED_CREDIT)) {
		kick(s);
		rgate_spin_count(&s->credit_kicks);
	}
}

int rgate_session_poll(struct rgate_session *s, struct rgate_completion *out, unsigned int n)
{
	uint64_t pos = s->completed;
	unsigned int i;
	int err = not_mine(s);

	if (err)
		return err;
	for (i = 0; i < n && i < INT32_MAX && there(s); i++) {
		out[i] = s->area.completions[pos & s->area.comp_mask];
		__atomic_store_n(&s->completed, pos + 1, __ATOMIC_RELAXED);
		if ((pos + 1) % RGATE_REQ_BATCH == 0)
			credit(s, pos);
		pos++;
	}
	if (!i)
		return n ? nothing(s) : 0;
	s->misses = 0;
	return (int)i;
}

/* ---- Waiting ---- */

static void look_at(struct rgate_session *s, const struct epoll_event *ev, int n)
{
	while (n-- > 0)
		if (ev[n].data.u32 == RGATE_WAIT_DAEMON)
			(void)rgate_session_gone(s);
}

/* The edge of an earlier want that nobody slept for any more */
static void drain(struct rgate_session *s)
{
	struct epoll_event ev[2];

	look_at(s, ev, epoll_wait(s->wait_fd, ev, 2, 0));
}

static int arm(struct rgate_session *s)
{
	s->armed = true;
	__atomic_store_n(&s->area.client->want, s->completed + 1, __ATOMIC_RELAXED);
	/* Against flush() of the engine: want, fence, completion; there completion, fence, want */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (there(s))
		return 1;
	if (closed(s))
		return there(s) ? 1 : -EPIPE;
	return 0;
}

int rgate_session_arm(struct rgate_session *s)
{
	int err = not_mine(s);

	if (err)
		return err;
	if (there(s))
		return 1;
	if (s->armed)
		drain(s);
	err = arm(s);
	if (err)
		rgate_session_disarm(s);
	return err;
}

void rgate_session_disarm(struct rgate_session *s)
{
	if (!not_mine(s))
		__atomic_store_n(&s->area.client->want, 0, __ATOMIC_RELAXED);
}

int rgate_session_fd(const struct rgate_session *s)
{
	return s->wait_fd;
}

static bool spin_for_it(struct rgate_session *s, uint64_t from)
{
	unsigned int n;

	if (!s->spin.ns)
		return false;
	rgate_spin_count(&s->spin.spins);
	do {
		for (n = 0; n < LOOKS; n++) {
			if (there(s)) {
				rgate_spin_count(&s->spin.hits);
				return true;
			}
			rgate_cpu_relax();
		}
	} while (rgate_clock_now(CLOCK_MONOTONIC) - from < s->spin.ns);
	return false;
}

/* Asleep until woken, or @until ns; 0: something may be there; -ETIMEDOUT; -EINTR; -EPIPE */
static int sleep_once(struct rgate_session *s, uint64_t until, int timeout_ms)
{
	uint64_t now;
	struct epoll_event ev[2];
	struct timespec ts;
	int n;

	if (timeout_ms >= 0) {
		now = rgate_clock_now(CLOCK_MONOTONIC);
		if (now >= until)
			return -ETIMEDOUT;
		ts = rgate_clock_timespec(until - now);
	}
	rgate_spin_count(&s->sleeps);
	n = epoll_pwait2(s->wait_fd, ev, 2, timeout_ms < 0 ? NULL : &ts, NULL);
	if (n < 0)
		return -errno;
	look_at(s, ev, n);
	return 0;
}

static int wait_for_it(struct rgate_session *s, uint64_t from, int timeout_ms)
{
	const uint64_t until = from + (uint64_t)(timeout_ms < 0 ? 0 : timeout_ms) * 1000000;
	int err;

	/* An edge that is left from before ends the first sleep at once, and no other one. */
	for (;;) {
		err = arm(s);
		if (err)
			return err;
		err = sleep_once(s, until, timeout_ms);
		if (there(s))
			return 1;
		if (err)
			return err == -ETIMEDOUT ? 0 : err;
	}
}

int rgate_session_wait(struct rgate_session *s, int timeout_ms)
{
	int err = not_mine(s);
	uint64_t from;

	if (err)
		return err;
	if (there(s))
		return 1;
	if (!timeout_ms)
		return closed(s) || rgate_session_gone(s) ? there(s) ? 1 : -EPIPE : 0;
	from = rgate_clock_now(CLOCK_MONOTONIC);
	if (spin_for_it(s, from))
		return 1;
	err = wait_for_it(s, from, timeout_ms);
	rgate_session_disarm(s);
	if (err == 1)
		rgate_spin_learn(&s->spin, rgate_clock_now(CLOCK_MONOTONIC) - from);
	return err;
}

/* ---- The rest ---- */

int rgate_session_lend(struct rgate_session *s, struct rgate_session_loan *out)
{
	const struct rgate_area *a = &s->area;
	const struct rgate_session_loan loan = {
		.requests = a->requests,
		.completions = a->completions,
		.request_credits = a->req_credits,
		.completion_credits = a->comp_credits,
		.server = a->server,
		.area = a->base,
		.area_len = a->len,
		.memory = s->mem,
		.memory_len = s->mem_len,
		.places = (uint32_t)a->req_mask + 1,
		.completion_places = (uint32_t)a->comp_mask + 1,
		.owner = s->owner,
		.kick_fd = s->kick_fd,
		.gone_fd = s->sock,
		.submitted = s->submitted,
		.room = s->room,
		.completed = s->completed,
		.want = (uint64_t *)&a->client->want,
		.wait_fd = s->wait_fd,
	};
	int err = not_mine(s);

	if (!err && (closed(s) || rgate_session_gone(s)))
		err = -EPIPE;
	if (!err)
		err = rgate_info_copy(out, &loan, sizeof(loan));
	if (err)
		return err;
	rgate_session_disarm(s);
	s->lent = true;
	return 0;
}

void *rgate_session_memory(const struct rgate_session *s, size_t *len)
{
	if (len)
		*len = s->mem_len;
	return s->mem;
}

int rgate_session_info(const struct rgate_session *s, struct rgate_session_info *out)
{
	const struct rgate_session_info info = {
		.where = s->where,
		.version = RGATE_REQ_VERSION,
		.requests = (uint32_t)s->area.req_mask + 1,
		.completions = (uint32_t)s->area.comp_mask + 1,
		.memory = s->mem_len,
		.submitted = __atomic_load_n(&s->submitted, __ATOMIC_RELAXED),
		.completed = __atomic_load_n(&s->completed, __ATOMIC_RELAXED),
		.kicks = __atomic_load_n(&s->kicks, __ATOMIC_RELAXED) +
			 __atomic_load_n(&s->credit_kicks, __ATOMIC_RELAXED),
		.sleeps = __atomic_load_n(&s->sleeps, __ATOMIC_RELAXED),
	};

	return rgate_info_copy(out, &info, sizeof(info));
}
