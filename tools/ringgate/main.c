// SPDX-License-Identifier: MIT OR GPL-2.0
/* ringgate: packet rings from the command line. */
#include <string.h>

#include "cmd.h"
#include "util.h"

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
} commands[] = {
	{ "load", cmd_load },
	{ "unload", cmd_unload },
	{ "status", cmd_status },
	{ "attach", cmd_attach },
	{ "detach", cmd_detach },
	{ "join", cmd_join },
	{ "leave", cmd_leave },
	{ "set", cmd_set },
	{ "stats", cmd_stats },
	{ "events", cmd_events },
	{ "top", cmd_top },
	{ "capture", cmd_capture },
	{ "replay", cmd_replay },
	{ "probe", cmd_probe },
	{ "pool", cmd_pool },
	{ "bench", cmd_bench },
	{ "doctor", cmd_doctor },
	{ "cluster", cmd_cluster },
	{ "steer", cmd_steer },
	{ "spawn", cmd_spawn },
	{ "ps", cmd_ps },
	{ "kill", cmd_kill },
	{ "lock", cmd_lock },
	{ "barrier", cmd_barrier },
	{ "queue", cmd_queue },
	{ "net", cmd_net },
	{ "run", cmd_run_program },
};

static const char doc[] =
	"Packet rings that programs and GPUs read without system calls.\n\n"
	"Commands:\n"
	"  load      load the kernel module\n"
	"  unload    take it out again\n"
	"  status    module, rings and attachments\n"
	"  attach    hook rings to a network device\n"
	"  detach    end an attachment\n"
	"  join      add a ring to an attachment\n"
	"  leave     take a ring out of one\n"
	"  set       change filter, action or sampling of one\n"
	"  stats     counters\n"
	"  events    what happens to rings and attachments\n"
	"  top       rates of all rings, live\n"
	"  capture   frames to a pcapng file or the terminal\n"
	"  replay    the frames of a capture out of a device\n"
	"  probe     what memory RDMA devices and GPUs can reach here\n"
	"  pool      how many memory regions are needed; proof that sub-buffers work\n"
	"  bench     speed of a ring in memory on this machine\n"
	"  doctor    what is missing on this machine\n"
	"  cluster   peers and rings of this node's daemon; live rates; latency; keys\n"
	"  steer     which node gets which frames\n"
	"  spawn     run a command on another node\n"
	"  ps        commands that other nodes run\n"
	"  kill      send them a signal\n"
	"  lock      run a command while a lock is held\n"
	"  barrier   wait until so many are there\n"
	"  queue     tasks for the programs of this machine\n"
	"  net       sockets that programs have by requests\n"
	"  run       a program whose TCP goes through the daemon\n"
	"\vRun `ringgate COMMAND --help` for the options of a command.\n\n"
	"Exit status: 0 done, 1 failed, 2 wrong arguments, 3 the module is not "
	"loaded.";

struct main_args {
	const char *command;
	int index;
};

static error_t parse_opt(int key, char *arg, struct argp_state *state)
{
	struct main_args *a = state->input;

	switch (key) {
	case ARGP_KEY_ARG:
		/* The rest belongs to the command. */
		a->command = arg;
		a->index = state->next - 1;
		state->next = state->argc;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_usage(state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = parse_opt,
		.args_doc = "COMMAND [ARGUMENT...]",
		.doc = doc,
	};
	struct main_args a = { 0 };
	size_t i;

	cmd_begin();
	if (argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &a) || !a.command)
		return EXIT_USAGE;
	for (i = 0; i < ARRAY_SIZE(commands); i++)
		if (!strcmp(commands[i].name, a.command))
			return cmd_run(a.command, commands[i].run, argc - a.index,
				       argv + a.index);
	say("there is no command '%s'; see `ringgate --help`", a.command);
	return EXIT_USAGE;
}
