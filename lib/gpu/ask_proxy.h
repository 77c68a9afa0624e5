/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The thread beside a GPU that asks: it wakes the engine, which a GPU cannot, and says when the
 * session is over. Requests and completions do not go through it. Needs no CUDA.
 *
 * It looks for requests now and then, less and less often, and sleeps in between. Where the engine
 * sleeps too an answer wakes it: a kernel that was waiting for that may ask again at once.
 */
#ifndef RGATE_GPU_ASK_PROXY_H
#define RGATE_GPU_ASK_PROXY_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <ringgate/rgate_session.h>

struct rgate_ask_proxy {
	struct rgate_session_loan loan;
	uint64_t *over;			/* atomic; for the device */
	uint64_t spin_ns, idle_ns;
	int quit_fd;			/* an eventfd */
	pthread_t thread;
	uint64_t published;		/* requests seen so far; this thread's */
	uint64_t credited;		/* completions of which the credit was seen */
	uint64_t completed;		/* completions seen so far */
	uint64_t pause, until;		/* ns: the next one; until then there is none */
	uint64_t kicks, looks;		/* atomic; for counters */
	uint64_t seen;			/* likewise: as published */
};

/*
 * rgate_ask_proxy_start - for a session that is on loan
 * @over: becomes 1 when the session is over, by rgate_ask_proxy_stop() as well; release
 * @spin_ns: after it has woken the engine, or was woken, it looks without a pause for so long
 * @idle_ns: the longest pause between two looks
 * -EMFILE, -ENFILE, -ENOMEM, -EAGAIN
 */
int rgate_ask_proxy_start(struct rgate_ask_proxy *p, const struct rgate_session_loan *loan,
			  uint64_t *over, uint64_t spin_ns, uint64_t idle_ns);
void rgate_ask_proxy_stop(struct rgate_ask_proxy *p);

#endif
