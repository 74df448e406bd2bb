"""Sessions over good and bad lines, in a time of their own: the device's end in C (sanitized), the host's from the page."""

from __future__ import annotations

import random
import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from colibri_build.frames import Deframer, Frame, encode
from support.serial_host import PROBE, BadLine, Host, ack, data, sync

STEP_S = 0.02


class Device:
    """The C program of device_main.c."""

    def __init__(self, program: Path, *arguments: str) -> None:
        self.process = subprocess.Popen([program, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)

    def pass_time(self, milliseconds: int, received: bytes = b"") -> bytes:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(struct.pack("<IH", milliseconds, len(received)) + received)
        (n,) = struct.unpack("<H", self.read(2))
        return self.read(n)

    def read(self, n: int) -> bytes:
        assert self.process.stdout
        parts = b""
        while len(parts) < n:
            part = self.process.stdout.read(n - len(parts))
            assert part, "the device has crashed"
            parts += part
        return parts

    def frames(self, received: bytes = b"", milliseconds: int = 1) -> list[bytes]:
        """Bodies of the frames that it sends now."""
        items = Deframer().feed(self.pass_time(milliseconds, received))
        return [item.body for item in items if isinstance(item, Frame)]

    def end(self) -> None:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        assert self.process.wait(10) == 0
        self.process.stdout.close()


@pytest.fixture
def device(link_program: Callable[[str], Path]) -> Iterator[Device]:
    device = Device(link_program("device_main"))
    yield device
    device.end()


def opened(device: Device, window: int = 8) -> Device:
    assert device.frames(sync(5, window=window))[0][:7] == struct.pack("<BIBB", 2, 5, 1, 7)
    return device


def is_ack(body: bytes, following: int, window: int = 7) -> bool:
    return body == struct.pack("<BHB", 4, following, window)


def test_the_answer_to_sync_has_every_byte_of_the_page(device: Device) -> None:
    (body,) = device.frames(sync(0xA1B2C3D4))
    assert body == struct.pack("<BIBBI", 2, 0xA1B2C3D4, 1, 7, 77) + bytes(range(1, 9)) + PROBE


def test_another_version_is_answered_with_ours_and_opens_nothing(device: Device) -> None:
    (body,) = opened(device).frames(encode(struct.pack("<BIB", 1, 9, 2) + b"whatever comes with version 2"))
    assert body[:6] == struct.pack("<BIB", 2, 9, 1)
    assert device.frames(data(0, b"x")) == [b"\x05\x01"]


@pytest.mark.parametrize(
    "body", [struct.pack("<BIBB", 1, 9, 1, 0) + PROBE, struct.pack("<BIBB", 1, 9, 1, 8) + bytes(13), b"\x01"]
)
def test_a_malformed_sync_opens_nothing(device: Device, body: bytes) -> None:
    assert device.frames(encode(body)) == []
    assert device.frames(ack(0)) == [b"\x05\x01"]


def test_without_a_session_data_and_ack_are_told_so_and_the_rest_is_not_answered(device: Device) -> None:
    assert device.frames(data(0, b"x") + ack(3)) == [b"\x05\x01"]
    assert device.frames(encode(b"\x05\x01") + encode(b"\x06") + encode(b"\x54abcdefg") + encode(b"\x63")) == []


def test_a_message_comes_back_and_is_acknowledged(device: Device) -> None:
    first, second = opened(device).frames(data(0, b"hello"))
    assert is_ack(first, 1) and second == b"\x03\0\0\x01hello"
    assert device.frames(ack(1)) == []


def test_a_repeated_sync_does_not_disturb_its_session(device: Device) -> None:
    opened(device).frames(data(0, b"one"))
    (again,) = device.frames(sync(5))
    assert again[0] == 2
    first, second = device.frames(ack(1) + data(1, b"two"))
    assert is_ack(first, 2) and second == b"\x03\x01\0\x01two"


def test_a_new_sync_forgets_the_session_before(device: Device) -> None:
    opened(device).frames(data(0, b"one"))
    assert [body[0] for body in device.frames(sync(6))] == [2]
    assert device.frames(data(0, b"two"))[-1] == b"\x03\0\0\x01two"


def test_what_is_out_of_order_is_dropped_and_answered_with_the_wanted_seq(device: Device) -> None:
    opened(device)
    (body,) = device.frames(data(1, b"x") + data(2, b"y"))
    assert is_ack(body, 0)
    assert is_ack(device.frames(data(0, b"a", last=False))[0], 1)
    assert is_ack(device.frames(data(0, b"a", last=False))[0], 1)  # doubled
    assert device.frames(data(1, b"b"))[-1] == b"\x03\0\0\x01ab"


def test_a_bad_frame_is_answered_at_once_but_not_more_often_than_every_20_ms(device: Device) -> None:
    opened(device)
    bad = data(0, b"hello").replace(b"h", b"H")
    assert is_ack(device.frames(bad, 30)[0], 0)
    assert device.frames(bad, 5) == []
    assert is_ack(device.frames(bad, 20)[0], 0)


def test_an_unanswered_frame_comes_again_after_a_second_and_goes_at_once_when_asked_for(device: Device) -> None:
    opened(device).frames(data(0, b"hello"))
    again = b"\x03\0\0\x01hello"
    assert device.frames(milliseconds=998) == []
    assert device.frames(milliseconds=2) == [again]
    assert device.frames(ack(0), 250) == [again]
    assert device.frames(ack(0), 100) == []  # within a round trip
    assert device.frames(ack(1), 250) == []
    assert all(body[0] == 4 for body in device.frames(milliseconds=3000))


@pytest.mark.parametrize("window", [1, 3, 8])
def test_no_more_frames_are_under_way_than_the_host_takes(device: Device, window: int) -> None:
    long = bytes(range(250)) * 16  # 17 frames
    opened(device, window)
    sent: list[bytes] = []
    for seq in range(17):
        sent += device.frames(data(seq, long[244 * seq : 244 * (seq + 1)], seq == 16))
    got = [body for body in sent if body[0] == 3]
    assert [body[1] for body in got] == list(range(window))
    assert device.frames(ack(1, 0), 1) == []
    assert [body[1] for body in device.frames(ack(1, 2), 1)] == [1, 2]


def test_the_host_is_told_to_wait_while_an_answer_finds_no_room(link_program: Callable[[str], Path]) -> None:
    device = opened(Device(link_program("device_main"), "65535"))
    (first, *_) = device.frames(data(0, b"first"))
    assert is_ack(first, 1)
    assert is_ack(device.frames(data(1, b"second"))[0], 2, 0)
    assert is_ack(device.frames(data(2, b"third"))[0], 2, 0)
    opened_again, answer = device.frames(ack(1))
    assert is_ack(opened_again, 2) and answer.endswith(b"second")
    device.end()


def test_a_message_longer_than_the_device_takes_is_read_to_its_end_and_refused(device: Device) -> None:
    opened(device)
    for seq in range(30):
        last = device.frames(data(seq, bytes(244), seq == 29))
    assert last[-1] == b"\x03\0\0\x01too long"
    answers = [body for seq in range(30, 300) for body in device.frames(data(seq, bytes(244), False) + ack(1))]
    assert [body for body in answers if body[0] != 4] == [b"\x05\x03", b"\x05\x01"]


def test_both_ends_keep_a_session_alive_and_silence_ends_it(device: Device) -> None:
    opened(device)
    for _ in range(8):
        assert any(is_ack(body, 0) for body in device.frames(ack(0), 2000))
    device.frames(milliseconds=9000)
    assert device.frames(milliseconds=1100) == [b"\x05\x02"]
    assert device.frames(ack(0)) == [b"\x05\x01"]


def test_bye_ends_a_session_silently(device: Device) -> None:
    assert opened(device).frames(encode(b"\x06")) == []
    assert device.frames(data(0, b"x")) == [b"\x05\x01"]


@pytest.mark.parametrize("seed", range(12))
def test_every_message_arrives_once_and_whole_over_a_bad_line(device: Device, seed: int) -> None:
    """Flipped, lost and doubled bytes and frames both ways; three sessions."""
    host, rng = Host(seed, window=[8, 1, 3][seed % 3]), random.Random(seed)
    there, back = BadLine(seed, 0.06), BadLine(seed + 100, 0.06)
    now = 0.0
    for _ in range(3):
        host.open_session(now)
        sent = [rng.randbytes(rng.choice([1, 20, 244, 245, 1500])) for _ in range(40)]
        for message in sent:
            host.send(message)
        for _ in range(20000):
            if host.peer and not host.queue and len(host.messages) == len(sent):
                break
            now += STEP_S
            host.tick(now)
            wire = b"".join(there(frame) for frame in host.out)
            host.out.clear()
            answer = device.pass_time(int(STEP_S * 1000), wire)
            pieces = [answer[at : at + 100] for at in range(0, len(answer), 100)]
            host.feed(b"".join(map(back, pieces)), now)
        assert list(host.messages) == sent
        host.messages.clear()
    assert there.faults + back.faults > 50 and host.repeated > 0
    assert host.violations == []


def test_no_stream_of_bytes_harms_the_device(device: Device) -> None:
    """Frames that are well formed but senseless, and noise; a new host is served afterwards."""
    rng = random.Random(9)
    for _ in range(4000):
        kind = rng.randrange(8)
        body = bytes((rng.choice([1, 2, 3, 3, 3, 4, 4, 5, 6, 0x54, 99]),)) + rng.randbytes(rng.randrange(0, 247))
        if kind == 0:
            piece = rng.randbytes(rng.randrange(1, 700))
        elif kind == 1:
            piece = sync(rng.getrandbits(32), rng.randrange(3), rng.randrange(10))
        elif kind == 2:
            piece = ack(rng.randrange(20), rng.randrange(12))
        elif kind == 3:
            piece = data(rng.randrange(20), rng.randbytes(rng.randrange(245)), rng.random() < 0.5)
        else:
            piece = BadLine(rng.getrandbits(30), 0.5)(encode(body))
        device.pass_time(rng.choice([0, 1, 30, 500, 11000]) if rng.random() < 0.3 else 0, piece)
    device.pass_time(20000)
    opened(device)
    assert device.frames(data(0, b"still here"))[-1].endswith(b"still here")
