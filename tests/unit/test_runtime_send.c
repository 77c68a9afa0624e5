// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * A runtime whose answers the module sends: a transmit ring's memory is the test's own, and so is
 * what the module does, on a CUDA of the test's own.
 */
#include "unit.h"
#include "ring.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <ringgate/ioctl.h>
#include <ringgate/rgate_sender.h>

#include "fake_cuda.h"
#include "runtime.h"

#define FRAME	60U
#define SLOTS	64U
#define SIZE	256U
#define MOST	4096U

/* As test_runtime_out has it */
#define FENCE	"a fence and what is stored behind it are a release, of which it knows nothing"

static struct {
	struct rgate_prod prod;
	struct rgate_cons cons;
	uint64_t credits[SLOTS / RGATE_BATCH];
	unsigned char slots[SLOTS * SIZE] __attribute__((aligned(64)));
} mem __attribute__((aligned(4096)));

static struct rgate_ring ring;

/* The module's side; atomic, as the runtime's thread asks it */
static struct {
	int err;
	bool for_closer;	/* who closes the runtime is the first whom it serves */
	pthread_t closer;
	uint32_t calls, sent, wrong, flags;
	unsigned char times[MOST];
} module;

static struct rgate_slot *slot_of(uint64_t pos)
{
	return (struct rgate_slot *)(mem.slots + pos % SLOTS * SIZE);
}

static bool take(uint64_t pos)
{
	struct rgate_slot *s = slot_of(pos);
	const uint64_t lap = pos / SLOTS + 1;
	uint32_t n;

	if (__atomic_load_n(&s->seq, __ATOMIC_ACQUIRE) != lap)
		return false;
	n = s->hash;
	module.flags |= s->flags;
	if (n < MOST && s->len == FRAME && !module.times[n]++ &&
	    !unit_pattern_check(mem.slots + pos % SLOTS * SIZE + RGATE_SLOT_HDR, n, FRAME))
		__atomic_fetch_add(&module.sent, 1, __ATOMIC_RELEASE);
	else
		__atomic_fetch_add(&module.wrong, 1, __ATOMIC_RELEASE);
	__atomic_store_n(&mem.prod.head, pos + 1, __ATOMIC_RELEASE);
	if (pos % RGATE_BATCH == RGATE_BATCH - 1)
		__atomic_store_n(&mem.credits[pos % SLOTS / RGATE_BATCH], lap, __ATOMIC_RELEASE);
	return true;
}

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
	__atomic_fetch_add(&module.calls, 1, __ATOMIC_RELAXED);
	errno = __atomic_load_n(&module.err, __ATOMIC_RELAXED);
	if (module.for_closer && !pthread_equal(pthread_self(), module.closer))
		errno = EAGAIN;
	if (errno)
		return -1;
	for (arg->taken = 0; !arg->budget || arg->taken < arg->budget; arg->taken++)
		if (!take(mem.prod.head))
			break;
	return 0;
}

/* The frame back, with its number, and all flags that there are */
static uint32_t echo(const struct rgate_dpkt *pkt, void *result, void *arg)
{
	(void)arg;
	memcpy(result, pkt->near, FRAME);
	rgate_dreply_header(result)->hash = (uint32_t)pkt->pos;
	return FRAME;
}

FAKE_LANES(echoing, echo, 64, 64);

static int up(void **state)
{
	memset(&mem, 0, sizeof(mem));
	memset(&module, 0, sizeof(module));
	mem.prod.features = RGATE_FEAT_TRANSMIT;
	mem.prod.need_wakeup = 1;
	ring = (struct rgate_ring){
		.flags = RGATE_RING_TRANSMIT | RGATE_RING_RW_SLOTS, .fd = 99, .ident.id = 7,
		.slots_rw = mem.slots,
		.view = { .prod = &mem.prod, .cons = &mem.cons, .credits = mem.credits,
			  .slots = mem.slots, .map_len = sizeof(mem), .nslots = SLOTS,
			  .slot_size = SIZE },
	};
	return fake_setup(state);
}

static void begin(struct runtime *r, uint32_t full)
{
	runtime_open(r, 0, 1, 256);
	assert_int_equal(rgate_gpu_bind_output(r->gpu, &ring, full), 0);
	assert_int_equal(rgate_gpu_start(r->gpu, &echoing, &r->start), 0);
}

static uint32_t sent(void)
{
	return __atomic_load_n(&module.sent, __ATOMIC_ACQUIRE) +
	       __atomic_load_n(&module.wrong, __ATOMIC_ACQUIRE);
}

static struct rgate_gpu_status status_of(struct runtime *r)
{
	struct rgate_gpu_status st = { .sz = sizeof(st) };

	assert_int_equal(rgate_gpu_query(r->gpu, &st), 0);
	return st;
}

/* Each once, round after round, with no flag that the module refuses; the counters are told */
static void all_sent(void **state)
{
	struct runtime r;

	(void)state;
	unit_not_for_tsan(FENCE);
	begin(&r, RGATE_GPU_FULL_WAIT);
	runtime_put(&r, 0, 1000);
	runtime_until(sent() == 1000);
	assert_int_equal(module.wrong, 0);
	assert_int_equal(module.flags & ~(uint32_t)RGATE_SLOT_TX_FLAGS, 0);
	assert_int_equal(rgate_gpu_drain(r.gpu, runtime_ms()), 0);
	assert_int_equal(status_of(&r).replies, 1000);
	assert_int_equal(status_of(&r).reply_bytes, 1000 * FRAME);
	assert_int_equal(rgate_gpu_stop(r.gpu, runtime_ms()), 0);
	runtime_close(&r);
	/* the module's area is its own */
	assert_int_equal(mem.prod.stats.delivered, 0);
	assert_int_equal(mem.prod.head, 1000);
}

/* A frame of the CPU's with flags that say something of how it came */
static void put_flags(struct runtime *r, uint32_t flags)
{
	struct rgate_slot *s = rgate_producer_reserve(&r->p[0]);

	assert_non_null(s);
	unit_pattern(rgate_producer_data(s), r->next[0], FRAME);
	rgate_producer_fill(&r->p[0], s, FRAME, FRAME);
	s->flags = flags;
	rgate_producer_publish(&r->p[0]);
	rgate_producer_flush(&r->p[0]);
	r->next[0]++;
}

static void no_flags_of_its_coming(void **state)
{
	struct runtime r;

	(void)state;
	unit_not_for_tsan(FENCE);
	begin(&r, RGATE_GPU_FULL_WAIT);
	put_flags(&r, RGATE_SLOT_VLAN | RGATE_SLOT_HASH | RGATE_SLOT_QUEUE);
	runtime_until(sent() == 1);
	assert_int_equal(module.flags, RGATE_SLOT_VLAN);
	assert_int_equal(rgate_gpu_stop(r.gpu, runtime_ms()), 0);
	runtime_close(&r);
}

/* While a thread of the module's looks nobody asks; when it sleeps somebody does. */
static void asked_if_asleep(void **state)
{
	struct runtime r;

	(void)state;
	unit_not_for_tsan(FENCE);
	mem.prod.need_wakeup = 0;
	begin(&r, RGATE_GPU_FULL_WAIT);
	runtime_put(&r, 0, 10);
	runtime_until(__atomic_load_n(&slot_of(9)->seq, __ATOMIC_ACQUIRE) == 1);
	usleep(20000);
	assert_int_equal(__atomic_load_n(&module.calls, __ATOMIC_RELAXED), 0);
	__atomic_store_n(&mem.prod.need_wakeup, 1, __ATOMIC_SEQ_CST);
	runtime_until(sent() == 10);
	/* and nobody asks for what is not there */
	usleep(20000);
	assert_int_equal(__atomic_load_n(&module.calls, __ATOMIC_RELAXED), 1);
	assert_int_equal(rgate_gpu_stop(r.gpu, runtime_ms()), 0);
	runtime_close(&r);
}

/* A device that is down for a while: answers wait, and none is lost */
static void waits_for_room(void **state)
{
	struct runtime r;

	(void)state;
	unit_not_for_tsan(FENCE);
	module.err = ENETDOWN;
	begin(&r, RGATE_GPU_FULL_WAIT);
	runtime_put(&r, 0, 200);
	runtime_until(__atomic_load_n(&slot_of(SLOTS - 1)->seq, __ATOMIC_ACQUIRE) == 1);
	assert_int_equal(sent(), 0);
	__atomic_store_n(&module.err, 0, __ATOMIC_RELAXED);
	runtime_until(sent() == 200);
	assert_int_equal(module.wrong, 0);
	assert_int_equal(status_of(&r).replies_dropped, 0);
	assert_int_equal(rgate_gpu_stop(r.gpu, runtime_ms()), 0);
	runtime_close(&r);
}

/* What a runtime has left is sent first: by its end, or by who comes next */
static void left_and_taken_over(void **state)
{
	struct rgate_sender s;
	struct runtime r;

	(void)state;
	unit_not_for_tsan(FENCE);
	mem.prod.need_wakeup = 0;
	begin(&r, RGATE_GPU_FULL_DROP);
	runtime_put(&r, 0, 5);
	runtime_until(__atomic_load_n(&slot_of(4)->seq, __ATOMIC_ACQUIRE) == 1);
	assert_int_equal(rgate_gpu_stop(r.gpu, runtime_ms()), 0);
	__atomic_store_n(&mem.prod.need_wakeup, 1, __ATOMIC_SEQ_CST);
	module.err = ENETDOWN;
	/* as a warp leaves one that was ahead of another */
	slot_of(7)->seq = 1;
	runtime_close(&r);
	assert_int_equal(sent(), 0);
	assert_int_equal(slot_of(7)->seq, 0);
	assert_int_equal(rgate_sender_init(&s, &ring), 0);
	assert_int_equal(s.pos, 5);
	module.err = 0;
	begin(&r, RGATE_GPU_FULL_DROP);
	runtime_until(sent() == 5);
	memset(module.times, 0, sizeof(module.times));
	runtime_put(&r, 0, 40);
	runtime_until(sent() == 45);
	assert_int_equal(module.wrong, 0);
	assert_int_equal(rgate_gpu_stop(r.gpu, runtime_ms()), 0);
	runtime_close(&r);
	assert_int_equal(mem.prod.head, 45);
}

/* What the runtime's thread did not come to is asked for when the runtime is closed. */
static void rest_at_the_end(void **state)
{
	struct runtime r;

	(void)state;
	unit_not_for_tsan(FENCE);
	module.for_closer = true;
	module.closer = pthread_self();
	begin(&r, RGATE_GPU_FULL_DROP);
	runtime_put(&r, 0, 50);
	assert_int_equal(rgate_gpu_drain(r.gpu, runtime_ms()), 0);
	assert_int_equal(rgate_gpu_stop(r.gpu, runtime_ms()), 0);
	assert_int_equal(sent(), 0);
	runtime_close(&r);
	assert_int_equal(sent(), 50);
	assert_int_equal(module.wrong, 0);
}

static void refused(void **state)
{
	struct runtime r;

	(void)state;
	runtime_open(&r, 0, 1, 64);
	ring.slots_rw = NULL;
	assert_int_equal(rgate_gpu_bind_output(r.gpu, &ring, RGATE_GPU_FULL_DROP), -EOPNOTSUPP);
	assert_non_null(strstr(rgate_gpu_error(r.gpu), "transmit ring"));
	ring.slots_rw = mem.slots;
	assert_int_equal(rgate_gpu_bind_output(r.gpu, &ring, RGATE_GPU_FULL_DROP), 0);
	assert_int_equal(rgate_gpu_bind_output(r.gpu, &ring, RGATE_GPU_FULL_DROP), -EEXIST);
	runtime_close(&r);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(all_sent, up, fake_teardown),
	cmocka_unit_test_setup_teardown(no_flags_of_its_coming, up, fake_teardown),
	cmocka_unit_test_setup_teardown(asked_if_asleep, up, fake_teardown),
	cmocka_unit_test_setup_teardown(waits_for_room, up, fake_teardown),
	cmocka_unit_test_setup_teardown(left_and_taken_over, up, fake_teardown),
	cmocka_unit_test_setup_teardown(rest_at_the_end, up, fake_teardown),
	cmocka_unit_test_setup_teardown(refused, up, fake_teardown),
};

UNIT_MAIN(tests)
