#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 200
# ringgate run is told to end beside a daemon that stands still, for whose answer it waits: it ends.

# shellcheck disable=SC2317 # functions that wait_for calls
# shellcheck source=tests/cli/lib/tap.sh
. "$(dirname "$0")/../cli/lib/tap.sh"
# shellcheck source=tests/net/lib/programs.sh
. "$(dirname "$0")/lib/programs.sh"

# shellcheck disable=SC2034 # programs.sh's
ringgated=$build/tools/ringgated
command -v python3 >/dev/null || skip_all "python3 is not installed"
chmod 755 "$tmp"
mkdir "$tmp/run"
export XDG_RUNTIME_DIR=$tmp/run
gateway_with_sockets 'allow any listen tcp any'
daemon=$last
is_in() { [ "$(sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$1/status")" = "$2" ]; }
says() { grep -q "^$2" "$tmp/$1"; }

# A program that makes another socket when it is told to, and is not answered
cat >"$tmp/program" <<'END'
import os, signal, socket, sys, time
if sys.argv[1].endswith("exits.asks"):
    signal.signal(signal.SIGTERM, lambda *a: sys.exit(7))
first = socket.socket()
print("ready", flush=True)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
# What no socket refuses is not waited for.
first.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
first.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
print("asks", flush=True)
try:
    second = socket.socket()
    print("was answered", flush=True)
except OSError:
    time.sleep(1)
END

# runs NAME: at $tmp/NAME, told by $tmp/NAME.words, and its `ringgate run` is $last
runs()
{
	begin "$1" timeout -s KILL $((60 * slow)) "$ringgate" run -S "$tmp/r" --loopback served \
		"$py" -u "$tmp/program" "$tmp/$1.asks"
	ok "a program with a socket, which $1" wait_for 20 says "$1" ready
}
asks() { touch "$tmp/$1.asks" && wait_for 20 says "$1" asks; }

runs dies
dies=$last
runs exits
exits=$last
kill -STOP "$daemon"
ok "the daemon stands still" wait_for 20 is_in "$daemon" T
ok "one asks" asks dies
ok "... and another one" asks exits
sleep 1
# timeout(1) hands it on.
kill "$dies" "$exits"
begin late timeout -s KILL $((60 * slow)) "$ringgate" run -S "$tmp/r" --loopback served true
late=$last
sleep 1
kill "$late"
wait "$late"
is "who is told before the program began is ended by that signal" $? 143
wait "$dies"
is "who is told, and whose program died by it, ends" $? 143
is "... and nobody has answered it" "$(grep -c answered "$tmp/dies")" 0
wait "$exits"
is "a program that does something about it has an error, and its say" $? 7
is "... and was not answered" "$(grep -c answered "$tmp/exits")" 0
is "the daemon stands still yet" "$(is_in "$daemon" T; echo $?)" 0
kill -CONT "$daemon"
run timeout $((60 * slow)) "$ringgate" run -S "$tmp/r" --loopback served "$py" -c 'import socket; socket.socket()'
is "when it goes on it has sockets for others" "$rc$err" 0
finish
