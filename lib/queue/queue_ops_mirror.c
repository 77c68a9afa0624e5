// SPDX-License-Identifier: MIT OR GPL-2.0
/* Queues of which other nodes have copies: what their daemons ask, and are asked. */
#include <errno.h>
#include <string.h>

#include "board.h"
#include "queue_priv.h"

#define ENDS_AT_ONCE	512U
#define ATTACH_NS	1000000000ULL	/* for who was asked to ask for copies */
#define NEXT_NS		20000000ULL	/* until the next one is asked */

/* Of another node, and by the daemon there, which lets no program ask it */
static bool is_guests(const struct opened *o)
{
	return o->queue->mirror && o->from != MIRROR_HOME;
}

/* ---- AGAIN ---- */

struct again {
	struct rgate_req *r;
	struct opened *o;
	uint32_t off;			/* of the next one, in the request's part */
	uint64_t first;
	uint32_t n;
};

/* Is it there, or was it? Its number; 0: no */
static uint64_t known(const struct opened *o, const struct rgate_queue_origin *name)
{
	const struct queue *q = o->queue;
	const uint64_t id = RGATE_SUBMIT_FIRST(name->word);
	const struct origin *origin;

	if (name->process == gate_service_process(o->sv->gate) &&
	    RGATE_SUBMIT_QUEUE(name->word) == queue_ends_serial(q) && id <= q->last)
		return id;
	origin = origin_find(q->mirror, name);
	return origin ? origin->id : 0;
}

static int take_again(struct again *a, const struct rgate_queue_copy *copy, const char *data)
{
	struct queue *q = a->o->queue;
	struct origin *origin;
	struct task *t;
	int err;

	err = origin_add(q, &copy->origin, &origin);
	if (err)
		return err;
	err = queue_submit(q, a->o->uid, copy->tag, &copy->put, data, &origin->id);
	if (err) {
		origin_undo(q, origin);
		return err;
	}
	t = queue_find(q, origin->id);
	t->origin = origin;
	t->from = (uint8_t)a->o->from;
	t->again = true;
	return 0;
}

/* A copy of its head: the client may write its memory while it is looked at. */
static int next_copy(struct again *a, struct rgate_queue_copy *copy, const char **data)
{
	const uint32_t left = rgate_req_get(a->r)->len - a->off;
	const char *mem = (const char *)rgate_req_mem(a->r) + a->off;

	if (left < sizeof(*copy))
		return -EINVAL;
	memcpy(copy, mem, sizeof(*copy));
	if (queue_put_check(&copy->put) || copy->put.len > left - sizeof(*copy) || copy->id ||
	    copy->reserved || !copy->origin.process || !RGATE_SUBMIT_FIRST(copy->origin.word))
		return -EINVAL;
	*data = mem + sizeof(*copy);
	return 0;
}

/* Those of one answer have numbers one after the other: -ERANGE: this one is in the next. */
static int again_one(struct again *a)
{
	struct rgate_queue_copy copy;
	const char *data;
	uint64_t id, next;
	int err;

	err = next_copy(a, &copy, &data);
	if (err)
		return err;
	id = known(a->o, &copy.origin);
	next = id ? id : a->o->queue->last + 1;
	if (a->n && next != a->first + a->n)
		return -ERANGE;
	err = id ? 0 : take_again(a, &copy, data);
	if (err)
		return err;
	if (!a->n++)
		a->first = next;
	a->off += (uint32_t)(sizeof(copy) + RGATE_QUEUE_PADDED(copy.put.len));
	return 0;
}

static int again(struct rgate_req *r, struct opened *o)
{
	struct again a = { .r = r, .o = o };
	int err = 0;

	if (!is_guests(o))
		return -EINVAL;
	while (!err && a.off < rgate_req_get(r)->len && a.n < QUEUE_STEPS)
		err = again_one(&a);
	if (!a.n)
		return err;
	rgate_req_set_value(r, (uint64_t)queue_ends_serial(o->queue) << 40 | a.first);
	return (int)a.n;
}

int queue_begin_again(struct rgate_req *r, void *ctx)
{
	const uint32_t len = rgate_req_get(r)->len;

	if (len < sizeof(struct rgate_queue_copy) || len > RGATE_QUEUE_PART_MAX)
		return -EINVAL;
	return queue_on(r, ctx, RIGHT_OWN, again);
}

/* ---- COPIES ---- */

static uint32_t left_ms(const struct task *t)
{
	const uint64_t now = t->queue->home->now;

	return t->state == RGATE_TASK_DELAYED && t->timer.at > now ?
	       (uint32_t)((t->timer.at - now) / 1000000) : 0;
}

static struct rgate_queue_copy copy_of(const struct opened *o, const struct task *t)
{
	const struct rgate_queue_origin own = {
		.process = gate_service_process(o->sv->gate),
		.word = (uint64_t)queue_ends_serial(o->queue) << 40 | t->id,
	};

	return (struct rgate_queue_copy){
		.origin = t->origin ? t->origin->name : own, .id = t->id, .tag = t->tag,
		.put = { .len = t->len, .delay_ms = left_ms(t), .attempts = t->most,
			 .type = t->type, .priority = t->priority, .flags = t->flags },
	};
}

/* Bytes; 0: there is no room */
static uint32_t put_copy(struct rgate_req *r, uint32_t off, const struct opened *o,
			 const struct task *t)
{
	const uint64_t need = sizeof(struct rgate_queue_copy) + RGATE_QUEUE_PADDED(t->len);
	const struct rgate_queue_copy copy = copy_of(o, t);
	char *mem = (char *)rgate_req_mem(r) + off;

	if (need > rgate_req_get(r)->len - off)
		return 0;
	memset(mem, 0, need);
	memcpy(mem, &copy, sizeof(copy));
	memcpy(mem + sizeof(copy), t->data, t->len);
	return (uint32_t)need;
}

static uint32_t put_copies(struct rgate_req *r, uint32_t off, struct opened *o, struct copier *c,
			   uint32_t *n)
{
	struct task *t;
	uint32_t len;

	for (*n = 0; *n < QUEUE_STEPS && (t = mirror_next(o->queue, c)); ++*n) {
		len = put_copy(r, off, o, t);
		if (!len)
			break;
		off += len;
		mirror_sends(c, t);
	}
	return off;
}

int queue_ops_copies(struct rgate_req *r, struct opened *o, struct follower *who, bool *some)
{
	struct rgate_queue_copies head = {
		.process = gate_service_process(o->sv->gate), .queue = queue_ends_serial(o->queue),
	};
	struct copier *c = mirror_copier(o->queue->mirror, o);
	uint32_t off = sizeof(head);
	uint64_t ids[ENDS_AT_ONCE];
	bool missed;

	if (!c)
		return -ESTALE;
	head.ends = queue_ends_take(o->queue, who, ids, ENDS_AT_ONCE, &missed);
	memcpy((char *)rgate_req_mem(r) + off, ids, head.ends * sizeof(ids[0]));
	off += head.ends * (uint32_t)sizeof(ids[0]);
	off = put_copies(r, off, o, c, &head.copies);
	head.flags = missed ? RGATE_ENDS_MISSED : 0;
	head.after = c->told = c->sent;
	head.next = who->next;
	memcpy(rgate_req_mem(r), &head, sizeof(head));
	*some = head.ends || head.copies || head.flags;
	return (int)off;
}

static struct rgate_queue_copies asked(const struct rgate_req *r)
{
	struct rgate_queue_copies head;

	memcpy(&head, rgate_req_mem(r), sizeof(head));
	return head;
}

static struct follower follower_from(const struct opened *o, uint64_t next)
{
	return (struct follower){ .next = next, .uid = o->uid, .copies = o, .node = o->from };
}

struct follower queue_copies_of(const struct rgate_req *r, const struct opened *o)
{
	return follower_from(o, asked(r).next);
}

/* What he has said is read once here; he waits with what was written for him, which is his to change. */
static int copies(struct rgate_req *r, struct opened *o)
{
	const struct rgate_queue_copies head = asked(r);
	struct follower who = follower_from(o, head.next);
	struct copier *c;
	int result;
	bool some;

	if (!is_guests(o) || head.flags & ~RGATE_COPIES_FULL)
		return -EINVAL;
	c = mirror_copier(o->queue->mirror, o);
	if (!c)
		c = mirror_attach(o->queue, o, o->from);
	if (!c)
		return -EBUSY;
	result = queue_ends_begin(o->queue);
	if (result)
		return result;
	mirror_has(o->queue, c, head.after, head.flags & RGATE_COPIES_FULL);
	result = queue_ops_copies(r, o, &who, &some);
	if (result < 0)
		return result;
	rgate_req_set_value(r, who.next);
	if (!head.next || some || rgate_req_get(r)->a1 & RGATE_COPIES_NOW)
		return result;
	return pend(r, o, PEND_COPIES, NULL);
}

int queue_begin_copies(struct rgate_req *r, void *ctx)
{
	const struct rgate_request *q = rgate_req_get(r);

	if (q->a1 & ~(uint64_t)RGATE_COPIES_NOW || q->len != RGATE_QUEUE_PART_MAX)
		return -EINVAL;
	return queue_on(r, ctx, RIGHT_OWN, copies);
}

/* ---- MIRROR ---- */

int queue_begin_mirror(struct rgate_req *r, void *ctx)
{
	struct queue_service *sv = ctx;
	struct queue_open as;
	uint32_t node;
	int err;

	err = queue_read_open(sv, r, &as, &node);
	if (err)
		return err;
	if (node != BOARD_HERE)
		return queue_away_mirror(sv, r, node);
	/* The home asks, in its owner's name. */
	if (!sv->gate || gate_service_whose(sv->gate, rgate_req_seat(r), &node))
		return -EINVAL;
	if (as.owner != rgate_seat_uid(rgate_req_seat(r)))
		return -EACCES;
	queue_look_at_clock(sv);
	return keep_mirror_begin(&sv->keeper, as.owner, node, &as);
}

/* ---- Who is asked ---- */

/* That many nodes behind this one, in the order of their numbers; BOARD_HERE: there is none */
static uint32_t node_behind(const struct queue_service *sv, uint32_t n)
{
	uint32_t self = 0, node;

	while (self < RGATE_NODES_MAX - 1 &&
	       (gate_service_find(sv->gate, self, &node) || node != BOARD_HERE))
		self++;
	return gate_service_find(sv->gate, (self + n) % RGATE_NODES_MAX, &node) ? BOARD_HERE : node;
}

int queue_mirror_check(struct queue_service *sv)
{
	uint32_t i, n = 0;

	for (i = 1; sv->gate && i < RGATE_NODES_MAX; i++)
		n += node_behind(sv, i) != BOARD_HERE;
	return n < 2 ? -ENONET : 0;
}

/* Whose tasks it is for has them already, and so has the other one. */
static bool may_be(const struct mirror *m, const struct copier *c, uint32_t node)
{
	unsigned int i;

	for (i = 0; i < MIRROR_COPIERS; i++)
		if (m->copier[i].by && m->copier[i].node == node)
			return false;
	return node != BOARD_HERE && node != c->avoid;
}

/* Who was asked may have failed to come. */
static void ask(struct queue_service *sv, struct mirror *m, struct copier *c)
{
	const struct queue *q = m->queue;
	struct queue_open as = { .owner = q->owner };
	uint32_t node = BOARD_HERE;
	int err;

	while (c->tried < RGATE_NODES_MAX - 1 && node == BOARD_HERE) {
		node = node_behind(sv, ++c->tried);
		node = may_be(m, c, node) ? node : BOARD_HERE;
	}
	c->due = sv->home.now + ATTACH_NS;
	if (node == BOARD_HERE) {
		c->tried = 0;
		return;
	}
	memcpy(as.place.name, q->name, sizeof(as.place.name));
	err = keep_mirror_ask(&sv->keeper, &as, node, q->serial, (uint32_t)(c - m->copier));
	c->asked = !err;
	if (err)
		c->tried--;
	/* One at a time of a user */
	if (err == -EBUSY)
		c->due = sv->home.now + NEXT_NS;
}

void queue_mirror_asked(struct queue_service *sv, uint64_t serial, uint32_t which, int result)
{
	struct queue *q = queues_by_serial(&sv->home, serial);
	struct copier *c;

	if (!q || !q->mirror)
		return;
	c = &q->mirror->copier[which];
	c->asked = false;
	c->due = sv->home.now + (result ? NEXT_NS : ATTACH_NS);
	sv->home.mirror_due = 0;
}

static uint64_t tick(struct queue_service *sv, struct mirror *m)
{
	const uint64_t now = sv->home.now;
	uint64_t at = mirror_expire(m, now);
	struct copier *c;

	for (c = m->copier; c < m->copier + MIRROR_COPIERS; c++) {
		if (!c->wanted || c->by || c->asked || m->queue->removed || !sv->gate)
			continue;
		if (now >= c->due)
			ask(sv, m, c);
		at = c->due < at ? c->due : at;
	}
	return at;
}

uint64_t queue_mirrors_tick(struct queue_service *sv)
{
	struct queues *qs = &sv->home;
	struct link *l, *next;
	uint64_t at;

	if (qs->now < qs->mirror_due)
		return qs->mirror_due;
	qs->mirror_due = UINT64_MAX;
	for (l = qs->mirrors.next; l != &qs->mirrors; l = next) {
		next = l->next;
		at = tick(sv, container_of(l, struct mirror, of_home));
		qs->mirror_due = at < qs->mirror_due ? at : qs->mirror_due;
	}
	return qs->mirror_due;
}
