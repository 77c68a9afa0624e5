// SPDX-License-Identifier: MIT OR GPL-2.0
/* Sources: setting up, counting and stopping the receive thread */
#include <errno.h>
#include <linux/sock_diag.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <ringgate/netlink.h>

#include "log.h"
#include "opts.h"
#include "ring.h"
#include "source.h"
#include "thread.h"

#ifndef SO_MEMINFO
#define SO_MEMINFO 55
#endif

struct rgate_source *rgate_source_new(const struct rgate_source_ops *ops)
{
	struct rgate_source *src = calloc(1, sizeof(*src));

	if (!src)
		return NULL;
	if (pthread_mutex_init(&src->lock, NULL)) {
		free(src);
		return NULL;
	}
	src->ops = ops;
	src->sock = src->event = -1;
	return src;
}

void rgate_source_free(struct rgate_source *src)
{
	unsigned int i;

	/* those of a thread that ran are ended already */
	for (i = 0; src->prod && i < src->nrings; i++)
		if (src->prod[i].core)
			rgate_producer_fini(&src->prod[i]);
	if (src->sock >= 0)
		close(src->sock);
	if (src->event >= 0)
		close(src->event);
	pthread_mutex_destroy(&src->lock);
	free(src->prod);
	free(src->vec);
	free(src->msg);
	free(src->scratch);
	free(src);
}

int rgate_source_opts_get(struct rgate_source_opts *o,
			  const struct rgate_source_opts *opts)
{
	int err = rgate_opts_copy(o, sizeof(*o), opts);

	if (err)
		return err;
	if (!o->batch)
		o->batch = RGATE_SOURCE_BATCH;
	if (o->batch > RGATE_SOURCE_BATCH_MAX || o->promisc > 1 || o->driven > 1 ||
	    o->cpu_plus1 < 0 || (o->driven && o->cpu_plus1) || o->cpu_plus1 > CPU_SETSIZE ||
	    o->rcvbuf > INT32_MAX || o->busy_poll_us > INT32_MAX)
		return -EINVAL;
	return 0;
}

int rgate_source_check_rings(struct rgate_ring *const *rings, unsigned int nrings,
			     bool no_pass)
{
	unsigned int i;

	if (!nrings || nrings > RGATE_ATT_RINGS_MAX)
		return -EINVAL;
	for (i = 0; i < nrings; i++)
		if (!rings[i]->core || (no_pass && rings[i]->policy == RGATE_POLICY_PASS))
			return -EOPNOTSUPP;
	return 0;
}

int rgate_source_set_sock(int sock, const struct rgate_source_opts *o)
{
	int v = (int)o->rcvbuf;

	/* beyond net.core.rmem_max only with CAP_NET_ADMIN */
	if (v && setsockopt(sock, SOL_SOCKET, SO_RCVBUFFORCE, &v, sizeof(v)) < 0 &&
	    setsockopt(sock, SOL_SOCKET, SO_RCVBUF, &v, sizeof(v)) < 0)
		return -errno;
	v = (int)o->busy_poll_us;
	if (v && setsockopt(sock, SOL_SOCKET, SO_BUSY_POLL, &v, sizeof(v)) < 0)
		return -errno;
	return 0;
}

void rgate_source_end(struct rgate_source *src, int err)
{
	unsigned int i;

	__atomic_store_n(&src->err, err, __ATOMIC_RELAXED);
	if (err)
		rgate_err("source ended: %s", rgate_strerror("rgate_source_turn", err));
	for (i = 0; i < src->nrings; i++)
		rgate_producer_fini(&src->prod[i]);
}

static void *thread_main(void *arg)
{
	struct rgate_source *src = arg;

	rgate_source_end(src, rgate_source_loop(src));
	return NULL;
}

/* Signals are for the threads of the application. */
static int start_thread(struct rgate_source *src, int32_t cpu_plus1)
{
	pthread_attr_t attr;
	cpu_set_t cpus;
	int err;

	err = -pthread_attr_init(&attr);
	if (err)
		return err;
	if (cpu_plus1) {
		CPU_ZERO(&cpus);
		CPU_SET((unsigned int)cpu_plus1 - 1, &cpus);
		err = -pthread_attr_setaffinity_np(&attr, sizeof(cpus), &cpus);
	}
	if (!err)
		err = rgate_thread_start(&src->thread, &attr, thread_main, src);
	pthread_attr_destroy(&attr);
	if (!err)
		pthread_setname_np(src->thread, "rgate-source");
	return err;
}

static int take_rings(struct rgate_source *src, struct rgate_ring *const *rings,
		      unsigned int nrings)
{
	unsigned int i;
	int err;

	src->prod = calloc(nrings, sizeof(*src->prod));
	if (!src->prod)
		return -ENOMEM;
	for (i = 0; i < nrings; i++) {
		err = rgate_producer_init(&src->prod[i], rings[i]);
		if (err)
			return err;
		src->nrings = i + 1;
		if (!src->driven)
			rgate_producer_set_kick(&src->prod[i], src->event);
	}
	return 0;
}

/* Scratch is touched only where frames are chained or overwritten. */
static int alloc_vectors(struct rgate_source *src)
{
	src->vec = calloc(src->batch, sizeof(*src->vec));
	src->msg = calloc(src->batch, sizeof(*src->msg));
	src->scratch = malloc((size_t)src->batch * RGATE_SOURCE_FRAME);
	return src->vec && src->msg && src->scratch ? 0 : -ENOMEM;
}

int rgate_source_start(struct rgate_source *src, int sock,
		       struct rgate_ring *const *rings, unsigned int nrings,
		       const struct rgate_source_opts *o)
{
	int err;

	src->sock = sock;
	src->driven = o->driven;
	src->batch = o->batch;
	err = alloc_vectors(src);
	if (err)
		goto fail;
	src->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (src->event < 0) {
		err = -errno;
		goto fail;
	}
	err = take_rings(src, rings, nrings);
	if (err)
		goto fail;
	err = o->driven ? 0 : start_thread(src, o->cpu_plus1);
	if (err)
		goto fail;
	return 0;
fail:
	rgate_source_free(src);
	return err;
}

/* The socket's own count is 32 bits wide and read when somebody asks. */
static uint64_t socket_drops(struct rgate_source *src)
{
	uint32_t info[SK_MEMINFO_VARS] = { 0 };
	socklen_t len = sizeof(info);
	uint64_t drops;

	pthread_mutex_lock(&src->lock);
	if (!getsockopt(src->sock, SOL_SOCKET, SO_MEMINFO, info, &len) &&
	    len > SK_MEMINFO_DROPS * sizeof(info[0])) {
		src->drops += info[SK_MEMINFO_DROPS] - src->drops_seen;
		src->drops_seen = info[SK_MEMINFO_DROPS];
	}
	drops = src->drops;
	pthread_mutex_unlock(&src->lock);
	return drops;
}

int rgate_source_stats(const struct rgate_source *src,
		       struct rgate_source_stats *stats)
{
	const struct rgate_source_stats *s = &src->stats;

	memset(stats, 0, sizeof(*stats));
	stats->received = __atomic_load_n(&s->received, __ATOMIC_RELAXED);
	stats->bytes = __atomic_load_n(&s->bytes, __ATOMIC_RELAXED);
	stats->syscalls = __atomic_load_n(&s->syscalls, __ATOMIC_RELAXED);
	stats->ring_drops = __atomic_load_n(&s->ring_drops, __ATOMIC_RELAXED);
	stats->errors = __atomic_load_n(&s->errors, __ATOMIC_RELAXED);
	stats->socket_drops = socket_drops((struct rgate_source *)src);
	stats->error = __atomic_load_n(&src->err, __ATOMIC_RELAXED);
	return 0;
}

int rgate_source_addr(const struct rgate_source *src, struct sockaddr *addr,
		      socklen_t *addrlen)
{
	if (!src->bound_len)
		return -EOPNOTSUPP;
	memcpy(addr, &src->bound, *addrlen < src->bound_len ? *addrlen : src->bound_len);
	*addrlen = src->bound_len;
	return 0;
}

int rgate_source_socket(const struct rgate_source *src)
{
	return src->sock;
}

static void stop_thread(struct rgate_source *src)
{
	uint64_t one = 1;

	__atomic_store_n(&src->stop, true, __ATOMIC_RELEASE);
	/* full only if the thread has been told already */
	while (write(src->event, &one, sizeof(one)) < 0 && errno == EINTR)
		;
	pthread_join(src->thread, NULL);
}

void rgate_source_stop(struct rgate_source *src)
{
	if (!src)
		return;
	if (!src->driven)
		stop_thread(src);
	else if (!src->ended)
		rgate_source_end(src, 0);
	rgate_source_free(src);
}
