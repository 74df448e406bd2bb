"""The whole chain, as docs/first-hour.md has it: build, image, flash, boot, serve, verify, trace, report."""

from __future__ import annotations

import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from colibri_build.build_folder import WEIGHTS_FOLDER
from colibri_build.checkpoint.tokenizer import read_tokenizer_bytes
from colibri_build.checkpoint.tokenizer_encode import encode_text
from colibri_build.image.slots import active_slot
from colibri_build.pack.reader import load_quantized, read_model_folder
from colibri_build.reference.model import ReferenceModel
from colibri_build.resources import cache_folder
from colibri_build.trace.read import read_traces
from support.guide import Step, second_terminal, shell, steps_of
from support.systems import ARM_BOARDS, Bench

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "first-hour.md"
PROMPT = "open the rear left window"
Routing = dict[tuple[int, int], tuple[int, ...]]  # (position, layer) -> experts by rank


def environment(cache: Path) -> dict[str, str]:
    """The user's, with the commands on the path, a model cache of its own, and the fetched kernel."""
    cache.mkdir(exist_ok=True)
    kernels = cache / "kernel-arm64"
    if not kernels.exists():
        kernels.symlink_to(cache_folder(os.environ) / "kernel-arm64")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "COLIBRI_CACHE": str(cache)}


def follow(
    steps: tuple[Step, ...], folder: Path, variables: dict[str, str], bench: Bench
) -> Iterator[tuple[Step, str]]:
    """Do all steps. The board is on from its step up to the one that flashes its disk anew."""
    with ExitStack() as power:
        for step in steps:
            if step.is_board:
                power.enter_context(bench.machine())
                power.enter_context(second_terminal(step, folder, variables))
                continue
            if "--slot" in step.commands:
                power.close()
            yield step, shell(step, folder, variables)


def reference_routing(build: Path, status: dict[str, object]) -> Routing:
    """What the NumPy reference chooses for the prompt and the answer that the board gave."""
    model = load_quantized(read_model_folder(build / WEIGHTS_FOLDER), read_tokenizer_bytes)
    answer = status["ids"]
    assert isinstance(answer, list)
    fed = [*encode_text(model.tokenizer, PROMPT), *answer[:-1]]
    reference = ReferenceModel(model, context=len(fed))
    return {
        (position, layer): tuple(chosen.experts)
        for position, token in enumerate(fed)
        for layer, chosen in enumerate(reference.step(token, want_logits=False).routing)
    }


def traced_routing(path: Path) -> Routing:
    trace = read_traces([path])
    assert trace.losses.dropped_records == 0
    return {
        (token.token.position, routing.layer): routing.experts for token in trace.tokens for routing in token.routing
    }


def page_uses(path: Path) -> dict[tuple[int, int], int]:
    """How many tokens chose each expert of each layer, as the page's own data says."""
    found = re.search(r'id="data">(.*?)</script>', path.read_text(encoding="utf-8"), re.S)
    assert found
    data = json.loads(found[1])
    # A row each layer and expert, in this order; the first number of a row is the count.
    places = [divmod(number, data["model"]["n_experts"]) for number in range(len(data["experts"]))]
    return {place: row[0] for place, row in zip(places, data["experts"], strict=True) if row[0]}


def status_of(said: str) -> dict[str, object]:
    status: dict[str, object] = json.loads(said.split("COLIBRI_STATUS ", 1)[1].splitlines()[0])
    return status


@pytest.mark.parametrize("board", ARM_BOARDS)
def test_the_first_hour_goes_as_its_guide_says(bench: Bench, tmp_path: Path, board: str) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    steps = steps_of(GUIDE.read_text(encoding="utf-8").replace("cortex-a53", board))
    assert [step.is_board for step in steps].count(True) == 1
    assert all(step.expected for step in steps), "a step whose outcome the reader is not told"
    said = [(step.commands, text) for step, text in follow(steps, tmp_path, environment(bench.folder / "cache"), bench)]

    emulated, served = (status_of(text) for commands, text in said if commands.startswith("colibri-build run"))
    assert (served["ids"], served["logits_hash"]) == (emulated["ids"], emulated["logits_hash"])
    assert served["major_faults"], "the weights came from the disk"
    (verified,) = (text for commands, text in said if commands.startswith("colibri-build verify"))
    golden = json.loads((tmp_path / "build/first-hour/golden.json").read_bytes())["generations"]
    for answer in golden:  # of the board and of user-mode QEMU: what was got, and the reference's
        assert verified.count(answer["logits_hash"]) == 4
    wanted = reference_routing(tmp_path / "build/first-hour", served)
    assert traced_routing(tmp_path / "build/trace.bin") == wanted
    uses = Counter((layer, expert) for (_, layer), experts in wanted.items() for expert in experts)
    assert page_uses(tmp_path / "build/report.html") == dict(uses)
    assert active_slot(tmp_path / "build/disk.img") == "b"
