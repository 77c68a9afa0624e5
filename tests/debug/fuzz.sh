#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# The system-call fuzzer for a while: FUZZ_SECONDS (60), FUZZ_SEED (a new one).
set -u
seconds=${FUZZ_SECONDS:-60}
top=$(cd "$(dirname "$0")/../.." && pwd)
echo "# timeout: $((seconds + 300))"
# What users provoke with random sizes is told by the allocator, rightly.
echo "# allow-dmesg: fuzz_device: vmalloc|page allocation failure|Call Trace"
exec "${RGATE_BUILD:-$top/build}/tests/debug/fuzz_device" -t "$seconds" -w 4 -j 2 \
	${FUZZ_SEED:+-s "$FUZZ_SEED"}
