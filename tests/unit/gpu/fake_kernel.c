// SPDX-License-Identifier: MIT OR GPL-2.0
#include "unit.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fake_kernel.h"

#define PAUSE_NS	20000

_Thread_local bool fake_polls;

struct warp {
	struct rgate_dstaff *staff;	/* of each polling warp */
	const struct rgate_dctx *ctx;
	const struct rgate_dshape *sh;
	uint32_t number;
	uint32_t warps;
	pthread_t thread;
};

void fake_pause(uint32_t ns)
{
	struct timespec ts = { .tv_nsec = ns < PAUSE_NS ? PAUSE_NS : ns };

	nanosleep(&ts, NULL);
}

/* As rgate_dpersist() and rgate_dsnapshot() have it for blocks */
static void *warp_main(void *arg)
{
	const struct warp *w = arg;
	struct rgate_dpoll polls[RGATE_DPOLL_RINGS];
	const size_t len = RGATE_DWARP_BYTES(w->sh->near_len, w->sh->reply, w->sh->run);
	struct rgate_dnear near;
	unsigned char *mem;

	mem = aligned_alloc(64, (len + 63) & ~63UL);
	unit_require(mem);
	rgate_dnear_init(&near, mem, w->sh);
	fake_polls = !w->ctx->until && w->number < w->ctx->npollers;
	if (w->ctx->until)
		rgate_dbatch(w->ctx, w->sh, &near, w->number, w->warps);
	else if (w->number < w->ctx->npollers)
		rgate_dpoller(w->ctx, w->sh, &near, polls, &w->staff[w->number],
			      w->number);
	else if (w->number < (1 + RGATE_DSTAFF) * w->ctx->npollers)
		rgate_dhelper(w->ctx, w->sh, &near, &w->staff[w->number % w->ctx->npollers],
			      w->number / w->ctx->npollers - 1);
	else
		rgate_dworker(w->ctx, w->sh, &near);
	rgate_dlaunch_out(w->ctx, w->warps);
	free(mem);
	return NULL;
}

static void run(const struct rgate_dctx *ctx, const struct rgate_dshape *sh, uint32_t n)
{
	struct rgate_dstaff *staff = calloc(RGATE_GPU_RINGS_MAX, sizeof(*staff));
	struct warp w[(1 + RGATE_DSTAFF) * RGATE_GPU_RINGS_MAX + FAKE_WORKERS];
	uint32_t i;

	unit_require(staff);
	for (i = 0; i < n; i++) {
		w[i] = (struct warp){
			.ctx = ctx, .sh = sh, .number = i, .warps = n, .staff = staff };
		unit_require(!pthread_create(&w[i].thread, NULL, warp_main, &w[i]));
	}
	for (i = 0; i < n; i++)
		pthread_join(w[i].thread, NULL);
	free(staff);
}

void fake_persist(const struct rgate_dctx *ctx, const struct rgate_dshape *sh)
{
	run(ctx, sh, (1 + RGATE_DSTAFF) * ctx->npollers + FAKE_WORKERS);
}

void fake_snapshot(const struct rgate_dctx *ctx, const struct rgate_dshape *sh)
{
	run(ctx, sh, FAKE_WORKERS);
}
