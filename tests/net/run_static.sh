#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 300
# Programs that are linked statically, as they are: their calls are answered, bytes by checksum.

# shellcheck disable=SC2317 # functions that wait_for calls
# shellcheck source=tests/cli/lib/tap.sh
. "$(dirname "$0")/../cli/lib/tap.sh"
# shellcheck source=tests/net/lib/programs.sh
. "$(dirname "$0")/lib/programs.sh"

ringgated=$build/tools/ringgated
command -v python3 >/dev/null || skip_all "python3 is not installed"
static=$tmp/static
"${CC:-cc}" -std=gnu11 -O2 -static -o "$static" "$(dirname "$0")"/static/*.c -pthread 2>/dev/null ||
	skip_all "no compiler that links statically"
chmod 755 "$tmp"
mkdir "$tmp/www"
mkdir -m 1777 "$tmp/run"
head -c 5000000 /dev/urandom >"$tmp/www/file"
export XDG_RUNTIME_DIR=$tmp/run
peer_program=$tmp/program
program run_program.py

own=(timeout $((60 * slow)) "$ringgate" run --own --loopback served)
alone=(timeout $((60 * slow)) "$ringgate" run --own)
# ---- Outside: servers that know nothing ----

begin web env -C "$tmp/www" "$py" -u "$peer_program" web
web=$last
at=$(port web)
for how in fetch fetch-events; do
	"${own[@]}" -v "$static" $how "$at" /file >"$tmp/got" 2>"$tmp/err"
	err=$(<"$tmp/err")
	ok "$how" cmp "$tmp/got" "$tmp/www/file"
	ok "... through the agent" test "$(moved received)" -gt 5000000
	is "... by one connection" "$(moved connected) $(moved broke)" "1 0"
done
if command -v busybox >/dev/null && ! ldd "$(command -v busybox)" >/dev/null 2>&1; then
	rm -f "$tmp/got"
	run "${own[@]}" busybox wget -q -O "$tmp/got" "http://127.0.0.1:$at/file"
	ok "busybox wget" cmp "$tmp/got" "$tmp/www/file"
	"${own[@]}" busybox nc 127.0.0.1 "$at" <<<$'GET /file HTTP/1.0\r\n\r' 2>/dev/null | tail -c 5000000 >"$tmp/got"
	ok "busybox nc" cmp "$tmp/got" "$tmp/www/file"
	port=$((20000 + $$ % 10000))
	begin httpd "${own[@]}" busybox httpd -f -p "127.0.0.1:$port" -h "$tmp/www"
	answers() { "$py" "$peer_program" urllib "http://127.0.0.1:$port/file" >"$tmp/got" 2>/dev/null; }
	ok "busybox httpd answers, a process each" wait_for 20 answers
	is "... with all of it" "$(<"$tmp/got")" "$(sha256sum <"$tmp/www/file" | cut -d' ' -f1)"
	end "$last"
else
	skip "busybox" "none that is linked statically is installed"
fi
# One that is loaded, and has its calls answered all the same, as a program in Go with cgo is
run "${own[@]}" --static "$py" "$peer_program" urllib "http://127.0.0.1:$at/file"
is "--static for one that is linked dynamically" "$rc $out" "0 $(sha256sum <"$tmp/www/file" | cut -d' ' -f1)"
end "$web"

# ---- Inside: servers, asked by who knows nothing ----

for kind in threads forks events; do
	begin "$kind" "${own[@]}" -v "$static" "$kind"
	serves=$last
	at=$(port "$kind")
	run timeout $((60 * slow)) "$py" "$peer_program" echoed "$at" 6 3000000
	is "an echo server, $kind" "$rc$out$err" "0same"
	if [ $kind = events ]; then
		pid=$(pgrep -P "$serves" -x ringgate || echo "$serves")
		before=$(find "/proc/$pid/fd" -mindepth 1 | wc -l)
		run timeout $((60 * slow)) "$py" "$peer_program" echoed "$at" 100 1000
		is "... a hundred more" "$rc$out$err" "0same"
		same() { [ "$(find "/proc/$pid/fd" -mindepth 1 | wc -l)" -le "$before" ]; }
		ok "... of which no descriptor is left" wait_for 20 same
	fi
	end "$serves"
	err=$(<"$tmp/$kind")
	ok "... through the agent" test "$(moved received)" -ge 18000000 -a "$(moved 'bytes sent')" -ge 18000000
done
run "${alone[@]}" -v "$static" both
is "both ends, on a loopback of their own" "$rc$out" "0same"
ok "... and nobody carries it" test "$(moved 'bytes sent')" = 0 -a "$(moved local)" -ge 10

# ---- As it is without an agent ----

begin peer "$py" -u "$peer_program" peer
peer=$last
at=$(port peer)
cases=(names errors refused refused_later reset_unread reset_read reset_polled reset_accepted received
	interrupted stopped timeout closed shut limit execute passed many reuse changed others)
# where the thread that answers has most to do with the others
[ "$sanitizer" != tsan ] || cases=(interrupted stopped closed limit execute passed many others)
for what in "${cases[@]}"; do
	run timeout $((60 * slow)) "${own[@]}" "$static" case "$what" "$at"
	is "$what" "$rc $out" "0 $what"
done
run "${own[@]}" "$static" case sum "$at"
is "half closed" "$out" "$("$py" -c 'import hashlib
print(hashlib.sha256(bytes((i * 7 + i // 251) & 255 for i in range(3000000))).hexdigest())') sum"
exec 5<>"/dev/tcp/127.0.0.1/$at"
run "${own[@]}" "$static" case inherited "$at"
is "a socket of another network goes nowhere" "$rc $out$err" "0 inherited"
exec 5>&-
# Killed anywhere: each time it ends, and the next one finds all as it was
killed=0
times=20
case $sanitizer in asan) times=6 ;; tsan) times=3 ;; esac
for ((i = 1; i <= times; i++)); do
	begin killed "${own[@]}" "$static" case many "$at"
	runs() { pid=$(pgrep -f -n "^$static case many") && [ -n "$pid" ]; }
	wait_for 20 runs
	sleep "0.0$((i * 37 % 100))"
	kill -9 "$pid" 2>/dev/null
	wait "$last"
	[ $? = 137 ] && killed=$((killed + 1))
done
ok "killed anywhere ($killed of $times before it had ended)" test "$killed" -gt 0
run "${own[@]}" "$static" case many "$at"
is "... and one that is not" "$rc $out$err" "0 many"
end "$peer"
begin hole "$py" -u -c 'import socket
l = socket.create_server(("127.0.0.1", 0), backlog=0)
c = [socket.socket() for _ in range(3)]
for s in c:
    s.setblocking(False)
    s.connect_ex(l.getsockname())
print("at", l.getsockname()[1])
import time
time.sleep(100)'
at=$(port hole)
run "${own[@]}" "$static" case connecting "$at"
is "connecting" "$rc $out$err" "0 connecting"

# Killed, while it waits: the program, and who answers it
begin killed "${own[@]}" "$static" case waits "$at"
killed=$last
pid_of() { sed -n 's/^waits //p' "$tmp/$1"; }
ok "one waits" wait_for 20 grep -q '^waits' "$tmp/killed"
sleep 0.2
kill -9 "$(pid_of killed)"
# What it has started waits for an answer of its own.
pkill -9 -P "$(pgrep -P "$killed" -x ringgate)" 2>/dev/null
wait "$killed"
is "killed, which is its exit status" "$?" 137
mkdir "$tmp/stays"
begin left env XDG_RUNTIME_DIR="$tmp/stays" "$ringgate" run --own --loopback served "$static" case waits "$at"
left=$last
ok "another one" wait_for 20 grep -q '^waits' "$tmp/left"
end "$left" -KILL
gone() { ! kill -0 "$(pid_of left)" 2>/dev/null; }
ok "who answers it is killed: it is, too" wait_for 20 gone

# ---- What it cannot be ----

run "${own[@]}" --static "$ringgate" run --own --static "$static" case udp 0
like "one within another" "$rc $err" "^126 .*answered by another one already"
# Of one that is loaded it says that there is no library to be.
printf '#!%s\n' "$static" >"$tmp/script"
chmod +x "$tmp/script"
RGATE_PRELOAD=/nonexistent.so run "${own[@]}" "$tmp/script"
is "a script that is run by a static program" "$rc$err" 2
RGATE_PRELOAD=/nonexistent.so run "${own[@]}" sh -c true
like "... and one that is not" "$rc $err" "^1 .*make install"
run "${own[@]}" --static /nonexistent
like "none there" "$rc $err" "^127 .*No such file"

# ---- Datagrams ----

udp_program=$tmp/udp_program
cp "$(dirname "$0")/lib/udp_program.py" "$udp_program"
begin datagrams "$py" -u "$udp_program" echo
at=$(port datagrams)
for what in names connected refused cut sizes many hostile waits polled; do
	run "${own[@]}" "$static" case "udp_$what" "$at"
	is "of datagrams: $what" "$rc $out$err" "0 udp_$what"
done
run "${own[@]}" -v "$static" udp-echoed "$at" 200 1400
is "datagrams go, and come back" "$rc$out" "0same"
ok "... through the agent" test "$(moved 'bytes sent')" -ge 280000 -a "$(moved received)" -ge 280000
begin inside "${own[@]}" -v "$static" udp-echo
serves=$last
at=$(port inside)
run timeout $((60 * slow)) "$py" "$udp_program" echoed "$at" 200 1400
is "a server of datagrams" "$rc$out$err" "0same"
end "$serves"
err=$(<"$tmp/inside")
ok "... through the agent" test "$(moved 'bytes sent')" -ge 280000 -a "$(moved received)" -ge 280000
run "${alone[@]}" -v "$static" udp-within
is "both ends of datagrams, on a loopback of their own" "$rc$out" "0same"
is "... and nobody carries them" "$(moved 'bytes sent')" 0
begin names "$py" -u "$udp_program" dns
at=$(port names)
run "${own[@]}" "$static" udp-resolve "$at"
is "a name server is asked" "$rc $out" "0 10.1.2.3"
if command -v busybox >/dev/null && ! ldd "$(command -v busybox)" >/dev/null 2>&1; then
	run "${own[@]}" busybox nslookup -type=a example.org "127.0.0.1:$at"
	like "busybox nslookup" "$rc $out" "^0 .*10\.1\.2\.3"
else
	skip "busybox nslookup" "none that is linked statically is installed"
fi

# ---- Names, by the resolv.conf that it is shown ----

# "no name" is none that there may be.
for loopback in served own; do
	shown=(timeout $((60 * slow)) "$ringgate" run --own --loopback "$loopback")
	run "${shown[@]}" "$static" look-up localhost
	is "a name is looked up where the sockets are, loopback $loopback" "$rc$err $(grep -Fxm1 127.0.0.1 <<<"$out")" "0 127.0.0.1"
	run "${shown[@]}" "$static" look-up "no name"
	is "... and one that there is not" "$rc$err $out" "0 code 3"
done
begin web env -C "$tmp/www" "$py" -u "$peer_program" web
web=$last
at=$(port web)
sum=$(sha256sum <"$tmp/www/file" | cut -d' ' -f1)
if command -v busybox >/dev/null && ! ldd "$(command -v busybox)" >/dev/null 2>&1; then
	rm -f "$tmp/got"
	run "${own[@]}" busybox wget -q -O "$tmp/got" "http://localhost:$at/file"
	ok "busybox wget, by name" cmp "$tmp/got" "$tmp/www/file"
else
	skip "busybox wget, by name" "none that is linked statically is installed"
fi
if go=$(command -v go); then
	CGO_ENABLED=0 GOFLAGS=-mod=mod GO111MODULE=off GOCACHE=$build/go "$go" build -o "$tmp/go" \
		"$(dirname "$0")/static/go/main.go" >"$tmp/go.out" 2>&1
	is "a program in Go is built" "$?" 0
	run "${own[@]}" -v "$tmp/go" fetch "localhost:$at" /file
	is "it fetches a file, by name" "$rc$out" "0$sum"
	ok "... through the agent" test "$(moved received)" -gt 5000000
	run "${own[@]}" "$tmp/go" refused
	is "its errors" "$rc$out$err" "0true"$'\n'"true"
	begin go_serves "${own[@]}" "$tmp/go" serve
	serves=$last
	at=$(port go_serves)
	run timeout $((60 * slow)) "$py" "$peer_program" echoed "$at" 6 1000000
	is "it serves" "$rc$out$err" "0same"
	end "$serves"
	begin go_udp "${own[@]}" "$tmp/go" udp
	serves=$last
	at=$(port go_udp)
	run timeout $((60 * slow)) "$py" "$udp_program" echoed "$at" 100 1400
	is "... datagrams" "$rc$out$err" "0same"
	end "$serves"
	run "${own[@]}" "$tmp/go" echoed "127.0.0.1:$(port datagrams)"
	is "... and sends some" "$rc$out$err" "0same"
	run "${own[@]}" "$tmp/go" look-up "127.0.0.1:$(port names)" example.org
	is "a name server that it chooses itself" "$rc$out$err" "010.1.2.3"
else
	skip "a program in Go" "go is not installed"
fi
end "$web"
if unshare -m true 2>/dev/null; then
	# shellcheck disable=SC2016 # sh expands it
	run unshare -m sh -c 'mount -t tmpfs none /etc && exec "$@"' sh "${alone[@]}" "$static" udp-within
	is "none is there to be shown: it is no mistake" "$rc$out$err" "0same"
else
	skip "no resolv.conf" "no mount namespaces for this user"
fi

begin killed "${own[@]}" "$static" case udp_killed 0
killed=$last
ok "one waits for a datagram" wait_for 20 grep -q '^waits' "$tmp/killed"
sleep 0.2
kill -9 "$(pid_of killed)"
wait "$killed"
is "... and is killed" "$?" 137

# ---- A daemon has the sockets, and counts; for another node, too ----

gateway_with_sockets 'allow any connect tcp 127.0.0.0/8 any' 'allow any listen tcp any' \
	'allow any connect udp 127.0.0.0/8 1024-65535' 'allow any resolve localhost'
node_without_network
begin web env -C "$tmp/www" "$py" -u "$peer_program" web
at=$(port web)
as=()
[ "$(id -u)" != 0 ] || as=(setpriv --reuid nobody --clear-groups)
cp "$ringgate" "$tmp/ringgate"
for node in "" 1; do
	served=(timeout $((60 * slow)))
	# What others may do there the daemon's policy says; of the node's only this user is the gateway's.
	[ -n "$node" ] || served+=("${as[@]}")
	served+=("$tmp/ringgate" run --socket "$tmp/r$node" --loopback served)
	before=$(count received)
	"${served[@]}" -v "$static" fetch-events "$at" /file >"$tmp/got" 2>"$tmp/err"
	err=$(<"$tmp/err")
	if [[ $err == *"no network namespace: Invalid argument"* ]]; then
		served+=(--no-netns)
		"${served[@]}" -v "$static" fetch-events "$at" /file >"$tmp/got" 2>"$tmp/err"
		err=$(<"$tmp/err")
	fi
	ok "a program of node ${node:-0} has the file" cmp "$tmp/got" "$tmp/www/file"
	is "... and the gateway has counted what the agent did" $(($(count received) - before)) "$(moved received)"
	ok "... which is all of it" test "$(moved received)" -gt 5000000
done
run timeout $((60 * slow)) "${as[@]}" "$tmp/ringgate" run --own --no-netns --loopback served "$static" case hidden 9
is "one that hides itself" "$rc $out$err" "0 hidden"
begin events timeout $((60 * slow)) "$ringgate" run --socket "$tmp/r1" --loopback served -v "$static" events
serves=$last
at=$(port events)
before="$(count received) $(count sent)"
run timeout $((60 * slow)) "$py" "$peer_program" echoed "$at" 8 1000000
is "a server of node 1 echoes" "$rc$out$err" "0same"
end "$serves"
err=$(<"$tmp/events")
is "... and the gateway has counted it" "$(count received) $(count sent)" \
	"$((${before% *} + $(moved received))) $((${before#* } + $(moved 'bytes sent')))"
ok "... which is all of it" test "$(moved received)" -ge 8000000 -a "$(moved 'bytes sent')" -ge 8000000
run timeout $((60 * slow)) "$ringgate" run --socket "$tmp/r1" "$static" look-up localhost
is "it has its names from the gateway" "$rc$err $(grep -Fxm1 127.0.0.1 <<<"$out")" "0 127.0.0.1"
at=$(port datagrams)
before="$(count received) $(count sent)"
run timeout $((60 * slow)) "$ringgate" run --socket "$tmp/r1" --loopback served -v "$static" udp-echoed "$at" 200 1400
is "a program of node 1 has its datagrams back" "$rc$out" "0same"
is "... and the gateway has counted them" "$(count received) $(count sent)" \
	"$((${before% *} + $(moved received))) $((${before#* } + $(moved 'bytes sent')))"
ok "... which is all of them" test "$(moved received)" -ge 280000
is "no directory is left" "$(ls -A "$tmp/run")" ""
is "nothing was complained of" "$(complaints "$tmp"/{threads,forks,events,killed,left,daemon,node})" ""
finish
