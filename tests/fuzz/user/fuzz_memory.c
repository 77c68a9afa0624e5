// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * What nodes say about exported memory, and what is then done to it. A message that is taken
 * says the same when it is written out again, and reads nothing beyond itself; whatever is
 * asked for, no byte outside of the region that was meant is changed, none by who may not, and
 * none by what ends with an error.
 */
#include <errno.h>

#include "fuzz.h"
#include "memory_wire.h"

#define STEPS	64
#define ARENA	1024U
#define REGIONS	8U

static struct regions table;
static struct region *regions[REGIONS];
static unsigned char before[ARENA];
static unsigned char arena[ARENA] __attribute__((aligned(8)));

static void add(struct fuzz_in *in)
{
	const unsigned int i = fuzz_u8(in) % REGIONS;
	struct region as = { .owner = fuzz_u8(in) & 1 };

	if (regions[i]) {
		regions_remove(regions[i]);
		regions[i] = NULL;
		return;
	}
	as.mode = fuzz_u8(in);
	as.addr = arena + fuzz_u16(in) % ARENA;
	as.len = fuzz_u16(in) % (ARENA + 1 - (uint64_t)(as.addr - arena));
	(void)fuzz_bytes(in, as.name, fuzz_u8(in) % (sizeof(as.name) + 1));
	if (regions_add(&table, &as, &regions[i]))
		regions[i] = NULL;
	else
		FUZZ_CHECK(as.len && !((uintptr_t)as.addr % 8) && as.mode &&
			   regions_name_ok(as.name, strlen(as.name)));
}

/* What was allowed to change, and nothing else did */
static void check_change(const struct region *r, const struct memory_access *a, int err)
{
	const uint64_t len = a->op == MEMORY_WRITE ? a->len : 8;
	uint64_t i, from = ARENA;

	if (!err && (a->op == MEMORY_WRITE || memory_right(a->op) == RGATE_MEMORY_ATOMIC)) {
		FUZZ_CHECK(a->off <= r->len && len <= r->len - a->off);
		from = (uint64_t)(r->addr - arena) + a->off;
	}
	for (i = 0; i < ARENA; i++)
		FUZZ_CHECK(arena[i] == before[i] || (i >= from && i - from < len));
}

static void carry_out(struct fuzz_in *in, struct memory_question *q)
{
	const struct region *r = regions[fuzz_u8(in) % REGIONS];
	unsigned char piece[MEMORY_PIECE];
	uint64_t value;
	uint32_t mode;
	int err;

	if (q->a.op == MEMORY_OPEN) {
		err = regions_open(&table, q->a.uid, q->owner, q->name, q->rights, &r);
		FUZZ_CHECK(err || (r->owner == q->owner && !strcmp(r->name, q->name)));
		return;
	}
	/* Most ids are nobody's. */
	if (r && fuzz_u8(in) & 1)
		q->a.region = r->id;
	r = &table.table[q->a.region % REGIONS_MAX];
	if (q->a.op == MEMORY_READ)
		q->a.data = piece;
	memcpy(before, arena, ARENA);
	err = regions_access(&table, &q->a, &value);
	check_change(r, &q->a, err);
	if (err)
		return;
	mode = q->a.uid == r->owner ? r->mode : r->mode >> RGATE_MEMORY_OTHERS_SHIFT;
	FUZZ_CHECK(q->a.region && r->id == q->a.region);
	FUZZ_CHECK((mode & memory_right(q->a.op)) == memory_right(q->a.op));
}

static void question(struct fuzz_in *in)
{
	unsigned char again[RGATE_HUB_MSG_MAX];
	struct memory_question q;
	size_t len;
	void *msg = fuzz_copy(in, RGATE_HUB_MSG_MAX + 8, &len);
	int err = memory_question_get(&q, msg, len);

	FUZZ_CHECK(err <= 0);
	if (!err) {
		FUZZ_CHECK(memory_question_put(again, &q) == len);
		/* the first byte is the hub's */
		FUZZ_CHECK(!memcmp(again + 1, (char *)msg + 1, len - 1));
		carry_out(in, &q);
	}
	free(msg);
}

static void answer(struct fuzz_in *in)
{
	unsigned char again[RGATE_HUB_MSG_MAX];
	struct memory_result r;
	size_t len;
	unsigned char *msg = fuzz_copy(in, RGATE_HUB_MSG_MAX + 8, &len);

	if (!memory_answer_get(&r, msg, len)) {
		FUZZ_CHECK(r.err <= 0 && r.err >= -4095 && r.len <= MEMORY_PIECE);
		FUZZ_CHECK(sizeof(struct memory_answer) + r.len <= len);
		if (r.err != -EIO && r.err != -EPROTONOSUPPORT) {
			FUZZ_CHECK(memory_answer_put(again, &r) == len);
			FUZZ_CHECK(!memcmp(again + 1, msg + 1, len - 1));
		}
	}
	free(msg);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { .p = data, .len = size };
	unsigned int i;

	memset(&table, 0, sizeof(table));
	memset(regions, 0, sizeof(regions));
	memset(arena, 0x55, ARENA);
	for (i = 0; in.len && i < STEPS; i++) {
		switch (fuzz_u8(&in) % 3) {
		case 0:
			add(&in);
			break;
		case 1:
			question(&in);
			break;
		default:
			answer(&in);
		}
	}
	return 0;
}
