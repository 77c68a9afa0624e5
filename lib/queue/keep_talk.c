// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * What a home is told and asked of the tasks that are kept: one request after the other for each
 * queue, in a session of this node's own for each user.
 *
 * Open it; look which one it is; submit what a former process of the home had, and has not ended;
 * ask what has ended before that; then follow the ends. When the home is lost: from the beginning.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "keep.h"
#include "queue_priv.h"
#include "session_at.h"

#define MS		1000000ULL
#define RETRY_NS	(1000 * MS)
#define PAUSE_NS	(100 * MS)	/* where it is asked again and again */
#define ANSWER_US	10000000U	/* a home that has not answered by then is lost */
#define WAITS		48U		/* requests that wait at once: GATE_TICKETS is the limit */
#define ROOM		RGATE_QUEUE_PART_MAX

static uint64_t now(const struct kept_queue *q)
{
	return q->user->keeper->home->now;
}

/* ---- The session ---- */

static uint64_t slot_off(const struct kept_queue *q)
{
	return ROOM + (uint64_t)q->slot * KEEP_SLOT;
}

static unsigned char *slot_mem(const struct kept_queue *q)
{
	return q->user->mem + slot_off(q);
}

/* That is when it was removed, or when the engine stops. */
static void seat_over(void *ctx)
{
	struct keep_user *u = ctx;

	u->seat = NULL;
	u->keeper->due = 0;
}

static int session_begin(struct keep_user *u)
{
	struct keeper *k = u->keeper;
	struct rgate_limits limits;
	const struct rgate_seat_opts o = RGATE_OPTS(rgate_seat_opts, .uid = u->uid,
		.requests = KEEP_QUEUES, .completions = KEEP_QUEUES, .limits = &limits,
		.modest = true, .memory = ROOM + KEEP_QUEUES * KEEP_SLOT,
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

static void ask(struct kept_queue *q, enum talk state, struct rgate_request r)
{
	r.cookie = q->slot;
	/* Others wait for what a queue has under way; only the ends of tasks may take long. */
	if (state != TALK_FOLLOW || (uint32_t)r.a1 & RGATE_FOLLOW_NOW)
		r.deadline_us = ANSWER_US;
	q->state = state;
	q->asked = !rgate_session_submit(q->user->session, &r);
	if (!q->asked)
		q->due = now(q) + RETRY_NS;
}

#define ASK(q, op_, ...) \
	ask((q), TALK_##op_, (struct rgate_request){ .handle = (q)->handle, ##__VA_ARGS__ })

/* ---- It is opened, and closed ---- */

static void open_it(struct kept_queue *q)
{
	const uint32_t flags = q->make ? q->as.flags | RGATE_QUEUE_CREATE | RGATE_QUEUE_EXCLUSIVE : 0;
	struct rgate_queue_place place = q->as.place;

	if (session_begin(q->user)) {
		q->due = now(q) + RETRY_NS;
		return;
	}
	if (!q->make) {
		memset(&place, 0, sizeof(place));
		memcpy(place.name, q->as.place.name, sizeof(place.name));
	}
	memcpy(slot_mem(q), &place, sizeof(place));
	ask(q, q->make ? TALK_MAKE : TALK_OPEN, (struct rgate_request){
		.op = RGATE_REQ_QUEUE_OPEN, .a0 = q->node, .off = slot_off(q),
		.a1 = RGATE_QUEUE_OPEN_A1(q->as.owner, flags), .len = sizeof(place) });
}

/* What it had, and older ones of its process, went with it. */
static void begin_purge(struct kept_queue *q, uint64_t of)
{
	q->gone = of;
	q->purge_at = q->tasks.next;
}

/*
 * Tasks that the process there had taken were in a queue that was removed. If there are some of a
 * former one, it is made for these.
 */
static void is_not_there(struct kept_queue *q)
{
	struct queue_service *sv = container_of(q->user->keeper, struct queue_service, keeper);
	const uint64_t last = keep_of(queue_away_lacks(sv, q->user->seat, q->node), 0xffffff);

	if (keep_life(q->latest) >= keep_life(last))
		begin_purge(q, q->latest < last ? q->latest : last);
	if (q->as.owner == q->user->uid)
		q->make = true;
	else
		q->due = now(q) + RETRY_NS;
}

static void opened(struct kept_queue *q, int result, uint64_t value)
{
	const bool makes = q->make;

	q->make = false;
	if (!result) {
		q->handle = (uint32_t)value;
		q->looked = q->ruled = false;
	} else if (result == -ENOENT && !makes) {
		is_not_there(q);
	} else {
		q->due = now(q) + (result == -EEXIST ? PAUSE_NS : RETRY_NS);
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
		q->due = now(q) + PAUSE_NS;
		return;
	}
	q->handle = 0;
	q->closes = q->looked = false;
}

/* With its node, or with its queue: what is kept is looked at anew, over another handle. */
static void lost(struct kept_queue *q, int err)
{
	if (err == -ESTALE && q->looked)
		begin_purge(q, q->of);
	q->due = now(q) + (err == -ECONNRESET || err == -ESTALE ? PAUSE_NS : RETRY_NS);
	close_it(q);
}

/* In steps: those of a queue that was removed, and of older ones */
static void purge(struct kept_queue *q)
{
	struct kept *t;
	uint32_t i;

	for (i = 0; i < QUEUE_STEPS && q->purge_at != &q->tasks; i++) {
		t = container_of(q->purge_at, struct kept, of_queue);
		q->purge_at = t->of_queue.next;
		if (t->of <= q->gone && keep_life(t->of) == keep_life(q->gone))
			keep_forget(q, t);
	}
	if (q->purge_at == &q->tasks)
		q->gone = 0;
}

/* ---- Which one is it? ---- */

static void look(struct kept_queue *q)
{
	ASK(q, LOOK, .op = RGATE_REQ_QUEUE_FOLLOW, .off = slot_off(q), .len = KEEP_SLOT,
	    .a1 = RGATE_FOLLOW_A1(q->user->keeper->tag, RGATE_FOLLOW_NOW));
}

/* Of a FOLLOW. -EPROTO: it is not what that can say */
static int read_head(const struct kept_queue *q, int result, struct rgate_queue_ends *head)
{
	if (result < (int)sizeof(*head))
		return -EPROTO;
	memcpy(head, slot_mem(q), sizeof(*head));
	if (head->queue >> 24 || (uint32_t)result - sizeof(*head) != head->n * 8ULL)
		return -EPROTO;
	return 0;
}

static void looked(struct kept_queue *q, int result, uint64_t value)
{
	const struct away *a = rgate_seat_object(q->user->seat, RGATE_REQ_QUEUE, q->handle);
	struct rgate_queue_ends head;

	if (read_head(q, result, &head) || !a || !value) {
		keep_refuse(q->user->keeper);
		lost(q, -EPROTO);
		return;
	}
	q->of = keep_of(a->born, head.queue);
	q->next = value;
	q->looked = true;
	q->behind = true;
	q->again_at = q->tasks.next;
	keep_doubt(q);
	q->again_due = 0;
}

static void ask_rules(struct kept_queue *q)
{
	ASK(q, RULES, .op = RGATE_REQ_QUEUE_STATE, .off = slot_off(q),
	    .len = sizeof(struct rgate_queue_info));
}

/* As it will be made anew: what cannot be is what was said when it was opened. */
static void ruled(struct kept_queue *q)
{
	struct queue_open as = q->as;
	struct rgate_queue_info info;

	memcpy(&info, slot_mem(q), sizeof(info));
	as.flags = info.flags & (RGATE_QUEUE_KEEP | RGATE_QUEUE_SUBMIT | RGATE_QUEUE_WORK);
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

/* ---- What a former process had is submitted again ---- */

static uint32_t delay_of(const struct kept *t, uint64_t at)
{
	return t->due_ns > at ? (uint32_t)((t->due_ns - at) / MS) : 0;
}

static uint32_t write_task(const struct kept *t, unsigned char *mem, uint64_t at)
{
	struct rgate_queue_put put = t->put;
	const uint32_t len = (uint32_t)(sizeof(put) + RGATE_QUEUE_PADDED(put.len));

	put.delay_ms = delay_of(t, at);
	memset(mem, 0, len);
	memcpy(mem, &put, sizeof(put));
	memcpy(mem + sizeof(put), t->data, put.len);
	return len;
}

/* Bytes of those that go together */
static uint32_t fill_batch(struct kept_queue *q)
{
	struct keep_user *u = q->user;
	uint32_t off = 0, i;
	struct kept *t;

	u->nbatch = 0;
	for (i = 0; i < QUEUE_STEPS && q->again_at != &q->tasks; i++) {
		t = container_of(q->again_at, struct kept, of_queue);
		if (off + sizeof(t->put) + RGATE_QUEUE_PADDED(t->put.len) > ROOM)
			break;
		q->again_at = t->of_queue.next;
		if (t->of >= q->of)
			continue;
		if (keep_life(t->of) == keep_life(q->of)) {
			/* That process has removed the queue that it was in. */
			keep_forget(q, t);
			continue;
		}
		off += write_task(t, u->mem + off, now(q));
		u->batch[u->nbatch++] = t;
	}
	return off;
}

static void again(struct kept_queue *q)
{
	const uint32_t len = fill_batch(q);

	if (!len) {
		q->behind = q->again_at != &q->tasks;
		return;
	}
	ASK(q, AGAIN, .op = RGATE_REQ_QUEUE_SUBMIT, .len = len);
	if (q->asked)
		q->user->submits = q;
	else
		q->again_at = &q->user->batch[0]->of_queue;
}

static bool is_loss(int result)
{
	return result == -ECONNRESET || result == -ESTALE || result == -EBADF ||
	       result == -ETIMEDOUT || result == -ENOTCONN || result == -EPROTO;
}

static void submitted(struct kept_queue *q, int result, uint64_t value)
{
	struct keep_user *u = q->user;
	struct keeper *k = u->keeper;
	int i;

	u->submits = NULL;
	if (result > 0 && ((uint32_t)result > u->nbatch ||
			   RGATE_SUBMIT_QUEUE(value) != (q->of & 0xffffff))) {
		keep_refuse(k);
		result = -EPROTO;
	}
	if (is_loss(result)) {
		lost(q, result);
		return;
	}
	for (i = 0; i < result; i++)
		if (keep_place(q, u->batch[i], q->of, RGATE_SUBMIT_FIRST(value) + (uint32_t)i)) {
			keep_refuse(k);
			keep_forget(q, u->batch[i]);
		}
	if (result > 0)
		keep_count(&k->count.again, (uint64_t)result);
	i = result > 0 ? result : 0;
	if ((uint32_t)i == u->nbatch)
		return;
	q->again_at = &u->batch[i]->of_queue;
	q->again_due = now(q) + (i || result == -EAGAIN ? PAUSE_NS : RETRY_NS);
	/* The queue that was made anew, by somebody else, has never room for it. */
	if (result == -EMSGSIZE || result == -EINVAL) {
		keep_refuse(k);
		keep_forget(q, u->batch[0]);
	}
}

/* ---- What has ended that nobody told of? ---- */

/* Those of the next numbers: how many 64s of bits */
static uint32_t fill_bits(struct kept_queue *q)
{
	uint32_t words = 0, i;
	struct kept *t;
	uint64_t n;

	memset(q->bits, 0, sizeof(q->bits));
	q->base = 0;
	for (i = 0; i < RGATE_QUEUE_OVER_MAX && q->check_at != &q->tasks; i++) {
		t = container_of(q->check_at, struct kept, of_queue);
		if (t->of == q->of) {
			q->base = q->base ? q->base : t->id;
			n = t->id - q->base;
			if (t->id < q->base || n >= RGATE_QUEUE_OVER_MAX)
				break;
			q->bits[n / 64] |= 1ULL << n % 64;
			words = n / 64 < words ? words : (uint32_t)(n / 64 + 1);
		}
		q->check_at = t->of_queue.next;
	}
	return words;
}

static void check(struct kept_queue *q)
{
	struct link *const from = q->check_at;

	q->words = fill_bits(q);
	if (!q->words) {
		q->unsure = q->check_at != &q->tasks;
		return;
	}
	memcpy(slot_mem(q), q->bits, q->words * sizeof(q->bits[0]));
	ASK(q, CHECK, .op = RGATE_REQ_QUEUE_OVER, .a0 = q->base, .off = slot_off(q),
	    .len = (uint32_t)(q->words * sizeof(q->bits[0])));
	if (!q->asked)
		q->check_at = from;
}

static void checked(struct kept_queue *q, int result)
{
	uint64_t bits;
	struct kept *t;
	uint32_t i;

	if ((uint32_t)result != q->words * sizeof(bits)) {
		keep_refuse(q->user->keeper);
		lost(q, -EPROTO);
		return;
	}
	for (i = 0; i < q->words; i++) {
		memcpy(&bits, slot_mem(q) + i * sizeof(bits), sizeof(bits));
		if (bits & ~q->bits[i])
			keep_refuse(q->user->keeper);
		for (bits &= q->bits[i]; bits; bits &= bits - 1) {
			t = keep_find(q, q->of, q->base + i * 64ULL +
				      (unsigned int)__builtin_ctzll(bits));
			if (t)
				keep_forget(q, t);
		}
	}
}

/* ---- What ends ---- */

static void follow(struct kept_queue *q)
{
	const bool at_once = q->behind || q->crowded || q->user->n > WAITS;

	ASK(q, FOLLOW, .op = RGATE_REQ_QUEUE_FOLLOW, .a0 = q->next, .off = slot_off(q),
	    .len = KEEP_SLOT,
	    .a1 = RGATE_FOLLOW_A1(q->user->keeper->tag, at_once ? RGATE_FOLLOW_NOW : 0));
}

/* Has any of those ended that are kept? */
static bool take_ends(struct kept_queue *q, uint32_t n)
{
	bool any = false;
	struct kept *t;
	uint64_t id;
	uint32_t i;

	for (i = 0; i < n; i++) {
		memcpy(&id, slot_mem(q) + sizeof(struct rgate_queue_ends) + i * sizeof(id),
		       sizeof(id));
		t = keep_find(q, q->of, id);
		any |= t != NULL;
		if (t)
			keep_forget(q, t);
		else
			keep_stray(q, q->of, id);
	}
	return any;
}

static void followed(struct kept_queue *q, int result, uint64_t value)
{
	struct rgate_queue_ends head;

	if (read_head(q, result, &head) || head.queue != (q->of & 0xffffff) || !value) {
		keep_refuse(q->user->keeper);
		lost(q, -EPROTO);
		return;
	}
	q->next = value;
	q->crowded = false;
	/* Nothing came of it, whether that was asked for or is of no use. */
	if (!take_ends(q, head.n))
		q->due = now(q) + PAUSE_NS;
	if (head.flags & RGATE_ENDS_MISSED)
		keep_doubt(q);
}

/* ---- One after the other ---- */

/* What is next, of a queue that is open */
static void go_on(struct kept_queue *q)
{
	if (q->closes)
		close_it(q);
	else if (!q->looked)
		look(q);
	else if (!q->n && !q->behind)
		close_it(q);
	else if (!q->ruled)
		ask_rules(q);
	else if (q->behind && now(q) >= q->again_due && !q->user->submits)
		again(q);
	else if (q->unsure)
		check(q);
	else
		follow(q);
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
		return now(q);
	if (now(q) < q->due)
		return q->due;
	if (q->handle)
		go_on(q);
	else
		open_it(q);
	return q->asked ? UINT64_MAX : q->due > now(q) ? q->due : now(q);
}

/* Requests are under way at that node, or wait at that queue: later */
static void too_many(struct kept_queue *q)
{
	q->due = now(q) + PAUSE_NS;
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
		submitted(q, result, value);
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
		lost(q, result);
	else if (q->state == TALK_LOOK)
		looked(q, result, value);
	else if (q->state == TALK_RULES)
		ruled(q);
	else if (q->state == TALK_CHECK)
		checked(q, result);
	else
		followed(q, result, value);
}

void keep_hear(struct keep_user *u)
{
	struct rgate_completion done;
	struct kept_queue *q;
	uint64_t at;

	while (u->session && u->seat && rgate_session_poll(u->session, &done, 1) == 1) {
		q = done.cookie < KEEP_QUEUES ? u->slot[done.cookie] : NULL;
		if (!q || !q->asked)
			continue;
		heard(q, done.result, done.value);
		at = keep_talk(q);
		u->keeper->due = at < u->keeper->due ? at : u->keeper->due;
	}
}
