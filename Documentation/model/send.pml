/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The thread of a transmit ring: the word that it sleeps against publishing, with the store
 * buffers of a machine that lets a load pass an earlier store. One user, one thread, and
 * frames under way that somebody frees.
 *
 * A store goes to its CPU's buffer and reaches memory later, in order; a full fence waits
 * until the buffer is empty. So do system calls, and locks that the other side takes after
 * them.
 *
 * What has to hold: nobody sleeps for good while a frame is published and may be sent. The
 * nap that the thread takes in place of a sleep without end is left out: it is for who does
 * not ask, and would hide what is wrong. Who asks may have its frame sent on its own time,
 * or leave that to the thread; the model leaves it. The share of CPU time is left out as
 * well, as a thread without any says that it sleeps, and then naps.
 *
 * check: pass	users ask when the word says so
 * check: pass	with a device that is full at times : -DFULL
 * check: pass	and the ring is unbound at the end : -DFULL -DUNBIND
 * check: fail	no fence in rgate_sender_flush() : -DNO_USER_FENCE
 * check: fail	no fence in rgate_thread_may_sleep() : -DNO_THREAD_FENCE
 * check: fail	no look after the word is stored : -DNO_SECOND_LOOK
 * check: fail	the state is set after the looks : -DSTATE_LATE
 * check: fail	who frees frames does not wake it : -DFULL -DNO_ROOM_WAKE
 * check: fail	the count is not looked at again : -DFULL -DNO_ROOM_LOOK
 * check: fail	the last frame is freed between a look and asking to be woken : -DFULL -DWANT_LATE
 * check: fail	whoever asks does not wake it : -DNO_KICK_WAKE
 * check: fail	the ring is unbound, and it is not woken : -DUNBIND -DNO_STOP_WAKE
 */
#define FRAMES	3
#define CAP	1

/* memory */
byte m_pub;				/* slots published */
bool m_need = true;			/* rgate_prod.need_wakeup */

/* the views of user and thread; their buffers hold what is not in memory yet */
byte pub;
bool need = true;

byte head;				/* taken */
byte flight;				/* under way: an atomic of the kernel's */
bool wanted;				/* rgate_flight.wanted, written with a fence, or by xchg() */
bool running = true;			/* TASK_RUNNING, or about to sleep */
bool stop;				/* kthread_should_stop() */
bool gone;				/* the thread has ended */

#define USER_FENCE	(m_pub == pub)
#define THREAD_FENCE	(m_need == need)

active proctype memory()
{
end:
	do
	:: atomic { m_pub < pub -> m_pub++ }
	:: atomic { m_need != need -> m_need = need }
	od
}

/* wake_up_process(): whatever was stored before is in memory */
inline wake_thread()
{
	running = true
}

/* rgate_sender_publish(), rgate_sender_flush(), and rgate_send() of an ioctl */
active proctype user()
{
	bool w;

	do
	:: pub < FRAMES ->
		pub++;
#ifndef NO_USER_FENCE
		USER_FENCE;
#endif
		w = m_need;
		if
		:: w ->
			USER_FENCE;
#ifndef NO_KICK_WAKE
			wake_thread()
#endif
		:: else
		fi;
		w = false
	:: pub == FRAMES -> break
	od
#ifdef UNBIND
	;
	stop = true;
#ifndef NO_STOP_WAKE
	wake_thread();
#endif
	gone				/* kthread_stop() waits */
#endif
}

#ifdef FULL
/* rgate_flight_done(), rgate_flight_wake() */
active proctype device()
{
end:
	do
	:: atomic { flight > 0 -> flight-- };
		if
		:: atomic { wanted -> wanted = false };
#ifndef NO_ROOM_WAKE
			wake_thread()
#endif
		:: !wanted
		fi
	od
}
#endif

/* rgate_send_turn(): as much as there is, and may be under way */
inline turn()
{
	do
	:: head < m_pub && flight < CAP ->
		atomic {
			head++;
#ifdef FULL
			flight++
#endif
		}
	:: head == m_pub -> stuck = false; break
	:: head < m_pub && flight == CAP -> stuck = true; break
	od
}

/* rgate_send_writable(), and rgate_flight_want() */
inline room(yes)
{
#ifdef WANT_LATE
	yes = flight < CAP;
	wanted = true
#else
	yes = flight < CAP;
	if
	:: !yes ->
		wanted = true;
		THREAD_FENCE;
#ifndef NO_ROOM_LOOK
		yes = flight < CAP
#endif
	:: else
	fi
#endif
}

/* To sleep for good is right where all was sent and the ring stays bound. */
#ifdef UNBIND
#define LAWFUL	false
#else
#define LAWFUL	(pub == FRAMES && m_pub == FRAMES && head == FRAMES)
#endif

/* rgate_thread_main() */
active proctype thread()
{
	bool stuck, ready;

	do
	:: stop -> break
	:: !stop ->
		need = false;
		turn();
		/* rgate_thread_sleep() */
#ifndef STATE_LATE
		THREAD_FENCE;			/* set_current_state() has one */
		running = false;
#endif
		need = true;
#ifndef NO_THREAD_FENCE
		THREAD_FENCE;
#endif
		ready = false;
#ifndef NO_SECOND_LOOK
		if
		:: !stuck -> ready = head < m_pub
		:: stuck -> room(ready)
		fi;
#endif
#ifdef STATE_LATE
		running = false;
#endif
		if
		:: ready || stop -> running = true
		:: else ->
			/* a switch to another task is a fence */
			if
			:: running
			:: LAWFUL && !running -> goto done
			fi
		fi;
		ready = false
	od;
done:
	gone = true
}
