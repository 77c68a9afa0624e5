#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 180
# What `make install` installs, run by systemd: a service manager of its own, in a container of
# this VM, with the unit, the drop-in that ringgated(8) has for who runs processes, and a user who
# asks through another daemon. That the group is delegated, divided and given back.

# shellcheck disable=SC2317,SC2016 # functions that wait_for and the trap call; $ for another shell
# shellcheck source=tests/cli/lib/tap.sh
. "$(dirname "$0")/../cli/lib/tap.sh"

# A limit of memory is hit.
echo "# allow-dmesg: invoked oom-killer|Call Trace|Memory cgroup out of memory"
[ "${LAB:-}" = vm ] || skip_all "changes what a machine has installed: in a VM only"
[[ $(uname -r) != *debug* ]] || skip_all "is the same on a kernel that is not for debugging"
[ -x /lib/systemd/systemd ] || skip_all "there is no systemd"
staged=$build/staged
[ -d "$staged" ] || skip_all "nothing is staged: make vm-programs"
user=games runs_as=news group=/sys/fs/cgroup/ringgate-systemd
for name in "$user" "$runs_as"; do
	id -u $name >/dev/null 2>&1 || skip_all "there is no user $name"
done

inner=
container=
clean()
{
	[ -z "$inner" ] || kill -9 "$inner" 2>/dev/null
	[ -z "$container" ] || wait "$container" 2>/dev/null
	find "$group" -depth -type d -exec rmdir {} + 2>/dev/null
	rm -rf "$tmp"
}
trap clean EXIT

# What an administrator writes. It is /etc/ringgate there; the second daemon is in the place of
# another machine, with all that it has elsewhere.
chmod 755 "$tmp"
mkdir -m 755 "$tmp/etc" "$tmp/units"
cat >"$tmp/etc/cluster.conf" <<-END
	provider local
	timeout $((4000 * slow))
	node 0 gateway /run/fabric/n0 gw
	node 1 compute /run/fabric/n1 one
END
cluster_keys "$tmp/etc/cluster.conf"
policy()
{
	cat >"$tmp/etc/spawn.conf" <<-END
		node one user $runs_as
		allow one $1
		limit one memory 48M processes 24
		need-cgroup *
	END
}
policy any
printf 'node gw\nspawn policy /etc/ringgate/spawn.conf\n' >"$tmp/etc/ringgated.conf"
cat >"$tmp/etc/one.conf" <<-END
	node one
	socket /run/one/ringgated.sock
	requests socket /run/one/request.sock
	requests policy /etc/ringgate/requests.conf
END
echo "allow user:$user spawn" >"$tmp/etc/requests.conf"
drop_in=$tmp/units/ringgated.service.d/spawn.conf
mkdir "$tmp/units/ringgated.service.d" "$tmp/units/sysinit.target.wants"
sed -n '/^\[Service\]/,/^\.Ed/p' "$top/Documentation/man/ringgated.8" | sed '$d' >"$drop_in"
unit=$staged/usr/local/lib/systemd/system/ringgated.service
sed 's,^ExecStart=.*,& -c /etc/ringgate/one.conf,; s,^RuntimeDirectory=.*,RuntimeDirectory=one fabric,' \
	"$unit" >"$tmp/units/one.service"
# Of what this machine's systemd starts: the journal, and nothing else
ln -s /lib/systemd/system/systemd-journald.service "$tmp/units/sysinit.target.wants/"

cat >"$tmp/boot" <<END
set -e
until [ -e "$tmp/alone" ]; do sleep 0.1; done
mount --make-rprivate /
umount -l /sys/fs/cgroup
mount -o remount,bind,ro /sys
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t proc proc /proc
mount -t tmpfs -o mode=755 run /run
mkdir /run/lock /run/staged
mount --bind "$staged/usr/local" /run/staged
mkdir -p /etc/ringgate
mount --bind "$tmp/etc" /etc/ringgate
mount --bind "$tmp/units" /etc/systemd/system
for dir in system/{sysinit,local-fs,sockets,timers}.target.wants system-generators; do
	mount -t tmpfs -o mode=755 none "/lib/systemd/\$dir"
done
mount -t tmpfs -o mode=755 none /usr/local
cp -r /run/staged/. /usr/local
exec env -i container=lab PATH="$PATH" /lib/systemd/systemd --unit=basic.target
END
echo "+memory +pids" >/sys/fs/cgroup/cgroup.subtree_control
mkdir "$group"
(echo "$BASHPID" >"$group/cgroup.procs" &&
	exec unshare -m -p -C -u -i --fork --kill-child bash "$tmp/boot") >"$tmp/log" 2>&1 </dev/null &
container=$!
# Who waits for the first process is in its group, too, and would keep controllers from it.
wait_for 20 pgrep -P "$container"
echo "$container" >/sys/fs/cgroup/cgroup.procs
: >"$tmp/alone"
booted() { inner=$(pgrep -P "$container") && [ -S "/proc/$inner/root/run/systemd/private" ]; }
# in_it COMMAND...: as root, there; as_user: as somebody without rights
in_it() { run nsenter -t "$inner" -m -p -C "$@"; }
as_user() { in_it setpriv --reuid $user --clear-groups env RGATE_REQUESTS=/run/one/request.sock "$@"; }
spawn() { as_user ringgate spawn --cwd / "$@"; }
wait_for 60 booted
result $? "systemd is there"
[ "$failures" = 0 ] || { sed 's/^/# /' "$tmp/log"; finish; }

# The unit says that it is started when the daemon says that it is ready.
in_it systemctl start ringgated one
is "systemctl start" "$rc/$err" "0/"
[ "$rc" = 0 ] || { in_it journalctl --no-pager -n 40; sed 's/^/# /' <<<"$out"; finish; }
works() { spawn true; [ "$rc" = 0 ]; }
wait_for 20 works
result $? "a user without rights runs something through the daemon"
[ "$failures" = 0 ] || { echo "# $err"; finish; }

# Delegation
in_it cat /sys/fs/cgroup/system.slice/ringgated.service/cgroup.subtree_control
like "controllers are switched on" "$out" "memory.*pids"
in_it cat /sys/fs/cgroup/system.slice/ringgated.service/cgroup.procs
is "nothing is in the delegated group itself" "$rc/$out" "0/"
in_it sh -c 'cat /proc/$(systemctl show -P MainPID ringgated)/cgroup; wc -l <$1' - \
	/sys/fs/cgroup/system.slice/ringgated.service/ringgate-daemon/cgroup.procs
like "the daemon and its spawner are in a leaf" "$out" "0::/system.slice/ringgated.service/ringgate-daemon.*[2-9]$"
spawn -- sh -c 'at=$(cut -d: -f3 /proc/self/cgroup); echo $at; id -un; cat /sys/fs/cgroup$at/memory.max \
	/sys/fs/cgroup$at/memory.swap.max /sys/fs/cgroup$at/pids.max'
# shellcheck disable=SC2086 # words
like "what runs is in a group of its own, with its limits" "$(echo $out)" \
	"^/system.slice/ringgated.service/ringgate-spawn\.[0-9]+/[0-9]+ $runs_as 50331648 (0 )?24$"
spawn --json -- tail /dev/zero
is "who takes more memory is killed" "$rc/$(json 'j["signal"], j["out_of_memory"], j["no_cgroup"]' <<<"$out")" "137/(9, True, False)"
# Twice, side by side: a limit of the user's would be one for both.
crowd='n=0; while [ $n -lt '
for n in 1 2; do
	spawn --detach -- sh -c "${crowd}20 ]; do sleep 1000 >/dev/null 2>&1 & n=\$((n + 1)); done; wait"
	is "20 processes, the $n. time" "$rc" 0
done
sleepers() { [ "$(pgrep -c -x -u $runs_as sleep)" = "$1" ]; }
ok "... which run" wait_for 20 sleepers 40
spawn -- sh -c "${crowd}40 ]; do sleep 1000 >/dev/null 2>&1 & n=\$((n + 1)); done; wait"
like "but not 40 of one" "$rc $err" "^2 .*[Ff]ork"
ok "of which none is left" wait_for 20 sleepers 40

# restart, reload, a death, and the end
none() { ! pgrep -u $runs_as; }
in_it systemctl restart ringgated
is "systemctl restart" "$rc" 0
is "... what ran is gone" "$(pgrep -c -u $runs_as)" 0
in_it sh -c 'ls -d /sys/fs/cgroup/system.slice/ringgated.service/ringgate-spawn.*'
is "... and its groups" "$(wc -l <<<"$out")" 1
ok "... and more is run" wait_for 20 works
policy "/bin/false"
in_it systemctl reload ringgated
is "systemctl reload" "$rc" 0
refused() { spawn true; [ "$rc" = 255 ] && grep -q "refused" <<<"$err"; }
ok "... the policy is another one" wait_for 20 refused
policy any
in_it systemctl reload ringgated
ok "... and the first one again" wait_for 20 works
spawn --detach sleep 1000
ok "something runs" wait_for 10 sleepers 1
in_it systemctl kill -s KILL --kill-who=main ringgated
ok "a daemon that was killed leaves nothing that runs" wait_for 20 none
ok "... and is started anew by itself" wait_for 30 works
spawn --detach sleep 1000
ok "something runs" wait_for 10 sleepers 1
in_it systemctl stop ringgated
is "systemctl stop" "$rc" 0
in_it sh -c 'pgrep -c -u "$1"; systemctl show -P Result ringgated
	ls /sys/fs/cgroup/system.slice/ringgated.service /run/ringgate 2>&1 | grep -vc "No such"' - $runs_as
is "... leaves no process, group or socket behind" "$out" "0
success
0"

# Where the group is not delegated there are no controllers, and the policy asks for them.
sed -i '/^Delegate=/d' "$drop_in"
in_it systemctl daemon-reload
in_it systemctl start ringgated
is "without Delegate=yes" "$rc" 0
needs() { spawn true; grep -q "its limits need control groups" <<<"$err"; }
ok "... need-cgroup refuses" wait_for 20 needs
in_it systemctl stop ringgated one
is "the end" "$rc" 0
in_it journalctl --no-pager -o cat -u ringgated -u one
is "no complaints" "$(complaints "$tmp/out")" ""
finish
