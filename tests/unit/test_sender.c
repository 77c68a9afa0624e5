// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Frames that are handed to the module, which is part of this program here: a ring's memory
 * of the test's own, an ioctl that answers as it is told to, and a descriptor to wait at.
 */
#include "unit.h"
#include "ring.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ringgate/ioctl.h>
#include <ringgate/rgate_sender.h>

#define SLOTS	64U
#define SIZE	256U

static unsigned char slots[SLOTS * SIZE] __attribute__((aligned(64)));
static uint64_t credits[SLOTS / RGATE_BATCH];
static struct rgate_prod prod;
static struct rgate_ring ring;
static struct rgate_sender s;

static struct {
	int err;
	uint32_t taken, budget;
	unsigned int calls;
} module;

int __wrap_ioctl(int fd, unsigned long req, ...);
int __wrap_ioctl(int fd, unsigned long req, ...)
{
	struct rgate_send *arg;
	va_list ap;

	va_start(ap, req);
	arg = va_arg(ap, struct rgate_send *);
	va_end(ap);
	assert_int_equal(fd, ring.fd);
	assert_int_equal(req, RGATE_IOC_SEND);
	module.calls++;
	module.budget = arg->budget;
	arg->taken = module.taken;
	errno = module.err;
	return module.err ? -1 : 0;
}

static int up(void **state)
{
	(void)state;
	memset(slots, 0, sizeof(slots));
	memset(credits, 0, sizeof(credits));
	memset(&prod, 0, sizeof(prod));
	memset(&module, 0, sizeof(module));
	ring = (struct rgate_ring){ .flags = RGATE_RING_TRANSMIT | RGATE_RING_RW_SLOTS, .fd = 99,
				    .slots_rw = slots };
	ring.view.nslots = SLOTS;
	ring.view.slot_size = SIZE;
	ring.view.credits = credits;
	ring.view.prod = &prod;
	return 0;
}

static struct rgate_tx_slot *slot_of(uint64_t pos)
{
	return (struct rgate_tx_slot *)(slots + pos % SLOTS * SIZE);
}

static void send_one(uint64_t pos)
{
	struct rgate_tx_slot *slot = rgate_sender_reserve(&s);

	assert_ptr_equal(slot, slot_of(pos));
	assert_ptr_equal(rgate_sender_reserve(&s), slot);
	rgate_sender_publish(&s, slot, 60, 0);
	assert_int_equal(slot->seq, pos / SLOTS + 1);
	assert_int_equal(slot->len, 60);
}

static void wrong_rings(void **state)
{
	(void)state;
	ring.flags = RGATE_RING_RW_SLOTS;
	assert_int_equal(rgate_sender_init(&s, &ring), -EOPNOTSUPP);
	ring.flags = RGATE_RING_TRANSMIT;
	ring.slots_rw = NULL;
	assert_int_equal(rgate_sender_init(&s, &ring), -EOPNOTSUPP);
}

/* A batch that the module has not returned is not written to, in this lap or a later one. */
static void goes_round(void **state)
{
	uint64_t pos;

	(void)state;
	memset(&s, 0xff, sizeof(s));
	assert_int_equal(rgate_sender_init(&s, &ring), 0);
	assert_int_equal(rgate_sender_room(&s), SIZE - RGATE_SLOT_HDR);
	for (pos = 0; pos < SLOTS; pos++)
		send_one(pos);
	assert_null(rgate_sender_reserve(&s));
	/* the second batch: that is not the one whose turn it is */
	credits[1] = 1;
	assert_null(rgate_sender_reserve(&s));
	credits[0] = 1;
	for (; pos < 2 * SLOTS; pos++)
		send_one(pos);
	assert_null(rgate_sender_reserve(&s));
	credits[0] = 2;
	for (; pos < 2 * SLOTS + RGATE_BATCH; pos++)
		send_one(pos);
	assert_null(rgate_sender_reserve(&s));
}

/* Whoever comes next goes on behind what was published, up to a full ring of it. */
static void follows(void **state)
{
	uint64_t pos;

	(void)state;
	prod.head = 3 * SLOTS + 5;
	credits[0] = credits[1] = 3;
	for (pos = prod.head; pos < prod.head + 30; pos++)
		slot_of(pos)->seq = pos / SLOTS + 1;
	/* what stands there from the lap before was taken then */
	slot_of(pos)->seq = pos / SLOTS;
	assert_int_equal(rgate_sender_init(&s, &ring), 0);
	assert_int_equal(s.pos, pos);
	for (; pos < 4 * SLOTS; pos++)
		send_one(pos);
	credits[0] = 0;
	for (pos = prod.head; pos < prod.head + SLOTS; pos++)
		slot_of(pos)->seq = pos / SLOTS + 1;
	assert_int_equal(rgate_sender_init(&s, &ring), 0);
	assert_int_equal(s.pos, prod.head + SLOTS);
	assert_null(rgate_sender_reserve(&s));
}

static void kicks(void **state)
{
	(void)state;
	assert_int_equal(rgate_sender_init(&s, &ring), 0);
	module.taken = 7;
	assert_int_equal(rgate_sender_kick(&s, 12), 7);
	assert_int_equal(module.budget, 12);
	module.err = EAGAIN;
	assert_int_equal(rgate_sender_kick(&s, 0), -EAGAIN);
	module.err = ENETDOWN;
	assert_int_equal(rgate_sender_kick(&s, 0), -ENETDOWN);
	module.err = 0;
	module.calls = 0;
	assert_int_equal(rgate_sender_flush(&s), 0);
	assert_int_equal(module.calls, 0);
	prod.need_wakeup = 1;
	assert_int_equal(rgate_sender_flush(&s), 7);
	assert_int_equal(module.calls, 1);
	assert_int_equal(module.budget, 0);
}

static void waits(void **state)
{
	int sv[2], none;

	(void)state;
	ring.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	assert_true(ring.fd >= 0);
	assert_int_equal(rgate_sender_init(&s, &ring), 0);
	assert_int_equal(rgate_sender_wait(&s, 0), 1);
	/* full: it cannot be written to */
	assert_int_equal(eventfd_write(ring.fd, UINT64_MAX - 1), 0);
	assert_int_equal(rgate_sender_wait(&s, 0), 0);
	assert_int_equal(rgate_sender_wait(&s, 10), 0);
	close(ring.fd);
	/* an end, and no room: what was waited for will not come */
	none = dup(0);
	close(none);
	ring.fd = none;
	assert_int_equal(rgate_sender_init(&s, &ring), 0);
	assert_int_equal(rgate_sender_wait(&s, 0), -EIO);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv), 0);
	ring.fd = sv[0];
	assert_int_equal(rgate_sender_init(&s, &ring), 0);
	assert_int_equal(rgate_sender_wait(&s, -1), 1);
	close(sv[0]);
	close(sv[1]);
}

#define TEST(fn) cmocka_unit_test_setup(fn, up)
static const struct CMUnitTest tests[] = {
	TEST(wrong_rings), TEST(goes_round), TEST(follows), TEST(kicks), TEST(waits),
};

UNIT_MAIN_ALONE(tests)
