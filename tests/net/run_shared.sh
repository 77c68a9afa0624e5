#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 300
# Programs that `ringgate run` ran one after the other, and that share the daemon's agent: one loopback
# for a user, or for a group of his, none for two users, and nobody can harm another one's.

# shellcheck disable=SC2317 # functions that wait_for calls
# shellcheck source=tests/cli/lib/tap.sh
. "$(dirname "$0")/../cli/lib/tap.sh"
# shellcheck source=tests/net/lib/programs.sh
. "$(dirname "$0")/lib/programs.sh"

ringgated=$build/tools/ringgated
command -v python3 >/dev/null || skip_all "python3 is not installed"
chmod 755 "$tmp"
program shared_program.py
mkdir -m 1777 "$tmp/run"
export XDG_RUNTIME_DIR=$tmp/run
# Others may not read this build.
cp "$ringgate" "$build/tools/libringgate-preload.so" "$tmp/"
agent=$tmp/r.agent

# Two users, where this is a user who may be others
if [ "$(id -u)" = 0 ]; then
	one=(setpriv --reuid 54321 --regid 54321 --clear-groups --inh-caps=-all)
	two=(setpriv --reuid 54322 --regid 54322 --clear-groups --inh-caps=-all)
else
	one=(env)
	two=()
fi

# A python that others may run, too
# shellcheck disable=SC2016 # sh expands it
may_run() { "${one[@]}" sh -c 'exec "$0" -c ""' "$py" 2>/dev/null; }
for py in "$py" /usr/bin/python3; do
	! may_run || break
done
may_run || skip_all "no python that other users may run"

cluster_of_two "$tmp/cluster"
# begin_daemon [OPTION]...
begin_daemon()
{
	printf 'allow any socket\n' >"$tmp/requests"
	printf 'allow any connect tcp 127.0.0.0/8 any\nallow any listen tcp any\n' >"$tmp/policy"
	chmod 600 "$tmp/requests" "$tmp/policy"
	begin daemon "$ringgated" -C "$tmp/cluster" -n gw -s "$tmp/s" --pool 16M --requests "socket $tmp/r" \
		--requests "policy $tmp/requests" --requests "sockets $tmp/policy" "$@"
	daemon=$last
}
# How much a build that looks for errors has found in the daemon, the keeper or an agent
complaints() { grep -cE 'Sanitizer|runtime error' "$tmp/daemon"; }
asked() { [ "$("$ringgate" cluster status --json -s "$tmp/s" 2>/dev/null | json "'sockets' in j['requests']")" = True ]; }

# `ringgate run` of either
for word in one two; do
	declare -n user=$word
	# shellcheck disable=SC2016 # that one expands it
	printf '#!/bin/sh\nexec %s timeout %s "%s" run --socket "%s" $plain "$@"\n' "${user[*]}" $((250 * slow)) \
		"$tmp/ringgate" "$tmp/r" >"$tmp/$word"
	chmod 755 "$tmp/$word"
done
# A build that has a thread to look for races may not make a user namespace.
export plain=
look_for_namespaces()
{
	run "$tmp/one" true
	[[ $err != *"no network namespace: Invalid argument"* ]] || plain=--no-netns
}
# The processes of that name
agents() { ps -o pid=,ppid=,uid= -C ringgate-agent; }
keeper_of() { agents | awk -v p="$1" '$2 == p { print $1 }'; }
no_process() { [ -z "$(agents | awk -v u="$1" '$3 == u')" ]; }
prog=("$py" -B -u "$tmp/program")
said_at() { port "$1"; }
says() { wait_for 20 grep -q "^$2" "$tmp/$1"; }

# ---- A daemon that has none ----

begin_daemon
ok "a daemon without agents" wait_for 30 asked
look_for_namespaces
run "$tmp/one" --group g true
like "no group without it" "$rc $err" "^1 .*no daemon has an agent for this user: .requests agent shared"
begin alone "$tmp/one" "${prog[@]}" serve
alone=$last
at=$(said_at alone)
run "$tmp/one" "${prog[@]}" nobody "$at"
is "each command has its own loopback" "$rc$out$err" "0nobody"
end "$alone"
end "$daemon"
run "$tmp/ringgate" run --own --group g true
like "--own and --group" "$rc $err" "^2 .*--group and --own"
run "$tmp/ringgate" run --loopback served --group g true
like "--loopback served and --group" "$rc $err" "^2 .*--group and --loopback served"
run "$tmp/ringgate" run --group 'a/b' true
like "a name that is none" "$rc $err" "^2 .*a/b.* is no name"
run "$ringgated" --check -C "$tmp/cluster" -n gw -s "$tmp/s" --requests "socket none" --requests "agent shared"
like "agents where nobody can ask" "$rc $err" "^1 .*nobody can ask"
run "$ringgated" --check -C "$tmp/cluster" -n gw -s "$tmp/s" --requests "socket $tmp/$(printf 'x%.0s' {1..40})" \
	--requests "agent shared"
like "a path that is too long" "$rc $err" "^1 .*is too long"
run "$ringgated" --check -C "$tmp/cluster" -n gw -s "$tmp/s" --requests "socket $tmp/r" --requests "agent some"
like "agents are shared or own" "$rc $err" "^1 .*agent shared or own"
RGATE_KEEPER=/nonexistent run timeout 60 "$ringgated" -C "$tmp/cluster" -n gw -s "$tmp/s" --pool 16M \
	--requests "socket $tmp/r" --requests "agent shared"
like "no keeper" "$rc $err" "^1 .*/nonexistent: .*make install.*RGATE_KEEPER"

# ---- One loopback for a user ----

begin_daemon --requests "agent shared"
ok "a daemon with agents" wait_for 30 asked
look_for_namespaces
status() { "$ringgate" cluster status --json -s "$tmp/s" 2>/dev/null | json 'j["agents"]'; }
is "... which it says" "$(status)" True
begin server "$tmp/one" -v "${prog[@]}" serve
server=$last
at=$(said_at server)
run "$tmp/one" -v "${prog[@]}" ask "$at"
is "a program finds the server of another command" "$rc$out" "0same"
is "... by the loopback alone" "$(moved local) $(moved 'bytes sent') $(moved sockets)" "1 0 1"
run "$tmp/one" "${prog[@]}" taken "$at"
is "... whose port is taken" "$rc$out$err" "0taken"
begin udp "$tmp/one" "${prog[@]}" serve_udp
run "$tmp/one" "${prog[@]}" ask_udp "$(said_at udp)"
is "datagrams, too" "$rc$out$err" "0same"
run "$tmp/one" --group g "${prog[@]}" nobody "$at"
is "another group does not" "$rc$out$err" "0nobody"
begin grouped "$tmp/one" --group g "${prog[@]}" serve "$at"
ok "... but has that port for itself" wait_for 20 said grouped
run "$tmp/one" --group g "${prog[@]}" ask "$at"
is "... and its programs find each other" "$rc$out$err" "0same"
run "$tmp/one" --loopback served "${prog[@]}" nobody "$at"
is "nor is it that of who has the sockets" "$rc$out$err" "0nobody"
if [ ${#two[@]} != 0 ]; then
	run "$tmp/two" "${prog[@]}" nobody "$at"
	is "another user does not" "$rc$out$err" "0nobody"
	run "$tmp/two" --group g "${prog[@]}" nobody "$at"
	is "... by no group" "$rc$out$err" "0nobody"
else
	skip "another user" "this is not root"
fi
if command -v redis-server >/dev/null; then
	redis_port=$((20000 + $$ % 10000))
	begin redis "$tmp/one" redis-server --port $redis_port --bind 127.0.0.1 --save '' --dir "$tmp/run"
	redis=$last
	pong() { "$tmp/one" redis-cli -p "$redis_port" ping 2>/dev/null | grep -q PONG; }
	ok "redis-cli finds redis-server" wait_for 20 pong
	"$tmp/one" redis-cli -p $redis_port set key value >/dev/null 2>&1
	run "$tmp/one" redis-cli -p $redis_port get key
	is "... and what was left there" "$rc$out$err" 0value
	end "$redis"
else
	skip "redis" "it is not installed"
fi

# ---- Outside: as its own agent, with the rights of who asks ----

cat >"$tmp/outer.py" <<'EOF'
import os, socket, sys
server = socket.create_server(("127.0.0.2", 0))
print("at", server.getsockname()[1], flush=True)
while True:
    s, _ = server.accept()
    s.sendall(b"outside")
    s.close()
EOF
begin outer "$py" -u "$tmp/outer.py"
outer=$last
outer_at=$(said_at outer)
run "$tmp/one" -v --group out "${prog[@]}" nobody "$outer_at"
is "what is outside is not on its loopback" "$rc$out" 0nobody
end "$outer"
begin far "$tmp/one" --group far "$py" -u -c 'import socket
s = socket.create_server(("0.0.0.0", 0))
print("at", s.getsockname()[1], flush=True)
c, _ = s.accept()
c.sendall(b"x" * 3000000)
c.close()'
far=$last
far_at=$(said_at far)
run "$py" -c 'import socket, sys
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
n = 0
while part := s.recv(65536):
    n += len(part)
print(n)' "$far_at"
is "a server of another group is reached from outside, and all of it goes" "$rc$out$err" 03000000
wait "$far"
is "... before the command ends" "$?" 0
if [ ${#two[@]} != 0 ]; then
	printf 'allow user:54321 connect tcp 127.0.0.0/8 any\nallow user:54321 listen tcp any\n' >"$tmp/policy"
	kill -HUP "$daemon"
	may_not() { "$tmp/two" "$py" -c 'import socket; socket.create_server(("0.0.0.0", 0))' 2>&1 | grep -q 'Permission denied'; }
	ok "what another user may is his own policy" wait_for 20 may_not
	run "$tmp/one" "$py" -c 'import socket; socket.create_server(("0.0.0.0", 0))'
	is "... and not this one's" "$rc$out$err" 0
	printf 'allow user:54321 socket\n' >"$tmp/requests"
	kill -HUP "$daemon"
	no_agent() { "$tmp/two" true 2>&1 | grep -q 'sockets for true: .*does not let this user'; }
	ok "who may have no sockets has no agent" wait_for 20 no_agent
	printf 'allow any socket\n' >"$tmp/requests"
	kill -HUP "$daemon"
	ok "... until he may" wait_for 20 "$tmp/two" true
	# Whoever comes later has no rights by groups that he is not in.
	begin rich setpriv --reuid 54323 --regid 54323 --groups 54324 timeout 60 "$tmp/ringgate" run --socket "$tmp/r" \
		${plain:+"$plain"} "${prog[@]}" serve
	rich=$last
	ok "an agent with a group of the system" wait_for 20 said rich
	run setpriv --reuid 54323 --regid 54323 --clear-groups "$tmp/ringgate" run --socket "$tmp/r" ${plain:+"$plain"} true
	like "... is not for who is not in it" "$rc $err" "^1 .*has groups of the system that this process has not"
	end "$rich"
else
	skip "policies" "this is not root"
fi

# ---- A command that is killed: its programs are told, others go on ----

begin left "$tmp/one" "${prog[@]}" left
left=$last
ok "a server in a process of its own" wait_for 20 said left
left_at=$(said_at left)
kill -KILL "$(pgrep -P "$left" -f 'ringgate run')" 2>/dev/null || kill -KILL "$left"
wait "$left" 2>/dev/null
ok "its command is killed: accept and socket end" says left "all told"
run "$tmp/one" "${prog[@]}" nobody "$left_at"
is "... and its port is nobody's" "$rc$out$err" "0nobody"
run "$tmp/one" "${prog[@]}" ask "$at"
is "... and others go on" "$rc$out$err" "0same"

# ---- Hostile programs of a user harm nobody else ----

evil=("${two[@]}")
[ ${#two[@]} != 0 ] || evil=("${one[@]}")
hostile=("${evil[@]}" timeout $((120 * slow)) "${prog[@]}")
run "${hostile[@]}" words "$agent"
is "what is no question" "$rc$out$err" "0refused"
run "${hostile[@]}" crowd "$agent"
is "more than there may be" "$rc$out$err" "0limited"
goes_on() { run "$tmp/one" "${prog[@]}" ask "$at"; is "... and the others go on" "$rc$out$err" "0same"; }
goes_on
if [ ${#two[@]} != 0 ]; then
	run "${hostile[@]}" passes "$agent"
	is "descriptors that are slow to close" "$rc$out$err" "0passed"
	goes_on
	begin flood "${hostile[@]}" flood "$agent" 3
	flood=$last
	for _ in 1 2 3; do
		goes_on
	done
	wait "$flood"
	is "a flood ends" "$?" 0
	run "${hostile[@]}" kills "$agent" 4
	is "its own agent killed, over and over" "$rc$out$err" "0killed"
	goes_on
	begin stops "${evil[@]}" "${prog[@]}" stops "$agent"
	stops=$last
	ok "its own agent stopped" says stops stopped
	goes_on
	end "$stops" -KILL
	# shellcheck disable=SC2046 # several
	kill -CONT $(sed -n 's/^stopped //p' "$tmp/stops")
	begin control "${one[@]}" "${prog[@]}" control "$agent"
	control=$last
	ok "where programs of a user ask" says control control
	run "${hostile[@]}" member "$agent" "$(sed -n 's/^control //p' "$tmp/control")"
	is "... another one cannot" "$rc$out$err" "0denied"
	run "${hostile[@]}" foreign "$tmp/r.agents"
	is "... nor see it" "$rc$out$err" "0nothing"
	end "$control" -KILL
	ok "who has nobody has no process" wait_for 20 no_process 54322
else
	skip "other users" "this is not root"
fi
is "the daemon is there" "$(status)" True

# ---- Ends ----

begin broken "$tmp/one" "${prog[@]}" broken
broken=$last
ok "one waits" wait_for 20 said broken
end "$daemon"
ok "the daemon ends: accept is told" says broken "all told"
wait "$broken"
like "... with a line" "$(cat "$tmp/broken")" "sockets are gone"
wait "$server"
like "... as all have" "$(cat "$tmp/server")" "sockets are gone"
ok "nothing is left of it" test ! -e "$agent" -a ! -e "$tmp/r.agents"
# shellcheck disable=SC2119 # it has none
is "... and nothing has complained" "$(complaints)" 0

begin_daemon --requests "agent shared"
ok "a daemon with agents, anew" wait_for 30 asked
begin broken "$tmp/one" "${prog[@]}" broken
broken=$last
ok "one waits" wait_for 20 said broken
end "$daemon" -KILL
ok "the daemon is killed: accept is told" says broken "all told"
wait "$broken"
like "... with a line" "$(cat "$tmp/broken")" "sockets are gone"
run "$tmp/ringgate" run --socket "$tmp/r" true
like "... and there are no sockets" "$rc $err" "^1 .*sockets for true"
# shellcheck disable=SC2119 # it has none
is "... and nothing has complained" "$(complaints)" 0

begin_daemon --requests "agent shared"
ok "a daemon with agents, once more" wait_for 30 asked
begin broken "$tmp/one" "${prog[@]}" broken
broken=$last
ok "one waits" wait_for 20 said broken
broken_at=$(said_at broken)
kill -KILL "$(keeper_of "$daemon")"
ok "the keeper is killed: accept is told" says broken "all told"
gone() { [ "$(status)" = False ]; }
ok "... and the daemon says so" wait_for 20 gone
run "$tmp/one" "${prog[@]}" nobody "$broken_at"
is "... and a command has an agent of its own" "$rc$out$err" "0nobody"
end "$daemon"
finish
