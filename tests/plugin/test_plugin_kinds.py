"""One test file, four kinds of devices: the documented example, and what only some kinds can do. Real model, real QEMU."""

from __future__ import annotations

import ast
import hashlib
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from colibri_build.pipeline import BuildResult
from support.builds import PROMPTS
from support.plugin_session import PluginSession

EXAMPLE = Path(__file__).parents[2] / "examples" / "firmware_tests" / "test_voice.py"
Session = Callable[..., PluginSession]
# Nobody can start the firmware of a board on the bench with options of a test; a process and a machine take them.
STARTS = """
    def test_a_run_with_options(dut):
        dut.start(["--prompt", "a", "--max-tokens", "3"])
        status = dut.status(timeout=120)
        assert (status["status"], status["tokens"]) == ("ok", 3)
"""
KINDS = ("native", "qemu-user", "qemu-system", "serial")
# What the reference says, asked through the fixture: the same file for every kind.
GOLDEN = f"""
    import json
    from pathlib import Path

    PROMPTS = {PROMPTS!r}

    def test_every_golden_prompt(firmware, pytestconfig):
        answers = json.loads((Path(pytestconfig.option.colibri_firmware).parent / "golden.json").read_bytes())
        for golden in answers["generations"]:
            got = firmware.generate(golden["prompt"], max_tokens=12)
            assert (list(got.ids), got.logits_hash) == (golden["ids"], golden["logits_hash"])
        assert firmware.stats()["prompts"] >= len(PROMPTS)
"""


def names_of_tests(path: Path) -> set[str]:
    """Names of a file's tests."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


@pytest.mark.parametrize("kind", KINDS)
def test_the_example_runs_on_every_kind(
    session: Session, kind: str, native_build: BuildResult, request: pytest.FixtureRequest
) -> None:
    built = native_build if kind == "native" else request.getfixturevalue("a53_build")
    options = ["--firmware", built.firmware.elf, "--device-type", kind]
    if kind == "serial":
        options += ["--device-serial-pty", request.getfixturevalue("a53_command"), "--device-serial-baud", 115200]
    done = session(*options, "--timeout-multiplier", 4, EXAMPLE, source=GOLDEN + (STARTS if kind != "serial" else ""))
    assert done.code == 0, done.out + done.err
    names = names_of_tests(EXAMPLE)
    assert len(names) >= 6
    more = {"test_every_golden_prompt", "test_a_run_with_options"} if kind != "serial" else {"test_every_golden_prompt"}
    assert set(done.outcomes) == names | more
    assert set(done.outcomes.values()) == {"passed"}
    for properties in done.properties.values():
        assert properties["device_type"] == kind
        assert properties["board"] == built.board.name
        assert properties["cpu"] == built.board.cpu.name
        assert properties["firmware_sha256"] == hashlib.sha256(built.firmware.elf.read_bytes()).hexdigest()
        assert properties["model_digest"] == built.folder.digest
        assert "instructions" not in properties
    selftest = done.properties["test_it_holds_the_model_that_it_was_built_with"]
    assert selftest["logits_hash"] == built.golden[0].logits_hash
    assert selftest["tokens"] == str(len(built.golden[0].ids))
    assert int(selftest["major_faults"]) >= 0
    assert int(selftest["minor_faults"]) >= 0
    if kind == "qemu-system":  # a run as process 1 counts its own
        assert int(done.properties["test_a_run_with_options"]["minor_faults"]) > 0


def test_instructions_are_counted_exactly(session: Session, a53_build: BuildResult, instruction_plugin: Path) -> None:
    """The plugin alone, started by hand, counts the same."""
    elf = a53_build.firmware.elf
    arguments = ["--prompt", "a", "--max-tokens", "4", "--threads", "1"]
    source = f"""
        import pytest

        @pytest.mark.parametrize("run", [1, 2])
        def test_run(dut, run):
            dut.start({arguments!r})
            assert dut.status()["tokens"] == 4

        def test_serving(firmware):
            assert firmware.generate("a", max_tokens=4).status["threads"] == 1
    """
    done = session(
        *("--firmware", elf, "--device-type", "qemu-user", "--instruction-plugin", instruction_plugin), source=source
    )
    assert done.code == 0, done.out
    first, second = (int(done.properties[f"test_run[{run}]"]["instructions"]) for run in (1, 2))
    qemu = ["qemu-aarch64", *a53_build.board.qemu.args, "-plugin", str(instruction_plugin)]
    by_hand = subprocess.run([*qemu, str(elf), *arguments], capture_output=True, text=True, check=True).stderr
    found = re.search(r"instructions (\d+)", by_hand)
    assert found
    assert first == second
    assert abs(first - int(found[1])) / first < 0.01, "a terminal instead of a pipe is a few system calls"
    assert int(done.properties["test_serving"]["instructions"]) > first * 0.9
