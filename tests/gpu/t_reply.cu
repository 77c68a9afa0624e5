// SPDX-License-Identifier: MIT OR GPL-2.0
/* Answers: built on the GPU, taken out of the output ring by the CPU's consumer. */
#include "verify.cuh"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define ROOM 192U

/* The frame back, whole; one in @arg has no answer */
static __device__ uint32_t echo(const struct rgate_dpkt *pkt, void *result, void *arg)
{
	uint32_t *to = (uint32_t *)result, i;

	for (i = 0; i < pkt->len; i += 4)
		to[i / 4] = v_word(pkt, i, pkt->len);
	rgate_dreply_header(result)->hash = pkt->hdr->hash;
	return pkt->len;
}

static __device__ uint32_t echo_warp(const struct rgate_dpkt *pkt, void *result, void *arg)
{
	uint32_t *to = (uint32_t *)result, i;

	for (i = rgate_dlane() * 4; i < pkt->len; i += 128)
		to[i / 4] = v_word(pkt, i, pkt->len);
	__syncwarp();
	return pkt->len;
}

/* Only every third */
static __device__ uint32_t echo_some(const struct rgate_dpkt *pkt, void *result, void *arg)
{
	return v_head(pkt).number % 3 ? 0 : echo(pkt, result, arg);
}

RGATE_GPU_LANES(echo_lanes, echo, 64, ROOM)
RGATE_GPU_WARPS(echo_warps, echo_warp, ROOM, ROOM)
RGATE_GPU_ORDERED(echo_ordered, echo, ROOM, ROOM)
RGATE_GPU_BATCH(echo_batch, echo, 64, ROOM)
RGATE_GPU_LANES(echo_third, echo_some, ROOM, ROOM)

struct sink {
	struct rgate_consumer c;
	const struct g_feed *f;
	uint32_t nfeeds;
	unsigned char *seen[V_RINGS];
	uint32_t last[V_RINGS][V_FLOWS + 1];
	uint64_t got, wrong, twice, disorder;
};

/* Takes what is there, at most @most */
static void take(struct sink *s, uint64_t most)
{
	const struct rgate_slot *slot;
	struct g_head h;

	while (most-- && (slot = rgate_consumer_next(&s->c))) {
		const unsigned char *frame = (const unsigned char *)rgate_slot_data(slot);

		memcpy(&h, frame, sizeof(h));
		s->got++;
		if (slot->len < sizeof(h) || slot->wire_len != slot->len || h.ring >= s->nfeeds ||
		    h.number >= s->f[h.ring].total ||
		    g_digest(frame, slot->len) != s->f[h.ring].digest[h.number]) {
			s->wrong++;
		} else {
			s->twice += s->seen[h.ring][h.number]++ != 0;
			if (slot->hash <= V_FLOWS) {
				s->disorder += s->last[h.ring][slot->hash] > h.number;
				s->last[h.ring][slot->hash] = h.number;
			}
		}
		rgate_consumer_release(&s->c);
	}
}

struct plan {
	const struct rgate_gpu_kernel *kernel;
	uint32_t full, slots, frames, every, lazy, ordered;
};

static void begin(const struct plan *p, struct rgate_gpu **gpu, struct g_feed *f, struct sink *s,
		  struct rgate_ring **out)
{
	uint32_t i;

	memset(s, 0, sizeof(*s));
	s->f = f;
	s->nfeeds = 2;
	g_ok(NULL, rgate_gpu_open(gpu, NULL));
	for (i = 0; i < 2; i++) {
		memset(&f[i], 0, sizeof(f[i]));
		f[i].ring = g_ring(256, 256, 0);
		f[i].id = i;
		f[i].total = (uint32_t)(p->frames / g_slow());
		f[i].min = 16;
		f[i].max = ROOM;
		f[i].flows = p->ordered ? 30 : 0;
		f[i].keep = true;
		s->seen[i] = (unsigned char *)calloc(f[i].total, 1);
		g_ok(*gpu, rgate_gpu_bind(*gpu, f[i].ring, NULL));
	}
	*out = g_ring(p->slots, 256, 0);
	g_require(!rgate_consumer_init(&s->c, *out, NULL));
	g_ok(*gpu, rgate_gpu_bind_output(*gpu, *out, p->full));
}

static void start_feeds(struct g_feed *f)
{
	uint32_t i;

	for (i = 0; i < 2; i++)
		g_feed_start(&f[i]);
}

static void join_feeds(struct g_feed *f)
{
	uint32_t i;

	for (i = 0; i < 2; i++)
		g_feed_join(&f[i]);
}

static void close_feeds(struct g_feed *f, struct sink *s)
{
	uint32_t i;

	for (i = 0; i < 2; i++) {
		g_feed_close(&f[i]);
		rgate_ring_close(f[i].ring);
		g_feed_free(&f[i]);
		free(s->seen[i]);
	}
}

static struct rgate_gpu_status status_of(struct rgate_gpu *gpu)
{
	struct rgate_gpu_status st;

	memset(&st, 0, sizeof(st));
	st.sz = sizeof(st);
	g_require(!rgate_gpu_query(gpu, &st));
	return st;
}

/* What has come against what was sent; some of it dropped, if that is the rule */
static void check(const struct plan *p, const struct sink *s, uint64_t dropped)
{
	uint64_t expected = 0, missing = 0;
	uint32_t i, k;

	for (i = 0; i < s->nfeeds; i++)
		for (k = 0; k < s->f[i].total; k += p->every) {
			expected++;
			missing += !s->seen[i][k];
		}
	g_note("%llu answers, %llu dropped, %llu missing", (unsigned long long)s->got,
	       (unsigned long long)dropped, (unsigned long long)missing);
	g_require(!s->wrong && !s->twice && s->got + dropped == expected && missing == dropped);
	g_require(!p->ordered || !s->disorder);
	g_require(p->full == RGATE_GPU_FULL_DROP || !dropped);
}

/* Fails when the time is up, and says how far things are */
static void in_time(struct rgate_gpu *gpu, const struct g_feed *f, const struct sink *s,
		    uint64_t end)
{
	struct rgate_gpu_status st;
	uint32_t i;

	if (g_now_ns() < end)
		return;
	st = status_of(gpu);
	for (i = 0; i < 2; i++) {
		struct rgate_gpu_stats rs = { sizeof(rs) };

		g_require(!rgate_gpu_ring_stats(gpu, i, &rs));
		g_note("ring %u: %llu of %u published, %llu taken, %llu finished, %llu looks", i,
		       (unsigned long long)f[i].published, f[i].total,
		       (unsigned long long)rs.taken, (unsigned long long)rs.finished,
		       (unsigned long long)rs.looks);
	}
	g_note("state %u, %llu answers of %llu taken", st.state, (unsigned long long)s->got,
	       (unsigned long long)st.replies);
	g_require(!"in time");
}

static void reply(const struct plan *p)
{
	struct rgate_gpu_status st;
	struct rgate_ring *out;
	struct rgate_gpu *gpu;
	struct g_feed f[2];
	struct sink s;
	uint32_t i;
	uint64_t end, got;

	begin(p, &gpu, f, &s, &out);
	if (p->kernel->kind != RGATE_GPU_KIND_BATCH)
		g_ok(gpu, rgate_gpu_start(gpu, p->kernel, NULL));
	start_feeds(f);
	end = g_now_ns() + 20000000000ULL;
	for (i = 0; i < 2;) {
		in_time(gpu, f, &s, end);
		if (p->kernel->kind == RGATE_GPU_KIND_BATCH) {
			g_ok(gpu, rgate_gpu_launch(gpu, p->kernel, NULL));
			take(&s, UINT64_MAX);
			g_ok(gpu, rgate_gpu_wait(gpu, 5000));
		}
		take(&s, p->lazy ? p->lazy : UINT64_MAX);
		i += __atomic_load_n(&f[i].published, __ATOMIC_ACQUIRE) == f[i].total;
	}
	join_feeds(f);
	if (p->kernel->kind == RGATE_GPU_KIND_BATCH) {
		g_ok(gpu, rgate_gpu_launch(gpu, p->kernel, NULL));
		g_ok(gpu, rgate_gpu_wait(gpu, 5000));
	}
	/* what waits for room: a drain below would, too, each time */
	do {
		got = s.got;
		usleep(10000);
		take(&s, UINT64_MAX);
	} while (s.got != got);
	/* long enough for the three reports that a drain waits for, under a sanitizer too */
	while (rgate_gpu_drain(gpu, 50 * (int)g_slow())) {
		in_time(gpu, f, &s, end);
		take(&s, UINT64_MAX);
	}
	g_ok(gpu, rgate_gpu_stop(gpu, 5000));
	st = status_of(gpu);
	rgate_gpu_close(gpu);
	/* the ring is closed by its producer: drained, it says so */
	take(&s, UINT64_MAX);
	g_require(rgate_consumer_wait(&s.c, 0) == -EPIPE);
	g_require(st.replies == s.got);
	check(p, &s, st.replies_dropped);
	rgate_ring_close(out);
	close_feeds(f, &s);
}

static void lanes(void)
{
	struct plan p = { &echo_lanes, RGATE_GPU_FULL_WAIT, 1024, 300000, 1, 0, 0 };

	reply(&p);
}

static void warps(void)
{
	struct plan p = { &echo_warps, RGATE_GPU_FULL_WAIT, 1024, 200000, 1, 0, 0 };

	reply(&p);
}

static void some(void)
{
	struct plan p = { &echo_third, RGATE_GPU_FULL_WAIT, 64, 300000, 3, 0, 0 };

	reply(&p);
}

static void in_order(void)
{
	struct plan p = { &echo_ordered, RGATE_GPU_FULL_WAIT, 512, 200000, 1, 0, 1 };

	reply(&p);
}

static void batches(void)
{
	struct plan p = { &echo_batch, RGATE_GPU_FULL_WAIT, 4096, 100000, 1, 0, 0 };

	reply(&p);
}

/* The smallest ring, a consumer that cannot follow */
static void full_waits(void)
{
	struct plan p = { &echo_lanes, RGATE_GPU_FULL_WAIT, 64, 100000, 1, 3, 0 };

	reply(&p);
}

static void full_drops(void)
{
	struct plan p = { &echo_lanes, RGATE_GPU_FULL_DROP, 64, 100000, 1, 1, 0 };

	reply(&p);
}

/* Nobody takes anything: the kernel waits for room, and is stopped all the same */
static void full_stops(void)
{
	struct plan p = { &echo_lanes, RGATE_GPU_FULL_WAIT, 64, 1000, 1, 0, 0 };
	struct rgate_gpu_status st;
	struct rgate_ring *out;
	struct rgate_gpu *gpu;
	struct g_feed f[2];
	struct sink s;
	uint32_t i;

	p.frames *= (uint32_t)g_slow();
	begin(&p, &gpu, f, &s, &out);
	g_ok(gpu, rgate_gpu_start(gpu, p.kernel, NULL));
	start_feeds(f);
	g_feed_wait(&f[0], 256);
	g_ok(gpu, rgate_gpu_stop(gpu, 2000));
	st = status_of(gpu);
	g_require(st.replies <= 64 && st.replies_dropped > 0);
	for (i = 0; i < 2; i++) {
		__atomic_store_n(&f[i].stop, true, __ATOMIC_RELAXED);
		g_feed_join(&f[i]);
	}
	rgate_gpu_close(gpu);
	rgate_ring_close(out);
	close_feeds(f, &s);
}

/*
 * One packet at a time, so that there is room for each answer: none is dropped, though who
 * wants it may find another warp at the ring's words, which tells the host
 */
static void one_by_one(uint32_t direct)
{
	struct plan p = { &echo_lanes, RGATE_GPU_FULL_DROP, 64, 20000, 1, 0, 0 };
	struct rgate_gpu_start_opts o;
	struct rgate_ring *out;
	struct rgate_gpu *gpu;
	struct g_feed f[2];
	uint64_t n, end;
	struct sink s;

	begin(&p, &gpu, f, &s, &out);
	g_feed_open(&f[0]);
	g_feed_open(&f[1]);
	memset(&o, 0, sizeof(o));
	o.sz = sizeof(o);
	o.pause_ns = 1;
	o.direct = direct;
	g_ok(gpu, rgate_gpu_start(gpu, p.kernel, &o));
	for (n = 0; n < f[0].total * 2ULL; n++) {
		g_feed_put(&f[n % 2]);
		end = g_now_ns() + 5000000000ULL;
		for (take(&s, UINT64_MAX); s.got <= n; take(&s, UINT64_MAX))
			g_require(g_now_ns() < end);
	}
	g_ok(gpu, rgate_gpu_stop(gpu, 5000));
	g_require(!status_of(gpu).replies_dropped);
	check(&p, &s, 0);
	rgate_gpu_close(gpu);
	rgate_ring_close(out);
	close_feeds(f, &s);
}

static void one_handed(void)
{
	one_by_one(RGATE_GPU_NO_DIRECT);
}

static void one_direct(void)
{
	one_by_one(32);
}

/* A consumer of the output ring sleeps, and is woken by the runtime's thread */
static void sleep_for(const struct plan *p, const struct rgate_gpu_start_opts *o,
		      uint32_t pause_ns)
{
	uint64_t all = p->frames / g_slow() * 2;
	struct rgate_ring *out;
	struct rgate_gpu *gpu;
	struct g_feed f[2];
	uint32_t i, naps = 0;
	struct sink s;

	begin(p, &gpu, f, &s, &out);
	for (i = 0; i < 2; i++)
		f[i].pause_ns = pause_ns;
	g_ok(gpu, rgate_gpu_start(gpu, p->kernel, o));
	start_feeds(f);
	while (s.got < all) {
		naps++;
		g_require(rgate_consumer_wait(&s.c, 2000) == 1);
		take(&s, UINT64_MAX);
	}
	g_note("woken %u times for %llu answers", naps, (unsigned long long)all);
	join_feeds(f);
	check(p, &s, 0);
	rgate_gpu_close(gpu);
	rgate_ring_close(out);
	close_feeds(f, &s);
}

static void sleeper(void)
{
	struct plan p = { &echo_lanes, RGATE_GPU_FULL_WAIT, 256, 300, 1, 0, 0 };

	p.frames *= (uint32_t)g_slow();
	sleep_for(&p, NULL, 300000);
}

/* The kernel waits for room that only the sleeper makes: who looks, and who works */
static void full_sleeper(void)
{
	struct plan p = { &echo_lanes, RGATE_GPU_FULL_WAIT, 64, 5000, 1, 0, 0 };
	struct rgate_gpu_start_opts o;

	memset(&o, 0, sizeof(o));
	o.sz = sizeof(o);
	sleep_for(&p, &o, 0);
	o.direct = 32;
	sleep_for(&p, &o, 0);
}

static const struct g_test tests[] = {
	{ "lanes", lanes },
	{ "warps", warps },
	{ "some", some },
	{ "in_order", in_order },
	{ "batches", batches },
	{ "full_waits", full_waits },
	{ "full_drops", full_drops },
	{ "full_stops", full_stops },
	{ "one_handed", one_handed },
	{ "one_direct", one_direct },
	{ "sleeper", sleeper },
	{ "full_sleeper", full_sleeper },
};

int main(int argc, char **argv)
{
	return g_run(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
