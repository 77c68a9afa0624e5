/* SPDX-License-Identifier: MIT OR GPL-2.0 */
#ifndef RGATE_LIB_VERSION_H
#define RGATE_LIB_VERSION_H

#define RGATE_LIB_VERSION "0.1.0"

#endif
