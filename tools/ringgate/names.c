// SPDX-License-Identifier: MIT OR GPL-2.0
#include <string.h>

#include <ringgate/netlink.h>
#include <ringgate/ring.h>

#include "names.h"
#include "util.h"

static const char *const policies[RGATE_POLICY_COUNT] = {
	[RGATE_POLICY_DROP] = "drop",
	[RGATE_POLICY_OVERWRITE] = "overwrite",
	[RGATE_POLICY_PASS] = "pass",
	[RGATE_POLICY_SPILL] = "spill",
};

static const char *const clocks[RGATE_CLOCK_COUNT] = {
	[RGATE_CLOCK_MONOTONIC] = "monotonic",
	[RGATE_CLOCK_TAI] = "tai",
	[RGATE_CLOCK_REALTIME] = "realtime",
};

static const char *const actions[] = {
	[RGATE_ACTION_MIRROR] = "mirror",
	[RGATE_ACTION_STEAL] = "steal",
};

static const char *const fanouts[RGATE_FANOUT_COUNT] = {
	[RGATE_FANOUT_CPU] = "cpu",
	[RGATE_FANOUT_QUEUE] = "queue",
	[RGATE_FANOUT_HASH] = "hash",
	[RGATE_FANOUT_ROLLOVER] = "rollover",
};

static const char *const kinds[RGATE_KIND_COUNT] = {
	[RGATE_KIND_HOOK] = "hook",
	[RGATE_KIND_XDP] = "xdp",
	[RGATE_KIND_TRANSMIT] = "transmit",
};

static const char *const events[] = {
	[RGATE_EVENT_RING_FULL] = "ring-full",
	[RGATE_EVENT_RING_ROOM] = "ring-room",
	[RGATE_EVENT_DEVICE_GONE] = "device-gone",
	[RGATE_EVENT_RING_GONE] = "ring-gone",
};

static const char *name_of(const char *const *names, size_t n, uint32_t v)
{
	return v < n && names[v] ? names[v] : "unknown";
}

const char *policy_name(uint32_t v)
{
	return name_of(policies, ARRAY_SIZE(policies), v);
}

const char *clock_name(uint32_t v)
{
	return name_of(clocks, ARRAY_SIZE(clocks), v);
}

const char *kind_name(uint32_t v)
{
	return name_of(kinds, ARRAY_SIZE(kinds), v);
}

const char *action_name(uint32_t v)
{
	return name_of(actions, ARRAY_SIZE(actions), v);
}

const char *fanout_name(uint32_t v)
{
	return name_of(fanouts, ARRAY_SIZE(fanouts), v);
}

const char *event_name(uint32_t v)
{
	return name_of(events, ARRAY_SIZE(events), v);
}

uint32_t arg_fanout(struct argp_state *state, const char *text)
{
	uint32_t i;

	for (i = 0; i < ARRAY_SIZE(fanouts); i++)
		if (!strcmp(text, fanouts[i]))
			return i;
	argp_error(state, "fanout: '%s' is none of cpu, queue, hash, rollover",
		   text);
	return 0;
}
