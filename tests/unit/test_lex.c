// SPDX-License-Identifier: MIT OR GPL-2.0
/* Lines and words of configuration files, and how files are read. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"
#include "lex.h"

/* A copy of its own size, so that a sanitizer sees a read behind it */
static char *begin(struct rgate_lex *lex, const char *text, size_t len, size_t most)
{
	char *copy = malloc(len + 1);

	assert_non_null(copy);
	memcpy(copy, text, len);
	rgate_lex_init(lex, copy, len, most);
	return copy;
}

/* All words of all lines: each behind '<', each line behind its number */
static void tells(const char *text, const char *wanted)
{
	char got[512] = "", *copy, *word;
	struct rgate_lex lex;
	size_t at = 0;
	int err;

	copy = begin(&lex, text, strlen(text), RGATE_LEX_LINE);
	while ((err = rgate_lex_line(&lex)) > 0) {
		at += (size_t)snprintf(got + at, sizeof(got) - at, "%u", lex.line);
		while ((word = rgate_lex_word(&lex)))
			at += (size_t)snprintf(got + at, sizeof(got) - at, "<%s", word);
	}
	if (err)
		snprintf(got + at, sizeof(got) - at, "%u! %s", lex.line, lex.why);
	assert_string_equal(got, wanted);
	free(copy);
}

static void words(void **state)
{
	(void)state;
	tells("", "");
	tells("\n\n \t\r\n# only this\n", "");
	tells("a", "1<a");
	tells("  a\tb \r\n\nc", "1<a<b3<c");
	tells("a # b \" c\nd#e f#\n#g\n", "1<a2<d#e<f#");
	tells("\"a b\" \"#c\"# d\n", "1! a quote that ends within a word");
	tells("\"a b\" \"#c\" # d\n\"\" e \"\"", "1<a b<#c2<<e<");
	tells("a\"b c\"d", "1<a\"b<c\"d");
	tells("a\n\"b\nc\"", "1<a2! a quote that does not end");
	tells("\"", "1! a quote that does not end");
	tells("a # \"b", "1<a");
}

static void bounds(void **state)
{
	char text[] = "12345\n1234567\n", *copy, *word[2];
	struct rgate_lex lex;

	(void)state;
	copy = begin(&lex, text, sizeof(text) - 1, 6);
	assert_int_equal(rgate_lex_line(&lex), 1);
	assert_int_equal(rgate_lex_line(&lex), -EINVAL);
	assert_string_equal(lex.why, "the line is longer than 6 characters");
	assert_int_equal(lex.line, 2);
	free(copy);
	copy = begin(&lex, text, sizeof(text) - 1, 7);
	assert_int_equal(rgate_lex_line(&lex), 1);
	assert_int_equal(rgate_lex_line(&lex), 1);
	assert_int_equal(rgate_lex_line(&lex), 0);
	assert_int_equal(rgate_lex_line(&lex), 0);
	assert_null(rgate_lex_word(&lex));
	free(copy);
	copy = begin(&lex, "a\0b\n", 4, 7);
	assert_int_equal(rgate_lex_line(&lex), -EINVAL);
	assert_non_null(strstr(lex.why, "has a NUL"));
	free(copy);
	copy = begin(&lex, "a b\na b c\n", 10, 7);
	assert_int_equal(rgate_lex_line(&lex), 1);
	assert_int_equal(rgate_lex_words(&lex, word, 2), 2);
	assert_string_equal(word[1], "b");
	assert_int_equal(rgate_lex_line(&lex), 1);
	assert_int_equal(rgate_lex_words(&lex, word, 2), -E2BIG);
	free(copy);
}

/* What takes the rest of a line as one text */
static void rest(void **state)
{
	static const char text[] = "filter  not \"port  22\"\tand tcp  # c\n"
				   "line node  0 \"a b\" # c\nalone\n";
	struct rgate_lex lex;
	char *copy = begin(&lex, text, strlen(text), RGATE_LEX_LINE), *word;

	(void)state;
	assert_int_equal(rgate_lex_line(&lex), 1);
	(void)rgate_lex_word(&lex);
	word = rgate_lex_word(&lex);
	assert_string_equal(rgate_lex_join(&lex, word), "not port  22 and tcp");
	assert_null(rgate_lex_word(&lex));
	assert_int_equal(rgate_lex_line(&lex), 1);
	(void)rgate_lex_word(&lex);
	assert_string_equal(rgate_lex_rest(&lex), "node  0 \"a b\"");
	assert_null(rgate_lex_word(&lex));
	assert_int_equal(rgate_lex_line(&lex), 1);
	word = rgate_lex_word(&lex);
	assert_string_equal(rgate_lex_join(&lex, word), "alone");
	assert_string_equal(rgate_lex_rest(&lex), "");
	free(copy);
}

/* A file of @len bytes is read where @most is that */
static void reads(const char *path, size_t len)
{
	char *bytes = malloc(len + 1), *text;
	size_t got, i;
	FILE *f = fopen(path, "we");

	assert_non_null(bytes);
	assert_non_null(f);
	for (i = 0; i < len; i++)
		bytes[i] = (char)(i * 7 + 1);
	assert_int_equal(fwrite(bytes, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(rgate_file_read(path, len, &text, &got), 0);
	assert_int_equal(got, len);
	assert_memory_equal(text, bytes, len);
	assert_int_equal(text[len], '\0');
	free(text);
	assert_int_equal(rgate_file_read(path, 1U << 20, &text, &got), 0);
	assert_int_equal(got, len);
	free(text);
	if (len)
		assert_int_equal(rgate_file_read(path, len - 1, &text, &got), -EFBIG);
	free(bytes);
}

/* Who may write it decides whether it is read */
static void owners(void **state)
{
	char path[] = "/tmp/test_lex.XXXXXX", *text;
	int fd = mkstemp(path);
	size_t len;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "abc", 3), 3);
	assert_int_equal(rgate_file_read_own(path, 3, &text, &len), 0);
	assert_int_equal(len, 3);
	assert_string_equal(text, "abc");
	free(text);
	assert_int_equal(rgate_file_read_own(path, 2, &text, &len), -EFBIG);
	assert_int_equal(fchmod(fd, 0644), 0);
	assert_int_equal(rgate_file_read_own(path, 3, &text, &len), 0);
	free(text);
	assert_int_equal(fchmod(fd, 0620), 0);
	assert_int_equal(rgate_file_read_own(path, 3, &text, &len), -EPERM);
	assert_int_equal(fchmod(fd, 0602), 0);
	assert_int_equal(rgate_file_read_own(path, 3, &text, &len), -EPERM);
	assert_int_equal(fchmod(fd, 0600), 0);
	if (!geteuid()) {
		assert_int_equal(fchown(fd, 65534, (gid_t)-1), 0);
		assert_int_equal(rgate_file_read_own(path, 3, &text, &len), -EPERM);
	}
	close(fd);
	unlink(path);
	/* what is no file, and would make who opens it wait */
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(rgate_file_read_own(path, 3, &text, &len), -EPERM);
	unlink(path);
	assert_int_equal(rgate_file_read_own(path, 3, &text, &len), -ENOENT);
}

static void files(void **state)
{
	static const size_t sizes[] = { 0, 1, 4095, 4096, 4097, 8192, 12288, 100000 };
	char path[] = "/tmp/test_lex.XXXXXX", *text;
	const unsigned int before = unit_entries("/proc/self/fd");
	int fd = mkstemp(path);
	unsigned int i;
	size_t len;

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	for (i = 0; i < ARRAY_LEN(sizes); i++)
		reads(path, sizes[i]);
	unlink(path);
	assert_int_equal(rgate_file_read(path, 9, &text, &len), -ENOENT);
	assert_int_equal(rgate_file_read("/", 9, &text, &len), -EISDIR);
	/* what has no size */
	assert_int_equal(rgate_file_read("/proc/self/stat", 4096, &text, &len), 0);
	assert_true(len > 10);
	free(text);
	assert_int_equal(unit_entries("/proc/self/fd"), before);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(words),
	cmocka_unit_test(bounds),
	cmocka_unit_test(rest),
	cmocka_unit_test(files),
	cmocka_unit_test(owners),
};

UNIT_MAIN_ALONE(tests)
