"""One compiled tokenizer for each combination that the tests of this folder ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from tokenizer_firmware import Firmware, compile_firmware
from tokenizers import Tokenizer


@pytest.fixture(scope="session")
def make_firmware(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Firmware]]:
    """Build and start a harness for a library tokenizer; a second request for the same one starts nothing."""
    running: dict[tuple[str, str, int, int], Firmware] = {}

    def make(
        tokenizer: Tokenizer | str, build: str = "native", context: int = 65536, vocab_size: int | None = None
    ) -> Firmware:
        text = tokenizer if isinstance(tokenizer, str) else tokenizer.to_str()
        size = vocab_size or Tokenizer.from_str(text).get_vocab_size()
        key = (text, build, context, size)
        if key not in running:
            running[key] = compile_firmware(text, tmp_path_factory.mktemp(build), build, size, context)
        return running[key]

    yield make
    assert [firmware.close() for firmware in running.values()] == [0] * len(running)
