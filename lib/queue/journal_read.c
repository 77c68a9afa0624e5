// SPDX-License-Identifier: MIT OR GPL-2.0
#include "journal_read.h"

#include <errno.h>
#include <string.h>

#include "crc32c.h"

#define FIND_MOST	(64U << 20)	/* bytes that a search sums up: it may be led astray */

uint32_t journal_head_crc(const struct journal_head *head)
{
	return crc32c(0, head, offsetof(struct journal_head, crc));
}

uint32_t journal_record_crc(uint32_t salt, const void *record, size_t len)
{
	const size_t from = sizeof(((struct journal_record *)NULL)->crc);

	return crc32c(salt, (const char *)record + from, len - from);
}

int journal_read_head(struct journal_reader *r, const void *mem, size_t len)
{
	struct journal_head head;

	if (len < sizeof(head))
		return -EBADMSG;
	memcpy(&head, mem, sizeof(head));
	if (head.magic != JOURNAL_MAGIC || head.crc != journal_head_crc(&head))
		return -EBADMSG;
	if (head.version != JOURNAL_VERSION)
		return -EPROTONOSUPPORT;
	*r = (struct journal_reader){
		.mem = mem, .len = len, .at = sizeof(head), .salt = head.salt,
		.number = head.number,
	};
	return 0;
}

/* Is there one at @at, whole and of that place? */
static bool head_at(const struct journal_reader *r, size_t at, struct journal_record *head)
{
	if (r->len - at < sizeof(*head))
		return false;
	memcpy(head, r->mem + at, sizeof(*head));
	return head->at == at && head->len >= sizeof(*head) && head->len <= JOURNAL_RECORD_MOST &&
	       head->len % 8 == 0 && head->len <= r->len - at && head->kind &&
	       head->kind < JOURNAL_KINDS && head->sure <= at;
}

static bool sum_at(const struct journal_reader *r, const struct journal_record *head)
{
	return head->crc == journal_record_crc(r->salt, r->mem + head->at, head->len);
}

static size_t own_size(uint32_t kind)
{
	static const size_t sizes[JOURNAL_KINDS] = {
		[JOURNAL_QUEUE] = sizeof(struct journal_queue),
		[JOURNAL_REMOVED] = sizeof(struct journal_name),
		[JOURNAL_TASK] = sizeof(struct journal_task),
		[JOURNAL_CHANGE] = sizeof(struct journal_change),
		[JOURNAL_GONE] = sizeof(struct journal_name),
	};

	return sizes[kind];
}

static bool state_ok(uint8_t state)
{
	return state == RGATE_TASK_READY || state == RGATE_TASK_DELAYED ||
	       state == RGATE_TASK_BURIED || state == RGATE_TASK_DONE;
}

static bool change_ok(const struct journal_change *c)
{
	return c->end_len <= RGATE_QUEUE_DATA_MAX && state_ok(c->state);
}

/* What it has behind its own: data, then its end, each up to a multiple of 8 */
static bool parts(struct journal_got *got, const unsigned char *at, size_t left)
{
	const struct journal_change *c = &got->change;
	uint64_t len = 0;

	if (got->head.kind == JOURNAL_TASK) {
		c = &got->task.now;
		if (got->task.len > RGATE_QUEUE_DATA_MAX)
			return false;
		len = RGATE_QUEUE_PADDED(got->task.len);
	} else if (got->head.kind != JOURNAL_CHANGE) {
		return !left;
	}
	if (!change_ok(c) || len + RGATE_QUEUE_PADDED(c->end_len) != left)
		return false;
	got->data = at;
	got->end = at + len;
	return true;
}

int journal_read_next(struct journal_reader *r, struct journal_got *got)
{
	size_t own;

	if (r->at == r->len)
		return 0;
	memset(got, 0, sizeof(*got));
	if (!head_at(r, r->at, &got->head) || !sum_at(r, &got->head))
		return -EBADMSG;
	own = sizeof(got->head) + own_size(got->head.kind);
	if (got->head.len < own)
		return -EBADMSG;
	memcpy(&got->queue, r->mem + r->at + sizeof(got->head), own - sizeof(got->head));
	if (!parts(got, r->mem + r->at + own, got->head.len - own))
		return -EBADMSG;
	r->at += got->head.len;
	return 1;
}

size_t journal_read_find(const struct journal_reader *r, bool *sure)
{
	const size_t from = (r->at + 8) & ~(size_t)7;
	struct journal_record head;
	size_t at, found = 0;
	uint64_t cost = 0;

	*sure = false;
	for (at = from; at <= r->len && cost < FIND_MOST && !*sure; at += 8) {
		if (!head_at(r, at, &head))
			continue;
		cost += head.len;
		if (!sum_at(r, &head))
			continue;
		if (!found)
			found = at;
		*sure = head.sure > r->at;
		at += head.len - 8;
	}
	return found;
}
