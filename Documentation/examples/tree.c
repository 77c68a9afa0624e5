// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * An irregular tree is searched by tasks: how many nodes it has. A node is a hash, which says how
 * many children it has and what these are, so nobody knows before how large a part of it is.
 *
 *	tree [-s SOCKET] [-t THREADS] [-g GRAIN] [-r ROOTS] [-a AHEAD] [-p MS]
 *	     [count | work | search]
 *
 * A task is some nodes. Its handler visits GRAIN of them, submits those that are left as others,
 * and completes its own with how many it has visited and which tasks these are. A worker that dies
 * may have submitted some, and another one submits them again: nobody counts the former, as no
 * result that was accepted names them. With -a a worker claims so many tasks ahead; with -p it
 * rests so long in each, to be looked at.
 *
 * count: without tasks, in one loop; work: for the daemon at SOCKET, until its queue is removed;
 * search: submits the root there and adds all up. Without these it does all of it, and with a
 * socket, too. It prints what it has found as JSON.
 */
#include <errno.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <ringgate/rgate_queue_worker.h>

#define HASH		20U
#define CHILDREN	8U		/* of a node that has some, */
#define SOME		268000000U	/* which is one of so many in 2^31: 0.9984 children on average */
#define TASK_MOST	1600U		/* nodes: they are within RGATE_QUEUE_DATA_MAX */
#define TASKS_MOST	64U		/* that a task has submitted */
#define WAIT_MS		120000

struct node {
	uint8_t hash[HASH];
};

/* The nodes that are not visited yet */
struct stack {
	struct node *nodes;
	size_t n, room;
	EVP_MD_CTX *md;
};

/* What a task is completed with */
struct found {
	uint64_t nodes;
	uint64_t tasks[TASKS_MOST];	/* the first ones, and no more bytes */
};

static struct rgate_queue_opts opts = {
	.sz = sizeof(opts), .where = RGATE_SESSION_PROCESS, .flags = RGATE_QUEUE_CREATE,
	.attempts = 1000, .result_ms = 3600000,
};
static uint32_t threads = 2, grain = 10000, roots = 3000, ahead, pause_ms;
static EVP_MD *sha1;

/* Since some time, and of all CPUs for this process */
struct times {
	double s, cpu_s;
};

static double read_clock(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static struct times times_since(struct times from)
{
	return (struct times){ .s = read_clock(CLOCK_MONOTONIC) - from.s,
			       .cpu_s = read_clock(CLOCK_PROCESS_CPUTIME_ID) - from.cpu_s };
}

/* ---- The tree ---- */

static int push(struct stack *s, const struct node *parent, uint32_t child)
{
	if (s->n == s->room) {
		const size_t room = s->room ? 2 * s->room : 1024;
		struct node *nodes = realloc(s->nodes, room * sizeof(*nodes));

		if (!nodes)
			return -ENOMEM;
		s->nodes = nodes;
		s->room = room;
	}
	if (!EVP_DigestInit_ex(s->md, sha1, NULL) ||
	    !EVP_DigestUpdate(s->md, parent, sizeof(*parent)) ||
	    !EVP_DigestUpdate(s->md, &child, sizeof(child)) ||
	    !EVP_DigestFinal_ex(s->md, s->nodes[s->n].hash, NULL))
		return -EIO;
	s->n++;
	return 0;
}

static uint32_t children(const struct node *n)
{
	const uint32_t chance = (uint32_t)(n->hash[0] & 0x7f) << 24 | (uint32_t)n->hash[1] << 16 |
				(uint32_t)n->hash[2] << 8 | n->hash[3];

	return chance < SOME ? CHILDREN : 0;
}

/* The root is a node of zeros. It visits @most nodes at most, and counts them. */
static int visit(struct stack *s, uint64_t most, uint64_t *count)
{
	static const struct node root;
	int err = 0;

	while (!err && s->n && most--) {
		const struct node n = s->nodes[--s->n];
		uint32_t i = memcmp(&n, &root, sizeof(n)) ? children(&n) : roots;

		++*count;
		while (!err && i--)
			err = push(s, &n, i);
	}
	return err;
}

static int stack_init(struct stack *s, const void *nodes, size_t n)
{
	*s = (struct stack){ .n = n, .room = n + 1024, .md = EVP_MD_CTX_new() };
	s->nodes = malloc(s->room * sizeof(*s->nodes));
	if (!s->nodes || !s->md)
		return -ENOMEM;
	memcpy(s->nodes, nodes, n * sizeof(*s->nodes));
	return 0;
}

static void stack_fini(struct stack *s)
{
	EVP_MD_CTX_free(s->md);
	free(s->nodes);
}

static int count_alone(uint64_t *count)
{
	static const struct node root;
	struct stack s;
	int err;

	*count = 0;
	err = stack_init(&s, &root, 1);
	if (!err)
		err = visit(&s, UINT64_MAX, count);
	stack_fini(&s);
	return err;
}

/* ---- A task ---- */

/*
 * Two halves, or more that are small enough. The oldest nodes are the first that go; what nobody
 * has room for stays.
 */
static int give_away(struct rgate_queue_work *work, struct stack *s, struct found *f,
		     uint32_t *tasks)
{
	const size_t half = (s->n + 1) / 2;
	const size_t each = half < TASK_MOST ? half : TASK_MOST;
	size_t gone = 0;
	int n = 1;

	while (gone < s->n && *tasks < TASKS_MOST && n == 1) {
		const size_t some = s->n - gone < each ? s->n - gone : each;
		const struct rgate_queue_job job = {
			.data = s->nodes + gone, .len = (uint32_t)(some * sizeof(*s->nodes)),
			.flags = RGATE_TASK_RESULT,
		};

		n = rgate_queue_work_submit(work, &job, 1, 0, &f->tasks[*tasks]);
		if (n == 1) {
			gone += some;
			++*tasks;
		}
	}
	s->n -= gone;
	memmove(s->nodes, s->nodes + gone, s->n * sizeof(*s->nodes));
	return n == 1 || n == -EAGAIN || n == -EDQUOT ? 0 : n;
}

static int search_part(void *ctx, struct rgate_queue_work *work)
{
	struct found *f = work->result;
	uint64_t nodes = 0;
	uint32_t tasks = 0;
	struct stack s;
	int err;

	(void)ctx;
	if (work->task->len % sizeof(struct node)) {
		work->reason = "no nodes";
		return -EINVAL;
	}
	err = stack_init(&s, work->data, work->task->len / sizeof(struct node));
	while (!err && s.n) {
		err = visit(&s, grain, &nodes);
		if (!err && s.n)
			err = give_away(work, &s, f, &tasks);
	}
	stack_fini(&s);
	usleep(pause_ms * 1000);
	f->nodes = nodes;
	work->len = offsetof(struct found, tasks) + tasks * sizeof(f->tasks[0]);
	return err;
}

/* ---- All of them ---- */

/* The results that are to be taken */
struct ids {
	uint64_t *id;
	size_t n, room;
};

static int add_ids(struct ids *ids, const uint64_t *more, size_t n)
{
	if (ids->room - ids->n < n) {
		const size_t room = 2 * (ids->room + n);
		uint64_t *id = realloc(ids->id, room * sizeof(*id));

		if (!id)
			return -ENOMEM;
		ids->id = id;
		ids->room = room;
	}
	memcpy(ids->id + ids->n, more, n * sizeof(*more));
	ids->n += n;
	return 0;
}

static int take_result(struct rgate_queue *q, struct ids *ids, uint64_t *count)
{
	struct found f = { .nodes = 0 };
	uint32_t state;
	int n;

	n = rgate_queue_wait(q, ids->id[--ids->n], RGATE_WAIT_TAKE, WAIT_MS, &f, sizeof(f), &state);
	if (n < 0)
		return n;
	if (state != RGATE_TASK_DONE || (size_t)n < offsetof(struct found, tasks))
		return -EIO;
	*count += f.nodes;
	return add_ids(ids, f.tasks, ((size_t)n - offsetof(struct found, tasks)) / 8);
}

static int search(struct rgate_queue *q, uint64_t *count, uint64_t *tasks)
{
	static const struct node root;
	const struct rgate_queue_job job = { .data = &root, .len = sizeof(root),
					     .flags = RGATE_TASK_RESULT };
	struct ids ids = { .n = 0 };
	uint64_t first;
	int err;

	*count = *tasks = 0;
	err = rgate_queue_submit(q, &job, 1, WAIT_MS, &first);
	err = err == 1 ? add_ids(&ids, &first, 1) : err;
	while (!err && ids.n) {
		err = take_result(q, &ids, count);
		++*tasks;
	}
	free(ids.id);
	return err;
}

static int start_worker(struct rgate_queue_worker **w)
{
	const struct rgate_queue_handler handler = { .run = search_part };
	const struct rgate_queue_worker_opts o = RGATE_OPTS(rgate_queue_worker_opts,
		.queue = &opts, .handlers = &handler, .nhandlers = 1, .threads = threads,
		.prefetch = ahead);

	return rgate_queue_worker_start(w, "example/tree", &o);
}

static int end_worker(struct rgate_queue_worker *w)
{
	int err = rgate_queue_worker_join(w, WAIT_MS);

	rgate_queue_worker_close(w);
	return err;
}

static int work(void)
{
	struct rgate_queue_worker *w;
	int err = start_worker(&w);

	if (err)
		return err;
	/* Whoever searches removes the queue when he has found all. */
	do {
		err = rgate_queue_worker_join(w, WAIT_MS);
	} while (err == -ETIMEDOUT);
	rgate_queue_worker_close(w);
	return err == -ESTALE ? 0 : err;
}

/* As count_alone() has it? @own: it is its own worker */
static int search_all(bool own)
{
	struct rgate_queue_worker *w = NULL;
	struct rgate_queue_info info = { .lost = 0 };
	struct rgate_queue *q;
	uint64_t alone, count = 0, tasks = 0;
	struct times from, by_one, by_tasks;
	int err, end;

	err = rgate_queue_open(&q, "example/tree", &opts);
	if (err)
		return err;
	from = times_since((struct times){ 0 });
	err = count_alone(&alone);
	by_one = times_since(from);
	if (!err && own)
		err = start_worker(&w);
	from = times_since((struct times){ 0 });
	if (!err)
		err = search(q, &count, &tasks);
	by_tasks = times_since(from);
	if (!err)
		err = rgate_queue_info(q, &info);
	if (w) {
		rgate_queue_worker_stop(w);
		end = end_worker(w);
		err = err ? err : end;
	}
	(void)rgate_queue_remove(q);
	rgate_queue_close(q);
	if (!err)
		printf("{\"nodes\": %llu, \"alone\": %llu, \"tasks\": %llu, \"submitted\": %llu, "
		       "\"lost\": %llu, \"threads\": %u, \"alone_s\": %.4f, \"alone_cpu_s\": %.4f, "
		       "\"s\": %.4f, \"cpu_s\": %.4f}\n",
		       (unsigned long long)count, (unsigned long long)alone,
		       (unsigned long long)tasks, (unsigned long long)info.submitted,
		       (unsigned long long)info.lost, threads, by_one.s, by_one.cpu_s, by_tasks.s,
		       by_tasks.cpu_s);
	return err ? err : count == alone ? 0 : -EBADMSG;
}

static int just_count(void)
{
	uint64_t count;
	int err = count_alone(&count);

	if (!err)
		printf("{\"nodes\": %llu}\n", (unsigned long long)count);
	return err;
}

static int read_args(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "s:t:g:r:a:p:")) != -1) {
		switch (c) {
		case 's':
			opts.path = optarg;
			opts.where = RGATE_SESSION_DAEMON;
			break;
		case 't':
			threads = (uint32_t)strtoul(optarg, NULL, 0);
			break;
		case 'g':
			grain = (uint32_t)strtoul(optarg, NULL, 0);
			break;
		case 'r':
			roots = (uint32_t)strtoul(optarg, NULL, 0);
			break;
		case 'a':
			ahead = (uint32_t)strtoul(optarg, NULL, 0);
			break;
		case 'p':
			pause_ms = (uint32_t)strtoul(optarg, NULL, 0);
			break;
		default:
			return -EINVAL;
		}
	}
	return threads && grain ? 0 : -EINVAL;
}

int main(int argc, char **argv)
{
	const char *what;
	int err = read_args(argc, argv);

	if (err) {
		fprintf(stderr, "usage: tree [-s SOCKET] [-t THREADS] [-g GRAIN] [-r ROOTS] "
				"[-a AHEAD] [-p MS] [count | work | search]\n");
		return 2;
	}
	sha1 = EVP_MD_fetch(NULL, "SHA1", NULL);
	what = optind < argc ? argv[optind] : "";
	if (!strcmp(what, "count"))
		err = just_count();
	else if (!strcmp(what, "work"))
		err = work();
	else
		err = search_all(strcmp(what, "search") != 0);
	EVP_MD_free(sha1);
	if (err)
		fprintf(stderr, "tree: %s\n", rgate_strerror("rgate_queue_wait", err));
	return err != 0;
}
