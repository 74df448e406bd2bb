"""A report as one HTML page that needs nothing beside itself: style, script, figures and data are in it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import jinja2

from colibri_build.errors import TraceError
from colibri_build.report.columns import tick_us
from colibri_build.report.json_text import report_to_json
from colibri_build.report.markdown import loss_name, losses_text
from colibri_build.report.model import Pair, Report, TokenTime
from colibri_build.report.spans import length_of, spans_of
from colibri_build.resources import data_dir
from colibri_build.trace_events import Trace

TIMELINE_TOKENS = 128  # tokens of the time line
_TIMELINE_SPANS = 24_000  # of all of them together: about half a megabyte
_SERIES_POINTS = 800  # of the latency chart; a point of a longer trace stands for several tokens
_MOST_PAIRS = 20_000  # of all layers together


def report_to_page(report: Report, trace: Trace, first_token: int | None = None) -> str:
    """Return the page. The time line shows `TIMELINE_TOKENS` tokens from the index `first_token` on, else the last ones.

    Raises TraceError if there is no such token.
    """
    n_tokens = len(report.tokens)
    if first_token is not None and not 0 <= first_token < n_tokens:
        raise TraceError(
            f"there is no token {first_token}: the trace has tokens 0 to {n_tokens - 1}", hint="another --first-token"
        )
    data = report_to_json(report) | {
        "tokens": [],
        "experts": [[e.tokens, e.share, e.mean_weight, e.median_us] for e in report.experts],  # by layer, then expert
        "placed": [[e.layer, e.expert, e.address, e.bytes] for e in report.memory.experts] if report.memory else [],
        "holes": [[hole.address, hole.bytes] for hole in report.memory.holes] if report.memory else [],
        "memory": report.memory and {"total": report.memory.total_bytes, "span": report.memory.span_bytes},
        "n_tokens": n_tokens,
        "series": _series(report.tokens),
        "timeline": _timeline(trace, first_token),
        "pairs": [[p.layer, p.a, p.b, p.tokens, p.lift] for p in _main_pairs(report.pairs, report.model.n_layers)],
        "n_pairs": len(report.pairs),
        "lost_text": losses_text(report.losses),
        "other_lost_text": losses_text(report.comparison.losses) if report.comparison else "",
    }
    if report.build and report.build.token_texts:
        data["texts"] = _texts(data, report.build.token_texts)
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(data_dir("templates") / "report"),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template("page.html.j2").render(report=report, data=_embedded(data), loss_name=loss_name)


def _embedded(data: Any) -> str:
    """JSON inside of <script>: no `<` in it, which might end the element or begin a comment."""
    text = json.dumps(data, separators=(",", ":"), sort_keys=True, ensure_ascii=False, allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _series(tokens: Sequence[TokenTime]) -> dict[str, Any]:
    """Points of the latency chart: [first index, tokens, min, median, max, run, position, id, phase]; phase 1: decode.

    Where a point stands for several tokens, what is not a time is that of the first of them.
    """
    step = max(1, -(-len(tokens) // _SERIES_POINTS))
    points = []
    for index in range(0, len(tokens), step):
        times = sorted(token.us for token in tokens[index : index + step] if token.us is not None)
        if times:
            first = tokens[index]
            stats = times[0], times[len(times) // 2], times[-1]
            points.append([index, step, *stats, first.run, first.position, first.id, int(first.phase == "decode")])
    return {"step": step, "points": points}


def _timeline(trace: Trace, first_token: int | None) -> dict[str, Any]:
    """Tokens with their spans as [stage, layer, expert, start, length, ticks] in one flat list of numbers each."""
    tokens = list(trace.tokens)
    first = max(0, len(tokens) - TIMELINE_TOKENS) if first_token is None else first_token
    shown = tokens[first : first + TIMELINE_TOKENS]
    while len(shown) > 1 and sum(len(token.times) for token in shown) > _TIMELINE_SPANS:
        shown, first = (shown[1:], first + 1) if first_token is None else (shown[:-1], first)
    rows = []
    for index, token in enumerate(shown, first):
        spans = spans_of(token)
        rows.append(
            {
                "index": index,
                "run": token.run,
                "position": token.token.position,
                "id": token.token.id,
                "phase": token.token.phase.name.lower(),
                "whole": token.is_whole,
                "ticks": length_of(token, spans),
                "spans": [number for span in spans for number in (*map(int, span),)],
            }
        )
    return {"tick_us": tick_us(trace), "first": first, "tokens": rows}


def _main_pairs(pairs: Sequence[Pair], n_layers: int) -> list[Pair]:
    """The most frequent pairs of each layer: enough for every model of up to 64 experts and 9 layers, or 8 and 700."""
    most, found = _MOST_PAIRS // max(1, n_layers), []
    in_layer = [0] * n_layers
    for pair in pairs:
        in_layer[pair.layer] += 1
        if in_layer[pair.layer] <= most:
            found.append(pair)
    return found


def _texts(data: dict[str, Any], texts: tuple[str, ...]) -> dict[str, str]:
    """Texts of the tokens that the page names, by id."""
    ids = {point[7] for point in data["series"]["points"]} | {token["id"] for token in data["timeline"]["tokens"]}
    return {str(number): texts[number] for number in sorted(ids) if number < len(texts)}
