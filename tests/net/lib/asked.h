/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Two daemons, one that is asked by requests and one that runs processes for it, and clients,
 * which are children of the test and nobody where that can be.
 */
#ifndef ASKED_H
#define ASKED_H

#include "asker.h"
#include "ringgated.h"

#include <ringgate/rgate_session.h>
#include <ringgate/rgate_spawn.h>

/* The session's memory */
#define RECORD		0U
#define STATUS		(64U << 10)
#define FROM		(128U << 10)
#define TO		(192U << 10)
#define PIECE		(20U << 10)
#define STATUSES	(256U << 10)	/* 512 bytes each */
#define MEMORY		(512U << 10)

extern struct ringgated r;	/* node 0, that is asked */
extern pid_t runner;		/* node 1, that runs */
extern int word[2];		/* [1]: a client's, to say something to the test */

/* A setup and a teardown: what the daemons read */
int asked_up(void **state);
int asked_down(void **state);
/* A file beside what they read */
void asked_write_file(const char *name, const char *text);

/* Both, with this policy of requests */
void daemons_up(const char *requests);
void daemons_down(void);
void start_runner(void);
/* Its wait status */
int stop_runner(int sig);
/* The number of a process that a client has written */
pid_t hear_pid(void);
bool process_gone(pid_t pid);

/* @fn in a child, which is nobody where that can be; 0: all was as wanted */
pid_t begin_client(int (*fn)(void));
void as_client(int (*fn)(void));

int session_open(void);

#define ASK(...) ask((struct rgate_request){ __VA_ARGS__ }, NULL)

/* The result of a START with input; the handle */
int start_with(uint64_t node, const char *const *argv, uint32_t output, uint32_t *handle);
/* With a request of the caller's, at node 1 */
int start_request(const struct rgate_spawn_request *req, uint32_t *handle);
int start_at(uint64_t node, const char *const *argv, uint32_t *handle);

#define START(handle, ...) start_at(1, (const char *const[]){ __VA_ARGS__, NULL }, handle)

const struct rgate_spawn_status *status_at(uint32_t off);
int wait_end(uint32_t handle);
int read_some(uint32_t handle, int stream);
int write_some(uint32_t handle, const char *text);
/* Waits until it does */
int wait_running(uint32_t handle);

#endif
