"""An interrupted quantization goes on where it was, whatever ended it, and the bytes are those of a run in one go."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from colibri_build import model_source
from colibri_build.errors import PackError, QuantizeError
from colibri_build.events import Events
from colibri_build.model_source import open_model, quantize_checkpoint
from colibri_build.pack import partial as partial_module
from colibri_build.pack.journal import Journal
from colibri_build.pack.partial import PartialFolder
from colibri_build.pack.reader import read_model_folder
from colibri_build.quantize.report import QuantizeReport
from colibri_build.requests import QuantizeChoices
from support.model_folders import names_in
from support.tiny_checkpoint import write_tiny_checkpoint

N_TENSORS = 41  # of the tiny model: embedding, head, last norm; of each of 2 layers 7, and 12 of experts
METHODS = ("rtn", "awq")
Clean = tuple[dict[str, bytes], QuantizeReport]

# A run in a process of its own that ends itself before or after one of its writes, as a power cut would.
DYING = """
import os, signal, sys
from pathlib import Path
from colibri_build import model_source
from colibri_build.model_source import quantize_checkpoint
from colibri_build.pack import journal
from colibri_build.pack.writer import FolderWriter
from colibri_build.requests import QuantizeChoices

checkpoint, out, method, calibration, at, how = sys.argv[1:]
model_source.code_digest = lambda: "this state"
real, count = journal._write_all, 0

def write(descriptor, data, offset):
    global count
    count += 1
    if count == int(at) and how != "torn tensor":
        if how == "torn":
            real(descriptor, data[: len(data) // 2], offset)
        os.kill(os.getpid(), signal.SIGKILL)
    real(descriptor, data, offset)

class Torn:
    def __init__(self, file):
        self.seek, self.file = file.seek, file

    def write(self, data):
        self.file.write(data[: len(data) // 2])
        self.file.flush()
        os.kill(os.getpid(), signal.SIGKILL)

journal._write_all = write
if how == "torn tensor":
    real_file = FolderWriter._file
    FolderWriter._file = lambda self, layout: (Torn if count == int(at) else lambda file: file)(real_file(self, layout))
text = Path(calibration) if method == "awq" else None
quantize_checkpoint(Path(checkpoint), Path(out), QuantizeChoices(method, group_size=32, calibration=text))
"""


class Told(Events):
    """Keeps the notes."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


@pytest.fixture(autouse=True)
def state(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program is the same in all processes, even if somebody works on it while the tests run."""
    monkeypatch.setattr(model_source, "code_digest", lambda: "this state")


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_checkpoint(tmp_path_factory.mktemp("checkpoint") / "tiny")


@pytest.fixture(scope="module")
def calibration(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "calibration.txt"
    path.write_text("\n\n".join(["turn the window on", "open the other one", "wind and window"]), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def choices(calibration: Path) -> Callable[[str], QuantizeChoices]:
    return lambda method: QuantizeChoices(method, group_size=32, calibration=calibration if method == "awq" else None)


@pytest.fixture(scope="module")
def clean(
    checkpoint: Path, choices: Callable[[str], QuantizeChoices], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Clean]:
    """What runs in one go write and report."""
    out = tmp_path_factory.mktemp("clean")
    runs = {method: quantize_checkpoint(checkpoint, out / method, choices(method)) for method in METHODS}
    return {method: (bytes_of(folder.path), report) for method, (folder, report) in runs.items()}


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def interrupt_after(monkeypatch: pytest.MonkeyPatch, tensors: int, error: BaseException | None = None) -> None:
    """End the next run once it wrote some tensors; Ctrl-C without another error."""
    real = PartialFolder.put

    def put(self: PartialFolder, name: str, tensor: object, record: object) -> None:
        if self.n_tensors == tensors:
            raise error or KeyboardInterrupt
        real(self, name, tensor, record)  # type: ignore[arg-type]

    monkeypatch.setattr(PartialFolder, "put", put)


@pytest.mark.parametrize(
    "method, at, how",
    [
        ("rtn", 2, "before"),
        ("rtn", 17, "torn"),
        ("rtn", 30, "torn tensor"),
        ("awq", 10, "before"),
        ("awq", 35, "torn"),
    ],
)
def test_a_killed_run_goes_on_to_the_same_bytes(
    checkpoint: Path,
    calibration: Path,
    tmp_path: Path,
    clean: dict[str, Clean],
    choices: Callable[[str], QuantizeChoices],
    method: str,
    at: int,
    how: str,
) -> None:
    """SIGKILL between the bytes of a tensor and the journal's line, in the middle of that line, and of those bytes."""
    out = tmp_path / "m"
    arguments = [str(part) for part in (checkpoint, out, method, calibration, at, how)]
    died = subprocess.run([sys.executable, "-c", DYING, *arguments], check=False)
    assert died.returncode == -signal.SIGKILL
    assert names_in(tmp_path) == [".m.partial"]
    assert not list(tmp_path.rglob("config.json")), "what is half-written looks like a model folder"
    told = Told()
    folder, report = quantize_checkpoint(checkpoint, out, choices(method), told)
    assert (bytes_of(folder.path), report) == clean[method]
    assert names_in(tmp_path) == ["m"]
    if method == "rtn" and at > 2:  # lines of the journal: what is made, then the tensors; with awq layers, too
        done = at - 1 if how == "torn tensor" else at - 2
        assert told.notes == [f"resuming: {done} of {N_TENSORS} tensors are done ({tmp_path / '.m.partial'})"]


@pytest.mark.parametrize("method", METHODS)
def test_ctrl_c_twice_and_every_tensor_is_made_once(
    checkpoint: Path,
    tmp_path: Path,
    clean: dict[str, Clean],
    choices: Callable[[str], QuantizeChoices],
    monkeypatch: pytest.MonkeyPatch,
    method: str,
) -> None:
    out = tmp_path / "m"
    for tensors in (5, 33):
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            interrupt_after(patch, tensors)
            quantize_checkpoint(checkpoint, out, choices(method), told := Told())
        assert told.notes[-1].startswith(f"{tensors} of {N_TENSORS} tensors are kept in {tmp_path / '.m.partial'}: ")
    made: list[str] = []
    real = PartialFolder.put

    def put(self: PartialFolder, name: str, tensor: object, record: object) -> None:
        made.extend([name] if tensor is not None else [])
        real(self, name, tensor, record)  # type: ignore[arg-type]

    monkeypatch.setattr(PartialFolder, "put", put)
    folder, _ = quantize_checkpoint(checkpoint, out, choices(method), told := Told())
    assert told.notes == [f"resuming: 33 of {N_TENSORS} tensors are done ({tmp_path / '.m.partial'})"]
    assert len(made) == len(set(made)) == N_TENSORS - 33
    assert bytes_of(folder.path) == clean[method][0]


@pytest.fixture
def half_done(
    checkpoint: Path, tmp_path: Path, choices: Callable[[str], QuantizeChoices], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """A folder `m` whose quantization was interrupted after 20 tensors; the path of what is there of it."""
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        interrupt_after(patch, 20)
        quantize_checkpoint(checkpoint, tmp_path / "m", choices("rtn"))
    return tmp_path / ".m.partial"


@pytest.mark.parametrize("damage", ["a byte", "a gap", "a file is gone", "a file is short", "journal's end"])
def test_what_a_power_cut_damaged_is_made_anew(
    checkpoint: Path,
    half_done: Path,
    clean: dict[str, Clean],
    choices: Callable[[str], QuantizeChoices],
    damage: str,
) -> None:
    """The journal may be on the disk and the bytes that it speaks of not."""
    dense, journal = half_done / "files" / "dense.bin", half_done / "journal"
    data = bytearray(dense.read_bytes())
    if damage == "a byte":
        data[100] ^= 1
    if damage == "a gap":
        gap = next(i for i in range(len(data) - 1, 0, -1) if i % 64 == 63)  # its last tensor is not there yet
        data[gap] = 7
    dense.write_bytes(bytes(data[:-1]) if damage == "a file is short" else data)
    if damage == "a file is gone":
        dense.unlink()
    if damage == "journal's end":
        journal.write_bytes(journal.read_bytes()[:-9] + b"\0" * 40)
    folder, _ = quantize_checkpoint(checkpoint, half_done.parent / "m", choices("rtn"))
    assert bytes_of(folder.path) == clean["rtn"][0]


CHANGED = {
    "--bits": (lambda c: QuantizeChoices(group_size=32, bits=8), "--bits"),
    "--group-size": (lambda c: QuantizeChoices(group_size=64), "--group-size"),
    "calibration": (lambda c: QuantizeChoices("awq", group_size=32, calibration=c), "--method, the calibration text"),
    "--restart": (lambda c: QuantizeChoices(group_size=32, restart=True), "is discarded"),
}


@pytest.mark.parametrize("change, said", CHANGED.values(), ids=CHANGED.keys())
def test_other_options_start_anew_and_say_so(
    checkpoint: Path,
    calibration: Path,
    half_done: Path,
    change: Callable[[Path], QuantizeChoices],
    said: str,
    tmp_path: Path,
) -> None:
    wanted = change(calibration)
    folder, _ = quantize_checkpoint(checkpoint, tmp_path / "m", wanted, told := Told())
    assert told.notes == [f"starting anew: {half_done} {'' if 'discard' in said else 'was made otherwise: '}{said}"]
    assert bytes_of(folder.path) == bytes_of(quantize_checkpoint(checkpoint, tmp_path / "clean", wanted)[0].path)


def test_another_checkpoint_or_another_version_of_the_program_starts_anew(
    checkpoint: Path,
    half_done: Path,
    choices: Callable[[str], QuantizeChoices],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = write_tiny_checkpoint(tmp_path / "tiny", seed=1)
    monkeypatch.setattr(model_source, "code_digest", lambda: "another")
    quantize_checkpoint(other, tmp_path / "m", choices("rtn"), told := Told())
    assert told.notes == [f"starting anew: {half_done} was made otherwise: the checkpoint, this program"]


def test_a_partial_folder_is_never_taken_for_a_model(
    checkpoint: Path, half_done: Path, choices: Callable[[str], QuantizeChoices]
) -> None:
    for path in (half_done, half_done / "files"):
        with pytest.raises(PackError, match="missing"):
            read_model_folder(path)
        assert not model_source.is_model_folder(path)


def test_two_runs_on_one_folder_are_refused(
    checkpoint: Path, half_done: Path, choices: Callable[[str], QuantizeChoices], tmp_path: Path
) -> None:
    descriptor = os.open(half_done, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        with pytest.raises(PackError) as caught:
            quantize_checkpoint(checkpoint, tmp_path / "m", choices("rtn"))
    finally:
        os.close(descriptor)
    assert str(caught.value) == f"another run is writing {tmp_path / 'm'}; try: wait for it, or choose another folder"
    assert quantize_checkpoint(checkpoint, tmp_path / "m", choices("rtn"))[0].path == tmp_path / "m"


def test_two_builds_of_one_checkpoint_quantize_it_once(
    checkpoint: Path, tmp_path: Path, choices: Callable[[str], QuantizeChoices], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second waits for the first, and takes its folder from the cache."""
    monkeypatch.setenv("COLIBRI_CACHE", str(tmp_path))
    told = Told()

    class Second(Told):
        def note(self, text: str) -> None:
            super().note(text)
            if "waiting for it" in text:  # the first one finishes meanwhile
                shutil.copytree(first.path, cached)
                os.close(holder)

    first = open_model(checkpoint, choices("rtn"))
    cached = first.path
    first = quantize_checkpoint(checkpoint, tmp_path / "copy", choices("rtn"))[0]
    shutil.rmtree(cached)
    partial = cached.with_name(f".{cached.name}.partial")
    partial.mkdir()
    holder = os.open(partial, os.O_RDONLY)
    fcntl.flock(holder, fcntl.LOCK_EX)
    monkeypatch.setattr(PartialFolder, "put", lambda *_: pytest.fail("quantized again"))
    monkeypatch.setattr(partial_module, "require_space", lambda *_: pytest.fail("wants space for a second folder"))
    folder = open_model(checkpoint, choices("rtn"), told := Second())
    assert folder.digest == first.digest
    assert told.notes == [f"another run is quantizing this model ({partial}); waiting for it"]
    assert names_in(cached.parent) == [cached.name]


def test_a_full_disk_is_gone_on_with_and_a_bad_model_is_not(
    checkpoint: Path,
    tmp_path: Path,
    clean: dict[str, Clean],
    choices: Callable[[str], QuantizeChoices],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = tmp_path / "m"
    full = PackError("the disk is full")
    full.__cause__ = OSError(28, "No space left on device")
    with monkeypatch.context() as patch, pytest.raises(PackError):
        interrupt_after(patch, 7, full)
        quantize_checkpoint(checkpoint, out, choices("rtn"))
    assert names_in(tmp_path) == [".m.partial"]
    with monkeypatch.context() as patch, pytest.raises(QuantizeError):
        interrupt_after(patch, 9, QuantizeError("a weight overflows"))
        quantize_checkpoint(checkpoint, out, choices("rtn"), told := Told())
    assert told.notes == [f"resuming: 7 of {N_TENSORS} tensors are done ({tmp_path / '.m.partial'})"]
    assert names_in(tmp_path) == []


def test_an_older_folder_stays_until_the_new_one_is_whole(
    checkpoint: Path, tmp_path: Path, choices: Callable[[str], QuantizeChoices], monkeypatch: pytest.MonkeyPatch
) -> None:
    old = quantize_checkpoint(checkpoint, tmp_path / "m", QuantizeChoices(group_size=64))[0]
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        interrupt_after(patch, 3)
        quantize_checkpoint(checkpoint, tmp_path / "m", choices("rtn"))
    assert read_model_folder(tmp_path / "m").digest == old.digest


def test_a_cut_within_the_exchange_is_mended(
    checkpoint: Path,
    tmp_path: Path,
    clean: dict[str, Clean],
    choices: Callable[[str], QuantizeChoices],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Between the two renames neither folder is in its place."""
    old = quantize_checkpoint(checkpoint, tmp_path / "m", QuantizeChoices(group_size=64))[0]
    real = Path.rename
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        interrupt_after(patch, 3)
        quantize_checkpoint(checkpoint, tmp_path / "m", choices("rtn"))
    real(tmp_path / "m", tmp_path / ".m.partial" / "files.old")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        interrupt_after(patch, 4)
        quantize_checkpoint(checkpoint, tmp_path / "m", choices("rtn"))
    assert read_model_folder(tmp_path / "m").digest == old.digest
    assert bytes_of(quantize_checkpoint(checkpoint, tmp_path / "m", choices("rtn"))[0].path) == clean["rtn"][0]


@pytest.mark.parametrize("method", METHODS)
def test_a_cut_behind_the_exchange_leaves_nothing_to_go_on_with(
    checkpoint: Path,
    tmp_path: Path,
    clean: dict[str, Clean],
    choices: Callable[[str], QuantizeChoices],
    monkeypatch: pytest.MonkeyPatch,
    method: str,
) -> None:
    """The new folder is in its place; the older one and the journal were still to be removed."""
    quantize_checkpoint(checkpoint, tmp_path / "m", QuantizeChoices(group_size=64))
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        interrupt_after(patch, N_TENSORS - 1)
        quantize_checkpoint(checkpoint, tmp_path / "m", choices(method))
    (tmp_path / ".m.partial" / "files").rename(tmp_path / ".m.partial" / "files.old")
    folder, report = quantize_checkpoint(checkpoint, tmp_path / "m", choices(method))
    assert (bytes_of(folder.path), report) == clean[method]
    assert names_in(tmp_path) == ["m"]


def test_ctrl_c_behind_the_exchange_promises_nothing(
    checkpoint: Path, tmp_path: Path, choices: Callable[[str], QuantizeChoices], monkeypatch: pytest.MonkeyPatch
) -> None:
    old = quantize_checkpoint(checkpoint, tmp_path / "m", QuantizeChoices(group_size=64))[0]
    real = shutil.rmtree

    def rmtree(path: Path, ignore_errors: bool = False) -> None:
        if path.name == "files.old":
            raise KeyboardInterrupt
        real(path, ignore_errors)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(shutil, "rmtree", rmtree)
        quantize_checkpoint(checkpoint, tmp_path / "m", choices("rtn"), told := Told())
    assert told.notes == []
    assert read_model_folder(tmp_path / "m").digest != old.digest
    assert names_in(tmp_path) == ["m"]


def test_a_journal_believes_whole_lines_only(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    for number in range(3):
        Journal(path).append({"number": number})
    whole = path.read_bytes()
    for size in range(len(whole) + 1):
        path.write_bytes(whole[:size])
        lines = whole[:size].count(b"\n")
        assert [entry["number"] for entry in Journal(path).entries] == list(range(lines))
    path.write_bytes(whole[:-1] + b"x")
    Journal(path).append({"number": 9})
    assert [json.loads(line.split(b" ", 1)[1])["number"] for line in path.read_bytes().splitlines()] == [0, 1, 9]
