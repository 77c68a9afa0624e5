/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* A service whose threads answer late, and not in step */
#ifndef SLEEPY_H
#define SLEEPY_H

#include "engine.h"

#define SLEEPY		RGATE_REQ_USER
#define SLEEPY_ECHO	RGATE_REQ_OP(SLEEPY, 0)	/* value: a0 */
#define SLEEPY_HOLD	RGATE_REQ_OP(SLEEPY, 1)	/* until it is cancelled */

extern const struct rgate_req_service sleepy_service;

/* Its threads; no engine serves it before or after */
void sleepy_start(void);
void sleepy_stop(void);

#endif
