/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What stands in for the engine of requests in fuzz_gate.c: of guests, and of those that ask */
#ifndef GATE_ENGINE_H
#define GATE_ENGINE_H

#include <sys/epoll.h>

#include "fuzz.h"
#include "gate_priv.h"
#include "session_at.h"

struct gate_fuzz {
	struct fuzz_in in;
	struct gate_service *sv;
	const struct gate_role *role;
	bool may_all;			/* the node speaks for all users */
	bool no_room;			/* the engine takes nothing more */
};

extern struct gate_fuzz gate;

/* ---- Of guests, gate_guests.c ---- */

bool gate_may(void *ctx, uint32_t node, uid_t uid);
/* One of a guest's requests ends, or many do. */
void gate_complete(void);
/* None is left */
void gate_guests_check(void);

/* ---- Of those that ask, gate_askers.c ---- */

void gate_askers_begin(void);
/* One asks, or cancels what it has asked */
void gate_askers_wish(void);
/* Requests that have ended; no byte was written that is not theirs */
void gate_askers_forget(void);
/* A session of this node ends: its requests do before its handle is dropped. */
void gate_askers_leave(uint8_t which);
/* Behind the service's end each request has its own */
void gate_askers_check(void);

int __wrap_rgate_session_at(struct rgate_session **out, struct rgate_engine *engine,
			    const struct rgate_seat_opts *o, struct rgate_seat **seat);
void *__wrap_rgate_session_memory(const struct rgate_session *s, size_t *len);
int __wrap_rgate_session_fd(const struct rgate_session *s);
int __wrap_rgate_session_arm(struct rgate_session *s);
int __wrap_rgate_session_submit(struct rgate_session *s, const struct rgate_request *req);
int __wrap_rgate_session_poll(struct rgate_session *s, struct rgate_completion *c,
			      unsigned int n);
int __wrap_rgate_session_cancel(struct rgate_session *s, uint64_t cookie, uint64_t own);
void __wrap_rgate_session_close(struct rgate_session *s);
void __wrap_rgate_seat_remove(struct rgate_seat *seat);
int __wrap_rgate_thread_start(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			      void *arg);
int __wrap_pthread_join(pthread_t thread, void **ret);
int __wrap_epoll_ctl(int epfd, int op, int fd, struct epoll_event *ev);
int __wrap_epoll_wait(int epfd, struct epoll_event *ev, int n, int ms);
const struct rgate_request *__wrap_rgate_req_get(const struct rgate_req *r);
struct rgate_seat *__wrap_rgate_req_seat(const struct rgate_req *r);
void *__wrap_rgate_req_mem(const struct rgate_req *r);
void *__wrap_rgate_req_data(const struct rgate_req *r);
void __wrap_rgate_req_set_data(struct rgate_req *r, void *data);
uint32_t __wrap_rgate_req_shots(const struct rgate_req *r);
uint32_t __wrap_rgate_req_more(struct rgate_req *r, int result, uint64_t value);
void __wrap_rgate_req_end(struct rgate_req *r, int result, uint64_t value);
void *__wrap_rgate_seat_memory(const struct rgate_seat *seat, uint64_t off, uint64_t len);
uid_t __wrap_rgate_seat_uid(const struct rgate_seat *seat);
int __wrap_rgate_seat_handle(struct rgate_seat *seat, uint32_t service, void *object,
			     uint32_t *handle);

#endif
