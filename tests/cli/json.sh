#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# JSON that other programs can read, and the figures in it.

# shellcheck source=tests/cli/lib/tap.sh
. "$(dirname "$0")/lib/tap.sh"

run "$ringgate" status --json
loaded=$([ -e /sys/module/ringgate ] && echo True || echo False)
is "status: module" "$(json 'j["module"]["loaded"]' <<<"$out")" "$loaded"
is "status: version" "ringgate $(json 'j["version"]' <<<"$out")" \
	"$("$ringgate" --version)"
is "status: lists" "$(json 'type(j["rings"]), type(j["attachments"])' <<<"$out")" \
	"(<class 'list'>, <class 'list'>)"

run "$ringgate" doctor --json
is "doctor: states" \
	"$(json 'all(c["state"] in ("ok", "warn", "missing") for c in j["checks"])' <<<"$out")" \
	True
is "doctor: what is missing has a cure" \
	"$(json '[c["name"] for c in j["checks"] if c["state"] == "missing" and not c["fix"]]' <<<"$out")" \
	"[]"
usable=$(json 'j["module_usable"]' <<<"$out")
is "doctor: exit status agrees with the verdict" "$rc" \
	"$([ "$usable" = True ] && echo 0 || echo 1)"
text=$("$ringgate" doctor)
for name in kernel module CAP_NET_ADMIN CAP_NET_RAW \
	    CAP_IPC_LOCK RLIMIT_MEMLOCK NUMA RDMA CUDA libpcap; do
	like "doctor: a line for $name" "$text" \
		$'(^|\n)'"(ok|warn|missing) +$name +[^ ]"
done
run "$ringgate" doctor --userspace
is "doctor --userspace: memfd rings work everywhere" "$rc" 0

# The memory limit is seen: without the capability and with a small limit
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	run prlimit --memlock=65536 setpriv --bounding-set=-ipc_lock \
		--inh-caps=-ipc_lock "$ringgate" doctor --json
	is "doctor: a small RLIMIT_MEMLOCK is told" \
		"$(json '[c["state"] for c in j["checks"] if c["name"] == "RLIMIT_MEMLOCK"]' <<<"$out")" \
		"['warn']"
else
	skip "doctor: a small RLIMIT_MEMLOCK is told" "not root"
fi

run "$ringgate" probe --list --json
is "probe --list: a list, or why there is none" \
	"$(json 'type(j["devices"]) is list and (j["devices"] or j.get("error")) is not None' <<<"$out")" True
run "$ringgate" pool plan --peers 3 --buffers 5 --limit 100 --json
is "pool plan: figures agree" \
	"$(json '(j["regions"] == j["sizes"] * j["buffers"] * j["peers"] * j["directions"], j["headroom"] == j["limit"] - j["regions"], [(r["regions"] - j["limit"] <= 0) == r["fits"] for r in j["table"]] == [True] * 7)' <<<"$out")" \
	"(True, True, True)"
run "$ringgate" pool verify --local --size 4M --buffer 64K --json
is "pool verify: succeeds" "$rc" 0
is "pool verify: results" \
	"$(json 'all(c["result"] in ("ok", "failed", "skipped") and (c["failed"] > 0) == (c["result"] == "failed") for c in j["checks"])' <<<"$out")" True

run "$ringgate" bench --json --time 0.1 --size 64 --size 512
is "bench: succeeds" "$rc" 0
is "bench: sizes" "$(json '[r["size"] for r in j["rates"]]' <<<"$out")" "[64, 512]"
is "bench: frames moved" "$(json 'all(r["frames"] > 0 for r in j["rates"])' <<<"$out")" True
is "bench: rate is frames by time" \
	"$(json 'all(abs(r["frames_per_second"] * r["seconds"] / r["frames"] - 1) < 0.05 for r in j["rates"])' <<<"$out")" True
is "bench: percentiles are in order" \
	"$(json 'sorted(j["latency_ns"][k] for k in ("p50", "p90", "p99", "p99_9", "max")) == [j["latency_ns"][k] for k in ("p50", "p90", "p99", "p99_9", "max")] and j["latency_ns"]["samples"] > 0' <<<"$out")" True
finish
