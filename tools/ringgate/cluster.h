/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* ringgate cluster: its parts that need no daemon, only the cluster file and keys. */
#ifndef CLUSTER_H
#define CLUSTER_H

#include <limits.h>
#include <stdbool.h>

#include <ringgate/rgate_cluster.h>

/* As cmd_cluster(): argv[0] is "ringgate cluster NAME" */
int cluster_keygen(int argc, char **argv);
int cluster_pubkey(int argc, char **argv);
int cluster_show(int argc, char **argv);

/* The file that rgate_cluster_load() takes for @path, which may be NULL */
const char *cluster_path(const char *path);

/* Reads it, also where nodes still lack their public keys. EXIT_OK, or a message */
int cluster_load(struct rgate_cluster **cluster, const char *path);

/* The file has its public key */
bool cluster_has_key(const struct rgate_cluster_node *node);

/*
 * cluster_self - which node is meant
 * @name: a name, a number or an address; NULL: what the environment's RGATE_NODE says,
 *	else the one whose address this machine has
 * -ENOENT: none, or more than one
 */
int cluster_self(const struct rgate_cluster *cluster, const char *name,
		 struct rgate_cluster_node *node);

#endif
