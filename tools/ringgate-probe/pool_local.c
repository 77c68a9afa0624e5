// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * ringgate pool verify without a device: two processes that share the pool's memory, and
 * tell each other of buffers by the same descriptors.
 */
#include <errno.h>
#include <stdio.h>

#include "pool.h"
#include "pool_pattern.h"
#include "probe.h"
#include "util.h"

#define TIMES	100000UL	/* each process, to one word at once */

static int describe(struct verify *v, const struct piece *p, struct rgate_desc *desc)
{
	struct carve *c = &v->side.carve;
	int err = rgate_buf_desc(c->pool, c->bufs[p->index], p->off, p->len, desc);

	if (err)
		probe_fail(err, "cannot describe a buffer", "");
	return err;
}

/* The peer writes into a buffer, or reads it */
static int one(struct verify *v, enum peer_cmd cmd, size_t len, uint32_t where)
{
	const char *name = cmd == PEER_STORE ? "peer writes" : "peer reads";
	struct carve *c = &v->side.carve;
	struct piece p = pool_place(v, c->n, where, len, 1);
	uint64_t window = pool_key(v);
	struct peer_msg m = { .cmd = cmd, .payload = pool_key(v) };
	char text[CARVE_TEXT] = "";
	bool ok;
	int err;

	piece_fill(c, &p, window);
	if (cmd == PEER_LOAD)
		piece_write(c, &p, m.payload);
	err = describe(v, &p, &m.desc);
	if (!err)
		err = peer_call(&v->peer, &m);
	if (err)
		return err;
	report_add(&v->report, name, !m.err, "%zu bytes: %s", len,
		   *m.text ? m.text : rgate_strerror("rgate_mem_", m.err));
	ok = piece_holds(c, &p, m.payload, text) && piece_zones(c, &p, window, text);
	report_add(&v->report, "contents and red zones", ok, "%zu bytes: %s", len, text);
	return 0;
}

static void add(uint64_t *p, enum peer_cmd cmd)
{
	uint64_t old = __atomic_load_n(p, __ATOMIC_RELAXED);
	unsigned long i;

	/* only the sum counts: ordered by the message that says the peer is done */
	for (i = 0; i < TIMES; i++)
		if (cmd == PEER_ADD)
			__atomic_fetch_add(p, 1, __ATOMIC_RELAXED);
		else
			while (!__atomic_compare_exchange_n(p, &old, old + 1, true,
							    __ATOMIC_RELAXED,
							    __ATOMIC_RELAXED))
				;
}

/* Both processes count up the same word */
static int both(struct verify *v, enum peer_cmd cmd, uint32_t where)
{
	struct carve *c = &v->side.carve;
	struct piece p = pool_place(v, c->n, where, 8, 8);
	uint64_t window = pool_key(v), *word, want;
	struct peer_msg m = { .cmd = cmd, .count = TIMES };
	char text[CARVE_TEXT] = "";
	int err;

	piece_fill(c, &p, window);
	word = piece_addr(c, &p);
	want = *word + 2 * TIMES;
	err = describe(v, &p, &m.desc);
	if (!err)
		err = peer_send(&v->peer, &m, -1);
	if (err)
		return err;
	add(word, cmd);
	err = peer_wait(&v->peer, &m);
	if (err)
		return err;
	report_add(&v->report, cmd == PEER_ADD ? "fetch-add" : "compare-swap",
		   !m.err && *word == want, "%llu instead of %llu",
		   (unsigned long long)*word, (unsigned long long)want);
	report_add(&v->report, "contents and red zones", piece_zones(c, &p, window, text),
		   "%s", text);
	return 0;
}

static int all(struct verify *v, uint32_t where)
{
	unsigned int n;
	size_t len;
	int err = 0;

	for (n = 0; !err && (len = pool_length(v, n)); n++) {
		err = util_stop ? -EINTR : one(v, PEER_STORE, len, where);
		if (!err)
			err = one(v, PEER_LOAD, len, where);
	}
	if (err || v->o->buffer < 8)
		return err;
	return both(v, PEER_ADD, where) ?: both(v, PEER_SWAP, where);
}

/* What the peer finds in a descriptor is checked before it is used. */
static int bad_descriptor(struct verify *v)
{
	struct carve *c = &v->side.carve;
	struct piece p = pool_place(v, c->n, 1, 1, 1);
	uint64_t window = pool_key(v);
	struct peer_msg m = { .cmd = PEER_STORE, .payload = pool_key(v) };
	char text[CARVE_TEXT] = "";
	int err;

	piece_fill(c, &p, window);
	err = describe(v, &p, &m.desc);
	if (err)
		return err;
	m.desc.length = ~m.desc.addr;
	err = peer_call(&v->peer, &m);
	if (err)
		return err;
	report_add(&v->report, "descriptor past the end is found out", m.err == -ERANGE,
		   "%s", rgate_strerror("rgate_mem_", m.err));
	report_add(&v->report, "descriptor past the end is found out",
		   piece_untouched(c, &p, window, text), "%s", text);
	return 0;
}

int pool_local_checks(struct verify *v)
{
	struct carve *c = &v->side.carve;
	struct peer_msg m = { .cmd = PEER_MAP, .count = c->region.length };
	uint32_t i, places = v->o->rounds + 2;
	char text[CARVE_TEXT] = "";
	size_t n;
	int err;

	err = peer_send(&v->peer, &m, c->region.fd);
	if (!err)
		err = peer_wait(&v->peer, &m);
	if (!err && m.err) {
		err = m.err;
		probe_fail(err, "the peer cannot map the pool's memory", "");
	}
	for (i = 0; i < places && !err; i++) {
		report_progress("transfers", i, places);
		err = all(v, i);
	}
	report_progress(NULL, 0, 0);
	if (!err)
		err = bad_descriptor(v);
	if (err)
		return err;
	n = carve_damaged(c, text);
	report_add(&v->report, "other buffers intact", !n, "%zu: %s", n, text);
	return 0;
}
