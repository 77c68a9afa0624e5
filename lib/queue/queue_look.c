// SPDX-License-Identifier: MIT OR GPL-2.0
/* What a queue has */
#include <string.h>

#include "mirror.h"
#include "queue.h"
#include "queues.h"

#define NUMBERS	4096U	/* looked up in a row: much less than a task */

static struct task *of_link(const struct queue *q, const struct link *l)
{
	return l == &q->tasks ? NULL : container_of(l, struct task, of_queue);
}

/* The first behind @after; NULL: not within so many numbers */
static struct task *behind(const struct queue *q, uint64_t after)
{
	struct task *t = queue_find(q, after);
	uint64_t id;

	if (t)
		return of_link(q, t->of_queue.next);
	t = of_link(q, q->tasks.next);
	if (!t || t->id > after)
		return t;
	for (id = after + 1; id <= q->last && id <= after + NUMBERS; id++) {
		t = queue_find(q, id);
		if (t)
			return t;
	}
	return NULL;
}

struct task *queue_next(const struct queue *q, uint64_t *after, uint32_t states)
{
	struct task *t;
	uint32_t i;

	if (*after >= q->last || !q->n) {
		*after = 0;
		return NULL;
	}
	t = behind(q, *after);
	if (!t) {
		*after = q->last - *after > NUMBERS ? *after + NUMBERS : 0;
		return NULL;
	}
	for (i = 0; t && i < QUEUE_STEPS; i++) {
		*after = t->id;
		if (states & RGATE_TASK_BIT(t->state))
			return t;
		t = of_link(q, t->of_queue.next);
	}
	if (!t)
		*after = 0;
	return NULL;
}

static uint32_t age_ms(const struct task *t)
{
	const uint64_t ms = (t->queue->home->now - t->born_ns) / 1000000;

	return ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX;
}

void task_head(const struct task *t, struct rgate_queue_task *head)
{
	*head = (struct rgate_queue_task){
		.id = t->id, .claim = t->claim, .attempts = t->attempts, .uid = t->uid,
		.len = t->len, .ms = age_ms(t), .state = t->state, .type = t->type,
		.priority = t->priority, .flags = t->flags,
	};
}

void queue_info(const struct queue *q, struct rgate_queue_info *info)
{
	const struct task *t = of_link(q, q->tasks.next);

	*info = q->count;
	info->bytes_max = q->rules.bytes;
	info->tasks_max = q->rules.tasks;
	info->attempts = q->rules.attempts;
	info->run_ms = q->rules.run_ms;
	info->result_ms = q->rules.result_ms;
	info->handles = q->handles;
	info->claims = q->nclaims;
	info->owner = q->owner;
	info->flags = q->rules.flags |
		      (q->home->journal && q->journaled ? RGATE_QUEUE_JOURNALED : 0);
	info->oldest_ms = t ? age_ms(t) : 0;
	info->mirror = q->mirror ? mirror_info(q->mirror) : 0;
	memcpy(info->name, q->name, sizeof(info->name));
}
