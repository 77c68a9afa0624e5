/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * RDMA devices in software (Soft-RoCE) on the ends of a veth pair. All in the initial
 * network namespace, where such devices work on every kernel: cases that use them are
 * VT_HOSTNS.
 */
#ifndef VT_RDMA_H
#define VT_RDMA_H

#include <stdbool.h>
#include <stdint.h>
#include <infiniband/verbs.h>

#define VT_RXE_MAX	2

/*
 * Makes @n devices, 1 or 2, unless the case before left just these; waits until they
 * can be addressed. With two, what goes from one to the other passes the veth. No verb
 * is called, so that a case may fork afterwards. Skips the case where the kernel has no
 * Soft-RoCE.
 */
void vt_rxe_up(unsigned int n);
/* All contexts have to be closed, else the kernel lets this wait */
void vt_rxe_down(void);

/* Takes the devices down after the last case */
#define VT_RXE_MAIN(cases)						\
	int main(void)							\
	{								\
		int bad = vt_run(cases, VT_COUNT(cases));		\
									\
		vt_rxe_down();						\
		return bad;						\
	}

const char *vt_rxe_name(unsigned int i);
const char *vt_rxe_netdev(unsigned int i);
const char *vt_rxe_addr(unsigned int i);	/* IPv4 */
/* /dev/infiniband/uverbs* of the device */
const char *vt_rxe_uverbs(unsigned int i);

/* What is allocated on a device, of all processes and the kernel */
struct vt_rxe_res {
	int pd, cq, qp, mr, ctx;
};

struct vt_rxe_res vt_rxe_res(unsigned int i);
/* Waits until there is no more than in @was; true if so */
bool vt_rxe_settled(unsigned int i, const struct vt_rxe_res *was);

/* Device 0 by plain verbs, and a queue pair connected to itself */
struct vt_verbs {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

#define VT_MR_FLAGS							\
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

void vt_verbs_open(struct vt_verbs *v);
void vt_verbs_loop(struct vt_verbs *v);
void vt_verbs_close(struct vt_verbs *v);
/* One RDMA operation from beginning to end; 0 or -errno or -status */
int vt_verbs_do(struct vt_verbs *v, enum ibv_wr_opcode op, void *local, uint32_t lkey,
		void *remote, uint32_t rkey, uint32_t len);

#endif
