// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Noise KK byte for byte against what other implementations published: the vectors of
 * cacophony and of snow. And what is not exactly the next message is refused.
 */
#include "unit.h"
#include "noise.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct vector {
	const char *prologue;
	const char *key[2];		/* initiator, responder */
	const char *e[2];
	const char *public[2];
	struct {
		const char *payload;
		const char *message;
	} talk[6];
};

static const struct vector vectors[] = {
	{	/* cacophony */
		.prologue = "4a6f686e2047616c74",
		.key = { "e61ef9919cde45dd5f82166404bd08e38bceb5dfdfded0a34c8df7ed542214d1",
			 "4a3acbfdb163dec651dfa3194dece676d437029c62a408b4c5ea9114246e4893" },
		.e = { "893e28b9dc6ca8d611ab664754b8ceb7bac5117349a4439a6b0569da977c464a",
		       "bbdb4cdbd309f1a1f2e1456967fe288cadd6f712d65dc7b7793d5e63da6b375b" },
		.public = { "6bc3822a2aa7f4e6981d6538692b3cdf3e6df9eea6ed269eb41d93c22757b75a",
			    "31e0303fd6418d2f8c0e78b91f22e8caed0fbe48656dcf4767e4834f701b8f62" },
		.talk = {
			{ "4c756477696720766f6e204d69736573",
			  "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c7944"
			  "0177015efc1fe7a37c629af7120a96274e6ab7afcc9261901d0e09ae32a5bb96" },
			{ "4d757272617920526f746862617264",
			  "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f144808843"
			  "b274d3429adc47ca093ba63ef90f8da89fda108db471dccfa4894aa7b00003" },
			{ "462e20412e20486179656b",
			  "966b05bc69ec01b8454d3160a214e6f24a3d884eb31ec2408af63f" },
			{ "4361726c204d656e676572",
			  "0ad887fba4f611bbb4afe44ba3556b8164332ca7d5934634d63d80" },
			{ "4a65616e2d426170746973746520536179",
			  "012b28ae646ae7830e2c5472cb023eab071c1db3d8413ec69b513b83832f974c2d" },
			{ "457567656e2042f6686d20766f6e2042617765726b",
			  "bb3e6a48160d9c5971d37f975727294e0d868342db31832e54d07191ab0ca3c3"
			  "703b5ed3d9" },
		},
	},
	{	/* snow */
		.prologue = "5468657265206973206e6f20726967687420616e642077726f6e672e20546865"
			    "72652773206f6e6c792066756e20616e6420626f72696e672e",
		.key = { "9ec880ae6e9dc37277b4b7cc43a9981a2a58428648536941c787f34c840ae4b4",
			 "2f292fe63d73808a2e5307a62428e243ba02ce8b70c949a58a4c70312fb038b5" },
		.e = { "09469832d23dbaa396cb1e8c42c74ea73e3f88eaf39a1b9e89cc6528bd163f9a",
		       "64fd9f17061c66df61f6e5c15ce85dbcd3aaee6e3a9f87989dc9147c6f5cb64a" },
		.public = { "3198032f853c7321e63685c7331077716ed312e9fbb4822bb4dbfbcaa4590e08",
			    "673291fd3e40a0ae3008788a0e8b62a81bbabff2464bc5e76b08a9824e539c50" },
		.talk = {
			{ "4d1f91e210b2c264713e73509808c3f6d99ca3bb115001388e630b1356a24693",
			  "311304998133430ee0668c0c91cbdc445cbb3a526457b0c0b7d9dc6789be0904"
			  "f7d451b7aba0f3031b46fca709b3eed813d6d1080447720cdf86bd9391c0359c"
			  "717211fbcdda474c03ea5d8d03c33722" },
			{ "914a3388cb8e5ef4e3d4b7ba0fc4bc0a0cbc7ff41eabdb7c9c501b4d92355fbf",
			  "59028e838fa2ca7a3fc8d48b5c6379286b61507d4c91e30a0ad387164b022906"
			  "0e30d119b6845417d128231555ee8666ff8beffe931b1d8296d92189472ec01c"
			  "ffdf25074a38a63a555bb43c749e8d05" },
			{ "e3ecca19cd0e12b0607470b7b13780428e0bbe6deb02c91ecd1d5c832128258c",
			  "9faaf3dc38e529089dfb9e3b830c4e014fa7204b7f52288b8f7aa6f5107e5562"
			  "46c2004d0236920739434810979eef50" },
			{ "517c1116052039051444d2b76d00886bea074d1d730f1e3489457496cdf4d8ca",
			  "007d8b6d59a12d95c335ccbd4d31486f86020b59889b8ea159b4fdaaee9334f2"
			  "b9143498aeffa34219fa6c3136361b66" },
		},
	},
};

#define BUF	128

static size_t unhex(const char *text, uint8_t *out)
{
	size_t i, len = strlen(text) / 2;
	unsigned int v;

	assert_true(len <= BUF);
	for (i = 0; i < len; i++) {
		assert_int_equal(sscanf(text + 2 * i, "%2x", &v), 1);
		out[i] = (uint8_t)v;
	}
	return len;
}

struct party {
	uint8_t key[RGATE_KEY_LEN], public[RGATE_KEY_LEN], peer[RGATE_KEY_LEN];
	uint8_t shared[RGATE_KEY_LEN];
	struct rgate_noise n;
};

static void begin(struct party *p, const struct vector *v, bool initiator)
{
	const unsigned int me = initiator ? 0 : 1;
	uint8_t prologue[BUF], e[BUF];
	size_t len = unhex(v->prologue, prologue);
	struct rgate_noise_keys keys;

	unhex(v->key[me], p->key);
	unhex(v->public[!me], p->peer);
	assert_int_equal(rgate_key_public(p->public, p->key), 0);
	unhex(v->public[me], e);
	assert_memory_equal(p->public, e, RGATE_KEY_LEN);
	assert_int_equal(rgate_noise_dh(p->shared, p->key, p->public, p->peer), 0);
	keys = (struct rgate_noise_keys){ p->key, p->public, p->peer, p->shared };
	assert_int_equal(rgate_noise_begin(&p->n, initiator, prologue, len, &keys), 0);
	unhex(v->e[me], e);
	rgate_noise_fix(&p->n, e);
}

/* Message @i as the one makes it, @len bytes */
static size_t make(struct party p[2], const struct vector *v, unsigned int i, uint8_t *msg)
{
	struct rgate_noise *from = &p[i % 2].n;
	uint8_t payload[BUF];
	size_t len = unhex(v->talk[i].payload, payload);

	if (i >= 2) {
		assert_int_equal(rgate_noise_seal(from, payload, len, msg), 0);
		return len + RGATE_NOISE_TAG;
	}
	assert_int_equal(rgate_noise_write(from, payload, len, msg), 0);
	return len + RGATE_NOISE_HANDSHAKE;
}

static int take(struct party p[2], unsigned int i, const uint8_t *msg, size_t len, uint8_t *out)
{
	struct rgate_noise *to = &p[!(i % 2)].n;

	return i < 2 ? rgate_noise_read(to, msg, len, out) : rgate_noise_open(to, msg, len, out);
}

/* Both up to message @last, which is in @msg and has not been read */
static size_t talk(struct party p[2], const struct vector *v, unsigned int last, uint8_t *msg)
{
	uint8_t out[BUF];
	unsigned int i;
	size_t len;

	begin(&p[0], v, true);
	begin(&p[1], v, false);
	for (i = 0;; i++) {
		len = make(p, v, i, msg);
		if (i == last)
			return len;
		assert_int_equal(take(p, i, msg, len, out), 0);
	}
}

static void published(void **state)
{
	uint8_t msg[BUF], want[BUF], out[BUF], payload[BUF];
	struct party p[2];
	unsigned int i, k;
	size_t len;

	(void)state;
	for (k = 0; k < ARRAY_LEN(vectors); k++) {
		begin(&p[0], &vectors[k], true);
		begin(&p[1], &vectors[k], false);
		for (i = 0; i < ARRAY_LEN(vectors[k].talk) && vectors[k].talk[i].payload; i++) {
			len = make(p, &vectors[k], i, msg);
			assert_int_equal(len, unhex(vectors[k].talk[i].message, want));
			assert_memory_equal(msg, want, len);
			assert_int_equal(take(p, i, msg, len, out), 0);
			len = unhex(vectors[k].talk[i].payload, payload);
			assert_memory_equal(out, payload, len);
		}
		assert_true(i >= 4);
	}
}

/* Every bit of the first four messages */
static void flipped(void **state)
{
	uint8_t msg[BUF], out[BUF];
	struct party p[2];
	unsigned int i, bit, refused;
	size_t len;

	(void)state;
	for (i = 0; i < 4; i++) {
		len = talk(p, &vectors[0], i, msg);
		for (bit = 0, refused = 0; bit < len * 8; bit++) {
			len = talk(p, &vectors[0], i, msg);
			msg[bit / 8] ^= (uint8_t)(1 << bit % 8);
			/* X25519 ignores the highest bit of a point, the hash does not. */
			refused += take(p, i, msg, len, out) == -EACCES;
			/* and then it takes nothing any more */
			msg[bit / 8] ^= (uint8_t)(1 << bit % 8);
			assert_int_equal(take(p, i, msg, len, out), -EACCES);
		}
		assert_int_equal(refused, len * 8);
	}
}

static void cut(void **state)
{
	uint8_t msg[BUF], out[BUF];
	struct party p[2];
	unsigned int i;
	size_t len, n;

	(void)state;
	for (i = 0; i < 4; i++) {
		len = talk(p, &vectors[0], i, msg);
		for (n = 0; n < len; n++) {
			(void)talk(p, &vectors[0], i, msg);
			assert_true(take(p, i, msg, n, out) < 0);
		}
		(void)talk(p, &vectors[0], i, msg);
		assert_true(take(p, i, msg, len + 1, out) < 0);
		(void)talk(p, &vectors[0], i, msg);
		assert_int_equal(take(p, i, msg, sizeof(msg), out), -EPROTO);
	}
}

/* Each message where another one is due, and twice */
static void out_of_turn(void **state)
{
	uint8_t msg[4][BUF], out[BUF], more[BUF];
	struct party p[2];
	size_t len[4];
	unsigned int i, k;

	(void)state;
	for (i = 0; i < 4; i++)
		len[i] = talk(p, &vectors[0], i, msg[i]);
	for (i = 0; i < 4; i++)
		for (k = 0; k < 4; k++) {
			if (i == k)
				continue;
			(void)talk(p, &vectors[0], i, more);
			assert_int_not_equal(take(p, i, msg[k], len[k], out), 0);
		}
	for (i = 0; i < 4; i++) {
		(void)talk(p, &vectors[0], i, more);
		assert_int_equal(take(p, i, more, len[i], out), 0);
		assert_int_not_equal(take(p, i, more, len[i], out), 0);
	}
	/* what one wrote is nothing that it reads; nobody writes twice, or before its turn */
	(void)talk(p, &vectors[0], 0, more);
	assert_int_equal(rgate_noise_read(&p[0].n, more, len[0], out), -EACCES);
	(void)talk(p, &vectors[0], 0, more);
	assert_int_equal(rgate_noise_write(&p[0].n, "", 0, out), -EACCES);
	(void)talk(p, &vectors[0], 0, more);
	assert_int_equal(rgate_noise_write(&p[1].n, "", 0, out), -EACCES);
	(void)talk(p, &vectors[0], 0, more);
	assert_int_equal(rgate_noise_seal(&p[0].n, "", 0, out), -EACCES);
	(void)talk(p, &vectors[0], 2, more);
	assert_int_equal(rgate_noise_open(&p[0].n, more, len[2], out), -EACCES);
}

/* Another prologue, and each of the keys another one: nobody understands the other */
static void others(void **state)
{
	static const struct vector *const v = &vectors[0];
	uint8_t msg[BUF], out[BUF];
	struct vector wrong;
	struct party p[2];
	unsigned int i;
	size_t len;

	(void)state;
	for (i = 0; i < 3; i++) {
		wrong = *v;
		if (!i)
			wrong.prologue = "4a6f686e2047616c75";
		else
			wrong.key[i - 1] = vectors[1].key[i - 1];
		if (i)
			wrong.public[i - 1] = vectors[1].public[i - 1];
		begin(&p[0], v, true);
		begin(&p[1], &wrong, false);
		len = make(p, v, 0, msg);
		assert_int_equal(take(p, 0, msg, len, out), -EACCES);
	}
	/* one who knows all the public keys, and no private one */
	wrong = *v;
	wrong.key[0] = vectors[1].key[0];
	wrong.public[0] = vectors[1].public[0];
	begin(&p[0], &wrong, true);
	begin(&p[1], v, false);
	memcpy(p[0].public, p[1].peer, RGATE_KEY_LEN);
	len = make(p, v, 0, msg);
	assert_int_equal(take(p, 0, msg, len, out), -EACCES);
}

/* Points that make a product of zeros, whoever multiplies them */
static void small_order(void **state)
{
	uint8_t key[RGATE_KEY_LEN], public[RGATE_KEY_LEN], out[RGATE_KEY_LEN];
	uint8_t point[RGATE_KEY_LEN] = { 0 }, msg[BUF] = { 0 }, text[BUF];
	struct party p;

	(void)state;
	assert_int_equal(rgate_key_generate(key), 0);
	assert_int_equal(rgate_key_public(public, key), 0);
	assert_int_equal(rgate_noise_dh(out, key, public, point), -EACCES);
	point[0] = 1;
	assert_int_equal(rgate_noise_dh(out, key, public, point), -EACCES);
	point[0] = 9;
	assert_int_equal(rgate_noise_dh(out, key, public, point), 0);
	assert_memory_equal(out, public, RGATE_KEY_LEN);
	begin(&p, &vectors[0], false);
	assert_int_equal(rgate_noise_read(&p.n, msg, RGATE_NOISE_HANDSHAKE, text), -EACCES);
}

/* No secret stays when it is over, and ephemeral keys are not used again */
static void forgotten(void **state)
{
	static const struct rgate_noise zero;
	uint8_t msg[2][BUF];
	struct party p[2];

	(void)state;
	(void)talk(p, &vectors[0], 2, msg[0]);
	assert_memory_equal(p[0].n.e, zero.e, sizeof(zero.e));
	assert_memory_equal(p[1].n.e, zero.e, sizeof(zero.e));
	assert_memory_equal(p[0].n.ck, zero.ck, sizeof(zero.ck));
	rgate_noise_end(&p[0].n);
	assert_memory_equal(p[0].n.k_out, zero.k_out, sizeof(zero.k_out));
	begin(&p[0], &vectors[0], true);
	begin(&p[1], &vectors[0], true);
	p[0].n.fixed = p[1].n.fixed = false;
	assert_int_equal(rgate_noise_write(&p[0].n, "", 0, msg[0]), 0);
	assert_int_equal(rgate_noise_write(&p[1].n, "", 0, msg[1]), 0);
	assert_memory_not_equal(msg[0], msg[1], RGATE_KEY_LEN);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(published),
	cmocka_unit_test(flipped),
	cmocka_unit_test(cut),
	cmocka_unit_test(out_of_turn),
	cmocka_unit_test(others),
	cmocka_unit_test(small_order),
	cmocka_unit_test(forgotten),
};

UNIT_MAIN_ALONE(tests)
