"""What colibri_inference answers. Expected values come from the NumPy reference over the same fake logits."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable

import pytest

from support.fake_firmware import CONTEXT, EOS, VOCAB, Program, Run, build_fake, fake_answer, golden_answer, text_of


def check(run: Run, expected, **more: object) -> None:
    status = run.status
    assert status["status"] == "ok"
    assert run.exit_code == 0
    assert tuple(status["ids"]) == expected.ids
    assert status["logits_hash"] == expected.logits_hash
    assert status["stop"] == expected.stop
    assert (status["prompt_tokens"], status["tokens"]) == (len(expected.prompt_ids), len(expected.ids))
    for key, value in more.items():
        assert status[key] == value


def test_an_answer_ends_at_the_end_of_sequence(program: Program) -> None:
    run = program("--prompt", "abc")
    check(run, fake_answer(b"abc"), stop="eos", prompts=1, failed=0, context=CONTEXT)
    assert run.stdout == b"defghijklmnopqrstuvwxyz\n"
    assert run.status["ids"][-1] == EOS[0]


def test_max_tokens_ends_an_answer(program: Program) -> None:
    run = program("--prompt=abc", "--max-tokens=3")
    check(run, fake_answer(b"abc", 3), stop="length")
    assert run.stdout == b"def\n"


def test_an_end_of_sequence_that_is_the_last_allowed_token_counts_as_eos(program: Program) -> None:
    check(program("--prompt", "y", "--max-tokens", "2"), fake_answer(b"y", 2), stop="eos")


def test_an_answer_ends_with_the_context(program: Program) -> None:
    run = program("--prompt", "!", "--ctx", "10")
    check(run, fake_answer(b"!", context=10), stop="context", context=10)
    assert len(run.status["ids"]) == 10  # the last one is chosen, but there is no position to feed it


@pytest.mark.parametrize("length", [CONTEXT - 1, CONTEXT])
def test_a_prompt_may_fill_the_context(program: Program, length: int) -> None:
    prompt = b"a" * length
    check(program("--prompt", prompt), fake_answer(prompt), stop="context")


def test_a_full_context_and_one_token_wanted_is_a_length_stop(program: Program) -> None:
    check(program("--prompt", "a" * CONTEXT, "--max-tokens", "1"), fake_answer(b"a" * CONTEXT, 1), stop="length")


def test_tokens_are_a_prompt_of_ids(program: Program) -> None:
    run = program("--tokens", "259,97,98", "--max-tokens", "4")
    check(run, fake_answer([259, 97, 98], 4))
    assert run.stdout == b"cdef\n"


def test_ids_print_what_tokens_read(program: Program) -> None:
    run = program("--prompt", "w", "--ids")
    assert run.stdout == b"120,121,122\n"
    assert run.status["ids"] == [120, 121, 122, 257]


def test_characters_come_out_whole(program: Program) -> None:
    # 0xC3 starts a character of two bytes; its follower 0xC4 breaks it, and 0xC4 never gets one
    run = program("--tokens", "194", "--max-tokens", "2")
    assert run.status["ids"] == [195, 196]
    assert run.stdout == "\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}\n".encode()


@pytest.mark.parametrize("top_p", [1.0, 0.9, 0.3])
@pytest.mark.parametrize("seed", [0, 1, 2**64 - 1])
def test_sampling_is_the_reference_s(program: Program, seed: int, top_p: float) -> None:
    run = program("--prompt", "ab", "--temperature", "2.5", "--top-p", str(top_p), "--seed", str(seed))
    check(run, fake_answer(b"ab", temperature=2.5, top_p=top_p, seed=seed))


def test_seeds_differ(sanitized: Program) -> None:
    answers = {tuple(sanitized("--prompt", "ab", "--temperature", "3", f"--seed={n}").status["ids"]) for n in range(5)}
    assert len(answers) > 1


def test_stdin_answers_each_line(program: Program) -> None:
    run = program("--stdin", stdin=b"abc\nwx\r\n\n\xc3\xa9y")
    answers = run.lines("COLIBRI_ANSWER ")
    expected = [fake_answer(prompt) for prompt in (b"abc", b"wx")]
    assert [answer["logits_hash"] for answer in answers[:2]] == [e.logits_hash for e in expected]
    assert run.stdout.split(b"\n") == [text_of(expected[0].ids), b"yz", b"", b"z", b""]
    assert [answer["status"] for answer in answers] == ["ok", "ok", "empty_prompt", "ok"]
    status = run.status
    assert (status["prompts"], status["failed"], status["status"]) == (4, 1, "empty_prompt")
    assert status["prompt_tokens"] == sum(answer["prompt_tokens"] for answer in answers)
    assert status["tokens"] == sum(answer["tokens"] for answer in answers)
    assert run.exit_code == 3


def test_stdin_keeps_an_answer_on_its_line(program: Program) -> None:
    run = program("--stdin", "--max-tokens", "6", stdin=b"\x08\n")
    assert run.status["status"] == "ok"
    assert run.stdout == b"\t\\n\x0b\x0c\\r\x0e\n"


def test_each_line_of_stdin_starts_the_random_numbers_anew(sanitized: Program) -> None:
    run = sanitized("--stdin", "--temperature", "3", "--seed", "7", stdin=b"ab\nab\n")
    first, second = run.lines("COLIBRI_ANSWER ")
    assert first == second
    assert tuple(first["ids"]) == fake_answer(b"ab", temperature=3, seed=7).ids


def test_the_hash_of_several_prompts_is_over_their_hashes(sanitized: Program) -> None:
    run = sanitized("--stdin", stdin=b"abc\nwx\n")
    h = 14695981039346656037
    for answer in run.lines("COLIBRI_ANSWER "):
        h = (h * 6364136223846793005 + int(answer["logits_hash"], 16)) % 2**64
    assert run.status["logits_hash"] == f"{h:016x}"


def test_stdin_without_lines_is_no_fault(program: Program) -> None:
    run = program("--stdin")
    assert (run.exit_code, run.stdout, run.status["prompts"]) == (0, b"", 0)


def test_answers_come_while_the_input_is_still_open(sanitized: Program) -> None:
    command = [*sanitized.command, "--stdin"]
    with subprocess.Popen(command, stdin=-1, stdout=-1, stderr=-1, env=sanitized.environment("")) as process:
        assert process.stdin
        assert process.stdout
        for _ in range(2):
            process.stdin.write(b"wx\n")
            process.stdin.flush()
            assert process.stdout.readline() == b"yz\n"


def test_threads_do_not_change_the_answer(program: Program) -> None:
    hashes = {program("--prompt", "abc", "--threads", n).status["logits_hash"] for n in ("1", "2", "4")}
    assert len(hashes) == 1


def test_selftest_passes(program: Program) -> None:
    run = program("--selftest")
    check(run, golden_answer(), expected_hash=golden_answer().logits_hash)
    assert run.stdout.startswith(b"selftest passed: 6 of 6 tokens equal\n")


@pytest.mark.parametrize(
    "fake,message",
    [
        ("wrong", "token 3 of 6 differs from the reference"),
        ("drift", "all 6 tokens equal the reference's, the logits do not"),
    ],
)
def test_selftest_sees_a_difference(program: Program, fake: str, message: str) -> None:
    run = program("--selftest", fake=fake)
    assert (run.exit_code, run.status["status"], run.status["failed"]) == (6, "selftest", 1)
    assert message in run.message
    assert run.stdout.startswith(b"selftest FAILED: ")
    assert run.status["logits_hash"] != run.status["expected_hash"]


def test_bench_measures_every_token(program: Program) -> None:
    run = program("--bench", "5", fake="slow")
    bench = run.status["bench"]
    assert (bench["tokens"], run.status["tokens"], run.status["stop"]) == (5, 5, "length")
    assert all(isinstance(value, int) for value in bench.values())
    assert 20_000 <= bench["median_us"] <= bench["p99_us"] <= bench["max_us"] <= bench["total_us"]
    assert bench["total_us"] >= 5 * 20_000
    assert bench["prefill_us"] >= 6 * 20_000
    assert bench["std_us"] <= bench["max_us"]
    speed = float(re.search(rb"decode speed +([\d.]+) tokens/s", run.stdout)[1])
    assert speed == pytest.approx(5e6 / bench["total_us"], abs=1e-3)


def test_bench_goes_to_the_end_of_the_context(program: Program) -> None:
    run = program("--bench", str(CONTEXT - 6))
    assert run.status["bench"]["tokens"] == CONTEXT - 6
    run = program("--bench", str(CONTEXT - 5))
    assert run.exit_code == 2
    assert run.message == "--bench 59: the embedded prompt leaves 58 of 64 positions; try --bench 58"
    run = program("--bench", "1", "--ctx", "6")
    assert run.message == "--bench 1: the embedded prompt fills all 6 positions"


def test_no_other_run_prints_times(program: Program) -> None:
    assert program("--prompt", "abc").stderr == program("--prompt", "abc").stderr


def test_info_is_json(program: Program) -> None:
    run = program("--info")
    info = json.loads(run.stdout)
    assert run.status["status"] == "ok"
    assert info["model"] == 'fake "mod\u00e9l"\n\\'
    assert (info["context"], info["vocab_size"], info["activation_bits"], info["abi"]) == (CONTEXT, VOCAB, 16, 1)
    assert (info["board"], info["kernels"], info["expert_format"]) == ("fake-board", "portable", "w4")
    assert info["compiler"].startswith("gcc ")
    assert info["golden_hash"] == golden_answer().logits_hash


@pytest.mark.parametrize("option,words", [("--help", b"exit codes: 0 ok"), ("--version", b"colibri_inference 0.0.1 (")])
def test_texts(program: Program, option: str, words: bytes) -> None:
    run = program(option)
    assert words in run.stdout
    assert run.exit_code == run.status["exit_code"] == 0


def test_help_names_every_option(sanitized: Program) -> None:
    shown = set(re.findall(rb"--([a-z-]+)", sanitized("--help").stdout))
    modes = b"prompt tokens stdin info selftest bench serve help version"
    options = b"max-tokens temperature top-p seed threads ctx ids console baud"
    steady = b"deadline-ms lock-memory prefault huge-pages pin realtime"
    assert shown == set(b" ".join([modes, options, steady]).split())


def test_clang_builds_it_without_a_warning(tmp_path, program_for: Callable[[str], Program]) -> None:
    binary = build_fake(tmp_path / "clang", "clang")
    assert Program([str(binary)])("--selftest").status == program_for("sanitized")("--selftest").status
