"""What a debug build records: true to the reference, to the ELF file and to itself, whatever the encoding."""

from __future__ import annotations

import re
import struct
import subprocess
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from debug_firmware import ALL, CONFIG, QEMU, SUBSETS, Workshop
from elftools.elf.elffile import ELFFile
from trace_decoder import (
    ATTENTION,
    EMBEDDING,
    EXPERT,
    EXPERTS,
    HEAD,
    INFO,
    MEMORY,
    ROUTER,
    ROUTING,
    TIME,
    TOKEN,
    UNKNOWN,
    line_of,
    records_of,
    routing_of,
    time_of,
    tokens_of,
)

from colibri_build.reference.model import ReferenceModel

HZ = {"x86-64-v3": 1_000_000_000, "cortex-a53": 62_500_000}
IDS = (5, 6, 7, 300)
TOKENS = ("--tokens", ",".join(map(str, IDS)), "--max-tokens", "5")
BINARY = ("--trace", "binary", "--trace-fd", "3")
TEXT = ("--trace", "text", "--trace-fd", "3")
KIND_OF = {"memory": MEMORY, "routing": ROUTING, "timing": TIME}


def shape(record: bytes) -> bytes:
    """A record without what differs from run to run: times."""
    if record[0] == TIME:
        return record[:4]
    return record[:12] if record[0] == TOKEN else record


@pytest.mark.parametrize("debug", SUBSETS, ids=lambda debug: "-".join(debug) or "none")
def test_recording_changes_no_logit(x86: Workshop, debug: tuple[str, ...]) -> None:
    firmware = x86.firmware(debug)
    for threads in "12":
        trace = BINARY if debug else ()
        run = firmware("--selftest", "--threads", threads, *trace)
        assert run.status["logits_hash"] == x86.golden.logits_hash
        kinds = {record[0] for record in records_of(run.trace)} if debug else set()
        assert kinds == {KIND_OF[name] for name in debug} | ({INFO, TOKEN} if debug else set())


@pytest.mark.parametrize("debug", [("routing",), ("timing",), ALL], ids="-".join)
def test_nor_for_a53(a53: Workshop, debug: tuple[str, ...]) -> None:
    firmware = a53.firmware(debug)
    for threads in "12":
        for trace in (("--trace", "off"), BINARY, TEXT):
            run = firmware("--selftest", "--threads", threads, *trace)
            assert run.status["logits_hash"] == a53.golden.logits_hash
            assert bool(run.trace) == ("off" not in trace)


@pytest.mark.parametrize("threads", ["1", "2", "3"])
def test_the_routing_is_the_references(shop: Workshop, threads: str) -> None:
    run = shop.firmware()(*TOKENS, "--threads", threads, *BINARY)
    fed = [*IDS, *run.status["ids"][:-1]]
    reference = ReferenceModel(shop.model, context=64)
    tokens = tokens_of(records_of(run.trace))
    assert len(tokens) == len(fed)
    for token, records in zip(fed, tokens, strict=True):
        routing = reference.step(token).routing
        expected = [
            (layer, first, list(step.experts[first : first + 4]), scaled(step.weights[first : first + 4]))
            for layer, step in enumerate(routing)
            for first in range(0, CONFIG.top_k, 4)
        ]
        assert [routing_of(record) for record in records if record[0] == ROUTING] == expected


def scaled(weights: tuple[float, ...]) -> list[int]:
    return [int(np.float32(weight) * np.float32(65535) + np.float32(0.5)) for weight in weights]


def test_tokens_say_phase_position_and_id(shop: Workshop) -> None:
    run = shop.firmware()(*TOKENS, *BINARY)
    fed = [*IDS, *run.status["ids"][:-1]]
    tokens = [struct.unpack("<xBHIII", records[-1]) for records in tokens_of(records_of(run.trace))]
    assert [(phase, position, token) for phase, _, position, token, _ in tokens] == [
        (int(position >= len(IDS)), position, token) for position, token in enumerate(fed)
    ]
    assert all(lost == 0 and 0 < ticks < UNKNOWN for _, lost, _, _, ticks in tokens)


def test_memory_is_where_the_elf_file_says(shop: Workshop) -> None:
    firmware = shop.firmware()
    records = records_of(firmware(*TOKENS, *BINARY).trace)
    places = [struct.unpack("<xBBBIQ", record) for record in records if record[0] == MEMORY]
    with firmware.elf.open("rb") as stream:
        table = ELFFile(stream).get_section_by_name(".symtab")
        symbols = {symbol.name: symbol["st_value"] for symbol in table.iter_symbols()}
    expected = []
    for layer in range(CONFIG.n_layers):
        for expert in range(CONFIG.n_experts):
            name = f"expert_{layer}_{expert}.bin"
            size = (shop.packed.path / name).stat().st_size
            expected.append((layer, expert, 0, size, symbols[name.replace(".", "_")]))
    assert places == expected


def test_the_first_record_names_model_shape_and_clock(shop: Workshop) -> None:
    first, *others = records_of(shop.firmware()(*TOKENS, *BINARY).trace)
    head = struct.unpack("<BBBBI", first[:8])
    assert head == (INFO, 1, CONFIG.n_layers, CONFIG.n_experts - 1, HZ[shop.board])
    assert first[8:].hex() == shop.packed.digest[:16]
    assert not any(record[0] == INFO for record in others)


def test_it_comes_again_with_every_64th_token(x86: Workshop) -> None:
    """Who connects late learns what the numbers mean."""
    prompts = b"the window on\n" * 20
    run = x86.firmware()("--stdin", "--max-tokens", "5", *BINARY, stdin=prompts)
    kinds = [record[0] for record in records_of(run.trace) if record[0] in (INFO, TOKEN)]
    n_tokens = kinds.count(TOKEN)
    assert n_tokens == run.status["prompt_tokens"] + run.status["tokens"] - 20
    expected = [INFO]
    for token in range(n_tokens):
        expected += [INFO, TOKEN] if token and token % 64 == 0 else [TOKEN]
    assert kinds == expected
    assert n_tokens > 128


def test_the_times_of_a_token_follow_each_other(shop: Workshop) -> None:
    layer_stages = [ATTENTION, ROUTER, *[EXPERT] * CONFIG.top_k, EXPERTS]
    for records in tokens_of(records_of(shop.firmware()(*TOKENS, "--threads", "1", *BINARY).trace)):
        times = [time_of(record) for record in records if record[0] == TIME]
        has_head = times[-1][0] == HEAD
        assert [(stage, layer) for stage, layer, *_ in times] == [
            (EMBEDDING, 0),
            *[(stage, layer) for layer in range(CONFIG.n_layers) for stage in layer_stages],
            *([(HEAD, 0)] if has_head else []),
        ]
        end = 0
        for _, _, _, start, ticks in (time for time in times if time[0] != EXPERT):
            assert start >= end
            end = start + ticks
        assert end <= struct.unpack("<12xI", records[-1])[0]
        for layer in range(CONFIG.n_layers):
            (block,) = (time for time in times if time[:2] == (EXPERTS, layer))
            experts = [time for time in times if time[:2] == (EXPERT, layer)]
            chosen = [routing_of(record)[2] for record in records if record[0] == ROUTING and record[1] == layer]
            assert [expert for _, _, expert, _, _ in experts] == list(chain(*chosen))
            assert all(start == block[3] for *_, start, _ in experts)
            assert 0 < sum(ticks for *_, ticks in experts) <= block[4]  # one thread: its shares are parts of the block


def test_the_order_of_records_does_not_depend_on_threads(shop: Workshop) -> None:
    runs = [shop.firmware()(*TOKENS, "--threads", threads, *BINARY) for threads in ("1", "2", "3", "3")]
    shapes = [[shape(record) for record in records_of(run.trace)] for run in runs]
    assert all(other == shapes[0] for other in shapes[1:])


def test_text_says_what_binary_says(shop: Workshop, tmp_path: Path) -> None:
    """The same records, once through the firmware's text encoder, once through the words of TRACE.md."""
    hz = HZ[shop.board]
    records = records_of(shop.firmware()(*TOKENS, *BINARY).trace)
    records += [struct.pack("<BBBBIII", TIME, 1, 2, 3, 0, ticks, 0) for ticks in (0, 1, 31, 32, 2450, 10**9, 2**32 - 1)]
    records.append(struct.pack("<BBBBIQ", MEMORY, 254, 255, 0, 2**32 - 1, 2**64 - 1))
    records.append(struct.pack("<BBBB4B4H", ROUTING, 254, 0, 4, 255, 254, 253, 252, 65535, 32768, 33, 0))
    lines = encode(shop, tmp_path, b"".join(records))
    assert lines == [line_of(record, hz) for record in records]


def encode(shop: Workshop, tmp_path: Path, records: bytes) -> list[str]:
    sources = [Path(__file__).parent / "text_main.c", "runtime_c/trace/text.c"]
    includes = ["-Iruntime_c", "-Iruntime_c/include", "-Igenerated"]
    out = tmp_path / "text"
    subprocess.run([*shop.compiler, *includes, *sources, "-static", "-o", out], cwd=shop.folder, check=True)
    done = subprocess.run([*QEMU[shop.board], out], input=records, capture_output=True, check=True)
    return done.stdout.decode().splitlines()


def test_two_runs_say_the_same_in_text_and_in_binary(shop: Workshop) -> None:
    def without_times(lines: list[str]) -> list[str]:
        return [re.sub(r": \d+ ticks .*", ":", line) for line in lines]

    records = records_of(shop.firmware()(*TOKENS, *BINARY).trace)
    text = shop.firmware()(*TOKENS, *TEXT).trace.decode().splitlines()
    assert without_times(text) == without_times([line_of(record, HZ[shop.board]) for record in records])
    for line in text:  # a time in microseconds is that of its ticks
        if found := re.search(r"(\d+) ticks \(([\d.]+)us", line):
            assert float(found[2]) == pytest.approx(int(found[1]) * 1e6 / HZ[shop.board], abs=0.0501)


def test_without_timing_a_token_has_no_time(x86: Workshop) -> None:
    run = x86.firmware(("routing",))(*TOKENS, *TEXT)
    tokens = [line for line in run.trace.decode().splitlines() if line.startswith("[TOKEN]")]
    assert tokens[:1] == [f"[TOKEN] prefill position=0 id={IDS[0]}"]
    assert not any("ticks" in line for line in run.trace.decode().splitlines())


def test_a_subset_can_be_chosen_at_run_time(x86: Workshop) -> None:
    for names in ("routing", "timing", "memory,routing"):
        records = records_of(x86.firmware()(*TOKENS, *BINARY, "--trace-events", names).trace)
        assert {record[0] for record in records} == {INFO, TOKEN, *(KIND_OF[name] for name in names.split(","))}
        ticks = {struct.unpack("<12xI", record)[0] for record in records if record[0] == TOKEN}
        assert (ticks == {UNKNOWN}) == ("timing" not in names)
