# SPDX-License-Identifier: MIT OR GPL-2.0
# shellcheck shell=bash disable=SC2154 # variables are the caller's
# Values of JSON texts. To be sourced where $cli_dir and $tmp are set.

# json EXPRESSION <TEXT: value of a Python expression over the parsed object j. Behind json_served()
# by a process that is there already; else by one of its own, without what Python looks for on
# starting: that is half of its time.
json()
{
	local said rc=''

	if [ -z "${json_ask:-}" ]; then
		python3 -I -S "$cli_dir/lib/json_eval.py" "$1"
		return
	fi
	printf '%s\0%s\0' "$BASHPID" "$1" >&"$json_ask"
	IFS= read -r -d '' -u "$json_told" rc && IFS= read -r -d '' -u "$json_told" said || return 1
	[ "$rc" = 0 ] || { echo "$said" >&2; return 1; }
	printf '%s\n' "$said"
}

# json_served: from here on one process answers all of json(); where the CPU is emulated, starting
# one for each takes a second. It ends with this shell, and is nobody's to wait for.
json_served()
{
	mkfifo "$tmp/json.ask" "$tmp/json.told" || return
	python3 -I -S "$cli_dir/lib/json_eval.py" <"$tmp/json.ask" >"$tmp/json.told" &
	disown
	exec {json_ask}>"$tmp/json.ask" {json_told}<"$tmp/json.told"
}
