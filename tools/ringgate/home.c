// SPDX-License-Identifier: MIT OR GPL-2.0
#include "home.h"

#include <stdio.h>

int home_open(struct home *h, const struct agent_opts *opts)
{
	int err;

	*h = (struct home){ .agent = NULL };
	err = agent_open(&h->agent, opts);
	if (err)
		return err;
	err = agent_join(h->agent, &h->member);
	if (err) {
		home_close(h);
		return err;
	}
	(void)snprintf(h->path, sizeof(h->path), "%s", agent_member_path(h->member));
	return 0;
}

void home_close(struct home *h)
{
	agent_close(h->agent);
	h->agent = NULL;
	h->member = NULL;
}

bool home_is_open(const struct home *h)
{
	return h->agent;
}

int home_fd(const struct home *h)
{
	return agent_fd(h->agent);
}

int home_timeout(const struct home *h)
{
	return agent_timeout(h->agent);
}

int home_step(struct home *h)
{
	return agent_step(h->agent);
}

void home_info(struct home *h, struct agent_info *info)
{
	*info = (struct agent_info){ .sz = sizeof(*info) };
	if (h->member)
		(void)agent_member_info(h->member, info);
}
