/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Processes on other nodes: a client asks over a peer, the node at the other end runs
 * them, if its policy allows, and their output, status and end come back.
 * Documentation/spawn.rst tells what happens when; ringgate/spawn.h has the values.
 *
 * The client's functions are thread-safe, rgate_spawn_close() and rgate_spawn_job_close()
 * excepted; of one job and stream only one thread reads or writes. The server's are
 * thread-safe, rgate_spawnd_create() and rgate_spawnd_destroy() excepted.
 */
#ifndef RINGGATE_RGATE_SPAWN_H
#define RINGGATE_RGATE_SPAWN_H

#include <stdbool.h>
#include <sys/types.h>

#include <ringgate/rgate_hub.h>
#include <ringgate/spawn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is to run; 0 and NULL in what is not said otherwise: none, or as usual */
struct rgate_spawn_request {
	size_t sz;
	const char *exe;		/* a path, or a name that the node looks for;
					 * NULL: argv[0] */
	const char *const *argv;	/* ends with NULL */
	const char *cwd;		/* NULL: the home of the user */
	const char *const *env;		/* "NAME=VALUE", ends with NULL */
	const char *const *unset;	/* "NAME" */
	uint32_t env_mode;		/* enum rgate_spawn_env */
	uint32_t stdin_mode;		/* enum rgate_spawn_stdin */
	uint32_t stdout_mode;		/* enum rgate_spawn_output */
	uint32_t stderr_mode;
	const void *input;		/* RGATE_SPAWN_IN_DATA */
	size_t input_len;
	uint32_t tail_bytes;		/* RGATE_SPAWN_OUT_TAIL: up to RGATE_SPAWN_TAIL_MAX */
	uint32_t flags;			/* enum rgate_spawn_flags */
	uint64_t wall_ms;		/* limits */
	uint64_t memory;
	uint32_t cpu_s;
	uint32_t processes;
	uint32_t files;
	int32_t nice;
	bool set_umask;
	uint32_t umask;
	uint32_t grace_ms;		/* between SIGTERM and SIGKILL; 0: 2000 */
	uint32_t ring_bytes;		/* for each stream; 0: 64 KiB; a power of two */
};

struct rgate_spawn_result {
	size_t sz;
	uint64_t id;
	uint32_t state;			/* enum rgate_spawn_state */
	int32_t error;			/* -errno with RGATE_SPAWN_ERROR, else 0 */
	uint32_t stage;			/* enum rgate_spawn_stage */
	int32_t exit_code;
	int32_t signal;			/* that ended it, 0 if none */
	uint32_t flags;			/* enum rgate_spawn_result_flags */
	int32_t pid;			/* on its node */
	uint64_t queued_ns;		/* CLOCK_REALTIME of its node */
	uint64_t started_ns;
	uint64_t exited_ns;
	uint64_t utime_us;		/* of it and the children that it waited for */
	uint64_t stime_us;
	uint64_t maxrss;		/* bytes */
	uint64_t inblock;
	uint64_t oublock;
	uint64_t minflt;
	uint64_t majflt;
	uint64_t produced[2];		/* bytes of stdout, stderr */
	uint64_t dropped[2];		/* RGATE_SPAWN_OUT_TAIL: that came before */
	char reason[RGATE_SPAWN_REASON]; /* of an error, in words; may be empty */
};

/*
 * rgate_spawn_record_encode - a request as the record that it travels as, <ringgate/spawn.h>
 * @request: ring_bytes is not part of it
 * @buf: for the record; NULL: only its length is asked for
 * @len: bytes at @buf
 * For requests of the operation RGATE_REQ_SPAWN_START; rgate_spawn_start() does it by itself.
 *
 * Return: the record's length in bytes; -EINVAL: the request is malformed, see the log; -E2BIG:
 * longer than RGATE_SPAWN_RECORD_MAX; -ENOBUFS: longer than @len. Thread-safe.
 */
RGATE_API int64_t rgate_spawn_record_encode(const struct rgate_spawn_request *request, void *buf,
					    size_t len);

/*
 * rgate_spawn_status_decode - what a request of RGATE_REQ_SPAWN_WAIT or _STATUS wrote
 * @status: in the session's memory
 * @result: its sz is set by the caller
 * 0; -EINVAL: @result->sz. Thread-safe.
 */
RGATE_API int rgate_spawn_status_decode(const struct rgate_spawn_status *status,
					struct rgate_spawn_result *result);

/*
 * Client
 */

struct rgate_spawn;		/* what asks one peer */
struct rgate_spawn_job;

struct rgate_spawn_opts {
	size_t sz;
	uint32_t answer_ms;	/* for the first answer to a request; 0: 10000 */
	uint32_t reconnect_ms;	/* without a connection: jobs are lost; 0: 10000 */
	uint32_t flags;		/* RGATE_SPAWN_SHARED */
};

enum rgate_spawn_open_flags {
	/* The caller takes the peer's messages and hands them to rgate_spawn_message() */
	RGATE_SPAWN_SHARED = 1U << 0,
};

/*
 * rgate_spawn_open - to ask @peer, which belongs to @node; both stay as long as this
 * What comes from the other node lies in the pool of this one, what it fetches in what peers
 * can read and not write (rgate_node_readable()). Messages of 152 bytes have to fit
 * (struct rgate_node_opts): where the other node takes less, jobs end with -EMSGSIZE.
 */
RGATE_API int rgate_spawn_open(struct rgate_spawn **spawn, struct rgate_node *node,
			       struct rgate_peer *peer, const struct rgate_spawn_opts *opts);

/* rgate_spawn_close - NULL is allowed. Closes its jobs, too, as rgate_spawn_job_close() does.
 * Where memory of jobs that were closed is still used by the node that runs
 * them after 2 s, its connection is ended (and made anew), so that it is ours again. Without
 * a connection that node is not told of jobs that were closed meanwhile: it ends them when
 * this node stays away or is created anew. */
RGATE_API void rgate_spawn_close(struct rgate_spawn *spawn);

/* rgate_spawn_fd - readable when rgate_spawn_process() has something to do */
RGATE_API int rgate_spawn_fd(const struct rgate_spawn *spawn);

/* rgate_spawn_process - takes what came, sends what is to be sent; does not wait.
 * Functions that wait do this, too. */
RGATE_API int rgate_spawn_process(struct rgate_spawn *spawn);

/*
 * rgate_spawn_message - 1: the message was for @spawn; 0: it is not of this service
 * @msg, @data: as rgate_peer_recv() gave them. What came over a connection before the
 * present one is taken, and forgotten.
 */
RGATE_API int rgate_spawn_message(struct rgate_spawn *spawn, const struct rgate_msg *msg,
				  const void *data);

/*
 * rgate_spawn_next - a job that has news: output, room for stdin, its end
 * Each is told once for each news. -ETIMEDOUT: none within @timeout_ms (0: look once)
 */
RGATE_API int rgate_spawn_next(struct rgate_spawn *spawn, struct rgate_spawn_job **job,
			       int timeout_ms);

/*
 * rgate_spawn_start - asks for a process; does not wait for an answer
 * -EINVAL: the request is malformed, see the log; -E2BIG: longer than
 * RGATE_SPAWN_RECORD_MAX, or more strings than RGATE_SPAWN_ARGS_MAX or RGATE_SPAWN_ENV_MAX;
 * -ENOBUFS: a pool of the node is exhausted; -EMSGSIZE: the rings do not fit in a region of it.
 */
RGATE_API int rgate_spawn_start(struct rgate_spawn *spawn,
				const struct rgate_spawn_request *request,
				struct rgate_spawn_job **job);

/*
 * rgate_spawn_attach - to a process of this node, that another program started or that
 * was detached; streams go on where they were
 * @ring_bytes: 0: 64 KiB
 * Does not wait; rgate_spawn_job_wait() has -ENOENT if there is none.
 */
RGATE_API int rgate_spawn_attach(struct rgate_spawn *spawn, uint64_t id, uint32_t ring_bytes,
				 struct rgate_spawn_job **job);

/*
 * rgate_spawn_kill - a signal for a process by its id
 * Sent once, however often the connection is lost before the answer is here.
 * -ENOENT: there is none, or it is not this node's; -ESRCH: it is over; -ETIMEDOUT: no answer so
 * far; -ECONNRESET: the serving process ended while it was asked. After the last two nobody
 * knows whether the signal was sent. -ENOMEM; -EINVAL: no such signal.
 */
RGATE_API int rgate_spawn_kill(struct rgate_spawn *spawn, uint64_t id, int signal,
			       enum rgate_spawn_scope scope, int timeout_ms);

struct rgate_spawn_info {
	size_t sz;
	uint64_t id;
	uint32_t state;
	uint32_t node;		/* that asked for it */
	int32_t pid;
	bool attached;
	uint64_t started_ns;	/* CLOCK_REALTIME; 0 */
	char user[33];
	char command[RGATE_SPAWN_ENTRY_COMMAND + 1]; /* may be cut */
	bool owned;		/* by user @owner of the node that asked; else by that node */
	uint32_t owner;
};

/*
 * rgate_spawn_list - processes that the peer runs for this node (all: an admin); calls
 * @fn for each; what it returns other than 0 ends it and is returned
 * -ETIMEDOUT: no answer so far; -ENOMEM.
 */
RGATE_API int rgate_spawn_list(struct rgate_spawn *spawn,
			       int (*fn)(void *ctx, const struct rgate_spawn_info *info),
			       void *ctx, int timeout_ms);

/*
 * rgate_spawn_job_wait - until it has ended and all its output is here
 * @result: may be NULL; @result->sz is set by the caller
 * 0: it ended, one way or the other: see @result; -ETIMEDOUT. The output need not have
 * been read, but for a stream longer than its ring somebody has to.
 */
RGATE_API int rgate_spawn_job_wait(struct rgate_spawn_job *job,
				   struct rgate_spawn_result *result, int timeout_ms);
/* What is known now */
RGATE_API int rgate_spawn_job_result(struct rgate_spawn_job *job,
				     struct rgate_spawn_result *result);
/* 0 until the serving node has said it */
RGATE_API uint64_t rgate_spawn_job_id(struct rgate_spawn_job *job);
/* The caller's own, NULL at first */
RGATE_API void rgate_spawn_job_set_data(struct rgate_spawn_job *job, void *data);
RGATE_API void *rgate_spawn_job_data(const struct rgate_spawn_job *job);

/*
 * rgate_spawn_job_read - bytes of stdout (@stream 1) or stderr (2)
 * How many, at least one; 0: the end; -EAGAIN: none within @timeout_ms (0: look once);
 * -EPIPE: the job was lost with less than all of it; -EINVAL: no such stream.
 */
RGATE_API ssize_t rgate_spawn_job_read(struct rgate_spawn_job *job, int stream, void *buf,
				       size_t len, int timeout_ms);
/*
 * rgate_spawn_job_write - bytes for stdin
 * How many were taken; -EAGAIN: no room within @timeout_ms; -EPIPE: nobody reads any more
 */
RGATE_API ssize_t rgate_spawn_job_write(struct rgate_spawn_job *job, const void *buf, size_t len,
					int timeout_ms);
RGATE_API int rgate_spawn_job_close_stdin(struct rgate_spawn_job *job);

struct rgate_spawn_output_buf {
	char *data;		/* to be freed by the caller; has a NUL behind it */
	size_t len;
	uint64_t lost;		/* bytes beyond the limit */
	uint64_t reserved[2];	/* 0 */
};

/*
 * rgate_spawn_job_collect - waits for the end and keeps up to @limit bytes of each stream
 * @out: of stdout and stderr; filled in any case. 0 or as rgate_spawn_job_wait(); after
 * -ETIMEDOUT it can be called again, with the same @out.
 */
RGATE_API int rgate_spawn_job_collect(struct rgate_spawn_job *job,
				      struct rgate_spawn_output_buf out[2], size_t limit,
				      struct rgate_spawn_result *result, int timeout_ms);

/* rgate_spawn_job_kill - sends a signal on its way; -ESRCH: it has ended;
 * -EAGAIN: many are on their way */
RGATE_API int rgate_spawn_job_kill(struct rgate_spawn_job *job, int signal,
				   enum rgate_spawn_scope scope);

/*
 * rgate_spawn_job_detach - lets it run on without this handle, which is closed
 * It can be attached to by its id, by any process of this node. What it writes meanwhile
 * waits in its pipe. -EAGAIN: no id yet; -ETIMEDOUT: what was written to its stdin was not
 * taken, or the other side did not let go of the memory, in time: the handle stays.
 */
RGATE_API int rgate_spawn_job_detach(struct rgate_spawn_job *job, int timeout_ms);

/* rgate_spawn_job_close - if it has not ended it is killed, with its tree; NULL is
 * allowed. Does not wait: memory that the other node still writes to stays the library's until
 * it has let go, or the connection has ended. */
RGATE_API void rgate_spawn_job_close(struct rgate_spawn_job *job);

/*
 * Server
 */

struct rgate_spawnd;

struct rgate_spawnd_opts {
	size_t sz;
	const char *policy;	/* file; NULL: /etc/ringgate/spawn.conf */
	const char *cgroup;	/* directory for control groups; NULL: the process's own,
				 * "": none */
	uint32_t reconnect_ms;	/* a client without a connection is dead; 0: 10000 */
	uint32_t retain_ms;	/* results that nobody took; 0: 600000 */
	uint32_t stage_bytes;	/* memory for streams, of rgate_node_stage(), and 1/16 more for
				 * each node that others leave none; 0: 16 MiB */
	uint32_t flags;		/* RGATE_SPAWND_SHARED */
	/* A line for each refusal, start and end: id, node, user, arguments, result. With a
	 * lock held: nothing of the server may be called. NULL: the log, RGATE_LOG_INFO */
	void (*log)(void *ctx, const char *line);
	void *log_ctx;
	/* For a process to be set up and to call execve(2): its start has failed then
	 * (-ETIMEDOUT), and it is killed. 0: 10000 */
	uint32_t start_ms;
};

enum rgate_spawnd_flags {
	/* Peers are the caller's: see rgate_spawnd_add_peer() */
	RGATE_SPAWND_SHARED = 1U << 0,
};

/*
 * rgate_spawnd_create - reads the policy and runs the spawner
 * That is a program, LIBEXECDIR/ringgate/ringgate-spawner of `make install`, or the one that
 * environment RGATE_SPAWNER names (nobody is asked where the process has changed its user by
 * executing a file). To be called while the process may do what the spawner is to do.
 * Raises the soft limit of open files to the hard one; processes get the old one.
 * Without the file everything is refused. -EINVAL: the file is malformed, see the log;
 * -EPERM: others may write it; -ENOENT, -EACCES, ...: of the program; -EPROTONOSUPPORT: it is of
 * another version; -EPIPE, -ETIMEDOUT: it has ended, or does not begin.
 */
RGATE_API int rgate_spawnd_create(struct rgate_spawnd **spawnd, const struct rgate_cluster *cluster,
				  const struct rgate_spawnd_opts *opts);

/* rgate_spawnd_check - reads a policy, looks for the program, and does nothing with them; errors
 * as rgate_spawnd_create(), and -ENOENT also of the policy */
RGATE_API int rgate_spawnd_check(const struct rgate_cluster *cluster, const char *policy);

/* rgate_spawnd_attach - serves the peers of @node; opens a peer for each node that the
 * policy names, unless RGATE_SPAWND_SHARED */
RGATE_API int rgate_spawnd_attach(struct rgate_spawnd *spawnd, struct rgate_node *node);

/*
 * rgate_spawnd_attach_hub - the same with RGATE_SPAWND_SHARED, as a service of @hub, whose
 * peers all are served; on the hub's thread, and by rgate_spawnd_process()
 */
RGATE_API int rgate_spawnd_attach_hub(struct rgate_spawnd *spawnd, struct rgate_hub *hub);

/*
 * RGATE_SPAWND_SHARED: a peer that the caller opened, and whose messages it hands on;
 * it stays until rgate_spawnd_destroy() or rgate_spawnd_remove_peer(). When its fd is
 * readable, rgate_spawnd_process() is to be called, too.
 */
RGATE_API int rgate_spawnd_add_peer(struct rgate_spawnd *spawnd, struct rgate_peer *peer);
RGATE_API void rgate_spawnd_remove_peer(struct rgate_spawnd *spawnd, struct rgate_peer *peer);
/* As rgate_spawn_message(); what it asks for is done by rgate_spawnd_process() */
RGATE_API int rgate_spawnd_message(struct rgate_spawnd *spawnd, uint32_t node_id,
				   const struct rgate_msg *msg, const void *data);

/* Readable when rgate_spawnd_process() has something to do, also when time is over */
RGATE_API int rgate_spawnd_fd(const struct rgate_spawnd *spawnd);
/* Does it, without waiting. -EPIPE: the spawner is gone: jobs are lost, nothing can be
 * started any more */
RGATE_API int rgate_spawnd_process(struct rgate_spawnd *spawnd);
/* Has the spawner read the policy anew; what runs is not touched, what waits for its turn is
 * decided by the new one. On an error the old one stays. -EPIPE: the spawner is gone */
RGATE_API int rgate_spawnd_reload(struct rgate_spawnd *spawnd);

struct rgate_spawnd_stats {
	size_t sz;
	uint64_t requests;
	uint64_t refused;
	uint64_t failed;	/* did not start */
	uint64_t started;
	uint64_t completed;
	uint64_t killed;	/* since their client died */
	uint64_t timed_out;
	uint64_t garbage;	/* messages that could not be read */
	uint64_t jobs;		/* known now */
	uint64_t queued;
	uint64_t running;
	uint64_t bytes_out;
	uint64_t bytes_in;
};

RGATE_API int rgate_spawnd_stats(struct rgate_spawnd *spawnd,
				 struct rgate_spawnd_stats *stats);

/* rgate_spawnd_destroy - kills what runs; before the node is destroyed, if that has no hub */
RGATE_API void rgate_spawnd_destroy(struct rgate_spawnd *spawnd);

/* "request", "exec", ... */
RGATE_API const char *rgate_spawn_stage_name(uint32_t stage);

#ifdef __cplusplus
}
#endif
#endif
