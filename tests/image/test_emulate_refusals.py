"""Disks that cannot boot on an emulated board: one line that says why, before QEMU starts."""

from __future__ import annotations

from pathlib import Path

import pytest
from image_disks import Made, blank_disk

from support.command_line import Run, error_line


@pytest.mark.parametrize(
    ("options", "code", "wanted"),
    [
        ([], 4, "carries no kernel; try: make the image with --kernel and --initrd"),
        (["--port", "tcp:1"], 2, "--port tcp:1: neither unix:PATH nor pty; try: --port unix:board.sock"),
        (["--port", "unix:"], 2, "--port unix:: neither unix:PATH nor pty"),
        (["--port", "unix:/absent/board.sock"], 4, "cannot listen at /absent/board.sock: No such file or directory"),
    ],
)
def test_a_disk_without_kernel_and_bad_ports(
    delivered: Path, run: Run, options: list[str], code: int, wanted: str
) -> None:
    got, _, err = run("emulate", delivered, *options)
    assert (got, wanted in error_line(err)) == (code, True), err


def test_what_is_no_disk_of_ours(tmp_path: Path, run: Run, first: Made) -> None:
    for path, wanted in (
        (tmp_path / "absent.img", "absent.img: No such file or directory"),
        (blank_disk(tmp_path / "blank.img"), "blank.img: "),
        (tmp_path, "colibri.img: No such file or directory"),
        (first.folder, "colibri.img carries no kernel"),
    ):
        code, _, err = run("emulate", path)
        assert (code, wanted in error_line(err)) == (4, True), err
