// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Sockets of the gateway, and, where the input begins with 0xff, queues of other nodes; both sides.
 * A message that is taken says the same when it is written out again. Whatever a node asks, its
 * guests are of users for whom it may speak, no more than there can be, and their requests name
 * memory of their own tickets, which does not change while they are under way, and no third node.
 * Whatever the node that is asked answers, each request ends once, and no byte is written that is
 * not its own. One with many completions has no more before its end than it has places for, and
 * what a node is told of its own comes in its order, over another connection not before, and from
 * where, it says.
 */
#include <errno.h>
#include <sys/mman.h>

#include "gate_engine.h"
#include "fuzz.h"
#include "other.h"

#define STEPS		128
#define GUESTS		64U
#define MEMORY		((gate_room(role, GATE_TICKETS) + 4095) & ~4095ULL)
#define WATCHED		256U		/* bytes of a ticket's room that are looked at */
#define WISHES		32U
#define ASKED		64U		/* questions that are kept for an answer */
#define OWN		(80U << 10)	/* memory of a session of this node */
#define ADDR_AT		(OWN - 4096)
#define MAY_NOT		3U		/* users from here on are not its to speak for */

/* ---- The engine of guests ---- */

struct rgate_session {
	bool there;
	uid_t uid;
	unsigned char *mem;		/* mapped once, with nothing behind it */
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
static struct fuzz_in in;
static struct gate_service *sv;
static const struct gate_role *role;
static void *(*thread_run)(void *);
static void *thread_arg;
static int waits;
static uint64_t key;
static bool may_all, no_room;
static uint64_t got_number;		/* of a question for bytes, 0: none */
static struct gate_question got;

int __wrap_rgate_session_at(struct rgate_session **out, struct rgate_engine *engine,
			    const struct rgate_seat_opts *o, struct rgate_seat **seat)
{
	struct rgate_session *s = sessions;
	unsigned char *mem;

	(void)engine;
	FUZZ_CHECK(o->memory == MEMORY && (may_all || o->uid < MAY_NOT));
	if (no_room)
		return -ENOMEM;
	while (s < sessions + GUESTS && s->there)
		s++;
	FUZZ_CHECK(s < sessions + GUESTS);
	mem = s->mem;
	if (!mem) {
		mem = mmap(NULL, MEMORY + 4096, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		FUZZ_CHECK(mem != MAP_FAILED && !mprotect(mem + MEMORY, 4096, PROT_NONE));
	}
	*s = (struct rgate_session){ .there = true, .uid = o->uid, .mem = mem, .over = o->over,
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
	const int has = gate_op_has(role, req->op);
	const uint64_t room = gate_room(role, i);
	uint32_t all, j;

	FUZZ_CHECK(s->there && !s->busy[i] && has >= 0);
	FUZZ_CHECK(req->len <= role->room && (!req->len || req->off == room));
	FUZZ_CHECK(!(has & GATE_HAS_NODE) || req->a0 == role->here);
	FUZZ_CHECK(req->flags == 0 || (req->flags == RGATE_REQ_MULTI && has & GATE_HAS_MANY &&
				       req->a1 >= 2 && req->a1 <= GATE_MANY));
	FUZZ_CHECK(req->flags || !(has & (GATE_HAS_TO | GATE_HAS_FROM)) ||
		   req->a1 == room + role->room);
	if (no_room)
		return -EAGAIN;
	s->busy[i] = true;
	s->shots[i] = req->flags ? (uint32_t)req->a1 - 1 : 0;
	/* With those of all others there is a place for each, and for their ends. */
	for (all = j = 0; j < GATE_TICKETS; j++)
		all += s->busy[j] ? s->shots[j] : 0;
	FUZZ_CHECK(all <= GATE_SHOTS);
	s->req[i] = *req;
	memcpy(s->was[i], s->mem + gate_room(role, i), WATCHED);
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

static bool may(void *ctx, uint32_t node, uid_t uid)
{
	(void)ctx;
	FUZZ_CHECK(node == OTHER);
	return may_all || uid < MAY_NOT;
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

/* One of a guest's requests ends, or many do. */
static void complete(void)
{
	struct rgate_session *s = &sessions[fuzz_u8(&in) % 4];
	const uint32_t first = fuzz_u8(&in) % 8, n = 1 + fuzz_u8(&in) % 3;
	uint32_t i;
	uint8_t how;

	if (!s->there)
		return;
	for (i = first; i < first + n; i++) {
		const struct rgate_request *q = &s->req[i];

		if (!s->busy[i])
			continue;
		FUZZ_CHECK(!memcmp(s->was[i], s->mem + gate_room(role, i), WATCHED));
		if (q->flags) {
			how = fuzz_u8(&in);
			go_on(s, i, how);
			if (how & 128)
				continue;
		}
		s->busy[i] = false;
		s->done[s->ndone++] = (struct rgate_completion){
			.cookie = q->cookie, .value = fuzz_u8(&in),
			.result = fuzz_u8(&in) & 1 ? -(int)fuzz_u8(&in) :
				  (int)(fuzz_u16(&in) % (q->len + 1)),
		};
	}
	key = ((struct guest *)s->ctx)->key;
	waits = 0;
	(void)thread_run(thread_arg);
	FUZZ_CHECK(!s->ndone);
}

/* ---- The engine of those that ask ---- */

struct rgate_seat {
	uid_t uid;
	void *object;			/* of its handle */
	unsigned char mem[OWN], was[OWN];
};

struct rgate_req {
	struct rgate_seat *seat;	/* NULL: none */
	struct rgate_request q;
	void *data;
	uint32_t shots;
	bool ended;
};

static struct rgate_seat seats[2];
static struct rgate_req reqs[WISHES];

const struct rgate_request *__wrap_rgate_req_get(const struct rgate_req *r)
{
	return &r->q;
}

struct rgate_seat *__wrap_rgate_req_seat(const struct rgate_req *r)
{
	return r->seat;
}

void *__wrap_rgate_req_mem(const struct rgate_req *r)
{
	return r->seat->mem + r->q.off;
}

void *__wrap_rgate_req_data(const struct rgate_req *r)
{
	return r->data;
}

void __wrap_rgate_req_set_data(struct rgate_req *r, void *data)
{
	r->data = data;
}

void __wrap_rgate_req_end(struct rgate_req *r, int result, uint64_t value)
{
	FUZZ_CHECK(r->seat && !r->ended);
	FUZZ_CHECK(result <= (int)r->q.len && result >= -4095 && (result >= 0 || !value));
	FUZZ_CHECK(!r->q.flags || result <= 0);
	r->ended = true;
}

uint32_t __wrap_rgate_req_shots(const struct rgate_req *r)
{
	return r->q.flags ? (uint32_t)r->q.a1 - 1 : 0;
}

uint32_t __wrap_rgate_req_more(struct rgate_req *r, int result, uint64_t value)
{
	(void)value;
	FUZZ_CHECK(r->seat && !r->ended && r->shots);
	FUZZ_CHECK(result >= 0 && (uint64_t)result <= r->q.len / (r->q.a1 - 1));
	return --r->shots;
}

void *__wrap_rgate_seat_memory(const struct rgate_seat *seat, uint64_t off, uint64_t len)
{
	return off <= OWN && len <= OWN - off ? (void *)(uintptr_t)(seat->mem + off) : NULL;
}

uid_t __wrap_rgate_seat_uid(const struct rgate_seat *seat)
{
	return seat->uid;
}

int __wrap_rgate_seat_handle(struct rgate_seat *seat, uint32_t service, void *object,
			     uint32_t *handle)
{
	FUZZ_CHECK(role == &gate_sockets && service == RGATE_REQ_SOCKET && !seat->object);
	seat->object = object;
	*handle = 1;
	return 0;
}

/* What no request under way may write is as it was. */
static void check_memory(struct rgate_seat *s)
{
	uint32_t at, i;
	bool own[OWN / 16] = { false };

	if (!memcmp(s->mem, s->was, OWN))
		return;
	for (i = 0; i < WISHES; i++) {
		const struct rgate_req *r = &reqs[i];
		const int has = gate_op_has(role, r->q.op);

		if (r->seat != s)
			continue;
		if (has >= 0 && has & (GATE_HAS_OUT | GATE_HAS_WHOLE))
			for (at = (uint32_t)r->q.off / 16; at * 16 < r->q.off + r->q.len; at++)
				own[at] = true;
		if (has >= 0 && has & GATE_HAS_FROM)
			for (at = ADDR_AT / 16; at < (ADDR_AT + GATE_ADDR + 15) / 16; at++)
				own[at] = true;
	}
	for (i = 0; i < OWN / 16; i++)
		FUZZ_CHECK(own[i] || !memcmp(s->mem + i * 16, s->was + i * 16, 16));
	memcpy(s->was, s->mem, OWN);
}

static void forget_ended(void)
{
	unsigned int i;

	for (i = 0; i < 2; i++)
		check_memory(&seats[i]);
	for (i = 0; i < WISHES; i++)
		if (reqs[i].seat && reqs[i].ended)
			reqs[i].seat = NULL;
}

/* What a service does that has sessions' callers itself */
static int forward(struct rgate_req *r)
{
	const struct gate_as as = { .handle = r->q.handle, .a0 = r->q.a0 };
	struct gate_caller *c = r->seat->object;
	int err;

	if (c && gate_caller_is_lost(c)) {
		gate_caller_leave(c);
		c = r->seat->object = NULL;
	}
	if (!c) {
		err = gate_caller_new(sv, r->seat, OTHER, &c);
		if (err)
			return err;
		r->seat->object = c;
	}
	return gate_forward(c, r, &as);
}

static int begin(struct rgate_req *r, uint32_t n)
{
	return role == &gate_sockets ? gate_requests.ops[n].begin(r, sv) : forward(r);
}

static void wish(void)
{
	static const uint32_t most[] = { 200, 600, 70000 };
	struct rgate_req *r = &reqs[fuzz_u8(&in) % WISHES];
	const uint32_t n = fuzz_u8(&in) % role->nops;
	int ret;

	if (r->seat) {
		if (!r->ended)
			(void)gate_forward_cancel(sv, r);
		return;
	}
	*r = (struct rgate_req){ .seat = &seats[fuzz_u8(&in) & 1] };
	r->q = (struct rgate_request){ .op = (uint16_t)RGATE_REQ_OP(role->requests, n),
				       .a0 = fuzz_u8(&in), .a1 = ADDR_AT,
				       .off = fuzz_u8(&in) * 16U, .handle = fuzz_u8(&in) };
	/* of one message, of a few, of many */
	r->q.len = fuzz_u16(&in) % most[fuzz_u8(&in) % 3];
	if (gate_op_has(role, r->q.op) & GATE_HAS_MANY && r->q.a0 & 1) {
		r->q.flags = RGATE_REQ_MULTI;
		r->q.a1 = 2 + r->q.handle % 8;
		r->shots = (uint32_t)r->q.a1 - 1;
		r->q.len -= r->q.len % r->shots;
	}
	ret = begin(r, n);
	if (ret != RGATE_REQ_LATER) {
		FUZZ_CHECK(ret < 0 && !r->ended);
		r->seat = NULL;
	}
}

/* A session of this node ends: its requests do before its handle is dropped. */
static void leave(struct rgate_seat *s)
{
	unsigned int i;

	for (i = 0; i < WISHES; i++)
		if (reqs[i].seat == s && !reqs[i].ended)
			return;
	if (s->object)
		gate_caller_leave(s->object);
	s->object = NULL;
}

/* ---- The node at the other end ---- */

/* In memory of that length, so that a read beyond is seen */
static void says(bool to_server, const void *msg, size_t len)
{
	const struct rgate_service *to = to_server ? &o.hub.serves : &o.hub.asks;
	unsigned char *copy = malloc(len);

	FUZZ_CHECK(copy);
	memcpy(copy, msg, len);
	to->message(o.hub.ctx, OTHER, copy, len);
	free(copy);
}

/*
 * What a node has heard of a request's GATE_MORE, and of which it has not said so over the
 * connection that there is: guests and tickets of asks() alone, as one of raw() may have any
 * number.
 */
static struct heard {
	uint64_t serial, messages;
	bool silent;
} heard[257][8];

static struct heard *heard_of(uint64_t guest, uint32_t ticket)
{
	/* Without a guest it answers a question of such a kind. */
	return guest && guest <= 256 && ticket < 8 ? &heard[guest][ticket] : NULL;
}

static bool is_silent(const struct gate_question *q)
{
	const struct guest *g = gate_guest_of(&sv->node[OTHER], q->guest);

	return g && g->ticket[q->ticket].shots && g->ticket[q->ticket].shots->silent;
}

static void says_question(const struct gate_question *q, const void *msg, size_t len)
{
	const bool hears = q->kind == GATE_HEARD && is_silent(q);
	struct heard *h = heard_of(q->guest, q->ticket);

	says(true, msg, len);
	if (hears && !is_silent(q) && h)
		*h = (struct heard){ .serial = q->serial, .messages = q->a0 };
}

static void raw(void)
{
	unsigned char again[RGATE_HUB_MSG_MAX];
	struct gate_question q;
	struct gate_result r;
	size_t len;
	const bool to_server = fuzz_u8(&in) & 1;
	unsigned char *msg = fuzz_copy(&in, RGATE_HUB_MSG_MAX + 8, &len);

	if (to_server && !gate_question_get(role, &q, msg, len)) {
		FUZZ_CHECK(gate_question_put(role, again, &q) == len);
		/* the first byte is the hub's */
		FUZZ_CHECK(!memcmp(again + 1, msg + 1, len - 1));
		says_question(&q, msg, len);
		free(msg);
		return;
	}
	if (!to_server && !gate_answer_get(&r, msg, len)) {
		FUZZ_CHECK(r.result >= -4095 && r.data_len <= r.len);
		if (r.result != -EPROTONOSUPPORT && r.result != -EIO) {
			FUZZ_CHECK(gate_answer_put(role, again, &r) == len);
			FUZZ_CHECK(!memcmp(again + 1, msg + 1, len - 1));
		}
	}
	if (len)
		says(to_server, msg, len);
	free(msg);
}

static uint64_t number;

static uint32_t came_to(const struct ticket *t)
{
	return t->result < 0 || t->shots ? 0 : t->has & GATE_HAS_WHOLE ? t->len :
	       t->has & GATE_HAS_OUT ? (uint32_t)t->result : 0;
}

/* What a node is given of a ticket is what its request has come to, and no byte more. */
static void check_got(void)
{
	const struct msgs *said = &o.peer.said;
	const struct msg *m = said->n ? &said->m[said->n - 1] : NULL;
	const struct guest *g;
	struct gate_result r;

	if (!got_number || !m || gate_answer_get(&r, m->data, m->len) ||
	    r.number != got_number || r.kind != GATE_GET || r.result)
		return;
	g = gate_guest_of(&sv->node[OTHER], got.guest);
	FUZZ_CHECK(g && g->uid == got.uid && g->ticket[got.ticket].serial == got.serial);
	FUZZ_CHECK(g->ticket[got.ticket].state == TICKET_DONE);
	FUZZ_CHECK(got.off + r.data_len <= came_to(&g->ticket[got.ticket]));
}

static void asks(void)
{
	unsigned char msg[RGATE_HUB_MSG_MAX], data[GATE_ROOM];
	struct rgate_socket_addr addr = { .family = fuzz_u8(&in) };
	struct gate_question q = { .kind = GATE_PUT + fuzz_u8(&in) % 5, .uid = fuzz_u8(&in) % 5,
				   .guest = 1 + fuzz_u8(&in), .serial = 1 + fuzz_u8(&in),
				   .ticket = fuzz_u8(&in) % 8, .data = data };
	bool again;

	/* now and then what was asked already */
	again = fuzz_u8(&in) % 16 == 0;
	number += !again;
	q.number = 16 + number;
	memset(data, fuzz_u8(&in), 256);
	switch (q.kind) {
	case GATE_SUBMIT:
		q.op = RGATE_REQ_OP(role->requests, fuzz_u8(&in) % role->nops);
		q.handle = fuzz_u8(&in);
		q.a0 = fuzz_u8(&in);
		if (gate_op_has(role, q.op) & GATE_HAS_NODE && q.a0 & 1)
			q.a0 = role->here;
		q.len = fuzz_u16(&in);
		q.addr = gate_op_has(role, q.op) & GATE_HAS_TO ? &addr : NULL;
		if (gate_op_has(role, q.op) & GATE_HAS_IN && q.len < 64)
			q.data_len = q.len;
		if (gate_op_has(role, q.op) & GATE_HAS_MANY && q.handle & 1) {
			q.kind = GATE_SUBMIT_MANY;
			q.a1 = q.handle & 2 ? GATE_MANY - q.a0 : 2 + q.a0 % 8;
			q.len -= q.len % (uint32_t)(q.a1 - 1);
			q.addr = NULL;
		}
		break;
	case GATE_PUT:
	case GATE_GET:
		q.off = fuzz_u16(&in);
		q.len = 1 + fuzz_u8(&in) % GATE_PIECE;
		q.data_len = q.kind == GATE_PUT ? q.len : 0;
		break;
	case GATE_LEAVE:
		q.serial = 0;
		break;
	case GATE_CANCEL:
		if (!(addr.family & 1))
			break;
		/* mostly what it has heard */
		q.kind = GATE_HEARD;
		q.a0 = addr.family & 6 ? heard[q.guest][q.ticket].messages : addr.family >> 3;
		break;
	default:
		break;
	}
	got = q;
	/* what was asked already is answered as it was */
	got_number = q.kind == GATE_GET && !again ? q.number : 0;
	says_question(&q, msg, gate_question_put(role, msg, &q));
	check_got();
}

/* Who waits for what that question has asked for; NULL: nobody does */
static const struct wish *wish_of(const struct gate_question *q)
{
	struct link *const all = &sv->callers;
	const struct gate_caller *c;
	struct link *l;

	for (l = all->next; l != all; l = l->next) {
		c = container_of(l, struct gate_caller, of_service);
		if (c->id == q->guest && c->ticket[q->ticket] &&
		    c->ticket[q->ticket]->serial == q->serial)
			return c->ticket[q->ticket];
	}
	return NULL;
}

/*
 * Of a request with many: one before the end, if it is no error, or a piece of it: mostly what
 * follows what was heard. How many bytes of it came before.
 */
static uint32_t one_of_many(struct gate_result *r, const struct gate_question *q, uint32_t has)
{
	static const int8_t next[8] = { 0, 0, 0, 0, 0, 1, 2, -1 };
	const uint32_t share = q->len / (uint32_t)(q->a1 - 1), front = gate_front(has);
	const struct wish *w = wish_of(q);

	r->number = (w ? w->heard : 0) + (uint64_t)next[fuzz_u8(&in) % 8];
	r->addr = NULL;
	if (r->result < 0 || share < front)
		return 0;
	r->kind = GATE_MORE;
	r->result = (int)least((uint32_t)r->result, share - front);
	if (w && w->moved) {
		r->result = w->result;
		r->value = w->value;
	}
	r->len = gate_share(has, share, r->result);
	return w && w->moved < r->len ? w->moved : 0;
}

/* An answer, or an end, to one of the questions that were asked; most of it as it should be */
static void answers(void)
{
	unsigned char msg[RGATE_HUB_MSG_MAX], data[GATE_PIECE];
	const struct rgate_socket_addr addr = { .family = 1 };
	const uint8_t how = fuzz_u8(&in);
	struct gate_question q;
	struct gate_result r;
	const struct msg *m;
	unsigned int back;
	uint32_t before = 0;

	if (!o.peer.asked.n)
		return;
	back = 1 + fuzz_u8(&in) % 16;
	if (back > o.peer.asked.n)
		return;
	m = &o.peer.asked.m[o.peer.asked.n - back];
	FUZZ_CHECK(!gate_question_get(role, &q, m->data, m->len));
	memset(data, fuzz_u8(&in), sizeof(data));
	r = (struct gate_result){ .kind = how & 1 ? GATE_DONE : q.kind, .number = q.number };
	if (how & 1) {
		const int has = gate_op_has(role, q.op);

		r.guest = q.guest;
		r.number = 0;
		r.serial = q.serial + (how >> 6 == 3);
		r.ticket = q.ticket;
		r.result = how & 2 ? -(int)fuzz_u8(&in) : (int)(fuzz_u16(&in) % (q.len + 1));
		/* all of it, or more than it can be */
		if (!(how & 2) && how & 24)
			r.result = (int)q.len + ((how & 24) == 24 ? fuzz_u8(&in) : 0);
		r.value = fuzz_u8(&in);
		if (r.result >= 0 && has >= 0)
			r.len = has & GATE_HAS_OUT ? (uint32_t)r.result :
				has & GATE_HAS_WHOLE ? q.len : 0;
		if (how & 4)
			r.len = fuzz_u16(&in);
		r.addr = r.result >= 0 && has >= 0 && has & GATE_HAS_FROM ? &addr : NULL;
		if (q.kind == GATE_SUBMIT_MANY)
			before = one_of_many(&r, &q, (uint32_t)has);
	} else {
		r.result = how & 2 ? -(int)fuzz_u8(&in) : 0;
		r.len = q.kind == GATE_GET ? q.len : 0;
		if (how & 4)
			r.len = how & 8 ? GATE_PIECE : fuzz_u8(&in);
	}
	r.data = data;
	r.data_len = r.len - before;
	says(false, msg, gate_answer_put(role, msg, &r));
}

static void check_more(const struct gate_result *r)
{
	struct heard *h = heard_of(r->guest, r->ticket);

	if (!h)
		return;
	if (h->serial != r->serial)
		*h = (struct heard){ .serial = r->serial };
	FUZZ_CHECK(r->number == h->messages);
	FUZZ_CHECK(!h->silent || (r->kind == GATE_DONE && !r->number));
	h->messages += r->kind == GATE_MORE;
}

static void check_said(void)
{
	struct gate_result r;
	struct msg m;

	while (other_heard(&m)) {
		FUZZ_CHECK(!gate_answer_get(&r, m.data, m.len));
		if (r.kind == GATE_MORE || r.kind == GATE_DONE)
			check_more(&r);
	}
	/* and what was asked is answered late, but not for ever */
	while (o.peer.asked.n > ASKED)
		(void)msgs_take(&o.peer.asked, &m);
}

static void step(void)
{
	unsigned int i;
	bool other;

	switch (fuzz_u8(&in) % 10) {
	case 0:
		raw();
		break;
	case 1:
	case 2:
	case 3:
		asks();
		break;
	case 4:
		complete();
		break;
	case 5:
		wish();
		break;
	case 6:
	case 7:
		answers();
		break;
	case 8:
		if (o.peer.up) {
			other_goes_down();
			break;
		}
		other = fuzz_u8(&in) & 1;
		for (i = 0; i < 257 * 8; i++)
			heard[i / 8][i % 8].silent = true;
		if (other)
			memset(heard, 0, sizeof(heard));
		number = other ? 0 : number;
		other_comes_up(o.peer.incarnation + other);
		break;
	default:
		o.peer.full = o.peer.send_full = fuzz_u8(&in) & 1;
		o.peer.held = fuzz_u8(&in) & 1;
		no_room = fuzz_u8(&in) % 8 == 0;
		may_all = fuzz_u8(&in) % 4 == 0;
		leave(&seats[fuzz_u8(&in) & 1]);
	}
	(void)o.hub.asks.tick(o.hub.ctx);
	check_said();
	forget_ended();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gate_opts opts = { .sz = sizeof(opts), .hub = HUB, .may = may,
				  .engine = (struct rgate_engine *)&sv, .gateway = OTHER };
	unsigned int i;

	in = (struct fuzz_in){ .p = data, .len = size };
	role = opts.role = size && data[0] == 0xff ? &gate_queues : &gate_sockets;
	may_all = no_room = false;
	number = 0;
	memset(reqs, 0, sizeof(reqs));
	memset(seats, 0, sizeof(seats));
	memset(heard, 0, sizeof(heard));
	seats[0].uid = 1;
	seats[1].uid = 2;
	other_init(role->service);
	FUZZ_CHECK(!gate_service_create(&sv, &opts));
	other_comes_up(1);
	for (i = 0; in.len && i < STEPS; i++)
		step();
	gate_service_quit(sv);
	for (i = 0; i < WISHES; i++)
		FUZZ_CHECK(!reqs[i].seat || reqs[i].ended);
	for (i = 0; i < GUESTS; i++)
		FUZZ_CHECK(!sessions[i].there);
	for (i = 0; i < 2; i++)
		if (seats[i].object)
			gate_caller_leave(seats[i].object);
	gate_service_destroy(sv);
	FUZZ_CHECK(!o.hub.node.stage.lent);
	return 0;
}
