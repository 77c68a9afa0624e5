/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* The words for the numbers of the interface. */
#ifndef NAMES_H
#define NAMES_H

#include <argp.h>
#include <stdint.h>

/* Word for a number, "unknown" if this version has none */
const char *policy_name(uint32_t v);
const char *clock_name(uint32_t v);
const char *action_name(uint32_t v);
const char *fanout_name(uint32_t v);
const char *event_name(uint32_t v);
const char *kind_name(uint32_t v);

/* Number for a word of an argument, else an argp error that lists the words */
uint32_t arg_fanout(struct argp_state *state, const char *text);

#endif
