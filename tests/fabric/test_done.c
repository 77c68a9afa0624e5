// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * An operation that failed is told when the device has let go of its memory, and not
 * before: what is done with the memory afterwards is nobody's but its owner's.
 */
#include "nodes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct rgate_link;

#define DEPTH		256
#define WRITES		128
#define SOURCE		0xee	/* what the sources are filled with after the report */
#define TARGET		0xdd	/* and what answers would be written to */

static unsigned int disconnected;

void __real_rgate_link_disconnect(struct rgate_link *link);
void __wrap_rgate_link_disconnect(struct rgate_link *link);

/* The queue pair is destroyed in there, or the peer's memory unmapped. */
void __wrap_rgate_link_disconnect(struct rgate_link *link)
{
	__real_rgate_link_disconnect(link);
	__atomic_add_fetch(&disconnected, 1, __ATOMIC_RELEASE);
}

struct rgate_hs;

static unsigned int forgotten;

void __real_rgate_hs_end(struct rgate_hs *hs);
void __wrap_rgate_hs_end(struct rgate_hs *hs);

void __wrap_rgate_hs_end(struct rgate_hs *hs)
{
	__real_rgate_hs_end(hs);
	__atomic_add_fetch(&forgotten, 1, __ATOMIC_RELAXED);
}

static unsigned int ends(void)
{
	return __atomic_load_n(&disconnected, __ATOMIC_ACQUIRE);
}

static struct rgate_op write_to(const struct duo *d, const struct rgate_sge *sge, uint32_t rkey)
{
	return (struct rgate_op){
		.kind = RGATE_OP_WRITE, .nsge = 1, .sge = sge, .remote = d->at[1].addr,
		.rkey = d->at[1].rkey ^ rkey,
	};
}

/* The first look at an operation that was refused finds that it failed, itself */
static void told_when_over(void **state)
{
	struct rgate_sge sge;
	struct rgate_op op;
	unsigned int i, were;
	uint64_t ticket;
	struct duo d;
	int ret;

	(void)state;
	duo_up(&d, 0);
	for (i = 0; i < 10; i++) {
		sge = duo_sge(&d, 0, 0, 4096);
		op = write_to(&d, &sge, 0x3c0300);
		were = ends();
		assert_int_equal(rgate_peer_post(d.peer[0], &op, 1, &ticket), 0);
		while (!(ret = rgate_peer_done(d.peer[0], ticket)))
			;
		assert_true(ends() > were);
		assert_int_equal(ret, -EREMOTEIO);
		/* and so it stays, when another connection is there */
		assert_int_equal(rgate_peer_wait_up(d.peer[0], MS), 0);
		assert_int_equal(rgate_peer_done(d.peer[0], ticket), -EREMOTEIO);
		assert_int_equal(rgate_peer_settle(d.peer[0], ticket, 1), -EREMOTEIO);
		assert_int_equal(rgate_peer_wait_up(d.peer[1], MS), 0);
	}
	duo_down(&d);
}

/* Who is told that a peer is down takes back all that its operations used */
static void down_when_over(void **state)
{
	struct rgate_sge sge;
	struct rgate_op op;
	unsigned int i, were;
	uint64_t ticket;
	struct duo d;

	(void)state;
	duo_up(&d, 0);
	for (i = 0; i < 10; i++) {
		struct rgate_peer_info info = { .sz = sizeof(info) };
		uint32_t epoch;

		assert_int_equal(rgate_peer_info(d.peer[0], &info), 0);
		epoch = info.epoch;
		sge = duo_sge(&d, 0, 0, 4096);
		op = write_to(&d, &sge, 0x3c0300);
		were = ends();
		assert_int_equal(rgate_peer_post(d.peer[0], &op, 1, &ticket), 0);
		do {
			(void)rgate_peer_done(d.peer[0], ticket);
			assert_int_equal(rgate_peer_info(d.peer[0], &info), 0);
		} while (info.state == RGATE_PEER_UP && info.epoch == epoch);
		assert_true(ends() > were);
		assert_int_equal(rgate_peer_wait_up(d.peer[0], MS), 0);
		assert_int_equal(rgate_peer_wait_up(d.peer[1], MS), 0);
	}
	duo_down(&d);
}

/* Time that is over before the operation is: the connection ends, and then it is told */
static void settled(void **state)
{
	struct rgate_sge sge;
	struct rgate_op op;
	unsigned int were;
	uint64_t ticket;
	struct duo d;

	(void)state;
	duo_up(&d, 0);
	sge = duo_sge(&d, 0, 0, 4096);
	op = write_to(&d, &sge, 0);
	were = ends();
	assert_int_equal(rgate_peer_post(d.peer[0], &op, 1, &ticket), 0);
	assert_int_equal(rgate_peer_settle(d.peer[0], ticket, MS), 0);
	assert_int_equal(ends(), were);
	/* Never given; the next ones may be of heartbeats. */
	assert_int_equal(rgate_peer_settle(d.peer[0], ticket + 1000, 1), -EINVAL);
	duo_down(&d);
}

/* Nothing that a connection's keys were made of is left when it is gone. */
static void keys_wiped(void **state)
{
	unsigned int were;
	struct duo d;

	(void)state;
	duo_up(&d, 0);
	were = __atomic_load_n(&forgotten, __ATOMIC_RELAXED);
	duo_down(&d);
	assert_true(__atomic_load_n(&forgotten, __ATOMIC_RELAXED) >= were + 2);
}

static void shell(const char *variable)
{
	assert_int_equal(system(getenv(variable)), 0);
}

/*
 * Writes, reads and atomics, as many as fit: all from the first half of the own memory, all
 * answers to the second. The last ticket
 */
static uint64_t load(struct duo *d, unsigned int *n)
{
	struct rgate_sge sge[4] = {
		duo_sge(d, 0, 0, 2048), duo_sge(d, 0, 2048, 2048),
		duo_sge(d, 0, DUO_BYTES / 2, 4096), duo_sge(d, 0, DUO_BYTES / 2 + 4096, 8),
	};
	struct rgate_op op[8];
	uint64_t ticket = 0;
	unsigned int i;

	for (i = 0; i < 8; i++)
		op[i] = write_to(d, &sge[i % 2], 0);
	op[6].kind = RGATE_OP_READ;
	op[6].sge = &sge[2];
	op[7].kind = RGATE_OP_FETCH_ADD;
	op[7].sge = &sge[3];
	op[7].remote += DUO_BYTES / 2;
	op[7].operand = 1;
	for (*n = 0; *n < WRITES && !rgate_peer_post(d->peer[0], op, 8, &ticket); *n += 8)
		;
	return ticket;
}

static void filled_with(const void *at, size_t len, unsigned char c, bool is)
{
	const unsigned char *p = at;
	size_t i, n = 0;

	for (i = 0; i < len; i++)
		n += p[i] == c;
	assert_int_equal(n, is ? len : 0);
}

/*
 * Waits until the wire had an answer behind all that was sent before. Where the machine is so
 * slow that a new connection ends, too, the next one is asked.
 */
static void quiet(struct duo *d)
{
	unsigned int tries = 0;
	int err;

	do {
		assert_int_equal(rgate_peer_wait_up(d->peer[0], 2 * MS), 0);
		assert_int_equal(rgate_peer_wait_up(d->peer[1], 2 * MS), 0);
		err = rgate_peer_flush(d->peer[0], MS);
	} while (err && err != -EINVAL && ++tries < 10);
	assert_int_equal(err, 0);
}

/* Fills all that was lent, waits for the connection, and looks where what was late went */
static void poison(struct duo *d, bool dead)
{
	unsigned char *own = d->buf[0]->addr;

	memset(own, SOURCE, DUO_BYTES / 2);
	memset(own + DUO_BYTES / 2, TARGET, DUO_BYTES / 2);
	if (dead)
		shell("RGATE_FABRIC_MEND");
	/* What the wire still had of the last connection came before this. */
	quiet(d);
	filled_with(d->buf[1]->addr, DUO_BYTES, SOURCE, false);
	filled_with(own + DUO_BYTES / 2, DUO_BYTES / 2, TARGET, true);
	memset(own, 1, DUO_BYTES);
	if (!dead)
		shell("RGATE_FABRIC_MEND");
}

/* RGATE_TEST_LONG: a thousand times, or as many times as it says */
static unsigned int often(void)
{
	const char *s = getenv("RGATE_TEST_LONG");
	const unsigned long n = s ? strtoul(s, NULL, 10) : 4;

	return n > 1 ? (unsigned int)n : 1000;
}

/* @spoil: a command that makes the wire lose everything, or slow; @dead: it must be mended
 * before anything passes. An operation is waited for @ms.
 */
static void rounds(const char *spoil, bool dead, int ms)
{
	struct rgate_failure f = { .sz = sizeof(f) };
	uint64_t ticket, begun, lost = 0;
	unsigned int i, n, again = 0;
	struct duo d;
	int err;

	if (!getenv(spoil) || !getenv("RGATE_FABRIC_MEND"))
		unit_skip("no RGATE_FABRIC_CUT, _SLOW and _MEND, commands for the wire");
	if (getenv("RGATE_TEST_LONG"))
		alarm(0);
	cluster_make(&d.c, 2, SILENT_MS);
	d.c.opts.send_depth = DEPTH;
	duo_meet(&d);
	memset(d.buf[0]->addr, 1, DUO_BYTES);
	begun = unit_now_ns();
	for (i = 0; i < often(); i++) {
		shell(spoil);
		ticket = load(&d, &n);
		/* A machine that is slow to run the command lets the connection end before. */
		if (!n && again++ < 10) {
			poison(&d, dead);
			i--;
			continue;
		}
		again = 0;
		assert_int_equal(n, WRITES);
		err = rgate_peer_settle(d.peer[0], ticket, ms);
		assert_true(err == -ETIMEDOUT || err == -ECONNRESET || err == -ECANCELED);
		assert_int_equal(rgate_peer_failure(d.peer[0], &f), 0);
		assert_true(f.lost > 0);
		assert_int_equal(f.outcome, RGATE_OUTCOME_UNKNOWN);
		lost += f.lost;
		poison(&d, dead);
	}
	print_message("# %u times in %llu s: %llu operations were lost, and told as unknown\n", i,
		      (unsigned long long)((unit_now_ns() - begun) / 1000000000),
		      (unsigned long long)lost);
	duo_down(&d);
}

static void cut(void **state)
{
	(void)state;
	rounds("RGATE_FABRIC_CUT", true, 20 * SILENT_MS);
}

static void late(void **state)
{
	(void)state;
	rounds("RGATE_FABRIC_SLOW", false, 1);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(told_when_over),
	cmocka_unit_test(down_when_over),
	cmocka_unit_test(settled),
	cmocka_unit_test(keys_wiped),
	cmocka_unit_test(cut),
	cmocka_unit_test(late),
};

UNIT_MAIN(tests)
