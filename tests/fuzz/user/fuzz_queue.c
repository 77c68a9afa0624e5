// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * What sessions ask of queues of tasks, with any words and bytes, while time passes and sessions
 * end. Nothing is read or written beside what a request names; each request ends once; a task is
 * in one state, and its worker alone completes it, once; what queues and users have adds up, and
 * keeps to the limits; nobody waits for what is there.
 */
#include <errno.h>

#include "board.h"
#include "fuzz.h"
#include "queue_priv.h"

#define STEPS	96
#define USERS	3U
#define SEATS	5U		/* the last two are guests, of other nodes, of the first user */
#define PROCESS	5U
#define HANDLES	6U
#define WAITING	24U

struct rgate_seat {
	uid_t uid;
	struct opened *handles[HANDLES];
};

struct rgate_req {
	struct rgate_request q;
	struct rgate_seat *seat;
	struct opened *object;
	unsigned char *mem;
	void *data;
	uint64_t value;
	bool waits;		/* begin() has returned RGATE_REQ_LATER */
	bool ended;		/* before that */
};

static struct rgate_seat seats[SEATS];
static struct rgate_req *waiting[WAITING];
static struct rgate_req *begins;
static struct queue_service *service;
static uint64_t now;

const struct rgate_request *__wrap_rgate_req_get(const struct rgate_req *r);
struct rgate_seat *__wrap_rgate_req_seat(const struct rgate_req *r);
void *__wrap_rgate_req_mem(const struct rgate_req *r);
void *__wrap_rgate_req_data(const struct rgate_req *r);
void *__wrap_rgate_req_object(const struct rgate_req *r);
void __wrap_rgate_req_set_data(struct rgate_req *r, void *data);
void __wrap_rgate_req_set_value(struct rgate_req *r, uint64_t value);
void __wrap_rgate_req_end(struct rgate_req *r, int result, uint64_t value);
uid_t __wrap_rgate_seat_uid(const struct rgate_seat *seat);
int __wrap_rgate_seat_handle(struct rgate_seat *seat, uint32_t number, void *object,
			     uint32_t *handle);
void *__wrap_rgate_seat_release(struct rgate_seat *seat, uint32_t number, uint32_t handle);

/* ---- The engine ---- */

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
	return r->q.len ? r->mem : NULL;
}

void *__wrap_rgate_req_data(const struct rgate_req *r)
{
	return r->data;
}

void *__wrap_rgate_req_object(const struct rgate_req *r)
{
	return r->object;
}

void __wrap_rgate_req_set_data(struct rgate_req *r, void *data)
{
	r->data = data;
}

void __wrap_rgate_req_set_value(struct rgate_req *r, uint64_t value)
{
	FUZZ_CHECK(!r->waits);
	r->value = value;
}

uid_t __wrap_rgate_seat_uid(const struct rgate_seat *seat)
{
	return seat->uid;
}

int __wrap_rgate_seat_handle(struct rgate_seat *seat, uint32_t number, void *object,
			     uint32_t *handle)
{
	unsigned int i;

	FUZZ_CHECK(number == RGATE_REQ_QUEUE);
	for (i = 0; i < HANDLES; i++) {
		if (seat->handles[i])
			continue;
		seat->handles[i] = object;
		*handle = i + 1;
		return 0;
	}
	return -EDQUOT;
}

void *__wrap_rgate_seat_release(struct rgate_seat *seat, uint32_t number, uint32_t handle)
{
	void *object;

	FUZZ_CHECK(number == RGATE_REQ_QUEUE && handle && handle <= HANDLES);
	object = seat->handles[handle - 1];
	FUZZ_CHECK(object);
	seat->handles[handle - 1] = NULL;
	return object;
}

/* ---- Other nodes: 0 and 2, which nobody can ask ---- */

int __wrap_gate_service_find(const struct gate_service *s, uint64_t number, uint32_t *node);
int __wrap_gate_service_whose(struct gate_service *s, const struct rgate_seat *seat,
			      uint32_t *node);
uint64_t __wrap_gate_service_process(const struct gate_service *s);
int __wrap_gate_service_limits(struct gate_service *s, uid_t uid, struct rgate_limits *limits);
int __wrap_gate_forward_cancel(struct gate_service *s, struct rgate_req *r);

int __wrap_gate_service_find(const struct gate_service *s, uint64_t number, uint32_t *node)
{
	(void)s;
	*node = number == 1 || number == RGATE_QUEUE_HERE ? BOARD_HERE : (uint32_t)number;
	return *node == BOARD_HERE || number < USERS ? 0 : -ENXIO;
}

int __wrap_gate_service_whose(struct gate_service *s, const struct rgate_seat *seat, uint32_t *node)
{
	(void)s;
	*node = seat == &seats[USERS] ? 2 : 0;
	return seat >= &seats[USERS] ? 0 : -ENOENT;
}

uint64_t __wrap_gate_service_process(const struct gate_service *s)
{
	(void)s;
	return PROCESS;
}

int __wrap_gate_service_limits(struct gate_service *s, uid_t uid, struct rgate_limits *limits)
{
	(void)s;
	(void)uid;
	(void)limits;
	return -EACCES;
}

int __wrap_gate_forward_cancel(struct gate_service *s, struct rgate_req *r)
{
	(void)s;
	(void)r;
	return -ENOENT;
}

/* What a request says that it has written */
static void check_result(const struct rgate_req *r, int result)
{
	FUZZ_CHECK(result >= -4095 && result <= (int)(2 * RGATE_QUEUE_PART_MAX));
	if (result > 0 && (r->q.op == RGATE_REQ_QUEUE_CLAIM || r->q.op == RGATE_REQ_QUEUE_PEEK ||
			   r->q.op == RGATE_REQ_QUEUE_WAIT || r->q.op == RGATE_REQ_QUEUE_FOLLOW ||
			   r->q.op == RGATE_REQ_QUEUE_OVER || r->q.op == RGATE_REQ_QUEUE_COPIES))
		FUZZ_CHECK((uint32_t)result <= r->q.len);
}

static void free_request(struct rgate_req *r)
{
	free(r->mem);
	free(r);
}

void __wrap_rgate_req_end(struct rgate_req *r, int result, uint64_t value)
{
	unsigned int i;

	(void)value;
	if (r == begins) {
		FUZZ_CHECK(!r->ended);
		r->ended = true;
		return;
	}
	for (i = 0; i < WAITING && waiting[i] != r; i++)
		;
	FUZZ_CHECK(i < WAITING && r->waits);
	waiting[i] = NULL;
	check_result(r, result);
	free_request(r);
}

static const struct rgate_req_op *op_of(const struct rgate_req *r)
{
	return &queue_requests.ops[r->q.op & ((1U << RGATE_REQ_OP_SHIFT) - 1)];
}

/* What waits for a copy only, or has lost its handle, ends as what it is. */
static void cancel(unsigned int i)
{
	struct rgate_req *r = waiting[i];
	bool submit;
	int err;

	if (!r)
		return;
	submit = r->q.op == RGATE_REQ_QUEUE_SUBMIT;
	err = op_of(r)->cancel(r, service);
	FUZZ_CHECK(!err || (err == -EALREADY && submit));
	FUZZ_CHECK(!waiting[i]);
}

/* Takes @r, whatever comes of it. No place to wait: it is cancelled at once */
static void begin(struct rgate_req *r)
{
	unsigned int i;
	int result;

	begins = r;
	result = op_of(r)->begin(r, service);
	begins = NULL;
	if (result != RGATE_REQ_LATER || r->ended) {
		FUZZ_CHECK(!r->data && r->ended == (result == RGATE_REQ_LATER));
		check_result(r, r->ended ? 0 : result);
		free_request(r);
		return;
	}
	r->waits = true;
	for (i = 0; i < WAITING - 1 && waiting[i]; i++)
		;
	FUZZ_CHECK(!waiting[i]);
	waiting[i] = r;
	if (i == WAITING - 1)
		cancel(i);
}

/* As a client may, while it waits */
static void scribble(struct fuzz_in *in)
{
	struct rgate_req *r = waiting[fuzz_u8(in) % WAITING];

	if (r && r->q.len)
		fuzz_bytes(in, r->mem, r->q.len < 40 ? r->q.len : 40);
}

/* All that it waits for is cancelled, then its handles are dropped. */
static void leave(struct rgate_seat *seat)
{
	struct opened *o;
	unsigned int i;

	for (i = 0; i < WAITING; i++)
		if (waiting[i] && waiting[i]->seat == seat)
			cancel(i);
	for (i = 0; i < HANDLES; i++) {
		o = seat->handles[i];
		seat->handles[i] = NULL;
		if (o)
			queue_requests.drop(o, service);
	}
}

/* ---- What has to hold ---- */

static uint64_t check_task(const struct queue *q, const struct task *t)
{
	const bool claimed = t->state == RGATE_TASK_CLAIMED || t->state == RGATE_TASK_RUNNING;
	bool timed = t->state == RGATE_TASK_DELAYED || t->state == RGATE_TASK_DONE;

	timed |= t->state == RGATE_TASK_RUNNING && q->rules.run_ms;
	FUZZ_CHECK(t->state && t->state < RGATE_TASK_STATES);
	FUZZ_CHECK(queue_find(q, t->id) == t && t->id <= q->last);
	FUZZ_CHECK(!t->worker == !claimed);
	FUZZ_CHECK(heap_has(&t->timer) == timed);
	FUZZ_CHECK(t->attempts <= t->most);
	FUZZ_CHECK(t->state != RGATE_TASK_READY || q->types[t->priority] & 1ULL << t->type);
	FUZZ_CHECK(!t->end == !t->end_len);
	FUZZ_CHECK(list_empty(&t->waiters) ||
		   (t->state != RGATE_TASK_DONE && t->state != RGATE_TASK_BURIED));
	return sizeof(*t) + t->len + t->end_len;
}

static void check_waiters(const struct queue *q)
{
	const uint64_t ready = q->types[0] | q->types[1] | q->types[2] | q->types[3];
	const struct waiter *w;
	struct follower who;
	const struct link *l;
	uint32_t n = 0;
	uint64_t id;
	bool missed;

	for (l = q->claims.next; l != &q->claims; l = l->next, n++)
		FUZZ_CHECK(!(container_of(l, struct waiter, in)->types & ready));
	FUZZ_CHECK(n == q->nclaims);
	FUZZ_CHECK(list_empty(&q->idle) || !queue_is_idle(q));
	for (l = q->follows.next; l != &q->follows; l = l->next) {
		w = container_of(l, struct waiter, in);
		who = w->who;
		FUZZ_CHECK(!queue_ends_take(q, &who, &id, 1, &missed) && !missed);
	}
	/* or they have it with the next tick */
	if (list_empty(&q->rooms) || !list_empty(&q->of_due))
		return;
	w = container_of(q->rooms.next, struct waiter, in);
	FUZZ_CHECK(q->n >= q->rules.tasks || q->count.bytes + w->most > q->rules.bytes);
	/* or it would wait for ever, and all others behind it */
	FUZZ_CHECK(w->most <= q->rules.bytes);
}

/* Who has copies, and who waits for them; what came again */
static uint64_t check_mirror(const struct queue *q)
{
	struct mirror *m = q->mirror;
	uint32_t n = 0, handles = 0;
	const struct copier *c;
	const struct held *h;
	const struct link *l;

	FUZZ_CHECK(!m == !(q->rules.flags & RGATE_QUEUE_MIRROR));
	if (!m)
		return 0;
	for (c = m->copier; c < m->copier + MIRROR_COPIERS; c++) {
		handles += c->by != NULL;
		FUZZ_CHECK(c->acked <= q->last && c->sent <= q->last);
		FUZZ_CHECK(c->flies || c->at != &q->tasks || !c->by || c->acked == q->last);
		for (l = q->tasks.next, n = 0; l != &q->tasks; l = l->next)
			n += c->at == l;
		FUZZ_CHECK(n == 1 || c->at == &q->tasks);
	}
	FUZZ_CHECK(handles == m->handles);
	for (l = m->held.next; l != &m->held; l = l->next) {
		h = container_of(l, struct held, in);
		FUZZ_CHECK(h->last <= q->last && !q->removed);
	}
	return m->norigins * sizeof(struct origin) + m->places * sizeof(struct origin *);
}

static uint64_t check_queue(const struct queue *q)
{
	uint32_t n = 0, of[RGATE_TASK_STATES] = { 0 };
	uint64_t all = 0, bytes = 0, results = 0;
	const struct task *t;
	const struct link *l;
	unsigned int i;

	for (l = q->tasks.next; l != &q->tasks; l = l->next, n++) {
		t = container_of(l, struct task, of_queue);
		all += check_task(q, t);
		bytes += t->len;
		results += t->state == RGATE_TASK_DONE ? t->end_len : 0;
		of[t->state]++;
	}
	for (i = 0; i < RGATE_TASK_STATES; i++)
		FUZZ_CHECK(q->count.now[i] == of[i]);
	FUZZ_CHECK(n == q->n && n <= q->rules.tasks);
	FUZZ_CHECK(bytes == q->count.bytes && bytes <= q->rules.bytes);
	FUZZ_CHECK(results == q->count.result_bytes && results <= q->rules.bytes);
	FUZZ_CHECK(q->count.done <= q->count.submitted);
	FUZZ_CHECK(q->handles || q->n || q->rules.flags & RGATE_QUEUE_KEEP);
	check_waiters(q);
	return all + q->places * sizeof(struct task *) + check_mirror(q);
}

static void check(void)
{
	const struct queues *home = &service->home;
	uint32_t queues = 0, tasks = 0;
	uint64_t bytes = 0;
	const struct queue *q;
	const struct link *l;

	for (l = home->all.next; l != &home->all; l = l->next, queues++) {
		q = container_of(l, struct queue, of_home);
		bytes += check_queue(q);
		tasks += q->n;
	}
	/* What is left of those that were removed goes with the next ticks. */
	for (l = home->removed.next; l != &home->removed; l = l->next, queues++) {
		q = container_of(l, struct queue, of_home);
		bytes += check_queue(q);
		tasks += q->n;
	}
	FUZZ_CHECK(bytes == home->bytes && tasks == home->ntasks);
	for (l = home->quotas.next; l != &home->quotas; l = l->next)
		bytes -= container_of(l, struct quota, of_home)->bytes;
	FUZZ_CHECK(!bytes && queues <= home->n);
}

/* ---- Requests ---- */

static uint64_t clock_now(void)
{
	return now;
}

static void pass_time(struct fuzz_in *in)
{
	unsigned int i;

	now += fuzz_u16(in) * 1000000ULL;
	for (i = 0; i < 8 && queue_requests.tick(service, now) <= now; i++)
		;
}

/* A few names, small limits: they meet */
static void write_place(struct fuzz_in *in, struct rgate_req *r)
{
	struct rgate_queue_place p = {
		.bytes = fuzz_u8(in) * 16, .tasks = fuzz_u8(in) % 8, .attempts = fuzz_u8(in) % 4,
		.run_ms = fuzz_u8(in), .result_ms = fuzz_u8(in), .name[0] = 'a',
	};

	p.name[0] = (char)(p.name[0] + fuzz_u8(in) % 3);
	r->q.a0 = RGATE_QUEUE_HERE;
	r->q.a1 = RGATE_QUEUE_OPEN_A1(fuzz_u8(in) % USERS, fuzz_u8(in) & RGATE_QUEUE_FLAGS);
	r->q.len = sizeof(p);
	r->mem = realloc(r->mem, sizeof(p));
	memcpy(r->mem, &p, sizeof(p));
}

static void write_tasks(struct fuzz_in *in, struct rgate_req *r)
{
	unsigned int i, n = 1 + fuzz_u8(in) % 3;
	uint32_t off = 0, step;

	r->mem = realloc(r->mem, 3 * (sizeof(struct rgate_queue_put) + 256));
	for (i = 0; i < n; i++, off += step) {
		struct rgate_queue_put put = {
			.len = fuzz_u8(in), .delay_ms = fuzz_u8(in) & 0x8f, .type = fuzz_u8(in) % 4,
			.priority = fuzz_u8(in) % RGATE_QUEUE_PRIORITIES, .flags = fuzz_u8(in) & 1,
		};

		step = (uint32_t)(sizeof(put) + RGATE_QUEUE_PADDED(put.len));
		memset(r->mem + off, (int)i, step);
		memcpy(r->mem + off, &put, sizeof(put));
	}
	r->q.len = off;
	r->mem = realloc(r->mem, off);
	r->q.a1 = RGATE_SUBMIT_A1(fuzz_u8(in) % 3, fuzz_u8(in) & RGATE_SUBMIT_ROOM);
}

/* Of this process, and of others */
static void write_again(struct fuzz_in *in, struct rgate_req *r)
{
	unsigned int i, n = 1 + fuzz_u8(in) % 3;
	uint32_t off = 0, step;

	r->mem = realloc(r->mem, 3 * (sizeof(struct rgate_queue_copy) + 32));
	for (i = 0; i < n; i++, off += step) {
		struct rgate_queue_copy copy = {
			.origin.process = PROCESS + fuzz_u8(in) % 3, .tag = fuzz_u8(in) % 3,
			.origin.word = (uint64_t)(fuzz_u8(in) % 4) << 40 | fuzz_u8(in) % 16,
			.put.len = fuzz_u8(in) % 32, .put.type = fuzz_u8(in) % 4,
		};

		step = (uint32_t)(sizeof(copy) + RGATE_QUEUE_PADDED(copy.put.len));
		memset(r->mem + off, (int)i, step);
		memcpy(r->mem + off, &copy, sizeof(copy));
	}
	r->q.len = off;
	r->mem = realloc(r->mem, off);
}

static void write_copies(struct fuzz_in *in, struct rgate_req *r)
{
	const struct queue *q = r->object ? r->object->queue : NULL;
	const struct copier *c = q && q->mirror ? mirror_copier(q->mirror, r->object) : NULL;
	const struct rgate_queue_copies head = {
		.after = c && fuzz_u8(in) % 4 ? c->told : fuzz_u8(in) % 16,
		.next = fuzz_u8(in) % 8, .flags = fuzz_u8(in) % 16 ? 0 : RGATE_COPIES_FULL,
	};

	r->mem = realloc(r->mem, RGATE_QUEUE_PART_MAX);
	memcpy(r->mem, &head, sizeof(head));
	r->q.len = RGATE_QUEUE_PART_MAX;
	r->q.a1 = fuzz_u8(in) & RGATE_COPIES_NOW;
}

/* Some that there are, and some that are not theirs or of none */
static void write_ends(struct fuzz_in *in, struct rgate_req *r)
{
	const unsigned int n = 1 + fuzz_u8(in) % 4;
	struct queue *q = r->object ? r->object->queue : NULL;
	unsigned int i;

	r->mem = realloc(r->mem, 4 * 64);
	memset(r->mem, 0, 4 * 64);
	for (i = 0; i < n; i++) {
		const struct task *t = q && !q->removed ? queue_find(q, fuzz_u8(in) % 16) : NULL;
		struct rgate_queue_end end = { .size = 64, .len = fuzz_u8(in) % 48 };

		if (t) {
			end.id = t->id;
			end.claim = t->claim + !(fuzz_u8(in) % 8);
		}
		memcpy(r->mem + i * 64, &end, sizeof(end));
	}
	r->q.len = n * 64 - (fuzz_u8(in) % 8 ? 0 : 16);
	r->q.a1 = 0;
}

/* A task that there is, by the number of its claim */
static void name_task(struct fuzz_in *in, struct rgate_req *r)
{
	const struct task *t = r->object && !r->object->queue->removed ?
			       queue_find(r->object->queue, fuzz_u8(in) % 16) : NULL;

	if (!t)
		return;
	r->q.a0 = t->id;
	r->q.a1 = RGATE_TASK_A1(t->claim, r->q.op == RGATE_REQ_QUEUE_RELEASE ? fuzz_u8(in) : 0);
	if (r->q.op == RGATE_REQ_QUEUE_WAIT || r->q.op == RGATE_REQ_QUEUE_DISCARD)
		r->q.a1 = fuzz_u8(in);
}

static void write_sensibly(struct fuzz_in *in, struct rgate_req *r)
{
	switch (r->q.op) {
	case RGATE_REQ_QUEUE_AGAIN:
		write_again(in, r);
		break;
	case RGATE_REQ_QUEUE_COPIES:
		write_copies(in, r);
		break;
	case RGATE_REQ_QUEUE_OPEN:
	case RGATE_REQ_QUEUE_MIRROR:
		write_place(in, r);
		break;
	case RGATE_REQ_QUEUE_SUBMIT:
		write_tasks(in, r);
		break;
	case RGATE_REQ_QUEUE_COMPLETE_MANY:
		write_ends(in, r);
		break;
	case RGATE_REQ_QUEUE_CLAIM:
		r->q.a0 = fuzz_u8(in) % 16;
		r->q.a1 = RGATE_CLAIM_A1(1 + fuzz_u8(in) % 4, fuzz_u8(in) & RGATE_CLAIM_FLAGS);
		break;
	case RGATE_REQ_QUEUE_FOLLOW:
		r->q.a0 = fuzz_u8(in) % 8;
		r->q.a1 = RGATE_FOLLOW_A1(1 + fuzz_u8(in) % 2, fuzz_u8(in) & RGATE_FOLLOW_NOW);
		break;
	case RGATE_REQ_QUEUE_OVER:
		r->q.a0 = fuzz_u8(in) % 16;
		r->q.a1 = 0;
		r->q.len &= ~7U;
		break;
	default:
		name_task(in, r);
	}
}

static void request(struct fuzz_in *in)
{
	struct rgate_req *r = calloc(1, sizeof(*r));
	const struct rgate_req_op *op;
	size_t len;

	r->seat = &seats[fuzz_u8(in) % SEATS];
	r->q.op = (uint16_t)(RGATE_REQ_QUEUE << RGATE_REQ_OP_SHIFT |
			     fuzz_u8(in) % queue_requests.nops);
	op = op_of(r);
	if (op->uses & RGATE_USES_HANDLE)
		r->object = r->seat->handles[fuzz_u8(in) % HANDLES];
	r->q.a0 = fuzz_u8(in) & 1 ? fuzz_u64(in) : fuzz_u8(in);
	r->q.a1 = fuzz_u8(in) & 1 ? fuzz_u64(in) : fuzz_u8(in);
	len = fuzz_u8(in) & 1 ? sizeof(struct rgate_queue_info) : fuzz_u16(in) % 512;
	r->q.len = (uint32_t)len;
	r->mem = calloc(1, len ? len : 1);
	fuzz_bytes(in, r->mem, len < 64 ? len : 64);
	if (fuzz_u8(in) % 8)
		write_sensibly(in, r);
	/* Other nodes are fuzz_gate's. */
	if (!(op->uses & RGATE_USES_HANDLE) && r->q.a0 < USERS)
		r->q.a0 = RGATE_QUEUE_HERE;
	/* The engine lets nothing pass that the operation does not use, or that has no object. */
	if (!(op->uses & RGATE_USES_MEM))
		r->q.len = 0;
	if (!op->begin || (op->uses & RGATE_USES_HANDLE && !r->object))
		free_request(r);
	else
		begin(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct queue_opts o = { .sz = sizeof(o), .clock = clock_now,
				      .gate = (struct gate_service *)&now };
	struct fuzz_in in = { .p = data, .len = size };
	unsigned int i;

	now = 1000000000;
	memset(seats, 0, sizeof(seats));
	FUZZ_CHECK(!queue_service_create(&service, &o));
	for (i = 0; i < SEATS; i++)
		seats[i].uid = i < USERS ? i : 0;
	for (i = 0; in.len && i < STEPS; i++) {
		switch (fuzz_u8(&in) % 16) {
		case 0:
			pass_time(&in);
			break;
		case 1:
			cancel(fuzz_u8(&in) % WAITING);
			break;
		case 2:
			scribble(&in);
			break;
		case 3:
			if (!(fuzz_u8(&in) & 3))
				leave(&seats[fuzz_u8(&in) % SEATS]);
			break;
		default:
			request(&in);
		}
		check();
	}
	for (i = 0; i < SEATS; i++)
		leave(&seats[i]);
	for (i = 0; i < WAITING; i++)
		FUZZ_CHECK(!waiting[i]);
	check();
	queue_service_destroy(service);
	return 0;
}
