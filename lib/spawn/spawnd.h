/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The serving node. One thread, nothing in it waits: what could not be done is noted,
 * and done when a descriptor or the timer says so.
 *
 *	spawnd.c	the object, its events, timers, the spawner's answers
 *	spawnd_peers.c	which peers are served
 *	spawnd_client.c	a peer: connection, operations, answers
 *	spawnd_msg.c	what it asks for
 *	spawnd_queue.c	a request, until the spawner has it
 *	spawnd_job.c	and from there to its end
 *	spawnd_io.c	its streams
 *	spawnd_tail.c	one of which only the last bytes are wanted
 *	spawnd_log.c	what is told of it
 *	spawnd_batch.c	what is read from and written to the client's memory
 */
#ifndef RGATE_SPAWN_SPAWND_H
#define RGATE_SPAWN_SPAWND_H

#include <pthread.h>

#include "call.h"
#include "events.h"
#include "index.h"
#include "session.h"
#include "spawner.h"
#include "xfer.h"

#define RGATE_SPAWND_CHUNK	(256U << 10)	/* of a stream, staged at once */
/*
 * Read from a client at once. What a READ asks for comes in one burst that nothing slows;
 * of a longer one Soft-RoCE loses a part where buffers on the way are short (a socket of
 * the default size holds about 90 packets), and asks for it after a timeout only.
 */
#ifndef RGATE_SPAWND_READ	/* less where it is fuzzed */
#define RGATE_SPAWND_READ	(64U << 10)
#endif

enum rgate_spawnd_ev {		/* what a descriptor belongs to */
	RGATE_EV_SPAWNER,
	RGATE_EV_TIMER,
	RGATE_EV_CLIENT,
	RGATE_EV_STREAM,
};

struct rgate_spawnd_tag {	/* first in what is watched */
	enum rgate_spawnd_ev kind;
};

struct spawnd_job;
struct spawnd_client;

struct spawnd_answer {
	struct spawnd_answer *next;
	struct spawnd_client *client;
	struct xfer xfer;
	struct rgate_spawn_answer msg;
	const struct rgate_buf *buf;	/* as soon as it is posted: msg, then entries */
	uint32_t owner;			/* RGATE_SPAWN_LISTED: for whom, */
	uint32_t max;			/* entries that there is room for, */
	struct rgate_remote to;		/* here */
};

struct spawnd_stream {
	struct rgate_spawnd_tag tag;
	struct spawnd_job *job;
	int fd;			/* -1: closed, or there is none */
	bool watched;		/* in the epoll set, */
	uint32_t armed;		/* and to say when it is ready for this; 0: not */
	bool ready;
	uint32_t mode;
	uint32_t ring, ring_len; /* in the client's memory */
	const struct rgate_buf *chunk;
	uint32_t chunk_len;
	uint32_t chunk_at;	/* stdin: written so far; a record: read so far */
	/* output */
	bool posted;		/* the chunk is under way */
	bool ended;
	uint64_t produced;	/* with a chunk that is under way */
	uint64_t consumed;
	uint8_t *tail;		/* RGATE_SPAWN_OUT_TAIL */
	uint64_t tail_total;
	uint64_t tail_sent;
	/* stdin */
	uint64_t given;
	uint64_t taken;
	uint64_t taken_told;
	bool given_all;
	bool closed;
};

enum spawnd_step {
	RGATE_JOB_READING,	/* its record */
	RGATE_JOB_QUEUED,
	RGATE_JOB_STARTING,
	RGATE_JOB_RUNNING,
	RGATE_JOB_EXITED,	/* output may still come */
	RGATE_JOB_CLEARING,	/* the spawner takes away what is left */
	RGATE_JOB_OVER,
};

enum spawnd_overtime {		/* deadlines, one after the other */
	RGATE_TIME_NONE,
	RGATE_TIME_WALL,	/* then SIGTERM */
	RGATE_TIME_GRACE,	/* then SIGKILL */
	RGATE_TIME_CUT,		/* then its output is not waited for any more */
	RGATE_TIME_RETAIN,	/* then its result is forgotten */
};

struct spawnd_job {
	struct index_node by_id;
	struct spawnd_job *next, **prev; /* of the client */
	struct spawnd_job *queue_next;
	struct spawnd_job *work_next;
	bool in_work;
	bool blocked;			/* try again a little later */
	bool dead;			/* to be freed when nobody looks */
	struct rgate_spawnd *sd;
	struct spawnd_client *client;
	enum spawnd_step step;
	uint64_t id;
	uint64_t cookie;
	uint64_t incarnation;		/* of the client that it is attached to */
	uint32_t owner;			/* as the messages have it */
	bool attached;			/* memory is the client's */
	bool detaching;			/* the client wants it back */
	bool greet;			/* no output until the client has seen where it begins */
	bool keep;			/* RGATE_SPAWN_KEEP */
	bool sure;			/* the client waits until it is forgotten */
	bool abandoned;			/* nobody wants to know, */
	bool abandon;			/* as soon as its memory is let go */
	struct rgate_remote mem;	/* of the client: to be written, */
	struct rgate_remote lent;	/* to be read: record, ring of stdin */
	uint32_t record_off, record_len;
	uint8_t *record;
	struct rgate_spawn_parsed req;
	struct rgate_policy_grant *grant;
	char *command;			/* for log and list */
	char user[33];
	struct spawnd_stream s[3];	/* stdin, stdout, stderr */
	struct rgate_spawn_status st;	/* as the next update has it, in host order */
	const struct rgate_buf *st_buf;	/* what an update is sent from */
	uint64_t version;
	bool tell;			/* there is news for the client */
	bool told_end;
	bool log_end;			/* that is to be logged yet */
	struct xfer batch;		/* output, status, and word of it */
	struct xfer read;		/* of the record, or of stdin */
	enum spawnd_overtime overtime;
	uint64_t deadline_ns;		/* CLOCK_MONOTONIC */
	bool left;			/* something lives that it left behind */
	int32_t todo_signal;		/* for the spawner, which was busy */
	int32_t todo_scope;
	uint32_t last_signal;		/* number of the client's */
};

struct spawnd_client {
	struct rgate_spawnd_tag tag;
	struct rgate_spawnd *sd;
	uint32_t id;			/* of the node */
	struct rgate_peer *peer;	/* NULL: none */
	bool own;
	struct session session;
	struct xfer_list xfers;
	struct call_server calls;	/* what its process has asked */
	struct spawnd_job *jobs;
	uint32_t njobs;
	struct spawnd_job *queue, **queue_last;
	uint32_t queued;		/* and being read */
	uint64_t queued_bytes;
	uint32_t running;
	struct spawnd_answer *answers, **answers_last; /* that wait */
	uint32_t nanswers;		/* these, and */
	uint32_t nposted;		/* those that are under way */
	struct spawnd_answer *spare;	/* for the next message */
	uint64_t staged;		/* bytes */
};

struct rgate_spawnd {
	pthread_mutex_t lock;
	struct rgate_hub *hub;		/* NULL: none */
	struct rgate_spawnd_opts o;
	int lift[2];			/* a pipe, empty */
	char *policy_path;
	char *cgroup;			/* as struct rgate_spawnd_opts says */
	const struct rgate_cluster *cluster;
	struct rgate_spawn_policy *policy;
	struct rgate_node *node;
	struct rgate_pool *stage;	/* no peer reaches it */
	struct rgate_spawner spawner;
	struct rgate_spawnd_tag spawner_tag, timer_tag;
	struct events ev;
	int timer_fd;
	uint64_t wake_ns;		/* what the timer is set to; UINT64_MAX: not */
	bool spawner_lost;
	struct spawnd_client client[RGATE_NODES_MAX];
	struct index by_id;
	struct spawnd_job *work, **work_last;
	struct spawnd_job *graves;
	uint64_t next_id;
	uint64_t mark;
	uint32_t turn;			/* client whose turn it is */
	uint32_t running;		/* and starting */
	uint64_t staged;		/* bytes */
	struct rgate_spawnd_stats stats;
};

/* spawnd.c */
void spawnd_wake_at(struct rgate_spawnd *sd, uint64_t ns);
int spawnd_watch(struct rgate_spawnd *sd, int fd, uint32_t events, struct rgate_spawnd_tag *tag);

/* spawnd_peers.c */
void spawnd_client_remove(struct spawnd_client *c);

/* spawnd_client.c */
void spawnd_client_check(struct spawnd_client *c);
void spawnd_client_receive(struct spawnd_client *c);
/* Is there a place for the answer to one more message? Else that is not taken. */
bool spawnd_client_ready(struct spawnd_client *c);
void spawnd_client_post(struct spawnd_client *c);	/* answers that wait */
/* The answer to a message. Where a list of jobs goes: its caller's */
struct spawnd_answer *spawnd_client_answer(struct spawnd_client *c, uint32_t type,
					   uint64_t cookie, uint64_t id, int err,
					   const char *reason);
/* Not to a message: its memory is the client's own again. False: later */
bool spawnd_client_let_go(struct spawnd_client *c, uint64_t cookie, uint64_t id);
void spawnd_client_drop(struct spawnd_client *c);
/* The connection is: no more is posted to it */
void spawnd_client_gone(struct spawnd_client *c);

/* spawnd_msg.c; 1: it was for this service */
int spawnd_client_message(struct spawnd_client *c, const struct rgate_msg *msg, const void *data);
/* The first @max of the jobs behind @after that @owner of node @c may see; -ENOMEM */
int spawnd_list(struct spawnd_client *c, uint32_t owner, uint64_t after,
		struct rgate_spawn_entry *to, uint32_t max, uint32_t *total);

/* spawnd_job.c */
struct spawnd_job *spawnd_job_find(struct rgate_spawnd *sd, uint64_t id);
struct spawnd_job *spawnd_job_create(struct spawnd_client *c, uint64_t cookie);
void spawnd_job_mark(struct spawnd_job *job);	/* it has work */
void spawnd_job_advance(struct spawnd_job *job);
void spawnd_job_fail(struct spawnd_job *job, int err, uint32_t stage, const char *reason);
void spawnd_job_started(struct spawnd_job *job, const struct rgate_spawner_packet *p);
void spawnd_job_exited(struct spawnd_job *job, const struct rgate_spawner_packet *p);
void spawnd_job_finished(struct spawnd_job *job, uint32_t flags);
void spawnd_job_overtime(struct spawnd_job *job, uint64_t now);
void spawnd_job_signal(struct spawnd_job *job, int sig, int scope);
/* Nobody waits for it any more: ends it, and forgets it then */
void spawnd_job_abandon(struct spawnd_job *job);
/* The client's memory is out of reach, or its own again */
void spawnd_job_unattach(struct spawnd_job *job);
void spawnd_job_forget(struct spawnd_job *job);
void spawnd_job_bury(struct rgate_spawnd *sd);

/* spawnd_queue.c */
void spawnd_job_record(struct spawnd_job *job, int err); /* the read has ended */
/* It waits no more, neither to be read nor for its turn */
void spawnd_queue_leave(struct spawnd_job *job);
void spawnd_schedule(struct rgate_spawnd *sd);

/* spawnd_log.c */
void spawnd_log_describe(struct spawnd_job *job);	/* its command */
__attribute__((format(printf, 2, 3)))
void spawnd_log(const struct spawnd_job *job, const char *fmt, ...);

/* spawnd_io.c */
int spawnd_io_lift(struct rgate_spawnd *sd);	/* opens it */
/* The process's ends in @fds, also on error: @null, or to be closed by the caller; stderr
 * may be the same as stdout */
int spawnd_io_open(struct spawnd_job *job, int fds[3], int null);
void spawnd_io_event(struct spawnd_stream *s, uint32_t events);
/* To be told when it is ready for @events */
void spawnd_io_arm(struct spawnd_stream *s, uint32_t events);
void spawnd_io_close(struct spawnd_stream *s);
/* Bytes that the client has room for */
uint32_t spawnd_io_room(const struct spawnd_job *job, const struct spawnd_stream *s);
void spawnd_io_end(struct spawnd_stream *s);	/* no more of this output */
/* As before it was opened */
void spawnd_io_undo(struct spawnd_job *job);
void spawnd_io_free(struct spawnd_job *job);
/* Reads and writes what there is, posts an update. False: something has to wait a little */
bool spawnd_io_advance(struct spawnd_job *job);
bool spawnd_io_ended(const struct spawnd_job *job);	/* all of its output is told */
void spawnd_io_stdin_done(struct spawnd_job *job, int err);

/* spawnd_tail.c: of an output with RGATE_SPAWN_OUT_TAIL */
bool spawnd_tail_advance(struct spawnd_stream *s);
void spawnd_tail_close(struct spawnd_stream *s);	/* what comes now is not read */

/* spawnd_batch.c; false: later */
/* Memory that operations use, for what a node has asked for; NULL: later */
const struct rgate_buf *spawnd_stage(struct spawnd_client *c, size_t len);
void spawnd_unstage(struct spawnd_client *c, const struct rgate_buf **buf);
bool spawnd_batch_has(const struct spawnd_job *job, const struct spawnd_stream *s);
bool spawnd_batch_post(struct spawnd_job *job);
/* From the client's memory to the chunk of stdin, which is given back if that is not possible
 * just now: @len bytes at @from; the next piece of the record */
bool spawnd_batch_read_stdin(struct spawnd_job *job, uint64_t from, uint32_t len);
bool spawnd_batch_read_record(struct spawnd_job *job);

#endif
