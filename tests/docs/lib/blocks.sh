# SPDX-License-Identifier: MIT OR GPL-2.0
# shellcheck shell=bash disable=SC2154 # variables are the caller's
# Sourced after tap.sh: blocks of the documents, to be compiled and run as they stand.

# block DOCUMENT SELECTOR...: what tests/docs/blocks.py prints
block()
{
	local document=$1
	shift
	python3 -I -S "$top/tests/docs/blocks.py" "$top/$document" "$@"
}

# As `make install` lays it out, for pkg-config: the headers and the library that was built
installed()
{
	local pc

	[ ! -d "$tmp/inst" ] || return 0
	mkdir -p "$tmp/inst/include/ringgate" "$tmp/inst/lib/pkgconfig"
	cp -r "$top"/lib/include/ringgate/. "$top"/uapi/ringgate/. "$tmp/inst/include/ringgate/"
	cp -P "$build"/lib/libringgate*.so* "$tmp/inst/lib/"
	for pc in "$build"/lib/*.pc; do
		sed "s,^prefix=.*,prefix=$tmp/inst,; s,^libdir=.*,libdir=$tmp/inst/lib,
			s,^includedir=.*,includedir=$tmp/inst/include," "$pc" \
			>"$tmp/inst/lib/pkgconfig/${pc##*/}"
	done
	export PKG_CONFIG_PATH=$tmp/inst/lib/pkgconfig LD_LIBRARY_PATH=$tmp/inst/lib
}

# cut_blocks NAME DOCUMENT SELECTOR...: the blocks into files, and their names into $flags
cut_blocks()
{
	local name=$1 document=$2 number=0 selector
	shift 2

	flags=()
	for selector; do
		number=$((number + 1))
		block "$document" "$selector" >"$tmp/$name.$number.inc" || return 1
		flags+=("-DBLOCK_$number=\"$tmp/$name.$number.inc\"")
	done
}

# build_blocks NAME DOCUMENT SELECTOR...: tests/docs/blocks/NAME.c around the blocks, as
# $tmp/NAME
build_blocks()
{
	local flags

	installed
	cut_blocks "$@" || return 1
	# shellcheck disable=SC2046 # words
	"${CC:-gcc}" -D_GNU_SOURCE -std=gnu11 -Wall -Wextra -Werror -O1 "${flags[@]}" -o "$tmp/$1" \
		"$top/tests/docs/blocks/$1.c" $(pkg-config --cflags --libs libringgate libringgate-cluster)
}
