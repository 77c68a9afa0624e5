/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * A kernel that stays, and has /usr/bin/logger run at another node for each datagram:
 *
 *	logger SOCKET NODE [PORT]
 *
 * The daemon at SOCKET is asked. What a datagram holds is what logger reads. The kernel does not
 * wait for it: of what became of a start it hears when it needs the place for another one.
 */
#include <ringgate/gpu/ask.cuh>
#include <ringgate/gpu/kernel.cuh>
#include <ringgate/rgate_source.h>
#include <ringgate/rgate_spawn.h>

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SLOTS	256U	/* of the ring, and of the session's memory: a packet's number tells both */
#define ROOM	2048U	/* bytes of a record */
#define TEXT	1024U	/* of a datagram */
#define SECOND	1000000000ULL

struct counts {
	unsigned long long asked, started, refused, dropped;
};

struct desk {
	struct rgate_dask ask;
	uint64_t node;
	uint32_t record;		/* bytes of a record without text */
	uint64_t ticket[SLOTS];		/* of the last start; 0: it was heard of */
	struct counts n;
};

static __device__ void add(unsigned long long *n)
{
	atomicAdd(n, 1ULL);
}

/* It runs, and goes on when nobody holds its handle any more */
static __device__ void let_go(struct rgate_dasker *me, struct desk *d, uint32_t handle)
{
	struct rgate_request q = {};
	uint64_t none;

	q.op = RGATE_REQ_SPAWN_DETACH;
	q.flags = RGATE_REQ_NO_COMPLETION;
	q.handle = handle;
	while (rgate_dask_submit(me, &q, &none) == -EAGAIN)
		;
}

/* Is place @i free, or was what became of its last start heard within a second? */
static __device__ bool settle(struct rgate_dasker *me, struct desk *d, uint32_t i)
{
	struct rgate_danswer a;

	if (!d->ticket[i])
		return true;
	if (rgate_dask_wait(me, d->ticket[i], &a, SECOND) != 1)
		return false;
	d->ticket[i] = 0;
	add(a.result ? &d->n.refused : &d->n.started);
	if (!a.result)
		let_go(me, d, (uint32_t)a.value);
	return true;
}

/* The datagram's bytes behind the record that lies at place @i; how long both are */
static __device__ uint32_t write_record(const struct rgate_dpkt *pkt, struct desk *d, uint32_t i)
{
	unsigned char *mem = d->ask.memory + i * ROOM;
	struct rgate_spawn_record *r = (struct rgate_spawn_record *)mem;
	struct rgate_dlayers l;
	uint32_t n, k;

	rgate_dpkt_layers(pkt, &l);
	n = l.payload < pkt->len ? pkt->len - l.payload : 0;
	n = n < TEXT ? n : TEXT;
	for (k = 0; k < n; k++)
		mem[d->record + k] = rgate_dpkt_u8(pkt, l.payload + k);
	r->input.length = n;
	r->length = d->record + n;
	return d->record + n;
}

static __device__ uint32_t log_it(const struct rgate_dpkt *pkt, void *result, void *arg)
{
	struct desk *d = (struct desk *)arg;
	uint32_t i = pkt->pos % SLOTS;
	struct rgate_request q = {};
	struct rgate_dasker me;

	/* no other packet has this place: it would have to be in this one's slot of the ring */
	rgate_dasker_init(&me, &d->ask, 0);
	if (settle(&me, d, i)) {
		q.op = RGATE_REQ_SPAWN_START;
		q.a0 = d->node;
		q.off = i * ROOM;
		q.len = write_record(pkt, d, i);
		add(rgate_dask_submit(&me, &q, &d->ticket[i]) ? &d->n.dropped : &d->n.asked);
	} else {
		add(&d->n.dropped);
	}
	rgate_dasker_fini(&me);
	return 0;
}

RGATE_GPU_LANES(log_kernel, log_it, 256, 0)

static void check(struct rgate_gpu *gpu, long ret, const char *what)
{
	const char *why;

	if (ret >= 0)
		return;
	why = rgate_gpu_error(gpu);
	fprintf(stderr, "%s: %s\n", what, *why ? why : rgate_strerror("rgate_gpu_", (int)ret));
	exit(1);
}

/* The same record at each place: all that differs is the text, which comes last */
static uint32_t make_records(struct rgate_session *s)
{
	static const char *const argv[] = { "/usr/bin/logger", "-t", "ringgate-gpu", NULL };
	unsigned char *mem = (unsigned char *)rgate_session_memory(s, NULL);
	struct rgate_spawn_request req = {};
	int64_t len;

	req.sz = sizeof(req);
	req.argv = argv;
	req.stdin_mode = RGATE_SPAWN_IN_DATA;
	req.flags = RGATE_SPAWN_KEEP;
	len = rgate_spawn_record_encode(&req, mem, ROOM - TEXT);
	check(NULL, len, "record");
	for (uint32_t i = 1; i < SLOTS; i++)
		memcpy(mem + i * ROOM, mem, (size_t)len);
	return (uint32_t)len;
}

static struct rgate_session *open_session(const char *path)
{
	struct rgate_session_opts o = {};
	struct rgate_session *s;

	o.sz = sizeof(o);
	o.where = RGATE_SESSION_DAEMON;
	o.path = path;
	o.requests = 1024;
	o.memory = SLOTS * ROOM;
	check(NULL, rgate_session_open(&s, &o), "session");
	return s;
}

/* In the device's memory; @d is the host's copy */
static struct desk *make_desk(struct rgate_gpu *gpu, struct rgate_session *s, struct desk *d)
{
	struct rgate_session_loan loan = {};
	unsigned int index;
	void *to;

	d->record = make_records(s);
	loan.sz = sizeof(loan);
	check(NULL, rgate_session_lend(s, &loan), "lend");
	check(gpu, rgate_gpu_bind_session(gpu, &loan, NULL, &index), "bind");
	check(gpu, rgate_gpu_session_view(gpu, index, &d->ask, sizeof(d->ask)), "view");
	if (cudaMalloc(&to, sizeof(*d)) || cudaMemcpy(to, d, sizeof(*d), cudaMemcpyHostToDevice))
		exit(1);
	return (struct desk *)to;
}

int main(int argc, char **argv)
{
	struct rgate_gpu_start_opts o = {};
	struct rgate_ring_opts ro = {};
	struct sockaddr_in addr = {};
	static struct desk d;
	struct rgate_source *src;
	struct rgate_session *s;
	struct rgate_ring *ring;
	struct rgate_gpu *gpu;
	struct desk *desk;

	if (argc < 3) {
		fprintf(stderr, "usage: logger SOCKET NODE [PORT]\n");
		return 1;
	}
	d.node = strtoull(argv[2], NULL, 0);
	addr.sin_family = AF_INET;
	addr.sin_port = htons(argc > 3 ? (uint16_t)atoi(argv[3]) : 5140);
	check(NULL, rgate_gpu_open(&gpu, NULL), "GPU");
	s = open_session(argv[1]);
	desk = make_desk(gpu, s, &d);
	ro.sz = sizeof(ro);
	ro.slots = SLOTS;
	ro.slot_size = 2048;
	check(NULL, rgate_ring_open_memfd(&ring, &ro), "ring");
	check(NULL, rgate_source_start_udp(&src, &ring, 1, (struct sockaddr *)&addr, sizeof(addr),
					   NULL),
	      "socket");
	check(gpu, rgate_gpu_bind(gpu, ring, NULL), "bind");
	o.sz = sizeof(o);
	o.arg = desk;
	check(gpu, rgate_gpu_start(gpu, &log_kernel, &o), "start");
	for (;;) {
		struct counts n;

		sleep(1);
		cudaMemcpy(&n, &desk->n, sizeof(n), cudaMemcpyDeviceToHost);
		printf("%llu asked for, %llu started, %llu refused, %llu dropped\n", n.asked,
		       n.started, n.refused, n.dropped);
		fflush(stdout);
	}
}
