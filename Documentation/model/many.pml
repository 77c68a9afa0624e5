/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * A request with many completions that another node carries out: it tells of each by a message, and
 * of the end by the last one. The connection is cut, with all that is under way on it, and there is
 * another one; each side sees that when it likes, but before it says or hears anything over it.
 * Questions that have no answer are asked again, by their numbers, and carried out once.
 *
 * Over another connection nothing is told before the one who asked has said how many messages he
 * has heard.
 *
 * What has to hold: he hears of each completion once, in order, and then of the end; nobody waits
 * for ever; and who has heard of the end is told nothing over any later connection.
 *
 * check: pass	as it is
 * check: fail	all of it is told again, as nobody says what he has heard : -DTELL_AGAIN
 * check: fail	what was said over one connection is taken for said over the next : -DSAY_ONCE
 * check: fail	it is not said of one whose answer was lost : -DNOT_UNANSWERED
 * check: fail	what was heard already is taken for new : -DTAKE_AGAIN
 * check: fail	the end does not wait for what came before it : -DEND_FIRST
 * check: fail	what is under way is counted as heard : -DCOUNT_TOLD
 */
#define N	2			/* completions before the end */
#define CUTS	3
#define NUMBERS	10			/* questions: 0 is the request, others say what was heard */

#define ANSWER	1
#define MORE	2
#define END	3

byte connection, cuts;
chan asked = [4] of { byte, byte };	/* number, messages heard */
chan said = [8] of { byte, byte };	/* what, number */

/* ---- Who serves: lib/gate/gate_serve.c ---- */

byte serves_over;			/* the connection that it has seen */
bool taken[NUMBERS];			/* questions */
bool has, ended, silent, untold;
byte came, told;

/* ---- Who asks: lib/gate/gate_ask.c ---- */

byte asks_over;
bool answered, over;			/* that it was taken; its end was heard */
bool hearing, unsaid;			/* what was heard is being said; is to be */
byte number, hear_number, hear_says;
byte heard;
byte ended_over;			/* the connection over which that was */

inline say_heard()
{
	if
	:: unsaid && !hearing && answered && !over ->
		unsaid = false;
		hearing = true;
		number++;
		assert(number < NUMBERS);
		hear_number = number;
		hear_says = heard;
		asked ! hear_number, hear_says
	:: else
	fi
}

active proctype asks()
{
	byte what, n;

	atomic { asked ! 0, 0 }
end:
	do
	/* gate_ask_up(): what has no answer is asked again */
	:: atomic { asks_over != connection ->
		asks_over = connection;
#ifndef NOT_UNANSWERED
		unsaid = !over;
#else
		unsaid = !over && answered;
#endif
#ifdef SAY_ONCE
		unsaid = unsaid && !hearing;
#endif
		if
		:: !answered && !over -> asked ! 0, 0
		:: else
		fi;
		if
		:: hearing && !over -> asked ! hear_number, hear_says
		:: else
		fi;
		say_heard() }
	:: atomic { asks_over == connection && nempty(said) ->
		said ? what, n;
		if
		:: what == ANSWER && n == 0 ->
			answered = true;
			say_heard()
		:: what == ANSWER && n && n == hear_number && hearing ->
			hearing = false;
			say_heard()
		:: what == ANSWER && n && !(n == hear_number && hearing)
		/* more() */
		:: what == MORE ->
			assert(!over || ended_over == connection);
			answered = true;
			if
#ifndef TAKE_AGAIN
			:: n < heard
			:: n >= heard ->
#else
			:: true ->
#endif
				assert(n == heard);
				heard++
			fi;
			say_heard()
		/* done() */
		:: what == END ->
			assert(!over || ended_over == connection);
			assert(n == heard && n == came);
			answered = true;
			over = true;
			ended_over = connection
		fi;
		what = 0; n = 0 }
	od
}

/* What it has come to, in the engine */
active proctype engine()
{
	do
	:: atomic { has && came < N && !ended -> came++; untold = !silent }
	:: atomic { has && !ended -> ended = true; untold = !silent; break }
	od
}

active proctype serves()
{
	byte q, n;

end:
	do
	/* gate_serve_up() */
	:: atomic { serves_over != connection ->
		serves_over = connection;
#ifdef TELL_AGAIN
		told = 0;
		untold = has && (came || ended)
#else
		silent = has;
		untold = false
#endif
		}
	/* A question: carried out the first time, answered each time */
	:: atomic { serves_over == connection && nempty(asked) && nfull(said) ->
		asked ? q, n;
		if
		:: !taken[q] && q == 0 -> has = true
		/* heard() */
		:: !taken[q] && q && silent ->
			assert(n <= came);
#ifndef COUNT_TOLD
			told = n;
#endif
			silent = false;
			untold = told < came || ended
		:: !taken[q] && q && !silent
		:: taken[q]
		fi;
		taken[q] = true;
		said ! ANSWER, q;
		q = 0; n = 0 }
	/* tell_one() */
	:: atomic { serves_over == connection && untold && nfull(said) ->
		if
#ifdef END_FIRST
		:: told < came && !ended ->
#else
		:: told < came ->
#endif
			said ! MORE, told;
			told++;
			untold = told < came || ended
		:: else ->
			if
			:: ended -> said ! END, told
			:: else
			fi;
			untold = false
		fi }
	od
}

active proctype fate()
{
	byte x, y;

end:
	do
	:: atomic { cuts < CUTS && asks_over == connection ->
		cuts++;
		connection++;
		do
		:: asked ? x, y
		:: empty(asked) -> break
		od;
		do
		:: said ? x, y
		:: empty(said) -> break
		od;
		x = 0; y = 0 }
	od
}

/* Nobody can do anything any more, and no connection is cut. */
active proctype at_the_end()
{
	timeout;
	assert(over && heard == came)
}
