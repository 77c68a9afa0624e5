// SPDX-License-Identifier: MIT OR GPL-2.0
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "opts.h"
#include "record.h"

#define HEAD	sizeof(struct rgate_spawn_record)

static int refuse(const char *what)
{
	rgate_err("spawn request: %s", what);
	return -EINVAL;
}

/* Strings of a list with their NULs; more than the record's limit is as good as that */
static uint64_t bytes_of(const char *const *list, uint32_t *count)
{
	uint64_t sum = 0;
	uint32_t n;

	for (n = 0; list && list[n] && sum <= RGATE_SPAWN_RECORD_MAX; n++)
		sum += strlen(list[n]) + 1;
	*count = n;
	return sum;
}

static bool is_name(const char *s)
{
	return *s && !strchr(s, '=');
}

static int check_names(const struct rgate_spawn_request *req)
{
	const char *const *p;

	for (p = req->env; p && *p; p++)
		if (**p == '=' || !strchr(*p, '='))
			return refuse("env: NAME=VALUE is expected");
	for (p = req->unset; p && *p; p++)
		if (!is_name(*p))
			return refuse("unset: a name is expected");
	return 0;
}

static int check_modes(const struct rgate_spawn_request *req)
{
	if (req->env_mode > RGATE_SPAWN_ENV_REPLACE)
		return refuse("env_mode");
	if (req->env_mode == RGATE_SPAWN_ENV_REPLACE && req->unset && *req->unset)
		return refuse("unset makes no sense where all is replaced");
	if (req->stdin_mode > RGATE_SPAWN_IN_DATA)
		return refuse("stdin_mode");
	if (req->stdin_mode == RGATE_SPAWN_IN_DATA ? req->input_len && !req->input :
						     req->input || req->input_len)
		return refuse("input goes with RGATE_SPAWN_IN_DATA");
	if (req->stdout_mode > RGATE_SPAWN_OUT_TAIL || req->stderr_mode > RGATE_SPAWN_OUT_STDOUT)
		return refuse("stdout_mode or stderr_mode");
	if ((req->stdout_mode == RGATE_SPAWN_OUT_TAIL ||
	     req->stderr_mode == RGATE_SPAWN_OUT_TAIL) &&
	    (!req->tail_bytes || req->tail_bytes > RGATE_SPAWN_TAIL_MAX))
		return refuse("tail_bytes must be 1 to 1 MiB");
	return 0;
}

static int check_limits(const struct rgate_spawn_request *req)
{
	if (req->flags & ~(uint32_t)(RGATE_SPAWN_KEEP | RGATE_SPAWN_LEAVE))
		return refuse("flags");
	if (req->nice < -20 || req->nice > 19)
		return refuse("nice must be -20 to 19");
	if (req->set_umask && req->umask > 0777)
		return refuse("umask must be 0 to 0777");
	if (req->wall_ms > RGATE_SPAWN_WALL_MAX)
		return refuse("wall_ms is more than a year");
	return 0;
}

/* Who runs others' processes looks at each of them, and at who waits next only then. */
static bool too_many(uint32_t argc, uint32_t envc, uint32_t unsetc)
{
	return argc > RGATE_SPAWN_ARGS_MAX || envc > RGATE_SPAWN_ENV_MAX ||
	       unsetc > RGATE_SPAWN_ENV_MAX;
}

int64_t rgate_spawn_encoded_size(const struct rgate_spawn_request *req)
{
	const char *exe = req->exe ? req->exe : req->argv ? req->argv[0] : NULL;
	uint32_t argc, envc, unsetc;
	uint64_t sum = HEAD;
	int err;

	if (!req->argv || !req->argv[0])
		return refuse("argv is empty");
	if (!*exe || (req->cwd && *req->cwd != '/'))
		return refuse(*exe ? "cwd must begin with /" : "the command is empty");
	err = check_names(req);
	if (!err)
		err = check_modes(req);
	if (!err)
		err = check_limits(req);
	if (err)
		return err;
	sum += strlen(exe) + 1 + (req->cwd ? strlen(req->cwd) + 1 : 0);
	sum += bytes_of(req->argv, &argc);
	sum += bytes_of(req->env, &envc) + bytes_of(req->unset, &unsetc);
	if (too_many(argc, envc, unsetc) || sum > RGATE_SPAWN_RECORD_MAX ||
	    req->input_len > RGATE_SPAWN_RECORD_MAX - sum)
		return -E2BIG;
	return (int64_t)(sum + req->input_len);
}

/* Copies @len bytes to where @at stands, and says so in @area */
static void put(struct rgate_spawn_area *area, char *base, uint32_t *at, const void *data,
		size_t len, uint32_t count)
{
	area->offset = htole32(*at);
	area->length = htole32((uint32_t)len);
	area->count = htole32(count);
	if (len)
		memcpy(base + *at, data, len);
	*at += (uint32_t)len;
}

static void put_list(struct rgate_spawn_area *area, char *base, uint32_t *at,
		     const char *const *list)
{
	const uint32_t begin = *at;
	uint32_t n;
	size_t len;

	for (n = 0; list && list[n]; n++) {
		len = strlen(list[n]) + 1;
		memcpy(base + *at, list[n], len);
		*at += (uint32_t)len;
	}
	area->offset = htole32(begin);
	area->length = htole32(*at - begin);
	area->count = htole32(n);
}

void rgate_spawn_encode(const struct rgate_spawn_request *req, void *buf, size_t len)
{
	const char *exe = req->exe ? req->exe : req->argv[0];
	struct rgate_spawn_record r = {
		.magic = htole32(RGATE_SPAWN_MAGIC), .version = htole16(RGATE_SPAWN_RECORD_VERSION),
		.header = htole16(HEAD), .length = htole32((uint32_t)len),
		.flags = htole32(req->flags), .env_mode = (uint8_t)req->env_mode,
		.stdin_mode = (uint8_t)req->stdin_mode, .stdout_mode = (uint8_t)req->stdout_mode,
		.stderr_mode = (uint8_t)req->stderr_mode, .tail_bytes = htole32(req->tail_bytes),
		.wall_ms = htole64(req->wall_ms), .memory = htole64(req->memory),
		.cpu_s = htole32(req->cpu_s), .processes = htole32(req->processes),
		.files = htole32(req->files), .nice = htole32((uint32_t)req->nice),
		.umask = htole32(req->set_umask ? req->umask : RGATE_SPAWN_UMASK_DEFAULT),
		.grace_ms = htole32(req->grace_ms),
	};
	uint32_t at = HEAD;
	char *base = buf;

	put(&r.exe, base, &at, exe, strlen(exe) + 1, 1);
	if (req->cwd)
		put(&r.cwd, base, &at, req->cwd, strlen(req->cwd) + 1, 1);
	put_list(&r.argv, base, &at, req->argv);
	put_list(&r.env, base, &at, req->env);
	put_list(&r.unset, base, &at, req->unset);
	put(&r.input, base, &at, req->input, req->input_len, 0);
	memcpy(base, &r, sizeof(r));
}

int64_t rgate_spawn_record_encode(const struct rgate_spawn_request *user, void *buf, size_t len)
{
	struct rgate_spawn_request req;
	int64_t size;
	int err;

	if (!user)
		return -EINVAL;
	err = rgate_opts_copy(&req, sizeof(req), user);
	if (err)
		return err;
	size = rgate_spawn_encoded_size(&req);
	if (size < 0 || !buf)
		return size;
	if ((uint64_t)size > len)
		return -ENOBUFS;
	rgate_spawn_encode(&req, buf, (size_t)size);
	return size;
}

struct reader {
	const char *base;
	uint32_t len;
	char **next;		/* room for pointers */
	const char *why;
};

/* The area lies behind the head; where it begins, or NULL */
static const char *area_at(struct reader *in, const struct rgate_spawn_area *area, uint32_t *len)
{
	const uint32_t off = le32toh(area->offset);

	*len = le32toh(area->length);
	if (off >= HEAD && off <= in->len && *len <= in->len - off)
		return in->base + off;
	in->why = "a string lies outside of the record";
	return NULL;
}

/* As many strings as the area says, exactly */
static int read_list(struct reader *in, const struct rgate_spawn_area *area, char ***list,
		     uint32_t *count)
{
	const uint32_t want = le32toh(area->count);
	const char *p, *end;
	uint32_t len, n = 0;

	if (!area->offset && !area->length && !area->count)
		p = in->base, len = 0;
	else
		p = area_at(in, area, &len);
	if (!p)
		return -EPROTO;
	*list = in->next;
	for (end = p + len; p < end; p += strlen(p) + 1) {
		if (n == want || !memchr(p, 0, (size_t)(end - p))) {
			in->why = "a list has more or longer strings than it says";
			return -EPROTO;
		}
		in->next[n++] = (char *)p;
	}
	if (n != want) {
		in->why = "a list has fewer strings than it says";
		return -EPROTO;
	}
	in->next[n] = NULL;
	in->next += n + 1;
	*count = n;
	return 0;
}

static int read_string(struct reader *in, const struct rgate_spawn_area *area, bool optional,
		       const char **to)
{
	const char *p;
	uint32_t len;

	if (optional && !area->offset && !area->length && !area->count)
		return 0;
	p = area_at(in, area, &len);
	if (!p)
		return -EPROTO;
	if (le32toh(area->count) != 1 || len < 2 || memchr(p, 0, len) != p + len - 1) {
		in->why = "executable or directory is not one string";
		return -EPROTO;
	}
	*to = p;
	return 0;
}

static int read_strings(struct reader *in, const struct rgate_spawn_record *r,
			struct rgate_spawn_parsed *to)
{
	const char *p;
	int err;

	err = read_string(in, &r->exe, false, &to->exe);
	if (!err)
		err = read_string(in, &r->cwd, true, &to->cwd);
	if (!err)
		err = read_list(in, &r->argv, &to->argv, &to->argc);
	if (!err)
		err = read_list(in, &r->env, &to->env, &to->envc);
	if (!err)
		err = read_list(in, &r->unset, &to->unset, &to->unsetc);
	if (err)
		return err;
	if (!r->input.offset && !r->input.length && !r->input.count)
		return 0;
	p = area_at(in, &r->input, &to->input_len);
	if (!p || r->input.count) {
		in->why = "input lies outside of the record";
		return -EPROTO;
	}
	to->input = p;
	return 0;
}

static void read_words(const struct rgate_spawn_record *r, struct rgate_spawn_parsed *to)
{
	to->flags = le32toh(r->flags);
	to->env_mode = r->env_mode;
	to->stdin_mode = r->stdin_mode;
	to->stdout_mode = r->stdout_mode;
	to->stderr_mode = r->stderr_mode;
	to->tail_bytes = le32toh(r->tail_bytes);
	to->wall_ms = le64toh(r->wall_ms);
	to->memory = le64toh(r->memory);
	to->cpu_s = le32toh(r->cpu_s);
	to->processes = le32toh(r->processes);
	to->files = le32toh(r->files);
	to->nice = (int32_t)le32toh(r->nice);
	to->umask = le32toh(r->umask);
	to->grace_ms = le32toh(r->grace_ms);
	if (!to->grace_ms)
		to->grace_ms = RGATE_SPAWN_GRACE_MS;
}

/* What is wrong with it, or NULL */
static const char *wrong_words(const struct rgate_spawn_record *r,
			       const struct rgate_spawn_parsed *p)
{
	const bool tail = p->stdout_mode == RGATE_SPAWN_OUT_TAIL ||
			  p->stderr_mode == RGATE_SPAWN_OUT_TAIL;

	if (p->flags & ~(uint32_t)(RGATE_SPAWN_KEEP | RGATE_SPAWN_LEAVE) || r->reserved[0] ||
	    r->reserved[1])
		return "unknown flags";
	if (p->env_mode > RGATE_SPAWN_ENV_REPLACE || p->stdin_mode > RGATE_SPAWN_IN_DATA ||
	    p->stdout_mode > RGATE_SPAWN_OUT_TAIL || p->stderr_mode > RGATE_SPAWN_OUT_STDOUT)
		return "unknown mode of a stream or the environment";
	if (p->unsetc && p->env_mode == RGATE_SPAWN_ENV_REPLACE)
		return "names to unset where all is replaced";
	if (p->input_len && p->stdin_mode != RGATE_SPAWN_IN_DATA)
		return "input that is not asked for";
	if (tail && (!p->tail_bytes || p->tail_bytes > RGATE_SPAWN_TAIL_MAX))
		return "tail_bytes out of range";
	if (p->nice < -20 || p->nice > 19)
		return "nice out of range";
	if (p->umask > 0777 && p->umask != RGATE_SPAWN_UMASK_DEFAULT)
		return "umask out of range";
	if (p->wall_ms > RGATE_SPAWN_WALL_MAX || p->grace_ms > 3600000)
		return "a time out of range";
	return NULL;
}

static const char *wrong_strings(const struct rgate_spawn_parsed *p)
{
	uint32_t i;

	if (!p->argc)
		return "no arguments, not even a name";
	if (p->cwd && *p->cwd != '/')
		return "the directory does not begin with /";
	for (i = 0; i < p->envc; i++)
		if (*p->env[i] == '=' || !strchr(p->env[i], '='))
			return "an entry of the environment is not NAME=VALUE";
	for (i = 0; i < p->unsetc; i++)
		if (!is_name(p->unset[i]))
			return "a name to unset is none";
	return NULL;
}

static int check_head(const struct rgate_spawn_record *r, size_t len, const char **why)
{
	if (le32toh(r->magic) != RGATE_SPAWN_MAGIC) {
		*why = "not a request";
		return -EPROTO;
	}
	if (le16toh(r->version) != RGATE_SPAWN_RECORD_VERSION || le16toh(r->header) != HEAD) {
		*why = "a version that this node does not know";
		return -EPROTONOSUPPORT;
	}
	if (le32toh(r->length) != len) {
		*why = "its length is not what was announced";
		return -EPROTO;
	}
	return 0;
}

int rgate_spawn_decode(const void *buf, size_t len, struct rgate_spawn_parsed *to,
		       const char **why)
{
	struct rgate_spawn_record r;
	struct reader in = { .base = buf, .len = (uint32_t)len };
	uint64_t pointers;
	int err;

	memset(to, 0, sizeof(*to));
	if (len < HEAD || len > RGATE_SPAWN_RECORD_MAX) {
		*why = "its length is out of range";
		return len < HEAD ? -EPROTO : -E2BIG;
	}
	memcpy(&r, buf, sizeof(r));
	err = check_head(&r, len, why);
	if (err)
		return err;
	*why = "too many strings";
	if (too_many(le32toh(r.argv.count), le32toh(r.env.count), le32toh(r.unset.count)))
		return -E2BIG;
	pointers = (uint64_t)le32toh(r.argv.count) + le32toh(r.env.count) +
		   le32toh(r.unset.count) + 3;
	*why = "more strings than there are bytes";
	if (pointers > len)
		return -EPROTO;
	to->pointers = malloc(pointers * sizeof(char *));
	*why = "out of memory";
	if (!to->pointers)
		return -ENOMEM;
	in.next = to->pointers;
	read_words(&r, to);
	err = read_strings(&in, &r, to);
	*why = in.why;
	if (!err) {
		*why = wrong_words(&r, to);
		if (!*why)
			*why = wrong_strings(to);
		err = *why ? -EPROTO : 0;
	}
	if (err)
		rgate_spawn_parsed_free(to);
	return err;
}

void rgate_spawn_parsed_free(struct rgate_spawn_parsed *parsed)
{
	free(parsed->pointers);
	memset(parsed, 0, sizeof(*parsed));
}
