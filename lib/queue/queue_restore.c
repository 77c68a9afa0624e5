// SPDX-License-Identifier: MIT OR GPL-2.0
/* Tasks that a journal has, of a queue that nobody has open */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "queue.h"
#include "queues.h"

static int place(struct queue *q, struct task *t, const struct queue_saved *s)
{
	int err = queue_set_end(q, t, s->end, s->end_len);

	if (err)
		return err;
	t->attempts = s->attempts;
	queue_place(q, t, s->state, s->due_ns);
	if (s->state == RGATE_TASK_DONE)
		q->count.result_bytes += t->end_len;
	return 0;
}

static int make(struct queue *q, const struct queue_saved *s, struct task **out)
{
	struct task *t = malloc(queue_cost(s->len));

	if (!t)
		return -ENOMEM;
	*t = (struct task){
		.queue = q, .id = s->id, .born_ns = s->born_ns, .len = s->len, .most = s->most,
		.uid = s->uid, .type = s->type, .priority = s->priority, .flags = s->flags,
	};
	if (s->len)
		memcpy(t->data, s->data, s->len);
	queue_task_init(t);
	*out = t;
	return 0;
}

int queue_restore(struct queue *q, const struct queue_saved *s, struct task **out)
{
	int err;

	if (queue_find(q, s->id))
		return -EEXIST;
	if (q->n >= RGATE_QUEUE_TASKS_MAX || q->count.bytes + s->len > RGATE_QUEUE_BYTES_MAX)
		return -EAGAIN;
	err = queue_reserve(q, s->len);
	if (err)
		return err;
	err = make(q, s, out);
	if (err) {
		quota_give(q->quota, queue_cost(s->len));
		return err;
	}
	queue_add(q, *out);
	if (s->id > q->last)
		q->last = s->id;
	err = place(q, *out, s);
	if (err)
		queue_drop(q, *out);
	return err;
}

int queue_restore_change(struct queue *q, struct task *t, const struct queue_saved *s)
{
	return place(q, t, s);
}

static int compare(const void *a, const void *b)
{
	const struct task *x = *(struct task *const *)a, *y = *(struct task *const *)b;

	return (x->id > y->id) - (x->id < y->id);
}

int queue_restore_order(struct queue *q)
{
	struct task **all;
	struct link *l;
	uint32_t i = 0;

	if (!q->n)
		return 0;
	all = malloc(q->n * sizeof(struct task *));
	if (!all)
		return -ENOMEM;
	for (l = q->tasks.next; l != &q->tasks; l = l->next)
		all[i++] = container_of(l, struct task, of_queue);
	qsort(all, i, sizeof(struct task *), compare);
	for (i = 0; i < q->n; i++) {
		list_del(&all[i]->of_queue);
		list_add_tail(&q->tasks, &all[i]->of_queue);
		queue_place(q, all[i], all[i]->state, all[i]->timer.at);
	}
	free(all);
	return 0;
}
