/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Both ends prove which node they are: Noise KK (noise.h) in three messages.
 *
 *	hello    client -> server	version and ids in clear, bound as the prologue;
 *					e, and a tag: who sends it has the key of `from`
 *	welcome  server -> client	e, sealed: incarnation and sizes of the server
 *	proof    client -> server	sealed: the same of the client, and its line
 *	ready    server -> client	sealed: the server's line
 *
 * A hello may be the replay of a genuine one, so nothing that lives gives way to it; a
 * proof answers this very welcome. Records are little-endian, without holes, of any
 * alignment: Documentation/wire.rst.
 */
#ifndef RGATE_FABRIC_HANDSHAKE_H
#define RGATE_FABRIC_HANDSHAKE_H

#include "noise.h"

struct rgate_cluster_node;

struct rgate_hs_hello {			/* 56 bytes: RGATE_PROV_HELLO */
	uint32_t magic;
	uint16_t version;
	uint8_t from;
	uint8_t to;
	uint8_t noise[RGATE_NOISE_HANDSHAKE];
};

struct rgate_hs_terms {			/* sealed; in the order of bytes of this machine here */
	uint64_t incarnation;
	uint32_t msg_size;		/* of messages that it takes */
	uint32_t msg_depth;		/* receives that it posts */
};

struct rgate_hs_welcome {		/* 64 bytes, of RGATE_PROV_WELCOME */
	uint8_t noise[RGATE_NOISE_HANDSHAKE + sizeof(struct rgate_hs_terms)];
};

#define RGATE_HS_LINE	32		/* bytes of a descriptor */

struct rgate_hs_proof {
	uint8_t sealed[sizeof(struct rgate_hs_terms) + RGATE_HS_LINE + RGATE_NOISE_TAG];
};

struct rgate_hs_ready {
	uint8_t sealed[RGATE_HS_LINE + RGATE_NOISE_TAG];
};

/* One end of one handshake; all zeros before it begins */
struct rgate_hs {
	struct rgate_hs_hello hello;
	struct rgate_noise noise;
};

/* The client's hello of node @from for node @to, in hs->hello. -EIO */
int rgate_hs_hello(struct rgate_hs *hs, uint8_t from, uint8_t to,
		   const struct rgate_noise_keys *keys);

/*
 * What a hello that came says in clear; @len may be more than it takes. @to: who we are.
 * -EPROTO: malformed, or not for us; -EPROTONOSUPPORT: another version. Costs nothing.
 */
int rgate_hs_read_hello(struct rgate_hs_hello *hello, const void *buf, size_t len, uint8_t to);

/* Whether node hello->from sent it, once, maybe before. -EACCES: it did not; -EIO */
int rgate_hs_check_hello(struct rgate_hs *hs, const struct rgate_hs_hello *hello,
			 const struct rgate_noise_keys *keys);

/* The server's answer; after this, what the client says is about this handshake. */
int rgate_hs_welcome(struct rgate_hs *hs, struct rgate_hs_welcome *welcome,
		     const struct rgate_hs_terms *own);
/* @len may be more than it takes. -EACCES: it is not the server's answer to this hello;
 * -EPROTO: short, or its sizes out of range */
int rgate_hs_read_welcome(struct rgate_hs *hs, const void *buf, size_t len,
			  struct rgate_hs_terms *theirs);

/* @line: RGATE_HS_LINE bytes, which are the caller's to read */
int rgate_hs_proof(struct rgate_hs *hs, struct rgate_hs_proof *proof,
		   const struct rgate_hs_terms *own, const void *line);
int rgate_hs_read_proof(struct rgate_hs *hs, const void *buf, size_t len,
			struct rgate_hs_terms *theirs, void *line);
int rgate_hs_ready(struct rgate_hs *hs, struct rgate_hs_ready *ready, const void *line);
int rgate_hs_read_ready(struct rgate_hs *hs, const void *buf, size_t len, void *line);

/* Forgets the secrets, at whatever point it is */
void rgate_hs_end(struct rgate_hs *hs);

#endif
