/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* The checks of `ringgate doctor`. */
#ifndef DOCTOR_H
#define DOCTOR_H

#include <stdbool.h>
#include <stddef.h>

enum check_state { CHECK_OK, CHECK_WARN, CHECK_MISSING };

/* What a check is needed for. It decides on the exit code if that is missing. */
enum check_need { NEED_MODULE = 1, NEED_USERSPACE = 2, NEED_NOTHING = 0 };

struct check {
	const char *name;
	enum check_state state;
	unsigned int need;	/* NEED_* */
	char text[256];		/* what was found */
	char fix[256];		/* the command that mends it; "": none */
};

#define CHECKS_MAX	32

/* All checks, in the order to be shown. Returns how many. */
size_t doctor_run(struct check checks[CHECKS_MAX]);

/* For the parts of the checks */
struct checks {
	struct check *v;
	size_t n;
};

struct check *check_add(struct checks *c, const char *name, unsigned int need);
void check_set(struct check *k, enum check_state state, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void check_fix(struct check *k, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* The command that installs the headers of a kernel */
void doctor_fix_headers(struct check *k, const char *release);

void doctor_kernel(struct checks *c);
void doctor_module(struct checks *c);
void doctor_rights(struct checks *c);
void doctor_hardware(struct checks *c);
void doctor_gpu(struct checks *c);
void doctor_rdma(struct checks *c);

#endif
