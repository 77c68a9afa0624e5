// SPDX-License-Identifier: MIT OR GPL-2.0
#include <endian.h>
#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>

#include "noise.h"

#define HASH		32
#define BROKEN		255
#define DONE		2

static const char name[] = "Noise_KK_25519_ChaChaPoly_SHA256";

_Static_assert(sizeof(name) - 1 == HASH, "a name as long as a hash stands for itself");
_Static_assert(RGATE_KEY_LEN == HASH, "keys of X25519, of the cipher and hashes are alike");

static int sha256(uint8_t out[HASH], const void *a, size_t a_len, const void *b, size_t b_len)
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	bool ok;

	ok = ctx && EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) == 1 &&
	     EVP_DigestUpdate(ctx, a, a_len) == 1 &&
	     EVP_DigestUpdate(ctx, b, b_len) == 1 && EVP_DigestFinal_ex(ctx, out, NULL) == 1;
	EVP_MD_CTX_free(ctx);
	return ok ? 0 : -EIO;
}

static int hmac(uint8_t out[HASH], const uint8_t key[HASH], const void *text, size_t len)
{
	unsigned int n = HASH;

	return HMAC(EVP_sha256(), key, HASH, text, len, out, &n) && n == HASH ? 0 : -EIO;
}

/* Two outputs of HKDF, which are enough for this pattern */
static int hkdf(const uint8_t ck[HASH], const void *input, size_t len, uint8_t one[HASH],
		uint8_t two[HASH])
{
	uint8_t temp[HASH], text[HASH + 1] = { 1 };
	int err;

	err = hmac(temp, ck, input, len);
	if (!err)
		err = hmac(one, temp, text, 1);
	if (!err) {
		memcpy(text, one, HASH);
		text[HASH] = 2;
		err = hmac(two, temp, text, sizeof(text));
	}
	OPENSSL_cleanse(temp, sizeof(temp));
	OPENSSL_cleanse(text, sizeof(text));
	return err;
}

/* With its public half at hand, libcrypto need not multiply once more to get it. */
static EVP_PKEY *own_key(const uint8_t key[RGATE_KEY_LEN], const uint8_t key_public[RGATE_KEY_LEN])
{
	OSSL_PARAM params[] = {
		OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PRIV_KEY, (void *)key,
						  RGATE_KEY_LEN),
		OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, (void *)key_public,
						  RGATE_KEY_LEN),
		OSSL_PARAM_construct_end(),
	};
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, "X25519", NULL);
	EVP_PKEY *pkey = NULL;

	if (ctx && EVP_PKEY_fromdata_init(ctx) == 1)
		(void)EVP_PKEY_fromdata(ctx, &pkey, EVP_PKEY_KEYPAIR, params);
	EVP_PKEY_CTX_free(ctx);
	return pkey;
}

int rgate_noise_dh(uint8_t secret[RGATE_KEY_LEN], const uint8_t key[RGATE_KEY_LEN],
		   const uint8_t key_public[RGATE_KEY_LEN], const uint8_t peer[RGATE_KEY_LEN])
{
	EVP_PKEY *own = own_key(key, key_public), *other;
	EVP_PKEY_CTX *ctx = NULL;
	size_t len = RGATE_KEY_LEN;
	int err = -EIO;

	ERR_set_mark();
	other = EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, NULL, peer, RGATE_KEY_LEN);
	if (own && other)
		ctx = EVP_PKEY_CTX_new(own, NULL);
	/* Only the last step depends on what the key is: it refuses a product of zeros. */
	if (ctx && EVP_PKEY_derive_init(ctx) == 1 && EVP_PKEY_derive_set_peer(ctx, other) == 1)
		err = EVP_PKEY_derive(ctx, secret, &len) == 1 && len == RGATE_KEY_LEN ? 0 : -EACCES;
	ERR_pop_to_mark();
	EVP_PKEY_CTX_free(ctx);
	EVP_PKEY_free(other);
	EVP_PKEY_free(own);
	if (err)
		OPENSSL_cleanse(secret, RGATE_KEY_LEN);
	return err;
}

static void nonce_of(uint8_t nonce[12], uint64_t n)
{
	n = htole64(n);
	memset(nonce, 0, 4);
	memcpy(nonce + 4, &n, sizeof(n));
}

static int encrypt(const uint8_t k[HASH], uint64_t n, const void *ad, size_t ad_len,
		   const void *text, size_t len, uint8_t *out)
{
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	uint8_t nonce[12];
	int done;
	bool ok;

	nonce_of(nonce, n);
	ok = ctx && EVP_EncryptInit_ex(ctx, EVP_chacha20_poly1305(), NULL, k, nonce) == 1 &&
	     (!ad_len || EVP_EncryptUpdate(ctx, NULL, &done, ad, (int)ad_len) == 1) &&
	     (!len || EVP_EncryptUpdate(ctx, out, &done, text, (int)len) == 1) &&
	     EVP_EncryptFinal_ex(ctx, out + len, &done) == 1 &&
	     EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, RGATE_NOISE_TAG, out + len) == 1;
	EVP_CIPHER_CTX_free(ctx);
	return ok ? 0 : -EIO;
}

/* @len: without the tag that stands behind it */
static int decrypt(const uint8_t k[HASH], uint64_t n, const void *ad, size_t ad_len,
		   const uint8_t *msg, size_t len, void *text)
{
	uint8_t nonce[12], tag[RGATE_NOISE_TAG], out[RGATE_NOISE_PAYLOAD];
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	int done, err = -EIO;

	nonce_of(nonce, n);
	memcpy(tag, msg + len, sizeof(tag));
	ERR_set_mark();
	if (ctx && EVP_DecryptInit_ex(ctx, EVP_chacha20_poly1305(), NULL, k, nonce) == 1 &&
	    (!ad_len || EVP_DecryptUpdate(ctx, NULL, &done, ad, (int)ad_len) == 1) &&
	    (!len || EVP_DecryptUpdate(ctx, out, &done, msg, (int)len) == 1) &&
	    EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, sizeof(tag), tag) == 1)
		err = EVP_DecryptFinal_ex(ctx, out + len, &done) == 1 ? 0 : -EACCES;
	ERR_pop_to_mark();
	EVP_CIPHER_CTX_free(ctx);
	/* What was not proved to be the peer's leaves this function for nobody. */
	if (!err && len)
		memcpy(text, out, len);
	OPENSSL_cleanse(out, sizeof(out));
	return err;
}

static int mix_hash(struct rgate_noise *n, const void *data, size_t len)
{
	return sha256(n->h, n->h, sizeof(n->h), data, len);
}

static int mix_key(struct rgate_noise *n, const uint8_t secret[RGATE_KEY_LEN])
{
	uint8_t one[HASH], two[HASH];
	int err = hkdf(n->ck, secret, RGATE_KEY_LEN, one, two);

	if (!err) {
		memcpy(n->ck, one, sizeof(n->ck));
		memcpy(n->k, two, sizeof(n->k));
		n->n = 0;
	}
	OPENSSL_cleanse(one, sizeof(one));
	OPENSSL_cleanse(two, sizeof(two));
	return err;
}

static int mix_dh(struct rgate_noise *n, const uint8_t *key, const uint8_t *key_public,
		  const uint8_t *peer)
{
	uint8_t secret[RGATE_KEY_LEN];
	int err = rgate_noise_dh(secret, key, key_public, peer);

	if (!err)
		err = mix_key(n, secret);
	OPENSSL_cleanse(secret, sizeof(secret));
	return err;
}

/* Ephemeral with ephemeral; or one's ephemeral with the other's static key */
static int mix_ee(struct rgate_noise *n)
{
	return mix_dh(n, n->e, n->e_public, n->peer_e);
}

static int mix_static(struct rgate_noise *n, bool mine)
{
	return mine ? mix_dh(n, n->keys.own, n->keys.own_public, n->peer_e) :
		      mix_dh(n, n->e, n->e_public, n->keys.peer_public);
}

/* What follows `e` in this message, at either end */
static int tokens(struct rgate_noise *n)
{
	int err;

	if (!n->step) {
		err = mix_static(n, !n->initiator);
		return err ? err : mix_key(n, n->keys.shared);
	}
	err = mix_ee(n);
	return err ? err : mix_static(n, n->initiator);
}

int rgate_noise_begin(struct rgate_noise *n, bool initiator, const void *prologue, size_t len,
		      const struct rgate_noise_keys *keys)
{
	const uint8_t *first = initiator ? keys->own_public : keys->peer_public;
	const uint8_t *second = initiator ? keys->peer_public : keys->own_public;
	int err;

	memset(n, 0, sizeof(*n));
	n->keys = *keys;
	n->initiator = initiator;
	memcpy(n->h, name, sizeof(n->h));
	memcpy(n->ck, n->h, sizeof(n->ck));
	err = mix_hash(n, prologue, len);
	if (!err)
		err = mix_hash(n, first, RGATE_KEY_LEN);
	if (!err)
		err = mix_hash(n, second, RGATE_KEY_LEN);
	if (err)
		rgate_noise_end(n);
	return err;
}

void rgate_noise_fix(struct rgate_noise *n, const uint8_t e[RGATE_KEY_LEN])
{
	memcpy(n->e, e, sizeof(n->e));
	n->fixed = true;
}

void rgate_noise_end(struct rgate_noise *n)
{
	OPENSSL_cleanse(n, sizeof(*n));
	n->step = BROKEN;
}

/* The handshake is over: a key for each direction, and nothing else is kept. */
static int split(struct rgate_noise *n)
{
	uint8_t *to_responder = n->initiator ? n->k_out : n->k_in;
	uint8_t *to_initiator = n->initiator ? n->k_in : n->k_out;
	int err = hkdf(n->ck, NULL, 0, to_responder, to_initiator);

	OPENSSL_cleanse(n->e, sizeof(n->e));
	OPENSSL_cleanse(n->ck, sizeof(n->ck));
	OPENSSL_cleanse(n->k, sizeof(n->k));
	return err;
}

static int next(struct rgate_noise *n, int err)
{
	if (!err && ++n->step == DONE)
		err = split(n);
	if (err)
		rgate_noise_end(n);
	return err;
}

static bool my_turn(const struct rgate_noise *n, bool write)
{
	return n->step < DONE && (n->step == (n->initiator ? 0 : 1)) == write;
}

static int fresh(struct rgate_noise *n)
{
	int err = n->fixed ? 0 : rgate_key_generate(n->e);

	return err ? err : rgate_key_public(n->e_public, n->e);
}

int rgate_noise_write(struct rgate_noise *n, const void *payload, size_t len, uint8_t *msg)
{
	uint8_t *sealed = msg + RGATE_KEY_LEN;
	int err = 0;

	if (!my_turn(n, true) || len > RGATE_NOISE_PAYLOAD)
		return next(n, -EACCES);
	err = fresh(n);
	if (!err)
		err = mix_hash(n, n->e_public, RGATE_KEY_LEN);
	if (!err)
		err = tokens(n);
	if (!err)
		err = encrypt(n->k, n->n++, n->h, sizeof(n->h), payload, len, sealed);
	if (!err)
		err = mix_hash(n, sealed, len + RGATE_NOISE_TAG);
	if (!err)
		memcpy(msg, n->e_public, RGATE_KEY_LEN);
	return next(n, err);
}

int rgate_noise_read(struct rgate_noise *n, const uint8_t *msg, size_t len, void *payload)
{
	const uint8_t *sealed = msg + RGATE_KEY_LEN;
	int err = 0;

	if (!my_turn(n, false))
		return next(n, -EACCES);
	if (len < RGATE_NOISE_HANDSHAKE || len - RGATE_NOISE_HANDSHAKE > RGATE_NOISE_PAYLOAD)
		return next(n, -EPROTO);
	len -= RGATE_NOISE_HANDSHAKE;
	memcpy(n->peer_e, msg, sizeof(n->peer_e));
	err = mix_hash(n, n->peer_e, sizeof(n->peer_e));
	if (!err)
		err = tokens(n);
	if (!err)
		err = decrypt(n->k, n->n++, n->h, sizeof(n->h), sealed, len, payload);
	if (!err)
		err = mix_hash(n, sealed, len + RGATE_NOISE_TAG);
	return next(n, err);
}

int rgate_noise_seal(struct rgate_noise *n, const void *text, size_t len, uint8_t *msg)
{
	int err = n->step != DONE || len > RGATE_NOISE_PAYLOAD ? -EACCES : 0;

	if (!err)
		err = encrypt(n->k_out, n->n_out++, NULL, 0, text, len, msg);
	if (err)
		rgate_noise_end(n);
	return err;
}

int rgate_noise_open(struct rgate_noise *n, const uint8_t *msg, size_t len, void *text)
{
	int err = n->step == DONE ? 0 : -EACCES;

	if (!err && (len < RGATE_NOISE_TAG || len - RGATE_NOISE_TAG > RGATE_NOISE_PAYLOAD))
		err = -EPROTO;
	if (!err)
		err = decrypt(n->k_in, n->n_in++, NULL, 0, msg, len - RGATE_NOISE_TAG, text);
	if (err)
		rgate_noise_end(n);
	return err;
}
