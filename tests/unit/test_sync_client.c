// SPDX-License-Identifier: MIT OR GPL-2.0
/* Two requests at once, whose ends come in any order, beside that of what cancels one of them. */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include <ringgate/rgate_lock.h>

#include "spin.h"
#include "sync_client.h"

static struct rgate_completion told[16];
static unsigned int n_told, n_taken;
static uint64_t cancelled, late;	/* late: a cookie whose completion comes by waiting; 0 */
static bool cancels_late;
static int wait_err;
static uint32_t spin_us;
static char asked[16];		/* what was, a letter each */
static unsigned int n_asked;

static void tell(uint64_t cookie, int result);

int __wrap_rgate_session_submit_many(struct rgate_session *s, const struct rgate_request *q,
				     unsigned int n);
int __wrap_rgate_session_poll(struct rgate_session *s, struct rgate_completion *c, unsigned int n);
int __wrap_rgate_session_wait(struct rgate_session *s, int timeout_ms);
int __wrap_rgate_session_cancel(struct rgate_session *s, uint64_t target, uint64_t cookie);
int __wrap_rgate_session_open(struct rgate_session **s, const struct rgate_session_opts *opts);
void *__wrap_rgate_session_memory(struct rgate_session *s, size_t *len);
void __wrap_rgate_session_close(struct rgate_session *s);

int __wrap_rgate_session_open(struct rgate_session **s, const struct rgate_session_opts *opts)
{
	spin_us = opts->spin_us;
	*s = NULL;
	return 0;
}

static uint64_t memory[1024];

void *__wrap_rgate_session_memory(struct rgate_session *s, size_t *len)
{
	(void)s;
	(void)len;
	return memory;
}

void __wrap_rgate_session_close(struct rgate_session *s)
{
	(void)s;
}

static char letter(const struct rgate_request *q)
{
	switch (q->op) {
	case RGATE_REQ_LOCK_OPEN:
		return 'o';
	case RGATE_REQ_LOCK_ACQUIRE:
		return 'a';
	case RGATE_REQ_LOCK_CLOSE:
		return 'c';
	default:
		return '?';
	}
}

int __wrap_rgate_session_submit_many(struct rgate_session *s, const struct rgate_request *q,
				     unsigned int n)
{
	unsigned int i;

	(void)s;
	for (i = 0; i < n && n_asked < sizeof(asked) - 1; i++)
		asked[n_asked++] = letter(&q[i]);
	return (int)n;
}

int __wrap_rgate_session_poll(struct rgate_session *s, struct rgate_completion *c, unsigned int n)
{
	(void)s;
	assert_int_equal(n, 1);
	if (n_taken == n_told)
		return 0;
	*c = told[n_taken++];
	return 1;
}

/* Nothing comes by waiting but @wait_err and what is late. */
int __wrap_rgate_session_wait(struct rgate_session *s, int timeout_ms)
{
	const int err = wait_err;

	(void)s;
	if (err || !timeout_ms) {
		wait_err = 0;
		return err;
	}
	if (late) {
		tell(late, 0);
		late = 0;
		return 1;
	}
	fail_msg("it would wait for ever");
	return 0;
}

static void tell(uint64_t cookie, int result)
{
	told[n_told++] = (struct rgate_completion){ .cookie = cookie, .result = result,
						    .value = cookie };
}

/* What is cancelled ends so; the end of what cancels comes before it, or after a wait */
int __wrap_rgate_session_cancel(struct rgate_session *s, uint64_t target, uint64_t cookie)
{
	(void)s;
	cancelled = target;
	if (cancels_late)
		late = cookie;
	else
		tell(cookie, 0);
	tell(target, -ECANCELED);
	return 0;
}

static void begin(struct sync_client *sc, struct rgate_request q[2])
{
	n_told = n_taken = 0;
	cancelled = 0;
	*sc = (struct sync_client){ .timeout_ms = 1000, .cookie = 41 };
	assert_int_equal(sync_client_start(sc, q, 2), 0);
	assert_int_equal(q[0].cookie, 42);
	assert_int_equal(q[1].cookie, 43);
}

static void any_order(void **state)
{
	struct rgate_request q[2] = { { .op = 1 }, { .op = 2 } };
	struct sync_client sc;
	uint64_t value;
	int second;

	(void)state;
	for (second = 0; second < 2; second++) {
		begin(&sc, q);
		tell(second ? 43 : 42, second ? 6 : 5);
		tell(second ? 42 : 43, second ? 5 : 6);
		assert_int_equal(sync_client_finish(&sc, 42, -1, &value), 5);
		assert_int_equal(value, 42);
		assert_int_equal(sync_client_finish(&sc, 43, -1, &value), 6);
		assert_int_equal(value, 43);
	}
}

/* One is given up; what the other one was told stays, and nothing comes after that. */
static void give_up_each(void)
{
	struct rgate_request q[2] = { { .op = 1 }, { .op = 2 } };
	struct sync_client sc;

	begin(&sc, q);
	tell(43, 6);
	assert_int_equal(sync_client_finish(&sc, 42, 0, NULL), -ETIMEDOUT);
	assert_int_equal(cancelled, 42);
	assert_int_equal(late, 0);
	assert_int_equal(n_taken, n_told);
	assert_int_equal(sync_client_finish(&sc, 43, -1, NULL), 6);
	begin(&sc, q);
	assert_int_equal(sync_client_finish(&sc, 43, 0, NULL), -ETIMEDOUT);
	assert_int_equal(late, 0);
	tell(42, 7);
	assert_int_equal(sync_client_finish(&sc, 42, 0, NULL), 7);
	assert_int_equal(n_taken, n_told);
	begin(&sc, q);
	wait_err = -EINTR;
	assert_int_equal(sync_client_finish(&sc, 42, -1, NULL), -EINTR);
	assert_int_equal(sync_client_finish(&sc, 43, 0, NULL), -ETIMEDOUT);
	assert_int_equal(cancelled, 43);
	assert_int_equal(late, 0);
	assert_int_equal(n_taken, n_told);
}

static void given_up(void **state)
{
	(void)state;
	cancels_late = false;
	give_up_each();
	cancels_late = true;
	give_up_each();
}

/* What was kept for a request of before is nobody's. */
static void not_mixed_up(void **state)
{
	struct rgate_request q[2] = { { .op = 1 }, { .op = 2 } };
	struct sync_client sc;

	(void)state;
	begin(&sc, q);
	tell(43, 6);
	tell(42, 5);
	assert_int_equal(sync_client_finish(&sc, 42, -1, NULL), 5);
	assert_int_equal(sync_client_start(&sc, q, 2), 0);
	tell(q[0].cookie, 1);
	tell(q[1].cookie, 2);
	assert_int_equal(sync_client_finish(&sc, q[0].cookie, -1, NULL), 1);
	assert_int_equal(sync_client_finish(&sc, q[1].cookie, -1, NULL), 2);
}

/* The home is lost, and not there when the lock is opened again: later it is. */
static void opened_again(void **state)
{
	struct rgate_lock_info info;
	struct rgate_lock *lock;
	uint64_t token;

	(void)state;
	n_told = n_taken = n_asked = 0;
	memset(asked, 0, sizeof(asked));
	tell(1, 0);
	assert_int_equal(rgate_lock_open(&lock, "a", NULL), 0);
	tell(2, -ESTALE);
	tell(3, 0);
	tell(4, -ENOTCONN);
	assert_int_equal(rgate_lock_acquire(lock, 0, -1, NULL), -ECONNRESET);
	assert_string_equal(asked, "oaco");
	assert_int_equal(rgate_lock_release(lock), -ENOLCK);
	assert_int_equal(rgate_lock_info(lock, &info), -ESTALE);
	tell(5, -ETIMEDOUT);
	assert_int_equal(rgate_lock_acquire(lock, 0, -1, NULL), -ECONNRESET);
	tell(6, 0);
	tell(7, 0);
	assert_int_equal(rgate_lock_acquire(lock, 0, -1, &token), 0);
	assert_int_equal(token, 7);
	assert_string_equal(asked, "oacoooa");
	tell(8, 0);
	rgate_lock_close(lock);
	assert_string_equal(asked, "oacoooac");
}

/* A lock that is listed, at that place */
static void tell_lock(uint64_t cookie, uint64_t at)
{
	tell(cookie, 1);
	told[n_told - 1].value = at;
}

static int count(void *ctx, const struct rgate_lock_info *info)
{
	(void)info;
	++*(int *)ctx;
	return 0;
}

/* Another node's list has an end, and names that may be printed. */
static void listed(void **state)
{
	struct rgate_lock_info *info = (void *)((char *)memory + SYNC_CLIENT_ROOM);
	int n = 0;

	(void)state;
	memset(memory, 0, sizeof(memory));
	strcpy(info->name, "a/lock");
	n_told = n_taken = 0;
	tell_lock(1, 5);
	tell_lock(2, 6);
	tell(3, 0);
	assert_int_equal(rgate_lock_list(NULL, count, &n), 0);
	assert_int_equal(n, 2);
	n_told = n_taken = 0;
	tell_lock(1, 5);
	tell_lock(2, 5);
	assert_int_equal(rgate_lock_list(NULL, count, &n), -EPROTO);
	assert_int_equal(n, 3);
	strcpy(info->name, "\033[2J");
	n_told = n_taken = 0;
	tell_lock(1, 5);
	assert_int_equal(rgate_lock_list(NULL, count, &n), -EPROTO);
	memset(info->name, 'a', sizeof(info->name));
	n_told = n_taken = 0;
	tell_lock(1, 5);
	assert_int_equal(rgate_lock_list(NULL, count, &n), -EPROTO);
	assert_int_equal(n, 3);
}

/* Longer than others poll, and not at all where CPUs are scarce */
static void polls_longer(void **state)
{
	struct rgate_spin usual;
	struct sync_client sc;

	(void)state;
	assert_int_equal(rgate_spin_init(&usual, 0), 0);
	spin_us = RGATE_SPIN_NONE;
	assert_int_equal(sync_client_connect(&sc, NULL), 0);
	if (usual.most_ns)
		assert_true(spin_us > usual.most_ns / 1000 && spin_us < RGATE_SPIN_MOST);
	else
		assert_int_equal(spin_us, 0);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(any_order), cmocka_unit_test(given_up), cmocka_unit_test(not_mixed_up),
	cmocka_unit_test(opened_again), cmocka_unit_test(listed), cmocka_unit_test(polls_longer),
};

UNIT_MAIN_ALONE(tests)
