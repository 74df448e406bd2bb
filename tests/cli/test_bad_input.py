"""A user's mistake is one line: what, where, what to try; with the documented exit code and without a traceback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from colibri_build import model_source
from colibri_build.build_folder import BINARY_NAME
from support.command_line import Run, error_line


def change_config(checkpoint: Path, **changes: object) -> None:
    path = checkpoint / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}), encoding="utf-8")


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({"num_experts_per_tok": 9}, ['"num_experts_per_tok" = 9', '"num_local_experts" = 4']),
        ({"intermediate_size": 128}, ["w1.weight", "[128, 64]", "[96, 64]"]),
        ({"attention_sink_size": 4}, ["attention_sink_size"]),
        ({"model_type": "mamba"}, ["mamba", "supported: deepseek", "mixtral"]),
        ({"rope_parameters": {"rope_type": "ntk", "rope_theta": 1e4, "factor": 4.0}}, ["ntk", "default", "yarn"]),
        ({"hidden_act": "gelu"}, ["hidden_act", "gelu", "silu"]),
    ],
    ids=["top-k", "shape", "unknown-key", "family", "rope", "activation"],
)
def test_a_configuration_that_we_cannot_honour(
    run: Run, tiny: Path, changes: dict[str, object], wanted: list[str]
) -> None:
    change_config(tiny, **changes)
    code, _, err = run("-b", "cortex-a53", tiny)
    assert code == 2
    assert all(word in error_line(err) for word in wanted), err
    assert "; try: " in error_line(err)


def test_a_truncated_checkpoint(run: Run, tiny: Path) -> None:
    weights = tiny / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])
    code, _, err = run("-b", "cortex-a53", tiny)
    assert code == 2
    assert "model.safetensors" in error_line(err)
    assert "truncated" in error_line(err) or "bytes" in error_line(err)


def test_an_unknown_board_names_the_closest(run: Run, tiny: Path) -> None:
    code, _, err = run("-b", "cortex-a35", tiny)
    assert code == 2
    assert "cortex-a53" in error_line(err)


def test_a_typo_in_a_board_file_names_key_and_line(run: Run, tiny: Path, tmp_path: Path) -> None:
    board = tmp_path / "mine.toml"
    board.write_text('extends = "cortex-a53"\nkernals = "neon"\n', encoding="utf-8")
    code, _, err = run("-b", board, tiny)
    assert code == 2
    assert "kernals" in error_line(err)
    assert "kernels" in error_line(err)


def test_a_missing_toolchain_is_said_before_the_model_is_quantized(
    run: Run, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    code, _, err = run("-b", "cortex-a53", "--toolchain", "debian-gcc", tiny)
    assert code == 3
    assert "apt-get install" in error_line(err)
    assert not (tmp_path / "cache").exists()


def test_a_missing_emulator_is_said_before_the_model_is_quantized(
    run: Run, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = tmp_path / "bin"
    bare.mkdir()
    for tool in ("aarch64-linux-gnu-gcc", "aarch64-linux-gnu-objdump"):
        (bare / tool).symlink_to(Path("/usr/bin", tool))
    monkeypatch.setenv("PATH", str(bare))
    code, _, err = run("-b", "cortex-a53", "--toolchain", "debian-gcc", "--verify", tiny)
    assert code == 4
    assert "apt-get install qemu-user-static" in error_line(err)
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        (b"", "holds no prompt"),
        (b"ok\nno\0\n", "holds a NUL"),
        (b"ok\n\xff\n", "not UTF-8: byte 0xff at offset 3"),
        (None, "No such file"),
    ],
)
def test_a_file_of_prompts_that_is_none(
    run: Run, tiny: Path, tmp_path: Path, content: bytes | None, wanted: str
) -> None:
    path = tmp_path / "prompts.txt"
    if content is not None:
        path.write_bytes(content)
    code, _, err = run("-b", "cortex-a53", "--prompts", path, tiny)
    assert code == 2
    assert wanted in error_line(err)
    assert error_line(err).count(str(path)) == 1


@pytest.mark.parametrize("option", [("--bits", "8"), ("--group-size", "64"), ("--format", "lm_head=f16")])
def test_options_that_cannot_change_a_quantized_model_are_refused(
    run: Run, tiny: Path, tmp_path: Path, option: tuple[str, str]
) -> None:
    assert run("quantize", "--group-size", "32", tiny, tmp_path / "model")[0] == 0
    code, _, err = run("plan", "-b", "tda4vm", *option, tmp_path / "model")
    assert code == 2
    assert "quantized already" in error_line(err)
    assert run("plan", "-b", "tda4vm", tmp_path / "model")[0] == 0


def test_a_damaged_model_in_the_cache_is_made_anew(run: Run, tiny: Path, tmp_path: Path) -> None:
    plan = ("plan", "-b", "tda4vm", "--group-size", "32", tiny)
    assert run(*plan)[0] == 0
    (dense,) = (tmp_path / "cache").rglob("dense.bin")
    whole = dense.read_bytes()
    dense.write_bytes(whole[:-1])
    assert run(*plan)[0] == 0
    assert dense.read_bytes() == whole


def test_a_model_that_other_code_quantized_is_not_taken_from_the_cache(
    run: Run, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for state in ("today", "today", "after an update"):
        monkeypatch.setattr(model_source, "code_digest", lambda state=state: state)
        assert run("plan", "-b", "tda4vm", "--group-size", "32", tiny)[0] == 0
    assert len(list((tmp_path / "cache").rglob("dense.bin"))) == 2


def test_a_mistyped_verb_names_the_closest(run: Run, tmp_path: Path) -> None:
    code, _, err = run("verfy", tmp_path)
    assert code == 2
    assert "Did you mean 'verify'?" in err


def test_a_long_option_first_is_no_mistyped_verb(run: Run, tmp_path: Path) -> None:
    """`colibri-build --board cortex-a53 model` is the command that every guide starts with."""
    (tmp_path / "empty").mkdir()
    code, _, err = run("--board", "cortex-a53", tmp_path / "empty")
    assert code == 2
    assert "no config.json" in error_line(err)


def test_a_calibration_text_that_can_be_read_only_once_is_refused(run: Run, tiny: Path, tmp_path: Path) -> None:
    """The cache's key is its content: of two pipes the second would get the first one's model."""
    os.mkfifo(tmp_path / "pipe")
    code, _, err = run("plan", "-b", "tda4vm", "--group-size", "32", "--calibration", tmp_path / "pipe", tiny)
    assert code == 2
    assert "no regular file" in error_line(err)


@pytest.mark.parametrize("out", ["file", "file/below"])
def test_a_build_folder_that_cannot_be_one(run: Run, tiny: Path, tmp_path: Path, out: str) -> None:
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    code, _, err = run("-b", "cortex-a53", "--group-size", "32", "-o", tmp_path / out, tiny)
    assert code == 2
    assert "file is a file" in error_line(err)
    assert not (tmp_path / "cache").exists()


def test_the_place_of_a_model_is_looked_at_before_the_work(run: Run, tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    code, _, err = run("quantize", tiny, tmp_path / "mine")
    assert code == 2
    assert "is no model folder" in error_line(err)
    assert "== quantize" not in err


def test_a_model_that_is_too_large_is_refused_with_sums_and_knobs(run: Run, tiny: Path, tmp_path: Path) -> None:
    board = tmp_path / "small.toml"
    board.write_text('extends = "cortex-a53"\n[memory]\nram_total_mib = 2\nram_budget_mib = 1\n', encoding="utf-8")
    for verb in ("plan", "build"):
        code, out, err = run(verb, "-b", board, "--group-size", "32", tiny)
        assert code == 1
        assert "1.0 MiB" in error_line(err)
        assert "; try: " in error_line(err)
        assert "KV cache" in out, "the budget is shown before it is spent"


def test_a_missing_model_folder(run: Run, tmp_path: Path) -> None:
    code, _, err = run("-b", "cortex-a53", tmp_path / "nowhere")
    assert code == 2
    assert "nowhere" in error_line(err)


def test_usage_errors_exit_with_2(run: Run, tiny: Path) -> None:
    assert run("-b", "cortex-a53", "--ctx", "0", tiny)[0] == 2
    assert run("-b", "cortex-a53", "--ctx", "100000", tiny)[0] == 2
    assert run("-b", "cortex-a53", "--format", "attention=f99", tiny)[0] == 2
    assert run("verify", tiny)[0] == 2
    assert run("--nonsense")[0] == 2


def test_a_folder_of_somebody_else_is_not_overwritten(run: Run, tiny: Path, tmp_path: Path) -> None:
    out = tmp_path / "precious"
    out.mkdir()
    (out / "Makefile").write_text("mine", encoding="utf-8")
    code, _, err = run("-b", "cortex-a53", "--group-size", "32", "-o", out, tiny)
    assert code == 2
    assert "Makefile" in error_line(err)
    assert (out / "Makefile").read_text() == "mine"


@pytest.mark.parametrize(("number", "wanted"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_build_leaves_nothing_half_written(
    tiny: Path, tmp_path: Path, number: signal.Signals, wanted: int
) -> None:
    out = tmp_path / "out"
    environment = {"PATH": "/usr/bin:/bin", "COLIBRI_CACHE": str(tmp_path / "cache")}
    command = [sys.executable, "-m", "colibri_build", "-b", "cortex-a53", "-v", "--group-size", "32"]
    arguments = [*command, "-o", str(out), str(tiny)]
    with subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if " -c " in line:
                break
        time.sleep(0.2)
        process.send_signal(number)
        _, rest = process.communicate(timeout=30)
    assert process.returncode == wanted, rest
    assert "Traceback" not in rest
    assert not (out / BINARY_NAME).exists()
    assert not [path for path in out.rglob("*") if path.name.endswith(".tmp")]
    assert not _processes_in(out), "a compiler is still at work"
    subprocess.run(arguments, check=True, env=environment, capture_output=True)
    assert (out / BINARY_NAME).exists()


def _processes_in(folder: Path) -> list[str]:
    """Processes whose working directory is `folder`."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (process / "cwd").readlink() == folder:
                found.append((process / "cmdline").read_text())
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_while_the_program_loads_shows_no_traceback(number: signal.Signals) -> None:
    script = (
        "import os, sys, colibri_build.__main__ as entry\n"
        "class Finder:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'rich_click': os.kill(os.getpid(), int(sys.argv[1]))\n"
        "sys.meta_path.insert(0, Finder())\n"
        "entry.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(int(number))], capture_output=True, text=True)
    assert done.returncode == 128 + number
    assert "Traceback" not in done.stderr
