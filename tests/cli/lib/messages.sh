# SPDX-License-Identifier: MIT OR GPL-2.0
# shellcheck shell=bash
#
# What is printed when something is wrong, from a table. A row is a paragraph:
#
#   # what is wrong
#   if:     a command; the row is skipped where it fails
#   do:     commands of bash that bring it about, in $tmp; $later is run at the end
#   run:    the command line; $ringgate and $ringgated are the programs
#   status: what it exits with
#   says:   all that it prints on standard error but argp's hint at --help; a * stands
#           for anything, and $tmp for the directory. One line: one cause, and what to type next.

# nobody COMMAND...: as a user without any rights
nobody()
{
	setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
}

# Standard input without argp's hint, which it breaks where it likes
row_said()
{
	local line

	while IFS= read -r line || [ -n "$line" ]; do
		case $line in
		'Try `'*|information.|'more information.'|'for more information.') ;;
		*) printf '%s\n' "$line" ;;
		esac
	done
}

# One row, in a shell of its own
row_run()
{
	local later=:

	cd "$tmp" || exit 99
	# shellcheck disable=SC2154 # set by messages()
	if [ -n "$row_if" ] && ! eval "$row_if" >/dev/null 2>&1; then
		exit 98
	fi
	# shellcheck disable=SC2154
	eval "$row_do" >"$tmp/do.out" 2>&1 || exit 97
	# shellcheck disable=SC2154
	(eval "$row_run") >"$tmp/row.out" 2>"$tmp/row.err" </dev/null
	echo $? >"$tmp/row.rc"
	eval "$later" >/dev/null 2>&1
	exit 0
}

row_check()
{
	local rc got

	[ -n "$row_run" ] || return 0
	(row_run)
	case $? in
	0) ;;
	98) skip "$row_name" "not here: $row_if"; return ;;
	*) result 1 "$row_name"; sed 's/^/# set-up: /' "$tmp/do.out"; return ;;
	esac
	rc=$(<"$tmp/row.rc")
	got=$(row_said <"$tmp/row.err")
	# shellcheck disable=SC2053 # a pattern
	if [[ $rc == $row_status ]] && [[ $got == ${row_says//\$tmp/$tmp} ]] && [[ $got != *$'\n'* ]]; then
		result 0 "$row_name"
	else
		result 1 "$row_name"
		printf '%s\n' "$row_run" "status $rc, wanted $row_status" "$got" "wanted: $row_says" |
			sed 's/^/# /'
	fi
}

# messages TABLE: all of its rows; rows: how many, ran: the commands' first words
messages()
{
	local line row_name='' row_if='' row_do='' row_run='' row_status='' row_says='' key
	rows=0 ran=' '

	while IFS= read -r line || [ -n "$line" ]; do
		case $line in
		'')
			row_check
			row_name='' row_if='' row_do='' row_run='' row_status='' row_says=''
			continue ;;
		'# '*)
			row_name=${line#\# }
			continue ;;
		esac
		key=${line%%:*}
		line=${line#*:}
		line=${line#"${line%%[![:space:]]*}"}
		case $key in
		if) row_if=$line ;;
		do) row_do+=$line$'\n' ;;
		run)
			row_run=$line
			rows=$((rows + 1))
			[[ $line =~ \$ringgated|\$ringgate\ [a-z]+ ]]
			ran+="${BASH_REMATCH[0]:-} " ;;
		status) row_status=$line ;;
		says) row_says=$line ;;
		*) echo "Bail out! $1: '$key' is no key of a row"; exit 1 ;;
		esac
	done < <(cat "$1"; echo)
}
