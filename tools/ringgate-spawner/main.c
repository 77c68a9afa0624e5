// SPDX-License-Identifier: MIT OR GPL-2.0
/* The program that the library runs to run others: lib/spawn/spawner.h */
#include "spawner.h"

int main(void)
{
	return rgate_spawner_main();
}
