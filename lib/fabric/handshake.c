// SPDX-License-Identifier: MIT OR GPL-2.0
#include <endian.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <string.h>

#include <ringgate/rgate_cluster.h>

#include "handshake.h"
#include "provider.h"

#define MAGIC		0x48534752U	/* "RGSH" */
#define VERSION		2
#define MESSAGE_MIN	64U
#define MESSAGE_MAX	65536U
#define DEPTH_MIN	4U
#define DEPTH_MAX	4096U

#define TERMS		sizeof(struct rgate_hs_terms)
#define CLEAR		offsetof(struct rgate_hs_hello, noise)

static const char label[] = "ringgate node 2";

_Static_assert(sizeof(struct rgate_hs_hello) == RGATE_PROV_HELLO, "as rdma_cm has room");
_Static_assert(sizeof(struct rgate_hs_welcome) <= RGATE_PROV_WELCOME, "and for the answer");
_Static_assert(TERMS == 16 && CLEAR == 8, "without holes");
_Static_assert(TERMS + RGATE_HS_LINE <= RGATE_NOISE_PAYLOAD, "what one message seals");
_Static_assert(sizeof(struct rgate_desc) == RGATE_HS_LINE, "a line is told by its descriptor");

/* The label, and what the hello says in clear, so that it is as it was sent */
static int begin(struct rgate_hs *hs, bool client, const struct rgate_noise_keys *keys)
{
	uint8_t prologue[sizeof(label) + CLEAR];

	memcpy(prologue, label, sizeof(label));
	memcpy(prologue + sizeof(label), &hs->hello, CLEAR);
	return rgate_noise_begin(&hs->noise, client, prologue, sizeof(prologue), keys);
}

int rgate_hs_hello(struct rgate_hs *hs, uint8_t from, uint8_t to,
		   const struct rgate_noise_keys *keys)
{
	int err;

	hs->hello = (struct rgate_hs_hello){
		.magic = htole32(MAGIC), .version = htole16(VERSION), .from = from, .to = to,
	};
	err = begin(hs, true, keys);
	return err ? err : rgate_noise_write(&hs->noise, NULL, 0, hs->hello.noise);
}

int rgate_hs_read_hello(struct rgate_hs_hello *hello, const void *buf, size_t len, uint8_t to)
{
	if (len < sizeof(*hello))
		return -EPROTO;
	memcpy(hello, buf, sizeof(*hello));
	if (le32toh(hello->magic) != MAGIC)
		return -EPROTO;
	if (le16toh(hello->version) != VERSION)
		return -EPROTONOSUPPORT;
	return hello->to == to && hello->from != to && hello->from < RGATE_NODES_MAX ? 0 : -EPROTO;
}

int rgate_hs_check_hello(struct rgate_hs *hs, const struct rgate_hs_hello *hello,
			 const struct rgate_noise_keys *keys)
{
	int err;

	hs->hello = *hello;
	err = begin(hs, false, keys);
	return err ? err : rgate_noise_read(&hs->noise, hello->noise, sizeof(hello->noise), NULL);
}

static void put_terms(uint8_t raw[TERMS], const struct rgate_hs_terms *terms)
{
	const struct rgate_hs_terms le = {
		htole64(terms->incarnation), htole32(terms->msg_size), htole32(terms->msg_depth),
	};

	memcpy(raw, &le, sizeof(le));
}

/* A node may be mistaken as well as anybody: its numbers are looked at. */
static int take_terms(struct rgate_hs_terms *terms, const uint8_t raw[TERMS])
{
	struct rgate_hs_terms le;

	memcpy(&le, raw, sizeof(le));
	terms->incarnation = le64toh(le.incarnation);
	terms->msg_size = le32toh(le.msg_size);
	terms->msg_depth = le32toh(le.msg_depth);
	return terms->msg_size < MESSAGE_MIN || terms->msg_size > MESSAGE_MAX ||
	       terms->msg_depth < DEPTH_MIN || terms->msg_depth > DEPTH_MAX ? -EPROTO : 0;
}

int rgate_hs_welcome(struct rgate_hs *hs, struct rgate_hs_welcome *welcome,
		     const struct rgate_hs_terms *own)
{
	uint8_t raw[TERMS];

	put_terms(raw, own);
	return rgate_noise_write(&hs->noise, raw, sizeof(raw), welcome->noise);
}

int rgate_hs_read_welcome(struct rgate_hs *hs, const void *buf, size_t len,
			  struct rgate_hs_terms *theirs)
{
	uint8_t raw[TERMS];
	int err;

	if (len < sizeof(struct rgate_hs_welcome))
		return -EPROTO;
	err = rgate_noise_read(&hs->noise, buf, sizeof(struct rgate_hs_welcome), raw);
	return err ? err : take_terms(theirs, raw);
}

int rgate_hs_proof(struct rgate_hs *hs, struct rgate_hs_proof *proof,
		   const struct rgate_hs_terms *own, const void *line)
{
	uint8_t raw[TERMS + RGATE_HS_LINE];

	put_terms(raw, own);
	memcpy(raw + TERMS, line, RGATE_HS_LINE);
	return rgate_noise_seal(&hs->noise, raw, sizeof(raw), proof->sealed);
}

int rgate_hs_read_proof(struct rgate_hs *hs, const void *buf, size_t len,
			struct rgate_hs_terms *theirs, void *line)
{
	uint8_t raw[TERMS + RGATE_HS_LINE];
	struct rgate_hs_proof proof;
	int err;

	if (len != sizeof(proof))
		return -EPROTO;
	/* Others may reach where it lies: what is checked is what is read. */
	memcpy(&proof, buf, sizeof(proof));
	err = rgate_noise_open(&hs->noise, proof.sealed, sizeof(proof.sealed), raw);
	if (err)
		return err;
	memcpy(line, raw + TERMS, RGATE_HS_LINE);
	return take_terms(theirs, raw);
}

int rgate_hs_ready(struct rgate_hs *hs, struct rgate_hs_ready *ready, const void *line)
{
	return rgate_noise_seal(&hs->noise, line, RGATE_HS_LINE, ready->sealed);
}

int rgate_hs_read_ready(struct rgate_hs *hs, const void *buf, size_t len, void *line)
{
	struct rgate_hs_ready ready;

	if (len != sizeof(ready))
		return -EPROTO;
	memcpy(&ready, buf, sizeof(ready));
	return rgate_noise_open(&hs->noise, ready.sealed, sizeof(ready.sealed), line);
}

void rgate_hs_end(struct rgate_hs *hs)
{
	rgate_noise_end(&hs->noise);
}
