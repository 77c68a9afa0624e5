// SPDX-License-Identifier: MIT OR GPL-2.0
#include <ringgate/rgate.h>

#include "version.h"

const char *rgate_version(void)
{
	return RGATE_LIB_VERSION;
}
