// SPDX-License-Identifier: MIT OR GPL-2.0
#include "provider.h"

const struct rgate_prov_ops *rgate_prov_find(uint32_t provider)
{
	switch (provider) {
	case RGATE_PROVIDER_VERBS:
		return &rgate_prov_verbs;
	case RGATE_PROVIDER_LOCAL:
		return &rgate_prov_local;
	default:
		return NULL;
	}
}
