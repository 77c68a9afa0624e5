// SPDX-License-Identifier: MIT OR GPL-2.0
/* Numbers that the CLI and the daemon are told. */
#include "unit.h"

#include <errno.h>

/* It belongs to the programs, so it is in no library. */
#include "../../tools/ringgate/number.c"

static void whole(void **state)
{
	static const struct {
		const char *text;
		bool suffix;
		uint64_t want;
	} good[] = {
		{ "0", false, 0 }, { "1", false, 1 }, { "010", false, 10 }, { "0x1f", false, 31 },
		{ "0XFF", false, 255 }, { "18446744073709551615", false, UINT64_MAX },
		{ "4K", true, 4096 }, { "4k", true, 4096 }, { "1M", true, 1 << 20 },
		{ "3G", true, 3ULL << 30 }, { "0x10K", true, 16384 }, { "7", true, 7 },
		{ "17179869183G", true, 17179869183ULL << 30 },
	};
	uint64_t v;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(good); i++) {
		v = 99;
		assert_int_equal(number_parse(good[i].text, good[i].suffix, 0, UINT64_MAX, &v), 0);
		assert_int_equal(v, good[i].want);
	}
}

static void no_number(void **state)
{
	static const char *const bad[] = {
		"", " ", " 1", "1 ", "\t1", "1\n", "-1", "+1", "-", "--1", "x", "0x", "0xg", "1x",
		"1.5", "1e3", "1,000", "1K", "K", "0b1", "1_0", "٣",
	};
	static const char *const bad_size[] = {
		"K", "1KB", "1KK", "1T", "1 K", "-1K", "0xK", "1Ki",
	};
	uint64_t v = 99;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(number_parse(bad[i], false, 0, UINT64_MAX, &v), -EINVAL);
	for (i = 0; i < ARRAY_LEN(bad_size); i++)
		assert_int_equal(number_parse(bad_size[i], true, 0, UINT64_MAX, &v), -EINVAL);
	assert_int_equal(v, 99);
}

static void range(void **state)
{
	uint64_t v = 99;

	(void)state;
	assert_int_equal(number_parse("4", false, 5, 7, &v), -ERANGE);
	assert_int_equal(number_parse("8", false, 5, 7, &v), -ERANGE);
	assert_int_equal(number_parse("18446744073709551616", false, 0, UINT64_MAX, &v), -ERANGE);
	assert_int_equal(number_parse("0x10000000000000000", false, 0, UINT64_MAX, &v), -ERANGE);
	/* 2^64 when the unit is counted in */
	assert_int_equal(number_parse("17179869184G", true, 0, UINT64_MAX, &v), -ERANGE);
	assert_int_equal(number_parse("1K", true, 0, 1023, &v), -ERANGE);
	assert_int_equal(v, 99);
	assert_int_equal(number_parse("5", false, 5, 7, &v), 0);
	assert_int_equal(v, 5);
	assert_int_equal(number_parse("7", false, 5, 7, &v), 0);
	assert_int_equal(v, 7);
}

static void with_sign(void **state)
{
	static const char *const bad[] = { "", "-", "--1", "- 1", " -1", "-0x", "1K", "-1K", "+1" };
	int32_t v = 99;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(number_parse_signed(bad[i], INT32_MIN, INT32_MAX, &v), -EINVAL);
	assert_int_equal(number_parse_signed("-21", -20, 19, &v), -ERANGE);
	assert_int_equal(number_parse_signed("20", -20, 19, &v), -ERANGE);
	assert_int_equal(number_parse_signed("2147483648", INT32_MIN, INT32_MAX, &v), -ERANGE);
	assert_int_equal(number_parse_signed("-2147483649", INT32_MIN, INT32_MAX, &v), -ERANGE);
	assert_int_equal(v, 99);
	assert_int_equal(number_parse_signed("-2147483648", INT32_MIN, INT32_MAX, &v), 0);
	assert_int_equal(v, INT32_MIN);
	assert_int_equal(number_parse_signed("2147483647", INT32_MIN, INT32_MAX, &v), 0);
	assert_int_equal(v, INT32_MAX);
	assert_int_equal(number_parse_signed("-20", -20, 19, &v), 0);
	assert_int_equal(v, -20);
}

static void seconds(void **state)
{
	static const char *const bad[] = {
		"", ".", " 1", "1 ", "-1", "+1", "1e3", "inf", "nan", "0x1p3", "1.2.3", "1s",
	};
	uint64_t v = 99;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(number_parse_seconds(bad[i], &v), -EINVAL);
	assert_int_equal(number_parse_seconds("0", &v), -ERANGE);
	assert_int_equal(number_parse_seconds("0.0009", &v), -ERANGE);
	assert_int_equal(number_parse_seconds("1000000001", &v), -ERANGE);
	assert_int_equal(v, 99);
	assert_int_equal(number_parse_seconds("0.001", &v), 0);
	assert_int_equal(v, 1000000);
	assert_int_equal(number_parse_seconds("1.5", &v), 0);
	assert_int_equal(v, 1500000000);
	assert_int_equal(number_parse_seconds("1000000000", &v), 0);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(whole),
	cmocka_unit_test(no_number),
	cmocka_unit_test(range),
	cmocka_unit_test(with_sign),
	cmocka_unit_test(seconds),
};

UNIT_MAIN_ALONE(tests)
