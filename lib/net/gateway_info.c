// SPDX-License-Identifier: MIT OR GPL-2.0
/* What the gateway counts, for others than its thread. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "gateway.h"
#include "opts.h"

static uint64_t read_word(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

int rgate_gateway_stats(struct rgate_gateway *gw, struct rgate_gateway_stats *stats)
{
	const struct rgate_gateway_stats s = {
		.frames = read_word(&gw->stats.frames),
		.bytes = read_word(&gw->stats.bytes),
		.unmatched = read_word(&gw->stats.unmatched),
		.dropped_rule = read_word(&gw->stats.dropped_rule),
		.dropped_down = read_word(&gw->stats.dropped_down),
		.refused = read_word(&gw->stats.refused),
		.sleeps = read_word(&gw->stats.sleeps),
		.busy_ns = read_word(&gw->stats.busy_ns),
	};

	return rgate_info_copy(stats, &s, sizeof(s));
}

static struct rgate_gateway_ring describe(const struct gw_dest *d)
{
	struct rgate_gateway_ring r = {
		.node = d->node, .slots = d->slots, .slot_size = 1U << d->size_shift,
		.waiting = __atomic_load_n(&d->info.waiting, __ATOMIC_RELAXED),
		.frames = read_word(&d->info.frames), .bytes = read_word(&d->info.bytes),
		.dropped_full = read_word(&d->info.dropped_full),
		.resteered = read_word(&d->info.resteered),
		.stalls = read_word(&d->info.stalls), .posts = read_word(&d->info.posts),
		.writes = read_word(&d->info.writes), .notices = read_word(&d->info.notices),
		.head = read_word(&d->head), .free = read_word(&d->free),
		.packed = d->pack.size != 0,
	};

	memcpy(r.name, d->name, sizeof(r.name));
	return r;
}

int rgate_gateway_ring(struct rgate_gateway *gw, unsigned int i, struct rgate_gateway_ring *info)
{
	struct rgate_gateway_ring r;
	int err = -ENOENT;

	pthread_mutex_lock(&gw->lock);
	if (i < gw->ndests) {
		r = describe(gw->dests[i]);
		err = rgate_info_copy(info, &r, sizeof(r));
	}
	pthread_mutex_unlock(&gw->lock);
	return err;
}

int rgate_gateway_node(struct rgate_gateway *gw, uint32_t node, struct rgate_gateway_node *info)
{
	struct rgate_gateway_node n;

	if (!rgate_hub_peer(gw->hub, node))
		return -ENOENT;
	n = (struct rgate_gateway_node){
		.frames = read_word(&gw->nodes[node].frames),
		.bytes = read_word(&gw->nodes[node].bytes),
		.lost = read_word(&gw->nodes[node].lost),
		.dropped_full = read_word(&gw->nodes[node].dropped_full),
		.dropped_down = read_word(&gw->nodes[node].dropped_down),
		.sessions = read_word(&gw->nodes[node].sessions),
	};
	return rgate_info_copy(info, &n, sizeof(n));
}

int rgate_gateway_rule(struct rgate_gateway *gw, unsigned int i, char *line, size_t len,
		       uint64_t *hits)
{
	int err = -ENOENT;

	pthread_mutex_lock(&gw->lock);
	if (i < gw->steer->count) {
		snprintf(line, len, "%s", gw->steer->rules[i].line);
		*hits = read_word(&gw->steer->rules[i].hits);
		err = 0;
	}
	pthread_mutex_unlock(&gw->lock);
	return err;
}
