// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Two nodes: one lends memory, the other writes into it, counts in it, and says so.
 *
 *	fabric			both here, over shared memory
 *	fabric FILE ID		node ID of the cluster that FILE describes
 *
 * Node 0 lends. The other one may run on another machine, with the same file.
 */
#include <ringgate/ringgate.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE 10000 /* ms */

static uint8_t keys[2][RGATE_KEY_LEN];	/* private ones, where both are here */

static void on_log(void *ctx, enum rgate_log_level level, const char *msg)
{
	(void)ctx;
	if (level <= RGATE_LOG_WARN)
		fprintf(stderr, "%s\n", msg);
}

/* Node 0: a descriptor goes to the peer, and then there is nothing left to do. */
static int lend(struct rgate_node *node, struct rgate_peer *peer)
{
	struct rgate_pool *pool = rgate_node_pool(node);
	const struct rgate_buf *buf;
	struct rgate_desc desc;
	struct rgate_msg msg;
	char text[64];
	int err;

	err = rgate_pool_alloc(pool, 4096, &buf);
	if (err)
		return err;
	memset(buf->addr, 0, buf->length);
	err = rgate_buf_desc(pool, buf, 0, 0, &desc);
	if (!err)
		err = rgate_peer_send(peer, &desc, sizeof(desc), PATIENCE);
	/* The notice comes after the bytes of its write. */
	if (!err)
		err = rgate_peer_recv(peer, &msg, text, sizeof(text), PATIENCE);
	if (!err && msg.has_imm)
		printf("node 0: notice %u, and in memory: %s\n", msg.imm, (char *)buf->addr + 64);
	if (!err)
		err = rgate_peer_recv(peer, &msg, text, sizeof(text), PATIENCE);
	if (!err)
		printf("node 0: message: %.*s; counted to %llu\n", (int)msg.len, text,
		       (unsigned long long)*(uint64_t *)buf->addr);
	rgate_pool_free(pool, buf);
	return err;
}

/* Several operations at once, then their ticket */
static int write_text(struct rgate_peer *peer, const struct rgate_remote *at,
		      const struct rgate_buf *buf)
{
	const size_t len = (size_t)snprintf(buf->addr, buf->length, "written by the other one");
	const struct rgate_sge sge = { buf->addr, (uint32_t)len + 1, buf->lkey };
	const struct rgate_op ops[] = {
		{ .kind = RGATE_OP_WRITE_IMM, .nsge = 1, .sge = &sge, .remote = at->addr + 64,
		  .rkey = at->rkey, .imm = 42 },
		{ .kind = RGATE_OP_FLUSH },
	};
	uint64_t ticket;
	int err;

	err = rgate_peer_post(peer, ops, 2, &ticket);
	return err ? err : rgate_peer_finish(peer, ticket, PATIENCE);
}

static int use(struct rgate_node *node, struct rgate_peer *peer)
{
	struct rgate_pool *pool = rgate_node_pool(node);
	const struct rgate_buf *buf;
	struct rgate_remote at;
	struct rgate_desc desc;
	struct rgate_msg msg;
	uint64_t old;
	int err, i;

	err = rgate_peer_recv(peer, &msg, &desc, sizeof(desc), PATIENCE);
	if (!err)
		err = rgate_desc_parse(&at, &desc, msg.len);
	if (!err)
		err = rgate_pool_alloc(pool, 64, &buf);
	if (err)
		return err;
	err = write_text(peer, &at, buf);
	for (i = 0; i < 3 && !err; i++)
		err = rgate_peer_fetch_add(peer, &at, 0, 1, &old, PATIENCE);
	if (!err)
		printf("node 1: the counter was %llu\n", (unsigned long long)old);
	if (!err)
		err = rgate_peer_send(peer, "done", 4, PATIENCE);
	rgate_pool_free(pool, buf);
	return err;
}

static int be(const struct rgate_cluster *cluster, uint32_t id, const uint8_t *key)
{
	const struct rgate_pool_opts pool = RGATE_OPTS(rgate_pool_opts, .region_size = 8 << 20,
						       .access = RGATE_ACCESS_REMOTE);
	const struct rgate_node_opts opts = RGATE_OPTS(rgate_node_opts, .pool = &pool,
						       .key = key);
	struct rgate_failure f = { .sz = sizeof(f) };
	struct rgate_peer *peer = NULL;
	struct rgate_node *node;
	int err;

	err = rgate_node_create(&node, cluster, id, &opts);
	if (err)
		return err;
	err = rgate_peer_open(&peer, node, !id);
	if (!err)
		err = rgate_peer_wait_up(peer, PATIENCE);
	if (!err)
		err = id ? use(node, peer) : lend(node, peer);
	if (err && peer && !rgate_peer_failure(peer, &f) && f.epoch)
		fprintf(stderr, "node %u: %s failed, and %s\n", id, rgate_op_name(f.kind),
			f.outcome == RGATE_OUTCOME_NOT_DONE ? "did nothing" : "may have been done");
	/* What was sent and is done reaches the other one, though this one leaves. */
	rgate_peer_close(peer);
	rgate_node_destroy(node);
	if (err)
		fprintf(stderr, "node %u: %s\n", id, rgate_strerror("rgate_node_create", err));
	return err;
}

/* The keys of both, for this once, and a cluster of them in @dir */
static int make_cluster(struct rgate_cluster **cluster, const char *dir)
{
	char text[512], base64[2][RGATE_KEY_TEXT];
	uint8_t public[RGATE_KEY_LEN];
	int i, n;

	for (i = 0; i < 2; i++) {
		if (rgate_key_generate(keys[i]) || rgate_key_public(public, keys[i]))
			return 1;
		rgate_key_to_text(base64[i], public);
	}
	n = snprintf(text, sizeof(text), "provider local\n"
		     "node 0 gateway %s/0\npublic-key 0 %s\n"
		     "node 1 compute %s/1\npublic-key 1 %s\n", dir, base64[0], dir, base64[1]);
	return rgate_cluster_parse(cluster, "example", text, (size_t)n);
}

static int both_here(void)
{
	char dir[] = "/tmp/ringgate-example-XXXXXX", path[64];
	struct rgate_cluster *cluster;
	int err, status = 1, i;
	pid_t pid;

	if (!mkdtemp(dir))
		return 1;
	err = make_cluster(&cluster, dir);
	if (err)
		return 1;
	pid = fork();		/* before there is a node */
	if (!pid)
		exit(!!be(cluster, 1, keys[1]));
	if (pid > 0) {
		err = be(cluster, 0, keys[0]);
		waitpid(pid, &status, 0);
	}
	rgate_cluster_destroy(cluster);
	for (i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%d.lock", dir, i);
		unlink(path);
	}
	rmdir(dir);
	return err || status;
}

int main(int argc, char **argv)
{
	struct rgate_cluster *cluster;
	int err;

	rgate_log_set(on_log, NULL);
	if (argc == 1)
		return both_here();
	if (argc != 3)
		return 2;
	err = rgate_cluster_load(&cluster, argv[1]);
	if (err)
		return 1;
	/* the private key is read from the file that the cluster file names */
	err = be(cluster, (uint32_t)atoi(argv[2]), NULL);
	rgate_cluster_destroy(cluster);
	return err ? 1 : 0;
}
