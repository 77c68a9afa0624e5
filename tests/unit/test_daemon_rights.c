// SPDX-License-Identifier: MIT OR GPL-2.0
/* Who may ask ringgated for what: each line of the policy, its limits, and what they add up to */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ringgate/rgate.h>

#include "../../tools/ringgated/requests_policy.h"
#include "refuse.h"

#define USER	4000U
#define OTHER	4001U
#define GROUP	5000U
#define CORE	(1U << RGATE_REQ_CORE)

static char said[1024];

static bool refuse_mine(void)
{
	return true;
}

static void on_log(void *ctx, enum rgate_log_level level, const char *line)
{
	(void)ctx;
	assert_int_equal(level, RGATE_LOG_ERROR);
	snprintf(said + strlen(said), sizeof(said) - strlen(said), "%s;", line);
}

/* Of a file with that text */
static int load(struct request_policy **out, const char *text)
{
	char dir[UNIT_DIR_ROOM], path[UNIT_DIR_ROOM + 8];
	FILE *f;
	int err;

	unit_dir_make(dir);
	snprintf(path, sizeof(path), "%s/p", dir);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	assert_int_equal(chmod(path, 0600), 0);
	said[0] = '\0';
	*out = NULL;
	rgate_log_set(on_log, NULL);
	err = request_policy_load(out, path);
	rgate_log_set(NULL, NULL);
	unit_dir_empty(dir);
	rmdir(dir);
	return err;
}

static struct request_rights rights_of(const char *text, uid_t uid, const gid_t *groups,
				       unsigned int n)
{
	struct request_policy *policy;
	struct request_rights r;

	assert_int_equal(load(&policy, text), 0);
	assert_string_equal(said, "");
	r = request_policy_rights(policy, uid, groups, n);
	request_policy_free(policy);
	return r;
}

static uint32_t services_of(const char *text, uid_t uid)
{
	return rights_of(text, uid, NULL, 0).services;
}

static void assert_limits(const struct request_rights *r, uint64_t sessions, uint64_t requests,
			  uint64_t handles, uint64_t memory)
{
	assert_int_equal(r->most[LIMIT_SESSIONS], sessions);
	assert_int_equal(r->most[LIMIT_REQUESTS], requests);
	assert_int_equal(r->most[LIMIT_HANDLES], handles);
	assert_int_equal(r->most[LIMIT_MEMORY], memory);
}

/* ---- allow ---- */

static void allow(void **state)
{
	static const struct {
		const char *line;
		uint32_t services;
	} lines[] = {
		{ "", 0 },
		{ "allow any core", CORE },
		{ "allow any log", CORE | 1U << RGATE_REQ_LOG },
		{ "allow any spawn", CORE | 1U << RGATE_REQ_SPAWN },
		{ "allow any memory", CORE | 1U << RGATE_REQ_MEMORY },
		{ "allow any lock", CORE | 1U << RGATE_REQ_LOCK },
		{ "allow any barrier", CORE | 1U << RGATE_REQ_BARRIER },
		{ "allow any socket", CORE | 1U << RGATE_REQ_SOCKET },
		{ "allow any queue lock", CORE | 1U << RGATE_REQ_QUEUE | 1U << RGATE_REQ_LOCK },
		{ "allow any 0", CORE },
		{ "allow any 31", CORE | 1U << 31 },
		{ "allow any all", UINT32_MAX },
		{ "allow user:4000 queue", CORE | 1U << RGATE_REQ_QUEUE },
		{ "allow user:4001 queue", 0 },
		{ "allow group:5000 queue", 0 },
		{ "allow user:4000 queue\nallow any lock",
		  CORE | 1U << RGATE_REQ_QUEUE | 1U << RGATE_REQ_LOCK },
		{ "limit any sessions 3", 0 },
		{ "node any any", 0 },
	};
	unsigned int i;

	(void)state;
	assert_int_equal(RGATE_REQ_SERVICES, 32);
	for (i = 0; i < ARRAY_LEN(lines); i++)
		assert_int_equal(services_of(lines[i].line, USER), lines[i].services);
}

/* The last of some, and none of none */
static void groups(void **state)
{
	static const char line[] = "allow group:5000 lock\nurgent group:5000\n"
				   "limit group:5000 sessions 3";
	const gid_t own[] = { 1, GROUP + 1, GROUP };
	struct request_rights r = rights_of(line, USER, own, 3);

	(void)state;
	assert_int_equal(r.services, CORE | 1U << RGATE_REQ_LOCK);
	assert_true(r.urgent);
	assert_limits(&r, 3, 4096, 1024, 64ULL << 20);
	r = rights_of(line, USER, own, 2);
	assert_int_equal(r.services, 0);
	assert_false(r.urgent);
	assert_limits(&r, 64, 4096, 1024, 64ULL << 20);
	/* a group's number is not a user's */
	assert_int_equal(services_of("allow user:5000 lock", USER), 0);
}

static void urgent(void **state)
{
	(void)state;
	assert_true(rights_of("urgent user:4000", USER, NULL, 0).urgent);
	assert_true(rights_of("urgent any\nallow any lock", USER, NULL, 0).urgent);
	assert_false(rights_of("urgent user:4001", USER, NULL, 0).urgent);
	assert_false(rights_of("allow any all", USER, NULL, 0).urgent);
}

/* Root and the daemon's own user, whatever the file says, and without limits */
static void always(void **state)
{
	const uid_t who[] = { 0, geteuid() };
	struct request_policy *policy;
	struct request_rights r;
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(who); i++) {
		r = rights_of("limit any sessions 1", who[i], NULL, 0);
		assert_int_equal(r.services, UINT32_MAX);
		assert_true(r.urgent);
		assert_limits(&r, 0, 0, 0, 0);
	}
	/* without a file nobody else anything */
	assert_int_equal(request_policy_load(&policy, NULL), 0);
	r = request_policy_rights(policy, geteuid() + 1, NULL, 0);
	assert_int_equal(r.services, 0);
	assert_false(r.urgent);
	assert_false(request_policy_speaks(policy, 0, USER));
	request_policy_free(policy);
	request_policy_free(NULL);
}

/* ---- limit ---- */

static void limits(void **state)
{
	struct request_rights r = rights_of("limit any sessions 1 requests 1 handles 1 memory 1",
					    USER, NULL, 0);

	(void)state;
	assert_limits(&r, 1, 1, 1, 1);
	r = rights_of("limit any sessions 1000000 requests 1000000000\n"
		      "limit any handles 1000000000 memory 1024G", USER, NULL, 0);
	assert_limits(&r, 1000000, 1000000000, 1000000000, 1ULL << 40);
	/* the first line that limits it holds, whomever it names; who is not named has the usual */
	r = rights_of("limit user:4001 sessions 2\nlimit user:4000 sessions 7\n"
		      "limit any sessions 3 handles 4\nlimit any handles 9", USER, NULL, 0);
	assert_limits(&r, 7, 4096, 4, 64ULL << 20);
	r = rights_of("limit user:4001 sessions 2", USER, NULL, 0);
	assert_limits(&r, 64, 4096, 1024, 64ULL << 20);
}

/* ---- node ---- */

static bool speaks(const char *line, uint32_t node, uid_t uid)
{
	struct request_policy *policy;
	bool is;

	assert_int_equal(load(&policy, line), 0);
	is = request_policy_speaks(policy, node, uid);
	request_policy_free(policy);
	return is;
}

static void nodes(void **state)
{
	(void)state;
	assert_true(speaks("node 3 any", 3, USER));
	assert_false(speaks("node 3 any", 2, USER));
	assert_false(speaks("node 3 any", 0, USER));
	assert_true(speaks("node 0 any", 0, USER));
	assert_true(speaks("node any any", RGATE_NODES_MAX - 1, USER));
	assert_true(speaks("node 1 user:4000", 1, USER));
	assert_false(speaks("node 1 user:4000", 1, OTHER));
	assert_true(speaks("node 1 user:4001\nnode 1 user:4000", 1, USER));
	/* root has to be meant */
	assert_false(speaks("node any any", 1, 0));
	assert_true(speaks("node any user:0", 1, 0));
	/* what is said of users here is not said of nodes */
	assert_false(speaks("allow any all", 0, USER));
	assert_false(speaks("allow user:4000 all\nurgent any", 0, USER));
}

/* ---- What is no line ---- */

static void wrong(void **state)
{
	static const struct {
		const char *line, *said;
	} lines[] = {
		{ "deny any all", "what is 'deny'? allow, urgent, limit or node" },
		{ "deny", "what is 'deny'? allow, urgent, limit or node" },
		{ "allow", "allow WHO SERVICE..." },
		{ "allow any", "allow WHO SERVICE..." },
		{ "allow everybody all", "'everybody' is neither user:NAME, group:NAME nor any" },
		{ "allow user:no-such-user all", "no-such-user" },
		{ "allow group:no-such-group all", "no-such-group" },
		{ "allow any disks", "'disks' is no service: " },
		{ "allow any 32", "'32' is no service: " },
		{ "allow any disks lock", "'disks' is no service: " },
		{ "urgent", "urgent WHO" },
		{ "urgent any 1", "urgent WHO" },
		{ "limit any", "limit WHO WHAT VALUE ..." },
		{ "limit any sessions", "limit WHO WHAT VALUE ..." },
		{ "limit any sessions 1 handles", "limit WHO WHAT VALUE ..." },
		{ "limit any threads 1",
		  "there is no limit 'threads': sessions, requests, handles or memory" },
		{ "limit any threads 1 handles 1", "there is no limit 'threads'" },
		{ "limit any sessions 0", "sessions is '0', and must be 1 to 1000000" },
		{ "limit any sessions 1000001", "sessions is '1000001', and must be" },
		{ "limit any sessions 1K", "sessions is '1K', and must be" },
		{ "limit any requests 1000000001", "requests is '1000000001', and must be" },
		{ "limit any handles 1000000001", "handles is '1000000001', and must be" },
		{ "limit any memory 1025G", "memory is '1025G', and must be" },
		{ "node 1", "node NUMBER|any WHO" },
		{ "node 1 any any", "node NUMBER|any WHO" },
		{ "node x any", "'x' is no node: 0 to " },
		{ "node 1 everybody", "'everybody' is neither user:NAME, group:NAME nor any" },
		{ "node 1 group:5000", "node: a user or any, no group" },
	};
	struct request_policy *policy;
	char node[32];
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(lines); i++) {
		assert_int_equal(load(&policy, lines[i].line), -EINVAL);
		assert_null(policy);
		assert_non_null(strstr(said, lines[i].said));
		assert_non_null(strstr(said, "/p:1"));
	}
	snprintf(node, sizeof(node), "node %u any", RGATE_NODES_MAX);
	assert_int_equal(load(&policy, node), -EINVAL);
	snprintf(node, sizeof(node), "0 to %u, or any", RGATE_NODES_MAX - 1U);
	assert_non_null(strstr(said, node));
	assert_int_equal(request_policy_load(&policy, "/nonexistent/p"), -ENOENT);
}

/* Memory that there is not, at each place: it is said, and nothing stays */
static void refused_each(void **state)
{
	struct request_policy *policy = NULL;
	char dir[UNIT_DIR_ROOM], path[UNIT_DIR_ROOM + 8];
	unsigned int n;
	FILE *f;
	int err, injected;

	(void)state;
	refuse_setup();
	unit_dir_make(dir);
	snprintf(path, sizeof(path), "%s/p", dir);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs("allow any lock\nlimit any sessions 3\n", f);
	fclose(f);
	assert_int_equal(chmod(path, 0600), 0);
	for (n = 1;; n++) {
		rgate_log_set(on_log, NULL);
		refuse(n);
		err = request_policy_load(&policy, path);
		injected = refusal->injected;
		refuse(0);
		rgate_log_set(NULL, NULL);
		assert_int_equal(err, -injected);
		if (!err)
			break;
		assert_null(policy);
	}
	/* itself, and a rule for each line, at least */
	assert_true(n > 3);
	request_policy_free(policy);
	unit_dir_empty(dir);
	rmdir(dir);
}

/* Words of a line: 64, and one more */
static void words(void **state)
{
	struct request_policy *policy;
	char line[1024] = "allow any";
	unsigned int i;

	(void)state;
	for (i = 2; i < 64; i++)
		strcat(line, " lock");
	assert_int_equal(load(&policy, line), 0);
	request_policy_free(policy);
	strcat(line, " lock");
	assert_int_equal(load(&policy, line), -EINVAL);
}

/* ---- What they add up to ---- */

static void added(void **state)
{
	struct request_rights r = { .services = 1, .most = { 5, 5, 0, 5 } };
	const struct request_rights more = { .services = 2, .most = { 4, 6, 7, 0 } };
	const struct request_rights urgent = { .urgent = true, .most = { 1, 1, 1, 1 } };

	(void)state;
	/* the larger limit, and 0 is none */
	request_rights_add(&r, &more);
	assert_int_equal(r.services, 3);
	assert_false(r.urgent);
	assert_limits(&r, 5, 6, 0, 0);
	request_rights_add(&r, &urgent);
	assert_int_equal(r.services, 3);
	assert_true(r.urgent);
	request_rights_add(&r, &more);
	assert_true(r.urgent);
	assert_limits(&r, 5, 6, 0, 0);
}

static void engine(void **state)
{
	struct request_rights r = { .services = CORE | 1U << 31, .most = { 1, 2, 3, 1ULL << 40 } };
	const uint32_t usual = 1U << RGATE_CLASS_NORMAL | 1U << RGATE_CLASS_BULK;
	struct rgate_limits got, all;
	unsigned int i;

	(void)state;
	rgate_limits_init(&all);
	request_rights_limits(&r, &got);
	for (i = 0; i < RGATE_REQ_SERVICES; i++)
		assert_int_equal(got.ops[i], i == RGATE_REQ_CORE || i == 31 ? all.ops[i] : 0);
	assert_int_equal(got.classes, usual);
	assert_int_equal(got.sessions, 1);
	assert_int_equal(got.requests, 2);
	assert_int_equal(got.handles, 3);
	assert_int_equal(got.memory, 1ULL << 40);
	r.urgent = true;
	request_rights_limits(&r, &got);
	assert_int_equal(got.classes, usual | 1U << RGATE_CLASS_URGENT);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(allow),
	cmocka_unit_test(groups),
	cmocka_unit_test(urgent),
	cmocka_unit_test(always),
	cmocka_unit_test(limits),
	cmocka_unit_test(nodes),
	cmocka_unit_test(wrong),
	cmocka_unit_test(refused_each),
	cmocka_unit_test(words),
	cmocka_unit_test(added),
	cmocka_unit_test(engine),
};

UNIT_MAIN_ALONE(tests)
