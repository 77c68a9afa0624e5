#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
#
# What a request costs that another node carries out, beside a message of the fabric there and
# back, in turns. Arguments: bench_remote, with bench_fabric beside it, rounds, requests a turn.
# JSON lines.

set -euo pipefail

bench=$1 rounds=$2 times=$3
tools=${bench%/tests/*}/tools
# shellcheck source=tests/bench/lib/cluster.sh
. "$(dirname "$0")/lib/cluster.sh"
cluster_local
policy 'allow any core memory' "node any user:$(id -un)"
node 0
node 1
for _ in $(seq 200); do
	! "$bench" "$tmp/requests0" "$tmp/requests1" 0 1 >/dev/null 2>&1 || break
	sleep 0.1
done
for _ in $(seq "$rounds"); do
	"$bench" "$tmp/requests0" "$tmp/requests1" 0 "$times" || { cat "$tmp"/log? >&2; exit 1; }
	"${bench%/*}/bench_fabric" send-lat 64 "$times" | sed 's/^{/{"what": "trip", /'
done
