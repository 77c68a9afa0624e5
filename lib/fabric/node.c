// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "desc.h"
#include "log.h"
#include "node.h"
#include "opts.h"
#include "pool.h"
#include "thread.h"

#define DEFAULT_MSG_SIZE	1024
#define DEFAULT_MSG_DEPTH	128
#define DEFAULT_SEND_DEPTH	128
#define DEFAULT_SPIN_US		30
#define STAGE_REGION		(8UL << 20)
#define STAGE_MAX		(256UL << 20)

struct rgate_share {
	struct rgate_node *node;
	struct rgate_prov_share at;
	size_t len;
	uint32_t access;
};

static int in_range(uint32_t *to, uint32_t value, uint32_t fallback, uint32_t least,
		    uint32_t most, const char *what)
{
	*to = value ? value : fallback;
	if (*to >= least && *to <= most)
		return 0;
	rgate_err("%s is %u, and must be %u to %u", what, *to, least, most);
	return -EINVAL;
}

static int set_sizes(struct rgate_node *node, const struct rgate_node_opts *o)
{
	uint32_t timeout_ms, spin_us;
	int err;

	err = in_range(&node->msg_size, o->msg_size, DEFAULT_MSG_SIZE, 64, 65536, "msg_size");
	if (!err)
		err = in_range(&node->msg_depth, o->msg_depth, DEFAULT_MSG_DEPTH, 4, 4096,
			       "msg_depth");
	if (!err)
		err = in_range(&node->send_depth, o->send_depth, DEFAULT_SEND_DEPTH, 16, 16384,
			       "send_depth");
	if (!err)
		err = in_range(&timeout_ms, o->timeout_ms,
			       rgate_cluster_timeout_ms(node->cluster), 100, 60000, "timeout_ms");
	if (!err)
		err = in_range(&spin_us, o->spin_us, DEFAULT_SPIN_US, 1, 1000000, "spin_us");
	if (err)
		return err;
	node->timeout_ns = (uint64_t)timeout_ms * 1000000;
	node->spin_ns = (uint64_t)spin_us * 1000;
	return 0;
}

static int set_secret(struct rgate_node *node, const struct rgate_node_opts *o)
{
	uint8_t key[RGATE_KEY_LEN];
	int err = 0;

	if (o->key)
		memcpy(key, o->key, sizeof(key));
	else
		err = rgate_cluster_read_key(node->cluster, node->self.id, key);
	if (!err)
		err = rgate_secret_create(&node->secret, node->cluster, &node->self, key);
	OPENSSL_cleanse(key, sizeof(key));
	return err;
}

int rgate_node_find(const struct rgate_cluster *cluster, uint32_t id,
		    struct rgate_cluster_node *node)
{
	unsigned int i;

	node->sz = sizeof(*node);
	for (i = 0; i < rgate_cluster_nodes(cluster); i++)
		if (!rgate_cluster_node(cluster, i, node) && node->id == id)
			return 0;
	rgate_err("the cluster has no node %u", id);
	return -ENOENT;
}

/* Made when it is asked for, as most nodes lend nothing. */
static int set_readable(struct rgate_node *node, const struct rgate_node_opts *o)
{
	static const struct rgate_pool_opts usual = RGATE_OPTS(rgate_pool_opts,
		.name = "readable", .region_size = STAGE_REGION, .max_size = STAGE_MAX,
		.access = RGATE_ACCESS_REMOTE_READ);

	if (o->readable && o->readable->access != RGATE_ACCESS_REMOTE_READ)
		return -EINVAL;
	return rgate_opts_copy(&node->readable_opts, sizeof(node->readable_opts),
			       o->readable ? o->readable : &usual);
}

static int open_endpoint(struct rgate_node *node, const struct rgate_node_opts *o)
{
	struct rgate_pool_opts pool = RGATE_OPTS(rgate_pool_opts, .name = "node",
						 .access = RGATE_ACCESS_REMOTE);
	struct rgate_pool_opts stage = RGATE_OPTS(rgate_pool_opts, .name = "stage",
						  .region_size = STAGE_REGION,
						  .max_size = STAGE_MAX);
	const struct rgate_ep_opts ep = {
		.self = &node->self, .device = o->device,
		.listen = !(o->flags & RGATE_NODE_NO_LISTEN),
		.send_depth = node->send_depth, .recv_depth = node->msg_depth,
		.timeout_ms = (uint32_t)(node->timeout_ns / 1000000),
	};
	int err;

	if (o->stage && o->stage->access)
		return -EINVAL;
	err = set_readable(node, o);
	if (err)
		return err;
	node->prov = rgate_prov_find(rgate_cluster_provider(node->cluster));
	if (!node->prov)
		return -EPROTONOSUPPORT;
	err = node->prov->open(&node->ep, &ep);
	if (err)
		return err;
	node->dev = node->prov->device ? node->prov->device(node->ep) : NULL;
	err = rgate_pool_create(&node->pool, node->dev, o->pool ? o->pool : &pool);
	if (err)
		goto close_ep;
	err = rgate_pool_create(&node->stage, node->dev, o->stage ? o->stage : &stage);
	if (err)
		goto destroy_pool;
	err = node->prov->use_pool(node->ep, RGATE_PROV_POOL, node->pool);
	if (err)
		goto destroy_stage;
	return 0;

destroy_stage:
	rgate_pool_destroy(node->stage);
destroy_pool:
	rgate_pool_destroy(node->pool);
close_ep:
	node->prov->close(node->ep);
	return err;
}

static void close_endpoint(struct rgate_node *node)
{
	(void)node->prov->use_pool(node->ep, RGATE_PROV_POOL, NULL);
	(void)node->prov->use_pool(node->ep, RGATE_PROV_READABLE, NULL);
	rgate_pool_destroy(node->readable);
	rgate_pool_destroy(node->stage);
	rgate_pool_destroy(node->pool);
	node->prov->close(node->ep);
}

static int start_thread(struct rgate_node *node)
{
	int err = events_open(&node->ev);

	if (err)
		return err;
	err = events_add(&node->ev, node->prov->fd(node->ep), EPOLLIN, 0);
	if (!err)
		err = rgate_thread_start(&node->thread, NULL, rgate_node_main, node);
	if (err)
		events_close(&node->ev);
	return err;
}

int rgate_node_create(struct rgate_node **out, const struct rgate_cluster *cluster, uint32_t id,
		      const struct rgate_node_opts *user)
{
	struct rgate_node_opts opts;
	struct rgate_node *node;
	int err;

	if (!out || !cluster)
		return -EINVAL;
	err = rgate_opts_copy(&opts, sizeof(opts), user);
	if (!err && opts.flags & ~(uint32_t)RGATE_NODE_NO_LISTEN)
		err = -EINVAL;
	if (err)
		return err;
	node = calloc(1, sizeof(*node));
	if (!node)
		return -ENOMEM;
	node->cluster = cluster;
	node->users = 1;
	pthread_mutex_init(&node->lock, NULL);
	err = rgate_node_find(cluster, id, &node->self);
	if (!err)
		err = set_sizes(node, &opts);
	if (!err)
		err = set_secret(node, &opts);
	if (err)
		goto free_node;
	if (getrandom(&node->incarnation, sizeof(node->incarnation), 0) !=
	    sizeof(node->incarnation)) {
		err = -EIO;
		goto free_node;
	}
	err = open_endpoint(node, &opts);
	if (err)
		goto free_node;
	err = start_thread(node);
	if (err)
		goto close_endpoint;
	*out = node;
	return 0;

close_endpoint:
	close_endpoint(node);
free_node:
	rgate_secret_destroy(node->secret);
	pthread_mutex_destroy(&node->lock);
	free(node);
	return err;
}

void rgate_node_wake(struct rgate_node *node)
{
	events_wake(&node->ev);
}

void rgate_node_get(struct rgate_node *node)
{
	__atomic_add_fetch(&node->users, 1, __ATOMIC_RELAXED);
}

void rgate_node_put(struct rgate_node *node)
{
	if (__atomic_sub_fetch(&node->users, 1, __ATOMIC_ACQ_REL))
		return;
	/* Handshakes that somebody else began hold buffers for a moment: they end here. */
	__atomic_store_n(&node->stop, true, __ATOMIC_RELEASE);
	rgate_node_wake(node);
	pthread_join(node->thread, NULL);
	events_close(&node->ev);
	close_endpoint(node);
	rgate_secret_destroy(node->secret);
	pthread_mutex_destroy(&node->lock);
	free(node);
}

void rgate_node_destroy(struct rgate_node *node)
{
	struct rgate_node_stats s = { .sz = sizeof(s) };

	if (!node)
		return;
	(void)rgate_node_stats(node, &s);
	if (s.peers || s.shares)
		rgate_info("node %u goes on until %u peers and %u shares are closed",
			   node->self.id, s.peers, s.shares);
	rgate_node_put(node);
}

struct rgate_link_opts rgate_node_link_opts(const struct rgate_node *node,
					    struct rgate_peer *peer)
{
	return (struct rgate_link_opts){
		.prov = node->prov, .pool = node->pool, .stage = node->stage,
		.counts = peer->counts, .msg_size = node->msg_size, .msg_depth = node->msg_depth,
		.send_depth = node->send_depth,
	};
}

uint32_t rgate_node_id(const struct rgate_node *node)
{
	return node->self.id;
}

const struct rgate_cluster *rgate_node_cluster(const struct rgate_node *node)
{
	return node->cluster;
}

struct rgate_pool *rgate_node_pool(const struct rgate_node *node)
{
	return node->pool;
}

struct rgate_pool *rgate_node_stage(const struct rgate_node *node)
{
	return node->stage;
}

static int make_readable(struct rgate_node *node)
{
	struct rgate_pool *pool;
	int err;

	err = rgate_pool_create_keyed(&pool, node->dev, &node->readable_opts,
				      RGATE_PROV_READABLE_KEY);
	if (err)
		return err;
	err = node->prov->use_pool(node->ep, RGATE_PROV_READABLE, pool);
	if (err)
		rgate_pool_destroy(pool);
	else
		node->readable = pool;
	return err;
}

int rgate_node_readable(struct rgate_node *node, struct rgate_pool **pool)
{
	int err = 0;

	pthread_mutex_lock(&node->lock);
	if (!node->readable)
		err = make_readable(node);
	*pool = node->readable;
	pthread_mutex_unlock(&node->lock);
	return err;
}

struct rgate_device *rgate_node_device(const struct rgate_node *node)
{
	return node->dev;
}

uint64_t rgate_node_incarnation(const struct rgate_node *node)
{
	return node->incarnation;
}

static uint64_t used_buffers(const struct rgate_pool *pool)
{
	struct rgate_pool_stats stats = { .sz = sizeof(stats) };

	if (pool)
		rgate_pool_stats(pool, &stats);
	return stats.used_buffers;
}

/* What is in use of it, and whether it still works */
static void read_use(struct rgate_node *node, struct rgate_node_stats *s)
{
	const struct rgate_peer *peer;

	s->buffers = used_buffers(node->pool) + used_buffers(node->stage);
	s->shares = __atomic_load_n(&node->shares, __ATOMIC_RELAXED);
	pthread_mutex_lock(&node->lock);
	for (peer = node->peers; peer; peer = peer->next)
		s->peers++;
	s->buffers += used_buffers(node->readable);
	s->error = node->broken;
	pthread_mutex_unlock(&node->lock);
}

int rgate_node_stats(const struct rgate_node *node, struct rgate_node_stats *stats)
{
	struct rgate_node_stats s = {
		.sz = sizeof(s),
		.accepted = __atomic_load_n(&node->stats.accepted, __ATOMIC_RELAXED),
		.bad_key = __atomic_load_n(&node->stats.bad_key, __ATOMIC_RELAXED),
		.garbage = __atomic_load_n(&node->stats.garbage, __ATOMIC_RELAXED),
		.timeouts = __atomic_load_n(&node->stats.timeouts, __ATOMIC_RELAXED),
	};

	read_use((struct rgate_node *)node, &s);
	return rgate_info_copy(stats, &s, sizeof(s));
}

int rgate_share_create(struct rgate_share **out, struct rgate_node *node, void *addr, size_t len,
		       int fd, uint64_t fd_off, uint32_t access)
{
	struct rgate_share *share;
	int err;

	if (!addr || !len || access & ~(uint32_t)RGATE_ACCESS_ALL)
		return -EINVAL;
	share = calloc(1, sizeof(*share));
	if (!share)
		return -ENOMEM;
	share->node = node;
	share->len = len;
	share->access = access;
	/* The endpoint belongs to the node's thread. */
	pthread_mutex_lock(&node->lock);
	err = node->prov->share(node->ep, addr, len, fd, fd_off, access, &share->at);
	pthread_mutex_unlock(&node->lock);
	if (err) {
		free(share);
		return err;
	}
	__atomic_add_fetch(&node->shares, 1, __ATOMIC_RELAXED);
	rgate_node_get(node);
	*out = share;
	return 0;
}

void rgate_share_destroy(struct rgate_share *share)
{
	struct rgate_node *node;

	if (!share)
		return;
	node = share->node;
	pthread_mutex_lock(&node->lock);
	node->prov->unshare(node->ep, &share->at);
	pthread_mutex_unlock(&node->lock);
	__atomic_sub_fetch(&node->shares, 1, __ATOMIC_RELAXED);
	free(share);
	rgate_node_put(node);
}

bool rgate_node_bells(const struct rgate_node *node)
{
	return node->prov->bell;
}

int rgate_share_bell(struct rgate_share *share, int fd)
{
	struct rgate_node *node = share->node;
	int err;

	if (!node->prov->bell)
		return -EOPNOTSUPP;
	pthread_mutex_lock(&node->lock);
	err = node->prov->bell(node->ep, &share->at, fd);
	pthread_mutex_unlock(&node->lock);
	return err;
}

uint32_t rgate_share_lkey(const struct rgate_share *share)
{
	return share->at.lkey;
}

int rgate_share_desc(const struct rgate_share *share, size_t offset, size_t len,
		     struct rgate_desc *desc)
{
	if (!(share->access & RGATE_ACCESS_REMOTE))
		return -EACCES;
	if (!len || offset > share->len || len > share->len - offset)
		return -ERANGE;
	rgate_desc_fill(desc, share->at.rkey, share->at.addr + offset, len, share->access, 0);
	return 0;
}
