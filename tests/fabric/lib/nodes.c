// SPDX-License-Identifier: MIT OR GPL-2.0
#include "ended.h"
#include "nodes.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static const char *address(const char *list, unsigned int i, char *buf, size_t len)
{
	unsigned int n = 1;
	const char *p;

	for (p = list; *p; p++)
		n += *p == ',';
	for (p = list, i %= n; i; i--)
		p = strchr(p, ',') + 1;
	snprintf(buf, len, "%.*s", (int)strcspn(p, ","), p);
	return buf;
}

static void to_stderr(void *ctx, enum rgate_log_level level, const char *text)
{
	(void)ctx;
	(void)level;
	fprintf(stderr, "# %s\n", text);
}

/* As long as nothing takes; but a minute is the most that a node has for another. */
static uint32_t patient_ms(void)
{
	return MS < 60000 ? MS : 60000;
}

size_t cluster_text(const struct cluster *c, const char *key_path, char *text, size_t len)
{
	const char *addrs = getenv("RGATE_FABRIC_ADDRS");
	char one[64], base64[RGATE_KEY_TEXT];
	uint8_t public[RGATE_KEY_LEN];
	unsigned int i;
	size_t at;

	at = (size_t)snprintf(text, len, "provider %s\nprivate-key %s\n",
			      c->local ? "local" : "verbs", key_path);
	for (i = 0; i < c->n; i++) {
		at += (size_t)snprintf(text + at, len - at, "node %u %s ", i,
				       i ? "compute" : "gateway");
		if (c->local)
			at += (size_t)snprintf(text + at, len - at, "%s/%u\n", c->dir, i);
		else
			at += (size_t)snprintf(text + at, len - at, "%s:%u\n",
					       address(addrs, i, one, sizeof(one)), 7471 + i);
		unit_require(!rgate_key_public(public, c->keys[i]));
		rgate_key_to_text(base64, public);
		at += (size_t)snprintf(text + at, len - at, "public-key %u %s\n", i, base64);
		unit_require(at < len);
	}
	return at;
}

void cluster_make(struct cluster *c, unsigned int n, uint32_t timeout_ms)
{
	const char *provider = getenv("RGATE_FABRIC_PROVIDER");
	char text[2048];
	unsigned int i;
	size_t at;

	memset(c, 0, sizeof(*c));
	if (getenv("RGATE_TEST_LOG"))
		rgate_log_set(to_stderr, NULL);
	c->n = n;
	c->local = !provider || !strcmp(provider, "local");
	strcpy(c->dir, "/tmp/ringgate-test-XXXXXX");
	unit_require(mkdtemp(c->dir));
	for (i = 0; i < n; i++)
		unit_require(!rgate_key_generate(c->keys[i]));
	at = cluster_text(c, "/nowhere/%i", text, sizeof(text));
	unit_require(!rgate_cluster_parse(&c->conf, "test", text, at));
	c->opts = RGATE_OPTS(rgate_node_opts, .key = c->keys[0],
			     .timeout_ms = timeout_ms ? timeout_ms : patient_ms());
}

void cluster_free(struct cluster *c)
{
	char path[96];
	unsigned int i;

	for (i = 0; i < c->n; i++) {
		snprintf(path, sizeof(path), "%s/%u", c->dir, i);
		unlink(path);
		snprintf(path, sizeof(path), "%s/%u.lock", c->dir, i);
		unlink(path);
	}
	rmdir(c->dir);
	rgate_cluster_destroy(c->conf);
}

struct rgate_node *cluster_node(struct cluster *c, unsigned int id)
{
	struct rgate_pool_opts pool = RGATE_OPTS(rgate_pool_opts, .region_size = 8 << 20,
						 .access = RGATE_ACCESS_REMOTE,
						 .flags = RGATE_POOL_NO_HUGE);
	struct rgate_node *node;

	c->opts.pool = &pool;
	c->opts.key = c->keys[id];
	unit_require(!rgate_node_create(&node, c->conf, id, &c->opts));
	c->opts.pool = NULL;
	return node;
}

static void describe(struct rgate_node *node, const struct rgate_buf *buf,
		     struct rgate_remote *at)
{
	struct rgate_desc d;

	unit_require(!rgate_buf_desc(rgate_node_pool(node), buf, 0, 0, &d));
	unit_require(!rgate_desc_parse(at, &d, sizeof(d)));
}

void duo_up(struct duo *d, uint32_t timeout_ms)
{
	cluster_make(&d->c, 2, timeout_ms);
	duo_meet(d);
}

void duo_meet(struct duo *d)
{
	const struct rgate_alloc_opts zero = RGATE_OPTS(rgate_alloc_opts,
							.flags = RGATE_ALLOC_ZERO);
	unsigned int i;

	for (i = 0; i < 2; i++) {
		d->node[i] = cluster_node(&d->c, i);
		unit_require(!rgate_pool_alloc_opts(rgate_node_pool(d->node[i]), DUO_BYTES,
						    &zero, &d->buf[i]));
		describe(d->node[i], d->buf[i], &d->at[i]);
		unit_require(!rgate_peer_open(&d->peer[i], d->node[i], !i));
	}
	for (i = 0; i < 2; i++)
		assert_int_equal(rgate_peer_wait_up(d->peer[i], MS), 0);
}

void duo_down(struct duo *d)
{
	unsigned int i;

	for (i = 0; i < 2; i++) {
		rgate_peer_close(d->peer[i]);
		assert_int_equal(rgate_pool_free(rgate_node_pool(d->node[i]), d->buf[i]), 0);
	}
	for (i = 0; i < 2; i++)
		assert_int_equal(node_ended(d->node[i]), 0);
	cluster_free(&d->c);
}

struct rgate_sge duo_sge(const struct duo *d, unsigned int i, size_t off, size_t len)
{
	return (struct rgate_sge){ (char *)d->buf[i]->addr + off, (uint32_t)len,
				   d->buf[i]->lkey };
}

void nodes_nap(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
}

uint32_t peer_state(struct rgate_peer *peer)
{
	struct rgate_peer_info info = { .sz = sizeof(info) };

	assert_int_equal(rgate_peer_info(peer, &info), 0);
	return info.state;
}

unsigned int open_files(void)
{
	return unit_entries("/proc/self/fd");
}

unsigned long rdma_objects(const struct cluster *c, const char *device)
{
	char word[64], command[128];
	unsigned long n = 0, v;
	FILE *f;

	if (c->local)
		return 0;
	snprintf(command, sizeof(command), "rdma resource show %s", device ? device : "");
	f = popen(command, "r");
	assert_non_null(f);
	while (fscanf(f, "%63s", word) == 1)
		if (sscanf(word, "%lu", &v) == 1 && !strchr(word, ':'))
			n += v;
	pclose(f);
	return n;
}

int nodes_memfd(size_t len, void **at)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	unit_require(fd >= 0 && !ftruncate(fd, (off_t)len));
	unit_require(!fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW));
	*at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	unit_require(*at != MAP_FAILED);
	return fd;
}
