"""The two commands as a user types them, on a real build."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from image_disks import Made, blank_disk, partition_bytes

from colibri_build.image import medium
from colibri_build.image.slots import active_slot
from colibri_build.pipeline import BuildResult
from colibri_build.run.process import run_firmware
from colibri_build.run.runner import runner_for
from support.builds import build_tiny, quick_board
from support.command_line import Run, error_line


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BuildResult]:
    folder = tmp_path_factory.mktemp("built")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLIBRI_CACHE", str(folder / "cache"))
        yield build_tiny(folder, quick_board(folder), max_threads=1)


@pytest.fixture
def build(built: BuildResult, tmp_path: Path) -> Path:
    """A copy of the build, to be damaged."""
    return shutil.copytree(built.out, tmp_path / "build")


def test_from_a_build_to_a_disk_whose_slot_runs(build: Path, built: BuildResult, tmp_path: Path, run: Run) -> None:
    code, out, err = run("image", build)
    assert (code, err.splitlines()) == (
        0,
        ["== make the file system of a slot", "== make the disk", "== hash what was made"],
    )
    assert "colibri.img" in out and "firmware-b" in out
    disk = blank_disk(tmp_path / "disk.img")
    code, out, err = run("flash", build / "image", "--device", disk)
    assert code == 0, err
    assert f"{disk}: the whole image written and read back" in out
    assert [line.split(" (")[0] for line in err.splitlines()] == [
        "== check colibri.img",
        "== check colibri.img.bmap",
        "== write",
        "== read back",
    ]
    code, _, err = run("flash", build, "--device", disk)
    assert code == 2
    assert f"SHA256SUMS cannot be read: no folder of an image; try: {build / 'image'}" in error_line(err)
    code, out, err = run("flash", build / "image", "--device", disk, "--slot", "other", "--json")
    assert (code, err) == (0, "")
    size = (build / "image" / "firmware.squashfs").stat().st_size
    digest = json.loads((build / "report.json").read_text())["sha256"]
    wanted = {"active": "b", "device": str(disk), "slot": "b", "written_bytes": size, "firmware": digest}
    assert json.loads(out) == wanted
    (tmp_path / "slot").write_bytes(partition_bytes(disk, "firmware-b"))
    subprocess.run(["unsquashfs", "-d", tmp_path / "root", tmp_path / "slot"], check=True, capture_output=True)
    firmware = tmp_path / "root" / "firmware" / "colibri_inference"
    assert firmware.read_bytes() == built.firmware.elf.read_bytes()
    assert run_firmware(runner_for(built.board), firmware, ["--selftest"], timeout_s=60).exit_code == 0
    record = json.loads((tmp_path / "root" / "firmware" / "manifest.json").read_text())["firmware"]
    assert record["model"] == built.folder.digest
    assert record["board"] == "quick"


def test_image_is_json_for_machines_and_shows_its_commands(build: Path, tmp_path: Path, run: Run) -> None:
    code, out, err = run("image", build, "-o", tmp_path / "out", "--json", "--slot-size", "8", "--fill-both", "-v")
    record = json.loads(out)
    assert (code, record["out"]) == (0, str(tmp_path / "out"))
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert {**record["manifest"], "format": "colibri-image", "version": 1} == manifest
    assert [part["bytes"] for part in manifest["partitions"][1:]] == [8 * 1024 * 1024] * 2
    assert err.count("genimage --config") == 2


def test_an_image_that_is_older_than_the_build_around_it_is_noted(copy: Path, disk: Path, run: Run) -> None:
    code, _, err = run("flash", copy, "--device", disk)
    assert (code, "note:" in err) == (0, False)
    (copy.parent / "colibri_inference").write_bytes(b"built since")
    code, _, err = run("flash", copy, "--device", disk)
    assert code == 0
    assert (
        f"note: the firmware was built anew since this image was made; take it along with: colibri-build image {copy.parent}"
        in err
    )


def damage_report(build: Path) -> None:
    report = json.loads((build / "report.json").read_text())
    (build / "report.json").write_text(json.dumps({**report, "ok": False}))


@pytest.mark.parametrize(
    ("damage", "wanted"),
    [
        (lambda build: (build / "build.json").unlink(), "holds no finished build"),
        (lambda build: (build / "report.json").unlink(), "is not the binary that was inspected (report.json)"),
        (lambda build: (build / "colibri_inference").write_bytes(b"?"), "is not the binary that was inspected"),
        (damage_report, "colibri_inference breaks a promise, see "),
    ],
)
def test_an_unfinished_or_uninspected_build_is_refused(build: Path, run: Run, damage: object, wanted: str) -> None:
    assert callable(damage)
    damage(build)
    code, out, err = run("image", build)
    assert (code, out) == (2, "")
    assert wanted in error_line(err)
    assert not (build / "image").exists()


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        (["--initrd", "x"], "--initrd without --kernel; try: --kernel FILE, or leave --initrd out"),
        (["--cmdline", "x"], "--cmdline without --kernel"),
        (["--kernel", "x"], "--kernel without --initrd: nothing would mount the slot; try: --initrd FILE"),
        (["--kernel", "gone", "--initrd", "gone"], "cannot read gone: No such file or directory"),
        (["--image-size", "10"], "--image-size 10: 33 MiB are needed (8 table and gap + 16 boot + 2 x 4 slots + 1"),
    ],
)
def test_bad_options_are_one_line(build: Path, run: Run, options: list[str], wanted: str) -> None:
    code, _, err = run("image", build, *options)
    assert code == 2
    assert wanted in error_line(err)


@pytest.mark.parametrize(
    ("arguments", "code", "wanted"),
    [
        (["--device", "gone.img"], 4, "gone.img: No such file or directory"),
        (["--device", "/dev/mmcblk0boot0", "--force", "--yes"], 4, "never written"),
        (["--device", "small.img"], 4, "disk of the wrong size: small.img has 1024 bytes (0.0 MiB)"),
        (["--device", "small.img", "-b", "tda4vm"], 4, "is for board cortex-a53, the device is a tda4vm (--board)"),
    ],
)
def test_refusals_have_the_documented_exit_code(
    first: Made, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: int, wanted: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("small.img").write_bytes(bytes(1024))
    found, out, err = run("flash", first.folder, *arguments)
    assert (found, out) == (code, "")
    assert wanted in error_line(err)


def test_a_damaged_image_has_exit_code_2(copy: Path, disk: Path, run: Run) -> None:
    (copy / "colibri.img").write_bytes(b"?")
    code, _, err = run("flash", copy, "--device", disk)
    assert code == 2
    assert "colibri.img (1 bytes) is damaged or cut off" in error_line(err)
    assert active_slot(disk) == "a"


def test_sigterm_in_the_middle_says_the_state(
    update: Made, disk: Path, run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def end(descriptor: int, data: memoryview, offset: int) -> int:
        raise SystemExit(143)  # as the handler of SIGTERM and SIGHUP does

    monkeypatch.setattr(medium, "_put", end)
    code, out, err = run("flash", update.folder, "--device", disk, "--slot", "other")
    assert (code, out) == (143, "")
    assert f"stopped: slot b of {disk} is half written and not active; slot a is active and untouched\n" in err


class Terminal:
    """A standard input that is one or not."""

    def __init__(self, is_terminal: bool) -> None:
        self.is_terminal = is_terminal

    def isatty(self) -> bool:
        return self.is_terminal


def test_a_disk_is_overwritten_only_after_a_yes(monkeypatch: pytest.MonkeyPatch) -> None:
    import rich_click as click

    from colibri_build import cli_image, cli_view
    from colibri_build.errors import FlashError

    with cli_view.terminal_events() as events:
        cli_image._Steps(events, yes=True).confirm("overwrite everything?")
        asking = cli_image._Steps(events, yes=False)
        monkeypatch.setattr(sys, "stdin", Terminal(False))
        with pytest.raises(FlashError, match=r"^overwrite everything\? Nobody can answer here; try: --yes$"):
            asking.confirm("overwrite everything?")
        monkeypatch.setattr(sys, "stdin", Terminal(True))
        for answer in (True, False):
            questions: list[str] = []
            monkeypatch.setattr(click, "confirm", lambda text, err, a=answer, q=questions: q.append(text) or a)
            if answer:
                asking.confirm("overwrite everything?")
            else:
                with pytest.raises(FlashError, match="not confirmed: nothing was written"):
                    asking.confirm("overwrite everything?")
            assert questions == ["Overwrite everything?"]
