// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "ask_proxy.h"
#include "clock.h"
#include "thread.h"

#define PAUSE_NS	20000U	/* the shortest one; it doubles as long as nothing happens */

/*
 * Has what lies at *@pos come, by the word that tells its lap? Then it is passed, @step at a time.
 * Many laps may have gone by since the last look, as the engine takes what comes by itself while
 * it is awake: the word says which one it is of.
 */
static bool pass(uint64_t *pos, const uint64_t *word, uint32_t places, uint32_t step)
{
	/* NOLINTNEXTLINE(clang-analyzer-core.DivideZero): a session has places */
	const uint64_t ahead = __atomic_load_n(word, __ATOMIC_ACQUIRE) - (*pos / places + 1);

	if (ahead > INT64_MAX)
		return false;
	*pos += ahead * places + step;
	return true;
}

static bool published(struct rgate_ask_proxy *p)
{
	const struct rgate_session_loan *l = &p->loan;
	const struct rgate_request *r = &l->requests[p->published & (l->places - 1)];

	return pass(&p->published, (const uint64_t *)&r->seq, l->places, 1);
}

static bool credited(struct rgate_ask_proxy *p)
{
	const struct rgate_session_loan *l = &p->loan;
	const uint64_t batch = (p->credited & (l->completion_places - 1)) / RGATE_REQ_BATCH;

	return pass(&p->credited, &l->completion_credits[batch], l->completion_places,
		    RGATE_REQ_BATCH);
}

/* Is there anything that the engine may not have seen? A lap at most: whatever the words say */
static uint32_t news(struct rgate_ask_proxy *p)
{
	const uint64_t from = p->published, gave = p->credited;
	uint32_t n;

	for (n = 0; n < p->loan.places && published(p); n++)
		;
	for (n = 0; n < p->loan.completion_places && credited(p); n += RGATE_REQ_BATCH)
		;
	__atomic_store_n(&p->seen, p->published, __ATOMIC_RELAXED);
	return (p->published != from ? RGATE_REQ_NEED_REQUEST : 0) |
	       (p->credited != gave ? RGATE_REQ_NEED_CREDIT : 0);
}

/*
 * Wakes the engine, if it sleeps and waits for what has come; true: it did.
 *
 * The device stores a request, and does not look whether the engine sleeps. This thread does, once
 * for each request, after it has seen it, with a fence between. The engine stores need, fences,
 * and looks for a request. Were the request not there for it, its fence would come before this
 * one's, as what was seen here is seen by all who look after that, and need is read here. Likewise
 * credits.
 */
static bool wake(struct rgate_ask_proxy *p)
{
	const uint64_t one = 1;
	uint32_t bits = news(p);

	__atomic_store_n(&p->looks, p->looks + 1, __ATOMIC_RELAXED);
	if (!bits)
		return false;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!(__atomic_load_n(&p->loan.server->need, __ATOMIC_RELAXED) & bits))
		return false;
	(void)!write(p->loan.kick_fd, &one, sizeof(one));
	__atomic_store_n(&p->kicks, p->kicks + 1, __ATOMIC_RELAXED);
	return true;
}

static void tell_over(struct rgate_ask_proxy *p)
{
	__atomic_store_n(p->over, 1, __ATOMIC_RELEASE);
}

/* Something happens: the next look comes at once, or soon */
static void stir(struct rgate_ask_proxy *p)
{
	if (p->spin_ns)
		p->until = rgate_clock_now(CLOCK_MONOTONIC) + p->spin_ns;
	p->pause = PAUSE_NS;
}

/* Has another completion come? Then it is passed. */
static bool answered(struct rgate_ask_proxy *p)
{
	const struct rgate_session_loan *l = &p->loan;
	const struct rgate_completion *c =
		&l->completions[p->completed & (l->completion_places - 1)];

	return pass(&p->completed, (const uint64_t *)&c->seq, l->completion_places, 1);
}

/*
 * While the engine is awake, its falling asleep is to wake this thread, and then the next
 * completion: each answer would be too often. False: that has come already.
 */
static bool arm(struct rgate_ask_proxy *p)
{
	const struct rgate_session_loan *l = &p->loan;
	const bool asleep = __atomic_load_n(&l->server->need, __ATOMIC_RELAXED);
	uint32_t n;

	if (!l->want)
		return true;
	for (n = 0; asleep && n < l->completion_places && answered(p); n++)
		;
	__atomic_store_n(l->want, asleep ? p->completed + 1 : RGATE_REQ_WANT_NEED,
			 __ATOMIC_RELAXED);
	/*
	 * Against flush() and seat_park() of the engine: want, fence, completion or need here;
	 * there completion or need, fence, want
	 */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return asleep ? !answered(p) : !__atomic_load_n(&l->server->need, __ATOMIC_RELAXED);
}

static void disarm(struct rgate_ask_proxy *p, bool woken)
{
	struct epoll_event ev[2];

	if (!p->loan.want)
		return;
	__atomic_store_n(p->loan.want, 0, __ATOMIC_RELAXED);
	if (woken)
		(void)epoll_wait(p->loan.wait_fd, ev, 2, 0);
}

/* Until something happens to the session, or so long; false: this is to end */
static bool rest(struct rgate_ask_proxy *p, bool over)
{
	struct pollfd fds[] = {
		{ .fd = p->quit_fd, .events = POLLIN },
		{ .fd = over ? -1 : p->loan.gone_fd, .events = POLLRDHUP },
		{ .fd = over || !p->loan.want ? -1 : p->loan.wait_fd, .events = POLLIN },
	};
	const struct timespec ts = rgate_clock_timespec(over || arm(p) ? p->pause : 0);
	const int n = ppoll(fds, 3, over ? NULL : &ts, NULL);

	p->pause = p->pause * 2 < p->idle_ns ? p->pause * 2 : p->idle_ns;
	disarm(p, n > 0 && fds[2].revents);
	if (fds[2].revents || (!ts.tv_sec && !ts.tv_nsec))
		stir(p);
	if (n <= 0)
		return true;
	if (fds[1].revents)
		tell_over(p);
	return !fds[0].revents;
}

static void *run(void *arg)
{
	struct rgate_ask_proxy *p = arg;
	bool over;

	for (;;) {
		if (wake(p))
			stir(p);
		if (__atomic_load_n(&p->loan.server->state, __ATOMIC_ACQUIRE) != RGATE_REQ_OPEN)
			tell_over(p);
		over = __atomic_load_n(p->over, __ATOMIC_RELAXED);
		if (!over && p->until && rgate_clock_now(CLOCK_MONOTONIC) < p->until) {
			rgate_cpu_relax();
			continue;
		}
		p->until = 0;
		if (!rest(p, over))
			return NULL;
	}
}

int rgate_ask_proxy_start(struct rgate_ask_proxy *p, const struct rgate_session_loan *loan,
			  uint64_t *over, uint64_t spin_ns, uint64_t idle_ns)
{
	int err;

	*p = (struct rgate_ask_proxy){
		.loan = *loan,
		.over = over,
		.spin_ns = spin_ns,
		.idle_ns = idle_ns,
		.published = loan->submitted,
		.credited = loan->completed & ~(uint64_t)(RGATE_REQ_BATCH - 1),
		.completed = loan->completed,
		.pause = idle_ns,
		.quit_fd = eventfd(0, EFD_CLOEXEC),
	};
	if (p->quit_fd < 0)
		return -errno;
	err = rgate_thread_start(&p->thread, NULL, run, p);
	if (err)
		close(p->quit_fd);
	else
		pthread_setname_np(p->thread, "rgate-gpu-ask");
	return err;
}

void rgate_ask_proxy_stop(struct rgate_ask_proxy *p)
{
	const uint64_t one = 1;

	tell_over(p);
	(void)!write(p->quit_fd, &one, sizeof(one));
	pthread_join(p->thread, NULL);
	close(p->quit_fd);
}
