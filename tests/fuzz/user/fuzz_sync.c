// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * What nodes say about locks and barriers, and what a home makes of it. A message that is
 * taken says the same when it is written out again, and reads nothing beyond itself; whatever is
 * asked for, a lock has one holder or several that share it, tokens rise, nobody waits for what
 * is free, and all that a party had is gone with it.
 */
#include <errno.h>

#include "fuzz.h"
#include "sync_wire.h"

#define STEPS	96
#define PARTIES	3U
#define CLAIMS	24U

static struct sync_table table;
static struct party parties[PARTIES];
static struct claim *claims[CLAIMS];
static uint64_t newest;

static void take_news(void)
{
	struct claim *c;

	while ((c = sync_table_news(&table))) {
		FUZZ_CHECK(c->state != CLAIM_WAITS);
		FUZZ_CHECK(c->result == 0 || c->result == -EPIPE);
	}
}

static void forget(const struct claim *c)
{
	unsigned int i;

	for (i = 0; i < CLAIMS; i++)
		if (claims[i] == c)
			claims[i] = NULL;
}

/* Those of one lock have the same information. */
static void check_lock(const struct claim *c)
{
	unsigned int i, holders = 0, waiters = 0, alone = 0;
	struct rgate_lock_info info, other;

	claim_lock_info(c, &info);
	for (i = 0; i < CLAIMS; i++) {
		if (!claims[i] || claim_kind(claims[i]) != SYNC_LOCK)
			continue;
		claim_lock_info(claims[i], &other);
		if (other.owner != info.owner || strcmp(other.name, info.name))
			continue;
		FUZZ_CHECK(!memcmp(&other, &info, sizeof(info)));
		holders += claims[i]->state == CLAIM_HAS;
		alone += claims[i]->state == CLAIM_HAS && !claims[i]->shared;
		waiters += claims[i]->state == CLAIM_WAITS;
		FUZZ_CHECK(claims[i]->state != CLAIM_HAS || claims[i]->value <= table.token);
	}
	FUZZ_CHECK(holders == info.holders && waiters == info.waiters);
	FUZZ_CHECK(!alone || holders == 1);
	FUZZ_CHECK(!waiters || holders || !table.begun);
	FUZZ_CHECK(table.begun || !holders);
}

static void check(void)
{
	struct rgate_barrier_info info;
	unsigned int i;

	FUZZ_CHECK(table.token >= newest);
	newest = table.token;
	for (i = 0; i < CLAIMS; i++) {
		if (!claims[i])
			continue;
		FUZZ_CHECK(sync_table_claim(&table, claims[i]->party, claims[i]->id) == claims[i]);
		if (claim_kind(claims[i]) == SYNC_LOCK) {
			check_lock(claims[i]);
			continue;
		}
		claim_barrier_info(claims[i], &info);
		FUZZ_CHECK(info.joined <= info.members && claims[i]->rank < info.members);
		FUZZ_CHECK(!info.dead || claims[i]->state != CLAIM_WAITS);
		FUZZ_CHECK(claims[i]->state != CLAIM_WAITS ||
			   info.arrived & 1ULL << claims[i]->rank);
	}
}

static void open_one(struct fuzz_in *in, const struct sync_open *as, uid_t uid)
{
	const unsigned int i = fuzz_u8(in) % CLAIMS;

	if (!claims[i] && sync_table_open(&table, &parties[fuzz_u8(in) % PARTIES], uid, as,
					  &claims[i]))
		claims[i] = NULL;
	else
		FUZZ_CHECK(sync_name_ok(as->name) || claims[i]);
}

/* A few names, so that they meet */
static void open_some(struct fuzz_in *in)
{
	struct sync_open as = { .kind = 1 + fuzz_u8(in) % 2, .owner = fuzz_u8(in) & 1,
				.flags = fuzz_u8(in) & RGATE_SYNC_FLAGS };

	as.members = as.kind == SYNC_BARRIER ? 1 + fuzz_u8(in) % 4 : 0;
	as.name[0] = (char)('a' + fuzz_u8(in) % 3);
	open_one(in, &as, fuzz_u8(in) & 1);
}

static void use(struct fuzz_in *in)
{
	struct claim *c = claims[fuzz_u8(in) % CLAIMS];
	int ret;

	if (!c)
		return;
	switch (fuzz_u8(in) % 4) {
	case 0:
	case 1:
		ret = sync_table_take(&table, c, fuzz_u8(in), fuzz_u8(in) & RGATE_LOCK_FLAGS);
		FUZZ_CHECK(ret || c->state == CLAIM_HAS);
		FUZZ_CHECK(ret != -EINPROGRESS || c->state == CLAIM_WAITS);
		break;
	case 2:
		sync_table_drop(&table, c);
		FUZZ_CHECK(claim_kind(c) != SYNC_LOCK || c->state == CLAIM_IDLE);
		break;
	default:
		forget(c);
		sync_table_close(&table, c, fuzz_u8(in) & 1);
	}
}

/* A node's life is over. */
static void drop_party(struct fuzz_in *in)
{
	struct party *p = &parties[fuzz_u8(in) % PARTIES];
	struct claim *c;

	while (!list_empty(&p->claims)) {
		c = container_of(p->claims.next, struct claim, of_party);
		forget(c);
		sync_table_close(&table, c, false);
	}
	FUZZ_CHECK(!p->n);
}

static void question(struct fuzz_in *in)
{
	unsigned char again[RGATE_HUB_MSG_MAX];
	struct sync_question q;
	size_t len;
	void *msg = fuzz_copy(in, RGATE_HUB_MSG_MAX + 8, &len);

	if (!sync_question_get(&q, msg, len)) {
		if (q.op == SYNC_OPEN)
			open_one(in, &q.as, q.uid);
		/* Of a name that is none no more is kept than it could have. */
		if (q.op != SYNC_OPEN || strnlen(q.as.name, RGATE_SYNC_NAME_ROOM) == 0) {
			memset(q.as.name, 0, sizeof(q.as.name));
			FUZZ_CHECK(sync_question_put(again, &q) == len);
		}
		if (q.op != SYNC_OPEN)
			FUZZ_CHECK(!memcmp(again + 1, (char *)msg + 1, len - 1));
	}
	free(msg);
}

static void answer(struct fuzz_in *in)
{
	unsigned char again[RGATE_HUB_MSG_MAX];
	struct sync_result r, second;
	size_t len;
	void *msg = fuzz_copy(in, RGATE_HUB_MSG_MAX + 8, &len);

	if (!sync_answer_get(&r, msg, len)) {
		FUZZ_CHECK(r.err <= 0 && r.err >= -4095);
		FUZZ_CHECK(r.kind != SYNC_LOCK || !r.info.lock.name[RGATE_SYNC_NAME_MAX]);
		if (r.err != -EPROTONOSUPPORT) {
			FUZZ_CHECK(sync_answer_put(again, &r) == len);
			FUZZ_CHECK(!sync_answer_get(&second, again, len));
			FUZZ_CHECK(second.err == r.err && second.value == r.value);
		}
	}
	free(msg);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { .p = data, .len = size };
	unsigned int i;

	newest = 0;
	sync_table_init(&table, fuzz_u8(&in));
	memset(claims, 0, sizeof(claims));
	for (i = 0; i < PARTIES; i++)
		party_init(&parties[i], i ? i : RGATE_SYNC_NO_NODE);
	for (i = 0; in.len && i < STEPS; i++) {
		switch (fuzz_u8(&in) % 8) {
		case 0:
		case 1:
			open_some(&in);
			break;
		case 2:
			question(&in);
			break;
		case 3:
			answer(&in);
			break;
		case 4:
			if (fuzz_u8(&in) & 1)
				sync_table_begin(&table);
			else
				drop_party(&in);
			break;
		default:
			use(&in);
		}
		take_news();
		check();
	}
	sync_table_fini(&table);
	FUZZ_CHECK(!table.n && list_empty(&table.objects));
	return 0;
}
