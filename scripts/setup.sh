#!/bin/sh
# Installs what a target of the Makefile needs: Debian packages (with sudo where not root) and .venv; for the tests also
# a kernel for system emulation (scripts/fetch_kernel.sh).
# Usage: scripts/setup.sh demo|test|oracle|bench. Quick when nothing is missing.
set -eu
cd "$(dirname "$0")/.."

fail() {
    echo "setup: $1; try: $2" >&2
    exit 2
}

goal=${1:-demo}
demo_packages="gcc libc6-dev binutils gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static"
test_packages="clang lld llvm chromium qemu-user qemu-system-arm u-boot-qemu genimage mtools dosfstools squashfs-tools bmap-tools fdisk gdisk picocom tio"
case $goal in
demo) packages=$demo_packages extras="" ;;
test) packages="$demo_packages $test_packages" extras="[dev]" ;;
oracle) packages="$demo_packages $test_packages" extras="[dev,oracle]" ;;
bench) packages="$demo_packages $test_packages cmake make g++ g++-aarch64-linux-gnu" extras="[dev,bench]" ;;
*)
    fail "unknown goal '$goal'" "demo, test, oracle or bench"
    ;;
esac

stamp=.venv/.setup-$goal
key=$(
    cat pyproject.toml scripts/setup.sh | cksum
    pwd # .venv names its own place: a checkout that was moved is set up again
)

# The first Python that is new enough.
find_python() {
    for candidate in "${PYTHON:-}" python3 python3.14 python3.13 python3.12 python3.11; do
        [ -n "$candidate" ] || continue
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    fail "no Python 3.11 or newer found" "install python3.11 and python3.11-venv, or set PYTHON=..."
}

missing_packages() {
    for package in $packages; do
        dpkg-query -W -f='${Status}\n' "$package" 2>/dev/null | grep -q 'ok installed' || printf ' %s' "$package"
    done
}

install_packages() {
    if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
        for tool in aarch64-linux-gnu-gcc qemu-aarch64-static; do
            command -v "$tool" >/dev/null ||
                fail "apt is not here and '$tool' is missing" "install your system's packages for: $packages"
        done
        return 0
    fi
    missing=$(missing_packages)
    [ -n "$missing" ] || return 0
    sudo=""
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || fail "not root and no sudo" "as root: apt-get install$missing"
        sudo="sudo"
    fi
    echo "setup: installing$missing" >&2
    # An old list of packages may do, so only the installation has to work.
    $sudo apt-get update -q >/dev/null || true
    # shellcheck disable=SC2086 # one word a package
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing >/dev/null ||
        fail "apt-get could not install$missing" "check the network and apt's sources, then make again"
}

make_venv() {
    [ -x .venv/bin/pip ] && return 0
    if ! "$python" -m venv .venv 2>/dev/null; then
        rm -rf .venv
        packages="python3-venv"
        install_packages
        "$python" -m venv .venv
    fi
}

# The packages of an extra, for their files alone, in a folder of .venv of the same name, where no import finds them.
install_files() {
    names=$(.venv/bin/python -c 'import sys, tomllib
with open("pyproject.toml", "rb") as file:
    print(*tomllib.load(file)["project"]["optional-dependencies"][sys.argv[1]])' "$1")
    # shellcheck disable=SC2086 # one word a package
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade --target ".venv/$1" $names ||
        fail "pip could not install the $1 ($names)" "check the network (pip's messages are above), then make again"
}

fetch_kernel() {
    [ "$goal" = demo ] || scripts/fetch_kernel.sh
}

if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$key" ] && [ -z "$(command -v dpkg-query >/dev/null && missing_packages)" ]; then
    fetch_kernel
    exit 0
fi
python=$(find_python)
install_packages
make_venv
echo "setup: installing the Python package$extras into .venv" >&2
.venv/bin/python -m pip install --quiet --disable-pip-version-check -e ".$extras" ||
    fail "pip could not install the package and what it needs" "check the network (pip's messages are above), then make again"
[ "$goal" = demo ] || install_files vocabularies
case $goal in oracle | bench) install_files models ;; esac
echo "$key" >"$stamp"
fetch_kernel
