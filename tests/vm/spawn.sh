#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 900
# The tests of tests/spawn over RDMA devices: the library, the command, and daemons.
exec "$(dirname "$0")/fabric.sh" spawn daemon.sh
