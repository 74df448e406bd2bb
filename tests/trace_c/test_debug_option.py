"""--debug from the command line to the binary's description, and its RAM in the budget."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from debug_firmware import ALL, CONFIG, CONTEXT, SUBSETS, Workshop, options

from colibri_build import cli_options
from colibri_build.artifacts import BuildOptions, BuildPlan, ModelConfig, Region
from colibri_build.build_folder import open_build
from colibri_build.elf.facts import read_facts
from colibri_build.elf.plan_checks import plan_checks
from colibri_build.errors import ColibriError
from colibri_build.plan.memory import memory_regions, trace_records
from colibri_build.resources import data_dir

LARGE = replace(CONFIG, n_layers=48, n_experts=128, top_k=8)
ONE = replace(CONFIG, n_layers=1, n_experts=1, top_k=1)


@pytest.mark.parametrize("text", ["", "routing", "timing,routing", " routing , memory,timing", "routing,routing"])
def test_names_are_sorted_and_taken_once(text: str) -> None:
    names = cli_options.debug_names(text)
    assert names == tuple(name for name in ALL if name in text)


@pytest.mark.parametrize("text", ["speed", "routing,", "routing timing", "ROUTING", "all"])
def test_another_name_is_refused_with_the_names_there_are(text: str) -> None:
    with pytest.raises(ColibriError, match=r"is nothing to record; try: --debug memory,routing,timing"):
        cli_options.debug_names(text)


@pytest.mark.parametrize("config", [CONFIG, LARGE, ONE], ids=["tiny", "large", "one"])
def test_the_plan_knows_the_ring_of_every_debug_build(tmp_path: Path, config: ModelConfig) -> None:
    """The compiler is the judge; and the ring holds a run's description and two tokens beside its reserve."""
    names = ("n_layers", "n_experts", "top_k")
    asserts = "".join(f"#define MODEL_{name.upper()} {getattr(config, name)}\n" for name in names)
    for debug in SUBSETS[1:]:
        flags = [f"-DDEBUG_{name.upper()}={int(name in debug)}" for name in ALL]
        n = trace_records(config, BuildOptions(CONTEXT, 1, debug=debug))
        (tmp_path / "model_config.h").write_text(asserts, encoding="ascii")
        (tmp_path / "ring.c").write_text(
            '#include "trace/ring.h"\n'
            f'_Static_assert(sizeof trace_ring == 16 * {n}, "ring");\n'
            "_Static_assert(TRACE_RING_RECORDS - TRACE_RESERVED_RECORDS >= TRACE_RUN_RECORDS + 2 * TRACE_TOKEN_RECORDS,"
            ' "two tokens");\n',
            encoding="ascii",
        )
        command = ["gcc", "-std=c11", "-fsyntax-only", *flags, f"-I{data_dir('runtime_c')}", f"-I{tmp_path}", "ring.c"]
        subprocess.run(command, cwd=tmp_path, check=True)


def test_the_region_is_there_in_debug_builds_only() -> None:
    regions = {region.name: region for region in memory_regions(CONFIG, options(ALL), 32)}
    assert regions["trace ring"].ram_bytes == 16 * trace_records(CONFIG, options(ALL))
    assert "memory, routing, timing" in regions["trace ring"].sum
    assert "trace ring" not in {region.name for region in memory_regions(CONFIG, options(()), 32)}


def plan_of(debug: tuple[str, ...], ring: int) -> BuildPlan:
    region = (Region("trace ring", 0, ring, ""),) if debug else ()
    return BuildPlan("board", "model", options(debug), region, 1 << 30, 1 << 30, 0, None)


@pytest.mark.parametrize("built", [(), ALL], ids=["plain", "debug"])
@pytest.mark.parametrize("planned", [(), ALL], ids=["plain", "debug"])
def test_the_inspection_tells_one_from_the_other(
    x86: Workshop, built: tuple[str, ...], planned: tuple[str, ...]
) -> None:
    """A debug build that goes to the field unnoticed would tell everyone what it was asked."""
    facts = read_facts(x86.firmware(built).elf)
    plan = plan_of(planned, 16 * trace_records(CONFIG, options(ALL)))
    checks = {check.name: check for check in plan_checks(facts, plan)}
    assert checks["debug build" if planned else "no debug build"].ok == (built == planned)
    assert checks["buffers as planned"].ok == (built == planned or not planned)


def test_info_says_what_is_compiled_in(x86: Workshop) -> None:
    for debug in SUBSETS:
        info = json.loads(x86.firmware(debug)("--info").stdout)
        assert info.get("debug") == (list(debug) or None)


def build_record(out: Path, debug: object) -> Path:
    """A finished build as far as open_build looks."""
    out.mkdir()
    chosen = {"context": 64, "max_threads": 1, "activation_bits": 16, "embed": "incbin"}
    if debug is not None:
        chosen["debug"] = debug  # type: ignore[assignment]
    record = {"board": "x86-64-v3", "model": "0" * 64, "options": chosen, "toolchain": {"request": "auto"}}
    golden = {"prompt": "a", "prompt_ids": [1], "ids": [2], "logits_hash": "0" * 16, "stop": "length"}
    (out / "build.json").write_text(json.dumps(record), encoding="utf-8")
    (out / "golden.json").write_text(json.dumps({"key": {}, "generations": [golden]}), encoding="utf-8")
    (out / "colibri_inference").write_bytes(b"")
    return out


@pytest.mark.parametrize(("kept", "read"), [(None, ()), ([], ()), (["memory", "timing"], ("memory", "timing"))])
def test_a_build_remembers_it(tmp_path: Path, kept: object, read: tuple[str, ...]) -> None:
    """A build from before --debug has no such key."""
    assert open_build(build_record(tmp_path / "out", kept)).options.debug == read


@pytest.mark.parametrize("kept", [["speed"], ["timing", "memory"], ["timing", "timing"], "timing", 3])
def test_a_damaged_record_is_refused(tmp_path: Path, kept: object) -> None:
    with pytest.raises(ColibriError, match=r"build\.json is damaged"):
        open_build(build_record(tmp_path / "out", kept))
