// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <openssl/crypto.h>
#include <string.h>
#include <sys/mman.h>

#include "log.h"
#include "secret.h"

struct rgate_secret {
	uint8_t key[RGATE_KEY_LEN];
	uint8_t public[RGATE_KEY_LEN];
	uint8_t shared[RGATE_NODES_MAX][RGATE_KEY_LEN];	/* by id */
};

int rgate_secret_check(const struct rgate_cluster_node *node, const uint8_t key[RGATE_KEY_LEN])
{
	uint8_t public[RGATE_KEY_LEN];
	int err = rgate_key_public(public, key);

	if (err || !memcmp(public, node->public_key, sizeof(public)))
		return err;
	rgate_err("the private key is not that of node %u (%s): the cluster file has another public key for it; see `ringgate cluster keygen`",
		  node->id, node->name);
	return -EACCES;
}

static int share(struct rgate_secret *s, const struct rgate_cluster *cluster,
		 const struct rgate_cluster_node *self)
{
	struct rgate_cluster_node n = { .sz = sizeof(n) };
	unsigned int i;
	int err = 0;

	for (i = 0; !err && !rgate_cluster_node(cluster, i, &n); i++) {
		if (n.id == self->id)
			continue;
		err = rgate_noise_dh(s->shared[n.id], s->key, s->public, n.public_key);
		if (err == -EACCES)
			rgate_err("the public key of node %u (%s) is none that a node can have: make it anew by `ringgate cluster keygen`",
				  n.id, n.name);
	}
	return err;
}

int rgate_secret_create(struct rgate_secret **out, const struct rgate_cluster *cluster,
			const struct rgate_cluster_node *self, const uint8_t key[RGATE_KEY_LEN])
{
	struct rgate_secret *s;
	int err;

	err = rgate_secret_check(self, key);
	if (err)
		return err;
	s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (s == MAP_FAILED)
		return -ENOMEM;
	/* Where the kernel cannot, the key is as safe as the rest of the process. */
	(void)madvise(s, sizeof(*s), MADV_DONTDUMP);
	(void)madvise(s, sizeof(*s), MADV_WIPEONFORK);
	memcpy(s->key, key, sizeof(s->key));
	memcpy(s->public, self->public_key, sizeof(s->public));
	err = share(s, cluster, self);
	if (err)
		rgate_secret_destroy(s);
	else
		*out = s;
	return err;
}

void rgate_secret_destroy(struct rgate_secret *secret)
{
	if (!secret)
		return;
	OPENSSL_cleanse(secret, sizeof(*secret));
	munmap(secret, sizeof(*secret));
}

struct rgate_noise_keys rgate_secret_keys(const struct rgate_secret *secret,
					  const struct rgate_cluster_node *peer)
{
	return (struct rgate_noise_keys){
		.own = secret->key, .own_public = secret->public,
		.peer_public = peer->public_key, .shared = secret->shared[peer->id],
	};
}
