"""The project's paced board with a model of a firmware behind it, where a test names no other."""

from __future__ import annotations

from colibri_build.run.paced_board import (
    Backend,
    Faults,
    FirmwareProcess,
    PacedBoard,
    cr_to_newline,
    newline_to_crlf,
    noise,
    wrong_baud,
)
from support.device_model import DeviceModel

__all__ = ["FakeBoard", "Faults", "FirmwareProcess", "cr_to_newline", "newline_to_crlf", "noise", "wrong_baud"]


class FakeBoard(PacedBoard):
    """A paced board; without a backend, the model that is written from the protocol's text alone."""

    def __init__(self, backend: Backend | None = None, faults: Faults | None = None, baud: int = 115200) -> None:
        super().__init__(backend if backend is not None else DeviceModel(), faults, baud)
