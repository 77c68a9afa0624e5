/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Capabilities of this process, by the numbers of <linux/capability.h>. */
#ifndef CAPS_H
#define CAPS_H

#include <stdbool.h>

/* Is it in the effective set? */
bool caps_have(int cap);

/* Is this process in a user namespace other than the first? Capabilities then
 * count for its own namespaces only. */
bool caps_in_userns(void);

#endif
