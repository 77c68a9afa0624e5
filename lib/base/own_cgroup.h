/* SPDX-License-Identifier: MIT OR GPL-2.0 */
#ifndef RGATE_LIB_OWN_CGROUP_H
#define RGATE_LIB_OWN_CGROUP_H

#include <stddef.h>

/*
 * The directory of this process's group (version 2) into @path. @root may be NULL, or is
 * set to how much of @path is the mount: what is shorter is outside.
 * -ENOENT: there are no such groups; -ENAMETOOLONG; what fopen(3) says.
 */
int rgate_own_cgroup(char *path, size_t cap, size_t *root);

#endif
