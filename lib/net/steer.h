/* SPDX-License-Identifier: MIT OR GPL-2.0 */
#ifndef RGATE_NET_STEER_H
#define RGATE_NET_STEER_H

#include <stdbool.h>
#include <stdint.h>
#include <pcap/pcap.h>

#include <ringgate/ring.h>
#include <ringgate/rgate_steer.h>

enum steer_target {
	STEER_DROP,
	STEER_NODE,
	STEER_HASH,
	STEER_ALL,
};

struct steer_rule {
	char name[RGATE_RULE_NAME_MAX];
	char *line;
	enum steer_target target;
	uint32_t nodes;			/* bit per node */
	char ring[RGATE_NAME_LEN];	/* empty: any */
	bool full_drop;
	bool down_drop;
	struct bpf_program prog;	/* bf_len 0: all; freed by pcap_freecode() */
	uint64_t hits;			/* atomic: frames matched */
};

struct rgate_steer {
	const struct rgate_cluster *cluster;
	struct steer_rule *rules;
	unsigned int count;
	unsigned int refs;		/* atomic */
};

struct rgate_steer *rgate_steer_get(struct rgate_steer *steer);

/* The first rule from @from on that takes the frame, or NULL. @room: bytes that may be
 * read behind the header, whatever it says */
struct steer_rule *rgate_steer_match(struct rgate_steer *steer, unsigned int from,
				     const struct rgate_slot *slot, uint32_t room);

/* The same for all frames of a flow, in both directions; fragments by addresses only */
uint64_t rgate_steer_flow(const struct rgate_slot *slot, uint32_t room);

/* How much a flow likes destination @id: the one with the most gets it, so that a
 * destination that comes or goes moves no other's flows (rendezvous hashing, Thaler and
 * Ravishankar, 1998). */
uint64_t rgate_steer_weight(uint64_t flow, uint32_t id);

#endif
