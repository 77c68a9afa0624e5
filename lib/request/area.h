/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* A session's area in memory: as the engine makes it, and as the client maps it */
#ifndef RGATE_REQUEST_AREA_H
#define RGATE_REQUEST_AREA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ringgate/request.h>

/* Where things are, from numbers of one's own: the other side can write those in the area. */
struct rgate_area {
	unsigned char *base;
	size_t len;
	uint64_t req_mask, comp_mask;		/* places - 1 */
	unsigned int req_shift, comp_shift;	/* log2 of the places */
	struct rgate_req_head *head;
	struct rgate_req_server *server;
	struct rgate_req_client *client;
	uint64_t *req_credits, *comp_credits;
	struct rgate_request *requests;
	struct rgate_completion *completions;
};

/* Number of places as they can be? */
bool rgate_area_places_ok(uint32_t places);

/* Bytes of the area */
size_t rgate_area_len(uint32_t requests, uint32_t completions);

/*
 * rgate_area_create - a sealed memfd with a new area, mapped
 * @fd: out, close-on-exec, the caller's
 * -EMFILE, -ENOMEM and others of memfd_create(2), ftruncate(2), mmap(2)
 */
int rgate_area_create(struct rgate_area *area, uint32_t requests, uint32_t completions,
		      uint64_t mem_len, uint32_t owner, int *fd);

/*
 * rgate_area_map - maps what came from an engine
 * Not inherited over fork(2). -EPROTO: not such a file, or another one than was told;
 * -EPROTONOSUPPORT; -errno of fstat(2), mmap(2)
 */
int rgate_area_map(struct rgate_area *area, int fd, uint32_t requests, uint32_t completions,
		   uint64_t mem_len);

void rgate_area_unmap(struct rgate_area *area);

/* A sealed memfd of @len bytes, whole pages, zeroed; or -errno */
int rgate_area_memfd(const char *name, uint64_t len);

static inline uint64_t rgate_area_req_lap(const struct rgate_area *a, uint64_t pos)
{
	return (pos >> a->req_shift) + 1;
}

static inline uint64_t rgate_area_comp_lap(const struct rgate_area *a, uint64_t pos)
{
	return (pos >> a->comp_shift) + 1;
}

/* The credit word of the batch that @pos lies in */
static inline uint64_t *rgate_area_req_credit(const struct rgate_area *a, uint64_t pos)
{
	return &a->req_credits[(pos & a->req_mask) >> RGATE_REQ_BATCH_SHIFT];
}

static inline uint64_t *rgate_area_comp_credit(const struct rgate_area *a, uint64_t pos)
{
	return &a->comp_credits[(pos & a->comp_mask) >> RGATE_REQ_BATCH_SHIFT];
}

#endif
