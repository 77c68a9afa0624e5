// SPDX-License-Identifier: MIT OR GPL-2.0
/* `ringgate ps` and `ringgate kill`: what they ask of the nodes, and what they print. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "nodes.h"

static void lists(void **state)
{
	(void)state;
	nodes.count = 2;
	nodes.infos = 2;
	nodes.info[0] = (struct rgate_spawn_info){
		.id = 0x1a2b3c4d00000011, .state = RGATE_SPAWN_RUNNING, .node = 2, .pid = 17,
		.attached = true, .started_ns = 1700000000999999999, .user = "me", .command = "ls -l",
	};
	nodes.info[1] = (struct rgate_spawn_info){
		.id = 1ULL << 32 | 2, .state = 9, .node = 7, .user = "you", .command = "x",
		.owned = true, .owner = 1000,
	};
	cli_is("ps -C file -A me -n it", 0,
	       "NODE  ID           STATE    FROM  OWNER  USER  PID  STARTED              COMMAND\n"
	       "web   1a2b3c4d-17  running  mail  -      me     17  2023-11-14 22:13:20  ls -l\n"
	       "web   00000001-2   ?        7     1000   you     0  -                    x\n"
	       "db    1a2b3c4d-17  running  mail  -      me     17  2023-11-14 22:13:20  ls -l\n"
	       "db    00000001-2   ?        7     1000   you     0  -                    x\n",
	       "open file me it 0\nlist of web, 5000\n"
	       "list of db, 5000\nclose of 2\n");
	nodes.infos = 1;
	nodes.gone = 1;
	cli_is("ps -j -a", 1,
	       "[\n  {\n    \"node\": \"db\",\n    \"id\": \"1a2b3c4d-17\",\n"
	       "    \"state\": \"running\",\n    \"from\": \"mail\",\n    \"owner\": null,\n"
	       "    \"user\": \"me\",\n    \"pid\": 17,\n    \"attached\": true,\n"
	       "    \"started_ns\": 1700000000999999999,\n    \"command\": \"ls -l\"\n  }\n"
	       "]\n",
	       "open - - - 1\nringgate ps: web: cannot be reached\n"
	       "list of db, 5000\nclose of 2\n");
	nodes.gone = 0;
	nodes.infos = 0;
	nodes.list = -ECONNRESET;
	cli_is("ps", 1, "NODE  ID  STATE  FROM  OWNER  USER  PID  STARTED  COMMAND\n",
	       "open - - - 0\nlist of web, 5000\nringgate ps: node web: the node is gone: "
	       "`systemctl status ringgated` on it\nlist of db, 5000\nringgate ps: node db: the node "
	       "is gone: `systemctl status ringgated` on it\nclose of 2\n");
	nodes.open = 2;
	cli_is("ps", 2, "", "open - - - 0\n");
	cli_says("ps more", 2, "ringgate ps: 'more' is not expected\n");
}

static void states(void **state)
{
	static const char *const name[] = { "?", "waiting", "running", "ended", "failed", "?" };
	char text[64];
	unsigned int i;

	(void)state;
	nodes.infos = 1;
	for (i = 0; i < ARRAY_LEN(name); i++) {
		nodes.info[0].state = i;
		snprintf(text, sizeof(text), "\"state\": \"%s\",\n", name[i]);
		cli_says("ps -j", 0, text);
	}
}

static void kills(void **state)
{
	(void)state;
	nodes.count = NODES;
	cli_is("kill -C file -A me -n it 1a2b3c4d-17 2-1", 0, "", "open file me it 0\n"
	       "kill 1a2b3c4d00000011 on web: 15 to tree, 5000\n"
	       "kill 200000001 on web: 15 to tree, 5000\nclose of 3\n");
	/* to whichever has it */
	nodes.kill[0] = -ENOENT;
	nodes.gone = 2;
	cli_is("kill -a --signal sigusr2 --group 1-1", 0, "", "open - - - 1\n"
	       "kill 100000001 on web: 12 to group, 5000\n"
	       "kill 100000001 on mail: 12 to group, 5000\nclose of 3\n");
	nodes.kill[2] = -ENOENT;
	cli_is("kill -s 9 --leader 1-1", 1, "", "open - - - 0\n"
	       "kill 100000001 on web: 9 to leader, 5000\n"
	       "kill 100000001 on mail: 9 to leader, 5000\n"
	       "ringgate kill: 00000001-1: there is no such process of this node\nclose of 3\n");
	nodes.kill[0] = -ESRCH;
	cli_is("kill -s HUP 1-1", 1, "", "open - - - 0\nkill 100000001 on web: 1 to tree, 5000\n"
	       "ringgate kill: 00000001-1: it has ended\nclose of 3\n");
	nodes.kill[0] = -ENOTCONN;
	cli_is("kill -s 64 1-1", 1, "", "open - - - 0\nkill 100000001 on web: 64 to tree, 5000\n"
	       "ringgate kill: 00000001-1: the node is gone: `systemctl status ringgated` on it\n"
	       "close of 3\n");
	nodes.open = 2;
	cli_is("kill 1-1", 2, "", "open - - - 0\n");
	cli_says("kill", 2, "ringgate kill: which process? `ringgate ps` lists them\n");
	cli_says("kill -s 0 1-1", 2, "ringgate kill: there is no signal '0'\n");
	cli_says("kill -s 65 1-1", 2, "ringgate kill: there is no signal '65'\n");
	cli_says("kill -s SIG 1-1", 2, "ringgate kill: there is no signal 'SIG'\n");
}

static void ids(void **state)
{
	static const char *const bad[] = { "1", "-1", "1-", "123456789-1", "1-4294967296", "1-1x", "g-1",
					   "0-0", "1-0x1" };
	char line[2000], text[128];
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(bad); i++) {
		snprintf(line, sizeof(line), "kill -- %s", bad[i]);
		snprintf(text, sizeof(text), "ringgate kill: '%s' is not an id such as 1a2b3c4d-17\n",
			 bad[i]);
		cli_says(line, 2, text);
	}
	cli_says("kill ffffffff-4294967295", 0, "kill ffffffffffffffff on web");
	snprintf(line, sizeof(line), "kill");
	for (i = 0; i < 64; i++)
		strcat(line, " 1-1");
	cli_says(line, 0, "kill 100000001 on web");
	strcat(line, " 1-1");
	cli_says(line, 2, "ringgate kill: at most 64 at once\n");
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, nodes_begin, cli_end)
static const struct CMUnitTest tests[] = {
	TEST(lists),
	TEST(states),
	TEST(kills),
	TEST(ids),
};

UNIT_MAIN_ALONE(tests)
