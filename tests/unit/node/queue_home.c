// SPDX-License-Identifier: MIT OR GPL-2.0
#include "queue_home.h"

#include <errno.h>
#include <string.h>

struct home home;

static unsigned int seen;		/* questions */

int home_setup(void **state)
{
	memset(&home, 0, sizeof(home));
	home.serial = 5;
	home.next = 1;
	home.info = (struct rgate_queue_info){
		.bytes_max = 4096, .tasks_max = 77, .attempts = 9, .run_ms = 11, .result_ms = 13,
		.flags = RGATE_QUEUE_KEEP | RGATE_QUEUE_WORK,
	};
	seen = 0;
	return setup(state);
}

int home_setup_silent(void **state)
{
	(void)home_setup(state);
	(void)teardown(state);
	return setup_silent(state);
}

void home_ends(const struct gate_question *q, int result, uint64_t value, const void *data,
	       uint32_t len)
{
	say((struct gate_result){
		.kind = GATE_DONE, .guest = q->guest, .serial = q->serial, .ticket = q->ticket,
		.result = result, .value = value, .data = data, .data_len = len, .len = len });
}

static void opens(const struct gate_question *q)
{
	const uint32_t flags = (uint32_t)(q->a1 >> 32);
	int result = 0;

	home.opens++;
	if (flags & RGATE_QUEUE_EXCLUSIVE) {
		result = home.there ? -EEXIST : 0;
		home.makes++;
		assert_int_equal(q->data_len, sizeof(home.place));
		memcpy(&home.place, q->data, sizeof(home.place));
	} else if (home.hidden || (!home.there && !(flags & RGATE_QUEUE_CREATE))) {
		result = -ENOENT;
	}
	home.there |= !result;
	home_ends(q, result, result ? 0 : 77, NULL, 0);
}

void home_tells(const struct gate_question *q, const uint64_t *ids, uint32_t n, uint32_t flags)
{
	struct {
		struct rgate_queue_ends head;
		uint64_t ids[20];
	} msg = { .head = { .queue = home.serial, .n = n, .flags = flags } };

	assert_true(n <= 20);
	if (n)
		memcpy(msg.ids, ids, n * sizeof(ids[0]));
	home_ends(q, (int)(sizeof(msg.head) + n * sizeof(ids[0])), home.next += n, &msg,
		  (uint32_t)(sizeof(msg.head) + n * sizeof(ids[0])));
}

static void is_followed(const struct gate_question *q)
{
	assert_true(q->a1 >> 32);
	home.looks += !q->a0;
	if ((uint32_t)q->a1 & RGATE_FOLLOW_NOW) {
		home.asked_now++;
		home_tells(q, &home.ended, q->a0 && home.ended, 0);
		home.ended = q->a0 ? 0 : home.ended;
		return;
	}
	if (home.crowded) {
		home_ends(q, -ENOBUFS, 0, NULL, 0);
		return;
	}
	if (home.deaf)
		return;
	assert_false(home.followed);
	home.followed = true;
	home.follow = *q;
}

/* All tasks are small: they come with the request. */
static uint32_t reads(const struct gate_question *q)
{
	const unsigned char *mem = q->data;
	struct rgate_queue_put *put;
	uint32_t off, n = 0;

	assert_int_equal(q->data_len, q->len);
	for (off = 0; off < q->len && (!home.takes || n < home.takes); n++) {
		assert_true(home.ngot < HOME_TASKS - 1);
		put = &home.puts[home.ngot];
		memcpy(put, mem + off, sizeof(*put));
		home.got[home.ngot++] = (char)mem[off + sizeof(*put)];
		off += (uint32_t)(sizeof(*put) + RGATE_QUEUE_PADDED(put->len));
	}
	return n;
}

static void gets_tasks(const struct gate_question *q)
{
	uint32_t n;

	home.submits++;
	assert_true(q->a1 >> 32);
	if (home.fails) {
		home_ends(q, home.fails, 0, NULL, 0);
		home.fails = 0;
		return;
	}
	n = reads(q);
	if (home.holds) {
		assert_true(home.nheld < HOME_HELD);
		home.held[home.nheld] = *q;
		/* until then: how many */
		home.held[home.nheld].len = n;
		home.first[home.nheld++] = home.last + 1;
		home.last += n;
		return;
	}
	home_ends(q, (int)n, (uint64_t)home.serial << 40 | (home.last + 1), NULL, 0);
	home.last += n;
}

void home_lets_go(unsigned int i, uint32_t n)
{
	home_ends(&home.held[i], (int)n, (uint64_t)home.serial << 40 | home.first[i], NULL, 0);
}

static void copies_asked(const struct gate_question *q)
{
	/* nothing else of it is sent */
	assert_int_equal(q->data_len, sizeof(home.has));
	assert_int_equal(q->len, RGATE_QUEUE_PART_MAX);
	memcpy(&home.has, q->data, sizeof(home.has));
	home.copying = *q;
	if (q->a1 & RGATE_COPIES_NOW) {
		home.copied_now++;
		home_copies(&(struct rgate_queue_copies){ .after = home.has.after }, NULL, 0, "");
		return;
	}
	assert_false(home.copied);
	home.copied = true;
}

void home_copies(const struct rgate_queue_copies *as, const uint64_t *ends, uint64_t id,
		 const char *letters)
{
	struct rgate_queue_copy copy = { .tag = 3, .put = { .len = 1 } };
	struct rgate_queue_copies head = *as;
	unsigned char msg[GATE_PIECE] = { 0 };
	uint32_t len = sizeof(head) + head.ends * 8;

	if (ends)
		memcpy(msg + sizeof(head), ends, head.ends * 8);
	for (; *letters; letters++, len += sizeof(copy) + 8, id++, head.copies++) {
		assert_true(len + sizeof(copy) + 8 <= sizeof(msg));
		copy.id = id;
		copy.origin.process = home.info.submitted + 1;
		copy.origin.word = (uint64_t)home.serial << 40 | id;
		memcpy(msg + len, &copy, sizeof(copy));
		msg[len + sizeof(copy)] = (unsigned char)*letters;
	}
	head.queue = as->queue ? as->queue : home.serial;
	head.next = home.next += head.ends;
	head.process = home.info.submitted + 1;
	memcpy(msg, &head, sizeof(head));
	home.copied = false;
	home_ends(&home.copying, (int)len, head.next, msg, len);
}

static void comes_again(const struct gate_question *q)
{
	const unsigned char *mem = q->data;
	struct rgate_queue_copy *copy;
	uint32_t off, n = 0;

	home.submits++;
	for (off = 0; off < q->len; n++) {
		copy = &home.again[home.ngot];
		memcpy(copy, mem + off, sizeof(*copy));
		home.puts[home.ngot] = copy->put;
		home.got[home.ngot++] = (char)mem[off + sizeof(*copy)];
		off += (uint32_t)(sizeof(*copy) + RGATE_QUEUE_PADDED(copy->put.len));
	}
	home_ends(q, (int)n, (uint64_t)home.serial << 40 | (home.was ? home.was : home.last + 1),
		  NULL, 0);
	home.last += home.was ? 0 : n;
}

static void is_over(const struct gate_question *q)
{
	unsigned char bits[RGATE_QUEUE_OVER_MAX / 8];
	uint64_t word;

	home.overs++;
	assert_true(q->data_len >= sizeof(word) && q->a0 >= 1 && q->a0 < 64);
	memcpy(bits, q->data, q->data_len);
	memcpy(&word, bits, sizeof(word));
	word = (word & (home.over >> (q->a0 - 1))) | home.adds;
	memcpy(bits, &word, sizeof(word));
	home_ends(q, (int)q->len, 0, bits, q->len);
}

static void carries_out(const struct gate_question *q)
{
	switch (q->op) {
	case RGATE_REQ_QUEUE_OPEN:
		opens(q);
		break;
	case RGATE_REQ_QUEUE_FOLLOW:
		is_followed(q);
		break;
	case RGATE_REQ_QUEUE_STATE:
		say((struct gate_result){
			.kind = GATE_DONE, .guest = q->guest, .serial = q->serial,
			.ticket = q->ticket, .data = &home.info, .data_len = GATE_PIECE,
			.len = sizeof(home.info) });
		break;
	case RGATE_REQ_QUEUE_SUBMIT:
		gets_tasks(q);
		break;
	case RGATE_REQ_QUEUE_OVER:
		is_over(q);
		break;
	case RGATE_REQ_QUEUE_COPIES:
		copies_asked(q);
		break;
	case RGATE_REQ_QUEUE_AGAIN:
		comes_again(q);
		break;
	case RGATE_REQ_QUEUE_WAIT:
		break;
	case RGATE_REQ_QUEUE_REMOVE:
		home.removes++;
		home.there = false;
		home_ends(q, 0, 0, NULL, 0);
		break;
	default:
		assert_int_equal(q->op, RGATE_REQ_QUEUE_CLOSE);
		home.closes++;
		home_ends(q, 0, 0, NULL, 0);
	}
}

static void hears(unsigned int i)
{
	const struct gate_question q = question(i);

	switch (q.kind) {
	case GATE_SUBMIT:
		answer(i, 0);
		carries_out(&q);
		break;
	case GATE_GET:
		say((struct gate_result){
			.kind = GATE_GET, .number = q.number, .len = q.len,
			.data = (const char *)&home.info + q.off, .data_len = q.len });
		break;
	default:
		home.leaves += q.kind == GATE_LEAVE;
		answer(i, 0);
	}
}

void run(void)
{
	turn();
	while (seen < o.peer.asked.n)
		hears(seen++);
}

void home_dies(uint64_t incarnation, uint32_t serial)
{
	other_goes_down();
	home.there = serial != 0;
	home.serial = serial ? serial : 1;
	home.last = 0;
	home.followed = home.copied = false;
	home.next = 1;
	home.nheld = 0;
	home.ngot = 0;
	memset(home.got, 0, sizeof(home.got));
	other_comes_up(incarnation);
}

/* ---- The program ---- */

uint32_t open_far_as(const char *name, uid_t owner, uint32_t flags)
{
	struct rgate_request q = open_of(name, OTHER, flags);
	uint64_t n, value;

	q.a1 = RGATE_QUEUE_OPEN_A1(owner, flags);
	n = submit(q);
	run();
	assert_int_equal(result_of(n, &value), 0);
	return (uint32_t)value;
}

uint32_t open_far(void)
{
	return open_far_as("far", ME, RGATE_QUEUE_CREATE);
}

uint64_t puts_as(uint32_t h, const char *letters, struct rgate_queue_put put)
{
	unsigned char *to = a.mem;

	put.len = 1;
	for (; *letters; letters++, to += sizeof(put) + 8) {
		memset(to, 0, sizeof(put) + 8);
		memcpy(to, &put, sizeof(put));
		to[sizeof(put)] = (unsigned char)*letters;
	}
	return submit(REQ(SUBMIT, .handle = h, .len = (uint32_t)(to - a.mem)));
}

uint64_t puts_some(uint32_t h, const char *letters)
{
	return puts_as(h, letters, (struct rgate_queue_put){ .len = 0 });
}

void put_far(uint32_t h, const char *letters)
{
	const uint64_t n = puts_some(h, letters);

	run();
	assert_int_equal(result_of(n, NULL), strlen(letters));
}

void home_stands_still(void)
{
	unsigned int i;

	other_goes_down();
	home.followed = home.copied = false;
	for (i = 0; i < 8; i++) {
		turn();
		usleep(SILENT_MS * 1000 / 2);
	}
	other_comes_up(7);
}
