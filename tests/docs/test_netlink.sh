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

echo "1..$n"
[ "$failed" -eq 0 ]
