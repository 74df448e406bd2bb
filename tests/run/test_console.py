"""The console of an emulated machine without the machine: deadlines, bad news, a peer that goes away."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from colibri_build.errors import DeadlineError, RunError
from colibri_build.run.console import Console


class Peer:
    """The other end of a console."""

    def __init__(self) -> None:
        ours, self.socket = socket.socketpair()
        self.console = Console(ours, lambda: "the board ended with 3")

    def says(self, text: str | bytes) -> None:
        self.socket.sendall(text.encode() if isinstance(text, str) else text)

    def later(self, *texts: str) -> None:
        def speak() -> None:
            for text in texts:
                time.sleep(0.05)
                self.says(text)
            self.socket.close()

        threading.Thread(target=speak, daemon=True).start()


@pytest.fixture
def peer() -> Iterator[Peer]:
    peer = Peer()
    yield peer
    peer.console.close()
    peer.socket.close()


def test_a_match_is_found_across_pieces_and_once(peer: Peer) -> None:
    peer.later("REA", "DY one\r\nREADY two\r\n")
    assert peer.console.expect(r"READY \w+", 5).group() == "READY one"
    assert peer.console.expect(r"READY \w+", 5).group() == "READY two"
    assert peer.console.text == "READY one\nREADY two\n"


def test_a_deadline_shows_the_consoles_end(peer: Peer) -> None:
    peer.says("Starting kernel ...")
    started = time.monotonic()
    with pytest.raises(DeadlineError, match=r"no 'READY' within 0.2 s; the console's end: 'Starting kernel"):
        peer.console.expect("READY", 0.2)
    assert time.monotonic() - started < 2


@pytest.mark.parametrize(
    "words", ["Kernel panic - not syncing", "FATAL: no partition", "Out of memory: Killed process"]
)
def test_bad_news_ends_a_wait_at_once_and_whole(peer: Peer, words: str) -> None:
    peer.later(words[:9], f"{words[9:]} with details\n", "[ end trace ]\n")
    with pytest.raises(RunError, match=f"says '{words} with details'.*end trace"):
        peer.console.expect("READY", 30)


def test_what_is_waited_for_wins_over_bad_news_behind_it(peer: Peer) -> None:
    peer.says("READY\nFATAL: later\n")
    peer.console.expect("READY", 5)
    with pytest.raises(RunError, match="FATAL: later"):
        peer.console.read(5)


def test_bad_news_is_said_once(peer: Peer) -> None:
    peer.says("FATAL: disk\n")
    with pytest.raises(RunError):
        peer.console.read(5)
    peer.says("reboot\n")
    assert peer.console.read(5) == b"reboot\n"


@pytest.mark.parametrize("wait", ["expect", "read"])
def test_a_peer_that_is_gone_is_said_at_once(peer: Peer, wait: str) -> None:
    peer.says("last words")
    peer.socket.close()
    with pytest.raises(RunError, match="the board ended with 3 .*'last words'"):
        if wait == "expect":
            peer.console.expect("READY", 30)
        else:
            while peer.console.read(30):
                pass


def test_a_channel_gets_every_byte(peer: Peer) -> None:
    """Frames of the serial protocol are no text: decoding them for the transcript must not touch them."""
    data = bytes(range(256)) * 4
    peer.says(data)
    got = b""
    while len(got) < len(data):
        got += peer.console.read(5)
    assert got == data
    peer.console.write(data[::-1])
    assert peer.socket.recv(4096) == data[::-1]
    assert peer.console.read(0) == b""


def test_drain_waits_for_the_end(peer: Peer) -> None:
    peer.later("status\n", "off\n")
    assert peer.console.drain(5)
    assert peer.console.text.endswith("off\n")


def test_drain_gives_up_at_its_deadline(peer: Peer) -> None:
    assert not peer.console.drain(0.1)
