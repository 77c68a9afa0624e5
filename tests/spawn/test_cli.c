// SPDX-License-Identifier: MIT OR GPL-2.0
/* ringgate spawn, ps and kill against a node of this machine. */
#include "serve.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct serve s;
static char conf[96], key[96], tool[300];

/* What the command prints (both streams where @merge), and its exit code */
static int cli(char *out, size_t cap, const char *args)
{
	char command[1024];
	size_t len = 0, n;
	int status;
	FILE *f;

	snprintf(command, sizeof(command), "%s %s", tool, args);
	f = popen(command, "r");
	assert_non_null(f);
	while ((n = fread(out + len, 1, cap - 1 - len, f)) > 0)
		len += n;
	out[len] = '\0';
	status = pclose(f);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void expect(const char *args, int code, const char *wanted)
{
	char out[4096];
	int got = cli(out, sizeof(out), args);

	if (got != code || strcmp(out, wanted))
		print_message("# %s: %d: '%s'\n", args, got, out);
	assert_string_equal(out, wanted);
	assert_int_equal(got, code);
}

static void like_ssh(void **state)
{
	char out[4096];

	(void)state;
	expect("spawn /bin/echo a b </dev/null", 0, "a b\n");
	expect("spawn --node 0 -- sh -c 'echo out; echo err >&2; exit 7' 2>/dev/null </dev/null", 7,
	       "out\n");
	expect("spawn -- sh -c 'echo out; echo err >&2' 2>&1 >/dev/null </dev/null", 0, "err\n");
	expect("spawn --env A=1 --unset HOME -- sh -c 'echo $A $HOME' </dev/null", 0, "1\n");
	expect("spawn --cwd /usr pwd </dev/null", 0, "/usr\n");
	expect("spawn -- sh -c 'kill -9 $$' </dev/null", 128 + 9, "");
	/* stdin as it comes, and from a file */
	expect("spawn cat < /etc/hostname | cmp - /etc/hostname && echo same", 0, "same\n");
	expect("spawn --stdin /etc/hostname cat | cmp - /etc/hostname && echo same", 0, "same\n");
	/* much of both, to the byte */
	expect("spawn -- sh -c 'head -c 30000000 /dev/zero | tr \"\\0\" x' </dev/null | "
	       "sha256sum | cut -c1-8", 0, "70c3028c\n");
	expect("spawn --timeout 0.3 -- sleep 100 2>/dev/null </dev/null", 124, "");
	expect("spawn --tail 6 -- seq 1 1000 </dev/null", 0, "\n1000\n");
	/* what was not run */
	assert_int_equal(cli(out, sizeof(out), "spawn /no/such/thing 2>&1 </dev/null"), 255);
	assert_non_null(strstr(out, "not started: No such file"));
	assert_int_equal(cli(out, sizeof(out), "spawn bin/relative 2>&1 </dev/null"), 255);
	assert_non_null(strstr(out, "refused: "));
	assert_int_equal(cli(out, sizeof(out), "spawn 2>&1"), 2);
	assert_int_equal(cli(out, sizeof(out), "spawn --node 9 true 2>&1"), 2);
	assert_int_equal(cli(out, sizeof(out), "spawn --node 1 true 2>&1"), 2);
	assert_int_equal(cli(out, sizeof(out), "spawn --as 7 true 2>&1"), 2);
}

static void signals_go_through(void **state)
{
	char command[700];
	char line[64] = "";
	FILE *f;
	int status;

	(void)state;
	/* its own number first, as exec keeps it */
	snprintf(command, sizeof(command),
		 "echo $$; exec %s spawn -- sh -c 'trap \"echo got; exit 3\" INT; echo on; "
		 "while :; do sleep 0.05; done' </dev/null", tool);
	f = popen(command, "r");
	assert_non_null(f);
	assert_non_null(fgets(line, sizeof(line), f));
	status = atoi(line);
	assert_non_null(fgets(line, sizeof(line), f));
	assert_string_equal(line, "on\n");
	assert_int_equal(kill(status, SIGINT), 0);
	assert_non_null(fgets(line, sizeof(line), f));
	assert_string_equal(line, "got\n");
	status = pclose(f);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 3);
}

static void left_alone(void **state)
{
	char id[64], out[4096], args[256];

	(void)state;
	assert_int_equal(cli(id, sizeof(id), "spawn --detach -- sh -c 'sleep 0.2; echo later; "
			     "sleep 1000' </dev/null"), 0);
	id[strcspn(id, "\n")] = '\0';
	assert_true(strchr(id, '-'));
	assert_int_equal(cli(out, sizeof(out), "ps"), 0);
	assert_non_null(strstr(out, id));
	assert_non_null(strstr(out, "running"));
	assert_int_equal(cli(out, sizeof(out), "ps --json"), 0);
	assert_non_null(strstr(out, "\"state\": \"running\""));
	snprintf(args, sizeof(args), "kill %s", id);
	usleep(300000);
	assert_int_equal(cli(out, sizeof(out), args), 0);
	snprintf(args, sizeof(args), "spawn --attach %s </dev/null", id);
	assert_int_equal(cli(out, sizeof(out), args), 128 + SIGTERM);
	assert_string_equal(out, "later\n");
	snprintf(args, sizeof(args), "kill --signal KILL %s 2>&1", id);
	assert_int_equal(cli(out, sizeof(out), args), 1);
	assert_non_null(strstr(out, "no such process"));
	assert_int_equal(cli(out, sizeof(out), "kill --signal NONE 1-1 2>&1"), 2);
	assert_int_equal(cli(out, sizeof(out), "kill nonsense 2>&1"), 2);
}

static void json(void **state)
{
	char out[8192];

	(void)state;
	assert_int_equal(cli(out, sizeof(out), "spawn --json -- sh -c 'echo hi; exit 4' "
			     "</dev/null"), 4);
	assert_non_null(strstr(out, "\"exit_code\": 4"));
	assert_non_null(strstr(out, "\"stdout\": \"hi\\u000a\""));
	assert_non_null(strstr(out, "\"stage\": \"run\""));
	assert_int_equal(cli(out, sizeof(out), "spawn --json /no/such </dev/null"), 255);
	assert_non_null(strstr(out, "\"stage\": \"exec\""));
	assert_non_null(strstr(out, "\"errno\": 2"));
}

/* Of three nodes one serves, and one is not there */
static void all_nodes(void **state)
{
	char out[8192];

	(void)state;
	assert_int_equal(cli(out, sizeof(out), "spawn --all -- sh -c 'echo a; printf b' 2>&1"),
			 255);
	assert_non_null(strstr(out, "node0: a\nnode0: b\n"));
	assert_non_null(strstr(out, "node2: cannot be reached"));
}

static int up(void **state)
{
	/* As cluster_make() has it, with one more */
	const char *addrs = getenv("RGATE_FABRIC_ADDRS");
	char text[1024], base64[RGATE_KEY_TEXT];
	FILE *f;

	(void)state;
	serve_up(&s, NULL);
	serve_client_down(&s);
	snprintf(key, sizeof(key), "%s/key", s.c.dir);
	snprintf(conf, sizeof(conf), "%s/cluster", s.c.dir);
	f = fopen(key, "w");
	assert_non_null(f);
	rgate_key_to_text(base64, s.c.keys[1]);
	fprintf(f, "%s\n", base64);
	fclose(f);
	assert_int_equal(chmod(key, 0600), 0);
	(void)cluster_text(&s.c, "key", text, sizeof(text));
	f = fopen(conf, "w");
	assert_non_null(f);
	fputs(text, f);
	if (s.c.local)
		fprintf(f, "node 2 compute %s/2\n", s.c.dir);
	else
		fprintf(f, "node 2 compute %.*s:7473\n", (int)strcspn(addrs, ","), addrs);
	fputs(UNIT_KEY_LINE(2), f);
	fclose(f);
	setenv("RGATE_CLUSTER", conf, 1);
	setenv("RGATE_NODE", "1", 1);
	return 0;
}

static int down(void **state)
{
	char path[96];

	(void)state;
	unlink(key);
	unlink(conf);
	snprintf(path, sizeof(path), "%s/2", s.c.dir);
	unlink(path);
	serve_down(&s);
	return 0;
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(like_ssh, up, down),
	cmocka_unit_test_setup_teardown(signals_go_through, up, down),
	cmocka_unit_test_setup_teardown(left_alone, up, down),
	cmocka_unit_test_setup_teardown(json, up, down),
	cmocka_unit_test_setup_teardown(all_nodes, up, down),
};

/* The tool lies in the same build as this program. */
int main(void)
{
	char self[256];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *at;

	if (n < 0)
		return 1;
	self[n] = '\0';
	at = strstr(self, "/tests/spawn/");
	if (!at)
		return 1;
	*at = '\0';
	snprintf(tool, sizeof(tool), "%s/tools/ringgate", self);
	if (access(tool, X_OK)) {
		printf("1..0 # SKIP %s is not built\n", tool);
		return 0;
	}
	return unit_run(__FILE__, tests, ARRAY_LEN(tests));
}
