// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * What a home is told and asked of the tasks that are kept: one request after the other for each
 * queue, in a session of this node's own for each user.
 *
 * Open it; look which one it is; submit what a former process of the home had, and has not ended
 * (keep_again.c); ask what has ended before that; then follow the ends (keep_ends.c). When the home
 * is lost: from the beginning.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "keep_talk.h"
#include "queue_priv.h"
#include "session_at.h"

/* ---- The session ---- */

/* That is when it was removed, or when the engine stops. */
static void seat_over(void *ctx)
{
	struct keep_user *u = ctx;

	u->seat = NULL;
	u->keeper->due = 0;
}

int keep_session_begin(struct keep_user *u)
{
	struct keeper *k = u->keeper;
	struct rgate_limits limits;
	const struct rgate_seat_opts o = RGATE_OPTS(rgate_seat_opts, .uid = u->uid,
		.requests = 2 * KEEP_QUEUES, .completions = 2 * KEEP_QUEUES, .limits = &limits,
		.modest = true, .memory = keep_slot_at(u, keep_slots(u)) + KEEP_SLOT,
		.over = seat_over, .ctx = u);
	int err;

	if (u->session)
		return 0;
	/* The former one is not over yet. */
	if (u->seat)
		return -EBUSY;
	err = gate_service_limits(k->gate, u->uid, &limits);
	if (err)
		return err;
	/* It is what his programs have left behind. */
	limits.sessions = 0;
	limits.memory = 0;
	err = rgate_session_at(&u->session, k->engine, &o, &u->seat);
	if (!err)
		u->mem = rgate_session_memory(u->session, NULL);
	return err;
}

void keep_session_end(struct keep_user *u)
{
	if (!u->session)
		return;
	rgate_session_close(u->session);
	u->session = NULL;
	if (u->seat)
		rgate_seat_remove(u->seat);
}

bool keep_is_own(const struct keeper *k, const struct rgate_seat *seat)
{
	const struct link *l;

	for (l = k->users.next; l != &k->users; l = l->next)
		if (container_of(l, struct keep_user, of_keeper)->seat == seat)
			return true;
	return false;
}

void keep_ask(struct kept_queue *q, enum talk state, struct rgate_request r)
{
	r.cookie = q->slot;
	/* Others wait for what a queue has under way; only the ends of tasks may take long. */
	if (state != TALK_FOLLOW || (uint32_t)r.a1 & RGATE_FOLLOW_NOW)
		r.deadline_us = KEEP_ANSWER_US;
	q->state = state;
	q->asked = !rgate_session_submit(q->user->session, &r);
	if (!q->asked)
		q->due = keep_now(q) + KEEP_RETRY_NS;
}

/* ---- It is opened, and closed ---- */

static void open_it(struct kept_queue *q)
{
	const uint32_t flags =
		q->make ? q->as.flags | RGATE_QUEUE_CREATE | RGATE_QUEUE_EXCLUSIVE : 0;
	struct rgate_queue_place place = q->as.place;

	if (keep_session_begin(q->user)) {
		q->due = keep_now(q) + KEEP_RETRY_NS;
		return;
	}
	if (!q->make) {
		memset(&place, 0, sizeof(place));
		memcpy(place.name, q->as.place.name, sizeof(place.name));
	}
	memcpy(keep_slot_mem(q), &place, sizeof(place));
	q->asks++;
	keep_ask(q, q->make ? TALK_MAKE : TALK_OPEN, (struct rgate_request){
		.op = RGATE_REQ_QUEUE_OPEN, .a0 = q->node, .off = keep_slot_off(q),
		.a1 = RGATE_QUEUE_OPEN_A1(q->as.owner, flags), .len = sizeof(place) });
}

/* Of that process: what the queue @of had, 0: none, and what was heard of before the question */
static void begin_purge(struct kept_queue *q, uint64_t life, uint64_t of)
{
	q->gone = life;
	q->gone_of = of;
	q->gone_asks = q->asks;
	q->all_gone = false;
	q->purge_at = q->tasks.next;
}

/*
 * Tasks that the process there had taken were in a queue that was removed. If there are some of a
 * former one, it is made for these.
 */
static void is_not_there(struct kept_queue *q)
{
	struct queue_service *sv = container_of(q->user->keeper, struct queue_service, keeper);
	const uint64_t life = keep_life(keep_of(queue_away_lacks(sv, q->user->seat, q->node), 0));

	if (keep_life(q->latest) >= life)
		begin_purge(q, life, 0);
	q->all_gone = keep_life(q->latest) > life;
	/* Nobody needs copies of nothing. */
	if (!q->n && q->user->mirrors)
		return;
	if (q->as.owner == q->user->uid)
		q->make = true;
	else
		q->due = keep_now(q) + KEEP_RETRY_NS;
}

static void opened(struct kept_queue *q, int result, uint64_t value)
{
	const bool makes = q->make;

	q->make = q->fresh = false;
	if (!result) {
		q->handle = (uint32_t)value;
		q->looked = q->ruled = false;
	} else if (result == -ENOENT && !makes) {
		is_not_there(q);
	} else {
		q->due = keep_now(q) + (result == -EEXIST ? KEEP_PAUSE_NS : KEEP_RETRY_NS);
	}
}

static void close_it(struct kept_queue *q)
{
	q->closes = true;
	ASK(q, CLOSE, .op = RGATE_REQ_QUEUE_CLOSE);
}

/* What did not reach the one who has the handle is said again. */
static void closed(struct kept_queue *q, int result)
{
	if (result == -ENOBUFS || result == -ENOMEM) {
		q->due = keep_now(q) + KEEP_PAUSE_NS;
		return;
	}
	q->handle = 0;
	q->closes = q->looked = false;
}

void keep_lost(struct kept_queue *q, int err)
{
	if (err == -ESTALE && q->looked)
		begin_purge(q, keep_life(q->of), q->of);
	q->due = keep_now(q) +
		 (err == -ECONNRESET || err == -ESTALE ? KEEP_PAUSE_NS : KEEP_RETRY_NS);
	close_it(q);
}

static bool is_gone(const struct kept_queue *q, const struct kept *t)
{
	return keep_life(t->of) == q->gone &&
	       (q->all_gone || t->of == q->gone_of || t->asked != q->gone_asks);
}

/* In steps: nothing is asked meanwhile, so what is heard of then is of that question. */
static void purge(struct kept_queue *q)
{
	struct kept *t;
	uint32_t i;

	for (i = 0; i < QUEUE_STEPS && q->purge_at != &q->tasks; i++) {
		t = container_of(q->purge_at, struct kept, of_queue);
		q->purge_at = t->of_queue.next;
		if (is_gone(q, t))
			keep_forget(q, t);
	}
	if (q->purge_at == &q->tasks)
		q->gone = 0;
}

/* ---- Which one is it? ---- */

static void look(struct kept_queue *q)
{
	q->asks++;
	ASK(q, LOOK, .op = RGATE_REQ_QUEUE_FOLLOW, .off = keep_slot_off(q), .len = KEEP_SLOT,
	    .a1 = RGATE_FOLLOW_A1(q->user->keeper->tag, RGATE_FOLLOW_NOW));
}

int keep_read_head(const struct kept_queue *q, int result, struct rgate_queue_ends *head)
{
	if (result < (int)sizeof(*head))
		return -EPROTO;
	memcpy(head, keep_slot_mem(q), sizeof(*head));
	if (head->queue >> 24 || (uint32_t)result - sizeof(*head) != head->n * 8ULL)
		return -EPROTO;
	return 0;
}

static void looked(struct kept_queue *q, int result, uint64_t value)
{
	const struct away *a = rgate_seat_object(q->user->seat, RGATE_REQ_QUEUE, q->handle);
	struct rgate_queue_ends head;

	if (keep_read_head(q, result, &head) || !a || !value) {
		keep_refuse(q->user->keeper);
		keep_lost(q, -EPROTO);
		return;
	}
	if (q->of != keep_of(a->born, head.queue))
		q->excused = 0;
	q->of = keep_of(a->born, head.queue);
	q->next = value;
	q->looked = true;
	q->behind = true;
	q->again_at = q->tasks.next;
	keep_doubt(q);
	/* Who has submitted them does so again first, if he is there: what he has is no copy. */
	q->again_due = q->user->mirrors ? keep_now(q) + KEEP_PAUSE_NS * 3 : 0;
	q->after = 0;
	q->full = false;
}

static void ask_rules(struct kept_queue *q)
{
	ASK(q, RULES, .op = RGATE_REQ_QUEUE_STATE, .off = keep_slot_off(q),
	    .len = sizeof(struct rgate_queue_info));
}

/* As it will be made anew: what cannot be is what was said when it was opened. */
static void ruled(struct kept_queue *q)
{
	struct queue_open as = q->as;
	struct rgate_queue_info info;

	memcpy(&info, keep_slot_mem(q), sizeof(info));
	as.flags = info.flags & QUEUE_MADE_FLAGS;
	as.place.bytes = info.bytes_max;
	as.place.tasks = info.tasks_max;
	as.place.attempts = info.attempts;
	as.place.run_ms = info.run_ms;
	as.place.result_ms = info.result_ms;
	q->ruled = true;
	as.flags |= RGATE_QUEUE_CREATE;
	if (queue_open_check(&as))
		return;
	as.flags &= ~RGATE_QUEUE_CREATE;
	q->as = as;
}

/* ---- One after the other ---- */

/* What is next, of a queue that is open */
static void go_on(struct kept_queue *q)
{
	if (q->closes || (q->looked && !q->n && !q->behind && !q->user->mirrors))
		close_it(q);
	else if (!q->looked)
		look(q);
	else if (!q->ruled)
		ask_rules(q);
	else if (q->behind && keep_now(q) >= q->again_due && !q->user->submits)
		keep_again(q);
	else if (q->unsure)
		keep_check(q);
	else if (q->user->mirrors)
		keep_copies(q);
	else
		keep_follow(q);
}

uint64_t keep_talk(struct kept_queue *q)
{
	if (q->gone)
		purge(q);
	if (keep_is_idle(q)) {
		keep_queue_free(q);
		return UINT64_MAX;
	}
	if (q->asked)
		return UINT64_MAX;
	/* What is submitted now will say whether there is something. */
	if (!q->n && q->under_way) {
		q->make = false;
		return UINT64_MAX;
	}
	if (q->gone)
		return keep_now(q);
	if (keep_now(q) < q->due)
		return q->due;
	if (q->handle)
		go_on(q);
	else
		open_it(q);
	return q->asked ? UINT64_MAX : q->due > keep_now(q) ? q->due : keep_now(q);
}

/* Requests are under way at that node, or wait at that queue: later */
static void too_many(struct kept_queue *q)
{
	q->due = keep_now(q) + KEEP_PAUSE_NS;
	if (q->state == TALK_CHECK)
		q->check_at = q->tasks.next;
	/* What does not wait takes no place of those who follow, whoever they are. */
	if (q->state == TALK_FOLLOW)
		q->crowded = true;
}

static void heard(struct kept_queue *q, int result, uint64_t value)
{
	q->asked = false;
	switch (q->state) {
	case TALK_OPEN:
	case TALK_MAKE:
		opened(q, result, value);
		return;
	case TALK_AGAIN:
		keep_submitted(q, result, value);
		return;
	case TALK_CLOSE:
		closed(q, result);
		return;
	default:
		break;
	}
	if (result == -ENOBUFS)
		too_many(q);
	else if (result < 0)
		keep_lost(q, result);
	else if (q->state == TALK_LOOK)
		looked(q, result, value);
	else if (q->state == TALK_RULES)
		ruled(q);
	else if (q->state == TALK_CHECK)
		keep_checked(q, result);
	else if (q->user->mirrors)
		keep_copied(q, result, value);
	else
		keep_followed(q, result, value);
}

void keep_hear(struct keep_user *u)
{
	struct rgate_completion done;
	struct kept_queue *q;
	uint64_t at;

	while (u->session && u->seat && rgate_session_poll(u->session, &done, 1) == 1) {
		if (done.cookie == KEEP_QUEUES) {
			keep_mirror_asked(u, done.result);
			continue;
		}
		q = done.cookie < KEEP_QUEUES ? u->slot[done.cookie] : NULL;
		if (!q || !q->asked)
			continue;
		heard(q, done.result, done.value);
		at = keep_talk(q);
		u->keeper->due = at < u->keeper->due ? at : u->keeper->due;
	}
}
