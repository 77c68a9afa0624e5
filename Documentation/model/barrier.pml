/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * A barrier between nodes: a home, two members that meet twice, one of which may die at any
 * step, and connections that may be cut, with all that is under way. A question is answered at
 * once, that the member waits or is through; without an answer it is asked again with its number.
 * What the home has to tell is kept with the member until it is sent, and is to be sent again
 * over each new connection.
 *
 * What has to hold: nobody goes through before all have arrived; nobody waits for ever, which
 * makes an invalid end state; and a barrier is broken by a death alone, which names who died.
 *
 * check: pass	members that arrive, die and are cut off
 * check: fail	what is asked again counts again : -DTWICE
 * check: fail	news are told over one connection only : -DONCE
 * check: fail	what was not answered is not asked again : -DNOT_AGAIN
 * check: fail	a death breaks nothing : -DNO_BREAK
 * check: fail	who died counts as there : -DDEAD_COUNTS
 * check: fail	only who waits is told that it is broken : -DLATE_WAITS
 * check: fail	news do not say which meeting they are of : -DNO_NUMBER
 */
#define M	2
#define MEETINGS	2

mtype = { WAITS, THROUGH, BROKEN };

/* of a member: the last meeting that it has begun to arrive at */
byte arrived[M];
bool dead[M];
bool again[M];				/* its connection is another one */
/* the home */
byte number[M];				/* of the last question */
bool waits[M], buried[M];
bool to_tell[M], has_news[M];
mtype news[M];
byte about[M], present, generation, missing;
bool broken;
byte deaths, cuts;

chan question[M] = [2] of { byte };	/* one that is asked again, and the next */
chan answer[M] = [3] of { mtype, byte, byte };	/* what, of which meeting, who is missing */

inline set_news(m, what)
{
	waits[m] = false;
	news[m] = what;
	about[m] = number[m];
	has_news[m] = true;
	to_tell[m] = true
}

inline tell_all(what)
{
	j = 0;
	do
	:: j < M && waits[j] -> set_news(j, what); j++
	:: j < M && !waits[j] -> j++
	:: j == M -> break
	od;
	j = 0
}

inline count(m)
{
	if
	:: broken ->
#ifdef LATE_WAITS
		waits[m] = true
#else
		set_news(m, BROKEN)
#endif
	:: !broken ->
		waits[m] = true;
		present++;
		if
		:: present >= M ->
			present = 0;
			generation++;
			tell_all(THROUGH)
		:: else
		fi
	fi
}

inline ask()
{
	if
	:: nfull(question[m]) -> question[m] ! meeting
	:: full(question[m])
	fi
}

proctype member(byte m)
{
	mtype what;
	byte meeting, which, who;
	bool counted;			/* the home has said that it waits */

	do
	:: meeting == MEETINGS -> break
	:: meeting < MEETINGS ->
		atomic {
			meeting++;
			arrived[m] = meeting;
			counted = false;
			ask()
		}
		do
		:: atomic { answer[m] ? what, which, who ->
			if
#ifdef NO_NUMBER
			:: true ->
#else
			:: which == meeting ->
#endif
				if
				:: what == WAITS -> counted = true
				:: what == THROUGH ->
					assert(arrived[0] >= meeting && arrived[1] >= meeting);
					break
				:: what == BROKEN ->
					assert(who < M && dead[who]);
					goto out
				fi
#ifndef NO_NUMBER
			:: which != meeting
#endif
			fi
		   }
		:: atomic { again[m] ->
			again[m] = false;
#ifndef NOT_AGAIN
			if
			:: !counted -> ask()
			:: counted
			fi
#endif
		   }
		:: atomic { deaths < 1 -> deaths++; dead[m] = true; goto out }
		od
	od;
out:
	skip
}

inline say_waits(m)
{
	if
	:: waits[m] && nfull(answer[m]) -> answer[m] ! WAITS, n, 0
	:: else
	fi
}

proctype home()
{
	byte m, n, j;

end:	do
	:: atomic {
		if
		:: question[0] ? n -> m = 0
		:: question[1] ? n -> m = 1
		fi;
		if
#ifndef TWICE
		:: n == number[m] ->
			to_tell[m] = has_news[m];
			say_waits(m)
		:: n != number[m] && !buried[m] ->
#else
		:: !buried[m] ->
#endif
			number[m] = n;
			has_news[m] = false;
			to_tell[m] = false;
			count(m);
			say_waits(m)
		:: buried[m]
		fi;
		m = 0;
		n = 0
	   }
	:: atomic { to_tell[0] && nfull(answer[0]) -> to_tell[0] = false;
		answer[0] ! news[0], about[0], missing }
	:: atomic { to_tell[1] && nfull(answer[1]) -> to_tell[1] = false;
		answer[1] ! news[1], about[1], missing }
	/* A death is seen when what the member had asked was taken, or never will be. */
	:: atomic {
		if
		:: dead[0] && !buried[0] -> m = 0
		:: dead[1] && !buried[1] -> m = 1
		fi;
		buried[m] = true;
#ifdef DEAD_COUNTS
		if
		:: !waits[m] -> count(m)
		:: waits[m]
		fi;
#else
#ifndef NO_BREAK
		broken = true;
		missing = m;
		waits[m] = false;
		tell_all(BROKEN);
#endif
#endif
		m = 0
	   }
	od
}

proctype wire()
{
	byte m;

	do
	:: atomic { cuts < 2 ->
		cuts++;
		if
		:: m = 0
		:: m = 1
		fi;
		do
		:: question[m] ? _
		:: answer[m] ? _, _, _
		:: empty(question[m]) && empty(answer[m]) -> break
		od;
		again[m] = true;
#ifndef ONCE
		to_tell[m] = has_news[m];
#endif
		m = 0
	   }
	:: true -> break
	od
}

init
{
	atomic {
		run member(0);
		run member(1);
		run home();
		run wire()
	}
}
