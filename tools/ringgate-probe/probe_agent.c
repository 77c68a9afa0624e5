// SPDX-License-Identifier: MIT OR GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "probe_agent.h"
#include "util.h"

#define CHUNK_MAX	PROBE_RDMA_MAX

static int cpu_write(const struct probe_agent *a, size_t off, const void *buf, size_t len)
{
	memcpy(a->addr + off, buf, len);
	/* whoever reads next is not seen by the compiler */
	__asm__ __volatile__("" ::: "memory");
	return 0;
}

static int cpu_read(const struct probe_agent *a, size_t off, void *buf, size_t len)
{
	__asm__ __volatile__("" ::: "memory");
	memcpy(buf, a->addr + off, len);
	return 0;
}

void probe_agent_cpu(struct probe_agent *a, void *addr, bool writable)
{
	*a = (struct probe_agent){ .addr = addr, .can_write = writable,
				   .write = cpu_write, .read = cpu_read };
}

/* What a call that moves bytes returned */
static int moved(ssize_t n, size_t len)
{
	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EFAULT;
}

static int pin_write(const struct probe_agent *a, size_t off, const void *buf, size_t len)
{
	struct iovec from = { (void *)buf, len }, to = { a->addr + off, len };

	return moved(process_vm_writev(getpid(), &from, 1, &to, 1, 0), len);
}

static int pin_read(const struct probe_agent *a, size_t off, void *buf, size_t len)
{
	struct iovec to = { buf, len }, from = { a->addr + off, len };

	return moved(process_vm_readv(getpid(), &to, 1, &from, 1, 0), len);
}

void probe_agent_pin(struct probe_agent *a, void *addr, bool writable)
{
	*a = (struct probe_agent){ .addr = addr, .can_write = writable,
				   .write = pin_write, .read = pin_read };
}

/* The pipe takes CHUNK_MAX bytes without a reader. */
static int through(const struct probe_agent *a, const void *from, void *to, size_t len)
{
	int err = moved(write(a->pipe[1], from, len), len);

	return err ? err : moved(read(a->pipe[0], to, len), len);
}

static int copy_write(const struct probe_agent *a, size_t off, const void *buf, size_t len)
{
	return through(a, buf, a->addr + off, len);
}

static int copy_read(const struct probe_agent *a, size_t off, void *buf, size_t len)
{
	return through(a, a->addr + off, buf, len);
}

int probe_agent_copy(struct probe_agent *a, void *addr, bool writable)
{
	*a = (struct probe_agent){ .addr = addr, .can_write = writable,
				   .write = copy_write, .read = copy_read };
	return pipe2(a->pipe, O_CLOEXEC | O_NONBLOCK) ? -errno : 0;
}

void probe_agent_copy_end(struct probe_agent *a)
{
	close(a->pipe[0]);
	close(a->pipe[1]);
}

static int gpu_agent_write(const struct probe_agent *a, size_t off, const void *buf,
			   size_t len)
{
	return gpu_write(a->gpu, a->ptr + off, buf, len);
}

static int gpu_agent_read(const struct probe_agent *a, size_t off, void *buf, size_t len)
{
	return gpu_read(a->gpu, a->ptr + off, buf, len);
}

void probe_agent_gpu(struct probe_agent *a, struct gpu *gpu, uint64_t ptr, bool writable)
{
	*a = (struct probe_agent){ .gpu = gpu, .ptr = ptr, .can_write = writable,
				   .write = gpu_agent_write, .read = gpu_agent_read };
}

static int rdma_write(const struct probe_agent *a, size_t off, const void *buf, size_t len)
{
	return probe_rdma_write(a->rdma, off, buf, len);
}

static int rdma_read(const struct probe_agent *a, size_t off, void *buf, size_t len)
{
	return probe_rdma_read(a->rdma, off, buf, len);
}

void probe_agent_rdma(struct probe_agent *a, struct probe_rdma *r, bool writable)
{
	*a = (struct probe_agent){ .rdma = r, .can_write = writable,
				   .write = rdma_write, .read = rdma_read };
}

/* Other bytes each time, so that what was there before is not taken for a success.
 * splitmix64, begun at the clock */
static void random_bytes(unsigned char *buf, size_t len)
{
	static uint64_t state;
	size_t i;

	if (!state)
		state = util_now();
	for (i = 0; i < len; i += sizeof(state)) {
		uint64_t v = state += 0x9e3779b97f4a7c15;

		v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9;
		v = (v ^ v >> 27) * 0x94d049bb133111eb;
		v ^= v >> 31;
		memcpy(buf + i, &v, len - i < sizeof(v) ? len - i : sizeof(v));
	}
}

struct spot {
	size_t off, len;
};

/* Ends, whole pages, over one border, over the border of huge pages, the middle */
static size_t spots(const struct probe_mem *m, struct spot out[8])
{
	size_t page = probe_page(), n = 0;

	out[n++] = (struct spot){ 0, 64 };
	out[n++] = (struct spot){ 0, 2 * page };
	out[n++] = (struct spot){ page - 37, 300 };
	out[n++] = (struct spot){ 2 * page - 1, 2 };
	out[n++] = (struct spot){ m->len / 2 - 501, 1003 };
	if (m->page > page && m->page < m->len)
		out[n++] = (struct spot){ m->page - page - 5, 2 * page };
	out[n++] = (struct spot){ m->len - page - 9, page + 9 };
	out[n++] = (struct spot){ m->len - 1, 1 };
	return n;
}

static int same(const struct probe_agent *reader, const struct spot *s,
		const unsigned char *want)
{
	static unsigned char got[CHUNK_MAX];
	int err;

	memset(got, ~*want, s->len);
	err = reader->read(reader, s->off, got, s->len);
	if (err)
		return err;
	return memcmp(got, want, s->len) ? -EBADMSG : 0;
}

/* @from writes, @first and @second (unless NULL) read the same */
static int pass(const struct spot *s, const struct probe_agent *from,
		const struct probe_agent *first, const struct probe_agent *second)
{
	static unsigned char bytes[CHUNK_MAX];
	int err;

	random_bytes(bytes, s->len);
	err = from->write(from, s->off, bytes, s->len);
	if (!err)
		err = same(first, s, bytes);
	if (!err && second)
		err = same(second, s, bytes);
	return err;
}

int probe_agree(const struct probe_mem *m, const struct probe_agent *base,
		const struct probe_agent *writer, const struct probe_agent *x)
{
	struct spot all[8];
	size_t i, n = spots(m, all);
	int err = 0;

	if (base && base->can_write)
		writer = base;
	if (!writer && !x->can_write)
		return -ENODATA;
	for (i = 0; !err && i < n; i++) {
		if (all[i].len > CHUNK_MAX || all[i].off + all[i].len > m->len)
			continue;
		if (writer)
			err = pass(&all[i], writer, x, writer == base ? NULL : base);
		if (!err && x->can_write)
			err = pass(&all[i], x, base ? base : x, NULL);
	}
	return err;
}
