// SPDX-License-Identifier: MIT OR GPL-2.0
/* Sessions that kernels ask in the name of: their memory, and what the device keeps of them */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <ringgate/gpu/ask.cuh>

#include "ask_proxy.h"
#include "gpu.h"
#include "opts.h"

#define TICKETS		4096U
#define IDLE_US		1000U
#define SPIN_US		100U
#define SPIN_US_MAX	10000U

struct rgate_gpu_ask {
	struct rgate_session_loan loan;
	struct rgate_dask dask;
	struct rgate_ask_proxy proxy;
	struct rgate_daskwords *words;	/* host memory */
};

static int check_loan(struct rgate_gpu *gpu, const struct rgate_session_loan *l)
{
	const unsigned char *area = l->area;

	if (l->sz < sizeof(*l) || !area || !l->places || l->places & (l->places - 1) ||
	    !l->completion_places || l->completion_places & (l->completion_places - 1) ||
	    (const unsigned char *)(l->requests + l->places) > area + l->area_len)
		return rgate_gpu_fail(gpu, -EINVAL, "not a session on loan, or another version's");
	return 0;
}

static int normalize(struct rgate_gpu *gpu, struct rgate_gpu_session_opts *o,
		     const struct rgate_gpu_session_opts *opts)
{
	uint32_t n = 32;

	if (rgate_opts_copy(o, sizeof(*o), opts) || o->tickets > RGATE_GPU_TICKETS_MAX ||
	    o->idle_us > 1000000 || o->reserved ||
	    (o->spin_us > SPIN_US_MAX && o->spin_us != RGATE_SPIN_NONE))
		return rgate_gpu_fail(gpu, -EINVAL, "bad options");
	while (n < (o->tickets ? o->tickets : TICKETS))
		n *= 2;
	o->tickets = n;
	if (!o->idle_us)
		o->idle_us = IDLE_US;
	if (!o->spin_us)
		o->spin_us = SPIN_US;
	else if (o->spin_us == RGATE_SPIN_NONE)
		o->spin_us = 0;
	return 0;
}

/* Device memory of @len bytes, each of which is @c */
static int device_words(struct rgate_gpu *gpu, void *p, size_t len, int c)
{
	void *mem;
	int err = rgate_gpu_cuda(gpu, cudaMalloc(&mem, len), "cudaMalloc");

	if (err)
		return err;
	err = rgate_gpu_cuda(gpu, cudaMemset(mem, c, len), "cudaMemset");
	if (err)
		cudaFree(mem);
	else
		memcpy(p, &mem, sizeof(mem));
	return err;
}

static void free_state(struct rgate_gpu_ask *ask)
{
	cudaFree(ask->dask.free);
	cudaFree(ask->dask.cells);
	cudaFree(ask->dask.state);
}

static int make_state(struct rgate_gpu *gpu, struct rgate_gpu_ask *ask)
{
	struct rgate_daskstate st = {
		.head = ask->loan.submitted,
		.limit = ask->loan.room,
		.lock = ask->loan.completed << 1,
	};
	struct rgate_dask *d = &ask->dask;
	int err;

	err = device_words(gpu, &d->state, sizeof(*d->state), 0);
	if (!err)
		err = device_words(gpu, &d->cells, d->ncells * sizeof(*d->cells), 0);
	/* a bit is a free cell */
	if (!err)
		err = device_words(gpu, &d->free, d->ncells / 8, 0xff);
	if (!err)
		err = rgate_gpu_cuda(gpu, cudaMemcpy(d->state, &st, sizeof(st),
						     cudaMemcpyHostToDevice), "cudaMemcpy");
	if (err)
		free_state(ask);
	return err;
}

/* Where the device has what lies at @p of the area, which it has at @area */
static void *moved(const struct rgate_session_loan *l, void *area, const void *p)
{
	return (unsigned char *)area + ((const unsigned char *)p - (unsigned char *)l->area);
}

static int map_area(struct rgate_gpu *gpu, struct rgate_gpu_ask *ask)
{
	const struct rgate_session_loan *l = &ask->loan;
	struct rgate_dask *d = &ask->dask;
	void *area, *mem = NULL;
	int err;

	err = rgate_gpu_host_map(gpu, l->area, l->area_len, false, &area);
	if (err)
		return err;
	if (l->memory)
		err = rgate_gpu_host_map(gpu, l->memory, l->memory_len, false, &mem);
	if (err) {
		rgate_gpu_host_unmap(l->area);
		return err;
	}
	d->requests = moved(l, area, l->requests);
	d->request_credits = moved(l, area, l->request_credits);
	d->completions = moved(l, area, l->completions);
	d->completion_credits = moved(l, area, l->completion_credits);
	d->memory = mem;
	d->memory_len = l->memory_len;
	d->owner = l->owner;
	d->req_shift = (uint32_t)__builtin_ctz(l->places);
	d->comp_shift = (uint32_t)__builtin_ctz(l->completion_places);
	return 0;
}

static void unmap_area(struct rgate_gpu_ask *ask)
{
	if (ask->loan.memory)
		rgate_gpu_host_unmap(ask->loan.memory);
	rgate_gpu_host_unmap(ask->loan.area);
}

static int make_words(struct rgate_gpu *gpu, struct rgate_gpu_ask *ask)
{
	int err = rgate_gpu_cuda(gpu, cudaHostAlloc((void **)&ask->words, sizeof(*ask->words),
						    cudaHostAllocMapped |
						    cudaHostAllocPortable), "cudaHostAlloc");

	if (err)
		return err;
	memset(ask->words, 0, sizeof(*ask->words));
	ask->dask.words = ask->words;
	return 0;
}

static int open_ask(struct rgate_gpu *gpu, const struct rgate_session_loan *loan,
		    const struct rgate_gpu_session_opts *o, struct rgate_gpu_ask **out)
{
	struct rgate_gpu_ask *ask = calloc(1, sizeof(*ask));
	int err;

	if (!ask)
		return rgate_gpu_fail(gpu, -ENOMEM, "no memory");
	ask->loan = *loan;
	ask->dask.ncells = o->tickets;
	err = map_area(gpu, ask);
	if (err)
		goto free;
	err = make_words(gpu, ask);
	if (err)
		goto unmap;
	err = make_state(gpu, ask);
	if (err)
		goto free_words;
	err = rgate_ask_proxy_start(&ask->proxy, loan, &ask->words->over, o->spin_us * 1000ULL,
				    o->idle_us * 1000ULL);
	if (err) {
		rgate_gpu_fail(gpu, err, "no thread for the session");
		goto free_state;
	}
	*out = ask;
	return 0;
free_state:
	free_state(ask);
free_words:
	cudaFreeHost(ask->words);
unmap:
	unmap_area(ask);
free:
	free(ask);
	return err;
}

static void close_ask(struct rgate_gpu_ask *ask)
{
	rgate_ask_proxy_stop(&ask->proxy);
	free_state(ask);
	cudaFreeHost(ask->words);
	unmap_area(ask);
	free(ask);
}

void rgate_gpu_asks_close(struct rgate_gpu *gpu)
{
	unsigned int i;

	for (i = 0; i < RGATE_GPU_SESSIONS_MAX; i++)
		if (gpu->ask[i])
			close_ask(gpu->ask[i]);
}

void rgate_gpu_asks_abandon(struct rgate_gpu *gpu)
{
	unsigned int i;

	for (i = 0; i < RGATE_GPU_SESSIONS_MAX; i++) {
		if (!gpu->ask[i])
			continue;
		rgate_ask_proxy_stop(&gpu->ask[i]->proxy);
		rgate_gpu_host_abandon(gpu->ask[i]->loan.area);
		if (gpu->ask[i]->loan.memory)
			rgate_gpu_host_abandon(gpu->ask[i]->loan.memory);
	}
}

static int bind(struct rgate_gpu *gpu, const struct rgate_session_loan *loan,
		const struct rgate_gpu_session_opts *opts, unsigned int *index)
{
	struct rgate_gpu_session_opts o;
	unsigned int i;
	int err;

	err = check_loan(gpu, loan);
	if (!err)
		err = normalize(gpu, &o, opts);
	if (err)
		return err;
	if (rgate_gpu_busy(gpu))
		return rgate_gpu_fail(gpu, -EBUSY, "a kernel runs");
	for (i = 0; i < RGATE_GPU_SESSIONS_MAX && gpu->ask[i]; i++)
		;
	if (i == RGATE_GPU_SESSIONS_MAX)
		return rgate_gpu_fail(gpu, -ENOSPC, "%u sessions are bound", i);
	err = open_ask(gpu, loan, &o, &gpu->ask[i]);
	if (!err)
		*index = i;
	return err;
}

int rgate_gpu_bind_session(struct rgate_gpu *gpu, const struct rgate_session_loan *loan,
			   const struct rgate_gpu_session_opts *opts, unsigned int *index)
{
	int err, was;

	pthread_mutex_lock(&gpu->lock);
	rgate_gpu_settle(gpu);
	err = rgate_gpu_enter(gpu, &was);
	if (!err) {
		err = bind(gpu, loan, opts, index);
		rgate_gpu_leave(was);
	}
	pthread_mutex_unlock(&gpu->lock);
	return err;
}

/* With the lock held; NULL: there is none */
static struct rgate_gpu_ask *find(struct rgate_gpu *gpu, unsigned int index)
{
	struct rgate_gpu_ask *ask = index < RGATE_GPU_SESSIONS_MAX ? gpu->ask[index] : NULL;

	if (!ask)
		rgate_gpu_fail(gpu, -EINVAL, "no session %u", index);
	return ask;
}

static int unbind(struct rgate_gpu *gpu, unsigned int index)
{
	struct rgate_gpu_ask *ask = find(gpu, index);

	if (!ask)
		return -EINVAL;
	if (rgate_gpu_busy(gpu))
		return rgate_gpu_fail(gpu, -EBUSY, "a kernel runs");
	gpu->ask[index] = NULL;
	close_ask(ask);
	return 0;
}

int rgate_gpu_unbind_session(struct rgate_gpu *gpu, unsigned int index)
{
	int err, was;

	pthread_mutex_lock(&gpu->lock);
	rgate_gpu_settle(gpu);
	err = rgate_gpu_enter(gpu, &was);
	if (!err) {
		err = unbind(gpu, index);
		rgate_gpu_leave(was);
	}
	pthread_mutex_unlock(&gpu->lock);
	return err;
}

int rgate_gpu_session_view(struct rgate_gpu *gpu, unsigned int index, void *dask, size_t len)
{
	const struct rgate_gpu_ask *ask;
	int err = 0;

	pthread_mutex_lock(&gpu->lock);
	ask = find(gpu, index);
	if (!ask)
		err = -EINVAL;
	else if (len != sizeof(ask->dask))
		err = rgate_gpu_fail(gpu, -EINVAL, "another version's structure");
	else
		memcpy(dask, &ask->dask, len);
	pthread_mutex_unlock(&gpu->lock);
	return err;
}

static uint64_t word(const uint64_t *p)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

int rgate_gpu_session_stats(struct rgate_gpu *gpu, unsigned int index,
			    struct rgate_gpu_session_stats *stats)
{
	struct rgate_gpu_session_stats st = { .sz = sizeof(st) };
	const struct rgate_gpu_ask *ask;

	pthread_mutex_lock(&gpu->lock);
	ask = find(gpu, index);
	if (ask) {
		st.submitted = word(&ask->proxy.seen);
		st.failed = word(&ask->words->failed);
		st.strays = word(&ask->words->strays);
		st.kicks = word(&ask->proxy.kicks);
		st.looks = word(&ask->proxy.looks);
		st.over = (uint32_t)word(&ask->words->over);
	}
	pthread_mutex_unlock(&gpu->lock);
	return ask ? rgate_info_copy(stats, &st, sizeof(st)) : -EINVAL;
}
