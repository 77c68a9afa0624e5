// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <sys/mman.h>

#include "gate_engine.h"
#include "other.h"

#define GUESTS		64U
#define MEMORY		((gate_room(gate.role, GATE_TICKETS) + 4095) & ~4095ULL)
#define WATCHED		256U		/* bytes of a ticket's room that are looked at */
#define MAY_NOT		3U		/* users from here on are not its to speak for */

struct rgate_session {
	bool there;
	uid_t uid;
	unsigned char *mem;
	void (*over)(void *ctx);
	void *ctx;
	bool busy[GATE_TICKETS];
	struct rgate_request req[GATE_TICKETS];
	unsigned char was[GATE_TICKETS][WATCHED];
	uint32_t shots[GATE_TICKETS];	/* that one can still come to, before its end */
	struct rgate_completion done[GATE_PLACES];
	unsigned int ndone;
};

static struct rgate_session sessions[GUESTS];
/* Mapped once, with nothing behind it: of queues it is longer than of sockets. */
static unsigned char *memory[2][GUESTS];
static void *(*thread_run)(void *);
static void *thread_arg;
static int waits;
static uint64_t key;

int __wrap_rgate_session_at(struct rgate_session **out, struct rgate_engine *engine,
			    const struct rgate_seat_opts *o, struct rgate_seat **seat)
{
	struct rgate_session *s = sessions;
	unsigned char **mem;

	(void)engine;
	FUZZ_CHECK(o->memory == MEMORY && (gate.may_all || o->uid < MAY_NOT));
	if (gate.no_room)
		return -ENOMEM;
	while (s < sessions + GUESTS && s->there)
		s++;
	FUZZ_CHECK(s < sessions + GUESTS);
	mem = &memory[gate.role == &gate_queues][s - sessions];
	if (!*mem) {
		*mem = mmap(NULL, MEMORY + 4096, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		FUZZ_CHECK(*mem != MAP_FAILED && !mprotect(*mem + MEMORY, 4096, PROT_NONE));
	}
	*s = (struct rgate_session){ .there = true, .uid = o->uid, .mem = *mem, .over = o->over,
				     .ctx = o->ctx };
	*out = s;
	*seat = (struct rgate_seat *)s;
	return 0;
}

void *__wrap_rgate_session_memory(const struct rgate_session *s, size_t *len)
{
	if (len)
		*len = MEMORY;
	return s->mem;
}

int __wrap_rgate_session_fd(const struct rgate_session *s)
{
	FUZZ_CHECK(s->there);
	return 0;
}

int __wrap_rgate_session_arm(struct rgate_session *s)
{
	FUZZ_CHECK(s->there);
	return s->ndone ? 1 : 0;
}

int __wrap_rgate_session_submit(struct rgate_session *s, const struct rgate_request *req)
{
	const uint32_t i = req->cookie % GATE_TICKETS;
	const int has = gate_op_has(gate.role, req->op);
	const uint64_t room = gate_room(gate.role, i);
	uint32_t all, j;

	FUZZ_CHECK(s->there && !s->busy[i] && has >= 0);
	FUZZ_CHECK(req->len <= gate_ticket_room(gate.role, i) && (!req->len || req->off == room));
	FUZZ_CHECK(!(has & GATE_HAS_NODE) || req->a0 == gate.role->here);
	FUZZ_CHECK(req->flags == 0 || (req->flags == RGATE_REQ_MULTI && has & GATE_HAS_MANY &&
				       req->a1 >= 2 && req->a1 <= GATE_MANY));
	FUZZ_CHECK(req->flags || !(has & (GATE_HAS_TO | GATE_HAS_FROM)) ||
		   req->a1 == room + gate_ticket_room(gate.role, i));
	if (gate.no_room)
		return -EAGAIN;
	s->busy[i] = true;
	s->shots[i] = req->flags ? (uint32_t)req->a1 - 1 : 0;
	/* With those of all others there is a place for each, and for their ends. */
	for (all = j = 0; j < GATE_TICKETS; j++)
		all += s->busy[j] ? s->shots[j] : 0;
	FUZZ_CHECK(all <= GATE_SHOTS);
	s->req[i] = *req;
	memcpy(s->was[i], s->mem + gate_room(gate.role, i), WATCHED);
	return 0;
}

int __wrap_rgate_session_poll(struct rgate_session *s, struct rgate_completion *c,
			      unsigned int n)
{
	FUZZ_CHECK(s->there && n == 1);
	if (!s->ndone)
		return 0;
	*c = s->done[0];
	memmove(s->done, s->done + 1, --s->ndone * sizeof(s->done[0]));
	return 1;
}

int __wrap_rgate_session_cancel(struct rgate_session *s, uint64_t cookie, uint64_t own)
{
	FUZZ_CHECK(s->there && s->busy[cookie % GATE_TICKETS] && own != cookie);
	FUZZ_CHECK(s->req[cookie % GATE_TICKETS].cookie == cookie);
	return 0;
}

void __wrap_rgate_session_close(struct rgate_session *s)
{
	FUZZ_CHECK(s->there);
}

void __wrap_rgate_seat_remove(struct rgate_seat *seat)
{
	struct rgate_session *s = (struct rgate_session *)seat;

	FUZZ_CHECK(s->there);
	s->there = false;
	s->over(s->ctx);
}

/* The thread is this one, whenever the input says so. */
int __wrap_rgate_thread_start(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			      void *arg)
{
	(void)attr;
	memset(thread, 0, sizeof(*thread));
	thread_run = run;
	thread_arg = arg;
	return 0;
}

int __wrap_pthread_join(pthread_t thread, void **ret)
{
	(void)thread;
	(void)ret;
	return 0;
}

int __wrap_epoll_ctl(int epfd, int op, int fd, struct epoll_event *ev)
{
	(void)epfd;
	(void)op;
	(void)fd;
	(void)ev;
	return 0;
}

int __wrap_epoll_wait(int epfd, struct epoll_event *ev, int n, int ms)
{
	(void)epfd;
	(void)ms;
	FUZZ_CHECK(n > 1);
	/* the guest, then the word to stop */
	ev->data.u64 = waits++ ? EVENTS_WAKE : key;
	return 1;
}

bool gate_may(void *ctx, uint32_t node, uid_t uid)
{
	(void)ctx;
	FUZZ_CHECK(node == OTHER);
	return gate.may_all || uid < MAY_NOT;
}

/* Some of what it can come to before its end; @how: 0 to 255 */
static void go_on(struct rgate_session *s, uint32_t i, uint8_t how)
{
	uint32_t n = how % 8;

	/* most of them as they are, others with bytes and without */
	for (; n-- && s->shots[i]; s->shots[i]--)
		s->done[s->ndone++] = (struct rgate_completion){
			.cookie = s->req[i].cookie, .value = how, .flags = RGATE_COMP_MORE,
			.result = how & 8 ? (int)(s->req[i].len / (s->req[i].a1 - 1)) : 0,
		};
}

void gate_complete(void)
{
	struct rgate_session *s = &sessions[fuzz_u8(&gate.in) % 4];
	const uint32_t first = fuzz_u8(&gate.in) % 8, n = 1 + fuzz_u8(&gate.in) % 3;
	uint32_t i;
	uint8_t how;

	if (!s->there)
		return;
	for (i = first; i < first + n; i++) {
		const struct rgate_request *q = &s->req[i];

		if (!s->busy[i])
			continue;
		FUZZ_CHECK(!memcmp(s->was[i], s->mem + gate_room(gate.role, i), WATCHED));
		if (q->flags) {
			how = fuzz_u8(&gate.in);
			go_on(s, i, how);
			if (how & 128)
				continue;
		}
		s->busy[i] = false;
		s->done[s->ndone++] = (struct rgate_completion){
			.cookie = q->cookie, .value = fuzz_u8(&gate.in),
			.result = fuzz_u8(&gate.in) & 1 ? -(int)fuzz_u8(&gate.in) :
				  (int)(fuzz_u16(&gate.in) % (q->len + 1)),
		};
	}
	key = ((struct guest *)s->ctx)->key;
	waits = 0;
	(void)thread_run(thread_arg);
	FUZZ_CHECK(!s->ndone);
}

void gate_guests_check(void)
{
	unsigned int i;

	for (i = 0; i < GUESTS; i++)
		FUZZ_CHECK(!sessions[i].there);
}
