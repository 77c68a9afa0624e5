// SPDX-License-Identifier: MIT OR GPL-2.0
#include "spin.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "opts.h"

#define LIMIT_NS	50000U	/* where CPUs are not scarce */
#define CPUS_ENOUGH	3U	/* who fills the ring, who works with it, and the waiter */
#define FIRST_NS	5000U	/* less is not worth its clock readings */

uint32_t rgate_spin_limit(uint32_t limit_us, unsigned int cpus)
{
	if (limit_us == RGATE_SPIN_NONE)
		return 0;
	if (limit_us)
		return limit_us * 1000;
	return cpus < CPUS_ENOUGH ? 0 : LIMIT_NS;
}

/*
 * Of the process, by its first thread: a waiter that is pinned to a CPU of its own has
 * others beside it that bring the frames.
 */
static unsigned int cpus_of_process(void)
{
	cpu_set_t set;

	/* fails where there are more than the set has room for */
	return sched_getaffinity(getpid(), sizeof(set), &set) ? CPU_SETSIZE :
	       (unsigned int)CPU_COUNT(&set);
}

int rgate_spin_init(struct rgate_spin *spin, uint32_t limit_us)
{
	if (limit_us > RGATE_SPIN_MOST && limit_us != RGATE_SPIN_NONE)
		return -EINVAL;
	memset(spin, 0, sizeof(*spin));
	spin->most_ns = rgate_spin_limit(limit_us, cpus_of_process());
	spin->ns = spin->most_ns;
	return 0;
}

void rgate_spin_learn(struct rgate_spin *spin, uint64_t ns)
{
	uint32_t now = spin->ns;

	if (ns > spin->most_ns)
		now = now / 2 < FIRST_NS ? 0 : now / 2;
	else if (ns > now)
		now = now ? now * 2 : FIRST_NS;
	now = now < spin->most_ns ? now : spin->most_ns;
	__atomic_store_n(&spin->ns, now, __ATOMIC_RELAXED);
}

int rgate_spin_info(const struct rgate_spin *spin, struct rgate_waits *out)
{
	const struct rgate_waits w = {
		.spins = __atomic_load_n(&spin->spins, __ATOMIC_RELAXED),
		.hits = __atomic_load_n(&spin->hits, __ATOMIC_RELAXED),
		.sleeps = __atomic_load_n(&spin->sleeps, __ATOMIC_RELAXED),
		.limit_ns = spin->most_ns,
		.spin_ns = __atomic_load_n(&spin->ns, __ATOMIC_RELAXED),
	};

	return rgate_info_copy(out, &w, sizeof(w));
}
