/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Locks and barriers that this node is the home of. One is there as long as somebody has it
 * open: each who has is a claim, which waits and holds. What happens to claims without
 * their doing is news, which the owner of the table takes and tells them.
 *
 * Locks are handed over in the order in which they were asked for, shared ones together with the
 * shared ones right behind them. The token of each hold is higher than that of any before, of
 * whichever lock.
 *
 * No lock: whoever owns the table calls its functions one at a time.
 */
#ifndef RGATE_SYNC_TABLE_H
#define RGATE_SYNC_TABLE_H

#include <stdint.h>
#include <sys/types.h>

#include <ringgate/sync.h>

#include "list.h"

#define TABLE_BITS	12
#define TABLE_CLAIMS	(1U << TABLE_BITS)	/* of all, */
#define TABLE_PARTY	(TABLE_CLAIMS / 2)	/* of a node, */
#define TABLE_UID	1024U			/* and of a user, of whichever node */

enum sync_kind {
	SYNC_LOCK = 1,
	SYNC_BARRIER = 2,
};

enum claim_state {
	CLAIM_IDLE,
	CLAIM_WAITS,	/* for the lock; has arrived at the barrier */
	CLAIM_HAS,	/* the lock; was let through the barrier */
};

/* Who has claims: another node, for one life (sync_priv.h), or this one */
struct party {
	struct link claims;
	uint32_t node;		/* RGATE_SYNC_NO_NODE: this one */
	uint32_t n;
};

struct object;

struct claim {
	struct link of_object;
	struct link of_party;
	struct link queue;	/* of the lock; else in no list */
	struct link news;	/* likewise */
	struct object *object;
	struct party *party;
	void *ctx;		/* of who has opened it */
	uint64_t id;		/* that no other one has had or will have */
	uint64_t seq;		/* of the last sync_table_take() */
	uint64_t value;		/* token or generation of CLAIM_HAS */
	enum claim_state state;
	int result;		/* of the last one that has waited: 0, or -EPIPE */
	uid_t uid;
	uint32_t rank;		/* of a barrier's member */
	bool shared;
};

struct sync_table {
	uint64_t token;		/* of the last hold */
	uint64_t serial;
	bool begun;		/* locks are given */
	struct link objects;	/* in the order of their serials */
	struct link news;
	uint32_t n;
	struct claim *claims[TABLE_CLAIMS];
};

/* What is to be opened */
struct sync_open {
	enum sync_kind kind;
	uid_t owner;
	uint32_t flags;		/* RGATE_SYNC_* */
	uint32_t members;
	char name[RGATE_SYNC_NAME_ROOM];
};

void party_init(struct party *p, uint32_t node);

/* @token: tokens are higher */
void sync_table_init(struct sync_table *t, uint64_t token);
/* With all claims, which nobody may use any more */
void sync_table_fini(struct sync_table *t);

/* Locks are given from now on; before, who wants one waits. */
void sync_table_begin(struct sync_table *t);

/*
 * sync_table_open - a claim of user @uid
 * -EINVAL: name, flags, or another number of members; -ENOENT: it is not there, and not to be
 * made, or not by @uid; -EACCES: it is not for others; -EUSERS: the barrier has its members;
 * -EPIPE: it is broken; -EDQUOT, -ENOSPC: too many claims; -ENOMEM
 */
int sync_table_open(struct sync_table *t, struct party *party, uid_t uid,
		    const struct sync_open *as, struct claim **out);

/* The claim with that id, of that party; NULL: there is none */
struct claim *sync_table_claim(const struct sync_table *t, const struct party *party, uint64_t id);

/* What it has or waits for goes to others. A barrier is broken by it, unless it is @clean, no
 * death, and has not arrived */
void sync_table_close(struct sync_table *t, struct claim *c, bool clean);

/*
 * sync_table_take - wants the lock, or arrives at the barrier
 * @seq: of the caller, to tell this one from others of the claim
 * @flags: RGATE_LOCK_*
 * 0: CLAIM_HAS now; -EINPROGRESS: there will be news; -EAGAIN: RGATE_LOCK_TRY; -EALREADY: it
 * waits, or has it; -EPIPE: the barrier is broken
 */
int sync_table_take(struct sync_table *t, struct claim *c, uint64_t seq, uint32_t flags);

/* Neither has the lock nor waits for it. A barrier's arrival stays. */
void sync_table_drop(struct sync_table *t, struct claim *c);

/* A claim to which something has happened, each once; NULL: no more */
struct claim *sync_table_news(struct sync_table *t);

enum sync_kind claim_kind(const struct claim *c);
void claim_lock_info(const struct claim *c, struct rgate_lock_info *info);
void claim_barrier_info(const struct claim *c, struct rgate_barrier_info *info);

/* The first lock behind @after that @uid may open: its position; 0: there is none */
uint64_t sync_table_list(const struct sync_table *t, uid_t uid, uint64_t after,
			 struct rgate_lock_info *info);

/* Can it be a name? It ends within its room */
bool sync_name_ok(const char name[RGATE_SYNC_NAME_ROOM]);

#endif
