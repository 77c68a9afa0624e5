// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "geometry.h"
#include "log.h"
#include "memfd_mem.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

/* Bytes of the two files */
static uint64_t prod_bytes(const struct rgate_geometry *geo)
{
	return geo->cons_off + (geo->map_len - geo->slots_off);
}

static uint64_t cons_bytes(const struct rgate_geometry *geo)
{
	return geo->slots_off - geo->cons_off;
}

/* A reservation of the whole range, with the three areas laid over it */
static int map_three(int fd_prod, int fd_cons, const struct rgate_geometry *geo,
		     int prot, unsigned char **out)
{
	unsigned char *base;
	int err;

	base = mmap(NULL, geo->map_len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (base == MAP_FAILED)
		return -errno;
	if (mmap(base, geo->cons_off, prot, MAP_SHARED | MAP_FIXED | MAP_POPULATE,
		 fd_prod, 0) == MAP_FAILED ||
	    mmap(base + geo->cons_off, cons_bytes(geo), PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd_cons, 0) == MAP_FAILED ||
	    mmap(base + geo->slots_off, geo->map_len - geo->slots_off, prot,
		 MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd_prod,
		 (off_t)geo->cons_off) == MAP_FAILED) {
		err = -errno;
		munmap(base, geo->map_len);
		return err;
	}
	*out = base;
	return 0;
}

/*
 * All pages now, so that a lack of memory is an error here and not a SIGBUS in
 * the middle of traffic.
 */
static int new_file(const char *name, uint64_t bytes)
{
	int err, fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -errno;
	err = ftruncate(fd, (off_t)bytes) < 0 ? -errno : 0;
	while (!err && fallocate(fd, 0, 0, (off_t)bytes) < 0) {
		if (errno == EOPNOTSUPP)
			break;
		if (errno != EINTR)
			err = -errno;
	}
	if (err) {
		close(fd);
		return err;
	}
	return fd;
}

/* Read-only, and not to be opened otherwise by another user */
static int give_read_only(struct rgate_memfd_mem *mem)
{
	char path[64];

	if (fchmod(mem->fd_prod, 0400) < 0)
		return -errno;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", mem->fd_prod);
	mem->fd_give = open(path, O_RDONLY | O_CLOEXEC);
	if (mem->fd_give < 0)
		return -errno;
	return fcntl(mem->fd_prod, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0 ?
	       -errno : 0;
}

static int seal(struct rgate_memfd_mem *mem, bool filled)
{
	int seals = F_SEAL_SHRINK | F_SEAL_GROW;

	if (fcntl(mem->fd_cons, F_ADD_SEALS, seals | F_SEAL_SEAL) < 0)
		return -errno;
	if (filled)
		return give_read_only(mem);
	mem->fd_give = mem->fd_prod;
	if (!fcntl(mem->fd_prod, F_ADD_SEALS,
		   seals | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL))
		return 0;
	if (errno != EINVAL)
		return -errno;
	rgate_warn("this kernel cannot seal memory against later writers: processes "
		   "that are given a handle could write the slots");
	return fcntl(mem->fd_prod, F_ADD_SEALS, seals | F_SEAL_SEAL) < 0 ? -errno : 0;
}

/* A request beyond the machine's memory would bring the OOM killer, not ENOMEM. */
static int fits_machine(uint64_t bytes)
{
	struct sysinfo si;

	if (sysinfo(&si) < 0)
		return 0;
	return bytes > (uint64_t)si.totalram * si.mem_unit ? -ENOMEM : 0;
}

int rgate_memfd_mem_new(struct rgate_memfd_mem **out, uint32_t slots,
			uint32_t slot_size, bool filled)
{
	struct rgate_memfd_mem *mem = calloc(1, sizeof(*mem));
	int err;

	if (!mem)
		return -ENOMEM;
	mem->refs = 1;
	mem->fd_prod = mem->fd_give = mem->fd_cons = -1;
	err = rgate_geometry_compute(slots, slot_size, rgate_page_size(), &mem->geo);
	if (!err)
		err = fits_machine(mem->geo.map_len);
	if (err)
		goto fail;
	err = mem->fd_prod = new_file("ringgate", prod_bytes(&mem->geo));
	if (err < 0)
		goto fail;
	err = mem->fd_cons = new_file("ringgate-cons", cons_bytes(&mem->geo));
	if (err < 0)
		goto fail;
	err = map_three(mem->fd_prod, mem->fd_cons, &mem->geo,
			PROT_READ | PROT_WRITE, &mem->base);
	if (err)
		goto fail;
	err = seal(mem, filled);
	if (err)
		goto fail;
	*out = mem;
	return 0;
fail:
	rgate_memfd_mem_put(mem);
	return err;
}

struct rgate_memfd_mem *rgate_memfd_mem_get(struct rgate_memfd_mem *mem)
{
	__atomic_add_fetch(&mem->refs, 1, __ATOMIC_RELAXED);
	return mem;
}

void rgate_memfd_mem_put(struct rgate_memfd_mem *mem)
{
	if (!mem || __atomic_sub_fetch(&mem->refs, 1, __ATOMIC_ACQ_REL))
		return;
	if (mem->base)
		munmap(mem->base, mem->geo.map_len);
	if (mem->fd_give >= 0 && mem->fd_give != mem->fd_prod)
		close(mem->fd_give);
	if (mem->fd_prod >= 0)
		close(mem->fd_prod);
	if (mem->fd_cons >= 0)
		close(mem->fd_cons);
	free(mem);
}

/* The size of a file that cannot change any more, or -errno */
static int64_t sealed_size(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	if (seals < 0 || (seals & (F_SEAL_SHRINK | F_SEAL_GROW)) !=
			 (F_SEAL_SHRINK | F_SEAL_GROW))
		return -EPROTO;
	if (fstat(fd, &st) < 0)
		return -errno;
	return st.st_size;
}

int rgate_memfd_mem_map(int fd_prod, int fd_cons, struct rgate_geometry *geo,
			struct rgate_prod *prod, unsigned char **base)
{
	int64_t psize = sealed_size(fd_prod), csize = sealed_size(fd_cons);
	void *p;
	int err;

	if (psize < 0 || csize < 0)
		return psize < 0 ? (int)psize : (int)csize;
	if (psize < (int64_t)sizeof(*prod))
		return -EPROTO;
	p = mmap(NULL, sizeof(*prod), PROT_READ, MAP_SHARED, fd_prod, 0);
	if (p == MAP_FAILED)
		return -errno;
	/* checked and used is this copy: the sender could change the original */
	memcpy(prod, p, RGATE_PROD_CONST);
	munmap(p, sizeof(*prod));
	err = rgate_geometry_from_prod(prod, rgate_page_size(), geo);
	if (err)
		return err;
	if (prod_bytes(geo) != (uint64_t)psize || cons_bytes(geo) != (uint64_t)csize)
		return -EPROTO;
	return map_three(fd_prod, fd_cons, geo, PROT_READ, base);
}
