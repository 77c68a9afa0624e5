// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Rings of the module, with a device that is part of this program: a memfd, and
 * ioctls which answer as they are told to. What goes wrong is told apart, leaves
 * nothing open or mapped, and a ring that is resized meanwhile is found.
 */
#include "unit.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ringgate/ioctl.h>

#include "geometry.h"

static struct {
	int fd;				/* the ring's memory */
	char path[32];
	struct rgate_geometry geo;	/* as QUERY tells */
	uint32_t flags;
	int err_create, err_query, err_attach, err_resize, err_map_rw, err_export;
	unsigned int over_limit;	/* CREATE of more slots: ENOBUFS */
	unsigned int stale;		/* so many times QUERY tells the one before */
	unsigned int queries;
	uint32_t exported;		/* area that was asked for last */
	struct rgate_create created;
	struct rgate_resize resized;
} dev;

static struct rgate_prod *dev_prod(void)
{
	struct rgate_prod *prod = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED,
				       dev.fd, 0);

	assert_true(prod != MAP_FAILED);
	return prod;
}

/* Memory of @generation, as the module makes it */
static void dev_fill(uint32_t slots, uint32_t generation)
{
	struct rgate_prod *prod;

	assert_int_equal(rgate_geometry_compute(slots, 256, rgate_page_size(), &dev.geo),
			 0);
	dev.geo.generation = generation;
	dev.geo.handle = 5;
	assert_int_equal(ftruncate(dev.fd, 0), 0);
	assert_int_equal(ftruncate(dev.fd, (off_t)dev.geo.map_len), 0);
	prod = dev_prod();
	prod->magic = RGATE_MAGIC;
	prod->version = RGATE_ABI_VERSION;
	prod->slot_hdr = RGATE_SLOT_HDR;
	prod->features = RGATE_FEAT_RESIZE;
	prod->slots = slots;
	prod->slot_size = 256;
	prod->batch = RGATE_BATCH;
	prod->flags = dev.flags;
	prod->generation = generation;
	prod->handles = RGATE_HANDLES_MAX;
	prod->map_len = dev.geo.map_len;
	prod->cons_off = dev.geo.cons_off;
	prod->credits_off = dev.geo.credits_off;
	prod->slots_off = dev.geo.slots_off;
	prod->ring_id = 42;
	prod->state = RGATE_STATE_ACTIVE;
	munmap(prod, 4096);
}

static void dev_new(uint32_t flags)
{
	if (dev.fd)
		close(dev.fd);
	memset(&dev, 0, sizeof(dev));
	dev.fd = memfd_create("device", MFD_CLOEXEC);
	assert_true(dev.fd > 0);
	snprintf(dev.path, sizeof(dev.path), "/proc/self/fd/%d", dev.fd);
	dev.flags = flags;
	dev_fill(64, 1);
}

static int answer(int err)
{
	if (!err)
		return 0;
	errno = err;
	return -1;
}

static int on_create(struct rgate_create *cr)
{
	dev.created = *cr;
	if (dev.over_limit && cr->slots > dev.over_limit)
		return answer(ENOBUFS);
	return answer(dev.err_create);
}

static int on_query(struct rgate_query *q)
{
	dev.queries++;
	q->geo = dev.geo;
	q->flags = dev.flags;
	q->ring_id = 42;
	q->cookie = 4242;
	if (dev.stale) {
		dev.stale--;
		q->geo.generation--;
	}
	return answer(dev.err_query);
}

static int on_export(struct rgate_export *ex)
{
	assert_int_equal(ex->flags | ex->generation | ex->fd, 0);
	dev.exported = ex->area;
	if (dev.err_export)
		return answer(dev.err_export);
	ex->fd = dup(dev.fd);
	ex->generation = dev.geo.generation;
	return 0;
}

/* Instead of those that the library calls, by the linker */
int __wrap_ioctl(int fd, unsigned long req, ...);
void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off);

int __wrap_ioctl(int fd, unsigned long req, ...)
{
	va_list ap;
	void *arg;

	va_start(ap, req);
	arg = va_arg(ap, void *);
	va_end(ap);
	switch (req) {
	case RGATE_IOC_CREATE:
		return on_create(arg);
	case RGATE_IOC_QUERY:
		return on_query(arg);
	case RGATE_IOC_ATTACH:
		return answer(dev.err_attach);
	case RGATE_IOC_EXPORT:
		return on_export(arg);
	case RGATE_IOC_RESIZE:
		memcpy(&dev.resized, arg, sizeof(dev.resized));
		return answer(dev.err_resize);
	}
	return (int)syscall(SYS_ioctl, fd, req, arg);
}

void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	if (dev.err_map_rw && off && prot & PROT_WRITE) {
		errno = dev.err_map_rw;
		return MAP_FAILED;
	}
	return (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, off);
}

static int open_ring(struct rgate_ring **ring, uint32_t slots)
{
	struct rgate_ring_opts o = RGATE_OPTS(rgate_ring_opts, .slots = slots,
					      .device = dev.path, .flags = dev.flags,
					      .name = "mine");

	return rgate_ring_open(ring, &o);
}

/* Opening fails with @err, and leaves nothing behind. */
static void refused(int err)
{
	unsigned int fds = unit_entries("/proc/self/fd"), maps = unit_mappings("memfd:device");
	struct rgate_ring *ring;

	assert_int_equal(open_ring(&ring, 64), err);
	assert_int_equal(unit_entries("/proc/self/fd"), fds);
	assert_int_equal(unit_mappings("memfd:device"), maps);
}

static void opening(void **state)
{
	struct rgate_ring_opts o = RGATE_OPTS(rgate_ring_opts, .device = "/nowhere/at/all");
	struct rgate_ident ident;
	struct rgate_ring *ring;
	struct rgate_view view;

	(void)state;
	assert_int_equal(rgate_ring_open(&ring, &o), -ENOENT);
	dev_new(RGATE_RING_RW_SLOTS);
	o.device = dev.path;
	o.node_plus1 = (uint32_t)INT32_MAX + 1;
	assert_int_equal(rgate_ring_open(&ring, &o), -EINVAL);
	assert_int_equal(open_ring(&ring, 64), 0);
	assert_string_equal(dev.created.name, "mine");
	assert_int_equal(dev.created.node, -1);
	rgate_ring_view(ring, &view);
	assert_int_equal(view.nslots, 64);
	assert_int_equal(view.handle, 5);
	assert_int_equal(rgate_ring_id(ring), 42);
	rgate_ring_ident(ring, &ident);
	assert_int_equal(ident.id, 42);
	assert_int_equal(ident.cookie, 4242);
	rgate_ring_slots_rw(ring)[0] = 1;
	rgate_ring_close(ring);
	assert_int_equal(unit_mappings("memfd:device"), 0);
	/* without the flag there is nothing to write to */
	dev_new(0);
	assert_int_equal(open_ring(&ring, 64), 0);
	assert_null(rgate_ring_slots_rw(ring));
	rgate_ring_close(ring);
}

static void create_errors(void **state)
{
	(void)state;
	dev_new(0);
	dev.err_create = EPERM;
	refused(-EPERM);
	dev.err_create = ENOTTY;	/* some other device */
	refused(-EPROTO);
	dev.err_create = 0;
	dev.err_query = EFAULT;
	refused(-EFAULT);
	dev.err_query = 0;
	dev.geo.handle = RGATE_HANDLES_MAX;
	refused(-EPROTO);
	dev.geo.handle = 5;
	dev.geo.slots_off = dev.geo.map_len;
	refused(-EPROTO);
}

/* Only a size that the caller left open is made smaller. */
static void limit(void **state)
{
	struct rgate_ring_opts o;
	struct rgate_ring *ring;

	(void)state;
	dev_new(0);
	o = (struct rgate_ring_opts)RGATE_OPTS(rgate_ring_opts, .device = dev.path);
	dev.over_limit = 1024;
	assert_int_equal(rgate_ring_open(&ring, &o), 0);
	assert_int_equal(dev.created.slots, 1024);
	rgate_ring_close(ring);
	dev.over_limit = 64;
	assert_int_equal(rgate_ring_open(&ring, &o), -ENOBUFS);
	assert_int_equal(dev.created.slots, 512);
	assert_int_equal(open_ring(&ring, 4096), -ENOBUFS);
	assert_int_equal(dev.created.slots, 4096);
}

/* Memory of a module that this library does not know */
static void unknown(void **state)
{
	struct rgate_prod *prod;

	(void)state;
	dev_new(0);
	prod = dev_prod();
	prod->features |= 1ULL << 40;
	refused(-EPROTONOSUPPORT);
	prod->features = RGATE_FEAT_RESIZE;
	prod->version++;
	refused(-EPROTONOSUPPORT);
	prod->version--;
	prod->flags = 1U << 31;
	refused(-EPROTONOSUPPORT);
	prod->flags = 0;
	prod->magic++;
	refused(-EPROTO);
	prod->magic--;
	prod->batch = 16;
	refused(-EPROTO);
	munmap(prod, 4096);
}

static void map_errors(void **state)
{
	(void)state;
	dev_new(0);
	dev.err_map_rw = ENOMEM;
	refused(-ENOMEM);
	assert_int_equal(dev.queries, 1);
	/* the range may have moved meanwhile: asked again, but not for ever */
	dev.err_map_rw = EINVAL;
	dev.queries = 0;
	refused(-EINVAL);
	assert_in_range(dev.queries, 2, 100);
}

/* A resize between the query and the mapping */
static void resized_meanwhile(void **state)
{
	struct rgate_ring *ring;
	struct rgate_view view;

	(void)state;
	dev_new(0);
	dev_fill(128, 2);
	dev.stale = 3;
	assert_int_equal(open_ring(&ring, 64), 0);
	assert_int_equal(dev.queries, 4);
	rgate_ring_view(ring, &view);
	assert_int_equal(view.generation, 2);
	assert_int_equal(view.nslots, 128);
	rgate_ring_close(ring);
	dev.stale = 1000;
	refused(-ESTALE);
}

static void resize(void **state)
{
	struct rgate_ring *ring;
	struct rgate_view view;

	(void)state;
	dev_new(0);
	assert_int_equal(open_ring(&ring, 64), 0);
	dev.err_resize = EBADF;
	assert_int_equal(rgate_ring_resize(ring, 256, 512), -EBADF);
	assert_int_equal(dev.resized.slots, 256);
	assert_int_equal(dev.resized.slot_size, 512);
	dev.err_resize = 0;
	assert_int_equal(rgate_ring_resize(ring, 256, 256), 0);
	assert_int_equal(rgate_ring_remap(ring), 0);	/* still the same memory */
	dev_fill(256, 2);
	assert_int_equal(rgate_ring_remap(ring), 1);
	rgate_ring_view(ring, &view);
	assert_int_equal(view.nslots, 256);
	assert_int_equal(view.generation, 2);
	dev.err_query = ENXIO;
	assert_int_equal(rgate_ring_remap(ring), -ENXIO);
	rgate_ring_view(ring, &view);
	assert_int_equal(view.generation, 2);		/* and the old mapping is kept */
	rgate_ring_close(ring);
	assert_int_equal(unit_mappings("memfd:device"), 0);
}

static void dmabufs(void **state)
{
	struct rgate_ring *ring;
	unsigned int fds;
	int fd;

	(void)state;
	dev_new(0);
	assert_int_equal(open_ring(&ring, 64), 0);
	fds = unit_entries("/proc/self/fd");
	fd = rgate_ring_dmabuf(ring, RGATE_AREA_SLOTS);
	assert_true(fd >= 0);
	assert_int_equal(dev.exported, RGATE_AREA_SLOTS);
	close(fd);
	fd = rgate_ring_dmabuf(ring, RGATE_AREA_CONSUMER);
	assert_true(fd >= 0);
	assert_int_equal(dev.exported, RGATE_AREA_CONSUMER);
	close(fd);
	assert_int_equal(rgate_ring_dmabuf(ring, RGATE_AREA_COUNT), -EINVAL);
	dev.err_export = ENOMEM;
	assert_int_equal(rgate_ring_dmabuf(ring, RGATE_AREA_SLOTS), -ENOMEM);
	dev.err_export = ENOTTY;	/* an older module */
	assert_int_equal(rgate_ring_dmabuf(ring, RGATE_AREA_SLOTS), -EOPNOTSUPP);
	dev.err_export = 0;
	/* of memory that is not mapped yet: none, and nothing is left open */
	dev_fill(64, 2);
	assert_int_equal(rgate_ring_dmabuf(ring, RGATE_AREA_SLOTS), -ESTALE);
	assert_int_equal(unit_entries("/proc/self/fd"), fds);
	assert_int_equal(rgate_ring_remap(ring), 1);
	fd = rgate_ring_dmabuf(ring, RGATE_AREA_SLOTS);
	assert_true(fd >= 0);
	close(fd);
	rgate_ring_close(ring);
	assert_int_equal(rgate_ring_open_memfd(&ring, NULL), 0);
	assert_int_equal(rgate_ring_dmabuf(ring, RGATE_AREA_COUNT), -EINVAL);
	assert_int_equal(rgate_ring_dmabuf(ring, RGATE_AREA_SLOTS), -EOPNOTSUPP);
	rgate_ring_close(ring);
}

static void further_handles(void **state)
{
	struct rgate_ring *ring, *d;
	int sv[2];
	unsigned int fds;

	(void)state;
	dev_new(0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv), 0);
	assert_int_equal(open_ring(&ring, 64), 0);
	fds = unit_entries("/proc/self/fd");
	dev.err_attach = EMFILE;
	assert_int_equal(rgate_ring_dup(&d, ring), -EMFILE);
	assert_int_equal(rgate_ring_send(ring, sv[0]), -EMFILE);
	assert_int_equal(unit_entries("/proc/self/fd"), fds);
	dev.err_attach = 0;
	assert_int_equal(rgate_ring_dup(&d, ring), 0);
	rgate_ring_close(d);
	assert_int_equal(rgate_ring_send(ring, sv[0]), 0);
	assert_int_equal(rgate_ring_recv(&d, sv[1]), 0);
	assert_int_equal(rgate_ring_id(d), 42);
	rgate_ring_close(d);
	/* some other file came under the name of a ring */
	assert_int_equal(rgate_ring_send(ring, sv[0]), 0);
	dev.err_query = ENOTTY;
	assert_int_equal(rgate_ring_recv(&d, sv[1]), -EPROTO);
	assert_int_equal(unit_entries("/proc/self/fd"), fds);
	assert_int_equal(rgate_ring_send(ring, -1), -EBADF);
	rgate_ring_close(ring);
	close(sv[0]);
	close(sv[1]);
}

/* A descriptor that stays readable without anything to take: time is up in time. */
static void readable_for_nothing(void **state)
{
	struct rgate_ring *ring;
	struct rgate_consumer c;
	uint64_t start, took;

	(void)state;
	dev_new(0);		/* a memfd always is readable */
	assert_int_equal(open_ring(&ring, 64), 0);
	assert_int_equal(rgate_consumer_init(&c, ring, NULL), 0);
	start = unit_now_ns();
	assert_int_equal(rgate_consumer_wait(&c, 30), 0);
	took = unit_now_ns() - start;
	assert_in_range(took, 29000000, 5000000000);
	rgate_ring_close(ring);
}

static void retired(void **state)
{
	struct rgate_ring *ring;
	struct rgate_consumer c;
	struct rgate_prod *prod;

	(void)state;
	dev_new(0);
	assert_int_equal(open_ring(&ring, 64), 0);
	assert_int_equal(rgate_consumer_init(&c, ring, NULL), 0);
	prod = dev_prod();
	prod->state = RGATE_STATE_RETIRED;
	assert_int_equal(rgate_consumer_wait(&c, 0), 0);	/* not yet replaced */
	assert_int_equal(rgate_consumer_wait(&c, 10), 0);
	dev.err_query = EIO;
	assert_int_equal(rgate_consumer_wait(&c, -1), -EIO);
	assert_int_equal(rgate_consumer_arm(&c), -EIO);
	dev.err_query = 0;
	munmap(prod, 4096);
	dev_fill(128, 2);
	assert_int_equal(rgate_consumer_wait(&c, 0), 0);
	prod = dev_prod();
	prod->state = RGATE_STATE_CLOSED;
	assert_int_equal(rgate_consumer_wait(&c, -1), -EPIPE);
	munmap(prod, 4096);
	rgate_ring_close(ring);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(opening),
	cmocka_unit_test(create_errors),
	cmocka_unit_test(limit),
	cmocka_unit_test(unknown),
	cmocka_unit_test(map_errors),
	cmocka_unit_test(resized_meanwhile),
	cmocka_unit_test(resize),
	cmocka_unit_test(dmabufs),
	cmocka_unit_test(further_handles),
	cmocka_unit_test(readable_for_nothing),
	cmocka_unit_test(retired),
};

UNIT_MAIN_ALONE(tests)
