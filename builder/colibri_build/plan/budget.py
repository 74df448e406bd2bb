"""The budget of a firmware, itemised, against the board's: decided before anything is compiled."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from colibri_build.artifacts import BuildOptions, BuildPlan, ModelFolder, Region
from colibri_build.errors import PlanError
from colibri_build.plan.memory import arena_bytes, default_prefill_batch
from colibri_build.plan.ways_out import Choice, ways_out
from colibri_build.plan.weights import active_weight_bytes, weight_regions
from colibri_build.target.board import MIB, Board

__all__ = ["arena_bytes", "check_fits", "make_plan", "model_prefill_batch", "options_to_json", "plan_to_json"]

_BOARD = "--board "
_SHOWN_BOARDS = 3


def make_plan(folder: ModelFolder, board: Board, options: BuildOptions) -> BuildPlan:
    """Add up what a model needs on a board with these options. Refuses nothing: see check_fits."""
    choice = Choice(folder.config, folder.formats, folder.group_size, options)
    active = active_weight_bytes(folder.config, folder.formats, folder.group_size)
    bandwidth = board.memory.read_bandwidth
    return BuildPlan(
        board=board.name,
        model=str(folder.provenance.get("source", folder.path.name)),
        options=options,
        regions=choice.regions(),
        flash_budget_bytes=board.flash_budget_bytes,
        ram_budget_bytes=board.ram_budget_bytes,
        active_weight_bytes=active,
        bound_tokens_per_s=bandwidth.mb_per_s * 1e6 / active if bandwidth else None,
        ways_out=ways_out(choice, board),
    )


def model_prefill_batch(folder: ModelFolder) -> int:
    """Prompt tokens that are computed together where the user does not say: see default_prefill_batch."""
    weights = weight_regions(folder.config, folder.formats, folder.group_size)
    return default_prefill_batch(folder.config, sum(region.ram_bytes for region in weights), folder.group_size)


def check_fits(plan: BuildPlan, board: Board) -> None:
    """Raise PlanError if RAM or flash is not enough: by how much, the sums, and what would make it fit."""
    faults = []
    for what, need, budget in (
        ("RAM", plan.ram_bytes, board.ram_budget_bytes),
        ("flash", plan.flash_bytes, board.flash_budget_bytes),
    ):
        if need > budget:
            faults.append(
                f"{_mib(need)} of {what} where {board.name} has {_mib(budget)}, {_mib(need - budget)} too much "
                f"({_sums(plan.regions, what)})"
            )
    if faults:
        hint = _hint(plan.ways_out) or "a smaller model: no option makes this one fit, on any board"
        raise PlanError(f"{plan.model} with {plan.options.context} positions needs " + " and ".join(faults), hint=hint)


def _hint(ways_out: tuple[str, ...]) -> str:
    """The ways out in one line; of the boards, as many as a reader looks at."""
    ways = [way for way in ways_out if not way.startswith(_BOARD)]
    boards = [way.removeprefix(_BOARD) for way in ways_out if way.startswith(_BOARD)]
    if boards:
        more = f", ... ({len(boards) - _SHOWN_BOARDS} more)" if len(boards) > _SHOWN_BOARDS else ""
        ways.append(f"{_BOARD}{', '.join(boards[:_SHOWN_BOARDS])}{more}")
    return "; or ".join(ways)


def _sums(regions: tuple[Region, ...], what: str) -> str:
    """The regions that matter, largest first, each with its sum."""
    sizes = [(region.ram_bytes if what == "RAM" else region.flash_bytes, region) for region in regions]
    total = sum(size for size, _ in sizes)
    ranked = sorted(sizes, key=lambda item: -item[0])
    return "; ".join(f"{region.name} {_mib(size)}: {region.sum}" for size, region in ranked if size * 20 >= total)


def _mib(size: int) -> str:
    return f"{size / MIB:.1f} MiB"


def options_to_json(options: BuildOptions) -> dict[str, Any]:
    """The options as JSON values; `chat` is there only with --chat."""
    return {name: value for name, value in asdict(options).items() if name != "chat" or value is not None}


def plan_to_json(plan: BuildPlan) -> dict[str, Any]:
    """The plan as JSON values; sizes in bytes. `bound_tokens_per_s` is an upper bound, or null without a figure."""
    return {
        "board": plan.board,
        "model": plan.model,
        "options": options_to_json(plan.options),
        "regions": [asdict(region) for region in plan.regions],
        "flash_bytes": plan.flash_bytes,
        "flash_budget_bytes": plan.flash_budget_bytes,
        "ram_bytes": plan.ram_bytes,
        "ram_budget_bytes": plan.ram_budget_bytes,
        "fits": plan.flash_bytes <= plan.flash_budget_bytes and plan.ram_bytes <= plan.ram_budget_bytes,
        "active_weight_bytes": plan.active_weight_bytes,
        "bound_tokens_per_s": plan.bound_tokens_per_s,
        "ways_out": list(plan.ways_out),
    }
