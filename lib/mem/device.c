// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ringgate/rgate_mem.h>

#include "device.h"
#include "device_info.h"
#include "log.h"
#include "opts.h"

#define ENV_DEVICE	"RGATE_RDMA_DEVICE"
#define ENV_LIMIT	"RGATE_MAX_MR"

static struct {
	pthread_mutex_t lock;
	struct rgate_device *first;
} registry = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* What the list can be refused for: no module, no permission on any device */
static int list_devices(struct ibv_device ***list, int *n)
{
	errno = 0;
	*list = ibv_get_device_list(n);
	if (*list)
		return 0;
	if (errno == ENOSYS)
		rgate_err("this kernel has no RDMA: `modprobe ib_uverbs`, and a driver");
	return errno ? -errno : -ENOSYS;
}

static struct ibv_context *open_context(struct ibv_device *dev, int *err)
{
	struct ibv_context *ctx;

	errno = 0;
	ctx = ibv_open_device(dev);
	*err = ctx ? 0 : errno ? -errno : -ENODEV;
	/* Without udev libibverbs goes on to look elsewhere, and forgets the first errno. */
	if (!ctx && (*err == -EPERM || rgate_info_may_not_open(dev)))
		*err = -EACCES;
	return ctx;
}

static int each_port(struct ibv_context *ctx, rgate_device_fn fn, void *arg)
{
	struct rgate_device_info info;
	int ports = rgate_info_ports(ctx), port, r = 0;

	for (port = 1; port <= ports && !r; port++)
		if (!rgate_info_read(&info, ctx, (uint8_t)port, NULL, -1))
			r = fn(arg, &info);
	return r;
}

int rgate_device_each(rgate_device_fn fn, void *arg)
{
	int n, i, r = 0, err = 0, opened = 0, first = 0;
	struct ibv_device **list;
	struct ibv_context *ctx;

	if (!fn)
		return -EINVAL;
	err = list_devices(&list, &n);
	if (err)
		return err;
	for (i = 0; i < n && !r; i++) {
		ctx = open_context(list[i], &err);
		if (!ctx) {
			first = first ? first : err;
			continue;
		}
		opened++;
		r = each_port(ctx, fn, arg);
		ibv_close_device(ctx);
	}
	ibv_free_device_list(list);
	return r ? r : n && !opened ? first : 0;
}

/* What the user asks for, and the best of it so far */
struct search {
	const char *name;
	const char *addr;
	uint32_t port;
	int gid_index;
	struct rgate_device_info info;
	struct ibv_context *ctx;
	bool named;		/* a device of that name is there */
	int err;		/* of one that could not be opened */
};

static void look_at(struct search *s, struct ibv_device *dev)
{
	struct rgate_device_info info;
	struct ibv_context *ctx;
	int port, ports, err;
	bool keep = false;

	if (s->name && strcmp(s->name, ibv_get_device_name(dev)))
		return;
	s->named = true;
	ctx = open_context(dev, &err);
	if (!ctx) {
		s->err = err;
		return;
	}
	ports = rgate_info_ports(ctx);
	for (port = 1; port <= ports; port++) {
		if (s->port && s->port != (uint32_t)port)
			continue;
		err = rgate_info_read(&info, ctx, (uint8_t)port, s->addr, s->gid_index);
		if (err == -EINVAL)
			s->err = err;
		if (err)
			continue;
		if ((s->ctx || keep) && rgate_info_compare(&info, &s->info) <= 0)
			continue;
		s->info = info;
		keep = true;
	}
	if (!keep) {
		ibv_close_device(ctx);
		return;
	}
	if (s->ctx)
		ibv_close_device(s->ctx);
	s->ctx = ctx;
}

/* Says why nothing was found, with what to do */
static int not_found(const struct search *s, int devices)
{
	if (s->err == -EACCES) {
		rgate_err("no permission on /dev/infiniband/uverbs*: join the group that owns "
			  "it, or run as root");
		return -EACCES;
	}
	if (s->err == -EINVAL) {
		rgate_err("'%s' is not an IP address", s->addr);
		return -EINVAL;
	}
	if (!devices)
		rgate_err("there is no RDMA device; for soft-RoCE: `rdma link add rxe0 type rxe "
			  "netdev DEVICE`");
	else if (s->name && !s->named)
		rgate_err("there is no RDMA device '%s'; `ibv_devices` lists them", s->name);
	else if (s->addr)
		rgate_err("no RDMA device has the address %s; see `rdma link`, `ip addr`", s->addr);
	else
		rgate_err("no RDMA device has the port or GID index asked for");
	return s->err ? s->err : -ENODEV;
}

static int usable(const struct rgate_device_info *info)
{
	if (!info->active) {
		rgate_err("port %u of %s is not active: `ip link set %s up`, or see `rdma link`",
			  info->port, info->name, info->netdev[0] ? info->netdev : "DEVICE");
		return -ENETDOWN;
	}
	if (info->gid_type == RGATE_GID_NONE) {
		rgate_err("port %u of %s has no GID: give its network device an IP address",
			  info->port, info->name);
		return -ENETUNREACH;
	}
	return 0;
}

static int search(struct search *s)
{
	struct ibv_device **list;
	int n, i, err;

	err = list_devices(&list, &n);
	if (err)
		return err;
	for (i = 0; i < n; i++)
		look_at(s, list[i]);
	ibv_free_device_list(list);
	if (!s->ctx)
		return not_found(s, n);
	err = usable(&s->info);
	if (err)
		ibv_close_device(s->ctx);
	return err;
}

/* The largest inline size is not told, but found by asking a queue pair for some. */
static uint32_t find_inline(struct ibv_pd *pd)
{
	static const uint32_t sizes[] = { 1024, 512, 256, 128, 64, 32 };
	struct ibv_qp_init_attr attr;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	uint32_t found = 0;
	size_t i;

	cq = ibv_create_cq(pd->context, 1, NULL, NULL, 0);
	if (!cq)
		return 0;
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]) && !found; i++) {
		attr = (struct ibv_qp_init_attr){
			.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
			.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1,
				 .max_recv_sge = 1, .max_inline_data = sizes[i] },
		};
		qp = ibv_create_qp(pd, &attr);
		if (!qp)
			continue;
		found = attr.cap.max_inline_data;
		ibv_destroy_qp(qp);
	}
	ibv_destroy_cq(cq);
	return found;
}

static uint32_t limit_of_environment(void)
{
	const char *text = getenv(ENV_LIMIT);
	unsigned long long v;
	char *end;

	if (!text || !*text)
		return 0;
	errno = 0;
	v = strtoull(text, &end, 10);
	if (errno || *end || !v || v > UINT32_MAX) {
		rgate_warn(ENV_LIMIT "='%s' is not a number of regions: ignored", text);
		return 0;
	}
	return (uint32_t)v;
}

/*
 * Memory that a device writes must not move to a child by copy-on-write. Linux copies
 * pinned pages for the child since 5.12; before that libibverbs has to be told.
 */
static void prepare_fork(void)
{
	if (ibv_is_fork_initialized() == IBV_FORK_DISABLED && ibv_fork_init())
		rgate_warn("fork() may separate registered memory from this process: set "
			   "RDMAV_FORK_SAFE=1, or use Linux 5.12 or later");
}

static int make(struct rgate_device **out, const struct search *s)
{
	struct rgate_device *dev = calloc(1, sizeof(*dev));
	int flags, err;

	if (!dev)
		return -ENOMEM;
	dev->refs = 1;
	dev->pid = getpid();
	dev->ctx = s->ctx;
	dev->info = s->info;
	dev->limit = limit_of_environment();
	dev->in_sysfs = rgate_info_in_sysfs(s->ctx->device);
	dev->pd = ibv_alloc_pd(s->ctx);
	if (!dev->pd) {
		err = errno ? -errno : -ENOMEM;
		goto free_dev;
	}
	dev->info.max_inline = find_inline(dev->pd);
	/* rgate_device_check() never waits. */
	flags = fcntl(s->ctx->async_fd, F_GETFL);
	if (flags < 0 || fcntl(s->ctx->async_fd, F_SETFL, flags | O_NONBLOCK)) {
		err = -errno;
		goto free_pd;
	}
	*out = dev;
	return 0;

free_pd:
	ibv_dealloc_pd(dev->pd);
free_dev:
	free(dev);
	return err;
}

/* One that this process has open already; what a parent opened does not count. */
static struct rgate_device *find_open(const struct rgate_device_info *info)
{
	struct rgate_device *dev;

	for (dev = registry.first; dev; dev = dev->next)
		if (dev->pid == getpid() && !strcmp(dev->info.name, info->name) &&
		    dev->info.port == info->port && dev->info.gid_index == info->gid_index &&
		    !__atomic_load_n(&dev->gone, __ATOMIC_RELAXED))
			return dev;
	return NULL;
}

int rgate_device_open(struct rgate_device **out, const struct rgate_device_opts *user)
{
	struct rgate_device_opts opts;
	struct rgate_device *dev;
	struct search s = { 0 };
	const char *env;
	int err;

	if (!out)
		return -EINVAL;
	err = rgate_opts_copy(&opts, sizeof(opts), user);
	if (err)
		return err;
	s.name = opts.name;
	env = getenv(ENV_DEVICE);
	if (!s.name && !opts.addr && env && *env)
		s.name = env;
	s.addr = opts.addr;
	s.port = opts.port;
	s.gid_index = (int)opts.gid_index_plus1 - 1;
	prepare_fork();
	pthread_mutex_lock(&registry.lock);
	err = search(&s);
	if (err)
		goto unlock;
	dev = find_open(&s.info);
	if (dev) {
		dev->refs++;
		ibv_close_device(s.ctx);
	} else {
		err = make(&dev, &s);
		if (err) {
			ibv_close_device(s.ctx);
			goto unlock;
		}
		dev->next = registry.first;
		registry.first = dev;
	}
	*out = dev;
unlock:
	pthread_mutex_unlock(&registry.lock);
	return err;
}

static void take_out(struct rgate_device *dev)
{
	struct rgate_device **at;

	for (at = &registry.first; *at; at = &(*at)->next) {
		if (*at == dev) {
			*at = dev->next;
			return;
		}
	}
}

static void release(struct rgate_device *dev)
{
	/* Of a device that is gone these fail, and free what they can. */
	ibv_dealloc_pd(dev->pd);
	ibv_close_device(dev->ctx);
	free(dev);
}

/* Of a device that is gone this fails, and there is nothing any more. */
static bool deregister(struct ibv_mr *mr)
{
	const int err = ibv_dereg_mr(mr);

	return !err || err == EIO;
}

/*
 * Under the registry's lock: what the device did not let go is tried again. Whoever holds it, a
 * memory window of the caller's, does not tell when it is gone.
 */
static void drop_left(struct rgate_device *dev)
{
	struct rgate_mr **at = &dev->left, *r;

	while ((r = *at)) {
		if (!deregister(r->mr)) {
			at = &r->next;
			continue;
		}
		*at = r->next;
		free(r);
		__atomic_sub_fetch(&dev->nleft, 1, __ATOMIC_RELAXED);
		__atomic_sub_fetch(&dev->mrs, 1, __ATOMIC_RELAXED);
	}
}

void rgate_device_close(struct rgate_device *dev)
{
	bool last = false;
	uint32_t mrs;

	if (!dev || rgate_device_own(dev))
		return;
	pthread_mutex_lock(&registry.lock);
	if (!--dev->refs) {
		take_out(dev);
		drop_left(dev);
		mrs = __atomic_load_n(&dev->mrs, __ATOMIC_RELAXED);
		last = !mrs;
		if (!last)
			rgate_warn("%s is closed when its %u memory regions are gone",
				   dev->info.name, mrs);
	}
	pthread_mutex_unlock(&registry.lock);
	if (last)
		release(dev);
}

int rgate_device_own(const struct rgate_device *dev)
{
	return dev->pid == getpid() ? 0 : -EPERM;
}

const struct rgate_device_info *rgate_device_info(const struct rgate_device *dev)
{
	return &dev->info;
}

struct ibv_context *rgate_device_context(const struct rgate_device *dev)
{
	return dev->ctx;
}

struct ibv_pd *rgate_device_pd(const struct rgate_device *dev)
{
	return dev->pd;
}

int rgate_device_check(struct rgate_device *dev)
{
	struct ibv_async_event event;
	int err = rgate_device_own(dev);

	if (err)
		return err;
	while (!ibv_get_async_event(dev->ctx, &event)) {
		if (event.event_type == IBV_EVENT_DEVICE_FATAL)
			__atomic_store_n(&dev->gone, true, __ATOMIC_RELAXED);
		else
			rgate_info("%s: event %d", dev->info.name, (int)event.event_type);
		ibv_ack_async_event(&event);
	}
	/*
	 * Soft-RoCE does not tell that it was removed: what user space opens vanishes from
	 * sysfs, while the kernel keeps the rest until the last context is closed.
	 */
	if (errno == EIO || (dev->in_sysfs && !rgate_info_in_sysfs(dev->ctx->device)))
		__atomic_store_n(&dev->gone, true, __ATOMIC_RELAXED);
	/* A node asks this all the time. */
	if (__atomic_load_n(&dev->nleft, __ATOMIC_RELAXED))
		(void)rgate_device_mr_left(dev);
	return __atomic_load_n(&dev->gone, __ATOMIC_RELAXED) ? -EIO : 0;
}

uint32_t rgate_device_mr_limit(const struct rgate_device *dev)
{
	uint32_t limit = __atomic_load_n(&dev->limit, __ATOMIC_RELAXED);

	return limit && limit < dev->info.max_mr ? limit : dev->info.max_mr;
}

void rgate_device_set_mr_limit(struct rgate_device *dev, uint32_t limit)
{
	__atomic_store_n(&dev->limit, limit, __ATOMIC_RELAXED);
}

uint32_t rgate_device_mr_count(const struct rgate_device *dev)
{
	return __atomic_load_n(&dev->mrs, __ATOMIC_RELAXED);
}

uint32_t rgate_device_mr_left(struct rgate_device *dev)
{
	uint32_t n;

	if (rgate_device_own(dev))
		return 0;
	pthread_mutex_lock(&registry.lock);
	drop_left(dev);
	n = dev->nleft;
	pthread_mutex_unlock(&registry.lock);
	return n;
}

int rgate_device_take_mr(struct rgate_device *dev)
{
	uint32_t limit = __atomic_load_n(&dev->limit, __ATOMIC_RELAXED);

	if (__atomic_load_n(&dev->nleft, __ATOMIC_RELAXED))
		(void)rgate_device_mr_left(dev);
	if (__atomic_add_fetch(&dev->mrs, 1, __ATOMIC_RELAXED) <= limit || !limit)
		return 0;
	rgate_device_give_mr(dev);
	rgate_err("%s: the limit of %u memory regions is reached: use a pool "
		  "(rgate_pool_create()), or raise " ENV_LIMIT, dev->info.name, limit);
	return -ENOSPC;
}

void rgate_device_give_mr(struct rgate_device *dev)
{
	bool last;

	/* Who closes the device sees either this one gone, or that it will be. */
	pthread_mutex_lock(&registry.lock);
	last = !__atomic_sub_fetch(&dev->mrs, 1, __ATOMIC_RELAXED) && !dev->refs;
	pthread_mutex_unlock(&registry.lock);
	if (last)
		release(dev);
}

void rgate_device_drop_mr(struct rgate_device *dev, struct rgate_mr *r)
{
	const bool gone = deregister(r->mr);
	bool last;

	pthread_mutex_lock(&registry.lock);
	drop_left(dev);
	if (gone) {
		free(r);
		__atomic_sub_fetch(&dev->mrs, 1, __ATOMIC_RELAXED);
	} else {
		rgate_warn("%s still holds a memory region that was deregistered: until the "
			   "memory windows on it are gone", dev->info.name);
		r->next = dev->left;
		dev->left = r;
		__atomic_add_fetch(&dev->nleft, 1, __ATOMIC_RELAXED);
	}
	last = !__atomic_load_n(&dev->mrs, __ATOMIC_RELAXED) && !dev->refs;
	pthread_mutex_unlock(&registry.lock);
	if (last)
		release(dev);
}
