// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The consumer: gets a handle on a ring from demo_ring, forbids itself every
 * system call, but for those to sleep where it may, and then takes frames out of the
 * ring until told to stop. What it found goes into memory that demo_ring reads.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ringgate/ringgate.h>

#include "frames.h"
#include "sandbox.h"

#define LOOK_MS	100	/* whether to stop */

static struct result *map_result(void)
{
	struct result *r;
	struct stat st;

	if (fstat(RESULT_FD_MEM, &st))
		demo_die(errno, "to be started by demo_ring");
	r = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_POPULATE, RESULT_FD_MEM, 0);
	if (r == MAP_FAILED)
		demo_die(errno, "mmap");
	return r;
}

static void consume(struct rgate_consumer *c, struct frames *f)
{
	struct result *r = f->res;

	while (!frames_complete(f)) {
		const struct rgate_slot *s = rgate_consumer_next(c);

		if (s) {
			frames_take(f, c, s);
			rgate_consumer_release(c);
			continue;
		}
		if (__atomic_load_n(&r->stop, __ATOMIC_ACQUIRE))
			break;
		if (!r->polls && rgate_consumer_wait(c, LOOK_MS) < 0)
			break;
	}
	r->waits.sz = sizeof(r->waits);
	rgate_consumer_waits(c, &r->waits);
}

/* A handle from demo_ring, or a ring of the daemon's: RESULT_REMOTE is its socket */
static int open_ring(struct rgate_ring **ring)
{
	struct rgate_ring_opts o = RGATE_OPTS(rgate_ring_opts, .name = "demo",
					      .device = getenv(RESULT_REMOTE));
	const char *geometry = getenv(RESULT_GEOMETRY);

	if (!o.device)
		return rgate_ring_recv(ring, RESULT_FD_SOCK);
	if (!geometry || sscanf(geometry, "%u %u", &o.slots, &o.slot_size) != 2)
		return -EINVAL;
	return rgate_ring_open_remote(ring, &o);
}

int main(void)
{
	struct result *r = map_result();
	struct rgate_consumer c;
	struct rgate_ring *ring;
	struct frames f;
	int err;

	err = open_ring(&ring);
	if (!err)
		err = rgate_consumer_init(&c, ring, NULL);
	if (err)
		demo_die(err, "the ring's handle");
	frames_init(&f, r);
	demo_clock_read(&r->clock, 0);

	sandbox_enter(!r->polls);
	__atomic_store_n(&r->ready, 1, __ATOMIC_RELEASE);
	consume(&c, &f);
	frames_finish(&f);
	rgate_ring_stats(ring, &r->stats);
	__atomic_store_n(&r->done, 1, __ATOMIC_RELEASE);
	_exit(0);
}
