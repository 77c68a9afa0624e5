// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Addresses, options, names and the policy of sockets. An address that is taken says the same when
 * it is told again; whatever the policy is, it says the same of an IPv4 address in all of its
 * guises, and nothing special is allowed by lines that do not name it.
 */
#include <errno.h>
#include <ringgate/rgate_socket.h>
#include <unistd.h>

#include "fuzz.h"
#include "socket_options.h"
#include "socket_policy.h"
#include "socket_query.h"

#define USER	4711U

static void address(struct fuzz_in *in)
{
	struct rgate_socket_addr a, again;
	struct socket_name name;
	struct socket_host h, other;
	char text[SOCKET_ADDR_TEXT];
	unsigned int bits;

	(void)fuzz_bytes(in, &a, sizeof(a));
	if (socket_addr_get(&a, &name))
		return;
	FUZZ_CHECK(name.len <= sizeof(name.in6));
	socket_addr_put(&again, &name);
	FUZZ_CHECK(!memcmp(&a, &again, sizeof(a)));
	socket_host_of(&a, &h);
	FUZZ_CHECK(!socket_host_parse(socket_host_text(&h, text), &other, &bits));
	FUZZ_CHECK(!memcmp(&h, &other, sizeof(h)) && bits == (h.v6 ? 128 : 32));
	a.scope = a.flow = 0;
	(void)rgate_socket_addr_print(&a, text, sizeof(text));
	FUZZ_CHECK(!rgate_socket_addr_parse(text, &again) && !memcmp(&a, &again, sizeof(a)));
}

static void text_address(struct fuzz_in *in)
{
	struct rgate_socket_addr a, again;
	char text[SOCKET_ADDR_TEXT], *raw;
	size_t len;
	char *copy = fuzz_copy(in, 200, &len);

	raw = malloc(len + 1);
	FUZZ_CHECK(raw);
	memcpy(raw, copy, len);
	raw[len] = '\0';
	if (!rgate_socket_addr_parse(raw, &a)) {
		(void)rgate_socket_addr_print(&a, text, sizeof(text));
		FUZZ_CHECK(!rgate_socket_addr_parse(text, &again));
		FUZZ_CHECK(!memcmp(&a, &again, sizeof(a)));
	}
	free(raw);
	free(copy);
}

static void option(struct fuzz_in *in)
{
	const struct socket_option *o = socket_option(fuzz_u8(in));
	const bool set = fuzz_u8(in) & 1;
	const uint32_t len = fuzz_u16(in);

	if (o && !socket_option_check(o, set, len))
		FUZZ_CHECK(len && len <= RGATE_SOCKET_OPTION_MAX && (!set || len <= o->size));
}

static bool may(const struct socket_policy *policy, const struct rgate_socket_addr *a,
		struct socket_wish w)
{
	socket_host_of(a, &w.host);
	return socket_policy_may(policy, &w);
}

/* What a line says of an IPv4 address it says of those that stand for it. */
static void guises(const struct socket_policy *policy, const uint8_t v4[4], struct socket_wish w)
{
	struct rgate_socket_addr a = { .family = RGATE_SOCKET_INET }, b, c, d;
	bool yes;

	memcpy(a.addr, v4, 4);
	b = c = d = (struct rgate_socket_addr){ .family = RGATE_SOCKET_INET6 };
	b.addr[10] = b.addr[11] = 0xff;
	memcpy(b.addr + 12, v4, 4);
	memcpy(c.addr, "\0\x64\xff\x9b", 4);
	memcpy(c.addr + 12, v4, 4);
	memcpy(d.addr, "\x20\x02", 2);
	memcpy(d.addr + 2, v4, 4);
	d.addr[15] = 9;
	yes = may(policy, &a, w);
	FUZZ_CHECK(may(policy, &b, w) == yes && may(policy, &c, w) == yes &&
		   may(policy, &d, w) == yes);
}

static void policy(struct fuzz_in *in)
{
	struct socket_wish w = { .uid = USER };
	struct socket_policy *p = NULL;
	const uint8_t loop[4] = { 127, 0, 0, 1 };
	uint8_t v4[4];
	char *text, *room;
	size_t len;
	int err;

	w.act = fuzz_u8(in) & 1 ? SOCKET_ACT_LISTEN : SOCKET_ACT_CONNECT;
	w.type = fuzz_u8(in) & 1 ? RGATE_SOCKET_STREAM : RGATE_SOCKET_DGRAM;
	w.port = fuzz_u16(in);
	(void)fuzz_bytes(in, v4, sizeof(v4));
	text = fuzz_copy(in, 4096, &len);
	room = malloc(len + 1);
	FUZZ_CHECK(room);
	memcpy(room, text, len);
	room[len] = '\0';
	err = socket_policy_parse(&p, "fuzz", room, len);
	FUZZ_CHECK(!err || err == -EINVAL || err == -ENOMEM);
	if (!err) {
		guises(p, v4, w);
		guises(p, loop, w);
		/* Loopback is in no line that has no 127 in it. */
		if (!memmem(text, len, "127", 3) && USER != geteuid()) {
			struct rgate_socket_addr a = { .family = RGATE_SOCKET_INET };

			memcpy(a.addr, loop, sizeof(loop));
			FUZZ_CHECK(!may(p, &a, w));
		}
		(void)socket_policy_most(p, USER);
		socket_policy_free(p);
	}
	free(room);
	free(text);
}

/* What is asked for, of any words and bytes: only what names have is looked up. */
static void query(struct fuzz_in *in)
{
	struct rgate_request r = { .a0 = fuzz_u64(in), .a1 = fuzz_u64(in) };
	struct socket_query q;
	unsigned char *mem;
	size_t len, i;

	/* mostly such as can be */
	if (fuzz_u8(in) & 7) {
		r.a0 &= 0x7f0000000aULL | 3ULL << 16;
		r.a1 &= 0x3f01ff;
	}
	mem = fuzz_copy(in, 600, &len);
	r.len = (uint32_t)len;
	if (!socket_query_get(&q, &r, len ? mem : NULL)) {
		FUZZ_CHECK(strlen(q.name) == (uint16_t)r.a1);
		FUZZ_CHECK(strlen(q.service) == (uint16_t)(r.a1 >> 16));
		FUZZ_CHECK(strlen(q.name) + strlen(q.service) <= len && len >= 32);
		FUZZ_CHECK(*q.name || *q.service);
		for (i = 0; q.name[i]; i++)
			FUZZ_CHECK(q.name[i] > ' ' && q.name[i] < 0x7f && q.name[i] != '/');
		for (i = 0; q.service[i]; i++)
			FUZZ_CHECK(q.service[i] > ' ' && q.service[i] < 0x7f);
	}
	free(mem);
}

/* An answer as it is told, and as it is taken; whatever the value is that came with it */
static void answer(struct fuzz_in *in)
{
	const uint64_t any = fuzz_u64(in);
	struct socket_found f = { .n = fuzz_u8(in) % (RGATE_SOCKET_FOUND_MAX + 1) };
	const uint32_t room = 32 + fuzz_u16(in) % 4096;
	unsigned char *mem = malloc(room);
	uint64_t value = 0;
	uint32_t len;
	int n;

	FUZZ_CHECK(mem);
	f.there = f.n + fuzz_u8(in);
	f.canon_len = fuzz_u8(in);
	memset(f.canon, 'c', f.canon_len);
	len = socket_found_put(&f, mem, room, &value);
	FUZZ_CHECK(len <= room);
	n = socket_found_count(len, value);
	FUZZ_CHECK(n >= 0 && (uint32_t)n == (f.n < room / 32 ? f.n : room / 32));
	FUZZ_CHECK(!RGATE_SOCKET_CANON(value) || !mem[len - 1]);
	n = socket_found_count(len, any);
	FUZZ_CHECK(n == -EPROTO || (uint32_t)n * 32 + RGATE_SOCKET_CANON(any) <= len);
	free(mem);
}

/* A name is the same one whatever its case, and with a dot behind it. */
static void name_policy(struct fuzz_in *in)
{
	char name[40] = "", other[42] = "", *text, *room;
	struct socket_policy *p = NULL;
	size_t len, i;
	bool yes;

	for (i = fuzz_u8(in) % 38, len = 0; len < i; len++)
		name[len] = "abx.-"[fuzz_u8(in) % 5];
	for (i = 0; i < len; i++)
		other[i] = (char)(name[i] >= 'a' ? name[i] - 32 : name[i]);
	if (len && name[len - 1] != '.')
		other[len] = '.';
	text = fuzz_copy(in, 4096, &len);
	room = malloc(len + 1);
	FUZZ_CHECK(room);
	memcpy(room, text, len);
	room[len] = '\0';
	if (!socket_policy_parse(&p, "fuzz", room, len) && USER != geteuid()) {
		yes = socket_policy_resolve(p, USER, name);
		FUZZ_CHECK(yes == socket_policy_resolve(p, USER, other));
		FUZZ_CHECK(!yes || memmem(text, len, "resolve", 7));
		FUZZ_CHECK(!yes || socket_policy_resolve(p, USER, ""));
	}
	socket_policy_free(p);
	free(room);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { .p = data, .len = size };
	const uint8_t what = fuzz_u8(&in);

	/* Those that came later leave what inputs that are kept mean as it is. */
	if (what >= 0xf0) {
		what % 3 == 0 ? query(&in) : what % 3 == 1 ? answer(&in) : name_policy(&in);
		return 0;
	}
	switch (what % 4) {
	case 0:
		address(&in);
		break;
	case 1:
		text_address(&in);
		break;
	case 2:
		option(&in);
		break;
	default:
		policy(&in);
		break;
	}
	return 0;
}
