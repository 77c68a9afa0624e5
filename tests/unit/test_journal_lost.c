// SPDX-License-Identifier: MIT OR GPL-2.0
/* The journal of a home's queues, where what is written meets what goes away meanwhile */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "journal_priv.h"

#define MS	1000000ULL
#define ME	1U

static struct queues home;
static struct queue *q;
static struct worker worker;
static struct journal *j;
static char dir[UNIT_DIR_ROOM];
static struct journal_opts opts;

static bool disk_fails;
static unsigned int of_nothing;	/* used what was closed; atomic: its thread says so */

int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);

int __wrap_fdatasync(int fd)
{
	if (!disk_fails)
		return __real_fdatasync(fd);
	errno = EIO;
	return -1;
}

static void on_log(void *ctx, enum rgate_log_level level, const char *line)
{
	(void)ctx;
	(void)level;
	if (strstr(line, strerror(EBADF)))
		__atomic_fetch_add(&of_nothing, 1, __ATOMIC_RELAXED);
	if (getenv("JOURNAL_LOG"))
		printf("# %s\n", line);
}

static int setup(void **state)
{
	(void)state;
	rgate_log_set(on_log, NULL);
	unit_dir_make(dir);
	opts = RGATE_OPTS(journal_opts, .dir = dir, .uid = geteuid(), .segment = 64 << 10);
	j = NULL;
	return 0;
}

static struct queue *get(const char *name)
{
	struct queue_open as = { .owner = ME, .flags = RGATE_QUEUE_CREATE | RGATE_QUEUE_KEEP };
	struct queue *out;

	strcpy(as.place.name, name);
	assert_int_equal(queues_open(&home, ME, &as, &out), 0);
	return out;
}

static void start(void)
{
	queues_init(&home);
	home.now = 5000 * MS;
	assert_int_equal(journal_open(&j, &home, &opts), 0);
	q = get("q");
	queue_worker_init(q, &worker);
}

static void stop(void)
{
	journal_drain(j);
	journal_close(j);
	queues_fini(&home);
	j = NULL;
}

static int teardown(void **state)
{
	(void)state;
	if (j)
		stop();
	unit_dir_empty(dir);
	return rmdir(dir);
}

static void put_some(struct queue *to, unsigned int n)
{
	static const char data[1000];
	const struct rgate_queue_put p = { .len = sizeof(data) };
	uint64_t id;

	while (n--) {
		assert_int_equal(queue_submit(to, ME, 0, &p, data, &id), 0);
		if (n % 16 == 0)
			journal_drain(j);
	}
}

static void turn(void)
{
	(void)queues_tick(&home, home.now);
	(void)journal_tick(j, home.now);
	journal_drain(j);
}

/* One that is over at once: what is written of it is of no use. */
static void come_and_go(void)
{
	struct task *t;

	put_some(q, 1);
	t = queue_first(q, UINT64_MAX);
	queue_claim(q, t, &worker, false);
	assert_int_equal(queue_complete(q, &worker, t->id, t->claim, NULL, 0), 0);
}

/* What a queue that is removed has yet is not written anew: nobody would know whose it is. */
static void test_removed(void **state)
{
	struct queue *other;
	unsigned int i;

	(void)state;
	start();
	other = get("other");
	put_some(other, 1000);
	/* Its first tasks are moved, so that they are not in the oldest file any more. */
	for (i = 0; i < 10000 && queue_find(other, 1)->seg != j->head; i++) {
		come_and_go();
		turn();
	}
	assert_true(queue_find(other, 1)->seg == j->head);
	queues_remove(other);
	for (i = 0; i < 50; i++)
		come_and_go();
	turn();
	assert_true(other->n);
	stop();
	start();
	assert_int_equal(home.n, 1);
	assert_int_equal(home.ntasks, 0);
}

/* Tasks of the first file alone end, while nothing is safe any more; then it ends, too. */
static void test_lost(void **state)
{
	struct segment *first;
	struct task *t;

	(void)state;
	opts.sync_ms = 60000;
	start();
	first = j->head;
	while (!__atomic_load_n(&j->spare, __ATOMIC_ACQUIRE))
		put_some(q, 1);
	disk_fails = true;
	while (j->head == first)
		put_some(q, 1);
	while ((t = queue_first(q, UINT64_MAX)) && t->seg == first) {
		queue_claim(q, t, &worker, false);
		assert_int_equal(queue_complete(q, &worker, t->id, t->claim, NULL, 0), 0);
	}
	(void)journal_tick(j, home.now);
	assert_ptr_not_equal(container_of(j->segs.next, struct segment, of_journal), first);
	journal_close(j);
	j = NULL;
	disk_fails = false;
	queues_fini(&home);
	assert_int_equal(of_nothing, 0);
	start();
}

/* In the only file with records, the first one of that kind cannot be read any more. */
static void spoil(enum journal_kind kind)
{
	static char mem[1 << 20];
	struct journal_reader r;
	struct journal_got got;
	char path[128], name[JOURNAL_NAME_ROOM];
	ssize_t n;
	int fd;

	journal_name(1, name);
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDWR);
	assert_true(fd >= 0);
	n = read(fd, mem, sizeof(mem));
	assert_int_equal(journal_read_head(&r, mem, (size_t)n), 0);
	do {
		assert_int_equal(journal_read_next(&r, &got), 1);
	} while (got.head.kind != kind);
	assert_int_equal(pwrite(fd, "X", 1, (off_t)got.head.at + 5), 1);
	close(fd);
}

/* One queue was removed, and another one has its name: what that one has is not left out. */
static void test_same_name(void **state)
{
	struct queue *other;
	struct task *t;

	(void)state;
	start();
	other = get("other");
	put_some(other, 3);
	queues_remove(other);
	/* Who has it open no more */
	other->handles--;
	queue_settle(other);
	other = get("other");
	put_some(other, 5);
	/* behind what is on the disk */
	put_some(q, 1);
	stop();
	spoil(JOURNAL_REMOVED);
	queues_init(&home);
	assert_int_equal(journal_open(&j, &home, &opts), -EBADMSG);
	queues_fini(&home);
	opts.repair = true;
	start();
	opts.repair = false;
	other = get("other");
	assert_int_equal(other->n, 5);
	assert_int_equal(home.n, 2);
	t = queue_find(other, 5);
	assert_non_null(t);
	stop();
	start();
	assert_int_equal(home.ntasks, 6);
}

/* What cannot be put aside stays: it has what could not be read. */
static void test_aside(void **state)
{
	char path[128], aside[160], name[JOURNAL_NAME_ROOM];

	(void)state;
	start();
	put_some(q, 3);
	put_some(q, 1);
	stop();
	spoil(JOURNAL_TASK);
	journal_name(1, name);
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	snprintf(aside, sizeof(aside), "%s.wrong", path);
	assert_int_equal(mkdir(aside, 0700), 0);
	opts.repair = true;
	start();
	put_some(q, 1);
	stop();
	assert_int_equal(access(path, F_OK), 0);
	/* When that can be it is. */
	assert_int_equal(rmdir(aside), 0);
	start();
	stop();
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(access(aside, F_OK), 0);
	opts.repair = false;
	start();
	assert_int_equal(q->n, 4);
}

/* A daemon that is ended takes no attempt from those whose workers end with it. */
static void test_ended(void **state)
{
	static const uint32_t tried[] = { 1, 0, 0 };
	uint32_t is, i;
	struct task *t;

	(void)state;
	start();
	put_some(q, 3);
	/* One runs again, one for the first time, and one has not begun. */
	t = queue_first(q, UINT64_MAX);
	queue_claim(q, t, &worker, true);
	assert_int_equal(queue_release(q, &worker, t->id, t->claim, 0, &is), 0);
	for (i = 0; i < 3; i++)
		queue_claim(q, queue_first(q, UINT64_MAX), &worker, i < 2);
	home.stops = true;
	assert_int_equal(queue_worker_give(q, &worker, UINT32_MAX), 3);
	stop();
	start();
	assert_int_equal(q->count.now[RGATE_TASK_READY], 3);
	for (i = 0; i < 3; i++)
		assert_int_equal(queue_find(q, i + 1)->attempts, tried[i]);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(test_##fn, setup, teardown)

static const struct CMUnitTest tests[] = {
	TEST(removed), TEST(lost), TEST(same_name), TEST(aside), TEST(ended),
};

UNIT_MAIN(tests)
