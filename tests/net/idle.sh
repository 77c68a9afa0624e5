#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 300
# Ten thousand connections of a program as it is, where nothing goes: what they cost `ringgate run`, and
# that each of them is one.

# shellcheck disable=SC2317 # functions that wait_for calls
# shellcheck source=tests/cli/lib/tap.sh
. "$(dirname "$0")/../cli/lib/tap.sh"
# shellcheck source=tests/net/lib/programs.sh
. "$(dirname "$0")/lib/programs.sh"

command -v python3 >/dev/null || skip_all "python3 is not installed"
# What looks for mistakes finds those of a thousand, and takes its time for each.
sanitized=''
! grep -q -e __asan_init -e __tsan_init "$ringgate" || sanitized=1
n=${RGATE_IDLE:-${sanitized:+1000}}
n=${n:-10000}
# Of the command for each: the end, and the socket
prlimit --pid $$ --nofile=32768:32768 2>/dev/null || ulimit -n "$(ulimit -Hn)"
[ "$(ulimit -n)" -gt $((2 * n + 1000)) ] || n=$((($(ulimit -n) - 1000) / 2))
mkdir "$tmp/run"
export XDG_RUNTIME_DIR=$tmp/run
begin peer "$py" "$top/tests/net/lib/idle.py" serve
at=$(port peer)
mkfifo "$tmp/words"
exec 7<>"$tmp/words"
begin idle "$ringgate" run --own --loopback served "$py" "$top/tests/net/lib/idle.py" ask "$at" "$n" <&7
run=$last
# Its own pages, and those that it shares with nobody but its service
bytes() { awk '$1 ~ /^(Private_Clean|Private_Dirty|Shared_Dirty):$/ { n += $2 } END { print n * 1024 }' "/proc/$run/smaps_rollup"; }
ok "one connection" wait_for 60 grep -q '^one' "$tmp/idle"
before=$(bytes)
echo >&7
ok "$n connections, and nothing goes" wait_for 120 grep -q "^idle $n" "$tmp/idle"
sleep 1
each=$((($(bytes) - before) / (n - 1)))
echo "# $each bytes of ringgate run for each"
if [ -z "$sanitized" ]; then
	ok "it has not more than 3 KiB for each" test $each -le 3072
else
	skip "bytes for each" "what looks for mistakes has some of its own"
fi
echo >&7
ok "each of them answers" wait_for 120 grep -q "^answered $n" "$tmp/idle"
wait "$run"
is "it ends" $? 0
finish
