// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Processes may have three quarters of a pool: the rest is for what the node does itself. Of
 * these a user may have as much as is still left for everybody, so whoever comes next finds
 * some, however many have taken theirs: one alone gets half of it, two a third each.
 */
#include <errno.h>
#include <stdlib.h>

#include "service_priv.h"

static struct spawn_share *find(struct spawn_service *sv, uid_t uid)
{
	struct spawn_share *share;

	for (share = sv->shares; share; share = share->next)
		if (share->uid == uid)
			return share;
	share = calloc(1, sizeof(*share));
	if (!share)
		return NULL;
	share->service = sv;
	share->uid = uid;
	share->next = sv->shares;
	sv->shares = share;
	return share;
}

/* With the lock */
static void put(struct spawn_share *share)
{
	struct spawn_share **at;

	if (share->jobs)
		return;
	for (at = &share->service->shares; *at != share; at = &(*at)->next)
		;
	*at = share->next;
	free(share);
}

/* Has he, of @pool, as much as is left? */
static bool is_beyond(const struct rgate_pool *pool, uint64_t has)
{
	struct rgate_pool_stats st = { .sz = sizeof(st) };
	uint64_t all;

	if (rgate_pool_stats(pool, &st))
		return true;
	all = st.quota_bytes / 4 * 3;
	return st.used_bytes >= all || has >= all - st.used_bytes;
}

/* With the lock of its struct rgate_spawn */
static void freed(struct rgate_spawn_job *job, void *ctx)
{
	struct spawn_share *share = ctx;
	struct spawn_service *sv = share->service;

	pthread_mutex_lock(&sv->share_lock);
	share->bytes[SPAWN_WRITTEN] -= job->buf->length;
	share->bytes[SPAWN_READ] -= job->lent->length;
	share->jobs--;
	put(share);
	pthread_mutex_unlock(&sv->share_lock);
}

int spawn_share_begin(struct spawn_service *sv, const struct rgate_spawn *sp, uid_t uid,
		      struct spawn_share **out)
{
	struct spawn_share *share;
	int err = 0;

	pthread_mutex_lock(&sv->share_lock);
	share = find(sv, uid);
	if (!share) {
		err = -ENOMEM;
	} else if (is_beyond(sp->pool, share->bytes[SPAWN_WRITTEN]) ||
		   is_beyond(sp->readable, share->bytes[SPAWN_READ])) {
		err = -ENOBUFS;
		put(share);
	} else {
		share->jobs++;
		*out = share;
	}
	pthread_mutex_unlock(&sv->share_lock);
	return err;
}

void spawn_share_end(struct spawn_share *share, struct rgate_spawn_job *job)
{
	struct spawn_service *sv = share->service;

	pthread_mutex_lock(&sv->share_lock);
	if (!job) {
		share->jobs--;
		put(share);
	} else {
		/* It is not freed before it was closed: here it has no handle yet. */
		share->bytes[SPAWN_WRITTEN] += job->buf->length;
		share->bytes[SPAWN_READ] += job->lent->length;
		job->freed_ctx = share;
		job->freed = freed;
	}
	pthread_mutex_unlock(&sv->share_lock);
}
