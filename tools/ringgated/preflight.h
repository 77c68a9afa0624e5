/* SPDX-License-Identifier: MIT OR GPL-2.0 */
#ifndef PREFLIGHT_H
#define PREFLIGHT_H

#include "ringgated.h"

/* What the start would refuse, said; before anything is changed */
int preflight(struct daemon *d);
/*
 * ... and that there is an RDMA device of the node's address: for --check alone, as a start
 * opens it itself, and none before the spawner is made
 */
int preflight_device(const struct daemon *d);

/* For the checks of modules; NULL: any */
int check_group(const char *name);
/* A socket can be made there */
int check_socket(const char *path);
/* The directory of @path, for a file to be made there; @what: in words */
int check_directory(const char *what, const char *path);

#endif
