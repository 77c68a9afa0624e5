// SPDX-License-Identifier: MIT OR GPL-2.0
/* In the place of lib/fabric: see -Wl,--wrap in the Makefile */
#include "spawn_peer.h"

#include <endian.h>
#include <errno.h>
#include <sys/eventfd.h>

#include "spawn_client.h"

static const char cluster_text[] = "provider local\nnode 0 gateway /a\nnode 1 compute /b\n"
				   FUZZ_KEY_LINE(0) FUZZ_KEY_LINE(1);
static struct rgate_pool *pool, *stage, *readable;
struct spawn_peer peer;
struct rgate_cluster *peer_cluster;
int peer_ready_fd;

void spawn_peer_init(void)
{
	const struct rgate_pool_opts po = RGATE_OPTS(rgate_pool_opts, .region_size = 4 << 20,
						     .access = RGATE_ACCESS_REMOTE,
						     .flags = RGATE_POOL_NO_HUGE);
	const struct rgate_pool_opts so = RGATE_OPTS(rgate_pool_opts, .region_size = 4 << 20,
						     .flags = RGATE_POOL_NO_HUGE);

	const struct rgate_pool_opts ro = RGATE_OPTS(rgate_pool_opts, .region_size = 4 << 20,
						     .access = RGATE_ACCESS_REMOTE_READ,
						     .flags = RGATE_POOL_NO_HUGE);

	FUZZ_CHECK(!rgate_cluster_parse(&peer_cluster, "fuzz", cluster_text,
					sizeof(cluster_text) - 1));
	FUZZ_CHECK(!rgate_pool_create(&pool, NULL, &po));
	FUZZ_CHECK(!rgate_pool_create(&stage, NULL, &so));
	FUZZ_CHECK(!rgate_pool_create(&readable, NULL, &ro));
	peer_ready_fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
	FUZZ_CHECK(peer_ready_fd >= 0);
}

/* The node */

struct rgate_pool *__wrap_rgate_node_pool(const struct rgate_node *node)
{
	(void)node;
	return pool;
}

struct rgate_pool *__wrap_rgate_node_stage(const struct rgate_node *node)
{
	(void)node;
	return stage;
}

int __wrap_rgate_node_readable(struct rgate_node *node, struct rgate_pool **out)
{
	(void)node;
	*out = readable;
	return 0;
}

uint32_t __wrap_rgate_node_id(const struct rgate_node *node)
{
	(void)node;
	return 0;
}

uint64_t __wrap_rgate_node_incarnation(const struct rgate_node *node)
{
	(void)node;
	return 77;
}

/* The connection */

int __wrap_rgate_peer_info(struct rgate_peer *p, struct rgate_peer_info *info)
{
	(void)p;
	*info = (struct rgate_peer_info){
		.sz = sizeof(*info), .id = 1, .state = peer.up ? RGATE_PEER_UP : RGATE_PEER_DOWN,
		.epoch = peer.epoch, .incarnation = peer.incarnation, .msg_size = 1024,
	};
	return 0;
}

static bool is_lent(const struct rgate_op *op)
{
	const uint32_t access = op->kind == RGATE_OP_READ ? RGATE_ACCESS_REMOTE_READ :
						    RGATE_ACCESS_REMOTE_WRITE;
	const uint64_t len = op->sge->length;
	unsigned int i;

	for (i = 0; i < peer.nlent; i++) {
		const struct rgate_remote *m = &peer.lent[i];

		if (m->access == access && op->rkey == m->rkey && op->remote >= m->addr &&
		    len <= m->length &&
		    op->remote - m->addr <= m->length - len)
			return true;
	}
	return false;
}

/* A record that may well be right, or bytes */
static void read_from(const struct rgate_sge *sge)
{
	static const char *const argv[] = { "/bin/true", "an argument", NULL };
	const uint8_t how = fuzz_u8(&peer.in), modes = fuzz_u8(&peer.in);
	const struct rgate_spawn_request req = RGATE_OPTS(rgate_spawn_request, .argv = argv,
		.stdin_mode = modes & 1, .stdout_mode = (modes >> 1 & 3) % 3,
		.stderr_mode = modes >> 3 & 3, .tail_bytes = (modes >> 1 & 3) == 2 ||
		(modes >> 3 & 3) == 2 ? 100 : 0, .flags = modes >> 5 & 3);
	int64_t len = how & 1 ? rgate_spawn_encoded_size(&req) : -1;

	if (len == sge->length) {
		rgate_spawn_encode(&req, sge->addr, (size_t)len);
		if (how & 2)
			((uint8_t *)sge->addr)[fuzz_u8(&peer.in) % len] ^= fuzz_u8(&peer.in);
	} else {
		(void)fuzz_bytes(&peer.in, sge->addr, sge->length);
	}
}

/* The client's first message of a job says where its memory is. */
static void note_job(const struct rgate_op *op)
{
	const struct rgate_spawn_start *m = op->sge->addr;
	struct rgate_pool_region r = { .sz = sizeof(r) };
	unsigned int i;

	if (op->sge->length != sizeof(*m))
		return;
	FUZZ_CHECK(!rgate_pool_region(pool, le32toh(m->memory.rkey) - 1, &r));
	for (i = 0; i < peer.njobs && peer.cookie[i] != m->h.cookie; i++)
		;
	if (i == PEER_JOBS)
		return;
	peer.cookie[i] = m->h.cookie;
	peer.status[i] = (uint8_t *)r.addr + le64toh(m->memory.addr);
	peer.room[i] = (uint32_t)le64toh(m->memory.length);
	peer.njobs += i == peer.njobs;
}

int __wrap_rgate_peer_post(struct rgate_peer *p, const struct rgate_op *ops, unsigned int n,
			   uint64_t *ticket)
{
	unsigned int i;
	uint8_t how;

	(void)p;
	FUZZ_CHECK(n && n <= RGATE_POST_MAX);
	if (!peer.up)
		return -ENOTCONN;
	how = fuzz_u8(&peer.in);
	if (!(how & 15))
		return -EAGAIN;
	/* Another connection, since the last look at it */
	if (how == 1)
		spawn_peer_connection(fuzz_u8(&peer.in));
	for (i = 0; i < n; i++)
		FUZZ_CHECK(ops[i].epoch && ops[i].epoch == ops[0].epoch);
	if (!peer.up || ops[0].epoch != peer.epoch)
		return -ENOTCONN;
	for (i = 0; i < n; i++) {
		FUZZ_CHECK(ops[i].nsge == 1 && ops[i].sge->length);
		if (ops[i].kind == RGATE_OP_SEND) {
			FUZZ_CHECK(ops[i].sge->length <= 1024);
			note_job(&ops[i]);
			continue;
		}
		FUZZ_CHECK(is_lent(&ops[i]));
		if (ops[i].kind == RGATE_OP_READ)
			read_from(ops[i].sge);
	}
	peer.posted += n;
	if (peer.at_once)
		peer.done = peer.posted;
	if (ticket)
		*ticket = (uint64_t)peer.epoch << 32 | peer.posted;
	return 0;
}

int __wrap_rgate_peer_done(struct rgate_peer *p, uint64_t ticket)
{
	(void)p;
	if (ticket >> 32 != peer.epoch)
		return -ENOTCONN;
	if ((uint32_t)ticket <= peer.done)
		return 1;
	return peer.up ? 0 : -ENOTCONN;
}

int __wrap_rgate_peer_settle(struct rgate_peer *p, uint64_t ticket, int timeout_ms)
{
	(void)timeout_ms;
	peer.done = peer.posted;
	return __wrap_rgate_peer_done(p, ticket);
}

int __wrap_rgate_peer_recv(struct rgate_peer *p, struct rgate_msg *msg, void *buf, size_t cap,
			   int timeout_ms)
{
	(void)p;
	(void)timeout_ms;
	if (!peer.msg_len)
		return -EAGAIN;
	FUZZ_CHECK(peer.msg_len <= cap);
	*msg = (struct rgate_msg){ .epoch = peer.epoch, .len = peer.msg_len };
	memcpy(buf, peer.msg, peer.msg_len);
	peer.msg_len = 0;
	return 0;
}

int __wrap_rgate_peer_arm(struct rgate_peer *p)
{
	(void)p;
	return 0;
}

int __wrap_rgate_peer_fd(const struct rgate_peer *p)
{
	(void)p;
	return peer_ready_fd;
}

void __wrap_rgate_peer_cut(struct rgate_peer *p)
{
	(void)p;
	spawn_peer_connection(0);
}

void spawn_peer_connection(uint8_t how)
{
	peer.up = how & 1;
	peer.at_once = how & 2;
	if (!peer.up)
		return;
	peer.epoch++;
	peer.posted = peer.done = 0;
	peer.nlent = 0;
	peer.incarnation += !(how & 12);
}

void spawn_peer_begin(const uint8_t *data, size_t size)
{
	memset(&peer, 0, sizeof(peer));
	peer.in = (struct fuzz_in){ data, size };
	peer.incarnation = 1;
	spawn_peer_connection(fuzz_u8(&peer.in) | 1 | 4);
}

void spawn_peer_lend(const struct rgate_desc *d, uint32_t access)
{
	FUZZ_CHECK(peer.nlent < PEER_LENT);
	if (rgate_desc_parse(&peer.lent[peer.nlent], d, sizeof(*d)))
		return;
	peer.lent[peer.nlent++].access = access;
}

void spawn_peer_check_pool(void)
{
	struct rgate_pool_stats stats = { .sz = sizeof(stats) };

	FUZZ_CHECK(!rgate_pool_stats(pool, &stats) && !stats.used_buffers);
	FUZZ_CHECK(!rgate_pool_stats(stage, &stats) && !stats.used_buffers);
	FUZZ_CHECK(!rgate_pool_stats(readable, &stats) && !stats.used_buffers);
}
