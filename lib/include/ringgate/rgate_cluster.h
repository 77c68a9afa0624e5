/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Which nodes there are: a small text file that a person writes, the same on every
 * node. Documentation/cluster.rst describes it.
 *
 *	provider verbs				# or: local
 *	private-key node%i.key			# this node's own, mode 0600; %i is its id
 *	timeout  3000				# ms without a sign of life
 *	node 0 gateway 192.0.2.1:7471 rack1	# id role address[:port] [name]
 *	public-key 0 0oowznREqfP7GA4miE6/52TFHfY/e55WKlPnWEgphUM=
 *	node 1 compute 192.0.2.2
 *	public-key 1 57Gi9GQrMTeu1EHfXx5fDb01GeSczxjIP5e7Ugm0E3Q=
 *
 * A struct rgate_cluster never changes once it is made; any thread may read it.
 */
#ifndef RINGGATE_RGATE_CLUSTER_H
#define RINGGATE_RGATE_CLUSTER_H

#include <ringgate/rgate_key.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RGATE_NODES_MAX		8
#define RGATE_CLUSTER_PORT	7471

struct rgate_cluster;

enum rgate_role {
	RGATE_ROLE_GATEWAY = 1,		/* does the network for the others; exactly one */
	RGATE_ROLE_COMPUTE = 2,
};

enum rgate_provider {
	RGATE_PROVIDER_VERBS = 1,	/* RDMA */
	RGATE_PROVIDER_LOCAL = 2,	/* processes of one machine */
};

struct rgate_cluster_node {
	size_t sz;
	uint32_t id;			/* 0 to RGATE_NODES_MAX - 1 */
	uint32_t role;			/* enum rgate_role */
	char name[32];			/* "node0" unless the file says */
	char addr[108];			/* IPv4 or IPv6; local: path of a UNIX socket */
	uint16_t port;			/* local: 0 */
	uint8_t public_key[RGATE_KEY_LEN];
};

/*
 * rgate_cluster_load - reads the file
 * @cluster: out; for rgate_cluster_destroy()
 * @path: NULL: environment RGATE_CLUSTER, else /etc/ringgate/cluster.conf
 * -EINVAL: malformed: the log says FILE:LINE and what is wrong; -ENOENT, -EACCES, ...:
 * cannot be read; -EFBIG: larger than 64 KiB. The private key is not read here.
 */
RGATE_API int rgate_cluster_load(struct rgate_cluster **cluster, const char *path);

/*
 * rgate_cluster_load_draft - the same for who writes the file: public keys may be missing yet
 * They are all zeros then, and no node can be made of it. Thread-safe.
 */
RGATE_API int rgate_cluster_load_draft(struct rgate_cluster **cluster, const char *path);

/*
 * rgate_cluster_parse - the same from memory
 * @name: for messages; a relative path of the private key is taken as it stands
 */
RGATE_API int rgate_cluster_parse(struct rgate_cluster **cluster, const char *name,
				  const char *text, size_t len);

/* rgate_cluster_destroy - NULL is allowed; not before the nodes made of it are destroyed */
RGATE_API void rgate_cluster_destroy(struct rgate_cluster *cluster);

/* How many there are: 2 to RGATE_NODES_MAX */
RGATE_API unsigned int rgate_cluster_nodes(const struct rgate_cluster *cluster);
/* rgate_cluster_node - the @i-th, in order of ids; @node->sz is set by the caller.
 * -ENOENT: there are fewer */
RGATE_API int rgate_cluster_node(const struct rgate_cluster *cluster, unsigned int i,
				 struct rgate_cluster_node *node);
/* rgate_cluster_find - by name, by number or by address; -ENOENT */
RGATE_API int rgate_cluster_find(const struct rgate_cluster *cluster, const char *what,
				 struct rgate_cluster_node *node);
/* rgate_cluster_gateway - the one that every cluster has; -EINVAL: @node->sz */
RGATE_API int rgate_cluster_gateway(const struct rgate_cluster *cluster,
				    struct rgate_cluster_node *node);
/* enum rgate_provider */
RGATE_API uint32_t rgate_cluster_provider(const struct rgate_cluster *cluster);
/*
 * rgate_cluster_key_path - where node @id has its private key, by what the file says
 * @path: out, @len bytes of room: beside the cluster file unless it is absolute
 * Return: 0; -ENOENT: the cluster has no such node; -ENAMETOOLONG. Thread-safe.
 */
RGATE_API int rgate_cluster_key_path(const struct rgate_cluster *cluster, uint32_t id, char *path,
				     size_t len);
/*
 * rgate_cluster_read_key - for struct rgate_node_opts, where the node is created by who may
 * not read it any more; that reads it itself otherwise
 * @key: out: the private key of node @id; who calls wipes it after use
 * Return: 0; -EACCES: others may read it, or it is not the key that belongs to the node's
 * public key; and as rgate_key_load(), rgate_cluster_key_path(). The log says why.
 * Thread-safe.
 */
RGATE_API int rgate_cluster_read_key(const struct rgate_cluster *cluster, uint32_t id,
				     uint8_t key[RGATE_KEY_LEN]);
RGATE_API uint32_t rgate_cluster_timeout_ms(const struct rgate_cluster *cluster);

#ifdef __cplusplus
}
#endif
#endif
