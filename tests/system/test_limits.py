"""Less RAM than the firmware is large, and time that repeats: what only a whole machine can show."""

from __future__ import annotations

import json
from typing import Any

from support.systems import BOOT_TIMEOUT_S, MIB, STDIN, Bench, answer, assert_is, switch_off

SMALL_RAM_MIB = 88


def test_less_ram_than_the_firmware_is_slow_but_right(bench: Bench) -> None:
    """The kernel drops weights and reads them again: an answer that was there before faults again."""
    flashed = bench.large("cortex-a53")
    golden = flashed.golden[0]
    assert flashed.result.firmware.elf.stat().st_size > SMALL_RAM_MIB * MIB
    with bench.boot(flashed, flashed.direct(*STDIN), ram_mib=SMALL_RAM_MIB, cpus=1) as system:
        system.wait_ready(BOOT_TIMEOUT_S)
        first, second = (answer(system, golden.prompt, 120.0) for _ in range(2))
        status = switch_off(system)
    for got in (first, second):
        assert_is(golden, got)
        assert got["major_faults"] / got["tokens"] >= 1
    assert status["major_faults"] >= first["major_faults"] + second["major_faults"]


def bench_once(bench: Bench) -> dict[str, Any]:
    flashed = bench.tiny("cortex-a53")
    with bench.boot(flashed, flashed.direct("--bench=16", "--threads=1"), counts_time=True) as system:
        said = system.expect(r"(?m)^COLIBRI_STATUS .*\n", BOOT_TIMEOUT_S)
        system.wait_power_off()
    status: dict[str, Any] = json.loads(said.split(" ", 1)[1])
    assert (status["status"], status["tokens"]) == ("ok", 16)
    timing: dict[str, Any] = status["bench"]
    return timing


def test_time_in_instructions_repeats(bench: Bench) -> None:
    """A regression of one in a thousand must not hide behind a busy host."""
    first, second = bench_once(bench), bench_once(bench)
    assert first["total_us"] > 500
    for name, value in first.items():
        assert abs(value - second[name]) <= 1, name
