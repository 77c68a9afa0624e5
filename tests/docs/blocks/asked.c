// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The lines of spawn.rst by which a program without a node asks (BLOCK_1): runs what the
 * arguments behind the daemon's socket say at node 0, and prints how it ended.
 */
#include <endian.h>
#include <errno.h>
#include <ringgate/ringgate.h>
#include <stdio.h>

#define STATUS	65536	/* in the session's memory, behind the record */

static int completed(struct rgate_session *s, struct rgate_completion *c)
{
	int n = rgate_session_wait(s, 30000);

	if (n <= 0)
		return n ? n : -ETIMEDOUT;
	return rgate_session_poll(s, c, 1) == 1 ? c->result : -EPROTO;
}

static int run(struct rgate_session *s, const char *const *argv, uint64_t node)
{
	struct rgate_spawn_request req = RGATE_OPTS(rgate_spawn_request, .argv = argv);
	char *mem = rgate_session_memory(s, NULL);
	const size_t room = STATUS;
	struct rgate_completion c;
	int64_t len;
	int err;

#include BLOCK_1
	err = len < 0 ? (int)len : completed(s, &c);
	if (err)
		return err;
	rgate_session_submit(s, &(struct rgate_request){
		.op = RGATE_REQ_SPAWN_WAIT, .cookie = 2, .handle = (uint32_t)c.value,
		.off = STATUS, .len = sizeof(struct rgate_spawn_status) });
	err = completed(s, &c);
	if (!err)
		printf("exit code %u\n",
		       le32toh(((struct rgate_spawn_status *)(mem + STATUS))->exit_code));
	else
		fprintf(stderr, "%s\n", ((struct rgate_spawn_status *)(mem + STATUS))->reason);
	return err;
}

int main(int argc, char **argv)
{
	struct rgate_session_opts o = RGATE_OPTS(rgate_session_opts, .path = argv[1],
						 .where = RGATE_SESSION_DAEMON,
						 .memory = 2 * STATUS);
	struct rgate_session *s;
	int err;

	if (argc < 3)
		return 2;
	err = rgate_session_open(&s, &o);
	if (!err) {
		err = run(s, (const char *const *)argv + 2, 0);
		rgate_session_close(s);
	}
	if (err)
		fprintf(stderr, "%s\n", rgate_strerror(NULL, err));
	return !!err;
}
