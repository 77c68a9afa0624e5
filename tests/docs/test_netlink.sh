#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# The netlink specification: form, and agreement with header and module. Then the
# same with faults put in, each of which has to be found.
set -u
here=$(cd "$(dirname "$0")" && pwd)
spec=$here/../../Documentation/netlink/specs/ringgate.yaml
. "$(dirname "$0")/lib/tap.sh"

finds() { # finds SED-SCRIPT NAME
	sed "$1" "$spec" >"$tmp/wrong.yaml"
	! cmp -s "$spec" "$tmp/wrong.yaml" &&
		! python3 "$here/check_netlink.py" "$tmp/wrong.yaml" >"$tmp/log" 2>&1
	ok $? "$2"
}

python3 "$here/check_netlink.py" >"$tmp/log" 2>&1
ok $? "the specification is that of header and module"
finds 's/^        name: slot-size$/        name: slots-size/' "a wrong attribute name"
finds 's/value: 4096/value: 4095/' "a wrong constant"
finds 's/entries: \[ monotonic, tai, realtime \]/entries: [ tai, monotonic, realtime ]/' \
	"a wrong order"
finds 's/type: s32/type: s31/' "an unknown type"
finds '0,/flags: \[ uns-admin-perm \]/{//d}' "a missing permission"
finds 's/attributes: \[ id, cookie, ring \]/attributes: [ id, cookie, rings ]/' \
	"an attribute that is not in the set"
finds '/subset-of: ring/,/name: cookie/s/name: cookie/name: cookies/' \
	"a subset of what is not there"
finds '/c-define-name: rgate-genl-mcgrp/{n;d}' "a group that anybody may join"
finds 's/c-define-name: .*/c-define-name: rgate-genl-name/' "a wrong group"

# What the module has of it is what the kernel's generator makes of it, where that is here.
same="the module's policies and commands are those that are generated"
"$here/../../scripts/ynl" --cached --check >"$tmp/log" 2>&1
status=$?
if [ $status = 3 ]; then
	n=$((n + 2))
	echo "ok $((n - 1)) - $same # SKIP no generator: scripts/linux-source fetches it, scripts/lint asks"
	echo "ok $n - ... and not those of another specification # SKIP likewise"
else
	ok $status "$same"
	sed 's/max: 100/max: 101/' "$spec" >"$tmp/wrong.yaml"
	! "$here/../../scripts/ynl" --cached --check "$tmp/wrong.yaml" >"$tmp/log" 2>&1 &&
		grep -q '^+.*RGATE_A_ATT_THREAD.*101' "$tmp/log"
	ok $? "... and not those of another specification"
fi

echo "1..$n"
[ "$failed" -eq 0 ]
