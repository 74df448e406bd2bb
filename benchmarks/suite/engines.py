"""Both sides behind one face: command lines for the same work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from suite.cache import digest_of
from suite.models import Model
from suite.ours import BITS, BOARD_X86, Firmware, firmware
from suite.peer import PeerModel, peers

GOLDEN_LENGTH = 8  # tokens of a prompt before decoding; the firmware's is embedded and about as long
ARCH = {"x86-64-v3": "x86_64", "cortex-a53": "aarch64"}


@dataclass(frozen=True)
class Engine:
    """A program with a model.

    `program` and `files` are what it reads from the disk; `weight_bytes` of them a token reads.
    """

    name: str
    is_ours: bool
    digest: str
    program: Path
    files: tuple[Path, ...]
    weight_bytes: int
    model: Model
    peer: PeerModel | None = None
    options: tuple[str, ...] = ()  # of our firmware, for every run

    def decode(self, tokens: int, threads: int) -> list[str | Path]:
        """Decode `tokens` after a short prompt, ends of sequence ignored; reports their times."""
        if self.peer is None:
            return [self.program, "--bench", str(tokens), "--threads", str(threads), *self.options]
        return self._driver("bench", self.model.ids(GOLDEN_LENGTH), tokens, threads)

    def answer(self, ids: Sequence[int], tokens: int, threads: int) -> list[str | Path]:
        """Feed a prompt and choose `tokens`, each printed at once."""
        if self.peer is not None:
            return self._driver("tokens", ids, tokens, threads)
        words = ["--tokens", joined(ids), "--max-tokens", str(tokens), "--threads", str(threads), "--ids"]
        return [self.program, *words, *self.options]

    def _driver(self, mode: str, ids: Sequence[int], tokens: int, threads: int) -> list[str | Path]:
        assert self.peer is not None
        how = "repack" if self.peer.repacks else "plain"
        numbers = [joined(ids), str(tokens), str(threads), str(self.model.context)]
        return [self.program, mode, self.peer.gguf, *numbers, how]


def joined(ids: Sequence[int]) -> str:
    """1,2,3."""
    return ",".join(map(str, ids))


def engines(model: Model, cpu: str) -> list[Engine]:
    """Ours in both classes, then every configuration of llama.cpp; `cpu` is x86-64-v3 or cortex-a53."""
    board = BOARD_X86 if cpu == BOARD_X86 else model.board_a53
    ours = [of_firmware(firmware(model, board, bits)) for bits in BITS]
    return [*ours, *(_of_peer(model, peer) for peer in peers(model, ARCH[cpu]))]


def of_firmware(built: Firmware) -> Engine:
    """Ours."""
    return Engine(built.name, True, built.digest, built.path, (built.path,), built.weight_bytes, built.model)


def _of_peer(model: Model, peer: PeerModel) -> Engine:
    digest = digest_of(peer.driver_digest, peer.file_digest, peer.repacks)
    return Engine(peer.name, False, digest, peer.driver, (peer.driver, peer.gguf), peer.weight_bytes, model, peer)


def tuned(engine: Engine, name: str, *options: str) -> Engine:
    """Ours with options of its command line, under a name of its own."""
    return replace(engine, name=f"{engine.name} {name}", digest=digest_of(engine.digest, options), options=options)


def rotations(members: Sequence[Engine], rounds: int) -> Iterator[list[Engine]]:
    """Every engine once a round, each round beginning with another one: no engine always follows the same."""
    for at in range(rounds):
        shift = at % len(members)
        yield [*members[shift:], *members[:shift]]
