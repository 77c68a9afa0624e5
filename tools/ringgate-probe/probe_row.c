// SPDX-License-Identifier: MIT OR GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <ringgate/rgate_mem.h>

#include "probe_agent.h"
#include "probe_row.h"
#include "util.h"

static char said[PROBE_TEXT];	/* by the library, lately */

struct work {
	struct probe_row *row;
	const struct probe_type *type;
	const struct rgate_device_info *info;
	struct probe_mem mem;
	struct gpu *gpu;
	struct rgate_device *dev;	/* NULL: none */
	struct probe_rdma rdma;
	bool transfers;		/* RDMA works on this memory, and on rdma.target */
	struct probe_agent base;	/* what the views are compared with */
	bool have_base;
	struct probe_agent writer;	/* where the base cannot write */
	bool have_writer;
};

static void set(struct work *w, enum probe_col col, int err, const char *why)
{
	struct probe_cell *c = &w->row->cell[col];

	c->err = err;
	snprintf(c->why, sizeof(c->why), "%s", err ? why : "");
	c->state = err ? PROBE_FAILED : PROBE_OK;
}

static void doing(struct work *w, const char *what)
{
	w->row->doing = what;
	*said = '\0';
}

static int reg(struct work *w, struct rgate_mem **mem, uint32_t access, uint32_t flags)
{
	struct rgate_mem_opts o = RGATE_OPTS(rgate_mem_opts, .access = access,
					     .flags = flags);

	if (w->mem.dmabuf >= 0)
		return rgate_mem_register_dmabuf(mem, w->dev, w->mem.dmabuf, 0,
						 w->mem.len, &o);
	return rgate_mem_register(mem, w->dev, w->mem.addr, w->mem.len, &o);
}

static const struct {
	const char *doing;
	uint32_t access, flags;
} kinds[] = {
	[COL_LOCAL] = { "registering for local access", 0, 0 },
	[COL_READ] = { "registering for remote read", RGATE_ACCESS_REMOTE_READ, 0 },
	[COL_WRITE] = { "registering for remote write", RGATE_ACCESS_REMOTE_WRITE, 0 },
	[COL_ATOMIC] = { "registering for remote atomics", RGATE_ACCESS_REMOTE_ATOMIC, 0 },
	[COL_RELAXED] = { "registering with relaxed ordering", RGATE_ACCESS_REMOTE_READ |
			  RGATE_ACCESS_REMOTE_WRITE | RGATE_ACCESS_RELAXED, 0 },
	[COL_READONLY] = { "registering read-only", RGATE_ACCESS_REMOTE_READ |
			   RGATE_ACCESS_READONLY, 0 },
	[COL_ODP] = { "registering on demand", RGATE_ACCESS_REMOTE_READ |
		      RGATE_ACCESS_REMOTE_WRITE, RGATE_MEM_ON_DEMAND },
};

static bool applies(const struct work *w, enum probe_col col)
{
	if (col == COL_ATOMIC)
		return w->info->atomic != RGATE_ATOMIC_NONE;
	if (col == COL_ODP)
		return w->info->odp && w->mem.dmabuf < 0;
	return true;
}

static bool is_ok(const struct work *w, enum probe_col col)
{
	return w->row->cell[col].state == PROBE_OK;
}

/* As much access as this memory gives. 0: none */
static uint32_t widest(const struct work *w)
{
	uint32_t access = 0;

	if (is_ok(w, COL_READ) && is_ok(w, COL_WRITE)) {
		access = RGATE_ACCESS_REMOTE_READ | RGATE_ACCESS_REMOTE_WRITE;
		if (is_ok(w, COL_ATOMIC))
			access |= RGATE_ACCESS_REMOTE_ATOMIC;
	} else if (is_ok(w, COL_READONLY)) {
		access = RGATE_ACCESS_REMOTE_READ | RGATE_ACCESS_READONLY;
	}
	return access;
}

/* A word at @off: the old value comes back, the sum is there */
static int atomic_at(struct probe_rdma *r, size_t off)
{
	uint64_t before = util_now(), add = before * 7 + off, old = 0, now = 0;
	int err;

	err = probe_rdma_write(r, off, &before, sizeof(before));
	if (!err)
		err = probe_rdma_fetch_add(r, off, add, &old);
	if (!err)
		err = probe_rdma_read(r, off, &now, sizeof(now));
	if (err)
		return err;
	return old == before && now == before + add ? 0 : -EBADMSG;
}

/* Bytes through the region that is the target now */
static int pass_bytes(struct work *w, struct probe_agent *rdma, bool readonly)
{
	probe_agent_rdma(rdma, &w->rdma, !readonly);
	return probe_agree(&w->mem, w->have_base ? &w->base : NULL,
			   w->have_writer ? &w->writer : NULL, rdma);
}

static void connect_self(struct work *w)
{
	int err;

	doing(w, "connecting a queue pair to itself");
	err = probe_rdma_open(&w->rdma, w->dev);
	if (err)
		set(w, COL_TRANSFER, err, *said ? said : "no queue pair");
}

/* That it registers says little of these two: drivers take what they cannot do. */
static int verify(struct work *w, enum probe_col col, struct rgate_mem *mem)
{
	struct probe_agent rdma;
	int err;

	if ((col != COL_RELAXED && col != COL_ODP) || !w->rdma.rc)
		return 0;
	w->rdma.target = mem;
	err = pass_bytes(w, &rdma, false);
	w->rdma.target = NULL;
	if (err) {
		/* an operation that failed took the queue pair with it */
		probe_rdma_close(&w->rdma);
		connect_self(w);
	}
	return err;
}

/* -EBUSY: the device holds it still; -EIO: there is no device any more */
static int take_back(struct work *w, struct rgate_mem *mem)
{
	rgate_mem_deregister(mem);
	return rgate_device_mr_left(w->dev) ? -EBUSY : rgate_device_check(w->dev);
}

static void access_columns(struct work *w)
{
	struct rgate_mem *mem;
	unsigned int col;
	int err, gone;

	for (col = 0; col < ARRAY_SIZE(kinds); col++) {
		if (!applies(w, col))
			continue;
		doing(w, kinds[col].doing);
		err = reg(w, &mem, kinds[col].access, kinds[col].flags);
		if (!err) {
			err = verify(w, col, mem);
			gone = take_back(w, mem);
			err = err ? err : gone;
		}
		set(w, col, err, said);
	}
}

static int transfer(struct work *w, uint32_t access)
{
	bool readonly = access & RGATE_ACCESS_READONLY;
	struct probe_agent rdma;
	int err;

	doing(w, readonly ? "RDMA read" : "RDMA write and read");
	err = pass_bytes(w, &rdma, readonly);
	if (!err && access & RGATE_ACCESS_REMOTE_ATOMIC) {
		doing(w, "RDMA atomics");
		err = atomic_at(&w->rdma, 0);
		if (!err)
			err = atomic_at(&w->rdma, (w->mem.len - 8) & ~(size_t)7);
	}
	if (err)
		return err;
	/* the views are those of memory that RDMA reads and writes */
	if (w->base.addr && !w->have_writer) {
		w->writer = w->base;
		w->have_writer = w->base.can_write;
	}
	w->base = rdma;
	w->have_base = true;
	w->transfers = true;
	return 0;
}

static void transfer_column(struct work *w)
{
	uint32_t access = widest(w);
	int err;

	if (!access || !w->rdma.rc)
		return;
	doing(w, "registering for the transfer");
	err = reg(w, &w->rdma.target, access, 0);
	if (!err)
		err = transfer(w, access);
	set(w, COL_TRANSFER, err, said);
}

/* Everything in the RDMA device is taken back while the memory is still there. */
static void transfer_end(struct work *w)
{
	int err = 0;

	doing(w, "taking regions back");
	if (w->rdma.target)
		err = take_back(w, w->rdma.target);
	if (w->rdma.rc)
		probe_rdma_close(&w->rdma);
	rgate_device_close(w->dev);
	if (err && w->row->cell[COL_TRANSFER].state != PROBE_FAILED)
		set(w, COL_TRANSFER, err, said);
}

static int agree(struct work *w, const struct probe_agent *x)
{
	return probe_agree(&w->mem, w->have_base ? &w->base : NULL,
			   w->have_writer ? &w->writer : NULL, x);
}

static void kernel_columns(struct work *w)
{
	struct probe_agent x;
	int err;

	if (!w->mem.addr)
		return;
	doing(w, "process_vm_readv() and process_vm_writev()");
	probe_agent_pin(&x, w->mem.addr, w->mem.writable);
	set(w, COL_PIN, agree(w, &x), "process_vm_readv(), process_vm_writev()");
	doing(w, "a pipe");
	err = probe_agent_copy(&x, w->mem.addr, w->mem.writable);
	if (!err) {
		err = agree(w, &x);
		probe_agent_copy_end(&x);
	}
	set(w, COL_COPY, err, "read() and write() of a pipe");
}

/* The second mapping; or where there is none, the first against RDMA */
static void cpu_column(struct work *w)
{
	struct probe_agent x;

	if (w->mem.alias)
		probe_agent_cpu(&x, w->mem.alias, w->mem.alias_writable);
	else if (w->mem.addr && w->transfers)
		probe_agent_cpu(&x, w->mem.addr, w->mem.writable);
	else
		return;
	doing(w, "reading and writing through a mapping");
	set(w, COL_CPU, agree(w, &x), "");
}

static void gpu_column(struct work *w)
{
	struct probe_agent x;
	uint64_t ptr = w->mem.gpu_ptr;
	int err = 0;

	if (!w->gpu || (!w->mem.addr && !w->transfers))
		return;
	if (!ptr) {
		doing(w, "mapping it for the GPU");
		err = gpu_map(w->gpu, w->mem.addr, w->mem.len, !w->mem.writable, &ptr);
		if (err) {
			set(w, COL_GPU, err, gpu_error(w->gpu));
			return;
		}
	}
	doing(w, "copying by the GPU");
	probe_agent_gpu(&x, w->gpu, ptr, w->mem.writable);
	err = agree(w, &x);
	if (!w->mem.gpu_ptr && gpu_unmap(w->gpu, w->mem.addr) && !err)
		err = -EIO;
	set(w, COL_GPU, err, gpu_error(w->gpu));
}

static void views(struct work *w)
{
	if (w->mem.addr) {
		probe_agent_cpu(&w->base, w->mem.addr, w->mem.writable);
		w->have_base = true;
	}
	if (w->mem.alias && w->mem.alias_writable) {
		probe_agent_cpu(&w->writer, w->mem.alias, true);
		w->have_writer = true;
	}
	if (w->dev) {
		connect_self(w);
		access_columns(w);
		transfer_column(w);
	}
	kernel_columns(w);
	cpu_column(w);
	gpu_column(w);
}

static int open_device(struct work *w)
{
	struct rgate_device_opts o = RGATE_OPTS(rgate_device_opts, .name = w->info->name,
						.port = w->info->port);

	doing(w, "opening the RDMA device");
	return rgate_device_open(&w->dev, &o);
}

void probe_row(void *arg)
{
	struct probe_job *job = arg;
	struct work w = {
		.row = job->row, .type = job->type, .info = &job->env->device,
		.mem = { .page = probe_page(), .dmabuf = -1, .fd = -1 },
	};
	struct probe_need need = { .dir = job->dir };
	char why[PROBE_TEXT];
	int err;

	probe_catch_log(said);
	doing(&w, "opening the GPU");
	if (!job->env->gpu_err && !gpu_open(&w.gpu, why, sizeof(why)))
		need.gpu = w.gpu;
	doing(&w, "making the memory");
	err = job->type->make(&w.mem, &need);
	w.row->made = err ? err : 1;
	w.row->len = w.mem.len;
	w.row->page = (uint32_t)w.mem.page;
	snprintf(w.row->note, sizeof(w.row->note), "%s", w.mem.note);
	if (!err && !job->env->device_err)
		w.row->device_err = open_device(&w);
	if (!err)
		views(&w);
	transfer_end(&w);
	doing(&w, "giving the memory back");
	job->type->destroy(&w.mem);
	doing(&w, "closing the GPU");
	gpu_close(w.gpu);
	doing(&w, "done");
}

static void env_device(struct probe_env *env, const char *name)
{
	struct rgate_device_opts o = RGATE_OPTS(rgate_device_opts, .name = name);
	struct rgate_device *dev;

	*said = '\0';
	env->device_err = rgate_device_open(&dev, name ? &o : NULL);
	snprintf(env->device_why, sizeof(env->device_why), "%s", said);
	if (env->device_err)
		return;
	env->device = *rgate_device_info(dev);
	rgate_device_close(dev);
}

void probe_env(void *arg)
{
	struct probe_env_job *job = arg;
	struct gpu *gpu;

	probe_catch_log(said);
	env_device(job->env, job->device);
	job->env->gpu_err = gpu_open(&gpu, job->env->gpu_why, sizeof(job->env->gpu_why));
	if (job->env->gpu_err)
		return;
	snprintf(job->env->gpu, sizeof(job->env->gpu), "%s", gpu_name(gpu));
	gpu_close(gpu);
}
