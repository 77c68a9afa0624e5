// SPDX-License-Identifier: MIT OR GPL-2.0
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "log.h"
#include "opts.h"
#include "shard.h"

static uint32_t nodes_of(const struct rgate_cluster *cluster, uint32_t *ids)
{
	struct rgate_cluster_node n = { .sz = sizeof(n) };
	unsigned int i;
	uint32_t nodes = 0;

	for (i = 0; !rgate_cluster_node(cluster, i, &n); i++) {
		nodes = n.id + 1 > nodes ? n.id + 1 : nodes;
		*ids |= 1U << n.id;
	}
	return nodes;
}

/* What home and others have alike; s->l is there */
static int begin(struct rgate_shard *s)
{
	static uint64_t serials;
	/* What is opened again asks by another number. */
	const uint64_t serial = __atomic_add_fetch(&serials, 1, __ATOMIC_RELAXED);
	const uint32_t each = s->l.record > s->l.outcome ? s->l.record : s->l.outcome;
	int err;

	s->post_max = s->node->send_depth - RGATE_LINK_KEPT_BACK;
	if (s->post_max > RGATE_POST_MAX)
		s->post_max = RGATE_POST_MAX;
	s->mine = calloc(s->l.tasks, sizeof(*s->mine));
	if (!s->mine)
		return -ENOMEM;
	err = rgate_pool_alloc(rgate_node_stage(s->node), 8 * (WINDOW + RGATE_POST_MAX) +
			       (size_t)each * RGATE_SHARD_MANY, &s->stage);
	if (err)
		return err;
	s->words = s->stage->addr;
	s->old = s->words + WINDOW;
	s->bytes = (unsigned char *)(s->old + RGATE_POST_MAX);
	s->random = (rgate_node_incarnation(s->node) ^ serial * 0x9e3779b97f4a7c15ULL) | 1;
	s->ask = s->random << 16;
	s->window = (uint32_t)(s->random >> 32);
	return shard_own_init(s);
}

static struct rgate_shard *new_shard(struct rgate_peer *peer, const struct rgate_shard_opts *o)
{
	struct rgate_shard *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	pthread_mutex_init(&s->lock, NULL);
	s->peer = peer;
	s->node = peer->node;
	s->self = rgate_node_id(s->node);
	s->timeout_ms = o->timeout_ms ? o->timeout_ms : OP_TIMEOUT_MS;
	s->fd = -1;
	return s;
}

static int read_opts(struct rgate_shard_opts *o, const struct rgate_shard_opts *opts)
{
	const int err = rgate_opts_copy(o, sizeof(*o), opts);

	return err ? err : o->timeout_ms > INT32_MAX ? -EINVAL : 0;
}

static int lend(struct rgate_shard *s)
{
	struct rgate_shard_geometry *g;
	struct rgate_desc d;
	int err;

	s->fd = memfd_create("ringgate-shard", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (s->fd < 0 || ftruncate(s->fd, (off_t)s->l.bytes) ||
	    fcntl(s->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW))
		return -errno;
	g = mmap(NULL, s->l.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
	if (g == MAP_FAILED)
		return -errno;
	s->memory = (unsigned char *)g;
	/* After fork(2) it is the parent's. */
	(void)madvise(g, s->l.bytes, MADV_DONTFORK);
	*g = (struct rgate_shard_geometry){
		.magic = htole32(RGATE_SHARD_MAGIC), .version = htole16(RGATE_SHARD_VERSION),
		.nodes = (__u8)s->l.nodes, .submitters = (__u8)s->l.submitters,
		.tasks = htole32(s->l.tasks), .payload = htole32(s->l.payload),
		.result = htole32(s->l.result), .bytes = htole64(s->l.bytes),
	};
	err = rgate_share_create(&s->share, s->node, g, s->l.bytes, s->fd, 0, RGATE_ACCESS_REMOTE);
	if (!err)
		err = rgate_share_desc(s->share, 0, s->l.bytes, &d);
	return err ? err : rgate_desc_parse(&s->at, &d, sizeof(d));
}

int rgate_shard_create(struct rgate_shard **out, struct rgate_peer *self,
		       const struct rgate_shard_opts *opts)
{
	struct rgate_shard_opts o;
	struct rgate_shard *s;
	uint32_t ids = 0;
	int err;

	if (!out || !self || self->to.id != rgate_node_id(self->node))
		return -EINVAL;
	err = read_opts(&o, opts);
	if (err)
		return err;
	s = new_shard(self, &o);
	if (!s)
		return -ENOMEM;
	s->l = (struct shard_layout){
		.nodes = nodes_of(rgate_node_cluster(s->node), &ids),
		.submitters = o.submitters ? o.submitters : 1U << s->self,
		.tasks = o.tasks ? o.tasks : 1024,
		.payload = o.payload_size ? o.payload_size : 48,
		.result = o.result_size ? o.result_size : 48,
	};
	err = s->l.submitters & ~ids ? -EINVAL : shard_layout(&s->l);
	if (!err)
		err = lend(s);
	if (!err)
		err = begin(s);
	if (err) {
		rgate_shard_destroy(s);
		return err;
	}
	/* It lets itself in, over a connection that is never another one. */
	s->admission = s->seat[s->self].admission = 1;
	s->seat[s->self].ask = s->ask;
	*out = s;
	return 0;
}

/* The geometry of what @s->at names, which is looked at as a copy */
static int read_geometry(struct rgate_shard *s)
{
	struct rgate_shard_geometry g;
	const struct rgate_buf *buf;
	struct rgate_sge sge;
	int err;

	if (s->at.length < sizeof(g) || ~s->at.access & RGATE_ACCESS_REMOTE)
		return -EPROTO;
	err = rgate_pool_alloc(rgate_node_stage(s->node), sizeof(g), &buf);
	if (err)
		return err;
	sge = (struct rgate_sge){ buf->addr, sizeof(g), buf->lkey };
	err = rgate_peer_read(s->peer, &s->at, 0, &sge, (int)s->timeout_ms);
	memcpy(&g, buf->addr, sizeof(g));
	rgate_pool_free(rgate_node_stage(s->node), buf);
	return err ? err : shard_parse(&s->l, &g, s->at.length);
}

int rgate_shard_open(struct rgate_shard **out, struct rgate_peer *peer,
		     const struct rgate_desc *desc, const struct rgate_shard_opts *opts)
{
	struct rgate_shard_opts o;
	struct rgate_shard *s;
	int err;

	if (!out || !peer || !desc || peer->to.id == rgate_node_id(peer->node))
		return -EINVAL;
	err = read_opts(&o, opts);
	if (err)
		return err;
	if (o.tasks || o.payload_size || o.result_size || o.submitters)
		return -EINVAL;
	s = new_shard(peer, &o);
	if (!s)
		return -ENOMEM;
	err = rgate_desc_parse(&s->at, desc, sizeof(*desc));
	if (!err)
		err = read_geometry(s);
	if (!err && (s->self >= s->l.nodes || peer->to.id >= s->l.nodes || s->at.addr % 8))
		err = -EPROTO;
	if (!err)
		err = begin(s);
	if (err) {
		rgate_shard_close(s);
		return err;
	}
	*out = s;
	return 0;
}

/* The home need not wait for the connection's end to know that the claims go back. */
static void leave(struct rgate_shard *s)
{
	struct shard_ops ops = { .n = 0 };
	bool begun;

	s->words[0] = 0;
	shard_move(s, &ops, RGATE_OP_WRITE, shard_at_seat(s->self) +
		   offsetof(struct rgate_shard_seat, ask), s->words, 8);
	(void)shard_run(s, &ops, s->epoch, &begun);
}

void rgate_shard_close(struct rgate_shard *s)
{
	if (!s)
		return;
	if (!s->memory && s->epoch)
		leave(s);
	rgate_share_destroy(s->share);
	if (s->memory)
		munmap(s->memory, s->l.bytes);
	if (s->fd >= 0)
		close(s->fd);
	if (s->stage)
		rgate_pool_free(rgate_node_stage(s->node), s->stage);
	pthread_mutex_destroy(&s->lock);
	free(s->own);
	free(s->mine);
	free(s);
}

void rgate_shard_destroy(struct rgate_shard *s)
{
	rgate_shard_close(s);
}

int rgate_shard_desc(const struct rgate_shard *s, struct rgate_desc *desc)
{
	if (!s || !desc)
		return -EINVAL;
	return s->memory ? rgate_share_desc(s->share, 0, s->l.bytes, desc) : -EPERM;
}

int rgate_shard_look(struct rgate_shard *s, uint64_t id)
{
	const uint32_t index = id & 0xffff;
	uint32_t epoch = 0;
	uint64_t word;
	int err = 0;

	if (!s || index >= s->l.tasks || id >> 48)
		return -EINVAL;
	pthread_mutex_lock(&s->lock);
	if (!s->memory)
		err = shard_epoch(s, &epoch);
	if (!err)
		err = shard_read_words(s, index, 1, epoch);
	word = s->words[0];
	pthread_mutex_unlock(&s->lock);
	if (err)
		return err;
	if (shard_gen(word) != (uint32_t)(id >> 16) || !shard_sane(&s->l, word))
		return RGATE_SHARD_IS_GONE;
	return shard_state(word) == RGATE_SHARD_EMPTY ? RGATE_SHARD_IS_GONE :
	       (int)shard_state(word);
}

int rgate_shard_info(struct rgate_shard *s, struct rgate_shard_info *info)
{
	struct rgate_shard_info i;
	unsigned int n;

	if (!s || !info)
		return -EINVAL;
	pthread_mutex_lock(&s->lock);
	i = s->count;
	i.sz = sizeof(i);
	i.tasks = s->l.tasks;
	i.payload_size = s->l.payload;
	i.result_size = s->l.result;
	i.home = s->peer->to.id;
	i.places = s->places;
	i.free = s->free;
	i.held = s->held;
	i.bytes = s->l.bytes;
	for (n = 0; n < RGATE_NODES_MAX; n++)
		i.admitted |= s->seat[n].ask ? 1U << n : 0;
	pthread_mutex_unlock(&s->lock);
	return rgate_info_copy(info, &i, sizeof(i));
}
