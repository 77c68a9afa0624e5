// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * What was registered and nothing else can be reached, as it was registered and not
 * otherwise; by all registrations of the same memory alike.
 */
#include "lib/vt.h"
#include "lib/vt_rc.h"

#include <ringgate/ringgate.h>

#define RW	(RGATE_ACCESS_REMOTE_READ | RGATE_ACCESS_REMOTE_WRITE)
#define RWA	RGATE_ACCESS_REMOTE
#define LEN	(16 * 4096)

static struct rgate_device *dev, *dev2;
static uint8_t *buf;
static struct rgate_mem *bmem, *bmem2;

static void setup(unsigned int n)
{
	vt_rxe_up(n);
	vt_log_catch();
	dev = vt_dev_rdma(0);
	REQUIRE(!posix_memalign((void **)&buf, 4096, LEN));
	bmem = vt_mem(dev, buf, LEN, 0);
	if (n < 2)
		return;
	dev2 = vt_dev_rdma(1);
	bmem2 = vt_mem(dev2, buf, LEN, 0);
}

static void done(void)
{
	vt_mem_drop(bmem);
	EXPECT_EQ(rgate_device_mr_count(dev), 0);
	vt_dev_close(dev);
	if (dev2) {
		vt_mem_drop(bmem2);
		EXPECT_EQ(rgate_device_mr_count(dev2), 0);
		vt_dev_close(dev2);
	}
	free(buf);
}

static uint8_t *pages(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);

	REQUIRE(p != MAP_FAILED);
	return p;
}

/*
 * One operation on a connection of its own, as a refusal ends the connection; between two
 * queue pairs, as one that is its own peer may flush the operation before its refusal is
 * back.
 */
static int once(uint32_t peer_may, enum rgate_rc_op op, struct vt_mem_at local,
		struct vt_mem_at remote, size_t len)
{
	struct rgate_rc *rc[2];
	int err;

	vt_rc_pair(rc, dev, dev, peer_may);
	if (op == RGATE_RC_FETCH_ADD)
		err = vt_rc_add(rc[0], local, remote, 1);
	else
		err = vt_rc_do(rc[0], op, local, remote, len);
	if (err) {
		/* and it stays ended */
		struct rgate_rc_work w = { .op = RGATE_RC_WRITE };

		EXPECT(rgate_rc_do(rc[0], &w, 2000) < 0);
	}
	rgate_rc_destroy(rc[0]);
	rgate_rc_destroy(rc[1]);
	return err;
}

/* Odd beginnings and lengths: every byte inside, not one outside */
static void exact_bounds(void)
{
	uint8_t *p = pages(2 * LEN), *was = malloc(2 * LEN);
	struct rgate_rc *rc;
	unsigned int i;

	setup(1);
	rc = vt_rc_loop(dev, RW);
	vt_pkt_fill(p, 2 * LEN, 1);
	for (i = 0; i < 24; i++) {
		size_t off = 1 + vt_rand() % LEN, len = 1 + vt_rand() % (LEN - 2);
		struct rgate_mem *mem;
		struct vt_mem_at at;

		if (i < 4)
			len = i + 1;
		mem = vt_mem(dev, p + off, len, RW);
		at = vt_there(mem, 0);
		memcpy(was, p, 2 * LEN);
		vt_pkt_fill(buf, len, i + 7);
		EXPECT_EQ(vt_rc_do(rc, RGATE_RC_WRITE, vt_here(bmem, 0), at, len), 0);
		memcpy(was + off, buf, len);
		if (memcmp(p, was, 2 * LEN))
			FAIL("%zu bytes at %zu: the memory is not as it should be", len, off);
		/* one byte more, one before, one after */
		EXPECT_EQ(once(RW, RGATE_RC_WRITE, vt_here(bmem, 0), at, len + 1), -EREMOTEIO);
		at.addr--;
		EXPECT_EQ(once(RW, RGATE_RC_WRITE, vt_here(bmem, 0), at, 1), -EREMOTEIO);
		EXPECT_EQ(once(RW, RGATE_RC_READ, vt_here(bmem, 0), at, len), -EREMOTEIO);
		at.addr += len + 1;
		EXPECT_EQ(once(RW, RGATE_RC_WRITE, vt_here(bmem, 0), at, 1), -EREMOTEIO);
		EXPECT_EQ(once(RW, RGATE_RC_READ, vt_here(bmem, 0), at, 1), -EREMOTEIO);
		if (memcmp(p, was, 2 * LEN))
			FAIL("%zu bytes at %zu: what was refused was written", len, off);
		vt_mem_drop(mem);
	}
	rgate_rc_destroy(rc);
	munmap(p, 2 * LEN);
	free(was);
	done();
}

static void other_addresses(void)
{
	struct rgate_mem_opts o = RGATE_OPTS(rgate_mem_opts, .access = RW,
					     .flags = RGATE_MEM_IOVA);
	static const uint64_t iovas[] = { 0, 0x1000, 0x123456789000, 0x7ffffffff000 };
	uint8_t *p = pages(LEN);
	struct rgate_mem *mem;
	struct rgate_rc *rc;
	unsigned int i;

	setup(1);
	rc = vt_rc_loop(dev, RW);
	for (i = 0; i < VT_COUNT(iovas); i++) {
		struct vt_mem_at at;

		/* an address in a page stays where it is in the page */
		o.iova = iovas[i] + 64;
		REQUIRE_EQ(rgate_mem_register(&mem, dev, p + 64, LEN - 64, &o), 0);
		EXPECT_EQ(rgate_mem_iova(mem), o.iova);
		EXPECT(rgate_mem_addr(mem) == p + 64);
		vt_pkt_fill(buf, 10000, i);
		at = vt_there(mem, 5000);
		EXPECT_EQ(at.addr, o.iova + 5000);
		EXPECT_EQ(vt_rc_do(rc, RGATE_RC_WRITE, vt_here(bmem, 0), at, 10000), 0);
		EXPECT(!memcmp(p + 64 + 5000, buf, 10000));
		/* as the local end it goes by the same addresses */
		vt_pkt_fill(p + 64, 4096, i + 100);
		EXPECT_EQ(vt_rc_do(rc, RGATE_RC_WRITE, vt_here(mem, 0), vt_there(mem, 20000),
				   4096), 0);
		EXPECT(!memcmp(p + 64, p + 64 + 20000, 4096));
		/* its own address means nothing there */
		at.addr = (uintptr_t)p + 5000;
		EXPECT_EQ(once(RW, RGATE_RC_READ, vt_here(bmem, 0), at, 8), -EREMOTEIO);
		vt_mem_drop(mem);
	}
	o.iova = 0x10000;
	EXPECT_EQ(rgate_mem_register(&mem, dev, p + 64, 4096, &o), -EINVAL);
	o.iova = UINT64_MAX - 4095;
	EXPECT_EQ(rgate_mem_register(&mem, dev, p, LEN, &o), -EINVAL);
	rgate_rc_destroy(rc);
	munmap(p, LEN);
	done();
}

static void remote_flags(void)
{
	static const struct {
		enum rgate_rc_op op;
		uint32_t needs;
	} ops[] = {
		{ RGATE_RC_READ, RGATE_ACCESS_REMOTE_READ },
		{ RGATE_RC_WRITE, RGATE_ACCESS_REMOTE_WRITE },
		{ RGATE_RC_FETCH_ADD, RGATE_ACCESS_REMOTE_ATOMIC },
	};
	uint64_t *word = (void *)pages(4096);
	uint32_t access;
	unsigned int i;

	setup(1);
	for (access = 0; access <= RWA; access++) {
		struct rgate_mem *mem = vt_mem(dev, word, 4096, access);
		struct rgate_desc d;

		EXPECT_EQ(rgate_mem_access(mem), access);
		EXPECT_EQ(rgate_mem_desc(mem, 0, 8, &d), access ? 0 : -EACCES);
		for (i = 0; i < VT_COUNT(ops); i++) {
			bool may = access & ops[i].needs;
			uint64_t was = word[0];
			int err;

			*(uint64_t *)buf = 0x1000 + access;
			err = once(RWA, ops[i].op, vt_here(bmem, 0), vt_there(mem, 0), 8);
			if (err != (may ? 0 : -EREMOTEIO))
				FAIL("access %#x, operation %u: %d", access, ops[i].op, err);
			if (!may)
				EXPECT_EQ(word[0], was);
			else if (ops[i].op == RGATE_RC_WRITE)
				EXPECT_EQ(word[0], 0x1000 + access);
			else if (ops[i].op == RGATE_RC_FETCH_ADD)
				EXPECT_EQ(word[0], was + 1);
			else
				EXPECT_EQ(*(uint64_t *)buf, was);
		}
		vt_mem_drop(mem);
	}
	/* a connection may allow less than the memory does */
	{
		struct rgate_mem *mem = vt_mem(dev, word, 4096, RWA);

		for (i = 0; i < VT_COUNT(ops); i++) {
			uint64_t was = word[0];

			EXPECT_EQ(once(RWA & ~ops[i].needs, ops[i].op, vt_here(bmem, 0),
				       vt_there(mem, 0), 8), -EREMOTEIO);
			EXPECT_EQ(word[0], was);
		}
		vt_mem_drop(mem);
	}
	munmap(word, 4096);
	done();
}

/* Memory that the own device may only read */
static void local_flags(void)
{
	const uint32_t ro = RGATE_ACCESS_READONLY | RGATE_ACCESS_REMOTE_READ;
	struct rgate_mem *mem, *rmem;
	uint8_t *p = pages(LEN), *q = pages(LEN);
	int err;

	setup(1);
	vt_pkt_fill(p, LEN, 1);
	vt_pkt_fill(q, LEN, 2);
	memcpy(buf, p, LEN);
	mem = vt_mem(dev, p, LEN, ro);
	rmem = vt_mem(dev, q, LEN, RW);
	EXPECT_EQ(once(RW, RGATE_RC_READ, vt_here(mem, 0), vt_there(rmem, 0), 4096), -EPERM);
	EXPECT(!memcmp(p, buf, LEN));
	/* as source it will do, near and far */
	EXPECT_EQ(once(RW, RGATE_RC_WRITE, vt_here(mem, 1), vt_there(rmem, 0), 4096), 0);
	EXPECT(!memcmp(q, buf + 1, 4096));
	EXPECT_EQ(once(RW, RGATE_RC_READ, vt_here(rmem, 4096), vt_there(mem, 2), 4096), 0);
	EXPECT(!memcmp(q + 4096, buf + 2, 4096));
	EXPECT_EQ(once(RW, RGATE_RC_WRITE, vt_here(bmem, 0), vt_there(mem, 0), 1),
		  -EREMOTEIO);
	/* outside of the local region too: nothing leaves it */
	err = once(RW, RGATE_RC_WRITE, vt_here(mem, LEN - 10), vt_there(rmem, 0), 11);
	/* soft-RoCE after 6.1 flushes what it cannot begin */
	EXPECT(err == -EPERM || err == -ECANCELED);
	EXPECT(!memcmp(q, buf + 1, 4096));
	vt_mem_drop(rmem);
	vt_mem_drop(mem);
	/* relaxed or not makes no difference to what arrives */
	mem = vt_mem(dev, p, LEN, RW | RGATE_ACCESS_RELAXED);
	vt_pkt_fill(buf, LEN, 3);
	EXPECT_EQ(once(RW, RGATE_RC_WRITE, vt_here(bmem, 0), vt_there(mem, 0), LEN), 0);
	EXPECT(!memcmp(p, buf, LEN));
	vt_mem_drop(mem);
	munmap(p, LEN);
	munmap(q, LEN);
	done();
}

static void keys_die(void)
{
	struct rgate_desc d[2];
	struct rgate_mem *mem;
	struct vt_mem_at old;
	uint8_t *p = pages(LEN);
	unsigned int i;

	setup(1);
	for (i = 0; i < 2; i++) {
		mem = vt_mem(dev, p, LEN, RW);
		EXPECT_EQ(rgate_mem_desc(mem, 0, LEN, &d[i]), 0);
		old = vt_there(mem, 0);
		vt_mem_drop(mem);
		EXPECT_EQ(once(RW, RGATE_RC_READ, vt_here(bmem, 0), old, 8), -EREMOTEIO);
	}
	/* registered anew it is told apart */
	EXPECT(d[0].epoch != d[1].epoch);
	EXPECT(memcmp(&d[0], &d[1], sizeof(d[0])));
	/* a key next to a valid one is none */
	mem = vt_mem(dev, p, LEN, RW);
	old = vt_there(mem, 0);
	old.key ^= 1;
	EXPECT_EQ(once(RW, RGATE_RC_READ, vt_here(bmem, 0), old, 8), -EREMOTEIO);
	EXPECT_EQ(once(RW, RGATE_RC_READ, vt_here(bmem, 0), vt_there(mem, 0), 8), 0);
	/* ranges of it are checked before they are told to a peer */
	EXPECT_EQ(rgate_mem_desc(mem, LEN - 8, 9, &d[0]), -ERANGE);
	EXPECT_EQ(rgate_mem_desc(mem, LEN, 1, &d[0]), -ERANGE);
	EXPECT_EQ(rgate_mem_desc(mem, SIZE_MAX, 2, &d[0]), -ERANGE);
	EXPECT_EQ(rgate_mem_desc(mem, 1, SIZE_MAX, &d[0]), -ERANGE);
	EXPECT_EQ(rgate_mem_desc(mem, LEN - 8, 8, &d[0]), 0);
	vt_mem_drop(mem);
	munmap(p, LEN);
	done();
}

/* The device keeps the pages of what the process gave up */
static void pins_outlive_munmap(void)
{
	struct rgate_mem *mem;
	uint8_t *p = pages(LEN), *again;
	struct rgate_rc *rc;

	setup(1);
	rc = vt_rc_loop(dev, RW);
	mem = vt_mem(dev, p, LEN, RW);
	vt_pkt_fill(buf, LEN, 11);
	EXPECT_EQ(vt_rc_do(rc, RGATE_RC_WRITE, vt_here(bmem, 0), vt_there(mem, 0), LEN), 0);
	REQUIRE(!munmap(p, LEN));
	again = mmap(p, LEN, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	REQUIRE(again == p);
	memset(again, 0xee, LEN);
	memset(buf, 0, LEN);
	EXPECT_EQ(vt_rc_do(rc, RGATE_RC_READ, vt_here(bmem, 0), vt_there(mem, 0), LEN), 0);
	vt_pkt_fill(again, LEN, 11);
	EXPECT(!memcmp(buf, again, LEN));
	vt_mem_drop(mem);
	munmap(again, LEN);
	rgate_rc_destroy(rc);
	done();
}

/* What @n registrations of the same bytes show, through whichever device */
struct view {
	struct rgate_mem *mem;
	struct rgate_rc *rc;
	struct rgate_mem *local;	/* buf, on the same device */
};

static void alike(struct view *views, unsigned int n, const uint8_t *cpu[], unsigned int ncpu,
		  uint8_t *rw, size_t len)
{
	unsigned int i, k;

	for (i = 0; i < n; i++) {
		size_t at = vt_rand() % (len / 2), size = 1 + vt_rand() % (LEN / 2);

		if (size > len - at)
			size = len - at;
		vt_pkt_fill(buf, size, vt_rand());
		EXPECT_EQ(vt_rc_do(views[i].rc, RGATE_RC_WRITE, vt_here(views[i].local, 0),
				   vt_there(views[i].mem, at), size), 0);
		for (k = 0; k < ncpu; k++)
			if (memcmp(cpu[k] + at, buf, size))
				FAIL("mapping %u does not show what %u wrote", k, i);
		vt_pkt_fill(rw + at, size, vt_rand());
		for (k = 0; k < n; k++) {
			memset(buf, 0, size);
			EXPECT_EQ(vt_rc_do(views[k].rc, RGATE_RC_READ,
					   vt_here(views[k].local, 0),
					   vt_there(views[k].mem, at), size), 0);
			if (memcmp(rw + at, buf, size))
				FAIL("registration %u does not show what the CPU wrote", k);
		}
	}
}

/* Twice on the first device, once on the second */
static void views_make(struct view v[3], uint8_t *p, uint8_t *q, size_t len)
{
	v[0] = (struct view){ vt_mem(dev, p, len, RW), vt_rc_loop(dev, RW), bmem };
	v[1] = (struct view){ vt_mem(dev, q, len, RW), v[0].rc, bmem };
	v[2] = (struct view){ vt_mem(dev2, p, len, RW), vt_rc_loop(dev2, RW), bmem2 };
	EXPECT(rgate_mem_rkey(v[0].mem) != rgate_mem_rkey(v[1].mem));
}

static void views_drop(struct view v[3])
{
	rgate_rc_destroy(v[0].rc);
	rgate_rc_destroy(v[2].rc);
	vt_mem_drop(v[0].mem);
	vt_mem_drop(v[1].mem);
	vt_mem_drop(v[2].mem);
}

static void several_times(void)
{
	int fd = memfd_create("vt", 0);
	const uint8_t *cpu[2];
	struct view v[3];
	uint8_t *p, *q;

	setup(2);
	p = pages(LEN);
	cpu[0] = p;
	views_make(v, p, p, LEN);
	alike(v, 3, cpu, 1, p, LEN);
	/* one gone, the others stay */
	vt_mem_drop(v[1].mem);
	v[1].mem = vt_mem(dev, p, LEN, RW);
	vt_mem_drop(v[0].mem);
	v[0].mem = vt_mem(dev, p, LEN, RW);
	alike(v, 3, cpu, 1, p, LEN);
	views_drop(v);
	munmap(p, LEN);
	/* two mappings of the same pages */
	REQUIRE(fd >= 0 && !ftruncate(fd, LEN));
	p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	q = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	REQUIRE(p != MAP_FAILED && q != MAP_FAILED && p != q);
	cpu[0] = p;
	cpu[1] = q;
	views_make(v, p, q, LEN);
	alike(v, 3, cpu, 2, p, LEN);
	views_drop(v);
	done();
}

static void ring_everywhere(void)
{
	struct rgate_ring_opts o = RGATE_OPTS(rgate_ring_opts, .slots = 256,
		.slot_size = 512, .flags = RGATE_RING_RW_SLOTS);
	struct rgate_ring *ring, *other;
	const uint8_t *cpu[2];
	struct rgate_view rv, ov;
	struct view v[3];
	unsigned int i;
	struct rgate_ident att;
	size_t len;
	int tx;

	setup(2);
	vt_veth("va", "vb", 0);
	REQUIRE_EQ(rgate_ring_open(&ring, &o), 0);
	REQUIRE_EQ(rgate_ring_dup(&other, ring), 0);
	rgate_ring_view(ring, &rv);
	rgate_ring_view(other, &ov);
	EXPECT(rv.slots != ov.slots);
	len = (size_t)rv.nslots * rv.slot_size;
	cpu[0] = rv.slots;
	cpu[1] = ov.slots;
	views_make(v, rgate_ring_slots_rw(ring), rgate_ring_slots_rw(ring), len);
	alike(v, 3, cpu, 2, rgate_ring_slots_rw(ring), len);
	/* the kernel's own stores too */
	memset(rgate_ring_slots_rw(ring), 0, len);
	REQUIRE_EQ(rgate_ring_attach(ring, "vb", NULL, &att), 0);
	tx = vt_tx_open("va");
	EXPECT_EQ(vt_tx_burst(tx, 300, 0, 200), 200);
	for (i = 0; i < 3; i++) {
		uint64_t seq = 0, k;

		REQUIRE(VT_UNTIL(((const struct rgate_slot *)(rv.slots + 199 * 512))->seq,
				 3000));
		for (k = 0; k < 200; k += 64) {
			const struct rgate_slot *s = (const void *)buf;

			EXPECT_EQ(vt_rc_do(v[i].rc, RGATE_RC_READ, vt_here(v[i].local, 0),
					   vt_there(v[i].mem, k * 512), 512), 0);
			EXPECT_EQ(s->len, 300);
			EXPECT(vt_pkt_check(buf + RGATE_SLOT_HDR, 300, &seq) && seq == k);
			EXPECT(!memcmp(buf, ov.slots + k * 512, 512));
		}
	}
	views_drop(v);
	rgate_ring_close(other);
	rgate_ring_close(ring);
	vt_must("ip link del va");
	done();
}

static const struct vt_case cases[] = {
	{ .name = "any beginning and length, to the byte", .fn = exact_bounds,
	  .flags = VT_HOSTNS },
	{ .name = "addresses other than the process's", .fn = other_addresses,
	  .flags = VT_HOSTNS },
	{ .name = "each remote access needs its flag", .fn = remote_flags,
	  .flags = VT_HOSTNS },
	{ .name = "read-only for the own device, relaxed", .fn = local_flags,
	  .flags = VT_HOSTNS },
	{ .name = "keys are void afterwards", .fn = keys_die, .flags = VT_HOSTNS },
	{ .name = "pins outlive munmap", .fn = pins_outlive_munmap, .flags = VT_HOSTNS },
	{ .name = "the same memory several times, on two devices", .fn = several_times,
	  .flags = VT_HOSTNS },
	{ .name = "a ring: the kernel, two mappings, two devices", .fn = ring_everywhere,
	  .flags = VT_HOSTNS },
};

VT_RXE_MAIN(cases)
