"""The session with a board: right answers over a bad line, and plain words when it cannot be kept.

The boards are models written from PROTOCOL.md alone, on real PTYs.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from colibri_build.errors import DeadlineError, RunError
from colibri_build.run import client as client_module
from colibri_build.run import link as link_module
from colibri_build.run.client import Client, GenerateOptions, RequestRefusedError, TraceMask
from colibri_build.run.link import Link
from colibri_build.run.serial_port import SerialPort
from serial_line.conftest import FAST_BAUD, Connect, Serve
from support.device_model import BOOT_TEXT, CLOCK_HZ, DIGEST, READY, DeviceModel, Job
from support.fake_board import cr_to_newline, newline_to_crlf, noise
from support.fake_firmware import fake_answer, text_of


def fault(client: Client) -> RunError:
    with pytest.raises(RunError) as caught:
        client.generate("abc", on_token=lambda *_: None)
    assert caught.value.hint
    assert "\n" not in str(caught.value)
    return caught.value


def test_a_session_tells_who_the_board_is(connect: Connect) -> None:
    peer = connect(DeviceModel(window=3)).connect()
    assert (peer.boot, peer.digest, peer.window) == (1000, DIGEST.hex(), 3)


def test_an_answer_streams_and_ends_with_its_status(connect: Connect) -> None:
    client, tokens = connect(DeviceModel(token_s=0.01)), []
    times: list[float] = []

    def take(index: int, token: int, text: bytes) -> None:
        tokens.append((index, token, text))
        times.append(time.monotonic())

    status = client.generate("abc", on_token=take)
    answer = fake_answer(b"abc")
    assert [token for _, token, _ in tokens] == status["ids"] == list(answer.ids)
    assert [index for index, _, _ in tokens] == list(range(len(answer.ids)))
    assert b"".join(text for _, _, text in tokens) == text_of(answer.ids)
    assert (status["logits_hash"], status["stop"]) == (answer.logits_hash, "eos")
    assert times[-1] - times[0] > 0.15, "the tokens did not come as they were computed"


def test_options_and_token_ids_arrive_as_they_were_given(connect: Connect) -> None:
    client = connect()
    options = GenerateOptions(max_tokens=9, temperature=0.5, top_p=0.75, seed=2**63 + 5)
    got = client.generate([97, 98], options)
    wanted = fake_answer([97, 98], 9, temperature=0.5, top_p=0.75, seed=2**63 + 5)
    assert (got["ids"], got["logits_hash"]) == (list(wanted.ids), wanted.logits_hash)


def test_every_other_request(connect: Connect) -> None:
    client = connect()
    assert client.info()["protocol"] == 1
    assert client.stats()["uptime_us"] == 5
    assert client.selftest()["status"] == "ok"
    assert client.ping(bytes(range(200))) < 1
    client.trace(TraceMask.ROUTING | TraceMask.TIMING)
    client.shutdown()
    assert client.board.backend.ended  # type: ignore[attr-defined]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_lost_flipped_and_doubled_bytes_change_no_answer(connect: Connect, seed: int) -> None:
    client = connect(to_host=noise(seed, 0.003), to_board=noise(seed + 100, 0.003))
    for prompt in ("abc", "golden", "x"):
        tokens: list[int] = []
        status = client.generate(prompt, on_token=lambda _i, token, _t, tokens=tokens: tokens.append(token))
        assert status["logits_hash"] == fake_answer(prompt.encode()).logits_hash
        assert tokens == status["ids"]
    assert client.link.bad_frames + client.board.backend.n_bad > 0, "the line was good"  # type: ignore[attr-defined]


def test_a_long_prompt_takes_many_frames_and_none_too_many(connect: Connect) -> None:
    client = connect(DeviceModel(window=2), to_board=noise(5, 0.0005))
    status = client.generate([97] * 900)
    assert (status["status"], status["prompt_tokens"]) == ("prompt_too_long", 900)


@pytest.mark.parametrize("faults", [{"to_host": newline_to_crlf}, {"to_board": cr_to_newline}])
def test_a_terminal_that_translates_line_ends(connect: Connect, faults: dict[str, object]) -> None:
    client = connect(**faults)
    assert client.generate("abc")["logits_hash"] == fake_answer(b"abc").logits_hash
    assert client.link.bad_frames == 0
    assert client.ping(bytes([0x0A, 0x0D, 0x11, 0x13, 0x7D] * 40)) >= 0


def test_sequence_numbers_wrap(connect: Connect) -> None:
    client = connect()
    client.connect()
    session = client.board.backend.session  # type: ignore[attr-defined]
    client.link._base = client.link._expected = session.base = session.expected = 0xFFFE
    assert [client.generate("abc")["stop"] for _ in range(3)] == ["eos"] * 3
    assert client.link._expected < 100


def test_boot_messages_around_a_session_are_text(serve: Serve) -> None:
    board, text = serve(), []
    with SerialPort.open(board.port, FAST_BAUD) as line:
        link = Link(line, on_text=text.append)
        link.pump(0.1)
        board.backend._say(b"[    0.1] usb 1-1: new device\r\n")  # type: ignore[attr-defined]
        with Client(link) as client:
            assert client.generate("abc")["stop"] == "eos"
        link.pump(0.05)
        link.pump(0.05)
    said = b"".join(text)
    assert said.startswith(b"READY colibri protocol=1")
    assert b"new device\r\n" in said
    assert said.count(b"READY") == 2, "the board is not back in its human mode"


def test_traces_come_beside_the_answer(connect: Connect) -> None:
    client, bodies = connect(), []
    client.link._on_trace = bodies.append
    client.trace(TraceMask.ROUTING)
    client.generate("xyz")
    client.link.pump(0.05)
    assert bodies[0][8] == 1
    assert int.from_bytes(bodies[0][12:16], "little") == CLOCK_HZ
    assert [int.from_bytes(body[1:3], "little") for body in bodies] == list(range(len(bodies)))


def test_a_caller_that_waits_keeps_the_session_alive(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_module, "_KEEP_ALIVE_S", 0.1)
    client = connect(DeviceModel(token_s=1.2, silence_s=0.8))
    assert client.generate("z")["stop"] == "eos"
    assert client.link.counts.sessions == 1


def test_after_a_long_pause_a_request_opens_another_session(connect: Connect) -> None:
    client = connect(DeviceModel(silence_s=0.7))
    client.ping()
    time.sleep(1.1)
    assert client.generate("abc")["stop"] == "eos"
    assert client.link.counts.sessions == 2


def test_a_board_that_was_reset_between_requests_is_no_fault(connect: Connect) -> None:
    client = connect()
    client.ping()
    client.board.reset()  # type: ignore[attr-defined]
    time.sleep(0.05)
    assert client.generate("abc")["stop"] == "eos"
    assert client.link.peer is not None
    assert client.link.peer.boot == 1001


def test_a_board_that_is_reset_in_the_middle(connect: Connect) -> None:
    error = fault(connect(DeviceModel(token_s=0.01), reset_at=300))
    assert error.what.startswith("the board was reset in the middle of the answer")
    assert error.exit_code == 4


def test_a_board_that_is_reset_without_a_word_shows_another_boot_number(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("support.device_model.BOOT_TEXT", b"")
    error = fault(connect(DeviceModel(token_s=0.01), reset_at=300))
    assert error.what == "the board was reset in the middle of the answer"


def test_a_board_that_boots_again_is_not_disturbed(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    """A boot loader stops at any byte: so none is sent until the firmware is ready."""

    class Rebooting(DeviceModel):
        typed = b""
        ready_at = 0.0

        def reset(self) -> None:
            super().reset()
            self._out.clear()
            self._say(BOOT_TEXT + b"Hit any key to stop autoboot\r\n")
            self.serves, self.ready_at = False, time.monotonic() + 0.8

        def feed(self, data: bytes) -> None:
            self.typed += b"" if self.serves else data
            super().feed(data)

        def tick(self, now: float) -> None:
            if not self.serves and now > self.ready_at:
                self.serves = True
                self._say(READY)
            super().tick(now)

    model = Rebooting(token_s=0.02)
    client = connect(model, reset_at=300)
    assert "the board was reset in the middle of the answer; its last words: '" in fault(client).what
    model.typed = b""  # what was under way when the power went
    assert client.generate("z")["stop"] == "eos"
    assert model.typed == b""
    assert client.link.peer is not None
    assert client.link.peer.boot == 1001


def test_a_board_that_is_reset_and_does_not_serve_again(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, hasty: None
) -> None:
    monkeypatch.setattr(link_module, "BOOT_S", 0.1)
    model = DeviceModel(token_s=0.01)
    client = connect(model)
    client.connect()
    model.serves = False
    client.board.reset()  # type: ignore[attr-defined]
    error = fault(client)
    assert error.what.startswith("the board was reset in the middle") or "last words: 'login:'" in error.what
    with pytest.raises(RunError, match="the board is silent|not in frames, its last words: 'login:'"):
        client.connect()


def test_a_board_that_goes_silent_in_the_middle(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_module, "SILENCE_S", 0.3)
    monkeypatch.setattr(client_module, "_PROBE_S", 0.1)
    error = fault(connect(DeviceModel(token_s=0.01), silent_at=300))
    assert error.what == "no answer from the board for 0.3 s in the middle of a request"
    assert error.exit_code == 124


def test_a_board_that_thinks_long_is_not_taken_for_dead(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_module, "SILENCE_S", 0.3)
    monkeypatch.setattr(client_module, "_PROBE_S", 0.1)
    assert connect(DeviceModel(token_s=0.5)).generate("z")["stop"] == "eos"


def test_a_cable_that_is_pulled_in_the_middle(connect: Connect) -> None:
    error = fault(connect(DeviceModel(token_s=0.01), unplug_at=300))
    assert error.what.startswith("device disconnected: /dev/pts/")
    assert error.exit_code == 4


def test_a_deadline_cancels_the_answer(connect: Connect) -> None:
    client = connect(DeviceModel(token_s=0.05))
    with pytest.raises(DeadlineError, match=r"no end of GENERATE within 0\.[12] s") as caught:
        client.generate("a", timeout_s=0.12)
    assert caught.value.exit_code == 124
    started = time.monotonic()
    assert client.generate("z")["stop"] == "eos", "the board still computes the first answer"
    assert time.monotonic() - started < 0.5


def test_ctrl_c_cancels_the_answer(connect: Connect) -> None:
    client = connect(DeviceModel(token_s=0.02))

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        client.generate("a", on_token=interrupt)
    assert 0x12 in client.board.backend.requests  # type: ignore[attr-defined]
    assert client.generate("z")["stop"] == "eos"


@pytest.mark.parametrize(
    ("code", "name"),
    [(1, "unknown op"), (2, "out of range"), (3, "busy"), (4, "too long"), (6, "not compiled in"), (77, "error 77")],
)
def test_a_refused_request_says_why(connect: Connect, code: int, name: str) -> None:
    with pytest.raises(RequestRefusedError) as caught:
        connect(DeviceModel(refuses=(code, "so\r\nit is"))).info()
    assert caught.value.name == name
    assert caught.value.what == f"the board refuses INFO ({name}): so it is"
    assert caught.value.exit_code == 4


def test_what_the_board_itself_refuses(connect: Connect) -> None:
    client = connect(DeviceModel(trace_compiled=1))
    with pytest.raises(RequestRefusedError, match="not compiled in"):
        client.trace(TraceMask.MEMORY)
    with pytest.raises(RequestRefusedError, match="temperature 101 is out of range"):
        client.generate("a", GenerateOptions(temperature=101))
    with pytest.raises(RequestRefusedError, match="no such request"):
        client.cancel(4711)
    assert client.generate("")["status"] == "empty_prompt"


def test_a_message_that_no_frame_count_can_carry(connect: Connect) -> None:
    with pytest.raises(RunError, match="a prompt of 70000 bytes is too long"):
        connect().generate("x" * 70000)


@pytest.mark.parametrize("answer", [b"", b"[1]", b'{"status":"ok"}', b"\xff"])
def test_a_damaged_status_is_a_fault_and_no_crash(connect: Connect, answer: bytes) -> None:
    class Confused(DeviceModel):
        def _finish(self, job: Job) -> None:
            self._job = None
            self._answer(0x84, job.request, answer)

    assert "status line" in fault(connect(Confused())).what


def test_the_line_is_paced_as_a_wire_is(serve: Serve) -> None:
    """115200 baud carry 11520 bytes a second: the fake board must not flatter the timing."""
    board = serve(baud=115200)
    with SerialPort.open(board.port) as line, Client(Link(line)) as client:
        client.ping()
        started, before = time.monotonic(), board.n_to_host
        for _ in range(20):
            client.ping(bytes(200))
        seconds, n_bytes = time.monotonic() - started, board.n_to_host - before
    assert n_bytes > 20 * 200
    assert 0.8 * n_bytes / 11520 < seconds / 2 < 1.6 * n_bytes / 11520


def test_info_is_json(connect: Connect, tmp_path: Path) -> None:
    (tmp_path / "info").write_text(json.dumps(connect().info()))
    assert json.loads((tmp_path / "info").read_text())["model"] == "fake"
