// SPDX-License-Identifier: MIT OR GPL-2.0
#include "vt.h"
#include "vt_rdma.h"

#include <dirent.h>
#include <stdarg.h>
#include <net/if.h>

#define PREF	7710	/* of the routing rules; the local table moves behind them */

const char *vt_rxe_name(unsigned int i)
{
	return i ? "rgrxe1" : "rgrxe0";
}

const char *vt_rxe_netdev(unsigned int i)
{
	return i ? "rgv1" : "rgv0";
}

const char *vt_rxe_addr(unsigned int i)
{
	return i ? "10.77.0.2" : "10.77.0.1";
}

static bool there(unsigned int i)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s", vt_rxe_name(i));
	return !access(path, F_OK);
}

/* Starting a program is slow under emulation: many commands for each */
static void batch(const char *cmd, const char *fmt, ...)
{
	FILE *p = popen(cmd, "w");
	va_list ap;

	REQUIRE(p);
	va_start(ap, fmt);
	vfprintf(p, fmt, ap);
	va_end(ap);
	if (pclose(p))
		DIE("%s failed: %s", cmd, fmt);
}

static void set(const char *dev, const char *what, const char *value)
{
	char path[96];
	int fd;

	snprintf(path, sizeof(path), "/proc/sys/net/ipv4/conf/%s/%s", dev, what);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	REQUIRE(fd >= 0);
	REQUIRE(write(fd, value, strlen(value)) == (ssize_t)strlen(value));
	close(fd);
}

/*
 * Both addresses are this machine's own: rules send what goes from one to the other
 * over the wire, and take what arrives there as local.
 */
static void route(unsigned int i)
{
	const char *dev = vt_rxe_netdev(i), *addr = vt_rxe_addr(i);
	unsigned int table = PREF + i;

	set("all", "rp_filter", "0");
	set(dev, "rp_filter", "0");
	set(dev, "accept_local", "1");
	set(dev, "arp_ignore", "1");
	set(dev, "arp_announce", "2");
	batch("ip -batch -", "route replace 10.77.0.0/24 dev %s src %s table %u\n"
	      "rule add pref %u iif %s lookup local\n"
	      "rule add pref %u from %s to %s lookup local\n"
	      "rule add pref %u from %s lookup %u\n"
	      "rule add pref %u oif %s lookup %u\n", dev, addr, table, PREF, dev,
	      PREF + 1, addr, addr, PREF + 2, addr, table, PREF + 3, dev, table);
}

static void unroute(void)
{
	if (vt_sh("ip rule | grep -q ^%u:", PREF + 9))
		return;
	batch("ip -batch -", "rule add pref 0 lookup local\nrule del pref %u\n", PREF + 9);
	vt_sh("for p in %u %u %u %u; do while ip rule del pref $p; do :; done; done 2>&-",
	      PREF, PREF + 1, PREF + 2, PREF + 3);
}

/* The kernel enters addresses into the table of GIDs in its own time */
static bool addressable(unsigned int i)
{
	char path[96], gid[64], want[16];
	unsigned int k, n;
	FILE *f;

	snprintf(want, sizeof(want), "ffff:0a4d:%04x", i + 1);
	for (k = 0; k < 8; k++) {
		snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/gids/%u",
			 vt_rxe_name(i), k);
		f = fopen(path, "r");
		if (!f)
			return false;
		n = (unsigned int)fread(gid, 1, sizeof(gid) - 1, f);
		fclose(f);
		gid[n] = '\0';
		if (strstr(gid, want))
			return true;
	}
	return false;
}

/* They are there already, from the case before */
static bool as_wanted(unsigned int n)
{
	return there(0) && there(1) == (n > 1) && addressable(0) &&
	       (n < 2 || addressable(1));
}

void vt_rxe_up(unsigned int n)
{
	const char *a = vt_rxe_netdev(0), *b = vt_rxe_netdev(1);
	unsigned int i;

	if (as_wanted(n))
		return;
	if (access("/sys/module/rdma_rxe", F_OK) && vt_sh("modprobe -q rdma_rxe"))
		vt_skip("no rdma_rxe here");
	vt_rxe_down();
	vt_ipv6_off();
	/* room for a path MTU of 4096 */
	batch("ip -batch -", "link add %s mtu 4200 type veth peer name %s mtu 4200\n"
	      "addr add %s/24 dev %s\nlink set %s up\nlink set %s up\n",
	      a, b, vt_rxe_addr(0), a, a, b);
	if (n > 1) {
		batch("ip -batch -", "addr add %s/24 dev %s\nrule add pref %u lookup local\n"
		      "rule del pref 0\n", vt_rxe_addr(1), b, PREF + 9);
		route(0);
		route(1);
	}
	for (i = 0; i < n; i++) {
		batch("rdma -b -", "link add %s type rxe netdev %s\n", vt_rxe_name(i),
		      vt_rxe_netdev(i));
		if (!VT_UNTIL(addressable(i), 5000))
			DIE("%s has no address", vt_rxe_name(i));
	}
}

void vt_rxe_down(void)
{
	unsigned int i;

	for (i = 0; i < VT_RXE_MAX; i++)
		if (there(i))
			batch("rdma -b -", "link del %s\n", vt_rxe_name(i));
	if (if_nametoindex(vt_rxe_netdev(0)))
		batch("ip -batch -", "link del %s\n", vt_rxe_netdev(0));
	unroute();
}

const char *vt_rxe_uverbs(unsigned int i)
{
	static char path[64];
	struct dirent *d;
	DIR *dir = opendir("/sys/class/infiniband_verbs");

	REQUIRE(dir);
	while ((d = readdir(dir))) {
		char file[320], name[64] = "";
		FILE *f;

		snprintf(file, sizeof(file), "/sys/class/infiniband_verbs/%s/ibdev",
			 d->d_name);
		f = fopen(file, "r");
		if (!f)
			continue;
		if (fscanf(f, "%63s", name) == 1 && !strcmp(name, vt_rxe_name(i))) {
			snprintf(path, sizeof(path), "/dev/infiniband/%.32s", d->d_name);
			fclose(f);
			closedir(dir);
			return path;
		}
		fclose(f);
	}
	DIE("no uverbs device of %s", vt_rxe_name(i));
}

struct vt_rxe_res vt_rxe_res(unsigned int i)
{
	struct vt_rxe_res r = { -1, -1, -1, -1, -1 };
	char cmd[64], word[32] = "";
	FILE *p;
	int n;

	snprintf(cmd, sizeof(cmd), "rdma resource show %s", vt_rxe_name(i));
	p = popen(cmd, "r");
	REQUIRE(p);
	/* "0: rgrxe0: pd 1 cq 1 qp 1 cm_id 0 mr 0 ctx 0 srq 0" */
	while (fscanf(p, "%31s", word) == 1) {
		int *to = !strcmp(word, "pd") ? &r.pd : !strcmp(word, "cq") ? &r.cq :
			  !strcmp(word, "qp") ? &r.qp : !strcmp(word, "mr") ? &r.mr :
			  !strcmp(word, "ctx") ? &r.ctx : &n;

		if (to != &n && fscanf(p, "%d", to) != 1)
			break;
	}
	pclose(p);
	if (r.pd < 0 || r.cq < 0 || r.qp < 0 || r.mr < 0 || r.ctx < 0)
		DIE("rdma resource show %s: not understood", vt_rxe_name(i));
	return r;
}

static bool no_more(const struct vt_rxe_res *now, const struct vt_rxe_res *was)
{
	return now->pd <= was->pd && now->cq <= was->cq && now->qp <= was->qp &&
	       now->mr <= was->mr && now->ctx <= was->ctx;
}

bool vt_rxe_settled(unsigned int i, const struct vt_rxe_res *was)
{
	struct vt_rxe_res now = { 0 };
	uint64_t end = vt_now() + 10000000000ULL;

	do {
		now = vt_rxe_res(i);
		if (no_more(&now, was))
			return true;
		vt_usleep(50000);
	} while (vt_now() < end);
	vt_note("%s: pd %d cq %d qp %d mr %d ctx %d, before pd %d cq %d qp %d mr %d ctx %d",
		vt_rxe_name(i), now.pd, now.cq, now.qp, now.mr, now.ctx, was->pd, was->cq,
		was->qp, was->mr, was->ctx);
	return false;
}

void vt_verbs_open(struct vt_verbs *v)
{
	struct ibv_device **list;
	int n = 0, i;

	memset(v, 0, sizeof(*v));
	list = ibv_get_device_list(&n);
	for (i = 0; list && i < n && !v->ctx; i++)
		if (!strcmp(ibv_get_device_name(list[i]), vt_rxe_name(0)))
			v->ctx = ibv_open_device(list[i]);
	if (list)
		ibv_free_device_list(list);
	if (!v->ctx)
		DIE("%s cannot be opened (%d devices)", vt_rxe_name(0), n);
	v->pd = ibv_alloc_pd(v->ctx);
	v->cq = ibv_create_cq(v->ctx, 16, NULL, NULL, 0);
	REQUIRE(v->pd && v->cq);
}

void vt_verbs_close(struct vt_verbs *v)
{
	if (v->qp)
		EXPECT_EQ(ibv_destroy_qp(v->qp), 0);
	EXPECT_EQ(ibv_destroy_cq(v->cq), 0);
	EXPECT_EQ(ibv_dealloc_pd(v->pd), 0);
	EXPECT_EQ(ibv_close_device(v->ctx), 0);
}

static int gid_index(struct ibv_context *ctx, union ibv_gid *gid)
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

void vt_verbs_loop(struct vt_verbs *v)
{
	struct ibv_qp_init_attr init = {
		.send_cq = v->cq, .recv_cq = v->cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 8, .max_recv_wr = 8,
			 .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT, .port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
	};
	union ibv_gid gid;
	int idx = gid_index(v->ctx, &gid);

	REQUIRE(idx >= 0);
	v->qp = ibv_create_qp(v->pd, &init);
	REQUIRE(v->qp);
	REQUIRE(!ibv_modify_qp(v->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			       IBV_QP_ACCESS_FLAGS));
	a = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024,
		.dest_qp_num = v->qp->qp_num, .max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = { .is_global = 1, .port_num = 1,
			     .grh = { .dgid = gid, .sgid_index = (uint8_t)idx,
				      .hop_limit = 4 } },
	};
	REQUIRE(!ibv_modify_qp(v->qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
	a = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7,
		.rnr_retry = 7, .max_rd_atomic = 1,
	};
	REQUIRE(!ibv_modify_qp(v->qp, &a, IBV_QP_STATE | IBV_QP_TIMEOUT |
			       IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
			       IBV_QP_MAX_QP_RD_ATOMIC));
}

int vt_verbs_do(struct vt_verbs *v, enum ibv_wr_opcode op, void *local, uint32_t lkey,
		void *remote, uint32_t rkey, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)local, len, lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = op,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = (uintptr_t)remote, .rkey = rkey },
	};
	struct ibv_wc wc = { 0 };
	int n = 0;

	if (ibv_post_send(v->qp, &wr, &bad))
		return -EIO;
	VT_UNTIL((n = ibv_poll_cq(v->cq, 1, &wc)), 5000);
	if (n <= 0)
		return -ETIMEDOUT;
	return wc.status == IBV_WC_SUCCESS ? 0 : -(int)wc.status;
}
