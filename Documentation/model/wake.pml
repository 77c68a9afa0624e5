/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Sleeping and waking: the wait word against publishing, with the store buffers of
 * a machine that lets a load pass an earlier store (x86 does; what weaker ones do
 * more is in order.pml). One producer and one handle; handles do not meet.
 *
 * A store goes to its CPU's buffer and reaches memory later, in order; a full
 * fence waits until the buffer is empty. So do system calls and locks that the
 * other side takes after them.
 *
 * What has to hold: nobody sleeps while there is something to take, or after the
 * end of the ring. Who is asleep for good makes an invalid end state.
 *
 * check: pass	memfd ring: rgate_producer_flush() once in a while
 * check: pass	memfd ring, closed at its end : -DCLOSE
 * check: pass	module, consumer in poll(2) : -DMODULE
 * check: pass	module, resized at its end : -DMODULE -DCLOSE
 * check: pass	module, consumer in epoll_wait(2), edge-triggered : -DMODULE -DEPOLL
 * check: pass	likewise, resized at its end : -DMODULE -DEPOLL -DCLOSE
 * check: pass	module without its fence: poll(2) itself looks at head, under the lock : -DMODULE -DNO_PRODUCER_FENCE
 * check: fail	but epoll_wait(2) does not : -DMODULE -DEPOLL -DNO_PRODUCER_FENCE
 * check: fail	a late wakeup that is put off for good : -DMODULE -DNO_WORKER
 * check: fail	likewise for who sleeps in epoll_wait(2) at its end : -DMODULE -DEPOLL -DCLOSE -DNO_WORKER
 * check: fail	a worker that is done before it wakes is not told again : -DMODULE -DEPOLL -DPENDING_LONG
 * check: fail	no fence in rgate_producer_flush() : -DNO_PRODUCER_FENCE
 * check: fail	no fence in rgate_consumer_arm() : -DNO_CONSUMER_FENCE
 * check: fail	no look after arming : -DNO_SECOND_LOOK
 * check: fail	no look at state after arming : -DCLOSE -DNO_STATE_LOOK
 * check: fail	no fence between CLOSED and waking : -DCLOSE -DNO_CLOSE_FENCE
 * check: fail	a producer that has nothing more does not flush : -DNO_LAST_FLUSH
 * check: fail	a word once woken for is never looked at again : -DMODULE -DEPOLL -DWOKEN_EARLY
 * check: fail	poll(2) says that it was there only after it looked at head : -DMODULE -DPOLLED_LATE
 * check: fail	a file that waits since before it had a ring is not taken for polled : -DMODULE -DEPOLL -DPOLLED_NEVER
 */
#define BATCH	2
#define FRAMES	4
#define ACTIVE	1
#define ENDED	2			/* CLOSED or RETIRED */

/* memory */
byte m_pub;				/* slots published: seq, and head */
byte m_state = ACTIVE;
byte m_want;

/* the producer's view; its buffer holds what is not in memory yet */
byte pub;
byte state = ACTIVE;

/* the consumer's buffer */
chan buffer = [2] of { byte };

bool idle;				/* the producer has nothing more */
byte woken;				/* last word that a wakeup was given for */

/* memfd ring: the socket. Module: what poll and epoll keep */
bool wakes;
bool locked;				/* ring->lock */
bool queued;				/* waitqueue_active() */
bool polled;				/* rgate_ring.polled, under the lock */
bool event;				/* woken up since the last look; on epoll's list */
bool late;				/* delayed_work_pending(): a worker is to wake */

#define PRODUCER_FENCE	(m_pub == pub && m_state == state)
#define CONSUMER_FENCE	(empty(buffer))

active proctype memory()
{
end:
	do
	:: atomic { m_pub < pub -> m_pub++ }
	:: atomic { m_pub == pub && m_state != state -> m_state = state }
	:: buffer ? m_want
	od
}

#ifdef MODULE
/* rgate_wake_up(): at once, or by the worker where many wait or the share is spent */
inline wake_up()
{
	if
	:: queued -> event = true
	:: !queued
	:: late = true
	fi
}

#ifndef NO_WORKER
/* rgate_wake_late(): wakes who is on the queue then, without the ring's lock */
active proctype worker()
{
end:
	do
	:: late ->
#ifdef PENDING_LONG
		if
		:: queued -> event = true
		:: !queued
		fi;
		late = false
#else
		late = false;
		if
		:: queued -> event = true
		:: !queued
		fi
#endif
	od
}
#endif

/* rgate_writer_commit(), rgate_ring_wake(), rgate_ring_wake_handle() */
inline deliver()
{
	atomic { !locked -> locked = true };
	pub++;
	if
	:: polled ->
#ifndef NO_PRODUCER_FENCE
		PRODUCER_FENCE;
#endif
		want = m_want
	:: else
	fi;
	if
#ifdef WOKEN_EARLY
	:: want != 0 && want != woken -> woken = want; event = queued
#else
	:: want != 0 && pub >= want && want != woken && queued ->
		woken = want;
		if
		:: late
		:: !late -> wake_up()
		fi
#endif
	:: else
	fi;
	want = 0;
	PRODUCER_FENCE;			/* the unlock is a release */
	locked = false
}

/* rgate_ring_switch() */
inline finish()
{
#ifdef CLOSE
	atomic { !locked -> locked = true };
	state = ENDED;
	woken = 0;
	PRODUCER_FENCE;			/* the wait queue has a lock of its own */
	wake_up();
	locked = false
#else
	skip
#endif
}
#else
/* wake_locked(): a mutex and a message, so what was stored before is in memory */
inline wake(all)
{
	PRODUCER_FENCE;
	want = m_want;
	if
	:: want != 0 && (all || (want <= pub && want != woken)) ->
		woken = want;
		wakes = true
	:: else
	fi;
	want = 0
}

inline flush()
{
	if
	:: pub != flushed ->
#ifndef NO_PRODUCER_FENCE
		PRODUCER_FENCE;
#endif
		flushed = pub;
		if
		:: m_want != 0 -> wake(false)
		:: else
		fi
	:: else
	fi
}

/* rgate_producer_publish(), batch_end() */
inline deliver()
{
	pub++;
	if
	:: pub % BATCH == 0 ->
		if			/* without a fence */
		:: m_want != 0 -> wake(false)
		:: else
		fi
	:: else
	fi;
	if
	:: flush()
	:: true
	fi
}

/* rgate_producer_flush(), rgate_producer_fini() */
inline finish()
{
#ifndef NO_LAST_FLUSH
	flush();
#endif
#ifdef CLOSE
	state = ENDED;
#ifdef NO_CLOSE_FENCE
	want = m_want;
	if
	:: want != 0 -> wake(true)
	:: else
	fi
#else
	wake(true)
#endif
#else
	skip
#endif
}
#endif

active proctype producer()
{
	byte want, flushed;

	do
	:: pub < FRAMES -> deliver()
	:: pub == FRAMES -> break
	od;
	finish();
	idle = true;
	flushed = 0
}

#ifdef MODULE
/* rgate_ring_readable() */
inline readable(yes)
{
#ifdef POLLED_LATE
	atomic { !locked -> locked = true };
	yes = state == ENDED || (m_want != 0 && pub >= m_want);
	locked = false;
	atomic { !locked -> locked = true };
	polled = true;
	locked = false
#else
	atomic { !locked -> locked = true };
#ifndef POLLED_NEVER
	polled = true;
#endif
	yes = state == ENDED || (m_want != 0 && pub >= m_want);
	locked = false
#endif
}
#endif

/* To sleep for good is right where all was taken and the ring goes on. */
#define LAWFUL	(idle && pos == FRAMES && m_state == ACTIVE && state == ACTIVE)

/* poll(2): ends with something to look at, or not at all */
inline sleep()
{
#ifndef MODULE
	if
	:: wakes
	:: LAWFUL -> goto done
	fi
#elif defined(EPOLL)
	/* edge-triggered: asks the module only once it was woken */
	ready = false;
	do
	:: ready -> break
	:: !ready ->
		if
		:: event -> event = false; readable(ready)
		:: LAWFUL && !event && !late -> goto done
		fi
	od
#else
	CONSUMER_FENCE;				/* the queue has a lock */
	event = false;
	queued = true;
	readable(ready);
	do
	:: ready -> queued = false; break
	:: !ready ->
		if
		:: event -> event = false; readable(ready)
		:: LAWFUL && !event && !late -> goto done
		fi
	od
#endif
}

/* rgate_consumer_wait(), rgate_consumer_arm(), rgate_consumer_disarm() */
active proctype consumer()
{
	byte pos, s;
	bool ready;

#ifdef EPOLL
	queued = true;				/* EPOLL_CTL_ADD */
	event = true;
#ifndef POLLED_NEVER
	/* EPOLL_CTL_ADD asks, or rgate_handle_set() finds the queue in use */
	atomic { !locked -> polled = true };
#endif
#endif
	do
	::
		s = m_state;
		if
		:: m_pub > pos -> pos++
		:: m_pub == pos && s == ENDED -> break
		:: m_pub == pos && s == ACTIVE ->
			buffer ! pos + 1;
#ifndef NO_CONSUMER_FENCE
			CONSUMER_FENCE;
#endif
#ifndef NO_SECOND_LOOK
			if
			:: m_pub > pos -> goto disarm
			:: else
			fi;
#endif
#ifndef NO_STATE_LOOK
			if
			:: m_state != ACTIVE -> goto disarm
			:: else
			fi;
#endif
			sleep();
disarm:
			buffer ! 0;
			wakes = false
		fi
	od;
	assert(pos == FRAMES);
done:
	skip
}
