// SPDX-License-Identifier: MIT OR GPL-2.0
/* Memory of a peer's: shared, read only, with a bell, and of a node that was destroyed */
#include "ended.h"
#include "nodes.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

static struct rgate_node_stats use_of(const struct rgate_node *node)
{
	struct rgate_node_stats s = { .sz = sizeof(s) };

	assert_int_equal(rgate_node_stats(node, &s), 0);
	return s;
}

/* A node that was destroyed is what it was for what is open of it, and ends with the last */
static void outlived(void **state)
{
	struct rgate_node_stats s;
	struct rgate_remote shared;
	struct rgate_share *share;
	struct rgate_node *again;
	struct rgate_pool *pool;
	struct rgate_desc desc;
	struct rgate_sge sge;
	struct duo d;
	void *mem;
	int fd;

	(void)state;
	duo_up(&d, 0);
	fd = nodes_memfd(4096, &mem);
	assert_int_equal(rgate_share_create(&share, d.node[1], mem, 4096, fd, 0,
					    RGATE_ACCESS_REMOTE), 0);
	assert_int_equal(rgate_share_desc(share, 0, 4096, &desc), 0);
	assert_int_equal(rgate_desc_parse(&shared, &desc, sizeof(desc)), 0);
	s = use_of(d.node[1]);
	assert_int_equal(s.peers, 1);
	assert_int_equal(s.shares, 1);
	assert_int_equal(s.error, 0);
	assert_true(s.buffers > 1);
	pool = rgate_node_pool(d.node[1]);
	rgate_node_destroy(d.node[1]);
	/* both ways, pool and share, and a connection that is made anew */
	sge = duo_sge(&d, 0, 0, 4096);
	memset(sge.addr, 5, 4096);
	assert_int_equal(rgate_peer_write(d.peer[0], &d.at[1], 0, &sge, MS), 0);
	assert_int_equal(rgate_peer_write(d.peer[0], &shared, 0, &sge, MS), 0);
	assert_int_equal(rgate_peer_flush(d.peer[0], MS), 0);
	assert_memory_equal(mem, sge.addr, 4096);
	assert_memory_equal(d.buf[1]->addr, sge.addr, 4096);
	rgate_peer_cut(d.peer[0]);
	assert_int_equal(rgate_peer_wait_up(d.peer[1], MS), 0);
	sge = duo_sge(&d, 1, 4096, 64);
	wait_for(!rgate_peer_write(d.peer[1], &d.at[0], 4096, &sge, MS));
	rgate_peer_close(d.peer[1]);
	/* its address is taken until the last is closed, which the share is */
	d.c.opts.key = d.c.keys[1];
	assert_int_equal(rgate_node_create(&again, d.c.conf, 1, &d.c.opts), -EADDRINUSE);
	rgate_share_destroy(share);
	again = cluster_node(&d.c, 1);
	assert_int_equal(node_ended(again), 0);
	/* and a buffer until it is released */
	memset(d.buf[1]->addr, 6, DUO_BYTES);
	assert_int_equal(rgate_pool_free(pool, d.buf[1]), 0);
	munmap(mem, 4096);
	close(fd);
	rgate_peer_close(d.peer[0]);
	assert_int_equal(rgate_pool_free(rgate_node_pool(d.node[0]), d.buf[0]), 0);
	assert_int_equal(node_ended(d.node[0]), 0);
	cluster_free(&d.c);
}

/* Memory that peers read, and nobody but its own node changes */
static void read_only(void **state)
{
	struct rgate_pool_opts po = RGATE_OPTS(rgate_pool_opts, .region_size = 2 << 20,
					       .access = RGATE_ACCESS_REMOTE);
	const struct rgate_buf *buf;
	struct rgate_pool *pool, *again;
	struct rgate_desc desc;
	struct rgate_remote at;
	struct rgate_node *node;
	struct rgate_sge sge;
	struct duo d;
	uint64_t old;

	(void)state;
	duo_up(&d, 0);
	assert_int_equal(rgate_node_readable(d.node[1], &pool), 0);
	assert_int_equal(rgate_node_readable(d.node[1], &again), 0);
	assert_ptr_equal(pool, again);
	assert_int_equal(rgate_pool_alloc(pool, 4096, &buf), 0);
	memset(buf->addr, 7, 4096);
	assert_int_equal(rgate_buf_desc(pool, buf, 0, 0, &desc), 0);
	assert_int_equal(rgate_desc_parse(&at, &desc, sizeof(desc)), 0);
	assert_int_equal(at.access, RGATE_ACCESS_REMOTE_READ);
	/* Who wants to write does not mind what he was told. */
	at.access = RGATE_ACCESS_REMOTE;
	sge = duo_sge(&d, 0, 0, 4096);
	assert_int_equal(rgate_peer_read(d.peer[0], &at, 0, &sge, MS), 0);
	assert_memory_equal(sge.addr, buf->addr, 4096);
	memset(sge.addr, 8, 4096);
	assert_int_equal(rgate_peer_write(d.peer[0], &at, 0, &sge, MS), -EREMOTEIO);
	wait_for(peer_state(d.peer[0]) == RGATE_PEER_UP);
	assert_int_equal(rgate_peer_fetch_add(d.peer[0], &at, 0, 1, &old, MS), -EREMOTEIO);
	wait_for(peer_state(d.peer[0]) == RGATE_PEER_UP);
	assert_int_equal(rgate_peer_read(d.peer[0], &at, 0, &sge, MS), 0);
	assert_memory_equal(sge.addr, buf->addr, 4096);
	assert_int_equal(*(unsigned char *)buf->addr, 7);
	/* In use as any other, and there until it is released */
	rgate_peer_close(d.peer[1]);
	assert_int_equal(rgate_pool_free(rgate_node_pool(d.node[1]), d.buf[1]), 0);
	wait_for(use_of(d.node[1]).buffers == 1);
	rgate_node_destroy(d.node[1]);
	memset(buf->addr, 9, 4096);
	assert_int_equal(rgate_pool_free(pool, buf), 0);
	/* Nothing else is called readable. */
	d.c.opts.pool = NULL;
	d.c.opts.readable = &po;
	assert_int_equal(rgate_node_create(&node, d.c.conf, 1, &d.c.opts), -EINVAL);
	rgate_peer_close(d.peer[0]);
	assert_int_equal(rgate_pool_free(rgate_node_pool(d.node[0]), d.buf[0]), 0);
	assert_int_equal(node_ended(d.node[0]), 0);
	cluster_free(&d.c);
}

static void shares(void **state)
{
	struct {
		int fd;
		char *at;
	} m;
	struct rgate_share *share, *narrow;
	struct rgate_remote r;
	struct rgate_desc desc;
	struct rgate_sge s;
	struct duo d;

	(void)state;
	duo_up(&d, 0);
	m.fd = nodes_memfd(65536, (void **)&m.at);
	assert_int_equal(rgate_share_create(&share, d.node[1], m.at, 65536, m.fd, 0,
					    RGATE_ACCESS_REMOTE), 0);
	assert_int_equal(use_of(d.node[1]).shares, 1);
	assert_int_equal(rgate_share_desc(share, 65530, 7, &desc), -ERANGE);
	assert_int_equal(rgate_share_desc(share, 4096, 8192, &desc), 0);
	assert_int_equal(rgate_desc_parse(&r, &desc, sizeof(desc)), 0);
	unit_pattern(d.buf[0]->addr, 3, 8192);
	s = duo_sge(&d, 0, 0, 8192);
	assert_int_equal(rgate_peer_write(d.peer[0], &r, 0, &s, MS), 0);
	assert_int_equal(rgate_peer_flush(d.peer[0], MS), 0);
	assert_int_equal(unit_pattern_check(m.at + 4096, 3, 8192), 0);
	assert_int_equal(m.at[4095] | m.at[4096 + 8192], 0);
	assert_int_equal(rgate_share_create(&narrow, d.node[1], m.at, 4096, m.fd, 0, 0), 0);
	assert_int_equal(rgate_share_desc(narrow, 0, 1, &desc), -EACCES);
	assert_int_equal(rgate_share_create(NULL, d.node[1], m.at, 0, m.fd, 0, 0), -EINVAL);
	rgate_share_destroy(narrow);
	rgate_share_destroy(share);
	rgate_share_destroy(NULL);
	munmap(m.at, 65536);
	close(m.fd);
	duo_down(&d);
}

struct bell {
	struct duo d;
	struct rgate_share *share;
	struct rgate_remote at;
	unsigned char *mem;
	int fd, bell;
};

static void bell_up(struct bell *b, uint32_t access)
{
	struct rgate_desc desc;

	duo_up(&b->d, 0);
	if (!rgate_node_bells(b->d.node[1])) {
		duo_down(&b->d);
		unit_skip("nodes of several machines have no bells");
	}
	b->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	b->fd = nodes_memfd(4096, (void **)&b->mem);
	assert_int_equal(rgate_share_create(&b->share, b->d.node[1], b->mem, 4096, b->fd, 0,
					    access), 0);
	assert_int_equal(rgate_share_bell(b->share, b->bell), 0);
	assert_int_equal(rgate_share_bell(b->share, b->bell), -EINVAL);
	assert_int_equal(rgate_share_desc(b->share, 0, 4096, &desc), 0);
	assert_int_equal(rgate_desc_parse(&b->at, &desc, sizeof(desc)), 0);
}

static void bell_down(struct bell *b)
{
	rgate_share_destroy(b->share);
	munmap(b->mem, 4096);
	close(b->fd);
	close(b->bell);
	duo_down(&b->d);
}

static int ring_it(struct bell *b, uint8_t kind)
{
	const struct rgate_sge s = duo_sge(&b->d, 0, 0, 8);
	const struct rgate_op op = {
		.kind = kind, .flags = RGATE_OP_BELL, .sge = &s, .remote = b->at.addr,
		.nsge = kind == RGATE_OP_FLUSH ? 0 : 1, .rkey = b->at.rkey,
	};
	uint64_t ticket;
	int err = rgate_peer_post(b->d.peer[0], &op, 1, &ticket);

	return err ? err : rgate_peer_finish(b->d.peer[0], ticket, MS);
}

/* Who waits for the bell finds what was written; other operations do not ring it */
static void bells(void **state)
{
	static const uint8_t others[] = {
		RGATE_OP_READ, RGATE_OP_FETCH_ADD, RGATE_OP_COMPARE_SWAP, RGATE_OP_FLUSH,
		RGATE_OP_SEND,
	};
	struct rgate_sge s;
	struct pollfd pfd;
	struct rgate_msg msg;
	struct bell b;
	uint64_t i;
	eventfd_t v;

	(void)state;
	bell_up(&b, RGATE_ACCESS_REMOTE);
	pfd = (struct pollfd){ .fd = b.bell, .events = POLLIN };
	for (i = 1; i <= 100; i++) {
		memcpy(b.d.buf[0]->addr, &i, sizeof(i));
		assert_int_equal(ring_it(&b, RGATE_OP_WRITE), 0);
		assert_int_equal(poll(&pfd, 1, MS), 1);
		assert_int_equal(__atomic_load_n((uint64_t *)b.mem, __ATOMIC_ACQUIRE), i);
		assert_int_equal(eventfd_read(b.bell, &v), 0);
		assert_int_equal(v, 1);
	}
	assert_int_equal(ring_it(&b, RGATE_OP_WRITE_IMM), 0);
	assert_int_equal(rgate_peer_recv(b.d.peer[1], &msg, NULL, 0, MS), 0);
	assert_int_equal(eventfd_read(b.bell, &v), 0);
	for (i = 0; i < ARRAY_LEN(others); i++)
		assert_int_equal(ring_it(&b, others[i]), -EINVAL);
	s = duo_sge(&b.d, 0, 0, 8);
	assert_int_equal(rgate_peer_write(b.d.peer[0], &b.at, 0, &s, MS), 0);
	assert_int_equal(eventfd_read(b.bell, &v), -1);
	/* memory without one: a write */
	b.at = b.d.at[1];
	assert_int_equal(ring_it(&b, RGATE_OP_WRITE), 0);
	bell_down(&b);
}

/* One that would wait is not waited for; one whose counter is full is rung in vain */
static void bells_that_block(void **state)
{
	struct bell b;
	int i;

	(void)state;
	bell_up(&b, RGATE_ACCESS_REMOTE_WRITE);
	assert_int_equal(eventfd_write(b.bell, UINT64_MAX - 1), 0);
	for (i = 0; i < 3; i++)
		assert_int_equal(ring_it(&b, RGATE_OP_WRITE), 0);
	bell_down(&b);

	bell_up(&b, RGATE_ACCESS_REMOTE_WRITE);
	assert_int_equal(eventfd_write(b.bell, UINT64_MAX - 1), 0);
	assert_int_equal(fcntl(b.bell, F_SETFL, 0), 0);
	assert_int_equal(ring_it(&b, RGATE_OP_WRITE), 0);
	bell_down(&b);
}

/* Memory that nobody may write has no use for one, nor do private ones */
static void bells_of_others(void **state)
{
	struct rgate_share *mine;
	struct bell b;
	eventfd_t v;

	(void)state;
	bell_up(&b, RGATE_ACCESS_REMOTE_READ);
	assert_int_equal(ring_it(&b, RGATE_OP_WRITE), -EREMOTEIO);
	assert_int_equal(eventfd_read(b.bell, &v), -1);
	assert_int_equal(rgate_share_create(&mine, b.d.node[1], b.mem, 4096, b.fd, 0, 0), 0);
	assert_int_equal(rgate_share_bell(mine, b.bell), -EINVAL);
	rgate_share_destroy(mine);
	wait_for(peer_state(b.d.peer[0]) == RGATE_PEER_UP);
	bell_down(&b);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(outlived),
	cmocka_unit_test(read_only),
	cmocka_unit_test(shares),
	cmocka_unit_test(bells),
	cmocka_unit_test(bells_that_block),
	cmocka_unit_test(bells_of_others),
};

UNIT_MAIN(tests)
