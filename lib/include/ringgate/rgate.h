/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * libringgate: what every part shares. Functions return 0 or a count, and
 * -errno on failure; none of them sets errno on purpose.
 */
#ifndef RINGGATE_RGATE_H
#define RINGGATE_RGATE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RGATE_API __attribute__((visibility("default")))

/* Sized option structs: `struct x_opts o = RGATE_OPTS(x_opts, .field = v);` */
#define RGATE_OPTS(type, ...) \
	((struct type){ .sz = sizeof(struct type), ##__VA_ARGS__ })

enum rgate_log_level {
	RGATE_LOG_ERROR,
	RGATE_LOG_WARN,
	RGATE_LOG_INFO,
	RGATE_LOG_DEBUG,
};

typedef void (*rgate_log_fn)(void *ctx, enum rgate_log_level level,
			     const char *msg);

/*
 * rgate_log_set - who hears what the library has to say
 * @fn: called with one line without newline, from any thread that calls the
 *	library; NULL: nobody (the default)
 * @ctx: handed to @fn
 * Not to be called while other threads are in the library.
 */
RGATE_API void rgate_log_set(rgate_log_fn fn, void *ctx);

/*
 * rgate_strerror - what an error means in the call that returned it, and what to do about it
 * @call: the function's name: "rgate_ring_open"; or what all of an object begin with, where it
 *	was one of them: "rgate_pool_"; NULL: any. "rgate_ctl_attach:transmit": attaching a ring
 *	that is sent from
 * @err: -errno or errno as it was returned
 * Return: a static string, one line, never empty. Where nothing is known of the error in that
 * call, or of the call, it says what the error means in general; the log (rgate_log_set()) may
 * say more. Thread-safe.
 */
RGATE_API const char *rgate_strerror(const char *call, int err);

/* rgate_version - "major.minor.patch" of the library that runs */
RGATE_API const char *rgate_version(void);

#ifdef __cplusplus
}
#endif
#endif
