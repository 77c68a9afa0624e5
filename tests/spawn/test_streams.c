// SPDX-License-Identifier: MIT OR GPL-2.0
/* Output and input: all of it, in order, at any speed. */
#include "serve.h"

#include <errno.h>
#include <openssl/evp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct serve s;

/* Of a long stream: a GiB in a long run */
static uint64_t much(void)
{
	return (uint64_t)unit_rounds(serve_long() ? 1024 : 128) << 20;
}

static void hex(const unsigned char *md, char *out)
{
	int i;

	for (i = 0; i < 32; i++)
		sprintf(out + 2 * i, "%02x", md[i]);
}

/* Hash of what comes from the stream until its end */
static uint64_t hash_stream(struct rgate_spawn_job *job, char *out)
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	char *buf = malloc(1 << 20);
	unsigned char md[32];
	uint64_t sum = 0;
	ssize_t n;

	assert_true(ctx && buf);
	EVP_DigestInit_ex(ctx, EVP_sha256(), NULL);
	while ((n = rgate_spawn_job_read(job, 1, buf, 1 << 20, MS)) > 0) {
		EVP_DigestUpdate(ctx, buf, (size_t)n);
		sum += (uint64_t)n;
	}
	assert_int_equal(n, 0);
	EVP_DigestFinal_ex(ctx, md, NULL);
	EVP_MD_CTX_free(ctx);
	free(buf);
	hex(md, out);
	return sum;
}

/* A program's output, and its hash as the program has found it, on stderr */
static void much_output(void **state)
{
	const unsigned long bytes = much();
	char script[256], hash[65];
	const char *const argv[] = { "/bin/bash", "-c", script, NULL };
	struct rgate_spawn_request req = RGATE_OPTS(rgate_spawn_request, .argv = argv,
		.stdout_mode = RGATE_SPAWN_OUT_STREAM, .stderr_mode = RGATE_SPAWN_OUT_STREAM,
		.ring_bytes = 1 << 20);
	struct rgate_spawn_result r = { .sz = sizeof(r) };
	struct rgate_spawn_job *job;
	char told[65] = "";
	uint64_t began = unit_now_ns();

	(void)state;
	snprintf(script, sizeof(script),
		 "yes 'some line of text, over and over' | head -c %lu | "
		 "tee >(sha256sum >&2) && wait", bytes);
	assert_int_equal(rgate_spawn_start(s.spawn, &req, &job), 0);
	assert_int_equal(hash_stream(job, hash), bytes);
	print_message("# %lu MiB/s\n", (unsigned long)(bytes / 1.048576 /
						       ((double)(unit_now_ns() - began) / 1000)));
	assert_int_equal(rgate_spawn_job_read(job, 2, told, 64, MS), 64);
	assert_string_equal(hash, told);
	assert_int_equal(rgate_spawn_job_wait(job, &r, MS), 0);
	assert_int_equal(r.exit_code, 0);
	assert_int_equal(r.produced[0], bytes);
	rgate_spawn_job_close(job);
}

static void much_input(void **state)
{
	const uint64_t bytes = much();
	static const char *const argv[] = { "/usr/bin/sha256sum", NULL };
	struct rgate_spawn_request req = RGATE_OPTS(rgate_spawn_request, .argv = argv,
		.stdin_mode = RGATE_SPAWN_IN_STREAM, .stdout_mode = RGATE_SPAWN_OUT_STREAM,
		.ring_bytes = 1 << 20);
	struct rgate_spawn_output_buf out[2] = { { 0 }, { 0 } };
	struct rgate_spawn_result r = { .sz = sizeof(r) };
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	struct rgate_spawn_job *job;
	unsigned char md[32];
	uint64_t left, seed = 99;
	uint64_t *buf = malloc(1 << 20);
	char hash[65];
	ssize_t n;
	size_t i;

	(void)state;
	assert_true(ctx && buf);
	for (i = 0; i < (1 << 20) / 8; i++)
		buf[i] = unit_random(&seed);
	EVP_DigestInit_ex(ctx, EVP_sha256(), NULL);
	assert_int_equal(rgate_spawn_start(s.spawn, &req, &job), 0);
	for (left = bytes; left; left -= (uint64_t)n) {
		buf[0]++;
		n = rgate_spawn_job_write(job, buf, left < 1 << 20 ? left : 1 << 20, MS);
		assert_true(n > 0);
		EVP_DigestUpdate(ctx, buf, (size_t)n);
	}
	assert_int_equal(rgate_spawn_job_close_stdin(job), 0);
	assert_int_equal(rgate_spawn_job_collect(job, out, 1 << 20, &r, MS), 0);
	EVP_DigestFinal_ex(ctx, md, NULL);
	EVP_MD_CTX_free(ctx);
	hex(md, hash);
	assert_int_equal(r.exit_code, 0);
	assert_int_equal(strncmp(out[0].data, hash, 64), 0);
	rgate_spawn_job_close(job);
	free(out[0].data);
	free(out[1].data);
	free(buf);
}

/* Bytes through cat, in pieces of all sizes, both ways at once, in the smallest ring */
static void echo(void **state)
{
	struct rgate_spawn_job *job = start(&s, 0, "/bin/cat");
	uint8_t out[9000], in[9000], expect[9000];
	uint64_t sent = 0, got = 0, seed = 5, total = unit_rounds(4000000);
	ssize_t n, i;

	(void)state;
	while (got < total) {
		n = (ssize_t)(unit_random(&seed) % sizeof(out)) + 1;
		for (i = 0; i < n; i++)
			out[i] = (uint8_t)((sent + (uint64_t)i) * 2654435761U >> 13);
		if (sent < total) {
			n = rgate_spawn_job_write(job, out, (size_t)n, 0);
			assert_true(n > 0 || n == -EAGAIN);
			sent += n > 0 ? (uint64_t)n : 0;
		} else {
			assert_int_equal(rgate_spawn_job_close_stdin(job), 0);
		}
		n = rgate_spawn_job_read(job, 1, in, 1 + unit_random(&seed) % sizeof(in),
					 sent < total ? 0 : MS);
		if (n == -EAGAIN)
			continue;
		if (!n)
			break;
		assert_true(n > 0);
		for (i = 0; i < n; i++)
			expect[i] = (uint8_t)((got + (uint64_t)i) * 2654435761U >> 13);
		assert_memory_equal(in, expect, (size_t)n);
		got += (uint64_t)n;
	}
	assert_true(sent >= total);
	assert_int_equal(rgate_spawn_job_close_stdin(job), 0);
	while ((n = rgate_spawn_job_read(job, 1, in, sizeof(in), MS)) > 0)
		got += (uint64_t)n;
	assert_int_equal(n, 0);
	assert_int_equal(got, sent);
	assert_int_equal(rgate_spawn_job_wait(job, NULL, MS), 0);
	rgate_spawn_job_close(job);
}

static struct done run_modes(const char *script, uint32_t out, uint32_t err, uint32_t tail)
{
	const char *const argv[] = { "/bin/sh", "-c", script, NULL };
	struct rgate_spawn_request req = RGATE_OPTS(rgate_spawn_request, .argv = argv,
		.stdout_mode = out, .stderr_mode = err, .tail_bytes = tail);

	return run_request(&s, &req);
}

static void modes(void **state)
{
	struct done d;

	(void)state;
	d = run_modes("echo a; echo b >&2; echo c", RGATE_SPAWN_OUT_STREAM,
		      RGATE_SPAWN_OUT_STDOUT, 0);
	assert_ran(&d, 0, "a\nb\nc\n");
	d = run_modes("echo a; echo b >&2; readlink /proc/$$/fd/1 | cat >&2", RGATE_SPAWN_OUT_NONE,
		      RGATE_SPAWN_OUT_STREAM, 0);
	assert_string_equal(d.out[1].data, "b\n/dev/null\n");
	assert_ran(&d, 0, NULL);
	/* the last bytes of more and of less */
	d = run_modes("seq 1 100000; echo err >&2", RGATE_SPAWN_OUT_TAIL, RGATE_SPAWN_OUT_TAIL, 14);
	assert_string_equal(d.out[1].data, "err\n");
	assert_int_equal(d.r.dropped[0], 588895 - 14);
	assert_int_equal(d.r.dropped[1], 0);
	assert_ran(&d, 0, "\n99999\n100000\n");
	/* more than the ring has room for */
	d = run_modes("seq 1 100000", RGATE_SPAWN_OUT_TAIL, RGATE_SPAWN_OUT_NONE, 200001);
	assert_int_equal(d.out[0].len, 200001);
	assert_string_equal(d.out[0].data + 200001 - 7, "100000\n");
	assert_ran(&d, 0, NULL);
	/* exactly a ring full, which nobody reads before the end */
	d = run_modes("head -c 65536 /dev/zero", RGATE_SPAWN_OUT_STREAM, RGATE_SPAWN_OUT_NONE, 0);
	assert_int_equal(d.out[0].len, 65536);
	assert_ran(&d, 0, NULL);
}

static void full_ring_ends(void **state)
{
	static const char *const argv[] = { "/usr/bin/head", "-c", "4096", "/dev/zero", NULL };
	const struct rgate_spawn_request req = RGATE_OPTS(rgate_spawn_request, .argv = argv,
		.stdout_mode = RGATE_SPAWN_OUT_STREAM, .ring_bytes = 4096);
	struct rgate_spawn_job *job;
	char buf[5000];

	(void)state;
	assert_int_equal(rgate_spawn_start(s.spawn, &req, &job), 0);
	assert_int_equal(rgate_spawn_job_wait(job, NULL, MS), 0);
	assert_int_equal(rgate_spawn_job_read(job, 1, buf, sizeof(buf), 0), 4096);
	assert_int_equal(rgate_spawn_job_read(job, 1, buf, sizeof(buf), 0), 0);
	rgate_spawn_job_close(job);
}

static void given_input(void **state)
{
	static const char *const argv[] = { "/bin/cat", NULL };
	char *big = malloc(900000);
	struct rgate_spawn_request req = RGATE_OPTS(rgate_spawn_request, .argv = argv,
		.stdin_mode = RGATE_SPAWN_IN_DATA, .stdout_mode = RGATE_SPAWN_OUT_STREAM,
		.input = "given\n", .input_len = 6);
	struct done d;

	(void)state;
	assert_non_null(big);
	d = run_request(&s, &req);
	assert_ran(&d, 0, "given\n");
	memset(big, 'g', 900000);
	req.input = big;
	req.input_len = 900000;
	d = run_request(&s, &req);
	assert_int_equal(d.out[0].len, 900000);
	assert_memory_equal(d.out[0].data, big, 900000);
	assert_ran(&d, 0, NULL);
	req.input_len = 0;
	d = run_request(&s, &req);
	assert_ran(&d, 0, "");
	free(big);
}

/* A reader that does not read stops its own program, and no other */
static void slow_reader(void **state)
{
	struct rgate_spawn_job *slow = start(&s, 0, "/bin/sh", "-c",
					     "seq 1 100000; echo done >&2");
	struct rgate_spawn_result r = { .sz = sizeof(r) };
	char buf[4096];
	uint64_t sum = 0;
	struct done d;
	ssize_t n;
	int i;

	(void)state;
	for (i = 0; i < 20; i++) {
		d = run(&s, "/usr/bin/seq", "1", "20000");
		assert_int_equal(d.out[0].len, 108894);
		assert_ran(&d, 0, NULL);
	}
	assert_int_equal(rgate_spawn_job_wait(slow, &r, 200), -ETIMEDOUT);
	assert_int_equal(rgate_spawn_job_read(slow, 2, buf, sizeof(buf), 0), -EAGAIN);
	while ((n = rgate_spawn_job_read(slow, 1, buf, sizeof(buf), MS)) > 0)
		sum += (uint64_t)n;
	assert_int_equal(sum, 588895);
	assert_int_equal(rgate_spawn_job_read(slow, 2, buf, sizeof(buf), MS), 5);
	assert_int_equal(rgate_spawn_job_wait(slow, &r, MS), 0);
	assert_int_equal(r.exit_code, 0);
	rgate_spawn_job_close(slow);
}

/* Ends of streams that come before the end of the process, and after it */
static void ends(void **state)
{
	struct rgate_spawn_job *job;
	struct rgate_spawn_result r = { .sz = sizeof(r) };
	uint64_t began;
	struct done d;
	char buf[16];

	(void)state;
	job = start(&s, 0, "/bin/sh", "-c", "exec >&- 2>&-; read line; exit 4");
	assert_int_equal(rgate_spawn_job_read(job, 1, buf, sizeof(buf), MS), 0);
	assert_int_equal(rgate_spawn_job_read(job, 2, buf, sizeof(buf), MS), 0);
	assert_int_equal(rgate_spawn_job_wait(job, &r, 200), -ETIMEDOUT);
	assert_int_equal(rgate_spawn_job_write(job, "\n", 1, MS), 1);
	assert_int_equal(rgate_spawn_job_wait(job, &r, MS), 0);
	assert_int_equal(r.exit_code, 4);
	rgate_spawn_job_close(job);
	/* output of what lives on is waited for */
	began = unit_now_ns();
	d = run(&s, "/bin/sh", "-c", "(sleep 0.5; echo late) & echo early");
	assert_true(unit_now_ns() - began > 450000000);
	assert_ran(&d, 0, "early\nlate\n");
	/* stdin that nobody reads any more */
	job = start(&s, 0, "/bin/sh", "-c", "exec <&-; sleep 100");
	wait_for(rgate_spawn_job_write(job, "0123456789abcdef", 16, 0) == -EPIPE);
	assert_int_equal(rgate_spawn_job_kill(job, SIGKILL, RGATE_SPAWN_TO_TREE), 0);
	assert_int_equal(rgate_spawn_job_wait(job, &r, MS), 0);
	assert_int_equal(rgate_spawn_job_write(job, "x", 1, MS), -EPIPE);
	rgate_spawn_job_close(job);
}

/*
 * A program that writes packets (O_DIRECT), one of them from where it has no memory. Kernels
 * before 6.15 leave an empty packet then, which reads as 0 bytes with more behind it: as here,
 * where the server reads what it has moved into its own pipe.
 */
enum odd { ODD_NOT, ODD_BROKEN, ODD_EMPTY };

static enum odd odd;		/* the server's, which is a copy of this process */
static bool moved;

ssize_t __real_splice(int in, off64_t *at_in, int out, off64_t *at_out, size_t len,
		      unsigned int flags);
ssize_t __wrap_splice(int in, off64_t *at_in, int out, off64_t *at_out, size_t len,
		      unsigned int flags);
ssize_t __real_read(int fd, void *buf, size_t len);
ssize_t __wrap_read(int fd, void *buf, size_t len);

ssize_t __wrap_splice(int in, off64_t *at_in, int out, off64_t *at_out, size_t len,
		      unsigned int flags)
{
	const ssize_t n = __real_splice(in, at_in, out, at_out, len, flags);

	moved = n > 0 && odd != ODD_NOT;
	return n;
}

ssize_t __wrap_read(int fd, void *buf, size_t len)
{
	const enum odd what = odd;

	if (!moved)
		return __real_read(fd, buf, len);
	moved = false;
	odd = ODD_NOT;
	errno = EIO;
	return what == ODD_EMPTY ? 0 : -1;
}

static struct done letters(char letter)
{
	char script[96];

	snprintf(script, sizeof(script), "head -c 60000 /dev/zero | tr '\\0' %c | dd bs=60000 "
		 "iflag=fullblock status=none", letter);
	return run(&s, "/bin/sh", "-c", script);
}

static void assert_letters(const struct done *d, char letter)
{
	size_t i;

	assert_int_equal(d->r.exit_code, 0);
	assert_int_equal(d->out[0].len, 60000);
	for (i = 0; i < d->out[0].len; i++)
		assert_int_equal(d->out[0].data[i], letter);
}

/* Whatever becomes of it, none of it is another program's output. */
static void odd_output(void **state)
{
	enum odd what;
	struct done d;

	(void)state;
	for (what = ODD_BROKEN; what <= ODD_EMPTY; what++) {
		odd = what;
		serve_up(&s, NULL);
		odd = ODD_NOT;
		d = letters('a');
		if (what == ODD_EMPTY)
			assert_letters(&d, 'a');
		done_free(&d);
		d = letters('b');
		assert_letters(&d, 'b');
		done_free(&d);
		serve_down(&s);
	}
}

static int up(void **state)
{
	(void)state;
	serve_up(&s, NULL);
	return 0;
}

static int up_hub(void **state)
{
	s.hub = true;
	return up(state);
}

static int down(void **state)
{
	(void)state;
	serve_down(&s);
	s.hub = false;
	return 0;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, up, down)

static const struct CMUnitTest tests[] = {
	TEST(much_output),
	TEST(much_input),
	TEST(echo),
	{ "echo (on a hub)", echo, up_hub, down, NULL },
	TEST(modes),
	TEST(full_ring_ends),
	TEST(given_input),
	TEST(slow_reader),
	TEST(ends),
	cmocka_unit_test(odd_output),
};

UNIT_MAIN(tests)
