"""Options for steady latency where the firmware has every right: as process 1 of a real kernel on an emulated board."""

from __future__ import annotations

import json

from support.systems import BOOT_TIMEOUT_S, Bench

OPTIONS = ("--huge-pages", "--prefault", "--lock-memory", "--realtime=50", "--pin=0", "--threads=1")


def test_nothing_is_refused_and_the_answer_is_the_same(bench: Bench) -> None:
    """A firmware of 100 MiB on a board of 256: copying its weights must not need them twice."""
    flashed = bench.large("cortex-a53")
    with bench.boot(flashed, flashed.direct("--selftest", *OPTIONS)) as system:
        said = system.expect(r"(?m)^COLIBRI_STATUS .*\n", BOOT_TIMEOUT_S)
        system.wait_power_off()
    status = json.loads(said.split(" ", 1)[1])
    assert status.get("refused", {}) == {}
    assert status["logits_hash"] == status["expected_hash"]
    assert status["huge_pages"]["huge_bytes"] == status["huge_pages"]["copied_bytes"] > 90 << 20
    assert status["prefault"]["bytes"] > 100 << 20
