/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The private key of a node and what it shares with each of the others, in a page that
 * core dumps leave out and children of fork(2) find empty. Never changes once it is made.
 */
#ifndef RGATE_FABRIC_SECRET_H
#define RGATE_FABRIC_SECRET_H

#include <ringgate/rgate_cluster.h>

#include "noise.h"

struct rgate_secret;

/*
 * rgate_secret_create - of node @self with the private key @key, which is copied
 * -EACCES: the cluster's file has another public key for @self, or one for another node
 * that nobody can have (both are said); -ENOMEM; -EIO: libcrypto refuses
 */
int rgate_secret_create(struct rgate_secret **secret, const struct rgate_cluster *cluster,
			const struct rgate_cluster_node *self, const uint8_t key[RGATE_KEY_LEN]);
/* Wipes it; NULL is allowed */
void rgate_secret_destroy(struct rgate_secret *secret);

/* For handshakes with node @peer; valid as long as @secret and @peer */
struct rgate_noise_keys rgate_secret_keys(const struct rgate_secret *secret,
					  const struct rgate_cluster_node *peer);

/* Whether @key is the private key of @node: 0; -EACCES, and says so; -EIO */
int rgate_secret_check(const struct rgate_cluster_node *node, const uint8_t key[RGATE_KEY_LEN]);

#endif
