# SPDX-License-Identifier: MIT OR GPL-2.0
# shellcheck shell=bash disable=SC2154 # variables are the caller's
#
# A kernel of the lab that is built, not downloaded. To be sourced after apt.sh, with
# these set besides:
#	name		what "scripts/lab -k" calls it
#	fragment	what it has on top of allnoconfig
#	objects		lines that the build prints, about
# ARCH in the environment is the kernel's own variable.

# Modules are built against this directory later: it stays.
work=$cache/$name-build

need_tools()
{
	local tool

	for tool in gcc make flex bison bc dpkg-deb; do
		command -v $tool >/dev/null || die "$tool is missing: run scripts/deps debug"
	done
}

# What decides whether a kernel that is there can be used; $*: what else does
fingerprint()
{
	{ echo "$*"; cat "$fragment"; gcc --version | head -n 1; } | sha256sum | cut -d' ' -f1
}

is_built() { [ "$(cat "$cache/$name/fingerprint" 2>/dev/null)" = "$1" ]; }

# Package $1 of the suite in use
fetch_source()
{
	rm -rf "$work"
	mkdir -p "$work/build"
	unpack "$work" "$1"
	say "unpacking"
	mkdir "$work/source"
	tar -C "$work/source" --strip-components=1 -xf "$work/root/usr/src/$1.tar.xz"
	rm -rf "$work/root"
}

kmake()
{
	make -s -C "$work/source" O="$work/build" "$@"
}

configure()
{
	local line

	kmake allnoconfig >/dev/null 2>&1
	(cd "$work/source" &&
		./scripts/kconfig/merge_config.sh -m -O "$work/build" "$work/build/.config" \
			"$fragment") >"$work/merge.log"
	kmake olddefconfig >/dev/null
	# An option that is no more, or lacks what it depends on, must not go unseen.
	while read -r line; do
		case $line in
		''|\#*|*=n) continue ;;
		esac
		grep -qx -- "$line" "$work/build/.config" || die "the kernel did not take $line"
	done <"$fragment"
}

# Says now and then how far it is: an object is a line of output. $@: targets
build()
{
	local n=0

	say "building; about $objects objects"
	make -C "$work/source" O="$work/build" -j "${JOBS:-$(nproc)}" "$@" 2>&1 |
	tee "$work/build.log" | while read -r _; do
		n=$((n + 1))
		progress "$n objects, $((SECONDS / 60)) minutes"
	done || { tail -n 20 "$work/build.log" >&2; die "the build failed"; }
}

# What is booted, $1, below $work/build, and the modules; $2: fingerprint
install_kernel()
{
	local version dir

	version=$(kmake kernelrelease)
	dir=$cache/$version
	rm -rf "${dir:?}"
	mkdir -p "$dir"
	kmake INSTALL_MOD_PATH="$dir/root" modules_install >"$work/install.log"
	cp "$work/build/$1" "$dir/vmlinux"
	ln -sfn "../$name-build/build" "$dir/headers"
	ln -sfn "$work/build" "$dir/root/lib/modules/$version/build"
	echo "$2" >"$dir/fingerprint"
	touch "$dir/complete"
	ln -sfn "$version" "$cache/$name"
	say "built $version"
}
