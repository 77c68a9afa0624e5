#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 600
# The fabric over RDMA devices, with nodes that have IPv6 addresses: every operation, and
# connections that are lost and made anew.
FABRIC_IP=6 FABRIC_PROGRAMS='test_@(peer|failure)' exec "$(dirname "$0")/fabric.sh"
