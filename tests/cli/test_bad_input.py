"""A user's mistake is one line: what, where, what to try; with the documented exit code and without a traceback."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from colibri_build import cli
from support.tiny_checkpoint import write_tiny_checkpoint

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Run `colibri-build` in this process: (exit code, stdout, stderr)."""
    monkeypatch.setenv("COLIBRI_CACHE", str(tmp_path / "cache"))

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["colibri-build", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        captured = capsys.readouterr()
        return int(stopped.value.code or 0), captured.out, captured.err

    return call


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    return write_tiny_checkpoint(tmp_path / "tiny")


def error_line(stderr: str) -> str:
    """The one line that starts with `error:`."""
    lines = [line for line in stderr.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1, stderr
    assert "Traceback" not in stderr
    return lines[0]


def change_config(checkpoint: Path, **changes: object) -> None:
    path = checkpoint / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}), encoding="utf-8")


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({"num_experts_per_tok": 9}, ['"num_experts_per_tok" = 9', '"num_local_experts" = 4']),
        ({"intermediate_size": 128}, ["w1.weight", "[128, 64]", "[96, 64]"]),
        ({"attention_sink_size": 4}, ["attention_sink_size"]),
        ({"model_type": "mamba"}, ["mamba", "supported: mixtral"]),
        ({"rope_parameters": {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0}}, ["yarn", "default"]),
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


def test_a_missing_toolchain_says_what_to_install(run: Run, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    code, _, err = run("-b", "cortex-a53", "--toolchain", "debian-gcc", tiny)
    assert code == 3
    assert "apt-get install" in error_line(err)


def test_a_model_that_is_too_large_is_refused_with_sums_and_knobs(run: Run, tiny: Path, tmp_path: Path) -> None:
    board = tmp_path / "small.toml"
    board.write_text('extends = "cortex-a53"\n[memory]\nram_total_mib = 2\nram_budget_mib = 1\n', encoding="utf-8")
    code, out, err = run("plan", "-b", board, "--group-size", "32", tiny)
    assert code == 1
    assert "RAM" in error_line(err)
    assert "KV cache" in out


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


def test_ctrl_c_leaves_nothing_half_written(tiny: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = [sys.executable, "-c", "from colibri_build.cli import main; main()", "-b", "cortex-a53", "-v"]
    environment = {"PATH": "/usr/bin:/bin", "COLIBRI_CACHE": str(tmp_path / "cache")}
    arguments = [*command, "--group-size", "32", "-o", str(out), str(tiny)]
    with subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if " -c " in line:
                break
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        _, rest = process.communicate(timeout=30)
    assert process.returncode == 130, rest
    assert "Traceback" not in rest
    assert not (out / "colibri_inference").exists()
    assert not [path for path in out.rglob("*") if path.name.endswith(".tmp")]
    subprocess.run(arguments, check=True, env=environment, capture_output=True)
    assert (out / "colibri_inference").exists()
