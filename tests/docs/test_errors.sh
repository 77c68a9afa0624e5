#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# What the public headers say that functions return, rgate_strerror() has words for.
set -u
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
build=${RGATE_BUILD:-$top/build}
. "$here/lib/tap.sh"

# told HEADER...: what errors.py has to say
told()
{
	(cd "$top" && python3 "$here/errors.py" "$build/lib/libringgate.so.0" "$@") 2>"$tmp/count"
}

told lib/include/ringgate/*.h -- lib/base/strerror*.c >"$tmp/log"
[ ! -s "$tmp/log" ]
ok $? "each documented error of each function has words of that call, and each row a function"
read -r functions _ errors _ <"$tmp/count"
[ "${functions:-0}" -ge 300 ] && [ "${errors:-0}" -ge 500 ]
ok $? "... of $functions functions, $errors errors"

# What it would find
cat >"$tmp/new.h" <<-'END'
	/*
	 * rgate_new_open - what nobody has described yet
	 * -EXDEV: no words at all; -ENOSPC: none but those of all calls; -EINVAL; -EWHATEVER
	 */
	RGATE_API int rgate_new_open(void);

	RGATE_API void rgate_new_close(void);

	/* rgate_ring_new - as rgate_new_open() */
	RGATE_API int
	rgate_ring_new(void);
END
printf '\t{ "rgate_knew_", EINVAL, false, "" },\n' >"$tmp/rows.c"
told "$tmp/new.h" -- "$tmp/rows.c" | sort >"$tmp/log"
diff - "$tmp/log" >"$tmp/diff" <<-END
	$tmp/rows.c: no function is, or begins with, rgate_knew_
	rgate_new_open: no words for -EXDEV
	rgate_new_open: no words of its own for -ENOSPC
	rgate_new_open: there is no error EWHATEVER
	rgate_ring_new: no words for -EXDEV
	rgate_ring_new: no words of its own for -ENOSPC
	rgate_ring_new: there is no error EWHATEVER
END
result=$?
cp "$tmp/diff" "$tmp/log"
ok $result "a function without words for what it returns is found, and words without a function"
echo "1..$n"
[ $failed = 0 ]
