/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The pool's cache of one thread, and another thread that takes back what it keeps:
 * the owner goes in and out with plain stores, and the other has membarrier(2) put a
 * fence into it. With the owner's store buffer, as in wake.pml; the other one's stores
 * are followed by full fences anyway.
 *
 * What has to hold: the two are never inside at the same time, and what was put in is
 * either there or was taken, once.
 *
 * check: pass	the owner stores busy, the other calls membarrier(2)
 * check: pass	no membarrier(2): the owner has a fence of its own : -DOWNER_FENCE -DNO_MEMBARRIER
 * check: fail	neither : -DNO_MEMBARRIER
 * check: fail	the other does not wait for the owner to be out : -DNO_WAIT
 * check: fail	the other goes in although the owner did not come out : -DIMPATIENT
 * check: fail	the owner does not look whether it may go in : -DNO_LOOK
 * check: fail	the other looks at busy before it stores stolen : -DLOOK_FIRST
 */
#define ROUNDS	3			/* of the owner, and of the other */

/* memory */
bool busy, stolen;
byte bin;				/* buffers in it */
bool reclaim;				/* the pool's lock */

/* the owner's store buffer, in order: which word, what */
mtype = { BUSY, BIN };
chan buffer = [6] of { mtype, byte };
byte pending, last;			/* stores to bin in it, and the last one's value */

/* for the assertions only */
byte put, taken, inside, finished;

active proctype memory()
{
	byte v;

end:
	do
	:: atomic { buffer ? BUSY, v -> busy = v; v = 0 }
	:: atomic { buffer ? BIN, v -> bin = v; v = 0; pending-- }
	od
}

/* rgate_cache_enter(), rgate_cache_leave(), rgate_cache_wait() */
active proctype owner()
{
	byte round, n;
	bool out;

	do
	:: round == ROUNDS -> break
	:: round < ROUNDS ->
		buffer ! BUSY, 1;
#ifdef OWNER_FENCE
		empty(buffer);
#endif
#ifdef NO_LOOK
		out = false;
#else
		out = stolen;
#endif
		if
		:: out ->
			buffer ! BUSY, 0;
			!reclaim		/* waits for the lock */
		:: !out ->
			atomic { inside++; assert(inside == 1) };
			/* a CPU sees its own stores before they are in memory */
			n = (pending -> last : bin) + 1;
			atomic { buffer ! BIN, n; last = n; pending++ };
			d_step { put++; inside--; n = 0 };
			buffer ! BUSY, 0;
			round++
		fi
	od;
	finished++
}

/* rgate_cache_reclaim(), owner_out() */
active proctype other()
{
	byte round;
	bool out;

	do
	:: round == ROUNDS -> break
	:: round < ROUNDS ->
		reclaim = true;
#ifdef LOOK_FIRST
		out = !busy;
#endif
		stolen = true;
#ifndef NO_MEMBARRIER
		empty(buffer);		/* at one moment, whatever comes after it */
#endif
#ifdef NO_WAIT
		out = true;
#elif !defined(LOOK_FIRST)
		if
		:: !busy -> out = true
		:: out = false		/* it takes too long: left alone */
		fi;
#endif
#ifdef IMPATIENT
		out = true;
#endif
		if
		:: out ->
			atomic { inside++; assert(inside == 1) };
			d_step { taken = taken + bin; bin = 0 };
			inside--
		:: !out
		fi;
		stolen = false;
		reclaim = false;
		round++
	od;
	finished++
}

init
{
	finished == 2 && empty(buffer);
	assert(put == ROUNDS && bin + taken == put)
}
