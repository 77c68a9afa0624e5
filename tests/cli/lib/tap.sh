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
# asan or tsan where the programs are built for one: what does the same again and again does it less
sanitizer=${RGATE_TEST_SANITIZER:-}
tests=0
failures=0
readable_names=()

# shellcheck source=tests/cli/lib/keys.sh
. "$cli_dir/lib/keys.sh"
# shellcheck source=tests/cli/lib/wait.sh
. "$cli_dir/lib/wait.sh"
# shellcheck source=tests/cli/lib/json.sh
. "$cli_dir/lib/json.sh"

[ -x "$ringgate" ] || { echo "Bail out! $ringgate is not built"; exit 1; }

# plain_cli SANITIZER: the CLI as users have it, where the daemon alone is for that one to judge.
# ThreadSanitizer tells nothing of what has no threads.
plain_cli()
{
	[ -x "${RGATE_TEST_PLAIN:-}" ] || return 0
	[ "$1" != "$sanitizer" ] || ringgate=$RGATE_TEST_PLAIN
}

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

# readable NAME FILE [READER...]: tcpdump and tshark read it to its end, and warn of nothing. Where
# readable_later is set tshark comes at the end, see readable_ends().
readable()
{
	local name=$1 file=$2 reader out rc
	shift 2

	[ $# -gt 0 ] || set -- tcpdump tshark
	for reader; do
		if ! command -v "$reader" >/dev/null; then
			skip "$reader reads it: $name" "$reader is not installed"
			continue
		fi
		if [ "$reader${readable_later:-}" = tsharkyes ]; then
			cp "$file" "$tmp/readable.${#readable_names[@]}"
			readable_names+=("$name")
			continue
		fi
		out=$(HOME=$tmp $reader -nr - 2>&1 >/dev/null <"$file")
		rc=$?
		# what they say of every file
		out=$(grep -vE '^(reading from file|Running as user "root")' <<<"$out")
		[ -z "$out" ] || rc=1
		result $rc "$reader reads it: $name"
		[ $rc -eq 0 ] || sed 's/^/# /' <<<"$out"
	done
}

# readable_ends: tshark, which takes five seconds to start where the CPU is emulated, reads in one
# go all that was put off: pcapng files one behind the other are one, if each begins as it has to
# and ends where it has to. Each by itself if it does not like that.
readable_ends()
{
	local i files=() begin rc=0 out=''

	readable_later=''
	for i in "${!readable_names[@]}"; do
		files+=("$tmp/readable.$i")
		LC_ALL=C read -rd '' -n 4 begin <"$tmp/readable.$i"
		[ "$begin" = $'\n\r\r\n' ] || rc=1
	done
	[ ${#files[@]} -gt 0 ] || return
	out=$(cat "${files[@]}" | HOME=$tmp tshark -nr - 2>&1 >/dev/null) || rc=1
	grep -qvE '^(Running as user "root"|$)' <<<"$out" && rc=1
	for i in "${!readable_names[@]}"; do
		if [ $rc = 0 ]; then
			result 0 "tshark reads it: ${readable_names[i]}"
		else
			readable "${readable_names[i]}" "${files[i]}" tshark
		fi
	done
}
