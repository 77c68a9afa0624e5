// SPDX-License-Identifier: MIT OR GPL-2.0
/* Of both sides: the library, and the program that it runs */
#include "spawner.h"
#include "version.h"

void rgate_spawner_hello(struct rgate_spawner_hello *hello)
{
	*hello = (struct rgate_spawner_hello){
		.magic = RGATE_SPAWNER_MAGIC, .birth = sizeof(struct rgate_spawner_birth),
		.packet = sizeof(struct rgate_spawner_packet),
		.shared = sizeof(struct rgate_spawner_shared), .version = RGATE_LIB_VERSION,
	};
}
