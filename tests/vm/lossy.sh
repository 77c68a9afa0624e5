#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 400
# tests/net/lossy.sh, where there is a kernel that can lose packets.
modprobe sch_netem || { echo "1..0 # SKIP no netem in this kernel"; exit 0; }
exec "$(dirname "$0")/../net/lossy.sh"
