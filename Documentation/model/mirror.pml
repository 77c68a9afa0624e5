/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * A task of a queue with a mirror: its home, the daemon that has submitted it, and a third node that
 * has a copy. kept.pml has what the daemon does; here who has copies does it, too, and both submit
 * the task again when the home is another process. Home and daemon may die at any step, together as
 * well. What the third node has asked for may be lost on its way with the home that sends it.
 *
 * What has to hold: a task of which the program was told that it is taken is done at least once; a
 * process of the home takes its result once; and in the end nobody has it.
 *
 * check: pass	as it is
 * check: pass	one more death of the home : -DMORE
 * check: fail	the program is told before there is a copy : -DANSWER_FIRST
 * check: fail	the program is told when the copy was sent : -DANSWER_SENT
 * check: fail	the copy is with the node that submits : -DCOPY_THERE
 * check: fail	who has a copy does not submit it again : -DNOT_AGAIN
 * check: fail	both submit it, and the home takes both : -DNO_ORIGIN
 * check: fail	what has ended is no origin any more : -DFORGET_ENDED
 * check: fail	what comes again is its own origin : -DORIGIN_ANEW -DMORE
 */
#ifdef MORE
#define DEATHS	3			/* of the home */
#else
#define DEATHS	2
#endif
#define IDS	5			/* numbers of a process, from 1 on */
#define COPIES	4

#define READY	1
#define DONE	2

#define NAME(p, n)	((p) * 8 + (n))	/* an origin */

/* ---- The home: lib/queue/mirror.c, origin.c ---- */

byte process = 1;
byte last;
byte state_at[IDS], name_at[IDS];
bool sent[IDS];				/* to who has copies, or it is his */
byte asked;				/* number of the one whose program waits; 0: none */

chan copies = [1] of { byte, byte, byte };	/* process, number, origin */

/* ---- Who has submitted it: keep.c, keep_again.c; he dies with his node ---- */

bool lives = true;
bool kept;
byte where, id, name;

/* ---- Who has copies: keep_mirror.c, keep_again.c ---- */

byte in[COPIES], number[COPIES], origin[COPIES]; /* in: process; 0: there is none */

/* ---- What happened ---- */

bool told;				/* the program was, that it is taken */
bool done;
byte taken;				/* results by this process */
byte deaths;

inline put(as)
{
	last++;
	assert(last < IDS);
	state_at[last] = READY;
	name_at[last] = as
}

/* AGAIN: the number that it has, or had, in n */
inline again(as)
{
	n = 1;
	do
	:: n > last -> break
#ifdef FORGET_ENDED
	:: n <= last && name_at[n] == as && state_at[n] == READY -> break
	:: n <= last && !(name_at[n] == as && state_at[n] == READY) -> n++
#else
	:: n <= last && name_at[n] == as -> break
	:: n <= last && name_at[n] != as -> n++
#endif
	od;
	if
#ifndef NO_ORIGIN
	:: n <= last
#endif
	:: else -> put(as); n = last
	fi;
#ifdef ORIGIN_ANEW
	name_at[n] = NAME(process, n)
#endif
}

/* The program, by its daemon: it is not told before the home has said that there is a copy. */
active proctype program()
{
end:
	atomic {
		!last && process == 1 && lives ->
		put(NAME(1, 1));
		asked = 1
	}
}

#define COPIED(n)	(in[0] == process && number[0] == n || in[1] == process && \
			 number[1] == n || in[2] == process && number[2] == n || \
			 in[3] == process && number[3] == n)

/* SUBMIT is answered, and settle() */
active proctype answers()
{
end:
	atomic {
#if defined(ANSWER_FIRST)
		asked && lives ->
#elif defined(ANSWER_SENT)
		asked && lives && (sent[1] || state_at[1] == DONE) ->
#else
		asked && lives && (COPIED(1) || state_at[1] == DONE) ->
#endif
		asked = 0;
		told = true;
		kept = true;
		where = 1;
		id = 1;
		name = NAME(1, 1)
	}
}

active proctype submitter()
{
	byte n;

end:
	do
	/* keep_again(): it takes no copy back */
	:: atomic { lives && kept && where < process ->
		again(name);
		where = process;
		id = n;
		n = 0 }
	/* keep_check(), take_ends() */
	:: atomic { lives && kept && where == process && state_at[id] == DONE -> kept = false }
	od
}

/* COPIES: what is READY and was not sent */
active proctype home()
{
	byte n, p;

end:
	do
	:: atomic { empty(copies) && ((state_at[1] == READY && !sent[1]) ||
	   (state_at[2] == READY && !sent[2]) || (state_at[3] == READY && !sent[3])) ->
		n = 1;
		do
		:: state_at[n] == READY && !sent[n] -> break
		:: else -> n++
		od;
		sent[n] = true;
		copies ! process, n, name_at[n];
		n = 0 }
	/* A worker claims, does and completes: kept.pml has what may befall it. */
	:: atomic { state_at[1] == READY -> n = 1; p = process; goto works }
	:: atomic { state_at[2] == READY -> n = 2; p = process; goto works }
	:: atomic { state_at[3] == READY -> n = 3; p = process; goto works }
	od;
works:
	atomic {
		done = true;
		if
		:: p == process ->
			taken++;
			assert(taken == 1);
			state_at[n] = DONE
		:: else
		fi;
		n = 0; p = 0;
		goto end
	}
}

inline drop(k)
{
	in[k] = 0;
	number[k] = 0;
	origin[k] = 0
}

/* Copies of what is the same in this process are one. */
inline one_of(k)
{
	j = 0;
	do
	:: j == COPIES -> break
	:: j < COPIES && j != k && in[j] == in[k] && number[j] == number[k] -> drop(j); j++
	:: j < COPIES && !(j != k && in[j] == in[k] && number[j] == number[k]) -> j++
	od;
	j = 0
}

#define AGAIN(i)	in[i] && in[i] < process -> k = i; goto submits
#define ENDED(i)	in[i] == process && state_at[number[i]] == DONE -> drop(i)

active proctype mirror()
{
	byte j, k, n, p, o;

end:
	do
	:: atomic { copies ? p, n, o ->
		k = 0;
		do
		:: !in[k] -> break
		:: else -> k++
		od;
		assert(k < COPIES);
		in[k] = p;
		number[k] = n;
		origin[k] = o;
		one_of(k);
		k = 0; n = 0; p = 0; o = 0 }
#ifndef NOT_AGAIN
	:: atomic { AGAIN(0) }
	:: atomic { AGAIN(1) }
	:: atomic { AGAIN(2) }
	:: atomic { AGAIN(3) }
#endif
	:: atomic { ENDED(0) }
	:: atomic { ENDED(1) }
	:: atomic { ENDED(2) }
	:: atomic { ENDED(3) }
	od;
submits:
	atomic {
		again(origin[k]);
		in[k] = process;
		number[k] = n;
#ifdef ORIGIN_ANEW
		origin[k] = name_at[n];
#endif
		sent[n] = true;
		one_of(k);
		k = 0; n = 0;
		goto end
	}
}

inline home_dies()
{
	deaths++;
	process++;
	last = 0;
	taken = 0;
	asked = 0;
	n = 0;
	do
	:: n == IDS -> break
	:: n < IDS -> state_at[n] = 0; name_at[n] = 0; sent[n] = false; n++
	od;
	/* what it had sent came, or did not */
	if
	:: nempty(copies) -> copies ? p, n, o
	:: true
	fi;
	n = 0; p = 0; o = 0
}

inline submitter_dies()
{
	lives = false;
	kept = false;
	where = 0;
	id = 0;
	name = 0;
	asked = 0;
#ifdef COPY_THERE
	drop(0);
	drop(1);
	drop(2);
	drop(3)
#endif
}

active proctype fate()
{
	byte n, p, o;

end:
	do
	:: atomic { deaths < DEATHS -> home_dies() }
	:: atomic { lives -> submitter_dies() }
	:: atomic { deaths < DEATHS && lives -> home_dies(); submitter_dies() }
	od
}

/* Nobody can do anything any more, and no more befalls them. */
active proctype at_the_end()
{
	timeout;
	assert(!told || done);
	assert(!kept && !in[0] && !in[1] && !in[2] && !in[3])
}
