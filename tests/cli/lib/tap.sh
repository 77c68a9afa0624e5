# SPDX-License-Identifier: MIT OR GPL-2.0
# shellcheck shell=bash disable=SC2034 # set for those who source it
#
# For the tests of the CLI: TAP from bash. Source it, call ok/is/like/skip, end
# with `finish`.

set -u

cli_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
top=$(cd "$cli_dir/../.." && pwd -P)
build=${RGATE_BUILD:-$top/build}
ringgate=$build/tools/ringgate
export RGATE_SPAWNER=${RGATE_SPAWNER:-$build/tools/ringgate-spawner}
export RGATE_KEEPER=${RGATE_KEEPER:-$build/tools/ringgate-agent}
tmp=$(mktemp -d "${TMPDIR:-/tmp}/ringgate-cli.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
# How much longer than usual things may take
slow=${RGATE_SLOW:-1}
tests=0
failures=0

# shellcheck source=tests/cli/lib/keys.sh
. "$cli_dir/lib/keys.sh"
# shellcheck source=tests/cli/lib/wait.sh
. "$cli_dir/lib/wait.sh"

[ -x "$ringgate" ] || { echo "Bail out! $ringgate is not built"; exit 1; }

# result OK NAME: OK is an exit status
result()
{
	tests=$((tests + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $tests - $2"
	else
		failures=$((failures + 1))
		echo "not ok $tests - $2"
	fi
}

# ok NAME COMMAND...: the command succeeds
ok()
{
	local name=$1 out rc
	shift
	out=$("$@" 2>&1)
	rc=$?
	result $rc "$name"
	[ $rc -eq 0 ] || sed 's/^/# /' <<<"$out"
}

# is NAME GOT WANTED
is()
{
	local rc=0
	[ "$2" = "$3" ] || rc=1
	result $rc "$1"
	[ $rc -eq 0 ] || { echo "# got:    $2"; echo "# wanted: $3"; }
}

# like NAME TEXT REGEX
like()
{
	local rc=0
	[[ $2 =~ $3 ]] || rc=1
	result $rc "$1"
	[ $rc -eq 0 ] || { sed 's/^/# /' <<<"$2"; echo "# does not match: $3"; }
}

# complaints LOG...: what sanitizers tell in there, and the library of what was left to it
complaints() { grep -hE 'Sanitizer|runtime error:|(is|still) in use' "$@"; }

skip()
{
	tests=$((tests + 1))
	echo "ok $tests - $1 # SKIP $2"
}

skip_all()
{
	echo "1..0 # SKIP $1"
	exit 0
}

finish()
{
	echo "1..$tests"
	[ "$failures" -eq 0 ]
	exit
}

# run COMMAND...: sets rc, out (standard output) and err
run()
{
	timeout $((60 * slow)) "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
	rc=$?
	out=$(<"$tmp/out")
	err=$(<"$tmp/err")
}

# json EXPRESSION <TEXT: value of a Python expression over the parsed object j. Without what
# Python looks for on starting: that is half of its time, a second where the CPU is emulated.
json()
{
	python3 -I -S -c 'import json, sys
j = json.load(sys.stdin)
print(eval(sys.argv[1]))' "$1"
}

# readable NAME FILE: tcpdump and tshark read it to its end, and warn of nothing
readable()
{
	local reader out rc

	for reader in tcpdump tshark; do
		if ! command -v $reader >/dev/null; then
			skip "$reader reads it: $1" "$reader is not installed"
			continue
		fi
		out=$(HOME=$tmp $reader -nr - 2>&1 >/dev/null <"$2")
		rc=$?
		# what they say of every file
		out=$(grep -vE '^(reading from file|Running as user "root")' <<<"$out")
		[ -z "$out" ] || rc=1
		result $rc "$reader reads it: $1"
		[ $rc -eq 0 ] || sed 's/^/# /' <<<"$out"
	done
}
