// SPDX-License-Identifier: MIT OR GPL-2.0
#include "sync_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "regions.h"

RGATE_ASSERT(RGATE_SYNC_NAME_MAX == RGATE_MEMORY_NAME_MAX);

struct object {
	struct link of_table;
	struct link claims;
	struct link queue;	/* of a lock: who waits */
	struct sync_open as;
	uint64_t serial;
	uint64_t last;		/* token given last; generation */
	uint64_t arrived;	/* members, in this generation, or when it was broken */
	uint64_t dead;		/* that have broken it */
	uint32_t nclaims;
	uint32_t holders;
	uint32_t waiters;	/* in the queue; have arrived */
	bool shared;		/* by the holders */
	uint8_t node[RGATE_BARRIER_MEMBERS];
};

void party_init(struct party *p, uint32_t node)
{
	list_init(&p->claims);
	p->node = node;
	p->n = 0;
}

void sync_table_init(struct sync_table *t, uint64_t token)
{
	memset(t, 0, sizeof(*t));
	t->token = token;
	list_init(&t->objects);
	list_init(&t->news);
}

void sync_table_fini(struct sync_table *t)
{
	uint32_t i;

	for (i = 0; i < TABLE_CLAIMS; i++)
		if (t->claims[i])
			sync_table_close(t, t->claims[i], true);
}

bool sync_name_ok(const char name[RGATE_SYNC_NAME_ROOM])
{
	const size_t len = strnlen(name, RGATE_SYNC_NAME_ROOM);

	return len < RGATE_SYNC_NAME_ROOM && regions_name_ok(name, len);
}

/* ---- News, and who gets a lock ---- */

static void tell(struct sync_table *t, struct claim *c, int result)
{
	c->result = result;
	list_del(&c->news);
	list_add_tail(&t->news, &c->news);
}

struct claim *sync_table_news(struct sync_table *t)
{
	struct claim *c;

	if (list_empty(&t->news))
		return NULL;
	c = container_of(t->news.next, struct claim, news);
	list_del(&c->news);
	return c;
}

static struct claim *first_waiter(const struct object *o)
{
	return list_empty(&o->queue) ? NULL : container_of(o->queue.next, struct claim, queue);
}

static bool is_free_for(const struct sync_table *t, const struct object *o, const struct claim *c)
{
	return t->begun && (!o->holders || (o->shared && c->shared));
}

/* To the first ones who wait, as far as it can be theirs at once */
static void grant(struct sync_table *t, struct object *o)
{
	struct claim *c;

	while ((c = first_waiter(o)) && is_free_for(t, o, c)) {
		list_del(&c->queue);
		o->waiters--;
		o->holders++;
		o->shared = c->shared;
		c->state = CLAIM_HAS;
		c->value = o->last = ++t->token;
		/* By time: who has it longest is first. */
		list_del(&c->of_object);
		list_add_tail(&o->claims, &c->of_object);
		tell(t, c, 0);
	}
}

void sync_table_begin(struct sync_table *t)
{
	struct link *l;

	if (t->begun)
		return;
	t->begun = true;
	for (l = t->objects.next; l != &t->objects; l = l->next)
		grant(t, container_of(l, struct object, of_table));
}

/* ---- Barriers ---- */

static void let_through(struct sync_table *t, struct object *o, int result)
{
	struct claim *c;
	struct link *l;

	o->waiters = 0;
	for (l = o->claims.next; l != &o->claims; l = l->next) {
		c = container_of(l, struct claim, of_object);
		if (c->state != CLAIM_WAITS)
			continue;
		c->state = result ? CLAIM_IDLE : CLAIM_HAS;
		c->value = o->last;
		tell(t, c, result);
	}
}

static int arrive(struct sync_table *t, struct claim *c)
{
	struct object *o = c->object;

	if (o->dead)
		return -EPIPE;
	c->state = CLAIM_WAITS;
	o->arrived |= 1ULL << c->rank;
	if (++o->waiters < o->as.members)
		return -EINPROGRESS;
	o->last++;
	o->arrived = 0;
	let_through(t, o, 0);
	return 0;
}

static void leave_barrier(struct sync_table *t, struct claim *c, bool clean)
{
	struct object *o = c->object;

	if (clean && c->state != CLAIM_WAITS) {
		o->node[c->rank] = RGATE_BARRIER_NOBODY;
		return;
	}
	o->dead |= 1ULL << c->rank;
	c->state = CLAIM_IDLE;
	let_through(t, o, -EPIPE);
}

/* ---- Claims ---- */

static struct object *find(const struct sync_table *t, const struct sync_open *as)
{
	struct object *o;
	struct link *l;

	for (l = t->objects.next; l != &t->objects; l = l->next) {
		o = container_of(l, struct object, of_table);
		if (o->as.kind == as->kind && o->as.owner == as->owner &&
		    !strcmp(o->as.name, as->name))
			return o;
	}
	return NULL;
}

static int place_for(const struct sync_table *t, uid_t uid, uint32_t *place)
{
	uint32_t i, own = 0;

	*place = TABLE_CLAIMS;
	for (i = 0; i < TABLE_CLAIMS; i++) {
		if (!t->claims[i])
			*place = *place < TABLE_CLAIMS ? *place : i;
		else if (t->claims[i]->uid == uid)
			own++;
	}
	if (own >= TABLE_UID)
		return -EDQUOT;
	return *place < TABLE_CLAIMS ? 0 : -ENOSPC;
}

static int check_open(const struct sync_open *as)
{
	const bool barrier = as->kind == SYNC_BARRIER;

	if (as->kind != SYNC_LOCK && !barrier)
		return -EINVAL;
	if (as->flags & ~RGATE_SYNC_FLAGS || !sync_name_ok(as->name))
		return -EINVAL;
	if (!barrier)
		return as->members ? -EINVAL : 0;
	return as->members && as->members <= RGATE_BARRIER_MEMBERS ? 0 : -EINVAL;
}

/* The object, if there is one that @uid may open */
static int look_up(const struct sync_table *t, uid_t uid, const struct sync_open *as,
		   struct object **out)
{
	struct object *o = find(t, as);

	*out = o;
	if (!o)
		return as->flags & RGATE_SYNC_CREATE && uid == as->owner ? 0 : -ENOENT;
	if (uid != o->as.owner && !(o->as.flags & RGATE_SYNC_OTHERS))
		return -EACCES;
	if (o->as.members != as->members)
		return -EINVAL;
	if (o->dead)
		return -EPIPE;
	return o->as.kind == SYNC_BARRIER && o->nclaims == o->as.members ? -EUSERS : 0;
}

static struct object *make_object(struct sync_table *t, const struct sync_open *as)
{
	struct object *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	o->as = *as;
	o->serial = ++t->serial;
	list_init(&o->claims);
	list_init(&o->queue);
	memset(o->node, RGATE_BARRIER_NOBODY, sizeof(o->node));
	list_add_tail(&t->objects, &o->of_table);
	return o;
}

static uint8_t node_of(const struct party *p)
{
	return p->node == RGATE_SYNC_NO_NODE ? RGATE_BARRIER_HOME : (uint8_t)p->node;
}

static void join(struct sync_table *t, struct claim *c, struct object *o, uint32_t place)
{
	c->object = o;
	c->id = ++t->serial << TABLE_BITS | place;
	t->claims[place] = c;
	t->n++;
	o->nclaims++;
	list_add_tail(&o->claims, &c->of_object);
	list_add_tail(&c->party->claims, &c->of_party);
	c->party->n++;
	if (o->as.kind != SYNC_BARRIER)
		return;
	while (o->node[c->rank] != RGATE_BARRIER_NOBODY)
		c->rank++;
	o->node[c->rank] = node_of(c->party);
}

int sync_table_open(struct sync_table *t, struct party *party, uid_t uid,
		    const struct sync_open *as, struct claim **out)
{
	struct object *o;
	struct claim *c;
	uint32_t place;
	int err;

	err = check_open(as);
	if (!err)
		err = look_up(t, uid, as, &o);
	if (!err)
		err = party->n < TABLE_PARTY ? place_for(t, uid, &place) : -EDQUOT;
	if (err)
		return err;
	c = calloc(1, sizeof(*c));
	if (c && !o)
		o = make_object(t, as);
	if (!c || !o) {
		free(c);
		return -ENOMEM;
	}
	c->party = party;
	c->uid = uid;
	list_init(&c->queue);
	list_init(&c->news);
	join(t, c, o, place);
	*out = c;
	return 0;
}

struct claim *sync_table_claim(const struct sync_table *t, const struct party *party, uint64_t id)
{
	struct claim *c = t->claims[id % TABLE_CLAIMS];

	return c && c->id == id && c->party == party ? c : NULL;
}

void sync_table_drop(struct sync_table *t, struct claim *c)
{
	struct object *o = c->object;

	if (o->as.kind != SYNC_LOCK || c->state == CLAIM_IDLE)
		return;
	if (c->state == CLAIM_HAS)
		o->holders--;
	else
		o->waiters--;
	c->state = CLAIM_IDLE;
	list_del(&c->queue);
	list_del(&c->news);
	grant(t, o);
}

void sync_table_close(struct sync_table *t, struct claim *c, bool clean)
{
	struct object *o = c->object;

	sync_table_drop(t, c);
	if (o->as.kind == SYNC_BARRIER)
		leave_barrier(t, c, clean);
	list_del(&c->news);
	list_del(&c->of_object);
	list_del(&c->of_party);
	c->party->n--;
	t->claims[c->id % TABLE_CLAIMS] = NULL;
	t->n--;
	free(c);
	if (--o->nclaims)
		return;
	list_del(&o->of_table);
	free(o);
}

int sync_table_take(struct sync_table *t, struct claim *c, uint64_t seq, uint32_t flags)
{
	struct object *o = c->object;
	int ret = -EINPROGRESS;

	if (c->state == CLAIM_WAITS || (o->as.kind == SYNC_LOCK && c->state == CLAIM_HAS))
		return -EALREADY;
	c->seq = seq;
	c->shared = flags & RGATE_LOCK_SHARED;
	if (o->as.kind == SYNC_BARRIER) {
		ret = arrive(t, c);
	} else {
		if (flags & RGATE_LOCK_TRY && (first_waiter(o) || !is_free_for(t, o, c)))
			return -EAGAIN;
		c->state = CLAIM_WAITS;
		o->waiters++;
		list_add_tail(&o->queue, &c->queue);
		grant(t, o);
		if (c->state == CLAIM_HAS)
			ret = 0;
	}
	/* The caller knows. */
	if (ret != -EINPROGRESS)
		list_del(&c->news);
	return ret;
}

/* ---- What there is ---- */

enum sync_kind claim_kind(const struct claim *c)
{
	return c->object->as.kind;
}

static void lock_info(const struct object *o, struct rgate_lock_info *info)
{
	const struct claim *c;
	struct link *l;

	*info = (struct rgate_lock_info){
		.token = o->last, .owner = o->as.owner, .flags = o->as.flags & RGATE_SYNC_OTHERS,
		.holders = o->holders, .waiters = o->waiters, .holder_node = RGATE_SYNC_NO_NODE,
		.shared = o->holders && o->shared,
	};
	memcpy(info->name, o->as.name, sizeof(info->name));
	for (l = o->claims.next; l != &o->claims; l = l->next) {
		c = container_of(l, struct claim, of_object);
		if (c->state != CLAIM_HAS)
			continue;
		info->holder_uid = c->uid;
		info->holder_node = c->party->node;
		break;
	}
}

void claim_lock_info(const struct claim *c, struct rgate_lock_info *info)
{
	lock_info(c->object, info);
}

void claim_barrier_info(const struct claim *c, struct rgate_barrier_info *info)
{
	const struct object *o = c->object;

	*info = (struct rgate_barrier_info){
		.generation = o->last, .arrived = o->arrived, .dead = o->dead,
		.members = o->as.members, .joined = o->nclaims,
	};
	memcpy(info->node, o->node, sizeof(info->node));
}

uint64_t sync_table_list(const struct sync_table *t, uid_t uid, uint64_t after,
			 struct rgate_lock_info *info)
{
	const struct object *o;
	struct link *l;

	for (l = t->objects.next; l != &t->objects; l = l->next) {
		o = container_of(l, struct object, of_table);
		if (o->serial <= after || o->as.kind != SYNC_LOCK ||
		    (uid != o->as.owner && !(o->as.flags & RGATE_SYNC_OTHERS)))
			continue;
		lock_info(o, info);
		return o->serial;
	}
	return 0;
}
