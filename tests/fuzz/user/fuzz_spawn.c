// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Requests of other nodes, and the policy. A record that is accepted has all of its
 * strings inside of it, as many as it says, and is the same after it was written out
 * again; a policy that is accepted allows nothing that no line of it allows.
 */
#include <endian.h>
#include <errno.h>

#include <ringgate/rgate_cluster.h>

#include "fuzz.h"
#include "policy.h"

static const char cluster_text[] = "provider local\nnode 0 gateway /a gw\n"
				   "node 1 compute /b alice\nnode 2 compute /c\n"
				   FUZZ_KEY_LINE(0) FUZZ_KEY_LINE(1) FUZZ_KEY_LINE(2);
static struct rgate_cluster *cluster;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	FUZZ_CHECK(!rgate_cluster_parse(&cluster, "fuzz", cluster_text,
					sizeof(cluster_text) - 1));
	return 0;
}

/* A string of the record: begins and ends in it */
static void check_string(const char *s, const uint8_t *p, size_t len)
{
	const uint8_t *at = (const uint8_t *)s;

	FUZZ_CHECK(at >= p + sizeof(struct rgate_spawn_record) && at < p + len);
	FUZZ_CHECK(memchr(at, 0, (size_t)(p + len - at)));
}

static void check_list(char **list, uint32_t count, const uint8_t *p, size_t len)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		check_string(list[i], p, len);
	FUZZ_CHECK(!list[count]);
}

static void check_same(const struct rgate_spawn_parsed *a, const struct rgate_spawn_parsed *b)
{
	uint32_t i;

	FUZZ_CHECK(!strcmp(a->exe, b->exe) && !a->cwd == !b->cwd);
	FUZZ_CHECK(!a->cwd || !strcmp(a->cwd, b->cwd));
	FUZZ_CHECK(a->argc == b->argc && a->envc == b->envc && a->unsetc == b->unsetc);
	for (i = 0; i < a->argc; i++)
		FUZZ_CHECK(!strcmp(a->argv[i], b->argv[i]));
	for (i = 0; i < a->envc; i++)
		FUZZ_CHECK(!strcmp(a->env[i], b->env[i]));
	for (i = 0; i < a->unsetc; i++)
		FUZZ_CHECK(!strcmp(a->unset[i], b->unset[i]));
	FUZZ_CHECK(a->input_len == b->input_len &&
		   (!a->input_len || !memcmp(a->input, b->input, a->input_len)));
	FUZZ_CHECK(a->flags == b->flags && a->wall_ms == b->wall_ms && a->memory == b->memory &&
		   a->umask == b->umask && a->nice == b->nice && a->grace_ms == b->grace_ms);
}

/* What was read, asked for anew */
static void again(const struct rgate_spawn_parsed *p)
{
	const bool data = p->stdin_mode == RGATE_SPAWN_IN_DATA;
	const struct rgate_spawn_request req = RGATE_OPTS(rgate_spawn_request,
		.exe = p->exe, .cwd = p->cwd, .argv = (const char *const *)p->argv,
		.env = (const char *const *)p->env, .unset = (const char *const *)p->unset,
		.env_mode = p->env_mode, .stdin_mode = p->stdin_mode,
		.stdout_mode = p->stdout_mode, .stderr_mode = p->stderr_mode,
		.input = data && p->input_len ? p->input : NULL, .input_len = p->input_len,
		.tail_bytes = p->tail_bytes, .flags = p->flags, .wall_ms = p->wall_ms,
		.memory = p->memory, .cpu_s = p->cpu_s, .processes = p->processes,
		.files = p->files, .nice = p->nice,
		.set_umask = p->umask != RGATE_SPAWN_UMASK_DEFAULT, .umask = p->umask,
		.grace_ms = p->grace_ms);
	const int64_t len = rgate_spawn_encoded_size(&req);
	struct rgate_spawn_parsed twice;
	const char *why;
	void *buf;

	/* Strings that overlapped take more room apart. */
	if (len == -E2BIG)
		return;
	FUZZ_CHECK(len > 0);
	buf = malloc((size_t)len);
	FUZZ_CHECK(buf);
	rgate_spawn_encode(&req, buf, (size_t)len);
	FUZZ_CHECK(!rgate_spawn_decode(buf, (size_t)len, &twice, &why));
	check_same(p, &twice);
	rgate_spawn_parsed_free(&twice);
	free(buf);
}

static void record(struct fuzz_in *in)
{
	struct rgate_spawn_parsed p;
	const char *why = NULL;
	size_t len;
	uint8_t *buf = fuzz_copy(in, RGATE_SPAWN_RECORD_MAX + 1, &len);
	int err = rgate_spawn_decode(buf, len, &p, &why);

	FUZZ_CHECK(!err || err == -EPROTO || err == -EPROTONOSUPPORT || err == -E2BIG);
	FUZZ_CHECK(!err || (why && *why && !p.pointers));
	if (!err) {
		check_string(p.exe, buf, len);
		FUZZ_CHECK(p.argc && *p.exe && (!p.cwd || *p.cwd == '/'));
		check_list(p.argv, p.argc, buf, len);
		check_list(p.env, p.envc, buf, len);
		check_list(p.unset, p.unsetc, buf, len);
		again(&p);
		rgate_spawn_parsed_free(&p);
	}
	free(buf);
}

/* @len bytes of the input as a string, of memory of its own */
static char *text_of(struct fuzz_in *in, size_t max)
{
	size_t len;
	char *raw = fuzz_copy(in, max, &len), *s = malloc(len + 1);

	FUZZ_CHECK(s);
	memcpy(s, raw, len);
	s[len] = '\0';
	free(raw);
	return s;
}

static void ask(const struct rgate_spawn_policy *policy, uint32_t node, char *exe, char *arg)
{
	char *argv[3] = { exe, arg }, *none[1] = { NULL };
	struct rgate_spawn_parsed req = { .exe = exe, .argv = argv, .argc = 2, .env = none,
					  .unset = none, .nice = -5, .memory = 1ULL << 40 };
	const struct rgate_policy_node *n = rgate_policy_node(policy, node);
	struct rgate_policy_grant grant;
	char why[RGATE_POLICY_WHY];
	int err;

	err = rgate_policy_check(policy, node, &req, &grant, why);
	FUZZ_CHECK(err <= 0);
	FUZZ_CHECK(!err || memchr(why, 0, sizeof(why)));
	if (err)
		return;
	FUZZ_CHECK(n && *grant.path == '/' && memchr(grant.path, 0, sizeof(grant.path)));
	FUZZ_CHECK(!strstr(grant.path, "/../"));
	FUZZ_CHECK(!n->memory || req.memory <= n->memory);
	FUZZ_CHECK(req.nice >= n->nice);
}

static void policy(struct fuzz_in *in)
{
	struct rgate_spawn_policy *p;
	char *exe = text_of(in, fuzz_u8(in)), *arg = text_of(in, fuzz_u8(in));
	size_t len;
	char *text = fuzz_copy(in, RGATE_POLICY_MAX, &len);
	uint32_t node;
	int err;

	err = rgate_policy_parse(&p, cluster, "fuzz", text, len);
	FUZZ_CHECK(!err || err == -EINVAL || err == -ENOMEM);
	if (!err) {
		for (node = 0; node < 4; node++)
			ask(p, node, exe, arg);
		rgate_policy_free(p);
	}
	free(text);
	free(arg);
	free(exe);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };

	if (fuzz_u8(&in) & 1)
		policy(&in);
	else
		record(&in);
	return 0;
}
