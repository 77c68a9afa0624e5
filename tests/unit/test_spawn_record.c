// SPDX-License-Identifier: MIT OR GPL-2.0
/* Requests for processes as bytes: what is written is read, and nothing else is. */
#include "unit.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "record.h"
#include "spawn_client.h"

static void *encode(const struct rgate_spawn_request *req, size_t *len)
{
	int64_t size = rgate_spawn_encoded_size(req);
	void *buf;

	assert_true(size > 0);
	/* of that size and no more, for the sanitizers */
	buf = malloc((size_t)size);
	assert_non_null(buf);
	rgate_spawn_encode(req, buf, (size_t)size);
	*len = (size_t)size;
	return buf;
}

static int decode(const void *buf, size_t len, struct rgate_spawn_parsed *p)
{
	const char *why = NULL;
	int err = rgate_spawn_decode(buf, len, p, &why);

	if (err)
		assert_non_null(why);
	return err;
}

static const char *const argv[] = { "prog", "", "a b", "\xc3\xa4\xff\x01", NULL };
static const char *const env[] = { "A=1", "B=", "C==x", NULL };
static const char *const unset[] = { "D", "E", NULL };

static struct rgate_spawn_request full(void)
{
	return RGATE_OPTS(rgate_spawn_request, .exe = "/bin/prog", .argv = argv, .cwd = "/tmp",
			  .env = env, .unset = unset, .stdin_mode = RGATE_SPAWN_IN_DATA,
			  .stdout_mode = RGATE_SPAWN_OUT_TAIL,
			  .stderr_mode = RGATE_SPAWN_OUT_STDOUT, .input = "in\0put",
			  .input_len = 6, .tail_bytes = 100, .flags = RGATE_SPAWN_KEEP,
			  .wall_ms = 1ULL << 34, .memory = 1ULL << 40, .cpu_s = 5,
			  .processes = 6, .files = 7, .nice = -8, .set_umask = true,
			  .umask = 027, .grace_ms = 9);
}

static void round_trip(void **state)
{
	struct rgate_spawn_request req = full();
	struct rgate_spawn_parsed p;
	size_t len;
	void *buf;
	int i;

	(void)state;
	buf = encode(&req, &len);
	assert_int_equal(decode(buf, len, &p), 0);
	assert_string_equal(p.exe, "/bin/prog");
	assert_string_equal(p.cwd, "/tmp");
	assert_int_equal(p.argc, 4);
	for (i = 0; i < 4; i++)
		assert_string_equal(p.argv[i], argv[i]);
	assert_null(p.argv[4]);
	assert_int_equal(p.envc, 3);
	assert_string_equal(p.env[2], "C==x");
	assert_null(p.env[3]);
	assert_int_equal(p.unsetc, 2);
	assert_string_equal(p.unset[1], "E");
	assert_int_equal(p.input_len, 6);
	assert_memory_equal(p.input, "in\0put", 6);
	assert_int_equal(p.stdin_mode, RGATE_SPAWN_IN_DATA);
	assert_int_equal(p.stdout_mode, RGATE_SPAWN_OUT_TAIL);
	assert_int_equal(p.stderr_mode, RGATE_SPAWN_OUT_STDOUT);
	assert_int_equal(p.tail_bytes, 100);
	assert_int_equal(p.flags, RGATE_SPAWN_KEEP);
	assert_true(p.wall_ms == 1ULL << 34 && p.memory == 1ULL << 40);
	assert_true(p.cpu_s == 5 && p.processes == 6 && p.files == 7 && p.nice == -8);
	assert_true(p.umask == 027 && p.grace_ms == 9);
	rgate_spawn_parsed_free(&p);
	free(buf);
}

static void least(void **state)
{
	const char *const one[] = { "x", NULL };
	struct rgate_spawn_request req = RGATE_OPTS(rgate_spawn_request, .argv = one);
	struct rgate_spawn_parsed p;
	size_t len;
	void *buf;

	(void)state;
	buf = encode(&req, &len);
	assert_int_equal(decode(buf, len, &p), 0);
	assert_string_equal(p.exe, "x");
	assert_null(p.cwd);
	assert_true(p.argc == 1 && !p.envc && !p.unsetc && !p.input_len);
	assert_null(p.env[0]);
	assert_int_equal(p.umask, RGATE_SPAWN_UMASK_DEFAULT);
	assert_int_equal(p.grace_ms, RGATE_SPAWN_GRACE_MS);
	rgate_spawn_parsed_free(&p);
	free(buf);
}

/* Every byte but NUL, and as many arguments as there is room for */
static void large(void **state)
{
	static const char *env[RGATE_SPAWN_ENV_MAX + 2];	/* ends with NULL */
	const unsigned int n = 100000;
	const char **many = calloc(n + 1, sizeof(*many));
	struct rgate_spawn_request req = RGATE_OPTS(rgate_spawn_request, .argv = many);
	struct rgate_spawn_parsed p;
	char bytes[256], *huge;
	size_t len, i;
	void *buf;

	(void)state;
	assert_non_null(many);
	for (i = 0; i < 255; i++)
		bytes[i] = (char)(i + 1);
	bytes[255] = '\0';
	for (i = 0; i < n; i++)
		many[i] = i == 7 ? bytes : "12345678";
	buf = encode(&req, &len);
	assert_true(len > 900000);
	assert_int_equal(decode(buf, len, &p), 0);
	assert_int_equal(p.argc, n);
	assert_string_equal(p.argv[7], bytes);
	assert_string_equal(p.argv[n - 1], "12345678");
	rgate_spawn_parsed_free(&p);
	free(buf);
	/* exactly the limit, and one more */
	huge = malloc(RGATE_SPAWN_RECORD_MAX + 1);
	assert_non_null(huge);
	len = RGATE_SPAWN_RECORD_MAX - sizeof(struct rgate_spawn_record) - 4;
	memset(huge, 'x', len + 1);
	huge[len] = '\0';
	many[0] = "p";
	many[1] = huge;
	many[2] = NULL;
	huge[len - 1] = '\0';
	assert_int_equal(rgate_spawn_encoded_size(&req), RGATE_SPAWN_RECORD_MAX);
	buf = encode(&req, &len);
	assert_int_equal(decode(buf, len, &p), 0);
	assert_int_equal(p.argc, 2);
	rgate_spawn_parsed_free(&p);
	free(buf);
	/* as many strings as may be, and one more */
	many[1] = NULL;
	req.env = env;
	for (i = 0; i < RGATE_SPAWN_ENV_MAX; i++)
		env[i] = "a=";
	assert_true(rgate_spawn_encoded_size(&req) > 0);
	env[i] = "a=";
	assert_int_equal(rgate_spawn_encoded_size(&req), -E2BIG);
	req.env = NULL;
	many[1] = huge;
	huge[strlen(huge)] = 'y';
	assert_int_equal(rgate_spawn_encoded_size(&req), -E2BIG);
	free(huge);
	free(many);
}

/* As programs do that ask by requests */
static void by_programs(void **state)
{
	struct rgate_spawn_request req = full();
	char *buf, *want;
	int64_t size;
	size_t len;

	(void)state;
	req.sz = sizeof(req);
	want = encode(&req, &len);
	size = rgate_spawn_record_encode(&req, NULL, 0);
	assert_int_equal(size, len);
	buf = calloc(1, len + 1);
	assert_non_null(buf);
	assert_int_equal(rgate_spawn_record_encode(&req, buf, len - 1), -ENOBUFS);
	assert_int_equal(buf[0], 0);
	assert_int_equal(rgate_spawn_record_encode(&req, buf, len + 1), len);
	assert_memory_equal(buf, want, len);
	assert_int_equal(buf[len], 0);
	assert_int_equal(rgate_spawn_record_encode(NULL, buf, len), -EINVAL);
	req.argv = NULL;
	assert_int_equal(rgate_spawn_record_encode(&req, buf, len), -EINVAL);
	req.sz = 0;
	assert_int_equal(rgate_spawn_record_encode(&req, buf, len), -EINVAL);
	free(buf);
	free(want);
}

static void refused_by_writer(void **state)
{
	static const char *const no_equals[] = { "A", NULL };
	static const char *const no_name[] = { "=A", NULL };
	static const char *const with_equals[] = { "A=B", NULL };
	static const char *const nothing[] = { NULL };
	struct rgate_spawn_request req;

	(void)state;
#define REFUSED(change)							\
	do {								\
		req = full();						\
		change;							\
		assert_int_equal(rgate_spawn_encoded_size(&req), -EINVAL); \
	} while (0)
	REFUSED(req.argv = NULL);
	REFUSED(req.argv = nothing);
	REFUSED(req.exe = "");
	REFUSED(req.cwd = "tmp");
	REFUSED(req.cwd = "");
	REFUSED(req.env = no_equals);
	REFUSED(req.env = no_name);
	REFUSED(req.unset = with_equals);
	REFUSED(req.env_mode = 2);
	REFUSED(req.env_mode = RGATE_SPAWN_ENV_REPLACE);
	REFUSED(req.stdin_mode = 3);
	REFUSED(req.stdin_mode = RGATE_SPAWN_IN_STREAM);
	REFUSED(req.input = NULL);
	REFUSED(req.stdout_mode = RGATE_SPAWN_OUT_STDOUT);
	REFUSED(req.stderr_mode = 4);
	REFUSED(req.tail_bytes = 0);
	REFUSED(req.tail_bytes = RGATE_SPAWN_TAIL_MAX + 1);
	REFUSED(req.flags = 4);
	REFUSED(req.nice = 20);
	REFUSED(req.nice = -21);
	REFUSED(req.umask = 01000);
	REFUSED(req.wall_ms = UINT64_MAX);
#undef REFUSED
}

static void set16(void *buf, size_t at, uint16_t v)
{
	v = htole16(v);
	memcpy((char *)buf + at, &v, sizeof(v));
}

static void set32(void *buf, size_t at, uint32_t v)
{
	v = htole32(v);
	memcpy((char *)buf + at, &v, sizeof(v));
}

#define AT(field)	offsetof(struct rgate_spawn_record, field)

static void refused_by_reader(void **state)
{
	struct rgate_spawn_request req = full();
	struct rgate_spawn_parsed p;
	size_t len, i;
	char *good, *buf;

	(void)state;
	good = encode(&req, &len);
	buf = malloc(len);
	assert_non_null(buf);
#define REFUSED(change, error)						\
	do {								\
		memcpy(buf, good, len);					\
		change;							\
		assert_int_equal(decode(buf, len, &p), error);		\
	} while (0)
	REFUSED(buf[0] ^= 1, -EPROTO);
	REFUSED(set16(buf, AT(version), 2), -EPROTONOSUPPORT);
	REFUSED(set16(buf, AT(header), 160), -EPROTONOSUPPORT);
	REFUSED(set32(buf, AT(length), (uint32_t)len - 1), -EPROTO);
	REFUSED(set32(buf, AT(flags), 8), -EPROTO);
	REFUSED(set32(buf, AT(exe), 0), -EPROTO);
	REFUSED(set32(buf, AT(exe), 16), -EPROTO);
	REFUSED(set32(buf, AT(exe), (uint32_t)len), -EPROTO);
	REFUSED(set32(buf, AT(exe), UINT32_MAX), -EPROTO);
	REFUSED(set32(buf, AT(exe) + 4, UINT32_MAX), -EPROTO);
	REFUSED(set32(buf, AT(exe) + 4, 1), -EPROTO);
	REFUSED(set32(buf, AT(exe) + 4, 9), -EPROTO);
	REFUSED(set32(buf, AT(exe) + 8, 2), -EPROTO);
	REFUSED(set32(buf, AT(argv) + 8, 3), -EPROTO);
	REFUSED(set32(buf, AT(argv) + 8, 5), -EPROTO);
	REFUSED(set32(buf, AT(argv) + 8, RGATE_SPAWN_ARGS_MAX), -EPROTO);
	REFUSED(set32(buf, AT(argv) + 8, RGATE_SPAWN_ARGS_MAX + 1), -E2BIG);
	REFUSED(set32(buf, AT(argv) + 8, UINT32_MAX), -E2BIG);
	REFUSED(memset(buf + AT(argv), 0, 12), -EPROTO);
	REFUSED(set32(buf, AT(env) + 8, RGATE_SPAWN_ENV_MAX), -EPROTO);
	REFUSED(set32(buf, AT(env) + 8, RGATE_SPAWN_ENV_MAX + 1), -E2BIG);
	REFUSED(set32(buf, AT(env) + 8, UINT32_MAX - 7), -E2BIG);
	REFUSED(set32(buf, AT(unset) + 8, RGATE_SPAWN_ENV_MAX + 1), -E2BIG);
	REFUSED(set32(buf, AT(input) + 4, UINT32_MAX), -EPROTO);
	REFUSED(set32(buf, AT(input) + 8, 1), -EPROTO);
	REFUSED(buf[AT(env_mode)] = 1, -EPROTO);
	REFUSED(buf[AT(env_mode)] = 2, -EPROTO);
	REFUSED(buf[AT(stdin_mode)] = 3, -EPROTO);
	REFUSED(buf[AT(stdin_mode)] = RGATE_SPAWN_IN_STREAM, -EPROTO);
	REFUSED(buf[AT(stdout_mode)] = 3, -EPROTO);
	REFUSED(buf[AT(stderr_mode)] = 4, -EPROTO);
	REFUSED(set32(buf, AT(tail_bytes), 0), -EPROTO);
	REFUSED(set32(buf, AT(nice), 20), -EPROTO);
	REFUSED(set32(buf, AT(umask), 01000), -EPROTO);
	REFUSED(memset(buf + AT(wall_ms), 0xff, 8), -EPROTO);
	REFUSED(buf[AT(reserved) + 9] = 1, -EPROTO);
	REFUSED(buf[le32toh(((struct rgate_spawn_record *)good)->cwd.offset)] = 'x', -EPROTO);
	REFUSED(buf[le32toh(((struct rgate_spawn_record *)good)->env.offset)] = '=', -EPROTO);
	REFUSED(buf[le32toh(((struct rgate_spawn_record *)good)->unset.offset)] = '=', -EPROTO);
#undef REFUSED
	assert_int_equal(decode(good, 0, &p), -EPROTO);
	assert_int_equal(decode(good, RGATE_SPAWN_RECORD_MAX + 1, &p), -E2BIG);
	/* cut anywhere, with the length as announced or mended; memory ends there too */
	for (i = 0; i < len; i++) {
		char *cut = malloc(i ? i : 1);

		assert_non_null(cut);
		memcpy(cut, good, i);
		assert_int_equal(decode(cut, i, &p), -EPROTO);
		if (i >= AT(length) + 4) {
			set32(cut, AT(length), (uint32_t)i);
			assert_int_equal(decode(cut, i, &p), -EPROTO);
		}
		free(cut);
	}
	free(buf);
	free(good);
}

/* What is read of garbled bytes is in the record, and keeps the rules */
static void garbled(void **state)
{
	struct rgate_spawn_request req = full();
	uint64_t seed = 4711, fine = 0;
	struct rgate_spawn_parsed p;
	unsigned int i, k, rounds = unit_rounds(200000);
	char *good, *buf;
	size_t len;

	(void)state;
	good = encode(&req, &len);
	buf = malloc(len);
	assert_non_null(buf);
	for (i = 0; i < rounds; i++) {
		memcpy(buf, good, len);
		for (k = 0; k <= unit_random(&seed) % 3; k++)
			buf[unit_random(&seed) % len] = (char)unit_random(&seed);
		if (decode(buf, len, &p))
			continue;
		fine++;
		assert_true(p.exe > buf && p.exe + strlen(p.exe) < buf + len);
		assert_true(p.argc >= 1 && p.nice >= -20 && p.nice < 20);
		for (k = 0; k < p.argc; k++)
			assert_true(p.argv[k] > buf && p.argv[k] + strlen(p.argv[k]) < buf + len);
		for (k = 0; k < p.envc; k++)
			assert_non_null(strchr(p.env[k], '='));
		rgate_spawn_parsed_free(&p);
	}
	assert_true(fine && fine < rounds);
	free(buf);
	free(good);
}

/* Whatever a node lists, who asks it for what comes next gets somewhere. */
static void listed(void **state)
{
	static const uint64_t ids[] = { 0, 5, 6, 6, 3, 7, UINT64_MAX, 0 };
	static const bool fine[] = { false, false, true, false, false, true, true, false };
	struct rgate_spawn_entry e, to;
	uint64_t last = 5;
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(ids); i++) {
		e = (struct rgate_spawn_entry){ .id = htole64(ids[i]), .pid = htole32(i) };
		assert_int_equal(client_take_entry(&to, &e, &last), fine[i] ? 0 : -EPROTO);
		if (!fine[i])
			continue;
		assert_int_equal(last, ids[i]);
		assert_memory_equal(&to, &e, sizeof(e));
	}
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(listed),
	cmocka_unit_test(round_trip),
	cmocka_unit_test(least),
	cmocka_unit_test(large),
	cmocka_unit_test(by_programs),
	cmocka_unit_test(refused_by_writer),
	cmocka_unit_test(refused_by_reader),
	cmocka_unit_test(garbled),
};

UNIT_MAIN_ALONE(tests)
