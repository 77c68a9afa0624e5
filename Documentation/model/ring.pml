/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Publish, consume and credit where nothing is overwritten (the policies DROP,
 * PASS and SPILL): one producer, two consumers that share the ring, and a third
 * that takes over after both of them died.
 *
 * What has to hold: no published frame is lost, none is seen twice, none is seen
 * torn, and the producer never writes a slot that a consumer is reading.
 *
 * Memory is sequentially consistent here; see order.pml for what may be reordered.
 *
 * check: pass	two consumers claim batches from the shared counter
 * check: pass	the same, the producer stores head once a batch : -DHEAD_LATE
 * check: pass	two consumers take batches by number : -DSTRIDE
 * check: pass	both die anywhere, a third takes over : -DTAKEOVER
 * check: pass	the same, the producer stores head once a batch : -DTAKEOVER -DHEAD_LATE
 * check: fail	the producer does not look at credits : -DNO_CREDIT
 * check: fail	the credit is stored before the last slot is read : -DEARLY_CREDIT
 * check: fail	seq is stored before the frame : -DEARLY_SEQ
 * check: fail	two consumers claim without compare-and-swap : -DNO_CAS
 * check: fail	state is loaded after the last look at the slot : -DSTATE_LAST
 * check: fail	who takes over skips nothing that was returned : -DTAKEOVER -DNO_SKIP
 * check: fail	who takes over skips as if the ring overwrote : -DTAKEOVER -DSKIP_MORE
 */
#define BATCH	2			/* RGATE_BATCH */
#define NB	2			/* batches of the ring */
#define SLOTS	(NB * BATCH)
#ifndef FRAMES
#define FRAMES	11			/* nearly three laps, the last batch partial */
#endif
#define BATCHES	((FRAMES + BATCH - 1) / BATCH)

#define LAP(p)	((p) / SLOTS + 1)
#define AT(p)	((p) % SLOTS)
#define BLAP(b)	LAP((b) * BATCH)

#ifdef TAKEOVER
#define MORTAL	(_pid <= 3)		/* the first two consumers */
#else
#define MORTAL	false
#endif

/* producer area, consumer area, slots */
byte head;
bool closed;
byte claim;
byte credit[NB];
byte seq[SLOTS];
byte word0[SLOTS], word1[SLOTS];	/* of a frame: both hold its position + 1 */

/* for the assertions only */
byte reading[SLOTS];			/* consumers between seq and their last word */
byte seen[FRAMES];
bool returned[BATCHES];			/* its credit was stored */
byte alive = 2;				/* of the two consumers */
byte running = 3;			/* of all processes but init */

inline store_words(p)
{
	if				/* in any order: seq alone tells that all is there */
	:: word0[AT(p)] = p + 1; word1[AT(p)] = p + 1
	:: word1[AT(p)] = p + 1; word0[AT(p)] = p + 1
	fi
}

/* rgate_writer_reserve(), rgate_writer_commit(); rgate_producer_refill(), _publish() */
active proctype producer()
{
	byte p;

	do
	:: p == FRAMES -> break
	:: p < FRAMES ->
#ifndef NO_CREDIT
		/* Full: this frame is dropped, and the next tries again. */
		if
		:: p % BATCH == 0 -> credit[(p / BATCH) % NB] == LAP(p) - 1
		:: else
		fi;
#endif
		assert(reading[AT(p)] == 0);
#ifdef EARLY_SEQ
		seq[AT(p)] = LAP(p);
		store_words(p);
#else
		store_words(p);
		seq[AT(p)] = LAP(p);
#endif
#ifdef HEAD_LATE
		if
		:: (p + 1) % BATCH == 0 -> head = p + 1
		:: else
		fi;
#else
		head = p + 1;
#endif
		p++
	od;
	head = p;
	closed = true;
	running--
}

/*
 * Is position p published, was it overwritten, or will nothing come any more?
 * rgate_consumer_ready(), follow(): state is loaded before the last look.
 */
inline look(p)
{
#ifdef STATE_LAST
	s = seq[AT(p)];
	ended = closed
#else
	ended = closed;
	s = seq[AT(p)]
#endif
}

/* One batch in hand: rgate_consumer_next(), rgate_consumer_release_n() */
inline take_batch(b)
{
	p = b * BATCH;
	do
	:: p == (b + 1) * BATCH -> break
	:: p < (b + 1) * BATCH ->
		look(p);
		assert(s <= LAP(p));
		if
		:: s == LAP(p) ->
			d_step { reading[AT(p)]++; seen[p]++ };
#ifdef EARLY_CREDIT
			if
			:: p % BATCH == BATCH - 1 -> credit[b % NB] = LAP(p)
			:: else
			fi;
#endif
			assert(word0[AT(p)] == p + 1);
			assert(word1[AT(p)] == p + 1);
#ifdef TAKEOVER
			assert(!returned[b]);
#else
			assert(seen[p] == 1);
#endif
			reading[AT(p)]--;
			p++
		:: s < LAP(p) && ended -> goto done
		:: s < LAP(p) && !ended		/* spins, sleeps */
		:: MORTAL -> goto done
		fi
	od;
	atomic { credit[b % NB] = BLAP(b); returned[b] = true }
}

/* advance_shared(); stride_from() */
proctype consumer(byte me)
{
	byte b, p, s;
	bool ended;

#ifdef STRIDE
	b = me;
#endif
	do
	::
#ifndef STRIDE
		b = claim;
#endif
		look(b * BATCH);
		if
		:: s < BLAP(b) && ended -> break
		:: s < BLAP(b) && !ended
		:: MORTAL -> break
		:: s > BLAP(b) ->
			/* skip_shared(): others took it meanwhile, nothing was lost */
			assert(claim > b)
		:: s == BLAP(b) ->
#ifdef NO_CAS
			if
			:: claim == b -> claim = b + 1
			:: claim != b -> goto again
			fi;
#elif !defined(STRIDE)
			if
			:: atomic { claim == b -> claim = b + 1 }
			:: claim != b -> goto again
			fi;
#endif
			take_batch(b);
#ifdef STRIDE
			b = b + 2
#endif
		fi;
again:
		skip
	od;
done:
	/* Who dies in the midst of a frame reads on no more, and that is all. */
	atomic { alive--; running-- }
}

#ifdef TAKEOVER
/* rgate_consumer_reset_claim(), rgate_consumer_init(): oldest_batch() */
proctype successor()
{
	byte b, p, s, top, h, check_end;
	bool ended;

	alive == 0;
	h = head;
	top = h / BATCH;
	if
	:: top >= NB && h % BATCH != 0 -> b = top - NB + 1
	:: top >= NB && h % BATCH == 0 -> b = top - NB
	:: else -> b = 0
	fi;
	do
	:: b < top && credit[b % NB] >= BLAP(b) -> b++
	:: else -> break
	od;
	check_end = b * BATCH + 2 * SLOTS;
	do				/* advance_shared() with nobody else about */
	::
		look(b * BATCH);
		if
		:: s < BLAP(b) && ended -> break
		:: s < BLAP(b) && !ended
		:: s > BLAP(b) ->
			/*
			 * The producer was further than the head loaded above. It
			 * got past this batch, so that was returned by the dead.
			 */
#ifdef SKIP_MORE
			b++;
#endif
			b++
		:: s == BLAP(b) ->
			if
#ifndef NO_SKIP
			:: b * BATCH < check_end && credit[b % NB] == BLAP(b)
#endif
			:: else -> take_batch(b)
			fi;
			b++
		fi
	od;
done:
	running--
}
#endif

init
{
	byte p;

	atomic {
		run consumer(0);
		run consumer(1);
#ifdef TAKEOVER
		running++;
		run successor();
#endif
	}
	running == 0;
	do
	:: p == FRAMES -> break
	:: p < FRAMES ->
#ifdef TAKEOVER
		assert(seen[p] >= 1);
#else
		assert(seen[p] == 1);
#endif
		p++
	od
}
