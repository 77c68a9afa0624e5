# SPDX-License-Identifier: MIT OR GPL-2.0
# shellcheck shell=bash
#
# Programs in the background, which end with the test, and what `ringgate run` says of those that
# it ran. To be sourced after tap.sh.

pids=()
# shellcheck disable=SC2086,SC2154 # those that there are; tap.sh's
trap '{ [ ${#pids[@]} = 0 ] || { kill -9 "${pids[@]}"; wait "${pids[@]}"; }; } 2>/dev/null; rm -rf "$tmp"' EXIT
# shellcheck disable=SC2034 # the test's
py=$(python3 -c 'import sys; print(sys.executable)' 2>/dev/null)

# program FILE: $tmp/program is that file of this folder's
program()
{
	cp "$(dirname "${BASH_SOURCE[0]}")/$1" "$tmp/program"
	cp "$(dirname "${BASH_SOURCE[0]}")/program_says.py" "$tmp"
}

# begin NAME COMMAND...: in the background, as $last; its output is in $tmp/NAME
begin()
{
	local name=$1
	shift
	# Now, and not when that process comes to it: nobody is to read what another one said.
	: >"$tmp/$name"
	"$@" >>"$tmp/$name" 2>&1 &
	pids+=("$!")
	# shellcheck disable=SC2034 # the test's
	last=$!
}

said() { grep -q '^at [0-9]' "$tmp/$1"; }

# port NAME: that it says it is at
port()
{
	wait_for 20 said "$1"
	sed -n 's/^at //p' "$tmp/$1" | head -1
}

# end PID [SIGNAL]
end()
{
	kill "${2:--TERM}" "$1" 2>/dev/null
	wait "$1" 2>/dev/null
}

# moved WHAT: the number in front of that word of the last line of -v
# shellcheck disable=SC2154 # run's
moved() { sed -nE "s/.* ([0-9]+)( bytes)? $1.*/\1/p" <<<"$err" | tail -1; }
