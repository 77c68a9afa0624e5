/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Both ends prove that they know the cluster's key, without saying it:
 *
 *	hello    client -> server	version, ids, incarnation, nonce C
 *	welcome  server -> client	version, ids, incarnation, nonce S,
 *					HMAC-SHA256(key, "server" | hello | welcome so far)
 *	proof    client -> server	HMAC-SHA256(key, "client" | hello | welcome)
 *
 * Nonces are fresh random numbers, so that nothing recorded is of use again, and the
 * words keep an end from answering with what the other one said. Records are
 * little-endian, without holes. No secret is in them.
 */
#ifndef RGATE_FABRIC_HANDSHAKE_H
#define RGATE_FABRIC_HANDSHAKE_H

#include <stddef.h>
#include <stdint.h>

#define RGATE_HS_NONCE		16
#define RGATE_HS_MAC		32

struct rgate_hs_hello {			/* 56 bytes: RGATE_PROV_HELLO */
	uint32_t magic;
	uint16_t version;
	uint8_t from;
	uint8_t to;
	uint64_t incarnation;
	uint8_t nonce[RGATE_HS_NONCE];
	uint32_t msg_size;		/* of messages that it takes */
	uint32_t msg_depth;		/* receives that it posts */
	uint8_t reserved[16];		/* 0 */
};

struct rgate_hs_welcome {		/* 128 bytes: RGATE_PROV_WELCOME */
	struct rgate_hs_hello hello;	/* the server's own, with nonce S */
	uint8_t mac[RGATE_HS_MAC];
	uint8_t reserved[40];		/* 0 */
};

struct rgate_hs_proof {
	uint8_t mac[RGATE_HS_MAC];
};

/* A hello of node @from for node @to with a fresh nonce; -EIO: no random numbers */
int rgate_hs_hello(struct rgate_hs_hello *hello, uint8_t from, uint8_t to,
		   uint64_t incarnation, uint32_t msg_size, uint32_t msg_depth);

/*
 * Reads a hello that came, @buf of any alignment; @len may be more than it takes.
 * -EPROTO: malformed; -EPROTONOSUPPORT: another version. @to: who we are; @from: whom
 * it must be from, -1: anyone but @to.
 */
int rgate_hs_read_hello(struct rgate_hs_hello *hello, const void *buf, size_t len, int from,
			int to);

/* The server's answer to @hello */
int rgate_hs_welcome(struct rgate_hs_welcome *welcome, const struct rgate_hs_hello *hello,
		     const struct rgate_hs_hello *own, const void *key, size_t key_len);

/* The client reads it: also -EACCES: the server has another key */
int rgate_hs_read_welcome(struct rgate_hs_welcome *welcome, const void *buf, size_t len,
			  const struct rgate_hs_hello *hello, const void *key, size_t key_len);

int rgate_hs_proof(struct rgate_hs_proof *proof, const struct rgate_hs_hello *hello,
		   const struct rgate_hs_welcome *welcome, const void *key, size_t key_len);

/* The server checks it in constant time: 0 or -EACCES */
int rgate_hs_check_proof(const void *buf, size_t len, const struct rgate_hs_hello *hello,
			 const struct rgate_hs_welcome *welcome, const void *key,
			 size_t key_len);

/* Reads the key file into @key: its length, or -EACCES: others may read it; -EINVAL: too
 * short or too long. Bytes are taken as they are, a final newline excepted. */
int rgate_hs_load_key(const char *path, uint8_t *key, size_t cap);

#endif
