/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * A lock whose home is another node: two nodes want it, each for one program. Time is counted in
 * ticks, which may pass between any two steps; each message takes as long as it likes. A lease is
 * two ticks, and the home waits for three. A connection may be cut; a node may be killed and begin
 * anew, while its program still believes what it was told; the home may be killed and begin anew.
 *
 * What has to hold: two programs never believe at one time that they have the lock; the token of a
 * hold is higher than all that a program has had before; and when nothing more happens, who has the
 * lock at the home was told so, and nobody waits for a lock that is free.
 *
 * check: pass	the home is killed : -DHOME_DIES
 * check: pass	a node is killed : -DNODE_DIES
 * check: pass	one clock is slower : -DDRIFT
 * check: pass	a connection is cut, and one gives up : -DCUT
 * check: fail	a lease counts from the answer : -DHOME_DIES -DFROM_ANSWER
 * check: fail	the home waits no longer than the lease : -DDRIFT -DNO_EIGHTH
 * check: fail	a program keeps its lease until the home knows that it has released : -DLATE_RELEASE
 * check: fail	a new home gives locks at once : -DHOME_DIES -DHOME_AT_ONCE
 * check: fail	a new home counts tokens from nothing : -DHOME_DIES -DTOKEN_ANEW
 * check: fail	what a killed node had is given on at once : -DNODE_DIES -DORPHAN_AT_ONCE
 * check: fail	what was told over a connection that ended is not told anew : -DCUT -DNOT_ANEW
 * check: fail	a question that comes again is carried out again : -DCUT -DTWICE
 */
#define N	2
#define LEASE	2
#ifdef NO_EIGHTH
#define PATIENCE	LEASE
#else
#define PATIENCE	(LEASE + 1)
#endif
#ifdef CUT				/* which takes no time */
#define TICKS	1
#else
#define TICKS	4
#endif
#define LIVES	2			/* in which it tries again */
#define NONE	255

mtype = { TAKE, DROP, RENEW };			/* questions */
mtype = { GRANTED, WAIT, DONE, REFUSED, STALE, NEWS };	/* answers, and what nobody asked for */
mtype = { IDLE, WAITS, HAS };			/* a claim */

byte now;				/* of the home's clock */
bool slow[N];				/* this node's is a tick behind */
#define NOW(n)	(now - slow[n])

/* The connection of node and home: what was sent over it comes in order, or is lost with it */
chan ask[N] = [1] of { mtype, byte, byte };		/* number, life */
chan say[N] = [1] of { mtype, byte, byte };		/* number, token */
bool other[N], up_news[N];		/* news of the hub for node and home: a connection is new */

/* a node: sync_ask.c, sync_handle.c */
byte life[N], lease[N], number[N], seq[N], asked_at[N], renewed[N];
bool asking[N], taken[N], granted[N], leaves[N], wants[N], renewing[N];
mtype op[N];

/* its program */
byte until[N];				/* rgate_sync_place.lease_ns; 0: it does not have the lock */
byte ghost;				/* likewise, of a program whose daemon was killed */
byte ghost_node = NONE;
byte highest;				/* token that any of them has had */
byte holds[N];				/* that it has begun */

/* the home: sync_serve.c, sync_table.c */
byte guest[N], over[N], heard[N], last[N], token, begins;
mtype claim[N] = IDLE;
byte value[N], take[N], first = NONE;	/* which waits longer */
mtype kept[N] = DONE;
byte kept_token[N];
bool untold[N];
bool orphan;
byte orphan_heard;

byte cuts, kills;

#define BELIEVES(n)	(until[n] > NOW(n))
#define GHOST		(ghost_node != NONE && ghost > NOW(ghost_node))
#define FREE		(claim[0] != HAS && claim[1] != HAS && !orphan && now >= begins)

inline look_who_believes()
{
	assert(!(BELIEVES(0) && BELIEVES(1)));
	assert(!(GHOST && (BELIEVES(0) || BELIEVES(1))))
}

/* ---- The node ---- */

/* handle_lease() */
inline tell_lease(n)
{
	if
	:: granted[n] && !leaves[n] -> until[n] = lease[n]; look_who_believes()
	:: else
	fi
}

/* handle_granted() */
inline is_granted(n, t)
{
	if
	:: !granted[n] ->
		granted[n] = true;
		tell_lease(n);
		if
		:: !leaves[n] && BELIEVES(n) -> assert(t > highest); highest = t
		:: else
		fi
	:: else
	fi
}

/* sync_ask_lapse(): who wanted it is told, and asks anew in the next life */
inline lapse(n)
{
	life[n]++;
	lease[n] = 0;
	until[n] = 0;
	wants[n] = (wants[n] || (taken[n] && !granted[n] && !leaves[n])) && life[n] <= LIVES;
	asking[n] = false; taken[n] = false; granted[n] = false; leaves[n] = false;
	renewing[n] = false
}

/* sync_ask_look(): comes before all that a message brings */
inline look(n)
{
	if
	:: lease[n] && NOW(n) >= lease[n] -> lapse(n)
	:: else
	fi
}

/* ask_handle(), ask_renew() */
inline question(n, what)
{
	number[n]++;
	op[n] = what;
	asked_at[n] = NOW(n);
	asking[n] = true;
	ask[n]!what(number[n], life[n])
}

inline answered(n, what, nr, t)
{
	if
	:: what == NEWS ->
		if
		:: taken[n] && !granted[n] && nr == seq[n] -> is_granted(n, t)
		:: else
		fi
	:: what != NEWS && asking[n] && nr == number[n] ->
		asking[n] = false;
		renewing[n] = false;
		if
		:: what == STALE -> lapse(n)
		:: else ->
#ifdef FROM_ANSWER
			lease[n] = NOW(n) + LEASE;
#else
			if
			:: asked_at[n] + LEASE > lease[n] -> lease[n] = asked_at[n] + LEASE
			:: else
			fi;
#endif
			tell_lease(n);
			if
			:: what == GRANTED -> is_granted(n, t)
			:: what == DONE && op[n] == DROP ->
				taken[n] = false; granted[n] = false; leaves[n] = false;
				until[n] = 0
			:: what == REFUSED ->
				taken[n] = false; granted[n] = false; until[n] = 0
			:: else
			fi
		fi
	:: else
	fi
}

proctype node(byte n)
{
	mtype what;
	byte nr, t;

	life[n] = 1;
	wants[n] = true;
end:	do
	/* what comes */
	:: atomic { other[n] -> other[n] = false; lapse(n) }
	:: atomic { !other[n] && nempty(say[n]) ->
			say[n]?what(nr, t);
			look(n);
			answered(n, what, nr, t);
			nr = 0; t = 0; what = DONE
		}
	/* the clock */
	:: atomic { !other[n] && lease[n] && NOW(n) >= lease[n] && (taken[n] || granted[n]) -> lapse(n) }
	:: atomic { !other[n] && !asking[n] && taken[n] && granted[n] && renewed[n] == 0 && now &&
		    now < TICKS && nfull(ask[n]) ->
			renewed[n] = now;
			renewing[n] = true;
			question(n, RENEW)
		}
	/* what is still missing */
	:: atomic { !other[n] && !asking[n] && leaves[n] && nfull(ask[n]) -> question(n, DROP) }
	:: atomic { !other[n] && !asking[n] && !leaves[n] && wants[n] && nfull(ask[n]) ->
			wants[n] = false; taken[n] = true; granted[n] = false;
			question(n, TAKE);
			seq[n] = number[n]
		}
	/* the program: releases, and wants it once more; or gives up */
	:: atomic { granted[n] && !leaves[n] ->
			leaves[n] = true;
#ifndef LATE_RELEASE
			until[n] = 0;
#endif
			holds[n]++
		}
#ifdef CUT
	:: atomic { taken[n] && !granted[n] && !leaves[n] && holds[n] == 0 && n == 1 ->
			leaves[n] = true; holds[n] = 1
		}
#endif
	od
}

/* ---- The home ---- */

/* grant() */
inline give(m)
{
	claim[m] = HAS;
	token++;
	value[m] = token;
	if
	:: first == m -> first = (claim[1 - m] == WAITS -> 1 - m : NONE)
	:: else
	fi
}

inline give_on()
{
	if
	:: FREE && first != NONE -> untold[first] = true; m = first; give(m)
	:: else
	fi
}

inline forget(k)
{
	if
	:: first == k -> first = (claim[1 - k] == WAITS -> 1 - k : NONE)
	:: else
	fi;
	claim[k] = IDLE;
	untold[k] = false
}

/* carry_out() */
inline carry_out(n, what, nr, l)
{
	answer = STALE;
	t = 0;
	if
	:: l <= over[n] || (guest[n] && l < guest[n])
	:: else ->
		if
		:: guest[n] && l > guest[n] -> forget(n); give_on()
		:: else
		fi;
		guest[n] = l;
		heard[n] = now;
		answer = DONE;
		if
		:: what == TAKE ->
			take[n] = nr;
			if
			:: claim[n] == IDLE && FREE && first == NONE -> give(n); answer = GRANTED; t = value[n]
			:: claim[n] == IDLE && !(FREE && first == NONE) ->
				claim[n] = WAITS;
				answer = WAIT;
				if
				:: first == NONE -> first = n
				:: else
				fi
			:: claim[n] != IDLE -> answer = REFUSED
			fi
		:: what == DROP -> forget(n); give_on()
		:: else
		fi
	fi
}

inline serve(n)
{
	ask[n]?what(nr, l);
	if
#ifndef TWICE
	:: nr == last[n] -> answer = kept[n]; t = kept_token[n]
#endif
	:: else ->
		carry_out(n, what, nr, l);
		last[n] = nr; kept[n] = answer; kept_token[n] = t
	fi;
	say[n]!answer(nr, t);
	nr = 0; l = 0; t = 0; m = 0; what = TAKE; answer = DONE
}

inline tell(n)
{
	untold[n] = false;
	if
	:: claim[n] == HAS -> say[n]!NEWS(take[n], value[n])
	:: else
	fi
}

/* end_life(): the connection is ended first */
inline expire(n)
{
	over[n] = guest[n];
	guest[n] = 0;
	cut(n);
	forget(n);
	give_on();
	m = 0
}

/* What is posted is lost; who asks asks again, and what was told is told anew. */
inline cut(n)
{
	do
	:: nempty(ask[n]) -> ask[n]?_(_, _)
	:: nempty(say[n]) -> say[n]?_(_, _)
	:: empty(ask[n]) && empty(say[n]) -> break
	od;
	up_news[n] = true;
	if
	:: asking[n] && !other[n] -> ask[n]!op[n](number[n], life[n])
	:: else
	fi
}

active proctype home()
{
	mtype what = TAKE, answer = DONE;
	byte nr, l, t, m;

	atomic { run node(0); run node(1) };
end:	do
	:: atomic { nempty(ask[0]) && nfull(say[0]) -> serve(0) }
	:: atomic { nempty(ask[1]) && nfull(say[1]) -> serve(1) }
	:: atomic { untold[0] && nfull(say[0]) -> tell(0) }
	:: atomic { untold[1] && nfull(say[1]) -> tell(1) }
	:: atomic { up_news[0] -> up_news[0] = false;
#ifndef NOT_ANEW
			untold[0] = claim[0] == HAS
#endif
		}
	:: atomic { up_news[1] -> up_news[1] = false;
#ifndef NOT_ANEW
			untold[1] = claim[1] == HAS
#endif
		}
	:: atomic { guest[0] && claim[0] != IDLE && now >= heard[0] + PATIENCE -> expire(0) }
	:: atomic { guest[1] && claim[1] != IDLE && now >= heard[1] + PATIENCE -> expire(1) }
	:: atomic { orphan && now >= orphan_heard + PATIENCE -> orphan = false; give_on(); m = 0 }
	/* sync_table_begin() */
	:: atomic { FREE && first != NONE -> give_on(); m = 0 }
#ifdef HOME_DIES
	/* Another process is there: all that this one knew is gone. */
	:: atomic { kills == 0 && (claim[0] == HAS || claim[1] == HAS) ->
			kills++;
			forget(0); forget(1);
			guest[0] = 0; guest[1] = 0; over[0] = 0; over[1] = 0;
			last[0] = 0; last[1] = 0; kept[0] = DONE; kept[1] = DONE;
			first = NONE;
			other[0] = true; other[1] = true;
			cut(0); cut(1);
#ifndef HOME_AT_ONCE
			begins = now + PATIENCE;
#endif
#ifdef TOKEN_ANEW
			token = 0
#else
			token = token + 10
#endif
		}
#endif
	od
}

/* ---- What happens to them ---- */

active proctype world()
{
end:	do
	:: atomic { now < TICKS -> now++; look_who_believes() }
#ifdef DRIFT
	/* A clock is slower by an eighth at most. */
	:: atomic { now == 1 && !slow[0] && !slow[1] -> slow[0] = true }
	:: atomic { now == 1 && !slow[0] && !slow[1] -> slow[1] = true }
#endif
#ifdef CUT
	:: atomic { cuts < 1 && (nempty(say[0]) || nempty(ask[0])) -> cuts++; cut(0) }
#endif
#ifdef NODE_DIES
	/* Its program goes on, and the next daemon's knows nothing of it. */
	:: atomic { kills == 0 && BELIEVES(0) ->
			kills++;
			ghost = until[0]; ghost_node = 0;
			asking[0] = false; taken[0] = false; granted[0] = false; leaves[0] = false;
			renewing[0] = false; until[0] = 0; lease[0] = 0; number[0] = 0; life[0] = 1;
			wants[0] = true; holds[0] = 1;
			cut(0);
			/* sync_serve_other() */
			up_news[0] = false; untold[0] = false; last[0] = 0; kept[0] = DONE; over[0] = 0;
#ifndef ORPHAN_AT_ONCE
			if
			:: claim[0] == HAS -> orphan = true; orphan_heard = heard[0]
			:: else
			fi;
#endif
			guest[0] = 0;
			forget(0)
		}
#endif
	/* When nothing more happens */
	:: atomic { timeout ->
			assert(!(claim[0] == HAS && guest[0] == life[0] && !granted[0] && !asking[0]));
			assert(!(claim[1] == HAS && guest[1] == life[1] && !granted[1] && !asking[1]));
			assert(!(FREE && first != NONE));
			break
		}
	od
}
