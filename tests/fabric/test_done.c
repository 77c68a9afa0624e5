// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * An operation that failed is told when the device has let go of its memory, and not
 * before: what is done with the memory afterwards is nobody's but its owner's.
 */
#include "nodes.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct rgate_link;

#define DEPTH		256
#define WRITES		128
#define VICTIMS		8	/* connections that are cut at once */
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

/* One of the connections that are cut at once, over addresses of its own */
struct victim {
	struct duo d;
	char addr[64];		/* node 0's */
	bool dead;		/* its part of the wire has to be mended before anything passes */
	int ms;			/* how long its operations are waited for */
	uint64_t lost;		/* 0: it had ended before all were under way */
	const char *wrong;	/* what was not as it should be; NULL: nothing */
	pthread_t thread;
};

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

static size_t count_of(const void *at, size_t len, unsigned char c)
{
	const unsigned char *p = at;
	size_t i, n = 0;

	for (i = 0; i < len; i++)
		n += p[i] == c;
	return n;
}

/*
 * Waits until the wire had an answer behind all that was sent before. Where the machine is so
 * slow that a new connection ends, too, the next one is asked.
 */
static bool quiet(struct duo *d)
{
	unsigned int tries = 0;
	int err;

	do {
		if (rgate_peer_wait_up(d->peer[0], 2 * MS) ||
		    rgate_peer_wait_up(d->peer[1], 2 * MS))
			return false;
		err = rgate_peer_flush(d->peer[0], MS);
	} while (err && err != -EINVAL && ++tries < 10);
	return !err;
}

/* What comes from its address passes again, while the others are still cut. */
static bool mend(const struct victim *v)
{
	char command[256];

	snprintf(command, sizeof(command), "%s %s", getenv("RGATE_FABRIC_MEND_FROM"), v->addr);
	return !system(command);
}

/* Fills all that was lent, waits for the connection, and looks where what was late went */
static const char *poison(struct victim *v)
{
	unsigned char *own = v->d.buf[0]->addr;

	memset(own, SOURCE, DUO_BYTES / 2);
	memset(own + DUO_BYTES / 2, TARGET, DUO_BYTES / 2);
	if (v->dead && !mend(v))
		return "the wire was not mended";
	/* What the wire still had of the last connection came before this. */
	if (!quiet(&v->d))
		return "no other connection came up";
	if (count_of(v->d.buf[1]->addr, DUO_BYTES, SOURCE))
		return "what was written after the report reached the peer";
	if (count_of(own + DUO_BYTES / 2, DUO_BYTES / 2, TARGET) != DUO_BYTES / 2)
		return "an answer came after the report";
	memset(own, 1, DUO_BYTES);
	return NULL;
}

/* Of @n under way up to @ticket: what is lost is told as unknown */
static const char *report(struct victim *v, unsigned int n, uint64_t ticket)
{
	struct rgate_failure f = { .sz = sizeof(f) };
	int err = rgate_peer_settle(v->d.peer[0], ticket, v->ms);

	if (err != -ETIMEDOUT && err != -ECONNRESET && err != -ECANCELED)
		return "the last operation did not end as one that is lost";
	if (rgate_peer_failure(v->d.peer[0], &f))
		return "no failure is known";
	if (!f.lost || (v->dead && f.lost != n))
		return "it is not told how many were lost";
	if (f.outcome != RGATE_OUTCOME_UNKNOWN)
		return "it is not told as unknown";
	/* A machine that is slow to run the command lets the connection end before. */
	if (n == WRITES)
		v->lost = f.lost;
	return NULL;
}

/* Each in a thread of its own, so that none waits for another's report */
static void *under_way(void *arg)
{
	struct victim *v = arg;
	unsigned int n;
	uint64_t ticket = load(&v->d, &n);

	v->lost = 0;
	v->wrong = NULL;
	if (n)
		v->wrong = report(v, n, ticket);
	if (!v->wrong)
		v->wrong = poison(v);
	return NULL;
}

/* RGATE_TEST_LONG: a thousand connections, or as many as it says */
static unsigned int often(void)
{
	const char *s = getenv("RGATE_TEST_LONG");
	const unsigned long n = s ? strtoul(s, NULL, 10) : 2 * VICTIMS;

	return n > 1 ? (unsigned int)n : 1000;
}

/*
 * One for each of RGATE_FABRIC_PAIRS, "A,B A,B ..."; how many. Behind a cut every other one is
 * given up long before its device does so: what it would send again, were it not told to
 * forget it, finds the peer's memory still lent.
 */
static unsigned int victims_up(struct victim *v, bool dead, int ms)
{
	char addrs[128], *was = getenv("RGATE_FABRIC_ADDRS");
	const char *pair = getenv("RGATE_FABRIC_PAIRS");
	unsigned int n;

	was = was ? strdup(was) : NULL;
	for (n = 0; *pair && n < VICTIMS; n++, v++) {
		snprintf(addrs, sizeof(addrs), "%.*s", (int)strcspn(pair, " "), pair);
		assert_int_equal(setenv("RGATE_FABRIC_ADDRS", addrs, 1), 0);
		*v = (struct victim){ .dead = dead, .ms = ms };
		if (dead && n % 2)
			v->ms = (int)(SILENT_MS / 6);
		assert_int_equal(sscanf(addrs, "%63[^,]", v->addr), 1);
		cluster_make(&v->d.c, 2, SILENT_MS);
		v->d.c.opts.send_depth = DEPTH;
		duo_meet(&v->d);
		memset(v->d.buf[0]->addr, 1, DUO_BYTES);
		pair += strlen(addrs);
		pair += strspn(pair, " ");
	}
	if (was)
		assert_int_equal(setenv("RGATE_FABRIC_ADDRS", was, 1), 0);
	free(was);
	return n;
}

/* The wire is spoilt once, for all of them; how many lost operations, and these in @lost */
static unsigned int spoil_all(struct victim *v, unsigned int n, const char *spoil, uint64_t *lost)
{
	unsigned int i, hit = 0;

	shell(spoil);
	for (i = 0; i < n; i++)
		assert_int_equal(pthread_create(&v[i].thread, NULL, under_way, &v[i]), 0);
	for (i = 0; i < n; i++)
		assert_int_equal(pthread_join(v[i].thread, NULL), 0);
	shell("RGATE_FABRIC_MEND");
	for (i = 0; i < n; i++) {
		if (v[i].wrong)
			fail_msg("%s: %s", v[i].addr, v[i].wrong);
		hit += v[i].lost > 0;
		*lost += v[i].lost;
	}
	return hit;
}

/* @spoil: a command that makes the wire lose everything, or slow; @dead: it must be mended
 * before anything passes. An operation is waited for @ms.
 */
static void rounds(const char *spoil, bool dead, int ms)
{
	static struct victim v[VICTIMS];
	unsigned int i, n, hit, all = 0, missed = 0;
	uint64_t begun, lost = 0;

	if (!getenv("RGATE_FABRIC_PAIRS") || !getenv(spoil) || !getenv("RGATE_FABRIC_MEND") ||
	    !getenv("RGATE_FABRIC_MEND_FROM"))
		unit_skip("no RGATE_FABRIC_PAIRS, or no commands for the wire");
	if (getenv("RGATE_TEST_LONG"))
		alarm(0);
	n = victims_up(v, dead, ms);
	begun = unit_now_ns();
	while (all < often()) {
		hit = spoil_all(v, n, spoil, &lost);
		all += hit;
		missed = hit ? 0 : missed + 1;
		assert_true(missed < 10);
	}
	print_message("# %u connections, %u at once, in %llu s: %llu operations told as unknown\n",
		      all, n, (unsigned long long)((unit_now_ns() - begun) / 1000000000),
		      (unsigned long long)lost);
	for (i = 0; i < n; i++)
		duo_down(&v[i].d);
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
