// SPDX-License-Identifier: MIT OR GPL-2.0
#include "spawn_run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cmd.h"
#include "json.h"
#include "util.h"

#define PIECE		65536
#define COLLECT		(1U << 20)	/* bytes of a stream in JSON */
#define TURN		16		/* pieces, before others have theirs */
#define PATIENCE	3		/* interrupts, before it is killed */

struct out {			/* of one stream of one node */
	char *data;		/* JSON: all; tagged: a line that has not ended */
	size_t len;
	uint64_t lost;
	bool ended;
};

struct one {
	struct spawn_target *target;
	void *job;			/* of the node's way; NULL: never begun */
	struct out out[2];
	struct rgate_spawn_result r;
	bool over;
	bool more;			/* that was not looked at */
};

struct loop {
	const struct spawn_run *run;
	const struct spawn_way *way;
	struct one one[RGATE_NODES_MAX];
	unsigned int n;
	int signal_fd;
	int in_fd;			/* -1: ended */
	char in[PIECE];
	size_t in_len, in_at;
	unsigned int interrupts;
	bool broken;			/* nobody reads what we write */
};

void spawn_say_error(const char *node, const char *command, const struct rgate_spawn_result *r)
{
	const char *what = r->stage == RGATE_SPAWN_AT_REQUEST ? "refused" :
			   r->stage == RGATE_SPAWN_AT_LOST ? "lost" : "not started";

	/* a request that nobody answered: nothing there hears requests */
	if (r->state == RGATE_SPAWN_ERROR && r->stage == RGATE_SPAWN_AT_LOST && !r->pid &&
	    r->error == -ETIMEDOUT)
		(void)fail_in("rgate_spawn_start", r->error, "%s: %s", node, command);
	else if (r->state != RGATE_SPAWN_ERROR)
		say("%s: %s: no answer", node, command);
	else if (*r->reason)
		say("%s: %s: %s: %s", node, command, what, r->reason);
	else
		say("%s: %s: %s: %s", node, command, what, strerror(-r->error));
}

int spawn_wait_running(const struct spawn_node *sn, void *job, struct rgate_spawn_result *r)
{
	const uint64_t end = util_now() + 60 * NSEC;
	int err;

	do {
		err = sn->way->wait(job, r, 5);
		if (err == -ETIMEDOUT)
			err = sn->way->result(job, r);
		if (err || r->state != RGATE_SPAWN_PENDING)
			return err;
	} while (util_now() < end);
	return -ETIMEDOUT;
}

static const char *name_of(const struct spawn_run *run)
{
	return run->request->argv ? run->request->argv[0] : "process";
}

static void put(struct loop *l, int stream, const char *data, size_t len)
{
	ssize_t n;

	for (; len && !l->broken; data += n, len -= (size_t)n) {
		n = write(stream, data, len);
		if (n < 0 && errno == EINTR)
			n = 0;
		else if (n <= 0)
			l->broken = true;
		if (l->broken)
			return;
	}
}

/* Keeps it, up to a limit */
static void keep(struct out *out, const char *data, size_t len, size_t limit)
{
	size_t room = limit - out->len;
	char *more;

	if (len > room) {
		out->lost += len - room;
		len = room;
	}
	more = len ? realloc(out->data, out->len + len + 1) : NULL;
	if (!more)
		return;
	out->data = more;
	memcpy(more + out->len, data, len);
	out->len += len;
	more[out->len] = '\0';
}

static void put_tagged(struct loop *l, const struct one *o, int stream, const char *data,
		       size_t len)
{
	put(l, stream, o->target->to.name, strlen(o->target->to.name));
	put(l, stream, ": ", 2);
	put(l, stream, data, len);
}

/* Whole lines, so that those of several nodes do not mix */
static void tagged(struct loop *l, struct one *o, int stream, const char *data, size_t len)
{
	struct out *out = &o->out[stream - 1];
	const char *end;
	size_t n;

	for (; len; data += n, len -= n) {
		end = memchr(data, '\n', len);
		n = end ? (size_t)(end - data) + 1 : len;
		if (n > PIECE - out->len)
			n = PIECE - out->len;
		keep(out, data, n, PIECE);
		/* A line that is longer than there is room goes on in another one. */
		if (!out->len || (out->len < PIECE && out->data[out->len - 1] != '\n'))
			continue;
		put_tagged(l, o, stream, out->data, out->len);
		if (out->data[out->len - 1] != '\n')
			put(l, stream, "\n", 1);
		out->len = 0;
	}
}

/* True: there may be more of it */
static bool take(struct loop *l, struct one *o, int stream)
{
	static char buf[PIECE];
	struct out *out = &o->out[stream - 1];
	ssize_t n;
	int i;

	/* Signals want to be seen meanwhile. */
	for (i = 0; i < TURN && !out->ended; i++) {
		n = l->way->read(o->job, stream, buf, sizeof(buf));
		if (n == -EAGAIN)
			return false;
		if (n <= 0) {
			out->ended = true;
			if (l->run->all && !l->run->json && out->len)
				tagged(l, o, stream, "\n", 1);
			return false;
		}
		if (l->run->json)
			keep(out, buf, (size_t)n, COLLECT);
		else if (l->run->all)
			tagged(l, o, stream, buf, (size_t)n);
		else
			put(l, stream, buf, (size_t)n);
	}
	return !out->ended;
}

/* What there is of one; its end. True: look again, no news will come of it */
static bool look(struct loop *l, struct one *o)
{
	bool more;

	if (o->over)
		return false;
	more = take(l, o, 1);
	more |= take(l, o, 2);
	/* Its end may have come behind what was just read. */
	if (l->way->wait(o->job, &o->r, 0))
		return more;
	o->over = o->out[0].ended && o->out[1].ended;
	return !o->over;
}

/* All of one that came. Functions that read take messages, too: what they bring is told
 * as news, and nothing is left for the descriptor to tell. */
static bool look_for_news(struct loop *l, struct one *o, bool *news)
{
	bool more = false;

	l->way->process(o->target);
	while (!more && !l->broken && l->way->next(o->target)) {
		*news = true;
		more = look(l, o);
	}
	return more;
}

static void feed(struct loop *l)
{
	void *job = l->one[0].job;
	ssize_t n;

	if (l->in_fd < 0)
		return;
	if (l->in_at == l->in_len) {
		n = read(l->in_fd, l->in, sizeof(l->in));
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) {
			(void)l->way->close_stdin(job);
			l->in_fd = -1;
			return;
		}
		l->in_at = 0;
		l->in_len = (size_t)n;
	}
	n = l->way->write(job, l->in + l->in_at, l->in_len - l->in_at);
	if (n > 0)
		l->in_at += (size_t)n;
	else if (n != -EAGAIN)
		l->in_fd = -1;		/* nobody reads it */
	if (l->in_fd < 0)
		l->in_at = l->in_len;
}

static void on_signal(struct loop *l)
{
	struct signalfd_siginfo info;
	unsigned int i;
	bool kill;

	if (read(l->signal_fd, &info, sizeof(info)) != sizeof(info))
		return;
	kill = ++l->interrupts >= PATIENCE;
	for (i = 0; i < l->n; i++)
		if (!l->one[i].over)
			(void)l->way->signal(l->one[i].job, kill ? SIGKILL : (int)info.ssi_signo,
					     kill ? RGATE_SPAWN_TO_TREE : RGATE_SPAWN_TO_GROUP);
}

static bool all_over(const struct loop *l)
{
	unsigned int i;

	for (i = 0; i < l->n; i++)
		if (!l->one[i].over)
			return false;
	return true;
}

static void wait_for_any(const struct loop *l, struct pollfd *p, int timeout_ms)
{
	unsigned int i;

	p[0] = (struct pollfd){ .fd = l->signal_fd, .events = POLLIN };
	/* Not while there is something that was not taken */
	p[1] = (struct pollfd){ .fd = l->in_at == l->in_len ? l->in_fd : -1, .events = POLLIN };
	for (i = 0; i < l->n; i++) {
		p[i + 2] = (struct pollfd){ .fd = -1, .events = POLLIN };
		if (l->one[i].over)
			continue;
		p[i + 2].fd = l->way->fd(l->one[i].target);
		/* There is something already. */
		if (p[i + 2].fd < 0)
			timeout_ms = 0;
	}
	if (poll(p, l->n + 2, timeout_ms) < 0)
		p[0].revents = p[1].revents = 0;
}

/* Until all have ended, or nobody wants their output */
static void serve(struct loop *l)
{
	struct pollfd p[RGATE_NODES_MAX + 2];
	bool more = true, news;
	unsigned int i;

	while (!all_over(l) && !l->broken) {
		wait_for_any(l, p, more ? 0 : -1);
		if (p[0].revents)
			on_signal(l);
		if (p[1].revents || l->in_at != l->in_len)
			feed(l);
		more = news = false;
		for (i = 0; i < l->n; i++) {
			struct one *o = &l->one[i];

			o->more = (o->more && look(l, o)) || look_for_news(l, o, &news);
			more |= o->more;
		}
		/* One of the news may be room for input. */
		more |= news && l->in_at != l->in_len;
	}
}

static int begin(struct loop *l)
{
	const struct spawn_run *run = l->run;
	struct spawn_node *sn = run->node;
	unsigned int i;
	int err = 0;

	for (i = 0; i < sn->n; i++) {
		struct one *o = &l->one[l->n];

		if (!spawn_is_there(&sn->target[i]))
			continue;
		*o = (struct one){ .target = &sn->target[i], .r = { .sz = sizeof(o->r) } };
		if (run->attach)
			err = l->way->attach(o->target, run->attach, run->request->ring_bytes,
					     &o->job);
		else
			err = l->way->start(o->target, run->request, &o->job);
		if (err)
			return fail_in("rgate_spawn_start", err, "%s", name_of(run));
		l->n++;
	}
	return EXIT_OK;
}

static int open_fds(struct loop *l, sigset_t *old)
{
	const struct spawn_run *run = l->run;
	const bool streams = !run->all && run->request->stdin_mode == RGATE_SPAWN_IN_STREAM;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGPIPE);
	sigprocmask(SIG_BLOCK, &set, old);
	sigdelset(&set, SIGPIPE);
	l->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (l->signal_fd < 0)
		return fail(-errno, "signals");
	l->in_fd = -1;
	if (!streams)
		return EXIT_OK;
	l->in_fd = run->input ? open(run->input, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
	if (l->in_fd >= 0)
		return EXIT_OK;
	fail(-errno, "%s", run->input);
	return EXIT_USAGE;
}

static void print_json(struct json *j, const struct one *o)
{
	const struct rgate_spawn_result *r = &o->r;
	char id[SPAWN_ID];

	json_object(j, NULL);
	json_str(j, "node", o->target->to.name);
	json_str(j, "id", r->id ? spawn_id_text(r->id, id) : NULL);
	json_str(j, "stage", rgate_spawn_stage_name(r->stage));
	json_str(j, "error", r->error ? strerror(-r->error) : NULL);
	json_i64(j, "errno", -r->error);
	json_str(j, "reason", *r->reason ? r->reason : NULL);
	json_i64(j, "exit_code", r->exit_code);
	json_i64(j, "signal", r->signal);
	json_bool(j, "timed_out", r->flags & RGATE_SPAWN_TIMED_OUT);
	json_bool(j, "out_of_memory", r->flags & RGATE_SPAWN_KILLED_OOM);
	json_bool(j, "leftovers", r->flags & RGATE_SPAWN_LEFTOVERS);
	json_bool(j, "no_cgroup", r->flags & RGATE_SPAWN_NO_CGROUP);
	json_i64(j, "pid", r->pid);
	json_u64(j, "queued_ns", r->queued_ns);
	json_u64(j, "started_ns", r->started_ns);
	json_u64(j, "exited_ns", r->exited_ns);
	json_u64(j, "utime_us", r->utime_us);
	json_u64(j, "stime_us", r->stime_us);
	json_u64(j, "maxrss", r->maxrss);
	json_u64(j, "stdout_bytes", r->produced[0]);
	json_u64(j, "stderr_bytes", r->produced[1]);
	json_str(j, "stdout", o->out[0].data ? o->out[0].data : "");
	json_str(j, "stderr", o->out[1].data ? o->out[1].data : "");
	json_object_end(j);
}

static int exit_code_of(const struct loop *l, const struct one *o)
{
	const struct rgate_spawn_result *r = &o->r;

	if (!o->over)
		return 128 + SIGPIPE;
	if (r->state != RGATE_SPAWN_COMPLETE)
		return SPAWN_EXIT_LOST;
	if (r->flags & RGATE_SPAWN_TIMED_OUT) {
		if (!l->run->json)
			say("%s: %s: its time was over", o->target->to.name, name_of(l->run));
		return SPAWN_EXIT_TIME;
	}
	return r->signal ? 128 + r->signal : r->exit_code;
}

/* What became of all; the first exit code that is not 0 */
static int report(struct loop *l)
{
	struct json j;
	unsigned int i;
	int ret = 0, code;

	json_init(&j, stdout, true);
	if (l->run->json && l->run->all)
		json_array(&j, NULL);
	for (i = 0; i < l->n; i++) {
		struct one *o = &l->one[i];

		if (l->run->json)
			print_json(&j, o);
		else if (o->over && o->r.state != RGATE_SPAWN_COMPLETE)
			spawn_say_error(o->target->to.name, name_of(l->run), &o->r);
		code = exit_code_of(l, o);
		if (code && l->run->all && !l->run->json && code != SPAWN_EXIT_LOST)
			say("%s: exit status %d", o->target->to.name, code);
		ret = ret ? ret : code;
	}
	if (l->run->json && l->run->all)
		json_array_end(&j);
	if (l->run->json)
		json_end(&j);
	for (i = 0; i < l->run->node->n; i++)
		if (!spawn_is_there(&l->run->node->target[i])) {
			say("%s: cannot be reached", l->run->node->target[i].to.name);
			ret = ret ? ret : SPAWN_EXIT_LOST;
		}
	return ret;
}

int spawn_run(const struct spawn_run *run)
{
	struct loop *l = calloc(1, sizeof(*l));
	unsigned int i;
	sigset_t old;
	int ret;

	if (!l)
		return SPAWN_EXIT_LOST;
	l->run = run;
	l->way = run->node->way;
	ret = open_fds(l, &old);
	if (ret)
		goto out;
	ret = begin(l) ? SPAWN_EXIT_LOST : EXIT_OK;
	if (!ret) {
		serve(l);
		ret = report(l);
	}
	for (i = 0; i < l->n; i++) {
		l->way->close(l->one[i].job);
		free(l->one[i].out[0].data);
		free(l->one[i].out[1].data);
	}
out:
	if (l->signal_fd > 0)
		close(l->signal_fd);
	sigprocmask(SIG_SETMASK, &old, NULL);
	free(l);
	return ret;
}
