// SPDX-License-Identifier: MIT OR GPL-2.0
/* Processes that share a ring of the module, some of which are killed. */
#include "lib/vt.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <ringgate/ringgate.h>	/* libringgate */

#define WORKERS		4
#define FRAMES		6144U	/* whole batches */
#define UID_OTHER	12345

static struct rgate_ring *ring;
static uint8_t *seen;		/* how often each frame was; of all processes */
static int tx;

static void setup(uint32_t slots)
{
	struct rgate_ring_opts o = RGATE_OPTS(rgate_ring_opts, .slots = slots,
					      .slot_size = 512);

	vt_veth("va", "vb", 0);
	tx = vt_tx_open("va");
	REQUIRE(!rgate_ring_open(&ring, &o));
	REQUIRE(!rgate_ring_attach(ring, "vb", NULL, NULL));
	seen = mmap(NULL, FRAMES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	REQUIRE(seen != MAP_FAILED);
}

static void begin(struct rgate_consumer *c, struct rgate_ring *on, uint32_t orphans)
{
	const struct rgate_consumer_opts o = RGATE_OPTS(rgate_consumer_opts,
		.take = RGATE_TAKE_SHARED, .orphans = orphans);

	REQUIRE(!rgate_consumer_init(c, on, &o));
}

/* One frame, noted. False: none is there */
static bool take(struct rgate_consumer *c)
{
	const struct rgate_slot *s = rgate_consumer_next(c);
	uint64_t seq;

	if (!s)
		return false;
	if (!vt_pkt_check(rgate_slot_data(s), s->len, &seq) || seq >= FRAMES)
		FAIL("a frame is not as sent");
	else
		__atomic_add_fetch(&seen[seq], 1, __ATOMIC_RELAXED);
	rgate_consumer_release(c);
	return true;
}

static void expect_seen(unsigned int from, unsigned int to, unsigned int times)
{
	for (; from < to; from++)
		if (seen[from] != times)
			FAIL("frame %u was seen %u times, not %u", from, seen[from], times);
}

struct worker {
	int sock[2];
	unsigned int n;		/* takes so many, and stays */
	pid_t pid;
};

static int holder(void *arg)
{
	struct worker *w = arg;
	struct rgate_consumer c;
	struct rgate_ring *mine;
	unsigned int i;

	REQUIRE(!rgate_ring_recv(&mine, w->sock[1]));
	begin(&c, mine, RGATE_ORPHAN_REREAD);
	for (i = 0; i < w->n; i++)
		REQUIRE(take(&c));
	REQUIRE(write(w->sock[1], "x", 1) == 1);
	pause();
	return 1;
}

static void start(struct worker *w, int (*fn)(void *arg))
{
	REQUIRE(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, w->sock));
	w->pid = vt_fork(fn, w);
	close(w->sock[1]);
	REQUIRE(!rgate_ring_send(ring, w->sock[0]));
}

static void hold(struct worker *w, unsigned int n)
{
	char x;

	w->n = n;
	start(w, holder);
	REQUIRE(read(w->sock[0], &x, 1) == 1);
}

static void end(struct worker *w)
{
	kill(w->pid, SIGKILL);
	REQUIRE(waitpid(w->pid, NULL, 0) == w->pid);
	close(w->sock[0]);
}

static void expect_orphans(uint64_t batches, uint64_t skipped)
{
	uint64_t is[2];

	rgate_ring_orphans(ring, &is[0], &is[1]);
	EXPECT_EQ(is[0], batches);
	EXPECT_EQ(is[1], skipped);
}

/* Frames from @seq on fill the ring once more: all batches were returned. */
static void expect_round(struct rgate_consumer *c, unsigned int seq, unsigned int slots)
{
	struct rgate_stats before, after;

	rgate_ring_stats(ring, &before);
	vt_tx_burst(tx, 200, seq, slots);
	while (take(c))
		;
	expect_seen(seq, seq + slots, 1);
	rgate_ring_stats(ring, &after);
	EXPECT_EQ(after.dropped_full, before.dropped_full);
}

static void read_again(void)
{
	struct worker w = { 0 };
	struct rgate_consumer c;

	setup(256);
	begin(&c, ring, RGATE_ORPHAN_REREAD);
	vt_tx_burst(tx, 200, 0, 96);
	hold(&w, 40);
	end(&w);
	while (take(&c))
		;
	expect_seen(0, 32, 1);
	expect_seen(32, 40, 2);
	expect_seen(40, 96, 1);
	expect_orphans(1, 0);
	expect_round(&c, 96, 256);
	rgate_ring_close(ring);
}

static void skipped(void)
{
	struct worker w = { 0 };
	struct rgate_consumer c;

	setup(256);
	begin(&c, ring, RGATE_ORPHAN_SKIP);
	vt_tx_burst(tx, 200, 0, 80);
	hold(&w, 70);
	end(&w);
	EXPECT(!take(&c));
	expect_orphans(1, 16);
	vt_tx_burst(tx, 200, 80, 16);
	while (take(&c))
		;
	expect_seen(0, 70, 1);
	expect_seen(70, 80, 0);
	expect_seen(80, 96, 1);
	expect_round(&c, 96, 256);
	rgate_ring_close(ring);
}

static int kill_later(void *arg)
{
	struct worker *w = arg;

	vt_usleep(200000);
	kill(w->pid, SIGKILL);
	return 0;
}

/* Nothing is received, and nothing but the kernel wakes who sleeps: at once */
static void wakes(bool between)
{
	struct worker w = { 0 };
	struct rgate_consumer c;
	uint64_t ns;
	pid_t pid;

	setup(256);
	begin(&c, ring, RGATE_ORPHAN_REREAD);
	vt_tx_burst(tx, 200, 0, between ? 64 : 70);
	hold(&w, 40);
	while (take(&c))
		;
	pid = vt_fork(kill_later, &w);
	ns = vt_now();
	/* for ever, but for the time limit of the case */
	EXPECT_EQ(rgate_consumer_wait(&c, -1), 1);
	EXPECT_GE(vt_now() - ns, 100000000);
	while (take(&c))
		;
	expect_seen(32, 40, 2);
	expect_seen(40, 64, 1);
	expect_orphans(1, 0);
	EXPECT_EQ(vt_wait(pid, 1000), 0);
	end(&w);
	rgate_ring_close(ring);
}

static void wakes_between(void)
{
	wakes(true);
}

static void wakes_within(void)
{
	wakes(false);
}

/* One that is stopped keeps its batch, for as long as it likes. */
static void stopped(void)
{
	struct worker w = { 0 };
	struct rgate_consumer c;

	setup(256);
	begin(&c, ring, RGATE_ORPHAN_REREAD);
	vt_tx_burst(tx, 200, 0, 96);
	hold(&w, 40);
	kill(w.pid, SIGSTOP);
	while (take(&c))
		;
	EXPECT_EQ(rgate_consumer_wait(&c, 300), 0);
	expect_seen(64, 96, 1);
	expect_seen(40, 64, 0);
	expect_orphans(0, 0);
	end(&w);
	rgate_ring_close(ring);
}

/* Who is there, in memory that nobody but the kernel writes */
static void lives(void)
{
	struct rgate_geometry geo;
	struct vt_ring a, b;
	unsigned int i, life;

	vt_ring_open(&a, 64, 256, 0, 0);
	EXPECT_EQ(a.prod->features, RGATE_FEAT_OWNERS | RGATE_FEAT_RESIZE);
	EXPECT_GE(a.prod->owners_off, a.geo.credits_off + 64 / RGATE_BATCH * 8);
	EXPECT_LE(a.prod->owners_off + 64 / RGATE_BATCH * 8, a.geo.slots_off);
	EXPECT_EQ(a.prod->life[0], 1);
	for (i = 1; i <= 3; i++) {
		vt_ring_attach(&b, a.fd);
		EXPECT_EQ(b.geo.handle, 1);
		life = a.prod->life[1];
		EXPECT_EQ(life, 2 * i - 1);
		vt_ring_close(&b);
		EXPECT_EQ(a.prod->life[1], 2 * i);
		EXPECT_EQ(a.prod->closed, i);
	}
	vt_ring_attach(&b, a.fd);
	REQUIRE(!vt_ring_resize(a.fd, 128, 256, &geo));
	a.geo = geo;
	vt_ring_map(&a);
	EXPECT_EQ(a.prod->life[0], 1);
	EXPECT_EQ(a.prod->life[1], 7);
	EXPECT_EQ(a.prod->closed, 3);
	vt_ring_close(&b);
	EXPECT_EQ(a.prod->life[1], 8);
	EXPECT_EQ(a.prod->closed, 4);
	vt_ring_close(&a);
	vt_ring_open(&a, 64, 256, 0, RGATE_POLICY_OVERWRITE);
	EXPECT_EQ(a.prod->features, RGATE_FEAT_OVERWRITE | RGATE_FEAT_RESIZE);
	EXPECT_EQ(a.prod->owners_off, 0);
	vt_ring_close(&a);
}

/* The dead one's number is another's at once, who does not look after its batch. */
static void given_again(void)
{
	struct worker w = { 0 };
	struct rgate_consumer c;
	struct rgate_ring *other;
	struct rgate_view v;

	setup(256);
	begin(&c, ring, RGATE_ORPHAN_REREAD);
	vt_tx_burst(tx, 200, 0, 64);
	hold(&w, 40);
	end(&w);
	REQUIRE(!rgate_ring_dup(&other, ring));
	rgate_ring_view(other, &v);
	EXPECT_EQ(v.handle, 1);
	while (take(&c))
		;
	expect_seen(40, 64, 1);
	expect_orphans(1, 0);
	rgate_ring_close(other);
	rgate_ring_close(ring);
}

static int liar(void *arg)
{
	struct worker *w = arg;
	uint64_t *owners, *word, end_ns;
	struct rgate_ring *mine;
	struct rgate_view v;

	REQUIRE(!setgid(UID_OTHER) && !setuid(UID_OTHER));
	REQUIRE(!rgate_ring_recv(&mine, w->sock[1]));
	rgate_ring_view(mine, &v);
	owners = (uint64_t *)((uint8_t *)v.prod + v.prod->owners_off);
	for (end_ns = vt_now() + 3000000000ULL; vt_now() < end_ns;) {
		const uint64_t r = vt_rand();

		word = r & 1 ? &owners[r >> 8 & 7] : r & 2 ? (uint64_t *)&v.cons->claim :
		       r & 4 ? (uint64_t *)&v.cons->waiter[r >> 8 & 3].closed :
		       (uint64_t *)&v.cons->waiter[r >> 8 & 3].want;
		__atomic_store_n(word, r & 16 ? vt_rand() : (vt_rand() & 31) << 32 | (r >> 32),
				 __ATOMIC_RELAXED);
		if (r & 32)
			sched_yield();
	}
	return 0;
}

/* Lies in owner words: who shares that ring may miss frames, but hangs in no call. */
static void lies(void)
{
	struct worker w = { 0 };
	struct rgate_consumer c;
	unsigned int seq = 0;

	setup(256);
	begin(&c, ring, RGATE_ORPHAN_REREAD);
	start(&w, liar);
	while (waitpid(w.pid, NULL, WNOHANG) != w.pid) {
		uint64_t ns = vt_now();

		vt_tx_burst(tx, 200, seq, 16);
		seq = (seq + 16) % FRAMES;
		while (vt_now() < ns + 20000000 && take(&c))
			;
		(void)rgate_consumer_wait(&c, 1);
		EXPECT_LE(vt_now() - ns, 5000000000LL * vt_slow());
	}
	close(w.sock[0]);
	/* the ring itself is well: without the lies it is as ever */
	REQUIRE(!rgate_ring_resize(ring, 256, 512));
	EXPECT_EQ(rgate_consumer_wait(&c, 0), 0);
	memset(seen, 0, FRAMES);
	expect_round(&c, 0, 256);
	rgate_ring_close(ring);
}

static int worker(void *arg)
{
	struct worker *w = arg;
	struct rgate_consumer c;
	struct rgate_ring *mine;

	REQUIRE(!rgate_ring_recv(&mine, w->sock[1]));
	begin(&c, mine, RGATE_ORPHAN_REREAD);
	for (;;) {
		while (take(&c))
			;
		REQUIRE(rgate_consumer_wait(&c, -1) >= 0);
	}
	return 1;
}

static unsigned int distinct(unsigned int n)
{
	unsigned int i, sum = 0;

	for (i = 0; i < n; i++)
		sum += !!__atomic_load_n(&seen[i], __ATOMIC_RELAXED);
	return sum;
}

/* Frames that are seen again are those of a batch that was taken over. */
static void expect_again(unsigned int kills)
{
	unsigned int b, i, more, again = 0;
	uint64_t batches, none;

	for (b = 0; b < FRAMES; b += RGATE_BATCH) {
		for (i = more = 0; i < RGATE_BATCH; i++)
			more |= seen[b + i] > 1;
		again += more;
	}
	rgate_ring_orphans(ring, &batches, &none);
	EXPECT_LE(again, batches);
	EXPECT_LE(batches, kills);
	vt_note("%u workers killed, %u batches taken over, %u seen again", kills,
		(unsigned int)batches, again);
}

static void random_kills(void)
{
	struct worker w[WORKERS] = { 0 };
	unsigned int i, k, kills = 0;
	unsigned int old;
	struct rgate_stats st;

	setup(2048);
	for (i = 0; i < WORKERS; i++)
		start(&w[i], worker);
	for (k = 0; k < FRAMES; k += 48) {
		vt_tx_burst(tx, 200, k, 48);
		vt_usleep((unsigned int)(vt_rand() % 4000));
		i = (unsigned int)(vt_rand() % WORKERS);
		end(&w[i]);
		start(&w[i], worker);
		kills++;
		/*
		 * What fits is there; the dead may have kept some of it for a moment. All
		 * that is older: one batch that waits for its turn fills the ring.
		 */
		old = k + 48 > 256 ? k + 48 - 256 : 0;
		REQUIRE(VT_UNTIL(distinct(old) == old, 10000));
	}
	EXPECT(VT_UNTIL(distinct(FRAMES) == FRAMES, 10000));
	rgate_ring_stats(ring, &st);
	EXPECT_EQ(st.delivered, FRAMES);
	EXPECT_EQ(st.dropped_full, 0);
	for (i = 0; i < WORKERS; i++)
		end(&w[i]);
	expect_again(kills + WORKERS);
	rgate_ring_close(ring);
}

static const struct vt_case cases[] = {
	{ .name = "who died is told in the producer area", .fn = lives },
	{ .name = "a dead worker's batch is read again", .fn = read_again },
	{ .name = "a dead worker's batch is skipped", .fn = skipped },
	{ .name = "a death wakes who sleeps", .fn = wakes_between },
	{ .name = "a death wakes who waits within a batch", .fn = wakes_within },
	{ .name = "a stopped worker is not dead", .fn = stopped },
	{ .name = "the dead one's handle is given again", .fn = given_again },
	{ .name = "lies in owner words", .fn = lies, .secs = 90 },
	{ .name = "workers killed at random", .fn = random_kills, .secs = 240 },
};

VT_MAIN(cases)
