"""Measure the example model as firmware: exact match on the held-out set, by quantization and activation class.

    .venv/bin/python scripts/measure_example.py

Builds for x86-64-v3, gives every held-out command to the binary's --stdin, and prints a Markdown table.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from colibri_build import pipeline
from colibri_build.artifacts import Format, Kind
from colibri_build.pipeline import BuildRequest, QuantizeChoices
from colibri_build.run.process import run_firmware
from colibri_build.run.runner import runner_for

EXAMPLE = Path(__file__).parents[1] / "examples" / "cabin_voice"
CALIBRATION = EXAMPLE / "calibration.txt"
VARIANTS: dict[str, tuple[QuantizeChoices, int]] = {
    "experts w8, a16": (QuantizeChoices(bits=8), 16),
    "rtn, groups of 128, a16": (QuantizeChoices(), 16),
    "rtn, groups of 64, a16": (QuantizeChoices(group_size=64), 16),
    "rtn, groups of 32, a16": (QuantizeChoices(group_size=32), 16),
    "awq, groups of 128, a16": (QuantizeChoices("awq", calibration=CALIBRATION), 16),
    "awq, groups of 32, a16": (QuantizeChoices("awq", group_size=32, calibration=CALIBRATION), 16),
    "awq, groups of 128, attention w4, a16": (
        QuantizeChoices("awq", calibration=CALIBRATION, formats={Kind.ATTENTION: Format.W4}),
        16,
    ),
    "rtn, groups of 128, a8": (QuantizeChoices(), 8),
    "awq, groups of 128, a8": (QuantizeChoices("awq", calibration=CALIBRATION), 8),
}


def answers(choices: QuantizeChoices, bits: int, prompts: list[str], folder: Path) -> tuple[list[str], int]:
    """Answers of the firmware to all prompts, and the bytes of its model folder."""
    request = BuildRequest(EXAMPLE / "model", "x86-64-v3", out=folder, quantize=choices, activation_bits=bits)
    result = pipeline.build(request)
    stdin = "".join(f"{prompt}\n" for prompt in prompts).encode()
    run = run_firmware(runner_for(result.board), result.firmware.elf, ["--stdin"], stdin=stdin, timeout_s=600)
    lines = run.stdout.decode().splitlines()
    return [line.removeprefix("\\n") for line in lines], sum(file.bytes for file in result.folder.files.values())


def main() -> None:
    """Print the table."""
    samples = [json.loads(line) for line in (EXAMPLE / "heldout.jsonl").read_text(encoding="utf-8").splitlines()]
    prompts, expected = [s["prompt"] for s in samples], [s["expected"] for s in samples]
    print("| weights and activations | model folder | exact match |\n| --- | ---: | ---: |")
    for name, (choices, bits) in VARIANTS.items():
        with tempfile.TemporaryDirectory() as folder:
            got, size = answers(choices, bits, prompts, Path(folder) / "out")
        right = sum(a == b for a, b in zip(got, expected, strict=True))
        print(
            f"| {name} | {size / 1024:.0f} KiB | {right} / {len(expected)} = {right / len(expected):.1%} |", flush=True
        )


if __name__ == "__main__":
    main()
