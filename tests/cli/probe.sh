#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# ringgate probe where there may be no RDMA device: arguments, the table of what
# needs none, JSON. With devices: tests/vm/cli_probe.sh.

# shellcheck source=tests/cli/lib/tap.sh
. "$(dirname "$0")/lib/tap.sh"

# bad REGEX ARGUMENT...: exit status 2, nothing on standard output
bad()
{
	local want=$1
	shift
	run "$ringgate" probe "$@"
	is "'$*': exit status 2, no output" "$rc/$out" "2/"
	like "'$*': says why" "$err" "$want"
}

bad "unrecognized option" --no-such-option
bad "'x' is one" x
bad "exclude each other" --list --mr-limit
bad "goes with --mr-limit" --max 5
bad "goes with --mr-limit" --size 4K
bad "goes with --mr-limit" --list --distinct
bad "table only" --list --memory malloc
bad "table only" --mr-limit --dir /tmp
bad "no --device" --list --device rxe0
bad "size" --mr-limit --size 0
bad "size" --mr-limit --size -4
bad "max" --mr-limit --max 0
bad "seconds" --mr-limit --seconds soon
bad "no kind of memory 'wool'" --memory wool

run "$ringgate" probe --device no_such_device
is "a device that is not there: exit status 1" "$rc/$out" "1/"
like "a device that is not there: is named" "$err" "no_such_device: .*\(E[A-Z]+\)"
run "$ringgate" probe --mr-limit --device no_such_device
is "--mr-limit of it: exit status 1" "$rc/$out" "1/"
like "--mr-limit of it: is named" "$err" "no_such_device: .*\(E[A-Z]+\)"
run "$ringgate" probe --dir /proc/no/such
is "a directory that is not there: exit status 1" "$rc/$out" "1/"
like "a directory that is not there: is named" "$err" "/proc/no/such: "

run "$ringgate" probe --list --json
is "--list: succeeds" "$rc" 0
devices=$(json 'len(j["devices"])' <<<"$out")
is "--list: as many devices as the system has ports" "$devices" \
	"$(find /sys/class/infiniband/*/ports/ -mindepth 1 -maxdepth 1 2>/dev/null | wc -l)"
run "$ringgate" probe --list
is "--list: a line for each, and a title" "$(wc -l <<<"$out")" $((devices + 1))

# The table, with files in a directory that has to be empty afterwards
mkdir "$tmp/dir"
before=$(ipcs -m | wc -l)
run env TMPDIR="$tmp/dir" "$ringgate" probe --json
is "the table: exit status 0" "$rc" 0
table=$out
is "the table: directory" "$(json 'j["directory"]' <<<"$table")" "$tmp/dir"
is "the table: file system" "$(json 'j["file_system"]' <<<"$table")" \
	"$(df --output=fstype "$tmp/dir" | tail -1)"
is "the table: no child died" "$(json \
	'[(m["name"], m["ended"]) for m in j["memory"] if m["ended"]]' <<<"$table")" "[]"
is "the table: what is always there" "$(json \
	'[m["name"] for m in j["memory"] if m["probed"] and m["name"] in
	("malloc", "posix_memalign", "anon-private", "anon-shared", "memfd",
	 "file-private", "file-shared", "file-readonly", "ring-memfd")]' <<<"$table")" \
	"['malloc', 'posix_memalign', 'anon-private', 'anon-shared', 'memfd', 'file-private', 'file-shared', 'file-readonly', 'ring-memfd']"
is "the table: what is not, with a reason" "$(json \
	'[m["name"] for m in j["memory"] if not m["probed"] and not (m["error"] and m["note"])]' \
	<<<"$table")" "[]"
is "the table: the kernel sees the same bytes" "$(json \
	'[m["name"] for m in j["memory"] if m["probed"] and "mmap" not in m["name"]
	and m["length"] and not m["name"].startswith(("cuda-", "udmabuf"))
	and (m["kernel"]["result"], m["kernel_copy"]["result"]) != ("ok", "ok")]' <<<"$table")" "[]"
is "the table: so does a second mapping" "$(json \
	'[m["cpu"]["result"] for m in j["memory"] if m["name"] in
	("anon-shared", "memfd", "file-shared", "file-readonly", "ring-memfd")]' <<<"$table")" \
	"['ok', 'ok', 'ok', 'ok', 'ok']"
is "the table: what failed is explained" "$(json \
	'[(m["name"], c) for m in j["memory"] for c in m if isinstance(m[c], dict)
	and m[c]["result"] not in ("ok", "-", "no device") and not m[c]["why"]]' <<<"$table")" "[]"
is "the table: ... and nothing else is" "$(json \
	'[(m["name"], c) for m in j["memory"] for c in m if isinstance(m[c], dict)
	and m[c]["result"] in ("ok", "-", "no device") and ("why" in m[c] or "said" in m[c])]' <<<"$table")" "[]"
if [ "$devices" = 0 ]; then
	is "the table: no device, and that is said" "$(json \
		'set(m[c]["result"] for m in j["memory"] for c in
		("local_write", "remote_read", "transfer", "on_demand")), j["device"], bool(j["device_why"])' \
		<<<"$table")" "({'no device'}, None, True)"
	run "$ringgate" probe --dir "$tmp/dir"
	is "the table as text: exit status 0" "$rc" 0
	like "the table as text: no device" "$out" "malloc +no device +ok +ok"
	run "$ringgate" probe --mr-limit
	is "--mr-limit without a device: exit status 1" "$rc/$out" "1/"
fi
is "no file is left" "$(ls -A "$tmp/dir")" ""
is "no shared memory is left" "$(ipcs -m | wc -l)" "$before"

run "$ringgate" probe --json --memory memfd
is "--memory: only this" "$(json '[m["name"] for m in j["memory"]]' <<<"$out")" "['memfd']"

# A file system on which the files cannot be made is a row, not the end
run "$ringgate" probe --json --dir /proc
is "files that cannot be made: exit status 0" "$rc" 0
is "files that cannot be made: told in their rows" "$(json \
	'[m["name"] for m in j["memory"] if m["name"].startswith("file-") and m["error"] and m["note"]]' \
	<<<"$out")" "['file-private', 'file-shared', 'file-readonly']"

# /proc knows no files without a name, so one with a name is tried. Who may not write there is
# told so of the directory.
by_name=True
[ "$(id -u)" = 0 ] || by_name=False
is "files that cannot be made: which were tried" "$(json \
	'set(m["note"].startswith("/proc/ringgate-probe.") for m in j["memory"]
	if m["name"].startswith("file-"))' <<<"$out")" "{$by_name}"

# A child that dies is a row. Files larger than allowed bring SIGXFSZ.
run bash -c 'set -o pipefail; (ulimit -f 8; exec "$@") | cat' sh "$ringgate" probe --json
is "children that die: exit status 0" "$rc" 0
is "children that die: told in their rows" "$(json \
	'[m["name"] for m in j["memory"] if (m["ended"] or "").startswith("SIGXFSZ while ")
	and not m["probed"]]' <<<"$out")" \
	"['memfd', 'tmpfs', 'file-private', 'file-shared', 'file-readonly', 'ring-memfd']"
is "children that die: the others go on" "$(json \
	'[m["name"] for m in j["memory"] if m["kernel"]["result"] == "ok"][:4]' <<<"$out")" \
	"['malloc', 'posix_memalign', 'anon-private', 'anon-shared']"

# Few descriptors: a kind that cannot be made is a row
run bash -c 'ulimit -n 8; exec "$@"' sh "$ringgate" probe --json
is "few descriptors: exit status 0" "$rc" 0

# Ctrl-C, again and again until the first one finds a handler: status 1, no table, and
# no child is left. Where the sender has no CPU, a run can be over before: then another one.
for _ in 1 2 3 4 5; do
	run python3 -c 'import signal, subprocess, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
p = subprocess.Popen(sys.argv[1:])
while p.poll() is None:
    p.send_signal(signal.SIGINT)
sys.exit(p.returncode)' "$ringgate" probe --dir "$tmp/dir"
	[ "$rc" = 0 ] || break
done
is "interrupted: exit status 1, no output" "$rc/$out" "1/"
is "interrupted: no child is left" "$(pgrep -f -- "--dir $tmp/dir")" ""

run "$ringgate" doctor --json
is "doctor: RDMA, memory and huge pages" "$(json \
	'[c["name"] for c in j["checks"] if c["name"] in ("RDMA", "RDMA memory", "huge pages")]' \
	<<<"$out")" "['RDMA', 'RDMA memory', 'huge pages']"
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	run prlimit --memlock=65536 setpriv --bounding-set=-ipc_lock \
		--inh-caps=-ipc_lock "$ringgate" doctor --json
	is "doctor: a small RLIMIT_MEMLOCK is told for regions" "$(json \
		'[(c["state"], bool(c["fix"])) for c in j["checks"] if c["name"] == "RDMA memory"]' \
		<<<"$out")" "[('warn', True)]"
else
	skip "doctor: a small RLIMIT_MEMLOCK is told for regions" "not root"
fi
finish
