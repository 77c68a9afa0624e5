/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * A reliable connected queue pair with a completion queue of its own, connected by
 * an address record that the two ends exchange as they like (a pipe, a socket, or the
 * same process for loopback). One thread at a time.
 */
#ifndef RGATE_MEM_RC_H
#define RGATE_MEM_RC_H

#include <infiniband/verbs.h>
#include <stdbool.h>

#include <ringgate/rgate_mem.h>

struct rgate_rc;

struct rgate_rc_opts {
	size_t sz;
	uint32_t send_wr;	/* depth, 0: 64 */
	uint32_t recv_wr;	/* depth, 0: 64 */
	uint32_t sge;		/* of an operation, 0: 1 */
	uint32_t inline_data;	/* bytes wanted, less where the device can less */
	uint32_t access;	/* enum rgate_access: what the peer may do; 0: nothing */
	uint32_t timeout_ms;	/* no answer for so long: the connection fails; 0: 1000 */
	bool events;		/* rgate_rc_fd() is wanted */
};

#define RGATE_RC_SGE	8	/* of an operation at most */
#define RGATE_RC_POST	64	/* operations at once, handed to the device as one chain */
#define RGATE_RC_RETRIES 6	/* of what was not answered; soft-RoCE takes 7 for ever */
#define RGATE_RC_MIN_RNR 12	/* 0.64 ms: IBTA, table 45 */

/* What one end tells the other, little-endian */
struct rgate_rc_addr {
	uint8_t gid[16];
	uint32_t qpn;
	uint32_t psn;
	uint16_t lid;
	uint8_t mtu;		/* enum ibv_mtu */
	uint8_t rd_atomic;	/* reads and atomics it serves at once */
	uint8_t reserved[4];
};

enum rgate_rc_op {
	RGATE_RC_SEND,
	RGATE_RC_SEND_IMM,
	RGATE_RC_WRITE,
	RGATE_RC_WRITE_IMM,
	RGATE_RC_READ,
	RGATE_RC_FETCH_ADD,	/* 8 bytes to @addr, host order */
	RGATE_RC_COMPARE_SWAP,
};

struct rgate_rc_work {
	enum rgate_rc_op op;
	bool fence;		/* begins after reads and atomics before it are done */
	bool quiet;		/* no completion unless it fails */
	bool inlined;		/* bytes are taken from @addr at once */
	uint64_t id;
	void *addr;		/* local */
	uint32_t length;
	uint32_t lkey;
	const struct ibv_sge *sge; /* instead of these three, @nsge pieces; NULL: those */
	uint32_t nsge;
	uint64_t remote;
	uint32_t rkey;
	uint32_t imm;		/* host order */
	uint64_t operand;	/* added, or compared with */
	uint64_t swap;
};

int rgate_rc_create(struct rgate_rc **rc, struct rgate_device *dev,
		    const struct rgate_rc_opts *opts);
void rgate_rc_destroy(struct rgate_rc *rc);
void rgate_rc_addr(const struct rgate_rc *rc, struct rgate_rc_addr *addr);
/* -EPROTO: malformed address; -ENETUNREACH; -ETIMEDOUT */
int rgate_rc_connect(struct rgate_rc *rc, const struct rgate_rc_addr *peer);

/* All or none: -ENOBUFS: queue full; -ENOTCONN: failed before. -EIO: device gone, or it
 * took a part only: the connection has failed */
int rgate_rc_post(struct rgate_rc *rc, const struct rgate_rc_work *work, unsigned int n);
/* The same of @n requests that the caller chained, and has checked */
int rgate_rc_post_wr(struct rgate_rc *rc, struct ibv_send_wr *wr, unsigned int n);
int rgate_rc_recv(struct rgate_rc *rc, uint64_t id, void *addr, uint32_t length,
		  uint32_t lkey);

/*
 * The next completion, sent or received. 1: there is one (look at @wc->status);
 * 0: none within @timeout_ms (0: look once); -EIO: device gone.
 */
int rgate_rc_poll(struct rgate_rc *rc, struct ibv_wc *wc, int timeout_ms);

/* Up to @n completions at once: how many, or -EIO: device gone */
int rgate_rc_poll_n(struct rgate_rc *rc, struct ibv_wc *wc, int n);

/*
 * With opts.events: readable once something completed after rgate_rc_arm(), which
 * forgets earlier signs: poll once more after it.
 */
int rgate_rc_fd(const struct rgate_rc *rc);
int rgate_rc_arm(struct rgate_rc *rc);
/* Bytes that can be inlined; what is waited for an answer, as a queue pair has it */
uint32_t rgate_rc_inline(const struct rgate_rc *rc);
uint8_t rgate_rc_ack_timeout(uint32_t ms);
/* enum rgate_access as the verbs have it for queue pairs */
unsigned int rgate_rc_qp_access(uint32_t access);

/* One operation from beginning to end: 0 or -errno of its status (-EREMOTEIO: refused
 * by the peer's device, -ETIMEDOUT: no answer, -EPERM: refused by the own device,
 * -ECANCELED: flushed). Nothing else may be outstanding. */
int rgate_rc_do(struct rgate_rc *rc, const struct rgate_rc_work *work, int timeout_ms);

/* The queue pair for the user's own verbs; and -errno for a completion's status */
struct ibv_qp *rgate_rc_qp(const struct rgate_rc *rc);
int rgate_rc_status(enum ibv_wc_status status);

#endif
