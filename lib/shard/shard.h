/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* A shard, as its home and those who opened it have it; with the lock for all of it */
#ifndef RGATE_SHARD_SHARD_H
#define RGATE_SHARD_SHARD_H

#include <pthread.h>

#include <ringgate/rgate_shard.h>
#include <ringgate/shard.h>

#include "node.h"

#define WINDOW		512U	/* words read at once */
#define OP_TIMEOUT_MS	5000U

/* Where everything is, from the beginning of the memory on */
struct shard_layout {
	uint32_t nodes, submitters, tasks;
	uint32_t payload, result;	/* bytes at most */
	uint32_t record, outcome;	/* bytes from one to the next */
	uint64_t words, records, outcomes, bytes;
};

enum shard_own_state {
	OWN_FREE,
	OWN_DOUBT,		/* a submit failed under way */
	OWN_BUSY,
	OWN_TAKING,		/* its result was asked for: it may be empty, and not told yet */
};

/* A place that is this node's to submit: what is true of it, whatever is written there */
struct shard_own {
	uint64_t cookie;
	uint64_t done;		/* OWN_TAKING: the word that was */
	uint32_t gen;
	uint8_t state;
	bool adopted;
};

struct shard_hint {
	uint32_t index;
	uint64_t word;
};

/* A node, as the home sees it */
struct shard_seat {
	struct rgate_peer *peer;	/* NULL: it was not admitted; the own one needs none */
	uint64_t ask;			/* what it was let in for; 0: it is not in */
	uint32_t epoch;			/* of the connection that this came over, */
	uint32_t cleared;		/* and the one that nothing of earlier ones is left for */
	uint16_t admission;		/* the last one */
};

struct rgate_shard {
	pthread_mutex_t lock;
	struct rgate_peer *peer;
	struct rgate_node *node;
	uint32_t self, timeout_ms;
	struct rgate_remote at;
	struct shard_layout l;
	unsigned int post_max;

	const struct rgate_buf *stage;	/* what follows, in this order */
	uint64_t *words;		/* WINDOW of them */
	uint64_t *old;			/* RGATE_POST_MAX answers */
	unsigned char *bytes;		/* RGATE_SHARD_MANY records or outcomes */

	/* who claims */
	uint64_t ask, random;
	uint32_t epoch;			/* of the connection that it has asked over; 0: none */
	bool seated;			/* and was let in */
	uint16_t admission;
	uint64_t *mine;			/* by place: the open claim, 0 */
	uint32_t held, window;
	struct shard_hint hint[WINDOW];
	unsigned int hints;

	/* who submits */
	struct shard_own *own;
	uint32_t first, places, free, next_free, next_take;

	/* the home */
	unsigned char *memory;		/* NULL: it is elsewhere */
	int fd;
	struct rgate_share *share;
	struct shard_seat seat[RGATE_NODES_MAX];
	uint32_t swept;

	struct rgate_shard_info count;
};

/* Operations of one post, or of some where the node has no room for so many */
struct shard_ops {
	struct rgate_op op[RGATE_POST_MAX];
	struct rgate_sge sge[RGATE_POST_MAX];
	unsigned int n, cas;
};

static inline uint64_t shard_word(uint32_t state, uint32_t gen, uint32_t attempt)
{
	return (uint64_t)gen << RGATE_SHARD_GENERATION_SHIFT |
	       (uint64_t)attempt << RGATE_SHARD_ATTEMPT_SHIFT | state;
}

static inline uint64_t shard_word_of(uint32_t state, uint32_t gen, uint32_t attempt, uint32_t node,
				     uint32_t admission)
{
	return shard_word(state, gen, attempt) | (uint64_t)node << RGATE_SHARD_NODE_SHIFT |
	       (uint64_t)admission << RGATE_SHARD_ADMISSION_SHIFT;
}

static inline uint32_t shard_state(uint64_t word)
{
	return word & 0xf;
}

static inline uint32_t shard_node(uint64_t word)
{
	return word >> RGATE_SHARD_NODE_SHIFT & 0xf;
}

static inline uint32_t shard_attempt(uint64_t word)
{
	return word >> RGATE_SHARD_ATTEMPT_SHIFT & 0xff;
}

static inline uint16_t shard_admission(uint64_t word)
{
	return (uint16_t)(word >> RGATE_SHARD_ADMISSION_SHIFT);
}

static inline uint32_t shard_gen(uint64_t word)
{
	return (uint32_t)(word >> RGATE_SHARD_GENERATION_SHIFT);
}

static inline uint64_t shard_id(uint32_t index, uint32_t gen)
{
	return (uint64_t)gen << 16 | index;
}

/* Does it say something? Whether that is true is another question. */
bool shard_sane(const struct shard_layout *l, uint64_t word);

/* 0, or -EINVAL: no such shard */
int shard_layout(struct shard_layout *l);
/* -EPROTO, -EPROTONOSUPPORT; @length: of the memory that was lent */
int shard_parse(struct shard_layout *l, const struct rgate_shard_geometry *g, uint64_t length);

static inline uint64_t shard_at_word(const struct rgate_shard *s, uint32_t index)
{
	return s->l.words + 8ULL * index;
}

static inline uint64_t shard_at_record(const struct rgate_shard *s, uint32_t index)
{
	return s->l.records + (uint64_t)s->l.record * index;
}

/* Where @node writes what became of a task: nobody else does */
static inline uint64_t shard_at_outcome(const struct rgate_shard *s, uint32_t index, uint32_t node)
{
	return s->l.outcomes + (uint64_t)s->l.outcome * ((uint64_t)index * s->l.nodes + node);
}

static inline uint64_t shard_at_seat(uint32_t node)
{
	return sizeof(struct rgate_shard_geometry) + node * sizeof(struct rgate_shard_seat);
}

/* @local: in the stage */
void shard_move(struct rgate_shard *s, struct shard_ops *ops, enum rgate_op_kind kind,
		uint64_t offset, void *local, uint32_t len);
/* The n-th one of a post has its answer in s->old[n] */
void shard_cas(struct rgate_shard *s, struct shard_ops *ops, uint32_t index, uint64_t expect,
	       uint64_t swap);
/*
 * Does them over connection @epoch, and none over another; the stage is free again. @begun: false:
 * nothing was. All were done, or -errno.
 */
int shard_run(struct rgate_shard *s, struct shard_ops *ops, uint32_t epoch, bool *begun);
/* The connection that there is now, or -ENOTCONN */
int shard_epoch(struct rgate_shard *s, uint32_t *epoch);
/* @n words from @first on, at most WINDOW, into s->words */
int shard_read_words(struct rgate_shard *s, uint32_t first, uint32_t n, uint32_t epoch);

/* The part of a node that submits: takes over what is there */
int shard_own_init(struct rgate_shard *s);

#endif
