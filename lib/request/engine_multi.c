// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Requests with more than one completion. What the service tells is kept where there is room for
 * all of it from the begin, so that telling cannot fail, and posted by the engine's thread.
 */
#include <errno.h>
#include <stdlib.h>

#include "engine_priv.h"

int multi_new(struct rgate_req *r)
{
	const uint32_t shots = r->places - 1;

	r->multi = calloc(1, sizeof(*r->multi) + shots * sizeof(r->multi->shot[0]));
	if (!r->multi)
		return -ENOMEM;
	r->multi->shots = shots;
	return 0;
}

/* Its place is used up: it is not reserved any more. */
static void post(struct rgate_req *r, uint32_t i)
{
	const struct multi *m = r->multi;
	struct rgate_seat *s = r->seat;
	const int result = m->shot[i].result;

	r->places--;
	s->reserved--;
	s->user->reserved--;
	seat_post(s, r->q.cookie, result, RGATE_COMP_MORE, result < 0 ? 0 : m->shot[i].value);
	seat_pass_on(s);
}

bool multi_reap(struct rgate_req *r)
{
	struct rgate_engine *e = r->seat->engine;
	struct multi *m = r->multi;
	uint32_t told;
	bool over;

	pthread_mutex_lock(&e->end_lock);
	told = m->told;
	over = m->over;
	m->listed = false;
	pthread_mutex_unlock(&e->end_lock);
	for (; m->posted < told && !r->seat->leaving; m->posted++)
		post(r, m->posted);
	return over;
}

uint32_t rgate_req_shots(const struct rgate_req *r)
{
	return r->multi ? r->multi->shots : 0;
}

uint32_t rgate_req_more(struct rgate_req *r, int result, uint64_t value)
{
	struct rgate_engine *e = r->seat->engine;
	struct multi *m = r->multi;
	uint32_t left;

	pthread_mutex_lock(&e->end_lock);
	left = m->shots - m->told;
	if (left) {
		m->shot[m->told].result = result;
		m->shot[m->told++].value = value;
		left--;
		req_bring(r);
	}
	pthread_mutex_unlock(&e->end_lock);
	return left;
}
