/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* A node, and an end of a provider that says what it likes in the place of another node */
#ifndef SIEGE_H
#define SIEGE_H

#include "ends.h"
#include "handshake.h"

struct who {			/* with whose keys somebody speaks, and to whom */
	uint8_t key[RGATE_KEY_LEN], public[RGATE_KEY_LEN], peer[RGATE_KEY_LEN];
	uint8_t shared[RGATE_KEY_LEN];
	struct rgate_noise_keys keys;
};

/* Who has the private key @key, towards node @to of @c */
void who_is(struct who *w, const struct cluster *c, const uint8_t key[RGATE_KEY_LEN],
	    unsigned int to);

struct siege {			/* node 0, and an end that says it is node 1 */
	struct cluster c;
	struct rgate_node *node;
	struct rgate_peer *peer;
	const struct rgate_buf *buf;
	struct rgate_remote at;
	struct end e;
	unsigned int said;		/* messages */
	struct who me;			/* node 1, with its key */
	struct rgate_hs hs;
	struct rgate_hs_terms terms;	/* what this end says of itself */
	struct rgate_hs_welcome welcome;	/* what the node has answered */
	struct rgate_remote line;	/* of the node, once it was told */
};

void siege_begin(struct siege *s, uint32_t timeout_ms);
/* Nothing was written, and nothing is left over */
void siege_end(struct siege *s);
struct rgate_node_stats node_stats(struct rgate_node *node);

/* A fresh, good hello in s->hs */
void siege_hello(struct siege *s);
/* What becomes of such a hello: 0 and an answer in @ev, or why not */
int siege_knock(struct siege *s, const void *hello, size_t len, struct rgate_prov_event *ev);
/* With the hello in s->hs, up to the proof, which is to be sent next */
void siege_enter(struct siege *s);
/* That proof */
void siege_proof(struct siege *s, struct rgate_hs_proof *proof);
/* A message of @type with @len bytes */
int siege_say(struct siege *s, uint64_t type, const void *data, size_t len);
/* As a member: the peer is up */
void siege_join(struct siege *s);
/* It ends, whatever comes before that */
void siege_over(struct siege *s);
void siege_hang_up(struct siege *s);

#endif
