"""What the user asks for, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from colibri_build.checkpoint.source import model_name
from colibri_build.kinds import Format, Kind

DEFAULT_PROMPTS = ("Hello", "The quick brown fox jumps over the lazy dog.", "1 2 3")


@dataclass(frozen=True)
class QuantizeChoices:
    """How a checkpoint is quantized. `formats` overrides the policy for single tensor kinds."""

    method: str = "rtn"
    bits: int = 4
    group_size: int | None = None  # None: of a packed checkpoint its own, else 128
    calibration: Path | None = None
    formats: Mapping[Kind, Format] = field(default_factory=dict)
    restart: bool = False  # make what an interrupted run finished anew, too


@dataclass(frozen=True)
class BuildRequest:
    """One build as the user asked for it; None means the board's or the model's default."""

    model: Path
    board: str
    out: Path | None = None
    toolchain: str = "auto"
    context: int | None = None
    max_threads: int | None = None
    prefill_batch: int | None = None  # most prompt tokens that are computed together
    activation_bits: int = 16
    embed: str = "incbin"
    debug: tuple[str, ...] = ()  # of DEBUG_NAMES, sorted
    chat: bool = False  # prompts are put into the form of the model's chat template
    system: str | None = None  # with it: a system message before the prompt
    quantize: QuantizeChoices = field(default_factory=QuantizeChoices)
    prompts: tuple[str, ...] = DEFAULT_PROMPTS
    golden_tokens: int | None = None  # for each prompt; None: as many as the reference does in seconds
    pristine: bool = False
    will_run: bool = False  # the caller is going to run the firmware: fail early where that is impossible


def build_folder_of(request: BuildRequest) -> Path:
    """Where a build goes: as the user says, else build/BOARD/MODEL."""
    board = Path(request.board).stem if request.board.endswith(".toml") else request.board
    return request.out or Path("build") / board.replace("/", "-") / model_name(request.model)
