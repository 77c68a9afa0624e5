// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The programs of fabric.rst, block by block as they stand there (BLOCK_1 to BLOCK_4): this
 * process is node 1, a child node 0, which sends messages with pauses between them.
 */
#include <errno.h>
#include <ringgate/ringgate.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <unistd.h>

#define MESSAGES	4
#define AREA		16384

static struct rgate_cluster *cluster;
static struct rgate_node *node;
static struct rgate_peer *peer, *other, *self;
static const struct rgate_buf *buf;
static struct rgate_remote at;
static int taken;

static int done(const char *what, int err)
{
	if (err)
		fprintf(stderr, "%s: %s\n", what, rgate_strerror("rgate_peer_", err));
	else
		printf("%s\n", what);
	return err;
}

static int node_0(void)
{
	char text[32];
	int err, i;

	err = rgate_cluster_load(&cluster, NULL);
	if (!err)
		err = rgate_node_create(&node, cluster, 0, NULL);
	if (!err)
		err = rgate_peer_open(&peer, node, 1);
	if (!err)
		err = rgate_peer_wait_up(peer, 10000);
	for (i = 1; i <= MESSAGES && !err; i++) {
		/* as long as the other one takes to fall asleep */
		usleep(200000);
		err = rgate_peer_send(peer, text, (size_t)sprintf(text, "message %d", i), 10000);
	}
	pause();
	return !!err;
}

static int nodes(void)
{
	int err;

#include BLOCK_1
	return err;
}

static int memory(void)
{
	struct rgate_desc desc;
	struct rgate_msg msg;
	struct rgate_sge sge;
	int err;

	peer = self;
	memset(buf->addr, 0, AREA);
	memcpy((char *)buf->addr + 1024, "written", 8);
	sge = (struct rgate_sge){ (char *)buf->addr + 1024, 8, buf->lkey };
#include BLOCK_2
	err = rgate_peer_flush(peer, 1000);
	if (!err && strcmp((char *)buf->addr + 64, "written"))
		err = -EILSEQ;
	return err;
}

static int operations(void)
{
	struct rgate_sge bulk = { (char *)buf->addr + 1024, 4096, buf->lkey };
	struct rgate_sge word = { (char *)buf->addr + 1024, 8, buf->lkey };
	uint64_t ticket;
	int err;

	memset(bulk.addr, 0x5a, bulk.length);
	at.addr += 6144;
#include BLOCK_3
	if (!err)
		err = rgate_peer_flush(peer, 1000);
	if (!err && (memcmp(bulk.addr, (char *)buf->addr + 6144, 4096) ||
		     memcmp(word.addr, (char *)buf->addr + 6144 + 8192, 8)))
		err = -EILSEQ;
	return err;
}

static void take(const struct rgate_msg *msg, const char *text)
{
	char want[32];

	sprintf(want, "message %d", ++taken);
	if (msg->len != strlen(want) || memcmp(text, want, msg->len))
		exit(done("waiting: another message than was due", -EILSEQ));
	if (taken == MESSAGES) {
		done("Waiting", 0);
		exit(0);
	}
}

static void waiting(void)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int epfd = epoll_create1(EPOLL_CLOEXEC);
	struct rgate_msg msg;
	char buf[256];

	peer = other;
#include BLOCK_4
}

int main(void)
{
	const pid_t pid = fork();	/* before there is a node */
	int err;

	alarm(40);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		return node_0();
	}
	err = done("Nodes and peers", nodes());
	other = peer;
	if (!err)
		err = rgate_peer_open(&self, node, 1);
	if (!err)
		err = rgate_peer_wait_up(self, 10000);
	if (!err)
		err = rgate_pool_alloc(rgate_node_pool(node), AREA, &buf);
	if (!err)
		err = done("Memory", memory());
	if (!err)
		err = done("Operations", operations());
	if (!err)
		waiting();
	return 1;
}
