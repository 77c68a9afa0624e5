#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 300
# Wrong situations, and what is printed in each of them: the rows of messages.table.

# shellcheck source=tests/cli/lib/tap.sh
. "$(dirname "$0")/lib/tap.sh"
# shellcheck source=tests/cli/lib/messages.sh
. "$cli_dir/lib/messages.sh"

# For the rows: what must not hang
# shellcheck disable=SC2034
ringgate="timeout $((60 * slow)) $ringgate"
# shellcheck disable=SC2034
ringgated="timeout $((60 * slow)) $build/tools/ringgated"
unset RGATE_CLUSTER RGATE_NODE RGATE_SOCKET
chmod 755 "$tmp"
cat >"$tmp/cluster" <<-END
	provider local
	timeout 1000
	node 1 gateway $tmp/n1 gw
	node 2 compute $tmp/n2 two
	node 3 compute $tmp/n3 three
END
cluster_keys "$tmp/cluster"

# daemon ARGUMENT...: a ringgated, until the row is over
daemon()
{
	"$build/tools/ringgated" "$@" >"$tmp/daemon.log" 2>&1 &
	later="kill $!; wait $!"
	wait_for 10 test -S "$tmp/socket"
}

messages "$cli_dir/messages.table"
[ "$rows" -ge 40 ]
result $? "the table has 40 rows or more"

if command -v dkms >/dev/null; then
	run make -s -C "$top" dkms KVER=9.9.9-none
	like "make dkms without headers: what to install" "$err" \
		"^dkms: no headers of this kernel: apt-get install linux-headers-9.9.9-none"
else
	skip "make dkms without headers: what to install" "dkms is not installed"
fi
missing=
for c in $($ringgate --help | sed -n 's/^  \([a-z]*\)  .*/\1/p'); do
	[[ $ran == *" \$ringgate $c "* ]] || missing+=" $c"
done
is "every command has a row" "$missing" ""
[[ $ran == *' $ringgated '* ]]
result $? "so has ringgated"
finish
