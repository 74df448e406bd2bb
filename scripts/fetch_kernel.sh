#!/bin/sh
# Fetches a distribution's arm64 kernel for system emulation, and the modules that reach the firmware partition.
# Usage: scripts/fetch_kernel.sh. Quick where it is there already. No root, no foreign architecture in dpkg: apt works
# on a state of its own, with this host's sources, keys, proxies and pins, and checks every signature and hash.
#
#   COLIBRI_KERNEL_SOURCES=FILE    a sources list to use instead of the host's (a host whose sources have no arm64)
#   COLIBRI_KERNEL_PACKAGE=NAME    the meta package (default: linux-image-arm64 on Debian, linux-image-generic elsewhere)
#
# Result: CACHE/kernel-arm64/RELEASE/ with vmlinuz, *.ko and `modules` (their names in the order of loading), and
# CACHE/kernel-arm64/current -> RELEASE. CACHE is $COLIBRI_CACHE, else the user's cache folder + /colibri-build.
set -eu

# What a Linux needs beyond its built-in drivers: eMMC behind PCI, NVMe (U-Boot's disk), the image's file systems.
# crc32c_generic: libcrc32c asks for it by an alias that no `depends` line carries.
wanted="sdhci-pci mmc_block nvme crc32c_generic squashfs erofs"

cache=${COLIBRI_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/colibri-build}/kernel-arm64

fail() {
    echo "fetch_kernel: $1; try: $2" >&2
    exit 2
}

key=$(cksum <"$0")
if [ -f "$cache/current/modules" ] && [ "$(cat "$cache/current/.made-by" 2>/dev/null)" = "$key" ]; then
    exit 0
fi

for tool in apt-get apt-cache dpkg-deb; do
    command -v "$tool" >/dev/null ||
        fail "'$tool' is not here" "put vmlinuz, the modules and their list into $cache/current by hand (docs/system-emulation.md)"
done

mkdir -p "$cache"
work=$(mktemp -d "$cache/.work.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

mkdir -p "$work/state/lists/partial" "$work/archives/partial" "$work/root" "$work/new"
: >"$work/status"
# Read after the host's own configuration. Its hooks are for its own packages.
cat >"$work/apt.conf" <<EOF
APT::Architecture "arm64";
#clear APT::Architectures;
APT::Architectures { "arm64"; };
APT::Sandbox::User "$(id -un)";
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
Acquire::Languages "none";
Acquire::Retries "3";
Dir::State "$work/state";
Dir::State::status "$work/status";
Dir::Cache "$work";
Dir::Cache::archives "$work/archives";
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
EOF
if [ -n "${COLIBRI_KERNEL_SOURCES:-}" ]; then
    [ -f "$COLIBRI_KERNEL_SOURCES" ] || fail "COLIBRI_KERNEL_SOURCES=$COLIBRI_KERNEL_SOURCES is no file" "check the path"
    case $COLIBRI_KERNEL_SOURCES in *.sources) list=$work/host.sources ;; *) list=$work/host.list ;; esac
    cp "$COLIBRI_KERNEL_SOURCES" "$list"
    printf 'Dir::Etc::sourcelist "%s";\nDir::Etc::sourceparts "-";\n' "$list" >>"$work/apt.conf"
fi

echo "fetch_kernel: reading the package lists for arm64" >&2
# One of the host's sources may be out of reach or lack arm64; what counts is whether the kernel is found.
apt-get -c "$work/apt.conf" update -q >"$work/log" 2>&1 || true
packages=""
for meta in ${COLIBRI_KERNEL_PACKAGE:-linux-image-arm64 linux-image-generic}; do
    packages=$(apt-cache -c "$work/apt.conf" depends --recurse --no-recommends --no-suggests --no-conflicts \
        --no-breaks --no-replaces --no-enhances "$meta" 2>/dev/null |
        grep -E '^linux-(image|modules|modules-extra)-[0-9]' | grep -v unsigned | sort -u) || true
    [ -z "$packages" ] || break
done
if [ -z "$packages" ]; then
    tail -n 3 "$work/log" >&2
    fail "this host's apt sources offer no arm64 kernel" \
        "a sources list of a mirror that has arm64 in COLIBRI_KERNEL_SOURCES, or check the network (apt's words are above)"
fi

echo "fetch_kernel: fetching" $packages >&2
# shellcheck disable=SC2086 # one word a package
(cd "$work/archives" && apt-get -c "$work/apt.conf" download -q $packages) >"$work/log" 2>&1 || {
    tail -n 3 "$work/log" >&2
    fail "apt-get could not fetch" "check the network (apt's words are above), then again"
}
for package in "$work"/archives/*.deb; do
    dpkg-deb -x "$package" "$work/root"
done

# Since the merge of /lib into /usr/lib packages may use either.
set -- "$work"/root/lib/modules/*/kernel "$work"/root/usr/lib/modules/*/kernel
[ -d "$1" ] || shift
[ -d "${1:-}" ] || fail "the packages hold no modules" "another COLIBRI_KERNEL_PACKAGE"
modules=${1%/kernel}
release=${modules##*/}
find "$modules/kernel" -name '*.ko*' >"$work/all"

# The path of a module's file; `-` and `_` mean the same in module names. Nothing if there is none.
file_of() {
    pattern=$(printf '%s' "$1" | sed 's/[-_]/[-_]/g')
    grep -E "/$pattern\.ko(\.(xz|zst|gz))?\$" "$work/all" | head -n 1
}

unpacked() {
    case $1 in
    *.xz) xz -dc "$1" ;;
    *.zst) zstd -qdc "$1" ;;
    *.gz) gzip -dc "$1" ;;
    *) cat "$1" ;;
    esac
}

# Adds a module after those that its `depends=` names. What has no file is built in or not there.
add() {
    file=$(file_of "$1")
    [ -n "$file" ] || return 0
    base=${file##*/}
    base=${base%%.ko*}.ko
    [ ! -f "$work/new/$base" ] || return 0
    unpacked "$file" >"$work/new/$base"
    # A function of its own for each level would need local variables, which POSIX sh lacks: a subshell has them.
    for needed in $(tr '\0' '\n' <"$work/new/$base" | sed -n 's/^depends=//p' | tr ',' ' '); do
        (add "$needed")
    done
    echo "$base" >>"$work/new/modules"
}

: >"$work/new/modules"
for module in $wanted; do
    add "$module"
    [ -n "$(file_of "$module")" ] || grep -qE "/$(printf '%s' "$module" | sed 's/[-_]/[-_]/g')\.ko" "$modules/modules.builtin" ||
        echo "fetch_kernel: $release has no $module" >&2
done

set -- "$work"/root/boot/vmlinu[xz]-* "$modules"/vmlinuz
for image in "$@"; do
    [ ! -f "$image" ] || break
done
[ -f "$image" ] || fail "the packages hold no kernel image" "another COLIBRI_KERNEL_PACKAGE"
# A boot loader may not unpack it, and QEMU starts an unpacked one sooner.
if gzip -t "$image" 2>/dev/null; then
    gzip -dc "$image" >"$work/new/vmlinuz"
else
    cp "$image" "$work/new/vmlinuz"
fi
echo "$key" >"$work/new/.made-by"
chmod -R u+rwX,go+rX,go-w "$work/new"

rm -rf "${cache:?}/$release"
mv "$work/new" "$cache/$release"
ln -s "$release" "$work/current"
mv -T "$work/current" "$cache/current"
echo "fetch_kernel: Linux $release and $(wc -l <"$cache/$release/modules") modules are in $cache" >&2
