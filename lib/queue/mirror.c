// SPDX-License-Identifier: MIT OR GPL-2.0
#include "mirror.h"

#include <errno.h>
#include <stdlib.h>

#include "engine.h"
#include "queues.h"

#define LOOKS	4096U	/* tasks of others that are passed at once */

int mirror_create(struct queue *q)
{
	struct mirror *m = calloc(1, sizeof(*m));
	unsigned int i;

	if (!m)
		return -ENOMEM;
	m->queue = q;
	list_init(&m->held);
	for (i = 0; i < MIRROR_COPIERS; i++) {
		m->copier[i].at = &q->tasks;
		m->copier[i].avoid = MIRROR_HOME;
	}
	list_add_tail(&q->home->mirrors, &m->of_home);
	q->mirror = m;
	return 0;
}

void mirror_destroy(struct mirror *m)
{
	if (!m)
		return;
	mirror_quit(m);
	list_del(&m->of_home);
	free(m);
}

/* Of those whose tasks come from @from: the second one has what the node of the first submits. */
static struct copier *copier_for(struct mirror *m, uint32_t from)
{
	struct copier *first = m->copier;

	return first->by && first->node == from ? first + 1 : first;
}

static struct task *task_at(const struct copier *c)
{
	return container_of(c->at, struct task, of_queue);
}

static void miss(struct mirror *m, uint32_t n)
{
	uint64_t *all = &m->queue->home->unmirrored;

	m->missed += n;
	__atomic_store_n(all, *all + n, __ATOMIC_RELAXED);
}

/* ---- Who submits ---- */

static void end(struct held *h)
{
	list_del(&h->in);
	rgate_req_end(h->r, h->result, h->value);
	free(h);
}

static struct held *first_held(const struct mirror *m)
{
	return list_empty(&m->held) ? NULL : container_of(m->held.next, struct held, in);
}

void mirror_quit(struct mirror *m)
{
	struct held *h;

	while ((h = first_held(m)))
		end(h);
	origins_free(m);
}

int mirror_hold(struct queue *q, const struct held *as)
{
	struct mirror *m = q->mirror;
	struct copier *c = copier_for(m, as->from);
	struct held *h = NULL;

	if (!c->wanted) {
		c->wanted = true;
		c->avoid = as->from;
		q->home->mirror_due = 0;
	}
	if (!c->late)
		h = malloc(sizeof(*h));
	if (!h) {
		miss(m, (uint32_t)as->result);
		return as->result;
	}
	*h = *as;
	h->due = q->home->now + MIRROR_WAIT_NS;
	list_add_tail(&m->held, &h->in);
	if (h->due < q->home->mirror_due)
		q->home->mirror_due = h->due;
	return RGATE_REQ_LATER;
}

/* It was not there in time: others do not wait for it, until it has all that there is. */
static void give_up(struct mirror *m, struct held *h)
{
	miss(m, (uint32_t)h->result);
	copier_for(m, h->from)->late = true;
	end(h);
}

void mirror_close(struct queue *q, const void *by)
{
	struct mirror *m = q->mirror;
	struct link *l, *next;
	struct held *h;

	for (l = m->held.next; l != &m->held; l = next) {
		next = l->next;
		h = container_of(l, struct held, in);
		if (h->by != by)
			continue;
		miss(m, (uint32_t)h->result);
		end(h);
	}
}

bool mirror_let_go(struct queue *q, const struct rgate_req *r)
{
	struct mirror *m = q->mirror;
	struct held *h;
	struct link *l;

	for (l = m->held.next; l != &m->held; l = l->next) {
		h = container_of(l, struct held, in);
		if (h->r != r)
			continue;
		miss(m, (uint32_t)h->result);
		end(h);
		return true;
	}
	return false;
}

uint64_t mirror_expire(struct mirror *m, uint64_t now)
{
	struct link *l, *next;
	struct held *h;

	for (l = m->held.next; l != &m->held; l = next) {
		next = l->next;
		h = container_of(l, struct held, in);
		if (now >= h->due || copier_for(m, h->from)->late)
			give_up(m, h);
	}
	h = first_held(m);
	return h ? h->due : UINT64_MAX;
}

static void answer(struct mirror *m)
{
	struct link *l, *next;
	const struct copier *c;
	struct held *h;

	for (l = m->held.next; l != &m->held; l = next) {
		next = l->next;
		h = container_of(l, struct held, in);
		c = copier_for(m, h->from);
		if (c->by && c->acked >= h->last)
			end(h);
	}
}

/* ---- Copies ---- */

void mirror_comes(struct mirror *m, struct task *t)
{
	unsigned int i;

	for (i = 0; i < MIRROR_COPIERS; i++)
		if (m->copier[i].at == &m->queue->tasks)
			m->copier[i].at = &t->of_queue;
}

void mirror_goes(struct mirror *m, const struct task *t)
{
	unsigned int i;

	for (i = 0; i < MIRROR_COPIERS; i++)
		if (m->copier[i].at == &t->of_queue)
			m->copier[i].at = t->of_queue.next;
}

struct copier *mirror_copier(struct mirror *m, const void *by)
{
	unsigned int i;

	for (i = 0; i < MIRROR_COPIERS; i++)
		if (m->copier[i].by == by)
			return &m->copier[i];
	return NULL;
}

/* He has nothing, as far as is known. */
static void begin_anew(struct queue *q, struct copier *c)
{
	c->at = q->tasks.next;
	c->sent = c->acked = c->told = 0;
	c->flies = 0;
	c->holes = false;
}

static void take_place(struct queue *q, struct copier *c, const void *by, uint32_t node)
{
	c->by = by;
	c->node = node;
	c->asked = false;
	c->tried = 0;
	begin_anew(q, c);
}

struct copier *mirror_attach(struct queue *q, const void *by, uint32_t node)
{
	struct mirror *m = q->mirror;
	struct copier *c = m->copier;

	if (c->by && c->node == node) {
		/* another session of it: the one before is about to end */
		m->handles--;
		q->handles++;
	} else if (c->by && (++c)->by) {
		return NULL;
	}
	take_place(q, c, by, node);
	/* as one does not wait for those who wait for tasks, a queue does not stay for it */
	m->handles++;
	q->handles--;
	return c;
}

void mirror_detach(struct queue *q, const void *by)
{
	struct mirror *m = q->mirror;
	struct copier *c = mirror_copier(m, by);

	if (!c)
		return;
	m->handles--;
	q->handles++;
	c->by = NULL;
	c->tried = 0;
	c->due = 0;
	q->home->mirror_due = 0;
	/* The other one does for all but its own. */
	if (c == m->copier && c[1].by) {
		take_place(q, c, c[1].by, c[1].node);
		c[1] = (struct copier){ .at = &q->tasks, .avoid = MIRROR_HOME };
	}
}

static bool is_for(struct mirror *m, const struct copier *c)
{
	const struct task *t = task_at(c);

	return !t->told && copier_for(m, t->from) == c;
}

/* Passes those of others, and what has ended. Is there more? */
static bool look(struct queue *q, struct copier *c)
{
	uint32_t n;

	for (n = 0; n < LOOKS && c->at != &q->tasks; n++) {
		if (is_for(q->mirror, c))
			return true;
		c->at = c->at->next;
	}
	if (c->at == &q->tasks && !c->flies) {
		c->sent = c->acked = q->last;
		c->late &= c->holes;
	}
	return c->at != &q->tasks;
}

void mirror_has(struct queue *q, struct copier *c, uint64_t after, bool full)
{
	if (after != c->told) {
		begin_anew(q, c);
		return;
	}
	c->acked = after > c->acked ? after : c->acked;
	if (full) {
		miss(q->mirror, c->flies);
		c->holes = c->late = true;
	}
	c->flies = 0;
}

struct task *mirror_next(struct queue *q, struct copier *c)
{
	return look(q, c) && is_for(q->mirror, c) ? task_at(c) : NULL;
}

void mirror_sends(struct copier *c, const struct task *t)
{
	c->at = t->of_queue.next;
	c->sent = t->id;
	c->flies++;
}

/* Who waits has something to look at. */
static void wake(struct queue *q, const struct copier *c)
{
	struct link *l, *next;
	struct waiter *w;

	for (l = q->follows.next; l != &q->follows; l = next) {
		next = l->next;
		w = container_of(l, struct waiter, in);
		if (w->who.copies != c->by)
			continue;
		list_del(&w->in);
		w->over(w, 0);
	}
}

void mirror_settle(struct queue *q)
{
	struct mirror *m = q->mirror;
	struct copier *c;

	for (c = m->copier; c < m->copier + MIRROR_COPIERS; c++)
		if (c->by && look(q, c))
			wake(q, c);
	answer(m);
}

static uint32_t node_of(const struct copier *c)
{
	return c->by ? c->node + 1 : 0;
}

uint32_t mirror_info(const struct mirror *m)
{
	const uint32_t missed = m->missed < 0xffff ? (uint32_t)m->missed : 0xffff;

	return node_of(m->copier) | node_of(m->copier + 1) << 4 | missed << 16 |
	       (m->copier[0].late || m->copier[1].late ? RGATE_MIRROR_LATE : 0);
}
