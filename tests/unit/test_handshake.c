// SPDX-License-Identifier: MIT OR GPL-2.0
/* Which node it is: who has its key passes, nothing else does. */
#include "unit.h"
#include "handshake.h"
#include "provider.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { CLIENT, SERVER, OTHER, PARTIES };

static uint8_t key[PARTIES][RGATE_KEY_LEN], public[PARTIES][RGATE_KEY_LEN];
static uint8_t shared[PARTIES][PARTIES][RGATE_KEY_LEN];

static int make_keys(void **state)
{
	unsigned int i, k;

	(void)state;
	for (i = 0; i < PARTIES; i++) {
		assert_int_equal(rgate_key_generate(key[i]), 0);
		assert_int_equal(rgate_key_public(public[i], key[i]), 0);
	}
	for (i = 0; i < PARTIES; i++)
		for (k = 0; k < PARTIES; k++)
			assert_int_equal(rgate_noise_dh(shared[i][k], key[i], public[i],
							public[k]), 0);
	return 0;
}

static const struct rgate_noise_keys *keys(unsigned int own, unsigned int peer)
{
	static struct rgate_noise_keys k;

	k = (struct rgate_noise_keys){ key[own], public[own], public[peer], shared[own][peer] };
	return &k;
}

static const struct rgate_hs_terms client_terms = { 77, 1024, 64 };
static const struct rgate_hs_terms server_terms = { 99, 2048, 32 };
static const uint8_t lines[2][RGATE_HS_LINE] = { "the client's", "the server's" };

struct talk {
	struct rgate_hs client, server;
	struct rgate_hs_welcome welcome;
	struct rgate_hs_proof proof;
	struct rgate_hs_ready ready;
	struct rgate_hs_terms terms;
	uint8_t line[RGATE_HS_LINE];
};

/* Message @i of the four, as it was made */
static void *message(struct talk *t, unsigned int i, size_t *len)
{
	const struct {
		void *at;
		size_t len;
	} all[] = {
		{ &t->client.hello, sizeof(t->client.hello) },
		{ &t->welcome, sizeof(t->welcome) }, { &t->proof, sizeof(t->proof) },
		{ &t->ready, sizeof(t->ready) },
	};

	*len = all[i].len;
	return all[i].at;
}

static void make(struct talk *t, unsigned int i)
{
	switch (i) {
	case 0:
		memset(t, 0, sizeof(*t));
		assert_int_equal(rgate_hs_hello(&t->client, 3, 0, keys(CLIENT, SERVER)), 0);
		break;
	case 1:
		assert_int_equal(rgate_hs_welcome(&t->server, &t->welcome, &server_terms), 0);
		break;
	case 2:
		assert_int_equal(rgate_hs_proof(&t->client, &t->proof, &client_terms, lines[0]), 0);
		break;
	default:
		assert_int_equal(rgate_hs_ready(&t->server, &t->ready, lines[1]), 0);
	}
}

static int take(struct talk *t, unsigned int i, const void *msg, size_t len)
{
	struct rgate_hs_hello hello;
	int err;

	switch (i) {
	case 0:
		err = rgate_hs_read_hello(&hello, msg, len, 0);
		return err ? err : rgate_hs_check_hello(&t->server, &hello, keys(SERVER, CLIENT));
	case 1:
		return rgate_hs_read_welcome(&t->client, msg, len, &t->terms);
	case 2:
		return rgate_hs_read_proof(&t->server, msg, len, &t->terms, t->line);
	default:
		return rgate_hs_read_ready(&t->client, msg, len, t->line);
	}
}

/* A handshake up to message @last, which was made and not read */
static void talk(struct talk *t, unsigned int last)
{
	unsigned int i;
	size_t len;
	void *msg;

	for (i = 0;; i++) {
		make(t, i);
		if (i == last)
			return;
		msg = message(t, i, &len);
		assert_int_equal(take(t, i, msg, len), 0);
	}
}

static void passes(void **state)
{
	struct talk t;

	(void)state;
	talk(&t, 2);
	assert_int_equal(t.terms.incarnation, 99);
	assert_int_equal(t.terms.msg_size, 2048);
	assert_int_equal(t.terms.msg_depth, 32);
	assert_int_equal(take(&t, 2, &t.proof, sizeof(t.proof)), 0);
	assert_int_equal(t.terms.incarnation, 77);
	assert_int_equal(t.terms.msg_size, 1024);
	assert_int_equal(t.terms.msg_depth, 64);
	assert_memory_equal(t.line, lines[0], RGATE_HS_LINE);
	make(&t, 3);
	assert_int_equal(take(&t, 3, &t.ready, sizeof(t.ready)), 0);
	assert_memory_equal(t.line, lines[1], RGATE_HS_LINE);
}

/* What goes over the wire, told here a second time: Documentation/wire.rst */
static void bytes(void **state)
{
	static const uint8_t clear[8] = { 'R', 'G', 'S', 'H', 2, 0, 3, 0 };
	uint8_t prologue[24] = "ringgate node 2", raw[64], text[RGATE_NOISE_PAYLOAD];
	static const uint8_t terms[16] = { 77, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 64, 0, 0, 0 };
	struct rgate_noise n;
	struct talk t;

	(void)state;
	talk(&t, 0);
	assert_int_equal(sizeof(t.client.hello), 56);
	assert_int_equal(sizeof(t.welcome), 64);
	assert_int_equal(sizeof(t.proof), 64);
	assert_int_equal(sizeof(t.ready), 48);
	assert_memory_equal(&t.client.hello, clear, sizeof(clear));
	memcpy(prologue + 16, clear, sizeof(clear));
	assert_int_equal(rgate_noise_begin(&n, false, prologue, sizeof(prologue),
					   keys(SERVER, CLIENT)), 0);
	assert_int_equal(rgate_noise_read(&n, (uint8_t *)&t.client.hello + 8, 48, text), 0);
	memset(text, 0, 16);
	text[0] = 5;
	text[9] = 1;
	text[12] = 4;
	assert_int_equal(rgate_noise_write(&n, text, 16, raw), 0);
	assert_int_equal(take(&t, 1, raw, sizeof(raw)), 0);
	assert_int_equal(t.terms.incarnation, 5);
	assert_int_equal(t.terms.msg_size, 256);
	assert_int_equal(t.terms.msg_depth, 4);
	make(&t, 2);
	assert_int_equal(rgate_noise_open(&n, t.proof.sealed, 64, text), 0);
	assert_memory_equal(text, terms, sizeof(terms));
	assert_memory_equal(text + 16, lines[0], RGATE_HS_LINE);
}

/* Every bit, and every length, of each message */
static void flipped(void **state)
{
	uint8_t raw[64];
	struct talk t, u;
	unsigned int i, bit;
	size_t len, n;
	void *msg;

	(void)state;
	for (i = 0; i < 4; i++) {
		talk(&t, i);
		msg = message(&t, i, &len);
		for (bit = 0; bit < len * 8; bit++) {
			memcpy(raw, msg, len);
			raw[bit / 8] ^= (uint8_t)(1 << bit % 8);
			/* the reader as it was before; the copy has no secrets of its own */
			u = t;
			assert_true(take(&u, i, raw, len) < 0);
		}
		for (n = 0; n < len; n++) {
			u = t;
			assert_int_equal(take(&u, i, msg, n), -EPROTO);
		}
		assert_int_equal(take(&t, i, msg, len), 0);
	}
}

/* What was heard of a handshake is of no use in another one, nor at another place of it */
static void replayed(void **state)
{
	struct talk t, u, v;
	unsigned int i, k;
	uint8_t raw[64];
	size_t len;
	void *msg;

	(void)state;
	talk(&t, 3);
	for (i = 1; i < 4; i++) {
		talk(&u, i);
		msg = message(&t, i, &len);
		assert_int_equal(take(&u, i, msg, len), -EACCES);
	}
	/* a hello passes, by itself; what follows is for who made it */
	talk(&u, 0);
	assert_int_equal(take(&u, 0, &t.client.hello, sizeof(t.client.hello)), 0);
	make(&u, 1);
	assert_int_equal(take(&u, 2, &t.proof, sizeof(t.proof)), -EACCES);
	/* fresh each time */
	talk(&v, 1);
	assert_memory_not_equal(v.client.hello.noise, t.client.hello.noise, RGATE_KEY_LEN);
	assert_memory_not_equal(v.welcome.noise, t.welcome.noise, RGATE_KEY_LEN);
	for (i = 0; i < 4; i++)
		for (k = 0; k < 4; k++) {
			if (i == k)
				continue;
			talk(&u, i);
			memset(raw, 0, sizeof(raw));
			msg = message(&t, k, &len);
			memcpy(raw, msg, len);
			(void)message(&u, i, &len);
			assert_true(take(&u, i, raw, len) < 0);
		}
	/* one's own words are no answer */
	talk(&u, 2);
	assert_int_equal(take(&u, 1, &u.welcome, sizeof(u.welcome)), -EACCES);
	talk(&u, 2);
	assert_int_equal(rgate_hs_read_proof(&u.client, &u.proof, sizeof(u.proof), &u.terms,
					     u.line), -EACCES);
}

/* A node of the cluster that says it is another one; and keys that nobody has listed */
static void another(void **state)
{
	const struct rgate_noise_keys wrong = {
		key[OTHER], public[CLIENT], public[SERVER], shared[OTHER][SERVER],
	};
	struct rgate_hs_hello hello;
	struct rgate_hs hs = { 0 };
	struct talk t;

	(void)state;
	talk(&t, 0);
	assert_int_equal(rgate_hs_hello(&hs, 3, 0, keys(OTHER, SERVER)), 0);
	assert_int_equal(take(&t, 0, &hs.hello, sizeof(hs.hello)), -EACCES);
	assert_int_equal(rgate_hs_hello(&hs, 3, 0, &wrong), 0);
	assert_int_equal(take(&t, 0, &hs.hello, sizeof(hs.hello)), -EACCES);
	/* a genuine hello to another node, turned to this one */
	assert_int_equal(rgate_hs_hello(&hs, 3, 1, keys(CLIENT, OTHER)), 0);
	assert_int_equal(take(&t, 0, &hs.hello, sizeof(hs.hello)), -EPROTO);
	hs.hello.to = 0;
	assert_int_equal(take(&t, 0, &hs.hello, sizeof(hs.hello)), -EACCES);
	/* an answer from who has not the server's key */
	talk(&t, 0);
	assert_int_equal(rgate_hs_check_hello(&t.server, &t.client.hello, keys(OTHER, CLIENT)),
			 -EACCES);
	/* the clear part, before any of that */
	assert_int_equal(rgate_hs_read_hello(&hello, &t.client.hello, sizeof(hello), 1), -EPROTO);
	t.client.hello.from = 0;
	assert_int_equal(rgate_hs_read_hello(&hello, &t.client.hello, sizeof(hello), 0), -EPROTO);
	t.client.hello.from = 8;
	assert_int_equal(rgate_hs_read_hello(&hello, &t.client.hello, sizeof(hello), 0), -EPROTO);
	t.client.hello.from = 3;
	t.client.hello.version = htole16(1);
	assert_int_equal(rgate_hs_read_hello(&hello, &t.client.hello, sizeof(hello), 0),
			 -EPROTONOSUPPORT);
}

/* Numbers of a node that has its key, and is mistaken */
static void out_of_range(void **state)
{
	static const struct rgate_hs_terms bad[] = {
		{ 1, 63, 64 }, { 1, 65537, 64 }, { 1, UINT32_MAX, 64 }, { 1, 0, 64 },
		{ 1, 1024, 3 }, { 1, 1024, 4097 }, { 1, 1024, UINT32_MAX }, { 1, 1024, 0 },
	}, good[] = { { 0, 64, 4 }, { UINT64_MAX, 65536, 4096 } };
	unsigned int i;
	struct talk t;

	(void)state;
	for (i = 0; i < ARRAY_LEN(bad) + ARRAY_LEN(good); i++) {
		const bool ok = i >= ARRAY_LEN(bad);
		const struct rgate_hs_terms *terms = ok ? &good[i - ARRAY_LEN(bad)] : &bad[i];

		talk(&t, 0);
		assert_int_equal(take(&t, 0, &t.client.hello, sizeof(t.client.hello)), 0);
		assert_int_equal(rgate_hs_welcome(&t.server, &t.welcome, terms), 0);
		assert_int_equal(take(&t, 1, &t.welcome, sizeof(t.welcome)), ok ? 0 : -EPROTO);
		talk(&t, 1);
		assert_int_equal(take(&t, 1, &t.welcome, sizeof(t.welcome)), 0);
		assert_int_equal(rgate_hs_proof(&t.client, &t.proof, terms, lines[0]), 0);
		assert_int_equal(take(&t, 2, &t.proof, sizeof(t.proof)), ok ? 0 : -EPROTO);
	}
}

#define TEST(name)	cmocka_unit_test_setup(name, make_keys)

static const struct CMUnitTest tests[] = {
	TEST(passes),
	TEST(bytes),
	TEST(flipped),
	TEST(replayed),
	TEST(another),
	TEST(out_of_range),
};

UNIT_MAIN_ALONE(tests)
