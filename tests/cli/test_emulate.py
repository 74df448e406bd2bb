"""How `emulate` ends: a board that switched itself off in order is no error, one that could not start its firmware is."""

from __future__ import annotations

import socket
from pathlib import Path
from types import SimpleNamespace

import pytest

from colibri_build import pipeline
from colibri_build.run.console import Console
from support.command_line import Run, error_line


@pytest.mark.parametrize(
    ("said", "code", "wanted"),
    [
        ("READY colibri model=m\n[ 1.0] reboot: Power down\n", 0, "the board has switched itself off"),
        (
            "FATAL: no partition is labelled firmware-a\n[ 1.0] reboot: Power down\n",
            4,
            "error: the board says 'FATAL: no partition is labelled firmware-a' and has switched itself off; try: ",
        ),
        ("Kernel panic - not syncing: VFS\n", 4, "error: QEMU ended with 0 while it was waited for"),
    ],
)
def test_the_end_of_the_machine(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, code: int, wanted: str
) -> None:
    ours, theirs = socket.socketpair()
    theirs.sendall(said.encode())
    theirs.close()
    console = Console(ours, lambda: "QEMU ended with 0", bad_patterns=())

    class Machine(SimpleNamespace):
        def __enter__(self) -> Machine:
            return self

        def __exit__(self, *_: object) -> None:
            console.close()

    machine = Machine(board=SimpleNamespace(name="cortex-a53"), console=console)
    monkeypatch.setattr(pipeline, "emulated", lambda *_: machine)
    got, _, err = run("emulate", "disk.img", "--port", f"unix:{tmp_path / 's'}")
    assert (got, wanted in err) == (code, True), err
    assert code == 0 or error_line(err)
