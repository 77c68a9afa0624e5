// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who makes no system call, a GPU or a busy program, has its frames sent by a thread. It
 * looks for them for a while, then says in the producer area that it does not any more,
 * and sleeps. Who publishes a frame looks at that word, and asks for the frame to be sent
 * (RGATE_IOC_SEND), which wakes the thread as well. Who cannot ask is heard when the
 * thread looks on its own, every RGATE_THREAD_NAP_MS.
 *
 * The thread's time is on nobody's account, so it has a share of one CPU's; when that is
 * spent it sleeps, and whoever asks sends on his own time meanwhile.
 */
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/sched.h>
#include <linux/timekeeping.h>
#include "alloc.h"
#include "ring.h"
#include "send.h"
#include "send_thread.h"
#include "trace.h"

/* So long it looks for the next frame, ... */
#define RGATE_THREAD_LOOK_NS	(200 * NSEC_PER_USEC)
/* ... and after so long again. */
#define RGATE_THREAD_NAP_MS	10
/* Ahead of its share it may be by so much, ns. */
#define RGATE_THREAD_AHEAD	(10 * NSEC_PER_MSEC)

/**
 * struct rgate_thread - the thread of a ring, while that is bound
 * @ring: of kind transmit; there as long as the thread is
 * @task: itself
 * @share: of one CPU, in percent
 * @ran: of its CPU time, ns, what is in @paid already
 * @paid: until when, CLOCK_MONOTONIC, its share has been spent
 * @checked: when that was
 */
struct rgate_thread {
	struct rgate_ring *ring;
	struct task_struct *task;
	u32 share;
	u64 ran;
	u64 paid;
	u64 checked;
};

static void rgate_thread_says(const struct rgate_thread *t, u32 need_wakeup)
{
	WRITE_ONCE(t->ring->w.prod->need_wakeup, need_wakeup);
}

/*
 * By how much it is ahead of its share, ns. The scheduler tells its CPU time up to the
 * last tick or switch: what is missing comes with the next look.
 */
static u64 rgate_thread_debt(struct rgate_thread *t, u64 now)
{
	u64 ran = current->se.sum_exec_runtime;

	/* Its scheduler is what keeps one that may take all of a CPU in its bounds. */
	if (t->share >= 100)
		return 0;
	t->paid = max(t->paid, t->checked) + div_u64((ran - t->ran) * 100, t->share);
	t->ran = ran;
	t->checked = now;
	now += RGATE_THREAD_AHEAD;
	return t->paid > now ? t->paid - now : 0;
}

/* Sends what is there and waits for more. Return: 0, or why there is no use in it. */
static int rgate_thread_run(struct rgate_thread *t)
{
	u64 now = ktime_get_ns(), last = now;
	int n;

	rgate_thread_says(t, 0);
	do {
		n = rgate_send_turn(t->ring);
		if (n < 0)
			return n;
		/* It may be long until we sleep, and tracing waits for us. */
		cond_resched_tasks_rcu_qs();
		now = ktime_get_ns();
		if (n)
			last = now;
		else
			cpu_relax();
	} while (now - last < RGATE_THREAD_LOOK_NS && !rgate_thread_debt(t, now) &&
		 !kthread_should_stop());
	return 0;
}

/*
 * From here on users have to ask. Is there nothing that came before they could know?
 * @err: what rgate_thread_run() returned
 */
static bool rgate_thread_may_sleep(struct rgate_thread *t, int err)
{
	rgate_thread_says(t, 1);
	/*
	 * Say so, then look for frames; users publish, then look at the word:
	 * rgate_sender_flush() has the other barrier.
	 */
	smp_mb();
	switch (err) {
	case 0:
		return !rgate_send_waiting(t->ring);
	case -EAGAIN:
		return !rgate_send_writable(t->ring);
	default:
		return true;
	}
}

/* Return: has it something to do, or been told so? */
static bool rgate_thread_sleep(struct rgate_thread *t, int err)
{
	long ticks = msecs_to_jiffies(RGATE_THREAD_NAP_MS);
	u64 debt = rgate_thread_debt(t, ktime_get_ns());

	if (debt)
		ticks = 1 + nsecs_to_jiffies(debt);
	else if (err == -EBUSY || err == -ENOBUFS)
		ticks = 1;
	/* Before the looks: who wakes us changes it back. */
	set_current_state(TASK_INTERRUPTIBLE);
	if ((rgate_thread_may_sleep(t, err) || debt) && !kthread_should_stop()) {
		trace_rgate_thread_sleep(t->ring->id, err, debt);
		ticks = schedule_timeout(ticks);
	}
	__set_current_state(TASK_RUNNING);
	/* Where nothing came while it slept, nothing is about to come. */
	return ticks || rgate_send_waiting(t->ring);
}

static int rgate_thread_main(void *arg)
{
	struct rgate_thread *t = arg;
	bool look = true;
	int err;

	t->checked = ktime_get_ns();
	/*
	 * Never frozen: kthread_stop() does not wake a frozen thread, and who stops this one
	 * has the RTNL, for which devices wait on their way into a suspend and out of it.
	 */
	while (!kthread_should_stop()) {
		err = 0;
		if (!rgate_thread_debt(t, ktime_get_ns()) && look)
			err = rgate_thread_run(t);
		look = rgate_thread_sleep(t, err);
	}
	return 0;
}

/**
 * rgate_thread_start - from here on the ring's frames are looked for
 * @ring: of kind transmit, bound
 * @share: of one CPU, 1 to 100 percent
 *
 * Return: 0, -ENOMEM, or -EINTR if the caller is being killed.
 */
int rgate_thread_start(struct rgate_ring *ring, u32 share)
{
	struct rgate_thread *t = rgate_kzalloc(sizeof(*t));

	lockdep_assert_held(&rgate_lock);
	if (!t)
		return -ENOMEM;
	t->ring = ring;
	t->share = share;
	t->task = kthread_create(rgate_thread_main, t, "rgate_tx/%u", ring->id);
	if (IS_ERR(t->task)) {
		int err = PTR_ERR(t->task);

		kfree(t);
		return err;
	}
	spin_lock_bh(&ring->lock);
	WRITE_ONCE(ring->tx->thread, t);
	spin_unlock_bh(&ring->lock);
	wake_up_process(t->task);
	return 0;
}

/*
 * The thread takes no lock that its caller may hold, and is never longer in its way than
 * with the frames of one batch.
 */
void rgate_thread_stop(struct rgate_ring *ring)
{
	struct rgate_thread *t = ring->tx->thread;

	lockdep_assert_held(&rgate_lock);
	if (!t)
		return;
	/* Who wakes it holds the lock. */
	spin_lock_bh(&ring->lock);
	WRITE_ONCE(ring->tx->thread, NULL);
	spin_unlock_bh(&ring->lock);
	kthread_stop(t->task);
	rgate_thread_says(t, 1);
	kfree(t);
}

/* rgate_thread_wake - there may be something to do for it; the ring's lock is held */
void rgate_thread_wake(struct rgate_ring *ring)
{
	lockdep_assert_held(&ring->lock);
	if (ring->tx->thread)
		wake_up_process(ring->tx->thread->task);
}

/* rgate_thread_kicked - somebody asked for frames to be sent: it looks for the next ones */
void rgate_thread_kicked(struct rgate_ring *ring)
{
	if (likely(!READ_ONCE(ring->tx->thread)))
		return;
	spin_lock_bh(&ring->lock);
	rgate_thread_wake(ring);
	spin_unlock_bh(&ring->lock);
}
