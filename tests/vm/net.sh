#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 1000
# The packet plane's tests of tests/net over RDMA devices, and packed; and programs that are linked
# statically, whose sockets are at a gateway behind them.
exec "$(dirname "$0")/fabric.sh" net packed.sh run_static.sh
