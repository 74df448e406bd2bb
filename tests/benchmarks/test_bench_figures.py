"""The benchmark's arithmetic: a wrong pairing or parse would publish a wrong comparison."""

from __future__ import annotations

import pytest
from suite import commands, figures, instructions, outside
from suite.correct import equal_at_first
from suite.tables import ratio_text


def rows(*values: float) -> list[dict[str, float]]:
    return [{"speed": value} for value in values]


def test_ratios_pair_the_rounds_and_not_the_medians() -> None:
    """A machine that slows down for a round slows both: the ratio of that round stays, the ratio of medians would not."""
    found = figures.paired({"ours": rows(20, 2, 30), "peer": rows(10, 1, 10)}, "speed", "ours", "peer")
    assert (found.median, found.against) == (2.0, "peer")
    assert (found.low, found.high) == (2.0, 2.5)
    assert ratio_text(found) == "2.00 (2.00-2.50)"


def test_a_lost_round_is_no_pair() -> None:
    with pytest.raises(ValueError, match="zip"):
        figures.paired({"ours": rows(1, 2), "peer": rows(1)}, "speed", "ours", "peer")


def test_the_better_peer_is_that_of_the_higher_median() -> None:
    """Not the one with the luckiest round, nor ours."""
    measured = {"ours": rows(99, 99, 99), "q4_0 repacked": rows(1, 9, 1), "q4_k_m repacked": rows(4, 5, 6)}
    peers = ["q4_0 repacked", "q4_k_m repacked"]
    assert figures.best(measured, "speed", peers) == "q4_k_m repacked"
    assert figures.best(measured, "speed", peers, least=True) == "q4_0 repacked"


@pytest.mark.parametrize(
    "counts, expected",
    [([[100, 200], [100, 200]], 0.0), ([[100, 200], [101, 200]], 0.01), ([[100, 200], [100, 300], [100, 250]], 0.5)],
)
def test_spread_compares_equal_lengths_only(counts: list[list[float]], expected: float) -> None:
    """The growth from one position to the next is no spread."""
    assert figures.spread(counts) == pytest.approx(expected)


def test_faults_of_further_tokens_leave_out_those_of_the_first() -> None:
    assert figures.further_faults({"tokens": [64, 192], "faults": [1000, 1000]}) == 0
    assert figures.further_faults({"tokens": [64, 192], "faults": [1000, 1256]}) == 2


def test_the_last_status_line_counts() -> None:
    """A message that quotes a status line must not be taken for it."""
    text = 'note\nCOLIBRI_STATUS {"tokens":1}\nx COLIBRI_STATUS {"tokens":2}\nPEER_STATUS {"tokens":3}\n'
    assert commands.parse_status(text) == {"tokens": 3}
    with pytest.raises(ValueError, match="no status line"):
        commands.parse_status("x COLIBRI_STATUS {}")


def test_instructions_are_those_between_two_writes() -> None:
    found = [int(number) for number in instructions.MARK.findall("a\nmark 10\n,7\nmark 25\nremark 9\nmark 45\n")]
    assert instructions.differences(found) == [15, 20]


def test_kernel_counts_are_read_from_the_table() -> None:
    text = "board      class kernel     instructions   limit\nx86-64-v3  a16   matvec_w4    0.478   0.49   per weight byte\n"
    assert outside.parse_counts(text) == {"x86-64-v3 a16 matvec_w4": 0.478}


@pytest.mark.parametrize("a, b, same", [([1, 2, 3], [1, 2, 3], 3), ([1, 2, 3], [1, 9, 3], 1), ([1, 2], [1, 2, 3], 2)])
def test_equal_text_ends_at_the_first_difference(a: list[int], b: list[int], same: int) -> None:
    assert equal_at_first(a, b) == same
