"""The page in a real browser: it draws what the events say, complains of nothing, and asks the network for nothing."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from colibri_build.report.build import make_report
from colibri_build.report.model import Build
from colibri_build.report.page import TIMELINE_TOKENS, report_to_page
from colibri_build.trace.read import read_traces
from support.browser import Visit, side_by_side, visit
from support.trace_writer import TraceWriter, example, frame, write_memory, write_run

CSP = '<meta http-equiv="Content-Security-Policy"'


def page_of(folder: Path, data: bytes, other: bytes | None = None, build: Build | None = None) -> str:
    paths = [folder / "trace.bin", folder / "other.bin"]
    for path, content in zip(paths, (data, other), strict=True):
        if content is not None:
            path.write_bytes(content)
    trace = read_traces(paths[:1])
    return report_to_page(make_report(trace, build, read_traces(paths[1:]) if other else None), trace)


def two_runs() -> TraceWriter:
    writer = example(6, 90)
    write_run(writer, 3, 20, seed=5)
    return writer


# Uses every control of the page, then measures what a person would see.
SCRIPT = """
say('ready', document.documentElement.dataset.ready);
say('shares', [...document.querySelectorAll('#heat td.cell')].map((c) => c.dataset.value));
document.querySelector('#heat-tabs [data-key=weight]').click();
say('weights', [...document.querySelectorAll('#heat td.cell')].map((c) => c.dataset.value));
document.querySelector('#heat-tabs [data-key=share]').click();
const bars = document.querySelectorAll('#histogram rect').length;
document.querySelector('#histogram-tabs [data-key=prefill]').click();
say('histogram', [bars, document.querySelector('#histogram svg').getAttribute('aria-label')]);
const slider = document.getElementById('timeline-token');
slider.value = 3; slider.dispatchEvent(new Event('input'));
say('picked', document.getElementById('timeline-picked').textContent);
say('spans', document.querySelectorAll('#lanes rect.span').length);
const narrow = document.querySelector('#lanes svg').getAttribute('width');
const zoom = document.getElementById('timeline-zoom');
zoom.value = '4'; zoom.dispatchEvent(new Event('change'));
say('zoomed', document.querySelector('#lanes svg').getAttribute('width') / narrow);
document.querySelectorAll('#timeline-chart rect.hit')[7].dispatchEvent(new MouseEvent('click'));
say('clicked', document.getElementById('timeline-picked').textContent);
const layer = document.getElementById('pairs-layer');
layer.value = '2'; layer.dispatchEvent(new Event('change'));
const cell = document.querySelector('#heat td.cell');
cell.dispatchEvent(new PointerEvent('pointermove', { bubbles: true, clientX: 300, clientY: 300 }));
say('tip', document.getElementById('tip').textContent);
const before = getComputedStyle(document.body).backgroundColor;
document.getElementById('theme').click();
say('theme', [before, getComputedStyle(document.body).backgroundColor]);
say('requests', performance.getEntriesByType('resource').map((entry) => entry.name));
"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Visit:
    folder = tmp_path_factory.mktemp("page")
    page = page_of(folder, two_runs().binary(), example(6, 90, slow=1.2).binary()[:-40])
    assert CSP in page
    # Without its policy the page could ask for anything: that it does not is its own doing.
    return visit(re.sub(rf"{CSP}[^>]*>", "", page), folder, SCRIPT)


def lines(writer: TraceWriter, kind: str) -> list[str]:
    return [line for _, line in writer.records if line.startswith(f"[{kind}]")]


def uses() -> tuple[Counter[tuple[str, str]], Counter[str]]:
    tokens: Counter[tuple[str, str]] = Counter()
    decisions: Counter[str] = Counter()
    for line in lines(two_runs(), "ROUTING"):
        found = re.search(r"layer=(\d+), top_k=\[([\d,]+)\]", line)
        assert found
        decisions[found[1]] += 1
        tokens.update((found[1], expert) for expert in found[2].split(","))
    return tokens, decisions


def test_the_page_draws_everything_without_complaint_or_request(seen: Visit) -> None:
    assert seen.said["ready"] == "yes"
    assert seen.console == []
    assert seen.said["requests"] == []


def test_the_heat_map_has_a_cell_for_each_expert_with_the_share_of_the_records(seen: Visit) -> None:
    tokens, decisions = uses()
    cells = [cell for cell in seen.elements(class_="cell") if "data-expert" in cell]
    assert len(cells) == 4 * 8
    for cell in cells:
        key = cell["data-layer"], cell["data-expert"]
        assert int(cell["data-tokens"]) == tokens[key]
        assert float(cell["data-value"]) == pytest.approx(tokens[key] / decisions[key[0]], abs=1e-6)
    assert sum(int(cell["data-tokens"]) for cell in cells) == 2 * len(lines(two_runs(), "ROUTING"))
    assert seen.said["shares"] != seen.said["weights"] and len(seen.said["weights"]) == 32


def test_the_matrix_of_pairs_is_that_of_the_chosen_layer(seen: Visit) -> None:
    cells = [cell for cell in seen.elements(class_="cell") if "data-a" in cell]
    assert len(cells) == 8 * 7
    of_layer = [line for line in lines(two_runs(), "ROUTING") if "layer=2," in line]
    assert sum(int(cell["data-tokens"]) for cell in cells) == 2 * len(of_layer)  # each pair twice: a with b, b with a


def test_the_controls_do_what_they_say(seen: Visit) -> None:
    bars, label = seen.said["histogram"]
    assert bars > 4 and "prefill" in label
    assert seen.said["zoomed"] == pytest.approx(4, rel=0.2)
    assert seen.said["theme"][0] != seen.said["theme"][1]
    assert seen.said["tip"].startswith("layer 0, expert 0\n")
    shown = lines(two_runs(), "TOKEN")
    token = re.search(r"position=(\d+) id=(\d+)", shown[3])
    assert token and f"at position {token[1]}, token {token[2]}" in seen.said["picked"]
    assert "at position 7," in seen.said["clicked"]
    assert seen.said["spans"] == 1 + 4 * 5  # embedding; attention, router, two experts, experts in each layer


def test_the_cards_and_the_table_of_stages_say_the_figures_of_the_report(seen: Visit) -> None:
    cards = {card["data-card"] for card in seen.elements(class_="card")}
    assert cards == {
        "Tokens", "Median latency", "99th percentile", "Maximum", "Standard deviation", "Throughput", "Trace",
    }  # fmt: skip
    assert re.search(r'data-card="Tokens">.{0,80}<div class="value">119', seen.dom, re.S)
    shown = re.findall(r'data-histogram="(\w+)"', seen.dom)
    assert shown == ["embedding", "attention", "router", "experts", "expert", "head", "other"]
    assert len(seen.elements(class_="placed")) == 32
    assert len(seen.elements(class_="latency")) == 119


def only(writer: TraceWriter, kind: str) -> bytes:
    """The text of a firmware built with one of the three kinds."""
    kept = [line for _, line in writer.records if line.startswith(("[INFO]", "[TOKEN]", f"[{kind}]"))]
    text = "\n".join(kept) + "\n"
    return (text if kind == "TIME" else re.sub(r"(\[TOKEN\].*?): .*", r"\1", text)).encode()


def damaged() -> bytes:
    frames = [frame(body) for body in example(5, 20).bodies()]
    bad = bytearray(frames[4])
    bad[30] ^= 2
    return b"".join([*frames[:4], bytes(bad), *frames[5:]])


HOSTILE = ("</script><script>parent.say('broken', 1)</script><!--", "\u201c\u2028", "<b>") * 171
TELEPHONE = """
for (const frame of document.querySelectorAll('iframe')) {
  const page = shown(frame.id), outside = (e) => e.getBoundingClientRect().right > 420.5 && !e.closest('.scroll, nav, svg');
  say(frame.id, {
    ready: page.documentElement.dataset.ready,
    sections: [...page.querySelectorAll('.panel')].map((section) => section.id),
    losses: [...page.querySelectorAll('[data-loss]')].map((item) => item.dataset.loss),
    alert: page.getElementById('losses').getAttribute('role'),
    first: page.querySelector('main').firstElementChild.id,
    board: page.querySelector('.facts').textContent,
    background: getComputedStyle(page.body).backgroundColor,
    overflow: [...page.querySelectorAll('main *')].filter(outside).map((e) => e.id || e.className),
  });
}
"""


@pytest.fixture(scope="module")
def telephones(tmp_path_factory: pytest.TempPathFactory) -> Visit:
    folder = tmp_path_factory.mktemp("telephones")
    pages = {kind: page_of(folder, only(example(3, 10), kind)) for kind in ("ROUTING", "MEMORY", "TIME")}
    pages["damaged"] = page_of(folder, damaged())
    pages["hostile"] = page_of(folder, example(2, 5).binary(), build=Build("board & <i>", "gcc", 64, HOSTILE))
    pages["compared"] = page_of(folder, two_runs().text(), example(6, 90).binary())
    return visit(side_by_side(pages, 420), folder, TELEPHONE, dark=True)


def test_every_page_is_drawn_without_complaint_also_in_the_dark_on_a_telephone(telephones: Visit) -> None:
    assert telephones.console == []
    for page in telephones.said.values():
        assert (page["ready"], page["background"], page["overflow"]) == ("yes", "rgb(15, 21, 22)", [])


def test_a_trace_of_one_kind_of_records_has_only_its_own_sections(telephones: Visit) -> None:
    sections = {kind: telephones.said[kind]["sections"] for kind in ("ROUTING", "MEMORY", "TIME")}
    assert sections == {
        "ROUTING": ["latency", "experts", "pairs", "records"],
        "MEMORY": ["latency", "memory", "records"],
        "TIME": ["latency", "stages", "experts", "timeline", "records"],
    }


def test_a_trace_that_is_not_whole_says_so_on_top_also_the_other_one(telephones: Visit, seen: Visit) -> None:
    page = telephones.said["damaged"]
    assert (page["alert"], page["first"]) == ("alert", "losses")
    assert {"bad_frames", "gaps", "lost_frames", "incomplete_tokens"} <= set(page["losses"])
    assert seen.elements(id="losses", class_="good") and seen.elements(id="other-losses", class_="bad")


def test_text_of_tokens_and_names_cannot_break_out_of_the_page(telephones: Visit) -> None:
    assert "broken" not in telephones.said
    assert "board & <i>" in telephones.said["hostile"]["board"]


def test_a_long_trace_of_many_experts_stays_small_and_says_what_it_leaves_out(tmp_path: Path) -> None:
    writer = TraceWriter(layers=24, experts=64)
    writer.info()
    write_memory(writer)
    write_run(writer, 50, 280, top_k=8)
    assert len(writer.records) > 100_000
    page = page_of(tmp_path, writer.binary())
    assert len(page.encode()) < 2_000_000
    script = "say('note', document.getElementById('timeline-note').textContent);"
    shown = visit(page, tmp_path, script)
    cells = [cell for cell in shown.elements(class_="cell") if "data-expert" in cell]
    assert shown.console == [] and len(cells) == 24 * 64
    found = re.match(r"Tokens (\d+) to 329 of 330 \(--first-token shows others\)", shown.said["note"])
    assert found and 330 - TIMELINE_TOKENS <= int(found[1]) < 320


def test_the_time_line_begins_where_it_is_told(tmp_path: Path) -> None:
    path = tmp_path / "trace.bin"
    path.write_bytes(example(5, 300).binary())
    trace = read_traces([path])
    page = report_to_page(make_report(trace), trace, first_token=20)
    data = re.search(r'id="data">(.*?)</script>', page, re.S)
    assert data
    tokens = json.loads(data[1])["timeline"]["tokens"]
    assert [token["index"] for token in tokens] == list(range(20, 20 + TIMELINE_TOKENS))
