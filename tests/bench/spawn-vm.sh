#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
#
# Runs in a VM (scripts/bench spawn): spawn.sh over a pair of RDMA devices in software.
# Arguments: as spawn.sh.

set -eu

bench=$1
shift

# shellcheck source=tests/bench/lib/rxe.sh
. tests/bench/lib/rxe.sh
export RGATE_SPAWNER=/run/bench/ringgate-spawner
trap rxe_pair_down EXIT

bench_rxe_up
# From memory: the file server would be in the figures.
mkdir -p /run/bench
cp "$bench" "${bench%/*}/bench_fabric" "${bench%/tests/*}/tools/ringgate-spawner" /run/bench
tests/bench/spawn.sh "/run/bench/${bench##*/}" "$@"
