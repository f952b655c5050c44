#!/bin/sh
# Makes what the tests in a virtual machine boot: setup-guest.sh
# Prints the directory that it lies in (.cache/guest of the checkout):
#   vmlinuz               the kernel of Debian's cloud images
#   modules/NN-NAME.ko    its modules for disk and vsock, in the order to load them
#   root.ext4             a root with Debian's python3-ipykernel, a shell, and no init
#   vhost-device-vsock    the host's side of vsock, for a host without /dev/vhost-vsock
# QEMU is installed where it is missing. A second run does nothing. It takes root and
# Debian on amd64, and cargo for vhost-device-vsock: some 4 minutes, most of them Rust's.
set -eu
umask 022

here=$(cd "$(dirname "$0")" && pwd)
vsock_version=0.3.0
packages='python3-ipykernel bash coreutils dash procps'
# Each where the kernel has it as a module.
modules='virtio_ring virtio virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci virtio_blk ext4
vsock vmw_vsock_virtio_transport_common vmw_vsock_virtio_transport vsock_loopback'

say() { echo "setup-guest: $*" >&2; }

cache=$(dirname "$here")/.cache
guest=$cache/guest
mkdir -p "$cache"
exec 9>"$guest.lock" # two runs at once make one guest
flock 9

exec 3>&1 >&2 # whatever a program prints, the path alone is the answer
stamp=$(cksum <"$0")
command -v qemu-system-x86_64 >/dev/null && command -v cpio >/dev/null && command -v mke2fs >/dev/null ||
	"$here/install.sh" qemu-system-x86 cpio e2fsprogs
if [ "$(cat "$guest/stamp" 2>/dev/null)" = "$stamp" ]; then
	echo "$guest" >&3
	exit
fi

[ "$(id -u)" = 0 ] && [ "$(dpkg --print-architecture 2>/dev/null)" = amd64 ] && . /etc/os-release && [ "$ID" = debian ] || {
	say "the guest is made of Debian's packages, by root, on Debian amd64: run it there once (the tests themselves need no root)"
	exit 1
}
command -v cargo >/dev/null || {
	say "cargo is missing, to build vhost-device-vsock $vsock_version: install Rust (rustup.rs; 1.85 or newer)"
	exit 1
}

rm -rf "$guest" "$guest.new"
new=$guest.new
mkdir -p "$new/apt" "$new/debs/partial" "$new/root" "$new/modules"
trap 'rm -rf "$new"' EXIT

say "building vhost-device-vsock $vsock_version"
cargo install -q --locked --no-track --root "$new/cargo" --target-dir "$new/target" --version "$vsock_version" vhost-device-vsock >&2
mv "$new/cargo/bin/vhost-device-vsock" "$new/"

# apt finds what the packages need on a machine that has none; nothing is installed.
say "fetching Debian's packages"
: >"$new/apt/status"
apt() { apt-get -q -o Dir::State::status="$new/apt/status" -o Dir::Cache::archives="$new/debs" -o APT::Sandbox::User=root "$@" </dev/null; }
{ apt-get -q -o DPkg::Lock::Timeout=600 update || [ -n "$(apt-cache -q policy linux-image-cloud-amd64)" ]; } >&2
apt install -y --no-install-recommends --download-only $packages >&2
kernel=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/.*Depends: \(linux-image-[^ ]*\).*/\1/p' | head -n 1)
mkdir "$new/kernel"
(cd "$new/kernel" && apt download "$kernel" && dpkg-deb -x ./*.deb .) >&2
cp "$new"/kernel/boot/vmlinuz-* "$new/vmlinuz"
n=10
for m in $modules; do
	file=$(find "$new/kernel" -name "$m.ko" -o -name "$m.ko.xz")
	[ -n "$file" ] || continue # built in
	case $file in
	*.xz) xz -dc "$file" ;;
	*) cat "$file" ;;
	esac >"$new/modules/$n-$m.ko"
	n=$((n + 1))
done

say "making its root"
root=$new/root
for d in bin sbin lib lib64; do # merged, as packages expect
	mkdir -p "$root/usr/$d"
	ln -s "usr/$d" "$root/$d"
done
for d in "$new"/debs/*.deb; do
	dpkg-deb --fsys-tarfile "$d" | tar -x -C "$root" --keep-directory-symlink
done
for f in passwd group; do
	sed 's/:\*:/:x:/' "/usr/share/base-passwd/$f.master" >"$root/etc/$f"
done
# The user that the agent runs cells as.
echo 'cellard:x:990:990::/home/cellard:/bin/bash' >>"$root/etc/passwd"
echo 'cellard:x:990:' >>"$root/etc/group"
install -d -o 990 -g 990 "$root/home/cellard" "$root/workspace"
echo '127.0.0.1 localhost' >"$root/etc/hosts"
ldconfig -r "$root"
chroot "$root" /usr/bin/python3 -m compileall -q /usr/lib/python3 /usr/lib/python3.[0-9]* >/dev/null 2>&1 || true # some packages carry files of another Python
rm -rf "$root"/usr/share/doc "$root"/usr/share/man "$root"/usr/share/locale
size=$(($(du -sm "$root" | cut -f 1) * 5 / 4 + 256))
mke2fs -q -t ext4 -d "$root" "$new/root.ext4" "${size}M"

rm -rf "$root" "$new/apt" "$new/debs" "$new/kernel" "$new/cargo" "$new/target"
echo "$stamp" >"$new/stamp"
mv "$new" "$guest"
trap - EXIT
echo "$guest" >&3
