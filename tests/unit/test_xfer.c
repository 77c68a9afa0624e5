// SPDX-License-Identifier: MIT OR GPL-2.0
/* Transfers over a peer whose operations end when, and as, they are told to. */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "container.h"
#include "xfer.h"

#define MOST	16

static int refuse;			/* what the next posts say; 0: they are taken */
static unsigned int posted;		/* tickets 1 to this one were given; */
static unsigned int done, lost;		/* up to the one done, and from there to the other lost */
static int lost_err;
static unsigned int settled;		/* calls */
static int settle_ms[MOST];

int __wrap_rgate_peer_post(struct rgate_peer *peer, const struct rgate_op *ops, unsigned int n,
			   uint64_t *ticket);
int __wrap_rgate_peer_done(struct rgate_peer *peer, uint64_t ticket);
int __wrap_rgate_peer_settle(struct rgate_peer *peer, uint64_t ticket, int timeout_ms);

int __wrap_rgate_peer_post(struct rgate_peer *peer, const struct rgate_op *ops, unsigned int n,
			   uint64_t *ticket)
{
	(void)peer;
	(void)ops;
	if (refuse)
		return refuse;
	posted += n;
	*ticket = posted;
	return 0;
}

int __wrap_rgate_peer_done(struct rgate_peer *peer, uint64_t ticket)
{
	(void)peer;
	if (ticket <= done)
		return 1;
	return ticket <= lost ? lost_err : 0;
}

/* Never in time: the connection ends */
int __wrap_rgate_peer_settle(struct rgate_peer *peer, uint64_t ticket, int timeout_ms)
{
	settle_ms[settled++ % MOST] = timeout_ms;
	if (__wrap_rgate_peer_done(peer, ticket))
		return 0;
	lost = posted;
	lost_err = -ETIMEDOUT;
	return -ETIMEDOUT;
}

struct thing {
	unsigned int before;
	struct xfer xfer;
	unsigned int number;
	struct xfer_list *again;	/* over() posts it again, to this */
};

static unsigned int order[MOST], ends;
static int errors[MOST];

static void over(struct xfer *x, int err)
{
	struct thing *t = container_of(x, struct thing, xfer);
	const struct rgate_op op = { .kind = RGATE_OP_FLUSH };
	struct xfer_list *again = t->again;

	assert_false(x->under_way);
	errors[ends] = err;
	order[ends++] = t->number;
	t->again = NULL;
	if (again)
		assert_int_equal(xfer_post(again, x, &op, 1, over), 0);
}

static int setup(void **state)
{
	(void)state;
	refuse = lost_err = 0;
	posted = done = lost = settled = ends = 0;
	return 0;
}

static void post(struct xfer_list *list, struct thing *t, unsigned int number, unsigned int ops)
{
	const struct rgate_op op[4] = { { .kind = RGATE_OP_FLUSH } };

	memset(t, 0, sizeof(*t));
	t->number = number;
	assert_int_equal(xfer_post(list, &t->xfer, op, ops, over), 0);
	assert_true(t->xfer.under_way);
}

static void in_their_order(void **state)
{
	struct xfer_list list;
	struct thing t[3];
	unsigned int i;

	(void)state;
	xfer_list_init(&list, NULL);
	assert_true(xfer_list_empty(&list));
	assert_int_equal(xfer_reap(&list), 0);
	for (i = 0; i < 3; i++)
		post(&list, &t[i], i, i + 1);
	assert_false(xfer_list_empty(&list));
	assert_int_equal(xfer_reap(&list), 0);
	/* all of the first, and a part of the second */
	done = 2;
	assert_int_equal(xfer_reap(&list), 1);
	assert_int_equal(ends, 1);
	assert_false(t[0].xfer.under_way);
	assert_true(t[1].xfer.under_way);
	/* the one that is over can be posted again, behind the others */
	post(&list, &t[0], 0, 1);
	done = 7;
	assert_int_equal(xfer_reap(&list), 3);
	assert_true(xfer_list_empty(&list));
	assert_int_equal(ends, 4);
	for (i = 0; i < 4; i++) {
		assert_int_equal(order[i], i % 3);
		assert_int_equal(errors[i], 0);
	}
}

static void refused(void **state)
{
	const struct rgate_op op = { .kind = RGATE_OP_FLUSH };
	struct thing t = { .number = 5 };
	struct xfer_list list;

	(void)state;
	xfer_list_init(&list, NULL);
	refuse = -EAGAIN;
	assert_int_equal(xfer_post(&list, &t.xfer, &op, 1, over), -EAGAIN);
	assert_false(t.xfer.under_way);
	assert_true(xfer_list_empty(&list));
	assert_int_equal(xfer_reap(&list), 0);
	assert_int_equal(ends, 0);
}

/* What was done before the connection ended is told as done, what came after as lost. */
static void connection_ends(void **state)
{
	struct xfer_list list;
	struct thing t[3];
	unsigned int i;

	(void)state;
	xfer_list_init(&list, NULL);
	for (i = 0; i < 3; i++)
		post(&list, &t[i], i, 1);
	done = 1;
	lost = 3;
	lost_err = -ECONNRESET;
	assert_int_equal(xfer_reap(&list), 3);
	assert_int_equal(errors[0], 0);
	assert_int_equal(errors[1], -ECONNRESET);
	assert_int_equal(errors[2], -ECONNRESET);
}

/* over() may post: that is taken in the same call when it is over, too, and not else. */
static void posts_again(void **state)
{
	struct xfer_list list;
	struct thing t[2];

	(void)state;
	xfer_list_init(&list, NULL);
	post(&list, &t[0], 0, 1);
	post(&list, &t[1], 1, 1);
	t[0].again = t[1].again = &list;
	done = 3;
	assert_int_equal(xfer_reap(&list), 3);
	assert_false(t[0].xfer.under_way);
	assert_true(t[1].xfer.under_way);
	done = 4;
	assert_int_equal(xfer_reap(&list), 1);
	assert_true(xfer_list_empty(&list));
}

static void settles(void **state)
{
	struct xfer_list list;
	struct thing t[3];
	unsigned int i;

	(void)state;
	xfer_list_init(&list, NULL);
	xfer_settle(&list, 100);
	assert_int_equal(settled, 0);
	for (i = 0; i < 3; i++)
		post(&list, &t[i], i, 1);
	done = 1;
	xfer_settle(&list, 100);
	assert_true(xfer_list_empty(&list));
	assert_int_equal(ends, 3);
	assert_int_equal(errors[0], 0);
	assert_int_equal(errors[1], -ETIMEDOUT);
	assert_int_equal(errors[2], -ETIMEDOUT);
	/* The second ended the connection: the third is not waited for. */
	assert_int_equal(settled, 2);
	assert_int_equal(settle_ms[0], 100);
	assert_int_equal(settle_ms[1], 100);
	post(&list, &t[0], 0, 1);
	settled = 0;
	xfer_settle(&list, 0);
	assert_int_equal(settled, 1);
	assert_int_equal(settle_ms[0], 0);
}

static void grounded(void **state)
{
	struct xfer_list list;
	struct thing t[2];

	(void)state;
	xfer_list_init(&list, NULL);
	xfer_ground(&list, -ENOTCONN);
	assert_int_equal(ends, 0);
	post(&list, &t[0], 0, 1);
	post(&list, &t[1], 1, 1);
	xfer_ground(&list, -ENOTCONN);
	assert_true(xfer_list_empty(&list));
	assert_int_equal(ends, 2);
	assert_int_equal(order[1], 1);
	assert_int_equal(errors[0], -ENOTCONN);
	assert_int_equal(errors[1], -ENOTCONN);
	/* and the list is as good as new */
	post(&list, &t[1], 7, 1);
	done = posted;
	assert_int_equal(xfer_reap(&list), 1);
	assert_int_equal(order[2], 7);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup(in_their_order, setup),
	cmocka_unit_test_setup(refused, setup),
	cmocka_unit_test_setup(connection_ends, setup),
	cmocka_unit_test_setup(posts_again, setup),
	cmocka_unit_test_setup(settles, setup),
	cmocka_unit_test_setup(grounded, setup),
};

UNIT_MAIN_ALONE(tests)
