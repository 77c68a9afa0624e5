#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 300
# What can go wrong around programs as they are, linked dynamically and statically: each byte that they
# get is looked at, each call that waits ends, and no stream that broke reads as if it had ended.
# faults_node.sh has what can go wrong with the daemons behind them.

# shellcheck disable=SC2317 # functions that wait_for calls
# shellcheck source=tests/cli/lib/tap.sh
. "$(dirname "$0")/../cli/lib/tap.sh"
# shellcheck source=tests/net/lib/programs.sh
. "$(dirname "$0")/lib/programs.sh"
# shellcheck source=tests/net/lib/streams.sh
. "$(dirname "$0")/lib/streams.sh"

ringgated=$build/tools/ringgated
# How long a program is stopped: a minute where there is time, a twelfth of it otherwise
stopped_s=$((${RGATE_TEST_LONG:-0} ? 60 : 5))
command -v python3 >/dev/null || skip_all "python3 is not installed"
build_streams
chmod 755 "$tmp"
mkdir -m 1777 "$tmp/run" "$tmp/left"
export XDG_RUNTIME_DIR=$tmp/run

own=(timeout $((120 * slow)) "$ringgate" run --own --loopback served)

# ---- The peer ----

serves_nobody
for program in "$streams" "$static"; do
	how=${program##*/}
	answered=()
	[ "$program" = "$streams" ] || answered=(--static)
	serves peer
	run "${own[@]}" "$program" states "$at"
	is "$how: a peer's reset in each state" "$rc$out$err" "0states"
	end "$server"

	# ---- The program ----
	serves peer
	asks "$how.killed" "${own[@]}" "$program" ask "$at" 8 0 1
	kill -9 "$(program_of "$asker")"
	wait "$asker"
	is "$how: it is killed, which is its exit status" $? 137
	ended_as "... and its peer is told of each" "^ended ([0-8]) reset ([0-8])$"
	is "... and no more" $((BASH_REMATCH[1] + BASH_REMATCH[2])) 8

	# ---- Its agent ----
	serves peer
	mkdir -p "$tmp/left/$how"
	# What the program has begun lives on; whose calls were answered cannot.
	# shellcheck disable=SC2016 # sh expands it
	asks "$how.left" env XDG_RUNTIME_DIR="$tmp/left/$how" "$ringgate" run --own --loopback served "${answered[@]}" \
		sh -c '"$@" & wait' sh "$program" ask "$at" 8 0 1
	end "$asker" -KILL
	gone() { ! pgrep -f "^$program ask $at" >/dev/null; }
	ok "$how: its agent is killed: it ends, too" wait_for 20 gone
	[ "$program" = "$static" ] || like "... with resets, and no socket after that" "$(result_of "$how.left")" \
		"^whole 0 reset 8 cut 0 failed 0 .* refused 0 0 .* then ENETDOWN$"
	ended_as "... and to its peer each of them is reset" "^ended 0 reset 8$"

	# ---- Stopped, with a full window ----
	serves peer
	asks "$how.stopped" "${own[@]}" "$program" ask "$at" 4 0 1
	stopped=$(program_of "$asker")
	kill -STOP "$stopped"
	begun=$SECONDS rounds=0
	while [ $((SECONDS - begun)) -lt $stopped_s ] || [ $rounds -lt 3 ]; do
		run "${own[@]}" "$program" ask "$at" 4 5000000 100
		[[ $out == *"whole 4 reset 0 cut 0 failed 0 0 refused 0 0 bytes 20000000 "* ]] || break
		rounds=$((rounds + 1))
	done
	echo "# $rounds times 20 MB there and back meanwhile, in $((SECONDS - begun)) s"
	like "$how: it is stopped, and others go on" "$rounds $out" "^([3-9]|[0-9]{2,}) .*whole 4"
	is "... it is stopped yet" "$(awk '$1 == "State:" { print $2 }' "/proc/$stopped/status")" T
	kill -CONT "$stopped"
	sleep 1
	end "$server"
	wait "$asker"
	like "... and when it goes on each byte is right, until its peer ends" "$(result_of "$how.stopped")" \
		"^whole 0 reset [0-4] cut [0-4] failed 0 .* refused 0 0"

	# ---- Calls that wait when the peer goes on, and the agent ends ----
	serves peer
	# shellcheck disable=SC2016 # sh expands it
	begin waits env XDG_RUNTIME_DIR="$tmp/left/$how" "$ringgate" run --own --loopback served "${answered[@]}" \
		sh -c '"$@" & wait' sh "$program" waits "$at" "$full" accept datagram
	waits=$last
	ok "$how: calls of each kind wait" wait_for 20 grep -q '^waits' "$tmp/waits"
	end "$waits" -KILL
	waits_gone() { ! pgrep -f "^$program waits $at" >/dev/null; }
	ok "... none when the agent is killed" wait_for 20 waits_gone
	[ "$program" = "$static" ] || is "... each of which has ended" "$(tail -1 "$tmp/waits")" over
	sed 's/^/# /' "$tmp/waits"
	empty() { [ -z "$(ls "$tmp/left/$how")" ]; }
	ok "... and nothing is left of it" wait_for 20 empty
	end "$server"
	# ---- A hostile remote ----
	begin inside "${own[@]}" "$program" serve
	server=$last
	at=$(port inside)
	run "$py" -c 'import os, socket, struct, sys
def call():
    return socket.create_connection(("127.0.0.1", int(sys.argv[1])), 60)
def reset(s):
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()
for i in range(300):
    s = call()
    if i % 3:
        s.sendall(os.urandom(i % 3 * 100))
    reset(s)
held = [call() for _ in range(100)]
for s in held:
    s.settimeout(0.01)
    try:
        s.sendall(b"e" + bytes(4000000))
    except TimeoutError:
        pass
print("held", flush=True)
sys.stdin.read()' "$at"
	is "$how: remotes that reset, and read nothing" "$rc $out" "0 held"
	run "$streams" ask "$at" 8 1000000 1
	like "... and others get what is theirs" "$rc $out" "^0 .*whole 8 reset 0 cut 0 failed 0 0 refused 0 0"
	end "$server"
done
finish
