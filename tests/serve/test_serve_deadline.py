"""--serve with a deadline: the host learns of late tokens from DONE, and no text of theirs breaks a frame."""

from __future__ import annotations

from support.serial_host import OK, SELFTEST, SHUTDOWN
from support.serve_boards import Start


def test_done_counts_the_late_tokens_of_its_answer(start_fake: Start) -> None:
    board = start_fake("--deadline-ms", "0.5", fake="slow")  # 20 ms a token
    board.line.connect()
    for _ in range(2):
        _, done = board.line.generate(b"uvw")  # x y z and an end of sequence; the first belongs to the prompt
        assert (done["deadline"]["limit_us"], done["deadline"]["late"]) == (500, 3)
        assert done["deadline"]["worst_us"] >= 20_000
    _, tested = board.line.done(board.line.request(SELFTEST))
    assert "deadline" not in tested, "whose tokens are not timed"
    assert board.line.ask(SHUTDOWN)[0] == OK
    run = board.end()
    assert run.status["deadline"]["late"] == 6
    assert "COLIBRI_LATE" not in run.stderr


def test_without_a_deadline_done_is_as_before(start_fake: Start) -> None:
    board = start_fake(fake="slow")
    board.line.connect()
    _, done = board.line.generate(b"uvw")
    assert "deadline" not in done
    assert board.line.ask(SHUTDOWN)[0] == OK
    assert board.end().status["status"] == "ok"
