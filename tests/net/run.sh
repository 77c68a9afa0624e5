#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 300
# Programs as they are, whose TCP goes through an agent: bytes by checksum, and what others got wrong.

# shellcheck disable=SC2317 # functions that wait_for calls
# shellcheck source=tests/cli/lib/tap.sh
. "$(dirname "$0")/../cli/lib/tap.sh"
# shellcheck source=tests/net/lib/programs.sh
. "$(dirname "$0")/lib/programs.sh"

ringgated=$build/tools/ringgated
chmod 755 "$tmp"
if ! command -v python3 >/dev/null; then
	skip "programs as they are" "python3 is not installed"
	finish
	exit
fi
mkdir "$tmp/www"
head -c 5000000 /dev/urandom >"$tmp/www/file"
head -c 100000 "$tmp/www/file" >"$tmp/www/small"
program run_program.py

# What has sockets of this machine, with its loopback; with a loopback of its own
for word in own alone; do
	loopback=served
	[ $word = own ] || loopback=own
	printf '#!/bin/sh\nexec timeout %s "%s" run --own --loopback %s "$@"\n' $((60 * slow)) \
		"$ringgate" $loopback >"$tmp/$word"
	chmod +x "$tmp/$word"
done
own=$tmp/own
alone=$tmp/alone
mkdir -m 1777 "$tmp/run" "$tmp/left"
export XDG_RUNTIME_DIR=$tmp/run

# What cannot be run
run "$ringgate" run --own /nonexistent
like "no such program" "$rc $err" "^127 .*/nonexistent: No such file"
run "$ringgate" run --own "$tmp"
is "none that may be run" "$rc" 126
RGATE_PRELOAD=/nonexistent.so run "$ringgate" run --own true
like "no library to load" "$rc $err" "^1 .*make install"
# shellcheck disable=SC2016 # sh expands it
if unshare -m sh -c 'umount -l /proc' 2>/dev/null; then
	run unshare -m sh -c 'umount -l /proc && RGATE_PRELOAD=$0 exec "$@"' \
		"$build/tools/libringgate-preload.so" "$ringgate" run --own true
	like "no /proc" "$rc $err" "^1 .*there is no /proc, by which sockets are connected: mount it"
else
	skip "no /proc" "no mount namespaces for this user"
fi
run "$own" sh -c 'exit 7'
is "its exit status" "$rc$out$err" 7
run "$own" sh -c 'kill -TERM $$'
is "... or signal" "$rc" 143

# ---- Outside: a server that knows nothing ----

begin web env -C "$tmp/www" "$py" -u "$tmp/program" web
web=$last
at=$(port web)
if command -v curl >/dev/null; then
	run "$own" -v curl -sS -o "$tmp/got" "http://127.0.0.1:$at/file"
	ok "curl has the file" cmp "$tmp/got" "$tmp/www/file"
	ok "... through the agent" test "$(moved received)" -gt 5000000
	is "... by one connection" "$(moved connected)" 1
	run "$own" curl -sS -T "$tmp/www/file" "http://127.0.0.1:$at/sum"
	is "curl sends it" "$out" "$(sha256sum <"$tmp/www/file" | cut -d' ' -f1)"
	run "$own" curl -sS "http://127.0.0.1:1/"
	like "curl is told of nobody there" "$rc $err" "^7 .*connect"
else
	skip "curl" "it is not installed"
fi
if command -v wget >/dev/null; then
	run "$own" wget -q -O "$tmp/got" "http://127.0.0.1:$at/file"
	ok "wget has the file" cmp "$tmp/got" "$tmp/www/file"
else
	skip "wget" "it is not installed"
fi
run "$own" -v "$py" "$tmp/program" urllib "http://127.0.0.1:$at/file"
is "python's urllib has it" "$out" "$(sha256sum <"$tmp/www/file" | cut -d' ' -f1)"
run "$own" "$py" "$tmp/program" threads "http://127.0.0.1:$at/file" 8
is "eight threads have it" "$rc$out" "08"
end "$web"

# ---- Inside: servers, asked by who knows nothing ----

begin inside "$alone" -v env -C "$tmp/www" "$py" -u "$tmp/program" web
at=$(port inside)
if command -v curl >/dev/null; then
	curl -sS -m 20 -o "$tmp/got" "http://127.0.0.1:$at/file"
	ok "a server in python gives it to curl" cmp "$tmp/got" "$tmp/www/file"
	is "... and takes it" "$(curl -sS -m 20 -T "$tmp/www/file" "http://127.0.0.1:$at/sum")" \
		"$(sha256sum <"$tmp/www/file" | cut -d' ' -f1)"
fi
end "$last"
err=$(cat "$tmp/inside")
ok "... through the agent" test "$(moved 'bytes sent')" -gt 5000000

for kind in asyncio threaded forking; do
	begin "$kind" "$alone" "$py" -u "$tmp/program" echo "$kind"
	at=$(port "$kind")
	run timeout 30 "$py" "$tmp/program" echoed "$at" 6 3000000
	is "an echo server, $kind" "$rc$out$err" "0same"
	end "$last"
done
# Both ends in one run: nobody else's loopback
run "$alone" -v "$py" "$tmp/program" both
is "a server and a client on a loopback of their own" "$rc$out" "0same"
ok "... of which nobody else knows" test "$(moved local)" -gt 0
is "... and nobody carries it" "$(moved 'bytes sent')" 0

nc=$(command -v nc.openbsd || command -v nc)
if [ -n "$nc" ]; then
	begin echo "$py" -u "$tmp/program" echo threaded
	at=$(port echo)
	"$own" "$nc" -N 127.0.0.1 "$at" <"$tmp/www/file" >"$tmp/got"
	ok "nc: what comes back" cmp "$tmp/got" "$tmp/www/file"
	"$own" "$nc" -z 127.0.0.1 "$at"
	is "nc -z: somebody is there" "$?" 0
	"$own" "$nc" -z 127.0.0.1 1
	is "... and there nobody" "$?" 1
	end "$last"
else
	skip "nc" "it is not installed"
fi
if command -v socat >/dev/null; then
	begin echo "$py" -u "$tmp/program" echo threaded
	at=$(port echo)
	"$own" socat -t 20 - "TCP:127.0.0.1:$at" <"$tmp/www/file" >"$tmp/got"
	ok "socat: what comes back" cmp "$tmp/got" "$tmp/www/file"
	end "$last"
	port=$((20000 + $$ % 10000))
	begin socat "$alone" socat "TCP-LISTEN:$port,reuseaddr,fork" EXEC:cat
	listens() { (exec 5<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; }
	ok "socat listens" wait_for 20 listens
	run timeout 30 "$py" "$tmp/program" echoed "$port" 3 1000000
	is "... and echoes, a process each" "$rc$out$err" "0same"
	end "$last"
else
	skip "socat" "it is not installed"
fi
if command -v openssl >/dev/null && openssl req -x509 -newkey rsa:2048 -nodes -keyout "$tmp/key" \
	-out "$tmp/cert" -subj /CN=localhost -days 2 2>/dev/null; then
	port=$((30000 + $$ % 10000))
	begin tls "$alone" openssl s_server -accept "$port" -cert "$tmp/cert" -key "$tmp/key" -rev
	answers() { (echo olleh; sleep 1) | timeout 20 openssl s_client -quiet -no_ign_eof -connect "127.0.0.1:$port" 2>/dev/null | grep -q hello; }
	ok "openssl s_server" wait_for 20 answers
	end "$last"
	begin tls openssl s_server -accept "$port" -cert "$tmp/cert" -key "$tmp/key" -rev
	asks() { (echo olleh; sleep 1) | "$own" openssl s_client -quiet -no_ign_eof -connect "127.0.0.1:$port" 2>/dev/null | grep -q hello; }
	ok "openssl s_client" wait_for 20 asks
	end "$last"
else
	skip "openssl" "it is not installed"
fi

# ---- What others got wrong ----

begin peer "$py" -u "$tmp/program" peer
peer=$last
at=$(port peer)
for what in port0 accept_flags connect_flags dup_epoll fork_after names options errors idle refused_now \
	refused_later half_close sendfile unread_reset reset_unread reset_read reset_accepted scm exec lowest \
	limit getaddrinfo reuse timeout inherited backlog limited interrupted dlopen recvfrom shut_listener many; do
	run timeout 30 "$ringgate" run --own --loopback served "$py" -u "$tmp/program" test "$what" "$at"
	is "$what" "$rc $out $err" "0 $what "
done
run "$own" "$py" "$tmp/program" test raw "$at"
like "others than TCP and UDP are refused, by name" "$rc $out $err" \
	"^0 raw .*socket of family 2 and type 3.*TCP and UDP alone"
run "$own" "$py" "$tmp/program" test escape "$at"
is "what escapes the library reaches nothing" "$rc $out $err" "0 escape "
run "$own" --no-netns "$py" "$tmp/program" test escapes "$at"
is "... but with --no-netns" "$rc $out $err" "0 escapes "

# Its signals, and its end
for what in handed_on ignored child_ignored terminal children ended lost; do
	run timeout $((60 * slow)) "$py" -B -u "$(dirname "$0")/lib/run_ends.py" "$what" "$ringgate" "$at"
	is "$what" "$rc $out $err" "0 $what "
done

# A program that is stopped with a full window, and one that is killed
begin stopped "$own" "$py" -u "$tmp/program" pour "$at"
stopped_run=$last
said_pid() { grep -q '^pid [0-9]' "$tmp/stopped"; }
ok "one is poured upon" wait_for 20 said_pid
stopped=$(sed -n 's/^pid //p' "$tmp/stopped")
kill -STOP "$stopped"
begin web env -C "$tmp/www" "$py" -u "$tmp/program" web
web=$last
port=$(port web)
run "$own" "$py" "$tmp/program" urllib "http://127.0.0.1:$port/file"
is "it is stopped, and another one goes on" "$out" "$(sha256sum <"$tmp/www/file" | cut -d' ' -f1)"
end "$web"
kill -CONT "$stopped"
wait "$stopped_run"
is "it goes on: all of it is there" "$?" 0
begin killed "$own" "$py" -u "$tmp/program" hold "$at"
ok "one is killed" wait_for 20 grep -q '^held' "$tmp/killed"
kill -9 "$(sed -n 's/^held //p' "$tmp/killed")"
wait "$last"
is "... which is its exit status" "$?" 137
ok "... and its peer sees the end" wait_for 20 grep -q '^gone' "$tmp/peer"

# The agent is killed: what was not whole does not look so. It leaves its directory.
begin killed env XDG_RUNTIME_DIR="$tmp/left" "$ringgate" run --own --loopback served "$py" -u "$tmp/program" hold "$at"
killed=$last
ok "one has a connection" wait_for 20 grep -q '^held' "$tmp/killed"
sleep 0.3
end "$killed" -KILL
ok "its agent is killed: its peer sees a reset" wait_for 20 grep -q '^reset' "$tmp/peer"
begin late env XDG_RUNTIME_DIR="$tmp/left" "$ringgate" run --own --loopback served "$py" -u "$tmp/program" backlogged
late=$last
at=$(port late)
ok "one does not accept" wait_for 20 grep -q '^alone' "$tmp/late"
exec 5<>"/dev/tcp/127.0.0.1/$at"
echo more >&5
# Until the agent has handed it on
sleep 2
end "$late" -KILL
ok "its agent is killed: accept is aborted" wait_for 20 grep -q '^aborted' "$tmp/late"
exec 5>&-
end "$peer"
# ---- A daemon has the sockets, and counts ----

gateway_with_sockets 'allow any connect tcp 127.0.0.0/8 any' 'allow any listen tcp any'
daemon=$last
begin web env -C "$tmp/www" "$py" -u "$tmp/program" web
web=$last
at=$(port web)
as=()
[ "$(id -u)" != 0 ] || as=(setpriv --reuid nobody --clear-groups)
# Others may not read this build.
cp "$ringgate" "$build/tools/libringgate-preload.so" "$tmp/"
served=(timeout $((60 * slow)) "${as[@]}" "$tmp/ringgate" run --socket "$tmp/r" --loopback served)
if command -v curl >/dev/null; then
	file=$tmp/run/got
	run "${served[@]}" -v curl -sS -o "$file" "http://127.0.0.1:$at/file"
	# A build that has a thread to look for races may not make a user namespace.
	if [[ $err == *"no network namespace: Invalid argument"* ]]; then
		served+=(--no-netns)
		run "${served[@]}" -v curl -sS -o "$file" "http://127.0.0.1:$at/file"
	fi
	like "a user without rights asks" "$rc $err" "^0 "
	ok "... and has the file" cmp "$file" "$tmp/www/file"
	is "the daemon counts what the agent does" "$(count received) $(count sent)" \
		"$(moved received) $(moved 'bytes sent')"
	ok "... which is all of it" test "$(count received)" -gt 5000000
	printf 'allow any listen tcp any\n' >"$tmp/policy"
	kill -HUP "$daemon"
	refused() { "${served[@]}" bash -c "exec 5<>/dev/tcp/127.0.0.1/$at" 2>&1 | grep -q 'Permission denied'; }
	if [ ${#as[@]} = 0 ]; then
		skip "its policy says otherwise" "the daemon is this user's"
	else
		ok "its policy says otherwise: EACCES" wait_for 20 refused
	fi
	rm -f "$file"
else
	skip "a user without rights" "curl is not installed"
fi
# ... for another node, too, which knows nothing of the network
node_without_network
node=$last
far=(timeout $((60 * slow)) "$ringgate" run --socket "$tmp/r1")
before=$(count received)
run "${far[@]}" --loopback served -v "$py" "$tmp/program" urllib "http://127.0.0.1:$at/file"
is "a program there has the file" "$out" "$(sha256sum <"$tmp/www/file" | cut -d' ' -f1)"
is "... by the gateway's socket" $(($(count received) - before)) "$(moved received)"
end "$web"
begin far "${far[@]}" env -C "$tmp/www" "$py" -u "$tmp/program" web
web=$last
at=$(port far)
run "$py" "$tmp/program" threads "http://127.0.0.1:$at/small" 40
is "a server there, and more who ask than it has at once" "$rc$out$err" "040"
end "$web"
end "$node"
begin peer "$py" -u "$tmp/program" peer
peer=$last
at=$(port peer)
run timeout $((30 * slow)) "$ringgate" run --socket "$tmp/r" --loopback served "$py" -u "$tmp/program" test crowded "$at"
is "one that connects much has places for who is accepted" "$rc $out $err" "0 crowded "
end "$peer"
begin listener "$ringgate" run --socket "$tmp/r" --loopback served "$py" -u "$tmp/program" broken
run_pid=$last
ok "a server listens at the daemon" port listener
end "$daemon" -KILL
wait "$run_pid"
is "the daemon is killed: accept and recv end" "$?" 0
like "... with one line" "$(cat "$tmp/listener")" "sockets are gone, as who had them is: .ringgate cluster"
run "$ringgate" run --socket "$tmp/none" true
like "no daemon there" "$rc $err" "^1 .*sockets for true: .*ringgated"
is "no directory is left" "$(ls -A "$tmp/run")" ""
finish
