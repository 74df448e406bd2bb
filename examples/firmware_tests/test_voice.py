"""Tests of a firmware that run unchanged on a process, under QEMU, on an emulated machine and on a board at a serial port.

pytest --firmware build/cortex-a53/model/colibri_inference examples/firmware_tests
"""

from __future__ import annotations

from typing import Any

PROMPT = "turn the window on"


def test_it_holds_the_model_that_it_was_built_with(firmware: Any) -> None:
    """The answer that is embedded, token by token and logit by logit."""
    assert firmware.selftest()["status"] == "ok"


def test_an_answer_repeats(firmware: Any) -> None:
    first, second = (firmware.generate(PROMPT, max_tokens=8) for _ in range(2))
    assert first.status["status"] == "ok"
    assert first.stop in ("eos", "length")
    assert (first.ids, first.text, first.logits_hash) == (second.ids, second.text, second.logits_hash)


def test_a_seed_repeats_a_sampled_answer(firmware: Any) -> None:
    options = {"max_tokens": 8, "temperature": 0.8, "top_p": 0.9}
    answers = [firmware.generate(PROMPT, seed=seed, **options).ids for seed in (1, 1, 2)]
    assert answers[0] == answers[1]


def test_a_prompt_that_is_no_good_is_a_status(firmware: Any) -> None:
    assert firmware.generate("").status["status"] == "empty_prompt"
    assert firmware.generate(PROMPT, max_tokens=1).status["status"] == "ok"


def test_a_person_types_a_prompt(dut: Any) -> None:
    dut.serve()
    dut.expect("> ", timeout=10)
    dut.write(f"{PROMPT}\r")
    dut.expect(r"-- (eos|length|context), \d+ tokens, \d+ ms\n", timeout=60)


def test_ctrl_c_drops_a_line(dut: Any) -> None:
    dut.serve()
    dut.expect("> ", timeout=10)
    dut.write("not this")
    dut.interrupt()
    dut.expect("> ", timeout=10)
    dut.write("\r")
    dut.expect("> ", timeout=10)


def test_typing_and_the_protocol_share_the_line(dut: Any, firmware: Any) -> None:
    asked = firmware.generate(PROMPT, max_tokens=4)
    dut.write("\r")
    dut.expect("> ", timeout=20)
    assert firmware.generate(PROMPT, max_tokens=4).logits_hash == asked.logits_hash
