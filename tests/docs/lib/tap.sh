# SPDX-License-Identifier: MIT OR GPL-2.0
# shellcheck shell=bash
# Sourced by the tests of this directory: a scratch directory and TAP lines.
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
n=0
failed=0
: >"$tmp/log"

ok() { # ok STATUS NAME; $tmp/log tells why
	n=$((n + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $n - $2"
	else
		failed=$((failed + 1))
		echo "not ok $n - $2"
		sed 's/^/# /' "$tmp/log" | head -20
	fi
}
