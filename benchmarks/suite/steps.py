"""The steps of the benchmark, in the order in which they run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from suite import correct, outside, speed
from suite.cache import digest_of, digest_of_files, measured
from suite.engines import Engine, engines, tuned
from suite.instructions import instructions
from suite.models import MODELS, Model, drop_checkpoint
from suite.ours import BITS, BOARD_X86, firmware, text_bytes
from suite.peer import TYPES, driver, quantized
from suite.places import BENCHMARKS, Effort, Json

COUNTED = ("a", "b", "d")  # c takes as long as a and shows the same
TIMED = tuple(letter for letter, model in MODELS.items() if model.speed)


@dataclass(frozen=True)
class Step:
    """`measure` gets a model's letter, or "all" where `models` is empty, and returns what results.json keeps."""

    name: str
    models: tuple[str, ...]
    measure: Callable[[str, Effort], Json]


def _build(letter: str, effort: Effort) -> Json:
    """Make everything of a model that later steps run, and say what it took."""
    model = MODELS[letter]
    found: Json = {}
    for board in (BOARD_X86, model.board_a53):
        for bits in BITS:
            built = firmware(model, board, bits)
            if board == BOARD_X86:
                found[built.name] = built.cost | {"text_bytes": text_bytes(built.path)}
    if model.speed:
        driver("aarch64")
        program, _ = driver("x86_64")
        facts = quantized(model)[1]
        found |= {kind: facts[kind] | {"text_bytes": text_bytes(program)} for kind in TYPES}
        for kind in TYPES:
            found[kind].pop("digest")
    if letter != "d":
        drop_checkpoint(model)
    return found


def _timed(
    name: str,
    measure: Callable[[Sequence[Engine], Model, Effort], Json],
    extras: Callable[[Engine], list[Engine]] = lambda engine: [],
) -> Callable[[str, Effort], Json]:
    """A step that runs every engine natively; `extras` makes more of our first one."""

    def run(letter: str, effort: Effort) -> Json:
        model = MODELS[letter]
        members = engines(model, BOARD_X86)
        members += extras(members[0])
        key = digest_of([engine.digest for engine in members], effort.rounds, effort.quick, how_timed())
        value: Json = measured(f"{name}-{letter}", key, lambda: measure(members, model, effort), fresh=effort.fresh)
        return value

    return run


def how_timed() -> str:
    """Changes with the code that measures."""
    suite, tools = BENCHMARKS / "suite", BENCHMARKS / "tools"
    measuring = [suite / f"{name}.py" for name in ("speed", "engines", "commands", "models")]
    return digest_of_files([*measuring, tools / "launch.c", tools / "bandwidth.c"])


def _decode(members: Sequence[Engine], model: Model, effort: Effort) -> Json:
    found = speed.decode(members, model, effort)
    for by_threads in found.values():
        by_threads["weight_bytes"] = {engine.name: engine.weight_bytes for engine in members}
    return found


def _prefaulted(engine: Engine) -> list[Engine]:
    return [tuned(engine, "prefaulted", "--prefault")]


def _huge(engine: Engine) -> list[Engine]:
    return [tuned(engine, "huge pages", "--huge-pages")]


STEPS = {
    step.name: step
    for step in (
        Step("build", tuple(MODELS), _build),
        Step("correct", tuple(MODELS), lambda letter, effort: correct.correct(MODELS[letter])),
        Step("startup", TIMED, _timed("startup", speed.startup, _huge)),
        Step("decode", TIMED, _timed("decode", _decode, _huge)),
        Step("prefill", TIMED, _timed("prefill", speed.prefill)),
        Step("neighbour", ("a", "b"), _timed("neighbour", speed.neighbour)),
        Step("faults", TIMED, _timed("faults", speed.faults, _prefaulted)),
        Step("instructions", COUNTED, lambda letter, effort: instructions(MODELS[letter], effort)),
        Step("kernels", (), lambda letter, effort: outside.kernels()),
        Step("stages", (), lambda letter, effort: outside.stages("d" if effort.quick else "ad")),
        Step("tokenizer", (), lambda letter, effort: outside.tokenizer()),
        Step("builder", (), lambda letter, effort: outside.builder()),
        Step("large", (), lambda letter, effort: outside.import_at_scale()),
    )
}
