/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * A request as bytes: written by the client, read by a node that trusts none of it.
 * Read from memory that nobody else can change: what is pointed to is the record itself.
 */
#ifndef RGATE_SPAWN_RECORD_H
#define RGATE_SPAWN_RECORD_H

#include <ringgate/rgate_spawn.h>

struct rgate_spawn_parsed {
	const char *exe;
	const char *cwd;	/* NULL: none */
	char **argv;		/* of argc, then NULL */
	char **env;
	char **unset;
	uint32_t argc, envc, unsetc;
	const void *input;
	uint32_t input_len;
	uint8_t env_mode, stdin_mode, stdout_mode, stderr_mode;
	uint32_t flags;
	uint32_t tail_bytes;
	uint64_t wall_ms;
	uint64_t memory;
	uint32_t cpu_s;
	uint32_t processes;
	uint32_t files;
	int32_t nice;
	uint32_t umask;
	uint32_t grace_ms;
	void *pointers;
};

#define RGATE_SPAWN_GRACE_MS	2000U
#define RGATE_SPAWN_WALL_MAX	(366ULL * 86400 * 1000)	/* ms */

/* Bytes that the record takes; -EINVAL with words in the log; -E2BIG */
int64_t rgate_spawn_encoded_size(const struct rgate_spawn_request *req);
/* @buf: of that many */
void rgate_spawn_encode(const struct rgate_spawn_request *req, void *buf, size_t len);

/* 0; -EPROTO, -EPROTONOSUPPORT, -E2BIG, -ENOMEM. @why: in words, in any case of an error */
int rgate_spawn_decode(const void *buf, size_t len, struct rgate_spawn_parsed *to,
		       const char **why);
void rgate_spawn_parsed_free(struct rgate_spawn_parsed *parsed);

#endif
