/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Consumers that share a ring by owner words. Each may be killed between any two of its
 * steps; another one gets its handle's number, at once or later. One producer, which
 * waits for credits.
 *
 * What has to hold: every frame is read by one that lives to return its batch; none is
 * read while the producer writes it; a batch is in the hand of one living consumer; frames
 * are seen again only where a batch was taken over; and nobody sleeps for good while
 * there is something to take (SPIN finds that as an end state that is none).
 *
 * check: pass	two workers, one is killed
 * check: fail	a ticket is taken first, the owner word written second : -DTICKET
 * check: fail	the word names a handle, and not which life of it : -DNO_LIFE
 * check: fail	a batch is taken over without compare-and-swap : -DNO_CAS
 * check: fail	one that died before it moved the counter is passed by : -DPASS_BY
 * check: fail	one that slept for a lap takes the word of a later one : -DSTALE
 * check: fail	the credit is looked at before the holder is known to be dead : -DCREDIT_FIRST
 * check: fail	one that is stopped is taken for dead : -DSTOPPED
 * check: fail	the count of deaths is loaded after the look : -DSEEN_LATE
 * check: fail	a death wakes nobody : -DNO_WAKE
 */
#define BATCH	1			/* one slot stands for all of a batch */
#define NB	2			/* batches of the ring */
#define SLOTS	(NB * BATCH)
#ifdef TWICE				/* 31 million states: by hand, with memory */
#define FRAMES	4
#define DEATHS	2
#else
#define FRAMES	3			/* the third is of the second lap */
#define DEATHS	1
#endif
#define WORKERS	2
#define BATCHES	(FRAMES / BATCH)

#define LAP(p)	((p) / SLOTS + 1)
#define AT(p)	((p) % SLOTS)
#define BLAP(b)	LAP((b) * BATCH)
#define PUBLISHED(b)	((b) < BATCHES && seq[AT((b) * BATCH)] >= BLAP(b))

/* producer area, consumer area, slots */
byte life[WORKERS];			/* odd while somebody has that handle */
byte closed;
byte claim;
byte credit[NB];
byte lap[NB], holder[NB], since[NB];	/* owner words */
byte seq[SLOTS];

/* for the assertions only, but for killed */
bool killed[WORKERS];
byte reading[WORKERS];			/* position + 1 */
byte hand[WORKERS];			/* batch + 1 */
byte seen[FRAMES], taken_over[BATCHES];
byte returned;

active proctype producer()
{
	byte p;

	do
	:: p == FRAMES -> break
	:: p < FRAMES ->
		if
		:: p % BATCH == 0 -> credit[(p / BATCH) % NB] == LAP(p) - 1
		:: else
		fi;
		assert((reading[0] == 0 || AT(reading[0] - 1) != AT(p)) &&
		       (reading[1] == 0 || AT(reading[1] - 1) != AT(p)));
		seq[AT(p)] = LAP(p);
		p++
	od
}

/* What the kernel does: a life ends with all that its process might have done. */
active proctype killer()
{
	byte n, h;

	do
	:: n == DEATHS -> break
	:: n < DEATHS ->
end:		atomic {
			if
			:: life[0] % 2 == 1 -> h = 0
			:: life[1] % 2 == 1 -> h = 1
			fi;
#ifdef STOPPED
			life[h] = life[h] + 2;
#else
			life[h]++;
			killed[h] = true;
			reading[h] = 0;
			hand[h] = 0;
#endif
			closed++;
			n++
		}
	:: returned == BATCHES -> break
	od
}

inline own(b)
{
	lap[(b) % NB] = BLAP(b);
	holder[(b) % NB] = me;
	since[(b) % NB] = mine
}

inline in_hand(b)
{
	hand[me] = b + 1;
#ifndef STOPPED
	assert(hand[0] != hand[1])
#endif
}

/* rgate_consumer_next(), _release_n() */
inline read_batch(b)
{
	p = b * BATCH;
	do
	:: p == (b + 1) * BATCH -> break
	:: p < (b + 1) * BATCH ->
		atomic { seq[AT(p)] >= LAP(p) -> reading[me] = p + 1; seen[p]++ };
		assert(seq[AT(p)] == LAP(p));
		assert(seen[p] <= taken_over[b] + 1);
		reading[me] = 0;
		p++
	od;
	atomic {
		assert(credit[b % NB] < BLAP(b));	/* once */
		credit[b % NB] = BLAP(b);
		hand[me] = 0;
		returned++;
		p = 0
	}
}

/* left() */
#ifdef NO_LIFE
#define ALIVE(h, l)	(life[h] % 2 == 1)
#else
#define ALIVE(h, l)	(life[h] == (l))
#endif

/* take_over(): dead for sure, then not returned, then ours */
inline take_over(b)
{
	atomic { l = lap[b % NB]; h = holder[b % NB]; s = since[b % NB] };
#ifdef CREDIT_FIRST
	c = credit[b % NB];
#endif
	if
	:: l != BLAP(b) || ALIVE(h, s)
	:: l == BLAP(b) && !ALIVE(h, s) ->
#ifndef CREDIT_FIRST
		c = credit[b % NB];
#endif
		if
		:: c >= BLAP(b)
		:: c < BLAP(b) ->
			atomic {
				if
#ifdef NO_CAS
				:: true ->
#else
				:: lap[b % NB] == l && holder[b % NB] == h && since[b % NB] == s ->
#endif
					own(b);
					taken_over[b]++;
					in_hand(b);
					got = true
				:: else
				fi
			}
		fi
	fi;
	atomic { l = 0; h = 0; s = 0; c = 0 }
}

/* look(): the batches that the producer may wait for */
inline look()
{
	x = claim;
	b = (x > NB -> x - NB : 0);
	do
	:: got || b >= x -> break
	:: else ->
		take_over(b);
		if
		:: got -> read_batch(b); got = false
		:: else
		fi;
		b++
	od;
	atomic { b = 0; x = 0 }
}

/* take(), pass() */
inline take()
{
	b = claim;
	if
	:: !PUBLISHED(b)
	:: PUBLISHED(b) ->
#ifdef TICKET
		if
		:: atomic { claim == b -> claim = b + 1; got = true }
		:: claim != b
		fi;
		if
		:: got -> atomic { own(b); in_hand(b) }
		:: else
		fi;
#else
		atomic { l = lap[b % NB]; h = holder[b % NB]; s = since[b % NB] };
		if
		:: l == BLAP(b) ->
#ifndef PASS_BY
			take_over(b)
#else
			skip
#endif
		:: l != BLAP(b) ->
			/* after the word: it may be of a later lap */
#ifndef STALE
			c = credit[b % NB];
#endif
			if
			:: c >= BLAP(b)
			:: c < BLAP(b) ->
				atomic {
					if
					:: lap[b % NB] == l && holder[b % NB] == h &&
					   since[b % NB] == s ->
						own(b);
						in_hand(b);
						got = true
					:: else
					fi
				}
			fi
		fi;
		if
		:: atomic { claim == b -> claim = b + 1 }
		:: claim != b
		fi;
#endif
		if
		:: got -> read_batch(b); got = false
		:: else
		fi
	fi;
	atomic { b = 0; l = 0; h = 0; s = 0; c = 0 }
}

proctype worker(byte me)
{
	byte b, x, p, l, h, s, c, mine, told;
	bool got;

again:
	atomic {
		killed[me] = false;
		life[me]++;
		mine = life[me];
		got = false;
		b = 0; x = 0; p = 0; l = 0; h = 0; s = 0; c = 0; told = 0
	};
	{
		do
		::
#ifndef SEEN_LATE
			told = closed;
#endif
			look();
			take();
#ifdef SEEN_LATE
			told = closed;
#endif
			/* rgate_consumer_arm() and poll; see wake.pml for the fences */
			if
			:: PUBLISHED(claim)
#ifndef NO_WAKE
			:: told != closed
#endif
			:: returned == BATCHES -> goto over
			fi
		od
	} unless {
		killed[me]
	};
	goto again;
over:
	skip
}

init
{
	byte p;

	atomic { run worker(0); run worker(1) };
	returned == BATCHES;
	do
	:: p == FRAMES -> break
	:: p < FRAMES -> assert(seen[p] >= 1); p++
	od
}
