/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* `ringgate pool`: what its parts share. */
#ifndef POOL_H
#define POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "pool_peer.h"
#include "pool_report.h"

/* The command and its parts; each returns an exit code */
int pool_main(int argc, char **argv);
int pool_plan(int argc, char **argv);
int pool_verify(int argc, char **argv);

struct verify_opts {
	uint64_t size;		/* of the pool's region */
	uint64_t buffer;
	uint64_t seed;
	uint64_t time_ns;	/* one wait lasts no longer */
	uint32_t rounds;	/* random places */
	const char *device;	/* NULL: the best */
	const char *peer_device; /* NULL: the same */
	bool seeded;
	bool local;
	bool json;
};

/* What all parts of the verification work with */
struct verify {
	const struct verify_opts *o;
	struct report report;
	struct pool_side side;	/* this process's */
	struct peer peer;	/* the other process */
	uint64_t peer_buffers;
	uint64_t peer_off;	/* of the first of these in the peer's region */
	uint64_t peer_length;	/* of that region */
	uint64_t mtu;		/* bytes; 0: no device */
	uint64_t rng;
	uint64_t keys;		/* patterns made so far */
	unsigned int broken;	/* connections that failed where none should */
	bool let_through;	/* writes beside a buffer were not stopped */
};

/*
 * Each goes through its checks and enters what it finds in the report. 0, or -errno
 * where it could not go on: that was said.
 */
int pool_carve_checks(struct verify *v);
int pool_peer_open(struct verify *v);
int pool_xfer_checks(struct verify *v);
int pool_refuse_checks(struct verify *v);
int pool_local_checks(struct verify *v);

/* A key for a pattern that was not there before */
uint64_t pool_key(struct verify *v);

/*
 * pool_place - a piece of one of @n buffers
 * @i: 0: the first @len bytes of the first, 1: the last of the last, else somewhere, on a
 * multiple of @align
 */
struct piece pool_place(struct verify *v, uint64_t n, uint32_t i, size_t len, size_t align);

/* The @n-th length that transfers are tried with, or 0 after the last */
size_t pool_length(const struct verify *v, unsigned int n);

/* (Re-)makes the connection */
int pool_connect(struct verify *v);

/* One operation from beginning to end. 0 or -errno as rgate_rc_do(). After -ETIMEDOUT and
 * -EINTR the connection has to be made anew. */
int pool_do(struct verify *v, const struct rgate_rc_work *w);

#endif
