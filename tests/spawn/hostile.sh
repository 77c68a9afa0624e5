#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 600
# What an unprivileged user may do with the processes that are run for him: whatever it is,
# those of another user start, run and end meanwhile, and nothing of it is left.

# shellcheck disable=SC2317 # functions that wait_for and the trap call
# shellcheck source=tests/cli/lib/tap.sh
. "$(dirname "$0")/../cli/lib/tap.sh"

ringgated=$build/tools/ringgated
# daemon.sh and asked.sh have the CLI judged
plain_cli asan
[ "$(id -u)" = 0 ] || skip_all "needs root"
[ "${RGATE_FABRIC_PROVIDER:-local}" = local ] || skip_all "is the same over any provider"
# Two users that have no processes of their own, but another run's of this: in turns
exec 8<"$0"
flock -w 300 8 || skip_all "another run of this goes on"
bad=games good=news
for user in "$bad" "$good"; do
	id -u "$user" >/dev/null 2>&1 || skip_all "there is no user $user"
	! pgrep -u "$user" >/dev/null || skip_all "user $user has processes"
done

daemon=
holder=
clients=()
clean()
{
	[ -z "$holder" ] || kill -9 "$holder" 2>/dev/null
	[ -z "$daemon" ] || kill -9 "$daemon" 2>/dev/null
	umount -l "$tmp/hung" 2>/dev/null
	rm -rf "$tmp"
}
trap clean EXIT

chmod 755 "$tmp"
mkdir -m 755 "$tmp/run" "$tmp/hung" "$tmp/own"
# It takes its time to be copied and hashed.
cp /bin/echo "$tmp/own/real"
truncate -s +16M "$tmp/own/real"
cp /usr/bin/basename "$tmp/own/forged"
cat >"$tmp/cluster" <<-END
	provider local
	timeout $((slow > 15 ? 60000 : 4000 * slow))
	node 0 gateway $tmp/run/n0 gw
	node 1 compute $tmp/run/n1 good
	node 2 compute $tmp/run/n2 bad
	node 3 compute $tmp/run/n3 bad3
	node 4 compute $tmp/run/n4 bad4
	node 5 compute $tmp/run/n5 bad5
	node 6 compute $tmp/run/n6 bad6
	node 7 compute $tmp/run/n7 bad7
END
cluster_keys "$tmp/cluster"
cat >"$tmp/policy" <<-END
	node good user $good
	$(printf 'node %s user '"$bad"' max-running 16\n' bad bad3 bad4 bad5 bad6)
	node bad7 user $bad max-running 1
	allow bad6 $tmp/own/tool sha256 $(sha256sum <"$tmp/own/real" | cut -d' ' -f1)
	allow * any
	limit bad processes 200
	limit bad files 100
	no-new-privs bad4
END
export RGATE_CLUSTER=$tmp/cluster

ready() { grep -q "is ready" "$tmp/log"; }
libc='import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
first = 248 if os.uname().machine == "x86_64" else 217
add_key, request_key, keyctl = first, first + 1, first + 2
'
# keyed COMMAND...: with a session keyring of its own, in which there is a key
keyed()
{
	exec python3 -I -S -c "$libc"'
libc.syscall(keyctl, 1, None)
libc.syscall(add_key, b"user", b"ringgate-hostile", b"x", ctypes.c_size_t(1), -3)
os.execvp(sys.argv[1], sys.argv[1:])' "$@"
}
# start ARGUMENT...: the daemon that runs them
start()
{
	: >"$tmp/log"
	keyed "$ringgated" -C "$tmp/cluster" -n gw -s "$tmp/run/s" --pool 16M --user nobody \
		--spawn "policy $tmp/policy" "$@" >"$tmp/log" 2>&1 &
	daemon=$!
	ok "the daemon${*:+, }$*" wait_for 20 ready
	spawner=$(pgrep -P "$daemon" -x ringgate-spawn)
}
# stop: it has said nothing that it should not
stop()
{
	run kill -0 "$spawner"
	is "the spawner is the same" "$rc" 0
	kill "$daemon"
	wait "$daemon"
	is "the daemon ends as it should" "$?" 0
	daemon=
	ok "and its processes" wait_for 20 none "$good"
	is "no complaints" "$(complaints "$tmp/log")" ""
}
start
head -c 1000000 /dev/urandom >"$tmp/data"
chmod 644 "$tmp/data"
sum=$(sha256sum <"$tmp/data")

# Soon: not after all those of somebody else's, whose starts take 10 s until they are given up
good() { RGATE_NODE=good run timeout $((30 * slow)) "$ringgate" spawn --cwd / "$@"; }
# Starts it, and leaves it alone: its id in out
bad() { RGATE_NODE=bad run "$ringgate" spawn --cwd / --detach "$@"; }
bad_ids() { RGATE_NODE=bad "$ringgate" ps --json | json '" ".join(str(p["id"]) for p in j)'; }
none() { ! pgrep -u "$1" >/dev/null; }
# What the bad one runs is there: named so by its first argument
there() { pgrep -u "$bad" -f -- "$1" >/dev/null; }

# others WHAT: a process of somebody else's is as ever
others()
{
	local i done=0

	for i in 1 2 3; do
		good -- /bin/echo "$i"
		[ "$rc/$out" != "0/$i" ] || done=$((done + 1))
	done
	is "$1: another user's processes start and end" "$done" 3
	good --stdin "$tmp/data" -- sha256sum
	is "$1: and their streams flow" "$rc/$out" "0/$sum"
}

# no_more WHAT: all that the bad one runs is killed, and gone
no_more() { ok "$1: nothing is left" wait_for 30 killed; }
killed()
{
	local id

	for id in $(bad_ids); do
		RGATE_NODE=bad run "$ringgate" kill -s KILL "$id"
	done
	none "$bad"
}

others "nothing"

attempts='import ctypes, os, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
got = []
def attempt(what, fn):
    try:
        if fn() != -1:
            got.append(what)
    except (OSError, ValueError):
        pass
'
# grasp look|all PID...: the bad one asks for all of that, and says what it got
grasp()
{
	RGATE_NODE=bad run "$ringgate" spawn --cwd / -- python3 -I -S -c "$attempts"'
for pid in map(int, sys.argv[2:]):
    # PTRACE_ATTACH, PTRACE_SEIZE
    attempt(f"trace {pid}", lambda: libc.ptrace(16, pid, 0, 0))
    attempt(f"seize {pid}", lambda: libc.ptrace(0x4206, pid, 0, 0))
    for name in ("mem", "environ", "maps", "auxv", "stack", "fd/3", "fd/0"):
        attempt(f"{name} of {pid}", lambda: os.open(f"/proc/{pid}/{name}", os.O_RDONLY))
    attempt(f"files of {pid}", lambda: os.listdir(f"/proc/{pid}/fd") and 0)
    attempt(f"memory of {pid}", lambda: os.close(libc.pidfd_getfd(os.pidfd_open(pid), 3, 0)))
    attempt(f"oom_score_adj of {pid}", lambda: os.open(f"/proc/{pid}/oom_score_adj", os.O_WRONLY))
    if sys.argv[1] == "look":
        continue
    for sig in (signal.SIGSTOP, signal.SIGKILL, signal.SIGTERM):
        attempt(f"signal {sig} to {pid}", lambda: os.kill(pid, sig))
    attempt(f"nice of {pid}", lambda: os.setpriority(os.PRIO_PROCESS, pid, 19))
    attempt(f"limits of {pid}", lambda: libc.prlimit(pid, 7, (ctypes.c_ulong * 2)(3, 3), None))
    # and what its parent is, which may be the spawner
attempt("parent", lambda: sys.argv[1] == "all" and os.kill(os.getppid(), signal.SIGSTOP) or -1)
print("got", *got)' "$@"
}

# Stops whatever it may, also what is about to become its own
bad -- python3 -I -S -c 'import os, signal, time
while True:
    try:
        os.kill(-1, signal.SIGSTOP)
    except ProcessLookupError:
        pass
    time.sleep(0.002)' stopper
is "stopper" "$rc" 0
ok "stopper: it runs" wait_for 20 there stopper
for _ in 1 2 3; do
	bad -- /bin/sleep 1000
done
others "stopper"
no_more "stopper"

# A directory of a file system that does not answer: more of them than would do one by one
python3 - "$tmp/hung" "$(id -u "$bad")" "$(id -g "$bad")" <<-'END' &
	import ctypes, os, sys, time
	fd = os.open("/dev/fuse", os.O_RDWR)
	libc = ctypes.CDLL(None, use_errno=True)
	how = f"fd={fd},rootmode=40000,user_id={sys.argv[2]},group_id={sys.argv[3]}"
	if libc.mount(b"hung", sys.argv[1].encode(), b"fuse", 6, how.encode()):
	    sys.exit(1)
	time.sleep(10000)
END
holder=$!
hung() { grep -q " $tmp/hung fuse" /proc/mounts; }
if wait_for 10 hung; then
	for node in bad3 bad4 bad5 bad6 bad7; do
		RGATE_NODE=$node "$ringgate" spawn --cwd "$tmp/hung" -- /bin/true \
			>/dev/null 2>&1 </dev/null &
		clients+=($!)
	done
	ok "hung directory: they wait" wait_for 20 pgrep -P "$spawner" -u "$bad"
	# They are copies of the spawner, and his by now; and what has the memory of one of them.
	mapfile -t starts < <(pgrep -P "$spawner" -u "$bad"; pgrep -P "$spawner" -x ringgate-keeper)
	grasp look "${starts[@]}"
	is "hung directory: nobody looks into what is about to become his" "$rc/$out" "0/got"
	others "hung directory"
	codes=
	for client in "${clients[@]}"; do
		wait "$client"
		codes+=" $?"
	done
	is "hung directory: they are given up" "$codes" " 255 255 255 255 255"
	is "... as the log says" \
		"$(grep 'not started: .*took too long' "$tmp/log" | grep -oE 'node bad[3-7]' | sort -u | wc -l)" \
		${#clients[@]}
	sed -n 's/.*not started: .*took too long/# &/p' "$tmp/log"
	no_more "hung directory"
else
	skip "hung directory" "no FUSE"
fi
kill -9 "$holder" 2>/dev/null
wait "$holder" 2>/dev/null
holder=

# A program that is known by its hash, in a directory of his, where another one takes its place all
# the time: what was hashed is what is run
chown -R "$bad": "$tmp/own"
bad -- python3 -I -S -c 'import os, sys
os.chdir(sys.argv[1])
while True:
    for name in ("forged", "real"):
        os.link(name, "next")
        os.rename("next", "tool")' "$tmp/own" swapper
is "swapper" "$rc" 0
ok "swapper: it runs" wait_for 20 test -e "$tmp/own/tool"
tally=
for _ in {1..200}; do
	RGATE_NODE=bad6 run "$ringgate" spawn --cwd / -- "$tmp/own/tool" /a/b
	case "$rc $out $err" in
	"0 /a/b ") tally+=r ;;
	"255  "*"tool: "*) tally+=n ;;
	*) tally+=f; echo "# $rc $out $err" ;;
	esac
	[[ $tally != *r*n*r*n*r*n* ]] || [ ${#tally} -lt 30 ] || break
done
is "swapper: the one that was hashed is run, or none ($tally)" \
	"$(fold -w 1 <<<"$tally" | sort -u | paste -sd ' ')" "n r"
no_more "swapper"

# Asked for while it may run, refused when its turn comes: the policy is another one by then
RGATE_NODE=bad7 run "$ringgate" spawn --cwd / --detach -- /bin/sleep 1000
is "turn: one runs, as many as may" "$rc" 0
RGATE_NODE=bad7 "$ringgate" spawn --cwd / -- /bin/echo ran >"$tmp/turn" 2>&1 </dev/null &
client=$!
status() { "$ringgate" cluster status -s "$tmp/run/s" --json | json "$1"; }
queued() { [ "$(status 'j["spawn"]["queued"]')" = "$1" ]; }
ok "turn: another one waits" wait_for 20 queued 1
cp "$tmp/policy" "$tmp/was"
sed -i 's,^allow \* any,allow bad7 /bin/sleep\nallow good any,' "$tmp/policy"
kill -HUP "$daemon"
reread() { [ "$(grep -c 'policy was read again' "$tmp/log")" = "$1" ]; }
ok "turn: the policy is read again" wait_for 10 reread 1
kill -9 "$(pgrep -u "$bad" -x sleep)"
wait $client
like "turn: it is not run any more" "$? $(<"$tmp/turn")" "^255 .*refused: "
others "turn"
cat "$tmp/was" >"$tmp/policy"
kill -HUP "$daemon"
ok "turn: and again" wait_for 10 reread 2
RGATE_NODE=bad7 run "$ringgate" spawn --cwd / -- /bin/echo ran
is "turn: what it is now is what holds" "$rc/$out" "0/ran"

# A set-user-ID program: what the system lets him have, unless the policy does not
cp /usr/bin/id "$tmp/suid"
chmod 4755 "$tmp/suid"
good -- "$tmp/suid" -u
if [ "$rc/$out" = 0/0 ]; then
	RGATE_NODE=bad4 run "$ringgate" spawn --cwd / -- "$tmp/suid" -u
	is "no-new-privs: a set-user-ID program is one of his" "$rc/$out" "0/$(id -u "$bad")"
else
	skip "no-new-privs" "no set-user-ID programs in $tmp"
fi

# The daemon's keys: whoever has its session keyring has them, whichever user he is
cat >"$tmp/seek" <<END
$libc
print(libc.syscall(request_key, b"user", b"ringgate-hostile", None, 0) > 0,
      libc.syscall(keyctl, 10, -3, b"user", b"ringgate-hostile", 0) > 0,
      "ringgate-hostile" in open("/proc/keys").read())
END
chmod 644 "$tmp/seek"
has=$(keyed setpriv --reuid "$bad" --clear-groups python3 -I -S "$tmp/seek")
if [ "$has" = "True True True" ]; then
	RGATE_NODE=bad run "$ringgate" spawn --cwd / -- python3 -I -S "$tmp/seek"
	is "the daemon's key is not to be had" "$rc/$out" "0/False False False"
else
	skip "the daemon's key" "no keys here"
fi

# As many processes as it may, which fork again when they are killed: without a group of their
# own they are found one by one
good -- cat /proc/self/cgroup
if [[ $out == */ringgate-spawn.* ]]; then
	bad -- python3 -I -S -c 'import os, time
while True:
    try:
        if os.fork() == 0:
            os.setsid()
    except OSError:
        time.sleep(0.2)' storm
	is "storm" "$rc" 0
	many() { [ "$(pgrep -c -u "$bad")" -ge 100 ]; }
	ok "storm: it runs" wait_for 60 many
	others "storm"
	no_more "storm"
else
	skip "storm" "needs control groups"
fi

# What belongs to others: the spawner, the daemon, another user's process
RGATE_NODE=good run "$ringgate" spawn --cwd / --detach -- /bin/sleep 1000
id=$out
victim=$(pgrep -u "$good" -x sleep)
RGATE_NODE=bad run "$ringgate" ps --json
is "another node's process is not listed" "$rc/$(grep -c "$id" <<<"$out")" "0/0"
RGATE_NODE=bad run "$ringgate" kill -s KILL "$id"
like "... not killed by its id" "$rc $err" "^1 .*no such process"
RGATE_NODE=bad run "$ringgate" spawn --attach "$id"
like "... and not taken over" "$rc $err" "^255 .*no such process"
grasp all "$spawner" "$daemon" "$victim"
is "others are not to be had" "$rc/$out" "0/got"
others "grasping"
run kill -0 "$victim"
is "grasping: its victim lives" "$rc" 0
kill -9 "$victim"

# Out of its group, its limits and its user; into the daemon, by its files and sockets
RGATE_NODE=bad run "$ringgate" spawn --cwd / -- python3 -I -S -c "$attempts"'
import glob, resource, socket
def write(path, text):
    fd = os.open(path, os.O_WRONLY)
    return os.write(fd, text)
own = [l[4:-1] for l in open("/proc/self/cgroup") if l.startswith("0::/")]
for at in [top + path for path in own for top in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified")]:
    while at.startswith("/sys/fs/cgroup"):
        for name in ("procs", "threads", "kill", "freeze", "subtree_control", "max.descendants"):
            attempt(f"{at}/cgroup.{name}", lambda: os.open(f"{at}/cgroup.{name}", os.O_WRONLY))
        for name in ("memory.max", "pids.max", "memory.oom.group"):
            attempt(f"{at}/{name}", lambda: os.open(f"{at}/{name}", os.O_WRONLY))
        attempt(f"mkdir in {at}", lambda: os.mkdir(at + "/mine"))
        at = os.path.dirname(at)
attempt("oom_score_adj", lambda: write("/proc/self/oom_score_adj", b"-1"))
attempt("more files", lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (101, 101)))
attempt("root", lambda: os.setresuid(0, 0, 0))
attempt("groups", lambda: os.setgroups([0]))
attempt("terminal", lambda: os.open("/dev/tty", os.O_RDWR))
run, spawner = sys.argv[1:]
for path in glob.glob(run + "/../*.key") + glob.glob(run + "/../*/*.key"):
    attempt(path, lambda: os.open(path, os.O_RDONLY))
paths = [p for p in glob.glob(run + "/*") if not os.path.isdir(p)]
for path in paths:
    for kind in (socket.SOCK_SEQPACKET, socket.SOCK_STREAM):
        attempt(f"connect to {path}", lambda: socket.socket(socket.AF_UNIX, kind).connect(path))
# Root in a user name space of its own has no more of all that.
if not libc.unshare(0x10000000):
    attempt("signal from a name space", lambda: os.kill(int(spawner), signal.SIGSTOP))
    for name in ("mnt", "cgroup", "user"):
        attempt(f"its {name}", lambda: libc.setns(os.open(f"/proc/{spawner}/ns/{name}", 0), 0))
    attempt("more files from there", lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (101, 101)))
    attempt("oom_score_adj from there", lambda: write("/proc/self/oom_score_adj", b"-1"))
print("tried", len(paths) > 0, "got", *got)' "$tmp/run" "$spawner"
is "it does not get out" "$rc/$out" "0/tried True got"

# A line of the log that is somebody else's
RGATE_NODE=bad run "$ringgate" spawn --cwd / -- /bin/echo 'x
ringgated: spawn 1-1: node good as root: forged'
is "an argument of two lines" "$rc" 0
is "is one line of the log" "$(grep -c '^ringgated: spawn 1-1:' "$tmp/log")" 0

# It does not hear that its time is over, as it has stopped itself
RGATE_NODE=bad run "$ringgate" spawn --cwd / --timeout 0.5 -- sh -c 'kill -STOP $$; sleep 1000'
is "stopped: its time" "$rc" 124
no_more "stopped"

# What is left behind holds the output, and will not hear
RGATE_NODE=bad "$ringgate" spawn --cwd / -- sh -c '
	setsid sh -c "trap \"\" TERM HUP INT; while :; do sleep 1000; done" leftover &
	exit 0' >/dev/null 2>&1 </dev/null &
client=$!
ok "leftover: it is there" wait_for 20 there leftover
others "leftover"
kill -9 $client
wait $client 2>/dev/null
no_more "leftover"

# More output than anybody takes
mkfifo "$tmp/fifo"
exec 9<>"$tmp/fifo"
RGATE_NODE=bad "$ringgate" spawn --cwd / -- cat /dev/zero >"$tmp/fifo" 2>/dev/null </dev/null &
client=$!
ok "flood: it runs" wait_for 20 there /dev/zero
others "flood"
kill -STOP $client
others "flood, of a client that stands still"
kill -9 $client
wait $client 2>/dev/null
no_more "flood"

# Says that it is traced: who has made it, the spawner, is told of each of its signals
traced='import ctypes, os, signal, sys, time
libc = ctypes.CDLL(None)
if os.fork() == 0:
    os.closerange(0, 3)
    time.sleep(1000)
libc.ptrace(0, 0, 0, 0)
os.kill(os.getpid(), signal.SIGCONT)
os.kill(os.getpid(), signal.SIGUSR1)'
# Children that are not its own, but of who has made it; one of them in a session of its own
siblings='import ctypes, os, time
libc = ctypes.CDLL(None)
for i in range(2):
    # clone(CLONE_PARENT | SIGCHLD)
    pid = libc.syscall({"x86_64": 56}.get(os.uname().machine, 220), 0x8011, 0, 0, 0, 0)
    if pid == 0:
        if i:
            os.setsid()
        os.closerange(0, 3)
        time.sleep(1000)'

# away: what tries to be nobody'"'"'s, with control groups and without
away()
{
	bad -- python3 -I -S -c "$traced" traced
	is "traced: it runs" "$rc" 0
	id=$out
	ok "traced: nothing is left" wait_for 20 none "$bad"
	# else who attaches would wait for its end
	ok "traced: not even by force" wait_for 20 killed
	RGATE_NODE=bad run timeout -k 1 10 "$ringgate" spawn --attach "$id"
	is "traced: it ended by its own signal" "$rc" 138
	others "traced"
	RGATE_NODE=bad run "$ringgate" spawn --cwd / -- python3 -I -S -c "$siblings" siblings
	is "siblings" "$rc" 0
	ok "siblings: none is left" wait_for 20 none "$bad"
	others "siblings"
}
away
stop
start --spawn "cgroup none"
away
stop
finish
