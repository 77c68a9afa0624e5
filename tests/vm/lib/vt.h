/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Everything the module's selftests share. */
#ifndef VT_H
#define VT_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "vt_ktap.h"
#include "vt_net.h"
#include "vt_pkt.h"
#include "vt_ring.h"
#include "vt_nl.h"

#endif
