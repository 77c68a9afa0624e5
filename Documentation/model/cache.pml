/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The pool's cache of one thread, and another thread that takes back what it keeps:
 * the owner goes in and out with plain stores, and the other has membarrier(2) put a
 * fence into it. With the owner's store buffer, as in wake.pml; the other one's stores
 * are followed by full fences anyway.
 *
 * A search that finds nothing leaves the pool dry, and tight: the owner keeps nothing then,
 * and the other looks at the slabs only.
 *
 * What has to hold: the two are never inside at the same time, what was put in is either
 * there or was taken, once, and a dry pool has nothing in the cache.
 *
 * check: pass	the owner stores busy, the other calls membarrier(2)
 * check: pass	no membarrier(2): the owner has a fence of its own : -DOWNER_FENCE -DNO_MEMBARRIER
 * check: fail	neither : -DNO_MEMBARRIER
 * check: fail	the other does not wait for the owner to be out : -DNO_WAIT
 * check: fail	the other goes in although the owner did not come out : -DIMPATIENT
 * check: fail	the owner does not look whether it may go in : -DNO_LOOK
 * check: fail	the other looks at busy before it stores stolen : -DLOOK_FIRST
 * check: fail	it gets tight when the search is over : -DLATE
 * check: fail	the owner looks whether it is tight before it enters : -DEARLY
 * check: fail	dry although the owner did not come out : -DHASTY
 */
#define ROUNDS	3			/* of the owner, and of the other */

/* memory */
bool busy, stolen;
byte bin;				/* buffers in it */
bool reclaim;				/* the pool's lock */
byte slab, tight;			/* buffers there; who looks for some */
bool dry;

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

/* rgate_cache_enter(), rgate_cache_leave(), rgate_cache_wait(); free_slow(), refill() */
active proctype owner()
{
	byte round, n;
	bool out, keep;

	do
	:: round == ROUNDS -> break
	:: round < ROUNDS ->
#ifdef EARLY
		keep = !tight;
#endif
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
#ifndef EARLY
			keep = !tight;
#endif
			if
			:: keep ->
				/* a CPU sees its own stores before they are in memory */
				n = (pending -> last : bin) + 1;
				atomic { buffer ! BIN, n; last = n; pending++ };
				put++
			:: !keep
			fi;
			d_step { inside--; n = 0 };
			buffer ! BUSY, 0;
			if
			:: !keep ->
				empty(buffer);		/* the class's lock */
				d_step { slab++; put++ }
			:: keep
			:: atomic { !keep && dry && empty(buffer) ->	/* plenty */
				dry = false; tight--; slab++; put++ }
			fi;
			round++
		fi
	od;
	finished++
}

/* take_hard(), search(), rgate_cache_reclaim(), owner_out() */
active proctype other()
{
	byte round;
	bool out, found;

	do
	:: round == ROUNDS -> break
	:: round < ROUNDS && dry ->
		atomic {
			assert(!dry || (!bin && !pending));
			taken = taken + slab;
			slab = 0
		};
		round++
	:: round < ROUNDS && !dry ->
#ifndef LATE
		tight++;
#endif
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
		found = false;
		if
		:: out ->
			atomic { inside++; assert(inside == 1) };
			d_step { found = bin > 0; taken = taken + bin; bin = 0 };
			inside--
		:: !out
		fi;
		stolen = false;
		reclaim = false;
#ifdef HASTY
		out = true;
#endif
		d_step { found = found || slab; taken = taken + slab; slab = 0 };
#ifdef LATE
		tight++;
#endif
		if
		:: out && !found -> dry = true
		:: !out || found -> tight--
		fi;
		round++
	od;
	finished++
}

init
{
	finished == 2 && empty(buffer);
	assert(put == ROUNDS && bin + slab + taken == put)
}
