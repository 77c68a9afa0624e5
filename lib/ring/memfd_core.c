// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "geometry.h"
#include "handover.h"
#include "life.h"
#include "log.h"
#include "memfd_core.h"

static void label(const struct rgate_memfd *core, struct rgate_memfd_mem *mem,
		  uint32_t generation)
{
	struct rgate_prod *prod = rgate_memfd_prod(mem);

	mem->geo.generation = generation;
	prod->magic = RGATE_MAGIC;
	prod->version = RGATE_ABI_VERSION;
	prod->slot_hdr = RGATE_SLOT_HDR;
	prod->features = core->filled ? 0 : RGATE_FEAT_RESIZE;
	if (core->flags & RGATE_RING_CHAIN)
		prod->features |= RGATE_FEAT_CHAIN;
	if (core->policy == RGATE_POLICY_OVERWRITE) {
		prod->features |= RGATE_FEAT_OVERWRITE;
	} else if (core->life_file >= 0) {
		prod->features |= RGATE_FEAT_OWNERS;
		prod->owners_off = rgate_geometry_owners(&mem->geo);
	}
	prod->slots = mem->geo.slots;
	prod->slot_size = mem->geo.slot_size;
	prod->batch = RGATE_BATCH;
	prod->flags = core->flags;
	prod->policy = core->policy;
	prod->clock = core->clock;
	prod->generation = generation;
	prod->handles = RGATE_HANDLES_MAX;
	prod->map_len = mem->geo.map_len;
	prod->cons_off = mem->geo.cons_off;
	prod->credits_off = mem->geo.credits_off;
	prod->slots_off = mem->geo.slots_off;
	memcpy(prod->name, core->name, sizeof(prod->name));
	prod->tstamp_error = core->filled ? UINT64_MAX : 0;
	__atomic_store_n(&prod->state, RGATE_STATE_ACTIVE, __ATOMIC_RELEASE);
}

/* Without owner words there is no message that it could travel with to other processes. */
static int make_bell(struct rgate_memfd *core)
{
	if (core->life_file < 0)
		return 0;
	core->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return core->bell < 0 ? -errno : 0;
}

int rgate_memfd_new(struct rgate_memfd **out, const struct rgate_ring_opts *o, bool filled,
		    bool bell)
{
	struct rgate_memfd *core = calloc(1, sizeof(*core));
	const char *name = o->name ? o->name : "memfd";
	unsigned int i;
	int err;

	if (!core)
		return -ENOMEM;
	err = -pthread_mutex_init(&core->lock, NULL);
	if (err) {
		free(core);
		return err;
	}
	core->refs = 1;
	core->kick_fd = core->bell = -1;
	core->flags = o->flags;
	core->policy = o->policy;
	core->clock = o->clock;
	core->filled = filled;
	memcpy(core->name, name, strnlen(name, RGATE_NAME_LEN - 1));
	for (i = 0; i < RGATE_HANDLES_MAX; i++)
		core->handle[i].sock = -1;
	core->life_file = rgate_life_new();
	if (core->life_file == -ENOENT)
		rgate_warn("/proc is not mounted: consumers that share a ring cannot take over "
			   "from one that dies");
	err = core->life_file < 0 && core->life_file != -ENOENT ? core->life_file :
	      rgate_memfd_mem_new(&core->mem, o->slots, o->slot_size, filled);
	if (!err && bell)
		err = make_bell(core);
	if (err) {
		rgate_memfd_put(core);
		return err;
	}
	label(core, core->mem, 1);
	*out = core;
	return 0;
}

struct rgate_memfd *rgate_memfd_get(struct rgate_memfd *core)
{
	__atomic_add_fetch(&core->refs, 1, __ATOMIC_RELAXED);
	return core;
}

void rgate_memfd_put(struct rgate_memfd *core)
{
	unsigned int i;

	if (__atomic_sub_fetch(&core->refs, 1, __ATOMIC_ACQ_REL))
		return;
	if (core->mem)
		__atomic_store_n(&rgate_memfd_prod(core->mem)->state,
				 RGATE_STATE_CLOSED, __ATOMIC_RELEASE);
	/* closing our ends wakes who waits on the others */
	for (i = 0; i < RGATE_HANDLES_MAX; i++)
		if (core->handle[i].sock >= 0)
			close(core->handle[i].sock);
	rgate_memfd_mem_put(core->mem);
	rgate_memfd_mem_put(core->next);
	if (core->life_file >= 0)
		close(core->life_file);
	if (core->bell >= 0)
		close(core->bell);
	pthread_mutex_destroy(&core->lock);
	free(core);
}

static uint64_t *want_word(const struct rgate_memfd *core, unsigned int i)
{
	return (uint64_t *)&rgate_memfd_cons(core->mem)->waiter[i].want;
}

/* A handle is given, or closed: as rgate_ring_turn() of the module does it */
static void turn(struct rgate_memfd *core, unsigned int i)
{
	struct rgate_prod *prod = rgate_memfd_prod(core->mem);

	__atomic_store_n(&prod->life[i], ++core->life[i], __ATOMIC_RELEASE);
	if (!(core->life[i] & 1))
		__atomic_store_n(&prod->closed, ++core->closed, __ATOMIC_RELEASE);
}

static void copy_life(const struct rgate_memfd *core, struct rgate_memfd_mem *to)
{
	struct rgate_prod *prod = rgate_memfd_prod(to);
	unsigned int i;

	for (i = 0; i < RGATE_HANDLES_MAX; i++)
		__atomic_store_n(&prod->life[i], core->life[i], __ATOMIC_RELEASE);
	__atomic_store_n(&prod->closed, core->closed, __ATOMIC_RELEASE);
}

static void handle_free(struct rgate_memfd *core, unsigned int i)
{
	turn(core, i);
	__atomic_and_fetch(&core->used, ~(1U << i), __ATOMIC_RELAXED);
	if (core->handle[i].sock >= 0)
		close(core->handle[i].sock);
	core->handle[i].sock = -1;
	__atomic_store_n(want_word(core, i), 0, __ATOMIC_RELAXED);
}

/* Handles whose other end was closed can be given again. */
static void reap_handles(struct rgate_memfd *core)
{
	unsigned int i;

	for (i = 0; i < RGATE_HANDLES_MAX; i++) {
		struct pollfd pfd = { .fd = core->handle[i].sock };

		if (pfd.fd >= 0 && core->handle[i].external &&
		    poll(&pfd, 1, 0) > 0 && pfd.revents & (POLLHUP | POLLERR))
			handle_free(core, i);
	}
}

static void close_ends(struct rgate_memfd_ends *ends)
{
	if (ends->sock >= 0)
		close(ends->sock);
	if (ends->life >= 0)
		close(ends->life);
	if (ends->epoll >= 0)
		close(ends->epoll);
	*ends = (struct rgate_memfd_ends){ -1, -1, -1 };
}

/* See the head of memfd_core.h */
static int watch_bell(const struct rgate_memfd *core, struct rgate_memfd_ends *ends)
{
	struct epoll_event sock = { .events = EPOLLIN, .data.u64 = RGATE_MEMFD_SOCK };
	struct epoll_event bell = { .events = EPOLLIN | EPOLLET };

	ends->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (ends->epoll < 0 ||
	    epoll_ctl(ends->epoll, EPOLL_CTL_ADD, ends->sock, &sock) ||
	    epoll_ctl(ends->epoll, EPOLL_CTL_ADD, core->bell, &bell))
		return -errno;
	return 0;
}

/* @sock: our end; @ends: what the holder gets, but for its sock through the pair if @external */
static int equip(struct rgate_memfd *core, uint32_t handle, int sock,
		 struct rgate_memfd_ends *ends, bool external)
{
	int fds[2], err = 0;

	if (core->life_file >= 0) {
		ends->life = rgate_life_open(core->life_file, handle);
		if (ends->life < 0)
			return ends->life;
	}
	if (core->bell >= 0)
		err = watch_bell(core, ends);
	if (err || !external || ends->life < 0)
		return err;
	fds[0] = ends->life;
	fds[1] = ends->epoll;
	if (core->policy != RGATE_POLICY_OVERWRITE)
		err = rgate_handover_send(sock, RGATE_HANDOVER_LIFE, handle, fds,
					  ends->epoll < 0 ? 1 : 2, 0);
	close(ends->life);
	ends->life = -1;
	if (ends->epoll >= 0)
		close(ends->epoll);
	ends->epoll = -1;
	return err;
}

int rgate_memfd_handle_new(struct rgate_memfd *core, struct rgate_memfd_ends *ends,
			   bool external)
{
	int sv[2], ret;
	unsigned int i;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sv))
		return -errno;
	*ends = (struct rgate_memfd_ends){ sv[1], -1, -1 };
	pthread_mutex_lock(&core->lock);
	if (core->used == UINT32_MAX)
		reap_handles(core);
	for (i = 0; i < RGATE_HANDLES_MAX && core->used & (1U << i); i++)
		;
	ret = i == RGATE_HANDLES_MAX ? -EMFILE : equip(core, i, sv[0], ends, external);
	if (ret) {
		close(sv[0]);
		close_ends(ends);
		goto out;
	}
	turn(core, i);
	core->handle[i].sock = sv[0];
	core->handle[i].external = external;
	core->handle[i].woken = 0;
	__atomic_store_n(want_word(core, i), 0, __ATOMIC_RELAXED);
	__atomic_or_fetch(&core->used, 1U << i, __ATOMIC_RELEASE);
	ret = (int)i;
out:
	pthread_mutex_unlock(&core->lock);
	return ret;
}

void rgate_memfd_handle_free(struct rgate_memfd *core, uint32_t handle)
{
	pthread_mutex_lock(&core->lock);
	handle_free(core, handle);
	pthread_mutex_unlock(&core->lock);
}

struct rgate_memfd_mem *rgate_memfd_mem_now(struct rgate_memfd *core)
{
	struct rgate_memfd_mem *mem;

	pthread_mutex_lock(&core->lock);
	mem = rgate_memfd_mem_get(core->mem);
	pthread_mutex_unlock(&core->lock);
	return mem;
}

bool rgate_memfd_sleepers(const struct rgate_memfd *core)
{
	uint32_t used = __atomic_load_n(&core->used, __ATOMIC_RELAXED);

	while (used) {
		unsigned int i = (unsigned int)__builtin_ctz(used);

		if (__atomic_load_n(want_word(core, i), __ATOMIC_RELAXED))
			return true;
		used &= used - 1;
	}
	return false;
}

/*
 * One wakeup a wait word: a consumer that asks again for the same position finds
 * it published when it looks a second time, and does not sleep.
 */
static unsigned int wake_locked(struct rgate_memfd *core, uint64_t head, bool all)
{
	unsigned int i, n = 0;

	for (i = 0; i < RGATE_HANDLES_MAX; i++) {
		struct rgate_memfd_handle *h = &core->handle[i];
		uint64_t want;

		if (h->sock < 0)
			continue;
		want = __atomic_load_n(want_word(core, i), __ATOMIC_RELAXED);
		if (!want || (!all && (want > head || want == h->woken)))
			continue;
		h->woken = want;
		/* EAGAIN: wakeups wait there already. EPIPE: the consumer is gone. */
		if (rgate_handover_send(h->sock, RGATE_HANDOVER_WAKE, i, NULL, 0,
					MSG_DONTWAIT) == -EPIPE && h->external)
			handle_free(core, i);
		n++;
	}
	return n;
}

unsigned int rgate_memfd_wake(struct rgate_memfd *core, uint64_t head, bool all)
{
	unsigned int n;

	pthread_mutex_lock(&core->lock);
	n = wake_locked(core, head, all);
	pthread_mutex_unlock(&core->lock);
	return n;
}

/* New memory to the other processes, before they learn that the old is retired */
static void tell_others(struct rgate_memfd *core, struct rgate_memfd_mem *next)
{
	int fds[2] = { next->fd_give, next->fd_cons };
	unsigned int i;

	for (i = 0; i < RGATE_HANDLES_MAX; i++) {
		struct rgate_memfd_handle *h = &core->handle[i];
		int err;

		h->woken = 0;
		if (h->sock < 0 || !h->external)
			continue;
		err = rgate_handover_send(h->sock, RGATE_HANDOVER_MEMORY, i, fds, 2,
					  MSG_DONTWAIT);
		if (err == -EPIPE)
			handle_free(core, i);
		else if (err)
			rgate_warn("resize: handle %u did not get the new memory: %s",
				   i, rgate_strerror("rgate_ring_resize", err));
	}
}

static void switch_locked(struct rgate_memfd *core, uint64_t head)
{
	struct rgate_memfd_mem *old = core->mem, *next = core->next;
	struct rgate_prod *prod = rgate_memfd_prod(old);

	memcpy(&rgate_memfd_prod(next)->stats, &prod->stats, sizeof(prod->stats));
	copy_life(core, next);
	tell_others(core, next);
	/* who did not get it is gone */
	copy_life(core, next);
	__atomic_store_n(&prod->head, head, __ATOMIC_RELEASE);
	__atomic_store_n(&prod->state, RGATE_STATE_RETIRED, __ATOMIC_RELEASE);
	/* against the fence of rgate_consumer_arm() */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	wake_locked(core, head, true);
	core->mem = next;
	__atomic_store_n(&core->next, NULL, __ATOMIC_RELAXED);
	rgate_memfd_mem_put(old);
}

void rgate_memfd_switch(struct rgate_memfd *core, uint64_t head)
{
	pthread_mutex_lock(&core->lock);
	if (core->next)
		switch_locked(core, head);
	pthread_mutex_unlock(&core->lock);
}

int rgate_memfd_resize(struct rgate_memfd *core, uint32_t slots,
		       uint32_t slot_size)
{
	struct rgate_memfd_mem *next, *was;
	uint64_t one = 1;
	int err;

	if (core->filled)
		return -EOPNOTSUPP;
	err = rgate_memfd_mem_new(&next, slots, slot_size, false);
	if (err)
		return err;
	pthread_mutex_lock(&core->lock);
	label(core, next, core->mem->geo.generation + 1);
	was = core->next;
	__atomic_store_n(&core->next, next, __ATOMIC_RELAXED);
	if (!core->producer)
		switch_locked(core, rgate_memfd_prod(core->mem)->head);
	else if (core->kick_fd >= 0 && write(core->kick_fd, &one, sizeof(one)) < 0)
		rgate_dbg("resize: producer not kicked"); /* full: it is awake */
	pthread_mutex_unlock(&core->lock);
	rgate_memfd_mem_put(was);
	return 0;
}
