// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "module.h"
#include "names.h"
#include "number.h"
#include "snapshot.h"
#include "util.h"

/* Room for one more of @n elements; grows by doubling at powers of two */
static void *grow(void *v, size_t n, size_t size)
{
	if (n & (n - 1))
		return v;
	return reallocarray(v, n ? 2 * n : 1, size);
}

static int add_ring(const struct rgate_ring_info *info, void *arg)
{
	struct snapshot *s = arg;
	void *v = grow(s->rings, s->nrings, sizeof(*s->rings));

	if (!v)
		return -ENOMEM;
	s->rings = v;
	s->rings[s->nrings++] = *info;
	return 0;
}

static int add_att(const struct rgate_att_info *info, void *arg)
{
	struct snapshot *s = arg;
	void *v = grow(s->atts, s->natts, sizeof(*s->atts));

	if (!v)
		return -ENOMEM;
	s->atts = v;
	s->atts[s->natts++] = *info;
	return 0;
}

static int by_ring_id(const void *a, const void *b)
{
	const struct rgate_ring_info *x = a, *y = b;

	return x->ring_id < y->ring_id ? -1 : x->ring_id > y->ring_id;
}

static int by_att_id(const void *a, const void *b)
{
	const struct rgate_att_info *x = a, *y = b;

	return x->att_id < y->att_id ? -1 : x->att_id > y->att_id;
}

int snapshot_get(struct snapshot *s, struct rgate_ctl *ctl)
{
	int err;

	*s = (struct snapshot){ 0 };
	err = rgate_ctl_rings(ctl, add_ring, s);
	if (!err)
		err = rgate_ctl_atts(ctl, add_att, s);
	if (s->nrings)
		qsort(s->rings, s->nrings, sizeof(*s->rings), by_ring_id);
	if (s->natts)
		qsort(s->atts, s->natts, sizeof(*s->atts), by_att_id);
	return err;
}

void snapshot_free(struct snapshot *s)
{
	free(s->rings);
	free(s->atts);
	*s = (struct snapshot){ 0 };
}

const struct rgate_ring_info *snapshot_ring(const struct snapshot *s,
					    uint32_t ring_id)
{
	size_t i;

	for (i = 0; i < s->nrings; i++)
		if (s->rings[i].ring_id == ring_id)
			return &s->rings[i];
	return NULL;
}

static const struct rgate_ring_info *find_number(const struct snapshot *s,
						 const char *text)
{
	uint64_t v;

	return number_parse(text, false, 0, UINT32_MAX, &v) ? NULL : snapshot_ring(s, (uint32_t)v);
}

const struct rgate_ring_info *snapshot_find(const struct snapshot *s,
					    const char *text)
{
	const struct rgate_ring_info *found = find_number(s, text);
	size_t i;

	if (found)
		return found;
	for (i = 0; i < s->nrings; i++) {
		if (strcmp(s->rings[i].name, text))
			continue;
		if (found) {
			say("several rings are called '%s' (%u and %u are): use "
			    "the number", text, found->ring_id,
			    s->rings[i].ring_id);
			return NULL;
		}
		found = &s->rings[i];
	}
	if (!found)
		say("there is no ring '%s' in this network namespace; "
		    "`ringgate status` lists them", text);
	return found;
}

bool att_has_ring(const struct rgate_att_info *a, uint32_t ring_id)
{
	uint32_t i;

	for (i = 0; i < a->nrings; i++)
		if (a->rings[i].id == ring_id)
			return true;
	return false;
}

/* As text: a number of 64 bits does not survive every reader of JSON. */
static void json_cookie(struct json *j, uint64_t cookie)
{
	char text[24];

	snprintf(text, sizeof(text), "%016llx", (unsigned long long)cookie);
	json_str(j, "cookie", text);
}

static void json_ring_stats(struct json *j, const struct rgate_stats *s)
{
	json_object(j, "stats");
	json_u64(j, "delivered", s->delivered);
	json_u64(j, "bytes", s->bytes);
	json_u64(j, "dropped_full", s->dropped_full);
	json_u64(j, "dropped_fault", s->dropped_fault);
	json_u64(j, "overwritten", s->overwritten);
	json_u64(j, "passed", s->passed);
	json_u64(j, "spilled", s->spilled);
	json_u64(j, "truncated", s->truncated);
	json_u64(j, "chained", s->chained);
	json_u64(j, "padded", s->padded);
	json_u64(j, "wakeups", s->wakeups);
	json_u64(j, "full_events", s->full_events);
	json_object_end(j);
}

void json_ring(struct json *j, const struct rgate_ring_info *r)
{
	json_u64(j, "id", r->ring_id);
	json_cookie(j, r->cookie);
	json_str(j, "name", r->name);
	json_u64(j, "slots", r->slots);
	json_u64(j, "slot_size", r->slot_size);
	json_bool(j, "rw_slots", r->flags & RGATE_RING_RW_SLOTS);
	json_bool(j, "chain", r->flags & RGATE_RING_CHAIN);
	json_bool(j, "transmit", r->flags & RGATE_RING_TRANSMIT);
	json_str(j, "policy", policy_name(r->policy));
	json_str(j, "clock", clock_name(r->clock));
	json_bool(j, "coarse", r->flags & RGATE_RING_COARSE);
	json_u64(j, "generation", r->generation);
	json_u64(j, "handles", r->handles);
	json_i64(j, "node", r->node);
	json_u64(j, "uid", r->uid);
	json_u64(j, "mem_bytes", r->mem_bytes);
	json_u64(j, "head", r->head);
	json_ring_stats(j, &r->stats);
}

void json_att(struct json *j, const struct rgate_att_info *a)
{
	uint32_t i;

	json_u64(j, "id", a->att_id);
	json_cookie(j, a->cookie);
	json_u64(j, "ifindex", a->ifindex);
	json_str(j, "ifname", a->ifname);
	json_str(j, "kind", kind_name(a->kind));
	json_u64(j, "thread", a->thread);
	json_i64(j, "priority", a->priority);
	json_str(j, "action", action_name(a->action));
	json_str(j, "fanout", fanout_name(a->fanout));
	json_u64(j, "sample", a->sample);
	json_u64(j, "filter_len", a->filter_len);
	json_array(j, "rings");
	for (i = 0; i < a->nrings; i++)
		json_u64(j, NULL, a->rings[i].id);
	json_array_end(j);
	json_object(j, "stats");
	json_u64(j, "seen", a->seen);
	json_u64(j, "filtered", a->filtered);
	json_u64(j, "sampled_out", a->sampled_out);
	json_u64(j, "delivered", a->delivered);
	json_u64(j, "bytes", a->bytes);
	json_u64(j, "dropped_full", a->dropped_full);
	json_u64(j, "dropped_fault", a->dropped_fault);
	json_u64(j, "passed", a->passed);
	json_u64(j, "spilled", a->spilled);
	json_u64(j, "bad_length", a->bad_length);
	json_u64(j, "bad_flags", a->bad_flags);
	json_u64(j, "refused", a->refused);
	json_object_end(j);
}

int ctl_open(struct rgate_ctl **ctl)
{
	int err = rgate_ctl_open(ctl);

	if (!err)
		return EXIT_OK;
	if (is_no_module(err))
		return fail_no_module();
	return fail(err, "cannot reach the module over netlink");
}
