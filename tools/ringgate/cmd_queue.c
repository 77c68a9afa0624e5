// SPDX-License-Identifier: MIT OR GPL-2.0
/* ringgate queue: tasks for programs of this machine, and of others. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ringgate/rgate_cluster.h>
#include <ringgate/rgate_queue.h>
#include <ringgate/rgate_queue_worker.h>
#include <ringgate/rgate_session.h>

#include "cmd.h"
#include "json.h"
#include "queue_run.h"
#include "queue_watch.h"
#include "table.h"
#include "util.h"

struct queue_args {
	struct rgate_queue_opts opts;
	struct rgate_queue_job job;
	struct queue_run run;
	const struct action *action;
	const char *name;
	uint64_t number;
	uint64_t interval_ns;
	bool json;
};

struct action {
	const char *name;
	int (*fn)(struct rgate_queue *q, const struct queue_args *a); /* NULL: without one */
	uint32_t flags;		/* RGATE_QUEUE_* it is opened with */
};

enum { OPT_OWNER = 256, OPT_TASKS, OPT_BYTES, OPT_ATTEMPTS, OPT_RUN_TIME, OPT_RESULT_TIME,
	OPT_OTHERS, OPT_RETRY, OPT_NO_JOURNAL, OPT_MIRROR };

static const struct argp_option options[] = {
	{ "socket", 'S', "PATH", 0, "The daemon's socket of requests", 0 },
	{ "node", 'n', "N", 0, "Its home is that node, by number (default: this one)", 0 },
	{ "owner", OPT_OWNER, "UID", 0, "It is that user's (default: the own one)", 0 },
	{ "priority", 'p', "N", 0, "put: 0 to 3, 0 first (default: 1)", 0 },
	{ "type", 't', "N", 0, "put: 0 to 63 (default: 0)", 0 },
	{ "delay", 'd', "SECONDS", 0, "put: not before that", 0 },
	{ "attempts", OPT_ATTEMPTS, "N", 0, "put, create: before it is buried (default: 3)", 0 },
	{ "tasks", OPT_TASKS, "N", 0, "create: so many at most (default: 65536)", 0 },
	{ "bytes", OPT_BYTES, "SIZE", 0, "create: so many of tasks, and of results (default: 64M)",
	  0 },
	{ "run-time", OPT_RUN_TIME, "SECONDS", 0, "create: a task that runs longer is taken away",
	  0 },
	{ "result-time", OPT_RESULT_TIME, "SECONDS", 0, "create: results are kept for so long "
	  "(default: 600)", 0 },
	{ "no-journal", OPT_NO_JOURNAL, NULL, 0, "create: its tasks go with the daemon, also with a "
	  "journal", 0 },
	{ "mirror", OPT_MIRROR, NULL, 0, "create: a third node has a copy of each task", 0 },
	{ "others", OPT_OTHERS, "WHAT", 0, "create: other users may 'put' or 'run', too", 0 },
	{ "parallel", 'P', "N", 0, "run: so many commands at once (default: 1)", 0 },
	{ "retry", OPT_RETRY, "SECONDS", 0, "run: until one that failed is run again (default: 1)",
	  0 },
	{ "follow", 'f', NULL, 0, "run, watch: also when there are no tasks", 0 },
	{ "interval", 'i', "SECONDS", 0, "watch: between two looks (default: 1)", 0 },
	OPT_JSON,
	{ 0 }
};

/* ---- Actions ---- */

static int create(struct rgate_queue *q, const struct queue_args *a)
{
	(void)q;
	(void)a;
	return EXIT_OK;
}

static int put_line(struct rgate_queue *q, const struct queue_args *a, const char *line,
		    size_t len)
{
	struct rgate_queue_job job = a->job;
	int ret;

	if (len > RGATE_QUEUE_DATA_MAX) {
		say("%s: a line of %zu bytes: a task has %u at most, so put it into a file",
		    a->name, len, RGATE_QUEUE_DATA_MAX);
		return EXIT_FAIL;
	}
	job.data = line;
	job.len = (uint32_t)len;
	do {
		ret = rgate_queue_submit(q, &job, 1, -1, NULL);
	} while (ret == -EINTR && !util_stop);
	return ret == 1 ? EXIT_OK : fail_in("rgate_queue_submit", ret, "%s", a->name);
}

static int put(struct rgate_queue *q, const struct queue_args *a)
{
	char *line = NULL;
	int ret = EXIT_OK;
	size_t room = 0;
	ssize_t len;

	util_catch_signals();
	while (ret == EXIT_OK && !util_stop && (len = getline(&line, &room, stdin)) >= 0) {
		if (len && line[len - 1] == '\n')
			len--;
		ret = put_line(q, a, line, (size_t)len);
	}
	if (ret == EXIT_OK && ferror(stdin))
		ret = fail_in(WHY_READ, -errno, "standard input");
	free(line);
	return util_stop && ret == EXIT_OK ? EXIT_FAIL : ret;
}

static const char *const states[RGATE_TASK_STATES] = {
	[RGATE_TASK_READY] = "ready", [RGATE_TASK_CLAIMED] = "claimed",
	[RGATE_TASK_RUNNING] = "running", [RGATE_TASK_DELAYED] = "delayed",
	[RGATE_TASK_BURIED] = "buried", [RGATE_TASK_DONE] = "done",
};

static void mirror_json(struct json *j, uint32_t mirror)
{
	int i;

	json_object(j, "mirror");
	json_array(j, "nodes");
	for (i = 0; i < 2; i++)
		if (RGATE_MIRROR_NODE(mirror, i) >= 0)
			json_u64(j, NULL, (uint64_t)RGATE_MIRROR_NODE(mirror, i));
	json_array_end(j);
	json_bool(j, "late", mirror & RGATE_MIRROR_LATE);
	json_u64(j, "missed", RGATE_MIRROR_MISSED(mirror));
	json_object_end(j);
}

static void info_json(struct json *j, const struct rgate_queue_info *info)
{
	unsigned int i;

	json_object(j, NULL);
	json_str(j, "name", info->name);
	json_u64(j, "owner", info->owner);
	for (i = RGATE_TASK_READY; i < RGATE_TASK_STATES; i++)
		json_u64(j, states[i], info->now[i]);
	json_u64(j, "submitted", info->submitted);
	json_u64(j, "completed", info->done);
	json_u64(j, "released", info->released);
	json_u64(j, "lost", info->lost);
	json_u64(j, "late", info->late);
	json_u64(j, "stale", info->stale);
	json_u64(j, "full", info->full);
	json_u64(j, "bytes", info->bytes);
	json_u64(j, "tasks_max", info->tasks_max);
	json_u64(j, "bytes_max", info->bytes_max);
	json_u64(j, "attempts", info->attempts);
	json_u64(j, "waiting", info->claims);
	json_u64(j, "open", info->handles);
	json_bool(j, "journaled", info->flags & RGATE_QUEUE_JOURNALED);
	if (info->flags & RGATE_QUEUE_MIRROR)
		mirror_json(j, info->mirror);
	json_object_end(j);
}

static int stats(struct rgate_queue *q, const struct queue_args *a)
{
	struct rgate_queue_info info;
	struct json j;
	unsigned int i;
	int err;

	err = rgate_queue_info(q, &info);
	if (err)
		return fail_in("rgate_queue_info", err, "%s", a->name);
	info.name[RGATE_QUEUE_NAME_MAX] = '\0';
	if (a->json) {
		json_init(&j, stdout, true);
		info_json(&j, &info);
		json_end(&j);
		return EXIT_OK;
	}
	for (i = RGATE_TASK_READY; i < RGATE_TASK_STATES; i++)
		printf("%-10s %u\n", states[i], info.now[i]);
	printf("%-10s %llu\n%-10s %llu\n%-10s %llu\n%-10s %u\n", "submitted",
	       (unsigned long long)info.submitted, "completed", (unsigned long long)info.done,
	       "lost", (unsigned long long)info.lost, "waiting", info.claims);
	return EXIT_OK;
}

/* What is no text is shown as dots. */
static void print_bytes(const char *data, uint32_t len)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		putchar(isprint((unsigned char)data[i]) ? data[i] : '.');
}

static void task_json(struct json *j, const struct rgate_queue_got *got)
{
	char *data = strndup(got->data, got->task.len), *end = strndup(got->end, got->task.end_len);

	json_object(j, NULL);
	json_u64(j, "task", got->task.id);
	json_str(j, "state", states[got->task.state]);
	json_u64(j, "attempts", got->task.attempts);
	json_u64(j, "type", got->task.type);
	json_u64(j, "priority", got->task.priority);
	json_str(j, "data", data);
	json_str(j, "end", end);
	json_object_end(j);
	free(data);
	free(end);
}

static void task_text(const struct rgate_queue_got *got)
{
	printf("%llu %s ", (unsigned long long)got->task.id, states[got->task.state]);
	print_bytes(got->data, got->task.len);
	if (got->task.end_len) {
		printf(": ");
		print_bytes(got->end, got->task.end_len);
	}
	putchar('\n');
}

static int peek(struct rgate_queue *q, const struct queue_args *a)
{
	struct rgate_queue_got got;
	uint64_t after = 0, n = 0;
	struct json j;
	int ret = 0;

	json_init(&j, stdout, true);
	if (a->json)
		json_array(&j, NULL);
	while (n++ < a->number && (ret = rgate_queue_peek(q, &after, 0, &got)) == 1) {
		got.task.state = got.task.state < RGATE_TASK_STATES ? got.task.state :
				 RGATE_TASK_READY;
		if (a->json)
			task_json(&j, &got);
		else
			task_text(&got);
		if (!after)
			break;
	}
	if (a->json) {
		json_array_end(&j);
		json_end(&j);
	}
	return ret < 0 ? fail_in("rgate_queue_peek", ret, "%s", a->name) : EXIT_OK;
}

static int kick(struct rgate_queue *q, const struct queue_args *a)
{
	uint64_t n = 0;
	int err = rgate_queue_kick(q, a->number, &n);

	if (err)
		return fail_in("rgate_queue_kick", err, "%s", a->name);
	printf("%" PRIu64 "\n", n);
	return EXIT_OK;
}

static int drain(struct rgate_queue *q, const struct queue_args *a)
{
	uint64_t buried = 0;
	int err;

	util_catch_signals();
	do {
		err = rgate_queue_wait_all(q, -1, &buried);
	} while (err == -EINTR && !util_stop);
	if (err)
		return err == -EINTR ? EXIT_FAIL :
		       fail_in("rgate_queue_wait_all", err, "%s", a->name);
	if (!buried)
		return EXIT_OK;
	say("%s: %" PRIu64 " tasks are buried: `ringgate queue peek %s` says why", a->name, buried,
	    a->name);
	return EXIT_FAIL;
}

static int watch(struct rgate_queue *q, const struct queue_args *a)
{
	const struct queue_watch w = { .name = a->name, .interval_ns = a->interval_ns,
				       .json = a->json, .follow = a->run.follow };

	return queue_watch(q, &w);
}

static int take_away(struct rgate_queue *q, const struct queue_args *a)
{
	int err = rgate_queue_remove(q);

	return err ? fail_in("rgate_queue_remove", err, "%s", a->name) : EXIT_OK;
}

/* ---- Which there are ---- */

struct listing {
	struct table table;
	struct json json;
	bool as_json;
};

static int on_queue(void *ctx, const struct rgate_queue_info *info)
{
	struct listing *l = ctx;
	unsigned int i;

	if (l->as_json) {
		info_json(&l->json, info);
		return 0;
	}
	(void)table_cell(&l->table, "%s", info->name);
	(void)table_cell(&l->table, "%u", info->owner);
	for (i = RGATE_TASK_READY; i < RGATE_TASK_STATES; i++)
		(void)table_cell(&l->table, "%u", info->now[i]);
	return table_cell(&l->table, "%llu", (unsigned long long)info->done);
}

static int list(const struct queue_args *a)
{
	struct rgate_queue_opts o = a->opts;
	struct listing l = { .as_json = a->json };
	int err;

	o.flags &= RGATE_QUEUE_AT;
	err = table_init(&l.table, "<NAME >OWNER >READY >CLAIMED >RUNNING >DELAYED >BURIED >DONE "
			 ">COMPLETED");
	if (err)
		return fail(err, "the table");
	json_init(&l.json, stdout, true);
	if (a->json)
		json_array(&l.json, NULL);
	err = rgate_queue_list(&o, on_queue, &l);
	if (a->json) {
		json_array_end(&l.json);
		json_end(&l.json);
	} else if (!err) {
		table_print(&l.table, stdout);
	}
	table_free(&l.table);
	return err ? fail_in("rgate_queue_list", err, "the queues") : EXIT_OK;
}

/* ---- Arguments ---- */

static const struct action actions[] = {
	{ "create", create, RGATE_QUEUE_CREATE | RGATE_QUEUE_EXCLUSIVE | RGATE_QUEUE_KEEP },
	{ "put", put, RGATE_QUEUE_CREATE },
	{ "ls", NULL, 0 },
	{ "stats", stats, 0 },
	{ "peek", peek, 0 },
	{ "kick", kick, 0 },
	{ "drain", drain, 0 },
	{ "watch", watch, 0 },
	{ "remove", take_away, 0 },
	{ "run", NULL, 0 },
};

static bool is(const struct queue_args *a, const char *name)
{
	return !strcmp(a->action->name, name);
}

static void find_action(struct queue_args *a, const char *word, struct argp_state *state)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(actions); i++)
		if (!strcmp(actions[i].name, word))
			a->action = &actions[i];
	if (!a->action)
		argp_error(state, "'%s' is none of create, put, ls, stats, peek, kick, drain, "
			   "watch, remove, run", word);
}

static void parse_arg(struct queue_args *a, char *arg, struct argp_state *state)
{
	if (!a->action) {
		find_action(a, arg, state);
	} else if (!a->name && !is(a, "ls")) {
		a->name = arg;
	} else if (a->name && is(a, "run")) {
		/* The rest is the command's. */
		a->run.command = &state->argv[state->next - 1];
		state->next = state->argc;
	} else if (a->name && (is(a, "kick") || is(a, "peek"))) {
		a->number = arg_number(state, "N", arg, 1, UINT64_MAX);
	} else {
		argp_error(state, "'%s' is not expected", arg);
	}
}

static void end_of_args(const struct queue_args *a, struct argp_state *state)
{
	if (!a->action)
		argp_error(state, "what is to be done: create, put, ls, stats, peek, kick, drain, "
			   "watch, remove or run?");
	else if (!a->name && !is(a, "ls"))
		argp_error(state, "which queue?");
	else if (is(a, "run") && !a->run.command)
		argp_error(state, "which command?");
	else if (a->opts.flags & RGATE_QUEUE_MIRROR && a->opts.flags & RGATE_QUEUE_SUBMIT)
		argp_error(state, "--mirror is for the owner's own tasks: without '--others put'");
}

static uint32_t arg_ms(struct argp_state *state, const char *what, const char *arg)
{
	const uint64_t ms = (arg_seconds(state, what, arg) + 999999) / 1000000;
	const uint32_t most = RGATE_QUEUE_MS_MAX;

	if (ms > most)
		argp_error(state, "%s is too long: %u at most", what, most / 1000);
	return (uint32_t)ms;
}

static void parse_others(struct queue_args *a, const char *arg, struct argp_state *state)
{
	if (!strcmp(arg, "put"))
		a->opts.flags |= RGATE_QUEUE_SUBMIT;
	else if (!strcmp(arg, "run"))
		a->opts.flags |= RGATE_QUEUE_WORK;
	else
		argp_error(state, "--others: '%s' is neither 'put' nor 'run'", arg);
}

static error_t parse_rules(struct queue_args *a, int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case OPT_ATTEMPTS:
		a->job.attempts = (uint32_t)arg_number(state, "--attempts", arg, 1,
						       RGATE_QUEUE_ATTEMPTS_MAX);
		break;
	case OPT_TASKS:
		a->opts.tasks = (uint32_t)arg_number(state, "--tasks", arg, 1,
						     RGATE_QUEUE_TASKS_MAX);
		break;
	case OPT_BYTES:
		a->opts.bytes = arg_size(state, "--bytes", arg, 1, RGATE_QUEUE_BYTES_MAX);
		break;
	case OPT_RUN_TIME:
		a->opts.run_ms = arg_ms(state, "--run-time", arg);
		break;
	case OPT_RESULT_TIME:
		a->opts.result_ms = arg_ms(state, "--result-time", arg);
		break;
	case OPT_NO_JOURNAL:
		a->opts.flags |= RGATE_QUEUE_NO_JOURNAL;
		break;
	case OPT_MIRROR:
		a->opts.flags |= RGATE_QUEUE_MIRROR;
		break;
	case OPT_OTHERS:
		parse_others(a, arg, state);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static error_t parse_opt(int key, char *arg, struct argp_state *state)
{
	struct queue_args *a = state->input;

	switch (key) {
	case 'S':
		a->opts.path = arg;
		break;
	case 'n':
		a->opts.home = (uint32_t)arg_number(state, "--node", arg, 0, RGATE_NODES_MAX - 1);
		a->opts.flags |= RGATE_QUEUE_AT;
		break;
	case OPT_OWNER:
		a->opts.owner = (uint32_t)arg_number(state, "--owner", arg, 0, UINT32_MAX - 1);
		a->opts.flags |= RGATE_QUEUE_OF;
		break;
	case 'p':
		a->job.priority = (uint8_t)arg_number(state, "--priority", arg, 0,
						      RGATE_QUEUE_PRIORITIES - 1);
		break;
	case 't':
		a->job.type = (uint8_t)arg_number(state, "--type", arg, 0, RGATE_QUEUE_TYPES - 1);
		break;
	case 'd':
		a->job.delay_ms = arg_ms(state, "--delay", arg);
		break;
	case 'P':
		a->run.parallel = (uint32_t)arg_number(state, "--parallel", arg, 1,
						  RGATE_WORKER_THREADS_MAX);
		break;
	case OPT_RETRY:
		a->run.retry_ms = arg_ms(state, "--retry", arg);
		break;
	case 'f':
		a->run.follow = true;
		break;
	case 'i':
		a->interval_ns = arg_seconds(state, "--interval", arg);
		if (!a->interval_ns)
			argp_error(state, "--interval is 0");
		break;
	case 'j':
		a->json = true;
		break;
	case ARGP_KEY_ARG:
		parse_arg(a, arg, state);
		break;
	case ARGP_KEY_END:
		end_of_args(a, state);
		break;
	default:
		return parse_rules(a, key, arg, state);
	}
	return 0;
}

static const struct argp argp = {
	.options = options,
	.parser = parse_opt,
	.args_doc = "create|put|stats|drain|watch|remove NAME\nls\npeek|kick NAME [N]\n"
		    "run NAME -- COMMAND [ARGUMENT...]",
	.doc = "Queues of tasks for programs of this machine and of other nodes: put makes a task "
	       "of each line of standard input, run a command of each task, whose {} is replaced "
	       "by it."
	       "\vExit status: 0 done; 1 failed, or a worker did; of drain and watch: tasks are "
	       "buried; 2 wrong arguments.",
};

static int act(struct queue_args *a)
{
	struct rgate_queue *q;
	int err, ret;

	a->opts.flags |= a->action->flags;
	if (is(a, "create"))
		a->opts.attempts = a->job.attempts;
	err = rgate_queue_open(&q, a->name, &a->opts);
	if (err == -EINVAL) {
		say("'%s' cannot be a queue's name: letters, digits and . _ - /, %u at most, or an "
		    "option is of create alone%s", a->name, RGATE_QUEUE_NAME_MAX,
		    a->opts.flags & RGATE_QUEUE_MIRROR ?
		    ", or its home's ringgated is older than --mirror: update it" : "");
		return EXIT_USAGE;
	}
	if (err)
		return fail_in("rgate_queue_open", err, "%s", a->name);
	if (a->action->fn) {
		ret = a->action->fn(q, a);
		rgate_queue_close(q);
		return ret;
	}
	/* Workers open it anew, each for itself. */
	rgate_queue_close(q);
	a->run.name = a->name;
	a->run.opts = &a->opts;
	return queue_run(&a->run);
}

int cmd_queue(int argc, char **argv)
{
	struct queue_args a = {
		.opts = { .sz = sizeof(a.opts), .where = RGATE_SESSION_DAEMON,
			  .path = getenv("RGATE_REQUESTS") },
		.job.priority = 1, .run = { .parallel = 1, .retry_ms = 1000 }, .number = UINT64_MAX,
		.interval_ns = NSEC,
	};

	cmd_parse(&argp, argc, argv, &a);
	return is(&a, "ls") ? list(&a) : act(&a);
}
