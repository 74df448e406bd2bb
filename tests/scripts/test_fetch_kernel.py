"""scripts/fetch_kernel.sh with an apt of the test's own: what it keeps, in which order, and what it says when it cannot."""

from __future__ import annotations

import gzip
import lzma
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "fetch_kernel.sh"
RELEASE = "6.0.0-1-arm64"
# Module -> what its .modinfo says it depends on. `_` and `-` in names mean the same.
MODULES = {
    "drivers/mmc/host/sdhci-pci": "sdhci,cqhci",
    "drivers/mmc/host/sdhci": "",
    "drivers/mmc/host/cqhci": "",
    "drivers/nvme/host/nvme": "nvme-core",
    "drivers/nvme/host/nvme-core": "t10_pi",
    "block/t10-pi": "",
    "fs/squashfs/squashfs": "",
    "fs/erofs/erofs": "libcrc32c",
    "lib/libcrc32c": "",
    "net/unwanted": "",
}
APT_GET = """
echo "$@" >>"$LOG"
case " $* " in
*" download "*) touch linux-image.deb ;;
esac"""
APT_CACHE = (
    "echo linux-image-arm64; echo '  Depends: linux-image-6.0.0-1-arm64'; echo linux-image-6.0.0-1-arm64; echo kmod"
)


class Machine:
    """A cache folder, and a PATH in which a fake apt comes first."""

    def __init__(self, folder: Path) -> None:
        self.bin, self.cache, self.package = folder / "bin", folder / "a cache", folder / "package"
        self.log = folder / "log"
        self.bin.mkdir()
        self.program("apt-get", APT_GET)
        self.program("apt-cache", APT_CACHE)
        self.program("dpkg-deb", f'cp -r "{self.package}/." "$3"')
        self.fill(self.package)

    def program(self, name: str, body: str) -> None:
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        path.chmod(0o755)

    def fill(self, package: Path) -> None:
        (package / "boot").mkdir(parents=True)
        (package / "boot" / f"vmlinuz-{RELEASE}").write_bytes(gzip.compress(b"kernel"))
        folder = package / "lib" / "modules" / RELEASE
        for number, (name, needs) in enumerate(MODULES.items()):
            path = folder / "kernel" / f"{name}.ko"
            path.parent.mkdir(parents=True, exist_ok=True)
            content = b"\x7fELF\0license=GPL\0depends=" + needs.encode() + b"\0name=" + name.encode() + b"\0"
            if number % 2:
                path.with_suffix(".ko.xz").write_bytes(lzma.compress(content))
            else:
                path.write_bytes(content)
        (folder / "modules.builtin").write_text("kernel/drivers/mmc/core/mmc_block.ko\n", encoding="utf-8")

    def fetch(self, **environment: str) -> subprocess.CompletedProcess[str]:
        values = {"PATH": f"{self.bin}:/usr/bin:/bin", "COLIBRI_CACHE": str(self.cache), "LOG": str(self.log)}
        return subprocess.run([str(SCRIPT)], env={**values, **environment}, capture_output=True, text=True, cwd="/")

    @property
    def kept(self) -> Path:
        return self.cache / "kernel-arm64" / "current"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_every_module_comes_after_those_it_needs(machine: Machine) -> None:
    done = machine.fetch()
    assert done.returncode == 0, done.stderr
    names = (machine.kept / "modules").read_text(encoding="utf-8").split()
    assert names == [
        "sdhci.ko", "cqhci.ko", "sdhci-pci.ko", "t10-pi.ko", "nvme-core.ko", "nvme.ko",
        "squashfs.ko", "libcrc32c.ko", "erofs.ko",
    ]  # fmt: skip
    for name in names:
        assert (machine.kept / name).read_bytes().startswith(b"\x7fELF"), f"{name} is not unpacked"
    assert (machine.kept / "vmlinuz").read_bytes() == b"kernel", "a boot loader may not unpack it"
    assert machine.kept.resolve().name == RELEASE
    assert "no mmc_block" not in done.stderr, "it is built in"
    assert "no crc32c_generic" in done.stderr


def test_the_second_time_is_quick(machine: Machine) -> None:
    machine.fetch()
    machine.log.unlink()
    done = machine.fetch()
    assert (done.returncode, done.stderr) == (0, "")
    assert not machine.log.exists(), "apt was asked again"


def test_the_hosts_dpkg_learns_no_architecture(machine: Machine) -> None:
    machine.program("dpkg", "echo dpkg $@ >>$LOG")
    machine.fetch()
    calls = machine.log.read_text(encoding="utf-8").splitlines()
    assert calls and all(call.startswith("-c ") for call in calls), "apt was called without its own state"


def test_a_host_without_arm64_sources_is_told_what_to_do(machine: Machine) -> None:
    machine.program("apt-cache", "exit 100")
    machine.program("apt-get", "echo 'E: no network'; exit 100")
    done = machine.fetch()
    assert done.returncode == 2
    assert "E: no network" in done.stderr
    assert (
        "offer no arm64 kernel; try: a sources list of a mirror that has arm64 in COLIBRI_KERNEL_SOURCES" in done.stderr
    )
    assert list((machine.cache / "kernel-arm64").iterdir()) == [], "something half done was left behind"


def test_a_download_that_breaks_leaves_the_old_kernel(machine: Machine) -> None:
    machine.fetch()
    (machine.kept / ".made-by").write_text("an older script\n", encoding="utf-8")
    machine.program("apt-get", 'case " $* " in *" download "*) echo "E: Hash Sum mismatch"; exit 100 ;; esac')
    done = machine.fetch()
    assert done.returncode == 2 and "Hash Sum mismatch" in done.stderr
    assert (machine.kept / "vmlinuz").read_bytes() == b"kernel"
    assert sorted(path.name for path in (machine.cache / "kernel-arm64").iterdir()) == [RELEASE, "current"]


def test_without_apt_the_way_by_hand_is_named(machine: Machine, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    for name in ("sh", "cksum", "cat"):
        program = shutil.which(name)
        assert program is not None
        (bare / name).symlink_to(program)
    done = machine.fetch(PATH=str(bare))
    assert done.returncode == 2
    assert "'apt-get' is not here; try: put vmlinuz, the modules and their list into" in done.stderr
