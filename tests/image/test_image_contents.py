"""What is in an image, by the judgement of the tools that users and boot loaders look at it with."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from image_disks import MODEL, Made, compile_program, image_of

from colibri_build.errors import ImageError
from colibri_build.image import genimage
from colibri_build.image.block_map import blocks_of, read_block_map
from colibri_build.image.make import ImageOptions, Kernel, make_image
from colibri_build.image.slots import SLOT_FILE, active_slot
from colibri_build.pipeline import Events
from colibri_build.target.board import load_board

FIRMWARE = "firmware.squashfs"


def said(*argv: object) -> str:
    return subprocess.run([str(word) for word in argv], check=True, capture_output=True, text=True).stdout


def boot_image(folder: Path, manifest: object) -> str:
    """How mtools name the boot partition within the disk image."""
    offset = json.loads((folder / "manifest.json").read_text())["partitions"][0]["offset"]
    return f"{folder / 'colibri.img'}@@{offset}"


def test_the_partition_table_is_sound_and_holds_what_the_manifest_says(first: Made) -> None:
    image = first.folder / "colibri.img"
    assert "No problems found" in said("sgdisk", "-v", image)
    table = json.loads(said("sfdisk", "--json", image))["partitiontable"]
    found = [(part["name"], part["start"] * 512, part["size"] * 512) for part in table["partitions"]]
    assert found == [(region.name, region.offset, region.bytes) for region in first.manifest.partitions]
    assert [name for name, _, _ in found] == ["boot", "firmware-a", "firmware-b"]
    assert table["id"].lower() == first.manifest.disk_uuid
    assert table["partitions"][0]["attrs"] == "LegacyBIOSBootable", "U-Boot looks for extlinux there"


def test_a_slot_holds_the_firmware_its_start_script_and_mount_points(first: Made, tmp_path: Path) -> None:
    listing = said("unsquashfs", "-lls", first.folder / FIRMWARE)
    entries = {line.split("squashfs-root", 1)[1]: line.split()[:2] for line in listing.splitlines() if "root" in line}
    folders = ("", "/firmware", "/dev", "/proc", "/run", "/sys", "/tmp")
    programs = ("/firmware/colibri_inference", "/firmware/start")
    assert entries == {
        **{name: ["drwxr-xr-x", "root/root"] for name in folders},
        **{name: ["-rwxr-xr-x", "root/root"] for name in programs},
        "/firmware/manifest.json": ["-rw-r--r--", "root/root"],
    }
    said("unsquashfs", "-d", tmp_path / "slot", first.folder / FIRMWARE)
    assert (tmp_path / "slot" / "firmware" / "colibri_inference").read_bytes() == first.elf.read_bytes()


def test_the_start_script_hands_its_arguments_to_the_firmware(first: Made, tmp_path: Path) -> None:
    script = said("unsquashfs", "-cat", first.folder / FIRMWARE, "firmware/start")
    (tmp_path / "colibri_inference").write_text('#!/bin/sh\nprintf "%s|" "$@"\n')
    (tmp_path / "colibri_inference").chmod(0o755)
    (tmp_path / "start").write_text(script.replace("/firmware/", f"{tmp_path}/"))
    assert said("sh", tmp_path / "start", "--prompt", "two words") == "--prompt|two words|"


def test_the_slot_image_is_not_compressed_and_lies_in_slot_a(first: Made) -> None:
    image = (first.folder / "colibri.img").read_bytes()
    region = first.manifest.partitions[1]
    slot = (first.folder / FIRMWARE).read_bytes()
    assert image[region.offset : region.offset + len(slot)] == slot
    assert first.elf.read_bytes()[:4096] in slot, "weights do not compress; a board should not unpack them"
    assert "Block size 131072" in said("unsquashfs", "-s", first.folder / FIRMWARE)


def test_the_manifests_name_the_same_firmware(first: Made) -> None:
    outer = json.loads((first.folder / "manifest.json").read_text())
    inner = json.loads(said("unsquashfs", "-cat", first.folder / FIRMWARE, "firmware/manifest.json"))
    boot = json.loads(said("mtype", "-i", boot_image(first.folder, outer), "::manifest.json"))
    assert inner == boot
    assert inner["firmware"] == outer["firmware"]
    assert (outer["format"], outer["version"], inner["format"]) == ("colibri-image", 1, "colibri-firmware")
    with first.elf.open("rb") as stream:
        notes = [note for s in ELFFile(stream).iter_sections("SHT_NOTE") for note in s.iter_notes()]
    assert outer["firmware"]["build_id"] in [note["n_desc"] for note in notes if note["n_type"] == "NT_GNU_BUILD_ID"]
    assert said("sha256sum", first.elf).split()[0] == outer["firmware"]["sha256"]
    assert outer["firmware"]["model"] == MODEL
    assert outer["slot_image"]["sha256"] == said("sha256sum", first.folder / FIRMWARE).split()[0]


def test_sha256sum_agrees(first: Made) -> None:
    done = subprocess.run(["sha256sum", "-c", "SHA256SUMS"], cwd=first.folder, capture_output=True, text=True)
    assert (done.returncode, done.stdout.count(": OK")) == (0, 4)


def test_bmaptool_writes_and_checks_with_the_block_map(first: Made, tmp_path: Path) -> None:
    """The map must be one that Debian's tool takes, and what it writes must be a whole disk."""
    image, target = first.folder / "colibri.img", tmp_path / "disk.img"
    said("bmaptool", "copy", image, target)
    assert "No problems found" in said("sgdisk", "-v", target)
    assert active_slot(target) == "a"
    back = ["bmaptool", "copy", "--bmap", str(first.folder / "colibri.img.bmap"), str(target), "/dev/null"]
    assert subprocess.run(back, capture_output=True).returncode == 0
    with target.open("r+b") as stream:
        stream.seek(first.manifest.partitions[1].offset + 5000)
        stream.write(b"?")
    assert subprocess.run(back, capture_output=True).returncode == 1


def test_zeros_that_count_are_in_the_block_map(first: Made) -> None:
    """A FAT is mostly zeros: left out, a used card's old bytes would be taken for it."""
    ranges = read_block_map(first.folder / "colibri.img.bmap", first.manifest.image_bytes)
    image = (first.folder / "colibri.img").read_bytes()
    old = bytearray(b"\xa5" * len(image))
    for span in ranges:
        old[span.offset : span.offset + span.bytes] = image[span.offset : span.offset + span.bytes]
    disk = first.folder.parent / "used.img"
    disk.write_bytes(old)
    boot = f"{disk}@@{first.manifest.partitions[0].offset}"
    assert said("mtype", "-i", boot, "::slot").startswith("slot=a\n")
    assert "bytes free" in said("mdir", "-i", boot, "::")
    empty = first.manifest.partitions[2].offset
    assert not any(old[empty : empty + 4096]), "an older firmware in slot b would be taken for one"


def test_two_images_are_the_same_bytes(first: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the time, the zone, the umask, the name of the folder, and the user's own settings."""
    time.sleep(2.1)  # FAT counts time in steps of two seconds
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    monkeypatch.setenv("GENIMAGE_OUTPUTPATH", "/nowhere")
    elf = Path(shutil.copyfile(first.elf, tmp_path / "colibri_inference"))
    out = tmp_path / "an 'other' folder ü" / "image"
    mask = os.umask(0o077)
    try:
        image_of(elf, out)
    finally:
        os.umask(mask)
    names = sorted(path.name for path in first.folder.iterdir())
    assert sorted(path.name for path in out.iterdir()) == names
    for name in names:
        assert (out / name).read_bytes() == (first.folder / name).read_bytes(), name


def test_another_firmware_has_other_identifiers(first: Made, update: Made) -> None:
    assert first.manifest.disk_uuid != update.manifest.disk_uuid
    assert first.manifest.firmware.build_id != update.manifest.firmware.build_id


def test_both_slots_can_be_filled(first: Made, tmp_path: Path) -> None:
    manifest = image_of(first.elf, tmp_path / "out", options=ImageOptions(fill_both=True))
    image = (tmp_path / "out" / "colibri.img").read_bytes()
    a, b = (image[region.offset : region.offset + region.bytes] for region in manifest.partitions[1:])
    assert a == b
    assert manifest.used == ("a", "b")


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Kernel:
    """More than the least boot partition holds."""
    folder = tmp_path_factory.mktemp("kernel")
    for name, size in (("vmlinuz", 17 * 1024 * 1024), ("initrd.img", 100_000), ("board.dtb", 5000)):
        (folder / name).write_bytes(os.urandom(size))
    return Kernel(folder / "vmlinuz", folder / "initrd.img", folder / "board.dtb", "panic=5")


def test_an_image_with_a_kernel_boots_either_slot(first: Made, kernel: Kernel, tmp_path: Path) -> None:
    out = tmp_path / "out"
    manifest = image_of(first.elf, out, options=ImageOptions(kernel=kernel))
    boot = boot_image(out, manifest)
    for name, source in (("kernel", kernel.kernel), ("initrd", kernel.initrd), ("board.dtb", kernel.dtb)):
        said("mcopy", "-n", "-i", boot, f"::{name}", tmp_path / "copied")
        assert source is not None and (tmp_path / "copied").read_bytes() == source.read_bytes()
        (tmp_path / "copied").unlink()
    text = said("mtype", "-i", boot, "::extlinux/extlinux.conf")
    assert len(text) == 512
    lines = [line.strip() for line in text.splitlines() if not line.startswith("#")]
    assert lines[:6] == [
        "default a",
        "label a",
        "kernel /kernel",
        "initrd /initrd",
        "fdt /board.dtb",
        "append console=ttyAMA0,115200 quiet loglevel=3 colibri.slot=a panic=5 -- --serve",
    ]
    assert lines[6:] == [line.replace("=a ", "=b ") if "append" in line else line for line in _label_b(lines[1:6])]
    assert SLOT_FILE not in [file.name for file in manifest.boot_files]
    raw = (out / "colibri.img").read_bytes()
    assert raw[manifest.switch.offset :][:512] == text.encode(), "the manifest says where the switch is"
    assert "No problems found" in said("sgdisk", "-v", out / "colibri.img")


def _label_b(lines: list[str]) -> list[str]:
    return ["label b" if line == "label a" else line for line in lines]


def test_arguments_after_two_dashes_are_the_firmwares(first: Made, kernel: Kernel, tmp_path: Path) -> None:
    changed = Kernel(kernel.initrd, kernel.initrd, None, "ro -- --selftest --threads 2")
    image_of(first.elf, tmp_path / "out", options=ImageOptions(kernel=changed))
    text = said("mtype", "-i", boot_image(tmp_path / "out", None), "::extlinux/extlinux.conf")
    assert "colibri.slot=b ro -- --selftest --threads 2\n" in text
    assert "fdt" not in text


def refusal(elf: Path, out: Path, options: ImageOptions, board: str = "cortex-a53") -> str:
    with pytest.raises(ImageError) as caught:
        image_of(elf, out, board, options)
    assert not list(out.parent.glob(f".{out.name}.*")), "nothing half-written may stay"
    return str(caught.value)


def test_what_does_not_fit_is_refused_with_the_sums(first: Made, tmp_path: Path, kernel: Kernel) -> None:
    out = tmp_path / "out"
    slot = first.manifest.slot_image.bytes
    big = compile_big(tmp_path)
    assert re.fullmatch(
        r"--slot-size 1: the slot image has \d+ bytes; try: --slot-size 3",
        refusal(big, out, ImageOptions(slot_mib=1)),
    )
    assert refusal(first.elf, out, ImageOptions(slot_mib=513)) == (
        "--slot-size 513: the board's flash budget is 512 MiB a slot; try: --slot-size 512"
    )
    assert refusal(first.elf, out, ImageOptions(image_mib=32)) == (
        "--image-size 32: 33 MiB are needed (8 table and gap + 16 boot + 2 x 4 slots + 1 backup table); "
        "try: --image-size 33, or a smaller --slot-size"
    )
    small = tmp_path / "small.toml"
    small.write_text('extends = "cortex-a53"\n[storage]\nflash_budget_mib = 1\n')
    assert re.fullmatch(
        r"the slot image has \d+ bytes, the board's firmware partition 1048576 \(storage.flash_budget_mib\); .*",
        refusal(big, out, ImageOptions(), str(small)),
    )
    long = ImageOptions(kernel=Kernel(kernel.kernel, kernel.initrd, None, "x" * 200))
    assert re.fullmatch(
        r"extlinux.conf would have \d+ bytes; the switch of slots needs it in one sector of 512; "
        r"try: shorten --cmdline by \d+ characters",
        refusal(first.elf, out, long),
    )
    assert not out.exists()
    assert slot < 1024 * 1024


def compile_big(folder: Path) -> Path:
    elf = compile_program(folder / "colibri_inference", 9)
    with elf.open("ab") as stream:
        stream.write(os.urandom(2 * 1024 * 1024))
    return elf


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ({"kernel": Path("gone")}, "cannot read gone: No such file or directory; try: check the path"),
        ({"cmdline": "two\nlines"}, "--cmdline is not one line of printable ASCII"),
        ({"cmdline": "ü"}, "--cmdline is not one line of printable ASCII"),
    ],
)
def test_bad_kernel_input_is_one_line(
    first: Made, kernel: Kernel, tmp_path: Path, change: dict[str, Path], wanted: str
) -> None:
    values = {"kernel": kernel.kernel, "initrd": kernel.initrd, "dtb": None, "cmdline": "", **change}
    assert wanted in refusal(first.elf, tmp_path / "out", ImageOptions(kernel=Kernel(**values)))  # type: ignore[arg-type]


def test_an_older_image_is_replaced_and_foreign_files_are_not(first: Made, update: Made, copy: Path) -> None:
    image_of(update.elf, copy)
    assert (copy / "colibri.img").read_bytes() == (update.folder / "colibri.img").read_bytes()
    (copy / "notes.txt").write_text("mine")
    assert "exists and is no image folder (it holds notes.txt)" in refusal(first.elf, copy, ImageOptions())
    assert (copy / "notes.txt").read_text() == "mine"


def test_a_failure_leaves_the_older_image(first: Made, copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = copy.parent / "bin"
    tools.mkdir()
    for name, text in (("genimage", "echo 'ERROR: no such thing' ; exit 1"), ("mksquashfs", ""), ("mcopy", "")):
        (tools / name).write_text(f"#!/bin/sh\n{text}\n")
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:/bin")
    before = (copy / "colibri.img").read_bytes()
    text = refusal(first.elf, copy, ImageOptions())
    assert text.startswith("genimage failed: ERROR: no such thing; try: check the disk (")
    assert (copy / "colibri.img").read_bytes() == before


def test_a_full_disk_is_said_with_figures(first: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10**9, 10**9, 1000))
    text = refusal(first.elf, tmp_path / "out", ImageOptions())
    assert re.match(r"the disk is full: the image takes \d+ bytes in .* while it is made, 1000 are free; try: ", text)


_LIMITED = """
import resource, signal, sys
from pathlib import Path
sys.path[:0] = sys.argv[3:]
from image_disks import image_of
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
elf = Path(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (elf.stat().st_size, elf.stat().st_size))
image_of(elf, Path(sys.argv[2]))
"""


def test_a_disk_that_fills_up_is_said(first: Made, tmp_path: Path) -> None:
    """A limit for the size of a file stands for the disk's: the firmware can be copied, its image not be written."""
    folders = [Path(__file__).parent, Path(__file__).parents[1]]
    argv = [sys.executable, "-c", _LIMITED, first.elf, tmp_path / "out", *folders]
    done = subprocess.run([str(word) for word in argv], capture_output=True, text=True)
    last = done.stderr.splitlines()[-1]
    said_by_it = "colibri_build.errors.ImageError: genimage failed: File size limit exceeded; try: check the disk ("
    assert last.startswith(said_by_it), last
    assert list(tmp_path.iterdir()) == []


def test_a_slow_step_shows_how_far_it_is(first: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Seen(Events):
        def __init__(self) -> None:
            self.said: list[str] = []
            self.shares: list[tuple[int, int]] = []

        def stage(self, text: str) -> None:
            self.said.append(text)

        def progress(self, what: str, done: int, total: int) -> None:
            self.shares.append((done, total))

    seen = Seen()
    monkeypatch.setattr(genimage, "_LOOK_S", 0.001)
    make_image(compile_big(tmp_path), load_board("cortex-a53"), MODEL, tmp_path / "out", ImageOptions(), seen)
    assert seen.said == ["make the file system of a slot", "make the disk", "hash what was made"]
    assert all(0 <= done <= total and total == 2 for done, total in seen.shares)
    assert seen.shares


def test_ctrl_c_leaves_the_older_image(update: Made, copy: Path) -> None:
    class Interrupted(Events):
        def command(self, argv: object) -> None:
            raise KeyboardInterrupt

    before = (copy / "colibri.img").read_bytes()
    with pytest.raises(KeyboardInterrupt):
        make_image(update.elf, load_board("cortex-a53"), MODEL, copy, ImageOptions(), Interrupted())
    assert (copy / "colibri.img").read_bytes() == before
    assert sorted(path.name for path in copy.parent.iterdir()) == ["copy"]


def test_what_genimage_started_ends_with_the_command(
    first: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or a file system of the last try is written on while the next one starts."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, text in (("genimage", "sleep 300 & echo $! >$0.pid; wait"), ("mksquashfs", ""), ("mcopy", "")):
        (tools / name).write_text(f"#!/bin/sh\n{text}\n")
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")

    class Interrupted(Events):
        def progress(self, what: str, done: int, total: int) -> None:
            if (tools / "genimage.pid").exists() and (tools / "genimage.pid").read_text().strip():
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_image(first.elf, load_board("cortex-a53"), MODEL, tmp_path / "out", ImageOptions(), Interrupted())
    sleeper, deadline = Path("/proc") / (tools / "genimage.pid").read_text().strip(), time.monotonic() + 10
    while sleeper.exists() and "Z" not in (sleeper / "stat").read_text().split()[2]:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert [path.name for path in tmp_path.iterdir()] == ["bin"]


def test_missing_tools_are_named_with_their_packages(
    first: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    text = refusal(first.elf, tmp_path / "out", ImageOptions())
    assert text == (
        "not installed: genimage, squashfs-tools, mtools; try: sudo apt-get install genimage squashfs-tools mtools"
    )


def test_a_file_that_is_no_firmware_is_refused(tmp_path: Path) -> None:
    (tmp_path / "script").write_text("#!/bin/sh\n")
    assert "is no 64-bit little-endian ELF file" in refusal(tmp_path / "script", tmp_path / "out", ImageOptions())


def test_spans_of_the_block_map_are_whole_blocks_and_joined() -> None:
    assert blocks_of([(8192, 1), (0, 4097), (20000, 481)]) == [(0, 12288), (16384, 8192)]
