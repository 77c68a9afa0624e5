# SPDX-License-Identifier: MIT OR GPL-2.0
# shellcheck shell=bash disable=SC2034,SC2154 # set for, and by, those who source it
#
# A capture through the module, to be sourced behind tap.sh.

# begin N ARGUMENT...: in the background, until there are N attachments
begin()
{
	local n=$1
	shift
	"$ringgate" capture "$@" >"$tmp/cap.out" 2>"$tmp/cap.err" &
	pid=$!
	wait_for 20 attached "$n"
}

attached()
{
	[ "$("$ringgate" status --json | json 'len(j["attachments"])')" = "$1" ]
}

# end N: Ctrl-C when attachments have seen N frames; sets rc and err
end()
{
	wait_for 20 seen "$1"
	kill -INT "$pid"
	wait "$pid"
	rc=$?
	err=$(<"$tmp/cap.err")
}

seen()
{
	[ "$("$ringgate" status --json |
		json 'sum(a["stats"]["seen"] for a in j["attachments"])')" -ge "$1" ]
}

delivered()
{
	[ "$("$ringgate" status --json |
		json 'sum(a["stats"]["delivered"] for a in j["attachments"])')" -ge "$1" ]
}
