"""The changes that would make a model fit, each tried with the same sums."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from colibri_build.artifacts import BuildOptions, Format, Kind, ModelConfig, Region
from colibri_build.plan.memory import memory_regions
from colibri_build.plan.weights import weight_regions
from colibri_build.target.board import MIB, Board, list_boards, load_board

LEAST_CONTEXT = 64  # positions; less answers no prompt
WIDEST_GROUP = 128


@dataclass(frozen=True)
class Choice:
    """Everything that decides the sums."""

    config: ModelConfig
    formats: Mapping[Kind, Format]
    group_size: int
    options: BuildOptions

    def regions(self) -> tuple[Region, ...]:
        """The itemised budget."""
        weights = weight_regions(self.config, self.formats, self.group_size)
        return (*weights, *memory_regions(self.config, self.options, self.group_size))

    @property
    def ram_bytes(self) -> int:
        """Sum over the regions."""
        return sum(region.ram_bytes for region in self.regions())

    @property
    def flash_bytes(self) -> int:
        """Sum over the regions."""
        return sum(region.flash_bytes for region in self.regions())

    def fits(self, board: Board) -> bool:
        """Whether flash and RAM of the board are enough."""
        return self.ram_bytes <= board.ram_budget_bytes and self.flash_bytes <= board.flash_budget_bytes

    def with_context(self, context: int) -> Choice:
        """Return the same with another number of positions."""
        return replace(self, options=replace(self.options, context=context))

    def with_threads(self, threads: int) -> Choice:
        """Return the same with another number of threads."""
        return replace(self, options=replace(self.options, max_threads=threads))

    def with_batch(self, batch: int) -> Choice:
        """Return the same with another number of prompt tokens that are computed together."""
        return replace(self, options=replace(self.options, prefill_batch=batch))

    def with_format(self, kind: Kind, format: Format) -> Choice:
        """Return the same with another storage format of one tensor kind."""
        return replace(self, formats={**self.formats, kind: format})


def ways_out(choice: Choice, board: Board) -> tuple[str, ...]:
    """Options of the command that make the model fit, each enough by itself; nothing if it fits as it is."""
    if choice.fits(board):
        return ()
    ways = [_say(option, changed) for option, changed in _single_changes(choice, board) if changed.fits(board)]
    if not ways:
        ways = _all_changes(choice, board)
    others = (load_board(summary.name) for summary in list_boards() if summary.name != board.name)
    return (*ways, *(f"--board {other.name}" for other in others if choice.fits(other)))


def _single_changes(choice: Choice, board: Board) -> list[tuple[str, Choice]]:
    changes = [*_largest_context(choice, board), *_largest_batch(choice, board), *_most_threads(choice, board)]
    return changes + _smaller_weights(choice)


def _smaller_weights(choice: Choice) -> list[tuple[str, Choice]]:
    """Quantizations that need less, by option."""
    changes = []
    if choice.group_size < WIDEST_GROUP:
        changes.append((f"--group-size {WIDEST_GROUP}", replace(choice, group_size=WIDEST_GROUP)))
    if choice.formats[Kind.EXPERT] is Format.W8:
        changes.append(("--bits 4", choice.with_format(Kind.EXPERT, Format.W4)))
    if choice.formats[Kind.ATTENTION] is Format.W8:
        changes.append(("--format attention=w4", choice.with_format(Kind.ATTENTION, Format.W4)))
    for kind in (Kind.EMBEDDING, Kind.LM_HEAD):
        if choice.formats[kind] is Format.F16 and not (kind is Kind.LM_HEAD and choice.config.tied_embeddings):
            changes.append((f"--format {kind}=w8", choice.with_format(kind, Format.W8)))
    return changes


def _all_changes(choice: Choice, board: Board) -> list[str]:
    """Every change at once, if only that is enough: the smallest weights, one thread, no batches, then the largest context."""
    options = []
    smallest = choice
    while remaining := _smaller_weights(smallest):
        option, smallest = remaining[0]
        options.append(option)
    if smallest.options.max_threads > 1:
        options.append("--threads 1")
        smallest = smallest.with_threads(1)
    if smallest.options.batch > 1:
        options.append("--prefill-batch 1")
        smallest = smallest.with_batch(1)
    if not smallest.fits(board):
        found = _largest_context(smallest, board)
        if not found:
            return []
        option, smallest = found[0]
        options.append(option)
    return [_say(" ".join(options), smallest)]


def _largest_context(choice: Choice, board: Board) -> list[tuple[str, Choice]]:
    chat = choice.options.chat
    least = LEAST_CONTEXT if chat is None else max(LEAST_CONTEXT, chat.n_tokens + 1)  # a prompt has a token or more
    most = _largest(least, choice.options.context - 1, lambda n: choice.with_context(n).fits(board))
    return [(f"--ctx {most}", choice.with_context(most))] if most else []


def _largest_batch(choice: Choice, board: Board) -> list[tuple[str, Choice]]:
    most = _largest(1, choice.options.batch - 1, lambda n: choice.with_batch(n).fits(board))
    return [(f"--prefill-batch {most}", choice.with_batch(most))] if most else []


def _most_threads(choice: Choice, board: Board) -> list[tuple[str, Choice]]:
    most = _largest(1, choice.options.max_threads - 1, lambda n: choice.with_threads(n).fits(board))
    return [(f"--threads {most}", choice.with_threads(most))] if most else []


def _largest(low: int, high: int, fits: Callable[[int], bool]) -> int:
    """Largest n in low..high that fits, where every smaller one fits as well; 0 if none does."""
    if high < low or not fits(low):
        return 0
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def _say(option: str, choice: Choice) -> str:
    return f"{option} (needs {choice.ram_bytes / MIB:.1f} MiB of RAM, {choice.flash_bytes / MIB:.1f} MiB of flash)"
