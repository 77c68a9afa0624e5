#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# The GPU's library is loaded when asked for: what is said where it is not there, is not
# what it should be, or has no GPU; and figures where there is one.

# shellcheck source=tests/cli/lib/tap.sh
. "$(dirname "$0")/lib/tap.sh"

lib=libringgate-gpu.so.0
check='[(c["state"], c["text"]) for c in j["checks"] if c["name"] == "GPU consumer"][0]'

is "the program is not linked with CUDA" \
	"$(ldd "$ringgate" | grep -ci -e cuda -e ringgate-gpu)" 0

if ldconfig -p | grep -q "$lib"; then
	skip "bench gpu: not installed" "it is"
	skip "doctor: not installed" "it is"
else
	run env -u LD_LIBRARY_PATH "$ringgate" bench gpu
	is "bench gpu: not installed: exit status 1, no output" "$rc/$out" "1/"
	like "bench gpu: not installed: says so" "$err" "$lib is not installed"
	run env -u LD_LIBRARY_PATH "$ringgate" doctor --json
	like "doctor: not installed" "$(json "$check" <<<"$out")" "'warn', '$lib is not installed"
	run env -u LD_LIBRARY_PATH "$ringgate" doctor
	like "doctor: how it comes to be" "$out" "make gpu && make install, where nvcc is"
fi

# Something else under its name
mkdir "$tmp/other" "$tmp/broken"
cp "$(ldconfig -p | awk '$1 == "libmnl.so.0" { print $NF; exit }')" "$tmp/other/$lib"
echo "no library" >"$tmp/broken/$lib"
run env LD_LIBRARY_PATH="$tmp/other" "$ringgate" bench gpu --json
is "bench gpu: another library: exit status 1, no output" "$rc/$out" "1/"
like "bench gpu: another library: says so" "$err" "no rgate_gpu_open: of another version"
run env LD_LIBRARY_PATH="$tmp/broken" "$ringgate" bench gpu
is "bench gpu: a broken library: exit status 1, no output" "$rc/$out" "1/"
like "bench gpu: a broken library: says so" "$err" "(invalid ELF header|file too short)"
run env LD_LIBRARY_PATH="$tmp/other" "$ringgate" doctor --json
like "doctor: another library" "$(json "$check" <<<"$out")" "'warn', .*of another version"

if [ ! -e "$build/lib/$lib" ]; then
	skip "with the library" "it was not built: no nvcc"
	finish
fi
export LD_LIBRARY_PATH=$build/lib
run "$ringgate" doctor --json
state=$(json "$check" <<<"$out")
run "$ringgate" bench gpu --json --time 0.1 --rings 2 --size 64 --size 1500
if [[ $state == "('ok'"* ]]; then
	is "bench gpu: succeeds" "$rc" 0
	is "bench gpu: sizes" "$(json '[r["size"] for r in j["rates"]]' <<<"$out")" "[64, 1500]"
	is "bench gpu: frames were taken, over a link that is no faster than it is" \
		"$(json 'all(r["frames_per_second"] > 0 and 0 < r["share"] < 1.05 for r in j["rates"])' <<<"$out")" True
	run "$ringgate" bench gpu --time 0.1 --size 64 --device 99
	is "bench gpu: no such device" "$rc/$out" "1/"
	like "bench gpu: no such device: says so" "$err" "no CUDA device 99"
else
	like "doctor: the library, and no GPU" "$state" "'warn', 'libringgate-gpu is there"
	is "bench gpu: no GPU: exit status 1, no output" "$rc/$out" "1/"
	like "bench gpu: no GPU: says so" "$err" "bench gpu: .*[Dd]river"
fi
finish
