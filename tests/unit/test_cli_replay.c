// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * `ringgate replay`: what is put into a transmit ring, and when, by a clock that goes on only while
 * somebody sleeps; a module of the test's own takes it. What arrives: tests/vm/cli_replay.sh.
 */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ringgate/rgate_sender.h>

#include "cli.h"
#include "module.h"
#include "ring.h"
#undef fail		/* cmocka's: the CLI's is another */
#include "util.h"

#define NSEC_MAGIC	0xa1b23c4d
#define ETHERNET	1
#define IN		"/in.pcap"

static struct {
	int attach, init, wait;		/* -errno of these */
	int kick[4];			/* of the first ones; 1: it works */
	int always;			/* of all after these */
	unsigned int kicks;
	uint64_t pos;			/* next to be taken */
	uint64_t frames, bytes, queue_full;
	void *slots, *credits;		/* nobody frees them: a sender ends with its ring */
} tx;

__attribute__((format(printf, 1, 2)))
static void note(const char *fmt, ...)
{
	size_t n = strlen(fake->log);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(fake->log + n, sizeof(fake->log) - n, fmt, ap);
	va_end(ap);
}

int __wrap_rgate_ring_attach(struct rgate_ring *ring, const char *dev,
			     const struct rgate_attach_opts *opts, struct rgate_ident *att);
int __wrap_rgate_ring_attach(struct rgate_ring *ring, const char *dev,
			     const struct rgate_attach_opts *opts, struct rgate_ident *att)
{
	unit_require(ring && !att && opts->kind == RGATE_KIND_TRANSMIT);
	note("attach %s\n", dev);
	return tx.attach;
}

int __wrap_rgate_sender_init(struct rgate_sender *s, struct rgate_ring *ring);
int __wrap_rgate_sender_init(struct rgate_sender *s, struct rgate_ring *ring)
{
	const uint64_t slots = ring->view.nslots, size = ring->view.slot_size;

	note("ring of %u slots of %u bytes\n", (unsigned int)slots, (unsigned int)size);
	if (tx.init)
		return tx.init;
	memset(s, 0, sizeof(*s));
	s->slots = tx.slots = calloc(slots, size);
	s->credits = tx.credits = calloc(slots / RGATE_BATCH, sizeof(*s->credits));
	s->mask = slots - 1;
	s->lap_shift = (uint32_t)__builtin_ctzll(slots);
	s->size_shift = (uint32_t)__builtin_ctzll(size);
	return 0;
}

/* What is published, in its order, with when it was taken; a batch's slots are free behind it. */
int __wrap_rgate_sender_kick(const struct rgate_sender *s, uint32_t budget);
int __wrap_rgate_sender_kick(const struct rgate_sender *s, uint32_t budget)
{
	const int err = tx.kicks < ARRAY_LEN(tx.kick) ? tx.kick[tx.kicks] : tx.always;
	const struct rgate_tx_slot *slot;
	int n = 0;

	unit_require(!budget);
	tx.kicks++;
	if (err < 0)
		return err;
	for (;;) {
		const uint64_t lap = (tx.pos >> s->lap_shift) + 1;

		slot = (void *)(s->slots + ((tx.pos & s->mask) << s->size_shift));
		if (slot->seq != lap)
			return n;
		if (tx.frames < 20)
			note("%llu ms: %u of %u\n",
			     (unsigned long long)(util_now() / 1000000 - 1000000), slot->len,
			     ((const unsigned char *)slot)[RGATE_SLOT_HDR]);
		unit_require(!slot->flags);
		tx.frames++;
		tx.bytes += slot->len;
		n++;
		if (!(++tx.pos % RGATE_BATCH))
			((uint64_t *)s->credits)[((tx.pos - 1) & s->mask) / RGATE_BATCH] = lap;
	}
}

int __wrap_rgate_sender_wait(const struct rgate_sender *s, int timeout_ms);
int __wrap_rgate_sender_wait(const struct rgate_sender *s, int timeout_ms)
{
	(void)s;
	note("wait %d\n", timeout_ms);
	return tx.wait;
}

int __wrap_rgate_ring_stats(const struct rgate_ring *ring, struct rgate_stats *st);
int __wrap_rgate_ring_stats(const struct rgate_ring *ring, struct rgate_stats *st)
{
	unit_require(ring);
	*st = (struct rgate_stats){ .delivered = tx.frames, .bytes = tx.bytes,
				    .dropped_full = tx.queue_full };
	return 0;
}

/* A capture file */

static void words(FILE *f, unsigned int n, const uint32_t *v)
{
	assert_int_equal(fwrite(v, sizeof(*v), n, f), n);
}

static FILE *begin_file(uint32_t link)
{
	FILE *f;

	cli_file(IN, "");
	f = fopen(cli_path(IN), "we");
	assert_non_null(f);
	words(f, 6, (uint32_t[]){ NSEC_MAGIC, 2 | 4 << 16, 0, 0, 262144, link });
	return f;
}

/* @i: what is in it; @len: on the wire, of which @there are in the file */
static void put(FILE *f, unsigned int i, unsigned int ms, uint32_t there, uint32_t len)
{
	char *data = malloc(there + 1);

	assert_non_null(data);
	memset(data, (int)i, there + 1);
	words(f, 4, (uint32_t[]){ 5 + ms / 1000, ms % 1000 * 1000000, there, len });
	assert_int_equal(fwrite(data, 1, there, f), there);
	free(data);
}

static void end_file(FILE *f)
{
	assert_int_equal(fclose(f), 0);
}

static void three(void)
{
	FILE *f = begin_file(ETHERNET);

	put(f, 1, 0, 60, 60);
	put(f, 2, 500, 100, 100);
	put(f, 3, 2500, 1000, 1000);
	end_file(f);
}

static char line[256];

static const char *replay(const char *args)
{
	*fake->log = '\0';
	snprintf(line, sizeof(line), "replay %s lo %s", cli_path(IN), args);
	return line;
}

#define RING	"ring of 64 slots of 65536 bytes\nattach lo\n"

static void paced(void **state)
{
	(void)state;
	three();
	cli_is(replay(""), 0,
	       "3 frames sent through lo (1.1 KiB) in 2.500 s: 1 frames/s, 3.71kbit/s\n", "");
	assert_string_equal(fake->log, RING "0 ms: 60 of 1\n500 ms: 100 of 2\n2500 ms: 1000 of 3\n");
	cli_is(replay("--speed 0.5"), 0,
	       "3 frames sent through lo (1.1 KiB) in 5.000 s: 1 frames/s, 1.86kbit/s\n", "");
	assert_string_equal(fake->log, RING "0 ms: 60 of 1\n1000 ms: 100 of 2\n5000 ms: 1000 of 3\n");
	cli_is(replay("--full -q"), 0, "", "");
	assert_string_equal(fake->log, RING "0 ms: 60 of 1\n0 ms: 100 of 2\n0 ms: 1000 of 3\n");
	cli_is(replay("-j"), 0, "{\"device\": \"lo\", \"frames\": 3, \"bytes\": 1160, \"passes\": 1, "
	       "\"refused\": {\"cut\": 0, \"too_short\": 0, \"too_long\": 0, \"queue\": 0}, "
	       "\"time_ns\": 2500000000, \"frames_per_second\": 1.200, \"bits_per_second\": 3712.000}\n",
	       "");
}

static void passes(void **state)
{
	FILE *f;

	(void)state;
	three();
	cli_says(replay("--loop 2 -j"), 0, "\"frames\": 6, \"bytes\": 2320, \"passes\": 2, ");
	assert_string_equal(fake->log, RING "0 ms: 60 of 1\n500 ms: 100 of 2\n2500 ms: 1000 of 3\n"
			    "2500 ms: 60 of 1\n3000 ms: 100 of 2\n5000 ms: 1000 of 3\n");
	cli_says(replay("--loop 0 --count 4 -j --full"), 0, "\"frames\": 4, \"bytes\": 1220, \"passes\": 1, ");
	/* more than the ring has room for */
	cli_says(replay("--loop 100 -j --full"), 0, "\"frames\": 300, \"bytes\": 116000, \"passes\": 100, ");
	/* Times that go back are no reason to wait. */
	f = begin_file(ETHERNET);
	put(f, 1, 700, 60, 60);
	put(f, 2, 200, 60, 60);
	put(f, 3, 701, 60, 60);
	end_file(f);
	cli_says(replay("-j"), 0, "\"time_ns\": 1000000, ");
	assert_string_equal(fake->log, RING "0 ms: 60 of 1\n0 ms: 60 of 2\n1 ms: 60 of 3\n");
}

static void left_out(void **state)
{
	FILE *f = begin_file(ETHERNET);

	(void)state;
	put(f, 1, 0, 60, 61);
	put(f, 2, 0, 13, 13);
	put(f, 3, 0, 14, 14);
	put(f, 4, 0, 65537, 65537);
	put(f, 5, 0, 65536 - RGATE_SLOT_HDR, 65536 - RGATE_SLOT_HDR);
	end_file(f);
	tx.queue_full = 7;
	cli_says(replay("-j"), 1, "\"refused\": {\"cut\": 1, \"too_short\": 1, \"too_long\": 1, \"queue\": 7}");
	assert_non_null(strstr(fake->log, "0 ms: 14 of 3\n0 ms: 65"));
	assert_non_null(strstr(cli.err, "1 frames were left out, their end is not in "));
	assert_non_null(strstr(cli.err, "1 frames were left out, they have no whole Ethernet header: "
			       "`tcpdump -er "));
	assert_non_null(strstr(cli.err, "1 frames were left out, they are longer than lo sends: `sudo ip "
			       "link set lo mtu 65523`\n"));
	assert_non_null(strstr(cli.err, "7 frames were dropped by the queue of lo: `tc -s qdisc show dev lo` "
			       "tells more\n"));
}

static void files(void **state)
{
	char text[128];
	FILE *f;

	(void)state;
	cli_says("replay /none/such lo", 1, "cannot read /none/such: ");
	cli_says("replay / lo", 1, "cannot read /: ");
	cli_says("replay /dev/null lo --loop 2", 1, "/dev/null can be read once only: for --loop write it into "
		 "a file\n");
	cli_file(IN, "no capture at all, but long enough for the head of one");
	cli_says(replay(""), 1, " is no capture: ");
	f = begin_file(113);
	end_file(f);
	cli_says(replay(""), 1, " has frames of link type LINUX_SLL, and only those of Ethernet are sent: ");
	f = begin_file(ETHERNET);
	end_file(f);
	cli_says(replay(""), 1, " has no frames: `ringgate capture -w FILE DEVICE` makes one with some\n");
	/* with nothing to send there is no end of passes either */
	cli_says(replay("--loop 0"), 1, " has no frames: ");
	three();
	f = fopen(cli_path(IN), "ae");
	words(f, 4, (uint32_t[]){ 9, 0, 60, 60 });
	end_file(f);
	cli_says(replay("--full"), 1, "3 frames sent through lo ");
	snprintf(text, sizeof(text), "%s is broken behind frame 3: ", cli_path(IN));
	assert_non_null(strstr(cli.err, text));
	/* of that pass */
	cli_says(replay("--full --loop 2"), 1, text);
}

static void module_refuses(void **state)
{
	(void)state;
	three();
	fake->ring_open = -ENOENT;
	cli_says(replay(""), 3, "not loaded");
	fake->ring_open = -ENOMEM;
	cli_says(replay(""), 1, "cannot make a ring of 64 slots of 65536 bytes: ");
	fake->ring_open = 0;
	tx.init = -EOPNOTSUPP;
	cli_says(replay(""), 1, "cannot make a ring of 64 slots of 65536 bytes: ");
	tx.init = 0;
	tx.attach = -EPERM;
	cli_says(replay(""), 1, "cannot send through lo: ");
	tx.attach = 0;
	tx.kick[0] = -ENETDOWN;
	cli_says(replay(""), 1, "cannot send through lo: ");
	tx.kick[0] = 1;
	tx.kick[1] = -ENETDOWN;
	cli_says(replay(""), 1, "sending through lo ended: ");
	/* one that is not there */
	snprintf(line, sizeof(line), "replay %s nodev0", cli_path(IN));
	cli_says(line, 1, "cannot send through nodev0: ");
}

static void waits(void **state)
{
	(void)state;
	three();
	/* as many as may be under way; interrupted; no memory just now */
	tx.wait = 1;
	tx.kick[1] = -EAGAIN;
	tx.kick[2] = -EINTR;
	tx.kick[3] = -ENOBUFS;
	cli_says(replay("--full -j"), 0, "\"frames\": 3, ");
	assert_string_equal(fake->log, RING "wait 200\n1 ms: 60 of 1\n1 ms: 100 of 2\n1 ms: 1000 of 3\n");
	tx.wait = -EIO;
	cli_says(replay("--full"), 1, "sending through lo ended: ");
	/* none for long */
	tx.wait = 0;
	tx.kick[1] = -ENOBUFS;
	tx.kick[2] = -ENOBUFS;
	tx.always = -ENOBUFS;
	cli_says(replay("--full -j"), 1, "\"time_ns\": 5001000000, ");
	assert_non_null(strstr(cli.err, "sending through lo ended: "));
}

static int begin(void **state)
{
	memset(&tx, 0, sizeof(tx));
	tx.kick[0] = tx.kick[1] = tx.kick[2] = tx.kick[3] = tx.always = 1;
	if (fake_begin(state))
		return -1;
	cli.still = true;
	return 0;
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, begin, fake_end)
static const struct CMUnitTest tests[] = {
	TEST(paced), TEST(passes), TEST(left_out), TEST(files), TEST(module_refuses), TEST(waits),
};

UNIT_MAIN_ALONE(tests)
