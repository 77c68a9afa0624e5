# SPDX-License-Identifier: MIT OR GPL-2.0
# shellcheck shell=bash

# cpu_spent FILE: sets $cpu to the seconds of CPU that what has ended in this shell took. FILE is of
# no further use: times(1) in a pipe would be of another shell, without children.
cpu_spent()
{
	local clock=()

	times >"$1"
	# of the shell itself first, then of its children, user's and system's, each as in 1m2.345s
	mapfile -t clock < <(tail -n 1 "$1" | grep -oE '[0-9]+m[0-9]+')
	rm -f "$1"
	# shellcheck disable=SC2034 # the caller's
	cpu=$((${clock[0]%m*} * 60 + 10#${clock[0]#*m} + ${clock[1]%m*} * 60 + 10#${clock[1]#*m}))
}
