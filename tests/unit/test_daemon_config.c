// SPDX-License-Identifier: MIT OR GPL-2.0
/* What ringgated is told: each key, the limits of its values, and what is said of a wrong line */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ringgate/rgate_daemon.h>

#include "../../tools/ringgated/config.h"
#include "refuse.h"

static char said[4096];

/* The tools' own (tools/ringgate/util.h, which has another fail() than cmocka): here it is kept. */
void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void say(const char *fmt, ...)
{
	const size_t at = strlen(said);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(said + at, sizeof(said) - at, fmt, ap);
	va_end(ap);
	strncat(said, ";", sizeof(said) - strlen(said) - 1);
}

static bool refuse_mine(void)
{
	return true;
}

static void put(char *to, const char *key, const char *value)
{
	if (value)
		snprintf(to + strlen(to), 1024 - strlen(to), "%s=%s ", key, value);
}

static void put_number(char *to, const char *key, uint64_t v)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)v);
	if (v)
		put(to, key, text);
}

/* All that is not as it is without a line */
static const char *told(const struct config *c)
{
	static const char *const kinds[] = { "module", "packet", "udp" };
	const struct source_conf *s;
	static char text[1024];

	text[0] = '\0';
	put(text, "cluster", c->cluster);
	put(text, "text", c->cluster_text);
	put(text, "node", c->node);
	put(text, "socket", strcmp(c->socket, RGATE_DAEMON_SOCKET) ? c->socket : NULL);
	put(text, "steer", c->steer);
	put(text, "user", c->user);
	put(text, "group", c->group);
	put(text, "spawn_policy", c->spawn_policy);
	put(text, "spawn_cgroup", c->spawn_cgroup);
	put(text, "requests_socket", c->requests_socket);
	put(text, "requests_group", c->requests_group);
	put(text, "requests_policy", c->requests_policy);
	put(text, "requests_sockets", c->requests_sockets);
	put_number(text, "there", c->sockets_there);
	put_number(text, "agents", c->agents);
	put(text, "journal", c->journal);
	put_number(text, "sync", c->journal_sync_ms);
	put_number(text, "segment", c->journal_segment);
	put_number(text, "repair", c->journal_repair);
	put_number(text, "pool", c->pool != 64ULL << 20 ? c->pool : 0);
	put_number(text, "ring_memory", c->ring_memory);
	put_number(text, "spin", c->spin_us);
	put_number(text, "pack", c->pack);
	for (s = c->sources; s < c->sources + c->nsources; s++) {
		put(text, kinds[s->kind], s->at);
		put_number(text, "slots", s->slots);
		put_number(text, "slot_size", s->slot_size);
		put_number(text, "policy", s->policy);
		put_number(text, "steal", s->steal);
		put_number(text, "all", s->all);
		put(text, "filter", s->filter);
	}
	return text;
}

static void begin(struct config *c)
{
	assert_int_equal(config_load(c, "/nonexistent/conf", false), 0);
	said[0] = '\0';
}

/* ---- Lines that are right ---- */

static void right(void **state)
{
	static const struct {
		const char *line, *told;
	} lines[] = {
		{ "", "" },
		{ "# pool 3M", "" },
		{ "cluster /a", "cluster=/a " },
		{ "cluster-line node 0 \"a b\" c", "text=node 0 \"a b\" c\n " },
		{ "node 3", "node=3 " },
		{ "socket /s", "socket=/s " },
		{ "steer \"/a b\"", "steer=/a b " },
		{ "user u", "user=u " },
		{ "group g", "group=g " },
		{ "spawn policy /p", "spawn_policy=/p " },
		{ "spawn cgroup /c", "spawn_cgroup=/c " },
		{ "spawn cgroup none", "spawn_cgroup= " },
		{ "requests socket /s", "requests_socket=/s " },
		{ "requests group g", "requests_group=g " },
		{ "requests policy /p", "requests_policy=/p " },
		{ "requests sockets /s", "requests_sockets=/s " },
		{ "requests sockets-at here", "" },
		{ "requests sockets-at gateway", "there=1 " },
		{ "requests agent shared", "agents=1 " },
		{ "requests agent own", "" },
		/* UINT32_MAX and 0: JOURNAL_SYNC_NEVER and JOURNAL_SYNC_EACH */
		{ "journal /j", "journal=/j " },
		{ "journal /j fsync each", "journal=/j " },
		{ "journal /j fsync never", "journal=/j sync=4294967295 " },
		{ "journal /j fsync 1", "journal=/j sync=1 " },
		{ "journal /j fsync 3600000", "journal=/j sync=3600000 " },
		{ "journal /j segment 64K repair", "journal=/j segment=65536 repair=1 " },
		{ "journal /j segment 16M", "journal=/j segment=16777216 " },
		{ "pool 2M", "pool=2097152 " },
		{ "pool 1024G", "pool=1099511627776 " },
		{ "ring-memory 1", "ring_memory=1 " },
		{ "ring-memory 1024G", "ring_memory=1099511627776 " },
		{ "spin 0", "" },
		{ "spin 1000000", "spin=1000000 " },
		{ "pack auto", "" },
		{ "pack never", "pack=1 " },
		{ "pack always", "pack=2 " },
		{ "source module eth0", "module=eth0 " },
		{ "source packet 15-characters-x", "packet=15-characters-x " },
		{ "source udp 127.0.0.1:80 slots 64 slot_size 256",
		  "udp=127.0.0.1:80 slots=64 slot_size=256 " },
		{ "source udp 127.0.0.1:80 slots 1048576", "udp=127.0.0.1:80 slots=1048576 " },
		{ "source module a policy drop", "module=a " },
		{ "source module a policy pass", "module=a policy=2 " },
		{ "source module a action mirror", "module=a " },
		{ "source module a action steal all", "module=a steal=1 all=1 " },
		{ "source module a action steal filter tcp port 80",
		  "module=a steal=1 filter=tcp port 80 " },
		{ "source packet a filter \"udp\"", "packet=a filter=udp " },
	};
	struct config c;
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(lines); i++) {
		begin(&c);
		assert_int_equal(config_line(&c, "at", lines[i].line), 0);
		assert_string_equal(said, "");
		assert_string_equal(told(&c), lines[i].told);
		config_free(&c);
	}
}

/* ---- Lines that are wrong ---- */

static void wrong(void **state)
{
	static const struct {
		const char *line, *said;
	} lines[] = {
		{ "user \"u", "at: a quote that does not end: 'user \"u';" },
		{ "colour blue", "at: there is no such key: 'colour';" },
		{ "user", "at: a value is missing behind: 'user';" },
		{ "user \" \"", "at: a value is missing behind: 'user';" },
		{ "user \"\"", "at: a value is missing behind: 'user';" },
		{ "cluster-line", "at: a value is missing behind: 'cluster-line';" },
		{ "user a b",
		  "at: this is too much; what has blanks stands in quotes: 'b';" },
		{ "pool x", "at: this is no number: 'x';" },
		{ "pool 2097151", "at: a pool has 2M or more, not: '2097151';" },
		{ "pool 1025G", "at: this is too large: '1025G';" },
		{ "ring-memory 0", "at: rings need some memory, not: '0';" },
		{ "ring-memory 1025G", "at: this is too large: '1025G';" },
		{ "spin 1000001", "at: this is too large: '1000001';" },
		{ "spin 1K", "at: this is no number: '1K';" },
		{ "pack some", "at: pack is auto, never or always, not: 'some';" },
		{ "journal /j segment 65535", "at: a segment has 64K to 16M, not: '65535';" },
		{ "journal /j segment 16777217", "at: this is too large: '16777217';" },
		{ "journal /j fsync 0", "at: fsync is each, never or some ms, not: '0';" },
		{ "journal /j fsync 3600001", "at: this is too large: '3600001';" },
		{ "journal /j fsync 1K", "at: this is no number: '1K';" },
		{ "journal /j fsync", NULL },
		{ "journal /j slow 1", NULL },
		{ "spawn policy", NULL },
		{ "spawn policy \"\"", NULL },
		{ "spawn cgroup \"\"", NULL },
		{ "spawn user u", NULL },
		{ "requests socket", NULL },
		{ "requests socket \"\"", NULL },
		{ "requests group \"\"", NULL },
		{ "requests policy \"\"", NULL },
		{ "requests sockets \"\"", NULL },
		{ "requests sockets-at", NULL },
		{ "requests sockets-at there", NULL },
		{ "requests agent", NULL },
		{ "requests agent ours", NULL },
		{ "requests agents shared", NULL },
		{ "source module", "at: a source is: KIND DEVICE or udp ADDRESS:PORT: 'module';" },
		{ "source tcp a", "at: a source is of kind module, packet or udp: 'tcp';" },
		{ "source module 16-characters-xy",
		  "at: this is too long for a device: '16-characters-xy';" },
		{ "source udp 127.0.0.1", NULL },
		{ "source module a policy", "at: a value is missing behind: 'policy';" },
		{ "source module a policy spill",
		  "at: the policy of a gateway's ring is drop or pass: 'spill';" },
		{ "source module a action take",
		  "at: the action of a source is mirror or steal: 'take';" },
		{ "source module a slots 1048577", "at: this is too large: '1048577';" },
		{ "source module a slots x", "at: this is no number: 'x';" },
		{ "source module a slot 1", NULL },
		{ "source module a filter", "at: a filter is missing behind: 'filter';" },
		{ "source module a filter \"\"", "at: a filter is missing behind: 'filter';" },
		{ "source packet a action steal all",
		  "at: only a source of kind module steals, not that of: 'a';" },
		{ "source module a action steal",
		  "at: a source that steals needs 'all' or a filter: 'a';" },
		{ "source module a all", "at: 'all' is for a source that steals: 'a';" },
		{ "source module a all action steal filter tcp",
		  "at: 'all' and a filter exclude each other: 'a';" },
	};
	struct config c;
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(lines); i++) {
		begin(&c);
		assert_int_equal(config_line(&c, "at", lines[i].line), -EINVAL);
		if (lines[i].said)
			assert_string_equal(said, lines[i].said);
		else
			assert_true(!strncmp(said, "at: ", 4) && strlen(said) > 4);
		assert_int_equal(c.nsources, 0);
		config_free(&c);
	}
}

/* Of a place of @len characters, a source; 0, or -EINVAL */
static int source_of(struct config *c, size_t len)
{
	char line[256] = "source udp ";

	memset(line + strlen(line), '1', len);
	return config_line(c, "at", line);
}

static void too_many(void **state)
{
	struct config c;
	char line[64];
	int i;

	(void)state;
	begin(&c);
	for (i = 0; i < SOURCES_MAX; i++) {
		snprintf(line, sizeof(line), "source packet p%d filter udp", i);
		assert_int_equal(config_line(&c, "at", line), 0);
	}
	assert_int_equal(config_line(&c, "at", "source packet more"), -EINVAL);
	assert_string_equal(said, "at: there are too many sources: 'packet';");
	assert_int_equal(c.nsources, SOURCES_MAX);
	config_free(&c);
	assert_int_equal(c.nsources, 0);
	/* too long to be kept, and one that is kept, but is no address */
	begin(&c);
	assert_int_equal(source_of(&c, sizeof(c.sources[0].at)), -EINVAL);
	assert_string_equal(said, "at: a source is: KIND DEVICE or udp ADDRESS:PORT: 'udp';");
	said[0] = '\0';
	assert_int_equal(source_of(&c, sizeof(c.sources[0].at) - 1), -EINVAL);
	assert_null(strstr(said, "KIND"));
	config_free(&c);
}

/* What comes later holds; a second journal has nothing of the first one. */
static void again(void **state)
{
	struct config c;

	(void)state;
	begin(&c);
	assert_int_equal(config_line(&c, "at", "user a"), 0);
	assert_int_equal(config_line(&c, "at", "user b"), 0);
	assert_int_equal(config_line(&c, "at", "requests sockets-at gateway"), 0);
	assert_int_equal(config_line(&c, "at", "requests sockets-at here"), 0);
	assert_int_equal(config_line(&c, "at", "requests agent shared"), 0);
	assert_int_equal(config_line(&c, "at", "requests agent own"), 0);
	assert_int_equal(config_line(&c, "at", "journal /j fsync 7 segment 1M repair"), 0);
	assert_int_equal(config_line(&c, "at", "journal /k"), 0);
	assert_int_equal(config_line(&c, "at", "cluster-line a"), 0);
	assert_int_equal(config_line(&c, "at", "cluster-line b"), 0);
	assert_string_equal(told(&c), "text=a\nb\n user=b journal=/k ");
	config_free(&c);
}

/* ---- A file ---- */

static int load(struct config *c, const char *text, bool must_exist)
{
	char dir[UNIT_DIR_ROOM], path[UNIT_DIR_ROOM + 8];
	FILE *f;
	int err;

	unit_dir_make(dir);
	snprintf(path, sizeof(path), "%s/c", dir);
	f = text ? fopen(path, "w") : NULL;
	assert_true(!text || f);
	if (f) {
		fputs(text, f);
		fclose(f);
	}
	said[0] = '\0';
	err = config_load(c, path, must_exist);
	unit_dir_empty(dir);
	rmdir(dir);
	return err;
}

static void files(void **state)
{
	struct config c;

	(void)state;
	assert_int_equal(load(&c, "user a\n\n# x\npool 3M\n", true), 0);
	assert_string_equal(told(&c), "user=a pool=3145728 ");
	config_free(&c);
	assert_int_equal(load(&c, NULL, false), 0);
	assert_string_equal(told(&c), "");
	assert_string_equal(said, "");
	config_free(&c);
	assert_int_equal(load(&c, NULL, true), -ENOENT);
	assert_non_null(strstr(said, "/c: No such file or directory;"));
	config_free(&c);
	/* with the line, and nothing behind it is read */
	assert_int_equal(load(&c, "user a\n\npool x\nuser b\n", true), -EINVAL);
	assert_non_null(strstr(said, "/c:3: this is no number: 'x';"));
	assert_string_equal(c.user, "a");
	config_free(&c);
	assert_int_equal(load(&c, "user a\nuser \"b\n", true), -EINVAL);
	assert_non_null(strstr(said, "/c:2: a quote that does not end;"));
	config_free(&c);
}

/* Memory that there is not, at each place: it is said, and nothing stays */
static void refused_each(void **state)
{
	static const char *const lines[] = {
		"user u", "cluster-line a", "requests sockets /s", "spawn cgroup none",
		"journal /j repair", "source packet a filter udp or tcp",
	};
	struct config c;
	unsigned int i, n;
	int err, injected;

	(void)state;
	refuse_setup();
	for (i = 0; i < ARRAY_LEN(lines); i++) {
		for (n = 1;; n++) {
			refuse(n);
			err = config_load(&c, "/nonexistent/conf", false);
			err = err ? err : config_line(&c, "at", lines[i]);
			injected = refusal->injected;
			refuse(0);
			config_free(&c);
			assert_int_equal(err, -injected);
			if (!err)
				break;
		}
		/* the default, the file, the line itself, and what is kept of it */
		assert_int_equal(n, 5);
	}
	/* what was there before stays */
	begin(&c);
	assert_int_equal(config_line(&c, "at", "user a"), 0);
	refuse(2);
	assert_int_equal(config_line(&c, "at", "user b"), -ENOMEM);
	refuse(0);
	assert_string_equal(told(&c), "user=a ");
	config_free(&c);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(right),
	cmocka_unit_test(wrong),
	cmocka_unit_test(too_many),
	cmocka_unit_test(again),
	cmocka_unit_test(files),
	cmocka_unit_test(refused_each),
};

UNIT_MAIN_ALONE(tests)
