#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 600
#
# Who interrupts scripts/check has interrupted all of it: what runs beside, both lanes of a
# sanitizer, and what is waited for. What is run twice counts twice.

set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
. "$here/tap.inc"

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# program PATH: a test that says its process id and has no end, nor has what it started
program()
{
	mkdir -p "$(dirname "$dir/$1")"
	cat >"$dir/$1" <<-END
	#!/bin/bash
	echo 1..1
	sleep 1000 &
	echo "\$\$ \$!" >"$dir/pids.${1//\//-}"
	wait
	END
	chmod +x "$dir/$1"
}

# there N: so many have begun
there()
{
	local i

	for ((i = 0; i < 300; i++)); do
		[ "$(cat "$dir"/pids.* 2>/dev/null | wc -l)" -ge "$1" ] && return
		sleep 0.1
	done
	return 1
}

gone()
{
	local i left

	for ((i = 0; i < 100; i++)); do
		left=0
		for pid in $(cat "$dir"/pids.*); do
			kill -0 "$pid" 2>/dev/null && left=$((left + 1))
		done
		[ $left = 0 ] && return
		sleep 0.1
	done
	echo "# $left processes go on"
	# shellcheck disable=SC2046 # numbers
	kill $(cat "$dir"/pids.*) 2>/dev/null
	return 1
}

# interrupted SIGNAL TO N GROUP...: N programs of the groups have begun when it is sent, to the
# process (+) or to its group, as a terminal does (-)
interrupted()
{
	local signal=$1 to=${2#+} n=$3 pid
	shift 3

	rm -f "$dir"/pids.*
	set -m
	# Where this was started with a signal ignored, scripts/check could not catch it either.
	O=$dir env --default-signal=INT "$here/../../scripts/check" "$@" >"$dir/out" 2>&1 </dev/null &
	set +m
	pid=$!
	there "$n" || { cat "$dir/out"; kill -- -$pid; return 1; }
	kill "-$signal" -- "$to$pid"
	wait $pid 2>/dev/null
	gone
}

# Sources of these names there are.
program asan/tests/unit/test_link
program asan/tests/fabric/test_loss
program tsan/tests/unit/test_link
program tsan/tests/fabric/test_loss
program tests/unit/test_link
program tests/fabric/test_loss

# ended PATH STATUS: a test that is over at once
ended()
{
	printf '#!/bin/sh\necho 1..1\n[ %s = 0 ] || printf "not "\necho ok 1 - that\nexit %s\n' "$2" "$2" >"$dir/$1"
	chmod +x "$dir/$1"
}

# again: a group that is given twice has both results
again()
{
	ended tests/unit/test_link 1
	ended tests/unit/test_lex 0
	O=$dir "$here/../../scripts/check" unit:test_link unit:test_lex >"$dir/out" 2>&1
	[ $? = 1 ] && grep -q '^1 passed, 1 failed$' "$dir/out" && return
	cat "$dir/out"
	return 1
}

# late: what is built beside the tests and cannot be is a failure, and nothing waits for it
late()
{
	rm -f "$dir"/asan/tests/*/*
	CC=false LATE=asan O=$dir "$here/../../scripts/check" asan:test_link unit:test_lex \
		>"$dir/out" 2>&1
	[ $? = 1 ] && grep -q '^failed: asan: make asan-programs failed$' "$dir/out" &&
		grep -q '^1 passed, 1 failed$' "$dir/out" && return
	cat "$dir/out"
	return 1
}

expect "both lanes of a sanitizer" interrupted TERM + 2 "asan:test_l*"
expect "... by a terminal" interrupted INT - 2 "tsan:test_l*"
expect "what is waited for, and what runs beside it" interrupted TERM + 2 "unit:test_l*" \
	"fabric:test_l*"
expect "... by a terminal" interrupted INT - 2 "unit:test_l*" "fabric:test_l*"
expect "a group that is given twice" again
expect "a build that fails beside the tests" late
run env -u TESTS O="$dir" "$here/../../scripts/check" unit:nothing
expect "who asks for what is not there hears what he asked for" said "^check: no test matches unit:nothing$"
expect "and it is a failure" ended_with 1
tap_end
