// SPDX-License-Identifier: MIT OR GPL-2.0
#include "raw.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

struct rgate_spawn_start raw_start(const struct serve *s, struct raw *raw, uint32_t record_len)
{
	struct rgate_spawn_start m = {
		.h = { .service = htole32(RGATE_SPAWN_SERVICE), .version = RGATE_SPAWN_VERSION,
		       .type = RGATE_SPAWN_START, .cookie = htole64(++raw->cookie) },
		.record = htole32(512), .record_len = htole32(record_len),
		.incarnation = htole64(rgate_node_incarnation(s->node)),
	};

	assert_int_equal(rgate_buf_desc(rgate_node_pool(s->node), raw->buf, 0, 0, &m.memory), 0);
	m.lent = m.memory;
	return m;
}

void raw_send(const struct serve *s, const void *m, size_t len)
{
	wait_for(peer_state(s->peer) == RGATE_PEER_UP);
	assert_int_equal(rgate_peer_send(s->peer, m, len, MS), 0);
}

void raw_send_at_risk(const struct serve *s, const void *m, size_t len)
{
	int err;

	wait_for(peer_state(s->peer) == RGATE_PEER_UP);
	err = rgate_peer_send(s->peer, m, len, MS);
	if (err && err != -ENOTCONN)
		assert_int_equal(err, -ECONNRESET);
}

int raw_answer(const struct serve *s, struct raw *raw)
{
	struct rgate_spawn_answer a;
	struct rgate_msg msg;
	const struct rgate_spawn_status *st = raw->buf->addr;

	for (;;) {
		if (rgate_peer_recv(s->peer, &msg, &a, sizeof(a), MS))
			return -ETIMEDOUT;
		if (le64toh(a.h.cookie) != raw->cookie)
			continue;
		if (a.h.type == RGATE_SPAWN_GONE)
			return -(int)le32toh(a.error);
		if (a.h.type != RGATE_SPAWN_UPDATE)
			continue;
		if ((le64toh(st->state) & 0xff) == RGATE_SPAWN_ERROR)
			return -(int)le32toh(st->error);
		if ((le64toh(st->state) & 0xff) == RGATE_SPAWN_COMPLETE)
			return 0;
	}
}

uint32_t raw_record(uint8_t *to, const char *text, uint32_t len, uint32_t exe,
		    uint32_t argc, uint8_t stdin_mode)
{
	struct rgate_spawn_record r = {
		.magic = htole32(RGATE_SPAWN_MAGIC), .version = htole16(RGATE_SPAWN_RECORD_VERSION),
		.header = htole16(sizeof(r)), .length = htole32(sizeof(r) + len),
		.exe = { htole32(sizeof(r)), htole32(exe), htole32(1) },
		.argv = { htole32(sizeof(r) + exe), htole32(len - exe), htole32(argc) },
		.stdin_mode = stdin_mode, .umask = htole32(RGATE_SPAWN_UMASK_DEFAULT),
	};

	memcpy(to, &r, sizeof(r));
	memcpy(to + sizeof(r), text, len);
	return sizeof(r) + len;
}

uint32_t raw_true(uint8_t *to)
{
	return raw_record(to, "/bin/true\0/bin/true", 20, 10, 1, RGATE_SPAWN_IN_NONE);
}
