// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Key pairs: what RFC 7748 says, their one spelling, the files that are refused, and that
 * nothing of a private one stays in memory.
 */
#include "unit.h"
#include "ended.h"

#include <ringgate/rgate_key.h>
#include <ringgate/rgate_node.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Alice's of RFC 7748, 6.1 */
#define PRIVATE	"dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LCo="
#define PRIVATE_HEX "77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a"
#define PUBLIC	"hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo="

static char said[512];

static void hear(void *ctx, enum rgate_log_level level, const char *text)
{
	(void)ctx;
	if (level == RGATE_LOG_ERROR)
		snprintf(said, sizeof(said), "%s", text);
}

static void from_hex(uint8_t key[RGATE_KEY_LEN], const char *hex)
{
	unsigned int i, v;

	for (i = 0; i < RGATE_KEY_LEN; i++) {
		assert_int_equal(sscanf(hex + 2 * i, "%2x", &v), 1);
		key[i] = (uint8_t)v;
	}
}

/* RFC 7748, 6.1; the base64 is what `wg pubkey` makes of it */
static void vectors(void **state)
{
	static const struct {
		const char *private, *public, *private_text, *public_text;
	} pairs[] = {
		{ PRIVATE_HEX,
		  "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a",
		  PRIVATE, PUBLIC },
		{ "5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb",
		  "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f",
		  "XasIfmJKikt54X+Lg4AO5m87sSkmGLb9HC+LJ/+I4Os=",
		  "3p7bfXt9wbTTW2HC7OQ1Nz+DQ8hbeGdNrfx+FG+IK08=" },
	};
	uint8_t key[RGATE_KEY_LEN], want[RGATE_KEY_LEN], got[RGATE_KEY_LEN];
	char text[RGATE_KEY_TEXT];
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(pairs); i++) {
		from_hex(key, pairs[i].private);
		from_hex(want, pairs[i].public);
		assert_int_equal(rgate_key_public(got, key), 0);
		assert_memory_equal(got, want, sizeof(got));
		rgate_key_to_text(text, key);
		assert_string_equal(text, pairs[i].private_text);
		rgate_key_to_text(text, got);
		assert_string_equal(text, pairs[i].public_text);
		assert_int_equal(rgate_key_from_text(got, pairs[i].public_text), 0);
		assert_memory_equal(got, want, sizeof(got));
	}
}

static void generated(void **state)
{
	uint8_t a[RGATE_KEY_LEN], b[RGATE_KEY_LEN], ones = 0, zeros = 0xff;
	unsigned int i;

	(void)state;
	for (i = 0; i < 64; i++) {
		assert_int_equal(rgate_key_generate(a), 0);
		assert_int_equal(a[0] & 7, 0);
		assert_int_equal(a[31] & 0xc0, 0x40);
		assert_int_equal(rgate_key_generate(b), 0);
		assert_memory_not_equal(a, b, sizeof(a));
		ones |= a[15];
		zeros &= a[15];
	}
	assert_int_equal(ones, 0xff);
	assert_int_equal(zeros, 0);
}

static void spelling(void **state)
{
	static const char * const wrong[] = {
		"", "=", "dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LCo",	/* no = */
		(PRIVATE "\n"), (PRIVATE "="), (" " PRIVATE),
		" wdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LCo=",
		"dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LC =",
		"dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LCo\n",
		"dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LCp=",	/* bits left over */
		"dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LC==",	/* 31 bytes */
		"dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LCoA",	/* 33 bytes */
		"dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR=5LCo=",
		"dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR-_LCo=",	/* of URLs */
		"dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR\3775LCo=",
		"77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a",
	};
	uint8_t key[RGATE_KEY_LEN], was[RGATE_KEY_LEN];
	unsigned int i;

	(void)state;
	memset(key, 0x5a, sizeof(key));
	memcpy(was, key, sizeof(was));
	for (i = 0; i < ARRAY_LEN(wrong); i++)
		if (rgate_key_from_text(key, wrong[i]) != -EINVAL)
			fail_msg("'%s' is taken", wrong[i]);
	assert_int_equal(rgate_key_from_text(key, NULL), -EINVAL);
	assert_memory_equal(key, was, sizeof(key));
	assert_int_equal(rgate_key_from_text(key, PRIVATE), 0);
}

static char path[64];

static void write_key(const char *text, size_t len, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), len);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static int load(uint8_t key[RGATE_KEY_LEN])
{
	said[0] = '\0';
	rgate_log_set(hear, NULL);
	return rgate_key_load(key, path);
}

/* It is refused with @err, and the message has @what and the path. */
static void refused(int err, const char *what)
{
	uint8_t key[RGATE_KEY_LEN], was[RGATE_KEY_LEN];

	memset(key, 0x5a, sizeof(key));
	memcpy(was, key, sizeof(was));
	assert_int_equal(load(key), err);
	assert_memory_equal(key, was, sizeof(key));
	if (!strstr(said, what) || !strstr(said, path))
		fail_msg("'%s' says nothing of %s", said, what);
}

static int make_dir(void **state)
{
	static char dir[32];

	strcpy(dir, "/tmp/test_key.XXXXXX");
	*state = mkdtemp(dir);
	snprintf(path, sizeof(path), "%s/key", dir);
	return *state ? 0 : -1;
}

static int remove_dir(void **state)
{
	unlink(path);
	return rmdir(*state);
}

static void file(void **state)
{
	uint8_t key[RGATE_KEY_LEN], want[RGATE_KEY_LEN];

	(void)state;
	assert_int_equal(rgate_key_from_text(want, PRIVATE), 0);
	write_key(PRIVATE "\n", RGATE_KEY_TEXT, 0600);
	assert_int_equal(load(key), 0);
	assert_memory_equal(key, want, sizeof(key));
	memset(key, 0, sizeof(key));
	write_key(PRIVATE, RGATE_KEY_TEXT - 1, 0600);
	assert_int_equal(load(key), 0);
	assert_memory_equal(key, want, sizeof(key));
	assert_int_equal(chmod(path, 0400), 0);
	assert_int_equal(load(key), 0);
	unlink(path);
}

static void not_a_key(void **state)
{
	char large[4096];

	(void)state;
	write_key("", 0, 0600);
	refused(-EINVAL, "no private key");
	write_key("\n", 1, 0600);
	refused(-EINVAL, "no private key");
	write_key(PRIVATE "\n\n", RGATE_KEY_TEXT + 1, 0600);
	refused(-EINVAL, "no private key");
	write_key(PRIVATE " ", RGATE_KEY_TEXT, 0600);
	refused(-EINVAL, "no private key");
	/* With the NUL: what comes after it would not be seen. */
	write_key(PRIVATE, RGATE_KEY_TEXT, 0600);
	refused(-EINVAL, "no private key");
	memset(large, 'A', sizeof(large));
	write_key(large, sizeof(large), 0600);
	refused(-EINVAL, "ringgate cluster keygen");
	unlink(path);
}

static void not_safe(void **state)
{
	static const mode_t modes[] = { 0640, 0604, 0620, 0602, 0610, 0601, 0660, 0666 };
	uint8_t key[RGATE_KEY_LEN];
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(modes); i++) {
		write_key(PRIVATE "\n", RGATE_KEY_TEXT, modes[i]);
		refused(-EACCES, "chmod 600");
	}
	unlink(path);
	if (geteuid())
		return;
	write_key(PRIVATE "\n", RGATE_KEY_TEXT, 0600);
	assert_int_equal(chown(path, 4711, 0), 0);
	refused(-EACCES, "belongs to user 4711");
	assert_int_equal(chown(path, 0, 4711), 0);
	assert_int_equal(load(key), 0);
	unlink(path);
}

static void no_file(void **state)
{
	(void)state;
	refused(-ENOENT, "ringgate cluster keygen");
	assert_int_equal(mkdir(path, 0700), 0);
	refused(-EINVAL, "no regular file");
	assert_int_equal(rmdir(path), 0);
	/* Nobody writes it: an open that waits would never return. */
	assert_int_equal(mkfifo(path, 0600), 0);
	refused(-EINVAL, "no regular file");
	unlink(path);
	assert_int_equal(symlink(path, path), 0);
	refused(-ELOOP, "cannot read");
	unlink(path);
	assert_int_equal(rgate_key_load(NULL, path), -EINVAL);
}

#define WIPES	64

/* What was wiped, in its order: the linker sends the library's calls here (--wrap) */
static struct {
	unsigned int n;
	struct {
		const void *at;
		size_t len;
		bool text, bytes;	/* the private key was in it, in base64 or binary */
	} wipe[WIPES];
} wiped;

void __real_OPENSSL_cleanse(void *at, size_t len);
void __wrap_OPENSSL_cleanse(void *at, size_t len);
void __wrap_OPENSSL_cleanse(void *at, size_t len)
{
	uint8_t key[RGATE_KEY_LEN];

	from_hex(key, PRIVATE_HEX);
	if (wiped.n < WIPES) {
		wiped.wipe[wiped.n].at = at;
		wiped.wipe[wiped.n].len = len;
		wiped.wipe[wiped.n].text = memmem(at, len, PRIVATE, RGATE_KEY_TEXT - 1);
		wiped.wipe[wiped.n++].bytes = memmem(at, len, key, sizeof(key));
	}
	__real_OPENSSL_cleanse(at, len);
}

/* So many pieces of memory had the key's text, and so many its bytes, since this was asked last */
static void wiped_were(unsigned int texts, unsigned int bytes)
{
	unsigned int i, t = 0, b = 0;

	for (i = 0; i < wiped.n; i++) {
		t += wiped.wipe[i].text;
		b += wiped.wipe[i].bytes;
	}
	assert_true(wiped.n < WIPES);
	assert_int_equal(t, texts);
	assert_int_equal(b, bytes);
	wiped.n = 0;
}

/* The last one had the key's bytes, and was of @len bytes at least */
static void last_wiped(const void *at, size_t len)
{
	assert_true(wiped.n > 0 && wiped.wipe[wiped.n - 1].bytes);
	if (at)
		assert_ptr_equal(wiped.wipe[wiped.n - 1].at, at);
	assert_true(wiped.wipe[wiped.n - 1].len >= len);
}

static void wiped_after_load(void **state)
{
	uint8_t key[RGATE_KEY_LEN];

	(void)state;
	write_key(PRIVATE "\n", RGATE_KEY_TEXT, 0600);
	wiped.n = 0;
	assert_int_equal(load(key), 0);
	/* as it was read, and as it is to be spelt; with what the decoder adds to it */
	wiped_were(2, 1);
	/* also where it is no key after all */
	write_key(PRIVATE " ", RGATE_KEY_TEXT, 0600);
	assert_int_equal(load(key), -EINVAL);
	wiped_were(1, 0);
	unlink(path);
}

static void wiped_after_node(void **state)
{
	const struct rgate_node_opts opts = { .sz = sizeof(opts) };
	struct rgate_cluster *conf;
	uint8_t key[RGATE_KEY_LEN], zeros[RGATE_KEY_LEN] = { 0 };
	struct rgate_node *node;
	char text[512], sock[64];
	int len;

	write_key(PRIVATE "\n", RGATE_KEY_TEXT, 0600);
	snprintf(sock, sizeof(sock), "%s/node", (char *)*state);
	len = snprintf(text, sizeof(text), "provider local\nprivate-key %s\n"
		       "node 0 gateway %s\npublic-key 0 " PUBLIC "\n"
		       "node 1 compute %s1\n" UNIT_KEY_LINE(1), path, sock, sock);
	assert_int_equal(rgate_cluster_parse(&conf, "test", text, (size_t)len), 0);
	wiped.n = 0;
	assert_int_equal(rgate_node_create(&node, conf, 0, &opts), 0);
	/* what loading it leaves, and the copy that the node's own was made of */
	last_wiped(NULL, RGATE_KEY_LEN);
	wiped_were(2, 2);
	assert_int_equal(node_ended(node), 0);
	/* with what was made of it for each other node */
	last_wiped(NULL, 3 * RGATE_KEY_LEN);
	wiped_were(0, 1);
	/* the caller's, as it is not that node's */
	assert_int_equal(rgate_cluster_read_key(conf, 1, key), -EACCES);
	last_wiped(key, sizeof(key));
	assert_memory_equal(key, zeros, sizeof(key));
	rgate_cluster_destroy(conf);
	unlink(path);
	unlink(sock);
	strcat(sock, ".lock");
	unlink(sock);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(vectors),
	cmocka_unit_test(generated),
	cmocka_unit_test(spelling),
	cmocka_unit_test_setup_teardown(file, make_dir, remove_dir),
	cmocka_unit_test_setup_teardown(not_a_key, make_dir, remove_dir),
	cmocka_unit_test_setup_teardown(not_safe, make_dir, remove_dir),
	cmocka_unit_test_setup_teardown(no_file, make_dir, remove_dir),
	cmocka_unit_test_setup_teardown(wiped_after_load, make_dir, remove_dir),
	cmocka_unit_test_setup_teardown(wiped_after_node, make_dir, remove_dir),
};

UNIT_MAIN(tests)
