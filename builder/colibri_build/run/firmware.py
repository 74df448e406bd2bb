"""A firmware that answers prompts, whatever it runs on (the fixture `firmware`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from colibri_build.errors import RunError
from colibri_build.run.client import Client, GenerateOptions

__tracebackhide__ = True  # pytest shows the line of the test that failed instead of ours
_FAULTS = ("major_faults", "minor_faults")


class Device(Protocol):
    """A device under test as far as a firmware needs it: `Dut` and `BoardDut` are."""

    last_status: Mapping[str, Any]

    def session(self) -> Client:
        """Return a client of the serial protocol."""

    def seconds(self, timeout: float | None) -> float:
        """Return a wait's length."""


@dataclass(frozen=True)
class Answer:
    """What a firmware answered. `status` is the object of the status line; `text` lacks no byte that is UTF-8."""

    text: str
    status: Mapping[str, Any]

    @property
    def ids(self) -> tuple[int, ...]:
        """The chosen tokens, an end-of-sequence token included."""
        return tuple(self.status["ids"])

    @property
    def stop(self) -> str:
        """Why it ended: eos, length, context, interrupted, none."""
        return str(self.status["stop"])

    @property
    def logits_hash(self) -> str:
        """16 hexadecimal digits over all logits."""
        return str(self.status["logits_hash"])


class Firmware:
    """Answers prompts. Timeouts are in seconds; None is the session's default.

    Raises RunError for a line or a board that is lost, DeadlineError; a prompt that the model cannot take is no error:
    the answer's status says so.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        self._client: Client | None = None
        self._before: Mapping[str, Any] = {}

    def generate(
        self,
        prompt: str | Sequence[int],
        *,
        max_tokens: int = 0,
        temperature: float = 0.0,
        top_p: float = 1.0,
        seed: int = 0,
        timeout: float | None = None,
    ) -> Answer:
        """Answer a prompt (text, or token ids). `max_tokens` 0: until the end of sequence or of the context."""
        parts: list[bytes] = []
        status = self._session().generate(
            prompt,
            GenerateOptions(max_tokens, temperature, top_p, seed),
            lambda _index, _token, text: parts.append(text),
            self._device.seconds(timeout),
        )
        self._device.last_status = status
        return Answer(b"".join(parts).decode("utf-8", "replace"), status)

    def selftest(self, timeout: float | None = None) -> Mapping[str, Any]:
        """Let the firmware compare itself with the golden answer that it holds; returns its status."""
        self._device.last_status = self._session().selftest(self._device.seconds(timeout))
        return self._device.last_status

    def info(self) -> Mapping[str, Any]:
        """What the firmware holds: the object of --info."""
        return self._session().info()

    def stats(self) -> Mapping[str, Any]:
        """The firmware's counters since its start."""
        return self._session().stats()

    def usage(self) -> Mapping[str, int]:
        """Page faults since this object's first request; nothing if there was none, or its session is lost."""
        if self._client is None or not self._client.link.is_usable:
            return {}
        with suppress(RunError):
            now = self._client.stats()
            return {name: now[name] - self._before[name] for name in _FAULTS if now[name] >= self._before[name]}
        return {}

    def _session(self) -> Client:
        client = self._device.session()
        if client is not self._client:  # the first, or the firmware was started anew
            self._client, self._before = client, client.stats()
        return client
