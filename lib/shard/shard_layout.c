// SPDX-License-Identifier: MIT OR GPL-2.0
#include <endian.h>
#include <errno.h>

#include "shard.h"

static uint32_t lines(uint32_t bytes)
{
	return (bytes + RGATE_SHARD_LINE - 1) / RGATE_SHARD_LINE * RGATE_SHARD_LINE;
}

int shard_layout(struct shard_layout *l)
{
	if (l->tasks < 64 || l->tasks > RGATE_SHARD_TASKS_MAX || l->tasks & (l->tasks - 1) ||
	    !l->payload || l->payload > RGATE_SHARD_BYTES_MAX || !l->result ||
	    l->result > RGATE_SHARD_BYTES_MAX || !l->nodes || l->nodes > RGATE_NODES_MAX ||
	    !l->submitters || l->submitters >> l->nodes)
		return -EINVAL;
	/* No product is larger than 2^16 x 2^3 x (2^16 + 2^7). */
	l->record = lines(sizeof(struct rgate_shard_record) + l->payload);
	l->outcome = lines(sizeof(struct rgate_shard_outcome) + l->result);
	l->words = sizeof(struct rgate_shard_geometry) + l->nodes * sizeof(struct rgate_shard_seat);
	l->records = l->words + 8ULL * l->tasks;
	l->outcomes = l->records + (uint64_t)l->record * l->tasks;
	l->bytes = l->outcomes + (uint64_t)l->outcome * l->nodes * l->tasks;
	return 0;
}

int shard_parse(struct shard_layout *l, const struct rgate_shard_geometry *g, uint64_t length)
{
	unsigned int i;

	if (le32toh(g->magic) != RGATE_SHARD_MAGIC)
		return -EPROTO;
	if (le16toh(g->version) != RGATE_SHARD_VERSION)
		return -EPROTONOSUPPORT;
	for (i = 0; i < sizeof(g->reserved) / sizeof(g->reserved[0]); i++)
		if (g->reserved[i])
			return -EPROTO;
	*l = (struct shard_layout){
		.nodes = g->nodes, .submitters = g->submitters, .tasks = le32toh(g->tasks),
		.payload = le32toh(g->payload), .result = le32toh(g->result),
	};
	if (g->reserved0 || shard_layout(l) || le64toh(g->bytes) != l->bytes || l->bytes > length)
		return -EPROTO;
	return 0;
}

bool shard_sane(const struct shard_layout *l, uint64_t word)
{
	const uint32_t gen = shard_gen(word);

	switch (shard_state(word)) {
	case RGATE_SHARD_EMPTY:
		return word == shard_word(RGATE_SHARD_EMPTY, gen, 0);
	case RGATE_SHARD_READY:
		return word == shard_word(RGATE_SHARD_READY, gen, shard_attempt(word));
	case RGATE_SHARD_CLAIMED:
	case RGATE_SHARD_DONE:
		return shard_node(word) < l->nodes && shard_admission(word);
	default:
		return false;
	}
}
