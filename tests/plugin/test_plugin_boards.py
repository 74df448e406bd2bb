"""Boards on a bench, as a user's session sees them: maps, flashing, scripts, bad lines, boards that die."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from colibri_build.pipeline import BuildResult
from support.plugin_session import PluginSession

Session = Callable[..., PluginSession]
MIB = 1024 * 1024


def hardware_map(folder: Path, **entry: object) -> Path:
    """A map with one board. JSON is YAML, too."""
    path = folder / "map.yaml"
    path.write_text(json.dumps([{"id": "bench-1", **entry}]), encoding="utf-8")
    return path


def script(folder: Path, name: str, log: Path) -> str:
    """A command that notes that it ran, and whether the disk was empty then."""
    path = folder / name
    path.write_text(
        f'#!/bin/sh\ncmp -s -n 4096 "{folder}/disk" /dev/zero && e=empty || e=full\necho {name} $e >> "{log}"\n'
    )
    path.chmod(0o755)
    return str(path)


def test_a_board_of_the_map_is_flashed_and_tested(
    session: Session, tmp_path: Path, native_build: BuildResult, native_image: Path
) -> None:
    """Scripts in order, the image on the disk before the first test, tests only where their fixtures are."""
    disk, log = tmp_path / "disk", tmp_path / "log"
    with disk.open("wb") as stream:
        stream.truncate(64 * MIB)
    scripts = {name: script(tmp_path, name, log) for name in ("pre_script", "post_flash_script", "post_script")}
    boards = hardware_map(
        tmp_path,
        platform=str(native_build.out.parent / "quick.toml"),
        serial_pty=f"{native_build.firmware.elf} --serve",
        baud=1_000_000,
        fixtures=["lamp"],
        **{"flash-device": str(disk), **scripts},
    )
    source = """
        import pytest

        def test_flashed(firmware):
            assert open("disk", "rb").read(1024)[512:520] == b"EFI PART"
            assert firmware.selftest()["status"] == "ok"

        @pytest.mark.needs_fixture("lamp")
        def test_with_a_lamp(firmware):
            assert firmware.generate("a", max_tokens=2).stop in ("eos", "length")

        @pytest.mark.needs_fixture("microphone")
        def test_with_a_microphone(firmware):
            raise AssertionError("nobody can hear it")
    """
    done = session("--hardware-map", boards, "--flash-before", "--image", native_image, source=source)
    assert done.outcomes == {
        "test_flashed": "passed",
        "test_with_a_lamp": "passed",
        "test_with_a_microphone": "skipped",
    }, done.out + done.err
    assert log.read_text() == "pre_script empty\npost_flash_script full\npost_script full\n"
    image = (native_image / "colibri.img").read_bytes()
    flashed = disk.read_bytes()[: len(image)]
    boot = slice(8 * MIB, len(image) - MIB)  # without the tables, whose second copy lies at the disk's end
    assert flashed[boot] == image[boot]
    found = done.properties["test_flashed"]
    assert found["firmware_sha256"] == hashlib.sha256(native_build.firmware.elf.read_bytes()).hexdigest()
    assert (found["device_type"], found["device_id"], found["model_digest"]) == (
        "serial", "bench-1", native_build.folder.digest,
    )  # fmt: skip


def test_the_scripts_of_a_board_run_and_their_failures_are_told(session: Session, tmp_path: Path) -> None:
    """A board that was prepared is put away, also where flashing failed; a script that fails does not pass unseen."""
    log = tmp_path / "log"
    entry = {"platform": "x86-64-v3", "serial": "/dev/none", "flash-device": "none"}
    boards = hardware_map(tmp_path, **entry, post_script=script(tmp_path, "post", log))
    done = session("--hardware-map", boards, "--flash-before", "--image", "none", source="def test_it(): pass")
    assert done.usage_error.startswith("colibri-build flash: ")
    assert log.read_text().startswith("post ")
    boards = hardware_map(tmp_path, **entry, post_script="sh -c 'echo switch is stuck >&2; exit 3'")
    done = session("--hardware-map", boards, source="def test_it(): pass")
    assert done.outcomes == {"test_it": "passed"}
    assert done.code == 4
    assert "ended with 3: switch is stuck; try: the scripts of the hardware map" in done.err


def test_a_board_with_another_model_is_not_tested(
    session: Session, tmp_path: Path, native_build: BuildResult, fake_native: Path
) -> None:
    done = session(
        *("--firmware", native_build.firmware.elf, "--device-serial-pty", f"{fake_native} --serve"),
        source="def test_it(firmware): firmware.selftest()",
    )
    assert done.outcomes == {"test_it": "failure"}
    assert f"the board holds model 0000000000000000, the build is {native_build.folder.digest[:16]}" in done.out


def test_bad_lines_change_no_answer_and_resets_are_told(session: Session, fake_native: Path) -> None:
    source = """
        import pytest
        from colibri_build.errors import RunError
        from colibri_build.run.paced_board import newline_to_crlf, noise

        def test_noise(firmware, paced_board, firmware_at):
            board = paced_board(baud=1_000_000, to_host=noise(1, 0.001), to_board=noise(2, 0.001))
            noisy = firmware_at(board.port, 1_000_000)
            for prompt in ("abc", "golden"):
                assert noisy.generate(prompt).logits_hash == firmware.generate(prompt).logits_hash

        def test_line_ends(paced_board, firmware_at):
            board = paced_board(baud=1_000_000, to_host=newline_to_crlf)
            assert firmware_at(board.port, 1_000_000).generate("abc").text == "defghijklmnopqrstuvwxyz"

        def test_a_reset(paced_board, firmware_at):
            board = paced_board(baud=1_000_000, reset_at=1500)
            reached = firmware_at(board.port, 1_000_000)
            with pytest.raises(RunError, match="the board was reset in the middle of the answer"):
                for _ in range(20):
                    reached.generate("abc")

        def test_unplugged(paced_board, firmware_at):
            board = paced_board(baud=1_000_000, unplug_at=900)
            reached = firmware_at(board.port, 1_000_000)
            with pytest.raises(RunError, match="device disconnected"):
                for _ in range(20):
                    reached.generate("abc")
    """
    done = session("--firmware", fake_native, "--board", "x86-64-v3", source=source)
    assert set(done.outcomes.values()) == {"passed"}, done.out
    assert len(done.outcomes) == 4


def test_what_goes_wrong_on_a_line_is_one_line(session: Session, fake_native: Path) -> None:
    """A firmware that crashes, a bad pattern, a deadline, options that a board cannot be given; the next test goes on."""
    source = """
        import pytest
        from colibri_build.errors import DeadlineError, RunError

        def test_options(dut):
            with pytest.raises(RunError, match="has been started already, with options of its own; try: dut.serve"):
                dut.start(["--prompt", "a"])

        def test_not_started(dut):
            with pytest.raises(RunError, match="the firmware was not started; try: dut.serve"):
                dut.expect("x")

        def test_deadline(dut):
            dut.serve()
            with pytest.raises(DeadlineError, match="no 'never' within 0.4 s; the console's end: 'READY"):
                dut.expect("never", timeout=0.2)

        def test_a_bad_pattern(dut):
            dut.serve()
            dut.bad_patterns = ("klm",)
            dut.write("abc\\r")
            with pytest.raises(RunError, match="the console says 'klm'"):
                dut.expect("xyz", timeout=30)

        def test_an_earlier_match_is_a_match(dut):
            dut.serve()
            dut.bad_patterns = ("klm",)
            dut.write("abc\\r")
            assert dut.expect(["never", "d(e)f"]).group(1) == "e"
            assert "\\r" not in dut.console

        def test_it_ends(dut, firmware):
            status = dut.session().shutdown()
            with pytest.raises(RunError, match="has ended with 0 before 'READY'"):
                dut.expect("READY", timeout=30)

        def test_and_is_started_again(firmware):
            assert firmware.generate("abc").stop == "eos"

        def test_failure_shows_the_console(dut):
            dut.serve()
            dut.write("abc\\r")
            dut.expect("z\\n")
            assert False
    """
    options = ["--device-serial-pty", f"{fake_native} --serve", "--device-serial-baud", 1_000_000]
    done = session(*options, "--timeout-multiplier", 2, source=source)
    failed = {name for name, outcome in done.outcomes.items() if outcome != "passed"}
    assert failed == {"test_failure_shows_the_console"}, done.out
    assert len(done.outcomes) == 8
    assert "firmware console" in done.out and "\ndefghijklmnopqrstuvwxyz\n" in done.out


@pytest.mark.parametrize(
    "command,message",
    [
        ("false", "'false' has ended with 1 before "),
        (
            "nonesuch --serve",
            "cannot start 'nonesuch --serve': No such file or directory; try: --device-serial-pty COMMAND",
        ),
        ("'open quote", "cannot start ''open quote': No closing quotation"),
    ],
)
def test_a_command_that_is_no_board_is_named_at_once(session: Session, command: str, message: str) -> None:
    source = "def test_it(dut): dut.serve()"
    done = session("--device-serial-pty", command, source=source, timeout_s=30)
    assert done.outcomes == {"test_it": "failure"}
    assert f"\nE   {message}" in done.out.replace("colibri_build.errors.RunError: ", "").replace("E       ", "E   ")
