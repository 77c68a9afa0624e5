// SPDX-License-Identifier: MIT OR GPL-2.0
/* What terminals and logs get of others' text. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

/* It belongs to the programs, so it is in no library. */
#include "../../tools/ringgate/clean.c"
#undef _GNU_SOURCE	/* as it says itself */
#include "../../tools/ringgate/table.c"

static void texts(void **state)
{
	static const struct {
		const char *text, *clean;
	} cases[] = {
		{ "", "" }, { "eth0 'ring' \\ ~", "eth0 'ring' \\ ~" },
		{ "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80" },
		{ "\x1b[2J\x1b]0;owned\a", "\\x1b[2J\\x1b]0;owned\\x07" },
		{ "a\nringgated: b\r\t", "a\\x0aringgated: b\\x0d\\x09" },
		{ "\x7f", "\\x7f" },
		/* C1: CSI in one character */
		{ "\xc2\23331m\xc2\xa0", "\\xc2\\x9b31m\xc2\xa0" },
		/* right to left from here on */
		{ "a\xe2\x80\256b", "a\\xe2\\x80\\xaeb" },
		{ "\xe2\x81\xa6\xe2\x80\xa8\xef\xbb\xbf",
		  "\\xe2\\x81\\xa6\\xe2\\x80\\xa8\\xef\\xbb\\xbf" },
		/* no UTF-8: Latin 1, cut, overlong, surrogate, too large */
		{ "\xe4", "\\xe4" }, { "\xe2\x82", "\\xe2\\x82" }, { "\xc0\x80", "\\xc0\\x80" },
		{ "\xe0\x80\xaf", "\\xe0\\x80\\xaf" }, { "\xed\xa0\x80", "\\xed\\xa0\\x80" },
		{ "\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80" }, { "\xff", "\\xff" },
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		char *got = clean_dup(cases[i].text);

		assert_string_equal(got, cases[i].clean);
		free(got);
	}
}

static void cells(void **state)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	struct table t;

	(void)state;
	assert_int_equal(table_init(&t, "<NAME N"), 0);
	assert_int_equal(table_cell(&t, "%s", "\x1b[H"), 0);
	assert_int_equal(table_cell(&t, "%u", 1), 0);
	table_print(&t, f);
	table_free(&t);
	fclose(f);
	assert_string_equal(text, "NAME    N\n\\x1b[H  1\n");
	free(text);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(texts),
	cmocka_unit_test(cells),
};

UNIT_MAIN_ALONE(tests)
