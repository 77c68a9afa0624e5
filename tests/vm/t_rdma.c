// SPDX-License-Identifier: MIT OR GPL-2.0
/* Ring memory as a memory region of an RDMA device (Soft-RoCE over veth). */
#include "lib/vt.h"
#include "lib/vt_rc.h"

static struct vt_verbs v;

static void device(void)
{
	vt_rxe_up(1);
	vt_verbs_open(&v);
}

static void cleanup(void)
{
	vt_verbs_close(&v);
}

static int rdma(enum ibv_wr_opcode op, void *local, uint32_t lkey, void *remote,
		uint32_t rkey, uint32_t len)
{
	return vt_verbs_do(&v, op, local, lkey, remote, rkey, len);
}

static void write_lands_in_the_ring(void)
{
	static uint8_t src[65536] __attribute__((aligned(4096)));
	struct ibv_mr *mr, *smr;
	struct vt_ring r, other;
	uint8_t *rw;
	size_t len;
	int i;

	device();
	vt_verbs_loop(&v);
	vt_ring_open(&r, 256, 2048, RGATE_RING_RW_SLOTS, 0);
	vt_ring_attach(&other, r.fd);
	/* consumer area and slots are one writable mapping */
	len = r.geo.map_len - r.geo.cons_off;
	rw = r.map + r.geo.cons_off;
	mr = ibv_reg_mr(v.pd, rw, len, VT_MR_FLAGS);
	if (!mr)
		DIE("ibv_reg_mr of consumer area and slots: %s", strerror(errno));
	smr = ibv_reg_mr(v.pd, src, sizeof(src), VT_MR_FLAGS);
	REQUIRE(smr);
	for (i = 0; i < 8; i++) {
		uint8_t *at = r.slots + i * 60000;

		vt_pkt_fill(src, 32768, (uint64_t)i);
		REQUIRE_EQ(rdma(IBV_WR_RDMA_WRITE, src, smr->lkey, at, mr->rkey, 32768), 0);
		/* seen by the other handle's mapping: the kernel's own pages */
		EXPECT(!memcmp(other.slots + i * 60000, src, 32768));
	}
	/* the consumer area too: a credit by RDMA */
	*(uint64_t *)src = 0x1122334455667788;
	REQUIRE_EQ(rdma(IBV_WR_RDMA_WRITE, src, smr->lkey, (void *)&r.credits[1],
			mr->rkey, 8), 0);
	EXPECT_EQ(other.credits[1], 0x1122334455667788);
	/* and read back */
	REQUIRE_EQ(rdma(IBV_WR_RDMA_READ, src, smr->lkey, r.slots, mr->rkey, 4096), 0);
	EXPECT(!memcmp(src, other.slots, 4096));
	EXPECT(!ibv_dereg_mr(mr));
	EXPECT(!ibv_dereg_mr(smr));
	vt_ring_close(&other);
	vt_ring_close(&r);
	cleanup();
}

static void frames_under_rdma(void)
{
	struct vt_ring r;
	struct ibv_mr *mr;
	struct vt_nl nl;
	int tx;

	device();
	vt_veth("va", "vb", 0);
	vt_nl_open(&nl);
	vt_ring_open(&r, 256, 2048, RGATE_RING_RW_SLOTS, 0);
	mr = ibv_reg_mr(v.pd, r.map + r.geo.cons_off, r.geo.map_len - r.geo.cons_off,
			VT_MR_FLAGS);
	REQUIRE(mr);
	vt_att_simple(&nl, "vb", r.id);
	tx = vt_tx_open("va");
	vt_tx_burst(tx, 1000, 0, 200);
	EXPECT_EQ(vt_ring_verify(&r, NULL, 200, 2000), 200);
	EXPECT(!ibv_dereg_mr(mr));
	vt_ring_close(&r);
	vt_must("ip link del va");
	cleanup();
}

/* What may not be written may not be registered for writing */
static void readonly_stays_so(void)
{
	struct ibv_mr *mr;
	struct vt_ring r;

	device();
	vt_ring_open(&r, 256, 2048, 0, 0);
	mr = ibv_reg_mr(v.pd, r.map, r.geo.cons_off, VT_MR_FLAGS);
	EXPECT(!mr);
	mr = ibv_reg_mr(v.pd, r.slots, r.geo.map_len - r.geo.slots_off, VT_MR_FLAGS);
	EXPECT(!mr);
	mr = ibv_reg_mr(v.pd, r.map, r.geo.map_len, VT_MR_FLAGS);
	EXPECT(!mr);
	vt_ring_close(&r);
	cleanup();
}

/* A part of a ring's mapping */
struct area {
	const char *name;
	uint8_t *at;
	size_t len;
	bool writable;		/* as it is mapped */
};

/* Is registered for @access: 0, or -errno. What it then reads by RDMA is there. */
static int registers(const struct area *a, int access)
{
	static uint8_t buf[4096] __attribute__((aligned(4096)));
	struct ibv_mr *mr = ibv_reg_mr(v.pd, a->at, a->len, access), *to;

	if (!mr)
		return -errno;
	if (access & IBV_ACCESS_REMOTE_READ) {
		to = ibv_reg_mr(v.pd, buf, sizeof(buf), VT_MR_FLAGS);
		REQUIRE(to);
		memset(buf, 0xee, sizeof(buf));
		EXPECT_EQ(rdma(IBV_WR_RDMA_READ, buf, to->lkey, a->at, mr->rkey, 4096), 0);
		EXPECT(!memcmp(buf, a->at, 4096));
		EXPECT(!ibv_dereg_mr(to));
	}
	EXPECT(!ibv_dereg_mr(mr));
	return 0;
}

/* The table "What ibv_reg_mr registers" in abi.rst, for the kernel that runs */
static void what_registers(void)
{
	static const struct {
		const char *name;
		int flags;
		bool writes;
	} access[] = {
		{ "nothing but local reads", 0, false },
		{ "REMOTE_READ", IBV_ACCESS_REMOTE_READ, false },
		{ "LOCAL_WRITE", IBV_ACCESS_LOCAL_WRITE, true },
		{ "LOCAL_WRITE, REMOTE_READ", IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ,
		  true },
		{ "all", VT_MR_FLAGS, true },
	};
	struct vt_ring ro, rw;
	unsigned int i, k;

	device();
	vt_verbs_loop(&v);
	vt_ring_open(&ro, 256, 2048, 0, 0);
	vt_ring_open(&rw, 256, 2048, RGATE_RING_RW_SLOTS, 0);
	{
		const size_t cons = ro.geo.slots_off - ro.geo.cons_off;
		const size_t slots = ro.geo.map_len - ro.geo.slots_off;
		const struct area areas[] = {
			{ "producer area", ro.map, ro.geo.cons_off, false },
			{ "consumer area", (uint8_t *)ro.cons, cons, true },
			{ "slots", ro.slots, slots, false },
			{ "slots of RW_SLOTS", rw.slots, slots, true },
			{ "consumer area and slots of RW_SLOTS", (uint8_t *)rw.cons,
			  cons + slots, true },
			{ "whole mapping", ro.map, ro.geo.map_len, false },
			{ "whole mapping of RW_SLOTS", rw.map, rw.geo.map_len, false },
		};

		for (i = 0; i < VT_COUNT(areas); i++)
			for (k = 0; k < VT_COUNT(access); k++) {
				int err = registers(&areas[i], access[k].flags), want = 0;

				/* before 6.2 all is pinned for writing */
				if (!areas[i].writable &&
				    (access[k].writes || vt_kernel_before(6, 2)))
					want = -EFAULT;
				if (err != want)
					FAIL("%s, %s: %d, not %d", areas[i].name,
					     access[k].name, err, want);
			}
	}
	vt_ring_close(&ro);
	vt_ring_close(&rw);
	cleanup();
}

/* Pins keep the pages alive when file and mapping are gone; the module may go */
static void pins_outlive_all(void)
{
	static uint8_t src[8192] __attribute__((aligned(4096)));
	struct ibv_mr *mr, *smr;
	struct vt_ring r;
	uint8_t *addr;
	uint32_t rkey;
	int err;

	device();
	vt_verbs_loop(&v);
	smr = ibv_reg_mr(v.pd, src, sizeof(src), VT_MR_FLAGS);
	vt_ring_open(&r, 256, 2048, RGATE_RING_RW_SLOTS, 0);
	mr = ibv_reg_mr(v.pd, r.map + r.geo.cons_off, r.geo.map_len - r.geo.cons_off,
			VT_MR_FLAGS);
	REQUIRE(mr && smr);
	addr = r.slots;
	rkey = mr->rkey;
	vt_pkt_fill(src, 4096, 1);
	REQUIRE_EQ(rdma(IBV_WR_RDMA_WRITE, src, smr->lkey, addr, rkey, 4096), 0);
	vt_ring_close(&r);
	/* the memory region is all that is left */
	memset(src, 0, 4096);
	EXPECT_EQ(rdma(IBV_WR_RDMA_READ, src, smr->lkey, addr, rkey, 4096), 0);
	{
		uint8_t want[4096];

		vt_pkt_fill(want, 4096, 1);
		EXPECT(!memcmp(src, want, 4096));
	}
	EXPECT_EQ(rdma(IBV_WR_RDMA_WRITE, src, smr->lkey, addr + 8192, rkey, 4096), 0);
	err = vt_rmmod();
	if (err)
		FAIL("rmmod with only pins left: %s", strerror(-err));
	/* the module is gone, the pages are not */
	memset(src, 0, 4096);
	EXPECT_EQ(rdma(IBV_WR_RDMA_READ, src, smr->lkey, addr, rkey, 4096), 0);
	EXPECT(src[0] | src[1] | src[2] | src[3]);
	/* new memory is never memory that is still pinned */
	if (!err) {
		int i;

		REQUIRE(!vt_insmod(""));
		for (i = 0; i < 8; i++) {
			vt_ring_open(&r, 256, 2048, RGATE_RING_RW_SLOTS, 0);
			memset(r.slots, 0xee, r.geo.map_len - r.geo.slots_off);
			vt_ring_close(&r);
		}
		EXPECT_EQ(rdma(IBV_WR_RDMA_READ, src, smr->lkey, addr, rkey, 4096), 0);
		vt_pkt_fill(src + 4096, 4096, 1);
		EXPECT(!memcmp(src, src + 4096, 4096));
	}
	EXPECT(!ibv_dereg_mr(mr));
	EXPECT(!ibv_dereg_mr(smr));
	cleanup();
}

static const struct vt_case cases[] = {
	{ .name = "RDMA writes land in the ring's pages", .fn = write_lands_in_the_ring,
	  .flags = VT_HOSTNS },
	{ .name = "a registered ring receives", .fn = frames_under_rdma,
	  .flags = VT_HOSTNS },
	{ .name = "read-only parts cannot be registered for writing",
	  .fn = readonly_stays_so, .flags = VT_HOSTNS },
	{ .name = "which parts register, for which access", .fn = what_registers,
	  .flags = VT_HOSTNS },
	{ .name = "pins outlive close, munmap and rmmod", .fn = pins_outlive_all,
	  .flags = VT_HOSTNS },
};

VT_RXE_MAIN(cases)
