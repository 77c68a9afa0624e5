// SPDX-License-Identifier: MIT OR GPL-2.0
/* ringgate probe --mr-limit: registers until something says stop. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <ringgate/rgate_mem.h>

#include "cmd.h"
#include "fmt.h"
#include "probe_limit.h"
#include "util.h"

#define LOOK_EVERY	64	/* regions between two looks at the memory left */
#define RESERVE_MIN	(64ULL << 20)

struct region {
	struct rgate_mem *mem;
	uint32_t reg_ns, dereg_ns;
};

struct limit {
	struct limit_result r;
	struct rgate_device *dev;
	void *shared;		/* memory of all regions; NULL: each has its own */
	struct region *regions;
	uint32_t cap;
	uint64_t reserve;	/* bytes that stay available */
	uint64_t next_progress;
};

struct meminfo {
	uint64_t total, available, slab;	/* bytes */
};

static int read_meminfo(struct meminfo *m)
{
	FILE *f = fopen("/proc/meminfo", "re");
	unsigned long long kib;
	char line[128];

	*m = (struct meminfo){ 0 };
	if (!f)
		return -errno;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "MemTotal: %llu", &kib) == 1)
			m->total = kib << 10;
		else if (sscanf(line, "MemAvailable: %llu", &kib) == 1)
			m->available = kib << 10;
		else if (sscanf(line, "Slab: %llu", &kib) == 1)
			m->slab = kib << 10;
	}
	fclose(f);
	return m->total ? 0 : -ENODATA;
}

/* A line that is renewed on a terminal, else one every few seconds */
static void progress(struct limit *l, const char *what, uint32_t n, bool end)
{
	bool tty = isatty(STDERR_FILENO);
	uint64_t now = util_now();

	if (end) {
		if (tty)
			fprintf(stderr, "\r\033[K");
		l->next_progress = 0;
		return;
	}
	if (now < l->next_progress)
		return;
	if (tty)
		fprintf(stderr, "\r\033[K%u regions %s", n, what);
	else if (l->next_progress)
		say("%u regions %s", n, what);
	l->next_progress = now + (tty ? NSEC / 10 : 5 * NSEC);
}

static uint32_t since(uint64_t start)
{
	uint64_t d = util_now() - start;

	return d > UINT32_MAX ? UINT32_MAX : (uint32_t)d;
}

static int grow(struct limit *l)
{
	uint32_t cap = l->cap ? l->cap * 2 : 1024;
	struct region *v;

	if (l->r.registered < l->cap)
		return 0;
	if (cap < l->cap)
		return -EOVERFLOW;
	v = reallocarray(l->regions, cap, sizeof(*v));
	if (!v)
		return -ENOMEM;
	l->regions = v;
	l->cap = cap;
	return 0;
}

static void *new_memory(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static int add(struct limit *l)
{
	struct rgate_mem_opts o = RGATE_OPTS(rgate_mem_opts, .access =
					     RGATE_ACCESS_REMOTE_READ |
					     RGATE_ACCESS_REMOTE_WRITE);
	void *addr = l->shared ? l->shared : new_memory(l->r.opts->size);
	struct region *g;
	uint64_t start;
	int err = grow(l);

	if (!addr)
		return -ENOMEM;
	if (err)
		goto unmap;
	g = &l->regions[l->r.registered];
	start = util_now();
	err = rgate_mem_register(&g->mem, l->dev, addr, l->r.opts->size, &o);
	if (err)
		goto unmap;
	g->reg_ns = since(start);
	l->r.registered++;
	return 0;
unmap:
	if (!l->shared)
		munmap(addr, l->r.opts->size);
	return err;
}

/* Is it time to stop, for a reason other than that the device refuses? */
static bool enough(struct limit *l, uint64_t start)
{
	const struct probe_limit_opts *o = l->r.opts;
	struct meminfo m;

	if (util_stop) {
		l->r.stop = STOP_SIGNAL;
		return true;
	}
	if (o->max && l->r.registered >= o->max) {
		l->r.stop = STOP_MAX;
		return true;
	}
	if (util_now() - start >= o->time_ns) {
		l->r.stop = STOP_TIME;
		return true;
	}
	if (l->shared && l->r.registered % LOOK_EVERY)
		return false;
	if (read_meminfo(&m) || m.available < l->reserve + (l->shared ? 0 : o->size)) {
		l->r.stop = STOP_MEMORY;
		return true;
	}
	return false;
}

static void register_all(struct limit *l)
{
	uint64_t start = util_now();
	int err = 0;

	while (!enough(l, start)) {
		err = add(l);
		if (err)
			break;
		progress(l, "registered", l->r.registered, false);
	}
	progress(l, NULL, 0, true);
	l->r.time_ns = util_now() - start;
	if (!err)
		return;
	l->r.err = err;
	l->r.stop = err == -ENOSPC && l->r.set_limit < l->r.info->max_mr &&
		    rgate_device_mr_count(l->dev) >= l->r.set_limit ?
		    STOP_SET : STOP_REFUSED;
}

/* Goes on when it is interrupted: nothing is to be left. */
static void deregister_all(struct limit *l)
{
	uint32_t i;

	for (i = l->r.registered; i--;) {
		struct region *g = &l->regions[i];
		void *addr = rgate_mem_addr(g->mem);
		uint64_t start = util_now();

		rgate_mem_deregister(g->mem);
		g->dereg_ns = since(start);
		l->r.deregistered++;
		if (!l->shared)
			munmap(addr, l->r.opts->size);
		progress(l, "left to take back", i, false);
	}
	progress(l, NULL, 0, true);
	l->r.deregistered -= rgate_device_mr_left(l->dev);
	l->r.left = rgate_device_mr_count(l->dev);
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static int cost(const struct limit *l, bool reg, struct limit_cost *c)
{
	uint32_t n = l->r.registered, i, *v;

	if (!n)
		return 0;
	v = calloc(n, sizeof(*v));
	if (!v)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		v[i] = reg ? l->regions[i].reg_ns : l->regions[i].dereg_ns;
	qsort(v, n, sizeof(*v), compare);
	c->min = v[0];
	c->median = v[n / 2];
	c->p99 = v[(uint32_t)((uint64_t)(n - 1) * 99 / 100)];
	c->max = v[n - 1];
	free(v);
	return 0;
}

/* Memory of the kernel: what is gone, less what this process took itself */
static void account(struct limit *l, const struct meminfo *before)
{
	uint32_t n = l->r.registered;
	struct meminfo now;

	if (!n || read_meminfo(&now))
		return;
	l->r.slab = ((double)now.slab - before->slab) / n;
	l->r.memory = ((double)before->available - now.available) / n;
	if (!l->shared)
		l->r.memory -= l->r.opts->size;
}

static int measure(struct limit *l)
{
	struct meminfo before;
	int err = read_meminfo(&before);

	if (err)
		return fail(err, "/proc/meminfo");
	register_all(l);
	account(l, &before);
	deregister_all(l);
	err = cost(l, true, &l->r.reg);
	if (!err)
		err = cost(l, false, &l->r.dereg);
	if (err)
		return fail(err, "cannot sort the times");
	if (l->r.err && !l->r.registered && l->r.stop != STOP_SET)
		return probe_fail(l->r.err, "not one region could be registered", l->r.said);
	limit_print(&l->r);
	if (l->r.left || l->r.deregistered != l->r.registered) {
		say("regions are left: this is a fault, please report it");
		return EXIT_FAIL;
	}
	return util_stop ? EXIT_FAIL : EXIT_OK;
}

/* Enough memory for one region and the reserve, or it is said that there is not */
static int prepare(struct limit *l)
{
	uint64_t size = l->r.opts->size;
	char have[FMT_LEN], want[FMT_LEN];
	struct meminfo m;
	int err = read_meminfo(&m);

	if (err)
		return fail(err, "/proc/meminfo");
	l->reserve = m.total / 10 > RESERVE_MIN ? m.total / 10 : RESERVE_MIN;
	if (m.available < l->reserve || m.available - l->reserve < size) {
		say("a region of %s does not fit in the memory that is available (%s, of "
		    "which a tenth of all stays free): give a smaller --size",
		    fmt_bytes(want, size), fmt_bytes(have, m.available));
		return EXIT_FAIL;
	}
	if (l->r.opts->distinct)
		return EXIT_OK;
	l->shared = new_memory(size);
	return l->shared ? EXIT_OK : fail(-ENOMEM, "no memory for a region");
}

int probe_limit(const struct probe_limit_opts *o)
{
	struct rgate_device_opts d = RGATE_OPTS(rgate_device_opts, .name = o->device);
	struct limit l = { .r = { .opts = o } };
	int ret, err;

	util_catch_signals();
	probe_catch_log(l.r.said);
	err = rgate_device_open(&l.dev, o->device ? &d : NULL);
	if (err)
		return probe_fail(err, o->device ?: "RDMA device", l.r.said);
	l.r.info = rgate_device_info(l.dev);
	l.r.set_limit = rgate_device_mr_limit(l.dev);
	ret = prepare(&l);
	if (!ret)
		ret = measure(&l);
	if (l.shared)
		munmap(l.shared, o->size);
	free(l.regions);
	rgate_device_close(l.dev);
	return ret;
}
