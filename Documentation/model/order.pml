/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What each release, acquire and fence of the ring is for. A thread here is a set
 * of loads and stores that happen in any order, as on a weakly ordered machine with
 * one memory (arm64, RISC-V), unless something holds them: the same word twice, or
 * what the guards RELEASE, ACQUIRE, WMB, RMB and MB say. -DNO_... takes one away.
 *
 * check: pass	publish: who sees seq sees the frame : -DPUBLISH
 * check: fail	publish: seq stored without release : -DPUBLISH -DNO_RELEASE
 * check: fail	publish: seq loaded without acquire : -DPUBLISH -DNO_ACQUIRE
 * check: pass	credit: a frame is not overwritten before it was read : -DCREDIT
 * check: fail	credit: stored without release : -DCREDIT -DNO_RELEASE
 * check: fail	credit: loaded without acquire, and no branch on it either : -DCREDIT -DNO_ACQUIRE
 * check: pass	overwrite: a copy that was checked is whole : -DOVERWRITE
 * check: fail	overwrite: no barrier behind BUSY : -DOVERWRITE -DNO_WMB
 * check: fail	overwrite: no barrier before the second look : -DOVERWRITE -DNO_RMB
 * check: fail	overwrite: seq stored without release : -DOVERWRITE -DNO_RELEASE
 * check: fail	overwrite: first look without acquire : -DOVERWRITE -DNO_ACQUIRE
 * check: pass	wake: who arms sees the slot, or the producer sees the word : -DWAKE
 * check: fail	wake: no full fence behind arming : -DWAKE -DNO_CONSUMER_MB
 * check: fail	wake: no full fence behind publishing : -DWAKE -DNO_PRODUCER_MB
 * check: pass	state: who sees RETIRED or CLOSED finds the last slot : -DSTATE
 * check: fail	state: stored without release : -DSTATE -DNO_RELEASE
 * check: fail	state: loaded without acquire : -DSTATE -DNO_ACQUIRE
 */

/* When may an access happen: only after those given, if the barrier is there */
#ifdef NO_RELEASE
#define RELEASE(after)	true
#else
#define RELEASE(after)	(after)
#endif
#ifdef NO_ACQUIRE
#define ACQUIRE(after)	true
#else
#define ACQUIRE(after)	(after)
#endif
#ifdef NO_WMB
#define WMB(after)	true
#else
#define WMB(after)	(after)
#endif
#ifdef NO_RMB
#define RMB(after)	true
#else
#define RMB(after)	(after)
#endif
#ifdef NO_CONSUMER_MB
#define CONSUMER_MB(after)	true
#else
#define CONSUMER_MB(after)	(after)
#endif
#ifdef NO_PRODUCER_MB
#define PRODUCER_MB(after)	true
#else
#define PRODUCER_MB(after)	(after)
#endif

/* Access number n of a thread, once, when `may` holds */
#define DO(n, may, what)	!did[n] && (may) -> atomic { what; did[n] = true }

byte seq, word0, word1, credit, want, state;
byte finished;

/* What consumer and producer found */
byte s, s2, r0, r1, c, w;

#if defined(PUBLISH)
/* rgate_writer_commit(), rgate_producer_publish(): word by word, then seq */
active proctype producer()
{
	bool did[3];

	do
	:: DO(0, true, word0 = 1)
	:: DO(1, true, word1 = 1)
	:: DO(2, RELEASE(did[0] && did[1]), seq = 1)
	:: else -> break
	od;
	finished++
}

/* rgate_consumer_ready() */
active proctype consumer()
{
	bool did[3];

	do
	:: DO(0, true, s = seq)
	:: DO(1, ACQUIRE(did[0]), r0 = word0)
	:: DO(2, ACQUIRE(did[0]), r1 = word1)
	:: else -> break
	od;
	finished++
}
#define HOLDS	(s != 1 || (r0 == 1 && r1 == 1))

#elif defined(CREDIT)
/* rgate_consumer_release_n() */
active proctype consumer()
{
	bool did[3];

	do
	:: DO(0, true, r0 = word0)
	:: DO(1, true, r1 = word1)
	:: DO(2, RELEASE(did[0] && did[1]), credit = 1)
	:: else -> break
	od;
	finished++
}

/*
 * rgate_writer_refill(), batch_free(). With NO_ACQUIRE the stores are not even held
 * by the branch, as a compiler may have it that was not told.
 */
active proctype producer()
{
	bool did[3];

	do
	:: DO(0, true, c = credit)
	:: DO(1, ACQUIRE(did[0] && c == 1), word0 = 2)
	:: DO(2, ACQUIRE(did[0] && c == 1), word1 = 2)
	:: else -> break
	od;
	finished++
}
#define HOLDS	(r0 == 0 && r1 == 0)

#elif defined(OVERWRITE)
/* lap 1 is there in part or whole; lap 2: rgate_writer_busy(), then as above */
active proctype producer()
{
	bool did[7];

	do
	:: DO(0, true, word0 = 1)
	:: DO(1, true, word1 = 1)
	:: DO(2, RELEASE(did[0] && did[1]), seq = 1)
	:: DO(3, did[2], seq = 0)
	:: DO(4, did[0] && WMB(did[3]), word0 = 2)
	:: DO(5, did[1] && WMB(did[3]), word1 = 2)
	:: DO(6, did[3] && RELEASE(did[4] && did[5]), seq = 2)
	:: else -> break
	od;
	finished++
}

/* rgate_consumer_copy(), rgate_consumer_intact() */
active proctype consumer()
{
	bool did[4];

	do
	:: DO(0, true, s = seq)
	:: DO(1, ACQUIRE(did[0]), r0 = word0)
	:: DO(2, ACQUIRE(did[0]), r1 = word1)
	:: DO(3, did[0] && RMB(did[1] && did[2]), s2 = seq)
	:: else -> break
	od;
	finished++
}
#define HOLDS	((s != 1 || s2 != 1 || (r0 == 1 && r1 == 1)) && \
		 (s != 2 || s2 != 2 || (r0 == 2 && r1 == 2)))

#elif defined(WAKE)
/* rgate_ring_wake(), rgate_producer_flush() */
active proctype producer()
{
	bool did[2];

	do
	:: DO(0, true, seq = 1)
	:: DO(1, PRODUCER_MB(did[0]), w = want)
	:: else -> break
	od;
	finished++
}

/* rgate_consumer_arm() */
active proctype consumer()
{
	bool did[2];

	do
	:: DO(0, true, want = 1)
	:: DO(1, CONSUMER_MB(did[0]), s = seq)
	:: else -> break
	od;
	finished++
}
#define HOLDS	(s == 1 || w == 1)

#elif defined(STATE)
/* rgate_memfd_switch(), rgate_ring_switch(), rgate_producer_fini() */
active proctype producer()
{
	bool did[2];

	do
	:: DO(0, true, seq = 1)
	:: DO(1, RELEASE(did[0]), state = 1)
	:: else -> break
	od;
	finished++
}

/* follow(): state, then once more the slot */
active proctype consumer()
{
	bool did[2];

	do
	:: DO(0, true, w = state)
	:: DO(1, ACQUIRE(did[0]), s = seq)
	:: else -> break
	od;
	finished++
}
#define HOLDS	(w == 0 || s == 1)
#endif

init
{
	finished == 2;
	assert(HOLDS)
}
