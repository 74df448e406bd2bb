"""One run of a firmware: what a healthy one gives back, and how each broken one is reported."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from colibri_build.errors import DeadlineError, RunError
from colibri_build.run import process
from colibri_build.run.process import Runner, run_firmware, runner_for
from colibri_build.target.board import load_board
from support.fake_firmware import fake_answer

STATUS = (
    '{"status":"ok","exit_code":0,"prompts":1,"failed":0,"prompt_tokens":1,"tokens":1,"ids":[7],'
    '"logits_hash":"00000000000000ff","stop":"eos","threads":1,"context":8}'
)
GOOD = f"echo 'COLIBRI_STATUS {STATUS}' >&2\n"

Script = Callable[[str], Path]


def fault(runner: Runner, elf: Path, **options: object) -> RunError:
    with pytest.raises(RunError) as caught:
        run_firmware(runner, elf, timeout_s=10, **options)  # type: ignore[arg-type]
    assert caught.value.hint
    assert "\n" not in caught.value.what
    return caught.value


def test_a_run_under_qemu(a53: Runner, fake_a53: Path) -> None:
    pieces: list[bytes] = []
    transcript = run_firmware(a53, fake_a53, ["--prompt", "abc"], on_stdout=pieces.append)
    assert transcript.stdout == b"".join(pieces) == b"defghijklmnopqrstuvwxyz\n"
    assert transcript.status["logits_hash"] == fake_answer(b"abc").logits_hash
    assert transcript.exit_code == 0
    assert transcript.command == (*a53.prefix, str(fake_a53), "--prompt", "abc")
    assert 0 < transcript.seconds < 10


def test_a_bad_prompt_is_a_status_and_no_error(native: Runner, fake_native: Path) -> None:
    transcript = run_firmware(native, fake_native, ["--prompt", ""])
    assert (transcript.exit_code, transcript.status["status"]) == (3, "empty_prompt")


def test_output_streams_while_the_firmware_runs(
    native: Runner, fake_native: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE", "slow")
    arrivals: list[float] = []
    run_firmware(
        native, fake_native, ["--prompt", "!", "--max-tokens=6"], on_stdout=lambda _: arrivals.append(time.monotonic())
    )
    assert len(arrivals) >= 6
    assert arrivals[-1] - arrivals[0] > 0.08


def test_messages_stream_while_the_firmware_runs(native: Runner, script: Script) -> None:
    pieces: list[bytes] = []
    run_firmware(native, script("echo early >&2; sleep 0.3\n" + GOOD), on_stderr=pieces.append)
    assert pieces[0] == b"early\n"
    assert b"COLIBRI_STATUS" in pieces[-1]


def test_more_input_and_output_than_a_pipe_holds(native: Runner, fake_native: Path) -> None:
    n_lines = 6000
    transcript = run_firmware(native, fake_native, ["--stdin"], stdin=b"abcdefghijklmnopqrst\n" * n_lines)
    assert transcript.stdout == b"uvwxyz\n" * n_lines
    assert transcript.status["prompts"] == n_lines


def test_input_from_a_file(native: Runner, fake_native: Path, tmp_path: Path) -> None:
    (tmp_path / "prompts").write_bytes(b"wx\nw\n")
    with (tmp_path / "prompts").open("rb") as prompts:
        assert run_firmware(native, fake_native, ["--stdin"], stdin=prompts).stdout == b"yz\nxyz\n"


def test_a_firmware_may_leave_its_input_unread(native: Runner, fake_native: Path) -> None:
    assert run_firmware(native, fake_native, ["--version"], stdin=bytes(1_000_000)).exit_code == 0


def test_a_name_with_spaces_and_a_relative_path(
    native: Runner, fake_native: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(fake_native.parent)
    assert run_firmware(native, Path(fake_native.name), ["--prompt", "a b\tc"]).status["prompt_tokens"] == 5


def test_the_users_qemu_variables_change_nothing(a53: Runner, fake_a53: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QEMU_STRACE", "1")
    monkeypatch.setenv("QEMU_CPU", "max")
    assert "write(" not in run_firmware(a53, fake_a53, ["--prompt", "a"]).stderr


def test_deadline_ends_the_whole_group(native: Runner, script: Script, tmp_path: Path) -> None:
    elf = script(f"sleep 61 & echo $! > '{tmp_path}/pid'; wait")
    started = time.monotonic()
    with pytest.raises(DeadlineError, match=r"firmware did not end within 0\.4 s on x86-64-v3, native") as caught:
        run_firmware(native, elf, timeout_s=0.4)
    assert time.monotonic() - started < 3
    assert caught.value.exit_code == 124
    assert not alive(int((tmp_path / "pid").read_text()))


def test_deadline_holds_for_a_process_that_keeps_its_output_open(native: Runner, script: Script) -> None:
    with pytest.raises(DeadlineError):
        run_firmware(native, script(GOOD + "sleep 61 & exit 0"), timeout_s=0.4)


def alive(pid: int) -> bool:
    """Whether a process goes on running; one that waits for its parent to look at it does not.

    A process that was killed dies when it is given a core next: it has 2 s for that.
    """
    end = time.monotonic() + 2
    while time.monotonic() < end:
        try:
            if Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0] in "ZX":
                return False
        except (FileNotFoundError, ProcessLookupError):
            return False
        time.sleep(0.01)
    return True


@pytest.mark.parametrize(
    "text,what",
    [
        ("exit 3", "the firmware ended without a status line"),
        ("echo boom >&2", "the firmware ended without a status line; its last words: boom"),
        (GOOD + GOOD, "2 status lines where one must be"),
        (GOOD + "echo more >&2", "the status line is followed by: more"),
        ('echo \'COLIBRI_STATUS {"status":"o\' >&2', 'the status line is damaged: {"status":"o'),
        ("echo 'COLIBRI_STATUS [1]' >&2", "the status line is no object: [1]"),
        (GOOD.replace("[7]", "[7.5]"), "status line: 'ids' is [7.5]"),
        (GOOD.replace('"eos"', '"bored"'), "status line: 'stop' is 'bored'"),
        (GOOD.replace('"tokens":1', '"tokens":true'), "status line: 'tokens' is True"),
        (GOOD.replace('"threads":1,', ""), "status line: 'threads' is None"),
        (GOOD.replace("00ff", "0FF"), "status line: 'logits_hash' is '0000000000000FF'"),
        (GOOD + "exit 5", "exit code 5, but its status line says 0"),
        (GOOD + "kill -SEGV $$", "the firmware crashed (SIGSEGV)"),
        ("kill -KILL $$", "the firmware was killed (SIGKILL), perhaps for lack of memory"),
    ],
)
def test_a_run_must_end_with_one_true_status_line(native: Runner, script: Script, text: str, what: str) -> None:
    error = fault(native, script(text))
    assert error.what == what
    assert error.exit_code == 4


def test_status_on_stdout_is_not_the_status(native: Runner, script: Script) -> None:
    assert "without a status line" in fault(native, script(GOOD.replace(">&2", ""))).what


@pytest.mark.parametrize(
    "board,compiler,instruction",
    [
        ("cortex-a53", "aarch64-linux-gnu-gcc", ".inst 0x4e829420"),  # sdot v0.4s, v1.16b, v2.16b
        ("tda4vm", "aarch64-linux-gnu-gcc", ".inst 0xb8a00020"),  # swpa w0, w0, [x1]
        ("x86-64-v3", "gcc", "vpxord %zmm0, %zmm0, %zmm0"),
    ],
)
def test_an_instruction_that_the_board_lacks(
    compiled: Callable[[str, str], Path], board: str, compiler: str, instruction: str
) -> None:
    elf = compiled(compiler, f'int main(void) {{ __asm__ volatile("{instruction}"); }}')
    error = fault(runner_for(load_board(board), "qemu-user"), elf)
    assert error.what == f"the firmware executed an instruction that {board} does not have (SIGILL)"


def test_a_crash_under_qemu(a53: Runner, compiled: Callable[[str, str], Path]) -> None:
    elf = compiled("aarch64-linux-gnu-gcc", "int main(void) { return *(volatile int *)0; }")
    assert fault(a53, elf).what == "the firmware crashed (SIGSEGV)"


def test_a_firmware_larger_than_the_boards_address_space(a53: Runner, compiled: Callable[[str, str], Path]) -> None:
    elf = compiled("aarch64-linux-gnu-gcc", "char big[700 << 20]; int main(int n, char **v) { return big[n]; }")
    assert "the firmware ended without a status line; its last words: qemu-aarch64" in fault(a53, elf).what


def test_a_firmware_of_another_architecture(a53: Runner, fake_native: Path) -> None:
    assert "Invalid ELF image for this architecture" in fault(a53, fake_native).what


def test_a_firmware_of_another_architecture_natively(native: Runner, tmp_path: Path) -> None:
    elf = tmp_path / "firmware"
    elf.write_bytes(b"\x7fELF garbage")
    assert fault(native, elf).what.endswith("Permission denied")
    elf.chmod(0o755)
    assert fault(native, elf).what.endswith("Exec format error")


def test_no_firmware(native: Runner, tmp_path: Path) -> None:
    assert fault(native, tmp_path / "none").what == f"no firmware at {tmp_path / 'none'}"


def test_an_argument_with_a_zero_byte(native: Runner, fake_native: Path) -> None:
    with pytest.raises(RunError, match="embedded null byte"):
        run_firmware(native, fake_native, ["--prompt", "a\0b"])


def test_a_flood_of_output_ends_the_run(native: Runner, script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "MAX_OUTPUT_BYTES", 1 << 20)
    assert fault(native, script("exec yes")).what == "the firmware wrote more than 1 MiB"


def test_ctrl_c_ends_the_firmware_too(native: Runner, script: Script, tmp_path: Path) -> None:
    elf = script(f"echo $$ > '{tmp_path}/pid'; exec sleep 61")

    def interrupt() -> None:
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        run_firmware(native, elf, timeout_s=20)
    thread.join()
    assert not alive(int((tmp_path / "pid").read_text()))


def test_a_caller_that_fails_ends_the_firmware(native: Runner, fake_native: Path) -> None:
    def refuse(_: bytes) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        run_firmware(native, fake_native, ["--prompt", "a"], on_stdout=refuse)
