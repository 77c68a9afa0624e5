#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 800
# The packet plane's tests of tests/net over RDMA devices, and packed.
exec "$(dirname "$0")/fabric.sh" net packed.sh
