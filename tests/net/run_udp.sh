#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 300
# Programs as they are, whose UDP goes through an agent: datagrams by checksum, their calls and errors.

# shellcheck disable=SC2317 # functions that wait_for calls
# shellcheck source=tests/cli/lib/tap.sh
. "$(dirname "$0")/../cli/lib/tap.sh"
# shellcheck source=tests/net/lib/programs.sh
. "$(dirname "$0")/lib/programs.sh"

ringgated=$build/tools/ringgated
if ! command -v python3 >/dev/null; then
	skip "datagrams of programs as they are" "python3 is not installed"
	finish
	exit
fi
program udp_program.py
mkdir "$tmp/run" "$tmp/left"
export XDG_RUNTIME_DIR=$tmp/run

own=(timeout $((60 * slow)) "$ringgate" run --own --loopback served -v)
alone=(timeout $((60 * slow)) "$ringgate" run --own -v)
# quiet: nothing but that line
quiet() { grep -v ' sockets, .* lost$' <<<"$err"; }

# ---- Outside: a server that knows nothing ----

begin echo "$py" -u "$tmp/program" echo
outside=$last
at=$(port echo)
run "${own[@]}" "$py" "$tmp/program" echoed "$at" 500 1400
is "datagrams go, and come back" "$rc$out" "0same"
ok "... through the agent" test "$(moved 'bytes sent')" -ge 700000 -a "$(moved received)" -ge 700000
run "${own[@]}" "$py" "$tmp/program" echoed "$at" 20 65000
is "... of any size" "$rc$out" "0same"
run "${own[@]}" "$py" "$tmp/program" asked "$at"
is "asyncio's endpoints" "$rc$out" "0asyncio"
for what in names connected refused cut sizes many_calls by_number options poll passed_on shutdown interrupted crowd; do
	run "${own[@]}" "$py" -u "$tmp/program" test "$what" "$at"
	is "$what" "$rc $out $(quiet)" "0 $what "
done
# A program whose own functions of these names are what calls syscall(2)
cat >"$tmp/own.c" <<-'END'
	#include <arpa/inet.h>
	#include <stdlib.h>
	#include <string.h>
	#include <sys/socket.h>
	#include <sys/syscall.h>
	#include <unistd.h>

	int socket(int family, int type, int protocol)
	{
		return (int)syscall(SYS_socket, family, type, protocol);
	}

	int connect(int fd, const struct sockaddr *sa, socklen_t len)
	{
		return (int)syscall(SYS_connect, fd, sa, len);
	}

	ssize_t write(int fd, const void *buf, size_t len)
	{
		return syscall(SYS_write, fd, buf, len);
	}

	ssize_t read(int fd, void *buf, size_t len)
	{
		return syscall(SYS_read, fd, buf, len);
	}

	int main(int argc, char **argv)
	{
		struct sockaddr_in to = {
			.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(argv[argc - 1])),
			.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		};
		int fd = socket(AF_INET, SOCK_DGRAM, 0);
		char buf[8];

		if (connect(fd, (struct sockaddr *)&to, sizeof(to)) || write(fd, "own", 3) != 3)
			return 1;
		return read(fd, buf, sizeof(buf)) != 3 || memcmp(buf, "own", 3);
	}
END
if "${CC:-cc}" -std=gnu11 -O2 -o "$tmp/own" "$tmp/own.c" 2>/dev/null; then
	run "${own[@]}" "$tmp/own" "$at"
	is "a program with such functions of its own" "$rc" 0
	ok "... through the agent" test "$(moved 'bytes sent')" -ge 3
else
	skip "a program with such functions of its own" "no compiler"
fi
nc=$(command -v nc.openbsd || command -v nc)
if [ -n "$nc" ]; then
	out=$( (echo datagram; sleep 2) | "${own[@]}" "$nc" -u -W 1 127.0.0.1 "$at" 2>/dev/null)
	is "nc -u" "$out" datagram
else
	skip "nc -u" "it is not installed"
fi
if command -v socat >/dev/null; then
	out=$(echo datagram | "${own[@]}" socat -t 2 - "UDP:127.0.0.1:$at" 2>/dev/null)
	is "socat UDP" "$out" datagram
	out=$(echo datagram | "${own[@]}" socat -t 2 - "UDP-SENDTO:127.0.0.1:$at" 2>/dev/null)
	is "socat UDP-SENDTO" "$out" datagram
else
	skip "socat UDP" "it is not installed"
fi
end "$outside"

# ---- Names ----

begin dns "$py" -u "$tmp/program" dns
names=$last
at=$(port dns)
run "${own[@]}" "$py" "$tmp/program" resolve "$at"
is "a resolver in python" "$rc$out" "010.1.2.3"
if command -v dig >/dev/null; then
	run "${own[@]}" dig +short +tries=3 -p "$at" @127.0.0.1 example.org
	is "dig" "$rc$out" "010.1.2.3"
else
	skip "dig" "it is not installed"
fi
end "$names"

# ---- Inside: servers, asked by who knows nothing ----

for kind in echo async; do
	begin inside "${own[@]}" "$py" -u "$tmp/program" "$kind"
	at=$(port inside)
	run timeout $((60 * slow)) "$py" "$tmp/program" echoed "$at" 200 1400
	is "a server, $kind" "$rc$out$err" "0same"
	end "$last"
	err=$(cat "$tmp/inside")
	ok "... through the agent" test "$(moved received)" -ge 280000
done
if command -v socat >/dev/null; then
	port=$((20000 + $$ % 10000))
	begin socat "${own[@]}" socat "UDP-RECVFROM:$port,fork,bind=127.0.0.1" EXEC:cat
	answers() { [ "$(echo hi | socat -t 1 - "UDP:127.0.0.1:$port" 2>/dev/null)" = hi ]; }
	ok "socat UDP-RECVFROM, a process each" wait_for 20 answers
	end "$last"
fi
if [ -n "$nc" ]; then
	port=$((30000 + $$ % 10000))
	begin nc "${own[@]}" "$nc" -u -l 127.0.0.1 "$port"
	heard() { echo here >"/dev/udp/127.0.0.1/$port"; grep -q here "$tmp/nc"; }
	ok "nc -u -l, which connects to who comes first" wait_for 20 heard
	end "$last"
fi

# ---- Within: a loopback of their own ----

run "${alone[@]}" "$py" "$tmp/program" within
is "two programs of one agent" "$rc$out" "0same"
is "... and nobody carries it" "$(moved 'bytes sent')" 0
begin gone env XDG_RUNTIME_DIR="$tmp/left" "$ringgate" run --own "$py" -u "$tmp/program" gone
ok "one waits" wait_for 20 grep -q '^alone' "$tmp/gone"
kill -KILL "$last"
ok "its agent is killed: it is told" wait_for 20 grep -q '^told' "$tmp/gone"

# ---- A daemon has the sockets, and counts; for another node, too ----

gateway_with_sockets 'allow any connect udp 127.0.0.0/8 1024-65535'
begin echo "$py" -u "$tmp/program" echo
at=$(port echo)
for node in 0 1; do
	[ $node = 0 ] || node_without_network
	served=(timeout $((60 * slow)) "$ringgate" run --socket "$tmp/r${node#0}" --loopback served -v)
	before="$(count received) $(count sent)"
	run "${served[@]}" "$py" "$tmp/program" echoed "$at" 200 1400
	is "a program of node $node has them back" "$rc$out" "0same"
	is "... and the gateway has counted what the agent did" \
		"$(count received) $(count sent)" \
		"$((${before% *} + $(moved received))) $((${before#* } + $(moved 'bytes sent')))"
	ok "... which is all of it" test "$(moved received)" -ge 280000
	run "${served[@]}" "$py" "$tmp/program" echoed "$at" 10 65000
	is "... of any size" "$rc$out" "0same"
done
# What the daemon's own user may do nobody else has to allow: the guest of a node is looked up.
if [ "$(id -u)" = 0 ] && setpriv --reuid nobody --clear-groups true 2>/dev/null; then
	cp "$ringgate" "$build/tools/libringgate-preload.so" "$tmp/"
	chmod 755 "$tmp"
	chmod 1777 "$tmp/run"
	other=(timeout $((60 * slow)) setpriv --reuid nobody --clear-groups "$tmp/ringgate" run --socket "$tmp/r"
		--loopback served --no-netns)
	run "${other[@]}" bash -c 'exec 5<>/dev/udp/127.0.0.1/53'
	like "its policy says otherwise: EACCES" "$err" "Permission denied"
	if command -v socat >/dev/null; then
		run "${other[@]}" bash -c 'echo x | socat -t 0.1 - UDP-SENDTO:127.0.0.1:53'
		like "... and one line, as a datagram has no answer" "$err" "datagram may not go"
	fi
else
	skip "its policy says otherwise" "the daemon is this user's"
fi
is "no directory is left" "$(ls -A "$tmp/run")" ""
finish
