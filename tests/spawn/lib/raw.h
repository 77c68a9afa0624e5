/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* A client that says what it wants: messages and records as they are on the wire */
#ifndef RAW_H
#define RAW_H

#include "serve.h"

struct raw {
	const struct rgate_buf *buf;	/* status, the record at 512, rings */
	uint64_t cookie;		/* of the last request */
};

/* The next request, whose record has @record_len bytes */
struct rgate_spawn_start raw_start(const struct serve *s, struct raw *raw, uint32_t record_len);
void raw_send(const struct serve *s, const void *m, size_t len);
/* The same where the server may end the connection for what it reads, or has read before:
 * then nobody says whether this message arrived.
 */
void raw_send_at_risk(const struct serve *s, const void *m, size_t len);
/* The answer to the last one: error of a GONE, or state of the status */
int raw_answer(const struct serve *s, struct raw *raw);
/* As the client's library writes it: @text is exe, of @exe bytes, then @argc arguments */
uint32_t raw_record(uint8_t *to, const char *text, uint32_t len, uint32_t exe, uint32_t argc,
		    uint8_t stdin_mode);
/* One that runs /bin/true */
uint32_t raw_true(uint8_t *to);

#endif
