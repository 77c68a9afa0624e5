/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What the fuzzers share: oracles, and a reader of their input. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An oracle: what it says is the bug; libFuzzer keeps the input. */
#define FUZZ_CHECK(cond) \
	do { \
		if (!(cond)) \
			fuzz_broken(__FILE__, __LINE__, #cond); \
	} while (0)

void __attribute__((noreturn)) fuzz_broken(const char *file, int line, const char *what);

/* A public key that nobody has the private one of, as a line of a cluster file */
#define FUZZ_KEY_LINE(id) \
	"public-key " #id " " #id "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n"

/* The input, taken from its begin; beyond its end there are zeroes. */
struct fuzz_in {
	const uint8_t *p;
	size_t len;
};

uint64_t fuzz_take(struct fuzz_in *in, size_t bytes);

static inline uint8_t fuzz_u8(struct fuzz_in *in)
{
	return (uint8_t)fuzz_take(in, 1);
}

static inline uint16_t fuzz_u16(struct fuzz_in *in)
{
	return (uint16_t)fuzz_take(in, 2);
}

static inline uint32_t fuzz_u32(struct fuzz_in *in)
{
	return (uint32_t)fuzz_take(in, 4);
}

static inline uint64_t fuzz_u64(struct fuzz_in *in)
{
	return fuzz_take(in, 8);
}

/* Fills @buf, with zeroes where the input has ended. Returns what came from it */
size_t fuzz_bytes(struct fuzz_in *in, void *buf, size_t len);

/* Descriptors that this process has, and some more, the same number each time */
unsigned int fuzz_open_fds(void);

/* Up to @max of the input's bytes in memory of their own, so that a read beyond is
 * seen. @len: out. Never NULL; to be freed */
void *fuzz_copy(struct fuzz_in *in, size_t max, size_t *len);

/* Is @text of @len bytes one JSON value (RFC 8259) in UTF-8? */
bool fuzz_json_ok(const char *text, size_t len);

/* Called by libFuzzer */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

#endif
