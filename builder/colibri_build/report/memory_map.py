"""Where the experts' weights lie."""

from __future__ import annotations

from itertools import pairwise

from colibri_build.report.model import Hole, MemoryMap, Placed
from colibri_build.trace_events import Trace


def memory_map(trace: Trace) -> MemoryMap | None:
    """Return the experts by address and what lies between them, None if no MEMORY was recorded."""
    if not trace.memory:
        return None
    placed = sorted(
        (Placed(event.layer, event.expert, event.address, event.size) for event in trace.memory),
        key=lambda expert: (expert.address, expert.layer, expert.expert),
    )
    holes = []
    for before, after in pairwise(placed):
        end = before.address + before.bytes
        if after.address != end:
            holes.append(Hole(end, after.address - end))
    last = max(expert.address + expert.bytes for expert in placed)
    return MemoryMap(
        experts=tuple(placed),
        holes=tuple(holes),
        total_bytes=sum(expert.bytes for expert in placed),
        span_bytes=last - placed[0].address,
    )
