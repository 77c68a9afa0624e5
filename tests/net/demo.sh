#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 150
# The demonstration's cluster without RDMA: all that was sent is there, as it was sent.

# shellcheck source=tests/cli/lib/tap.sh
. "$(dirname "$0")/../cli/lib/tap.sh"

[ -x "$build/tests/demo/demo_recv" ] || skip_all "make demo-programs"
run env O="$build" "$top/scripts/demo" --local --json
is "scripts/demo --local: status 0" "$rc" 0
[ "$rc" = 0 ] || sed 's/^/# /' <<<"$err"
is "nothing is missing, and nothing was changed" "$(json 'j["wrong"]' <<<"$out")" "[]"
is "both nodes got their own, paced and fast" "$(json 'sorted({r["test"] for r in j["results"]
	if r.get("frames") and r["test"][-1] in "12"})' <<<"$out")" \
	"['local-udp-fast-1', 'local-udp-fast-2', 'local-udp-paced-1', 'local-udp-paced-2']"
finish
