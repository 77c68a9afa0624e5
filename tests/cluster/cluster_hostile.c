// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * A member of the cluster that has the key and breaks the rules: writes to another node's
 * memory, at addresses and with keys that it was not given. They come from the standard
 * input, a line "ADDRESS RKEY" for each. Prints what became of them, and how often it
 * was connected.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <ringgate/ringgate.h>

#include "demo.h"

#define BYTES		64
#define CONNECT_MS	60000
#define WRITE_MS	30000

struct tally {
	unsigned int refused, written, other, connections;
};

static void write_one(struct rgate_peer *peer, const struct rgate_sge *from, uint64_t addr,
		      uint32_t rkey, struct tally *t)
{
	const struct rgate_remote at = {
		.addr = addr, .length = BYTES, .rkey = rkey, .access = RGATE_ACCESS_REMOTE_WRITE,
	};
	int err;

	/* A write that is refused ends the connection. */
	err = rgate_peer_wait_up(peer, CONNECT_MS);
	if (err)
		demo_die(err, "no connection");
	err = rgate_peer_write(peer, &at, 0, from, WRITE_MS);
	if (err == -EREMOTEIO)
		t->refused++;
	else if (!err)
		t->written++;
	else
		t->other++;
	if (err != -EREMOTEIO)
		printf("0x%" PRIx64 " with key 0x%x: %s\n", addr, rkey,
		       err ? strerror(-err) : "written");
}

static void write_all(struct rgate_node *node, struct rgate_peer *peer, struct tally *t)
{
	const struct rgate_buf *buf;
	struct rgate_peer_info info = { .sz = sizeof(info) };
	struct rgate_sge from;
	uint64_t addr;
	uint32_t rkey;
	char line[128];
	int err;

	err = rgate_pool_alloc(rgate_node_pool(node), BYTES, &buf);
	if (err)
		demo_die(err, "rgate_pool_alloc");
	memset(buf->addr, 0x66, BYTES);
	from = (struct rgate_sge){ buf->addr, BYTES, buf->lkey };
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "%" SCNx64 " %x", &addr, &rkey) != 2)
			demo_die(EINVAL, "%s", line);
		write_one(peer, &from, addr, rkey, t);
	}
	rgate_peer_info(peer, &info);
	t->connections = info.epoch;
	rgate_pool_free(rgate_node_pool(node), buf);
}

int main(int argc, char **argv)
{
	struct rgate_cluster_node self = { .sz = sizeof(self) }, to = { .sz = sizeof(to) };
	struct tally t = { .refused = 0 };
	struct rgate_cluster *cluster;
	struct rgate_node *node;
	struct rgate_peer *peer;
	int err;

	if (argc != 4) {
		fprintf(stderr, "usage: cluster_hostile CLUSTER_FILE NODE VICTIM\n");
		return 2;
	}
	err = rgate_cluster_load(&cluster, argv[1]);
	if (err)
		demo_die(err, "%s", argv[1]);
	if (rgate_cluster_find(cluster, argv[2], &self) ||
	    rgate_cluster_find(cluster, argv[3], &to))
		demo_die(ENOENT, "%s or %s", argv[2], argv[3]);
	err = rgate_node_create(&node, cluster, self.id, NULL);
	if (err)
		demo_die(err, "rgate_node_create");
	err = rgate_peer_open(&peer, node, to.id);
	if (err)
		demo_die(err, "rgate_peer_open");
	write_all(node, peer, &t);
	printf("refused %u written %u other %u connections %u\n", t.refused, t.written, t.other,
	       t.connections);
	rgate_peer_close(peer);
	rgate_node_destroy(node);
	rgate_cluster_destroy(cluster);
	return t.written || t.other;
}
