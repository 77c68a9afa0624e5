#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# The rules that the API keeps to: tests/docs/api.py has them, and what is exempt and why.
set -u
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
. "$here/lib/tap.sh"

mapfile -t sources < <(cd "$top" && find lib tools -name '*.[ch]')
(cd "$top" && python3 "$here/api.py" lib/include/ringgate/*.h -- "${sources[@]}") >"$tmp/log" 2>"$tmp/count"
[ ! -s "$tmp/log" ]
ok $? "structures can grow, verbs go together, what ends an object returns nothing, one prefix"
read -r structs functions <"$tmp/count"
[ "${structs:-0}" -ge 60 ] && [ "${functions:-0}" -ge 250 ]
ok $? "... of $structs structures and $functions functions"

# What it would find
cat >"$tmp/new.h" <<-'END'
	struct rgate_new_opts {
		uint32_t sz;	/* size_t sz; */
	};
	struct rgate_new_info {
		size_t sz;
	};
	RGATE_API int rgate_new_open(void);
	RGATE_API int rgate_new_close(void);
	RGATE_API int rgate_old_create(void);
	RGATE_API void rgate_old_close(void);
	/* RGATE_API int rgate_not_create(void); */
END
echo 'char *x = secure_getenv("RINGGATE_NEW") ?: getenv("RGATE_NEW");' >"$tmp/new.c"
python3 "$here/api.py" "$tmp/new.h" -- "$tmp/new.c" >"$tmp/got" 2>/dev/null
diff - "$tmp/got" >"$tmp/log" <<-END
	$tmp/new.h: struct rgate_new_opts can not grow: neither sz nor a reserve
	rgate_old_close: nothing makes what it ends
	rgate_old_create: nothing ends what it makes
	rgate_new_close: returns int
	$tmp/new.c: environment RINGGATE_NEW
END
ok $? "what does not keep to them is found"
echo "1..$n"
[ $failed = 0 ]
