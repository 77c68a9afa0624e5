# SPDX-License-Identifier: MIT OR GPL-2.0
# shellcheck shell=bash disable=SC2154,SC2034 # variables are the caller's, and for the caller
# Sourced after tap.sh and blocks.sh: daemons with what a quick start shows, and users who ask them.

# shellcheck source=tests/cli/lib/keys.sh
. "$top/tests/cli/lib/keys.sh"
# shellcheck source=tests/cli/lib/wait.sh
. "$top/tests/cli/lib/wait.sh"

daemons=()
trap '{ kill -9 "${daemons[@]}"; wait; } 2>/dev/null; rm -rf "$tmp"' EXIT
chmod 755 "$tmp"

# Who alice is: a user without rights where this is root's, and who is not alice. Else the daemons'
# own user, whom they refuse nothing.
as=() user=$(id -un) other=()
if [ "$(id -u)" = 0 ]; then
	user=nobody
	as=(setpriv --reuid nobody --clear-groups) other=(setpriv --reuid daemon --clear-groups)
fi

# ok_if_root STATUS NAME: what is refused, which this user cannot see
ok_if_root()
{
	if [ ${#other[@]} = 0 ]; then
		ok 0 "$2 # SKIP not root's: its own user the daemon refuses nothing"
	else
		ok "$1" "$2"
	fi
}

# example NAME...: copies that such users can run
example()
{
	local name

	for name; do
		cp "$build/examples/$name" "$tmp/$name"
	done
}

cluster_of_two "$tmp/cluster"

# daemon NODE: ringgated there with the lines of $tmp/NODE.lines; it listens for requests at $tmp/NODE.r
daemon()
{
	cat - "$tmp/$1.lines" >"$tmp/$1.conf" <<-END
		cluster $tmp/cluster
		node $1
		socket $tmp/$1.s
		pool 16M
		requests socket $tmp/$1.r
	END
	"$build/tools/ringgated" -c "$tmp/$1.conf" >"$tmp/log" 2>&1 &
	daemons+=($!)
	wait_for 20 "$build/tools/ringgate" cluster status -s "$tmp/$1.s"
}
