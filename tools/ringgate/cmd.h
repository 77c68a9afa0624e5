/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What every command of the CLI has. */
#ifndef CMD_H
#define CMD_H

#include <argp.h>
#include <stdbool.h>

/* Exit codes, the same for all commands; ringgate(1) lists them */
enum {
	EXIT_OK = 0,
	EXIT_FAIL = 1,		/* the request could not be carried out */
	EXIT_USAGE = 2,		/* wrong arguments */
	EXIT_NO_MODULE = 3,	/* ringgate.ko is not loaded */
};

/* A command: parses argv (argv[0] is "ringgate NAME"), returns an exit code. */
int cmd_load(int argc, char **argv);
int cmd_unload(int argc, char **argv);
int cmd_status(int argc, char **argv);
int cmd_attach(int argc, char **argv);
int cmd_detach(int argc, char **argv);
int cmd_join(int argc, char **argv);
int cmd_leave(int argc, char **argv);
int cmd_set(int argc, char **argv);
int cmd_stats(int argc, char **argv);
int cmd_events(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_capture(int argc, char **argv);
int cmd_replay(int argc, char **argv);
int cmd_probe(int argc, char **argv);
int cmd_pool(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_cluster(int argc, char **argv);
int cmd_steer(int argc, char **argv);
int cmd_spawn(int argc, char **argv);
int cmd_ps(int argc, char **argv);
int cmd_kill(int argc, char **argv);
int cmd_lock(int argc, char **argv);
int cmd_barrier(int argc, char **argv);
int cmd_queue(int argc, char **argv);
int cmd_net(int argc, char **argv);
int cmd_run_program(int argc, char **argv);

/* What main() begins with: versions, exit status of wrong arguments, the library's log */
void cmd_begin(void);

/* Runs a command as "ringgate NAME"; returns what the program exits with. */
int cmd_run(const char *name, int (*run)(int argc, char **argv), int argc, char **argv);

#define OPT_JSON	{ "json", 'j', NULL, 0, "Print JSON", 0 }

/* Parse; leaves by exit(EXIT_USAGE) with a message when it cannot. */
void cmd_parse(const struct argp *argp, int argc, char **argv, void *input);

#endif
