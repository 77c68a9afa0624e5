/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Four programs that want a lock, or meet at a barrier, of three nodes (world.h). Node 0 is the
 * home, 1 and 2 ask.
 */
#ifndef SYNC_FOUR_H
#define SYNC_FOUR_H

#include "world.h"

#define MANY	4U	/* 0: at the home, 1 and 3: at node 1, 2: at node 2 */

extern struct wclient c[MANY];
extern uint32_t h[MANY];	/* what each has open */

int four_setup(void **state);
int four_teardown(void **state);

#define BED(name)	cmocka_unit_test_setup_teardown(name, four_setup, four_teardown)

#define ask(i, op_, ...) \
	wask(&c[i], (struct rgate_request){ .op = RGATE_REQ_##op_, .handle = h[i], \
		##__VA_ARGS__ }, NULL)
#define submit(i, op_, ...) \
	wsubmit(&c[i], (struct rgate_request){ .op = RGATE_REQ_##op_, .handle = h[i], \
		##__VA_ARGS__ })
#define cancel(i, cookie) \
	wask(&c[i], (struct rgate_request){ .op = RGATE_REQ_CANCEL, .a0 = (cookie) }, NULL)

/* The lock "l" */
void open_all(void);
/* It has not ended, when all that can happen has. */
bool waits(unsigned int i, uint64_t cookie);
struct rgate_lock_info lock_info(unsigned int i);

#endif
