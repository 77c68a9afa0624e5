// SPDX-License-Identifier: MIT OR GPL-2.0
/* The journal of a home's queues: what is there again, whatever became of its files */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "crc32c.h"
#include "journal_priv.h"

#define MS	1000000ULL
#define ME	1U

static struct queues home;
static struct queue *q;
static struct worker worker;
static struct journal *j;
static char dir[UNIT_DIR_ROOM], path[160];
static uint64_t wall;
static struct journal_opts opts;

static uint64_t wall_now(void)
{
	return wall;
}

static void on_log(void *ctx, enum rgate_log_level level, const char *line)
{
	(void)ctx;
	(void)level;
	if (getenv("JOURNAL_LOG"))
		printf("# %s\n", line);
}

static int setup(void **state)
{
	(void)state;
	rgate_log_set(on_log, NULL);
	unit_dir_make(dir);
	wall = 1700000000000 * MS;
	opts = RGATE_OPTS(journal_opts, .dir = dir, .uid = geteuid(), .wall = wall_now,
			  .segment = 64 << 10);
	q = NULL;
	j = NULL;
	return 0;
}

static int try_open(void)
{
	queues_init(&home);
	home.now = 5000 * MS;
	return journal_open(&j, &home, &opts);
}

static void get_queue(uint32_t flags)
{
	struct queue_open as = { .owner = ME, .flags = RGATE_QUEUE_CREATE | flags };

	strcpy(as.place.name, "q");
	assert_int_equal(queue_open_check(&as), 0);
	assert_int_equal(queues_open(&home, ME, &as, &q), 0);
	queue_worker_init(q, &worker);
}

static void start(void)
{
	assert_int_equal(try_open(), 0);
	get_queue(RGATE_QUEUE_KEEP);
}

/* As if it was killed: nothing more is written of what happens */
static void stop(void)
{
	journal_drain(j);
	journal_close(j);
	queues_fini(&home);
	j = NULL;
	q = NULL;
}

static int teardown(void **state)
{
	(void)state;
	if (j)
		stop();
	unit_dir_empty(dir);
	return rmdir(dir);
}

static uint64_t put_as(const struct rgate_queue_put *put, const void *data, int want)
{
	uint64_t id = 0;

	assert_int_equal(queue_submit(q, ME, 0, put, data, &id), want);
	return id;
}

static uint64_t put(const char *text, uint32_t len)
{
	const struct rgate_queue_put p = { .len = len, .flags = RGATE_TASK_RESULT };

	return put_as(&p, text, 0);
}

static struct task *claim(bool begin)
{
	struct task *t = queue_first(q, UINT64_MAX);

	assert_non_null(t);
	queue_claim(q, t, &worker, begin);
	return t;
}

static void name_of(uint64_t number)
{
	char name[JOURNAL_NAME_ROOM];

	journal_name(number, name);
	snprintf(path, sizeof(path), "%s/%s", dir, name);
}

static char *read_file(uint64_t number, size_t *len)
{
	char *mem = malloc(1 << 21);
	int fd;

	name_of(number);
	fd = open(path, O_RDONLY);
	assert_true(fd >= 0);
	*len = (size_t)read(fd, mem, 1 << 21);
	close(fd);
	return mem;
}

/* The only one that there is */
static void write_file(uint64_t number, const char *mem, size_t len)
{
	int fd;

	unit_dir_empty(dir);
	name_of(number);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_int_equal(write(fd, mem, len), len);
	close(fd);
}

static void test_sum(void **state)
{
	static const char zeros[32];

	(void)state;
	/* RFC 3720, B.4: 32 bytes of zeros; and what is known of "123456789" */
	assert_int_equal(crc32c(0, zeros, 32), 0x8a9136aa);
	assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283);
	assert_int_equal(crc32c_plain(0, "123456789", 9), 0xe3069283);
	assert_int_equal(crc32c(crc32c(0, "1234", 4), "56789", 5), 0xe3069283);
}

static void test_states(void **state)
{
	const struct rgate_queue_put later = { .delay_ms = 60000 };
	uint64_t delayed;
	struct task *t;

	(void)state;
	start();
	put("done", 4);
	put("buried", 6);
	put("begun", 5);
	put("claimed", 7);
	put("waits", 5);
	delayed = put_as(&later, NULL, 0);
	t = claim(true);
	assert_int_equal(queue_complete(q, &worker, t->id, t->claim, "result", 6), 0);
	t = claim(true);
	assert_int_equal(queue_bury(q, &worker, t->id, t->claim, "why", 3), 0);
	claim(true);
	claim(false);
	stop();
	wall += 20000 * MS;
	start();
	assert_int_equal(q->n, 6);
	assert_int_equal(q->last, 6);
	t = queue_find(q, 1);
	assert_int_equal(t->state, RGATE_TASK_DONE);
	assert_int_equal(t->end_len, 6);
	assert_memory_equal(t->end, "result", 6);
	assert_int_equal(q->count.result_bytes, 6);
	/* What is left of its time */
	assert_true(t->timer.at == home.now + (600000 - 20000) * MS);
	t = queue_find(q, 2);
	assert_int_equal(t->state, RGATE_TASK_BURIED);
	assert_memory_equal(t->end, "why", 3);
	/* Claims are over; an attempt was one. In their order */
	assert_int_equal(queue_find(q, 3)->state, RGATE_TASK_READY);
	assert_int_equal(queue_find(q, 3)->attempts, 1);
	assert_int_equal(queue_find(q, 4)->attempts, 0);
	assert_int_equal(claim(false)->id, 3);
	assert_int_equal(claim(false)->id, 4);
	t = queue_find(q, delayed);
	assert_int_equal(t->state, RGATE_TASK_DELAYED);
	assert_true(t->timer.at == home.now + 40000 * MS);
	assert_int_equal(put("next", 4), 7);
	stop();
	/* A result that was not fetched in time is not there. */
	wall += 600000 * MS;
	start();
	assert_int_equal(queues_tick(&home, home.now), UINT64_MAX);
	assert_null(queue_find(q, 1));
	assert_int_equal(queue_find(q, delayed)->state, RGATE_TASK_READY);
}

static void test_gone(void **state)
{
	const struct rgate_queue_put plain = { .len = 1 };
	struct task *t;
	uint64_t id;

	(void)state;
	start();
	put_as(&plain, "a", 0);
	put_as(&plain, "b", 0);
	t = claim(true);
	assert_int_equal(queue_complete(q, &worker, t->id, t->claim, NULL, 0), 0);
	/* It is kept by who has submitted it. */
	assert_int_equal(queue_submit(q, ME, 7, &plain, "c", &id), 0);
	stop();
	start();
	assert_int_equal(q->n, 1);
	assert_int_equal(queue_discard(q, RGATE_TASK_BIT(RGATE_TASK_READY)), 1);
	stop();
	start();
	assert_int_equal(q->n, 0);
	put_as(&plain, "d", 0);
	queues_remove(q);
	/* Whose handles to it are closed then, as its service does: it is nobody's. */
	q->handles--;
	queues_put(q);
	stop();
	assert_int_equal(try_open(), 0);
	assert_int_equal(home.n, 0);
	get_queue(RGATE_QUEUE_KEEP | RGATE_QUEUE_NO_JOURNAL);
	put_as(&plain, "e", 0);
	stop();
	assert_int_equal(try_open(), 0);
	assert_int_equal(home.n, 0);
}

/* Some of all kinds, each synced of its own: the file's bytes */
static char *some(size_t *len)
{
	struct task *t;
	unsigned int i;

	start();
	for (i = 0; i < 4; i++) {
		put("some bytes, and more", 3 + i * 5);
		journal_drain(j);
	}
	t = claim(true);
	journal_drain(j);
	assert_int_equal(queue_complete(q, &worker, t->id, t->claim, "result", 6), 0);
	journal_drain(j);
	queue_drop(q, queue_find(q, 2));
	journal_drain(j);
	put("last", 4);
	stop();
	return read_file(1, len);
}

/* Tasks, when it ends at @len: by the whole records before that */
static uint32_t count_tasks(const char *mem, size_t len)
{
	struct journal_reader r;
	struct journal_got got;
	uint32_t n = 0;

	if (journal_read_head(&r, mem, len))
		return 0;
	while (journal_read_next(&r, &got) == 1)
		n += (got.head.kind == JOURNAL_TASK) - (got.head.kind == JOURNAL_GONE);
	return n;
}

static void open_and_count(uint32_t want)
{
	assert_int_equal(try_open(), 0);
	assert_int_equal(home.ntasks, want);
	stop();
	/* What was cut off is not cut off again. */
	assert_int_equal(try_open(), 0);
	assert_int_equal(home.ntasks, want);
	stop();
}

static void test_torn(void **state)
{
	size_t len, at;
	char *mem = some(&len), *zeros = calloc(1, len);

	(void)state;
	assert_true(len > 600 && len < 2000);
	for (at = 0; at <= len; at++) {
		write_file(1, mem, at);
		open_and_count(count_tasks(mem, at));
		/* Its size was written, and not its bytes */
		if (at % 8)
			continue;
		memcpy(zeros, mem, at);
		write_file(1, zeros, len);
		if (at < sizeof(struct journal_head))
			assert_int_equal(try_open(), -EBADMSG);
		else
			open_and_count(count_tasks(mem, at));
		memset(zeros, 0, len);
	}
	free(zeros);
	free(mem);
}

/* Any bit of what was safe: it says so, changes nothing, and leaves it out when it is told to. */
static void test_wrong(void **state)
{
	const size_t step = unit_rounds_or(1, 3);
	size_t len, at, last = 0, now;
	char *mem = some(&len), *again;
	struct journal_reader r;
	struct journal_got got;

	(void)state;
	assert_int_equal(journal_read_head(&r, mem, len), 0);
	while (journal_read_next(&r, &got) == 1)
		last = got.head.at;
	for (at = 0; at < last; at += step) {
		mem[at] ^= 1;
		write_file(1, mem, len);
		assert_int_equal(journal_check(&opts), -EBADMSG);
		assert_int_equal(try_open(), -EBADMSG);
		queues_fini(&home);
		again = read_file(1, &now);
		assert_int_equal(now, len);
		assert_memory_equal(again, mem, len);
		free(again);
		if (at % 5 == 0) {
			opts.repair = true;
			assert_int_equal(try_open(), 0);
			if (at >= sizeof(struct journal_head) + sizeof(struct journal_record) +
			    sizeof(struct journal_queue))
				assert_true(home.ntasks >= 3);
			stop();
			opts.repair = false;
			assert_int_equal(try_open(), 0);
			stop();
		}
		mem[at] ^= 1;
	}
	free(mem);
}

static void test_reordered(void **state)
{
	struct journal_reader r;
	struct journal_got got;
	char *mem, copy[512];
	size_t len, at[16], n = 0;

	(void)state;
	start();
	put("one", 3);
	put("two", 3);
	journal_drain(j);
	put("end", 3);
	stop();
	mem = read_file(1, &len);
	assert_int_equal(journal_read_head(&r, mem, len), 0);
	while (journal_read_next(&r, &got) == 1)
		if (got.head.kind == JOURNAL_TASK)
			at[n++] = got.head.at;
	assert_int_equal(n, 3);
	assert_true(at[1] - at[0] <= sizeof(copy));
	memcpy(copy, mem + at[0], at[1] - at[0]);
	memmove(mem + at[0], mem + at[1], at[1] - at[0]);
	memcpy(mem + at[1], copy, at[1] - at[0]);
	write_file(1, mem, len);
	assert_int_equal(try_open(), -EBADMSG);
	queues_fini(&home);
	free(mem);
}

static void test_one_alone(void **state)
{
	struct journal *other;
	struct queues more;

	(void)state;
	start();
	queues_init(&more);
	assert_int_equal(journal_open(&other, &more, &opts), -EBUSY);
	assert_int_equal(chmod(dir, 0777), 0);
	stop();
	assert_int_equal(try_open(), -EPERM);
	assert_int_equal(chmod(dir, 0700), 0);
	/* By no other name */
	snprintf(path, sizeof(path), "%s/link", dir);
	assert_int_equal(symlink(dir, path), 0);
	opts.dir = path;
	assert_int_equal(try_open(), -ENOTDIR);
	opts.dir = dir;
	name_of(2);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	assert_int_equal(try_open(), -ELOOP);
	queues_fini(&home);
	assert_int_equal(unlink(path), 0);
	/* One that is missing between */
	name_of(3);
	assert_int_equal(close(open(path, O_CREAT | O_WRONLY, 0600)), 0);
	assert_int_equal(try_open(), -EBADMSG);
	queues_fini(&home);
}

static uint64_t bytes(void)
{
	struct journal_stats s = { .sz = sizeof(s) };

	assert_int_equal(journal_stats(j, &s), 0);
	return s.bytes;
}

#define STAY	50U

/* Tasks that come and go, between those that stay */
static void come_and_go(unsigned int n)
{
	const struct rgate_queue_put p = { .len = 900, .type = 1 };
	static char data[1000];
	struct task *t;
	unsigned int i;

	for (i = 0; i < n; i++) {
		put_as(&p, data, 0);
		t = queue_first(q, 2);
		queue_claim(q, t, &worker, false);
		assert_int_equal(queue_complete(q, &worker, t->id, t->claim, NULL, 0), 0);
		(void)journal_tick(j, home.now);
		if (i % 16 == 0)
			journal_drain(j);
	}
}

static void test_bounded(void **state)
{
	static char data[20000];
	unsigned int i;

	(void)state;
	start();
	for (i = 0; i < STAY; i++) {
		memset(data, (int)i, sizeof(data));
		put(data, sizeof(data));
		come_and_go(10);
	}
	for (i = 0; i < 20; i++) {
		come_and_go(300);
		assert_true(bytes() < 3 * j->live + 4 * opts.segment);
	}
	stop();
	start();
	assert_int_equal(q->n, STAY);
	for (i = 0; i < STAY; i++) {
		struct task *t = claim(false);

		assert_int_equal(t->len, sizeof(data));
		memset(data, (int)i, sizeof(data));
		assert_memory_equal(t->data, data, sizeof(data));
	}
}

/* Killed while it moves tasks and removes files: those that stay are all there. */
static void test_killed(void **state)
{
	static char data[20000];
	unsigned int i, round;
	int status;
	pid_t pid;

	(void)state;
	start();
	for (i = 0; i < STAY; i++)
		put(data, sizeof(data));
	stop();
	for (round = 0; round < 6; round++) {
		pid = fork();
		if (!pid) {
			start();
			come_and_go(1000000);
			_exit(1);
		}
		usleep(30000 + round * 17000);
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
		start();
		for (i = 1; i <= STAY; i++)
			assert_non_null(queue_find(q, i));
		assert_true(q->n <= STAY + 33);
		stop();
	}
}

/* A queue that nobody needs any more at a start is gone for the next one, too. */
static void test_made_again(void **state)
{
	struct queue_open as = { .owner = ME, .flags = RGATE_QUEUE_CREATE };
	struct queue *other;
	unsigned int round;

	(void)state;
	strcpy(as.place.name, "other");
	for (round = 0; round < 4; round++) {
		start();
		if (!round)
			put("stays", 5);
		assert_int_equal(q->n, 1);
		assert_int_equal(home.n, 1);
		assert_int_equal(journal_check(&opts), 0);
		assert_int_equal(queues_open(&home, ME, &as, &other), 0);
		stop();
	}
}

static void set_limit(rlim_t bytes_most)
{
	const struct rlimit l = { bytes_most, RLIM_INFINITY };

	assert_int_equal(setrlimit(RLIMIT_FSIZE, &l), 0);
}

static void test_full(void **state)
{
	static char data[4000];
	const struct rgate_queue_put p = { .len = sizeof(data) };
	struct journal_stats s = { .sz = sizeof(s) };
	unsigned int i, n = 0;
	struct task *t;
	uint64_t id;
	int err = 0;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	start();
	set_limit(20000);
	for (i = 0; i < 1000 && !err; i++, n++) {
		err = queue_submit(q, ME, 0, &p, data, &id);
		journal_drain(j);
	}
	set_limit(RLIM_INFINITY);
	assert_int_equal(err, -ENOSPC);
	assert_int_equal(journal_stats(j, &s), 0);
	assert_int_equal(s.error, -ENOSPC);
	assert_int_equal(s.refused, 1);
	assert_true(s.failed);
	/* The others are there, and end; all of it is written when that can be. */
	t = claim(true);
	assert_int_equal(queue_complete(q, &worker, t->id, t->claim, NULL, 0), 0);
	for (i = 0; i < 500; i++) {
		assert_int_equal(journal_stats(j, &s), 0);
		if (!s.error)
			break;
		usleep(10000);
	}
	assert_int_equal(s.error, 0);
	put_as(&p, data, 0);
	n = q->n;
	stop();
	start();
	assert_int_equal(q->n, n);
}

static int told = INT_MAX;	/* the result of who was held; atomic */

void __wrap_rgate_req_end(struct rgate_req *r, int result, uint64_t value);

void __wrap_rgate_req_end(struct rgate_req *r, int result, uint64_t value)
{
	assert_ptr_equal(r, &told);
	assert_int_equal(value, 0);
	__atomic_store_n(&told, result, __ATOMIC_RELEASE);
}

static int unsynced = -1;	/* a file whose syncs fail; atomic */

int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);

int __wrap_fdatasync(int fd)
{
	if (fd != __atomic_load_n(&unsynced, __ATOMIC_ACQUIRE))
		return __real_fdatasync(fd);
	errno = EIO;
	return -1;
}

/* Nothing goes behind a segment that is full until it is on the disk, whoever waits for that. */
static void test_unsynced_segment(void **state)
{
	static char data[4000];
	const struct rgate_queue_put p = { .len = sizeof(data) };
	struct journal_stats s = { .sz = sizeof(s) };
	unsigned int i, n = 0;

	(void)state;
	opts.sync_ms = JOURNAL_SYNC_NEVER;
	start();
	__atomic_store_n(&unsynced, j->head->fd, __ATOMIC_RELEASE);
	while (n < 100 && !queue_submit(q, ME, 0, &p, data, &(uint64_t){ 0 })) {
		n++;
		journal_drain(j);
	}
	assert_int_equal(journal_stats(j, &s), 0);
	assert_int_equal(s.error, -EIO);
	assert_in_range(n, 8, 20);
	__atomic_store_n(&unsynced, -1, __ATOMIC_RELEASE);
	for (i = 0; i < 2000 && s.error; i++) {
		usleep(10000);
		assert_int_equal(journal_stats(j, &s), 0);
	}
	assert_int_equal(s.error, 0);
	n = q->n;
	stop();
	start();
	assert_int_equal(q->n, n);
}

/* Who has submitted and waits for the disk hears why it was in vain, and his tasks are none. */
static void test_full_and_held(void **state)
{
	static char data[4000];
	const struct rgate_queue_put p = { .len = sizeof(data) };
	struct journal_answer a = { .r = (struct rgate_req *)&told, .result = 1, .submit = true };
	struct journal_stats s = { .sz = sizeof(s) };
	unsigned int i;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	start();
	put_as(&p, data, 0);
	journal_drain(j);
	set_limit(6000);
	a.queue = q->serial;
	a.value = put_as(&p, data, 0);
	journal_hold(j, &a);
	for (i = 0; i < 20000 && __atomic_load_n(&told, __ATOMIC_ACQUIRE) == INT_MAX; i++) {
		journal_tick(j, home.now);
		usleep(1000);
	}
	set_limit(RLIM_INFINITY);
	assert_int_equal(told, -ENOSPC);
	assert_int_equal(q->n, 1);
	assert_null(queue_find(q, a.value));
	assert_int_equal(journal_stats(j, &s), 0);
	assert_int_equal(s.refused, 1);
}

/* It ends while nothing can be written: what was is there. */
static void test_full_at_the_end(void **state)
{
	static char data[4000];
	const struct rgate_queue_put p = { .len = sizeof(data) };
	struct task *t;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	start();
	put_as(&p, data, 0);
	journal_drain(j);
	set_limit(6000);
	put_as(&p, data, 0);
	journal_tick(j, home.now);
	journal_drain(j);
	t = claim(true);
	assert_int_equal(queue_complete(q, &worker, t->id, t->claim, NULL, 0), 0);
	stop();
	set_limit(RLIM_INFINITY);
	start();
	assert_int_equal(q->n, 1);
	assert_non_null(queue_find(q, 1));
}

/* What can be said again and again, while nothing can be written, has an end. */
static void test_crowded(void **state)
{
	const struct rgate_queue_put p = { .attempts = RGATE_QUEUE_ATTEMPTS_MAX };
	struct journal_stats s = { .sz = sizeof(s) };
	uint32_t is;
	struct task *t;
	unsigned int i;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	start();
	for (i = 0; i < 16; i++)
		put_as(&p, NULL, 0);
	journal_drain(j);
	set_limit(4000);
	for (i = 0; !journal_is_crowded(j); i++) {
		assert_true(i < 4000000);
		t = claim(true);
		assert_int_equal(queue_release(q, &worker, t->id, t->claim, 0, &is), 0);
		t->attempts = 0;
	}
	assert_int_equal(journal_stats(j, &s), 0);
	for (i = 0; i < 1000; i++) {
		t = claim(true);
		assert_int_equal(queue_release(q, &worker, t->id, t->claim, 1, &is), 0);
		queue_expire(t);
		t->attempts = 0;
	}
	i = (unsigned int)s.records;
	assert_int_equal(journal_stats(j, &s), 0);
	assert_int_equal(s.records, i);
	set_limit(RLIM_INFINITY);
	stop();
	start();
	assert_int_equal(q->n, 16);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(test_##fn, setup, teardown)

static const struct CMUnitTest tests[] = {
	TEST(sum), TEST(states), TEST(gone), TEST(torn), TEST(wrong), TEST(reordered),
	TEST(one_alone), TEST(bounded), TEST(killed), TEST(full),
	TEST(made_again), TEST(unsynced_segment),
	TEST(full_and_held), TEST(full_at_the_end), TEST(crowded),
};

UNIT_MAIN(tests)
