#!/bin/sh
# Runs a command on a machine that is this one as it was, and whose own it is what it
# writes: the system's packages can be removed and installed there.
#   unshare --mount --pid --fork --kill-child sh machine.sh DIR FILES COMMAND ...
# DIR is an empty directory, FILES one that is the same, and read-only, there. This is the
# first process of its PID namespace: all of the machine ends with it. What was written is
# in memory, and goes with the last process.
set -eu
dir=$1 files=$2
shift 2
root=$dir/root

mount -t tmpfs -o mode=755 cellard-test "$dir"
mkdir "$dir/upper" "$dir/work" "$root"
mount -t overlay -o "lowerdir=/,upperdir=$dir/upper,workdir=$dir/work" cellard-test "$root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount --rbind /sys "$root/sys"
# Not this machine's own /run: by what is in there packages would restart its services.
mount -t tmpfs -o mode=755 cellard-test "$root/run"
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
chmod 755 "$root/usr/sbin/policy-rc.d"
# Nothing there outlives the machine.
echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/cellard-test"
# These may be links into /run, or mounted over what an overlay shows.
for name in hosts resolv.conf; do
	if [ -e "/etc/$name" ]; then
		rm -f "$root/etc/$name"
		cat "/etc/$name" >"$root/etc/$name"
	fi
done
mkdir -p "$root$files"
mount --bind "$files" "$root$files"
mount -o remount,bind,ro "$root$files"
# Not by exec: a shell reaps what is left to it.
chroot "$root" "$@"
