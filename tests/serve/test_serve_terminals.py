"""The human mode in the terminal programs that people have: a real picocom and a real tio."""

from __future__ import annotations

import os
import pty
import re
import select
import threading
import tty

import pexpect
import pytest

from support.fake_firmware import fake_answer, text_of
from support.serve_boards import Start


def carry(one: int, other: int, stop: threading.Event) -> None:
    """Pass bytes on between two ends."""
    while not stop.is_set():
        for fd in select.select([one, other], [], [], 0.1)[0]:
            os.write(other if fd == one else one, os.read(fd, 4096))


@pytest.mark.parametrize("command", [["picocom", "-q", "-b", "115200"], ["tio", "-b", "115200"]], ids=lambda c: c[0])
def test_a_person_types_a_line_and_reads_the_answer(start_fake: Start, command: list[str]) -> None:
    board = start_fake("--max-tokens", "6")
    board.line.expect_text(b"> ")
    master, slave = pty.openpty()
    tty.setraw(slave)
    stop = threading.Event()
    cable = threading.Thread(target=carry, args=(master, board.master, stop))
    cable.start()
    child = pexpect.spawn(command[0], [*command[1:], os.ttyname(slave)], encoding="utf-8", timeout=2)
    try:
        while True:  # what is typed while the program sets the line up is lost
            child.send("\r")
            if child.expect_exact(["\r\n> ", pexpect.TIMEOUT]) == 0:
                break
        child.timeout = 10
        child.send("hé\x7fey\x15abc\r")
        child.expect(r"abc\r\n(.*)\r\n-- length, 6 tokens, \d+ ms\r\n> ")
        assert child.match[1] == text_of(fake_answer(b"abc", 6).ids).decode()
        child.send("\x03")
        child.expect(re.escape("^C\r\n> "))
    finally:
        child.close(force=True)
        stop.set()
        cable.join()
        os.close(master)
        os.close(slave)
