// SPDX-License-Identifier: MIT OR GPL-2.0
/* The cluster file: what it says, and what is said of its mistakes. */
#include "unit.h"

#include <ringgate/rgate_cluster.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint8_t none[RGATE_KEY_LEN];

static char said[512];

static void hear(void *ctx, enum rgate_log_level level, const char *text)
{
	(void)ctx;
	if (level == RGATE_LOG_ERROR)
		snprintf(said, sizeof(said), "%s", text);
}

static int parse(struct rgate_cluster **c, const char *text)
{
	said[0] = '\0';
	rgate_log_set(hear, NULL);
	return rgate_cluster_parse(c, "F", text, strlen(text));
}

#define K2	"vEaTeSuIAMh3JYCv4Zbr3UhPUOqVhZtKgT8uCCyzsGo="
#define K4	"4AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
#define KEY(id)	UNIT_KEY_LINE(id)

/* NULL: there is no such node */
static const char *key_path(const struct rgate_cluster *c, uint32_t id)
{
	static char path[256];
	int err = rgate_cluster_key_path(c, id, path, sizeof(path));

	if (err == -ENOENT)
		return NULL;
	assert_int_equal(err, 0);
	return path;
}

static void gateway(void **state)
{
	struct rgate_cluster_node n = { .sz = sizeof(n) };
	struct rgate_cluster *c;

	(void)state;
	assert_int_equal(parse(&c, "provider local\nnode 0 compute /run/a\n"
			       "node 5 gateway /run/b\n" KEY(0) KEY(5)), 0);
	assert_int_equal(rgate_cluster_gateway(c, &n), 0);
	assert_true(n.id == 5 && n.role == RGATE_ROLE_GATEWAY);
	n.sz = 0;
	assert_int_equal(rgate_cluster_gateway(c, &n), -EINVAL);
	rgate_cluster_destroy(c);
}

static void whole(void **state)
{
	static const char text[] =
		"# ours\n"
		"provider verbs\t# RDMA\r\n"
		"\n"
		"  private-key /etc/k%i\n"
		"timeout 500\n"
		"node 2 compute 192.0.2.3:9 big\n"
		"node 0 gateway 192.0.2.1\n"
		"node 5 compute 192.0.2.6:80\n"
		"public-key 2 " K2 "\n" KEY(0) KEY(5)
		"node 4 compute 192.0.2.5\n"
		"public-key 4 " K4;
	struct rgate_cluster_node n = { .sz = sizeof(n) };
	char key[RGATE_KEY_TEXT];
	struct rgate_cluster *c;

	(void)state;
	assert_int_equal(parse(&c, text), 0);
	assert_int_equal(rgate_cluster_nodes(c), 4);
	assert_int_equal(rgate_cluster_provider(c), RGATE_PROVIDER_VERBS);
	assert_int_equal(rgate_cluster_timeout_ms(c), 500);
	assert_string_equal(key_path(c, 0), "/etc/k0");
	assert_string_equal(key_path(c, 5), "/etc/k5");
	assert_null(key_path(c, 3));
	assert_int_equal(rgate_cluster_node(c, 0, &n), 0);
	assert_true(n.id == 0 && n.role == RGATE_ROLE_GATEWAY && n.port == RGATE_CLUSTER_PORT);
	assert_string_equal(n.addr, "192.0.2.1");
	assert_string_equal(n.name, "node0");
	assert_int_equal(rgate_cluster_node(c, 1, &n), 0);
	assert_true(n.id == 2 && n.role == RGATE_ROLE_COMPUTE && n.port == 9);
	rgate_key_to_text(key, n.public_key);
	assert_string_equal(key, K2);
	assert_int_equal(rgate_cluster_node(c, 3, &n), 0);
	assert_true(n.id == 5 && n.port == 80);
	assert_string_equal(n.addr, "192.0.2.6");
	assert_int_equal(rgate_cluster_node(c, 4, &n), -ENOENT);
	assert_int_equal(rgate_cluster_find(c, "big", &n), 0);
	assert_int_equal(n.id, 2);
	assert_int_equal(rgate_cluster_find(c, "4", &n), 0);
	assert_string_equal(n.addr, "192.0.2.5");
	assert_int_equal(rgate_cluster_find(c, "192.0.2.1", &n), 0);
	assert_int_equal(n.id, 0);
	assert_int_equal(rgate_cluster_find(c, "1", &n), -ENOENT);
	assert_int_equal(rgate_cluster_find(c, "x", &n), -ENOENT);
	rgate_cluster_destroy(c);
	assert_int_equal(parse(&c, "provider local\nnode 0 gateway /run/a\n"
			       "node 1 compute /run/b\n" KEY(0) KEY(1)), 0);
	assert_int_equal(rgate_cluster_provider(c), RGATE_PROVIDER_LOCAL);
	assert_int_equal(rgate_cluster_timeout_ms(c), 3000);
	assert_string_equal(key_path(c, 1), "node1.key");
	rgate_cluster_destroy(c);
	rgate_cluster_destroy(NULL);
}

/* Of the forms that an address can have one is kept */
static void ipv6(void **state)
{
	static const char text[] =
		"provider verbs\n"
		"node 0 gateway 2001:db8::1\n"
		"node 1 compute [2001:DB8:0:0::0002]:80\n"
		"node 2 compute [2001:db8::2]\n" KEY(0) KEY(1) KEY(2);
	struct rgate_cluster_node n = { .sz = sizeof(n) };
	struct rgate_cluster *c;

	(void)state;
	assert_int_equal(parse(&c, text), 0);
	assert_int_equal(rgate_cluster_node(c, 1, &n), 0);
	assert_string_equal(n.addr, "2001:db8::2");
	assert_int_equal(n.port, 80);
	assert_int_equal(rgate_cluster_find(c, "2001:0db8::1", &n), 0);
	assert_int_equal(n.id, 0);
	assert_int_equal(n.port, RGATE_CLUSTER_PORT);
	assert_int_equal(rgate_cluster_find(c, "2001:db8::3", &n), -ENOENT);
	rgate_cluster_destroy(c);
}

#define P "provider verbs\n"
#define G "node 0 gateway 192.0.2.1\n"
#define N1 "node 1 compute 192.0.2.2\n"

static void mistakes(void **state)
{
	static const struct {
		const char *text;
		const char *says;
	} bad[] = {
		{ "", "F: no `provider" },
		{ P, "F: 0 nodes: a cluster has 2 to 8" },
		{ P G, "F: 1 node: a cluster has 2 to 8" },
		{ P "node 1 compute 192.0.2.1\nnode 2 compute 192.0.2.2",
		  "F: no node is the gateway" },
		{ P G "node 1 gateway 192.0.2.2", "F:3: nodes 0 and 1 are both gateways" },
		{ P G "node 0 compute 192.0.2.2", "F:3: node 0 is given twice" },
		{ P G "node 1 compute 192.0.2.1", "F:3: nodes 0 and 1 have the same address" },
		{ P G "node 1 compute 192.0.2.2 node0", "F:3: two nodes are named 'node0'" },
		{ P G "node 8 compute 192.0.2.2", "F:3: '8' is no id: 0 to 7" },
		{ P G "node -1 compute 192.0.2.2", "F:3: '-1' is no id" },
		{ P G "node 1x compute 192.0.2.2", "F:3: '1x' is no id" },
		{ P G "node 99999999999 compute 192.0.2.2", "is no id" },
		{ P G "node 1 worker 192.0.2.2", "F:3: 'worker' is no role" },
		{ P G "node 1 compute", "F:3: write `node ID" },
		{ P G "node 1 compute 192.0.2.2 a b", "F:3: write `node ID" },
		{ P G "node 1 compute 192.0.2.2 a b c d", "F:3: more than 6 words" },
		{ P G "node 1 compute 192.0.2", "is no address" },
		{ P "node 0 gateway 2001:db8::1\nnode 1 compute [2001:DB8:0::1]",
		  "F:3: nodes 0 and 1 have the same address" },
		{ P G "node 1 compute 2001:db8::1", "F:3: nodes 0 and 1 cannot reach each other" },
		{ P G "node 1 compute fe80::1", "F:3: 'fe80::1' is a link-local address" },
		{ P G "node 1 compute host:1", "is no address" },
		{ P G "node 1 compute [2001:db8::1", "is no address" },
		{ P G "node 1 compute [2001:db8::1]x", "is no address" },
		{ P G "node 1 compute 192.0.2.2:0", "'0' is no port" },
		{ P G "node 1 compute 192.0.2.2:65536", "'65536' is no port" },
		{ P G "node 1 compute 192.0.2.2:", "'' is no port" },
		{ P G "node 1 compute 192.0.2.2 77", "'77' is no name" },
		{ P G "node 1 compute 192.0.2.2 a123456789012345678901234567890b", "is no name" },
		{ G, "F:1: `provider` comes before" },
		{ P P, "F:2: the provider is given twice" },
		{ "provider smoke", "F:1: write `provider verbs`" },
		{ "provider", "F:1: write `provider verbs`" },
		{ P "key a", "F:2: there is no key for all nodes any more" },
		{ P "key a", "let `ringgate cluster keygen` make them" },
		{ P "private-key a\nprivate-key b", "F:3: the private key is given twice" },
		{ P "private-key", "F:2: write `private-key FILE`" },
		{ P "private-key a%n", "F:2: 'a%n': only %i is known" },
		{ P "private-key a%", "F:2: 'a%': only %i is known" },
		{ P G "public-key 0", "F:3: write `public-key ID BASE64`" },
		{ P G "public-key x " K2, "F:3: 'x' is no id" },
		{ P G "public-key 0 AAAA", "F:3: 'AAAA' is no public key" },
		{ P KEY(0) G, "F:2: node 0 has no line before this" },
		{ P G KEY(0) KEY(0), "F:4: the public key of node 0 is given twice" },
		{ P G N1 KEY(0) "public-key 1 0AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
		  "F:5: nodes 0 and 1 have the same public key" },
		{ P G N1 KEY(0),
		  "F: node 1 (node1) has no `public-key` line: `ringgate cluster keygen`" },
		{ P "timeout 99", "F:2: write `timeout MS`" },
		{ P "timeout 60001", "F:2: write `timeout MS`" },
		{ P "timeout 200\ntimeout 200", "F:3: the timeout is given twice" },
		{ P "nodes 4", "F:2: unknown word 'nodes'" },
		{ "provider local\nnode 0 gateway 192.0.2.1", "F:2: '192.0.2.1' is no path" },
	};
	struct rgate_cluster *c;
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(bad); i++) {
		assert_int_equal(parse(&c, bad[i].text), -EINVAL);
		if (!strstr(said, bad[i].says))
			fail_msg("'%s' is not in '%s'", bad[i].says, said);
	}
	assert_int_equal(rgate_cluster_parse(&c, NULL, "a\0b", 3), -EINVAL);
	assert_non_null(strstr(said, "cluster:1: the line has a NUL"));
}

/* The first and the last of each number, and the longest name, are well. */
static void limits(void **state)
{
	static const char *const good[] = {
		P G "node 7 compute 192.0.2.2\n" KEY(0) KEY(7) "timeout 100\n",
		P G "node 7 compute 192.0.2.2\n" KEY(0) KEY(7) "timeout 60000\n",
		P G "node 7 compute 192.0.2.2:1 a12345678901234567890123456789b\n" KEY(0) KEY(7),
		P G "node 7 compute 192.0.2.2:65535\n" KEY(0) KEY(7),
	};
	static const uint32_t timeouts[] = { 100, 60000, 3000, 3000 };
	static const uint16_t ports[] = { RGATE_CLUSTER_PORT, RGATE_CLUSTER_PORT, 1, 65535 };
	struct rgate_cluster_node n = { .sz = sizeof(n) };
	struct rgate_cluster *c;
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(good); i++) {
		assert_int_equal(parse(&c, good[i]), 0);
		assert_int_equal(rgate_cluster_timeout_ms(c), timeouts[i]);
		assert_int_equal(rgate_cluster_find(c, "7", &n), 0);
		assert_int_equal(n.port, ports[i]);
		rgate_cluster_destroy(c);
	}
	/* Ten digits are a number; nodes may share an address, not a port of it, too. */
	assert_int_equal(parse(&c, P G "node 1 compute 192.0.2.2 1234567890"), -EINVAL);
	assert_non_null(strstr(said, "'1234567890' is no name: up to 31 characters"));
	assert_int_equal(parse(&c, P G "node 1 compute 192.0.2.1:9\n" KEY(0) KEY(1)), 0);
	rgate_cluster_destroy(c);
}

static void long_lines(void **state)
{
	char text[2000], path[200];
	struct rgate_cluster *c;

	(void)state;
	memset(text, '#', sizeof(text));
	assert_int_equal(rgate_cluster_parse(&c, "F", text, sizeof(text)), -EINVAL);
	assert_non_null(strstr(said, "F:1: the line is longer than 511"));
	/* where it ends: at the end of the text, and before the next line */
	assert_int_equal(rgate_cluster_parse(&c, "F", text, 512), -EINVAL);
	assert_non_null(strstr(said, "F:1: the line is longer than 511"));
	assert_int_equal(rgate_cluster_parse(&c, "F", text, 511), -EINVAL);
	assert_non_null(strstr(said, "F: no `provider"));
	text[512] = '\n';
	assert_int_equal(rgate_cluster_parse(&c, "F", text, 513), -EINVAL);
	assert_non_null(strstr(said, "F:1: the line is longer than 511"));
	text[511] = '\n';
	assert_int_equal(rgate_cluster_parse(&c, "F", text, 512), -EINVAL);
	assert_non_null(strstr(said, "F: no `provider"));
	memset(path, 'a', sizeof(path));
	path[0] = '/';
	path[108] = '\0';
	snprintf(text, sizeof(text), "provider local\nnode 0 gateway %s\n", path);
	assert_int_equal(parse(&c, text), -EINVAL);
	path[107] = '\0';
	snprintf(text, sizeof(text), "provider local\nnode 0 gateway %s\n"
		 "node 1 compute /b\n" KEY(0) KEY(1), path);
	assert_int_equal(parse(&c, text), 0);
	rgate_cluster_destroy(c);
}

static void files(void **state)
{
	static const char good[] = P G N1 KEY(0) KEY(1);
	char path[] = "/tmp/ringgate-cluster-XXXXXX";
	int i, fd = mkstemp(path);
	struct rgate_cluster *c;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, good, sizeof(good) - 1), sizeof(good) - 1);
	assert_int_equal(rgate_cluster_load(&c, path), 0);
	rgate_cluster_destroy(c);
	setenv("RGATE_CLUSTER", path, 1);
	assert_int_equal(rgate_cluster_load(&c, NULL), 0);
	rgate_cluster_destroy(c);
	unsetenv("RGATE_CLUSTER");
	for (i = 0; i < 70; i++)
		assert_int_equal(write(fd, memset(said, '\n', 512), 512) * 2, 1024);
	assert_int_equal(rgate_cluster_load(&c, path), 0);
	rgate_cluster_destroy(c);
	for (i = 0; i < 70; i++)
		assert_int_equal(write(fd, memset(said, '\n', 512), 512) * 2, 1024);
	assert_int_equal(rgate_cluster_load(&c, path), -EFBIG);
	close(fd);
	unlink(path);
	assert_int_equal(rgate_cluster_load(&c, path), -ENOENT);
	assert_non_null(strstr(said, path));
	assert_int_equal(rgate_cluster_load(&c, "/"), -EISDIR);
}

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(path, 0600), 0);
}

/* Beside the file; a draft that has no public keys; the key must be the one of that node */
static void private_keys(void **state)
{
	char dir[] = "/tmp/ringgate-cluster-XXXXXX", path[64], want[64], text[512];
	char private[RGATE_KEY_TEXT], public[RGATE_KEY_TEXT];
	uint8_t key[RGATE_KEY_LEN], pub[RGATE_KEY_LEN], got[RGATE_KEY_LEN];
	struct rgate_cluster_node n = { .sz = sizeof(n) };
	struct rgate_cluster *c;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/c", dir);
	snprintf(want, sizeof(want), "%s/node1.key", dir);
	write_file(path, P G N1);
	assert_int_equal(parse(&c, ""), -EINVAL);
	assert_int_equal(rgate_cluster_load(&c, path), -EINVAL);
	assert_int_equal(rgate_cluster_load_draft(&c, path), 0);
	assert_int_equal(rgate_cluster_node(c, 1, &n), 0);
	assert_memory_equal(n.public_key, none, RGATE_KEY_LEN);
	assert_string_equal(key_path(c, 1), want);
	assert_int_equal(rgate_cluster_key_path(c, 1, text, strlen(want)), -ENAMETOOLONG);
	assert_int_equal(rgate_cluster_key_path(c, 1, text, strlen(want) + 1), 0);
	assert_int_equal(rgate_cluster_key_path(c, 1, text, 5), -ENAMETOOLONG);
	rgate_cluster_destroy(c);
	assert_int_equal(rgate_key_generate(key), 0);
	assert_int_equal(rgate_key_public(pub, key), 0);
	rgate_key_to_text(private, key);
	rgate_key_to_text(public, pub);
	snprintf(text, sizeof(text), P G N1 KEY(0) "public-key 1 %s\n", public);
	write_file(path, text);
	assert_int_equal(rgate_cluster_load(&c, path), 0);
	assert_int_equal(rgate_cluster_read_key(c, 1, got), -ENOENT);
	write_file(want, private);
	assert_int_equal(rgate_cluster_read_key(c, 1, got), 0);
	assert_memory_equal(got, key, RGATE_KEY_LEN);
	assert_int_equal(rgate_cluster_read_key(c, 2, got), -ENOENT);
	/* another one's; of who it is none of the text is told */
	assert_int_equal(rgate_key_generate(key), 0);
	rgate_key_to_text(private, key);
	write_file(want, private);
	assert_int_equal(rgate_cluster_read_key(c, 1, got), -EACCES);
	assert_non_null(strstr(said, "is not that of node 1 (node1)"));
	assert_null(strstr(said, private));
	assert_memory_equal(got, none, RGATE_KEY_LEN);
	unlink(want);
	unlink(path);
	rmdir(dir);
	rgate_cluster_destroy(c);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(whole), cmocka_unit_test(gateway),
	cmocka_unit_test(ipv6),
	cmocka_unit_test(mistakes),
	cmocka_unit_test(limits),
	cmocka_unit_test(long_lines),
	cmocka_unit_test(files),
	cmocka_unit_test(private_keys),
};

UNIT_MAIN_ALONE(tests)
