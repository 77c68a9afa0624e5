/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * A ring that overwrites the oldest slots: the producer never waits, and a
 * consumer copies a frame and then looks at seq again, as under a seqlock.
 *
 * What has to hold: no frame is delivered torn or twice, each consumer gets them
 * in order, what is delivered and what is counted as lost add up to what was
 * published, and nothing that is still there is missed at the end, even if the
 * producer marked a slot busy and never filled it.
 *
 * Memory is sequentially consistent here; see order.pml for what may be reordered.
 *
 * check: pass	one consumer
 * check: pass	one consumer, the producer stores head once a batch : -DHEAD_LATE
 * check: pass	two consumers claim batches from the shared counter : -DSHARED
 * check: fail	no second look at seq : -DNO_RECHECK
 * check: fail	slots are not marked busy : -DNO_BUSY
 * check: fail	seq 0 is always taken for "not yet" : -DBUSY_IS_EMPTY
 * check: fail	likewise, two consumers : -DSHARED -DBUSY_IS_EMPTY
 */
#define BATCH	2			/* RGATE_BATCH */
#define NB	2			/* batches of the ring */
#define SLOTS	(NB * BATCH)
#ifndef FRAMES
#ifdef SHARED
#define FRAMES	6			/* a lap and a half */
#else
#define FRAMES	13			/* more than three laps */
#endif
#endif

#define LAP(p)	((p) / SLOTS + 1)
#define AT(p)	((p) % SLOTS)
#define BLAP(b)	LAP((b) * BATCH)
#define BUSY	0			/* RGATE_SEQ_BUSY */

/* producer area, consumer area, slots */
byte head;
bool closed;
byte claim;
byte credit[NB];
byte seq[SLOTS];
byte word0[SLOTS], word1[SLOTS];	/* of a frame: both hold its position + 1 */

/* for the assertions only */
bit seen[FRAMES];
byte sum;				/* delivered or counted as lost */
byte running = 1;

/* rgate_producer_reserve(), rgate_producer_publish(); rgate_writer_busy() */
active proctype producer()
{
	byte p;

	do
	:: p == FRAMES -> break
	:: p < FRAMES ->
#ifndef NO_BUSY
		seq[AT(p)] = BUSY;
#endif
		if
		:: word0[AT(p)] = p + 1; word1[AT(p)] = p + 1
#ifndef SHARED				/* or there would be too many states */
		:: word1[AT(p)] = p + 1; word0[AT(p)] = p + 1
#endif
		fi;
		seq[AT(p)] = LAP(p);
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
	if
	:: true
	:: seq[AT(p)] = BUSY		/* reserved and given up; data not readable */
	fi;
	atomic { closed = true; running-- }
}

#define ENTER(b) \
	done = (b) * BATCH; end = done + BATCH
#define STAND_BEFORE(b) \
	done = (b) * BATCH; end = done

/* overtaken(): is position p not published although it is below head? */
inline gone(p, yes)
{
	yes = false;
#ifndef BUSY_IS_EMPTY
	if
	:: head > p ->
		s = seq[AT(p)];
		yes = s < LAP(p)
	:: else
	fi
#endif
}

/* surviving_batch(): the first batch that lasts, as the slot at p was overwritten */
inline surviving(p)
{
	h = head;
	s = seq[AT(p)];
	d_step {
		if
		:: s <= LAP(p) -> s = LAP(p) + 1	/* BUSY too */
		:: else
		fi;
		if
		:: h < (s - 1) * SLOTS + AT(p) + 1 -> h = (s - 1) * SLOTS + AT(p) + 1
		:: else
		fi;
		if
		:: h > SLOTS -> to = (h - SLOTS + BATCH - 1) / BATCH
		:: else -> to = 0
		fi;
		s = 0;
		h = 0
	}
}

/* rgate_consumer_resync() */
inline resync()
{
	if
	:: seq[AT(done)] == LAP(done)
	:: else ->
		b = done / BATCH;
		surviving(done);
		d_step {
			if
			:: to <= b
			:: to > b ->
				if
				:: done < end -> lost = lost + end - done; b++
				:: else
				fi;
#ifdef SHARED
				/* the counter is moved when the next is claimed */
				STAND_BEFORE(b)
#else
				if
				:: to > b -> lost = lost + (to - b) * BATCH; b = to
				:: else
				fi;
				ENTER(b)
#endif
			fi;
			b = 0;
			to = 0
		}
	fi
}

/* advance_shared(), skip_shared(); rgate_consumer_advance_slow() */
inline advance(got)
{
#ifdef SHARED
	b = claim;
	do
	::
		s = seq[AT(b * BATCH)];
		if
		:: s == BLAP(b) ->
			if
			:: atomic { claim == b -> claim = b + 1; ENTER(b); got = true };
				break
			:: claim != b -> b = claim
			fi
		:: s < BLAP(b) ->
			gone(b * BATCH, yes);
			if
			:: yes -> goto skip_on
			:: !yes ->
				d_step { STAND_BEFORE(b); got = false };
				break
			fi
		:: s > BLAP(b) ->
skip_on:
			surviving(b * BATCH);
			if
			:: atomic {
				claim == b -> claim = to;
				lost = lost + (to - b) * BATCH;
				b = to
			}
			:: claim != b -> b = claim
			fi
		fi
	od;
	b = 0;
	to = 0
#else
	d_step { b = end / BATCH; ENTER(b); b = 0; got = true }
#endif
}

/* rgate_consumer_copy(), rgate_consumer_next(), rgate_consumer_wait() */
proctype consumer()
{
	byte done, end;				/* struct rgate_consumer */
	byte lost, delivered, after;
	byte s, h, b, to, was, r0, r1;
	bool ended, ok, yes;

	do
	::
		ended = closed;
next:
		if
		:: done == end ->
			advance(ok);
			if
			:: !ok -> goto none
			:: ok
			fi
		:: else
		fi;
		s = seq[AT(done)];
		if
		:: s == LAP(done)
		:: s != LAP(done) ->		/* rgate_consumer_miss() */
			ok = s > LAP(done);
			if
			:: !ok -> gone(done, ok)
			:: ok
			fi;
			if
			:: ok -> resync(); goto next
			:: !ok -> goto none
			fi
		fi;
		r0 = word0[AT(done)];
		r1 = word1[AT(done)];
#ifndef NO_RECHECK
		if
		:: seq[AT(done)] != LAP(done) ->
			was = lost;
			resync();
			if
			:: lost == was -> lost++; goto release
			:: else -> goto next
			fi
		:: else
		fi;
#endif
		d_step {
			assert(r0 == done + 1 && r1 == done + 1);
			assert(!seen[done]);
			assert(done + 1 > after);
			seen[done] = 1;
			after = done + 1;
			delivered++
		};
release:
		r0 = 0;
		d_step { r1 = 0; s = 0; was = 0; done++ };
		if
		:: done == end -> credit[((end - 1) % SLOTS) / BATCH] = LAP(done - 1)
		:: else
		fi;
		goto next;
none:
		/* asleep until position done is published: the wait word is done + 1 */
		if
		:: ended -> break
		:: !ended -> closed || head > done
		fi
	od;
	ok = false;			/* a label cannot stand before d_step */
	d_step {
#ifndef SHARED
		assert(done == FRAMES && delivered + lost == FRAMES);
#endif
		sum = sum + delivered + lost;
		running--
	}
}

init
{
	atomic {
		running++;
		run consumer();
#ifdef SHARED
		running++;
		run consumer();
#endif
	}
	running == 0;
	assert(sum == FRAMES)
}
