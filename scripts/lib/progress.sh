# SPDX-License-Identifier: MIT OR GPL-2.0
# shellcheck shell=bash disable=SC2154 # variables are the caller's
#
# What a long step says while it works: never a silent minute, and not a thousand lines
# either. To be sourced with this set:
#	me		name of the script

progress_next=0
# of apt-get
apt_options=()

say() { echo "$me: $*" >&2; }
die() { say "$*"; exit 1; }

# How far it is; to be called as often as that is known. On a terminal the line is written
# anew, elsewhere there is a new one every ten seconds.
progress()
{
	if [ -t 2 ]; then
		printf '\r\033[K%.*s' "$((${COLUMNS:-80} - 1))" "$me: $*" >&2
	elif [ "$SECONDS" -ge "$progress_next" ]; then
		[ "$progress_next" = 0 ] || say "$*"
		progress_next=$((SECONDS + 10))
	fi
}

progress_end() { [ ! -t 2 ] || printf '\r\033[K' >&2; }

# Runs apt-get with arguments $2... and says how far it is. What it prints goes to file $1.
apt_get()
{
	local log=$1 kind percent text
	shift

	apt-get "${apt_options[@]}" -q -o APT::Status-Fd=3 "$@" </dev/null 3>&1 >"$log" 2>&1 |
	{
		while IFS=: read -r kind _ percent text; do
			case $kind in
			dlstatus) progress "downloading, ${percent%.*} %" ;;
			pmstatus) progress "installing, ${percent%.*} %: $text" ;;
			esac
		done
		progress_end
	}
}
