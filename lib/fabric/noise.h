/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Noise_KK_25519_ChaChaPoly_SHA256 (https://noiseprotocol.org, revision 34): two parties
 * that know each other's public key, and nothing else of the framework.
 *
 *	-> e, es, ss		rgate_noise_write()	rgate_noise_read()
 *	<- e, ee, se		rgate_noise_read()	rgate_noise_write()
 *	transport messages	rgate_noise_seal()	rgate_noise_open()
 *
 * A state belongs to one handshake. After any error it is of no more use, and every call
 * but rgate_noise_end() says -EACCES. Not thread-safe.
 */
#ifndef RGATE_FABRIC_NOISE_H
#define RGATE_FABRIC_NOISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ringgate/rgate_key.h>

#define RGATE_NOISE_TAG		16
/* More than its payload has a message of the handshake, and one after it */
#define RGATE_NOISE_HANDSHAKE	(RGATE_KEY_LEN + RGATE_NOISE_TAG)
#define RGATE_NOISE_PAYLOAD	64	/* bytes of one at most */

/* Long-lived keys of one who speaks; must stay as long as the states made of it */
struct rgate_noise_keys {
	const uint8_t *own;		/* private */
	const uint8_t *own_public;
	const uint8_t *peer_public;
	const uint8_t *shared;		/* rgate_noise_dh() of own and peer_public */
};

struct rgate_noise {
	struct rgate_noise_keys keys;
	bool initiator;
	bool fixed;			/* e was given, by a test */
	uint8_t step;			/* messages of the handshake that are done; or BROKEN */
	uint8_t e[RGATE_KEY_LEN];
	uint8_t e_public[RGATE_KEY_LEN];
	uint8_t peer_e[RGATE_KEY_LEN];
	uint8_t ck[32];			/* as the specification names them */
	uint8_t h[32];
	uint8_t k[32];
	uint64_t n;
	uint8_t k_out[32];		/* of transport messages */
	uint8_t k_in[32];
	uint64_t n_out;
	uint64_t n_in;
};

/* X25519. -EACCES: @peer is of small order, so that nothing secret comes of it; -EIO */
int rgate_noise_dh(uint8_t secret[RGATE_KEY_LEN], const uint8_t key[RGATE_KEY_LEN],
		   const uint8_t key_public[RGATE_KEY_LEN], const uint8_t peer[RGATE_KEY_LEN]);

/* 0 or -EIO: libcrypto refuses */
int rgate_noise_begin(struct rgate_noise *n, bool initiator, const void *prologue, size_t len,
		      const struct rgate_noise_keys *keys);
/* For tests with known answers: not a fresh ephemeral key, but this one */
void rgate_noise_fix(struct rgate_noise *n, const uint8_t e[RGATE_KEY_LEN]);
/* Forgets all secrets; also of a state that was never begun, if it is all zeros */
void rgate_noise_end(struct rgate_noise *n);

/*
 * The next message of the handshake: @len bytes of payload, up to RGATE_NOISE_PAYLOAD,
 * and RGATE_NOISE_HANDSHAKE more in @msg. 0, -EACCES: not our turn; -EIO
 */
int rgate_noise_write(struct rgate_noise *n, const void *payload, size_t len, uint8_t *msg);
/* Reads one of @len bytes. -EPROTO: too short or too long; -EACCES: it is not the peer's */
int rgate_noise_read(struct rgate_noise *n, const uint8_t *msg, size_t len, void *payload);

/* After the handshake: @len bytes, up to RGATE_NOISE_PAYLOAD, and RGATE_NOISE_TAG more */
int rgate_noise_seal(struct rgate_noise *n, const void *text, size_t len, uint8_t *msg);
int rgate_noise_open(struct rgate_noise *n, const uint8_t *msg, size_t len, void *text);

#endif
