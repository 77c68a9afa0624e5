/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Requests: both directions of a session, and who sleeps, with the store buffers of a machine
 * that lets a load pass an earlier store. One client that submits and takes completions, the
 * engine with one seat, and a service whose thread ends requests later. Batches are of one.
 *
 * Each word has one writer, which knows what it wrote; others load it from memory. A store goes
 * to its CPU's buffer and reaches memory later, in order; a full fence waits until the buffer is
 * empty. The service's list is under a lock.
 *
 * What has to hold: no slot is written before it was read, each request is answered once, or as
 * often as it asked for, and nobody sleeps for good while there is something to do, which makes an
 * invalid end state.
 *
 * check: pass	what the engine does itself
 * check: pass	what a service ends later : -DLATE
 * check: pass	several published at once, either way : -DRUNS
 * check: pass	two completions of each, whose places are reserved : -DLATE -DMULTI
 * check: fail	a request's place returned before it was copied : -DEARLY_CREDIT
 * check: fail	no place reserved for what is under way : -DLATE -DNO_RESERVE
 * check: fail	only one for each that has two : -DLATE -DMULTI -DRESERVE_ONE
 * check: fail	the client does not look at credits : -DNO_REQUEST_CREDIT
 * check: fail	the engine does not look at credits : -DNO_COMPLETION_CREDIT
 * check: fail	no fence in rgate_session_submit() : -DNO_SUBMIT_FENCE
 * check: fail	no fence where completions are given back : -DNO_CREDIT_FENCE
 * check: fail	no wakeup there : -DNO_CREDIT_KICK
 * check: fail	no fence in seat_park() : -DNO_PARK_FENCE
 * check: fail	no look after it : -DNO_PARK_LOOK
 * check: fail	a seat without places waits for requests : -DNEED_REQUEST_ONLY
 * check: fail	no fence in rgate_session_arm() : -DNO_ARM_FENCE
 * check: fail	no look after it : -DNO_ARM_LOOK
 * check: fail	no fence in flush() : -DNO_FLUSH_FENCE
 * check: fail	no fence in engine_wake() : -DLATE -DNO_WAKE_FENCE
 * check: fail	no fence before the engine sleeps : -DLATE -DNO_ASLEEP_FENCE
 * check: fail	no look at what has ended then : -DLATE -DNO_ENDED_LOOK
 * check: fail	no place for each of a run : -DRUNS -DNO_RUN_PLACE
 * check: fail	a want is woken for again and never anew : -DWOKEN_EVER
 */
#define R	2			/* places for requests */
#ifdef MULTI
#define SHOTS	2			/* completions of a request */
#else
#define SHOTS	1
#endif
#ifdef MULTI
#define N	2			/* requests in all */
#define C	3			/* so that the second one waits for a part of its places */
#elif defined(LATE)
#define N	3
#define C	2
#else
#define N	4
#ifdef RUNS
#define C	2
#else
#define C	1			/* so that the engine waits for places, too */
#endif
#endif
#define NEED_REQUEST	1
#define NEED_CREDIT	2

/* in memory */
byte m_req, m_comp_credit, m_want;		/* of the client */
byte m_req_credit, m_comp, m_need, m_asleep;	/* of the engine */
byte m_ended;					/* of the service */

mtype = { REQ, COMP_CREDIT, WANT, REQ_CREDIT, COMP, NEED, ASLEEP };
chan client_buf = [3] of { mtype, byte };
chan engine_buf = [3] of { mtype, byte };
chan service_buf = [2] of { byte };

/* what happened, for assertions */
byte submitted, copied, posted, taken;
byte with_service;			/* requests that it has begun */

bool kick, poke, wake;			/* the client's eventfd, the engine's, and wait_fd */
bool over;				/* the client has all that it asked for */

active proctype memory()
{
	mtype w;
	byte v;

end:
	do
	:: atomic { client_buf ? w, v ->
		if
		:: w == REQ -> m_req = v
		:: w == COMP_CREDIT -> m_comp_credit = v
		:: w == WANT -> m_want = v
		fi }
	:: atomic { engine_buf ? w, v ->
		if
		:: w == REQ_CREDIT -> m_req_credit = v
		:: w == COMP -> m_comp = v
		:: w == NEED -> m_need = v
		:: w == ASLEEP -> m_asleep = v
		fi }
	:: service_buf ? m_ended
	od
}

#define CLIENT_FENCE	empty(client_buf)
#define ENGINE_FENCE	empty(engine_buf)
#define SERVICE_FENCE	empty(service_buf)

/* rgate_session_submit(), _poll(), _wait() */
active proctype client()
{
	do
	:: taken == N * SHOTS -> break
#ifdef NO_REQUEST_CREDIT
	:: submitted < N ->
#else
	:: submitted < N && submitted - m_req_credit < R ->
#endif
		/* this writes the slot */
		submitted++;
#ifdef RUNS
		/* rgate_session_submit_many(): this one's lap comes before that of the first */
		if
		:: submitted < N && submitted - m_req_credit < R -> submitted++
		:: true
		fi;
#endif
		assert(submitted - copied <= R);
		client_buf ! REQ, submitted;
#ifndef NO_SUBMIT_FENCE
		CLIENT_FENCE;
#endif
		if
		:: m_need == NEED_REQUEST -> kick = true
		:: else
		fi
	:: m_comp > taken ->
		taken++;
		client_buf ! COMP_CREDIT, taken;
#ifndef NO_CREDIT_FENCE
		CLIENT_FENCE;
#endif
		if
#ifndef NO_CREDIT_KICK
		:: m_need == NEED_CREDIT -> kick = true
#endif
		:: else
		fi
	:: taken < submitted * SHOTS && m_comp == taken ->
		client_buf ! WANT, taken + 1;
#ifndef NO_ARM_FENCE
		CLIENT_FENCE;
#endif
		if
#ifndef NO_ARM_LOOK
		:: m_comp > taken
#endif
		:: else ->
			/* the system call; an edge that was left ends it at once */
			CLIENT_FENCE;
			wake -> wake = false
		fi;
		client_buf ! WANT, 0
	od;
	over = true
}

#ifdef LATE
/* rgate_req_more(), rgate_req_end() */
active proctype service()
{
	byte ended;

end:
	do
	:: with_service * SHOTS > ended ->
		ended++;
		service_buf ! ended;
#ifndef NO_WAKE_FENCE
		SERVICE_FENCE;
#endif
		if
		:: m_asleep -> poke = true
		:: else
		fi
	od
}
#endif

/* seat_post(), flush() */
inline post()
{
	posted++;
	assert(posted - taken <= C);
	engine_buf ! COMP, posted;
#ifndef NO_FLUSH_FENCE
	ENGINE_FENCE;
#endif
	want = m_want;
	if
	:: want != 0 && want <= posted && want != woken ->
#ifdef WOKEN_EVER
		woken = want + 1;
#else
		woken = want;
#endif
		wake = true
	:: else
	fi;
	want = 0
}

#ifdef NO_COMPLETION_CREDIT
#define PLACE	true
#elif defined(NO_RESERVE)
#define PLACE	(posted - m_comp_credit < C)
#elif defined(RESERVE_ONE)
#define PLACE	(posted - m_comp_credit + with_service - reaped / SHOTS < C)
#else
#define PLACE	(posted - m_comp_credit + with_service * SHOTS - reaped + SHOTS <= C)
#endif

/* look(), accept_one(): the slot is read where `copied` grows */
inline accept()
{
#ifdef EARLY_CREDIT
	engine_buf ! REQ_CREDIT, copied + 1;
	copied++;
#else
	copied++;
	engine_buf ! REQ_CREDIT, copied;
#endif
#ifdef LATE
	with_service++
#else
#ifdef RUNS
	/* run_add(): another one, which is published with the first */
	if
#ifdef NO_RUN_PLACE
	:: m_req > copied ->
#else
	:: m_req > copied && posted + 1 - m_comp_credit < C ->
#endif
		copied++;
		engine_buf ! REQ_CREDIT, copied;
		posted++
	:: true
	fi;
#endif
	post()
#endif
}

/* seat_park(), serve(), sleep_for() */
inline sleep(why, seen)
{
	engine_buf ! NEED, why;
#ifndef NO_PARK_FENCE
	ENGINE_FENCE;
#endif
	if
#ifndef NO_PARK_LOOK
	:: seen
#endif
	:: else ->
		do
		:: m_ended > reaped -> reaped++; post()
		:: m_ended == reaped ->
			engine_buf ! ASLEEP, 1;
#ifndef NO_ASLEEP_FENCE
			ENGINE_FENCE;
#endif
			if
#ifndef NO_ENDED_LOOK
			:: m_ended > reaped
#endif
			:: else ->
				ENGINE_FENCE;
				if
				:: kick
				:: poke
				:: over && empty(client_buf) -> goto done
				fi
			fi;
			engine_buf ! ASLEEP, 0;
			poke = false;
			if
			:: kick -> kick = false; break
			:: else
			fi
		od
	fi;
	engine_buf ! NEED, 0
}

active proctype engine()
{
	byte want, woken, reaped;

	do
	:: m_ended > reaped -> reaped++; post()
	:: m_req > copied && PLACE -> accept()
	:: m_req == copied -> sleep(NEED_REQUEST, m_req > copied)
	:: m_req > copied && !PLACE ->
#ifdef NEED_REQUEST_ONLY
		sleep(NEED_REQUEST, PLACE)
#else
		sleep(NEED_CREDIT, PLACE)
#endif
	od;
done:
	assert(copied == N && posted == N * SHOTS)
}
