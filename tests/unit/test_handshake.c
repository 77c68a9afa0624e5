// SPDX-License-Identifier: MIT OR GPL-2.0
/* Proof of the cluster's key: who knows it passes, nothing else does. */
#include "unit.h"
#include "handshake.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char key[] = "0123456789abcdef0123456789abcdef";
#define KEY_LEN (sizeof(key) - 1)

struct talk {
	struct rgate_hs_hello hello, own, got_hello;
	struct rgate_hs_welcome welcome, got;
	struct rgate_hs_proof proof;
};

static void begin(struct talk *t)
{
	assert_int_equal(rgate_hs_hello(&t->hello, 3, 0, 77, 1024, 64), 0);
	assert_int_equal(rgate_hs_read_hello(&t->got_hello, &t->hello, sizeof(t->hello), -1, 0), 0);
	assert_int_equal(rgate_hs_hello(&t->own, 0, 3, 99, 2048, 32), 0);
	assert_int_equal(rgate_hs_welcome(&t->welcome, &t->got_hello, &t->own, key, KEY_LEN), 0);
}

static void passes(void **state)
{
	struct talk t, u;

	(void)state;
	begin(&t);
	assert_int_equal(rgate_hs_read_welcome(&t.got, &t.welcome, sizeof(t.welcome), &t.hello,
					       key, KEY_LEN), 0);
	assert_int_equal(le32toh(t.got.hello.msg_size), 2048);
	assert_int_equal(le64toh(t.got.hello.incarnation), 99);
	assert_int_equal(rgate_hs_proof(&t.proof, &t.hello, &t.got, key, KEY_LEN), 0);
	assert_int_equal(rgate_hs_check_proof(&t.proof, sizeof(t.proof), &t.got_hello, &t.welcome,
					      key, KEY_LEN), 0);
	/* nonces are fresh: what was said once is worth nothing the next time */
	begin(&u);
	assert_memory_not_equal(u.hello.nonce, t.hello.nonce, RGATE_HS_NONCE);
	assert_int_equal(rgate_hs_read_welcome(&u.got, &t.welcome, sizeof(t.welcome), &u.hello,
					       key, KEY_LEN), -EACCES);
	assert_int_equal(rgate_hs_check_proof(&t.proof, sizeof(t.proof), &u.got_hello, &u.welcome,
					      key, KEY_LEN), -EACCES);
	/* and the server's own word is not the client's */
	assert_int_equal(rgate_hs_check_proof(t.welcome.mac, RGATE_HS_MAC, &t.got_hello,
					      &t.welcome, key, KEY_LEN), -EACCES);
}

/* RFC 2104 by hand, over the text that handshake.h tells */
static void known_answer(void **state)
{
	uint8_t in[64 + 8 + 56 + 56] = { 0 }, out[64 + 32], mac[32];
	struct talk t;
	size_t i;

	(void)state;
	begin(&t);
	memset(in, 0x36, 64);
	memset(out, 0x5c, 64);
	for (i = 0; i < sizeof(key) - 1; i++) {
		in[i] ^= (uint8_t)key[i];
		out[i] ^= (uint8_t)key[i];
	}
	memcpy(in + 64, "server", 6);
	memcpy(in + 72, &t.hello, 56);
	memcpy(in + 128, &t.own, 56);
	SHA256(in, sizeof(in), out + 64);
	SHA256(out, sizeof(out), mac);
	assert_memory_equal(mac, t.welcome.mac, sizeof(mac));
}

static void another_key(void **state)
{
	char other[sizeof(key)];
	struct talk t;
	size_t i;

	(void)state;
	begin(&t);
	assert_int_equal(rgate_hs_proof(&t.proof, &t.hello, &t.welcome, key, KEY_LEN), 0);
	for (i = 0; i < sizeof(key) - 1; i++) {
		memcpy(other, key, sizeof(key));
		other[i] ^= 0x20;
		assert_int_equal(rgate_hs_read_welcome(&t.got, &t.welcome, sizeof(t.welcome),
						       &t.hello, other, sizeof(key) - 1), -EACCES);
		assert_int_equal(rgate_hs_check_proof(&t.proof, sizeof(t.proof), &t.hello,
						      &t.welcome, other, sizeof(key) - 1),
				 -EACCES);
	}
	assert_int_equal(rgate_hs_check_proof(&t.proof, sizeof(t.proof) - 1, &t.hello, &t.welcome,
					      key, KEY_LEN), -EACCES);
}

/* Every bit of every record matters, or has to be zero */
static void bits(void **state)
{
	struct rgate_hs_hello h;
	uint8_t raw[sizeof(struct rgate_hs_welcome)];
	struct talk t;
	size_t i;
	int err;

	(void)state;
	begin(&t);
	assert_int_equal(rgate_hs_proof(&t.proof, &t.hello, &t.welcome, key, KEY_LEN), 0);
	for (i = 0; i < 8 * sizeof(t.hello); i++) {
		memcpy(raw, &t.hello, sizeof(t.hello));
		raw[i / 8] ^= (uint8_t)(1 << i % 8);
		err = rgate_hs_read_hello(&h, raw, sizeof(t.hello), 3, 0);
		if (err) {
			assert_true(err == -EPROTO || err == -EPROTONOSUPPORT);
			continue;
		}
		/* taken, but then the proof does not fit */
		assert_int_equal(rgate_hs_check_proof(&t.proof, sizeof(t.proof), &h, &t.welcome,
						      key, KEY_LEN), -EACCES);
	}
	for (i = 0; i < 8 * sizeof(t.welcome); i++) {
		memcpy(raw, &t.welcome, sizeof(t.welcome));
		raw[i / 8] ^= (uint8_t)(1 << i % 8);
		assert_true(rgate_hs_read_welcome(&t.got, raw, sizeof(raw), &t.hello, key,
						  KEY_LEN) < 0);
	}
	for (i = 0; i < sizeof(t.hello); i++)
		assert_int_equal(rgate_hs_read_hello(&h, &t.hello, i, -1, 0), -EPROTO);
	for (i = 0; i < sizeof(t.welcome); i++)
		assert_int_equal(rgate_hs_read_welcome(&t.got, &t.welcome, i, &t.hello, key,
						       KEY_LEN), -EPROTO);
	assert_int_equal(rgate_hs_read_hello(&h, &t.hello, sizeof(h), 2, 0), -EPROTO);
	assert_int_equal(rgate_hs_read_hello(&h, &t.hello, sizeof(h), 3, 1), -EPROTO);
}

static void key_files(void **state)
{
	char path[] = "/tmp/ringgate-key-XXXXXX", text[5000];
	uint8_t got[4096];
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	memset(text, 'x', sizeof(text));
	assert_int_equal(write(fd, text, 31), 31);
	assert_int_equal(rgate_hs_load_key(path, got, sizeof(got)), -EINVAL);
	assert_int_equal(write(fd, "y\n", 2), 2);
	assert_int_equal(rgate_hs_load_key(path, got, sizeof(got)), 32);
	assert_true(got[30] == 'x' && got[31] == 'y');
	assert_int_equal(rgate_hs_load_key(path, got, 31), -EINVAL);
	assert_int_equal(fchmod(fd, 0640), 0);
	assert_int_equal(rgate_hs_load_key(path, got, sizeof(got)), -EACCES);
	assert_int_equal(fchmod(fd, 0400), 0);
	assert_int_equal(rgate_hs_load_key(path, got, sizeof(got)), 32);
	assert_int_equal(write(fd, text, 4100), 4100);
	assert_int_equal(rgate_hs_load_key(path, got, sizeof(got)), -EINVAL);
	close(fd);
	unlink(path);
	assert_int_equal(rgate_hs_load_key(path, got, sizeof(got)), -ENOENT);
	assert_int_equal(rgate_hs_load_key("/tmp", got, sizeof(got)), -EACCES);
	assert_int_equal(rgate_hs_load_key(NULL, got, sizeof(got)), -ENOENT);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(passes),
	cmocka_unit_test(known_answer),
	cmocka_unit_test(another_key),
	cmocka_unit_test(bits),
	cmocka_unit_test(key_files),
};

UNIT_MAIN(tests)
