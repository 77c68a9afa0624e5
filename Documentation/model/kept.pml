/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Tasks of a queue whose home is another node: the daemon of the node where they were submitted
 * keeps them until the home says that they have ended, and submits them again to the next process
 * of the home. Numbers of tasks begin anew in each process.
 *
 * A program submits, two workers claim, do and complete; the home dies, and there is another one,
 * or nothing is heard of it for too long: then it is asked anew. What a process that is dead has
 * said may still be on its way in the daemon.
 *
 * What has to hold: a task that the program was told is taken is done at least once; a process
 * takes the result of each task once, from the one who has done that task; and the daemon forgets
 * each that was done, none before, so that in the end nothing is kept.
 *
 * check: pass	as it is
 * check: pass	one task, and one more death : -DSINGLE
 * check: fail	forgotten when a worker has it : -DFORGET_CLAIMED
 * check: fail	forgotten when the home has it : -DFORGET_SUBMITTED
 * check: fail	kept when the next request goes, after the program was told : -DKEEP_LATE
 * check: fail	an end is that of a number, in whichever process : -DNUMBER_ALONE
 * check: fail	a task is taken for one of the process that is there now : -DNO_LIFE
 * check: fail	it has no new number when it was submitted again : -DAGAIN_TWICE
 * check: fail	what has ended unheard is not asked for : -DNO_CHECK
 * check: fail	nor what was not known when it was : -DNO_DOUBT
 * check: fail	an end before that of its SUBMIT is not remembered : -DNO_STRAYS
 * check: fail	a home takes results of claims of the one before : -DTAKE_STALE
 */
#ifdef SINGLE
#define T	1
#define DEATHS	3
#else
#define T	2			/* tasks, 1 and 2: their order is kept by the code alone */
#define DEATHS	2
#endif
#define PAUSES	1
#define IDS	5			/* numbers of a process, from 1 on */

#define READY	1
#define CLAIMED	2
#define DONE	3

/* ---- The home: lib/queue/queue.c, queue_ends.c ---- */

byte process = 1;
byte last;				/* number */
byte task_at[IDS], state_at[IDS];
byte deaths, pauses;

/* What the hub has, what of it the engine has yet to take, and what the home says of ends */
chan acks = [T] of { byte, byte, byte };	/* process, task, number */
chan settles = [T] of { byte, byte, byte };
chan ends = [4] of { byte, byte };		/* process, number */

/* ---- The daemon: lib/queue/keep.c, keep_talk.c, keep_again.c, keep_ends.c ---- */

bool kept[T + 1];
byte where[T + 1], id[T + 1];		/* process and number */
byte under_way;				/* SUBMITs */
byte looked;				/* the process that is followed; 0: none */
bool unsure;
byte doubts, begun[T + 1];		/* times that it was asked what has ended; when a SUBMIT began */
byte stray_in[T], stray_id[T], strays;

/* ---- What happened ---- */

bool told[T + 1];			/* the program was, that it is taken */
byte done[T + 1];			/* times */
byte taken[T + 1];			/* results by this process */

inline put(t)
{
	last++;
	assert(last < IDS);
	task_at[last] = t;
	state_at[last] = READY
}

inline forget(t)
{
	assert(done[t]);
	kept[t] = false;
	where[t] = 0;
	id[t] = 0
}

/* SUBMIT: the home takes it and says so; who dies before that was heard has not */
active proctype program()
{
	byte t;

	t = 1;
	do
	:: t > T -> break
	:: else ->
		atomic {
			under_way++;
			begun[t] = doubts;
			put(t);
			acks ! process, t, last
		}
		/* It goes on without waiting for the end. */
		t++
	od
}

/* keep_over(), in the hub's thread: the program is told */
active proctype hub()
{
	byte p, t, n;

end:
	do
	:: atomic { acks ? p, t, n -> told[t] = true; settles ! p, t, n }
	od
}

inline find(p, n)
{
	t = 1;
	do
	:: t > T -> break
#ifdef NUMBER_ALONE
	:: t <= T && kept[t] && id[t] == n -> break
	:: t <= T && !(kept[t] && id[t] == n) -> t++
#else
	:: t <= T && kept[t] && where[t] == p && id[t] == n -> break
	:: t <= T && !(kept[t] && where[t] == p && id[t] == n) -> t++
#endif
	od
}

inline take_stray(p, n)
{
	s = 0;
	do
	:: s == strays -> break
	:: s < strays && stray_in[s] == p && stray_id[s] == n -> break
	:: s < strays && !(stray_in[s] == p && stray_id[s] == n) -> s++
	od
}

/* The oldest that the process which is followed does not have */
inline find_behind()
{
	t = 1;
	do
	:: t > T -> break
	:: t <= T && kept[t] && where[t] < looked -> break
	:: t <= T && !(kept[t] && where[t] < looked) -> t++
	od
}

#define BEHIND(t)	(kept[t] && where[t] < looked)
#if T == 1
#define ANY_BEHIND	BEHIND(1)
#else
#define ANY_BEHIND	(BEHIND(1) || BEHIND(2))
#endif

/* The engine's thread */
active proctype keeper()
{
	byte p, t, n, s;

end:
	do
	/* settle() */
#ifdef KEEP_LATE
	:: atomic { nempty(settles) && looked == process -> settles ? p, t, n;
#else
	:: atomic { settles ? p, t, n ->
#endif
		take_stray(p, n);
		if
		:: s < strays ->
			strays--;
			stray_in[s] = stray_in[strays];
			stray_id[s] = stray_id[strays];
			stray_in[strays] = 0;
			stray_id[strays] = 0
		:: else ->
#ifndef FORGET_SUBMITTED
			kept[t] = true;
#endif
#ifdef NO_LIFE
			where[t] = process;
#else
			where[t] = p;
#endif
			id[t] = n
		fi;
		under_way--;
		if
#ifndef NO_DOUBT
		:: begun[t] != doubts -> unsure = true
#endif
		:: else
		fi;
		if
		:: !under_way -> strays = 0; stray_in[0] = 0; stray_id[0] = 0
		:: else
		fi;
		p = 0; t = 0; n = 0; s = 0 }
	/* looked() */
	:: atomic { !looked && (kept[1] || kept[T]) && empty(ends) ->
		looked = process;
		doubts++;
		unsure = true }
	/* keep_lost() */
	:: atomic { looked && looked != process -> looked = 0 }
	/* keep_again(), and keep_submitted(): a home that dies between them has taken nothing that stays */
	:: atomic { looked == process && ANY_BEHIND ->
		find_behind();
		put(t);
#ifndef AGAIN_TWICE
		where[t] = process;
		id[t] = last;
#endif
		t = 0 }
	/* keep_check() */
	:: atomic { looked == process && unsure && !ANY_BEHIND ->
#ifndef NO_CHECK
		t = 1;
		do
		:: t > T -> break
		:: t <= T ->
			if
			:: kept[t] && where[t] == looked && state_at[id[t]] == DONE -> forget(t)
			:: else
			fi;
			t++
		od;
#endif
		unsure = false;
		t = 0 }
	/* take_ends() */
	:: atomic { ends ? p, n ->
		find(p, n);
		if
		:: t <= T -> forget(t)
#ifndef NO_STRAYS
		:: t > T && under_way && strays < T ->
			stray_in[strays] = p;
			stray_id[strays] = n;
			strays++
		:: t > T && !(under_way && strays < T)
#else
		:: t > T
#endif
		fi;
		p = 0; t = 0; n = 0 }
	od
}

inline tell_end(n)
{
	if
	:: looked == process -> ends ! process, n
	:: else				/* CHECK tells */
	fi
}

inline claim(which)
{
	n = which;
	state_at[n] = CLAIMED;
	p = process;
	t = task_at[n];
#ifdef FORGET_CLAIMED
	tell_end(n);
#endif
	goto has
}

/* What is said by a claim of a process that is no more is refused. */
active [2] proctype worker()
{
	byte p, n, t;

end:
	do
	:: atomic { state_at[1] == READY -> claim(1) }
	:: atomic { state_at[2] == READY -> claim(2) }
	:: atomic { state_at[3] == READY -> claim(3) }
	:: atomic { state_at[4] == READY -> claim(4) }
	od;
has:
	if
	:: done[t] < 4 -> done[t]++
	:: else
	fi;
	atomic {
		if
#ifdef TAKE_STALE
		:: state_at[n] == CLAIMED ->
#else
		:: p == process && state_at[n] == CLAIMED ->
#endif
			assert(task_at[n] == t);
			taken[t]++;
			assert(taken[t] == 1);
			state_at[n] = DONE;
			tell_end(n)
		:: else
		fi;
		p = 0; n = 0; t = 0
	}
	goto end
}

/* Of the connection: what was under way is lost; what the engine has is its own. */
inline connection_lost()
{
	do
	:: acks ? p, t, n -> under_way--
	:: empty(acks) -> break
	od;
	if
	:: !under_way -> strays = 0
	:: else
	fi;
	looked = 0;
	/* what FOLLOW was told may have come before */
	if
	:: true
	:: true ->
		do
		:: ends ? p, n
		:: empty(ends) -> break
		od
	fi;
	p = 0; t = 0; n = 0
}

active proctype fate()
{
	byte p, t, n;

end:
	do
	:: atomic { deaths < DEATHS ->
		deaths++;
		process++;
		last = 0;
		n = 1;
		do
		:: n == IDS -> break
		:: n < IDS -> task_at[n] = 0; state_at[n] = 0; n++
		od;
		taken[1] = 0;
		taken[T] = 0;
		connection_lost() }
	:: atomic { pauses < PAUSES -> pauses++; connection_lost() }
	od
}

#define LEFT_OUT(t)	(told[t] && !done[t])

/* Nobody can do anything any more, and no more befalls the home. */
active proctype at_the_end()
{
	timeout;
	assert(!LEFT_OUT(1) && !LEFT_OUT(T));
	assert(!kept[1] && !kept[T])
}
