"""The verdict: a firmware that answers differently must not pass, whatever differs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from colibri_build.artifacts import Generation
from colibri_build.run.process import Runner
from colibri_build.run.verify import VerifyReport, VerifyResult, verify_firmware, verify_to_json
from support.fake_firmware import CONTEXT, fake_answer

GOLDEN = [
    fake_answer(b"abc"),  # ends with the end of sequence
    fake_answer(b"--golden", 5),  # its text looks like an option
    fake_answer(b"!" * (CONTEXT - 3)),  # ends with the context
]


def only(report: VerifyReport) -> VerifyResult:
    (result,) = report.results
    return result


def changed(generation: Generation, **fields: object) -> list[Generation]:
    return [replace(generation, **fields)]  # type: ignore[arg-type]


def test_a_firmware_like_the_reference_passes(a53: Runner, fake_a53: Path) -> None:
    report = verify_firmware(a53, fake_a53, GOLDEN, threads=(1, 3))
    assert report.ok
    assert [(row.prompt, row.threads) for row in report.results] == [(g.prompt, n) for g in GOLDEN for n in (1, 3)]
    assert {row.got_stop for row in report.results} == {"eos", "length", "context"}
    assert all(row.first_difference is None for row in report.results)


def test_another_token_is_found_at_its_place(
    native: Runner, fake_native: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE", "wrong")
    result = only(verify_firmware(native, fake_native, [fake_answer(b"n", 5)], threads=(1,)))
    assert not result.ok
    assert (result.ids_equal, result.hash_equal, result.first_difference) == (False, False, 2)


def test_equal_tokens_from_other_logits_fail(
    native: Runner, fake_native: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE", "drift")
    report = verify_firmware(native, fake_native, GOLDEN[:1], threads=(1,))
    result = only(report)
    assert (result.ids_equal, result.stop_equal, result.hash_equal) == (True, True, False)
    assert not report.ok


@pytest.mark.parametrize(
    "golden,difference",
    [
        (changed(GOLDEN[0], stop="length"), None),
        (changed(GOLDEN[0], prompt_ids=(97,)), None),
        (changed(GOLDEN[0], ids=GOLDEN[0].ids[:-1]), len(GOLDEN[0].ids) - 1),
        (changed(GOLDEN[0], ids=(*GOLDEN[0].ids, 9)), len(GOLDEN[0].ids)),
        (changed(GOLDEN[0], logits_hash="0" * 16), None),
    ],
)
def test_any_difference_fails(
    native: Runner, fake_native: Path, golden: list[Generation], difference: int | None
) -> None:
    report = verify_firmware(native, fake_native, golden, threads=(1,))
    assert not report.ok
    assert only(report).first_difference == difference


def test_a_firmware_that_refuses_is_no_success(native: Runner, fake_native: Path) -> None:
    report = verify_firmware(native, fake_native, GOLDEN[:1], threads=(5,))
    assert not report.ok
    assert only(report).error == "--threads 5 is out of range; try 1 .. 4"


def test_nothing_compared_is_no_success(native: Runner, fake_native: Path) -> None:
    assert not verify_firmware(native, fake_native, [], threads=(1,)).ok


def test_json(native: Runner, fake_native: Path) -> None:
    report = verify_firmware(native, fake_native, GOLDEN[:1], threads=(1, 2))
    record = json.loads(json.dumps(verify_to_json(report)))
    assert record["ok"] is True
    assert record["runner"] == "x86-64-v3, native"
    assert [row["threads"] for row in record["results"]] == [1, 2]
    assert record["results"][0]["got_hash"] == GOLDEN[0].logits_hash
    assert record["results"][0]["first_difference"] is None
