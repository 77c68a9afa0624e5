#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 900
# The tests of tests/spawn over RDMA devices: the library, the command, and daemons.

# A limit of memory is hit; and emulated processes are slow to come and go.
echo "# allow-dmesg: invoked oom-killer|Call Trace|Memory cgroup out of memory"
export RGATE_TEST_SLOW=1
# Not here: test_posix, which is about what the spawner gives to a process on the node that runs
# it. How that node was asked for it makes no difference there, and natively it runs.
export FABRIC_PROGRAMS=${FABRIC_PROGRAMS:-'test_!(posix)'}
exec "$(dirname "$0")/fabric.sh" spawn daemon.sh
