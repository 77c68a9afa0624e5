#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
#
# Each fuzzer of user space for a moment: the inputs that are kept, then others.
# TAP. FUZZ_SHORT: seconds of each (4). make fuzz runs them for long.
set -u

top=$(cd "$(dirname "$0")/../../.." && pwd)
build=${RGATE_BUILD:-$top/build}/fuzz
seconds=${FUZZ_SHORT:-4}
cd "$top" || exit 1

sources=(tests/fuzz/user/fuzz_*.c)
if [ ! -e "$build/tests/fuzz/user" ]; then
	echo "1..0 # SKIP the fuzzers are not built (make fuzz-programs; clang)"
	exit 0
fi
echo "# timeout: $((${#sources[@]} * (seconds + 60)))"
echo "1..${#sources[@]}"
mkdir -p "$build/crashes"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
scripts/fuzz --unpack "$work/kept" || exit 1
n=0
failed=0
for source in "${sources[@]}"; do
	name=$(basename "$source" .c)
	target=${name#fuzz_}
	n=$((n + 1))
	options=(-max_total_time="$seconds" -timeout=20 -max_len=4096 -rss_limit_mb=3000
		-artifact_prefix="$build/crashes/$target-" -print_final_stats=1)
	[ ! -f "tests/fuzz/user/dict/$target.dict" ] ||
		options+=(-dict="tests/fuzz/user/dict/$target.dict")
	mkdir "$work/$target"
	if timeout -k 5 $((seconds + 50)) "$build/tests/fuzz/user/$name" "${options[@]}" \
		"$work/$target" "$work/kept/$target" >"$work/log" 2>&1; then
		runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$work/log")
		echo "ok $n - $target ($runs runs)"
	else
		failed=1
		echo "not ok $n - $target"
		grep -vE '	(NEW|REDUCE|RELOAD|pulse)|NEW_FUNC|# Uses' "$work/log" | tail -n 40 |
			sed 's/^/# /'
		sed -n "s,.*Test unit written to \\(.*\\)$,# replay: $build/tests/fuzz/user/$name \\1,p" \
			"$work/log"
	fi
done
exit $failed
