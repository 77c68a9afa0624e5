#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# The program of gpu.rst, compiled by the command that stands there, and run where there is
# a GPU.
set -u
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
build=${RGATE_BUILD:-$top/build}
. "$here/lib/tap.sh"
. "$here/lib/blocks.sh"

PATH=$PATH:${CUDA_HOME:-/usr/local/cuda}/bin
if ! command -v nvcc >/dev/null || [ ! -e "$build/lib/libringgate-gpu.so" ]; then
	echo "1..0 # SKIP no nvcc, or lib/gpu was not built"
	exit 0
fi

installed
cut_blocks gpu Documentation/gpu.rst "Quick start:cuda:1" "Quick start:cuda:2" >"$tmp/log" 2>&1
{
	for flag in "${flags[@]}"; do
		name=${flag#-D}
		echo "#define ${name%%=*} ${name#*=}"
	done
	cat "$here/blocks/gpu.cu"
} >"$tmp/twice.cu"
block Documentation/gpu.rst "Quick start:shell:2" >"$tmp/command" 2>"$tmp/log"
(cd "$tmp" && timeout 300 sh -e command) >"$tmp/log" 2>&1
ok $? "the program compiles with the command that stands there"

timeout 60 "$tmp/twice" >"$tmp/log" 2>&1
rc=$?
if [ $rc = 77 ]; then
	echo "ok $((n += 1)) - it doubles the float of a datagram # SKIP no GPU here"
else
	ok $rc "it doubles the float of a datagram"
fi
echo "1..$n"
[ "$failed" -eq 0 ]
