// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Two nodes over shared memory: one has tasks, the other one claims and does them, without a
 * daemon.
 */
#include <errno.h>
#include <ringgate/ringgate.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE 10000 /* ms */
#define TASKS 100

static uint8_t keys[2][RGATE_KEY_LEN];	/* private ones */

/* Node 0: has the tasks, and takes the results */
static int give(struct rgate_node *node, struct rgate_peer *peer)
{
	struct rgate_shard_taken taken[RGATE_SHARD_MANY];
	char results[RGATE_SHARD_MANY * 48];
	struct rgate_shard *shard;
	unsigned long done = 0, sum = 0, number = 0;
	struct rgate_peer *self;
	struct rgate_desc desc;
	int err, i, n;

	err = rgate_peer_open(&self, node, rgate_node_id(node));
	if (err)
		return err;
	err = rgate_shard_create(&shard, self, NULL);
	if (err)
		goto close_self;
	rgate_shard_admit(shard, peer);
	rgate_shard_desc(shard, &desc);
	err = rgate_peer_send(peer, &desc, sizeof(desc), PATIENCE);
	while (!err && done < TASKS) {
		const struct rgate_shard_task task = { .data = &number, .len = sizeof(number) };

		if (number < TASKS && rgate_shard_submit(shard, &task, 1, NULL) == 1)
			number++;
		/* lets nodes in, and ends the claims of who is gone */
		rgate_shard_step(shard);
		n = rgate_shard_take(shard, taken, RGATE_SHARD_MANY, results);
		for (i = 0; i < n; i++, done++)
			sum += *(unsigned long *)taken[i].data;
	}
	if (!err)
		printf("%lu results: %lu\n", done, sum);
	err = err ? err : rgate_peer_send(peer, "end", 3, PATIENCE);
	rgate_shard_destroy(shard);
close_self:
	rgate_peer_close(self);
	return err;
}

/* Node 1: each result is the square of the number */
static int work(struct rgate_peer *peer)
{
	unsigned long numbers[RGATE_SHARD_MANY];
	struct rgate_shard_claim claims[RGATE_SHARD_MANY];
	struct rgate_shard_result results[RGATE_SHARD_MANY];
	char buf[RGATE_SHARD_MANY * 48];
	struct rgate_shard *shard;
	struct rgate_desc desc;
	struct rgate_msg msg;
	int err, i, n;

	err = rgate_peer_recv(peer, &msg, &desc, sizeof(desc), PATIENCE);
	if (!err)
		err = rgate_shard_open(&shard, peer, &desc, NULL);
	if (err)
		return err;
	while (rgate_peer_recv(peer, &msg, NULL, 0, 0) == -EAGAIN) {
		n = rgate_shard_claim(shard, claims, RGATE_SHARD_MANY, buf);
		for (i = 0; i < n; i++) {
			numbers[i] = *(unsigned long *)claims[i].data;
			numbers[i] *= numbers[i];
			results[i] = (struct rgate_shard_result){
				.claim = &claims[i], .data = &numbers[i], .len = sizeof(numbers[i]),
			};
		}
		if (n > 0)
			rgate_shard_complete(shard, results, n);
		else
			usleep(1000);
	}
	rgate_shard_close(shard);
	return 0;
}

static int be(const struct rgate_cluster *cluster, uint32_t id)
{
	const struct rgate_pool_opts pool = RGATE_OPTS(rgate_pool_opts, .region_size = 8 << 20,
						       .access = RGATE_ACCESS_REMOTE);
	const struct rgate_node_opts opts = RGATE_OPTS(rgate_node_opts, .pool = &pool,
						       .key = keys[id]);
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
		err = id ? work(peer) : give(node, peer);
	rgate_peer_close(peer);
	rgate_node_destroy(node);
	if (err)
		fprintf(stderr, "node %u: %s\n", id, rgate_strerror("rgate_peer_", err));
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

int main(void)
{
	char dir[] = "/tmp/ringgate-example-XXXXXX", path[64];
	struct rgate_cluster *cluster;
	int err, status = 1, i;
	pid_t pid;

	if (!mkdtemp(dir) || make_cluster(&cluster, dir))
		return 1;
	pid = fork();		/* before there is a node */
	if (!pid)
		exit(!!be(cluster, 1));
	err = pid < 0 ? 1 : be(cluster, 0);
	if (pid > 0)
		waitpid(pid, &status, 0);
	rgate_cluster_destroy(cluster);
	for (i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%d.lock", dir, i);
		unlink(path);
	}
	rmdir(dir);
	return err || status;
}
