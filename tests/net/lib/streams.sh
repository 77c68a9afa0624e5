# SPDX-License-Identifier: MIT OR GPL-2.0
# shellcheck shell=bash
#
# The program of tests/net/streams, in both ways that there are to link one. To be sourced after programs.sh.

# build_streams: $streams, linked dynamically, and $static, or skips all
# shellcheck disable=SC2034,SC2154 # the test's; tap.sh's
build_streams()
{
	local from

	from=$(dirname "${BASH_SOURCE[0]}")/../streams
	streams=$tmp/streams
	static=$tmp/streams-static
	"${CC:-cc}" -std=gnu11 -O2 -o "$streams" "$from"/*.c -pthread || skip_all "no compiler"
	"${CC:-cc}" -std=gnu11 -O2 -static -o "$static" "$from"/*.c -pthread ||
		skip_all "no compiler that links statically"
}

# serves NAME COMMAND...: streams as a server, outside unless a command says otherwise; $at is its port
serves()
{
	local name=$1
	shift
	begin "$name" "$@" "$streams" serve
	server=$last
	at=$(port "$name")
}
# ended_as NAME REGEX: what the server outside says of its streams when all of them have ended; it ends
ended_as()
{
	wait_for 20 grep -q '^ended' "$tmp/peer"
	like "$1" "$(grep '^ended' "$tmp/peer" | tail -1)" "$2"
	end "$server"
}
# asks NAME COMMAND...: endless streams of a program in the background; each has begun
asks()
{
	local name=$1
	shift
	begin "$name" "$@"
	asker=$last
	# shellcheck disable=SC2154 # programs.sh's
	ok "$name: its streams go" wait_for 60 grep -q '^up ' "$tmp/$name"
}
# program_of PID: which `ringgate run` there runs, maybe by timeout
program_of()
{
	local pid=$1 child

	while child=$(ps -o pid= --ppid "$pid" | awk 'NR == 1 { print $1 }') && [ -n "$child" ]; do
		pid=$child
	done
	echo "$pid"
}
# result_of NAME: what it says of how its streams ended
result_of() { grep '^whole' "$tmp/$1"; }

# serves_nobody: $full is the port of one who accepts nobody, and as many wait for that as can
serves_nobody()
{
	begin full "$py" -u -c 'import socket, time
l = socket.create_server(("127.0.0.1", 0), backlog=0)
c = [socket.socket() for _ in range(3)]
for s in c:
    s.setblocking(False)
    s.connect_ex(l.getsockname())
print("at", l.getsockname()[1], flush=True)
time.sleep(1000)'
	full=$(port full)
}
