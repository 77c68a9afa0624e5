/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * A place of a shard, which two nodes claim by operations on its home's memory, in two generations.
 * Each operation is a step of its own, and a result is written in two. A node may die at any step;
 * its connection may end at any, which is all that the home hears of a death; and the node goes on
 * where it was, with what it had claimed, until it looks. Over a device (FENCED) nothing that was
 * posted to a connection that has ended has any effect; on one machine it has, whenever it comes.
 *
 * What has to hold: the result of each generation is taken once, whole, and is of that generation;
 * who claims a task reads that one; and in the end all were taken, as one node stays alive.
 *
 * check: pass	on one machine, where who was stopped goes on
 * check: pass	over a device : -DFENCED
 * check: fail	the word says done before the result is written : -DDONE_FIRST
 * check: fail	one place for the result, whoever writes it : -DONE_SLOT
 * check: fail	done is written, whatever the word is by now : -DBLIND
 * check: fail	what was claimed is looked for when its node goes, and not again : -DONE_SWEEP
 * check: fail	a claim has its node's name, and no number : -DNO_NUMBER
 * check: fail	who claims is not let in first : -DNO_ASKING
 * check: fail	a claim that was lost is completed over the next connection : -DNO_MINE
 * check: fail	the word says ready before the task is written : -DREADY_FIRST
 */
#define NODES	2
#define TASKS	2
#define CUTS	2

#define EMPTY	0
#define READY	1
#define CLAIMED	2
#define DONE	3
#define TORN	9

/* ---- The home's memory ---- */

byte state, node, number, gen;		/* the word */
byte task = TORN;			/* of which generation it is */
byte result[NODES];			/* by node: of which generation + 1 */
byte asked[NODES];			/* over which connection */
byte answered[NODES];			/* over which one; 0: none */
byte admission[NODES];

/* ---- What the home knows ---- */

byte connection[NODES];			/* number of the present one, from 1 on */
bool in[NODES];
byte in_over[NODES];
bool to_sweep;
byte taken[TASKS];

/* ---- Fate ---- */

bool dead[NODES];
byte cuts;

#ifdef ONE_SLOT
#define SLOT(n)	0
#else
#define SLOT(n)	n
#endif

#ifdef NO_NUMBER
#define LOST	(!in[node])
#else
#define LOST	(!in[node] || admission[node] != number)
#endif

/* rgate_shard_step(): look_at_seat(), sweep(); rgate_shard_submit(), rgate_shard_take() */
active proctype home()
{
	byte v, n;

	connection[0] = 1;
	connection[1] = 1;
end:
	do
	:: state == EMPTY && gen < TASKS ->
#ifdef READY_FIRST
		state = READY;
		task = gen
#else
		task = gen;
		state = READY
#endif
	:: state == DONE ->
		v = result[SLOT(node)];
		assert(v == gen + 1);
		d_step {
			assert(state == DONE);
			taken[gen]++;
			assert(taken[gen] == 1);
			gen++;
			state = EMPTY; node = 0; number = 0; v = 0
		}
	:: d_step { in[0] && in_over[0] != connection[0] ->
		in[0] = false; answered[0] = 0; to_sweep = true }
	:: d_step { in[1] && in_over[1] != connection[1] ->
		in[1] = false; answered[1] = 0; to_sweep = true }
	:: d_step { !in[0] && asked[0] == connection[0] ->
		in[0] = true; in_over[0] = asked[0]; admission[0]++; answered[0] = asked[0] }
	:: d_step { !in[1] && asked[1] == connection[1] ->
		in[1] = true; in_over[1] = asked[1]; admission[1]++; answered[1] = asked[1] }
#ifdef ONE_SWEEP
	:: d_step { to_sweep && !(state == CLAIMED && LOST) -> to_sweep = false }
	:: d_step { to_sweep && state == CLAIMED && LOST -> to_sweep = false;
#else
	:: d_step { state == CLAIMED && LOST ->
#endif
		state = READY; node = 0; number = 0 }
	od
}

#ifdef FENCED
/* An operation of a connection that has ended is not done, and the claim is lost with it. */
#define PLACED	(connection[me] == over)
#else
#define PLACED	true
#endif

#define MINE	(state == CLAIMED && node == me && number == admitted && gen == g)

proctype worker(byte me)
{
	byte over, admitted, g, g_lost, r;
	bool won, lost;

	{
	over = 0;
	/* be_seated() */
ask:
	atomic { over = connection[me]; admitted = 0; asked[me] = over }
end:
	do
	:: d_step { connection[me] != over ->
		over = connection[me]; admitted = 0; asked[me] = over }
#ifdef NO_ASKING
	:: d_step { !admitted -> admitted = admission[me] + 1 }
#else
	:: d_step { !admitted && answered[me] == over -> admitted = admission[me] }
#endif
#ifdef NO_MINE
	/* Another thread of the node, with what was claimed over the last connection */
	:: lost && admitted -> result[SLOT(me)] = TORN; result[SLOT(me)] = g_lost + 1; lost = false
#endif
	/* rgate_shard_claim(): the word that was read, then compare-and-swap and read */
	:: d_step { admitted && state == READY -> g = gen }
		if
		:: d_step { PLACED && state == READY && gen == g ->
			state = CLAIMED; node = me; number = admitted }
			r = task;
			assert(r == g || !PLACED || !MINE);
			won = true
		:: d_step { !PLACED || !(state == READY && gen == g) -> g = 0 }
		fi;
		r = 0;
		if
		:: won -> won = false; goto complete
		:: else
		fi
	od;
complete:
	/* rgate_shard_complete(): a write and a compare-and-swap. Or it is known that it is lost. */
	if
	:: d_step { connection[me] != over -> g_lost = g; lost = true; g = 0 }
		goto ask
	:: true
	fi;
#ifdef DONE_FIRST
	if
	:: d_step { PLACED && MINE -> state = DONE }
	:: else
	fi;
#endif
	if
	:: d_step { PLACED -> result[SLOT(me)] = TORN }
	:: else
	fi;
	if
	:: d_step { PLACED -> result[SLOT(me)] = g + 1 }
	:: else
	fi;
	if
#ifdef BLIND
	:: d_step { PLACED -> state = DONE; node = me; number = admitted }
#else
	:: d_step { PLACED && MINE -> state = DONE }
#endif
	:: else
	fi;
	g = 0;
	goto end
	} unless { dead[me] }
}

active proctype fate()
{
end:
	do
	:: d_step { cuts < CUTS -> cuts++; connection[0]++ }
	:: d_step { cuts < CUTS -> cuts++; connection[1]++ }
	/* The second one may die; its connection then ends. */
	:: d_step { !dead[1] -> dead[1] = true; connection[1]++ }
	od
}

init
{
	connection[0] > 0 && connection[1] > 0;
	atomic { run worker(0); run worker(1) }
	timeout;
	assert(taken[0] == 1 && taken[1] == 1)
}
