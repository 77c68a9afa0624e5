// SPDX-License-Identifier: MIT OR GPL-2.0
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "hurry.h"

#define EACH_NS	20000000
#define SIGNAL	(SIGRTMAX - 1)

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* That it comes is enough. */
static void on_signal(int sig)
{
	(void)sig;
}

static void set_up(void)
{
	const struct sigaction sa = { .sa_handler = on_signal };

	(void)sigaction(SIGNAL, &sa, NULL);
}

void hurry_begin(struct hurry *h)
{
	struct sigevent ev = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGNAL };
	const struct itimerspec each = { .it_interval.tv_nsec = EACH_NS,
					 .it_value.tv_nsec = EACH_NS };

	pthread_once(&once, set_up);
	ev.sigev_notify_thread_id = gettid();
	h->on = !timer_create(CLOCK_MONOTONIC, &ev, &h->timer);
	if (h->on)
		(void)timer_settime(h->timer, 0, &each, NULL);
}

void hurry_end(struct hurry *h)
{
	if (h->on)
		(void)timer_delete(h->timer);
}

void hurry_close(int sock)
{
	struct hurry h;

	hurry_begin(&h);
	close(sock);
	hurry_end(&h);
}
