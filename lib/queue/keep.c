// SPDX-License-Identifier: MIT OR GPL-2.0
/* What is kept */
#include "keep.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "clock.h"

#define BACK_MOST	1024U	/* tasks that one is put before: SUBMITs end in another order */
#define IDLE_NS		1000000000ULL	/* a session without tasks stays for so long */

void keep_count(uint64_t *at, uint64_t n)
{
	__atomic_store_n(at, *at + n, __ATOMIC_RELAXED);
}

/* More tasks, or -@n fewer */
static void count_tasks(const struct keep_user *u, uint64_t n)
{
	struct queue_kept_stats *count = &u->keeper->count;

	keep_count(u->mirrors ? &count->copies : &count->tasks, n);
}

void keep_refuse(struct keeper *k)
{
	keep_count(&k->count.refused, 1);
}

/* ---- Memory ---- */

static uint64_t cost(uint32_t len)
{
	return sizeof(struct kept) + len + 2 * sizeof(struct kept *);
}

/*
 * Have all, and that home of these, room for @more? One that never says that something has ended
 * leaves for others as much as it has, and so does the next one.
 */
static bool has_room(uint64_t all, uint64_t of_home, uint64_t more, uint64_t most)
{
	return all + of_home + 2 * more <= most;
}

/* -@bytes gives them back. */
static void charge(struct kept_queue *q, uint64_t bytes)
{
	struct keep_user *u = q->user;
	struct keeper *k = u->keeper;

	q->bytes += bytes;
	u->bytes += bytes;
	u->of_home[q->node].bytes += bytes;
	k->of_home[q->node].bytes += bytes;
	keep_count(&k->count.bytes, bytes);
}

static int take(struct kept_queue *q, uint64_t bytes)
{
	const struct keep_user *u = q->user;
	const struct keeper *k = u->keeper;

	if (q->bytes + bytes > k->most / 8 * 3 ||
	    !has_room(u->bytes, u->of_home[q->node].bytes, bytes, k->most) ||
	    !has_room(k->count.bytes, k->of_home[q->node].bytes, bytes, k->most * 2))
		return -EDQUOT;
	charge(q, bytes);
	return 0;
}

void keep_free(struct kept_queue *q, struct kept *t)
{
	charge(q, -cost(t->put.len));
	free(t);
}

/* ---- It has ended ---- */

static void pass(struct link **at, const struct kept *t)
{
	if (*at == &t->of_queue)
		*at = t->of_queue.next;
}

void keep_forget(struct kept_queue *q, struct kept *t)
{
	keep_displace(q, t);
	pass(&q->purge_at, t);
	pass(&q->again_at, t);
	pass(&q->check_at, t);
	list_del(&t->of_queue);
	q->n--;
	count_tasks(q->user, -1ULL);
	keep_free(q, t);
}

void keep_doubt(struct kept_queue *q)
{
	q->unsure = true;
	q->check_at = q->tasks.next;
	q->doubts++;
}

/* ---- Ends that come before the one of the SUBMIT ---- */

/* So many are of nothing that is kept. */
static void pass_ends(struct kept_queue *q, uint64_t n)
{
	const uint64_t late = n < q->excused ? n : q->excused;
	struct queue_kept_stats *count = &q->user->keeper->count;

	q->excused -= late;
	keep_count(&count->late, late);
	keep_count(&count->refused, n - late);
}

void keep_stray(struct kept_queue *q, uint64_t of, uint64_t id)
{
	if (!q->under_way) {
		pass_ends(q, 1);
		return;
	}
	if (!q->strays)
		q->strays = calloc(KEEP_STRAYS, sizeof(*q->strays));
	if (q->strays && q->nstrays < KEEP_STRAYS) {
		q->strays[q->nstrays++] = (struct keep_name){ .of = of, .id = id };
		return;
	}
	keep_doubt(q);
	keep_count(&q->user->keeper->count.late, 1);
}

static bool take_stray(struct kept_queue *q, uint64_t of, uint64_t id)
{
	uint32_t i;

	for (i = 0; i < q->nstrays; i++) {
		if (q->strays[i].of != of || q->strays[i].id != id)
			continue;
		q->strays[i] = q->strays[--q->nstrays];
		return true;
	}
	return false;
}

/* No SUBMIT is left that they could be of. */
static void drop_strays(struct kept_queue *q)
{
	pass_ends(q, q->nstrays);
	free(q->strays);
	q->strays = NULL;
	q->nstrays = 0;
}

/* ---- Users and queues ---- */

struct keep_user *keep_user_of(struct keeper *k, uid_t uid, bool mirrors)
{
	struct keep_user *u;
	struct link *l;

	for (l = k->users.next; l != &k->users; l = l->next) {
		u = container_of(l, struct keep_user, of_keeper);
		if (u->uid == uid && u->mirrors == mirrors)
			return u;
	}
	u = calloc(1, sizeof(*u));
	if (!u)
		return NULL;
	u->keeper = k;
	u->uid = uid;
	u->mirrors = mirrors;
	u->idle_ns = k->home->now;
	k->due = 0;
	list_init(&u->queues);
	list_add_tail(&k->users, &u->of_keeper);
	return u;
}

static struct kept_queue *find(const struct keep_user *u, uint32_t node,
			       const struct queue_open *as)
{
	struct kept_queue *q;
	struct link *l;

	for (l = u->queues.next; l != &u->queues; l = l->next) {
		q = container_of(l, struct kept_queue, of_user);
		if (q->node == node && q->as.owner == as->owner &&
		    !strcmp(q->as.place.name, as->place.name))
			return q;
	}
	return NULL;
}

static void count_queue(struct kept_queue *q, uint32_t n)
{
	struct keep_user *u = q->user;
	struct keeper *k = u->keeper;

	u->n += n;
	u->of_home[q->node].queues += n;
	k->n += n;
	k->of_home[q->node].queues += n;
}

static struct kept_queue *make(struct keep_user *u, uint32_t node, const struct queue_open *as)
{
	struct kept_queue *q = calloc(1, sizeof(*q));

	if (!q)
		return NULL;
	while (u->slot[q->slot])
		q->slot++;
	u->slot[q->slot] = q;
	q->user = u;
	q->secret = u->keeper->secret;
	q->node = node;
	q->as = *as;
	q->as.flags &= QUEUE_MADE_FLAGS;
	list_init(&q->tasks);
	q->fresh = u->mirrors;
	q->purge_at = q->again_at = q->check_at = &q->tasks;
	list_add_tail(&u->queues, &q->of_user);
	count_queue(q, 1);
	return q;
}

int keep_queue_for(struct keep_user *u, uint32_t node, const struct queue_open *as,
		   struct kept_queue **out)
{
	const uint32_t most = u->mirrors ? KEEP_MIRRORS : KEEP_QUEUES;
	struct keeper *k = u->keeper;

	*out = find(u, node, as);
	if (*out)
		return 0;
	if (!has_room(u->n, u->of_home[node].queues, 1, most) ||
	    !has_room(k->n, k->of_home[node].queues, 1, QUEUES_MOST))
		return -EDQUOT;
	*out = make(u, node, as);
	return *out ? 0 : -ENOMEM;
}

void keep_queue_free(struct kept_queue *q)
{
	struct keep_user *u = q->user;
	struct kept *t;

	while (!list_empty(&q->tasks)) {
		t = container_of(q->tasks.next, struct kept, of_queue);
		list_del(&t->of_queue);
		count_tasks(u, -1ULL);
		keep_free(q, t);
	}
	free(q->table);
	free(q->strays);
	list_del(&q->of_user);
	u->slot[q->slot] = NULL;
	count_queue(q, -1U);
	u->idle_ns = u->keeper->home->now;
	u->keeper->due = 0;
	free(q);
}

/* ---- SUBMIT ---- */

struct kept *keep_make(struct kept_queue *q, const struct rgate_queue_put *put, const char *data,
		       int *err)
{
	struct kept *t;

	*err = take(q, cost(put->len));
	if (*err)
		return NULL;
	t = malloc(sizeof(*t) + put->len);
	if (!t) {
		charge(q, -cost(put->len));
		*err = -ENOMEM;
		return NULL;
	}
	*t = (struct kept){ .put = *put, .tag = q->user->keeper->tag };
	if (put->delay_ms)
		t->due_ns = q->user->keeper->home->now + put->delay_ms * 1000000ULL;
	if (put->len)
		memcpy(t->data, data, put->len);
	list_init(&t->of_queue);
	return t;
}

/* One of @left bytes at @mem. NULL: the home refuses it; or @err: -ENOMEM, -EDQUOT */
static struct kept *copy_task(struct kept_queue *q, const char *mem, uint32_t left, int *err)
{
	struct rgate_queue_put put;

	*err = 0;
	if (left < sizeof(put))
		return NULL;
	memcpy(&put, mem, sizeof(put));
	if (queue_put_check(&put) || put.len > left - sizeof(put))
		return NULL;
	return keep_make(q, &put, mem + sizeof(put), err);
}

static int copy_all(struct keeping *g, const struct rgate_req *r)
{
	const uint32_t len = rgate_req_get(r)->len;
	const char *mem = rgate_req_mem(r);
	struct kept *t;
	uint32_t off;
	int err = 0;

	for (off = 0; off < len && g->ntasks < QUEUE_STEPS; g->ntasks++) {
		t = copy_task(g->queue, mem + off, len - off, &err);
		if (!t)
			break;
		list_add_tail(&g->tasks, &t->of_queue);
		off += (uint32_t)(sizeof(t->put) + RGATE_QUEUE_PADDED(t->put.len));
	}
	return err;
}

bool keep_is_idle(const struct kept_queue *q)
{
	return !q->n && !q->under_way && !q->handle && !q->asked && !q->fresh;
}

static void drop_copies(struct keeping *g)
{
	struct kept *t;

	while (!list_empty(&g->tasks)) {
		t = container_of(g->tasks.next, struct kept, of_queue);
		list_del(&t->of_queue);
		keep_free(g->queue, t);
	}
}

/* Its queue stays. */
static void end(struct keeping *g)
{
	struct kept_queue *q = g->queue;

	drop_copies(g);
	q->under_way--;
	if (!q->under_way)
		drop_strays(q);
	free(g);
}

int keep_begin(struct keeper *k, struct rgate_req *r, uint32_t node, const struct queue_open *as,
	       struct gate_caller *caller, struct keeping **out)
{
	struct kept_queue *q;
	struct keep_user *u;
	struct keeping *g;
	int err;

	*out = NULL;
	if (keep_is_own(k, rgate_req_seat(r)))
		return 0;
	u = keep_user_of(k, rgate_seat_uid(rgate_req_seat(r)), false);
	err = u ? keep_queue_for(u, node, as, &q) : -ENOMEM;
	if (err)
		return err;
	g = calloc(1, sizeof(*g));
	if (!g)
		return -ENOMEM;
	g->keeper = k;
	g->queue = q;
	g->caller = caller;
	g->doubts = q->doubts;
	g->limited = rgate_req_get(r)->deadline_us;
	list_init(&g->tasks);
	q->under_way++;
	err = copy_all(g, r);
	g->sound = g->ntasks && !((uint32_t)rgate_req_get(r)->a1 & ~RGATE_SUBMIT_ROOM);
	if (err)
		keep_undo(g);
	else
		*out = g;
	return err;
}

void keep_undo(struct keeping *g)
{
	struct kept_queue *q = g->queue;

	end(g);
	if (keep_is_idle(q))
		keep_queue_free(q);
}

int keep_over(void *ctx, int result, uint64_t *value)
{
	struct keeping *g = ctx;
	struct keeper *k = g->keeper;

	g->unheard = result == -ECONNRESET || result == -ETIMEDOUT;
	/* As is_known() in queue_away.c has it */
	if (result == -ETIMEDOUT && !g->limited)
		result = -ECONNRESET;
	g->lie = !result || (result > 0 && (uint32_t)result > g->ntasks);
	if (g->lie)
		result = -EPROTO;
	/* Without a tag nobody would hear of its end: it is told, rather than not kept. */
	if (result == -EINVAL && g->sound)
		result = -EOPNOTSUPP;
	if (result > 0) {
		g->n = (uint32_t)result;
		g->of = keep_of(gate_caller_life(g->caller), RGATE_SUBMIT_QUEUE(*value));
		g->first = RGATE_SUBMIT_FIRST(*value);
		g->origin.process = gate_caller_process(g->caller);
		g->origin.word = *value;
		*value = g->first;
	}
	g->next = __atomic_load_n(&k->ended, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&k->ended, &g->next, g, true, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED))
		;
	return result;
}

/* Behind those that were submitted before it */
static void line_up(struct kept_queue *q, struct kept *t)
{
	struct link *at = &q->tasks;
	const struct kept *before;
	uint32_t i;

	for (i = 0; at->prev != &q->tasks && i < BACK_MOST; i++) {
		before = container_of(at->prev, struct kept, of_queue);
		if (before->of != t->of || before->id < t->id)
			break;
		at = at->prev;
	}
	list_add_tail(at, &t->of_queue);
}

int keep_enter(struct kept_queue *q, struct kept *t, uint64_t of, uint64_t id)
{
	int err = keep_grow(q);

	if (err)
		keep_count(&q->user->keeper->count.lost, 1);
	else
		err = keep_place(q, t, of, id);
	if (err) {
		keep_free(q, t);
		return err;
	}
	line_up(q, t);
	q->n++;
	count_tasks(q->user, 1);
	return 0;
}

/* The home has it */
static void keep(struct kept_queue *q, struct kept *t, uint64_t of, uint64_t id)
{
	if (take_stray(q, of, id)) {
		keep_free(q, t);
		return;
	}
	if (keep_enter(q, t, of, id) == -EEXIST)
		keep_refuse(q->user->keeper);
}

static void settle(struct keeping *g)
{
	struct kept_queue *q = g->queue;
	struct kept *t;
	uint32_t i;

	for (i = 0; i < g->n; i++) {
		t = container_of(g->tasks.next, struct kept, of_queue);
		list_del(&t->of_queue);
		t->origin = g->origin;
		t->origin.word += i;
		keep(q, t, g->of, g->first + i);
	}
	if (g->lie)
		keep_refuse(g->keeper);
	if (g->unheard)
		q->excused += g->ntasks;
	/* It was asked for what has ended, and of these nobody had known then. */
	if (g->n && g->doubts != q->doubts)
		keep_doubt(q);
	/* Of an older process than the one that is asked by now, or another queue of it */
	if (g->n && q->looked && g->of != q->of && keep_life(g->of) <= keep_life(q->of)) {
		q->behind = true;
		q->again_at = q->tasks.next;
	}
}

/* ---- The clock ---- */

static void settle_all(struct keeper *k)
{
	struct keeping *g, *next, *first = NULL;
	struct kept_queue *q;
	uint64_t at;

	/* The engine comes by often, and nearly always there is none. */
	if (!__atomic_load_n(&k->ended, __ATOMIC_RELAXED))
		return;
	for (g = __atomic_exchange_n(&k->ended, NULL, __ATOMIC_ACQUIRE); g; g = next) {
		next = g->next;
		g->next = first;
		first = g;
	}
	for (g = first; g; g = next) {
		next = g->next;
		q = g->queue;
		settle(g);
		end(g);
		at = keep_talk(q);
		k->due = at < k->due ? at : k->due;
	}
}

static uint64_t look_after(struct keep_user *u)
{
	struct keeper *k = u->keeper;
	uint64_t least = UINT64_MAX, at;
	struct link *l, *next;

	for (l = u->queues.next; l != &u->queues; l = next) {
		next = l->next;
		at = keep_talk(container_of(l, struct kept_queue, of_user));
		least = at < least ? at : least;
	}
	if (u->n || u->asks)
		return least;
	if (k->home->now < u->idle_ns + IDLE_NS)
		return u->idle_ns + IDLE_NS;
	keep_session_end(u);
	/* Its end names the user. */
	if (u->seat)
		return UINT64_MAX;
	list_del(&u->of_keeper);
	free(u);
	return UINT64_MAX;
}

uint64_t keeper_tick(struct keeper *k)
{
	struct link *l, *next;
	uint64_t at;

	for (l = k->users.next; l != &k->users; l = l->next)
		keep_hear(container_of(l, struct keep_user, of_keeper));
	settle_all(k);
	if (k->home->now < k->due)
		return k->due;
	k->due = UINT64_MAX;
	for (l = k->users.next; l != &k->users; l = next) {
		next = l->next;
		at = look_after(container_of(l, struct keep_user, of_keeper));
		k->due = at < k->due ? at : k->due;
	}
	return k->due;
}

void keeper_init(struct keeper *k, struct queues *home, struct gate_service *gate, uint64_t most)
{
	memset(k, 0, sizeof(*k));
	k->home = home;
	k->gate = gate;
	k->most = most ? most : QUEUES_UID_BYTES;
	k->due = UINT64_MAX;
	list_init(&k->users);
	/* Another process of this node follows what is its own. */
	if (getrandom(&k->tag, sizeof(k->tag), GRND_NONBLOCK) != sizeof(k->tag))
		k->tag = (uint32_t)rgate_clock_now(CLOCK_MONOTONIC);
	k->tag |= 1;
	if (getrandom(&k->secret, sizeof(k->secret), GRND_NONBLOCK) != sizeof(k->secret))
		k->secret = rgate_clock_now(CLOCK_MONOTONIC) * 0x9e3779b97f4a7c15;
}

void keeper_fini(struct keeper *k)
{
	struct keeping *g, *next;
	struct keep_user *u;

	for (g = k->ended; g; g = next) {
		next = g->next;
		end(g);
	}
	while (!list_empty(&k->users)) {
		u = container_of(k->users.next, struct keep_user, of_keeper);
		while (!list_empty(&u->queues))
			/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it has left its list */
			keep_queue_free(container_of(u->queues.next, struct kept_queue, of_user));
		rgate_session_close(u->session);
		list_del(&u->of_keeper);
		free(u);
	}
}
