/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Resizing a ring while it is filled: the memory is retired and replaced, twice
 * here, at any moment. The consumer drains what it has mapped, maps what is new,
 * and begins there at position 0.
 *
 * What has to hold: of every generation that was mapped each frame is taken once,
 * in order; the last generation is mapped; the consumer reads no memory with the
 * geometry of another.
 *
 * A ring has room for all frames here (see ring.pml), and who waits is woken
 * (see wake.pml). Memory is sequentially consistent.
 *
 * check: pass	module: replaced, then retired
 * check: pass	memfd ring: retired and replaced under a lock : -DMEMFD
 * check: fail	state is loaded after the last look at the slot : -DSTATE_LAST
 * check: fail	retired before the last slot is published : -DEARLY_RETIRED
 * check: fail	no look at the generation after mapping : -DNO_GENERATION
 * check: fail	the consumer starts anew without a new generation : -DUNLOCKED
 */
#define GENERATIONS	3
#define FRAMES		2		/* at most, in one generation */

#define ACTIVE	1
#define RETIRED	2
#define CLOSED	3

#define SLOT(g, p)	((g) * FRAMES + (p))

bool seq[GENERATIONS * FRAMES];
byte state[GENERATIONS] = ACTIVE;
byte now;				/* generation that QUERY and mmap find */
bool locked;				/* ring->lock, core->lock */

/* for the assertions only */
byte published[GENERATIONS], seen[GENERATIONS];
bool mapped[GENERATIONS];

/* rgate_ring_switch(), rgate_memfd_switch() */
inline replace()
{
	atomic { !locked -> locked = true };
#ifdef MEMFD
	state[g] = RETIRED;
	now = g + 1;
#elif defined(UNLOCKED)
	locked = false;
	state[g] = RETIRED;
	now = g + 1;
#else
	now = g + 1;
	state[g] = RETIRED;
#endif
	locked = false
}

active proctype producer()
{
	byte g;

	do
	::
#ifdef EARLY_RETIRED
		if
		:: g < GENERATIONS - 1 -> replace()
		:: else
		fi;
#endif
		do
		:: published[g] < FRAMES ->
			atomic { seq[SLOT(g, published[g])] = true; published[g]++ }
		:: true -> break
		od;
		if
		:: g == GENERATIONS - 1 -> break
		:: g < GENERATIONS - 1 ->
#ifndef EARLY_RETIRED
			replace();
#endif
			g++
		fi
	od;
	state[g] = CLOSED
}

/* rgate_ring_remap(): QUERY, mmap; or under the lock */
inline map()
{
	do
	::
		atomic { !locked -> query = now };
		atomic { !locked -> got = now };
#ifndef NO_GENERATION
		if
		:: query != got
		:: query == got -> break
		fi
#else
		break
#endif
	od;
	assert(query == got)
}

/* rgate_consumer_next(), follow(), start() */
active proctype consumer()
{
	byte g, p, s, query, got;
	bool ready;

	map();
	g = got;
	mapped[g] = true;
	do
	::
#ifdef STATE_LAST
		ready = p < FRAMES && seq[SLOT(g, p)];
		s = state[g];
#else
		s = state[g];
		ready = p < FRAMES && seq[SLOT(g, p)];
#endif
		if
		:: ready -> atomic { assert(seen[g] == p); seen[g]++; p++ }
		:: !ready && s == CLOSED -> break
		:: !ready && s == ACTIVE
		:: !ready && s == RETIRED ->
			map();
#ifndef UNLOCKED
			if
			:: got == g	/* not yet replaced */
			:: got != g ->
#endif
				atomic { g = got; p = 0; mapped[g] = true }
#ifndef UNLOCKED
			fi
#endif
		fi
	od;
	assert(g == GENERATIONS - 1);
	g = 0;
	do
	:: g == GENERATIONS -> break
	:: g < GENERATIONS ->
		assert(seen[g] == (mapped[g] -> published[g] : 0));
		g++
	od
}
