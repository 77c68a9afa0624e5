// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * `ringgate spawn`: what is asked of the nodes, to the last field, and what is said of their
 * answers, to the byte.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "nodes.h"

#define START	"start on web: argv true; env; unset; mode 0, cwd -, in 1 out 1 err 1, tail 0, " \
		"flags 0, ms 0, memory 0, cpu 0, processes 0, files 0, nice 0, ring 1048576\n"
#define BEGUN	"open - - - 0\n" START "end of input\n"
#define ENDED	"done with web\nclose of 1\n"
#define TRY	"\nTry `ringgate spawn --help' or `ringgate spawn --usage' for more information.\n"

static void requests(void **state)
{
	(void)state;
	cli_is("spawn true", 0, "", BEGUN ENDED);
	cli_is("spawn -C file -A me -n it -e A=1 --env B= --unset C --unset D --clear-env "
	       "--cwd /tmp --timeout 1.5 --memory 3K --cpu 4 --processes 5 --files 6 --nice -7 "
	       "--tail 9K --keep --leave -- sh -c 'echo -n x'", 0, "",
	       "open file me it 0\nstart on web: argv sh -c echo -n x; env A=1 B=; unset C D; "
	       "mode 1, cwd /tmp, in 1 out 2 err 2, tail 9216, flags 3, ms 1500, memory 3072, "
	       "cpu 4, processes 5, files 6, nice -7, ring 1048576\nend of input\n" ENDED);
	cli_is("spawn --keep --nice 19 --timeout 0.001 --memory 1 ls -l --all", 0, "",
	       "open - - - 0\nstart on web: argv ls -l --all; env; unset; mode 0, cwd -, in 1 out 1 "
	       "err 1, tail 0, flags 1, ms 1, memory 1, cpu 0, processes 0, files 0, nice 19, "
	       "ring 1048576\nend of input\n" ENDED);
	cli_is("spawn --leave --nice -20 --tail 1 -a true", 0, "",
	       "open - - - 1\nstart on web: argv true; env; unset; mode 0, cwd -, in 0 out 2 err 2, "
	       "tail 1, flags 2, ms 0, memory 0, cpu 0, processes 0, files 0, nice -20, "
	       "ring 262144\n" ENDED);
	cli_is("spawn --attach 0a1b2c3d-17", 0, "",
	       "open - - - 0\nattach to a1b2c3d00000011 on web, ring 1048576\nend of input\n"
	       ENDED);
}

static void refusals(void **state)
{
	static const struct {
		const char *args, *why;
	} bad[] = {
		{ "", "which command?" },
		{ "-j", "which command?" },
		{ "-e A true", "--env: NAME=VALUE is expected, not 'A'" },
		{ "-e =A true", "--env: NAME=VALUE is expected, not '=A'" },
		{ "--cwd tmp true", "--cwd must begin with /" },
		{ "--timeout 0.0009 true", "--timeout" },
		{ "--attach 1-1 true", "--attach is for one process that runs already" },
		{ "--attach 1-1 -a", "--attach is for one process that runs already" },
		{ "--attach 1-1 --detach", "--attach is for one process that runs already" },
		{ "-a --detach true", "--detach is for one node" },
		{ "-a -i /dev/null true", "--stdin is for one node" },
		{ "--detach -i /dev/null true",
		  "--stdin is for a process that is not left alone" },
		{ "--attach 1-1 -i /dev/null",
		  "--stdin is for a process that is not left alone" },
		{ "--nice -21 true", "--nice" }, { "--nice 20 true", "--nice" },
		{ "--memory 0 true", "--memory" }, { "--cpu 0 true", "--cpu" },
		{ "--cpu 4294967296 true", "--cpu" }, { "--processes 0 true", "--processes" },
		{ "--processes 4294967296 true", "--processes" }, { "--files 0 true", "--files" },
		{ "--files 4294967296 true", "--files" }, { "--tail 0 true", "--tail" },
		{ "--tail 2147483648 true", "--tail" },
	};
	char line[128], text[256];
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(bad); i++) {
		snprintf(line, sizeof(line), "spawn %s", bad[i].args);
		snprintf(text, sizeof(text), "ringgate spawn: %s%s", bad[i].why,
			 strchr(bad[i].why, ' ') ? TRY : "");
		cli_says(line, 2, text);
		/* before a node is asked */
		assert_null(strstr(cli.err, "open"));
	}
	cli_is("spawn --attach 1a2b3c4d", 2, "", "ringgate spawn: '1a2b3c4d' is not an id such as "
	       "1a2b3c4d-17; see `ringgate ps`\n");
	nodes.open = 2;
	cli_is("spawn true", 2, "", "open - - - 0\n");
	nodes.open = 1;
	cli_is("spawn true", 255, "", "open - - - 0\n");
	nodes.open = 0;
	cli_is("spawn -i /no/such true", 2, "", "open - - - 0\n"
	       "ringgate spawn: /no/such: No such file or directory\nclose of 1\n");
}

/* So many names, and not one more */
static void many_names(void **state)
{
	char line[2000] = "spawn";
	unsigned int i;

	(void)state;
	for (i = 0; i < 256; i++)
		strcat(line, " -eA=");
	strcat(line, " true");
	cli_says(line, 0, " A= A=; unset;");
	snprintf(strstr(line, " true"), 16, " -eA= true");
	cli_says(line, 2, "ringgate spawn: more than 256 names" TRY);
}

static void streams(void **state)
{
	struct rgate_spawn_job *job = &nodes.job[0];

	(void)state;
	*job = (struct rgate_spawn_job){
		.piece = { { "one\n", AGAIN, "two", AGAIN, AGAIN, "three\n" },
			   { AGAIN, "four\n" } },
		.r = { .state = RGATE_SPAWN_COMPLETE, .exit_code = 7 },
	};
	cli_is("spawn true", 7, "one\ntwothree\n", BEGUN "four\n" ENDED);
	/* in pieces, as it is taken */
	cli_file("/in", "abcdefghij");
	job->wants_input = true;
	dup2(open(cli_path("/in"), O_RDONLY | O_CLOEXEC), STDIN_FILENO);
	cli_is("spawn true", 7, "one\ntwothree\n", "open - - - 0\n" START
	       "write abcd\nwrite efgh\nwrite ij\nend of input\nfour\n" ENDED);
	/* nobody wants it: that is no end */
	job->takes_none = true;
	job->wants_input = false;
	assert_int_equal(lseek(STDIN_FILENO, 0, SEEK_SET), 0);
	cli_is("spawn true", 7, "one\ntwothree\n", "open - - - 0\n" START "four\n" ENDED);
}

static void input_of_a_file(void **state)
{
	char line[128];

	(void)state;
	cli_file("/in", "abcdef");
	nodes.job[0].wants_input = true;
	snprintf(line, sizeof(line), "spawn -i %s true", cli_path("/in"));
	cli_is(line, 0, "", "open - - - 0\n" START "write abcd\nwrite ef\nend of input\n" ENDED);
}

static void interrupts(void **state)
{
	(void)state;
	nodes.job[0].piece[0][0] = INT;
	nodes.job[0].piece[0][1] = TERM;
	nodes.job[0].piece[0][2] = HUP;
	nodes.job[0].piece[0][3] = "last\n";
	cli_is("spawn true", 0, "last\n", BEGUN "signal 2 to group of web\n"
	       "signal 15 to group of web\nsignal 9 to tree of web\n" ENDED);
}

/* Two run, and the one of which all is known gets none. */
static void interrupts_of_all(void **state)
{
	(void)state;
	nodes.count = 2;
	nodes.job[1].piece[0][0] = AGAIN;
	nodes.job[1].piece[0][1] = INT;
	cli_says("spawn -a true", 0, "ring 262144\nsignal 2 to group of db\ndone with web\n"
		 "done with db\nclose of 2\n");
}

static void ends(void **state)
{
	struct rgate_spawn_result *r = &nodes.job[0].r;

	(void)state;
	r->exit_code = 200;
	cli_is("spawn true", 200, "", BEGUN ENDED);
	r->signal = SIGKILL;
	cli_is("spawn true", 137, "", BEGUN ENDED);
	r->flags = RGATE_SPAWN_TIMED_OUT;
	cli_is("spawn true", 124, "", BEGUN "ringgate spawn: web: true: its time was over\n" ENDED);
	cli_is("spawn --attach 1-1", 124, "", "open - - - 0\nattach to 100000001 on web, ring 1048576\n"
	       "end of input\nringgate spawn: web: process: its time was over\n" ENDED);
	r->flags = 0;
	/* its output cannot be read any more: that is its end */
	nodes.job[0].piece[0][0] = "x\n";
	nodes.job[0].piece[0][1] = BROKEN;
	nodes.job[0].piece[0][2] = "y\n";
	cli_is("spawn true", 137, "x\n", BEGUN ENDED);
	/* nobody reads it: nobody waits, either */
	nodes.job[0].piece[0][0] = FULL;
	nodes.job[0].piece[0][1] = AGAIN;
	cli_is("spawn true", 141, "", BEGUN ENDED);
}

#define FAILED(text)	BEGUN "ringgate spawn: web: true: " text "\n" ENDED

static void failures(void **state)
{
	struct rgate_spawn_result *r = &nodes.job[0].r;

	(void)state;
	r->state = RGATE_SPAWN_ERROR;
	r->stage = RGATE_SPAWN_AT_REQUEST;
	r->error = -EACCES;
	cli_is("spawn true", 255, "", FAILED("refused: Permission denied"));
	strcpy(r->reason, "no rule");
	cli_is("spawn true", 255, "", FAILED("refused: no rule"));
	r->stage = RGATE_SPAWN_AT_LOST;
	cli_is("spawn true", 255, "", FAILED("lost: no rule"));
	r->stage = RGATE_SPAWN_AT_EXEC;
	cli_is("spawn true", 255, "", FAILED("not started: no rule"));
	*r->reason = '\0';
	r->error = -ETIMEDOUT;
	cli_is("spawn true", 255, "", FAILED("not started: Connection timed out"));
	r->stage = RGATE_SPAWN_AT_LOST;
	r->pid = 5;
	cli_is("spawn true", 255, "", FAILED("lost: Connection timed out"));
	r->pid = 0;
	cli_is("spawn true", 255, "", FAILED("it runs nothing for others: `ringgated --spawn "
					     "'policy FILE'` on that node"));
	nodes.start = -ENOTCONN;
	cli_is("spawn true", 255, "", "open - - - 0\n" START "ringgate spawn: true: the node is gone: "
	       "`systemctl status ringgated` on it\nclose of 1\n");
}

#define ALL_START(node, rest)							\
	"start on " node ": argv true; env; unset; mode 0, cwd -, in 0 out 1 "	\
	"err 1, tail 0, flags 0, ms 0, memory 0, cpu 0, processes 0, files 0, nice 0, "	\
	"ring 262144\n" rest

/* Whole lines, each with its node; an end without one gets it */
static void lines_of_all(void **state)
{
	unsigned int i;

	(void)state;
	nodes.count = NODES;
	nodes.gone = 1U << 1;
	/* nobody's output waits for the end of another's */
	for (i = 0; i < 17; i++)
		nodes.job[0].piece[0][i] = "w\n";
	nodes.job[2].piece[0][0] = "m1\nm";
	nodes.job[2].piece[0][1] = AGAIN;
	nodes.job[2].piece[0][2] = "2\n\nm3";
	nodes.job[2].r.exit_code = 3;
	cli_is("spawn -a true", 3,
	       "web: w\nweb: w\nweb: w\nweb: w\nweb: w\nweb: w\nweb: w\nweb: w\n"
	       "web: w\nweb: w\nweb: w\nweb: w\nweb: w\nweb: w\nweb: w\nweb: w\n"
	       "mail: m1\nweb: w\nmail: m2\nmail: \nmail: m3\n",
	       "open - - - 1\n" ALL_START("web", ALL_START("mail", ""))
	       "ringgate spawn: mail: exit status 3\nringgate spawn: db: cannot be reached\n"
	       "done with web\ndone with mail\nclose of 3\n");
	nodes.job[2].r.exit_code = 0;
	cli_says("spawn -a true", 255, "ring 262144\nringgate spawn: db: cannot be reached\n");
	nodes.gone = 0;
	cli_says("spawn -a true", 0, "ring 262144\ndone with web\ndone with db\ndone with mail\n");
	/* the first that is not 0 */
	nodes.job[1].r.state = RGATE_SPAWN_ERROR;
	nodes.job[1].r.stage = RGATE_SPAWN_AT_REQUEST;
	nodes.job[1].r.error = -EPERM;
	nodes.job[2].r.exit_code = 3;
	cli_says("spawn -a true", 255, "262144\nringgate spawn: db: true: refused: Operation not "
		 "permitted\nringgate spawn: mail: exit status 3\ndone with web\n");
	nodes.job[0].r.exit_code = 4;
	cli_says("spawn -a true", 4, "262144\nringgate spawn: web: exit status 4\nringgate spawn: db: ");
}

/* A line that does not end goes on in another one: nothing of it is lost. */
static void long_lines(void **state)
{
	static char piece[60001], wanted[130000];
	char *p = wanted;

	(void)state;
	memset(piece, 'x', sizeof(piece) - 1);
	nodes.job[0].piece[0][0] = piece;
	nodes.job[0].piece[0][1] = piece;
	p += sprintf(p, "web: ");
	memset(p, 'x', 65536);
	p += 65536;
	p += sprintf(p, "\nweb: ");
	memset(p, 'x', 120000 - 65536);
	strcpy(p + 120000 - 65536, "\n");
	cli_run("spawn -a true");
	assert_int_equal(cli.status, 0);
	assert_string_equal(cli.out, wanted);
}

static void json(void **state)
{
	struct rgate_spawn_job *job = &nodes.job[0];

	(void)state;
	*job = (struct rgate_spawn_job){
		.piece = { { "a\n", AGAIN, "b" }, { "c" } },
		.r = { .id = 0x1a2b3c4d00000011, .state = RGATE_SPAWN_COMPLETE,
		       .stage = RGATE_SPAWN_AT_RUN, .exit_code = 4, .pid = 100, .queued_ns = 101,
		       .started_ns = 102, .exited_ns = 103, .utime_us = 104, .stime_us = 105,
		       .maxrss = 106, .produced = { 107, 108 } },
	};
	cli_is("spawn -j true", 4,
	       "{\n  \"node\": \"web\",\n  \"id\": \"1a2b3c4d-17\",\n  \"stage\": \"run\",\n"
	       "  \"error\": null,\n  \"errno\": 0,\n  \"reason\": null,\n"
	       "  \"exit_code\": 4,\n  \"signal\": 0,\n  \"timed_out\": false,\n"
	       "  \"out_of_memory\": false,\n  \"leftovers\": false,\n"
	       "  \"no_cgroup\": false,\n  \"pid\": 100,\n  \"queued_ns\": 101,\n"
	       "  \"started_ns\": 102,\n  \"exited_ns\": 103,\n  \"utime_us\": 104,\n"
	       "  \"stime_us\": 105,\n  \"maxrss\": 106,\n  \"stdout_bytes\": 107,\n"
	       "  \"stderr_bytes\": 108,\n  \"stdout\": \"a\\u000ab\",\n"
	       "  \"stderr\": \"c\"\n}\n",
	       BEGUN ENDED);
}

static void json_of_failures(void **state)
{
	struct rgate_spawn_result *r = &nodes.job[0].r;

	(void)state;
	nodes.count = 2;
	nodes.gone = 2;
	r->state = RGATE_SPAWN_ERROR;
	r->stage = RGATE_SPAWN_AT_REQUEST;
	r->error = -EACCES;
	strcpy(r->reason, "no rule");
	cli_is("spawn -j -a true", 255,
	       "[\n  {\n    \"node\": \"web\",\n    \"id\": null,\n"
	       "    \"stage\": \"request\",\n    \"error\": \"Permission denied\",\n"
	       "    \"errno\": 13,\n    \"reason\": \"no rule\",\n    \"exit_code\": 0,\n"
	       "    \"signal\": 0,\n    \"timed_out\": false,\n"
	       "    \"out_of_memory\": false,\n    \"leftovers\": false,\n"
	       "    \"no_cgroup\": false,\n    \"pid\": 0,\n    \"queued_ns\": 0,\n    \"started_ns\": 0,\n"
	       "    \"exited_ns\": 0,\n    \"utime_us\": 0,\n    \"stime_us\": 0,\n"
	       "    \"maxrss\": 0,\n    \"stdout_bytes\": 0,\n    \"stderr_bytes\": 0,\n"
	       "    \"stdout\": \"\",\n    \"stderr\": \"\"\n  }\n]\n",
	       "open - - - 1\n" ALL_START("web", "")
	       "ringgate spawn: db: cannot be reached\ndone with web\nclose of 2\n");
	r->state = RGATE_SPAWN_COMPLETE;
	r->stage = RGATE_SPAWN_AT_RUN;
	r->error = 0;
	*r->reason = '\0';
	r->flags = RGATE_SPAWN_TIMED_OUT;
	r->signal = SIGTERM;
	nodes.count = 1;
	cli_says("spawn -j true", 124, "  \"signal\": 15,\n  \"timed_out\": true,\n"
		 "  \"out_of_memory\": false,\n  \"leftovers\": false,\n");
	assert_string_equal(cli.err, BEGUN ENDED);
	r->flags = RGATE_SPAWN_LEFTOVERS | RGATE_SPAWN_KILLED_OOM | RGATE_SPAWN_NO_CGROUP;
	cli_says("spawn -j true", 143, "  \"timed_out\": false,\n  \"out_of_memory\": true,\n"
		 "  \"leftovers\": true,\n  \"no_cgroup\": true,\n");
}

#define LEFT	"open - - - 0\nstart on web: argv true; env; unset; mode 0, cwd -, in 0 out 1 err 1, " \
		"tail 0, flags 1, ms 0, memory 0, cpu 0, processes 0, files 0, nice 0, ring 1048576\n"

static void left_alone(void **state)
{
	struct rgate_spawn_result *r = &nodes.job[0].r;

	(void)state;
	r->id = 0xa0000000bULL;
	cli_is("spawn --detach true", 0, "0000000a-11\n", LEFT "let go of web, 5000\nclose of 1\n");
	r->state = RGATE_SPAWN_RUNNING;
	cli_is("spawn --detach true", 0, "0000000a-11\n", LEFT "wait 5 ms\nlet go of web, 5000\nclose of 1\n");
	nodes.detach = -ETIMEDOUT;
	cli_is("spawn --detach true", 255, "", LEFT "wait 5 ms\n"
	       "let go of web, 5000\nringgate spawn: its node does not let go of process "
	       "0000000a-11 (whether it goes on: `ringgate ps`): Connection timed out\nclose of 1\n");
	r->state = RGATE_SPAWN_ERROR;
	r->error = -ENOENT;
	r->stage = RGATE_SPAWN_AT_EXEC;
	cli_is("spawn --detach true", 255, "", LEFT "ringgate spawn: web: true: not started: "
	       "No such file or directory\n" ENDED);
	nodes.job[0].wait = -ECONNRESET;
	cli_is("spawn --detach true", 255, "",
	       LEFT "wait 5 ms\nringgate spawn: web: true: no answer\n" ENDED);
	/* for a minute, and no longer */
	nodes.job[0].wait = 0;
	r->state = RGATE_SPAWN_PENDING;
	cli.still = true;
	cli.tick = 19800000000;		/* 60.6 s with the third after the first */
	cli_is("spawn --detach true", 255, "", LEFT "wait 5 ms\nwait 5 ms\nwait 5 ms\n"
	       "ringgate spawn: web: true: no answer\n" ENDED);
	nodes.start = -EOPNOTSUPP;
	cli_is("spawn --detach true", 255, "", LEFT "ringgate spawn: true: it runs nothing for others: "
	       "`ringgated --spawn 'policy FILE'` on that node\nclose of 1\n");
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, nodes_begin, cli_end)
static const struct CMUnitTest tests[] = {
	TEST(requests),
	TEST(refusals),
	TEST(many_names),
	TEST(streams),
	TEST(input_of_a_file),
	TEST(interrupts),
	TEST(interrupts_of_all),
	TEST(ends),
	TEST(failures),
	TEST(lines_of_all),
	TEST(long_lines),
	TEST(json),
	TEST(json_of_failures),
	TEST(left_alone),
};

UNIT_MAIN_ALONE(tests)
