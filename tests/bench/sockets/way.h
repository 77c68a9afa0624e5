/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What bench_sockets has of a way to a peer: plain.c, ringgate.c. */
#ifndef BENCH_SOCKETS_WAY_H
#define BENCH_SOCKETS_WAY_H

#include <stddef.h>
#include <stdint.h>

/* What a connection begins with: what its server shall do */
enum wish {
	WISH_TAKE = 1,		/* receives @len bytes, and answers with a struct report */
	WISH_CHECK = 2,		/* the same, and looks at them */
	WISH_GIVE = 3,		/* sends @len bytes, and ends the stream */
	WISH_ECHO = 4,		/* sends back what comes, until the end */
};

struct hello {
	uint32_t wish, reserved;
	uint64_t len;
};

struct report {
	uint64_t len, hash;
};

#define HASH_BEGIN	14695981039346656037ULL

/* One after the other; of bytes in pieces it is the same as of all at once */
uint64_t hash_of(uint64_t hash, const unsigned char *bytes, size_t len);

/* The bytes of a stream, from an offset on; no two pieces of it are alike */
void fill(unsigned char *bytes, size_t len, uint64_t stream, uint64_t off);

/* Called with each piece before it goes, and when it has come; NULL: nobody looks */
typedef void (*piece_fn)(void *ctx, unsigned char *bytes, size_t len, uint32_t stream,
			 uint64_t off);

struct way {
	const char *name;
	/* Of a thread: connections of one are used by it alone. @conns: at most */
	void *(*begin)(uint32_t conns);
	void (*end)(void *user);
	void *(*connect)(void *user);
	/* All of it; up to way_at.piece */
	void (*send)(void *conn, const void *bytes, uint32_t len);
	void (*recv)(void *conn, void *bytes, uint32_t len);
	/* The stream has ended */
	void (*finish)(void *conn);
	/* So many bytes there, and as many back */
	void (*trip)(void *conn, void *bytes, uint32_t len);
	void (*close)(void *conn);
	/* @len bytes of each of @n connections at once */
	void (*push)(void *user, void **conns, uint32_t n, uint64_t len, piece_fn fn, void *ctx);
	void (*pull)(void *user, void **conns, uint32_t n, uint64_t len, piece_fn fn, void *ctx);
};

struct way_at {
	const char *peer;	/* that all connect to, 10.0.0.1:80 */
	const char *socket;	/* of who serves ringgate's sockets */
	uint32_t piece;		/* bytes of a stream that go by a call, or a request */
};

extern struct way_at way_at;
extern const struct way plain_way, ringgate_way;

/* serve.c: does what connections to @at wish; returns never */
void __attribute__((noreturn)) serve(const char *at);

/* spent.c: of this process, those above it that are called ringgate, and @pids, "1,2" */
struct spent {
	uint64_t cpu_ns;
	uint64_t bytes, own_bytes;	/* of memory; of this process alone */
	uint64_t kernel_bytes;		/* the machine's: slabs and page tables */
};

void spent_by(const char *pids, struct spent *s);

#endif
