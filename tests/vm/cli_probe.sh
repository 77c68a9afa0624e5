#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 300
# ringgate probe with an RDMA device (Soft-RoCE over a veth) and the module. In the
# initial network namespace, where such devices work on every kernel.

# shellcheck source=tests/cli/lib/tap.sh
. "$(dirname "$0")/../cli/lib/tap.sh"

dev=rgprobe0
mnt=$tmp/ext4

cleanup()
{
	"$ringgate" unload >/dev/null 2>&1
	mountpoint -q "$mnt" && umount "$mnt"
	[ ! -e /sys/class/infiniband/"$dev" ] || timeout 30 rdma link del "$dev"
	[ ! -e /sys/class/net/rgp0 ] || ip link del rgp0
	[ -z "${huge:-}" ] || echo "$huge" >/proc/sys/vm/nr_hugepages
	rm -rf "$tmp"
}
trap cleanup EXIT

modprobe -q rdma_rxe || [ -e /sys/module/rdma_rxe ] || skip_all "no rdma_rxe here"
ip link add rgp0 mtu 4200 type veth peer name rgp1 mtu 4200
ip addr add 10.78.0.1/24 dev rgp0
ip link set rgp0 up
ip link set rgp1 up
rdma link add $dev type rxe netdev rgp0 || { echo "Bail out! no RDMA device"; exit 1; }
addressed()
{
	grep -q ffff:0a4e:0001 /sys/class/infiniband/"$dev"/ports/1/gids/*
}
wait_for 20 addressed
huge=$(</proc/sys/vm/nr_hugepages)
echo 8 >/proc/sys/vm/nr_hugepages 2>/dev/null
[ -e /sys/module/ringgate ] || "$ringgate" load --module "$RGATE_KO" >/dev/null
modprobe -q udmabuf
modprobe -q loop
modprobe -q ext4
mkdir "$mnt"
truncate -s 16M "$tmp/img"
mkfs.ext4 -q "$tmp/img" 2>/dev/null && mount -o loop "$tmp/img" "$mnt" 2>/dev/null
dir=$tmp
fs=$(df --output=fstype "$tmp" | tail -1)
if mountpoint -q "$mnt"; then
	dir=$mnt fs=ext4
fi

# mrs: memory regions of the device, of all processes
mrs()
{
	rdma resource show $dev | sed -n 's/.* mr \([0-9]*\).*/\1/p'
}

mrs_before=$(mrs)

# --list
run "$ringgate" probe --list --json
is "--list: the device" "$(json \
	'[(d["name"], d["port"], d["active"], d["address"], d["netdev"], d["driver"],
	d["atomic"], d["max_mr"] > 1000) for d in j["devices"] if d["name"] == "'$dev'"]' \
	<<<"$out")" \
	"[('$dev', 1, True, '10.78.0.1', 'rgp0', 'rdma_rxe', 'hca', True)]"
run "$ringgate" probe --list
like "--list: a line" "$out" "$dev +1 +active +rgp0 +10\.78\.0\.1 +::ffff:10\.78\.0\.1 +RoCEv2"

# The table
run "$ringgate" probe --device $dev --dir "$dir" --json
is "the table: exit status 0" "$rc" 0
table=$out
is "the table: of this device" "$(json 'j["device"]["name"]' <<<"$table")" "$dev"
is "the table: file system" "$(json 'j["file_system"]' <<<"$table")" "$fs"
is "the table: no child died" "$(json \
	'[(m["name"], m["ended"]) for m in j["memory"] if m["ended"]]' <<<"$table")" "[]"
# In the order of the table; a kind that this kernel cannot make is left out
plain="malloc posix_memalign anon-private anon-shared thp hugetlb-2M sysv-shm memfd
	memfd-hugetlb tmpfs file-private ring-memfd ring-module"
for kind in $plain; do
	row=$(json "[[m[c]['result'] for c in ('local_write', 'remote_read', 'remote_write',
		'remote_atomic', 'relaxed_ordering', 'read_only', 'transfer', 'kernel',
		'kernel_copy', 'cpu')] for m in j['memory'] if m['name'] == '$kind'
		and m['probed']]" <<<"$table")
	if [ "$row" = "[]" ]; then
		skip "$kind: registers, transfers, is seen" "$(json "[m['note'] for m in
			j['memory'] if m['name'] == '$kind'][0]" <<<"$table")"
	else
		is "$kind: registers, transfers, is seen" "$row" \
			"[['ok', 'ok', 'ok', 'ok', 'ok', 'ok', 'ok', 'ok', 'ok', 'ok']]"
	fi
done
is "most kinds were probed" "$(json \
	'len([m for m in j["memory"] if m["probed"]]) >= 10' <<<"$table")" True

# results KIND COLUMN...
results()
{
	local kind=$1 c columns=
	shift
	for c; do
		columns+="'$c', "
	done
	json "[m[c]['result'] for m in j['memory'] if m['name'] == '$kind'
		for c in ($columns)]" <<<"$table"
}

# Kernels before 6.2 pin for writing whatever is asked for
IFS=.- read -r major minor _ <<<"$(uname -r)"
if [ $((major * 100 + minor)) -ge 602 ]; then
	ro=ok ro_transfer=ok
else
	ro=EFAULT ro_transfer=-
fi
is "file-readonly: only read-only, and not on old kernels" \
	"$(results file-readonly local_write remote_read remote_write remote_atomic \
		relaxed_ordering read_only transfer kernel kernel_copy cpu)" \
	"['EFAULT', 'EFAULT', 'EFAULT', 'EFAULT', 'EFAULT', '$ro', '$ro_transfer', 'ok', 'ok', 'ok']"
like "file-readonly: says what to do" "$(json '[m["local_write"]["why"] for m in j["memory"]
	if m["name"] == "file-readonly"]' <<<"$table")" "RGATE_ACCESS_READONLY"
if [ "$fs" != ext4 ]; then
	skip "file-shared on ext4" "no loop device or ext4 here"
elif [ $((major * 100 + minor)) -ge 612 ]; then
	is "file-shared on ext4: is refused for writing" \
		"$(results file-shared local_write remote_write read_only transfer cpu)" \
		"['EFAULT', 'EFAULT', 'ok', 'ok', 'ok']"
else
	is "file-shared on ext4: works on old kernels" \
		"$(results file-shared local_write remote_write read_only transfer cpu)" \
		"['ok', 'ok', 'ok', 'ok', 'ok']"
fi
if [ -e /dev/udmabuf ]; then
	# Its mappings had pages before they were of page frames only.
	pinned="['EFAULT', 'EFAULT', 'EFAULT', '-', 'EFAULT', 'ok', 'ok']"
	[ $((major * 100 + minor)) -ge 612 ] || pinned="['ok', 'ok', 'ok', 'ok', 'ok', 'ok', 'ok']"
	is "udmabuf-mmap: can be pinned on old kernels, copied on all" \
		"$(results udmabuf-mmap local_write remote_write read_only transfer kernel \
			kernel_copy cpu)" "$pinned"
	is "udmabuf-dmabuf: Soft-RoCE cannot" \
		"$(results udmabuf-dmabuf local_write remote_write transfer)" \
		"['EOPNOTSUPP', 'EOPNOTSUPP', '-']"
else
	skip "udmabuf" "not in this kernel"
fi
is "on demand: not offered, or refused" "$(json 'all(m["on_demand"]["result"] in
	("-", "EOPNOTSUPP") for m in j["memory"])' <<<"$table")" True
is "the table: no region is left" "$(mrs)" "$mrs_before"
is "the table: no ring is left" "$("$ringgate" status --json | json 'j["rings"]')" "[]"

# Not even 64 KiB may be locked: rows that failed, with what mends it
run prlimit --memlock=32768 setpriv --bounding-set=-ipc_lock --inh-caps=-ipc_lock \
	"$ringgate" probe --device $dev --memory malloc
is "a small RLIMIT_MEMLOCK: exit status 0" "$rc" 0
like "a small RLIMIT_MEMLOCK: ENOBUFS and what to do" "$out" \
	"malloc +ENOBUFS +ENOBUFS.*RLIMIT_MEMLOCK is too small"
run prlimit --memlock=32768 setpriv --bounding-set=-ipc_lock --inh-caps=-ipc_lock \
	"$ringgate" probe --device $dev --mr-limit
is "a small RLIMIT_MEMLOCK: --mr-limit fails" "$rc/$out" "1/"
like "a small RLIMIT_MEMLOCK: --mr-limit says what to do" "$err" "ulimit -l"

# --mr-limit
run env RGATE_MAX_MR=100 "$ringgate" probe --mr-limit --device $dev --json
is "RGATE_MAX_MR=100: exit status 0" "$rc" 0
is "RGATE_MAX_MR=100: 100 are found, all are taken back" "$(json \
	'[j[k] for k in ("registered", "stopped_by", "limit_found", "error", "set_limit",
	"size", "deregistered", "left")]' <<<"$out")" \
	"[100, 'limit', True, 'ENOSPC', 100, 524288, 100, 0]"
is "RGATE_MAX_MR=100: times are in order" "$(json \
	'all(0 < j[k]["min"] <= j[k]["median"] <= j[k]["p99"] <= j[k]["max"]
	for k in ("register_us", "deregister_us"))' <<<"$out")" True
run env RGATE_MAX_MR=100 "$ringgate" probe --mr-limit --device $dev
like "RGATE_MAX_MR=100: as text" "$out" "100 regions of 512.0 KiB.*limit found: 100, set"
run "$ringgate" probe --mr-limit --device $dev --max 2000 --size 4K --json
is "--max: stops there" "$(json \
	'[j[k] for k in ("registered", "stopped_by", "limit_found", "deregistered", "left")]' \
	<<<"$out")" "[2000, 'max', False, 2000, 0]"
is "--max: the kernel's memory for a region is told" "$(json \
	'200 < j["slab_bytes_per_region"] < 20000' <<<"$out")" True
run "$ringgate" probe --mr-limit --device $dev --seconds 0.5 --size 4K --json
is "--seconds: stops in time" "$(json \
	'j["stopped_by"], 0.5 <= j["seconds"] < 5, j["registered"] > 10, j["left"]' <<<"$out")" \
	"('time', True, True, 0)"
run "$ringgate" probe --mr-limit --device $dev --size 128M --distinct --json
is "--distinct: stops before memory runs out" "$(json \
	'j["stopped_by"], j["registered"] > 0, j["left"]' <<<"$out")" "('memory', True, 0)"
run "$ringgate" probe --mr-limit --device $dev --size 64000M
is "a region larger than memory: exit status 1" "$rc/$out" "1/"
like "a region larger than memory: says so" "$err" "smaller --size"
is "--mr-limit: no region is left" "$(mrs)" "$mrs_before"

# Ctrl-C while it registers
many()
{
	[ "$(mrs)" -gt $((mrs_before + 500)) ]
}
"$ringgate" probe --mr-limit --device $dev --size 4K --seconds 100 --json \
	>"$tmp/limit" 2>"$tmp/limit.err" &
pid=$!
wait_for 60 many
result $? "interrupted: regions are there before"
kill -INT $pid
wait $pid
is "interrupted: exit status 1" $? 1
is "interrupted: all are taken back" "$(json '[j["stopped_by"], j["registered"] > 500,
	j["registered"] == j["deregistered"], j["left"]]' <"$tmp/limit")" \
	"['signal', True, True, 0]"
is "interrupted: no region is left in the kernel" "$(mrs)" "$mrs_before"

run "$ringgate" doctor --json
is "doctor: device, verbs and address" "$(json \
	'[(c["name"], c["state"]) for c in j["checks"] if c["name"] in
	("RDMA", "RDMA verbs", "RDMA address")]' <<<"$out")" \
	"[('RDMA', 'ok'), ('RDMA verbs', 'ok'), ('RDMA address', 'ok')]"
ip addr del 10.78.0.1/24 dev rgp0
run "$ringgate" doctor --json
is "doctor: an address is missing" "$(json \
	'[(c["state"], "ip addr add" in c["fix"]) for c in j["checks"] if c["name"] == "RDMA address"]' \
	<<<"$out")" "[('warn', True)]"
finish
