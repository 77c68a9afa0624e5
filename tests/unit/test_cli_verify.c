// SPDX-License-Identifier: MIT OR GPL-2.0
/* What `ringgate pool verify` judges by: does it see what is wrong, and call nothing else so? */
#include "unit.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "json.h"
#include "pool_carve.h"
#include "pool_pattern.h"
#include "pool_peer.h"
#include "pool_report.h"
#include "probe_child.h"
#include "probe_why.h"
#undef fail	/* cmocka's */
#include "util.h"
#include "why.h"

#define MIB	((size_t)1 << 20)
#define BUFFER	65536
#define BUFFERS	(2 * MIB / BUFFER)
#define KEY	0x1234567890abcdefULL

static int poll_err;	/* errno of the next poll(); 0: it works */

extern __typeof__(poll) __real_poll, __wrap_poll;
int __wrap_poll(struct pollfd *fds, nfds_t n, int ms)
{
	if (!poll_err)
		return __real_poll(fds, n, ms);
	errno = poll_err;
	poll_err = 0;
	return -1;
}

static struct carve c;
static char text[CARVE_TEXT];

static int up(void **state)
{
	(void)state;
	unsetenv("RGATE_POOL_DEBUG");
	*text = '\0';
	return carve_create(&c, NULL, 2 * MIB, BUFFER, RGATE_ACCESS_REMOTE, KEY, NULL) ||
	       carve_all(&c);
}

static int down(void **state)
{
	uint64_t rng = 5;

	(void)state;
	return carve_free(&c, &rng) || carve_destroy(&c);
}

static unsigned char *at(size_t i, size_t off)
{
	return (unsigned char *)c.bufs[i]->addr + off;
}

static void patterns(void **state)
{
	unsigned char a[64], b[64], want;
	uint64_t s = 7, t = 7, seen = 0;
	size_t i, k;

	(void)state;
	/* The same bytes wherever one begins to look */
	pattern_fill(a, sizeof(a), KEY, 0);
	for (i = 0; i < 32; i++)
		for (k = 0; k < 32; k++) {
			memset(b, 0, sizeof(b));
			pattern_fill(b, k, KEY, i);
			assert_memory_equal(b, a + i, k);
			assert_int_equal(b[k], 0);
			assert_int_equal(pattern_differs(a + i, k, KEY, i, &want), k);
		}
	/* each that differs, and what it should be */
	for (i = 0; i < sizeof(a); i++) {
		a[i] ^= 0x40;
		assert_int_equal(pattern_differs(a, sizeof(a), KEY, 0, &want), i);
		a[i] ^= 0x40;
		assert_int_equal(want, a[i]);
		assert_int_equal(pattern_differs(a, i, KEY, 0, &want), i);
	}
	pattern_fill(b, sizeof(b), KEY + 1, 0);
	assert_memory_not_equal(a, b, sizeof(a));
	assert_true(pattern_key(KEY, 1) != pattern_key(KEY, 2));
	assert_true(pattern_key(KEY, 1) != pattern_key(KEY + 1, 1));
	assert_true(pattern_seed() != pattern_seed());
	for (i = 0; i < 200; i++) {
		k = pattern_below(&s, 8);
		assert_true(k < 8);
		seen |= 1ULL << k;
		assert_int_equal(k, pattern_random(&t) % 8);
	}
	assert_int_equal(seen, 0xff);
}

static void complete(void **state)
{
	const struct rgate_buf *b;
	size_t i;

	(void)state;
	assert_int_equal(c.n, BUFFERS);
	/* Room for one too many, which would be seen */
	assert_int_equal(c.max, BUFFERS + 1);
	assert_true(carve_complete(&c, text));
	for (i = 0; i < c.n; i++)
		assert_null(carve_misplaced(&c, i));
	/* One fewer than the pool has handed out, and one too many */
	b = c.bufs[--c.n];
	assert_false(carve_complete(&c, text));
	assert_string_equal(text, "31 buffers instead of 32");
	c.n += 2;
	assert_false(carve_complete(&c, text));
	assert_string_equal(text, "33 buffers instead of 32");
	c.n--;
	/* What the pool itself says */
	assert_int_equal(rgate_pool_free(c.pool, b), 0);
	assert_false(carve_complete(&c, text));
	assert_non_null(strstr(text, "32 buffers, but the pool says: 31 used"));
	assert_int_equal(rgate_pool_flush(c.pool), 0);
	assert_false(carve_complete(&c, text));
	assert_non_null(strstr(text, ", 65536 bytes free in one piece"));
	assert_int_equal(rgate_pool_alloc(c.pool, BUFFER, &c.bufs[c.n - 1]), 0);
	assert_true(carve_complete(&c, text));
}

/* A buffer that is not one, in each respect */
static void misplaced(void **state)
{
	const struct rgate_buf *real = c.bufs[3];
	struct rgate_buf b = *real;

	(void)state;
	c.bufs[3] = &b;
	assert_string_equal(carve_misplaced(&c, 3),
			    "is not what the pool finds at its address");
	b.length++;
	assert_string_equal(carve_misplaced(&c, 3), "has another length than was asked for");
	b.length--;
	b.rkey++;
	assert_string_equal(carve_misplaced(&c, 3), "has other keys than its region");
	b.rkey--;
	b.lkey++;
	assert_string_equal(carve_misplaced(&c, 3), "has other keys than its region");
	b.lkey--;
	b.addr = (char *)real->addr + 1;
	assert_string_equal(carve_misplaced(&c, 3), "does not begin on a cache line");
	b.addr = (char *)real->addr + 64;
	assert_string_equal(carve_misplaced(&c, 3), "overlaps the next one");
	b.addr = (char *)c.region.addr - 64;
	assert_string_equal(carve_misplaced(&c, 3), "is not inside of the region");
	b.addr = (char *)c.region.addr + c.region.length;
	assert_string_equal(carve_misplaced(&c, 3), "is not inside of the region");
	b.addr = (char *)c.region.addr + c.region.length - BUFFER + 64;
	assert_string_equal(carve_misplaced(&c, 3), "is not inside of the region");
	c.bufs[3] = real;
	assert_null(carve_misplaced(&c, 3));
	assert_null(carve_misplaced(&c, c.n - 1));
}

static unsigned int told;
static uint64_t told_last, told_of;

static void on_progress(const char *what, uint64_t done, uint64_t total)
{
	assert_string_equal(what, "patterns");
	told++;
	told_last = done;
	told_of = total;
}

/* First and last bytes are always looked at. */
static void damaged(void **state)
{
	char want[64];

	(void)state;
	carve_write(&c, on_progress);
	assert_int_equal(told, BUFFERS);
	assert_int_equal(told_last, BUFFERS);
	assert_int_equal(told_of, BUFFERS);
	assert_int_equal(carve_damaged(&c, text), 0);
	*at(5, 0) ^= 1;
	assert_int_equal(carve_damaged(&c, text), 1);
	snprintf(want, sizeof(want), "buffer 5: byte 0 is %#04x instead of %#04x", *at(5, 0),
		 *at(5, 0) ^ 1);
	assert_string_equal(text, want);
	*at(2, BUFFER - 1) ^= 1;
	assert_int_equal(carve_damaged(&c, text), 2);
	assert_memory_equal(text, "buffer 2: byte 65535 is ", 24);
	/* What was touched is not asked about. */
	c.touched[2] = true;
	assert_int_equal(carve_damaged(&c, text), 1);
	*at(5, 0) ^= 1;
	assert_int_equal(carve_damaged(&c, text), 0);
}

/* A piece, and what is around it, also in its neighbours */
static void pieces(void **state)
{
	const struct piece edge = { .index = 4, .off = BUFFER - 100, .len = 100 };
	const struct piece first = { .index = 0, .off = 0, .len = 64 };
	const struct piece last = { .index = BUFFERS - 1, .off = BUFFER - 64, .len = 64 };
	const struct piece mid = { .index = 9, .off = 30000, .len = 10 };
	const struct piece *const all[] = { &edge, &first, &last, &mid };
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(all); i++) {
		const struct piece *p = all[i];
		unsigned char *begin = piece_addr(&c, p), *end = begin + p->len;

		assert_ptr_equal(begin, at(p->index, p->off));
		carve_write(&c, NULL);
		piece_fill(&c, p, KEY);
		assert_true(c.touched[p->index]);
		assert_int_equal(carve_damaged(&c, text), 0);
		assert_true(piece_untouched(&c, p, KEY, text));
		piece_write(&c, p, KEY + 1);
		assert_true(piece_holds(&c, p, KEY + 1, text));
		assert_true(piece_zones(&c, p, KEY, text));
		assert_false(piece_untouched(&c, p, KEY, text));
		end[-1] ^= 1;
		assert_false(piece_holds(&c, p, KEY + 1, text));
		assert_memory_equal(text, "contents: byte ", 15);
		end[-1] ^= 1;
		*begin ^= 1;
		assert_false(piece_holds(&c, p, KEY + 1, text));
		*begin ^= 1;
		/* right before it, and right behind */
		if (p != &first) {
			begin[-1] ^= 1;
			assert_false(piece_zones(&c, p, KEY, text));
			assert_memory_equal(text, "red zone: byte ", 15);
			begin[-1] ^= 1;
		}
		if (p != &last) {
			*end ^= 1;
			assert_false(piece_zones(&c, p, KEY, text));
			*end ^= 1;
		}
		assert_true(piece_zones(&c, p, KEY, text));
	}
	assert_true(c.touched[8] && c.touched[9] && c.touched[10]);
	assert_false(c.touched[7] || c.touched[11]);
}

static void reports(void **state)
{
	static const char *const names[] = {
		"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p",
	};
	static struct report r;
	char many[REPORT_CHECKS + 3][8];
	char *out = NULL;
	size_t len = 0, i;
	struct json j;
	FILE *f = open_memstream(&out, &len);

	(void)state;
	assert_non_null(f);
	/* Nothing checked is nothing passed. */
	assert_false(report_passed(&r));
	report_add(&r, names[0], true, "not this");
	report_add(&r, names[0], true, "nor this");
	report_skip(&r, names[1], "for a reason");
	assert_true(report_passed(&r));
	report_add(&r, names[2], true, "-");
	report_add(&r, names[2], false, "number %d", 2);
	report_add(&r, names[2], false, "number %d", 3);
	assert_false(report_passed(&r));
	assert_int_equal(r.n, 3);
	json_init(&j, f, false);
	json_object(&j, NULL);
	report_json(&r, &j);
	json_object_end(&j);
	fclose(f);
	assert_string_equal(out, "{\"checks\": ["
		"{\"name\": \"a\", \"count\": 2, \"failed\": 0, \"result\": \"ok\", \"text\": null}, "
		"{\"name\": \"b\", \"count\": 0, \"failed\": 0, \"result\": \"skipped\", "
		"\"text\": \"for a reason\"}, "
		"{\"name\": \"c\", \"count\": 3, \"failed\": 2, \"result\": \"failed\", "
		"\"text\": \"number 2\"}]}");
	free(out);
	/* The last one collects what finds no room. */
	memset(&r, 0, sizeof(r));
	for (i = 0; i < REPORT_CHECKS + 3; i++) {
		snprintf(many[i], sizeof(many[i]), "%zu", i);
		report_add(&r, many[i], i < REPORT_CHECKS, "lost");
	}
	assert_int_equal(r.n, REPORT_CHECKS);
	assert_int_equal(r.checks[REPORT_CHECKS - 1].count, 4);
	assert_int_equal(r.checks[REPORT_CHECKS - 1].failed, 3);
	assert_int_equal(r.checks[REPORT_CHECKS - 2].count, 1);
	assert_false(report_passed(&r));
}

/* How a child ended that probed memory */
static void ends(void **state)
{
	static const struct {
		enum probe_end end;
		int value;
		const char *doing, *want;
	} cases[] = {
		{ END_DONE, 0, "x", "" },
		{ END_SIGNAL, SIGBUS, "reading", "SIGBUS while reading" },
		{ END_SIGNAL, 999, NULL, "SIG? while starting" },
		{ END_TIMEOUT, 0, "registering", "no end of registering" },
		{ END_STUCK, 0, "y", "stuck in the kernel while y" },
		{ END_EXIT, 3, "y", "exit(3) while y" },
		{ END_STOPPED, 0, "y", "interrupted while y" },
	};
	char buf[128];
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		const struct probe_row row = { .end = cases[i].end, .end_value = cases[i].value,
					       .doing = cases[i].doing };

		strcpy(buf, "?");
		probe_why_ended(&row, buf, sizeof(buf));
		assert_string_equal(buf, cases[i].want);
	}
}

static char said[128];

static void on_line(const char *line, size_t len)
{
	snprintf(said, sizeof(said), "%.*s", (int)len, line);
}

/* The answer of the other process, where it cannot be waited for, and where none comes */
static void no_answer(void **state)
{
	struct peer_msg m = { .cmd = PEER_MAP };
	struct peer p = { .time_ns = NSEC / 20 };
	int fds[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	p.fd = fds[0];
	util_set_out(on_line);
	poll_err = ENOMEM;
	assert_int_equal(peer_wait(&p, &m), -ENOMEM);
	assert_string_equal(said, "");
	assert_int_equal(peer_wait(&p, &m), -ETIMEDOUT);
	assert_string_equal(said, "ringgate: the peer process does not answer\n");
	/* a signal is no reason to go */
	assert_int_equal(send(fds[1], &m, sizeof(m), 0), sizeof(m));
	poll_err = EINTR;
	assert_int_equal(peer_wait(&p, &m), 0);
	assert_int_equal(m.cmd, PEER_MAP);
	close(fds[0]);
	close(fds[1]);
}

/* In a child: what has the end that is asked for */
static void come_to(void *arg)
{
	switch (*(const enum probe_end *)arg) {
	case END_DONE:
		return;
	case END_EXIT:
		_exit(3);
	case END_SIGNAL:
		raise(SIGUSR1);
		return;
	default:
		for (;;)
			pause();
	}
}

/* ... as it is found: one that does not end is ended, in time or when it is interrupted. */
static void children(void **state)
{
	static const struct {
		enum probe_end end;
		int value;
		unsigned int seconds;
	} cases[] = {
		{ END_DONE, 0, 60 }, { END_EXIT, 3, 60 }, { END_SIGNAL, SIGUSR1, 60 },
		{ END_TIMEOUT, 0, 0 }, { END_STOPPED, 0, 60 },
	};
	enum probe_end want, end;
	size_t i;
	int value;

	(void)state;
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		want = cases[i].end;
		util_stop = want == END_STOPPED ? SIGINT : 0;
		assert_int_equal(probe_child(come_to, &want, cases[i].seconds, &end, &value), 0);
		assert_int_equal(end, want);
		assert_int_equal(value, cases[i].value);
	}
	util_stop = 0;
}

/* Why memory cannot be used, by what failed where */
static void whys(void **state)
{
	bool whole;
	static const struct probe_type plain = { .name = "malloc" };
	static const struct probe_type odd = { .name = "udmabuf-dmabuf", .refused = "its own" };
	static const struct {
		const struct probe_type *type;
		enum probe_col col;
		int err;
		const char *part;
	} cases[] = {
		{ &plain, COL_TRANSFER, -EBADMSG, "other bytes arrived" },
		{ &plain, COL_TRANSFER, -ETIMEDOUT, "cannot reach itself" },
		{ &plain, COL_TRANSFER, -EREMOTEIO, "refused an access" },
		{ &plain, COL_TRANSFER, -EPERM, "refused an access" },
		{ &plain, COL_GPU, -EINVAL, "the driver cannot map" },
		{ &odd, COL_GPU, -EOPNOTSUPP, "its own" },
		{ &plain, COL_GPU, -ENOMEM, "could not pin it" },
		{ &plain, COL_GPU, -EBADMSG, "not the same bytes" },
		{ &plain, COL_CPU, -EBADMSG, "not the same bytes" },
		{ &odd, COL_PIN, -EFAULT, "its own" },
		{ &plain, COL_PIN, -EFAULT, "Bad address" },
		{ &plain, COL_COPY, -ENOENT, "No such file" },
		{ &plain, COL_READ, -EBADMSG, "it registers, but other bytes" },
		{ &odd, COL_LOCAL, -EFAULT, "its own" },
		{ &plain, COL_LOCAL, -ENOBUFS, "RLIMIT_MEMLOCK is too small" },
		{ &plain, COL_ODP, -EOPNOTSUPP, "cannot do this on demand" },
		{ &odd, COL_LOCAL, -EOPNOTSUPP, "driver or exporter cannot do dma-bufs" },
	};
	struct probe_env env = { .gpu_err = 0 };
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		const struct probe_cell cell = { .err = cases[i].err };

		assert_non_null(strstr(probe_why(cases[i].type, &env, cases[i].col, &cell),
				       cases[i].part));
	}
	strcpy(env.device.driver, "rdma_rxe");
	assert_non_null(strstr(probe_why(&odd, &env, COL_LOCAL,
					 &(struct probe_cell){ .err = -EOPNOTSUPP }),
			       "Soft-RoCE registers no dma-bufs"));
	/* What is known of an error where it is known, and nothing elsewhere */
	assert_non_null(strstr(why_text("rgate_source_start_udp", -EADDRINUSE, &whole),
			       "another socket"));
	assert_true(whole);
	assert_non_null(strstr(why_text("rgate_node_create", -EACCES, &whole), "chmod 600"));
	assert_false(whole);
	assert_non_null(strstr(why_text(WHY_WRITE, -EFBIG, &whole), "ulimit -f"));
	assert_true(whole);
	assert_null(why_text("rgate_source_start_udp", -EISDIR, &whole));
	assert_null(why_text(WHY_SYSTEM, -EISDIR, &whole));
	assert_null(why_text("rgate_ring_open", EACCES, &whole));
	assert_null(why_text("rgate_ring_open", 0, &whole));
	assert_null(why_text("rgate_ring_open", -4096, &whole));
}

#define TEST(f)	cmocka_unit_test_setup_teardown(f, up, down)

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(patterns), TEST(complete), TEST(misplaced), TEST(damaged),
	TEST(pieces), cmocka_unit_test(reports), cmocka_unit_test(ends),
	cmocka_unit_test(no_answer), cmocka_unit_test(children), cmocka_unit_test(whys),
};

UNIT_MAIN_ALONE(tests)
