// SPDX-License-Identifier: MIT OR GPL-2.0
/* Consumers that write nonsense, and rings that are none. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "geometry.h"
#include "handover.h"
#include "memfd_mem.h"

struct vandal {
	struct rgate_view v;
	size_t cons_len;
	bool stop;
	uint64_t seed;
};

/* Random, backward, huge and plausible values into every word of the area */
static void *vandal_main(void *arg)
{
	struct vandal *w = arg;
	uint64_t *words = (uint64_t *)w->v.cons, x;

	while (!__atomic_load_n(&w->stop, __ATOMIC_RELAXED)) {
		uint64_t *at;

		x = unit_random(&w->seed);
		at = &words[x % (w->cons_len / 8)];
		switch (x >> 60 & 3) {
		case 0:
			x = unit_random(&w->seed);
			break;
		case 1:
			x = UINT64_MAX - (x >> 50);
			break;
		case 2:
			x = __atomic_load_n(at, __ATOMIC_RELAXED) + 1 - (x >> 62);
			break;
		default:
			x = x >> 32 & 63;
		}
		__atomic_store_n(at, x, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void vandal_start(struct vandal *w, struct rgate_ring *ring, pthread_t *th)
{
	memset(w, 0, sizeof(*w));
	rgate_ring_view(ring, &w->v);
	w->cons_len = (size_t)((const char *)w->v.slots - (const char *)w->v.cons);
	w->seed = 77;
	assert_int_equal(pthread_create(th, NULL, vandal_main, w), 0);
}

/*
 * The ring next to it is untouched; the memory on both sides of the vandalised
 * ring's mapping is watched by the kernel (it is not ours) and by ASan.
 */
static void consumer_area(void **state)
{
	uint32_t policy = (uint32_t)(uintptr_t)*state;
	struct rgate_ring *bad = unit_ring(64, 256, RGATE_RING_CHAIN, policy);
	struct rgate_ring *good = unit_ring(64, 256, 0, RGATE_POLICY_DROP);
	struct rgate_producer pb, pg;
	static unsigned char frame[9000];
	struct rgate_consumer c;
	struct vandal w[2];
	uint64_t i, in = 0;
	pthread_t th[2];

	assert_int_equal(rgate_producer_init(&pb, bad), 0);
	assert_int_equal(rgate_producer_init(&pg, good), 0);
	assert_int_equal(rgate_consumer_init(&c, good, NULL), 0);
	for (i = 0; i < 2; i++)
		vandal_start(&w[i], bad, &th[i]);
	for (i = 0; i < unit_rounds(100000); i++) {
		uint64_t head = pb.head;

		if (rgate_producer_write(&pb, NULL, frame, i * 37 % 7000, i * 37 % 7000))
			rgate_producer_drop(&pb);
		assert_in_range(pb.head - head, 0, 2 * RGATE_BATCH);
		if (!(i % 5))
			rgate_producer_flush(&pb);
		if (!unit_put(&pg, in, 100))
			in++;
		if (i % 3)
			continue;
		assert_non_null(rgate_consumer_next(&c));
		assert_int_equal(unit_pattern_check(rgate_slot_data(
				 rgate_consumer_next(&c)), i / 3, 100), 0);
		rgate_consumer_release(&c);
	}
	for (i = 0; i < 2; i++) {
		__atomic_store_n(&w[i].stop, true, __ATOMIC_RELAXED);
		pthread_join(th[i], NULL);
	}
	rgate_producer_fini(&pb);
	rgate_producer_fini(&pg);
	rgate_ring_close(bad);
	rgate_ring_close(good);
}

/* Consumers on a vandalised area come to an end, and read inside the mapping. */
static void fellow_consumers(void **state)
{
	struct rgate_ring *ring = unit_ring(64, 256, RGATE_RING_CHAIN,
					    RGATE_POLICY_OVERWRITE);
	struct rgate_consumer_opts o = RGATE_OPTS(rgate_consumer_opts, .count = 3);
	static unsigned char buf[9000];
	struct rgate_producer p;
	struct rgate_consumer c;
	struct vandal w;
	pthread_t th;
	uint64_t i, k;

	(void)state;
	assert_int_equal(rgate_producer_init(&p, ring), 0);
	vandal_start(&w, ring, &th);
	for (i = 0; i < unit_rounds(20000); i++) {
		o.take = i % 3;
		if (i % 16 == 0)
			assert_int_equal(rgate_consumer_init(&c, ring, &o), 0);
		rgate_producer_write(&p, NULL, buf, i * 37 % 7000, i * 37 % 7000);
		for (k = 0; k < 4; k++)
			rgate_consumer_copy(&c, NULL, buf, sizeof(buf));
		rgate_consumer_arm(&c);
		rgate_consumer_disarm(&c);
	}
	__atomic_store_n(&w.stop, true, __ATOMIC_RELAXED);
	pthread_join(th, NULL);
	rgate_producer_fini(&p);
	rgate_ring_close(ring);
}

/* A producer that lies in its slots: lengths and chains stay within bounds. */
static void slot_headers(void **state)
{
	struct rgate_ring *ring = unit_ring(64, 256, RGATE_RING_CHAIN,
					    RGATE_POLICY_DROP);
	static unsigned char buf[70000];
	struct rgate_producer p;
	struct rgate_consumer c;
	uint64_t seed = 5, i, k;

	(void)state;
	assert_int_equal(rgate_producer_init(&p, ring), 0);
	assert_int_equal(rgate_consumer_init(&c, ring, NULL), 0);
	for (i = 0; i < unit_rounds(30000); i++) {
		struct rgate_slot *s = rgate_producer_reserve(&p);

		if (!s) {
			/* the consumer may have lost its way in a torn chain */
			rgate_consumer_release_n(&c, (unsigned int)(c.end - c.done));
			continue;
		}
		for (k = 1; k < 8; k++)
			((uint64_t *)s)[k] = unit_random(&seed);
		if (unit_random(&seed) & 1)
			s->flags &= ~(RGATE_SLOT_PAD | RGATE_SLOT_CONT);
		s->chain_cnt %= 40;
		rgate_producer_publish(&p);
		rgate_consumer_copy(&c, NULL, buf, sizeof(buf));
		assert_true(c.done <= c.end && c.pos <= c.end);
	}
	rgate_producer_fini(&p);
	rgate_ring_close(ring);
}

/*
 * Sequences and heads that no producer writes: each call comes to an end all the same.
 * (A test that hangs is ended by unit_run().)
 */
static void drain(struct rgate_ring *ring, uint32_t take)
{
	struct rgate_consumer_opts o = RGATE_OPTS(rgate_consumer_opts, .take = take,
						  .index = 1, .count = 3);
	const struct rgate_slot *v[RGATE_BATCH];
	unsigned char buf[256];
	struct rgate_consumer c;
	unsigned int i;

	assert_int_equal(rgate_consumer_init(&c, ring, &o), 0);
	for (i = 0; i < 4; i++) {
		rgate_consumer_next(&c);
		rgate_consumer_peek(&c, v, RGATE_BATCH);
		rgate_consumer_copy(&c, NULL, buf, sizeof(buf));
		assert_in_range(rgate_consumer_arm(&c), 0, 1);
		rgate_consumer_disarm(&c);
		assert_in_range(rgate_consumer_wait(&c, 0), 0, 1);
		assert_in_range(c.end - c.done, 0, RGATE_BATCH);
	}
}

static void drain_all(uint32_t policy, uint64_t head, uint64_t seq)
{
	struct rgate_ring *ring = unit_ring(256, 256, RGATE_RING_CHAIN, policy);
	struct rgate_view v;
	uint32_t take, i;

	rgate_ring_view(ring, &v);
	for (i = 0; i < v.nslots; i++) {
		struct rgate_slot *s = (struct rgate_slot *)(rgate_ring_slots_rw(ring) +
							     (size_t)i * v.slot_size);

		s->chain_cnt = 1;
		s->seq = seq;
	}
	for (take = RGATE_TAKE_ALL; take <= RGATE_TAKE_STRIDE; take++) {
		((struct rgate_prod *)v.prod)->head = 0;
		rgate_consumer_reset_claim(ring);
		((struct rgate_prod *)v.prod)->head = head;
		drain(ring, take);
	}
	rgate_ring_close(ring);
}

static void endless(void **state)
{
	static const uint64_t words[] = {
		0, 1, 2, 64, 1ULL << 56, 1ULL << 58, 1ULL << 63, UINT64_MAX - 21, UINT64_MAX,
	};
	size_t i, k;

	(void)state;
	for (i = 0; i < ARRAY_LEN(words); i++) {
		for (k = 0; k < ARRAY_LEN(words); k++) {
			drain_all(RGATE_POLICY_DROP, words[i], words[k]);
			drain_all(RGATE_POLICY_OVERWRITE, words[i], words[k]);
		}
	}
}

/* A chain whose last slot was overwritten and whose first was not */
static void torn_backwards(void **state)
{
	struct rgate_ring *ring = unit_ring(64, 256, RGATE_RING_CHAIN,
					    RGATE_POLICY_OVERWRITE);
	struct rgate_consumer c;
	struct rgate_view v;
	struct rgate_slot *s;

	(void)state;
	rgate_ring_view(ring, &v);
	assert_int_equal(rgate_consumer_init(&c, ring, NULL), 0);
	s = (struct rgate_slot *)rgate_ring_slots_rw(ring);
	s->chain_cnt = 2;
	s->seq = 1;
	s = (struct rgate_slot *)(rgate_ring_slots_rw(ring) + v.slot_size);
	s->seq = 2;
	((struct rgate_prod *)v.prod)->head = 2;
	assert_null(rgate_consumer_next(&c));
	rgate_ring_close(ring);
}

/*
 * A sequence leads the consumer to where positions end, and there is a chain that
 * would go on behind that end: it is no longer than its batch all the same.
 */
static void last_positions(void **state)
{
	struct rgate_ring *ring = unit_ring(64, 256, RGATE_RING_CHAIN,
					    RGATE_POLICY_OVERWRITE);
	const uint64_t lap = 1ULL << 58;	/* of the last 64 positions */
	struct rgate_consumer c;
	struct rgate_view v;
	unsigned int i;

	(void)state;
	rgate_ring_view(ring, &v);
	assert_int_equal(rgate_consumer_init(&c, ring, NULL), 0);
	for (i = 0; i < 64; i++) {
		struct rgate_slot *s = (struct rgate_slot *)(rgate_ring_slots_rw(ring) +
							     (size_t)i * v.slot_size);

		s->chain_cnt = i ? 1 : 64 + RGATE_BATCH;
		s->seq = i == 0 ? lap : i < RGATE_BATCH ? 1 : lap - 1;
	}
	for (i = 0; i < 2 * RGATE_BATCH && rgate_consumer_next(&c); i++) {
		assert_in_range(rgate_consumer_parts(&c), 1, RGATE_CHAIN_MAX);
		rgate_consumer_release(&c);
		assert_in_range(c.end - c.done, 0, RGATE_BATCH);
	}
	assert_int_equal(i, RGATE_BATCH);
	assert_in_range(c.end - c.done, 0, RGATE_BATCH);
	rgate_ring_close(ring);
}

/* What a receiver cannot do to a ring it was given */
static int child_intruder(int sock, void *arg)
{
	struct rgate_handover msg;
	int fds[3], i;
	void *m;

	(void)arg;
	unit_require(!rgate_handover_recv(sock, &msg, fds, 0));
	for (i = 0; i < 2; i++) {
		unit_require(ftruncate(fds[i], 0) < 0);
		unit_require(ftruncate(fds[i], 1 << 30) < 0);
	}
	unit_require(write(fds[0], "x", 1) < 0);
	m = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
	unit_require(m == MAP_FAILED);
	m = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fds[0], 0);
	unit_require(m != MAP_FAILED);
	unit_require(mprotect(m, 4096, PROT_READ | PROT_WRITE) < 0);
	unit_require(fallocate(fds[0], FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			       0, 4096) < 0);
	/* the consumer area may be emptied: that is its own loss */
	fallocate(fds[1], FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 1 << 20);
	return 0;
}

static void seals(void **state)
{
	struct rgate_ring *ring = unit_ring(64, 256, 0, RGATE_POLICY_DROP);
	struct rgate_producer p;
	int sock, pid;
	uint64_t i;

	(void)state;
	assert_int_equal(rgate_producer_init(&p, ring), 0);
	pid = unit_fork(child_intruder, NULL, &sock);
	assert_int_equal(rgate_ring_send(ring, sock), 0);
	unit_reap(pid, 0);
	for (i = 0; i < 64; i++)
		assert_int_equal(unit_put(&p, i, 64), 0);
	rgate_producer_fini(&p);
	close(sock);
	rgate_ring_close(ring);
}

/* Malformed rings over a socket */

struct forged {
	struct rgate_prod prod;
	off_t prod_len;
	off_t cons_len;
	bool sealed;
};

static int forge(const void *data, size_t n, off_t len, bool sealed)
{
	int fd = memfd_create("forged", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, len), 0);
	if (n)
		assert_int_equal(pwrite(fd, data, n, 0), n);
	if (sealed)
		assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
	return fd;
}

static int send_forged(const struct forged *f)
{
	struct rgate_ring *ring = NULL;
	int sv[2], fds[3], err;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
	fds[0] = forge(&f->prod, f->prod_len < (off_t)sizeof(f->prod) ? 0 :
		       sizeof(f->prod), f->prod_len, f->sealed);
	fds[1] = forge(NULL, 0, f->cons_len, f->sealed);
	fds[2] = dup(sv[0]);
	assert_int_equal(rgate_handover_send(sv[0], RGATE_HANDOVER_MEMFD, 3, fds, 3, 0),
			 0);
	err = rgate_ring_recv(&ring, sv[1]);
	close(fds[0]);
	close(fds[1]);
	close(fds[2]);
	close(sv[0]);
	close(sv[1]);
	if (!err)
		rgate_ring_close(ring);
	return err;
}

static void good_forged(struct forged *f)
{
	struct rgate_geometry geo;

	assert_int_equal(rgate_geometry_compute(64, 256, rgate_page_size(), &geo), 0);
	memset(f, 0, sizeof(*f));
	f->prod.magic = RGATE_MAGIC;
	f->prod.version = RGATE_ABI_VERSION;
	f->prod.slot_hdr = RGATE_SLOT_HDR;
	f->prod.slots = 64;
	f->prod.slot_size = 256;
	f->prod.batch = RGATE_BATCH;
	f->prod.handles = RGATE_HANDLES_MAX;
	f->prod.map_len = geo.map_len;
	f->prod.cons_off = geo.cons_off;
	f->prod.credits_off = geo.credits_off;
	f->prod.slots_off = geo.slots_off;
	f->prod.state = RGATE_STATE_ACTIVE;
	f->prod_len = (off_t)(geo.cons_off + geo.map_len - geo.slots_off);
	f->cons_len = (off_t)(geo.slots_off - geo.cons_off);
	f->sealed = true;
}

static void forge_owners(struct forged *f, uint64_t off)
{
	f->prod.features = RGATE_FEAT_OWNERS;
	f->prod.owners_off = off;
}

#define FORGE(want, change) \
	do { \
		good_forged(&f); \
		change; \
		assert_int_equal(send_forged(&f), want); \
	} while (0)

static void forged_rings(void **state)
{
	struct forged f;

	(void)state;
	FORGE(0, (void)0);
	FORGE(-EPROTO, f.sealed = false);
	FORGE(-EPROTO, f.prod_len -= 4096);
	FORGE(-EPROTO, f.prod_len += 4096);
	FORGE(-EPROTO, f.prod_len = 100);
	FORGE(-EPROTO, f.prod_len = 0);
	FORGE(-EPROTO, f.cons_len -= 4096);
	FORGE(-EPROTO, f.cons_len = 0);
	FORGE(-EPROTO, f.prod.magic++);
	FORGE(-EPROTONOSUPPORT, f.prod.version = 2);
	FORGE(-EPROTONOSUPPORT, f.prod.features = 1ULL << 40);
	FORGE(-EPROTONOSUPPORT, f.prod.flags = 1U << 31);
	FORGE(-EPROTO, f.prod.slot_hdr = 128);
	FORGE(-EPROTO, f.prod.batch = 64);
	FORGE(-EPROTO, f.prod.handles = 0);
	FORGE(-EPROTO, f.prod.policy = 9);
	FORGE(-EPROTO, f.prod.clock = 9);
	FORGE(-EPROTO, f.prod.owners_off = f.prod.credits_off + 64);
	FORGE(-EPROTO, f.prod.features = RGATE_FEAT_OWNERS);
	FORGE(-EPROTO, forge_owners(&f, f.prod.credits_off));
	FORGE(-EPROTO, forge_owners(&f, f.prod.credits_off + 72));
	FORGE(-EPROTO, forge_owners(&f, f.prod.slots_off));
	FORGE(-EPROTO, forge_owners(&f, UINT64_MAX - 63));
	/* a good place, but no life file comes with it */
	FORGE(-EPROTO, forge_owners(&f, f.prod.credits_off + 64));
	FORGE(-EPROTO, memset(f.prod.name, 'x', sizeof(f.prod.name)));
	FORGE(-EPROTO, f.prod.slots = 0);
	FORGE(-EPROTO, f.prod.slots = 1U << 20);
	FORGE(-EPROTO, f.prod.slots = 1U << 31);
	FORGE(-EPROTO, f.prod.slot_size = 65536);
	FORGE(-EPROTO, f.prod.slot_size = 255);
	FORGE(-EPROTO, f.prod.map_len = UINT64_MAX - 4095);
	FORGE(-EPROTO, f.prod.map_len = 0);
	FORGE(-EPROTO, f.prod.cons_off = 0);
	FORGE(-EPROTO, f.prod.cons_off = 100);
	FORGE(-EPROTO, f.prod.cons_off = UINT64_MAX - 4095);
	FORGE(-EPROTO, f.prod.credits_off = f.prod.cons_off);
	FORGE(-EPROTO, f.prod.credits_off += 1);
	FORGE(-EPROTO, f.prod.credits_off = f.prod.slots_off);
	FORGE(-EPROTO, f.prod.slots_off = f.prod.cons_off);
	FORGE(-EPROTO, f.prod.slots_off = f.prod.map_len);
	FORGE(-EPROTO, f.prod.slots_off += 1);
}

static void forged_messages(void **state)
{
	struct rgate_handover m = { .magic = RGATE_HANDOVER_MAGIC,
				    .version = RGATE_HANDOVER_VERSION };
	struct rgate_ring *ring;
	int sv[2], fds[3] = { 0, 1, 2 }, null;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sv), 0);
	assert_int_equal(send(sv[0], "hello", 5, 0), 5);
	assert_int_equal(rgate_ring_recv(&ring, sv[1]), -EPROTO);
	/* kinds without their descriptors, and descriptors that were not told of */
	m.kind = RGATE_HANDOVER_MODULE;
	assert_int_equal(send(sv[0], &m, sizeof(m), 0), sizeof(m));
	assert_int_equal(rgate_ring_recv(&ring, sv[1]), -EPROTO);
	assert_int_equal(rgate_handover_send(sv[0], RGATE_HANDOVER_MEMFD, 0, fds, 2, 0),
			 0);
	assert_int_equal(rgate_ring_recv(&ring, sv[1]), -EPROTO);
	assert_int_equal(rgate_handover_send(sv[0], RGATE_HANDOVER_WAKE, 0, NULL, 0, 0),
			 0);
	assert_int_equal(rgate_ring_recv(&ring, sv[1]), -EPROTO);
	assert_int_equal(rgate_handover_send(sv[0], RGATE_HANDOVER_MEMORY, 0, fds, 2, 0),
			 0);
	assert_int_equal(rgate_ring_recv(&ring, sv[1]), -EPROTO);
	assert_int_equal(rgate_handover_send(sv[0], RGATE_HANDOVER_MEMFD, 32, fds, 3, 0),
			 0);
	assert_int_equal(rgate_ring_recv(&ring, sv[1]), -EPROTO);
	/* files that are no rings */
	assert_int_equal(rgate_handover_send(sv[0], RGATE_HANDOVER_MEMFD, 0, fds, 3, 0),
			 0);
	assert_int_equal(rgate_ring_recv(&ring, sv[1]), -EPROTO);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	assert_int_equal(rgate_handover_send(sv[0], RGATE_HANDOVER_MODULE, 0, &null, 1,
					     0), 0);
	assert_int_equal(rgate_ring_recv(&ring, sv[1]), -EPROTO);
	close(null);
	close(sv[0]);
	assert_int_equal(rgate_ring_recv(&ring, sv[1]), -EPIPE);
	close(sv[1]);
}

/* Nothing above left a descriptor behind. */
static void no_leaks(void **state)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_true(fd >= 0 && fd < 16);
	close(fd);
}

static const struct CMUnitTest tests[] = {
	{ "consumer_area_drop", consumer_area, NULL, NULL, (void *)RGATE_POLICY_DROP },
	{ "consumer_area_overwrite", consumer_area, NULL, NULL,
	  (void *)RGATE_POLICY_OVERWRITE },
	cmocka_unit_test(fellow_consumers),
	cmocka_unit_test(slot_headers),
	cmocka_unit_test(endless),
	cmocka_unit_test(torn_backwards),
	cmocka_unit_test(last_positions),
	cmocka_unit_test(seals),
	cmocka_unit_test(forged_rings),
	cmocka_unit_test(forged_messages),
	cmocka_unit_test(no_leaks),
};

UNIT_MAIN(tests)
