// SPDX-License-Identifier: MIT OR GPL-2.0
/* What comes at a bad moment: in the middle of a read, while an answer waits, in a start. */
#include "raw.h"

#include <endian.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct serve s;

/* Shared with the server, whose calls come here */
static struct {
	bool hold;		/* no operation of the server's is over */
} *shared;

int __real_rgate_peer_done(struct rgate_peer *peer, uint64_t ticket);

int __wrap_rgate_peer_done(struct rgate_peer *peer, uint64_t ticket)
{
	if (__atomic_load_n(&shared->hold, __ATOMIC_ACQUIRE) && !s.sock)
		return 0;
	return __real_rgate_peer_done(peer, ticket);
}

static void hold(bool on)
{
	__atomic_store_n(&shared->hold, on, __ATOMIC_RELEASE);
}

/* Of a job that is over: those of the next ones follow */
static uint64_t an_id(void)
{
	struct done d = run(&s, "/bin/true");
	const uint64_t id = d.r.id;

	assert_ran(&d, 0, "");
	return id;
}

/* A KILL while the record is being read: it is not started, and nothing is counted twice. */
static void killed_in_read(void **state)
{
	struct raw raw = { .cookie = 100 };
	struct rgate_spawn_start m;
	struct rgate_spawn_ask ask;
	struct rgate_spawnd_stats before, after;
	struct rgate_spawn_answer a;
	struct rgate_msg msg;
	uint64_t id;
	struct done d;
	int i;

	(void)state;
	id = an_id();
	assert_int_equal(rgate_pool_alloc(rgate_node_pool(s.node), 65536, &raw.buf), 0);
	memset(raw.buf->addr, 0, 512);
	before = serve_stats(&s);
	hold(true);
	m = raw_start(&s, &raw, raw_true((uint8_t *)raw.buf->addr + 512));
	raw_send(&s, &m, sizeof(m));
	/* It is read from now on, and that does not end. */
	wait_for(serve_stats(&s).jobs == before.jobs + 1);
	serve_stats(&s);
	ask = (struct rgate_spawn_ask){ .h = m.h, .memory = m.memory, .signal = htole32(SIGKILL) };
	ask.h.type = RGATE_SPAWN_KILL;
	ask.h.cookie = htole64(1);
	ask.h.id = htole64(id + 1);
	raw_send(&s, &ask, sizeof(ask));
	do {
		assert_int_equal(rgate_peer_recv(s.peer, &msg, &a, sizeof(a), MS), 0);
	} while (a.h.type != RGATE_SPAWN_DONE);
	assert_int_equal(le32toh(a.error), 0);
	hold(false);
	assert_int_equal(raw_answer(&s, &raw), -ECANCELED);
	serve_client_down_raw(&s, raw.buf);
	serve_client_up(&s);
	for (i = 0; i < 3; i++) {
		d = run(&s, "/bin/echo", "x");
		assert_ran(&d, 0, "x\n");
	}
	wait_for(!serve_stats(&s).jobs);
	after = serve_stats(&s);
	assert_int_equal(after.queued, 0);
	assert_int_equal(after.started, before.started + 3);
}

static int up(void **state)
{
	(void)state;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	assert_ptr_not_equal(shared, MAP_FAILED);
	serve_up(&s, NULL);
	return 0;
}

static int down(void **state)
{
	(void)state;
	serve_down(&s);
	munmap(shared, sizeof(*shared));
	s.sock = 0;
	return 0;
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(killed_in_read, up, down),
};

UNIT_MAIN(tests)
