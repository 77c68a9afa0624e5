// SPDX-License-Identifier: MIT OR GPL-2.0
/* Ring memory as a memory region of an RDMA device (Soft-RoCE over veth). */
#include "lib/vt.h"

#include <arpa/inet.h>
#include <infiniband/verbs.h>

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp;

/* A device on lo's brother: a veth with an address, in the initial namespace */
static void device(void)
{
	struct ibv_device **list;
	unsigned int tries;
	int n = 0, i;

	vt_sh("modprobe -q rdma_rxe");
	vt_sh("ip link del rgva 2>/dev/null");
	vt_must("ip link add rgva type veth peer name rgvb && "
		"ip addr add 10.77.0.1/24 dev rgva && "
		"ip link set rgva up && ip link set rgvb up");
	if (vt_sh("rdma link add rgrxe type rxe netdev rgva"))
		vt_skip("no rdma_rxe here");
	for (tries = 0; tries < 50 && !ctx; tries++) {
		list = ibv_get_device_list(&n);
		for (i = 0; list && i < n && !ctx; i++)
			if (!strcmp(ibv_get_device_name(list[i]), "rgrxe"))
				ctx = ibv_open_device(list[i]);
		if (list)
			ibv_free_device_list(list);
		if (!ctx)
			vt_usleep(100000);
	}
	if (!ctx)
		vt_skip("the RDMA device cannot be opened (%d devices)", n);
	pd = ibv_alloc_pd(ctx);
	cq = ibv_create_cq(ctx, 16, NULL, NULL, 0);
	REQUIRE(pd && cq);
}

static void cleanup(void)
{
	if (qp)
		ibv_destroy_qp(qp);
	ibv_destroy_cq(cq);
	ibv_dealloc_pd(pd);
	ibv_close_device(ctx);
	vt_must("rdma link del rgrxe");
	vt_must("ip link del rgva");
}

static int gid_index(union ibv_gid *gid)
{
	int i;

	/* the IPv4-mapped one is RoCE v2's */
	for (i = 0; i < 16; i++) {
		if (ibv_query_gid(ctx, 1, i, gid))
			break;
		if (gid->raw[10] == 0xff && gid->raw[11] == 0xff && gid->raw[12] == 10)
			return i;
	}
	return -1;
}

/* A queue pair connected to itself */
static void loop(void)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 8, .max_recv_wr = 8,
			 .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT, .port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
	};
	union ibv_gid gid;
	int idx = -1;

	EXPECT(VT_UNTIL((idx = gid_index(&gid)) >= 0, 3000));
	REQUIRE(idx >= 0);
	qp = ibv_create_qp(pd, &init);
	REQUIRE(qp);
	REQUIRE(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			       IBV_QP_ACCESS_FLAGS));
	a = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024,
		.dest_qp_num = qp->qp_num, .max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = { .is_global = 1, .port_num = 1,
			     .grh = { .dgid = gid, .sgid_index = (uint8_t)idx,
				      .hop_limit = 4 } },
	};
	REQUIRE(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
	a = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7,
		.rnr_retry = 7, .max_rd_atomic = 1,
	};
	REQUIRE(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_TIMEOUT |
			       IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
			       IBV_QP_MAX_QP_RD_ATOMIC));
}

static int rdma(enum ibv_wr_opcode op, void *local, uint32_t lkey, void *remote,
		uint32_t rkey, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)local, len, lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = op,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = (uintptr_t)remote, .rkey = rkey },
	};
	struct ibv_wc wc = { 0 };
	int n = 0;

	if (ibv_post_send(qp, &wr, &bad))
		return -EIO;
	VT_UNTIL((n = ibv_poll_cq(cq, 1, &wc)), 5000);
	if (n <= 0)
		return -ETIMEDOUT;
	return wc.status == IBV_WC_SUCCESS ? 0 : -(int)wc.status;
}

#define MR_FLAGS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

static void write_lands_in_the_ring(void)
{
	static uint8_t src[65536] __attribute__((aligned(4096)));
	struct ibv_mr *mr, *smr;
	struct vt_ring r, other;
	uint8_t *rw;
	size_t len;
	int i;

	device();
	loop();
	vt_ring_open(&r, 256, 2048, RGATE_RING_RW_SLOTS, 0);
	vt_ring_attach(&other, r.fd);
	/* consumer area and slots are one writable mapping */
	len = r.geo.map_len - r.geo.cons_off;
	rw = r.map + r.geo.cons_off;
	mr = ibv_reg_mr(pd, rw, len, MR_FLAGS);
	if (!mr)
		DIE("ibv_reg_mr of consumer area and slots: %s", strerror(errno));
	smr = ibv_reg_mr(pd, src, sizeof(src), MR_FLAGS);
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
	vt_ipv6_off();
	vt_veth("va", "vb", 0);
	vt_nl_open(&nl);
	vt_ring_open(&r, 256, 2048, RGATE_RING_RW_SLOTS, 0);
	mr = ibv_reg_mr(pd, r.map + r.geo.cons_off, r.geo.map_len - r.geo.cons_off,
			MR_FLAGS);
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
	mr = ibv_reg_mr(pd, r.map, r.geo.cons_off, MR_FLAGS);
	EXPECT(!mr);
	mr = ibv_reg_mr(pd, r.slots, r.geo.map_len - r.geo.slots_off, MR_FLAGS);
	EXPECT(!mr);
	mr = ibv_reg_mr(pd, r.map, r.geo.map_len, MR_FLAGS);
	EXPECT(!mr);
	vt_ring_close(&r);
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
	loop();
	smr = ibv_reg_mr(pd, src, sizeof(src), MR_FLAGS);
	vt_ring_open(&r, 256, 2048, RGATE_RING_RW_SLOTS, 0);
	mr = ibv_reg_mr(pd, r.map + r.geo.cons_off, r.geo.map_len - r.geo.cons_off,
			MR_FLAGS);
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
	{ .name = "pins outlive close, munmap and rmmod", .fn = pins_outlive_all,
	  .flags = VT_HOSTNS },
};

VT_MAIN(cases)
