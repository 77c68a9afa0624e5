// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * A lock in one word, changed by compare-and-swaps alone, while others hammer it with such that
 * fail. On some kernels a failed one stores what it has read. So what the word's owner would store
 * itself, to release the lock, could be lost; what is swapped must never be.
 */
#include "lib/vt.h"
#include "lib/vt_rc.h"

#define HOLDERS	3U
#define HAMMERS	2U
#define HOLDS	120U
#define NEVER	(~0ULL)		/* what the word never is */
#define ACCESS	(RGATE_ACCESS_REMOTE_READ | RGATE_ACCESS_REMOTE_WRITE | RGATE_ACCESS_REMOTE_ATOMIC)

/* The word: who has it, 0: nobody; and how often it was given */
#define WORD(token, owner)	((uint64_t)(token) << 8 | (owner))
#define OWNER(word)		((word) & 0xff)
#define TOKEN(word)		((word) >> 8)

struct side {
	struct rgate_rc *rc[2];		/* its own, and the home's end */
	struct rgate_mem *mem;
	uint64_t *old;			/* there the device puts what was in the word */
	unsigned int me;
	unsigned long done, failed;
};

static struct rgate_device *home, *away;
static struct rgate_mem *word_mem;
static uint64_t *word;
static unsigned int ready;		/* threads that begin together */
static unsigned int over;		/* holders that have done all */
/* of who has the lock */
static unsigned int inside, held;
static uint64_t last;

static void lock_up(void)
{
	vt_rxe_up(2);
	home = vt_dev_rdma(0);
	away = vt_dev_rdma(1);
	word = aligned_alloc(4096, 4096);
	REQUIRE(word);
	*word = WORD(0, 0);
	word_mem = vt_mem(home, word, 4096, ACCESS);
}

static void lock_down(void)
{
	vt_mem_drop(word_mem);
	vt_dev_close(away);
	vt_dev_close(home);
	free(word);
}

/* Number 1 is of the home itself, which reaches its own word as the others do. */
static void side_up(struct side *s, unsigned int me)
{
	struct rgate_device *dev = me == 1 ? home : away;

	memset(s, 0, sizeof(*s));
	s->me = me;
	s->old = aligned_alloc(4096, 4096);
	REQUIRE(s->old);
	s->mem = vt_mem(dev, s->old, 4096, 0);
	vt_rc_pair(s->rc, dev, home, ACCESS);
}

static void side_down(struct side *s)
{
	rgate_rc_destroy(s->rc[0]);
	rgate_rc_destroy(s->rc[1]);
	vt_mem_drop(s->mem);
	free(s->old);
}

static void begin_together(void)
{
	__atomic_fetch_add(&ready, 1, __ATOMIC_ACQ_REL);
	REQUIRE(VT_UNTIL(__atomic_load_n(&ready, __ATOMIC_ACQUIRE) == HOLDERS + HAMMERS, 20000));
}

/* What was in the word: it was swapped if that is @expect */
static uint64_t swap(struct side *s, uint64_t expect, uint64_t to)
{
	REQUIRE_EQ(vt_rc_swap(s->rc[0], vt_here(s->mem, 0), vt_there(word_mem, 0), expect, to), 0);
	s->done++;
	return *s->old;
}

static void hold(uint64_t mine)
{
	EXPECT_EQ(__atomic_exchange_n(&inside, OWNER(mine), __ATOMIC_ACQ_REL), 0);
	EXPECT_EQ(TOKEN(mine), last + 1);
	last = TOKEN(mine);
	held++;
	EXPECT_EQ(__atomic_exchange_n(&inside, 0, __ATOMIC_ACQ_REL), OWNER(mine));
}

static void release(struct side *s, uint64_t mine, uint64_t to)
{
	const uint64_t was = swap(s, mine, to);

	if (was != mine)
		DIE("%u had the lock, and the word is %#llx, not %#llx", s->me,
		    (unsigned long long)was, (unsigned long long)mine);
}

static void *holder(void *arg)
{
	struct side *s = arg;
	uint64_t was = WORD(0, 0), mine, expect;
	unsigned int n;

	begin_together();
	for (n = 0; n < HOLDS; n++) {
		for (;;) {
			expect = WORD(TOKEN(was), 0);
			mine = WORD(TOKEN(was) + 1, s->me);
			was = swap(s, expect, mine);
			if (was == expect)
				break;
			/* It was released already, by this one, if nothing is lost. */
			REQUIRE(OWNER(was) != s->me);
			s->failed++;
		}
		hold(mine);
		was = WORD(TOKEN(mine), 0);
		release(s, mine, was);
	}
	__atomic_fetch_add(&over, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void *hammer(void *arg)
{
	struct side *s = arg;
	uint64_t was, before = 0;

	begin_together();
	while (__atomic_load_n(&over, __ATOMIC_ACQUIRE) < HOLDERS) {
		was = swap(s, NEVER, WORD(0, s->me));
		REQUIRE(OWNER(was) <= HOLDERS);
		/* No state that is over comes back. */
		REQUIRE(TOKEN(was) >= TOKEN(before));
		before = was;
		s->failed++;
	}
	return NULL;
}

static void by_swaps(void)
{
	struct side side[HOLDERS + HAMMERS];
	pthread_t thread[HOLDERS + HAMMERS];
	unsigned int i;

	lock_up();
	for (i = 0; i < VT_COUNT(side); i++)
		side_up(&side[i], i + 1);
	for (i = 0; i < VT_COUNT(side); i++)
		REQUIRE(!pthread_create(&thread[i], NULL, i < HOLDERS ? holder : hammer, &side[i]));
	for (i = 0; i < VT_COUNT(side); i++)
		pthread_join(thread[i], NULL);
	EXPECT_EQ(held, HOLDERS * HOLDS);
	EXPECT_EQ(__atomic_load_n(word, __ATOMIC_ACQUIRE), WORD(HOLDERS * HOLDS, 0));
	EXPECT_EQ(last, HOLDERS * HOLDS);
	for (i = 0; i < VT_COUNT(side); i++) {
		vt_note("%u, %s: %lu swaps, %lu failed", i + 1, i < HOLDERS ? "holds" : "hammers",
			side[i].done, side[i].failed);
		if (i >= HOLDERS)
			EXPECT(side[i].failed);
		side_down(&side[i]);
	}
	lock_down();
}

/* ---- The mistake: the owner of the memory takes and releases the lock by stores ---- */

#define LOOKS	40U

struct storer {
	unsigned long stores, lost;
};

/* Is what was stored there still there a moment later? */
static bool stays(uint64_t value)
{
	unsigned int i;

	__atomic_store_n(word, value, __ATOMIC_SEQ_CST);
	for (i = 0; i < LOOKS; i++)
		if (__atomic_load_n(word, __ATOMIC_SEQ_CST) != value)
			return false;
	return true;
}

static void *storer(void *arg)
{
	struct storer *st = arg;

	while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)) {
		st->stores++;
		if (!stays(WORD(st->stores, st->stores & 1)))
			__atomic_fetch_add(&st->lost, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void add_nothing(struct side *s)
{
	REQUIRE_EQ(vt_rc_add(s->rc[0], vt_here(s->mem, 0), vt_there(word_mem, 0), 0), 0);
}

/* Hammers until a store was lost, or @most times; how many were */
static unsigned long lost_stores(unsigned int most, bool add)
{
	struct storer st = { 0 };
	unsigned long lost = 0;
	struct side s;
	pthread_t t;
	unsigned int i;

	lock_up();
	side_up(&s, 2);
	REQUIRE(!pthread_create(&t, NULL, storer, &st));
	for (i = 0; i < most && !lost; i++) {
		if (add)
			add_nothing(&s);
		else
			(void)swap(&s, NEVER, WORD(0, 2));
		lost = __atomic_load_n(&st.lost, __ATOMIC_RELAXED);
	}
	__atomic_store_n(&over, 1, __ATOMIC_RELEASE);
	pthread_join(t, NULL);
	vt_note("%lu of %lu stores lost, after %u %s", st.lost, st.stores, i,
		add ? "fetch-adds of 0" : "failed swaps");
	side_down(&s);
	lock_down();
	return st.lost;
}

static void by_stores(void)
{
	/* All of them store, on every kernel. */
	EXPECT(lost_stores(200000, true));
}

static void by_failed_swaps(void)
{
	const bool stores = vt_kernel_before(6, 3);
	const unsigned long lost = lost_stores(stores ? 200000 : 2000, false);

	if (stores)
		EXPECT(lost);
	else
		EXPECT_EQ(lost, 0);
}

static const struct vt_case cases[] = {
	{ "lockword: swaps release it, however many others fail", by_swaps, VT_HOSTNS, 60 },
	{ "lockword: stores are lost to fetch-adds", by_stores, VT_HOSTNS, 120 },
	{ "lockword: stores are lost to swaps that fail, where these store", by_failed_swaps,
	  VT_HOSTNS, 120 },
};

VT_RXE_MAIN(cases)
