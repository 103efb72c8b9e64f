# Turns the Debian root in $1 into a guest image: $1/.bob/{root.erofs,initrd,vmlinuz,release,versions,modules,
# host_key.pub}.
#
# mmdebstrap runs this text as its customize hook (sh -c), as root or as root of a user namespace; it must not depend
# on any other file of the host, because in a namespace those may not be readable. It works with the host's mkfs.erofs
# and cpio, and is told what the recipe says by environment variables (bob.image.build):
#   BOB_PACKAGES BOB_INITRAMFS_MODULES BOB_BOOT_MODULES BOB_KEEP_MODULES BOB_REMOVE   words, separated by blanks
# $1/.bob already holds the recipe's files and ssh_key.pub.
set -eu

root=$1
work=$root/.bob
umask 022
echo "I: packing kernel modules, initramfs and root file system..." >&2 # a step that bob shows
for release in "$root"/lib/modules/*; do release=${release##*/}; done
modules=lib/modules/$release/kernel
printf '%s\n' "$release" >"$work/release"
chroot "$root" dpkg-query -W -f '${Package} ${Version}\n' $BOB_PACKAGES "linux-image-$release" >"$work/versions"
cp "$root/boot/vmlinuz-$release" "$work/vmlinuz"

# Modules: keep what the recipe names, not compressed (a guest under emulation would unpack it at each boot), then index
# again, and list all there are, those that are built in too.
mkdir "$work/kernel"
for path in $BOB_KEEP_MODULES; do
    for module in "$root/$modules/$path" "$root/$modules/$path".xz; do
        [ -e "$module" ] || continue
        mkdir -p "$work/kernel/$(dirname "$path")"
        mv "$module" "$work/kernel/$(dirname "$path")"
    done
done
rm -rf "${root:?}/$modules"
mv "$work/kernel" "$root/$modules"
chroot "$root" python3 - "/$modules" <<'END'
import lzma, pathlib, sys

for path in pathlib.Path(sys.argv[1]).rglob("*.ko.xz"):
    path.with_suffix("").write_bytes(lzma.decompress(path.read_bytes()))
    path.unlink()
END
chroot "$root" depmod "$release"
(cd "$root/lib/modules/$release" && find kernel -name '*.ko' && cat modules.builtin) >"$work/modules"

# The guest's own files.
install -D -m 755 "$work/init" "$root/usr/lib/bob/init"
printf '%s\n' "$BOB_BOOT_MODULES" >"$root/usr/lib/bob/modules"
install -m 644 "$work/fstab" "$root/etc/fstab"
install -m 644 "$work/sshd_config" "$root/etc/ssh/sshd_config"
install -d -m 700 "$root/root/.ssh"
install -m 600 "$work/ssh_key.pub" "$root/root/.ssh/authorized_keys"
[ -e "$root/etc/ssh/ssh_host_ed25519_key" ] ||
    chroot "$root" ssh-keygen -q -t ed25519 -N '' -f /etc/ssh/ssh_host_ed25519_key
cp "$root/etc/ssh/ssh_host_ed25519_key.pub" "$work/host_key.pub"
echo bob >"$root/etc/hostname"
echo '127.0.0.1 localhost bob' >"$root/etc/hosts"
: >"$root/etc/resolv.conf"
ln -sf ../proc/self/mounts "$root/etc/mtab" # mkfs.nilfs2 reads it
chroot "$root" usermod --shell /bin/sh root # dash starts faster than bash

# The initramfs: a static busybox, the modules in order of dependency, one script.
initramfs=$work/initramfs
mkdir -p "$initramfs/bin" "$initramfs/dev" "$initramfs/proc" "$initramfs/sys" "$initramfs/lower" "$initramfs/upper" \
    "$initramfs/root" "$initramfs/modules"
cp "$root/bin/busybox" "$initramfs/bin/busybox"
for applet in sh mount insmod mkdir sleep switch_root; do ln -s busybox "$initramfs/bin/$applet"; done
install -m 755 "$work/initramfs-init" "$initramfs/init"
for module in $BOB_INITRAMFS_MODULES; do
    chroot "$root" modprobe --set-version "$release" --show-depends "$module"
done >"$work/initramfs-modules" # a module that is not there ends the build
while read -r kind path _; do
    [ "$kind" = insmod ] || continue
    name=${path##*/}
    [ -e "$initramfs/modules/$name" ] && continue
    cp "$root/$path" "$initramfs/modules/$name"
    echo "/modules/$name" >>"$initramfs/modules.list"
done <"$work/initramfs-modules"
# Not compressed: unpacking 3 MB costs a guest under emulation more than reading them.
(cd "$initramfs" && find . | LC_ALL=C sort | cpio --quiet -o -H newc -R 0:0) >"$work/initrd"

# Last, what no one reads; the patterns are meant to expand.
cd "$root"
for pattern in $BOB_REMOVE; do
    case $pattern in /* | *..*) echo "bad pattern $pattern" >&2; exit 1 ;; esac
    rm -rf ./$pattern
done
mkdir -p var/cache/apt var/lib/apt/lists var/log

