// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "area.h"

#define SEALS	(F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static size_t up(size_t n, size_t to)
{
	return (n + to - 1) & ~(to - 1);
}

bool rgate_area_places_ok(uint32_t places)
{
	return places >= RGATE_REQ_PLACES_MIN && places <= RGATE_REQ_PLACES_MAX &&
	       !(places & (places - 1));
}

/* Offsets depend on the places alone, so both sides reckon them. */
static void lay_out(struct rgate_req_head *h, uint32_t requests, uint32_t completions)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t at;

	memset(h, 0, sizeof(*h));
	h->magic = RGATE_REQ_MAGIC;
	h->version = RGATE_REQ_VERSION;
	h->head_size = sizeof(*h);
	h->requests = requests;
	h->completions = completions;
	h->batch = RGATE_REQ_BATCH;

	h->server_off = sizeof(*h);
	h->req_credits_off = h->server_off + sizeof(struct rgate_req_server);
	at = h->req_credits_off + requests / RGATE_REQ_BATCH * sizeof(uint64_t);
	h->completions_off = up(at, 64);
	at = h->completions_off + completions * sizeof(struct rgate_completion);

	h->client_off = up(at, page);
	h->comp_credits_off = h->client_off + sizeof(struct rgate_req_client);
	at = h->comp_credits_off + completions / RGATE_REQ_BATCH * sizeof(uint64_t);
	h->requests_off = up(at, 64);
	at = h->requests_off + requests * sizeof(struct rgate_request);
	h->area_len = up(at, page);
}

size_t rgate_area_len(uint32_t requests, uint32_t completions)
{
	struct rgate_req_head h;

	lay_out(&h, requests, completions);
	return h.area_len;
}

static void point(struct rgate_area *a, unsigned char *base, const struct rgate_req_head *h)
{
	a->base = base;
	a->len = h->area_len;
	a->req_mask = h->requests - 1;
	a->comp_mask = h->completions - 1;
	a->req_shift = (unsigned int)__builtin_ctz(h->requests);
	a->comp_shift = (unsigned int)__builtin_ctz(h->completions);
	a->head = (void *)base;
	a->server = (void *)(base + h->server_off);
	a->client = (void *)(base + h->client_off);
	a->req_credits = (void *)(base + h->req_credits_off);
	a->comp_credits = (void *)(base + h->comp_credits_off);
	a->requests = (void *)(base + h->requests_off);
	a->completions = (void *)(base + h->completions_off);
}

int rgate_area_memfd(const char *name, uint64_t len)
{
	int err, fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -errno;
	/* Sealed: who has it cannot cut it under the engine, which would get SIGBUS. */
	if (ftruncate(fd, (off_t)len) < 0 || fcntl(fd, F_ADD_SEALS, SEALS) < 0) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

int rgate_area_create(struct rgate_area *area, uint32_t requests, uint32_t completions,
		      uint64_t mem_len, uint32_t owner, int *fd)
{
	struct rgate_req_head h;
	void *base;
	int err, f;

	lay_out(&h, requests, completions);
	h.mem_len = mem_len;
	h.owner = owner;
	f = rgate_area_memfd("ringgate-requests", h.area_len);
	if (f < 0)
		return f;
	base = mmap(NULL, h.area_len, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0);
	if (base == MAP_FAILED) {
		err = -errno;
		close(f);
		return err;
	}
	point(area, base, &h);
	*area->head = h;
	__atomic_store_n(&area->server->state, RGATE_REQ_OPEN, __ATOMIC_RELEASE);
	*fd = f;
	return 0;
}

static bool head_ok(const struct rgate_req_head *is, const struct rgate_req_head *has_to,
		    uint64_t mem_len)
{
	return is->head_size >= sizeof(*is) && is->requests == has_to->requests &&
	       is->completions == has_to->completions && is->batch == has_to->batch &&
	       is->area_len == has_to->area_len && is->mem_len == mem_len &&
	       is->server_off == has_to->server_off && is->client_off == has_to->client_off &&
	       is->req_credits_off == has_to->req_credits_off &&
	       is->comp_credits_off == has_to->comp_credits_off &&
	       is->requests_off == has_to->requests_off &&
	       is->completions_off == has_to->completions_off;
}

int rgate_area_map(struct rgate_area *area, int fd, uint32_t requests, uint32_t completions,
		   uint64_t mem_len)
{
	struct rgate_req_head h;
	struct stat st;
	void *base;
	int err;

	if (!rgate_area_places_ok(requests) || !rgate_area_places_ok(completions))
		return -EPROTO;
	lay_out(&h, requests, completions);
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size < 0 || (uint64_t)st.st_size != h.area_len)
		return -EPROTO;
	base = mmap(NULL, h.area_len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED)
		return -errno;
	if (madvise(base, h.area_len, MADV_DONTFORK) < 0) {
		err = -errno;
		goto unmap;
	}
	point(area, base, &h);
	err = -EPROTO;
	if (area->head->magic != RGATE_REQ_MAGIC)
		goto unmap;
	err = -EPROTONOSUPPORT;
	if (area->head->version != RGATE_REQ_VERSION || area->head->features)
		goto unmap;
	err = -EPROTO;
	if (!head_ok(area->head, &h, mem_len))
		goto unmap;
	return 0;
unmap:
	munmap(base, h.area_len);
	return err;
}

void rgate_area_unmap(struct rgate_area *area)
{
	munmap(area->base, area->len);
}
