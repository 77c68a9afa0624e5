// SPDX-License-Identifier: MIT OR GPL-2.0
/* The pcapng writer of the CLI: every byte of small files, and what it does with
 * a file that takes nothing. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

/* It belongs to the CLI, so it is in no library. */
#include "../../tools/ringgate/pcapng.c"

static int make_file(void)
{
	int fd = memfd_create("pcapng", MFD_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

/* The file as 32-bit words */
static size_t contents(int fd, uint32_t *words, size_t max)
{
	ssize_t n = pread(fd, words, max * sizeof(*words), 0);

	assert_true(n >= 0);
	assert_int_equal(n % sizeof(*words), 0);
	return n / sizeof(*words);
}

static uint32_t word(const char text[4])
{
	uint32_t v;

	memcpy(&v, text, sizeof(v));
	return v;
}

static void assert_words(int fd, size_t from, const uint32_t *want, size_t n)
{
	uint32_t got[256];
	size_t len = contents(fd, got, 256), i;

	assert_int_equal(len, from + n);
	for (i = 0; i < n; i++)
		if (got[from + i] != want[i])
			fail_msg("word %zu is %08x, not %08x", i,
				 got[from + i], want[i]);
}

#define ASSERT_WORDS(fd, from, w) \
	assert_words(fd, from, w, sizeof(w) / sizeof((w)[0]))

static void test_section(void **state)
{
	/* texts of 4, 3 and 5 bytes: no padding, some, and more */
	const uint32_t want[] = {
		0x0a0d0d0a, 64, 0x1a2b3c4d, 0x00000001, 0xffffffff, 0xffffffff,
		4 << 16 | 2, word("arch"),
		3 << 16 | 3, word("os1\0"),
		5 << 16 | 4, word("ringg"), word("g\0\0"),
		0, 64,
	};
	uint32_t fixed[16];
	struct pcapng *p;
	int fd = make_file();

	(void)state;
	memcpy(fixed, want, sizeof(want));
	fixed[1] = fixed[14] = 15 * 4;
	assert_int_equal(pcapng_new(&p, fd, "arch", "os1", "ringg"), 0);
	assert_int_equal(pcapng_bytes(p), 60);
	assert_int_equal(lseek(fd, 0, SEEK_END), 0);
	assert_int_equal(pcapng_free(p), 0);
	assert_words(fd, 0, fixed, 15);
	close(fd);
}

/* A writer with a bare section of 8 words behind it */
static struct pcapng *begin(int fd)
{
	struct pcapng *p;

	assert_int_equal(pcapng_new(&p, fd, NULL, NULL, NULL), 0);
	assert_int_equal(pcapng_flush(p), 0);
	assert_int_equal(lseek(fd, 0, SEEK_CUR), 32);
	return p;
}

static void test_interface(void **state)
{
	const struct pcapng_interface eth = {
		.name = "eth0", .filter = "ip", .link = LINK_ETHERNET,
		.snaplen = 2004,
	};
	const struct pcapng_interface raw = { .name = "x", .link = LINK_RAW };
	const uint32_t want[] = {
		1, 52, 1, 2004,
		4 << 16 | 2, word("eth0"),
		1 << 16 | 9, 9,
		3 << 16 | 11, word("\0ip\0"),
		0, 0, 52,
	};
	const uint32_t want_raw[] = {
		1, 40, 101, 0, 1 << 16 | 2, word("x\0\0"), 1 << 16 | 9, 9, 0, 40,
	};
	uint32_t fixed[12];
	int fd = make_file();
	struct pcapng *p = begin(fd);

	(void)state;
	/* the end of options is one word */
	memcpy(fixed, want, sizeof(fixed));
	fixed[1] = fixed[11] = 48;
	assert_int_equal(pcapng_interface(p, &eth), 0);
	assert_int_equal(pcapng_flush(p), 0);
	assert_words(fd, 8, fixed, 12);
	assert_int_equal(pcapng_interface(p, &raw), 1);
	assert_int_equal(pcapng_free(p), 0);
	ASSERT_WORDS(fd, 20, want_raw);
	close(fd);
}

static const struct pcapng_interface plain = { .name = "x", .link = LINK_RAW };

static void test_packet(void **state)
{
	/* 5 bytes in two pieces, of 9; then all options; then none of a packet */
	const struct iovec iov[] = { { "ab", 2 }, { "cde", 3 } };
	struct pcapng_packet pkt = {
		.orig_len = 9, .time_ns = 0x1122334455667788ULL, .queue = -1,
		.iov = iov, .iovcnt = 2,
	};
	const uint32_t want[] = {
		6, 40, 0, 0x11223344, 0x55667788, 5, 9, word("abcd"),
		word("e\0\0"), 40,
	};
	const uint32_t want_opts[] = {
		6, 64, 0, 0x11223344, 0x55667788, 0, 9,
		4 << 16 | 2, PCAPNG_INBOUND | PCAPNG_MULTICAST,
		8 << 16 | 4, 7, 1,
		4 << 16 | 6, 3, 0, 64,
	};
	int fd = make_file();
	struct pcapng *p = begin(fd);

	(void)state;
	assert_int_equal(pcapng_packet(p, &pkt), -EINVAL);	/* no interface */
	assert_int_equal(pcapng_interface(p, &plain), 0);
	assert_int_equal(pcapng_packet(p, &pkt), 0);
	assert_int_equal(pcapng_flush(p), 0);
	ASSERT_WORDS(fd, 18, want);
	pkt.iovcnt = 0;
	pkt.flags = PCAPNG_INBOUND | PCAPNG_MULTICAST;
	pkt.dropped = 0x100000007ULL;
	pkt.queue = 3;
	assert_int_equal(pcapng_packet(p, &pkt), 0);
	pkt.interface = 1;
	assert_int_equal(pcapng_packet(p, &pkt), -EINVAL);
	assert_int_equal(pcapng_free(p), 0);
	ASSERT_WORDS(fd, 28, want_opts);
	close(fd);
}

static void test_stats(void **state)
{
	const struct pcapng_stats s = {
		.time_ns = 0x200000001ULL, .start_ns = 0x100000002ULL,
		.received = 10, .dropped = 1, .accepted = 8, .delivered = 7,
	};
	const uint32_t want[] = {
		5, 100, 0, 2, 1,
		8 << 16 | 2, 1, 2,
		8 << 16 | 3, 2, 1,
		8 << 16 | 4, 10, 0,
		8 << 16 | 5, 1, 0,
		8 << 16 | 6, 8, 0,
		8 << 16 | 8, 7, 0,
		0, 100,
	};
	int fd = make_file();
	struct pcapng *p = begin(fd);

	(void)state;
	assert_int_equal(pcapng_stats(p, 0, &s), -EINVAL);
	assert_int_equal(pcapng_interface(p, &plain), 0);
	assert_int_equal(pcapng_stats(p, 0, &s), 0);
	assert_int_equal(pcapng_free(p), 0);
	ASSERT_WORDS(fd, 18, want);
	close(fd);
}

/* Larger than the buffer, and many that fill it: every byte is there. */
static void test_large(void **state)
{
	static unsigned char big[2 << 20], block[sizeof(big) + 32];
	const struct iovec iov = { big, sizeof(big) }, small = { big, 1001 };
	struct pcapng_packet pkt = {
		.orig_len = sizeof(big), .queue = -1, .iov = &iov, .iovcnt = 1,
	};
	uint32_t len;
	off_t off = 32 + 40;
	int fd = make_file(), i;
	struct pcapng *p = begin(fd);

	(void)state;
	for (i = 0; i < (int)sizeof(big); i++)
		big[i] = i * 7 + (i >> 8);
	assert_int_equal(pcapng_interface(p, &plain), 0);
	assert_int_equal(pcapng_packet(p, &pkt), 0);
	pkt.iov = &small;
	for (i = 0; i < 1000; i++)
		assert_int_equal(pcapng_packet(p, &pkt), 0);
	assert_int_equal(pcapng_bytes(p), off + sizeof(block) + 1000 * 1036);
	assert_int_equal(pcapng_free(p), 0);

	assert_int_equal(pread(fd, block, sizeof(block), off), sizeof(block));
	memcpy(&len, block + 4, 4);
	assert_int_equal(len, sizeof(block));
	assert_memory_equal(block + 28, big, sizeof(big));
	off += sizeof(block);
	for (i = 0; i < 1000; i++, off += 1036) {
		assert_int_equal(pread(fd, block, 1036, off), 1036);
		memcpy(&len, block + 1032, 4);
		assert_int_equal(len, 1036);
		assert_memory_equal(block + 28, big, 1001);
		assert_memory_equal(block + 28 + 1001, "\0\0\0", 3);
	}
	assert_int_equal(lseek(fd, 0, SEEK_END), off);
	close(fd);
}

/* The first error stays, and nothing is written behind it. */
static void test_errors(void **state)
{
	const struct iovec iov = { "abcd", 4 };
	struct pcapng_packet pkt = {
		.orig_len = 4, .queue = -1, .iov = &iov, .iovcnt = 1,
	};
	struct pcapng *p;
	int fds[2], fd;

	(void)state;
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(pcapng_new(&p, fds[1], NULL, NULL, NULL), 0);
	assert_int_equal(pcapng_interface(p, &plain), 0);
	assert_int_equal(pcapng_flush(p), 0);
	close(fds[0]);
	assert_int_equal(pcapng_packet(p, &pkt), 0);
	assert_int_equal(pcapng_flush(p), -EPIPE);
	assert_int_equal(pcapng_packet(p, &pkt), -EPIPE);
	assert_int_equal(pcapng_free(p), -EPIPE);
	close(fds[1]);

	fd = open("/dev/full", O_WRONLY);
	assert_true(fd >= 0);
	assert_int_equal(pcapng_new(&p, fd, NULL, NULL, NULL), 0);
	assert_int_equal(pcapng_flush(p), -ENOSPC);
	assert_int_equal(pcapng_interface(p, &plain), -ENOSPC);
	assert_int_equal(pcapng_free(p), -ENOSPC);
	close(fd);
	assert_int_equal(pcapng_free(NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_section),
		cmocka_unit_test(test_interface),
		cmocka_unit_test(test_packet),
		cmocka_unit_test(test_stats),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
