/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * RDMA devices that are not there: the functions of libibverbs that the library calls,
 * in memory. Unit tests are linked with these, and without libibverbs. Operations are
 * carried out at once, with the checks that a device makes: keys, ranges, access.
 */
#ifndef MOCK_VERBS_H
#define MOCK_VERBS_H

#include <infiniband/verbs.h>
#include <stdbool.h>

#define MOCK_DEVICES	4
#define MOCK_GIDS	6

struct mock_gid {
	const char *addr;	/* IPv4 or IPv6; NULL: an entry of zeroes */
	uint32_t type;		/* enum ibv_gid_type */
};

struct mock_device {
	const char *name;
	bool down;		/* the port's state */
	bool infiniband;	/* link layer */
	bool no_atomics;
	int open_errno;		/* ibv_open_device() fails */
	uint8_t width, speed;	/* codes of the port; 0: 4x 25G */
	int max_mr;		/* 0: 1000 */
	int max_inline;		/* 0: none */
	int max_rd_atomic;	/* 0: 16 */
	uint64_t max_mr_size;	/* 0: no limit */
	struct mock_gid gid[MOCK_GIDS];
};

extern struct mock {
	int list_errno;		/* ibv_get_device_list() fails */
	struct mock_device dev[MOCK_DEVICES];	/* up to one without name */
	/* Failures: the n-th call from now on (1: the next), once; 0: none */
	unsigned int fail_pd, fail_cq, fail_qp, fail_modify, fail_mr;
	int fail_errno;		/* of these; 0: ENOMEM */
	int full_errno;		/* a table of regions that is full; 0: ENOMEM */
	bool fork_disabled;	/* the library is to be told that there will be a fork() */
	int fork_errno;		/* and fails then */
	unsigned int fork_inits;
	bool gone;		/* devices were removed: calls fail with EIO */
	bool windows;		/* memory windows are on all regions, which stay as long */
	unsigned int takes;	/* so many sends of the next chain, then ENOMEM; 0: all */
	int event;		/* the next asynchronous one, once; 0: none */
	bool silent;		/* sends are never completed */
	unsigned int spoils;	/* each n-th write arrives with a wrong last byte; 0: none */
	unsigned int lets;	/* each n-th access that is to be refused is done; 0: none */
	struct ibv_qp_attr modified[IBV_QPS_ERR];	/* the last one to each state */
	unsigned int send_flags;	/* of the last operation posted */
	int access;			/* of the last registration */
	unsigned int contexts, pds, mrs, cqs, qps;	/* there now */
} mock;

/* One good RoCE device "mock0" with 192.0.2.1, no failures; asserts that nothing is left */
int mock_setup(void **state);
int mock_teardown(void **state);

#endif
