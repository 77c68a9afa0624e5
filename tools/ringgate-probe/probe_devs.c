// SPDX-License-Identifier: MIT OR GPL-2.0
/* Kinds of memory that a device or a library makes: rings, dma-bufs, the GPU's. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ringgate/rgate_ring.h>

#include "module.h"
#include "probe_types.h"
#include "util.h"

#define RING_SLOTS	256
#define RING_SLOT_SIZE	2048
#define UDMABUF		"/dev/udmabuf"
#define GPU_LEN		(4UL << 20)

/* A second handle, as another process gets it, has a mapping of its own. */
static int second_handle(struct rgate_ring *ring, struct rgate_ring **out)
{
	int sock[2], err;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock))
		return -errno;
	err = rgate_ring_send(ring, sock[0]);
	if (!err)
		err = rgate_ring_recv(out, sock[1]);
	close(sock[0]);
	close(sock[1]);
	return err;
}

static int use_ring(struct probe_mem *m, struct rgate_ring *ring)
{
	struct rgate_ring *second = NULL;
	struct rgate_view view;

	m->own[0] = ring;
	rgate_ring_view(ring, &view);
	m->addr = rgate_ring_slots_rw(ring);
	m->len = (size_t)view.nslots * view.slot_size;
	m->writable = true;
	if (!m->addr)
		return probe_not_made(m, -EACCES, "rgate_ring_slots_rw", "");
	if (second_handle(ring, &second))
		return 0;
	m->own[1] = second;
	rgate_ring_view(second, &view);
	m->alias = (void *)view.slots;
	return 0;
}

static int make_ring_memfd(struct probe_mem *m, const struct probe_need *need)
{
	struct rgate_ring_opts o = RGATE_OPTS(rgate_ring_opts, .slots = RING_SLOTS,
					      .slot_size = RING_SLOT_SIZE);
	struct rgate_ring *ring;
	int err;

	(void)need;
	err = rgate_ring_open_memfd(&ring, &o);
	if (err)
		return probe_not_made(m, err, "rgate_ring_open_memfd", "");
	return use_ring(m, ring);
}

static int make_ring_module(struct probe_mem *m, const struct probe_need *need)
{
	struct rgate_ring_opts o = RGATE_OPTS(rgate_ring_opts, .slots = RING_SLOTS,
					      .slot_size = RING_SLOT_SIZE,
					      .flags = RGATE_RING_RW_SLOTS,
					      .name = "probe");
	struct rgate_ring *ring;
	int err;

	(void)need;
	err = rgate_ring_open(&ring, &o);
	if (is_no_module(err)) {
		snprintf(m->note, sizeof(m->note), "the module is not loaded: ringgate load");
		return err;
	}
	if (err)
		return probe_not_made(m, err, RGATE_DEVICE, "");
	return use_ring(m, ring);
}

static void free_ring(struct probe_mem *m)
{
	rgate_ring_close(m->own[1]);
	rgate_ring_close(m->own[0]);
}

/* A dma-buf of the pages of a memfd, which is the second mapping */
static int make_udmabuf(struct probe_mem *m)
{
	size_t len = PROBE_PAGES * m->page;
	struct udmabuf_create c = { .flags = UDMABUF_FLAGS_CLOEXEC, .size = len };
	int dev, mem, buf, err;

	dev = open(UDMABUF, O_RDWR | O_CLOEXEC);
	if (dev < 0)
		return probe_not_made(m, -errno, UDMABUF, errno == ENOENT ?
				      "modprobe udmabuf" : "");
	mem = memfd_create("ringgate-probe", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (mem < 0 || ftruncate(mem, (off_t)len) ||
	    fcntl(mem, F_ADD_SEALS, F_SEAL_SHRINK)) {
		err = probe_not_made(m, -errno, "memfd_create", "");
		goto close_dev;
	}
	m->fd = mem;
	m->map_len = len;
	err = probe_map_alias(m, PROT_READ | PROT_WRITE);
	m->fd = -1;
	if (err)
		goto close_dev;
	c.memfd = (__u32)mem;
	buf = ioctl(dev, UDMABUF_CREATE, &c);
	if (buf < 0) {
		err = probe_not_made(m, -errno, "UDMABUF_CREATE", "");
		goto close_dev;
	}
	m->fd = buf;
	err = probe_map(m, len, PROT_READ | PROT_WRITE, MAP_SHARED);
close_dev:
	if (mem >= 0)
		close(mem);
	close(dev);
	return err;
}

static int make_udmabuf_mmap(struct probe_mem *m, const struct probe_need *need)
{
	(void)need;
	return make_udmabuf(m);
}

static int make_udmabuf_dmabuf(struct probe_mem *m, const struct probe_need *need)
{
	int err;

	(void)need;
	err = make_udmabuf(m);
	if (!err)
		m->dmabuf = m->fd;
	return err;
}

static int no_gpu(struct probe_mem *m)
{
	snprintf(m->note, sizeof(m->note), "there is no GPU");
	return -ENODEV;
}

static int make_cuda_host(struct probe_mem *m, const struct probe_need *need)
{
	int err;

	if (!need->gpu)
		return no_gpu(m);
	m->len = GPU_LEN;
	err = gpu_host_alloc(need->gpu, m->len, &m->addr, &m->gpu_ptr);
	if (err) {
		snprintf(m->note, sizeof(m->note), "%s", gpu_error(need->gpu));
		return err;
	}
	m->own[0] = need->gpu;
	m->writable = true;
	return 0;
}

static void free_cuda_host(struct probe_mem *m)
{
	if (m->own[0])
		gpu_host_free(m->own[0], m->addr);
}

static int make_cuda_dmabuf(struct probe_mem *m, const struct probe_need *need)
{
	int err, fd = -1;

	if (!need->gpu)
		return no_gpu(m);
	m->len = GPU_LEN;
	err = gpu_alloc(need->gpu, m->len, &m->gpu_ptr);
	if (!err) {
		m->own[0] = need->gpu;
		err = gpu_export(need->gpu, m->gpu_ptr, m->len, &fd);
	}
	if (err) {
		snprintf(m->note, sizeof(m->note), "%s", gpu_error(need->gpu));
		return err;
	}
	m->fd = m->dmabuf = fd;
	m->writable = true;
	return 0;
}

static void free_cuda_dmabuf(struct probe_mem *m)
{
	if (m->fd >= 0)
		close(m->fd);
	if (m->own[0])
		gpu_free(m->own[0], m->gpu_ptr);
}

#define PFN_MAPPING								\
	"the mapping has no pages the kernel could pin, only page numbers: register "	\
	"the dma-buf itself where driver and exporter can, or the memfd it is made of"

const struct probe_type probe_dev_types[] = {
	{ "ring-memfd", "slots of a ringgate ring in a memfd", make_ring_memfd, free_ring,
	  NULL },
	{ "ring-module", "slots of a ringgate ring of the module", make_ring_module,
	  free_ring, NULL },
	{ "udmabuf-mmap", "mapping of a dma-buf of /dev/udmabuf", make_udmabuf_mmap,
	  probe_unmap, PFN_MAPPING },
	{ "udmabuf-dmabuf", "the dma-buf itself", make_udmabuf_dmabuf, probe_unmap,
	  PFN_MAPPING },
	{ "cuda-host", "memory of cuMemHostAlloc()", make_cuda_host, free_cuda_host,
	  PFN_MAPPING },
	{ "cuda-dmabuf", "memory of the GPU, as a dma-buf", make_cuda_dmabuf,
	  free_cuda_dmabuf, NULL },
	{ 0 }
};
