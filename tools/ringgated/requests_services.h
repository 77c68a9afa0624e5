/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* The services of the cluster that sessions may ask, if the policy lets them */
#ifndef REQUESTS_SERVICES_H
#define REQUESTS_SERVICES_H

#include "requests_clients.h"

/* Before the first session; all or none, which is said */
int services_start(struct requests *rq, struct rgate_hub *hub);
/* Before the engine is destroyed: what is under way at other nodes ends */
void services_quit(struct requests *rq);
/* After the engine was destroyed, with the hub still there */
void services_stop(struct requests *rq);

#endif
