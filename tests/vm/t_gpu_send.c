// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * A kernel's answers, sent by the module: the runtime and the device's code, on a CUDA of the
 * test's own, fill a transmit ring, and what comes out at the other end of the wire is what was
 * answered. With a thread of the kernel's that looks for frames, and without.
 */
#include "unit.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ringgate/rgate_consumer.h>
#include <ringgate/rgate_ctl.h>

#include "fake_cuda.h"
#include "runtime.h"

#define FRAME	60U
#define FRAMES	400U

static uint32_t echo(const struct rgate_dpkt *pkt, void *result, void *arg)
{
	(void)arg;
	memcpy(result, pkt->near, FRAME);
	return FRAME;
}

FAKE_LANES(echoing, echo, 64, 64);

static struct rgate_ring *out, *wire;
static struct rgate_consumer c;
static bool seen[FRAMES];

static void must(const char *command)
{
	if (system(command))
		fail_msg("%s", command);
}

static int up(void **state)
{
	struct rgate_ring_opts o = { .sz = sizeof(o), .slots = 256, .slot_size = 256 };
	struct rgate_attach_opts a = { .sz = sizeof(a) };

	memset(seen, 0, sizeof(seen));
	must("ip link add va type veth peer name vb");
	must("sysctl -qw net.ipv6.conf.va.disable_ipv6=1 net.ipv6.conf.vb.disable_ipv6=1");
	must("ip link set va up && ip link set vb up");
	assert_int_equal(rgate_ring_open(&wire, &o), 0);
	assert_int_equal(rgate_ring_attach(wire, "vb", &a, NULL), 0);
	assert_int_equal(rgate_consumer_init(&c, wire, NULL), 0);
	o.slots = 64;
	o.flags = RGATE_RING_TRANSMIT | RGATE_RING_RW_SLOTS;
	assert_int_equal(rgate_ring_open(&out, &o), 0);
	return fake_setup(state);
}

static int down(void **state)
{
	rgate_ring_close(out);
	rgate_ring_close(wire);
	must("ip link del va");
	return fake_teardown(state);
}

/* Which of them it is, that did not come yet; they may have overtaken each other */
static bool is_new(const struct rgate_slot *s)
{
	unsigned int i;

	for (i = 0; s->len == FRAME && i < FRAMES; i++)
		if (!seen[i] && !unit_pattern_check(rgate_slot_data(s), i, FRAME)) {
			seen[i] = true;
			return true;
		}
	return false;
}

static void echo_all(uint32_t thread)
{
	struct rgate_attach_opts a = {
		.sz = sizeof(a), .kind = RGATE_KIND_TRANSMIT, .thread = thread,
	};
	struct rgate_stats st;
	struct runtime r;
	unsigned int n;

	assert_int_equal(rgate_ring_attach(out, "va", &a, NULL), 0);
	runtime_open(&r, 0, 1, 256);
	assert_int_equal(rgate_gpu_bind_output(r.gpu, out, RGATE_GPU_FULL_WAIT), 0);
	assert_int_equal(rgate_gpu_start(r.gpu, &echoing, &r.start), 0);
	for (n = 0; n < FRAMES;) {
		const struct rgate_slot *s;

		if (n % 100 == 0 && r.next[0] == n)
			runtime_put(&r, 0, 100);
		runtime_until((s = rgate_consumer_next(&c)));
		if (!is_new(s))
			fail_msg("a frame of %u bytes that nobody answered, or twice", s->len);
		rgate_consumer_release(&c);
		n++;
	}
	assert_int_equal(rgate_gpu_stop(r.gpu, runtime_ms()), 0);
	runtime_close(&r);
	assert_int_equal(rgate_ring_stats(out, &st), 0);
	assert_int_equal(st.delivered, FRAMES);
	assert_int_equal(st.dropped_fault, 0);
}

static void by_a_thread(void **state)
{
	(void)state;
	echo_all(50);
}

static void when_asked(void **state)
{
	(void)state;
	echo_all(0);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(by_a_thread, up, down),
	cmocka_unit_test_setup_teardown(when_asked, up, down),
};

UNIT_MAIN(tests)
