/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Filters of attachments, and their numbers as arguments. */
#ifndef ATT_FILTER_H
#define ATT_FILTER_H

#include <argp.h>
#include <stdbool.h>
#include <ringgate/rgate_ctl.h>

/*
 * att_filter - compile opts->filter, if there is one, into @prog and let @opts
 * point to that instead
 * Compiled here rather than by the library's attach so that what libpcap says of
 * a wrong expression reaches the user. Free @prog with rgate_filter_free().
 * Returns an exit code.
 */
int att_filter(const char *ifname, struct rgate_attach_opts *opts,
	       struct sock_fprog *prog);

/* NULL for one that is blank: it matches all */
const char *arg_filter(const char *text);

/*
 * arg_steal - of what is to be taken from the network stack, somebody must have said
 * what, or "all": else it is also the session that the command is typed in
 * Call it when all options were read; an argp error, or nothing.
 */
void arg_steal(struct argp_state *state, bool steal, bool filter, bool all);

/* The number of an attachment */
uint32_t arg_att(struct argp_state *state, const char *text);

/* The attachment of that number as it is now; says if there is none. An exit code */
int find_att(struct rgate_ctl *ctl, uint32_t id, struct rgate_ident *att);

/* Says that something could not be done to an attachment; an exit code */
int fail_att(int err, uint32_t att_id, const char *what);

#endif
