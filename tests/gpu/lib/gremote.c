// SPDX-License-Identifier: MIT OR GPL-2.0
#include "gremote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <ringgate/rgate_gateway.h>

#define LIMIT_S		100	/* of the other process */
#define WAIT_MS		20000

/* In the other process, which has no test to fail: its end is seen here */
#define must(c) \
	do { \
		if (!(c)) { \
			fprintf(stderr, "# gateway: %s failed\n", #c); \
			_exit(1); \
		} \
	} while (0)

static void nap(void)
{
	struct timespec ts = { .tv_nsec = 1000000 };

	nanosleep(&ts, NULL);
}

static bool all(int fd, void *p, size_t len, bool out)
{
	char *at = p;

	while (len) {
		ssize_t n = out ? write(fd, at, len) : read(fd, at, len);

		if (n <= 0)
			return false;
		at += n;
		len -= (size_t)n;
	}
	return true;
}

static void remove_files(const struct g_remote *r)
{
	static const char *const names[] = { "0", "0.lock", "1", "1.lock" };
	char path[64];
	unsigned int i;

	for (i = 0; i < 4; i++) {
		snprintf(path, sizeof(path), "%s/%s", r->dir, names[i]);
		unlink(path);
	}
	rmdir(r->dir);
}

static bool join_cluster(struct g_remote *r, uint32_t id, struct rgate_node **node,
			 struct rgate_hub **hub)
{
	struct rgate_pool_opts pool = RGATE_OPTS(rgate_pool_opts, .region_size = 8 << 20,
						 .access = RGATE_ACCESS_REMOTE,
						 .flags = RGATE_POOL_NO_HUGE);
	struct rgate_node_opts o = RGATE_OPTS(rgate_node_opts, .key = r->key[id],
					      .timeout_ms = WAIT_MS, .pool = &pool,
					      .send_depth = 1024);
	char text[512], public[2][RGATE_KEY_TEXT];
	uint8_t raw[RGATE_KEY_LEN];
	unsigned int i;
	int n;

	for (i = 0; i < 2; i++) {
		/* of no use to anybody, and the same in both processes */
		memset(r->key[i], 'a' + (int)i, RGATE_KEY_LEN);
		must(!rgate_key_public(raw, r->key[i]));
		rgate_key_to_text(public[i], raw);
	}
	n = snprintf(text, sizeof(text), "provider local\n"
		     "node 0 gateway %s/0\nnode 1 compute %s/1\n"
		     "public-key 0 %s\npublic-key 1 %s\n", r->dir, r->dir, public[0], public[1]);
	return (r->conf || !rgate_cluster_parse(&r->conf, "test", text, (size_t)n)) &&
	       !rgate_node_create(node, r->conf, id, &o) && !rgate_hub_create(hub, *node, NULL);
}

static bool open_ring(struct g_remote *r)
{
	struct rgate_ring_opts o = RGATE_OPTS(rgate_ring_opts, .slots = r->slots,
					      .slot_size = r->slot_size, .name = "r");

	return join_cluster(r, 1, &r->node, &r->hub) && !rgate_inlet_create(&r->inlet, r->hub) &&
	       !rgate_inlet_add(r->inlet, &r->feed.ring, &o, &r->number);
}

/* What is in the ring was taken, or will be: its consumers hold handles of their own. */
static bool close_ring(struct g_remote *r)
{
	const bool ok = !rgate_inlet_remove(r->inlet, r->number);

	rgate_inlet_destroy(r->inlet);
	rgate_hub_destroy(r->hub);
	rgate_node_destroy(r->node);
	return ok;
}

/* The gateway writes all of @f's ring to node 1 */
static void feed_all(struct rgate_gateway *gw, struct g_feed *f)
{
	struct rgate_gateway_ring ring = { .sz = sizeof(ring) };
	struct rgate_gateway_node node = { .sz = sizeof(node) };
	uint64_t end = g_now_ns() + WAIT_MS * 1000000ULL;

	must(!rgate_gateway_add(gw, f->ring));
	while (rgate_gateway_ring(gw, 0, &ring)) {
		must(g_now_ns() < end);
		nap();
	}
	g_feed_start(f);
	g_feed_join(f);
	end = g_now_ns() + WAIT_MS * 1000000ULL;
	do {
		must(!rgate_gateway_node(gw, 1, &node) && g_now_ns() < end);
		nap();
	} while (node.frames < f->total);
}

static void gateway_main(struct g_remote *r)
{
	struct g_feed f = r->feed;
	struct rgate_gateway *gw;
	struct rgate_node *node;
	struct rgate_hub *hub;
	char byte;

	if (!all(r->sock, &byte, 1, false)) {
		remove_files(r);	/* nobody wants it */
		_exit(0);
	}
	f.ring = g_ring(r->slots, r->slot_size, RGATE_RING_CHAIN);
	f.keep = true;
	must(join_cluster(r, 0, &node, &hub) && !rgate_gateway_create(&gw, hub, NULL));
	if (!r->here) {
		must(open_ring(r));
		must(!rgate_ring_send(r->feed.ring, r->sock));
		/* whoever consumes is the one that it was sent to */
		rgate_ring_close(r->feed.ring);
	}
	feed_all(gw, &f);
	must(all(r->sock, &f.seed, sizeof(f.seed), true));
	must(all(r->sock, &f.bytes, sizeof(f.bytes), true));
	must(all(r->sock, f.digest, f.total * sizeof(*f.digest), true));
	must(all(r->sock, &byte, 1, false));
	if (!r->here)
		must(close_ring(r));
	must(all(r->sock, &byte, 1, true));
	must(all(r->sock, &byte, 1, false));
	rgate_gateway_destroy(gw);
	rgate_hub_destroy(hub);
	rgate_node_destroy(node);
	_exit(0);
}

void g_remote_fork(struct g_remote *r)
{
	int sv[2];

	strcpy(r->dir, "/tmp/ringgate-gpu-XXXXXX");
	r->pid = -1;
	if (!mkdtemp(r->dir) || socketpair(AF_UNIX, SOCK_STREAM, 0, sv))
		return;
	r->pid = fork();
	r->sock = sv[!!r->pid];
	if (r->pid == 0) {
		close(sv[1]);
		alarm(LIMIT_S);
		gateway_main(r);
	}
	close(sv[0]);
}

void g_remote_open(struct g_remote *r)
{
	char byte = 0;

	g_require(r->pid > 0 && all(r->sock, &byte, 1, true));
	if (r->here)
		g_require(open_ring(r));
	else
		g_require(!rgate_ring_recv(&r->feed.ring, r->sock));
}

void g_remote_join(struct g_remote *r)
{
	struct g_feed *f = &r->feed;

	f->digest = calloc(f->total, sizeof(*f->digest));
	g_require(f->digest && all(r->sock, &f->seed, sizeof(f->seed), false) &&
		  all(r->sock, &f->bytes, sizeof(f->bytes), false) &&
		  all(r->sock, f->digest, f->total * sizeof(*f->digest), false));
	f->published = f->total;
}

void g_remote_end(struct g_remote *r)
{
	char byte = 0;

	g_require(all(r->sock, &byte, 1, true) && all(r->sock, &byte, 1, false));
	if (r->here)
		g_require(close_ring(r));
}

void g_remote_free(struct g_remote *r)
{
	int status = -1;
	char byte = 0;

	g_require(all(r->sock, &byte, 1, true));
	close(r->sock);
	g_require(waitpid(r->pid, &status, 0) == r->pid && !status);
	rgate_ring_close(r->feed.ring);
	rgate_cluster_destroy(r->conf);
	remove_files(r);
	g_feed_free(&r->feed);
}
